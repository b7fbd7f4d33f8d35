"""Clusterings of millions of items with scores on links: the state, and Gibbs steps over it.

The score of a clustering is a sum over its clusters: for every two members the score of their link if they
are linked, and ``apart`` if not, plus ``cluster`` for the cluster itself. Links are few (candidates from
blocking), so what an item gains in a cluster follows from its own links and the weight of the cluster,
whatever the number of members.

Items lie in shards, and so do clusters, wholly. A walk over one shard reads and writes what belongs to its
items and nothing else: shards can be walked at the same time in any order, with the same result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import hot, inner, kernel, lean_kernel
from factorwise.kernels.compile.random import random_uniform

APART, CLUSTER = range(2)
CHANGED, WEIGHED = range(2)
ALONE = -1  # in place of a cluster: a new one
VANISHING = -37.0  # rounding loses exp of less in a sum whose largest term is 1


class LinkArrays(NamedTuple):
    """Links between n items, the current clustering, and scratch.

    start : int64[n + 1], neighbor : int32[links], score : float32[links]
        The links of item i are those from ``start[i]`` to ``start[i + 1]``; each stands at both its ends.
        ``score`` is what it adds beyond ``apart``; -inf forbids the two to be together.
    weight : int32[n]
        How many records an item stands for: records that must be together are one item.
    sources : uint64[n]
        Bits of the sources an item comes from, where a cluster may have one record of each; else zero.
    shard : int32[n]
        In which shard each item lies.
    label : int32[n]
        The cluster of each item, named by one of its members.
    total : int64[n], held : uint64[n]
        By cluster: weight of its members, and bits of their sources.
    after, before : int32[n]
        Members of a cluster in a ring.
    sums : float64[n], seen : int32[n]
        Scratch by cluster, zero between steps.
    touched : int32[n + 1], value : float64[n + 1]
        Scratch: the clusters that an item has links into, and what it would gain there. A shard uses the part
        that its items have in the order of all items.
    side : int8[n]
        Scratch by item, zero between steps.
    """

    start: NDArray[np.int64]
    neighbor: NDArray[np.int32]
    score: NDArray[np.float32]
    weight: NDArray[np.int32]
    sources: NDArray[np.uint64]
    shard: NDArray[np.int32]
    label: NDArray[np.int32]
    total: NDArray[np.int64]
    held: NDArray[np.uint64]
    after: NDArray[np.int32]
    before: NDArray[np.int32]
    sums: NDArray[np.float64]
    seen: NDArray[np.int32]
    touched: NDArray[np.int32]
    value: NDArray[np.float64]
    side: NDArray[np.int8]


@inner
def leave(links: LinkArrays, item: int) -> None:
    """Take an item out of its cluster, into one of its own; the cluster finds a new name if it bore its."""
    label = links.label[item]
    if links.after[item] == item:
        return
    after, before = links.after[item], links.before[item]
    links.after[before], links.before[after] = after, before
    links.total[label] -= links.weight[item]
    links.held[label] ^= links.sources[item]
    if label == item:  # rare: one member in |cluster| bears its name, so renaming costs one look on average
        links.total[after], links.held[after] = links.total[label], links.held[label]
        member = after
        while True:
            links.label[member] = after
            member = links.after[member]
            if member == after:
                break
    links.label[item] = item
    links.total[item], links.held[item] = links.weight[item], links.sources[item]
    links.after[item] = links.before[item] = item


@inner
def join(links: LinkArrays, item: int, label: int) -> None:
    """Put an item that is by itself into another cluster."""
    last = links.before[label]
    links.after[last], links.before[item] = item, last
    links.after[item], links.before[label] = label, item
    links.label[item] = label
    links.total[label] += links.weight[item]
    links.held[label] |= links.sources[item]


@hot
def look_around(links: LinkArrays, item: int, first: int) -> int:
    """Sum an item's links by cluster into ``sums``; return how many clusters stand in ``touched``."""
    shard = links.shard[item]
    count = 0
    for k in range(links.start[item], links.start[item + 1]):
        other = links.neighbor[k]
        if links.shard[other] == shard:
            label = links.label[other]
            if links.seen[label] == 0:
                links.touched[first + count] = label
                count += 1
            links.seen[label] += 1
            links.sums[label] += links.score[k]
    return count


@hot
def forget(links: LinkArrays, first: int, count: int) -> None:
    """Wipe the scratch that `look_around` filled."""
    for k in range(first, first + count):
        label = links.touched[k]
        links.sums[label] = 0.0
        links.seen[label] = 0


@hot
def worth(links: LinkArrays, settings: NDArray[np.float64], item: int, label: int, home: int) -> float:
    """Return what an item, by itself, would gain in a cluster (``home`` is its own, counted without it)."""
    weight, held = links.total[label], links.held[label]
    if label == home:
        weight -= links.weight[item]
        held ^= links.sources[item]
    if held & links.sources[item] != np.uint64(0):
        return -math.inf
    return links.sums[label] + settings[APART] * links.weight[item] * weight - settings[CLUSTER]


