"""Drawing transfers and weighing them, compiled: the twin of `inference.mcmc.partition_moves`.

Random numbers are drawn in the same order as there, so both give the same transfers from the same stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compiler import hot, inner
from factorwise.kernels.partitions import LIVE, NEW, SPLITTABLE, PartitionArrays
from factorwise.kernels.random import random_below, random_uniform

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

LOG_2 = np.log(2.0)


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
    order, places, spare, sides : int32[n], PLACE[n], int32[2n + 4], int64[2]
        Of restricted Gibbs: the items in ascending order, the ``side`` and the spare slot (``spot``) of each,
        the item at each spare slot, the sizes of the two sides.
    log_weights : float64[n + types + 1]
        Of Gibbs: gains of all choices.
    score : float64[1]
        Running score of the world.
    tally : int64[3]
        Steps accepted, pair factors looked at, proposals that changed nothing.
    """

    items: NDArray[np.int32]
    drawn: NDArray[np.int64]
    order: NDArray[np.int32]
    places: NDArray[np.void]
    spare: NDArray[np.int32]
    sides: NDArray[np.int64]
    log_weights: NDArray[np.float64]
    score: NDArray[np.float64]
    tally: NDArray[np.int64]


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


@inner
def log_literal(
    kind: int,
    n: int,
    clusters: int,
    splittable: int,
    types: int,
    peers: int,
    s: int,
    m: int,
    t: int,
    links: float,
) -> float:
    """Log-probability that a move draws one literal transfer of m of s items to a cluster of t."""
    if kind == TO_CLUSTER:
        if m == 1 and t > 0:
            return -np.log(n * (clusters - 1.0))
    elif kind == TO_ITEM:
        if m == 1 and t > 0:
            return np.log(t / (n * (peers - 1.0)))
    elif kind == TO_CANDIDATE:
        if m == 1 and t > 0 and links > 0.0:
            return np.log(links / n)
    elif kind == TO_NEW:
        if m == 1 and t == 0:
            return -np.log(n * np.float64(types))
    elif kind == MERGE:
        if m == s and t > 0:
            return -np.log(clusters * (clusters - 1.0))
    elif kind == SPLIT:
        if t == 0 and m < s:
            return -np.log(splittable * np.float64(types)) - s * LOG_2 - np.log1p(-(2.0 ** (1 - s)))
    elif kind == SPLIT_MERGE:
        if t == 0 and m < s:
            return np.log(m * (s - m) / (n * (n - 1.0))) - (s - 2) * LOG_2 - np.log(np.float64(types))
        if t > 0 and m == s:
            return np.log(s * np.float64(t) / (n * (n - 1.0)))
    elif kind == RETYPE:
        if m == 0:
            return -np.log(clusters * (types - 1.0))
    return -np.inf


@inner
def log_outcome(
    moves: MoveArrays,
    n: int,
    clusters: int,
    splittable: int,
    peers: int,
    s: int,
    m: int,
    t: int,
    links: float,
    other_m: int,
    other_links: float,
) -> float:
    """Log-probability of proposing the world that a transfer gives; ``other_m`` > 0 adds its mirror image.

    The mirror image of a split moves the other part, that of a merge the other cluster.
    """
    available = 0.0
    top = -np.inf
    total = 0.0
    for index in range(len(moves.choices)):
        kind = moves.choices[index].kind
        if not is_available(kind, moves, n, clusters, splittable):
            continue
        available += moves.choices[index].weight
        scale = np.log(moves.choices[index].weight)
        types = moves.settings[TYPES]
        for way in range(2):
            if way == 0:
                term = scale + log_literal(kind, n, clusters, splittable, types, peers, s, m, t, links)
            elif other_m == 0:
                continue
            elif t == 0:
                term = scale + log_literal(
                    kind, n, clusters, splittable, types, peers, s, other_m, 0, other_links
                )
            else:
                term = scale + log_literal(
                    kind, n, clusters, splittable, types, peers, other_m, other_m, s, other_links
                )
            if term > top:
                total = total * np.exp(top - term) + 1.0
                top = term
            elif term > -np.inf:
                total += np.exp(term - top)
    if top == -np.inf:
        return top
    return top + np.log(total) - np.log(available)


@inner
def share_of_candidates(moves: MoveArrays, p: PartitionArrays, item: int, cluster: int) -> float:
    """Share of an item's candidates that are in ``cluster``, the item itself aside."""
    degree = moves.candidate_start[item + 1] - moves.candidate_start[item]
    if degree == 0:
        return 0.0
    count = 0
    for index in range(moves.candidate_start[item], moves.candidate_start[item + 1]):
        if p.items[moves.candidate[index]].label == cluster:
            count += 1
    return count / np.float64(degree)


@hot
def relocation_weight(rates: NDArray[np.float64], clusters: int, scale: float, t: int, links: float) -> float:
    """Weight with which relocations draw one given item and a cluster of t for it (0: a new one).

    Up to a factor that forward and backward share, and up to the weight of all moves available.
    """
    if t == 0:
        return rates[TO_NEW] * rates[ONE_OVER_TYPES] * scale
    total = rates[TO_ITEM] * t + rates[TO_CANDIDATE] * links * scale
    if rates[TO_CLUSTER] > 0.0:
        total += rates[TO_CLUSTER] * scale / (clusters - 1.0)
    return total


@hot
def relocations_available(rates: NDArray[np.float64], clusters: int, splittable: int) -> float:
    """Weight of all relocations that have something to propose."""
    total = rates[TO_ITEM] + rates[TO_CANDIDATE]
    if clusters >= 2:
        total += rates[TO_CLUSTER]
    if splittable >= 1:
        total += rates[TO_NEW]
    return total


