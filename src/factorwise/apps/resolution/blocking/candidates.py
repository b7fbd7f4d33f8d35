"""Find candidate pairs: the pairs of items that at least one blocking rule generates.

The work is planned from the block sizes before any pair is generated. Small blocks are joined whole; in large
ones each item is paired with its neighbors in orders that place similar items close together. If the pairs
exceed the budget, the size limit of whole blocks is lowered, so that blocks of rare keys stay whole. If there
are still too many, the pairs that share the fewest and most common keys are dropped.
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

_PAIRS, _PER_ITEM = 4_000_000, 12  # default budget: pairs in all, or per item if that is more
_THRIFTY_PAIRS, _THRIFTY_PER_ITEM = 2_000_000, 20  # thrifty budget: pairs in all, plus per item
SPARE = 1.25  # factor of the budget up to which pairs are made, before those that share least are cut
_STRETCH = 1 << 22  # pairs that are processed at once
_TESTED = 4.0  # the same factor if a filter drops most pairs


@dataclass(frozen=True, slots=True)
class LargeBlock:
    """A block that was not joined whole: its size, and two of its items to identify it."""

    size: int
    members: tuple[int, int]


@dataclass(frozen=True, slots=True)
class RuleBlocks:
    """Statistics of one rule.

    blocks, items, largest
        Number of blocks with two or more items, of items in them, and size of the largest block.
    pairs, new
        Number of distinct pairs, and of those that no earlier rule generated; before the budget is applied.
    windowed, large_blocks
        Number of blocks that were not joined whole, and the largest of them.
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
        The items of each pair, ``first < second``; sorted by both, without duplicates.
    rules
        Statistics of each rule.
    limits
        Size up to which blocks were joined whole, and number of neighbors of an item in larger ones.
    cut
        Number of pairs that were dropped because of the budget.
    tested
        The joins, if a filter dropped pairs; see `pairs_inside`.
    joined_share
        Share of the pairs in blocks that were kept within the limits and the budget, regardless of a filter.
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
        """Yield all pairs in order, in chunks."""
        for low in range(0, len(self.first), _STRETCH):
            yield self.first[low : low + _STRETCH], self.second[low : low + _STRETCH]

    def of_one_entity(self, entity: Ints) -> Bools:
        """Return which pairs are of one entity; -1 stands for an unknown entity."""
        first, second = entity[self.first], entity[self.second]
        return np.asarray((first == second) & (first >= 0))

    def pairs_inside(self, groups: Ints) -> Candidates:
        """Return the pairs that the filter dropped although both items are in one group; usually few.

        groups : int[items]
            The group of each item; negative for none.
        """
        if self.tested is None:
            return replace(self, first=self.first[:0], second=self.second[:0])
        merged = self.tested.run(np.asarray(groups, np.int32), len(self.rules))
        return replace(self, first=merged.first, second=merged.second, tested=None)


def default_budget(n_items: int) -> int:
    """Return the default budget of pairs: 1,000 per item for few items, 12 per item for millions."""
    return min(1_000 * n_items, max(_PAIRS, _PER_ITEM * n_items))


def thrifty_budget(n_items: int) -> int:
    """Return a smaller budget of pairs: about half the default for some thousands of items."""
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
    """Find the candidate pairs of the blocking rules.

    budget
        Maximum number of pairs; None for `default_budget`.
    largest_block
        Maximum size of blocks that are joined whole; None to choose it by the budget.
    per_item
        Number of neighbors of an item in larger blocks; None to choose it by the budget.
    sources, within
        Source of each item; with ``within=False`` pairs within one source are left out.
    pair_filter
        Keep only the pairs that pass this filter; None to keep all.
    at_once, threads, folder
        Number of pairs held in memory while they are generated, number of threads, and parent of the scratch
        folder for the other pairs. The result does not depend on them.
    executor
        Runs the joins as tasks; None to use threads of this process. The result does not depend on it.
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
        if normal.columns.in_files:  # compute keys again for each rule to save memory
            maker = KeyMaker(normal)
    del maker
    wanted = Limits(largest_block or n_items, per_item or n_items)
    sizes = [found.size for found in blocks]
    most = int(allowed * (SPARE if pair_filter is None else _TESTED))
    limits = fitting_limits(sizes, wanted, most)
    if limits != wanted:
        for _ in range(2):  # the overlap of rules depends on the limits
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
    """Joins that generate pairs, and the test that each pair must pass; see `find_candidates`."""

    joins: tuple[Join, ...]
    test: PairTest
    n_items: int
    at_once: int | None
    threads: int
    folder: str | Path | None
    executor: Executor | None
    columns: Columns

    def run(self, groups: NDArray[np.int32], n_rules: int) -> _Merged:
        """Generate the pairs that pass the test, or, given groups, those inside groups that fail it."""
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
    """Distinct pairs weighted by the total rarity of the keys they share, and pair counts by rule."""

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
        """Return the pairs of highest weight within the budget; among ties, pick evenly spaced ones."""
        if len(self.weight) <= budget:
            return self.first, self.second
        counts = np.zeros(ALWAYS + 1, np.int64)
        for low in range(0, len(self.weight), _STRETCH):
            counts += np.bincount(self.weight[low : low + _STRETCH], minlength=ALWAYS + 1)
        above = np.cumsum(counts[::-1])[::-1]  # number of pairs with at least each weight
        least = int(np.flatnonzero(above >= budget)[-1])
        ties, room = int(counts[least]), budget - int(above[least] - counts[least])
        chosen = np.arange(room) * ties // max(room, 1)  # which of the tied pairs to keep

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
