"""Metropolis-Hastings over clusterings whose pair scores are read off counts.

The moves relocate one item: to the cluster of another item of its block, to that of a candidate, or to a new
one. Random numbers are drawn in the order of the plain `Metropolis`, over all items, or block by block, where
the walk of a block is the plain walk over its items alone with a stream of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.counted_tables import (
    KNOWN,
    MATES,
    SIZE,
    SPARE,
    SPLITTABLE,
    CountArrays,
    CountWeights,
    ValueArrays,
    count_down,
    count_of,
    count_up,
)
from factorwise.kernels.clusterings.partition_moves import TO_CANDIDATE, TO_ITEM, TO_NEW
from factorwise.kernels.clusterings.partitions import NEW
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel
from factorwise.kernels.compile.random import random_below, random_uniform
from factorwise.kernels.compile.streams import seed_stream

ACCEPTED, LOOK_UPS, FACTORS, FETCHED = range(4)  # of a tally


class CountedMoves(NamedTuple):
    """A mixture of relocations, and the pairs of items that have scores of their own.

    choices : CHOICE[moves]
        What ``kind`` each move is and the ``weight`` with which it is tried.
    rates : float64[4]
        Sum of the weights of each kind that can have something to propose.
    candidate_start, candidate : int64[n + 1], int64[pairs]
        Positions of the candidates of the item at each position; empty without them.
    edge_start, edges : int64[n + 1], EDGE[edges]
        Given pairs from both ends: the position of the ``neighbor`` and the ``score`` of being together.
    place : int64[n]
        Position of each item.
    """

    choices: NDArray[np.void]
    rates: NDArray[np.float64]
    candidate_start: NDArray[np.int64]
    candidate: NDArray[np.int64]
    edge_start: NDArray[np.int64]
    edges: NDArray[np.void]
    place: NDArray[np.int64]


@hot
def tempered(score: float, temperature: float) -> float:
    """Divide by the temperature: the one place where it enters."""
    return score / temperature


@lean_kernel
def counted_sweep(
    v: ValueArrays,
    c: CountArrays,
    w: CountWeights,
    moves: CountedMoves,
    tally: NDArray[np.int64],
    scores: NDArray[np.float64],
    state: NDArray[np.uint64],
    root: np.uint64,
    temperature: float,
    hastings: bool,
    steps: int,
    first: int,
    last: int,
) -> None:
    """Make ``steps`` steps over all items or, where ``first < last``, visit these blocks in turn.

    Each block is then visited for ``steps`` times as many steps as it has items, drawn from the stream of
    ``root`` and its number, which takes the place of ``state``. The gains are added to the score of their
    block. Without ``hastings`` the ratio of the proposal probabilities is left out.
    """
    n = len(c.labels)
    within = first < last
    for visited in range(first, max(last, first + 1)):
        lo, count, splittable = np.int64(0), np.int64(steps), np.int64(0)
        if within:
            lo, n = v.block_start[visited], v.block_start[visited + 1] - v.block_start[visited]
            count, splittable = n * steps, c.blocks[visited, SPLITTABLE]
            seed_stream(state, root, visited)
            if n < 2:
                continue
            tally[FETCHED] += fetch_block(v, c, visited)
        else:
            for block in range(len(c.blocks)):
                splittable += c.blocks[block, SPLITTABLE]
        for _ in range(count):
            kind = draw_kind(moves, n, splittable, state)
            if kind < 0:
                random_uniform(state)
                continue
            position = lo + random_below(state, n)
            if not within:
                position = moves.place[position]
            block = np.int64(v.block_of[position])
            other = draw_other(kind, v, moves, position, block, within, state)
            chance = random_uniform(state)
            source, target = np.int64(c.labels[position]), np.int64(NEW)
            if kind == TO_NEW:
                if c.clusters[source, SIZE] == 1:
                    continue
            else:
                if other < 0 or c.labels[other] == source:
                    continue
                target = np.int64(c.labels[other])
            gain = relocation_gain(v, c, w, moves, position, source, target, tally)
            ratio = 1.0
            if hastings:
                ratio = relocation_ratio(v, c, moves, position, other, source, target, splittable)
            if chance < ratio * np.exp(tempered(gain, temperature)):
                tally[ACCEPTED] += 1
                scores[block] += gain
                splittable += apply_relocation(v, c, position, source, target, block)


@inner
def fetch_block(v: ValueArrays, c: CountArrays, block: int) -> int:
    """Read all of a block in the order in which it lies in memory; return a sum, so that it is really read.

    Streaming is many times faster than reading it in the order of the steps; they then find it in the cache.
    """
    total = np.int64(0)
    for slot in range(v.slot_start[block], v.slot_start[block + 1], 8):
        total += c.slots[slot].count
    for position in range(v.block_start[block], v.block_start[block + 1], 4):
        total += c.clusters[position, SIZE]
    for index in range(v.first[v.block_start[block]], v.first[v.block_start[block + 1]], 8):
        total += v.entries[index].start
    return total


@hot
def draw_kind(moves: CountedMoves, n: int, splittable: int, state: NDArray[np.uint64]) -> int:
    """Draw a move among those available; -1 where there is none."""
    total = 0.0
    for index in range(len(moves.choices)):
        if is_available(moves, moves.choices[index].kind, n, splittable):
            total += moves.choices[index].weight
    threshold = random_uniform(state) * total
    chosen = -1
    for index in range(len(moves.choices)):
        if is_available(moves, moves.choices[index].kind, n, splittable):
            chosen = moves.choices[index].kind
            threshold -= moves.choices[index].weight
            if threshold < 0.0:
                break
    return chosen


@hot
def is_available(moves: CountedMoves, kind: int, n: int, splittable: int) -> bool:
    """Whether a move has anything to propose."""
    if kind == TO_NEW:
        return splittable >= 1
    if kind == TO_CANDIDATE:
        return len(moves.candidate) > 0
    return n >= 2


@hot
def draw_other(
    kind: int,
    v: ValueArrays,
    moves: CountedMoves,
    position: int,
    block: int,
    within: bool,
    state: NDArray[np.uint64],
) -> int:
    """Draw the item to whose cluster the one at ``position`` shall go; -1 where there is none."""
    if kind == TO_CANDIDATE:
        begin = moves.candidate_start[position]
        degree = moves.candidate_start[position + 1] - begin
        if degree == 0:
            return np.int64(-1)
        return moves.candidate[begin + random_below(state, degree)]
    if kind == TO_ITEM:
        lo, peers = v.block_start[block], v.block_start[block + 1] - v.block_start[block]
        if peers < 2:
            return np.int64(-1)
        other = lo + random_below(state, peers - 1)
        if within or len(v.block_start) == 2:
            return other + (other >= position)
        return other if other != position else lo + peers - 1  # the last stands in for the item itself
    return np.int64(-1)


@hot
def relocation_gain(
    v: ValueArrays,
    c: CountArrays,
    w: CountWeights,
    moves: CountedMoves,
    position: int,
    source: int,
    target: int,
    tally: NDArray[np.int64],
) -> float:
    """Change of score when the item at ``position`` goes from ``source`` to ``target``."""
    s = np.int64(c.clusters[source, SIZE])
    t = np.int64(0) if target == NEW else np.int64(c.clusters[target, SIZE])
    gain = w.pair * (t - s + 1) + w.cluster * (np.int64(t == 0) - np.int64(s == 1))
    gain += w.single * (np.int64(t == 0) - np.int64(t == 1) + np.int64(s == 2) - np.int64(s == 1))
    begin, end = v.first[position], v.first[position + 1]
    for index in range(begin, end):
        start, shift = np.int64(v.entries[index].start), np.int64(v.entries[index].shift)
        change = np.int64(0)
        if s > 1:  # an item alone leaves nothing behind
            change = 1 - count_of(c.slots, start, shift, source)  # without the item itself
        if target != NEW:
            change += count_of(c.slots, start, shift, target)
        gain += w.equal[v.entries[index].key] * change
    for key in range(len(w.conflict)):
        if (v.known[position] >> np.uint32(key)) & np.uint32(1):
            change = 1 - np.int64(c.clusters[source, KNOWN + key])
            if target != NEW:
                change += np.int64(c.clusters[target, KNOWN + key])
            gain += w.conflict[key] * change
    if len(moves.edges) > 0:
        for edge in range(moves.edge_start[position], moves.edge_start[position + 1]):
            cluster = c.labels[moves.edges[edge].neighbor]
            if cluster == source:
                gain -= moves.edges[edge].score
            elif cluster == target:
                gain += moves.edges[edge].score
    tally[LOOK_UPS] += (end - begin) * (np.int64(s > 1) + np.int64(target != NEW))
    tally[FACTORS] += t + s - 1
    return gain


@hot
def relocation_weight(rates: NDArray[np.float64], scale: float, t: int, links: float) -> float:
    """Weight with which a given item and a cluster of t for it are drawn (0: a new one).

    Up to a factor that forward and backward share, and up to the weight of all moves available.
    """
    if t == 0:
        return rates[TO_NEW] * scale
    return rates[TO_ITEM] * t + rates[TO_CANDIDATE] * links * scale


@hot
def relocation_ratio(
    v: ValueArrays,
    c: CountArrays,
    moves: CountedMoves,
    position: int,
    other: int,
    source: int,
    target: int,
    splittable: int,
) -> float:
    """Backward over forward probability; ``other`` is the item whose cluster is the target."""
    rates, block = moves.rates, v.block_of[position]
    s = np.int64(c.clusters[source, SIZE])
    t = np.int64(0) if target == NEW else np.int64(c.clusters[target, SIZE])
    scale = np.float64(max(v.block_start[block + 1] - v.block_start[block] - 1, 1))
    links, home_links, other_links, other_home_links = 0.0, 0.0, 0.0, 0.0
    if len(moves.candidate) > 0:
        links = share_of_candidates(c, moves, position, target)
        home_links = share_of_candidates(c, moves, position, source)
        if s == 1 and t == 1:
            other_links = share_of_candidates(c, moves, other, source)
        if s == 2 and t == 0:
            left = np.int64(c.clusters[source, MATES]) ^ position
            other_home_links = share_of_candidates(c, moves, left, source)
    forward = relocation_weight(rates, scale, t, links)
    backward = relocation_weight(rates, scale, s - 1, home_links)
    if s == 1 and t == 1:  # either item may join the other, and either may leave again
        forward += relocation_weight(rates, scale, 1, other_links)
        backward += relocation_weight(rates, scale, 0, 0.0)
    if s == 2 and t == 0:
        forward += relocation_weight(rates, scale, 0, 0.0)
        backward += relocation_weight(rates, scale, 1, other_home_links)
    there = splittable - (s == 2) + (t == 1)
    always = rates[TO_ITEM] + rates[TO_CANDIDATE]
    here = always + (rates[TO_NEW] if splittable >= 1 else 0.0)
    return backward * here / (forward * (always + (rates[TO_NEW] if there >= 1 else 0.0)))


@inner
def share_of_candidates(c: CountArrays, moves: CountedMoves, position: int, cluster: int) -> float:
    """Share of an item's candidates that are in ``cluster``."""
    begin, end = moves.candidate_start[position], moves.candidate_start[position + 1]
    if begin == end:
        return 0.0
    count = 0
    for index in range(begin, end):
        if c.labels[moves.candidate[index]] == cluster:
            count += 1
    return count / np.float64(end - begin)


