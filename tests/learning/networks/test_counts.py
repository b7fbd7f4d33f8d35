"""Counting records per clique, and refusing what cannot have been counted."""

import numpy as np
import pytest

from factorwise.errors import CountsError, InvalidArgumentError, ShapeError
from factorwise.learning.networks.counts import CliqueCounts

RECORDS = np.array([[0, 1, 2], [0, 1, 0], [1, 0, 2], [0, 1, 2]])
SIZES = [2, 2, 3]


def test_counts_have_the_axes_of_the_clique_in_its_order():
    counts = CliqueCounts.from_records(SIZES, [(2, 0), (1,), ()], RECORDS)
    np.testing.assert_array_equal(counts.tables[0], [[1, 0], [0, 0], [2, 1]])
    np.testing.assert_array_equal(counts.tables[1], [1, 3])
    assert counts.tables[2] == 4
    assert counts.total == 4


def test_a_weight_counts_as_that_many_records():
    times = np.array([3, 1, 0, 2])
    weighted = CliqueCounts.from_records(SIZES, [(0, 2)], RECORDS, times)
    repeated = CliqueCounts.from_records(SIZES, [(0, 2)], np.repeat(RECORDS, times, axis=0))
    np.testing.assert_array_equal(weighted.tables[0], repeated.tables[0])
    assert weighted.total == repeated.total == 6


def test_tables_counted_elsewhere_give_the_same_counts():
    counted = CliqueCounts.from_records(SIZES, [(0, 1), (1, 2)], RECORDS)
    given = CliqueCounts.from_tables(SIZES, zip(counted.cliques, counted.tables, strict=True))
    assert given.total == counted.total
    assert given.cliques == counted.cliques


@pytest.mark.parametrize(
    ("records", "fault", "message"),
    [
        ([0, 1], ShapeError, r"one column for each of 3 variables, but have shape \(2,\)"),
        ([[0, 1]], ShapeError, r"but have shape \(1, 2\)"),
        ([[0.0, 1.0, 2.0]], InvalidArgumentError, "encode labels with Domain.encode"),
        ([[0, 1, 3]], InvalidArgumentError, "record 0 gives variable 2 the code 3, but its codes are 0 to 2"),
        (
            [[0, 1, 0], [-1, 1, 0]],
            InvalidArgumentError,
            "record 1 .* must be fully observed, so drop records with missing values",
        ),
        (np.zeros((0, 3), int), CountsError, "0 records have a total weight of 0.0: give at least one"),
    ],
)
def test_records_that_are_not_rows_of_codes_are_refused(records, fault, message):
    with pytest.raises(fault, match=message):
        CliqueCounts.from_records(SIZES, [(0, 1)], records)


@pytest.mark.parametrize(
    ("weights", "fault", "message"),
    [
        ([1.0], ShapeError, r"4 records need one weight each, but weights have shape \(1,\)"),
        (
            [1, 1, -1, 1],
            InvalidArgumentError,
            "record 2 has weight -1.0: weights must be finite, and zero or",
        ),
        ([1, np.nan, 1, 1], InvalidArgumentError, "record 1 has weight nan"),
        ([0, 0, 0, 0], CountsError, "give at least one record with a weight above zero"),
    ],
)
def test_weights_that_are_not_amounts_are_refused(weights, fault, message):
    with pytest.raises(fault, match=message):
        CliqueCounts.from_records(SIZES, [(0, 1)], RECORDS, weights)


@pytest.mark.parametrize("clique", [(0, 0), (3,), (-1, 0)])
def test_a_clique_of_repeated_or_unknown_variables_is_refused(clique):
    with pytest.raises(InvalidArgumentError, match="must name different variables from 0 to 2"):
        CliqueCounts.from_records(SIZES, [clique], RECORDS)


@pytest.mark.parametrize("cardinality", [[], [2, 0, 3], [2.5, 2, 3], [[2, 2, 3]]])
def test_cardinalities_that_are_not_numbers_of_labels_are_refused(cardinality):
    with pytest.raises(
        InvalidArgumentError, match="one whole number of labels per variable, at least 1 each"
    ):
        CliqueCounts.from_records(cardinality, [(0,)], RECORDS)


def test_cliques_that_disagree_on_what_they_share_are_named():
    tables = [((0, 1), [[2, 3], [4, 1]]), ((2, 1), [[3, 1], [1, 2], [1, 2]]), ((0,), [5, 5])]
    with pytest.raises(CountsError) as refusal:
        CliqueCounts.from_tables(SIZES, tables)
    message = str(refusal.value)
    assert "cliques (0, 1) and (2, 1) disagree on the counts of variables (1,)" in message
    assert "[6.0, 4.0] and [5.0, 5.0]" in message
    assert "Count both on the same records" in message


def test_cliques_that_share_nothing_must_agree_on_the_number_of_records():
    with pytest.raises(
        CountsError, match=r"\(0,\) and \(1,\) disagree on the counts of all records: 3.0 and 4.0"
    ):
        CliqueCounts.from_tables(SIZES, [((0,), [1, 2]), ((1,), [2, 2])])


def test_shared_counts_are_compared_label_by_label_whatever_the_order_of_the_axes():
    table = np.arange(1.0, 13.0).reshape(2, 2, 3)
    pairs = [((0, 1, 2), table), ((2, 0), table.sum(axis=1).T), ((2, 1, 0), table.transpose(2, 1, 0))]
    assert CliqueCounts.from_tables(SIZES, pairs).total == 78


@pytest.mark.parametrize(
    ("table", "fault", "message"),
    [
        (
            [[1, 2, 3]],
            ShapeError,
            r"shape \(1, 3\), but the cardinalities of its variables require \(2, 2\): reshape",
        ),
        ([[1, 2], [3, -1]], CountsError, "must be finite, zero or more, and not all zero"),
        ([[1, np.inf], [3, 1]], CountsError, "must be finite, zero or more, and not all zero"),
        ([[0, 0], [0, 0]], CountsError, "must be finite, zero or more, and not all zero"),
    ],
)
def test_tables_that_are_not_counts_are_refused(table, fault, message):
    with pytest.raises(fault, match=message):
        CliqueCounts.from_tables(SIZES, [((0, 1), table)])


def test_no_tables_at_all_are_refused():
    with pytest.raises(InvalidArgumentError, match="at least one pair of a clique and its counts"):
        CliqueCounts.from_tables(SIZES, [])
