"""Settings for training a chain."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import inf
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from factorwise.errors import InvalidArgumentError, require
from factorwise.learning.chains.online import (
    AdaGrad,
    Arow,
    AveragedPerceptron,
    PassiveAggressive,
    Rule,
    StochasticGradient,
)
from factorwise.learning.likelihood.priors import Prior

BATCH = {
    "lbfgs": "lbfgs",
    "cg": "conjugate_gradient",
    "newton-cg": "newton_cg",
    "gradient-descent": "gradient_descent",
    "coordinate-descent": "coordinate_descent",
}
ONLINE = ("l2sgd", "adagrad", "ap", "pa", "arow")
ALGORITHMS = (*BATCH, *ONLINE)
"""Names of the algorithms that train a chain: over all sentences at once, or sentence by sentence."""
# default number of passes over the data, as in CRFsuite
MOST_PASSES = {"l2sgd": 1000, "adagrad": 100, "ap": 100, "pa": 100, "arow": 100}
#: Prior if the user gives none: the best fixed prior on five public text datasets (docs/results.md).
DEFAULT_PRIOR = Prior(l1=0.1, l2=0.1)
_SQUARED_ONLY = Prior(l2=DEFAULT_PRIOR.l2)  # an L2 penalty, which every algorithm supports
_LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")
_WITH_L1 = ("lbfgs", "gradient-descent", "coordinate-descent")
_NUMBERS = {"int": Integral, "int | None": Integral, "float": Real, "float | None": Real}
_AS_USERS_SAY = {"memory": "num_memories", "aggressiveness": "c"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How to train a chain. Names and meanings are those of CRFsuite where it has the same setting.

    algorithm
        ``lbfgs``, ``l2sgd``, ``ap`` (averaged perceptron), ``pa`` (passive-aggressive), ``arow``; also
        ``adagrad``, ``cg``, ``newton-cg``, ``gradient-descent``, ``coordinate-descent``.
    prior
        Penalty on the weights, for the algorithms that maximize a likelihood.
    max_iterations
        Maximum number of iterations; None for the algorithm's default.
    epsilon, period, delta
        Stopping criteria: the gradient norm relative to the weights is below ``epsilon`` (for ``ap``, ``pa``
        and ``arow``: the mean loss of a sentence), or the relative improvement over ``period`` iterations is
        below ``delta``. None for the algorithm's default.
    memory
        Number of updates that L-BFGS stores; None for 6, or for 12 with an L1 penalty.
    min_freq
        Pairs of attribute and label, and transitions, that occur less often get no weight.
    order
        1: a label depends on the previous label; 2: on the two previous labels.
    precision
        ``single`` or ``double`` precision for the label scores. Sums are always in double precision, and so
        are the scores for ``newton-cg``, which takes differences of gradients.
    """

    algorithm: str = "lbfgs"
    prior: Prior = _SQUARED_ONLY
    max_iterations: int | None = None
    epsilon: float | None = None
    period: int = 10
    delta: float | None = None
    memory: int | None = None
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
    pa_type: Literal[0, 1, 2] = 1
    aggressiveness: float = 1.0
    error_sensitive: bool = True
    averaging: bool = True
    variance: float = 1.0
    gamma: float = 1.0
    learning_rate: float = 0.1
    precision: Literal["single", "double"] = "single"
    seed: int = 0

    def __post_init__(self) -> None:
        self._check_numbers()
        named = isinstance(self.algorithm, str) and self.algorithm in ALGORITHMS
        require(named, "algorithm", self.algorithm, f"one of {', '.join(ALGORITHMS)}")
        require(self.pa_type in (0, 1, 2), "pa_type", self.pa_type, "0, 1 or 2")
        require(self.order in (1, 2), "order", self.order, "1 or 2")
        require(self.precision in ("single", "double"), "precision", self.precision, "'single' or 'double'")
        known = self.linesearch in _LINE_SEARCHES
        require(known, "linesearch", self.linesearch, f"one of {', '.join(_LINE_SEARCHES)}")
        if self.prior.l1 > 0 and self.algorithm not in _WITH_L1:
            raise InvalidArgumentError(
                f"c1 = {self.prior.l1} was given, but algorithm {self.algorithm!r} has no L1 penalty:"
                f" use one of {', '.join(_WITH_L1)}, or c1=0."
            )
        if self.order == 2 and self.algorithm in ONLINE:
            raise InvalidArgumentError(
                f"algorithm {self.algorithm!r} trains chains of order 1 only: use 'lbfgs', or order=1."
            )

    def _check_numbers(self) -> None:
        for item in fields(self):
            kind, given = _NUMBERS.get(str(item.type)), getattr(self, item.name)
            if kind is None or (given is None and "None" in str(item.type)):
                continue
            name = _AS_USERS_SAY.get(item.name, item.name)
            wanted = "a whole number" if kind is Integral else "a finite number"
            require(_is_number(given, kind), name, given, wanted)
            if item.name in ("max_iterations", "period", "memory", "max_linesearch"):
                require(given >= 1, name, given, "at least 1")
            if item.name in ("epsilon", "delta", "min_freq"):
                require(given >= 0, name, given, "zero or more")
            if isinstance(given, np.generic):  # from a parameter grid; model files hold plain numbers
                object.__setattr__(self, item.name, given.item())

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """Return the floating-point type of the label scores."""
        double = self.precision == "double" or self.algorithm == "newton-cg"
        return np.float64 if double else np.float32

    def stopping(self) -> dict[str, Any]:
        """Return epsilon, period and delta, with the algorithm's default where none was given."""
        epsilon, delta = (0.0, 1e-6) if self.algorithm in ONLINE else (1e-5, 1e-5)
        return {
            "epsilon": epsilon if self.epsilon is None else self.epsilon,
            "period": self.period,
            "delta": delta if self.delta is None else self.delta,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for the provenance of a saved model."""
        return asdict(self) | self.stopping() | {"prior": {"c1": self.prior.l1, "c2": self.prior.l2}}


def default_prior(algorithm: str, *, named: bool = False) -> Prior:
    """Return the default prior; ``named`` means that the user gave one of the two penalties."""
    return DEFAULT_PRIOR if algorithm in _WITH_L1 and not named else _SQUARED_ONLY


def prior_of(
    c1: float | None,
    c2: float | None,
    scale: float | None = None,
    variance: float | None = None,
    *,
    algorithm: str = "lbfgs",
) -> Prior:
    """Return the prior from either notation; `default_prior` fills in what is not given.

    scale, variance
        Scale of a Laplace prior, instead of c1; variance of a Gaussian prior, instead of c2.
    """
    given = {"c1": c1, "c2": c2, "prior_scale": scale, "prior_variance": variance}
    for name, number in given.items():
        sound = number is None or (_is_number(number, Real) and number >= 0)
        require(sound, name, number, "a finite number from 0 on, or None")
    for one, other in (("c1", "prior_scale"), ("c2", "prior_variance")):
        if given[one] is not None and given[other] is not None:
            raise InvalidArgumentError(f"{one} and {other} say the same thing: give one of them.")
    default = default_prior(algorithm, named=any(number is not None for number in given.values()))
    l1 = default.l1 if c1 is None else float(c1)
    l2 = default.l2 if c2 is None else float(c2)
    return Prior(
        l1=l1 if scale is None else Prior.laplace(float(scale)).l1,
        l2=l2 if variance is None else Prior.gaussian(float(variance)).l2,
    )


def online_rule(config: TrainingConfig) -> Rule:
    """Return the update rule of an online algorithm."""
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


def _is_number(given: Any, kind: type) -> bool:
    return not isinstance(given, bool) and isinstance(given, kind) and -inf < float(given) < inf  # type: ignore[arg-type]
