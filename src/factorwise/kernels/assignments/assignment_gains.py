"""Scores around a variable or a block of variables, from the factors they touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import inlined

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]
Codes = NDArray[np.int32]


class LocalFactors(NamedTuple):
    """Factors as each variable sees them, by arity: one visit then waits for few distant reads.

    label_start : int64[variables]
        Where the labels of each variable begin in ``unary``.
    unary : float64[labels of all variables]
        Sum of the factors of one variable, at each of its labels.
    pair_start : int64[variables + 1]
        Variable ``v`` has the pair factors ``pair_start[v]:pair_start[v + 1]``.
    pair_table : int64[pair entries]
        Where the factor's table begins.
    pair_stride, pair_other, pair_other_stride : int32[pair entries]
        How far apart the variable's labels lie in the table; the other variable; how far apart its lie.
    start : int64[variables + 1]
        Variable ``v`` has the larger factors ``start[v]:start[v + 1]``.
    table, stride : int64[entries]
    other_start : int64[entries + 1]
    other, other_stride : int64[others]
        The factor's other variables, and how far apart their labels lie in the table.
    tables : float64[table entries]
    """

    label_start: Int64s
    unary: Float64s
    pair_start: Int64s
    pair_table: Int64s
    pair_stride: Codes
    pair_other: Codes
    pair_other_stride: Codes
    start: Int64s
    table: Int64s
    stride: Int64s
    other_start: Int64s
    other: Int64s
    other_stride: Int64s
    tables: Float64s


class CountedFactors(NamedTuple):
    """Factors that read how many of their variables have a label.

    start : int64[variables + 1]
        Variable ``v`` sits in ``factor[start[v]:start[v + 1]]``.
    factor : int64[memberships]
    label, table : int64[factors]
        The label that is counted, and where the score of the count zero lies.
    counts : int64[factors]
        The present counts; kept up to date by `assign`.
    tables : float64[table entries]
    """

    start: Int64s
    factor: Int64s
    label: Int64s
    table: Int64s
    counts: Int64s
    tables: Float64s


class TouchedFactors(NamedTuple):
    """What the score of factors that come and go with the labels needs; see `assignment_code`.

    weights : float64[weights of the model]
    keys : int64[keys, widest key]
        Scratch.
    """

    weights: Float64s
    keys: Int64s


TouchedScore = Callable[[Codes, int, Float64s, Int64s], float] | None


class WholeFactors(NamedTuple):
    """Factors by number, each with all its variables.

    start : int64[factors + 1]
        Factor ``f`` connects ``scope[start[f]:start[f + 1]]``.
    scope, stride : int64[edges]
        Its variables, and how far apart their labels lie in its table.
    table : int64[factors]
    tables : float64[table entries]
    """

    start: Int64s
    scope: Int64s
    stride: Int64s
    table: Int64s
    tables: Float64s


@inlined
def assign(values: Codes, counted: CountedFactors, variable: int, new: int) -> None:
    """Give ``variable`` the label ``new``, and keep the counts."""
    old = values[variable]
    if old == new:
        return
    values[variable] = new
    for place in range(counted.start[variable], counted.start[variable + 1]):
        factor = counted.factor[place]
        if counted.label[factor] == old:
            counted.counts[factor] -= 1
        if counted.label[factor] == new:
            counted.counts[factor] += 1


@inlined
def local_scores(
    values: Codes,
    local: LocalFactors,
    counted: CountedFactors,
    variable: int,
    labels: int,
    scores: Float64s,
) -> None:
    """Write the score of each label of ``variable`` given all others, up to what it does not touch."""
    first = local.label_start[variable]
    for label in range(labels):
        scores[label] = local.unary[first + label]
    for entry in range(local.pair_start[variable], local.pair_start[variable + 1]):
        place = local.pair_table[entry] + values[local.pair_other[entry]] * local.pair_other_stride[entry]
        stride = local.pair_stride[entry]
        for label in range(labels):
            scores[label] += local.tables[place]
            place += stride
    for entry in range(local.start[variable], local.start[variable + 1]):
        place = _place_of(values, local, entry)
        stride = local.stride[entry]
        for label in range(labels):
            scores[label] += local.tables[place]
            place += stride
    for member in range(counted.start[variable], counted.start[variable + 1]):
        factor = counted.factor[member]
        target = counted.label[factor]
        place = _place_without(values, counted, factor, variable)
        for label in range(labels):
            scores[label] += counted.tables[place + 1 if label == target else place]


@inlined
def two_scores(
    values: Codes, local: LocalFactors, counted: CountedFactors, variable: int, first: int, second: int
) -> tuple[float, float]:
    """Return the scores of two labels of ``variable`` given all others."""
    one = local.unary[local.label_start[variable] + first]
    two = local.unary[local.label_start[variable] + second]
    for entry in range(local.pair_start[variable], local.pair_start[variable + 1]):
        place = local.pair_table[entry] + values[local.pair_other[entry]] * local.pair_other_stride[entry]
        one += local.tables[place + first * local.pair_stride[entry]]
        two += local.tables[place + second * local.pair_stride[entry]]
    for entry in range(local.start[variable], local.start[variable + 1]):
        place = _place_of(values, local, entry)
        one += local.tables[place + first * local.stride[entry]]
        two += local.tables[place + second * local.stride[entry]]
    for member in range(counted.start[variable], counted.start[variable + 1]):
        factor = counted.factor[member]
        target = counted.label[factor]
        place = _place_without(values, counted, factor, variable)
        one += counted.tables[place + 1 if first == target else place]
        two += counted.tables[place + 1 if second == target else place]
    return one, two


@inlined
def add_touched(
    values: Codes,
    touched_score: TouchedScore,
    touched: TouchedFactors,
    variable: int,
    labels: int,
    scores: Float64s,
) -> None:
    """Add to the score of each label of ``variable`` that of the factors which then touch it."""
    if touched_score is not None:
        old = values[variable]
        for label in range(labels):
            values[variable] = label
            scores[label] += touched_score(values, variable, touched.weights, touched.keys)
        values[variable] = old


@inlined
def touched_gain(
    values: Codes, touched_score: TouchedScore, touched: TouchedFactors, variable: int, new: int
) -> float:
    """Return what the factors that come and go gain when ``variable`` gets the label ``new``."""
    gain = 0.0
    if touched_score is not None:
        old = values[variable]
        gain -= touched_score(values, variable, touched.weights, touched.keys)
        values[variable] = new
        gain += touched_score(values, variable, touched.weights, touched.keys)
        values[variable] = old
    return gain


@inlined
def pair_score(values: Codes, local: LocalFactors, counted: CountedFactors, first: int, second: int) -> float:
    """Return the present score of all factors that touch ``first`` or ``second``, each counted once."""
    total = 0.0
    for step in range(2):
        variable = first if step == 0 else second
        label = values[variable]
        total += local.unary[local.label_start[variable] + label]
        for entry in range(local.pair_start[variable], local.pair_start[variable + 1]):
            other = local.pair_other[entry]
            if other != first:  # a factor of both is counted at ``first``
                place = local.pair_table[entry] + label * local.pair_stride[entry]
                total += local.tables[place + values[other] * local.pair_other_stride[entry]]
        for entry in range(local.start[variable], local.start[variable + 1]):
            shared = False
            for other in range(local.other_start[entry], local.other_start[entry + 1]):
                shared = shared or local.other[other] == first
            if not shared:
                total += local.tables[_place_of(values, local, entry) + label * local.stride[entry]]
        for member in range(counted.start[variable], counted.start[variable + 1]):
            factor = counted.factor[member]
            shared = False
            if step == 1:
                for known in range(counted.start[first], counted.start[first + 1]):
                    shared = shared or counted.factor[known] == factor
            if not shared:
                total += counted.tables[counted.table[factor] + counted.counts[factor]]
    return total


@inlined
def _place_of(values: Codes, local: LocalFactors, entry: int) -> int:
    """Return where the table of a larger factor has its variable's first label, given the others."""
    place = local.table[entry]
    for other in range(local.other_start[entry], local.other_start[entry + 1]):
        place += values[local.other[other]] * local.other_stride[other]
    return int(place)


