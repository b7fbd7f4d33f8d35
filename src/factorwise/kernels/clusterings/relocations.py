"""Drawing the transfer of one item: to a cluster, to another item's, to a candidate's, to a new one.

The four ways form one proposer, because each can undo another: the probability of a transfer is the sum over
the ways. If two singletons of one type join, either may have moved, and if a cluster of two falls apart,
either may have left; both are counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import LIVE, spare_id
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import below, uniform

#: Ways to draw a target, in the order of a mixture's rates.
TO_CLUSTER, TO_ITEM, TO_CANDIDATE, TO_NEW = range(4)
#: State of a walk that visits blocks in turn: the current block, and the number of steps left in it.
BLOCK, LEFT = range(2)


def draw_relocation(world: Any, mine: Any, random: Any, move: Any) -> float:
    """Draw an item, a way and a target; the ratio sums over all ways, there and back.

    ``mine`` has ``rates`` float64[4], ``types`` int64[1], ``block_start`` int64[blocks + 1] (one block of all
    items: empty), ``block_item`` and ``block_of`` int32[n], ``candidate_start`` int64[n + 1], ``candidate``
    int64[.], ``visit`` int64[2], empty unless blocks are visited in turn, ``told`` int64[., 2], the function
    ``visit`` of templates that have one, and ``ratio`` int64[1], 0 if the ratio is not needed.
    """
    n = len(world.label)
    item = draw_item(world, mine, random, move)
    source = np.int64(world.label[item])
    clusters = world.counters[LIVE]
    threshold = uniform(random) * (mine.rates[0] + mine.rates[1] + mine.rates[2] + mine.rates[3])
    target = source
    if threshold < mine.rates[TO_ITEM]:
        target = np.int64(world.label[draw_peer(mine, random, n, item)])
    elif threshold < mine.rates[TO_ITEM] + mine.rates[TO_NEW]:
        if world.size[source] == 1:
            return STAY
        target = spare_id(world, below(random, mine.types[0]))
    elif threshold < mine.rates[TO_ITEM] + mine.rates[TO_NEW] + mine.rates[TO_CLUSTER]:
        if clusters < 2:
            return STAY
        position = below(random, clusters - 1)
        position += position >= world.live_at[source]
        target = np.int64(world.live[position])
    else:
        if len(mine.candidate) == 0:  # no item has candidates
            return STAY
        degree = mine.candidate_start[item + 1] - mine.candidate_start[item]
        if degree == 0:
            return STAY
        neighbor = mine.candidate[mine.candidate_start[item] + below(random, degree)]
        target = np.int64(world.label[neighbor])
    if target == source:
        return STAY
    move.item, move.source, move.target = item, source, target
    if mine.ratio[0] != 0:
        move.ratio = relocation_ratio(world, mine, item, source, target)
    return 1.0


@shared
def draw_item(world: Any, mine: Any, random: Any, move: Any) -> int:
    """Draw an item of all, or of the current block."""
    if len(mine.visit) == 0:
        return below(random, len(world.label))
    if mine.visit[LEFT] == 0:
        mine.visit[BLOCK] = (mine.visit[BLOCK] + 1) % (len(mine.block_start) - 1)
        block = mine.visit[BLOCK]
        mine.visit[LEFT] = mine.block_start[block + 1] - mine.block_start[block]
        fetch_block(world, mine, mine.block_start[block], mine.block_start[block + 1])
        move.item = block
        for k in range(mine.told.shape[0]):
            call(mine.told[k, 0], mine.told[k, 1])
    mine.visit[LEFT] -= 1
    first = mine.block_start[mine.visit[BLOCK]]
    return np.int64(mine.block_item[first + below(random, mine.block_start[mine.visit[BLOCK] + 1] - first)])


@shared
def fetch_block(world: Any, mine: Any, first: int, last: int) -> None:
    """Read everything that the steps in a block will read, item by item, so that it is in the cache.

    No read depends on another item's, so many run at the same time.
    """
    total = np.int64(0)
    for position in range(first, last):
        item = mine.block_item[position]
        total += world.size[world.label[item]]
        if world.item_ints.shape[1] > 0:
            total += world.item_ints[item, 0]
    mine.fetched[0] = total  # kept, so that the reads are not optimised away


@shared
def block_at(mine: Any, item: int) -> int:
    """Return the block of an item."""
    if len(mine.visit) > 0:
        return mine.visit[BLOCK]
    return np.int64(mine.block_of[item])


@shared
def peers_of(world: Any, mine: Any, item: int) -> int:
    """Return the number of items in the block of ``item``; of all items if there are no blocks."""
    if len(mine.block_start) > 2:
        block = block_at(mine, item)
        return mine.block_start[block + 1] - mine.block_start[block]
    return np.int64(len(world.label))


@shared
def draw_peer(mine: Any, random: Any, n: int, item: int) -> int:
    """Draw another item of the same block; the item itself if there is none."""
    if len(mine.block_start) > 2:
        block = block_at(mine, item)
        first = mine.block_start[block]
        peers = mine.block_start[block + 1] - first
        if peers < 2:
            return item
        other = np.int64(mine.block_item[first + below(random, peers - 1)])
        if other == item:  # the last item of the block stands in for the item itself
            other = np.int64(mine.block_item[first + peers - 1])
        return other
    if n < 2:
        return item
    other = below(random, n - 1)
    return other + (other >= item)


@shared
def shares_of_candidates(world: Any, mine: Any, item: int, first: int, second: int) -> tuple[float, float]:
    """Return the shares of an item's candidates in either of two clusters, without the item itself."""
    degree = mine.candidate_start[item + 1] - mine.candidate_start[item]
    if degree == 0:
        return 0.0, 0.0
    in_first, in_second = np.int64(0), np.int64(0)
    for index in range(mine.candidate_start[item], mine.candidate_start[item + 1]):
        cluster = world.label[mine.candidate[index]]
        in_first += cluster == first
        in_second += cluster == second
    return in_first / np.float64(degree), in_second / np.float64(degree)


