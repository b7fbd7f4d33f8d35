"""Drawing transfers, compiled: the twin of `inference.mcmc.partition_moves`.

Random numbers are drawn in the same order as there, so both give the same transfers from the same stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.partitions import LIVE, NEW, SPLITTABLE, PartitionArrays
from factorwise.kernels.compile.compiler import hot, inner
from factorwise.kernels.compile.random import random_below, random_uniform

(
    TO_CLUSTER,
    TO_ITEM,
    TO_CANDIDATE,
    TO_NEW,
    MERGE,
    SPLIT,
    SPLIT_MERGE,
    RETYPE,
    RESTRICTED_GIBBS,
) = range(9)


TYPES, SCANS = 0, 1
ONE_OVER_TYPES = 4

CHOICE = np.dtype([("kind", np.int64), ("weight", np.float64)])
BLOCK = np.dtype([("item", np.int32), ("of", np.int32)])
PLACE = np.dtype([("spot", np.int64), ("side", np.int64)])


class MoveArrays(NamedTuple):
    """A mixture of moves.

    choices : CHOICE[moves]
        What ``kind`` each move is and the ``weight`` with which it is tried.
    candidate_start, candidate : int64[n + 1], int64[pairs]
        Candidates of each item; empty without them.
    block_start, blocks : int64[blocks + 1], BLOCK[n]
        ``item`` by block, and the block ``of`` each item; one block of all items without blocking.
    rates : float64[5]
        Sum of the weights of each kind of relocation that can have something to propose; 1 / number of types.
    settings : int64[2]
        Number of type labels; intermediate scans of restricted Gibbs.
    """

    choices: NDArray[np.void]
    candidate_start: NDArray[np.int64]
    candidate: NDArray[np.int64]
    block_start: NDArray[np.int64]
    blocks: NDArray[np.void]
    rates: NDArray[np.float64]
    settings: NDArray[np.int64]


class WorkArrays(NamedTuple):
    """Scratch and results of a sweep.

    items : int32[n]
        The items of the transfer at hand.
    drawn : int64[4]
        Its number of items, source, target, new type.
    score : float64[1]
        Running score of the world.
    tally : int64[4]
        Steps accepted, pair factors looked at, proposals that changed nothing; a sum of what was read only
        to have it in the cache.
    """

    items: NDArray[np.int32]
    drawn: NDArray[np.int64]
    score: NDArray[np.float64]
    tally: NDArray[np.int64]


class SideArrays(NamedTuple):
    """Scratch of restricted Gibbs.

    order, places, spare, sizes : int32[n], PLACE[n], int32[2n + 4], int64[2]
        The items in ascending order, the ``side`` and the spare slot (``spot``) of each, the item at each
        spare slot, the sizes of the two sides.
    """

    order: NDArray[np.int32]
    places: NDArray[np.void]
    spare: NDArray[np.int32]
    sizes: NDArray[np.int64]


@hot
def is_available(kind: int, moves: MoveArrays, n: int, clusters: int, splittable: int) -> bool:
    """Whether a move has anything to propose in a world with these counts."""
    if kind == TO_CLUSTER or kind == MERGE:
        return clusters >= 2
    if kind == TO_NEW or kind == SPLIT:
        return splittable >= 1
    if kind == TO_CANDIDATE:
        return len(moves.candidate) > 0
    if kind == RETYPE:
        return moves.settings[TYPES] >= 2
    return n >= 2


@hot
def draw_kind(moves: MoveArrays, p: PartitionArrays, state: NDArray[np.uint64]) -> int:
    """Draw a move among those available; -1 where there is none."""
    n = len(p.items)
    clusters = p.counters[LIVE]
    splittable = p.counters[SPLITTABLE]
    total = 0.0
    for index in range(len(moves.choices)):
        if is_available(moves.choices[index].kind, moves, n, clusters, splittable):
            total += moves.choices[index].weight
    threshold = random_uniform(state) * total
    chosen = -1
    for index in range(len(moves.choices)):
        if is_available(moves.choices[index].kind, moves, n, clusters, splittable):
            chosen = moves.choices[index].kind
            threshold -= moves.choices[index].weight
            if threshold < 0.0:
                break
    return chosen


@hot
def draw_item(moves: MoveArrays, lo: int, hi: int, n: int, state: NDArray[np.uint64]) -> int:
    """Draw an item: of the block at lo to hi where one is being worked on, else of all."""
    if hi > lo:
        return moves.blocks[lo + random_below(state, hi - lo)].item
    return random_below(state, n)


@inner
def draw_transfer(
    kind: int,
    moves: MoveArrays,
    p: PartitionArrays,
    lo: int,
    hi: int,
    state: NDArray[np.uint64],
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
) -> bool:
    """Draw one transfer: ``items[:drawn[0]]`` of cluster drawn[1] to drawn[2] with type drawn[3].

    Return False where the draw changes nothing. A change of type has drawn[0] = 0 and drawn[3] the new type.
    """
    n = len(p.items)
    types = moves.settings[TYPES]
    drawn[3] = 0
    if kind == MERGE:
        first = random_below(state, p.counters[LIVE])
        second = random_below(state, p.counters[LIVE] - 1)
        second += second >= first
        take_all(p, p.clusters[first].live, items, drawn)
        drawn[2] = p.clusters[second].live
        return True
    if kind == SPLIT:
        source = p.clusters[random_below(state, p.counters[SPLITTABLE])].splittable
        if types > 1:
            drawn[3] = random_below(state, types)
        count = 0
        while count == 0 or count == p.clusters[source].size:
            count = 0
            for index in range(p.clusters[source].size):
                if random_uniform(state) < 0.5:
                    items[count] = p.members[p.clusters[source].start + index]
                    count += 1
        drawn[0], drawn[1], drawn[2] = count, source, NEW
        return True
    if kind == RETYPE:
        cluster = p.clusters[random_below(state, p.counters[LIVE])].live
        new = random_below(state, types - 1)
        drawn[0], drawn[1], drawn[2] = 0, cluster, cluster
        drawn[3] = new + (new >= p.clusters[cluster].type)
        return True
    if kind == SPLIT_MERGE:
        stays = random_below(state, n)
        mover = random_below(state, n - 1)
        mover += mover >= stays
        source = p.items[mover].label
        if source != p.items[stays].label:
            take_all(p, source, items, drawn)
            drawn[2] = p.items[stays].label
            return True
        if types > 1:
            drawn[3] = random_below(state, types)
        count = 0
        for index in range(p.clusters[source].size):
            item = p.members[p.clusters[source].start + index]
            if item == mover or (item != stays and random_uniform(state) < 0.5):
                items[count] = item
                count += 1
        drawn[0], drawn[1], drawn[2] = count, source, NEW
        return True
    return draw_relocation(kind, moves, p, lo, hi, state, items, drawn)


@hot
def draw_relocation(
    kind: int,
    moves: MoveArrays,
    p: PartitionArrays,
    lo: int,
    hi: int,
    state: NDArray[np.uint64],
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
) -> bool:
    """Draw the transfer of one item; return False where it would stay."""
    n = len(p.items)
    item = draw_item(moves, lo, hi, n, state)
    source = p.items[item].label
    items[0] = item
    drawn[0] = 1
    drawn[1] = source
    if kind == TO_CLUSTER:
        position = random_below(state, p.counters[LIVE] - 1)
        position += position >= p.clusters[source].live_at
        drawn[2] = p.clusters[position].live
        return True
    if kind == TO_NEW:
        if moves.settings[TYPES] > 1:
            drawn[3] = random_below(state, moves.settings[TYPES])
        drawn[2] = NEW
        return p.clusters[source].size > 1
    if kind == TO_CANDIDATE:
        degree = moves.candidate_start[item + 1] - moves.candidate_start[item]
        if degree == 0:
            return False
        drawn[2] = p.items[moves.candidate[moves.candidate_start[item] + random_below(state, degree)]].label
        return drawn[2] != source
    if len(moves.block_start) > 2:
        block = moves.blocks[item].of
        first = moves.block_start[block]
        peers = moves.block_start[block + 1] - first
        if peers < 2:
            return False
        other = moves.blocks[first + random_below(state, peers - 1)].item
        if other == item:  # the last of the block stands in for the item itself
            other = moves.blocks[first + peers - 1].item
    else:
        other = random_below(state, n - 1)
        other += other >= item
    drawn[2] = p.items[other].label
    return drawn[2] != source


@inner
def take_all(p: PartitionArrays, cluster: int, items: NDArray[np.int32], drawn: NDArray[np.int64]) -> None:
    """Let all members of a cluster be the items that move."""
    for index in range(p.clusters[cluster].size):
        items[index] = p.members[p.clusters[cluster].start + index]
    drawn[0] = p.clusters[cluster].size
    drawn[1] = cluster
