"""Limited-memory quasi-Newton kernels for long vectors, which read each vector twice per iteration.

`absorb` takes a new point: it stores its difference from the last one and computes all inner products of the
new vectors with the stored ones. `combine` computes the next direction from the stored vectors, with
coefficients that depend on the inner products alone, and takes the first step along it.

Vectors are processed in chunks of `CHUNK` entries, here those numbered ``first`` to ``last - 1``. Each chunk
writes its own row of ``sums``, and the rows are added in order, so that the result does not depend on the
assignment of chunks to threads. In a chunk, tiles of `TILE` entries stay in the L1 cache while several short
loops process them; the compiler would not vectorize one long loop with many arrays.

Arguments of the kernels:

steps, changes : float32 or float64[memory, n]
    Stored differences of weights, and of gradients.
weights, gradient : float64[n]
    A point and the gradient of the smooth part of the objective there.
l1, penalized : float, bool[n] or bool[0]
    L1 penalty, and the weights to which it applies: all of them if the array is empty.
scratch : float64[chunks, 2, TILE]
    Scratch space for one tile of each chunk.
"""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import fast_kernel, inlined
from factorwise.types import Bools, Floats

CHUNK = 32_768
TILE = 1_024

# Columns of the sums of `absorb`: squared weights, L1 penalty, number of nonzero weights, squared
# pseudo-gradient, the inner products of the step with the pseudo-gradient before it and the gradient after
# it, and the inner products of the new pair with itself and with the new pseudo-gradient.
SQUARED_WEIGHTS, PRICED_WEIGHTS, ACTIVE, SQUARED_SLOPE, FALL_BEFORE, FALL_AFTER = range(6)
SQUARED_STEP, CURVATURE, SQUARED_CHANGE, SLOPE_STEP, SLOPE_CHANGE = range(6, 11)
SUMS = 11

# Columns of the sums of `combine`.
DESCENT, SQUARED_DIRECTION = 0, 1


@inlined
def pseudo_gradient(weight: float, gradient: float, price: float) -> float:
    """Return the slope of smooth part plus ``price * abs(weight)``, in the direction of steepest descent."""
    at_zero = price if -gradient > price else (-price if -gradient < -price else -gradient)
    return gradient + (price if weight > 0.0 else (-price if weight < 0.0 else at_zero))


@inlined
def _set_prices(prices: Floats, l1: float, penalized: Bools) -> None:
    """Write the L1 penalty of each weight of a tile; without L1 penalty, nothing is written."""
    if l1 > 0.0:
        for place in range(len(prices)):
            prices[place] = l1
        for place in range(len(penalized)):
            prices[place] = l1 if penalized[place] else 0.0


@inlined
def _slopes(room: Floats, prices: Floats, weights: Floats, gradient: Floats, l1: float) -> Floats:
    """Return the pseudo-gradient of a tile, in ``room``; without L1 penalty, return the gradient itself."""
    if l1 > 0.0:
        for place in range(len(room)):
            room[place] = pseudo_gradient(weights[place], gradient[place], prices[place])
        return room
    return gradient


@inlined
def _add_point_sums(sums: Floats, weights: Floats, prices: Floats, slopes: Floats, l1: float) -> None:
    squared = active = squared_slope = 0.0
    for place in range(len(weights)):
        squared += weights[place] * weights[place]
        active += 1.0 if weights[place] != 0.0 else 0.0
        squared_slope += slopes[place] * slopes[place]
    sums[SQUARED_WEIGHTS] += squared
    sums[ACTIVE] += active
    sums[SQUARED_SLOPE] += squared_slope
    if l1 > 0.0:
        priced = 0.0
        for place in range(len(weights)):
            priced += abs(weights[place]) * prices[place]
        sums[PRICED_WEIGHTS] += priced


@inlined
def _moved_times(weights: Floats, weights_before: Floats, slopes: Floats) -> float:
    total = 0.0
    for place in range(len(weights)):
        total += (weights[place] - weights_before[place]) * slopes[place]
    return total


