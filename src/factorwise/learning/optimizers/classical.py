"""Other batch optimizers of the textbooks, with the same objective and result.

They serve comparisons and small models. Conjugate gradients, Newton's method and Powell's method are SciPy's;
the stopping rules are those of this package.
"""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.learning.optimizers.base import (
    Ending,
    Monitor,
    OptimizerConfig,
    Optimum,
    Problem,
    Standing,
    Vector,
    Watch,
    checked_gradient,
    refuse_start,
)
from factorwise.learning.optimizers.lbfgs import descend, wolfe_step
from factorwise.learning.optimizers.orthant_wise import orthant_step

# Tolerances that are never met switch off SciPy's own tests of convergence.
NEVER = 1e-300
UNLIMITED = 10**9
MOST_DOUBLINGS = 60


def gradient_descent(problem: Problem, config: OptimizerConfig, watch: Watch | None = None) -> Optimum:
    """Follow the (pseudo-)gradient; the last step suggests the first length to try."""
    rule = orthant_step if problem.prior.l1 > 0.0 else wolfe_step
    return descend(problem, config, watch, partial(rule, config), steepest=True)


def conjugate_gradient(problem: Problem, config: OptimizerConfig, watch: Watch | None = None) -> Optimum:
    """Run nonlinear conjugate gradients (SciPy's, after Polak and Ribière)."""
    return _scipy(problem, config, watch, "conjugate_gradient", "CG", {"gtol": NEVER})


def newton_cg(problem: Problem, config: OptimizerConfig, watch: Watch | None = None) -> Optimum:
    """Run Newton steps computed by conjugate gradients (SciPy's).

    Products with the Hessian come from ``problem.hessian_product``, which is that of the objective without
    the prior, or from differences of gradients.
    """
    return _scipy(problem, config, watch, "newton_cg", "Newton-CG", {"xtol": NEVER})


def powell(problem: Problem, config: OptimizerConfig, watch: Watch | None = None) -> Optimum:
    """Minimize along one axis after the other, then along their sum (SciPy's), from values alone."""
    return _scipy(problem, config, watch, "powell", "Powell", {"ftol": NEVER, "xtol": 1e-8})


