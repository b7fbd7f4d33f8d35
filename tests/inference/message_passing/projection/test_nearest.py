"""Distance from the nearest targets, of many parts at once."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError, WeightError
from factorwise.inference.message_passing.projection import (
    FeatureWeights,
    Layout,
    Measurement,
    NearestEnergy,
    NearestParts,
    SumEnergy,
)

IDENTITY = Measurement.identity


def sets(seed=0):
    random = np.random.default_rng(seed)
    return [random.random((3, 2)), random.random((2, 4))]


def parts(width=0.0, reach=np.inf, weights=(1.5, -0.4, 2.0, 0.7)):
    return NearestParts(IDENTITY(12), sets(), [1, 0, 1, 0], weights, width=width, reach=reach)


@pytest.mark.parametrize("width", [0.0, 0.3])
@pytest.mark.parametrize("reach", [np.inf, 0.5])
def test_many_parts_are_the_sum_of_each_alone(width, reach):
    whole = parts(width, reach)
    alone = [
        NearestEnergy(IDENTITY(12).taken(np.arange(a, b)), sets()[of], weight, width=width, reach=reach)
        for (a, b), of, weight in zip(
            [(0, 4), (4, 6), (6, 10), (10, 12)], [1, 0, 1, 0], whole.weights, strict=True
        )
    ]
    total, random = SumEnergy(*alone), np.random.default_rng(1)
    for measured in random.random((20, 12)):
        direction = random.normal(size=12)
        assert whole.value_of(measured) == pytest.approx(total.value_of(measured))
        for method in ("slope_of", "weight_gradient_of"):
            found, expected = getattr(whole, method)(measured), getattr(total, method)(measured)
            np.testing.assert_allclose(found, expected, atol=1e-14)
        np.testing.assert_allclose(
            whole.weight_gradient_along(measured, direction), total.weight_gradient_along(measured, direction)
        )
        assert whole.nearest_of(measured).tolist() == [
            each.nearest(each.measurement.apply(measured)) for each in alone
        ]


def test_what_is_out_of_reach_is_not_pulled():
    energy = NearestEnergy(IDENTITY(2), [[0.0, 0.0], [1.0, 1.0]], 3.0, reach=0.5)
    assert energy.value(np.array([0.1, 0.2])) == pytest.approx(0.9)
    assert energy.slope_of(np.array([0.1, 0.2])).tolist() == [3.0, 3.0]
    assert energy.value(np.array([0.5, 0.4])) == pytest.approx(1.5)
    assert energy.slope_of(np.array([0.5, 0.4])).tolist() == [0.0, 0.0]
    assert energy.nearest(np.array([0.5, 0.4])) == -1
    assert energy.with_weights(1.0).value(np.array([0.5, 0.4])) == pytest.approx(0.5)


def test_a_part_without_targets_is_not_pulled():
    energy = NearestParts(IDENTITY(3), [np.zeros((0, 2)), [[1.0]]], [0, 1], 2.0)
    measured = np.array([0.3, 0.7, 0.4])
    assert energy.value_of(measured) == pytest.approx(1.2)
    assert energy.slope_of(measured).tolist() == [0.0, 0.0, -2.0]
    assert energy.nearest_of(measured).tolist() == [-1, 0]
    assert energy.ranked_of(measured, 2).tolist() == [[0, 0], [0, 0]]
    assert energy.drawn_to(np.array([0, 0])).value_of(measured) == pytest.approx(1.2)


def test_parts_may_be_drawn_to_targets_that_are_not_the_nearest():
    targets = np.array([[0.0], [1.0], [3.0]])
    energy = NearestParts(IDENTITY(2), [targets], [0, 0], [1.0, 2.0])
    measured = np.array([0.9, 2.5])
    assert energy.ranked_of(measured, 2).tolist() == [[1, 0], [2, 1]]
    assert energy.ranked_of(measured, 4)[1].tolist() == [2, 1, 0, 2]
    drawn = energy.drawn_to(np.array([2, 0]))
    assert drawn.value_of(measured) == pytest.approx(2.1 + 2.0 * 2.5)
    assert drawn.slope_of(measured).tolist() == [-1.0, 2.0]
    assert drawn.with_weights([0.5, 0.5]).value_of(measured) == pytest.approx(0.5 * 4.6)


def test_labels_are_counted_in_each_group_of_variables():
    layout = Layout.chain(4, 3)
    marginals = np.random.default_rng(0).random(layout.node_size)
    found = Measurement.label_counts_of_each(layout, np.array([0, 1, 4])).apply(marginals)
    rows = marginals.reshape(4, 3)
    np.testing.assert_allclose(found, np.concatenate([rows[0], rows[1:].sum(axis=0)]))


@pytest.mark.parametrize("sign", [True, False])
def test_weights_of_several_inputs_are_those_of_each(sign):
    random = np.random.default_rng(2)
    features, slopes = random.normal(size=(4, 3)), random.normal(size=(4, 2))
    weights = FeatureWeights(random.normal(size=(2, 3)), nonnegative=sign)
    np.testing.assert_allclose(weights.at(features), [weights.at(row) for row in features])
    expected = sum(weights.gradient(row, slope) for row, slope in zip(features, slopes, strict=True))
    np.testing.assert_allclose(weights.gradient(features, slopes), expected)
    below_one = FeatureWeights(np.array([[0.25, 0.0, 0.0]]), nonnegative=sign)
    assert below_one.gradient([1.0, 0.0, 0.0], np.array([2.0])).tolist() == [[2.0, 0.0, 0.0]]
    with pytest.raises(ShapeError, match="give 3 numbers for each input"):
        weights.at(features[:, :2])


def test_bad_targets_are_named():
    with pytest.raises(ShapeError, match="measures 3 numbers, but its targets have the shape"):
        NearestParts(IDENTITY(3), sets(), [0])
    with pytest.raises(InvalidArgumentError, match="the number of its own, from 0 to 1"):
        NearestParts(IDENTITY(2), sets(), [2])
    with pytest.raises(InvalidArgumentError, match="the number of its own, from 0 to 1"):
        NearestParts(IDENTITY(4), sets(), [0, 2])
    with pytest.raises(ShapeError, match=r"set 1 of the energy 'nearest' has the shape \(2,\)"):
        NearestParts(IDENTITY(2), [[[0.0, 1.0]], [0.0, 1.0]], [0])
    with pytest.raises(InvalidArgumentError, match="must be finite"):
        NearestEnergy(IDENTITY(1), [[np.nan]])
    with pytest.raises(WeightError, match="one weight for each of its 2 parts"):
        NearestParts(IDENTITY(4), sets(), [0, 0], [1.0, 2.0, 3.0])
    with pytest.raises(WeightError, match="one reach for each of its 2 parts, or for all, zero or more"):
        NearestParts(IDENTITY(4), sets(), [0, 0], reach=-1.0)
    assert not NearestParts(IDENTITY(4), sets(), [0, 0], reach=0.0).reach.any()
    with pytest.raises(InvalidArgumentError, match="at least one row"):
        NearestEnergy(IDENTITY(2), np.zeros((0, 2)))
