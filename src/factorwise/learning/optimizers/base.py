"""The interface of all optimizers: the objective, the settings, the progress, the result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np

from factorwise.errors import FactorwiseError, ShapeError, WeightError, require
from factorwise.types import Bools, Float64s

Vector: TypeAlias = Float64s
LineSearch = Literal["MoreThuente", "Backtracking", "StrongBacktracking"]

# Value and gradient at the weights; the next call may overwrite the array that is returned.
Objective: TypeAlias = Callable[[Vector], tuple[float, Vector]]

# The second derivative times a direction, from the weights and the direction.
HessianProduct: TypeAlias = Callable[[Vector, Vector], Vector]

STALLED_AFTER = 8  # iterations without a lower value or a smaller gradient than ever before


class ObjectiveError(FactorwiseError, ValueError):
    """An objective returned something that optimizers cannot use."""


class Penalty(Protocol):
    """What an optimizer needs of a prior: ``l1 * sum(abs(w[penalized])) + l2 * sum(w ** 2)``."""

    @property
    def l1(self) -> float:
        """The penalty per absolute weight."""
        ...

    @property
    def l2(self) -> float:
        """The penalty per squared weight."""
        ...

    @property
    def penalized(self) -> Bools | None:
        """The weights to which ``l1`` applies (bool[n]); None means all."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerConfig:
    """When to stop and how much to remember; names and defaults are those of CRFsuite and liblbfgs.

    max_iterations
        Largest number of iterations; None for no limit.
    epsilon
        Stop when the norm of the (pseudo-)gradient is below this times the larger of 1 and the norm of the
        weights.
    period, delta
        Stop when the value decreased by a share of less than ``delta`` in the last ``period`` iterations; a
        period of 0 switches this off.
    memory
        Number of pairs of steps and gradient changes that quasi-Newton methods remember.
    line_search
        How smooth methods choose the length of a step.
    max_linesearch
        Largest number of evaluations of the objective in one line search.
    precision
        Relative rounding error of the objective's value: 1e-7 suits a value computed in single precision.
        Smaller differences of the value are decided by slopes.
    history
        Precision in which the remembered pairs are stored; weights and gradients are always float64.
    threads
        For the optimizer's own vectors; the result does not depend on it.
    """

    max_iterations: int | None = None
    epsilon: float = 1e-5
    period: int = 10
    delta: float = 1e-5
    memory: int = 6
    line_search: LineSearch = "MoreThuente"
    max_linesearch: int = 20
    precision: float = 1e-7
    history: Literal["float32", "float64"] = "float32"
    threads: int = 1

    def __post_init__(self) -> None:
        most = self.max_iterations
        require(most is None or most >= 0, "max_iterations", most, "zero or more, or None for no limit")
        for name in ("epsilon", "period", "delta", "precision"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "zero or more")
        for name in ("memory", "max_linesearch", "threads"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        known = get_args(LineSearch)
        require(self.line_search in known, "line_search", self.line_search, "one of " + ", ".join(known))
        require(self.history in ("float32", "float64"), "history", self.history, "'float32' or 'float64'")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for the provenance record of a saved model."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Iteration:
    """The state of an optimizer after an iteration; iteration 0 is the start.

    value
        Objective plus penalty.
    gradient_norm
        Norm of its gradient; of the pseudo-gradient if there is an l1 penalty.
    step
        Length of the last step as a multiple of the direction.
    evaluations
        Calls of the objective since the start.
    active
        Number of weights that are not zero.
    seconds
        Time since the start.
    """

    iteration: int
    value: float
    gradient_norm: float
    step: float
    evaluations: int
    active: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress(Iteration):
    """What a watcher gets: the iteration and the weights (float64[n], read only, overwritten later)."""

    weights: Vector


# Called after each iteration; returning True stops the optimizer.
Watch: TypeAlias = Callable[[Progress], bool | None]


@dataclass(frozen=True, slots=True)
class Optimum:
    """The result of an optimizer.

    weights : float64[n]
    value
        Objective plus penalty there.
    gradient_norm
        Norm of the (pseudo-)gradient there.
    converged
        Whether it stopped by a rule for convergence rather than a limit.
    message
        Why it stopped.
    trace
        Every iteration, including the start.
    """

    weights: Vector
    value: float
    gradient_norm: float
    iterations: int
    evaluations: int
    converged: bool
    message: str
    trace: tuple[Iteration, ...]


class Problem(NamedTuple):
    """The function to minimize, and the start."""

    objective: Objective
    start: Vector
    prior: Penalty
    hessian_product: HessianProduct | None = None


class Ending(NamedTuple):
    """Whether a run converged, and why it ended."""

    converged: bool
    message: str


class Standing(NamedTuple):
    """The numbers at one point that the stopping rules need."""

    value: float
    gradient_norm: float
    weight_norm: float
    active: int


class Monitor:
    """Records iterations, reports them to the watcher, and decides when to stop."""

    def __init__(self, config: OptimizerConfig, watch: Watch | None) -> None:
        self.config = config
        self.watch = watch
        self.trace: list[Iteration] = []
        self._began = time.perf_counter()
        self._lowest = self._flattest = math.inf
        self._stalled = 0

    def record(self, at: Standing, weights: Vector, step: float, evaluations: int) -> Ending | None:
        """Record an iteration (the first call records the start); return an ending if a rule applies."""
        entry = Iteration(
            iteration=len(self.trace),
            value=at.value,
            gradient_norm=at.gradient_norm,
            step=step,
            evaluations=evaluations,
            active=at.active,
            seconds=time.perf_counter() - self._began,
        )
        self.trace.append(entry)
        better = at.value < self._lowest or at.gradient_norm < self._flattest
        self._stalled = 0 if better else self._stalled + 1
        self._lowest = min(self._lowest, at.value)
        self._flattest = min(self._flattest, at.gradient_norm)
        answer = self._tell(entry, weights) if entry.iteration > 0 else None
        return answer or self._ending(at)

    def result(self, weights: Vector, evaluations: int, ending: Ending) -> Optimum:
        """Return the result."""
        last = self.trace[-1]
        return Optimum(
            weights=np.array(weights),
            value=last.value,
            gradient_norm=last.gradient_norm,
            iterations=last.iteration,
            evaluations=evaluations,
            converged=ending.converged,
            message=ending.message,
            trace=tuple(self.trace),
        )

    def _tell(self, entry: Iteration, weights: Vector) -> Ending | None:
        if self.watch is None:
            return None
        view = weights.view()
        view.flags.writeable = False
        numbers = {item.name: getattr(entry, item.name) for item in fields(entry)}
        if self.watch(Progress(**numbers, weights=view)):
            return Ending(False, "stopped by the watcher")
        return None

    def _ending(self, at: Standing) -> Ending | None:
        config, iteration = self.config, len(self.trace) - 1
        if at.gradient_norm <= config.epsilon * max(1.0, at.weight_norm):
            return Ending(True, f"the gradient norm fell below epsilon = {config.epsilon:g}")
        if 0 < config.period <= iteration:
            fall = self.trace[-1 - config.period].value - at.value
            if fall < config.delta * abs(at.value):
                return Ending(
                    True,
                    f"the value fell by less than delta = {config.delta:g} in {config.period} iterations",
                )
        if self._stalled >= STALLED_AFTER:
            return Ending(True, f"no further improvement within precision in {STALLED_AFTER} iterations")
        if config.max_iterations is not None and iteration >= config.max_iterations:
            return Ending(False, f"max_iterations = {config.max_iterations} reached")
        return None


def checked_start(start: Any) -> Vector:
    """Return a copy of the starting weights; refuse anything but a flat array of finite numbers."""
    weights = np.array(start, dtype=np.float64)
    if weights.ndim != 1:
        raise ShapeError(f"start has shape {weights.shape}: give the weights as one flat array.")
    if not np.isfinite(weights).all():
        bad = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise WeightError(f"start[{bad}] is {weights[bad]}: start from finite weights, such as all zeros.")
    return weights


def checked_gradient(gradient: Any, weights: int) -> Vector:
    """Return the gradient as a flat writable float64 array, without copying if it is one already."""
    array: Vector = np.require(gradient, np.float64, ["C", "W"])
    if array.shape != (weights,):
        raise ShapeError(
            f"the objective returned a gradient of shape {array.shape} for {weights} weights: return"
            f" one number per weight, in shape ({weights},)."
        )
    return array


def refuse_start(value: float) -> ObjectiveError:
    """Return the error for an objective that is not finite at the start."""
    return ObjectiveError(
        f"the objective or its gradient is not finite at the start (value {value}). Start from other"
        " weights, such as all zeros, or check the data for NaN and infinite features."
    )
