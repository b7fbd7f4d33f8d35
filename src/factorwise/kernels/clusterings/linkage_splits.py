"""Merging and splitting clusters of linked items, in one step each.

A split starts from two linked members and allocates the others one by one, in random order, to one of the two
sides with the odds that the links into the sides so far give; a merge must be paid for by the probability
that such an allocation would have made the two clusters. Both are exact Metropolis-Hastings steps.
After the idea of sequentially allocated merges and splits (dahl2005sequentially); here the two that a split
starts from are drawn along a link.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.linkage import APART, CHANGED, CLUSTER, WEIGHED, LinkArrays, join, leave
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel
from factorwise.kernels.compile.random import random_below, random_uniform

NEITHER, FIRST, SECOND = range(3)
LARGE = 100


@hot
def _gather(links: LinkArrays, member: int, place: int) -> int:
    """List the other members of a cluster from ``place`` on; return where the list ends."""
    other = links.after[member]
    while other != member:
        links.touched[place] = other
        place += 1
        other = links.after[other]
    return place


@hot
def _log_share(mine: float, other: float) -> float:
    """Return the log of exp(mine) / (exp(mine) + exp(other))."""
    if mine == -math.inf:
        return -math.inf
    if other <= mine:
        return -math.log1p(math.exp(other - mine))
    return mine - other - math.log1p(math.exp(mine - other))


@inner
def split_or_merge(
    links: LinkArrays,
    settings: NDArray[np.float64],
    state: NDArray[np.uint64],
    one: int,
    two: int,
    first: int,
    temperature: float,
    hastings: bool,
    tally: NDArray[np.int64],
) -> float:
    """Propose to split the cluster of two linked items, or to merge their two; return the change of score.

    Without ``hastings`` only the change of score decides: a search, not a sampler.
    """
    splitting = links.label[one] == links.label[two]
    begin = first
    end = _gather(links, one, begin)
    if splitting:
        for k in range(begin, end):  # the second seed is no candidate for a side
            if links.touched[k] == two:
                links.touched[k] = links.touched[end - 1]
                break
        end -= 1
    else:
        for k in range(begin, end):
            links.side[links.touched[k]] = -FIRST
        middle = end
        end = _gather(links, two, middle)
        for k in range(middle, end):
            links.side[links.touched[k]] = -SECOND
    for k in range(begin, end - 1):
        swap = k + random_below(state, end - k)
        links.touched[k], links.touched[swap] = links.touched[swap], links.touched[k]
    links.side[one], links.side[two] = FIRST, SECOND
    weight_one, weight_two = np.int64(links.weight[one]), np.int64(links.weight[two])
    across = settings[APART] * weight_one * weight_two
    for k in range(links.start[one], links.start[one + 1]):
        if links.neighbor[k] == two:
            across += links.score[k]
    log_chance = 0.0
    shard = links.shard[one]
    for k in range(begin, end):
        member = links.touched[k]
        to_one = settings[APART] * links.weight[member] * weight_one
        to_two = settings[APART] * links.weight[member] * weight_two
        for e in range(links.start[member], links.start[member + 1]):
            other = links.neighbor[e]
            side = links.side[other]
            if side > NEITHER and links.shard[other] == shard:  # sides in other shards are at work just now
                if side == FIRST:
                    to_one += links.score[e]
                else:
                    to_two += links.score[e]
        tally[WEIGHED] += 2
        log_first = _log_share(to_one / temperature, to_two / temperature)
        if splitting:
            joins_first = math.log(1.0 - random_uniform(state)) < log_first
        else:
            joins_first = links.side[member] == -FIRST
        if joins_first:
            links.side[member] = FIRST
            weight_one += links.weight[member]
            across += to_two
            log_chance += log_first
        else:
            links.side[member] = SECOND
            weight_two += links.weight[member]
            across += to_one
            log_chance += _log_share(to_two / temperature, to_one / temperature)
    conflict = not splitting and links.held[links.label[one]] & links.held[links.label[two]] != np.uint64(0)
    gain = settings[CLUSTER] - across if splitting else across - settings[CLUSTER]
    log_accept = gain / temperature
    if hastings:
        log_accept += -log_chance if splitting else log_chance
    accepted = not conflict and math.log(1.0 - random_uniform(state)) < log_accept
    if accepted:
        tally[CHANGED] += 1
        if splitting:
            leave(links, two)
        else:
            target = links.label[one]
            leave(links, two)
            join(links, two, target)
    for k in range(begin, end):
        member = links.touched[k]
        if accepted and links.side[member] == SECOND:
            leave(links, member)
            join(links, member, links.label[two])
        links.side[member] = NEITHER
    links.side[one] = links.side[two] = NEITHER
    return gain if accepted else 0.0


@hot
def _unite(links: LinkArrays, one: int, large: int) -> None:
    """Put all members of the cluster of ``one`` into another, at the end of its ring and ``one`` last."""
    small = links.label[one]
    links.total[large] += links.total[small]
    links.held[large] |= links.held[small]
    member = one
    while True:
        links.label[member] = large
        member = links.after[member]
        if member == one:
            break
    front, last = links.after[one], links.before[large]
    links.after[last], links.before[front] = front, last
    links.after[one], links.before[large] = large, one


@inner
def merge_step(
    links: LinkArrays,
    settings: NDArray[np.float64],
    state: NDArray[np.uint64],
    one: int,
    two: int,
    temperature: float,
    tally: NDArray[np.int64],
) -> float:
    """Merge the clusters of two items if the change of score says so: part of a search, with no way back.

    Looks at the links of the lighter cluster alone.
    """
    if links.total[links.label[one]] > links.total[links.label[two]]:
        one, two = two, one
    small, large = links.label[one], links.label[two]
    if links.held[small] & links.held[large] != np.uint64(0):
        return 0.0
    gain = settings[APART] * links.total[small] * links.total[large] - settings[CLUSTER]
    member = one
    while True:
        for e in range(links.start[member], links.start[member + 1]):
            if links.label[links.neighbor[e]] == large:
                gain += links.score[e]
        member = links.after[member]
        if member == one:
            break
    tally[WEIGHED] += 1
    if not math.log(1.0 - random_uniform(state)) < gain / temperature:
        return 0.0
    tally[CHANGED] += 1
    _unite(links, one, large)
    return gain


@lean_kernel
def jump_sweep(
    links: LinkArrays,
    settings: NDArray[np.float64],
    state: NDArray[np.uint64],
    items: NDArray[np.int32],
    first: int,
    last: int,
    temperature: float,
    strict: bool,
    jumps: int,
    tally: NDArray[np.int64],
) -> float:
    """Propose ``jumps`` splits or merges along random links of the items ``items[first:last]`` of one shard.

    Those that concern more than ``LARGE`` records are left out with a chance that keeps their cost within
    bounds; it is the same for a split and for the merge that would undo it. Not ``strict``: proposals to
    merge are decided by the change of score alone. Return the change of score.
    """
    gain = 0.0
    for _ in range(jumps):
        one = items[first + random_below(state, last - first)]
        degree = links.start[one + 1] - links.start[one]
        if degree == 0:
            continue
        two = links.neighbor[links.start[one] + random_below(state, degree)]
        if links.shard[two] != links.shard[one]:
            continue
        together = links.label[one] == links.label[two]
        if strict or together:
            union = links.total[links.label[one]]
            if not together:
                union += links.total[links.label[two]]
            if union > LARGE and random_below(state, union) >= LARGE:
                continue
            gain += split_or_merge(links, settings, state, one, two, first, temperature, strict, tally)
        else:
            gain += merge_step(links, settings, state, one, two, temperature, tally)
    return gain