@inlined
def _add_pair_sums(sums: Floats, step: Floats, change: Floats, slopes: Floats) -> None:
    squared_step = curvature = squared_change = slope_step = slope_change = 0.0
    for place in range(len(step)):
        s, y = np.float64(step[place]), np.float64(change[place])
        squared_step += s * s
        curvature += s * y
        squared_change += y * y
        slope_step += s * slopes[place]
        slope_change += y * slopes[place]
    sums[SQUARED_STEP] += squared_step
    sums[CURVATURE] += curvature
    sums[SQUARED_CHANGE] += squared_change
    sums[SLOPE_STEP] += slope_step
    sums[SLOPE_CHANGE] += slope_change


@inlined
def _add_products(products: Floats, step: Floats, change: Floats, new_change: Floats, slopes: Floats) -> None:
    """Add the inner products of a stored pair with the new change and the new pseudo-gradient."""
    change_step = change_change = slope_step = slope_change = 0.0
    for place in range(len(step)):
        s, y, new = np.float64(step[place]), np.float64(change[place]), np.float64(new_change[place])
        change_step += s * new
        change_change += y * new
        slope_step += s * slopes[place]
        slope_change += y * slopes[place]
    products[0] += change_step
    products[1] += change_change
    products[2] += slope_step
    products[3] += slope_change


@fast_kernel
def absorb(
    first: int,
    last: int,
    weights: Floats,
    raw: Floats,
    l2: float,
    l1: float,
    penalized: Bools,
    weights_before: Floats,
    gradient_before: Floats,
    steps: Floats,
    changes: Floats,
    rows: int,
    slot: int,
    gradient: Floats,
    scratch: Floats,
    sums: Floats,
    products: Floats,
) -> None:
    """Take a new point: set ``gradient`` to ``raw`` plus that of the L2 penalty, and store pair ``slot``.

    ``sums`` (float64[chunks, SUMS]) gets the columns named above. ``products`` (float64[chunks, memory, 4])
    gets for each of the first ``rows`` pairs except ``slot`` the inner products of its step and its change
    with the new change, then of both with the new pseudo-gradient.
    """
    twice = 2.0 * l2
    for chunk in range(first, last):
        total = sums[chunk]
        total[:] = 0.0
        products[chunk] = 0.0
        end = min(len(weights), (chunk + 1) * CHUNK)
        for start in range(chunk * CHUNK, end, TILE):
            stop = min(end, start + TILE)
            w, w_before = weights[start:stop], weights_before[start:stop]
            g, g_before = gradient[start:stop], gradient_before[start:stop]
            step, change = steps[slot, start:stop], changes[slot, start:stop]
            prices, room = scratch[chunk, 0, : stop - start], scratch[chunk, 1, : stop - start]
            given = raw[start:stop]
            _set_prices(prices, l1, penalized[start:stop])
            slopes = _slopes(room, prices, w_before, g_before, l1)
            total[FALL_BEFORE] += _moved_times(w, w_before, slopes)
            for place in range(len(w)):
                g[place] = given[place] + twice * w[place]
            total[FALL_AFTER] += _moved_times(w, w_before, g)
            for place in range(len(w)):
                step[place] = w[place] - w_before[place]
            for place in range(len(w)):
                change[place] = g[place] - g_before[place]
            slopes = _slopes(room, prices, w, g, l1)
            _add_point_sums(total, w, prices, slopes, l1)
            _add_pair_sums(total, step, change, slopes)
            for row in range(rows):
                if row != slot:
                    s, y = steps[row, start:stop], changes[row, start:stop]
                    _add_products(products[chunk, row], s, y, change, slopes)


@inlined
def _walk(
    weights: Floats, direction: Floats, length: float, prices: Floats, l1: float, trial: Floats
) -> None:
    for place in range(len(weights)):
        trial[place] = weights[place] + length * direction[place]
    if l1 > 0.0:
        for place in range(len(weights)):
            kept = (weights[place] * trial[place] >= 0.0) | (prices[place] <= 0.0)
            trial[place] = trial[place] if kept else 0.0