@inner
def apply_relocation(
    v: ValueArrays, c: CountArrays, position: int, source: int, target: int, block: int
) -> int:
    """Move an item and its counts; return by how much the number of clusters of two or more has changed."""
    lo = v.block_start[block]
    if target == NEW:
        c.blocks[block, SPARE] -= 1
        target = np.int64(c.spare[lo + c.blocks[block, SPARE]])
    c.labels[position] = target
    c.clusters[source, SIZE] -= 1
    c.clusters[target, SIZE] += 1
    c.clusters[source, MATES] ^= position
    c.clusters[target, MATES] ^= position
    for key in range(c.clusters.shape[1] - KNOWN):
        if (v.known[position] >> np.uint32(key)) & np.uint32(1):
            c.clusters[source, KNOWN + key] -= 1
            c.clusters[target, KNOWN + key] += 1
    for index in range(v.first[position], v.first[position + 1]):
        start, shift = np.int64(v.entries[index].start), np.int64(v.entries[index].shift)
        count_down(c.slots, start, shift, source)
        count_up(c.slots, start, shift, target)
    if c.clusters[source, SIZE] == 0:
        c.spare[lo + c.blocks[block, SPARE]] = source
        c.blocks[block, SPARE] += 1
    change = np.int64(c.clusters[target, SIZE] == 2) - np.int64(c.clusters[source, SIZE] == 1)
    c.blocks[block, SPLITTABLE] += change
    return change
