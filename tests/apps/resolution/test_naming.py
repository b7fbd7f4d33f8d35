"""Names of entities: by the smallest id, kept across updates, never twice."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.apps.resolution.results.naming import entity_names, id_ranks, smallest_rows


def names(ids, labels, known=None):
    before = None if known is None else pa.array(known)
    return entity_names(pa.array(ids), np.array(labels), before).to_pylist()


@pytest.mark.parametrize(
    ("ids", "order"),
    [
        (["10", "9", "100"], [1, 0, 2]),
        ([10, 9, 100], [1, 0, 2]),
        (["b10", "b9", "a"], [1, 2, 0]),
        (["10", "9", "x"], [0, 1, 2]),
        (["9" * 19, "8"], [1, 0]),
        (["7", "07", "007"], [2, 1, 0]),
    ],
    ids=["digits", "numbers", "letters", "mixed", "too long for a number", "leading zeros"],
)
def test_ids_are_ordered_by_size_if_all_are_numbers_and_else_by_letters(ids, order):
    assert id_ranks(pa.array(ids)).tolist() == order


def test_an_entity_is_named_by_its_smallest_id_whatever_the_order_of_records():
    assert names(["10", "9", "3", "7"], [5, 5, 0, 0]) == ["9", "9", "3", "3"]
    assert names(["07", "7"], [1, 1]) == ["07", "07"]
    assert names(["7", "07"], [1, 1]) == ["07", "07"]
    assert smallest_rows(np.array([5, 5, 0]), np.array([2, 1, 0])).tolist() == [1, 1, 2]


def test_names_do_not_depend_on_how_clusters_are_numbered():
    ids = ["d", "a", "c", "b"]
    assert names(ids, [0, 1, 0, 1]) == names(ids, [9, 2, 9, 2]) == ["c", "a", "c", "a"]


def test_a_known_entity_keeps_its_name_though_a_smaller_id_joins():
    assert names([1, 5, 6], [0, 0, 0], [None, 5, 5]) == [5, 5, 5]


def test_of_entities_that_become_one_the_larger_known_part_gives_the_name():
    assert names([1, 2, 3, 4, 5], [0] * 5, [1, 1, 3, 3, 3]) == [3] * 5


def test_of_the_parts_of_an_entity_the_larger_keeps_its_name_and_the_other_is_named_afresh():
    assert names([1, 2, 3, 8, 9], [0, 0, 0, 1, 1], [1] * 5) == [1, 1, 1, 8, 8]


def test_a_part_whose_smallest_id_is_the_name_of_the_other_gets_a_mark():
    assert names([1, 2, 3], [0, 1, 1], [1, 1, 1]) == ["1-split", "1", "1"]
    assert names(["1", "2", "3"], [0, 1, 1], ["1"] * 3) == ["1-split", "1", "1"]


def test_a_marked_name_stays_in_the_next_update_though_ids_are_numbers():
    assert names([1, 2, 3], [0, 1, 1], ["1-split", "1", "1"]) == ["1-split", "1", "1"]


def test_a_mark_that_is_taken_is_marked_again():
    known = ["1-split", "1-split", "1-split", "1", "1"]
    assert names([1, 9, 10, 2, 3], [0, 1, 1, 2, 2], known) == [
        "1-split-split",
        "1-split",
        "1-split",
        "1",
        "1",
    ]


def test_an_entity_that_loses_its_first_choice_may_keep_the_name_of_another_part():
    assert names(list("abcdefgh"), [0] * 5 + [1] * 3, list("aaabb") + ["a"] * 3) == ["a"] * 5 + ["f"] * 3
    assert names(list("abcdefg"), [0] * 4 + [1] * 3, list("aaaa") + list("aab")) == ["a"] * 4 + ["b"] * 3


def test_earlier_names_of_another_type_are_compared_as_ids():
    assert names([1, 2, 3], [0, 0, 1], ["2", "2", None]) == [2, 2, 3]
    assert names(["1", "2", "3"], [0, 0, 1], [2, 2, None]) == ["2", "2", "3"]


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.none() | st.sampled_from(["0", "1", "2", "1-split", "x"])),
        min_size=1,
        max_size=9,
    )
)
def test_no_two_entities_share_a_name_and_records_of_one_do(records):
    labels, known = zip(*records, strict=True)
    found = names([str(row) for row in range(len(records))], labels, known)
    assert len(set(zip(labels, found, strict=True))) == len(set(labels)) == len(set(found))
    again = names([str(row) for row in range(len(records))], labels, found)
    assert again == found
