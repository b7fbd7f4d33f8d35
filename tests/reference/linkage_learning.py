"""SampleRank on clusterings of linked items, from statistics and B-cubed of whole clusterings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from factorwise.rng import Stream
from reference.linkage import Cluster, Linked

TIE = 1e-9


@dataclass
class Lesson:
    """What is learned, and from what; ``levels`` of a pair are by its items, the smaller first."""

    levels: Mapping[tuple[int, int], Sequence[int]]
    offset: Sequence[int]
    entity: Sequence[int]
    cap: float
    margin: float
    temperature: float
    own: float
    weights: list[float]
    gradient: list[float] = field(default_factory=list)
    direction: list[float] = field(default_factory=list)
    visited: list[list[float]] = field(default_factory=list)
    updates: int = 0
    misranked: int = 0
    accepted: int = 0


def statistics(lesson: Lesson, clusters: Sequence[Cluster]) -> list[float]:
    """Count what the weights stand for: unlinked pairs, clusters, linked pairs, and levels."""
    counts = [0.0] * len(lesson.weights)
    counts[1] = len(clusters)
    for members in clusters:
        for place, one in enumerate(members):
            for two in members[:place]:
                levels = lesson.levels.get((min(one, two), max(one, two)))
                counts[0 if levels is None else 2] += 1
                for start, level in zip(lesson.offset, levels or (), strict=False):
                    if level > 0:
                        counts[start + level - 1] += 1
    return counts


def b_cubed(entity: Sequence[int], clusters: Sequence[Cluster]) -> tuple[float, float]:
    """Return precision and recall, each summed over the items whose entity is known."""
    precision = recall = 0.0
    for members in clusters:
        known = [entity[item] for item in members if entity[item] >= 0]
        precision += sum(known.count(label) / len(known) for label in known)
        recall += sum(known.count(label) / list(entity).count(label) for label in known)
    return precision, recall


def truth_gain(entity: Sequence[int], before: Sequence[Cluster], after: Sequence[Cluster]) -> float:
    """Return the change of B-cubed F1 times the known items, by its slopes in precision and recall."""
    (precision, recall), (new_precision, new_recall) = b_cubed(entity, before), b_cubed(entity, after)
    both = (precision + recall) ** 2
    by_precision, by_recall = 2.0 * recall**2 / both, 2.0 * precision**2 / both
    gain = by_precision * (new_precision - precision) + by_recall * (new_recall - recall)
    return 0.0 if abs(gain) < TIE else gain


def learning_walk(world: Linked, lesson: Lesson, stream: Stream, steps: int) -> None:
    """Walk ``steps`` steps; ``visited`` takes the weights that each began with."""
    for _ in range(steps):
        lesson.visited.append(list(lesson.weights))
        item = stream.below(len(world.links))
        home, links = world.home(item), world.links[item]
        target: Cluster = []
        if links and stream.uniform() >= lesson.own:
            target = world.home(links[stream.below(len(links))][0])
        if target is home or (len(home) == 1 and not target):
            continue
        after = world.relocated(item, target)
        pairs = zip(statistics(lesson, after), statistics(lesson, world.clusters), strict=True)
        lesson.gradient = gradient = [new - old for new, old in pairs]
        lesson.direction, norm = aim(lesson)
        score = sum(weight * change for weight, change in zip(lesson.weights, gradient, strict=True))
        gain = truth_gain(lesson.entity, world.clusters, after)
        if gain != 0.0 and norm > 0.0:
            score += _correct(lesson, norm, score, gain)
        if math.log(1.0 - stream.uniform()) < score / lesson.temperature:
            lesson.accepted += 1
            world.leave(item)
            if target:
                world.join(item, target)


def aim(lesson: Lesson) -> tuple[list[float], float]:
    """Return the gradient in the steps between levels, taken back to levels, and its squared length."""
    direction = list(lesson.gradient[:3])
    norm = sum(change * change for change in direction)
    ends = [*lesson.offset[1:], len(lesson.gradient)]
    for start, end in zip(lesson.offset, ends, strict=True):
        steps = [sum(lesson.gradient[level:end]) for level in range(start, end)]
        norm += sum(step * step for step in steps)
        direction += [sum(steps[: place + 1]) for place in range(len(steps))]
    return direction, norm


def _correct(lesson: Lesson, norm: float, score: float, gain: float) -> float:
    """Change the weights if they rank a move wrongly or by too little; return the change of its score."""
    sign = math.copysign(1.0, gain)
    lesson.misranked += sign * score < TIE
    lacking = lesson.margin * abs(gain) - sign * score
    if lacking <= TIE:
        return 0.0
    step = sign * min(lesson.cap, lacking / norm)
    lesson.weights = [w + step * d for w, d in zip(lesson.weights, lesson.direction, strict=True)]
    lesson.updates += 1
    return step * norm
