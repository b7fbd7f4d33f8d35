"""Tables whose records repeat are resolved by their different records."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution import Constraints, EntityResolver
from factorwise.apps.resolution.labelled import LabelledPairs
from factorwise.apps.resolution.repeats import distinct_records
from factorwise.metrics.clustering import b_cubed
from record_cases import people

FAST = {"steps": 10, "rounds": 6, "n_jobs": 1}


def repeated(count, times, seed=0):
    """People whose records stand in the table several times each, in random order, with other ids."""
    records = [record for record in people(count) for _ in range(times)]
    order = np.random.default_rng(seed).permutation(len(records))
    return pa.Table.from_pylist([{**records[k], "id": f"r{n}"} for n, k in enumerate(order.tolist())])


COLUMNS = ("first_name", "surname", "born", "town", "email")


def rows_of(table):
    return [tuple(row.values()) for row in table.select(COLUMNS).to_pylist()]


def test_rows_are_one_record_if_they_are_equal_in_all_columns():
    table = repeated(9, 4)
    distinct = distinct_records(table, COLUMNS)
    rows = rows_of(table)
    assert len(distinct.rows) == len(set(rows))
    assert [rows[distinct.rows[k]] for k in distinct.of.tolist()] == rows
    assert distinct.of[distinct.rows].tolist() == list(range(len(distinct.rows)))


def test_numbers_lists_and_missing_values_are_told_apart():
    table = pa.table(
        {
            "a": pa.array([1, 1, None, 1, 1, None, 2, 2], pa.int64()),
            "b": [["x"], ["x"], ["x"], ["x", "y"], ["x"], ["x"], None, None],
            "c": ["", None, "u", "u", "", "u", "v", "v"],
        }
    )
    assert distinct_records(table, ["a", "b", "c"]).of.tolist() == [0, 0, 1, 2, 0, 1, 3, 3]


def test_records_that_say_nothing_are_not_equal():
    table = pa.table({"a": ["x", "x", "x", "x", "x", "", None, ""]})
    assert distinct_records(table, ["a"]).of.tolist() == [0, 0, 0, 0, 0, 1, 2, 3]


def test_most_entities_and_pairs_of_different_records_are_kept():
    table = pa.table({"a": ["x", "y", "x", "x", "y", "z", "z"]})
    distinct = distinct_records(table, ["a"])
    assert distinct.entities(np.array([5, -1, 5, 2, -1, 2, 3])).tolist() == [5, -1, 2]
    pairs = LabelledPairs(np.array([0, 0]), np.array([2, 1]), np.array([True, False]))
    assert [part.tolist() for part in distinct.pairs(pairs)] == [[0], [1], [False]]


def test_tables_of_mostly_different_records_and_sources_are_left_as_they_are():
    assert distinct_records(repeated(9, 1), COLUMNS) is None
    table = repeated(9, 4)
    sources = Constraints(sources=np.zeros(table.num_rows, np.int32), one_per_source=True)
    assert distinct_records(table, COLUMNS, sources) is None


def test_labels_that_tell_equal_records_apart_are_kept_to():
    rows = [{"id": str(k), "name": ["Ann Lee", "Bo Ray", "Cy Fox"][k % 3], "who": k} for k in range(90)]
    rows += [{**row, "id": row["id"] + "b", "name": row["name"].upper()} for row in rows[:60]]
    made = EntityResolver(**FAST).fit(rows, "who", id="id")
    assert made.knowledge_.training["equal_records_differ"]
    assert distinct_records(pa.Table.from_pylist(rows), ["name"]) is not None


def test_rows_that_must_not_be_together_stay_apart():
    table = pa.table({"a": ["x", "x", "x", "x", "y", "y", "y", "y"]})
    limits = Constraints(must=np.array([[2, 3], [4, 0]]), cannot=np.array([[0, 1]]))
    distinct = distinct_records(table, ["a"], limits)
    assert distinct.of.tolist() == [0, 1, 2, 2, 3, 3, 3, 3]
    found = distinct.constraints(limits)
    assert (found.must.tolist(), found.cannot.tolist()) == ([[3, 0]], [[0, 1]])


@pytest.mark.parametrize("labels", [True, False])
def test_repeated_records_are_resolved_as_their_different_ones_are(labels):
    once, often = repeated(120, 1), repeated(120, 12)
    truth = dict(zip(rows_of(once), once.column("person").to_pylist(), strict=True))
    made = [
        EntityResolver(**FAST).fit(table, "person" if labels else None, id="id", leave_out=["person"])
        for table in (once, often)
    ]
    answers = [
        one.resolve(table, id="id", posterior=True) for one, table in zip(made, (once, often), strict=True)
    ]
    few, many = (
        b_cubed([truth[row] for row in rows_of(t)], a.labels.tolist()).f1
        for t, a in zip((once, often), answers, strict=True)
    )
    assert many > few - 0.02
    many_rows = answers[1]
    assert len(many_rows.labels) == len(many_rows.confidence) == often.num_rows
    same = dict(zip(rows_of(often), many_rows.labels.tolist(), strict=True))
    assert [same[row] for row in rows_of(often)] == many_rows.labels.tolist()
    ids = set(often.column("id").to_pylist())
    assert {one for pair in many_rows.pairs().to_pylist() for one in (pair["id"], pair["other"])} <= ids


def test_sources_are_those_of_the_different_records():
    table = repeated(9, 4)
    distinct = distinct_records(table, COLUMNS, Constraints(sources=table["id"].to_pylist()))
    kept = distinct.constraints(Constraints(sources=np.arange(table.num_rows)))
    assert kept.sources.tolist() == distinct.rows.tolist()
