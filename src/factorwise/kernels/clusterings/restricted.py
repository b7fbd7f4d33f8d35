"""Split-merge with restricted Gibbs scans, the proposal of Jain and Neal.

Two items are drawn. If they are together, their cluster is split between them; if not, their clusters are
merged. For a split, a few Gibbs scans between the two sides improve a random *launch* allocation of the other
members, and one last scan makes the proposal, with known probability. A merge needs the probability with
which the same procedure would lead back, so it makes the same launch and forces the last scan to the current
clusters. The launch is the same in both directions and cancels.

``mine`` of this program has the arrays of guided splits in `jumps`; ``scans`` and ``types`` int64[1]; and
``home`` int32[n], scratch.

Implements: jain2004split, with items in ascending order inside a scan.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import spare_id
from factorwise.kernels.clusterings.jumps import list_others, list_side, move_all, shift, weigh_two
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import below, two_below, uniform


def draw_restricted(world: Any, mine: Any, random: Any, move: Any, changes: Any, choice: Any) -> float:
    """Draw a split or a merge; the ratio is that of the last scan and of the new cluster's type."""
    n = len(world.label)
    if n < 2:
        return STAY
    stays, mover = two_below(random, n)
    source, target = np.int64(world.label[mover]), np.int64(world.label[stays])
    splits = source == target
    count = list_others(world, mine, mover, stays)
    sort_ascending(mine.order, count)
    for k in range(count):
        mine.home[mine.order[k]] = world.label[mine.order[k]]
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
    if not splits:  # the last scan has restored all clusters
        move_all(world, move, changes, source, target)
        move.log_ratio = log_scan
        return 1.0
    list_side(world, mine, move, changes, mover, count, source, sides[1])
    move.log_ratio = -log_scan
    return 1.0


@shared
def sort_ascending(items: Any, count: int) -> None:
    """Sort the first ``count`` items by shell sort, in place and without another array."""
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
    """Allocate every item again, at random or, if ``forced``, to its current cluster.

    Return the log-probability.
    """
    total = 0.0
    for k in range(count):
        item = mine.order[k]
        weigh_two(world, mine, move, choice, item, sides[0], sides[1])
        lead = choice.out[1] - choice.out[0]
        log_second = -math.log1p(math.exp(-lead)) if lead > 0.0 else lead - math.log1p(math.exp(lead))
        if forced:
            second = mine.home[item] == sides[1]
        else:
            second = uniform(random) < math.exp(log_second)
        total += log_second if second else log_second - lead
        shift(world, mine, move, item, sides[1] if second else sides[0])
    return total
