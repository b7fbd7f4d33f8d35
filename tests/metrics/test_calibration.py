"""Groups of cases by their probability."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.metrics.calibration import reliability


def test_groups_have_their_mean_their_share_and_their_cases():
    found = reliability([0.0, 0.1, 0.55, 0.65, 1.0], [False, True, True, False, True], bins=2)
    assert found.probability.tolist() == pytest.approx([0.05, 2.2 / 3])
    assert found.share.tolist() == pytest.approx([0.5, 2 / 3])
    assert found.cases.tolist() == [2.0, 3.0]
    assert found.error == pytest.approx((2 * 0.45 + 3 * (2.2 / 3 - 2 / 3)) / 5)
    assert found.as_dict()["error"] == found.error


def test_a_case_counts_as_often_as_its_weight_says():
    chance, true = [0.1, 0.2, 0.9], [True, False, True]
    repeated = reliability(np.repeat(chance, [3, 1, 2]), np.repeat(true, [3, 1, 2]))
    weighted = reliability(chance, true, weight=[3, 1, 2])
    for one, other in zip(repeated, weighted, strict=True):
        np.testing.assert_allclose(one, other)


def test_groups_without_cases_are_left_out():
    found = reliability([0.05, 0.95], [False, True], weight=[0.0, 1.0])
    assert found.cases.tolist() == [1.0]
    empty = reliability([], [])
    assert (len(empty.cases), empty.error) == (0, 0.0)


def test_probabilities_that_come_true_as_often_as_they_say_have_no_error():
    rng = np.random.default_rng(3)
    chance = rng.random(200_000)
    assert reliability(chance, rng.random(200_000) < chance).error < 0.01
    assert reliability(chance**2, rng.random(200_000) < chance).error > 0.1


def test_what_is_no_probability_is_refused():
    with pytest.raises(InvalidArgumentError, match="between 0 and 1"):
        reliability([1.5], [True])
    with pytest.raises(ShapeError, match="one for each case"):
        reliability([0.5, 0.5], [True])
    with pytest.raises(InvalidArgumentError, match="bins"):
        reliability([0.5], [True], bins=0)
