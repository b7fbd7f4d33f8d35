r"""Maximum likelihood of templated models on any graph, through the marginal oracles.

A training world has the true labels in its hidden variables; observed variables stay clamped. With
:math:`\phi` the statistics, :math:`c` the scores that no weight multiplies, and :math:`Z(x)` summed over all
worlds that keep the evidence :math:`x`,

.. math::

   \ell(\theta) = \sum_t \bigl(\theta \cdot \phi(w_t) + c(w_t) - \log Z(x_t)\bigr), \qquad
   \nabla \ell(\theta) = \sum_t \bigl(\phi(w_t) - \mathrm{E}_\theta[\phi \mid x_t]\bigr).

If nothing is observed and all worlds have the same variables, this is the Markov network of a density; if
each world has its own evidence, it is a conditional random field. One formula covers both, because worlds
with the same evidence share one log Z.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import ImpossibleError, InvalidArgumentError, ShapeError, TemplateError
from factorwise.inference.base import MarginalOracle
from factorwise.model.labels.base import ScopedTemplate
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.model import Model
from factorwise.model.template import AnyTemplate
from factorwise.model.unrolling import unroll
from factorwise.model.weights import SparseVector
from factorwise.types import Bools, Float64s, Floats
from factorwise.variables.variable import HIDDEN, Column, Variables
from factorwise.world.assignment import Assignment


class ObservedLabels(NamedTuple):
    """A training world of which only some labels are known.

    world
        The labels; unknown ones are not read.
    known : bool[variables]
        Whether each hidden variable's label is known.
    """

    world: Assignment
    known: Bools

    @classmethod
    def from_labels(cls, variables: Variables, labels: Mapping[str, Sequence[Any]]) -> ObservedLabels:
        """Encode labels by column, with None for unknown ones; all labels of a missing column are unknown."""
        values = np.maximum(variables.codes, 0)
        known = variables.observed.copy()
        for name, column_labels in labels.items():
            part, listed = variables.slice_of(name), list(column_labels)
            if len(listed) != part.stop - part.start:
                raise ShapeError(
                    f"column {name!r} has {part.stop - part.start} rows, but {len(listed)} labels were"
                    " given: give one per row, None if it is unknown."
                )
            rows = np.flatnonzero([label is not None for label in listed]) + part.start
            if len(rows):
                domain = variables.column(name).domain
                values[rows] = domain.encode([label for label in listed if label is not None])
                known[rows] = True
        return cls(Assignment(variables, values), known)


class Evaluation(NamedTuple):
    """A log-likelihood at one weight vector.

    value
        The log-likelihood; higher is better.
    gradient : float64[weights]
        Its derivative in each weight.
    unconverged
        How many calls of the oracle ended before they reached their tolerance: with any, the value is not
        what the oracle promises, and the gradient need not be its derivative.
    """

    value: float
    gradient: Float64s
    unconverged: int


class LogLikelihood:
    r"""The conditional log-likelihood of training worlds as a function of the flat weight vector.

    Exact oracles give the exact value and gradient. `BeliefPropagation` gives the Bethe approximation: value
    and gradient agree if messages converge, because the Bethe free energy is then stationary in the beliefs,
    and its derivative in a weight is the mean statistic under them. `TreeReweighted`, converged, bounds log Z
    from above, so its value is a lower bound of the log-likelihood of fully known worlds, and its gradient is
    the bound's. `Evaluation.unconverged` counts the calls for which none of this holds.

    An `ObservedLabels` with unknown labels contributes its marginal likelihood, :math:`\log Z(x,
    \text{known}) - \log Z(x)`: one more call of the oracle, with known labels clamped. It is not concave in
    the weights.

    Implements: mccallum17learning, "CRF Pseudocode: Value and Gradient" without the prior.

    model
        One model for all worlds; or, if worlds differ in their features or links, one per world, all with the
        same blocks of weights. The models' own weights are neither read nor changed.
    worlds
        Assignments with the true labels, or an `ObservedLabels` if some are unknown.
    oracle
        Computes marginals and log Z of the unrolled graphs.
    """

    def __init__(
        self,
        model: Model | Sequence[Model],
        worlds: Sequence[Assignment | ObservedLabels],
        oracle: MarginalOracle,
    ) -> None:
        self.oracle = oracle
        pairs = training_pairs(model, worlds)
        self.blocks = pairs[0][0].blocks
        self._models = list({id(own): own for own, _ in pairs}.values())
        number_of = {id(own): number for number, own in enumerate(self._models)}
        self._observed = np.zeros(self.blocks.size)
        self._constant = 0.0
        terms: dict[object, _Term] = {}
        for number, (own, truth) in enumerate(pairs):
            variables = truth.world.variables
            if truth.known[variables.hidden].all():
                statistics = own.statistics(truth.world)
                self._observed[statistics.index] += statistics.value
                self._constant += possible_constant(own, truth.world, number)
            else:
                _count(terms, number_of[id(own)], _clamped(truth), 1)
            _count(terms, number_of[id(own)], variables, -1)
        self._terms = tuple(terms.values())
        seen = {term.model: term.variables for term in self._terms}
        for number, variables in seen.items():
            _require_unrolling(self._models[number], variables)

    @property
    def n_oracle_calls(self) -> int:
        """How often one evaluation calls the oracle: once for each distinct model and evidence."""
        return len(self._terms)

    def evaluate(self, weights: ArrayLike) -> Evaluation:
        """Return value, gradient and the number of oracle calls that did not converge."""
        flat = self.blocks.flat(weights)
        models = [Model(own.templates, flat) for own in self._models]
        value = float(self._observed @ flat) + self._constant
        gradient = self._observed.copy()
        unconverged = 0
        for term in self._terms:
            marginals = self.oracle.marginals(unroll(models[term.model], term.variables))
            value += term.times * marginals.log_partition
            _add_expected(models[term.model], term.variables, marginals.factor, term.times, gradient)
            unconverged += marginals.convergence is not None and not marginals.convergence.converged
        return Evaluation(value, gradient, unconverged)

    def value_and_gradient(self, weights: ArrayLike) -> tuple[float, Float64s]:
        """Return the log-likelihood and its gradient, for maximization."""
        evaluation = self.evaluate(weights)
        return evaluation.value, evaluation.gradient

    def loss(self, weights: ArrayLike) -> tuple[float, Float64s]:
        """Return the negative log-likelihood and its gradient, for minimization."""
        evaluation = self.evaluate(weights)
        return -evaluation.value, -evaluation.gradient


def expected_statistics(model: Model, variables: Variables, factor: Sequence[Floats]) -> Float64s:
    """Return the mean of the model's statistics, from factor marginals of its unrolled graph."""
    total = np.zeros(model.blocks.size)
    _add_expected(model, variables, factor, 1.0, total)
    return total


