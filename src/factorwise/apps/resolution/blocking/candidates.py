"""Candidate pairs: the pairs of items that at least one blocking rule puts together.

The work is planned from the sizes of the blocks before a single pair is made. Blocks small enough are joined
whole; in larger ones each item meets its neighbors in orders that bring similar items close. If that is more
than the budget, the limits are lowered, so that blocks with rare keys stay whole; what is still too much is
cut where the pairs share the fewest and most common keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.blocks import Blocks, blocks_of, item_blocks
from factorwise.apps.resolution.blocking.joins import (
    MOST_RULES,
    NEXT,
    RARITY_BITS,
    join_jobs,
    joined_elsewhere,
)
from factorwise.apps.resolution.blocking.keys import KeyMaker
from factorwise.apps.resolution.blocking.limits import Limits, fitting_limits, overlap
from factorwise.apps.resolution.blocking.rules import Rule
from factorwise.apps.resolution.forms import NormalTable
from factorwise.distributed.executors import Executor
from factorwise.errors import require
from factorwise.io.pairs import ITEM_BITS, TAG_BITS, PairJoins, Words
from factorwise.types import Bools, Ints
from factorwise.validation import check_count

_ALWAYS = 255  # weight of pairs with such a rarity
_PAIRS, _PER_ITEM = 4_000_000, 12
_THRIFTY_PAIRS, _THRIFTY_PER_ITEM = 2_000_000, 20
_SPARE = 1.25  # more pairs than the budget, of which those that share least are cut


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
    keys : int64[items] for each rule
        The block of each item (the smallest, if it is in several); -1 where it is in none.
    limits
        Blocks up to which size were joined whole, and how many neighbors an item met in larger ones.
    cut
        Pairs left out because of the budget.
    """

    n_items: int
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    rules: tuple[RuleBlocks, ...]
    keys: tuple[NDArray[np.int64], ...]
    limits: Limits
    cut: int

    def __len__(self) -> int:
        return len(self.first)

    def of_one_entity(self, entity: Ints) -> Bools:
        """Say which pairs are of one entity; -1 is none that is known."""
        first, second = entity[self.first], entity[self.second]
        return np.asarray((first == second) & (first >= 0))


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
    memory_limit: str = "2GB",
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
    memory_limit, threads, folder
        What DuckDB may use, and where its scratch folder is made. The result depends on none of them.
    executor
        Where the joins are made, in pieces, by the same SQL; None for this process. The result does not
        depend on it either.
    """
    n_items = normal.n_rows
    allowed = default_budget(n_items) if budget is None else budget
    check_count("budget", allowed, 0)
    require(len(rules) <= MOST_RULES, "number of rules", len(rules), f"at most {MOST_RULES}")
    require(largest_block is None or largest_block >= 1, "largest_block", largest_block, "at least 1")
    require(per_item is None or per_item >= 2, "per_item", per_item, "at least 2")
    require(within or sources is not None, "sources", sources, "given when pairs within one are left out")
    maker = KeyMaker(normal)
    blocks = [blocks_of(maker.keys(rule), n_items) for rule in rules]
    del maker
    wanted = Limits(largest_block or n_items, per_item or n_items)
    sizes = [found.size for found in blocks]
    limits = fitting_limits(sizes, wanted, int(allowed * _SPARE))
    if limits != wanted:
        for _ in range(2):  # other limits have another overlap
            times = overlap(normal, rules, blocks, limits)
            limits = fitting_limits(sizes, wanted, int(allowed * _SPARE * times))
    apart = sources if not within else None
    jobs = join_jobs(normal, blocks, limits)
    with PairJoins(
        n_items, sources=apart, memory_limit=memory_limit, threads=threads, folder=folder
    ) as joins:
        if executor is None:
            for job in jobs:
                job.run(joins)
        else:
            for words in joined_elsewhere(executor, jobs, n_items, apart, memory_limit):
                joins.add(words)
        merged = _Merged.of(joins.sorted_pairs(), len(rules))
    kept = _within_budget(merged.weight, allowed)
    first, second = merged.first[kept], merged.second[kept]
    reports = tuple(
        _rule_blocks(rule, found, limits, int(pairs), int(new))
        for rule, found, pairs, new in zip(rules, blocks, merged.pairs, merged.new, strict=True)
    )
    keys = tuple(item_blocks(found, n_items) for found in blocks)
    cut = len(merged.first) - len(first)
    return Candidates(n_items, first, second, reports, keys, limits, cut)


@dataclass(frozen=True, slots=True)
class _Merged:
    """Different pairs with the sum of the rarities of what they share, and counts by rule."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    weight: NDArray[np.uint8]
    pairs: NDArray[np.int64]
    new: NDArray[np.int64]

    @classmethod
    def of(cls, stretches: Iterable[Words], n_rules: int) -> _Merged:
        first, second = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        weights = [np.zeros(0, np.uint8)]
        pairs, new = np.zeros(n_rules, np.int64), np.zeros(n_rules, np.int64)
        for words in stretches:
            met = words >> np.uint64(TAG_BITS)
            rule = (words >> np.uint64(RARITY_BITS)).astype(np.uint8) & np.uint8(MOST_RULES - 1)
            rarity = words.astype(np.uint8) & np.uint8(NEXT)
            changed = met[1:] != met[:-1]
            by_rule = np.append(True, changed | (rule[1:] != rule[:-1]))
            starts = np.flatnonzero(np.append(True, changed))
            pairs += np.bincount(rule[by_rule], minlength=n_rules)
            new += np.bincount(rule[starts], minlength=n_rules)
            met = met[starts]
            first.append((met >> np.uint64(ITEM_BITS)).astype(np.int32))
            second.append((met & np.uint64((1 << ITEM_BITS) - 1)).astype(np.int32))
            total = np.minimum(np.add.reduceat(rarity, starts, dtype=np.int32), _ALWAYS - 1)
            total[np.maximum.reduceat(rarity, starts) == NEXT] = _ALWAYS
            weights.append(total.astype(np.uint8))
        return cls(np.concatenate(first), np.concatenate(second), np.concatenate(weights), pairs, new)


def _within_budget(weight: NDArray[np.uint8], budget: int) -> NDArray[np.int64] | slice:
    """Choose the pairs of highest weight; of those of equal weight, some spread evenly."""
    if len(weight) <= budget:
        return slice(None)
    if budget == 0:
        return np.zeros(0, np.int64)
    counts = np.bincount(weight, minlength=_ALWAYS + 1)
    above = np.cumsum(counts[::-1])[::-1]  # pairs of at least each weight
    least = int(np.flatnonzero(above >= budget)[-1])
    kept = weight > least
    ties = np.flatnonzero(weight == least)
    room = budget - int(above[least] - counts[least])
    kept[ties[np.arange(room) * len(ties) // max(room, 1)]] = True
    return np.flatnonzero(kept)


def _rule_blocks(
    rule: Rule, blocks: Blocks, limits: Limits, pairs: int, new: int, shown: int = 5
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
