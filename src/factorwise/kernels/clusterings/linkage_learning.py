"""SampleRank on clusterings of linked items: weights of pair levels from how single moves change B-cubed.

Every link has a level in each comparison (level 0: nothing to compare, evidence of nothing). A move of one
item changes the statistics by the levels of its links into the new cluster minus those into the old one, and
the truth says whether it is for the better; a move that the weights rank the other way corrects them.
Implements: wick2009samplerank, Alg. 1, with passive-aggressive updates.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.linkage import ALONE, LinkArrays, join, leave
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel
from factorwise.kernels.compile.random import random_below, random_uniform

APART_WEIGHT, CLUSTER_WEIGHT, LINK_WEIGHT, FIXED_WEIGHTS = range(4)
STEPS, UPDATES, MISRANKED, ACCEPTED = range(4)
PRECISION, RECALL = range(2)
CAP, MARGIN, TEMPERATURE, OWN = range(4)
TIE = 1e-9  # what differs by less differs by rounding


class LessonArrays(NamedTuple):
    """What is learned, and from what.

    pair : int32[links], level : uint8[pairs, comparisons], offset : int64[comparisons]
        The pair that a link belongs to, its levels, and where the weights of a comparison start: level k > 0
        has the weight at ``offset + k - 1``.
    weights, drift : float64[W]
        The weights; the sum over updates of the number of their step times their change, so that the mean
        of the weights that the steps began with is ``weights - drift / steps``.
    gradient, direction : float64[W]
        Scratch: how a move changes the statistics, and where an update takes the weights.
    entity : int32[n], entity_start : int64[entities + 1], entity_item : int32[known]
        True entity of each item, -1 where it is not known, and the items of each entity.
    known, squares : int64[n]
        By cluster: members whose entity is known, and the sum over entities of their squared number.
    sums : float64[2]
        B-cubed precision and recall summed over known items.
    settings : float64[4]
        ``CAP`` on the multiple of a gradient, ``MARGIN`` wanted for a gain of one, ``TEMPERATURE`` of the
        walk, and how often a cluster of its ``OWN`` is proposed.
    tally : int64[4]
        Steps, updates, misranked pairs of worlds, accepted moves.
    """

    pair: NDArray[np.int32]
    level: NDArray[np.uint8]
    offset: NDArray[np.int64]
    weights: NDArray[np.float64]
    drift: NDArray[np.float64]
    gradient: NDArray[np.float64]
    direction: NDArray[np.float64]
    entity: NDArray[np.int32]
    entity_start: NDArray[np.int64]
    entity_item: NDArray[np.int32]
    known: NDArray[np.int64]
    squares: NDArray[np.int64]
    sums: NDArray[np.float64]
    settings: NDArray[np.float64]
    tally: NDArray[np.int64]


@hot
def _add_links(links: LinkArrays, lesson: LessonArrays, item: int, label: int, sign: float) -> int:
    """Add the levels of an item's links into a cluster to the gradient; return how many links there are."""
    count = 0
    for k in range(links.start[item], links.start[item + 1]):
        if links.label[links.neighbor[k]] == label:
            count += 1
            row = lesson.pair[k]
            for c in range(lesson.level.shape[1]):
                level = lesson.level[row, c]
                if level > 0:
                    lesson.gradient[lesson.offset[c] + level - 1] += sign
    lesson.gradient[LINK_WEIGHT] += sign * count
    return count


@hot
def _of_entity(links: LinkArrays, lesson: LessonArrays, item: int, label: int) -> int:
    """Return how many items of an item's entity a cluster has."""
    count = 0
    entity = lesson.entity[item]
    for k in range(lesson.entity_start[entity], lesson.entity_start[entity + 1]):
        count += links.label[lesson.entity_item[k]] == label
    return count


@inner
def truth_gain(
    links: LinkArrays, lesson: LessonArrays, item: int, target: int, change: NDArray[np.float64]
) -> float:
    """Return what moving an item does to B-cubed F1, times the known items and to first order.

    ``change`` takes the changes of precision and recall, summed over items.
    """
    change[:] = 0.0
    if lesson.entity[item] < 0:
        return 0.0
    entity = lesson.entity[item]
    home = links.label[item]
    here = _of_entity(links, lesson, item, home)
    there = 0
    change[PRECISION] -= lesson.squares[home] / lesson.known[home]
    if lesson.known[home] > 1:
        change[PRECISION] += (lesson.squares[home] - 2 * here + 1) / (lesson.known[home] - 1)
    if target == ALONE:
        change[PRECISION] += 1.0
    else:
        there = _of_entity(links, lesson, item, target)
        if lesson.known[target] > 0:
            change[PRECISION] -= lesson.squares[target] / lesson.known[target]
        change[PRECISION] += (lesson.squares[target] + 2 * there + 1) / (lesson.known[target] + 1)
    size = lesson.entity_start[entity + 1] - lesson.entity_start[entity]
    change[RECALL] = 2.0 * (there + 1 - here) / size
    precision, recall = lesson.sums[PRECISION], lesson.sums[RECALL]
    slopes = recall * recall * change[PRECISION] + precision * precision * change[RECALL]
    gain = 2.0 * slopes / (precision + recall) ** 2
    return 0.0 if abs(gain) < TIE else gain


