"""Candidate pairs, against all pairs that share a key."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.resolution.blocking.tables import lists, numbers, strings, table
from factorwise.apps.resolution.blocking import (
    Part,
    Rule,
    candidates,
    default_budget,
    find_candidates,
    joins,
    thrifty_budget,
)
from factorwise.apps.resolution.blocking.limits import Limits, fitting_limits, pair_count
from factorwise.distributed import LocalExecutor
from factorwise.errors import InvalidArgumentError
from factorwise.io.columns import Columns

LETTER = Rule((Part("letter", "text"),))
WORD = Rule((Part("words", "tokens", "items"),))


def records(letters, words):
    return table(
        len(letters),
        letter=("category", {"text": strings(letters)}),
        words=("text", {"tokens": lists(words)}),
    )


def pairs(candidates):
    return list(zip(candidates.first.tolist(), candidates.second.tolist(), strict=True))


rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", None]), st.sets(st.sampled_from("uvwxyz"), max_size=3)),
    max_size=12,
)


@settings(deadline=None, max_examples=20)
@given(rows)
def test_candidates_are_the_pairs_that_share_a_key_each_once_and_in_order(rows):
    letters, words = [letter for letter, _ in rows], [sorted(found) for _, found in rows]
    found = find_candidates(records(letters, words), [LETTER, WORD])
    expected = [
        [(i, j) for i, j in combinations(range(len(rows)), 2) if letters[i] and letters[i] == letters[j]],
        [(i, j) for i, j in combinations(range(len(rows)), 2) if set(words[i]) & set(words[j])],
    ]
    assert pairs(found) == sorted({*expected[0], *expected[1]})
    assert [one.pairs for one in found.rules] == [len(expected[0]), len(expected[1])]
    assert [one.new for one in found.rules] == [len(expected[0]), len({*expected[1]} - {*expected[0]})]
    assert found.first.dtype == found.second.dtype == np.int32
    assert found.cut == 0


@pytest.mark.parametrize("letters", [[], ["a"], ["a", "b"], [None, None]])
def test_tables_without_pairs_have_no_candidates(letters):
    found = find_candidates(records(letters, [[] for _ in letters]), [LETTER, WORD])
    assert len(found) == 0


def test_no_rules_give_no_candidates():
    assert len(find_candidates(records(["a", "a"], [[], []]), [])) == 0


def test_pairs_of_one_source_can_be_left_out():
    normal = records(["a"] * 4, [[]] * 4)
    found = find_candidates(normal, [LETTER], sources=np.array([0, 0, 1, 1]), within=False)
    assert pairs(found) == [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert len(find_candidates(normal, [LETTER], sources=np.array([0, 0, 1, 1]))) == 6


def numbered(n, share=0.5):
    """Records of which half are in one block, each with a double next to it in the order of their numbers."""
    values = np.random.default_rng(0).permutation(np.arange(n) // 2 * 10.0)
    letters = np.where(np.arange(n) < share * n, "a", None).tolist()
    return table(
        n, letter=("category", {"text": strings(letters)}), x=("number", {"number": numbers(values)})
    ), values


def test_a_block_of_half_the_data_costs_linear_and_keeps_neighbors():
    normal, values = numbered(20_000)
    found = find_candidates(normal, [LETTER], largest_block=100, per_item=8)
    assert len(found) <= 10_000 * 8 / 2
    made = set(pairs(found))
    order = np.argsort(values[:10_000], kind="stable")
    same = values[order][1:] == values[order][:-1]
    doubles = {(min(a, b), max(a, b)) for a, b in zip(order[1:][same], order[:-1][same], strict=True)}
    assert len(doubles) > 1_000
    assert doubles <= made
    (rule,) = found.rules
    assert (rule.largest, rule.windowed) == (10_000, 1)
    assert rule.large_blocks[0].size == 10_000


def test_limits_that_the_user_gives_are_kept():
    normal = records(["a"] * 30 + ["b"] * 5, [[]] * 35)
    found = find_candidates(normal, [LETTER], largest_block=10, per_item=4)
    degree = np.bincount(np.concatenate([found.first, found.second]), minlength=35)
    assert degree[:30].max() <= 4
    assert (degree[30:] == 4).all()
    assert found.joined_share == pytest.approx(len(found) / (30 * 29 // 2 + 10), rel=0.1)
    assert find_candidates(normal, [LETTER]).joined_share == 1.0


@pytest.mark.parametrize("budget", [0, 1, 100, 1_000, 5_000, 100_000])
def test_no_more_pairs_than_the_budget_are_returned_and_rare_keys_come_first(budget):
    letters = ["a"] * 300 + [f"b{k // 3}" for k in range(150)]
    normal = records(letters, [[]] * 450)
    found = find_candidates(normal, [LETTER], budget=budget)
    assert len(found) <= budget
    rare = sum(first >= 300 for first, _ in pairs(found))
    if budget >= 1_000:
        assert rare == 150
    if budget >= 100_000:
        assert len(found) == 300 * 299 // 2 + 150


@pytest.mark.parametrize("in_files", [False, True])
def test_the_cut_keeps_pairs_of_most_weight_and_of_equal_weight_some_spread_evenly(monkeypatch, in_files):
    monkeypatch.setattr(candidates, "_STRETCH", 3)
    columns = Columns.in_scratch() if in_files else Columns()
    weight = np.array([5, 9, 5, 5, 1, 5, 255], np.uint8)
    place = np.arange(7, dtype=np.int32)
    merged = candidates._Merged(place, place + 10, weight, np.zeros(0, np.int64), np.zeros(0, np.int64))
    for budget, kept in [
        (2, [1, 6]),
        (4, [0, 1, 3, 6]),
        (6, [0, 1, 2, 3, 5, 6]),
        (0, []),
        (7, list(range(7))),
    ]:
        first, second = merged.within(budget, columns)
        assert first.tolist() == kept
        assert second.tolist() == [10 + k for k in kept]


def test_pairs_that_share_several_rules_survive_the_budget():
    letters = ["a"] * 200
    words = [["both"] if k < 10 else [] for k in range(200)]
    found = find_candidates(records(letters, words), [LETTER, WORD], budget=1_000)
    assert found.limits.largest < 200
    assert set(combinations(range(10), 2)) <= set(pairs(found))


def test_the_result_depends_neither_on_threads_nor_on_memory():
    normal, _ = numbered(5_000)
    one = find_candidates(normal, [LETTER], budget=20_000, threads=1, at_once=5_000)
    two = find_candidates(normal, [LETTER], budget=20_000, threads=2)
    assert pairs(one) == pairs(two)


@pytest.mark.parametrize("sources", [None, np.arange(5_000) % 3], ids=["one source", "three sources"])
def test_joins_in_tasks_make_the_same_pairs(sources, monkeypatch):
    normal, _ = numbered(5_000, share=0.3)
    given = {"budget": 40_000, "largest_block": 50, "sources": sources, "within": sources is None}
    here = find_candidates(normal, [LETTER], **given)
    monkeypatch.setattr(joins, "PIECE", 1_000)
    elsewhere = find_candidates(normal, [LETTER], **given, executor=LocalExecutor(2))
    assert pairs(here) == pairs(elsewhere)
    assert here.rules == elsewhere.rules


def test_joins_are_cut_between_blocks():
    sizes = np.array([3, 1_000, 2, 2, 500])
    join = joins.Join(np.arange(1_507, dtype=np.int32), sizes, np.arange(5, dtype=np.int32))
    pieces = list(join.pieces(10_000))
    assert [piece.sizes.tolist() for piece in pieces] == [[3], [1_000, 2, 2], [500]]
    assert np.concatenate([piece.item for piece in pieces]).tolist() == list(range(1_507))
    assert [piece.tag.tolist() for piece in pieces] == [[0], [1, 2, 3], [4]]


def test_rules_that_make_the_same_pairs_do_not_use_up_the_budget():
    normal = records(["a"] * 300, [["x"]] * 300)
    one = find_candidates(normal, [LETTER], budget=5_000)
    three = find_candidates(normal, [LETTER, WORD, LETTER], budget=5_000)
    assert len(one) > 4_000
    assert len(three) > 4_000


@settings(deadline=None)
@given(st.lists(st.integers(2, 50), max_size=20), st.integers(0, 2_000))
def test_limits_are_lowered_no_further_than_the_budget_asks(sizes, budget):
    blocks = np.array(sizes, np.int64)
    limits = fitting_limits([blocks], Limits(1_000, 1_000), budget)
    if pair_count(blocks) <= budget:
        assert limits == Limits(1_000, 1_000)
    elif limits.largest > 2:
        assert pair_count(blocks, limits) <= budget
        higher = Limits(limits.largest + 1, limits.per_item + 1)
        assert pair_count(blocks, higher) > budget


def test_the_budget_grows_with_the_data():
    assert [default_budget(n) for n in (0, 100, 20_000, 10**6, 5 * 10**6)] == [
        0, 100_000, 4_000_000, 12_000_000, 60_000_000,
    ]  # fmt: skip
    assert [thrifty_budget(n) for n in (0, 100, 20_000, 10**6, 5 * 10**6)] == [
        0, 100_000, 2_400_000, 12_000_000, 60_000_000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": -1}, "budget must be zero or more"),
        ({"largest_block": 0}, "largest_block must be at least 1"),
        ({"per_item": 1}, "per_item must be at least 2"),
        ({"within": False}, "sources must be given"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(given, message):
    with pytest.raises(InvalidArgumentError, match=message):
        find_candidates(records(["a", "a"], [[], []]), [LETTER], **given)


def test_more_rules_than_tags_are_refused():
    with pytest.raises(InvalidArgumentError, match="at most 64"):
        find_candidates(records(["a", "a"], [[], []]), [LETTER] * 65)
