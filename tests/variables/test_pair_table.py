"""Tables of pair features: how pairs find their rows, and what is refused."""

import doctest

import numpy as np
import pytest

from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.variables import pair_table
from factorwise.variables.pair_table import REGISTER, PairTable


def squares_for(n, features, seed=0):
    rng = np.random.default_rng(seed)
    found = {}
    for k in range(features):
        square = np.tril(rng.random((n, n)) < 0.5, -1)
        found[f"f{k}"] = square | square.T
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_every_pair_finds_its_features_in_either_order(n):
    squares = squares_for(n, 3)
    table = PairTable.from_squares(squares)
    for i in range(n):
        for j in range(n):
            if i != j:
                expected = [int(square[i, j]) for square in squares.values()]
                assert table.row(i, j).tolist() == expected
                assert table.rows([i], [j]).tolist() == [expected]


def test_rows_of_many_pairs_come_in_the_order_asked_for_and_one_item_stands_for_many():
    table = PairTable.from_squares(squares_for(6, 4))
    expected = [table.row(3, other).tolist() for other in (5, 0, 4)]
    assert table.rows(3, [5, 0, 4]).tolist() == expected
    assert table.rows([5, 0, 4], [3, 3, 3]).tolist() == expected
    assert table.rows([], []).shape == (0, 4)


@pytest.mark.parametrize(("features", "width"), [(1, 32), (31, 32), (32, 32), (33, 64), (64, 64), (65, 96)])
def test_rows_are_filled_up_with_zeros_to_whole_registers(features, width):
    table = PairTable(4, [f"f{k}" for k in range(features)], np.ones((6, features)))
    assert table.padded.shape == (6, width)
    assert width % REGISTER == 0
    assert (table.padded[:, :features] == 1).all()
    assert not table.padded[:, features:].any()
    assert table.values.shape == (6, features)
    assert table.n_features == features


def test_the_table_keeps_its_own_copy():
    values = np.zeros((3, 1), np.uint8)
    table = PairTable(3, ["f"], values)
    values[:] = 1
    assert not table.values.any()


def test_a_single_item_has_a_table_without_rows():
    table = PairTable.from_squares({"f": [[1]]})
    assert table.n_items == 1
    assert table.values.shape == (0, 1)


def test_truth_values_may_be_given_as_any_kind_of_number():
    for kind in (bool, int, float, np.uint8):
        table = PairTable.from_squares({"f": np.array([[0, 1], [1, 0]]).astype(kind)})
        assert table.row(0, 1).tolist() == [1]


BAD = {
    "no items": (lambda: PairTable(0, ["f"], np.zeros((0, 1))), EmptyWorldError, "at least one item"),
    "no items in a square": (
        lambda: PairTable.from_squares({"f": np.zeros((0, 0))}),
        EmptyWorldError,
        "at least one item",
    ),
    "no names": (lambda: PairTable(2, [], np.zeros((1, 0))), InvalidArgumentError, "a name of its own"),
    "a name twice": (lambda: PairTable(2, ["f", "f"], [[0, 1]]), InvalidArgumentError, "a name of its own"),
    "a row too few": (
        lambda: PairTable(3, ["f"], [[0], [1]]),
        ShapeError,
        r"need a table of shape \(3, 1\), but \(2, 1\)",
    ),
    "a number": (lambda: PairTable(2, ["f"], [[0.5]]), InvalidArgumentError, "cut numbers into bins"),
    "not a number": (lambda: PairTable(2, ["f"], [[np.nan]]), InvalidArgumentError, "cut numbers into bins"),
    "a number in a square": (
        lambda: PairTable.from_squares({"f": [[0, 0.5], [0.5, 0]]}),
        InvalidArgumentError,
        "cut numbers into bins",
    ),
    "no squares": (lambda: PairTable.from_squares({}), InvalidArgumentError, "at least one feature"),
    "no square": (
        lambda: PairTable.from_squares({"f": [[0, 1], [1, 0]], "g": [[0, 1]]}),
        ShapeError,
        "'g' needs a 2 by 2 matrix",
    ),
    "an order": (
        lambda: PairTable.from_squares({"f": [[0, 1, 0], [1, 0, 0], [0, 1, 0]]}),
        InvalidArgumentError,
        r"'f' differs between items \(1, 2\) and \(2, 1\): pairs have no order",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_table_of_truth_values_is_refused(name):
    build, kind, remedy = BAD[name]
    with pytest.raises(kind, match=remedy):
        build()


def test_what_stands_on_the_diagonal_does_not_matter():
    off = PairTable.from_squares({"f": [[0, 1], [1, 0]]})
    on = PairTable.from_squares({"f": [[1, 1], [1, 1]]})
    np.testing.assert_array_equal(off.padded, on.padded)


def test_what_the_docstrings_show_is_what_comes_out():
    assert doctest.testmod(pair_table).failed == 0


def test_a_table_takes_further_features():
    table = PairTable(3, ["a"], [[1], [0], [1]])
    more = table.with_features({"b": [True, True, False]})
    assert more.names == ("a", "b")
    assert more.values.tolist() == [[1, 1], [0, 1], [1, 0]]
    assert table.names == ("a",)
