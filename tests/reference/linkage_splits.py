"""Splits and merges of clusters of linked items, from the definition: whole clusterings are scored."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reference.linkage import Cluster, Draws, Linked

LARGE = 100


def split_or_merge(
    world: Linked, draws: Draws, one: int, two: int, temperature: float, hastings: bool
) -> float:
    """Propose to split the cluster of two items, or to merge their two; return the gain."""
    home, other = world.home(one), world.home(two)
    splitting = home is other
    free = _from(home, one)[1:]
    if splitting:
        free[free.index(two)] = free[-1]
        free.pop()
    else:
        free += _from(other, two)[1:]
    for k in range(len(free) - 1):
        swap = k + draws.below(len(free) - k)
        free[k], free[swap] = free[swap], free[k]
    first, second = [one], [two]
    log_chance = 0.0
    for member in free:
        log_first = _log_share(world, member, first, second, temperature)
        log_second = _log_share(world, member, second, first, temperature)
        goes_first = draws.happens(log_first) if splitting else member in home
        (first if goes_first else second).append(member)
        log_chance += log_first if goes_first else log_second
    rest = [members for members in world.clusters if members is not home and members is not other]
    parted, united = [*rest, first, second], [*rest, first + second]
    if not splitting and _conflict(world, home, other):
        return 0.0
    sign = -1.0 if splitting else 1.0
    gain = sign * (world.score(united) - world.score(parted))
    ratio = sign * log_chance if hastings else 0.0
    if not draws.happens(gain / temperature + ratio):
        return 0.0
    world.leave(two)
    if not splitting:
        world.join(two, home)
    for member in free:
        if member in second:
            world.leave(member)
            world.join(member, world.home(two))
    return gain


def _from(members: Cluster, item: int) -> Cluster:
    """Return the members of a cluster in their ring's order, beginning with one of them."""
    place = members.index(item)
    return members[place:] + members[:place]


def _log_share(world: Linked, member: int, side: Cluster, against: Cluster, temperature: float) -> float:
    """Return the log of the share that one side has in the odds of a member for the two."""
    mine, other = (sum(world.pair(member, m) for m in members) / temperature for members in (side, against))
    if mine == -math.inf:
        return -math.inf
    return -math.log1p(math.exp(other - mine)) if other < mine + 700.0 else mine - other


def _conflict(world: Linked, one: Cluster, two: Cluster) -> bool:
    return any(world.sources[a] & world.sources[b] for a in one for b in two)


def merge_step(world: Linked, draws: Draws, one: int, two: int, temperature: float) -> float:
    """Merge the clusters of two items if the gain says so; return it."""
    small, large = world.home(one), world.home(two)
    if sum(world.weight[m] for m in small) > sum(world.weight[m] for m in large):
        one, small, large = two, large, small
    if _conflict(world, small, large):
        return 0.0
    rest = [members for members in world.clusters if members is not small and members is not large]
    gain = world.score([*rest, large + small]) - world.score(world.clusters)
    if not draws.happens(gain / temperature):
        return 0.0
    ring = _from(small, one)
    large += [*ring[1:], one]
    world.clusters = [*rest, large]
    return gain


def jump_sweep(
    world: Linked, draws: Draws, items: Sequence[int], temperature: float, strict: bool, jumps: int
) -> float:
    """Propose splits or merges along random links of some items; return the gain."""
    gain = 0.0
    for _ in range(jumps):
        one = items[draws.below(len(items))]
        if not world.links[one]:
            continue
        two = world.links[one][draws.below(len(world.links[one]))][0]
        if world.shard[one] != world.shard[two]:
            continue
        if strict or world.home(one) is world.home(two):
            union = sum(world.weight[item] for item in {*world.home(one), *world.home(two)})
            if union > LARGE and draws.below(union) >= LARGE:
                continue
            gain += split_or_merge(world, draws, one, two, temperature, strict)
        else:
            gain += merge_step(world, draws, one, two, temperature)
    return gain
