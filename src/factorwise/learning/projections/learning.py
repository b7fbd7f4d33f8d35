"""Learning the weights of energies, alone or with the scores of the base model.

Both methods raise the likelihood of `SequenceLikelihood` less a prior on the weights of the energy, which are
kept at zero or more; what the prior holds at zero is pruned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import ShapeError, require
from factorwise.inference.message_passing.projection import nonnegative
from factorwise.kernels.compile.threads import Team
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.projections.likelihood import (
    Accuracy,
    Differentiate,
    ProjectedLikelihood,
    SequenceLikelihood,
)
from factorwise.types import Bools, Floats, Ints
from factorwise.validation import check_count, check_number

TOGETHER = 256  # sequences: many times many measurements would take much memory
STABLE = 1e-12  # keeps the first step of a weight without a gradient finite


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyLearning:
    """How to learn.

    method
        ``"doubly-stochastic"``: one step for each small batch of sequences (Algorithm 3);
        ``"double-loop"``: project all, then step with the marginals held (Algorithm 2).
    rounds
        Passes over the sequences.
    batch
        Sequences for each step of the doubly stochastic method.
    inner_steps
        Steps of the double loop before sequences are projected again.
    rate
        First step of each weight; steps shrink as gradients add up (AdaGrad).
    prior
        On the weights of the energy. Its ``l1`` prunes.
    base_prior
        On the parameters of the base model.
    differentiate
        See `SequenceLikelihood.evaluate`.
    accuracy
        Of projections.
    seed
        Of the order of sequences.
    """

    method: Literal["doubly-stochastic", "double-loop"] = "doubly-stochastic"
    rounds: int = 15
    batch: int = 32
    inner_steps: int = 1
    rate: float = 0.3
    prior: Prior = field(default_factory=lambda: Prior(l1=1.0))
    base_prior: Prior = field(default_factory=lambda: Prior(l2=1.0))
    differentiate: Differentiate = "fixed"
    accuracy: Accuracy = field(default_factory=Accuracy)
    seed: int = 0

    def __post_init__(self) -> None:
        methods, ways = ("doubly-stochastic", "double-loop"), ("fixed", "implicit")
        require(self.method in methods, "method", self.method, f"one of {', '.join(methods)}")
        require(self.differentiate in ways, "differentiate", self.differentiate, f"one of {', '.join(ways)}")
        check_count("rounds", self.rounds)
        check_count("batch", self.batch)
        check_count("inner_steps", self.inner_steps)
        check_number("rate", self.rate, above=0)


class LearningRound(NamedTuple):
    """One pass: the mean log-likelihood of a sequence on the way, and how many weights are above zero."""

    log_likelihood: float
    active: int


@dataclass(frozen=True, slots=True, eq=False)
class EnergyFit:
    """What was learned.

    weights : float64[measurements]
        Of the energy, psi; zero where it was pruned.
    parameters : float64[parameters]
        Of the base model, theta.
    rounds
        What happened in each pass.
    """

    weights: Floats
    parameters: Floats
    rounds: tuple[LearningRound, ...]

    @property
    def active(self) -> Bools:
        """Which measurements are still of use."""
        return self.weights > 0


def learn_energies(
    likelihood: SequenceLikelihood,
    *,
    config: EnergyLearning | None = None,
    weights: ArrayLike = 0.0,
    parameters: ArrayLike = 0.0,
    held: ArrayLike = False,
    watch: Callable[[LearningRound], object] | None = None,
    team: Team | None = None,
) -> EnergyFit:
    """Learn the weights of an energy, and the parameters of the base model if it has any.

    weights, parameters
        Where to begin.
    held : bool[measurements]
        Weights that stay where they begin.
    watch
        Called after each pass; a true answer ends learning.

    Implements: vilnis2015bethe, Algorithms 2 and 3, with the sign that Eq. 15 to 17 leave out.
    """
    settings = config or EnergyLearning()
    count, size = likelihood.measurement.count, likelihood.base.parameters
    walk = _Ascent(
        settings,
        likelihood.count,
        nonnegative(_spread(weights, count, "weights")),
        _spread(parameters, size, "parameters"),
        np.array(np.broadcast_to(held, (count,)), dtype=np.bool_),
    )
    passes = _stochastic if settings.method == "doubly-stochastic" else _double_loop
    order = np.random.default_rng(settings.seed)
    rounds: list[LearningRound] = []
    for _ in range(settings.rounds):
        value = passes(likelihood, walk, settings, order, team)
        rounds.append(LearningRound(value / max(likelihood.count, 1), int((walk.weights > 0).sum())))
        if watch is not None and watch(rounds[-1]):
            break
    return EnergyFit(walk.weights, walk.parameters, tuple(rounds))


def promising(likelihood: SequenceLikelihood, prior: Prior, *, team: Team | None = None) -> Ints:
    """Return the measurements whose weights would leave zero: those whose first gradient beats the prior.

    So many can be generated and few are learned.
    """
    none = np.zeros(likelihood.measurement.count)
    slope, least = np.zeros_like(none), Accuracy(max_iterations=0)
    for first in range(0, likelihood.count, TOGETHER):
        which = np.arange(first, min(first + TOGETHER, likelihood.count))
        slope += likelihood.evaluate(none, which=which, accuracy=least, team=team).weights
    return np.flatnonzero(slope > max(prior.l1, STABLE))


class _Ascent:
    """Weights on the way up: AdaGrad, each step followed by the prior's pull and by the cut at zero."""

    def __init__(
        self, settings: EnergyLearning, count: int, weights: Floats, parameters: Floats, held: Bools
    ) -> None:
        self.settings = settings
        self.count = max(count, 1)
        self.weights = weights
        self.parameters = parameters
        self.held = held
        self._seen = np.zeros_like(weights), np.zeros_like(parameters)

    def step(self, found: ProjectedLikelihood, sequences: int) -> None:
        """Move along the gradient of so many sequences."""
        prior, base_prior = self.settings.prior, self.settings.base_prior
        share = 1.0 / self.count
        slope = found.weights / sequences - share * prior.smooth_gradient(self.weights)
        moved, length = self._moved(self.weights, slope, self._seen[0])
        # the price of an absolute weight is paid after the step: weights end at zero, not around it
        paid = np.maximum(moved - length * share * prior.l1, 0.0)
        self.weights = np.where(self.held, self.weights, paid)
        if len(self.parameters):
            slope = found.parameters / sequences - share * base_prior.smooth_gradient(self.parameters)
            moved, length = self._moved(self.parameters, slope, self._seen[1])
            price = length * share * base_prior.l1
            self.parameters = np.sign(moved) * np.maximum(np.abs(moved) - price, 0.0)

    def _moved(self, place: Floats, slope: Floats, seen: Floats) -> tuple[Floats, Floats]:
        seen += slope * slope
        length = self.settings.rate / np.sqrt(seen + STABLE)
        return place + length * slope, length


