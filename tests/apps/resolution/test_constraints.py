"""Hard constraints: what contradicts itself is refused, with the names of the records."""

import numpy as np
import pytest

from factorwise.apps.resolution.constraints import Constraints, tied
from factorwise.errors import InvalidArgumentError, ShapeError

IDS = list("abcdefgh")


def pairs(*rows):
    return np.array(rows, np.int64).reshape(-1, 2)


def test_rows_are_tied_by_way_of_others():
    groups = tied(pairs((0, 1), (4, 5), (1, 3)), 6)
    assert groups[0] == groups[1] == groups[3] != groups[4] == groups[5]
    assert len(set(groups.tolist())) == 3


def test_constraints_that_can_be_kept_pass():
    Constraints().check()
    Constraints(must=pairs((0, 1), (1, 2)), cannot=pairs((0, 3), (4, 5))).check(IDS)
    sources = np.array([0, 1, 0, 1], np.int32)
    Constraints(must=pairs((0, 1)), sources=sources, one_per_source=True).check(IDS)
    Constraints(must=pairs((0, 2)), sources=sources).check(IDS)


@pytest.mark.parametrize("sources", [[0, 1, 0], [1000, 2000, 1000], np.array([-1, 7, -1]), ["a", "b", "a"]])
def test_sources_are_numbers_or_names_of_any_kind(sources):
    kept = Constraints(sources=sources, one_per_source=True)
    assert kept.sources.tolist() == [0, 1, 0]
    assert kept.source_bits(np.arange(3), 3).tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("must", "cannot", "named"),
    [
        (pairs((0, 1)), pairs((1, 0)), "b and a"),
        (pairs((0, 1), (3, 2), (1, 2)), pairs((4, 5), (0, 3)), "a and d"),
        (pairs(), pairs((4, 4)), "e and e"),
    ],
    ids=["at once", "by way of others", "with itself"],
)
def test_records_that_must_and_must_not_be_together_are_named(must, cannot, named):
    with pytest.raises(InvalidArgumentError, match=f"records {named} must be together and must not be"):
        Constraints(must=must, cannot=cannot).check(IDS)


def test_without_ids_rows_are_named():
    with pytest.raises(InvalidArgumentError, match="records 1 and 0 must be together"):
        Constraints(must=pairs((0, 1)), cannot=pairs((1, 0))).check()


def test_records_of_one_source_that_must_be_together_are_named():
    sources = np.array([0, 1, 0, 1, 2, 2], np.int32)
    given = Constraints(must=pairs((4, 0), (0, 1), (1, 2)), sources=sources, one_per_source=True)
    with pytest.raises(InvalidArgumentError, match="records a and c must be together, but they are of one"):
        given.check(IDS)


def test_items_have_the_bits_of_their_sources():
    sources = np.array([0, 1, 3, 1], np.int32)
    unit = np.array([0, 0, 1, 2])
    asked = Constraints(sources=sources, one_per_source=True)
    assert asked.source_bits(unit, 3).tolist() == [0b11, 0b1000, 0b10]
    assert Constraints(sources=sources).source_bits(unit, 3) is None
    assert Constraints().source_bits(unit, 3) is None


def test_more_sources_than_can_be_told_apart_are_refused():
    given = Constraints(sources=np.arange(65, dtype=np.int32), one_per_source=True)
    with pytest.raises(InvalidArgumentError, match="up to 64 sources, but there are 65"):
        given.source_bits(np.arange(65), 65)
    last = Constraints(sources=np.arange(64, dtype=np.int32), one_per_source=True)
    assert last.source_bits(np.arange(64), 64).tolist() == [1 << k for k in range(64)]


def test_sources_may_have_names():
    assert Constraints(sources=["b", "a", None, "b"]).sources.tolist() == [2, 1, 0, 2]
    numbers = np.array([3, 0, 3])
    assert Constraints(sources=numbers).sources is numbers


@pytest.mark.parametrize("must", [[[0, 1, 2]], [0, 1], [["a", "b"]], [[0.5, 1]], [[-5, 0]]])
def test_pairs_that_are_not_rows_are_refused(must):
    with pytest.raises(InvalidArgumentError, match="must be pairs of row numbers"):
        Constraints(must=must)


def test_rows_that_the_table_does_not_have_are_refused():
    Constraints(must=[[0, 3]], cannot=[[1, 2]], sources=["a", "b", "a", "b"]).check_rows(4)
    with pytest.raises(InvalidArgumentError, match="cannot names row 9999, but there are 4 records"):
        Constraints(cannot=[[0, 9999]]).check_rows(4)
    with pytest.raises(ShapeError, match="4 records need a source each, not 1"):
        Constraints(sources=["a"]).check_rows(4)
