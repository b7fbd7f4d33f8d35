"""Drawing transfers of several items at once: merges, splits, and changes of a cluster's type.

A merge moves all of one cluster to another, a split moves some of one to a new one. If clusters have no
types, the smaller part moves, with the same result.

Splits that are guided by the model allocate the members one by one. ``mine`` of these programs has ``apply``
int64[1, 2], the function that moves an item; ``templates`` int64[k, .], the functions ``gains`` and
``applied``, and possibly more, of the model's templates, and last their contexts; and ``order`` int32[n],
scratch: the members to be allocated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import LIVE, SPLITTABLE, spare_id
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import add_change, below, end_changes, two_below, uniform

#: Columns of the table of templates.
GAINS, APPLIED = range(2)
#: Rates of a mixture of merges and splits, in this order.
MERGE, SPLIT = range(2)
SMALL = 20  # members whose subsets can be numbered
TYPES = 1  # the second of the two worlds of a clustering with types, side by side


@shared
def move_all(world: Any, move: Any, changes: Any, source: int, target: int) -> None:
    """Make the move the merge of two clusters, with the type of ``target``."""
    if world.type[source] == world.type[target] and world.size[source] > world.size[target]:
        source, target = target, source
    move.changes = 0
    for slot in range(world.start[source], world.start[source] + world.size[source]):
        add_change(move, changes, world.members[slot], source, target)
    end_changes(move, changes)


def draw_merge_or_split(world: Any, mine: Any, random: Any, move: Any, changes: Any) -> float:
    """Merge two random clusters, or split one at random, all ordered pairs or bipartitions equally likely.

    ``mine`` has ``rates`` float64[2] and ``types`` int64[1]. The second cluster of a merge keeps its type;
    the part that a split moves gets a random one.
    """
    clusters, splittable = world.counters[LIVE], world.counters[SPLITTABLE]
    if uniform(random) * (mine.rates[MERGE] + mine.rates[SPLIT]) < mine.rates[MERGE]:
        if clusters < 2:
            return STAY
        first, second = two_below(random, clusters)
        source, target = np.int64(world.live[first]), np.int64(world.live[second])
        s, t = world.size[source], world.size[target]
        then = splittable - (s >= 2) - (t >= 2) + 1
        forward = merge_chance(mine, clusters, world.type[source] == world.type[target])
        same = world.type[source] == world.type[target]
        backward = split_chance(mine, then, s + t, same)
        move_all(world, move, changes, source, target)
        move.log_ratio = backward - forward
        return 1.0
    if splittable < 1:
        return STAY
    source = np.int64(world.splittable[below(random, splittable)])
    target = spare_id(world, below(random, mine.types[0]))
    s = np.int64(world.size[source])
    draw_part(world, random, move, changes, source, target, mine.types[0] == 1)
    end_changes(move, changes)
    same = world.type[source] == world.type[target]
    move.log_ratio = merge_chance(mine, clusters + 1, same) - split_chance(mine, splittable, s, same)
    return 1.0


@shared
def draw_part(
    world: Any, random: Any, move: Any, changes: Any, source: int, target: int, either: bool
) -> None:
    """Make the move the transfer of a uniformly random proper subset of a cluster's members.

    either
        Whether the rest may move instead with the same result; in a small cluster the smaller part then
        moves.
    """
    start, size = world.start[source], np.int64(world.size[source])
    if size <= SMALL:
        every = (np.int64(1) << size) - 1
        subset = 1 + below(random, every - 1)
        if either and 2 * count_bits(subset) > size:
            subset = every - subset
        move.changes = 0
        for k in range(size):
            if (subset >> k) & 1:
                add_change(move, changes, world.members[start + k], source, target)
        return
    move.changes = 0
    while move.changes == 0 or move.changes == size:  # rare: draw again
        move.changes = 0
        for slot in range(start, start + size):
            if uniform(random) < 0.5:
                add_change(move, changes, world.members[slot], source, target)


@shared
def count_bits(number: int) -> int:
    """Return how many bits of a nonnegative number are set."""
    count = 0
    while number > 0:
        count += number & 1
        number >>= 1
    return count


@shared
def merge_chance(mine: Any, clusters: int, same_type: bool) -> float:
    """Return the log-rate of drawing a given merge.

    Of clusters of one type either may be the one that moves.
    """
    ways = 2.0 if same_type else 1.0
    if mine.rates[MERGE] == 0.0:
        return -math.inf
    return math.log(mine.rates[MERGE] * ways / (clusters * (clusters - 1.0)))


@shared
def split_chance(mine: Any, splittable: int, size: int, same_type: bool) -> float:
    """Return the log-rate of drawing a given split; of parts of one type either may be the one that moves."""
    ways = 2.0 if same_type else 1.0
    if mine.rates[SPLIT] == 0.0:
        return -math.inf
    subsets = size * math.log(2.0) + math.log1p(-(2.0 ** (1.0 - size)))
    return math.log(mine.rates[SPLIT] * ways / (splittable * mine.types[0])) - subsets


def draw_split_merge(world: Any, mine: Any, random: Any, move: Any, changes: Any) -> float:
    """Draw two items, and split their cluster at random between them, or merge their two clusters.

    ``mine`` has ``types`` int64[1].
    """
    n = len(world.label)
    if n < 2:
        return STAY
    stays, mover = two_below(random, n)
    source, target = np.int64(world.label[mover]), np.int64(world.label[stays])
    if source != target:
        s, t = np.int64(world.size[source]), np.int64(world.size[target])
        same = world.type[source] == world.type[target]
        backward = blind_split_chance(mine, s, t, same)
        forward = math.log(s * np.float64(t) * (2.0 if same else 1.0))
        move_all(world, move, changes, source, target)
        move.log_ratio = backward - forward
        return 1.0
    target = spare_id(world, below(random, mine.types[0]))
    s, start = np.int64(world.size[source]), world.start[source]
    move.changes = 0
    for slot in range(start, start + s):
        item = world.members[slot]
        if item == mover or (item != stays and uniform(random) < 0.5):
            add_change(move, changes, item, source, target)
    m = move.changes
    end_changes(move, changes)
    same = world.type[source] == world.type[target]
    backward = math.log(m * np.float64(s - m) * (2.0 if same else 1.0))
    move.log_ratio = backward - blind_split_chance(mine, m, s - m, same)
    return 1.0


@shared
def blind_split_chance(mine: Any, moving: int, staying: int, same_type: bool) -> float:
    """Return the log-chance that two drawn items split their cluster this way, plus log n (n - 1)."""
    pairs = math.log(moving * np.float64(staying) * (2.0 if same_type else 1.0))
    return pairs - (moving + staying - 2) * math.log(2.0) - math.log(mine.types[0])


def draw_type(world: Any, mine: Any, random: Any, move: Any) -> float:
    """Give a random cluster another type, all equally likely; ``mine`` has ``types`` int64[1]."""
    if mine.types[0] < 2:
        return STAY
    cluster = np.int64(world.live[below(random, world.counters[LIVE])])
    new = below(random, mine.types[0] - 1)
    old = np.int64(world.type[cluster])
    move.world, move.item, move.source, move.target = TYPES, cluster, old, new + (new >= old)
    return 1.0


@shared
def list_others(world: Any, mine: Any, one: int, two: int) -> int:
    """Write the members of the clusters of two items, without the two, to ``order``; return their number."""
    count = 0
    source = np.int64(world.label[one])
    for part in range(2):
        cluster = source if part == 0 else np.int64(world.label[two])
        if part == 1 and cluster == source:
            break
        for slot in range(world.start[cluster], world.start[cluster] + world.size[cluster]):
            item = world.members[slot]
            if item != one and item != two:
                mine.order[count] = item
                count += 1
    return count


@shared
def shift(world: Any, mine: Any, move: Any, item: int, target: int) -> None:
    """Move an item, and notify all templates."""
    source, last = np.int64(world.label[item]), mine.templates.shape[1] - 1
    if source == target:
        return
    move.item, move.source, move.target = item, source, target
    call(mine.apply[0, 0], mine.apply[0, 1])
    for k in range(mine.templates.shape[0]):
        if mine.templates[k, APPLIED] != 0:
            call(mine.templates[k, APPLIED], mine.templates[k, last])


@shared
def weigh_targets(mine: Any, move: Any, choice: Any) -> None:
    """Set ``out`` to what the current item adds to each of the targets, whose places are set."""
    last = mine.templates.shape[1] - 1
    for k in range(move.choices):
        choice.out[k] = 0.0
    for k in range(mine.templates.shape[0]):
        if mine.templates[k, GAINS] != 0:
            call(mine.templates[k, GAINS], mine.templates[k, last])


@shared
def weigh_two(world: Any, mine: Any, move: Any, choice: Any, item: int, first: int, second: int) -> None:
    """Set ``out`` to what an item adds to each of two clusters."""
    move.item, move.source, move.choices = item, np.int64(world.label[item]), 2
    choice.targets[0], choice.targets[1] = first, second
    choice.place[first], choice.place[second] = 1, 2
    weigh_targets(mine, move, choice)
    choice.place[first], choice.place[second] = 0, 0


@shared
def list_side(
    world: Any, mine: Any, move: Any, changes: Any, mover: int, count: int, source: int, side: int
) -> None:
    """Make the move the transfer of ``mover`` and of those in ``order`` that are on one side with it.

    All of them return to the source first.
    """
    move.changes = 0
    add_change(move, changes, mover, source, side)
    for k in range(count):
        if world.label[mine.order[k]] == side:
            add_change(move, changes, mine.order[k], source, side)
    drawn = move.changes
    for k in range(count):
        shift(world, mine, move, mine.order[k], source)
    shift(world, mine, move, mover, source)
    move.changes = drawn
    end_changes(move, changes)
