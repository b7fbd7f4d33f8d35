"""Joins that generate the pairs of blocks: small blocks are joined whole, large ones only between neighbors.

Joins are planned first. They are run one after the other, or split into pieces that run as tasks; the pairs
are the same. Each pair is tested as it is generated, so that most pairs are never stored or compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.blocks import RecordBlocks, neighbor_ranks
from factorwise.apps.resolution.blocking.limits import Limits
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.distributed.executors import Executor
from factorwise.errors import InvalidArgumentError
from factorwise.io.pairs import PairSorter, Words
from factorwise.kernels.records.pair_joins import (
    ITEM_BITS,
    NEXT,
    RARITY_BITS,
    SHARED,
    TAG_BITS,
    join_blocks,
)
from factorwise.types import Ints
from factorwise.variables.sparse_rows import starts_of

MOST_RULES = 1 << (TAG_BITS - RARITY_BITS)  # rules that fit into the tag of a pair
MOST_ITEMS = 1 << ITEM_BITS  # records that fit into the word of a pair
PIECE = 2_000_000  # approximate number of pairs per task
_ANY = 1 << 62  # pairs held in memory: no limit


def check_joinable(n_items: int) -> None:
    """Raise an error if there are more records than fit into the word of a pair. Call it first."""
    if n_items > MOST_ITEMS:
        raise InvalidArgumentError(
            f"there are {n_items:,} different records, but at most {MOST_ITEMS:,} can be joined with one"
            " another. Resolve parts of the table that have no entity in common, such as countries, by"
            " themselves."
        )


class PairTest(NamedTuple):
    """The test that a pair must pass: arguments of `join_blocks`, except that ``groups`` are by item."""

    sources: NDArray[np.int32]
    records: NDArray[np.uint64]
    equal: NDArray[np.int32]
    missing: NDArray[np.int32]
    shared: NDArray[np.int32]
    enough: NDArray[np.int32]
    groups: NDArray[np.int32]

    @classmethod
    def of_sources(cls, sources: Ints | None = None) -> PairTest:
        """Return the test that keeps all pairs, or, given sources, all pairs of different sources."""
        given = np.zeros(0, np.int32) if sources is None else np.asarray(sources, np.int32)
        return cls(
            given,
            np.zeros((0, 0), np.uint64),
            np.zeros((0, 256), np.int32),
            np.zeros((0, 256), np.int32),
            np.zeros((0, 1 + SHARED), np.int32),
            np.zeros(1, np.int32),
            np.zeros(0, np.int32),
        )


class Join(NamedTuple):
    """A join of blocks with themselves.

    item, sizes, tag
        Members of the blocks, block by block, size of each block, and the tag of its pairs.
    reach
        Largest distance of neighbors in the order of the members; 0 to join blocks whole.
    """

    item: NDArray[np.int32]
    sizes: NDArray[np.int64]
    tag: NDArray[np.int32]
    reach: int = 0

    def run(self, test: PairTest, sorter: PairSorter) -> None:
        """Generate the pairs."""
        largest = int(self.sizes.max(initial=0))
        start, block, row = starts_of(self.sizes), 0, 0
        groups = test.groups[self.item] if len(test.groups) else test.groups
        while block < len(self.sizes):
            words = sorter.room(largest)
            rest = (groups, block, row, words)
            block, row, count = join_blocks(self.item, start, self.tag, self.reach, *test[:-1], *rest)
            sorter.keep(count)

    def pieces(self, most: int) -> Iterator[Join]:
        """Split into joins of about ``most`` pairs each; blocks are not split."""
        whole = self.reach == 0
        pairs = self.sizes * (self.sizes - 1) // 2 if whole else self.sizes * self.reach
        piece = np.cumsum(pairs) // max(most, 1)
        edges = np.append(np.flatnonzero(np.append(True, piece[1:] != piece[:-1])), len(piece))
        starts = starts_of(self.sizes)
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            item = self.item[int(starts[first]) : int(starts[last])]
            yield Join(item, self.sizes[first:last], self.tag[first:last], self.reach)


def plan_joins(normal: NormalTable, blocks: Sequence[RecordBlocks], limits: Limits) -> Iterator[Join]:
    """Yield the joins of all blocks: small blocks are joined whole, large ones between neighbors."""
    for number, found in enumerate(blocks):
        small = found.select(found.size <= limits.largest)
        if len(small.size):
            yield Join(small.item, small.size, _tags(small, number, normal.n_rows))
    if not any((found.size > limits.largest).any() for found in blocks):
        return
    orders = [(rank, np.argsort(rank).astype(np.int32)) for rank in neighbor_ranks(normal)]
    reach = max(1, limits.per_item // (2 * len(orders)))
    for number, found in enumerate(blocks):
        large = found.select(found.size > limits.largest)
        if not len(large.size):
            continue
        tag = _tags(large, number, normal.n_rows)
        for rank, item_at in orders:
            ordered = np.sort(large.block << ITEM_BITS | rank[large.item]) & ((1 << ITEM_BITS) - 1)
            yield Join(item_at[ordered], large.size, tag, reach)


def join_in_tasks(executor: Executor, join: Join, test: Any, n_items: int) -> list[Words]:
    """Generate the pairs of a join in tasks, unsorted; ``test`` is what `Executor.share` returned."""
    return executor.map(pairs_of_join, [(piece, n_items, test) for piece in join.pieces(PIECE)])


def pairs_of_join(join: Join, n_items: int, test: PairTest) -> Words:
    """Generate the pairs of one join, unsorted."""
    with PairSorter(n_items, at_once=_ANY) as sorter:
        join.run(test, sorter)
        return sorter.gathered()


def _tags(blocks: RecordBlocks, rule: int, n_items: int) -> NDArray[np.int32]:
    rarity = np.clip(2 * np.log2(max(n_items, 1) / blocks.size), 0, NEXT - 1).astype(np.int32)
    return np.asarray(rarity | np.int32(rule << RARITY_BITS), np.int32)
