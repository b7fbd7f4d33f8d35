"""Metropolis-Hastings for assignments: the loop, drawing as the plain form does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.assignments.assignment_gains import (
    Codes,
    CountedFactors,
    Float64s,
    Int64s,
    LocalFactors,
    TouchedFactors,
    TouchedScore,
    add_touched,
    assign,
    local_scores,
    log_add,
    log_sum_without,
    pair_score,
    pick_position,
    score_gain,
    touched_gain,
    two_scores,
)
from factorwise.kernels.compile.compiler import fast_kernel, inlined
from factorwise.kernels.compile.random import random_below, random_uniform

UNIFORM, LOCAL, SWAP = 0, 1, 2


class Pools(NamedTuple):
    """Variables that may exchange labels, and how many different labels each pool has now.

    start : int64[pools + 1]
        Pool ``p`` has the variables ``member[start[p]:start[p + 1]]``.
    member : int64[members]
    pool_of : int64[variables]
        The pool of each variable, -1 for none.
    label_start : int64[pools]
        Where the label counts of each pool begin.
    label_count : int64[labels of all pools]
    present : int64[pools]
        Number of labels that occur.
    varied : int64[1]
        Number of pools in which two labels or more occur.
    """

    start: Int64s
    member: Int64s
    pool_of: Int64s
    label_start: Int64s
    label_count: Int64s
    present: Int64s
    varied: Int64s


class Components(NamedTuple):
    """What Metropolis-Hastings proposes.

    kind : int64[components]
        UNIFORM, LOCAL or SWAP.
    weight, sharpness : float64[components]
    mixed : bool
        Whether the component is drawn, rather than being the only one.
    """

    kind: Int64s
    weight: Float64s
    sharpness: Float64s
    mixed: bool


@fast_kernel
def metropolis_steps(
    state: NDArray[np.uint64],
    values: Codes,
    local: LocalFactors,
    counted: CountedFactors,
    touched_score: TouchedScore,
    touched: TouchedFactors,
    movable: Int64s,
    cardinality: Int64s,
    components: Components,
    pools: Pools,
    scale: float,
    steps: int,
    scores: Float64s,
    weights: Float64s,
) -> tuple[int, float]:
    """Propose, weigh, decide; gains count ``scale`` times, one over the temperature.

    ``values``, the counts, the pools and the random ``state`` change in place. Returns how many steps
    changed the world, and the total gain of score.
    """
    accepted_steps = 0
    total = 0.0
    informed = False
    for kind in components.kind:
        informed = informed or kind == LOCAL
    for _ in range(steps):
        component = 0
        if components.mixed:
            component = _drawn_component(state, components, len(movable), pools.varied[0])
        kind = components.kind[component] if component >= 0 else -1
        variable = -1
        partner = -1
        new = -1
        if kind == SWAP:
            if len(pools.member) > 0:
                variable, partner = _drawn_pair(state, pools)
                if values[variable] == values[partner]:
                    partner = -1
        elif kind >= 0 and len(movable) > 0:
            variable = movable[random_below(state, len(movable))]
            labels = cardinality[variable]
            old = values[variable]
            if informed:
                local_scores(values, local, counted, variable, labels, scores)
                add_touched(values, touched_score, touched, variable, labels, scores)
            if kind == UNIFORM:
                new = random_below(state, labels - 1)
                if new >= old:
                    new += 1
            else:
                chance = random_uniform(state)
                new = pick_position(chance, scores, labels, components.sharpness[component], old, weights)
        chance = random_uniform(state)
        if partner >= 0:
            gain = _swapped(values, local, counted, touched_score, touched, variable, partner)
            if gain > -np.inf and chance < np.exp(min(0.0, scale * gain)):
                total += gain
                accepted_steps += 1
            else:
                _exchange(values, counted, variable, partner)
        elif new >= 0:
            old = values[variable]
            if informed:
                gain = score_gain(scores[new], scores[old])
                log_ratio = _log_ratio(components, pools, scores, variable, cardinality[variable], old, new)
            else:
                now, then = two_scores(values, local, counted, variable, old, new)
                gain = score_gain(then, now) + touched_gain(values, touched_score, touched, variable, new)
                log_ratio = _log_availability(components, pools, variable, old, new)
            refused = gain == -np.inf or log_ratio == -np.inf
            leaves = gain == np.inf  # out of a forbidden world, whatever the way back
            if leaves or (not refused and chance < np.exp(min(0.0, scale * gain + log_ratio))):
                assign(values, counted, variable, new)
                _recount(pools, variable, old, new)
                total += gain
                accepted_steps += 1
    return accepted_steps, total


@inlined
def _drawn_component(state: NDArray[np.uint64], components: Components, n_movable: int, varied: int) -> int:
    """Draw a component among those that have something to propose; -1 if none has."""
    rest = random_uniform(state) * _offered(components, n_movable, varied)
    chosen = -1
    for number in range(len(components.kind)):
        if varied > 0 if components.kind[number] == SWAP else n_movable > 0:
            chosen = number
            rest -= components.weight[number]
            if rest < 0.0:
                break
    return chosen


@inlined
def _offered(components: Components, n_movable: int, varied: int) -> float:
    """Return the total weight of the components that have something to propose."""
    total = 0.0
    for number in range(len(components.kind)):
        if varied > 0 if components.kind[number] == SWAP else n_movable > 0:
            total += components.weight[number]
    return total


@inlined
def _drawn_pair(state: NDArray[np.uint64], pools: Pools) -> tuple[int, int]:
    place = random_below(state, len(pools.member))
    pool = pools.pool_of[pools.member[place]]
    first = pools.start[pool]
    partner = first + random_below(state, pools.start[pool + 1] - first - 1)
    if partner >= place:
        partner += 1
    return pools.member[place], pools.member[partner]


@inlined
def _exchange(values: Codes, counted: CountedFactors, first: int, second: int) -> None:
    one = values[first]
    two = values[second]
    assign(values, counted, first, two)
    assign(values, counted, second, one)


@inlined
def _swapped(
    values: Codes,
    local: LocalFactors,
    counted: CountedFactors,
    touched_score: TouchedScore,
    touched: TouchedFactors,
    first: int,
    second: int,
) -> float:
    """Exchange two labels and return the gain."""
    before = pair_score(values, local, counted, first, second)
    one = values[first]
    two = values[second]
    gain = touched_gain(values, touched_score, touched, first, two)
    assign(values, counted, first, two)
    gain += touched_gain(values, touched_score, touched, second, one)
    assign(values, counted, second, one)
    return score_gain(pair_score(values, local, counted, first, second), before) + gain


@inlined
def _varied_after(pools: Pools, variable: int, old: int, new: int) -> int:
    """Return how many pools have two labels or more once ``variable`` has changed its label."""
    pool = pools.pool_of[variable]
    if pool < 0:
        return int(pools.varied[0])
    base = pools.label_start[pool]
    present = pools.present[pool]
    if pools.label_count[base + old] == 1:
        present -= 1
    if pools.label_count[base + new] == 0:
        present += 1
    return int(pools.varied[0] + (present > 1) - (pools.present[pool] > 1))


@inlined
def _recount(pools: Pools, variable: int, old: int, new: int) -> None:
    """Keep the label counts of the pools after ``variable`` has changed its label."""
    pool = pools.pool_of[variable]
    if pool < 0:
        return
    pools.varied[0] = _varied_after(pools, variable, old, new)
    base = pools.label_start[pool]
    pools.label_count[base + old] -= 1
    pools.label_count[base + new] += 1
    if pools.label_count[base + old] == 0:
        pools.present[pool] -= 1
    if pools.label_count[base + new] == 1:
        pools.present[pool] += 1


@inlined
def _log_availability(components: Components, pools: Pools, variable: int, old: int, new: int) -> float:
    """Log of the total weight on offer before the change over that after it."""
    if not components.mixed:
        return 0.0
    before = _offered(components, 1, pools.varied[0])
    return float(np.log(before / _offered(components, 1, _varied_after(pools, variable, old, new))))


@inlined
def _log_ratio(
    components: Components, pools: Pools, scores: Float64s, variable: int, labels: int, old: int, new: int
) -> float:
    """Log of the backward over the forward probability of relabeling, summed over the components."""
    forward = -np.inf
    backward = -np.inf
    for number in range(len(components.kind)):
        log_weight = np.log(components.weight[number])
        if components.kind[number] == UNIFORM:
            forward = log_add(forward, log_weight - np.log(labels - 1))
            backward = log_add(backward, log_weight - np.log(labels - 1))
        elif components.kind[number] == LOCAL:
            sharpness = components.sharpness[number]
            if scores[new] > -np.inf:
                without = log_sum_without(scores, labels, sharpness, old)
                forward = log_add(forward, log_weight + sharpness * scores[new] - without)
            if scores[old] > -np.inf:
                without = log_sum_without(scores, labels, sharpness, new)
                backward = log_add(backward, log_weight + sharpness * scores[old] - without)
    if backward == -np.inf and not components.mixed:
        return 0.0
    return backward - forward + _log_availability(components, pools, variable, old, new)
