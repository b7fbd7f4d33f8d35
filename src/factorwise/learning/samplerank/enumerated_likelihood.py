r"""Maximum likelihood by brute force: every world of a small problem is listed and weighed.

.. math::

   \ell(\theta) = \sum_t \Bigl(\mathrm{score}(w_t) - \log \sum_w e^{\mathrm{score}(w)}\Bigr), \qquad
   \nabla \ell(\theta) = \sum_t \bigl(\phi(w_t) - \mathrm{E}_\theta[\phi]\bigr)

with the inner sum over all clusterings of the items, or all labels of the hidden variables. The statistics
of all worlds are computed once; an evaluation is then two matrix products. It serves models of any kind, as
long as they are tiny, and is the yardstick of every other way to learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from factorwise.errors import InvalidArgumentError, require
from factorwise.inference.exact.clusterings import LARGEST, all_partitions
from factorwise.learning.likelihood.marginal_likelihood import possible_constant
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.optimizers import Optimum, minimize
from factorwise.learning.samplerank.walkers import TrainingWorld, check_worlds
from factorwise.model.model import Model
from factorwise.world.assignment import Assignment
from factorwise.world.partition import Partition

Vector = NDArray[np.float64]


class EnumeratedLikelihood:
    """The log-likelihood of true worlds as a function of the flat weight vector; it is concave.

    At its maximum without a prior the expected statistics are those observed. Where the truths lie at the
    edge of what the statistics can be, as a single truth often does, there is no maximum: give a prior.

    worlds
        Models with their truths, clusterings or assignments; proposers and starts are not read, nor are the
        models' own weights. Truths that share a model and its items (or evidence) share one enumeration.
    prior
        What `fit` prefers of the weights; the value and the gradient are without it.
    limit
        Most worlds to list for one model.

    observed : float64[weights]
        Statistics of the truths, added up.
    """

    def __init__(
        self, worlds: Sequence[TrainingWorld], *, prior: Prior | None = None, limit: int = 1 << 17
    ) -> None:
        check_worlds(worlds, "truth")
        require(limit >= 1, "limit", limit, "at least 1")
        self.blocks = worlds[0].model.blocks
        self.prior = prior or Prior.none()
        together: dict[object, list[TrainingWorld]] = {}
        for number, training in enumerate(worlds):
            called = training.name or f"world {number}"
            key = id(training.model), *_kind(called, training.truth)
            if key not in together:
                _check_count(called, training.truth, limit)
            possible_constant(training.model, training.truth, number)
            together.setdefault(key, []).append(training)
        self._terms = [_term(group) for group in together.values()]
        self.observed: Vector = np.sum([term.counts @ term.statistics for term in self._terms], axis=0)

    @property
    def n_worlds(self) -> int:
        """How many possible worlds are weighed at an evaluation."""
        return sum(len(term.counts) for term in self._terms)

    def expected(self, weights: ArrayLike) -> Vector:
        """Return what the statistics of as many worlds as there are truths add up to on average."""
        return self.observed - self.value_and_gradient(weights)[1]

    def value_and_gradient(self, weights: ArrayLike) -> tuple[float, Vector]:
        """Return the log-likelihood and its gradient, to be made large."""
        flat = self.blocks.flat(weights)
        value, gradient = 0.0, np.zeros(len(flat))
        for term in self._terms:
            scores = term.statistics @ flat + term.constant
            log_probability = scores - logsumexp(scores)
            value += float(term.counts @ log_probability)
            gradient += (term.counts - term.counts.sum() * np.exp(log_probability)) @ term.statistics
        return value, gradient

    def loss(self, weights: ArrayLike) -> tuple[float, Vector]:
        """Return minus the log-likelihood and minus its gradient, to be made small by an optimizer."""
        value, gradient = self.value_and_gradient(weights)
        return -value, -gradient

    def fit(self, start: ArrayLike | None = None, **settings: Any) -> Optimum:
        """Return the weights that are best under the prior, found from ``start`` (zero by default).

        settings
            As for `minimize`: ``method``, ``watch``, ``config`` and the fields of an `OptimizerConfig`.
        """
        return minimize(self.loss, self.blocks.flat(start), prior=self.prior, **settings)


class _Term(NamedTuple):
    """All possible worlds of one model.

    counts : float64[worlds]
        How many truths are that world.
    statistics : float64[worlds, weights]
    constant : float64[worlds]
        Scores that no weight multiplies.
    """

    counts: Vector
    statistics: NDArray[np.float64]
    constant: Vector


def _term(group: Sequence[TrainingWorld]) -> _Term:
    model: Model = group[0].model
    worlds, constants = [], []
    for world in _all_worlds(group[0].truth):
        constant = sum(template.constant(world) for template in model.templates)
        if constant > -math.inf:
            worlds.append(world)
            constants.append(constant)
    statistics = np.zeros((len(worlds), model.blocks.size))
    for row, world in zip(statistics, worlds, strict=True):
        found = model.statistics(world)
        row[found.index] = found.value
    place = {world.canonical(): number for number, world in enumerate(worlds)}
    true = [place[training.truth.canonical()] for training in group]
    counts = np.bincount(true, minlength=len(worlds)).astype(np.float64)
    return _Term(counts, statistics, np.array(constants))


def _all_worlds(truth: Partition | Assignment) -> list[Partition] | list[Assignment]:
    """List every world that could be in the place of ``truth``."""
    if isinstance(truth, Partition):
        return all_partitions(truth.n_items, truth.n_types)
    movable = truth.variables.movable
    values = truth.values.copy()
    worlds = []
    for codes in product(*(range(count) for count in truth.variables.cardinality[movable])):
        values[movable] = codes
        worlds.append(Assignment(truth.variables, values))
    return worlds


def _kind(called: str, truth: Any) -> tuple[object, ...]:
    """Return what is equal for truths with the same possible worlds."""
    if isinstance(truth, Partition):
        return truth.n_items, truth.n_types
    if isinstance(truth, Assignment):
        return truth.variables.layout, truth.variables.codes.tobytes()
    raise InvalidArgumentError(
        f"the truth of {called} is a {type(truth).__name__}: give a Partition or an Assignment, whose"
        " possible worlds can be listed."
    )


def _check_count(called: str, truth: Partition | Assignment, limit: int) -> None:
    """Refuse to list more worlds than can be held."""
    remedy = "raise limit, learn from smaller worlds, or use"
    bound = f"the limit is {limit}"
    if isinstance(truth, Partition):
        log_count = _log_clusterings(truth.n_items, truth.n_types)
        listed = f"{truth.n_items} items, hence {_rounded(log_count)} clusterings"
        rival = "RelocationLikelihood, which looks at the neighbors of the truth only, or SampleRank"
        if truth.n_items > LARGEST:
            bound, log_count = f"clusterings are listed of up to {LARGEST} items", math.inf
            remedy = "learn from smaller worlds, or use"
    else:
        movable = truth.variables.movable
        log_count = float(np.log(truth.variables.cardinality[movable]).sum())
        listed = f"{len(movable)} hidden variables, hence {_rounded(log_count)} settings"
        rival = "LogLikelihood with JunctionTree(), or PseudoLikelihood"
    if log_count > math.log(limit + 0.5):
        raise InvalidArgumentError(f"{called} has {listed}, but {bound}: {remedy} {rival}.")


def _log_clusterings(n_items: int, n_types: int) -> float:
    """Log of the number of clusterings with typed clusters, by Dobinski's formula."""
    clusters = np.arange(1, 2 * n_items + 10 * n_types + 50)  # beyond, the terms are below rounding
    terms = n_items * np.log(clusters) + clusters * np.log(n_types) - gammaln(clusters + 1.0)
    return float(logsumexp(terms)) - n_types


def _rounded(log_count: float) -> str:
    """Write a number of worlds that may be beyond what a float can hold."""
    if log_count < math.log(1e15):
        return str(round(math.exp(log_count)))
    exponent, rest = divmod(log_count / math.log(10.0), 1.0)
    return f"about {10.0**rest:.1f}e{int(exponent)}"
