r"""Line search: how far to go along a direction in which a smooth function decreases.

With :math:`\varphi(t)` the value after a step of length :math:`t`, a step is good if it satisfies

.. math::

   \varphi(t) \le \varphi(0) + \mu t \varphi'(0) \quad\text{(sufficient decrease)}, \qquad
   |\varphi'(t)| \le \eta |\varphi'(0)| \quad\text{(curvature)}.

Rounding of the value can make the first test fail at the minimum itself. If values differ by less than the
rounding error, the slopes decide instead: for a parabola the first test is equivalent to :math:`\varphi'(t)
\le (2\mu - 1) \varphi'(0)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

ENOUGH = 1e-4
USED_UP = 0.9
SLOPE_ENOUGH = (
    0.1  # the mu of the test by slopes: their error is relative to the slope, so it can be stricter
)
SHORTER, LONGER = 0.5, 2.1
NARROWEST = 1e-15


class LineTrial(NamedTuple):
    """Value and slope after a step."""

    step: float
    value: float
    slope: float

    @property
    def finite(self) -> bool:
        """Whether the function is defined here."""
        return math.isfinite(self.value) and math.isfinite(self.slope)


# Step length to value and slope there; the point evaluated last is the one that is kept.
Evaluate: TypeAlias = Callable[[float], LineTrial]


class Search(NamedTuple):
    """The start of a line search.

    start
        Value and slope (below zero) at step 0.
    first
        The step to try first.
    noise
        Smaller differences of the value mean nothing.
    most
        Largest number of evaluations.
    """

    evaluate: Evaluate
    start: LineTrial
    first: float
    noise: float
    most: int

    def falls(self, trial: LineTrial) -> bool:
        """Whether the decrease is sufficient."""
        return trial.value <= self.start.value + ENOUGH * trial.step * self.start.slope

    def falls_by_slope(self, trial: LineTrial) -> bool:
        """Whether the value is unchanged except for rounding, and the slopes show a decrease."""
        level = abs(trial.value - self.start.value) <= self.noise
        return level and trial.slope <= (2.0 * SLOPE_ENOUGH - 1.0) * self.start.slope

    def is_flat(self, trial: LineTrial) -> bool:
        """Whether the slope is small enough, in either direction."""
        return abs(trial.slope) <= -USED_UP * self.start.slope

    def settle(self, best: LineTrial) -> LineTrial | None:
        """End with the best point so far, if it is certainly better than the start."""
        return self.evaluate(best.step) if best.value < self.start.value - self.noise else None


def backtracking(search: Search, *, strong: bool = False) -> LineTrial | None:
    """Halve the step until the decrease is sufficient; lengthen it while the slope is still steep.

    strong
        Also halve it while the slope has changed its sign and is as steep as before.
    """
    step, best = search.first, search.start
    for _ in range(search.most):
        trial = search.evaluate(step)
        if trial.finite and trial.value < best.value:
            best = trial
        if not trial.finite or not (search.falls(trial) or search.falls_by_slope(trial)):
            step *= SHORTER
        elif trial.slope < USED_UP * search.start.slope:
            step *= LONGER
        elif strong and trial.slope > -USED_UP * search.start.slope:
            step *= SHORTER
        else:
            return trial
    return search.settle(best)


def more_thuente(search: Search) -> LineTrial | None:
    """Approach a minimum along the line by cubic and quadratic fits, until the step is good.

    ``near`` is the better end of an interval that contains good steps, ``far`` the other end, None until a
    step has gone too far. Until a step has decreased sufficiently, the fits use the function minus the line
    of least decrease, whose minimum satisfies the first test (the method of Moré and Thuente, 1994).
    """
    near, far = search.start, None
    step, ceiling = search.first, math.inf
    fell, widths = False, (math.inf, math.inf)
    for _ in range(search.most):
        trial = search.evaluate(step)
        if not trial.finite:
            ceiling = step
            step = near.step + SHORTER * (step - near.step)
            continue
        falls = search.falls(trial)
        if (falls or search.falls_by_slope(trial)) and search.is_flat(trial):
            return trial
        fell = fell or (falls and trial.slope >= ENOUGH * search.start.slope)
        line = 0.0 if fell or falls or trial.value > near.value else ENOUGH * search.start.slope
        before = near
        step = _fitted_step(_tilted(near, line), far and _tilted(far, line), _tilted(trial, line))
        if trial.value - line * trial.step > near.value - line * near.step:
            far = trial
        else:
            if (trial.slope - line) * (near.slope - line) < 0.0:
                far = near
            near = trial
        if far is None:
            ahead = trial.step - before.step
            low, high = trial.step + 1.1 * ahead, trial.step + 4.0 * ahead
            step = min(max(step, low), high) if step == step else high
            if step >= ceiling:
                step = near.step + SHORTER * (ceiling - near.step)
        else:
            low, high = min(near.step, far.step), max(near.step, far.step)
            if not low < step < high or high - low >= 0.66 * widths[0]:
                step = low + SHORTER * (high - low)
            widths = (widths[1], high - low)
            if high - low <= NARROWEST * high:
                break
    return search.settle(near)


def _tilted(trial: LineTrial, line: float) -> LineTrial:
    """Subtract a line through the start from the function."""
    return LineTrial(trial.step, trial.value - line * trial.step, trial.slope - line)


def _fitted_step(near: LineTrial, far: LineTrial | None, trial: LineTrial) -> float:
    """Return the minimum of a curve through the known points; it may lie anywhere, or be NaN."""
    cubic = _cubic_minimum(near, trial)
    if trial.value > near.value:
        parabola = _parabola_minimum(near, trial)
        return cubic if abs(cubic - near.step) < abs(parabola - near.step) else 0.5 * (cubic + parabola)
    secant = _secant_minimum(near, trial)
    cubic_is_closer = abs(cubic - trial.step) < abs(secant - trial.step)
    if near.slope * trial.slope < 0.0:
        return secant if cubic_is_closer else cubic
    if abs(trial.slope) < abs(near.slope):
        onward = (cubic - trial.step) * (trial.step - near.step) > 0.0
        if far is None:
            return secant if cubic_is_closer or not onward else cubic
        closer = cubic if cubic_is_closer and onward else secant
        limit = trial.step + 0.66 * (far.step - trial.step)
        return min(closer, limit) if trial.step > near.step else max(closer, limit)
    return math.nan if far is None else _cubic_minimum(far, trial)


def _cubic_minimum(a: LineTrial, b: LineTrial) -> float:
    """Return the minimum of the cubic with the values and slopes of two points; NaN if it has none."""
    span = b.step - a.step
    theta = 3.0 * (a.value - b.value) / span + a.slope + b.slope
    scale = max(abs(theta), abs(a.slope), abs(b.slope))
    square = (theta / scale) ** 2 - (a.slope / scale) * (b.slope / scale) if scale > 0.0 else -1.0
    if square < 0.0:
        return math.nan
    root = math.copysign(scale * math.sqrt(square), span)
    below = 2.0 * root + b.slope - a.slope
    if below == 0.0:
        return math.nan
    return b.step - span * (b.slope + root - theta) / below


def _parabola_minimum(a: LineTrial, b: LineTrial) -> float:
    """Return the minimum of the parabola with the values of two points and the slope of the first."""
    span = b.step - a.step
    return a.step + 0.5 * span * a.slope / (a.slope + (a.value - b.value) / span)


def _secant_minimum(a: LineTrial, b: LineTrial) -> float:
    """Return the minimum of the parabola with the slopes of two points; NaN if they are equal."""
    turn = b.slope - a.slope
    return b.step - b.slope * (b.step - a.step) / turn if turn != 0.0 else math.nan