def _stochastic(
    likelihood: SequenceLikelihood,
    walk: _Ascent,
    settings: EnergyLearning,
    order: np.random.Generator,
    team: Team | None,
) -> float:
    """Step once for each batch; return the log-likelihood on the way."""
    total, shuffled = 0.0, order.permutation(likelihood.count)
    for first in range(0, len(shuffled), settings.batch):
        which = shuffled[first : first + settings.batch]
        found = likelihood.evaluate(
            walk.weights,
            walk.parameters,
            which,
            differentiate=settings.differentiate,
            accuracy=settings.accuracy,
            team=team,
        )
        total += found.log_likelihood
        walk.step(found, len(which))
    return total


def _double_loop(
    likelihood: SequenceLikelihood,
    walk: _Ascent,
    settings: EnergyLearning,
    order: np.random.Generator,
    team: Team | None,
) -> float:
    """Project all, then step with the marginals held; return the log-likelihood at the projections."""
    found = likelihood.evaluate(
        walk.weights,
        walk.parameters,
        differentiate=settings.differentiate,
        accuracy=settings.accuracy,
        team=team,
    )
    walk.step(found, likelihood.count)
    for _ in range(settings.inner_steps - 1):
        held = likelihood.held(walk.weights, found.measured, walk.parameters, team=team)
        walk.step(held, likelihood.count)
    return found.log_likelihood


def _spread(given: ArrayLike, count: int, name: str) -> Floats:
    try:
        return np.array(np.broadcast_to(np.asarray(given, dtype=np.float64), (count,)))
    except ValueError:
        raise ShapeError(
            f"{name} of shape {np.shape(given)} were given where there are {count}: give one each, or one for"
            " all."
        ) from None
