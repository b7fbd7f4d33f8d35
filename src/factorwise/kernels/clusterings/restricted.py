"""Split-merge with restricted Gibbs scans, the proposal of Jain and Neal.

Two items are drawn. If they are together, their cluster is split between them; if not, their clusters are
merged. A split is not blind: from a random *launch* allocation of the other members to the two sides, a few
Gibbs scans between the two sides lead to a sensible one, and one last scan makes the proposal, with known
probability. A merge needs the probability with which the same procedure would have led back, so it makes the
same launch and forces the last scan to the present clusters. The launch is made alike in both directions and
cancels.

``mine`` of this program: ``apply`` int64[1, 2], what moves an item; ``templates`` int64[k, 3], the ``gains``
and ``applied`` of the model's templates and their contexts; ``scans`` and ``types`` int64[1]; ``order``
int32[n] and ``home`` int32[n], scratch.

Implements: jain2004split, with items in ascending order inside a scan.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import spare_id
from factorwise.kernels.clusterings.jumps import add_change, end_changes, move_all
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import below, uniform

GAINS, APPLIED, CONTEXT = range(3)


def draw_restricted(world: Any, mine: Any, random: Any, move: Any, changes: Any, choice: Any) -> float:
    """Draw a split or a merge; the ratio is that of the last scan and of the new cluster's type."""
    n = len(world.label)
    if n < 2:
        return STAY
    stays = below(random, n)
    mover = below(random, n - 1)
    mover += mover >= stays
    source, target = np.int64(world.label[mover]), np.int64(world.label[stays])
    splits = source == target
    count = list_others(world, mine, source, target, stays, mover)
    sides = (target, source)
    if splits:
        sides = (target, spare_id(world, below(random, mine.types[0])))
        shift(world, mine, move, mover, sides[1])
    for k in range(count):
        side = sides[1] if uniform(random) < 0.5 else sides[0]
        shift(world, mine, move, mine.order[k], side)
    for _ in range(mine.scans[0]):
        scan(world, mine, random, move, choice, count, sides, False)
    log_scan = scan(world, mine, random, move, choice, count, sides, not splits)
    log_scan -= math.log(mine.types[0])
    if not splits:  # the last scan has put everybody back
        move_all(world, move, changes, source, target)
        move.log_ratio = log_scan
        return 1.0
    move.changes = 0
    add_change(move, changes, mover, source, sides[1])
    for k in range(count):
        if world.label[mine.order[k]] == sides[1]:
            add_change(move, changes, mine.order[k], source, sides[1])
    drawn = move.changes
    for k in range(count):
        shift(world, mine, move, mine.order[k], source)
    shift(world, mine, move, mover, source)
    move.changes = drawn
    end_changes(move, changes)
    move.log_ratio = -log_scan
    return 1.0


@shared
def list_others(world: Any, mine: Any, source: int, target: int, stays: int, mover: int) -> int:
    """List the members of one or two clusters without the two drawn, ascending, and where each is at home."""
    count = 0
    for part in range(2):
        cluster = source if part == 0 else target
        if part == 1 and source == target:
            break
        for slot in range(world.start[cluster], world.start[cluster] + world.size[cluster]):
            item = world.members[slot]
            if item != stays and item != mover:
                mine.order[count] = item
                mine.home[item] = cluster
                count += 1
    sort_ascending(mine.order, count)
    return count


@shared
def sort_ascending(items: Any, count: int) -> None:
    """Sort the first ``count`` items by shell sort: in place, without an array."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, count):
            item, at = items[k], k
            while at >= gap and items[at - gap] > item:
                items[at] = items[at - gap]
                at -= gap
            items[at] = item
        gap //= 3


@shared
def shift(world: Any, mine: Any, move: Any, item: int, target: int) -> None:
    """Move an item, and let all templates know."""
    source = world.label[item]
    if source == target:
        return
    move.item, move.source, move.target = item, source, target
    call(mine.apply[0, 0], mine.apply[0, 1])
    for k in range(mine.templates.shape[0]):
        if mine.templates[k, APPLIED] != 0:
            call(mine.templates[k, APPLIED], mine.templates[k, CONTEXT])


@shared
def lead_of(world: Any, mine: Any, move: Any, choice: Any, item: int, sides: tuple[int, int]) -> float:
    """By how much an item scores higher on the second side than on the first."""
    move.item, move.source, move.choices = item, world.label[item], 2
    for k in range(2):
        choice.targets[k], choice.out[k] = sides[k], 0.0
        choice.place[sides[k]] = k + 1
    for k in range(mine.templates.shape[0]):
        if mine.templates[k, GAINS] != 0:
            call(mine.templates[k, GAINS], mine.templates[k, CONTEXT])
    for k in range(2):
        choice.place[sides[k]] = 0
    return choice.out[1] - choice.out[0]


@shared
def scan(
    world: Any,
    mine: Any,
    random: Any,
    move: Any,
    choice: Any,
    count: int,
    sides: tuple[int, int],
    forced: bool,
) -> float:
    """Place every item anew in turn, at random or, if ``forced``, at home; return the log-probability."""
    total = 0.0
    for k in range(count):
        item = mine.order[k]
        lead = lead_of(world, mine, move, choice, item, sides)
        log_second = -math.log1p(math.exp(-lead)) if lead > 0.0 else lead - math.log1p(math.exp(lead))
        if forced:
            second = mine.home[item] == sides[1]
        else:
            second = uniform(random) < math.exp(log_second)
        total += log_second if second else log_second - lead
        shift(world, mine, move, item, sides[1] if second else sides[0])
    return total