@shared
def chance_to_join(mine: Any, clusters: int, peers: float, size: int, share: float) -> float:
    """Return the rate of drawing, for a given item, another cluster of ``size``; 0 is a new cluster.

    It is multiplied by the numbers of peers and of types, which cancel in the ratio of two rates, so that no
    division is needed.
    """
    if size == 0:
        return mine.rates[TO_NEW] * peers
    total = mine.rates[TO_ITEM] * size + mine.rates[TO_CANDIDATE] * share * peers
    if mine.rates[TO_CLUSTER] > 0.0:
        total += mine.rates[TO_CLUSTER] * peers / (clusters - 1.0)
    return total * mine.types[0]


@shared
def relocation_ratio(world: Any, mine: Any, item: int, source: int, target: int) -> float:
    """Return the backward over the forward probability of moving ``item``."""
    clusters = world.counters[LIVE]
    s, t = np.int64(world.size[source]), np.int64(world.size[target])
    same_type = mine.types[0] == 1 or world.type[source] == world.type[target]
    peers = np.float64(max(peers_of(world, mine, item) - 1, 1))
    there, back, other_there, other_back = 0.0, 0.0, 0.0, 0.0  # shares of candidates
    if mine.rates[TO_CANDIDATE] > 0.0:
        there, back = shares_of_candidates(world, mine, item, target, source)
        if s == 1 and t == 1:
            other = world.members[world.start[target]]
            other_there = shares_of_candidates(world, mine, other, source, source)[0]
        if s == 2 and t == 0:
            first = world.start[source]
            other = world.members[first] if world.members[first] != item else world.members[first + 1]
            other_back = shares_of_candidates(world, mine, other, source, source)[0]
    clusters_then = clusters + (t == 0) - (s == 1)
    forward = chance_to_join(mine, clusters, peers, t, there)
    backward = chance_to_join(mine, clusters_then, peers, s - 1, back)
    if same_type and s == 1 and t == 1:  # either item may join the other, and either may leave again
        forward += chance_to_join(mine, clusters, peers, 1, other_there)
        backward += chance_to_join(mine, clusters_then, peers, 0, 0.0)
    if same_type and s == 2 and t == 0:
        forward += chance_to_join(mine, clusters, peers, 0, 0.0)
        backward += chance_to_join(mine, clusters_then, peers, 1, other_back)
    return backward / forward
