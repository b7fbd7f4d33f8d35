r"""The vectors of a limited-memory quasi-Newton run, and the curvature that it remembers.

A direction is a sum of the remembered steps :math:`s_i`, gradient changes :math:`y_i` and the gradient, so
the recursion that computes it needs only their inner products: a small matrix, to which one pass over the
vectors adds the row of the newest pair. A second pass adds the vectors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from factorwise.errors import ShapeError
from factorwise.kernels.compile.threads import Team
from factorwise.kernels.numeric import quasi_newton as kernels
from factorwise.learning.optimizers.base import (
    OptimizerConfig,
    Problem,
    Standing,
    Vector,
    checked_gradient,
)
from factorwise.types import Bools, Float64s

# An angle between step and gradient change this close to 90 degrees reflects rounding, not curvature.
LEAST_COSINE = 1e-10

# The signs have settled when the number of nonzero weights changes by less than this share.
SETTLED = 0.005

# With fewer chunks, sharing work among threads costs more than it saves.
CHUNKS_WORTH_SHARING = 8


class Arrival(NamedTuple):
    """A point that was evaluated.

    standing
        Value, norms and number of nonzero weights.
    fall_before
        Inner product of the step and the pseudo-gradient at its start: how much the value would change along
        a straight line.
    fall_after
        Inner product of the step and the gradient at its end.
    slope_after
        Inner product of the step and the pseudo-gradient at its end.
    """

    standing: Standing
    fall_before: float
    fall_after: float
    slope_after: float

    @property
    def finite(self) -> bool:
        """Whether value and gradient are finite."""
        return math.isfinite(self.standing.value) and math.isfinite(self.standing.gradient_norm)


class HistoryWorkspace:
    """The current point, a trial point, and the remembered pairs."""

    def __init__(self, problem: Problem, config: OptimizerConfig, team: Team) -> None:
        size = len(problem.start)
        self.evaluations = 0
        self.weights: Vector = problem.start.copy()
        self._trial: Vector = problem.start.copy()
        self._gradient, self._trial_gradient, self._direction = (np.zeros(size) for _ in range(3))
        self._objective, self._prior = problem.objective, problem.prior
        self._penalized = _mask(problem)
        self._steps = np.zeros((config.memory, size), dtype=config.history)
        self._changes = np.zeros_like(self._steps)
        self._chunks = -(-size // kernels.CHUNK)
        self._team = team if self._chunks >= CHUNKS_WORTH_SHARING else Team(1)
        self._scratch = np.zeros((self._chunks, 2, kernels.TILE))
        self._sums = np.zeros((self._chunks, kernels.SUMS))
        self._products = np.zeros((self._chunks, config.memory, 4))
        self._direction_sums = np.zeros((self._chunks, 2))
        self._pairs = PairProducts(config.memory)
        self._slot = 0
        self._length = 0.0
        self._active = 0.0
        self._settled = False
        self._last_step = 0.0

    @property
    def remembers(self) -> bool:
        """Whether any pair is remembered."""
        return bool(self._pairs.order)

    @property
    def first_length(self) -> float:
        """The step along the steepest direction with the scale of the last known curvature.

        0 if there is none.
        """
        return self._pairs.scale

    @property
    def growth(self) -> float:
        """The norm of the direction over that of the last step; 0 before the first step."""
        direction = math.sqrt(self._direction_sums.sum(axis=0)[kernels.SQUARED_DIRECTION])
        return direction / self._last_step if self._last_step else 0.0

    def forget(self) -> None:
        """Drop all pairs, so that the next direction is the steepest one."""
        self._pairs.order.clear()

    def turn(self, length: float) -> float:
        """Compute the next direction and step ``length`` along it.

        Return its slope, negative for a descent.
        """
        slope = self._turn(length, strict=not self._settled)
        return slope if slope < 0.0 or not self._settled else self._turn(length, strict=True)

    def evaluate(self, length: float) -> Arrival:
        """Call the objective at ``length`` along the direction."""
        if length != self._length:
            self._walk(length)
        value, raw = self._objective(self._trial)
        self.evaluations += 1
        raw = checked_gradient(raw, len(self._trial))
        prior, slot = self._prior, self._free_slot()
        rows = max(self._pairs.order, default=-1) + 1

        def work(first: int, last: int) -> None:
            kernels.absorb(
                first,
                last,
                self._trial,
                raw,
                prior.l2,
                prior.l1,
                self._penalized,
                self.weights,
                self._gradient,
                self._steps,
                self._changes,
                rows,
                slot,
                self._trial_gradient,
                self._scratch,
                self._sums,
                self._products,
            )

        self._team.share(self._chunks, work)
        self._slot = slot
        sums = self._sums.sum(axis=0)
        standing = Standing(
            value=float(value)
            + prior.l2 * float(sums[kernels.SQUARED_WEIGHTS])
            + float(sums[kernels.PRICED_WEIGHTS]),
            gradient_norm=math.sqrt(sums[kernels.SQUARED_SLOPE]),
            weight_norm=math.sqrt(sums[kernels.SQUARED_WEIGHTS]),
            active=int(sums[kernels.ACTIVE]),
        )
        falls = (sums[column] for column in (kernels.FALL_BEFORE, kernels.FALL_AFTER, kernels.SLOPE_STEP))
        return Arrival(standing, *map(float, falls))

    def accept(self) -> None:
        """Make the last evaluated point the current one, and remember the step that led to it."""
        self.begin()
        sums = self._sums.sum(axis=0)
        self._pairs.add(self._slot, sums, self._products.sum(axis=0))
        active = float(sums[kernels.ACTIVE])
        self._settled = abs(active - self._active) <= SETTLED * active
        self._active = active
        self._last_step = math.sqrt(sums[kernels.SQUARED_STEP])

    def begin(self) -> None:
        """Make the last evaluated point the current one."""
        self.weights, self._trial = self._trial, self.weights
        self._gradient, self._trial_gradient = self._trial_gradient, self._gradient

    def _turn(self, length: float, *, strict: bool) -> float:
        pairs = self._pairs
        step_factors, change_factors, slope_factor = pairs.factors()
        rows = max(pairs.order, default=-1) + 1

        def work(first: int, last: int) -> None:
            kernels.combine(
                first,
                last,
                self.weights,
                self._gradient,
                self._prior.l1,
                self._penalized,
                self._steps,
                self._changes,
                rows,
                step_factors,
                change_factors,
                slope_factor,
                strict,
                length,
                self._direction,
                self._trial,
                self._scratch,
                self._direction_sums,
            )

        self._team.share(self._chunks, work)
        self._length = length
        return float(self._direction_sums.sum(axis=0)[kernels.DESCENT])

    def _free_slot(self) -> int:
        """Return the slot for the newest pair; if none is free, that of the oldest pair."""
        order = self._pairs.order
        if len(order) == len(self._steps):
            return order.pop(0)
        return next(slot for slot in range(len(self._steps)) if slot not in order)

    def _walk(self, length: float) -> None:
        def work(first: int, last: int) -> None:
            kernels.walk(
                first,
                last,
                self.weights,
                self._direction,
                length,
                self._prior.l1,
                self._penalized,
                self._trial,
                self._scratch,
            )

        self._team.share(self._chunks, work)
        self._length = length


class PairProducts:
    r"""Inner products of the remembered pairs, by slot, and with the current pseudo-gradient.

    order
        Slots from the oldest pair to the newest.
    scale
        Step length that the newest pair suggests, :math:`s \cdot y / y \cdot y`.
    """

    def __init__(self, memory: int) -> None:
        self.order: list[int] = []
        self.scale = 0.0
        self._step_change = np.zeros((memory, memory))  # [older, newer]
        self._change_change = np.zeros((memory, memory))
        self._slope_step = np.zeros(memory)
        self._slope_change = np.zeros(memory)

    def add(self, slot: int, sums: Float64s, products: Float64s) -> None:
        """Add the pair in ``slot``, unless its curvature is lost in rounding."""
        self._step_change[:, slot] = products[:, 0]
        self._change_change[:, slot] = self._change_change[slot] = products[:, 1]
        self._slope_step[:] = products[:, 2]
        self._slope_change[:] = products[:, 3]
        curvature, squared_change = float(sums[kernels.CURVATURE]), float(sums[kernels.SQUARED_CHANGE])
        self._step_change[slot, slot] = curvature
        self._change_change[slot, slot] = squared_change
        self._slope_step[slot] = sums[kernels.SLOPE_STEP]
        self._slope_change[slot] = sums[kernels.SLOPE_CHANGE]
        if curvature > LEAST_COSINE * math.sqrt(sums[kernels.SQUARED_STEP] * squared_change):
            self.order.append(slot)
            self.scale = curvature / squared_change

    def factors(self) -> tuple[Vector, Vector, float]:
        r"""Return the factors of steps, changes and pseudo-gradient :math:`g` in the direction :math:`-H g`.

        This is the two-loop recursion with every vector replaced by its inner products. Without pairs the
        direction is :math:`-g`.
        """
        memory, order = len(self._slope_step), self.order
        alpha, steps, changes = np.zeros(memory), np.zeros(memory), np.zeros(memory)
        if not order:
            return steps, changes, -1.0
        for slot in reversed(order):  # alpha is still zero for slots not yet visited
            rest = self._slope_step[slot] - self._step_change[slot] @ alpha
            alpha[slot] = rest / self._step_change[slot, slot]
        for slot in order:  # likewise for steps
            rest = self.scale * (self._slope_change[slot] - self._change_change[slot] @ alpha)
            rest -= self._step_change[:, slot] @ steps
            steps[slot] = rest / self._step_change[slot, slot] - alpha[slot]
        return steps, self.scale * alpha, -self.scale


def _mask(problem: Problem) -> Bools:
    penalized = problem.prior.penalized
    if penalized is None:
        return np.zeros(0, dtype=np.bool_)
    if penalized.shape != problem.start.shape:
        raise ShapeError(
            f"penalized has {len(penalized)} entries, but there are {len(problem.start)} weights: give"
            " one truth value per weight."
        )
    return np.array(penalized, dtype=np.bool_)