def training_pairs(
    model: Model | Sequence[Model], worlds: Sequence[Assignment | ObservedLabels]
) -> list[tuple[Model, ObservedLabels]]:
    """Check the data of an objective, and return each world as `ObservedLabels` with its model."""
    if isinstance(worlds, (Assignment, ObservedLabels)) or not len(worlds):
        raise InvalidArgumentError("training needs worlds: give a list with at least one, [world, ...].")
    truths = [_as_truth(number, world) for number, world in enumerate(worlds)]
    models = [model] * len(truths) if isinstance(model, Model) else list(model)
    if len(models) != len(truths):
        raise ShapeError(
            f"{len(models)} models were given for {len(truths)} worlds: give one model for all worlds, or one"
            " for each."
        )
    for number, own in enumerate(models):
        if own.blocks != models[0].blocks:
            raise InvalidArgumentError(
                f"the model of world {number} has the weights {_sizes(own)}, but that of world 0 has"
                f" {_sizes(models[0])}: all worlds share one weight vector, so build all models from"
                " the same templates, with one vocabulary for their features."
            )
    return list(zip(models, truths, strict=True))


def possible_constant(model: Model, world: Assignment, number: int) -> float:
    """Return the score of training world ``number`` that no weight multiplies; refuse a forbidden world."""
    total = 0.0
    for template in model.templates:
        constant = template.constant(world)
        if constant == -np.inf:
            raise ImpossibleError(
                f"world {number} is forbidden by template {template.name!r}, so it has probability zero"
                " under all weights: fix its labels, or replace the template's -inf by a large"
                " negative score."
            )
        total += constant
    return total


