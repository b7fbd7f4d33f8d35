"""Drawing jumps, compiled: the twin of `inference.mcmc.adaptive.proposer`, number by number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.jump_features import (
    ClusterModel,
    clear_sides,
    join_side,
    joining_gradient,
    log_odds_of,
    set_part_odds,
    take_cluster,
)
from factorwise.kernels.clusterings.jump_odds import (
    EXPLORE,
    GUIDED,
    LOG_PART,
    MERGE,
    MOVE,
    SPLIT,
    JumpArrays,
    as_odds,
    choose_by,
    choose_mixed,
    choose_pair,
)
from factorwise.kernels.clusterings.partitions import LIVE, NEW, SPLITTABLE, PartitionArrays
from factorwise.kernels.clusterings.restricted_gibbs import sort_ascending
from factorwise.kernels.compile.compiler import hot, inner
from factorwise.kernels.compile.random import random_below, random_uniform

Allocation = Callable[..., None]

ONE_MEMBER = 0.5  # share of moves that take a single member, the others take any proper part


@hot
def is_able(kind: int, clusters: int, splittable: int) -> bool:
    """Whether a kind of jump has anything to propose in a world with these counts."""
    if kind == SPLIT:
        return splittable >= 1
    if kind == MERGE:
        return clusters >= 2
    return splittable >= 1 and clusters >= 2


@inner
def draw_jump_kind(jumps: JumpArrays, p: PartitionArrays, state: NDArray[np.uint64]) -> int:
    """Draw a kind among those that have something to propose; -1 where there is none."""
    clusters, splittable = p.counters[LIVE], p.counters[SPLITTABLE]
    total = 0.0
    for kind in range(3):
        if is_able(kind, clusters, splittable):
            total += jumps.settings[kind]
    threshold = random_uniform(state) * total
    chosen = -1
    for kind in range(3):
        if is_able(kind, clusters, splittable) and jumps.settings[kind] > 0.0:
            chosen = kind
            threshold -= jumps.settings[kind]
            if threshold < 0.0:
                break
    return chosen


@inner
def draw_jump(
    allocation: Allocation,
    o: ClusterModel,
    jumps: JumpArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    no_features: NDArray[np.float32],
    state: NDArray[np.uint64],
) -> bool:
    """Draw a jump as a transfer; False where nothing can change."""
    p = o.p
    kind = draw_jump_kind(jumps, p, state)
    jumps.jump[0] = kind
    drawn[3] = 0
    if kind < 0:
        return False
    if kind == MERGE:
        draw_merge(jumps, p, items, drawn, state)
        return True
    source = choose_mixed(jumps, p, state)
    drawn[1], drawn[2] = source, NEW
    if kind == SPLIT and jumps.settings[GUIDED] > 0.0:
        draw_guided(allocation, o, jumps, source, items, drawn, state)
    elif kind == SPLIT:
        drawn[0] = draw_coins(p, source, items, state)
    else:
        draw_move(o, jumps, source, items, drawn, no_features, state)
    return True


@inner
def draw_merge(
    jumps: JumpArrays,
    p: PartitionArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    state: NDArray[np.uint64],
) -> None:
    """Draw two clusters; the smaller one moves, of equal ones the first."""
    first, second = choose_pair(jumps, p, state)
    if jumps.settings[GUIDED] > 0.0:
        swapped = random_uniform(state) >= 0.5
        jumps.jump[1] = random_member(p, second if swapped else first, state)
        jumps.jump[2] = random_member(p, first if swapped else second, state)
    if p.clusters[first].size > p.clusters[second].size:
        first, second = second, first
    lo = p.clusters[first].start
    drawn[0], drawn[1], drawn[2] = int(p.clusters[first].size), first, second
    for index in range(drawn[0]):
        items[index] = p.members[lo + index]


@hot
def random_member(p: PartitionArrays, cluster: int, state: NDArray[np.uint64]) -> int:
    """Draw a member of a cluster."""
    return int(p.members[p.clusters[cluster].start + random_below(state, p.clusters[cluster].size)])


@inner
def draw_coins(p: PartitionArrays, cluster: int, items: NDArray[np.int32], state: NDArray[np.uint64]) -> int:
    """Draw a part that is neither empty nor all, a coin for each member; return how many."""
    lo, size = p.clusters[cluster].start, int(p.clusters[cluster].size)
    count = 0
    while count == 0 or count == size:
        count = 0
        for slot in range(lo, lo + size):
            if random_uniform(state) < 0.5:
                items[count] = p.members[slot]
                count += 1
    return count


@inner
def draw_guided(
    allocation: Allocation,
    o: ClusterModel,
    jumps: JumpArrays,
    source: int,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    state: NDArray[np.uint64],
) -> None:
    """Draw two members to be apart; the others join one or the other."""
    p = o.p
    size = p.clusters[source].size
    stays = random_below(state, size)
    moves = random_below(state, size - 1)
    if moves >= stays:
        moves += 1
    lo = p.clusters[source].start
    jumps.jump[1], jumps.jump[2] = p.members[lo + stays], p.members[lo + moves]
    take_cluster(jumps, p, source)
    allocation(o, jumps, int(size), False, state)
    drawn[0] = jumps.side_sizes[1]
    for index in range(drawn[0]):
        items[index] = jumps.sides[1, index]
    clear_sides(o, jumps)


@inner
def allocate(
    o: ClusterModel,
    jumps: JumpArrays,
    size: int,
    forced: bool,
    state: NDArray[np.uint64],
) -> None:
    """Let ``jumps.items[:size]``, in ascending order, join one of two members; set the log-probability.

    The two are those of ``jumps.jump``: the first stays, the second moves. Where it is ``forced``, everybody
    joins the one in whose cluster it is. The sides are left as they came out.
    """
    p = o.p
    explore = jumps.settings[EXPLORE]
    sort_ascending(jumps.items, size)
    for side in range(2):
        join_side(o, jumps, jumps.jump[1 + side], side)
    log_sides = 0.0
    for index in range(size):
        item = int(jumps.items[index])
        if item == jumps.jump[1] or item == jumps.jump[2]:
            continue
        joining_gradient(o, jumps, item, 0, jumps.gradient)
        pairs = jumps.side_sizes[0]
        stay = as_odds(log_odds_of(jumps, jumps.gradient, jumps.merge_weights, pairs, pairs))
        joining_gradient(o, jumps, item, 1, jumps.gradient)
        pairs = jumps.side_sizes[1]
        move = as_odds(log_odds_of(jumps, jumps.gradient, jumps.merge_weights, pairs, pairs))
        jumps.tally[0] += jumps.side_sizes[0] + jumps.side_sizes[1]
        chance = (1.0 - explore) * move / (stay + move) + explore / 2.0
        if forced:
            moves = p.items[item].label == p.items[jumps.jump[2]].label
        else:
            moves = random_uniform(state) < chance
        if not moves:
            chance = (1.0 - explore) * stay / (stay + move) + explore / 2.0
        log_sides += np.log(chance)
        join_side(o, jumps, item, 1 if moves else 0)
    jumps.logs[LOG_PART] = log_sides


@inner
def no_allocation(
    o: ClusterModel, jumps: JumpArrays, size: int, forced: bool, state: NDArray[np.uint64]
) -> None:
    """Stand in for `allocate` where parts are not guided, so that nothing has to be compiled for it."""


@inner
def draw_move(
    o: ClusterModel,
    jumps: JumpArrays,
    source: int,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    no_features: NDArray[np.float32],
    state: NDArray[np.uint64],
) -> None:
    """Draw a part of ``source`` and a cluster for it to join."""
    p = o.p
    if random_uniform(state) < ONE_MEMBER:
        items[0] = random_member(p, source, state)
        drawn[0] = 1
    else:
        drawn[0] = draw_coins(p, source, items, state)
    total = set_part_odds(
        o,
        jumps,
        items,
        drawn[0],
        source,
        no_features,
    )
    jumps.part_odds[source] = 0.0
    if random_uniform(state) < jumps.settings[EXPLORE]:
        position = random_below(state, p.counters[LIVE] - 1)
        if position >= p.clusters[source].live_at:
            position += 1
        drawn[2] = int(p.clusters[position].live)
    else:
        drawn[2] = choose_by(jumps.part_odds, p, random_uniform(state) * total)
    jumps.jump[0] = MOVE
