"""Moves along links: the clusters that an item chooses among, and splits and merges of linked clusters.

A split starts from two linked members and allocates the others one by one, in random order, to one of the two
sides with the odds that the items allocated so far give. The ratio of a merge includes the probability that
such an allocation would produce the two clusters. This follows sequentially allocated merges and splits
(dahl2005sequentially), except that the first two items are drawn along a link.

``mine`` of these programs:

start, neighbor : int64[n + 1], int32[2 pairs]
    The other items of the links of item i are at ``start[i]`` to ``start[i + 1] - 1``.
graph : int64[1]
    Address of the neighbors, by which templates of the same links are recognised.
turn : int64[2]
    Position of the next item; number of targets offered so far.
strict : int64[1]
    1: leave exp(score / temperature) invariant. 0: search, which allows moves that a sampler must not make.

and of Gibbs steps:

items : int32[.]
    The items that take steps; empty for all of the world, or of its shard.

and of splits and merges:

apply, templates, order
    As for guided splits in `jumps`, with the ``sides`` of templates before their contexts.
pairwise : int64[1]
    1 if all templates have ``sides``: their scores are then sums over the pairs of a cluster plus a number
    for each cluster, so the gain of a split is known when it has been allocated.
home : int32[n]
    Scratch: the cluster of each allocated item in the current world.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import FIRST_ID, spare_id
from factorwise.kernels.clusterings.choices import begin_choice, offer
from factorwise.kernels.clusterings.jumps import (
    list_others,
    list_side,
    move_all,
    shift,
    weigh_targets,
    weigh_two,
)
from factorwise.kernels.clusterings.links import links_of, neighbor_label
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import (
    add_change,
    below,
    end_changes,
    take_shares,
    tempered,
    uniform,
)

AT, OFFERED = range(2)
SIDES, CONTEXT = range(2, 4)  # columns of the table of templates
LARGE = 100  # splits and merges of more items are skipped with some probability


def offer_linked(world: Any, mine: Any, move: Any, choice: Any) -> float:
    """Offer the next item its own cluster, an empty one, and those of its links.

    Clusters in other shards are not offered.

    An item without a link into its own cluster could not come back by such a step, so with ``strict`` it
    stays.
    """
    turns = len(mine.items) if len(mine.items) > 0 else len(world.items)
    turn = mine.turn[AT]
    item = mine.items[turn] if len(mine.items) > 0 else world.items[turn]
    mine.turn[AT] = turn + 1 if turn + 1 < turns else 0
    begin_choice(world, move, item)
    home, low, ids = move.source, world.counters[FIRST_ID], len(world.live)
    alone = world.size[home] == 1
    offer(move, choice, home)
    if not alone:
        offer(move, choice, spare_id(world, 0))
    move.graph = mine.graph[0]
    fixed = move.choices
    count = fixed
    returns = alone
    first = np.uint64(mine.start[item])
    for at in links_of(mine, item):
        cluster = neighbor_label(world, mine, at)
        k = choice.place[np.uint32(cluster)]
        if k == 0 and cluster >= low and cluster < low + ids:
            choice.targets[np.uint32(count)] = cluster
            count += 1
            k = np.int32(count)
            choice.place[np.uint32(cluster)] = k
        choice.linked[at - first] = k
        returns |= k == 1
    move.choices = count
    mine.turn[OFFERED] += count - fixed
    if (mine.strict[0] != 0 and not returns) or move.choices == 1:
        for k in range(move.choices):
            choice.place[choice.targets[k]] = 0
        return STAY
    return 1.0


def draw_linked_jump(world: Any, mine: Any, random: Any, move: Any, changes: Any, choice: Any) -> float:
    """Draw a link of a random item, and split the cluster of its two ends or merge their two.

    Moves of more than ``LARGE`` items are skipped with a probability that limits their cost, and that is the
    same for a split and for the merge that would undo it.
    """
    one = np.int64(world.items[below(random, len(world.items))])
    degree = mine.start[one + 1] - mine.start[one]
    if degree == 0:
        return STAY
    two = np.int64(mine.neighbor[mine.start[one] + below(random, degree)])
    first, second = np.int64(world.label[one]), np.int64(world.label[two])
    low = world.counters[FIRST_ID]
    if second < low or second >= low + len(world.live):
        return STAY
    splits = first == second
    if not splits and mine.strict[0] == 0:
        mine.turn[OFFERED] += 1
        merge_whole(world, mine, move, changes, choice, first, second)
        return 1.0
    union = np.int64(world.size[first])
    if not splits:
        union += np.int64(world.size[second])
    if union > LARGE and below(random, union) >= LARGE:
        return STAY
    count = list_others(world, mine, one, two)
    for k in range(count - 1):
        other = k + below(random, count - k)
        mine.order[k], mine.order[other] = mine.order[other], mine.order[k]
    mine.turn[OFFERED] += 2 * count
    if mine.pairwise[0] != 0:
        log_chance = allocate_sides(world, mine, random, move, changes, choice, one, two, count, splits)
    else:
        log_chance = allocate_clusters(world, mine, random, move, changes, choice, one, two, count, splits)
    if mine.strict[0] != 0:
        move.log_ratio = -log_chance if splits else log_chance
    return 1.0


@shared
def log_share(mine: float, other: float) -> float:
    """Return the log of exp(mine) / (exp(mine) + exp(other))."""
    if mine == -math.inf:
        return -math.inf
    if other <= mine:
        return -math.log1p(math.exp(other - mine))
    return mine - other - math.log1p(math.exp(mine - other))


@shared
def weigh_sides(mine: Any, move: Any, choice: Any, item: int) -> None:
    """Set ``out`` to what an item adds to either side."""
    move.item = item
    choice.out[0], choice.out[1] = 0.0, 0.0
    for k in range(mine.templates.shape[0]):
        call(mine.templates[k, SIDES], mine.templates[k, CONTEXT])


@shared
def allocate_sides(
    world: Any,
    mine: Any,
    random: Any,
    move: Any,
    changes: Any,
    choice: Any,
    one: int,
    two: int,
    count: int,
    splits: bool,
) -> float:
    """Allocate items in ``world.side`` only; set the changes and their gain; return the log-probability.

    During calls of ``sides``, ``choice.targets`` has the sizes of the two sides. What an item would have
    added to the other side, summed over all items, is the gain of joining the two sides.
    """
    source, target = np.int64(world.label[one]), np.int64(world.label[two])
    choice.targets[0], choice.targets[1] = 0, 0
    weigh_sides(mine, move, choice, one)
    each = choice.out[0]  # contribution of the first item of a cluster
    world.side[one], choice.targets[0] = 1, 1
    weigh_sides(mine, move, choice, two)
    across = choice.out[0]
    world.side[two], choice.targets[1] = 2, 1
    log_chance = 0.0
    for k in range(count):
        item = mine.order[k]
        weigh_sides(mine, move, choice, item)
        first, second = choice.out[0], choice.out[1]
        log_first = log_share(tempered(first, move.temperature), tempered(second, move.temperature))
        joins_first = uniform(random) < math.exp(log_first) if splits else world.label[item] == source
        if joins_first:
            world.side[item] = 1
            choice.targets[0] += 1
            across += second
            log_chance += log_first
        else:
            world.side[item] = 2
            choice.targets[1] += 1
            across += first
            log_chance += log_share(tempered(second, move.temperature), tempered(first, move.temperature))
    move.known = 1
    if splits:
        move.gain = each - across
        fewer = 1 if choice.targets[0] < choice.targets[1] else 2
        empty = spare_id(world, 0)
        move.changes = 0
        if world.side[one] == fewer:
            add_change(move, changes, one, source, empty)
        if world.side[two] == fewer:
            add_change(move, changes, two, source, empty)
        for k in range(count):
            if world.side[mine.order[k]] == fewer:
                add_change(move, changes, mine.order[k], source, empty)
        end_changes(move, changes)
    else:
        move.gain = across - each
        move_all(world, move, changes, source, target)
    for k in range(count):
        world.side[mine.order[k]] = 0
    world.side[one], world.side[two] = 0, 0
    return log_chance


@shared
def merge_whole(
    world: Any, mine: Any, move: Any, changes: Any, choice: Any, source: int, target: int
) -> None:
    """Make the move the merge of two clusters, for searches, which need no way back."""
    if world.size[source] > world.size[target]:
        source, target = target, source
    if mine.pairwise[0] != 0:
        start = world.start[source]
        empty = spare_id(world, 0)
        move.item, move.source, move.choices = world.members[start], source, 2
        choice.targets[0], choice.targets[1] = target, empty
        choice.place[target], choice.place[empty] = 1, 2
        weigh_targets(mine, move, choice)
        gain = choice.out[0] - choice.out[1]  # minus the contribution of a cluster
        choice.place[empty] = 0
        move.choices = 1
        for slot in range(start + 1, start + world.size[source]):
            move.item = world.members[slot]
            weigh_targets(mine, move, choice)
            gain += choice.out[0]
        choice.place[target] = 0
        move.gain, move.known = gain, 1
    move_all(world, move, changes, source, target)


@shared
def allocate_clusters(
    world: Any,
    mine: Any,
    random: Any,
    move: Any,
    changes: Any,
    choice: Any,
    one: int,
    two: int,
    count: int,
    splits: bool,
) -> float:
    """Allocate items for templates of any kind, by moving all members out and then to one of two clusters.

    The world is restored, and the loop computes the gain of the changes. Return the log-probability.
    """
    source, target = np.int64(world.label[one]), np.int64(world.label[two])
    first, second, waiting = source, target, source
    if splits:
        first = spare_id(world, 0)
        shift(world, mine, move, one, first)
        second = spare_id(world, 0)
        shift(world, mine, move, two, second)
    elif count > 0:
        waiting = spare_id(world, 0)
        for k in range(count):
            mine.home[k] = world.label[mine.order[k]]
            shift(world, mine, move, mine.order[k], waiting)
    log_chance = 0.0
    for k in range(count):
        item = mine.order[k]
        weigh_two(world, mine, move, choice, item, first, second)
        here, there = tempered(choice.out[0], move.temperature), tempered(choice.out[1], move.temperature)
        log_first = log_share(here, there)
        joins_first = uniform(random) < math.exp(log_first) if splits else mine.home[k] == first
        log_chance += log_first if joins_first else log_share(there, here)
        shift(world, mine, move, item, first if joins_first else second)
    if not splits:
        move_all(world, move, changes, source, target)
        return log_chance
    # leaves the first side last, so that the id of the second is the next new one again
    mine.order[count] = one
    list_side(world, mine, move, changes, two, count + 1, source, second)
    return log_chance


def choose_home(mine: Any, move: Any, choice: Any) -> int:
    """Stay in the current cluster and record the probability of that in ``chances`` float32[n]."""
    home = choice.place[move.source] - 1
    total = take_shares(choice.share, choice.out, move.choices, tempered(1.0, move.temperature), -1)
    mine.chances[move.item] = choice.share[home] / total
    return home
