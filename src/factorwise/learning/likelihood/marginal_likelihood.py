r"""Maximum likelihood of templated models on any graph, through the marginal oracles.

A training world carries the truth in its hidden variables; what is observed stays clamped. With
:math:`\phi` the statistics, :math:`c` the scores that no weight multiplies, and :math:`Z(x)` summed over all
worlds that keep the evidence :math:`x`,

.. math::

   \ell(\theta) = \sum_t \bigl(\theta \cdot \phi(w_t) + c(w_t) - \log Z(x_t)\bigr), \qquad
   \nabla \ell(\theta) = \sum_t \bigl(\phi(w_t) - \mathrm{E}_\theta[\phi \mid x_t]\bigr).

Nothing observed and one set of variables for all worlds is the Markov network of a density; each world with
its own evidence is the conditional random field. Both are one formula here, since worlds with the same
evidence share one log Z.
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
        The labels; those that are not known are not read.
    known : bool[variables]
        Whether each hidden variable's label is known.
    """

    world: Assignment
    known: Bools

    @classmethod
    def from_labels(cls, variables: Variables, labels: Mapping[str, Sequence[Any]]) -> ObservedLabels:
        """Encode labels by column, None where one is not known; a column left out is not known at all."""
        values = np.maximum(variables.codes, 0)
        known = variables.observed.copy()
        for name, given in labels.items():
            part, listed = variables.slice_of(name), list(given)
            if len(listed) != part.stop - part.start:
                raise ShapeError(
                    f"column {name!r} has {part.stop - part.start} rows, but {len(listed)} labels were given:"
                    " give one per row, None where it is not known."
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
        How many calls of the oracle ended before their tolerance: with any, the value is not what the
        oracle promises, and the gradient need not be its derivative.
    """

    value: float
    gradient: Float64s
    unconverged: int


class LogLikelihood:
    r"""The conditional log-likelihood of training worlds as a function of the flat weight vector.

    Exact oracles give the exact value and gradient. `BeliefPropagation` gives the Bethe approximation: value
    and gradient agree wherever messages converge, for there the Bethe free energy is stationary in the
    beliefs, so that its derivative in a weight is the mean statistic under them. `TreeReweighted`, converged,
    bounds log Z from above, so its value is a lower bound of the log-likelihood of fully known worlds, and
    its gradient is the bound's. `Evaluation.unconverged` counts the calls for which none of this holds.

    A `ObservedLabels` with unknown labels enters by its marginal likelihood,
    :math:`\log Z(x, \text{known}) - \log Z(x)`: one more call of the oracle, with what is known clamped.
    It is not concave in the weights.

    Implements: mccallum17learning, "CRF Pseudocode: Value and Gradient" without the prior.

    model
        One model for all worlds; or one per world, with the same blocks of weights, where worlds differ in
        their features or links. Its own weights are neither read nor changed.
    worlds
        Assignments that carry the truth, or a `ObservedLabels` where part of it is unknown.
    oracle
        What finds marginals and log Z of the unrolled graphs.
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
        place = {id(own): number for number, own in enumerate(self._models)}
        self._observed = np.zeros(self.blocks.size)
        self._constant = 0.0
        terms: dict[object, _Term] = {}
        for number, (own, truth) in enumerate(pairs):
            variables = truth.world.variables
            if truth.known[variables.hidden].all():
                found = own.statistics(truth.world)
                self._observed[found.index] += found.value
                self._constant += possible_constant(own, truth.world, number)
            else:
                _count(terms, place[id(own)], _clamped(truth), 1)
            _count(terms, place[id(own)], variables, -1)
        self._terms = tuple(terms.values())
        seen = {term.model: term.variables for term in self._terms}
        for number, variables in seen.items():
            _require_unrolling(self._models[number], variables)

    @property
    def n_oracle_calls(self) -> int:
        """How often one evaluation asks the oracle: once for each distinct model and evidence."""
        return len(self._terms)

    def evaluate(self, weights: ArrayLike) -> Evaluation:
        """Return value, gradient and how many calls of the oracle did not converge."""
        flat = self.blocks.flat(weights)
        models = [Model(own.templates, flat) for own in self._models]
        value = float(self._observed @ flat) + self._constant
        gradient = self._observed.copy()
        unconverged = 0
        for term in self._terms:
            found = self.oracle.marginals(unroll(models[term.model], term.variables))
            value += term.times * found.log_partition
            _add_expected(models[term.model], term.variables, found.factor, term.times, gradient)
            unconverged += found.convergence is not None and not found.convergence.converged
        return Evaluation(value, gradient, unconverged)

    def value_and_gradient(self, weights: ArrayLike) -> tuple[float, Float64s]:
        """Return the log-likelihood and its gradient, to be made large."""
        found = self.evaluate(weights)
        return found.value, found.gradient

    def loss(self, weights: ArrayLike) -> tuple[float, Float64s]:
        """Return minus the log-likelihood and minus its gradient, to be made small by an optimizer."""
        found = self.evaluate(weights)
        return -found.value, -found.gradient


def expected_statistics(model: Model, variables: Variables, factor: Sequence[Floats]) -> Float64s:
    """Mean of the model's statistics, from factor marginals of the graph that `unroll` makes of it."""
    total = np.zeros(model.blocks.size)
    _add_expected(model, variables, factor, 1.0, total)
    return total


def training_pairs(
    model: Model | Sequence[Model], worlds: Sequence[Assignment | ObservedLabels]
) -> list[tuple[Model, ObservedLabels]]:
    """Check what an objective is trained on, and return each world as a `ObservedLabels` beside its model."""
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
                f" {_sizes(models[0])}: worlds are trained together on one weight vector, so build all models"
                " from the same templates, with one vocabulary for their features."
            )
    return list(zip(models, truths, strict=True))