class _Smooth:
    """Objective plus squared penalty for SciPy, which caches the numbers of the last point."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.evaluations = 0
        self._at: Vector | None = None
        self._value, self._gradient = math.nan, np.zeros(0)

    def value_and_gradient(self, weights: Vector) -> tuple[float, Vector]:
        if self._at is None or not np.array_equal(weights, self._at):
            l2 = self.problem.prior.l2
            value, gradient = self.problem.objective(weights)
            self.evaluations += 1
            gradient = checked_gradient(gradient, len(weights)) + 2.0 * l2 * weights
            total = float(value) + l2 * float(weights @ weights)
            # A point without a value counts as worse than any other, so line searches step back from it.
            self._value = total if math.isfinite(total) and np.isfinite(gradient).all() else math.inf
            self._gradient = gradient if self._value < math.inf else np.zeros_like(gradient)
            self._at = weights.copy()
        return self._value, self._gradient

    def value(self, weights: Vector) -> float:
        return self.value_and_gradient(weights)[0]

    def hessian_product(self, weights: Vector, direction: Vector) -> Vector:
        product = self.problem.hessian_product
        assert product is not None
        return product(weights, direction) + 2.0 * self.problem.prior.l2 * direction

    def standing(self, weights: Vector) -> Standing:
        value, gradient = self.value_and_gradient(weights)
        norms = float(np.linalg.norm(gradient)), float(np.linalg.norm(weights))
        return Standing(value, *norms, int(np.count_nonzero(weights)))


def _scipy(
    problem: Problem,
    config: OptimizerConfig,
    watch: Watch | None,
    name: str,
    scipy_name: str,
    tolerances: dict[str, float],
) -> Optimum:
    from scipy import optimize  # imported here, so that L-BFGS does not load it

    if problem.prior.l1 > 0.0:
        raise InvalidArgumentError(
            f"{name} needs a smooth penalty, but the prior has l1 = {problem.prior.l1:g}. Use method='owlqn'"
            " or 'coordinate_descent', or Prior.gaussian."
        )
    smooth, monitor = _Smooth(problem), Monitor(config, watch)
    start = problem.start
    at = smooth.standing(start)
    if not math.isfinite(at.value):
        raise refuse_start(at.value)
    current = start.copy()
    ending = monitor.record(at, start, 0.0, smooth.evaluations)

    def after_iteration(weights: Vector) -> None:
        nonlocal ending, current
        moved = float(np.linalg.norm(weights - current))
        current = np.array(weights)
        ending = monitor.record(smooth.standing(current), current, moved, smooth.evaluations)
        if ending is not None:
            raise StopIteration

    if ending is None:
        by_gradient: dict[str, Any] = {"jac": True}
        if scipy_name == "Newton-CG" and problem.hessian_product is not None:
            by_gradient["hessp"] = smooth.hessian_product
        with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
            # The message of the result reports what SciPy warns of, a line search without success.
            warnings.simplefilter("ignore")
            outcome = optimize.minimize(
                smooth.value if scipy_name == "Powell" else smooth.value_and_gradient,
                start,
                method=scipy_name,
                callback=after_iteration,
                options=tolerances | {"maxiter": config.max_iterations or UNLIMITED},
                **({} if scipy_name == "Powell" else by_gradient),
            )
        ending = ending or Ending(bool(outcome.success), f"SciPy's {scipy_name}: {outcome.message}")
    return monitor.result(current, smooth.evaluations, ending)


def coordinate_descent(problem: Problem, config: OptimizerConfig, watch: Watch | None = None) -> Optimum:
    """Minimize in one weight after the other; an iteration visits each once.

    In each weight the objective is approximated by a parabola whose curvature is estimated from how its slope
    changed in the last step, and doubled while the value does not decrease. With the penalties, the minimum
    follows by soft thresholding. Every step costs a full evaluation, so this is for small models.
    """
    point = _Point(problem)
    monitor = Monitor(config, watch)
    ending = monitor.record(point.standing(), point.weights, 0.0, point.evaluations)
    curvature = np.ones(len(problem.start))
    while ending is None:
        before = point.weights.copy()
        for index in range(len(before)):
            curvature[index] = _coordinate_step(point, index, float(curvature[index]), config.precision)
        moved = float(np.linalg.norm(point.weights - before))
        ending = monitor.record(point.standing(), point.weights, moved, point.evaluations)
    return monitor.result(point.weights, point.evaluations, ending)


class _Point:
    """Weights with the value and gradient of the objective there, without the penalties."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.evaluations = 0
        self.weights = problem.start.copy()
        prior, size = problem.prior, len(problem.start)
        self.prices = prior.l1 * (np.ones(size) if prior.penalized is None else prior.penalized.astype(float))
        self.value, self.gradient = self.evaluate(self.weights)
        if not math.isfinite(self.value) or not np.isfinite(self.gradient).all():
            raise refuse_start(self.value)

    def evaluate(self, weights: Vector) -> tuple[float, Vector]:
        value, gradient = self.problem.objective(weights)
        self.evaluations += 1
        return float(value), checked_gradient(gradient, len(weights)).copy()

    def standing(self) -> Standing:
        w, l2 = self.weights, self.problem.prior.l2
        slope = self.gradient + 2.0 * l2 * w
        shrunk = np.sign(slope) * np.maximum(np.abs(slope) - self.prices, 0.0)
        pseudo = np.where(w == 0.0, shrunk, slope + np.sign(w) * self.prices)
        value = self.value + l2 * float(w @ w) + float(self.prices @ np.abs(w))
        return Standing(
            value, float(np.linalg.norm(pseudo)), float(np.linalg.norm(w)), int(np.count_nonzero(w))
        )


def _coordinate_step(point: _Point, index: int, curvature: float, precision: float) -> float:
    """Move one weight; return the measured curvature."""
    l2, price = point.problem.prior.l2, float(point.prices[index])
    old, slope = float(point.weights[index]), float(point.gradient[index])

    def penalty(weight: float) -> float:
        return price * abs(weight) + l2 * weight * weight

    for _ in range(MOST_DOUBLINGS):
        pull = curvature * old - slope
        new = math.copysign(max(abs(pull) - price, 0.0), pull) / (curvature + 2.0 * l2)
        if new == old:
            return curvature
        point.weights[index] = new
        value, gradient = point.evaluate(point.weights)
        level = precision * abs(point.value)
        change = value - point.value + penalty(new) - penalty(old)
        bend = (float(gradient[index]) - slope) / (new - old)
        # Near the minimum, rounding hides the decrease: a curvature that was right before is used there.
        if change < 0.0 or (change <= level and bend <= curvature):
            point.value, point.gradient = value, gradient
            return max(bend, 1e-3 * curvature, 1e-12)
        point.weights[index] = old
        curvature *= 2.0
    return curvature
