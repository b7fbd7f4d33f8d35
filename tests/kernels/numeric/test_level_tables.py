"""Boosted tables, against the definition."""

import numpy as np
import pytest

from factorwise.kernels.numeric.level_tables import boost_level_tables
from reference import level_tables as plain

SIZES = [5, 3, 1]


@pytest.mark.parametrize("directions", [[0, 0, 0], [1, -1, 1], [-1, 0, 1]])
@pytest.mark.parametrize("leaves", [2, 4])
def test_tables_are_those_of_the_definition(directions, leaves):
    rng = np.random.default_rng([7, leaves])
    levels = np.stack([rng.integers(0, size + 1, 120) for size in SIZES]).astype(np.uint8)
    odds = np.array([0.0, -2.0, 1.0, 0.5, 2.0, 3.0])[levels[0]] - levels[1]
    same, share, score = rng.random(120) < 1 / (1 + np.exp(-odds)), rng.random(120), rng.normal(size=120)
    settings = (6, 0.3, leaves, 5, 0.5)
    table, found = np.zeros(sum(SIZES)), score.copy()
    start = np.append(0, np.cumsum(SIZES))
    direction = np.array(directions, np.int8)
    shift = boost_level_tables(levels, same, share, found, start, direction, *settings, table)
    lists = (values.tolist() for values in (levels.T, same, share, score))
    expected_shift, tables = plain.boost_level_tables(*lists, SIZES, directions, *settings)
    assert shift == pytest.approx(expected_shift)
    np.testing.assert_allclose(table, np.concatenate([weights[1:] for weights in tables]), atol=1e-10)
    in_all = score + shift + sum(np.array(tables[k])[levels[k]] for k in range(3))
    np.testing.assert_allclose(found, in_all, atol=1e-10)
    for weights, sign in zip(tables, directions, strict=True):
        assert (sign * np.diff(weights[1:]) >= -1e-12).all()


def test_where_no_cut_leaves_enough_pairs_only_the_shift_is_learned():
    table, score = np.zeros(2), np.zeros(6)
    levels = np.array([[1, 1, 1, 2, 2, 2]], np.uint8)
    same = np.array([True] * 5 + [False])
    settings = (40, 0.5, 4, 4, 0.0)
    shift = boost_level_tables(
        levels, same, np.ones(6), score, np.array([0, 2]), np.zeros(1, np.int8), *settings, table
    )
    assert not table.any()
    assert shift == pytest.approx(np.log(5.0), abs=1e-6)
    assert score == pytest.approx(np.full(6, shift))


@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_a_single_level_is_told_from_a_missing_one(direction):
    """Of two halves of the pairs, one with nothing to compare and one of one kind of value."""
    levels = np.array([[0] * 200 + [1] * 200, [1] * 200 + [0] * 200], np.uint8)
    same = np.array([False] * 180 + [True] * 20 + [False] * 40 + [True] * 160)
    table, score = np.zeros(2), np.zeros(400)
    boost_level_tables(
        levels,
        same,
        np.ones(400),
        score,
        np.array([0, 1, 2]),
        np.full(2, direction, np.int8),
        *(200, 0.3, 4, 20, 1e-6),
        table,
    )
    assert table[0] - table[1] == pytest.approx(np.log(4.0) + np.log(9.0), abs=0.01)
    assert score[[0, 399]] == pytest.approx([-np.log(9.0), np.log(4.0)], abs=0.01)