@inlined
def _add_pairs(
    direction: Floats,
    steps: Floats,
    changes: Floats,
    rows: int,
    step_factors: Floats,
    change_factors: Floats,
    start: int,
    stop: int,
) -> None:
    """Add stored pairs times their factors, two pairs in one loop."""
    row = 0
    while row + 1 < rows:
        a, b = steps[row, start:stop], changes[row, start:stop]
        c, d = steps[row + 1, start:stop], changes[row + 1, start:stop]
        p, q = step_factors[row], change_factors[row]
        r, s = step_factors[row + 1], change_factors[row + 1]
        for place in range(len(direction)):
            direction[place] += p * a[place] + q * b[place] + r * c[place] + s * d[place]
        row += 2
    if row < rows:
        a, b = steps[row, start:stop], changes[row, start:stop]
        p, q = step_factors[row], change_factors[row]
        for place in range(len(direction)):
            direction[place] += p * a[place] + q * b[place]


@fast_kernel
def combine(
    first: int,
    last: int,
    weights: Floats,
    gradient: Floats,
    l1: float,
    penalized: Bools,
    steps: Floats,
    changes: Floats,
    rows: int,
    step_factors: Floats,
    change_factors: Floats,
    slope_factor: float,
    strict: bool,
    length: float,
    direction: Floats,
    trial: Floats,
    scratch: Floats,
    sums: Floats,
) -> None:
    """Add ``rows`` pairs and the pseudo-gradient, each times its factor, and take a step like `walk`.

    Penalized entries of ``direction`` that do not oppose the pseudo-gradient become zero: all of them if
    ``strict``, else those whose weight is zero. ``sums`` (float64[chunks, 2]) gets the inner product of the
    direction and the pseudo-gradient, and the squared norm of the direction.
    """
    for chunk in range(first, last):
        sums[chunk] = 0.0
        end = min(len(weights), (chunk + 1) * CHUNK)
        for start in range(chunk * CHUNK, end, TILE):
            stop = min(end, start + TILE)
            w, d = weights[start:stop], direction[start:stop]
            prices, room = scratch[chunk, 0, : stop - start], scratch[chunk, 1, : stop - start]
            _set_prices(prices, l1, penalized[start:stop])
            slopes = _slopes(room, prices, w, gradient[start:stop], l1)
            for place in range(len(d)):
                d[place] = slope_factor * slopes[place]
            _add_pairs(d, steps, changes, rows, step_factors, change_factors, start, stop)
            if l1 > 0.0:
                for place in range(len(d)):
                    free = (prices[place] <= 0.0) | ((not strict) & (w[place] != 0.0))
                    d[place] = d[place] if free | (d[place] * slopes[place] < 0.0) else 0.0
            descent = squared = 0.0
            for place in range(len(d)):
                descent += d[place] * slopes[place]
                squared += d[place] * d[place]
            sums[chunk, DESCENT] += descent
            sums[chunk, SQUARED_DIRECTION] += squared
            _walk(w, d, length, prices, l1, trial[start:stop])


@fast_kernel
def walk(
    first: int,
    last: int,
    weights: Floats,
    direction: Floats,
    length: float,
    l1: float,
    penalized: Bools,
    trial: Floats,
    scratch: Floats,
) -> None:
    """Set ``trial`` to ``weights + length * direction``; L1-penalized weights do not cross zero."""
    for chunk in range(first, last):
        end = min(len(weights), (chunk + 1) * CHUNK)
        for start in range(chunk * CHUNK, end, TILE):
            stop = min(end, start + TILE)
            prices = scratch[chunk, 0, : stop - start]
            _set_prices(prices, l1, penalized[start:stop])
            _walk(weights[start:stop], direction[start:stop], length, prices, l1, trial[start:stop])
