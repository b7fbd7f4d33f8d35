"""The settings of training a chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from factorwise.errors import InvalidArgumentError, require
from factorwise.learning.chain_online import (
    AdaGrad,
    Arow,
    AveragedPerceptron,
    PassiveAggressive,
    Rule,
    StochasticGradient,
)
from factorwise.learning.priors import Prior

BATCH = {
    "lbfgs": "lbfgs",
    "cg": "conjugate_gradient",
    "newton-cg": "newton_cg",
    "gradient-descent": "gradient_descent",
    "coordinate-descent": "coordinate_descent",
}
ONLINE = ("l2sgd", "adagrad", "ap", "pa", "arow")
ALGORITHMS = (*BATCH, *ONLINE)
# how often, unless the user says otherwise, as in CRFsuite
MOST_PASSES = {"l2sgd": 1000, "adagrad": 100, "ap": 100, "pa": 100, "arow": 100}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How a chain is trained; the names and meanings of CRFsuite where it has them.

    algorithm
        ``lbfgs``, ``l2sgd``, ``ap`` (averaged perceptron), ``pa`` (passive-aggressive), ``arow``; also
        ``adagrad``, ``cg``, ``newton-cg``, ``gradient-descent``, ``coordinate-descent``.
    prior
        Penalty on the weights, for the algorithms that minimise a likelihood.
    max_iterations
        Iterations at most; None for the algorithm's own limit.
    epsilon, period, delta
        When to stop: gradient small against the weights; improvement over ``period`` iterations small.
    order
        1: a label depends on the one before; 2: on the two before.
    precision
        ``single`` or ``double``: of the rows of label scores. Sums are made in double precision anyway.
    """

    algorithm: str = "lbfgs"
    prior: Prior = field(default_factory=lambda: Prior(l2=1.0))
    max_iterations: int | None = None
    epsilon: float = 1e-5
    period: int = 10
    delta: float = 1e-5
    memory: int = 6
    linesearch: str = "MoreThuente"
    max_linesearch: int = 20
    order: int = 1
    min_freq: float = 0.0
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    calibration_eta: float = 0.1
    calibration_rate: float = 2.0
    calibration_samples: int = 1000
    calibration_candidates: int = 10
    calibration_max_trials: int = 20
    pa_type: int = 1
    aggressiveness: float = 1.0
    error_sensitive: bool = True
    averaging: bool = True
    variance: float = 1.0
    gamma: float = 1.0
    learning_rate: float = 0.1
    precision: Literal["single", "double"] = "single"
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.algorithm in ALGORITHMS, "algorithm", self.algorithm, f"one of {', '.join(ALGORITHMS)}")
        require(self.order in (1, 2), "order", self.order, "1 or 2")
        require(self.precision in ("single", "double"), "precision", self.precision, "'single' or 'double'")
        require(
            self.max_iterations is None or self.max_iterations >= 1,
            "max_iterations",
            self.max_iterations,
            "at least 1, or None",
        )
        require(self.period >= 1, "period", self.period, "at least 1")
        if self.prior.l1 > 0 and self.algorithm not in ("lbfgs", "coordinate-descent"):
            raise InvalidArgumentError(
                f"c1 = {self.prior.l1} was given, but algorithm {self.algorithm!r} has no L1 penalty:"
                " use 'lbfgs' or 'coordinate-descent', or c1=0."
            )
        if self.order == 2 and self.algorithm in ONLINE:
            raise InvalidArgumentError(
                f"algorithm {self.algorithm!r} trains chains of order 1 only: use 'lbfgs', or order=1."
            )


def online_rule(config: TrainingConfig) -> Rule:
    """Translate the settings of an online algorithm."""
    if config.algorithm == "ap":
        return AveragedPerceptron()
    if config.algorithm == "pa":
        return PassiveAggressive(
            kind=config.pa_type,
            c=config.aggressiveness,
            error_sensitive=config.error_sensitive,
            averaging=config.averaging,
        )
    if config.algorithm == "arow":
        return Arow(variance=config.variance, gamma=config.gamma)
    if config.algorithm == "adagrad":
        return AdaGrad(l2=config.prior.l2, rate=config.learning_rate)
    return StochasticGradient(
        l2=config.prior.l2,
        calibration_eta=config.calibration_eta,
        calibration_rate=config.calibration_rate,
        calibration_samples=config.calibration_samples,
        calibration_candidates=config.calibration_candidates,
        calibration_max_trials=config.calibration_max_trials,
    )
