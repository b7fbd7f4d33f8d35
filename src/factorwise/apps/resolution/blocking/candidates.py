"""Candidate pairs: the pairs of items that at least one blocking rule puts together.

The work is planned from the sizes of the blocks before a single pair is made. Blocks small enough are joined
whole; in larger ones each item meets its neighbors in orders that bring similar items close. If that is more
than the budget, the limits are lowered, so that blocks with rare keys stay whole; what is still too much is
cut where the pairs share the fewest and most common keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.blocks import RecordBlocks, blocks_of
from factorwise.apps.resolution.blocking.filters import PairFilter
from factorwise.apps.resolution.blocking.joins import (
    MOST_RULES,
    Join,
    PairTest,
    join_in_tasks,
    plan_joins,
)
from factorwise.apps.resolution.blocking.keys import KeyMaker
from factorwise.apps.resolution.blocking.limits import Limits, fitting_limits, overlap, pair_count
from factorwise.apps.resolution.blocking.rules import Rule
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.distributed.executors import Executor, LocalExecutor
from factorwise.errors import require
from factorwise.io.columns import Columns, release
from factorwise.io.pairs import PairSorter, Words
from factorwise.kernels.records.pair_joins import ALWAYS, merge_pairs
from factorwise.types import Bools, Ints
from factorwise.validation import check_count

_PAIRS, _PER_ITEM = 4_000_000, 12
_THRIFTY_PAIRS, _THRIFTY_PER_ITEM = 2_000_000, 20
SPARE = 1.25  # more pairs than the budget, of which those that share least are cut
_STRETCH = 1 << 22  # pairs that are looked at in one go
_TESTED = 4.0  # the same where most pairs do not pass a filter


@dataclass(frozen=True, slots=True)
class LargeBlock:
    """A block that was not joined whole: how many items, and two of them to tell which it is."""

    size: int
    members: tuple[int, int]


@dataclass(frozen=True, slots=True)
class RuleBlocks:
    """What became of one rule.

    blocks, items, largest
        Blocks of two or more items, the items in them, and the size of the largest.
    pairs, new
        Different pairs it gave, and those that no rule before it gave; both before the budget's cut.
    windowed
        Blocks that were not joined whole, and the largest of them.
    """

    rule: Rule
    blocks: int
    items: int
    largest: int
    pairs: int
    new: int
    windowed: int
    large_blocks: tuple[LargeBlock, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Candidate pairs.

    first, second : int32[pairs]
        The items of each pair, ``first < second``; ordered by both, each pair once.
    rules
        What became of each rule.
    limits
        Blocks up to which size were joined whole, and how many neighbors an item met in larger ones.
    cut
        Pairs left out because of the budget.
    tested
        What made the pairs, if a filter left some out; see `pairs_inside`.
    joined_share
        Share of the pairs in blocks that limits and budget let through; a filter is left out of account.
    """

    n_items: int
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    rules: tuple[RuleBlocks, ...]
    limits: Limits
    cut: int
    tested: _Joins | None = None
    joined_share: float = 1.0

    def __len__(self) -> int:
        return len(self.first)

    def stretches(self) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Yield all pairs in order, some of them at a time."""
        for low in range(0, len(self.first), _STRETCH):
            yield self.first[low : low + _STRETCH], self.second[low : low + _STRETCH]

    def of_one_entity(self, entity: Ints) -> Bools:
        """Say which pairs are of one entity; -1 is none that is known."""
        first, second = entity[self.first], entity[self.second]
        return np.asarray((first == second) & (first >= 0))

    def pairs_inside(self, groups: Ints) -> Candidates:
        """Return the pairs that the filter left out although both items are of one group; few as a rule.

        groups : int[items]
            Negative for none.
        """
        if self.tested is None:
            return replace(self, first=self.first[:0], second=self.second[:0])
        merged = self.tested.run(np.asarray(groups, np.int32), len(self.rules))
        return replace(self, first=merged.first, second=merged.second, tested=None)


def default_budget(n_items: int) -> int:
    """Return how many pairs to make at most: 1,000 an item for a few, 12 for millions."""
    return min(1_000 * n_items, max(_PAIRS, _PER_ITEM * n_items))


def thrifty_budget(n_items: int) -> int:
    """Return a budget for fewer pairs, where those find nearly as much: half as many for some thousands."""
    return min(default_budget(n_items), _THRIFTY_PAIRS + _THRIFTY_PER_ITEM * n_items)


def find_candidates(
    normal: NormalTable,
    rules: Sequence[Rule],
    *,
    budget: int | None = None,
    largest_block: int | None = None,
    per_item: int | None = None,
    sources: Ints | None = None,
    within: bool = True,
    pair_filter: PairFilter | None = None,
    at_once: int | None = None,
    threads: int = 2,
    folder: str | Path | None = None,
    executor: Executor | None = None,
) -> Candidates:
    """Find the pairs of items that some rule puts together.

    budget
        Pairs to return at most; None for `default_budget`.
    largest_block
        Blocks above this size are not joined whole. None: as the budget allows.
    per_item
        Neighbors that an item meets in such a block. None: as the budget allows.
    sources, within
        Source of each item; with ``within=False`` pairs of one source are left out.
    pair_filter
        Keep only pairs that pass it; None to keep all.
    at_once, threads, folder
        Pairs to hold in memory while they are made, threads to make them in, and where the scratch folder for
        the others is made. The result depends on none of them.
    executor
        Where the joins are made, in pieces; None for this process. The result does not depend on it either.
    """
    n_items = normal.n_rows
    allowed = default_budget(n_items) if budget is None else budget
    check_count("budget", allowed, 0)
    require(len(rules) <= MOST_RULES, "number of rules", len(rules), f"at most {MOST_RULES}")
    require(largest_block is None or largest_block >= 1, "largest_block", largest_block, "at least 1")
    require(per_item is None or per_item >= 2, "per_item", per_item, "at least 2")
    require(within or sources is not None, "sources", sources, "given when pairs within one are left out")
    require(threads >= 1, "threads", threads, "at least 1")
    maker = KeyMaker(normal, across=None if within else sources)
    blocks = []
    for rule in rules:
        blocks.append(blocks_of(maker.keys(rule), n_items))
        if normal.columns.in_files:  # keys of parts are made anew for each rule
            maker = KeyMaker(normal)
    del maker
    wanted = Limits(largest_block or n_items, per_item or n_items)
    sizes = [found.size for found in blocks]
    most = int(allowed * (SPARE if pair_filter is None else _TESTED))
    limits = fitting_limits(sizes, wanted, most)
    if limits != wanted:
        for _ in range(2):  # other limits have another overlap
            times = overlap(normal, rules, blocks, limits)
            limits = fitting_limits(sizes, wanted, int(most * times))
    apart = sources if not within else None
    test = PairTest.of_sources(apart) if pair_filter is None else pair_filter.test(normal, apart)
    joins = _Joins(
        tuple(plan_joins(normal, blocks, limits)),
        test,
        n_items,
        at_once or normal.columns.at_once,
        threads,
        folder or normal.columns.folder,
        executor,
        normal.columns,
    )
    merged = joins.run(np.zeros(0, np.int32), len(rules))
    first, second = merged.within(allowed, normal.columns)
    reports = tuple(
        _rule_blocks(rule, found, limits, int(pairs), int(new))
        for rule, found, pairs, new in zip(rules, blocks, merged.pairs, merged.new, strict=True)
    )
    cut = len(merged.first) - len(first)
    tested = None if pair_filter is None else joins
    whole = sum(pair_count(size) for size in sizes)
    joined = sum(pair_count(size, limits) for size in sizes) / whole if whole else 1.0
    share = joined * len(first) / max(len(merged.first), 1)
    return Candidates(n_items, first, second, reports, limits, cut, tested, share)


@dataclass(frozen=True, slots=True, eq=False)
class _Joins:
    """Joins that make pairs, each of which is tested; see `find_candidates`."""

    joins: tuple[Join, ...]
    test: PairTest
    n_items: int
    at_once: int | None
    threads: int
    folder: str | Path | None
    executor: Executor | None
    columns: Columns

    def run(self, groups: NDArray[np.int32], n_rules: int) -> _Merged:
        """Make the pairs that pass the test; those inside groups that do not, if there are groups."""
        test = self.test._replace(groups=groups)
        executor = self.executor
        if executor is None and self.threads > 1:
            executor = LocalExecutor(self.threads)
        shared = None if executor is None else executor.share(test)
        with PairSorter(self.n_items, at_once=self.at_once, folder=self.folder) as sorter:
            for join in self.joins:
                if executor is None:
                    join.run(test, sorter)
                else:
                    for words in join_in_tasks(executor, join, shared, self.n_items):
                        sorter.add(words)
            return _Merged.of(sorter.sorted_pairs(), n_rules, self.columns)


@dataclass(frozen=True, slots=True)
class _Merged:
    """Different pairs with the sum of the rarities of what they share, and counts by rule."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    weight: NDArray[np.uint8]
    pairs: NDArray[np.int64]
    new: NDArray[np.int64]

    @classmethod
    def of(cls, stretches: Iterable[Words], n_rules: int, columns: Columns) -> _Merged:
        pairs, new = np.zeros(n_rules, np.int64), np.zeros(n_rules, np.int64)

        def merged() -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]]:
            for words in stretches:
                first, second = np.empty((2, len(words)), np.int32)
                weight = np.empty(len(words), np.uint8)
                count = merge_pairs(words, first, second, weight, pairs, new)
                yield first[:count], second[:count], weight[:count]

        ends, others, weights = columns.gather(merged(), (np.int32, np.int32, np.uint8))
        return cls(ends, others, weights, pairs, new)

    def within(self, budget: int, columns: Columns) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the pairs of highest weight; of those of equal weight, some spread evenly."""
        if len(self.weight) <= budget:
            return self.first, self.second
        counts = np.zeros(ALWAYS + 1, np.int64)
        for low in range(0, len(self.weight), _STRETCH):
            counts += np.bincount(self.weight[low : low + _STRETCH], minlength=ALWAYS + 1)
        above = np.cumsum(counts[::-1])[::-1]  # pairs of at least each weight
        least = int(np.flatnonzero(above >= budget)[-1])
        ties, room = int(counts[least]), budget - int(above[least] - counts[least])
        chosen = np.arange(room) * ties // max(room, 1)  # of the pairs that are equal

        def kept() -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
            before = 0
            for low in range(0, len(self.weight), _STRETCH):
                part = slice(low, low + _STRETCH)
                weight = self.weight[part]
                wanted, equal = weight > least, np.flatnonzero(weight == least)
                within = chosen[
                    np.searchsorted(chosen, before) : np.searchsorted(chosen, before + len(equal))
                ]
                wanted[equal[within - before]] = True
                before += len(equal)
                yield self.first[part][wanted], self.second[part][wanted]
                release(self.first, self.second, self.weight)

        first, second = columns.gather(kept(), (np.int32, np.int32))
        return first, second


def _rule_blocks(
    rule: Rule, blocks: RecordBlocks, limits: Limits, pairs: int, new: int, shown: int = 5
) -> RuleBlocks:
    large = np.flatnonzero(blocks.size > limits.largest)
    order = large[np.argsort(-blocks.size[large], kind="stable")][:shown]
    starts = np.cumsum(blocks.size) - blocks.size
    examples = tuple(
        LargeBlock(
            int(blocks.size[b]),
            (int(blocks.item[starts[b]]), int(blocks.item[starts[b] + blocks.size[b] - 1])),
        )
        for b in order
    )
    largest = int(blocks.size.max(initial=0))
    items = int(np.count_nonzero(np.bincount(blocks.item)))
    return RuleBlocks(rule, len(blocks.size), items, largest, pairs, new, len(large), examples)