def possible_constant(model: Model, world: Assignment, number: int) -> float:
    """Return the score of training world ``number`` that no weight multiplies; refuse a forbidden world."""
    total = 0.0
    for template in model.templates:
        constant = template.constant(world)
        if constant == -np.inf:
            raise ImpossibleError(
                f"world {number} is forbidden by template {template.name!r}, so no weights make it likely:"
                " mend its labels, or replace the template's -inf by a large negative score."
            )
        total += constant
    return total


class _Term(NamedTuple):
    """A log Z in the sum, for all worlds of one model and evidence.

    model
        Number of the model.
    variables
        What is clamped, by their codes.
    times
        How often it enters, negative as a normalizer.
    """

    model: int
    variables: Variables
    times: int


def _count(terms: dict[object, _Term], model: int, variables: Variables, step: int) -> None:
    key = (model, variables.layout, variables.codes.tobytes())
    known = terms.get(key, _Term(model, variables, 0))
    terms[key] = known._replace(times=known.times + step)


def _clamped(truth: ObservedLabels) -> Variables:
    """Return the variables with what is known of the truth observed."""
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
        found = SparseVector.empty()
        if isinstance(template, Cardinality):
            found = template.expected(beliefs)
        elif isinstance(template, ScopedTemplate):
            found = template.expected(variables, beliefs)
        out[found.index + offset] += scale * found.value


def _n_factors(template: AnyTemplate) -> int:
    if isinstance(template, Cardinality):
        return template.n_groups
    if isinstance(template, ScopedTemplate):
        return len(template.scopes)
    raise InvalidArgumentError(
        f"template {template.name!r} ({type(template).__name__}) cannot be unrolled into tables, which an"
        " oracle needs: train with PseudoLikelihood, which asks for differences only, or describe it by"
        " static templates."
    )


def _require_unrolling(model: Model, variables: Variables) -> None:
    """Refuse a model whose factors cannot be told apart in its graph."""
    counts = [_n_factors(template) for template in model.templates]
    found = unroll(model, variables, clamp=False).n_factors
    if found != sum(counts):
        raise TemplateError(
            f"the templates {list(model.blocks.names)} have {counts} scopes, but unroll into {found} factors:"
            " the tables of a template must name each of its scopes once."
        )


def _as_truth(number: int, given: Assignment | ObservedLabels) -> ObservedLabels:
    world = given.world if isinstance(given, ObservedLabels) else given
    if not isinstance(world, Assignment):
        raise InvalidArgumentError(
            f"world {number} is a {type(world).__name__}: a likelihood is of assignments, so give an"
            " Assignment or a Truth. For clusterings, learn from the steps of a sampler."
        )
    variables = world.variables
    if not len(variables.hidden):
        raise InvalidArgumentError(
            f"world {number} has no hidden variables, so there is nothing to learn from it: build the columns"
            " to be predicted with Column.hidden and give their labels to the Assignment."
        )
    if not isinstance(given, ObservedLabels):
        return ObservedLabels(world, np.ones(len(variables), dtype=np.bool_))
    known = np.asarray(given.known)
    if known.shape != (len(variables),) or known.dtype != np.bool_:
        raise ShapeError(
            f"known of world {number} is {known.dtype} of shape {known.shape}, but there are"
            f" {len(variables)} variables: give one bool for each, or use Truth.from_labels."
        )
    if not known[variables.hidden].any():
        raise InvalidArgumentError(
            f"no label of world {number} is known, so it says nothing about the weights: leave it out, or"
            " give at least one label."
        )
    return ObservedLabels(world, known)


def _sizes(model: Model) -> dict[str, int]:
    return dict(zip(model.blocks.names, model.blocks.sizes, strict=True))