@hot
def weigh(
    links: LinkArrays, settings: NDArray[np.float64], item: int, first: int, count: int, temperature: float
) -> tuple[float, float]:
    """Set ``value`` to the odds of the touched clusters, of which the best or one of its own has odds 1.

    Return the odds of a cluster of its own, and the sum of all.
    """
    home = links.label[item]
    best = 0.0
    for k in range(first, first + count):
        links.value[k] = worth(links, settings, item, links.touched[k], home)
        best = max(best, links.value[k])
    alone = math.exp(-best / temperature)
    mass = alone
    least = best + VANISHING * temperature
    for k in range(first, first + count):
        odds = 0.0
        if links.value[k] > least:
            odds = math.exp((links.value[k] - best) / temperature)
        links.value[k] = odds
        mass += odds
    return alone, mass


@inner
def gibbs_step(
    links: LinkArrays,
    settings: NDArray[np.float64],
    state: NDArray[np.uint64],
    item: int,
    first: int,
    temperature: float,
    strict: bool,
    tally: NDArray[np.int64],
) -> float:
    """Draw an item's cluster given all others, among those it has links into and one of its own.

    An item without a link into its own cluster could not come back by such a step: if ``strict`` it stays, so
    that exp(score / temperature) is invariant; else it may leave. Return the change of score.
    """
    home = links.label[item]
    alone = links.after[item] == item
    count = look_around(links, item, first)
    tally[WEIGHED] += count
    if not alone and links.seen[home] == 0:
        if strict:
            forget(links, first, count)
            return 0.0
        links.touched[first + count] = home
        count += 1
    if count == 0:
        return 0.0
    odds, mass = weigh(links, settings, item, first, count, temperature)
    left = random_uniform(state) * mass - odds
    chosen = ALONE
    for k in range(first, first + count):
        if left < 0.0:
            break
        left -= links.value[k]
        if links.value[k] > 0.0:  # rounding may leave a rest for the last, which must be possible
            chosen = links.touched[k]
    gain = 0.0
    if chosen != home and not (alone and chosen == ALONE):
        if chosen != ALONE:
            gain += worth(links, settings, item, chosen, home)
        if not alone:
            gain -= worth(links, settings, item, home, home)
        leave(links, item)
        if chosen != ALONE:
            join(links, item, chosen)
        tally[CHANGED] += 1
    forget(links, first, count)
    return gain


@lean_kernel
def gibbs_sweep(
    links: LinkArrays,
    settings: NDArray[np.float64],
    state: NDArray[np.uint64],
    items: NDArray[np.int32],
    first: int,
    last: int,
    temperature: float,
    strict: bool,
    tally: NDArray[np.int64],
) -> float:
    """Take one Gibbs step for each of ``items[first:last]``, all of one shard; return the change of score."""
    gain = 0.0
    for k in range(first, last):
        gain += gibbs_step(links, settings, state, items[k], first, temperature, strict, tally)
    return gain


@lean_kernel
def home_chances(
    links: LinkArrays,
    settings: NDArray[np.float64],
    items: NDArray[np.int32],
    temperature: float,
    chances: NDArray[np.float32],
) -> None:
    """Set for each of ``items`` the probability that a Gibbs step leaves it where it is.

    Of an item that has no link into its own cluster it is what a step that is not strict gives.
    """
    for item in items:
        home = links.label[item]
        alone = links.after[item] == item
        count = look_around(links, item, 0)
        if not alone and links.seen[home] == 0:
            links.touched[count] = home
            count += 1
        odds, mass = weigh(links, settings, item, 0, count, temperature)
        for k in range(count):
            if links.touched[k] == home:
                odds = links.value[k]
        chances[item] = odds / mass
        forget(links, 0, count)


@kernel
def link_rows(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    start: NDArray[np.int64],
    neighbor: NDArray[np.int32],
    pair: NDArray[np.int32],
) -> None:
    """Lay out pairs as links by item: the start of each item's, whom they lead to, and their pairs."""
    start[:] = 0
    for k in range(len(first)):
        start[first[k] + 1] += 1
        start[second[k] + 1] += 1
    for item in range(len(start) - 1):
        start[item + 1] += start[item]
    for k in range(len(first)):  # fills each row from its start, which moves on to the start of the next
        place = start[first[k]]
        neighbor[place], pair[place] = second[k], k
        start[first[k]] = place + 1
        place = start[second[k]]
        neighbor[place], pair[place] = first[k], k
        start[second[k]] = place + 1
    for item in range(len(start) - 1, 0, -1):
        start[item] = start[item - 1]
    start[0] = 0