@hot
def _take(links: LinkArrays, lesson: LessonArrays, item: int, target: int) -> None:
    """Move an item, keeping what is known by cluster; clusters may change their names."""
    home = links.label[item]
    known = lesson.entity[item] >= 0
    count, squares = lesson.known[home], lesson.squares[home]
    if known:
        squares += 1 - 2 * _of_entity(links, lesson, item, home)
        count -= 1
    other = links.after[item]
    there = 0
    if known and target != ALONE:
        there = _of_entity(links, lesson, item, target)
    leave(links, item)
    if other != item:
        left = links.label[other]
        lesson.known[left], lesson.squares[left] = count, squares
    lesson.known[item] = lesson.squares[item] = 1 if known else 0
    if target != ALONE:
        join(links, item, target)
        if known:
            lesson.known[target] += 1
            lesson.squares[target] += 2 * there + 1


@inner
def aim(lesson: LessonArrays) -> float:
    """Set the direction of an update, and return by how much one multiple of it changes the score.

    A level is taken for the sum of steps from each level to the next, and the steps are what is corrected:
    levels next to the one that was seen move with it. In terms of the steps the gradient counts the pairs of
    each level and above, and the weight of a level changes by the sum of the steps up to it.
    """
    gradient, direction = lesson.gradient, lesson.direction
    norm = 0.0
    for w in range(FIXED_WEIGHTS):
        direction[w] = gradient[w]
        norm += gradient[w] * gradient[w]
    for c in range(len(lesson.offset)):
        first = lesson.offset[c]
        last = lesson.offset[c + 1] if c + 1 < len(lesson.offset) else len(gradient)
        above = 0.0
        for w in range(last - 1, first - 1, -1):
            above += gradient[w]
            direction[w] = above
            norm += above * above
        for w in range(first + 1, last):
            direction[w] += direction[w - 1]
    return norm


@lean_kernel
def learning_walk(
    links: LinkArrays,
    lesson: LessonArrays,
    state: NDArray[np.uint64],
    steps: int,
    change: NDArray[np.float64],
) -> None:
    """Walk ``steps`` steps of SampleRank: a random item to the cluster of a linked one or to its own."""
    n = len(links.label)
    weights, gradient = lesson.weights, lesson.gradient
    for _ in range(steps):
        lesson.tally[STEPS] += 1
        item = random_below(state, n)
        home = links.label[item]
        alone = links.after[item] == item
        degree = links.start[item + 1] - links.start[item]
        target = ALONE
        if degree > 0 and random_uniform(state) >= lesson.settings[OWN]:
            target = links.label[links.neighbor[links.start[item] + random_below(state, degree)]]
        if target == home or (alone and target == ALONE):
            continue
        gradient[:] = 0.0
        apart = 0
        if target != ALONE:
            joined = _add_links(links, lesson, item, target, 1.0)
            apart += links.total[target] - joined
        if not alone:
            left = _add_links(links, lesson, item, home, -1.0)
            apart -= links.total[home] - 1 - left
        gradient[APART_WEIGHT] = apart
        gradient[CLUSTER_WEIGHT] = (1.0 if target == ALONE else 0.0) - (1.0 if alone else 0.0)
        score, norm = 0.0, aim(lesson)
        for w in range(len(weights)):
            score += weights[w] * gradient[w]
        gain = truth_gain(links, lesson, item, target, change)
        if gain != 0.0 and norm > 0.0:
            sign = 1.0 if gain > 0.0 else -1.0
            lead = sign * score
            if lead < TIE:
                lesson.tally[MISRANKED] += 1
            lacking = lesson.settings[MARGIN] * abs(gain) - lead
            if lacking > TIE:
                step = sign * min(lesson.settings[CAP], lacking / norm)
                for w in range(len(weights)):
                    weights[w] += step * lesson.direction[w]
                    lesson.drift[w] += step * lesson.direction[w] * lesson.tally[STEPS]
                score += step * norm
                lesson.tally[UPDATES] += 1
        if math.log(1.0 - random_uniform(state)) < score / lesson.settings[TEMPERATURE]:
            _take(links, lesson, item, target)
            lesson.sums[PRECISION] += change[PRECISION]
            lesson.sums[RECALL] += change[RECALL]
            lesson.tally[ACCEPTED] += 1