@hot
def relocation_ratio(
    moves: MoveArrays, p: PartitionArrays, items: NDArray[np.int32], drawn: NDArray[np.int64]
) -> float:
    """Backward over forward probability of a relocation, for mixtures of nothing but relocations.

    The same as `log_ratio` without logarithms: probabilities of relocations do not underflow.
    """
    item, source, target = items[0], drawn[1], drawn[2]
    clusters, splittable = p.counters[LIVE], p.counters[SPLITTABLE]
    s = p.clusters[source].size
    t = 0 if target == NEW else p.clusters[target].size
    target_type = drawn[3] if target == NEW else np.int64(p.clusters[target].type)
    same_type = p.clusters[source].type == target_type
    scale = np.float64(max(peers_of(moves, p, item) - 1, 1))
    links, home_links, other_links, other_home_links = 0.0, 0.0, 0.0, 0.0
    if len(moves.candidate) > 0:
        links = share_of_candidates(moves, p, item, target)
        home_links = share_of_candidates(moves, p, item, source)
        if s == 1 and t == 1:
            other_links = share_of_candidates(moves, p, p.members[p.clusters[target].start], source)
        if s == 2 and t == 0:
            first = p.clusters[source].start
            other = p.members[first] if p.members[first] != item else p.members[first + 1]
            other_home_links = share_of_candidates(moves, p, other, source)
    there = splittable - (s >= 2) - (t >= 2) + (s - 1 >= 2) + (t + 1 >= 2)
    clusters_there = clusters + (t == 0) - (s == 1)
    forward = relocation_weight(moves.rates, clusters, scale, t, links)
    backward = relocation_weight(moves.rates, clusters_there, scale, s - 1, home_links)
    if same_type and s == 1 and t == 1:  # either item may join the other, and either may leave again
        forward += relocation_weight(moves.rates, clusters, scale, 1, other_links)
        backward += relocation_weight(moves.rates, clusters_there, scale, 0, 0.0)
    if same_type and s == 2 and t == 0:
        forward += relocation_weight(moves.rates, clusters, scale, 0, 0.0)
        backward += relocation_weight(moves.rates, clusters_there, scale, 1, other_home_links)
    here = relocations_available(moves.rates, clusters, splittable)
    return backward * here / (forward * relocations_available(moves.rates, clusters_there, there))


@hot
def peers_of(moves: MoveArrays, p: PartitionArrays, item: int) -> int:
    """Number of items in the block of ``item``; of all items without blocking."""
    if len(moves.block_start) > 2:
        block = moves.blocks[item].of
        return moves.block_start[block + 1] - moves.block_start[block]
    return len(p.items)


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


@inner
def log_ratio(
    moves: MoveArrays, p: PartitionArrays, items: NDArray[np.int32], drawn: NDArray[np.int64]
) -> float:
    """Log of backward over forward probability of the drawn transfer."""
    m, source, target = drawn[0], drawn[1], drawn[2]
    if m == 0:
        return 0.0  # a change of type is as likely as the way back
    n = len(p.items)
    s = np.int64(p.clusters[source].size)
    t = np.int64(0) if target == NEW else np.int64(p.clusters[target].size)
    clusters = p.counters[LIVE]
    splittable = p.counters[SPLITTABLE]
    peers = peers_of(moves, p, items[0])
    target_type = drawn[3] if t == 0 else np.int64(p.clusters[target].type)
    mirrored = p.clusters[source].type == target_type and (t == 0 or m == s)
    there = splittable - (s >= 2) - (t >= 2) + (s - m >= 2) + (t + m >= 2)
    links, home_links, other_links, other_home_links = 0.0, 0.0, 0.0, 0.0
    if len(moves.candidate) > 0:
        if m == 1 and t > 0:
            links = share_of_candidates(moves, p, items[0], target)
        if m == 1 and m < s:
            home_links = share_of_candidates(moves, p, items[0], source)
        if m == s and t == 1:
            other_links = share_of_candidates(moves, p, p.members[p.clusters[target].start], source)
        if t == 0 and s - m == 1:
            other_home_links = _share_among(moves, _left_behind(p, source, items, m), items, m)
    other = 0
    other_back = 0
    if mirrored:
        other = s - m if t == 0 else t
        other_back = s - m if t == 0 else t
    forward = log_outcome(moves, n, clusters, splittable, peers, s, m, t, links, other, other_links)
    clusters_there = clusters + (t == 0) - (m == s)
    backward = log_outcome(
        moves, n, clusters_there, there, peers, t + m, m, s - m, home_links, other_back, other_home_links
    )
    return backward - forward


@inner
def _left_behind(p: PartitionArrays, source: int, items: NDArray[np.int32], m: int) -> int:
    """Return the one member of ``source`` that does not move."""
    for index in range(p.clusters[source].size):
        item = p.members[p.clusters[source].start + index]
        moving = False
        for k in range(m):
            if items[k] == item:
                moving = True
                break
        if not moving:
            return item
    return -1


@inner
def _share_among(moves: MoveArrays, item: int, items: NDArray[np.int32], m: int) -> float:
    """Share of an item's candidates among ``items[:m]``."""
    degree = moves.candidate_start[item + 1] - moves.candidate_start[item]
    if degree == 0:
        return 0.0
    count = 0
    for index in range(moves.candidate_start[item], moves.candidate_start[item + 1]):
        for k in range(m):
            if items[k] == moves.candidate[index]:
                count += 1
                break
    return count / np.float64(degree)
