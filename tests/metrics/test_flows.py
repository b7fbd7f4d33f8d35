"""Agreement of expected and true flows."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.metrics.flows import score_flows

TRUE = np.array([[6.0, 2.0], [0.0, 2.0]])
STAYS = np.eye(2, dtype=bool)


def test_true_flows_agree_with_themselves():
    score = score_flows(TRUE, TRUE, STAYS)
    assert (score.overlap, score.moved_overlap, score.relative_error, score.rmse) == (1, 1, 0, 0)
    assert score.correlation == pytest.approx(1)
    assert (score.expected, score.true) == (10, 10)


def test_members_at_another_move_are_not_right():
    score = score_flows([[5, 3], [0, 2]], TRUE, STAYS)
    assert score.overlap == pytest.approx(0.9)
    assert score.moved_overlap == pytest.approx(2 / 3)
    assert score.relative_error == pytest.approx(0.2)
    assert score.rmse == pytest.approx(np.sqrt(0.5))


def test_more_members_than_there_are_do_not_help():
    assert score_flows(2 * TRUE, TRUE, STAYS).overlap == pytest.approx(0.5)


def test_what_does_not_exist_is_nan():
    score = score_flows([[5, 5]], [[5, 5]], True)
    assert np.isnan(score.moved_overlap)
    assert np.isnan(score.correlation)


def test_flows_that_cannot_be_compared_are_refused():
    with pytest.raises(ShapeError, match=r"expected flows of shape \(1,\)"):
        score_flows([1], [1, 2], False)
    with pytest.raises(InvalidArgumentError, match="all zero"):
        score_flows([1], [0], False)
    with pytest.raises(InvalidArgumentError, match="expected flows must be finite"):
        score_flows([np.nan], [1], False)
