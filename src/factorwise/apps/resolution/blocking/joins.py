"""The joins that make pairs of blocks: of small ones whole, of large ones between neighbors in some orders.

Joins are planned as jobs. They are run one after the other in one database, or cut into pieces that tasks
run, each in a database of its own; the pairs are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.blocks import Blocks, neighbor_ranks
from factorwise.apps.resolution.blocking.limits import Limits
from factorwise.apps.resolution.forms import NormalTable
from factorwise.distributed.executors import Executor
from factorwise.io.pairs import ITEM_BITS, TAG_BITS, BlockRows, PairJoins, Words
from factorwise.types import Ints

RARITY_BITS = 6
MOST_RULES = 1 << (TAG_BITS - RARITY_BITS)
NEXT = (1 << RARITY_BITS) - 1  # rarity of next neighbors in an order, which are kept before all others
_RANK = ITEM_BITS  # bits of a rank, below the number of a block
PIECE = 2_000_000  # pairs that a task makes, about


class Join(NamedTuple):
    """A join of blocks with themselves.

    rows, sizes
        Members of the blocks, and how many each has.
    place, reach
        Where the rows stand in an order, and how far neighbors are apart; None and 0 to join blocks whole.
    """

    rows: BlockRows
    sizes: NDArray[np.int64]
    place: NDArray[np.int64] | None = None
    reach: int = 0

    def run(self, joins: PairJoins) -> None:
        """Make the pairs."""
        if self.place is None:
            joins.complete(self.rows, self.sizes)
        else:
            joins.windowed(self.rows, self.place, self.reach, NEXT)

    def pieces(self, most: int) -> Iterator[Join]:
        """Cut into joins of about so many pairs each; no block is cut."""
        whole = self.place is None
        pairs = self.sizes * (self.sizes - 1) // 2 if whole else self.sizes * self.reach
        piece = np.cumsum(pairs) // max(most, 1)
        edges = np.append(np.flatnonzero(np.append(True, piece[1:] != piece[:-1])), len(piece))
        starts = np.append(0, np.cumsum(self.sizes))
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            own = slice(int(starts[first]), int(starts[last]))
            block, item, tag = self.rows.block[own] - first, self.rows.item[own], self.rows.tag[own]
            place = None if self.place is None else self.place[own] - self.place[own.start]
            yield Join(BlockRows(block, item, tag), self.sizes[first:last], place, self.reach)


def join_jobs(normal: NormalTable, blocks: Sequence[Blocks], limits: Limits) -> Iterator[Join]:
    """Plan the joins of all blocks: small ones whole, large ones between neighbors."""
    for number, found in enumerate(blocks):
        small = found.select(found.size <= limits.largest)
        if len(small.size):
            yield Join(_rows(small, number, normal.n_rows), small.size)
    if not any((found.size > limits.largest).any() for found in blocks):
        return
    orders = [(rank, np.argsort(rank).astype(np.int32)) for rank in neighbor_ranks(normal)]
    reach = max(1, limits.per_item // (2 * len(orders)))
    for number, found in enumerate(blocks):
        large = found.select(found.size > limits.largest)
        if not len(large.size):
            continue
        rows = _rows(large, number, normal.n_rows)
        place = np.arange(len(rows.item)) + rows.block * (reach + 1)
        for rank, item_at in orders:
            ordered = np.sort(rows.block << _RANK | rank[rows.item]) & ((1 << _RANK) - 1)
            yield Join(rows._replace(item=item_at[ordered]), large.size, place, reach)


def joined_elsewhere(
    executor: Executor, jobs: Iterator[Join], n_items: int, sources: Ints | None, memory_limit: str
) -> list[Words]:
    """Let tasks make the pairs of all joins; return them, each task's in order."""
    shared = executor.share(sources)
    work = [(piece, n_items, shared, memory_limit) for job in jobs for piece in job.pieces(PIECE)]
    return executor.map(pairs_of_join, work)


def pairs_of_join(join: Join, n_items: int, sources: Ints | None, memory_limit: str) -> Words:
    """Make the pairs of one join, in order."""
    with PairJoins(n_items, sources=sources, memory_limit=memory_limit, threads=1) as joins:
        join.run(joins)
        return np.concatenate([np.zeros(0, np.uint64), *joins.sorted_pairs()])


def _rows(blocks: Blocks, rule: int, n_items: int) -> BlockRows:
    rarity = np.clip(2 * np.log2(max(n_items, 1) / blocks.size), 0, NEXT - 1).astype(np.int32)
    tag = np.repeat(rarity | np.int32(rule << RARITY_BITS), blocks.size)
    return BlockRows(blocks.block, blocks.item, tag)
