"""Learn the weights of energies, alone or with the scores of the base model.

Both methods increase the likelihood of `SequenceLikelihood` minus a prior on the weights of the energy, which
are kept at zero or more; weights that the prior holds at zero are pruned.
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

TOGETHER = 256  # sequences at a time: many sequences times many measurements would need much memory
STABLE = 1e-12  # keeps the first step of a weight without a gradient finite


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyLearning:
    """Options of learning.

    method
        ``"doubly-stochastic"``: one step for each small batch of sequences (Algorithm 3);
        ``"double-loop"``: project all, then step with the marginals held (Algorithm 2).
    rounds
        Number of passes over the sequences.
    batch
        Number of sequences for each step of the doubly stochastic method.
    inner_steps
        Number of steps of the double loop before sequences are projected again.
    rate
        First step of each weight; steps shrink as gradients accumulate (AdaGrad).
    prior
        Prior on the weights of the energy; its ``l1`` prunes.
    base_prior
        Prior on the parameters of the base model.
    differentiate
        See `SequenceLikelihood.evaluate`.
    accuracy
        Accuracy of the projections.
    seed
        Seed of the order of the sequences.
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
    """One pass: the mean log-likelihood of a sequence in the pass, and the number of nonzero weights."""

    log_likelihood: float
    active: int


@dataclass(frozen=True, slots=True, eq=False)
class EnergyFit:
    """The result of learning.

    weights : float64[measurements]
        Weights of the energy, psi; zero if pruned.
    parameters : float64[parameters]
        Parameters of the base model, theta.
    rounds
        A record of each pass.
    """

    weights: Floats
    parameters: Floats
    rounds: tuple[LearningRound, ...]

    @property
    def active(self) -> Bools:
        """The measurements whose weights are not zero."""
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
        Initial values.
    held : bool[measurements]
        Weights that keep their initial values.
    watch
        Called after each pass; learning stops if it returns true.

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
    """Return the measurements whose first gradient is larger than the prior's, so that they would leave zero.

    This allows many measurements to be generated of which few are learned.
    """
    none = np.zeros(likelihood.measurement.count)
    slope, least = np.zeros_like(none), Accuracy(max_iterations=0)
    for first in range(0, likelihood.count, TOGETHER):
        which = np.arange(first, min(first + TOGETHER, likelihood.count))
        slope += likelihood.evaluate(none, which=which, accuracy=least, team=team).weights
    return np.flatnonzero(slope > max(prior.l1, STABLE))


class _Ascent:
    """Weights under AdaGrad, where each step is followed by the prior's pull and clipped at zero."""

    def __init__(
        self, settings: EnergyLearning, count: int, weights: Floats, parameters: Floats, held: Bools
    ) -> None:
        self.settings = settings
        self.count = max(count, 1)
        self.weights = weights
        self.parameters = parameters
        self.held = held
        self._seen = np.zeros_like(weights), np.zeros_like(parameters)

    def step(self, likelihood: ProjectedLikelihood, sequences: int) -> None:
        """Move along the gradient of ``sequences`` sequences."""
        prior, base_prior = self.settings.prior, self.settings.base_prior
        share = 1.0 / self.count
        slope = likelihood.weights / sequences - share * prior.smooth_gradient(self.weights)
        moved, length = self._moved(self.weights, slope, self._seen[0])
        # the l1 penalty is applied after the step, so that weights end at zero and not around it
        paid = np.maximum(moved - length * share * prior.l1, 0.0)
        self.weights = np.where(self.held, self.weights, paid)
        if len(self.parameters):
            slope = likelihood.parameters / sequences - share * base_prior.smooth_gradient(self.parameters)
            moved, length = self._moved(self.parameters, slope, self._seen[1])
            price = length * share * base_prior.l1
            self.parameters = np.sign(moved) * np.maximum(np.abs(moved) - price, 0.0)

    def _moved(self, weights: Floats, slope: Floats, seen: Floats) -> tuple[Floats, Floats]:
        seen += slope * slope
        length = self.settings.rate / np.sqrt(seen + STABLE)
        return weights + length * slope, length


def _stochastic(
    likelihood: SequenceLikelihood,
    walk: _Ascent,
    settings: EnergyLearning,
    order: np.random.Generator,
    team: Team | None,
) -> float:
    """Make a step for each batch; return the log-likelihood during the pass."""
    total, shuffled = 0.0, order.permutation(likelihood.count)
    for first in range(0, len(shuffled), settings.batch):
        which = shuffled[first : first + settings.batch]
        likelihoods = likelihood.evaluate(
            walk.weights,
            walk.parameters,
            which,
            differentiate=settings.differentiate,
            accuracy=settings.accuracy,
            team=team,
        )
        total += likelihoods.log_likelihood
        walk.step(likelihoods, len(which))
    return total


def _double_loop(
    likelihood: SequenceLikelihood,
    walk: _Ascent,
    settings: EnergyLearning,
    order: np.random.Generator,
    team: Team | None,
) -> float:
    """Project all sequences, then step with the marginals held fixed.

    Return the log-likelihood at the projections.
    """
    likelihoods = likelihood.evaluate(
        walk.weights,
        walk.parameters,
        differentiate=settings.differentiate,
        accuracy=settings.accuracy,
        team=team,
    )
    walk.step(likelihoods, likelihood.count)
    for _ in range(settings.inner_steps - 1):
        held = likelihood.held(walk.weights, likelihoods.measured, walk.parameters, team=team)
        walk.step(held, likelihood.count)
    return likelihoods.log_likelihood


def _spread(values: ArrayLike, count: int, name: str) -> Floats:
    try:
        return np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), (count,)))
    except ValueError:
        raise ShapeError(
            f"{name} must be one number or {count} of them, but an array of shape {np.shape(values)}"
            " was given."
        ) from None