class _Term(NamedTuple):
    """A log Z in the sum, for all worlds with one model and evidence.

    model
        Number of the model.
    variables
        The variables, whose observed codes are clamped.
    times
        How often it is added; negative as a normalizer.
    """

    model: int
    variables: Variables
    times: int


def _count(terms: dict[object, _Term], model: int, variables: Variables, step: int) -> None:
    key = (model, variables.layout, variables.codes.tobytes())
    known = terms.get(key, _Term(model, variables, 0))
    terms[key] = known._replace(times=known.times + step)


def _clamped(truth: ObservedLabels) -> Variables:
    """Return the variables with the known labels observed."""
    world = truth.world
    codes = np.where(truth.known | world.variables.observed, world.values, HIDDEN)
    parts = np.split(codes, world.variables.start[1:-1])
    columns: Iterator[Column] = (
        replace(column, codes=part) for column, part in zip(world.variables.columns, parts, strict=True)
    )
    return Variables(columns)


def _add_expected(
    model: Model, variables: Variables, factor: Sequence[Floats], scale: float, out: Float64s
) -> None:
    first = 0
    for template, offset in model.parts():
        beliefs = factor[first : first + _n_factors(template)]
        first += len(beliefs)
        statistics = SparseVector.empty()
        if isinstance(template, Cardinality):
            statistics = template.expected(beliefs)
        elif isinstance(template, ScopedTemplate):
            statistics = template.expected(variables, beliefs)
        out[statistics.index + offset] += scale * statistics.value


def _n_factors(template: AnyTemplate) -> int:
    if isinstance(template, Cardinality):
        return template.n_groups
    if isinstance(template, ScopedTemplate):
        return len(template.scopes)
    raise InvalidArgumentError(
        f"template {template.name!r} ({type(template).__name__}) cannot be unrolled into tables, which"
        " an oracle needs: train with PseudoLikelihood, which needs differences only, or use static"
        " templates."
    )


def _require_unrolling(model: Model, variables: Variables) -> None:
    """Refuse a model whose factors cannot be distinguished in its graph."""
    counts = [_n_factors(template) for template in model.templates]
    n_factors = unroll(model, variables, clamp=False).n_factors
    if n_factors != sum(counts):
        raise TemplateError(
            f"the templates {list(model.blocks.names)} have {counts} scopes, but unroll into"
            f" {n_factors} factors: the tables of a template must name each of its scopes once."
        )


def _as_truth(number: int, world_or_labels: Assignment | ObservedLabels) -> ObservedLabels:
    world = world_or_labels.world if isinstance(world_or_labels, ObservedLabels) else world_or_labels
    if not isinstance(world, Assignment):
        raise InvalidArgumentError(
            f"world {number} is a {type(world).__name__}, but this likelihood is for assignments: give"
            " an Assignment or an ObservedLabels. For clusterings, use SampleRank."
        )
    variables = world.variables
    if not len(variables.hidden):
        raise InvalidArgumentError(
            f"world {number} has no hidden variables, so nothing can be learned from it: build the"
            " columns to be predicted with Column.hidden and give their labels to the Assignment."
        )
    if not isinstance(world_or_labels, ObservedLabels):
        return ObservedLabels(world, np.ones(len(variables), dtype=np.bool_))
    known = np.asarray(world_or_labels.known)
    if known.shape != (len(variables),) or known.dtype != np.bool_:
        raise ShapeError(
            f"known of world {number} is {known.dtype} of shape {known.shape}, but there are"
            f" {len(variables)} variables: give one bool for each, or use ObservedLabels.from_labels."
        )
    if not known[variables.hidden].any():
        raise InvalidArgumentError(
            f"no label of world {number} is known, so nothing can be learned from it: leave it out, or"
            " give at least one label."
        )
    return ObservedLabels(world, known)


def _sizes(model: Model) -> dict[str, int]:
    return dict(zip(model.blocks.names, model.blocks.sizes, strict=True))
