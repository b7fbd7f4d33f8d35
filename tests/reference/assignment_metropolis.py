"""Metropolis-Hastings for assignments, from the definition: every candidate world is scored as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence

from factorwise.rng import Stream
from reference.assignment_gains import local_scores, pick_position, total_score
from reference.assignment_sweeps import Problem


def metropolis_steps(
    problem: Problem,
    stream: Stream,
    values: list[int],
    components: Sequence[tuple[str, float, float]],
    temperature: float,
    steps: int,
) -> int:
    """Propose, weigh, decide; a component is ("uniform", "local" or "swap", weight, sharpness)."""
    accepted = 0
    for _ in range(steps):
        after = _proposed(problem, stream, values, components)
        chance = stream.uniform()
        if after is None:
            continue
        then = total_score(after, problem.graph, problem.counts)
        now = total_score(values, problem.graph, problem.counts)
        if then == -math.inf:
            continue
        forward = _probability(problem, values, after, components)
        backward = _probability(problem, after, values, components)
        if backward == 0.0:
            continue
        ratio = math.inf if now == -math.inf else (then - now) / temperature + math.log(backward / forward)
        if chance < math.exp(min(0.0, ratio)):
            values[:] = after
            accepted += 1
    return accepted


def _offered(problem: Problem, values: Sequence[int], kind: str) -> bool:
    if kind == "swap":
        return any(len({values[variable] for variable in pool}) > 1 for pool in problem.pools)
    return len(problem.movable) > 0


def _proposed(
    problem: Problem, stream: Stream, values: list[int], components: Sequence[tuple[str, float, float]]
) -> list[int] | None:
    kind, _, sharpness = components[0]
    if len(components) > 1:
        offered = [c for c in components if _offered(problem, values, c[0])]
        weights = [math.log(weight) for _, weight, _ in offered]
        kind, _, sharpness = offered[pick_position(stream.uniform(), weights)]
    after = list(values)
    if kind == "swap":
        members = [(number, variable) for number, pool in enumerate(problem.pools) for variable in pool]
        number, first = members[stream.below(len(members))]
        partners = [variable for variable in problem.pools[number] if variable != first]
        second = partners[stream.below(len(partners))]
        after[first], after[second] = values[second], values[first]
    else:
        variable = problem.movable[stream.below(len(problem.movable))]
        others = [k for k in range(int(problem.graph.cardinality[variable])) if k != values[variable]]
        if kind == "uniform":
            after[variable] = others[stream.below(len(others))]
        else:
            scores = local_scores(values, problem.graph, problem.counts, variable)
            label = pick_position(stream.uniform(), [sharpness * s for s in scores], values[variable])
            after[variable] = label if label >= 0 else values[variable]
    return None if after == values else after


def _probability(
    problem: Problem,
    before: Sequence[int],
    after: Sequence[int],
    components: Sequence[tuple[str, float, float]],
) -> float:
    """Probability of proposing ``after`` in ``before``, summed over the components that can."""
    offered = [c for c in components if len(components) == 1 or _offered(problem, before, c[0])]
    changed = [variable for variable in range(len(before)) if before[variable] != after[variable]]
    total = 0.0
    for kind, weight, sharpness in offered:
        if kind == "swap" and len(changed) == 2:
            pool = next(pool for pool in problem.pools if changed[0] in pool)
            total += weight * 2.0 / sum(map(len, problem.pools)) / (len(pool) - 1)
        elif kind == "uniform" and len(changed) == 1:
            others = int(problem.graph.cardinality[changed[0]]) - 1
            total += weight / len(problem.movable) / others
        elif kind == "local" and len(changed) == 1:
            scores = local_scores(before, problem.graph, problem.counts, changed[0])
            top = max(scores)
            chances = [math.exp(sharpness * (score - top)) for score in scores]
            rest = sum(chance for label, chance in enumerate(chances) if label != before[changed[0]])
            total += weight / len(problem.movable) * chances[after[changed[0]]] / rest
    return total / sum(weight for _, weight, _ in offered)