@inlined
def _place_without(values: Codes, counted: CountedFactors, factor: int, variable: int) -> int:
    """Return where the table of a count factor has the count without ``variable``."""
    place = counted.table[factor] + counted.counts[factor]
    if values[variable] == counted.label[factor]:
        place -= 1
    return int(place)


@inlined
def score_of(
    values: Codes, whole: WholeFactors, counted: CountedFactors, factors: Int64s, count_factors: Int64s
) -> float:
    """Return the present score of the given factors."""
    total = 0.0
    for factor in factors:
        place = whole.table[factor]
        for edge in range(whole.start[factor], whole.start[factor + 1]):
            place += values[whole.scope[edge]] * whole.stride[edge]
        total += whole.tables[place]
    for factor in count_factors:
        total += counted.tables[counted.table[factor] + counted.counts[factor]]
    return total


@inlined
def score_gain(after: float, before: float) -> float:
    """``after - before`` where either may be ``-inf``: a forbidden world is left at once, never entered."""
    if after == -np.inf:
        return after
    if before == -np.inf:
        return np.inf
    return after - before


@inlined
def log_sum_without(scores: Float64s, count: int, scale: float, without: int) -> float:
    """Log of the sum of exponentials of ``scale * scores``, leaving out one position."""
    top = -np.inf
    for position in range(count):
        if position != without:
            top = max(top, scale * scores[position])
    if top == -np.inf:
        return top
    total = 0.0
    for position in range(count):
        if position != without:
            total += np.exp(scale * scores[position] - top)
    return float(top + np.log(total))


@inlined
def log_add(first: float, second: float) -> float:
    """Log of the sum of two exponentials."""
    high = max(first, second)
    if high == -np.inf:
        return high
    return float(high + np.log1p(np.exp(min(first, second) - high)))


@inlined
def pick_position(
    chance: float, scores: Float64s, count: int, scale: float, without: int, weights: Float64s
) -> int:
    """Return where ``chance`` falls when drawing from exp(scale * scores), leaving out position ``without``.

    -1 is returned if nothing is allowed; ``weights`` is scratch.
    """
    top = -np.inf
    for position in range(count):
        if position != without:
            top = max(top, scores[position])
    if top == -np.inf:
        return -1
    total = 0.0
    for position in range(count):
        weights[position] = 0.0
        if position != without:
            weights[position] = np.exp(scale * (scores[position] - top))
            total += weights[position]
    rest = chance * total
    last = -1
    for position in range(count):
        if weights[position] > 0.0:
            last = position
            rest -= weights[position]
            if rest < 0.0:
                break
    return last
