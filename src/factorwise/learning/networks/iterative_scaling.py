"""Maximum likelihood of log-linear Markov networks whose factors share weights.

Read top to bottom: the network, the fit, generalized iterative scaling, and maximum likelihood by gradient,
which scaling is checked against.

A feature is a function of the variables of a factor; factors may share features, and so their weights. The
likelihood is highest where the expected total of every feature under the model is its mean in the data.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array, identity, issparse, vstack

from factorwise.errors import ConvergenceWarning, InvalidArgumentError, ShapeError, WeightError, require
from factorwise.inference.base import MarginalOracle
from factorwise.inference.exact.junction_tree import JunctionTree
from factorwise.learning.networks.counts import CliqueCounts, checked_cardinality
from factorwise.model.grounding import FactorGraph
from factorwise.types import Bools, Floats

# Newton steps that may follow when the objective no longer shows progress that the gradient still does.
POLISHING_STEPS = 20


@dataclass(frozen=True, slots=False, eq=False)
class LogLinearNetwork:
    """Factors whose log-potentials are weighted sums of features; the weights are shared by all factors.

    cardinality : int64[variables]
        Number of labels of each variable.
    scopes
        Variables of each factor.
    statistics : sparse float64[table entries of all factors, features]
        Value of every feature in every entry of every table, each table in C order, one after the other.
    """

    cardinality: NDArray[np.int64]
    scopes: tuple[tuple[int, ...], ...]
    statistics: Any

    @classmethod
    def build(
        cls, cardinality: ArrayLike, factors: Iterable[tuple[Sequence[int], ArrayLike]]
    ) -> LogLinearNetwork:
        """Collect ``(scope, features)`` pairs.

        features
            An array [features, cardinality of each variable in scope], or a SciPy sparse one [table entries,
            features]. Factors that share all weights may share the array.
        """
        sizes = checked_cardinality(cardinality)
        pairs = [(tuple(int(v) for v in scope), features) for scope, features in factors]
        require(len(pairs) > 0, "factors", pairs, "at least one pair of a scope and its features")
        known: dict[tuple[int, tuple[int, ...]], Any] = {}
        blocks = []
        for scope, features in pairs:
            if not all(0 <= v < len(sizes) for v in scope):
                raise InvalidArgumentError(
                    f"a factor names variables {scope}, but there are {len(sizes)}: use numbers from 0 to"
                    f" {len(sizes) - 1}."
                )
            shape = tuple(sizes[list(scope)].tolist())
            key = id(features), shape
            if key not in known:
                known[key] = _entries_by_features(scope, shape, features)
            blocks.append(known[key])
        widths = {block.shape[1] for block in blocks}
        if len(widths) > 1:
            raise ShapeError(
                f"factors have {sorted(widths)} features, but all share one vector of weights: give each a"
                " row for every feature, zero where it takes no part."
            )
        statistics = csr_array(vstack(blocks))
        statistics.eliminate_zeros()  # so that a weight of -inf meets no zero
        return cls(sizes, tuple(scope for scope, _ in pairs), statistics)

    @classmethod
    def saturated(cls, cardinality: ArrayLike, cliques: Iterable[Sequence[int]]) -> LogLinearNetwork:
        """Return the network with a weight for every entry of every table: what proportional fitting fits."""
        sizes = checked_cardinality(cardinality)
        scopes = tuple(tuple(int(v) for v in clique) for clique in cliques)
        require(len(scopes) > 0, "cliques", scopes, "at least one")
        entries = sum(math.prod(sizes[list(scope)].tolist()) for scope in scopes)
        return cls(sizes, scopes, csr_array(identity(entries)))

    @property
    def n_features(self) -> int:
        """Number of features, each with its weight."""
        return int(self.statistics.shape[1])

    @cached_property
    def _shape(self) -> FactorGraph:
        """The graph at weights zero; others share its structure."""
        sizes = self.cardinality
        return FactorGraph.build(sizes, ((scope, np.zeros(sizes[list(scope)])) for scope in self.scopes))

    @property
    def table_start(self) -> NDArray[np.int64]:
        """Where the table of each factor begins among all entries."""
        return self._shape.table_start

    def graph(self, weights: ArrayLike) -> FactorGraph:
        """Return the network at some weights; ``-inf`` forbids wherever the feature is not zero."""
        vector = np.asarray(weights, dtype=np.float64)
        if vector.shape != (self.n_features,):
            raise WeightError(
                f"{self.n_features} features need as many weights, but {vector.shape} was given."
            )
        shape = self._shape
        tables = self.statistics @ vector
        return FactorGraph(shape.cardinality, shape.scope_start, shape.scope, shape.table_start, tables)

    def counts(self, records: ArrayLike, weights: ArrayLike | None = None) -> CliqueCounts:
        """Count the settings of every factor in fully observed records, each as often as its weight says."""
        return CliqueCounts.from_records(self.cardinality, self.scopes, records, weights)

    def totals(self, tables: Iterable[Floats]) -> Floats:
        """Sum every feature over tables of counts or probabilities, one per factor."""
        return np.asarray(self.statistics.T @ np.concatenate([np.ravel(table) for table in tables]))


@dataclass(frozen=True, slots=True)
class LogLinearFit:
    """Weights fitted to counts.

    weights : float64[features]
        ``-inf`` for a feature that is never negative and was never seen.
    graph
        The network at these weights.
    log_likelihood
        Log-probability that the fit gives to all records, without penalties.
    iterations
        Updates of the weights.
    residual
        Largest difference, per record, between the expected total of a feature and what it should be.
    converged
        Whether the residual met the tolerance.
    """

    weights: Floats
    graph: FactorGraph
    log_likelihood: float
    iterations: int
    residual: float
    converged: bool


def fit_scaling(
    network: LogLinearNetwork,
    counts: CliqueCounts,
    *,
    oracle: MarginalOracle | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 10_000,
) -> LogLinearFit:
    r"""Fit weights of features that are never negative by generalized iterative scaling.

    With :math:`C` the most that all features together may come to, all weights are updated at once by

    .. math:: w_k \leftarrow w_k + \frac1C \log\frac{\tilde E f_k}{E_w f_k}

    and so is the weight of the slack feature :math:`f_0 = C - \sum_k f_k`, which makes the sum of all
    features constant. As :math:`f_0` is a combination of the others, its weight is then taken off theirs.
    The likelihood never falls; the larger :math:`C`, the smaller the steps (Darroch and Ratcliff 1972).

    counts
        Of the scopes of the network, as `LogLinearNetwork.counts` makes them.
    oracle
        What gives marginals; by default an exact junction tree.
    tolerance
        Largest residual, per record, that counts as none.
    """
    problem = _Problem(network, counts, oracle, 0.0)
    _check_limits(tolerance, max_iterations)
    if network.statistics.nnz and float(network.statistics.data.min()) < 0.0:
        where = int(network.statistics.data.argmin())
        raise InvalidArgumentError(
            f"feature {network.statistics.indices[where]} takes the value {network.statistics.data[where]},"
            " but scaling needs features of zero or more: add a constant to the feature, or use"
            " fit_maximum_likelihood."
        )
    bound = _largest_total(network)
    weights = np.zeros(int(problem.active.sum()))
    wanted = problem.wanted
    iterations = 0
    _, gradient = problem(weights)
    while float(np.abs(gradient).max(initial=0.0)) > tolerance and iterations < max_iterations:
        found = wanted + gradient
        slack, model_slack = bound - wanted.sum(), bound - found.sum()
        weights += np.log(wanted / found) / bound
        # Where the sum is constant already, or at its bound in all of the data, there is no slack to learn.
        if min(slack, model_slack) > 1e-12 * bound:
            weights -= math.log(slack / model_slack) / bound
        _, gradient = problem(weights)
        iterations += 1
    return problem.finished(weights, iterations, tolerance, "iterative scaling")


def fit_maximum_likelihood(
    network: LogLinearNetwork,
    counts: CliqueCounts,
    *,
    l2: float = 0.0,
    oracle: MarginalOracle | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 10_000,
) -> LogLinearFit:
    """Fit weights by L-BFGS on the log-likelihood less ``l2`` times the sum of squared weights.

    The last digits come from Newton steps on the gradient, which still tells weights apart when the
    likelihood, in floating point, no longer does.

    counts
        Of the scopes of the network, as `LogLinearNetwork.counts` makes them.
    oracle
        What gives marginals; by default an exact junction tree.
    tolerance
        Largest residual, per record, that counts as none.

    Implements: mccallum17learning, "Log-Likelihood Function for Log-Linear Models" and "Feature
    Expectations", with the penalty of "Gaussian Prior on w".
    """
    require(l2 >= 0 and math.isfinite(l2), "l2", l2, "zero or more")
    _check_limits(tolerance, max_iterations)
    problem = _Problem(network, counts, oracle, l2)
    options = {"maxiter": max_iterations, "maxfun": 2 * max_iterations, "ftol": 0.0, "gtol": tolerance}
    start = np.zeros(int(problem.active.sum()))
    if not len(start):
        return problem.finished(start, 0, tolerance, "maximum likelihood")
    found = minimize(problem, start, jac=True, method="L-BFGS-B", options={**options, "maxcor": 20})
    weights, steps = _polished(problem, found.x, tolerance)
    return problem.finished(weights, int(found.nit) + steps, tolerance, "maximum likelihood")


class _Problem:
    """Penalized negative log-likelihood per record, as a function of the weights that stay finite."""

    def __init__(
        self, network: LogLinearNetwork, counts: CliqueCounts, oracle: MarginalOracle | None, l2: float
    ) -> None:
        if counts.cliques != network.scopes or counts.cardinality.tolist() != network.cardinality.tolist():
            raise InvalidArgumentError(
                f"counts of cliques {counts.cliques[:3]}... do not belong to a network over"
                f" {network.scopes[:3]}...: make them with network.counts(records)."
            )
        self._network = network
        self._counts = counts
        self._oracle = JunctionTree() if oracle is None else oracle
        self._penalty = l2 / counts.total
        means = network.totals(counts.proportions())
        # Less weight on a feature never seen is always likelier, unless a penalty holds it.
        unseen = means == 0.0
        unseen[network.statistics.indices[network.statistics.data < 0.0]] = False
        self.active: Bools = ~unseen if l2 == 0.0 else np.ones(network.n_features, dtype=np.bool_)
        self.wanted: Floats = means[self.active]

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the value and the gradient."""
        found = self._oracle.marginals(self._network.graph(self.full(weights)))
        value = found.log_partition - weights @ self.wanted + self._penalty * weights @ weights
        expected = self._network.totals(found.factor)[self.active]
        return float(value), expected - self.wanted + 2.0 * self._penalty * weights

    def full(self, weights: Floats) -> Floats:
        """Return the weights of all features."""
        vector = np.full(self._network.n_features, -np.inf)
        vector[self.active] = weights
        return vector

    def finished(self, weights: Floats, iterations: int, tolerance: float, method: str) -> LogLinearFit:
        """Return the fit, with a warning if it is not one."""
        value, gradient = self(weights)
        residual = float(np.abs(gradient).max(initial=0.0))
        if not residual <= tolerance:
            warnings.warn(
                f"{method} stopped after {iterations} iterations with a feature off by {residual:.3g} a"
                f" record, more than tolerance={tolerance}. Raise max_iterations or tolerance, scale features"
                " to a similar size, or use fit_maximum_likelihood with l2 above zero, which also holds"
                " weights that the data drive to infinity.",
                ConvergenceWarning,
                stacklevel=3,
            )
        likelihood = -self._counts.total * (value - self._penalty * float(weights @ weights))
        full = self.full(weights)
        return LogLinearFit(
            full, self._network.graph(full), likelihood, iterations, residual, residual <= tolerance
        )


def _polished(
    problem: Callable[[Floats], tuple[float, Floats]], weights: Floats, tolerance: float
) -> tuple[Floats, int]:
    """Take Newton steps while they shrink the gradient."""
    _, gradient = problem(weights)
    for step in range(POLISHING_STEPS):
        size = float(np.abs(gradient).max())
        if size <= tolerance:
            return weights, step
        change = _newton_step(problem, weights, gradient)
        moved = weights + change
        _, renewed = problem(moved)
        if not float(np.abs(renewed).max()) < size:
            return weights, step
        weights, gradient = moved, renewed
    return weights, POLISHING_STEPS


def _newton_step(
    problem: Callable[[Floats], tuple[float, Floats]], weights: Floats, gradient: Floats
) -> Floats:
    """Solve for a step by conjugate gradients; differences of the gradient are products with the Hessian."""
    change, left = np.zeros(len(weights)), -gradient
    direction, square = left, float(left @ left)
    goal = 1e-6 * square
    for _ in range(2 * len(weights)):
        nudge = 1e-6 / float(np.abs(direction).max())
        product = (problem(weights + nudge * direction)[1] - gradient) / nudge
        curvature = float(direction @ product)
        if curvature <= 0.0:
            break
        change = change + square / curvature * direction
        left = left - square / curvature * product
        before, square = square, float(left @ left)
        if square <= goal:
            break
        direction = left + square / before * direction
    return change


def _largest_total(network: LogLinearNetwork) -> float:
    """Bound the sum of all features by the sum of each factor's largest; above zero."""
    sums = np.asarray(network.statistics.sum(axis=1)).ravel()
    return max(float(np.maximum.reduceat(sums, network.table_start).sum()), 1e-300)


def _check_limits(tolerance: float, max_iterations: int) -> None:
    require(tolerance > 0, "tolerance", tolerance, "greater than zero")
    require(max_iterations >= 1, "max_iterations", max_iterations, "at least 1")


def _entries_by_features(scope: tuple[int, ...], shape: tuple[int, ...], features: Any) -> Any:
    if issparse(features):
        block = csr_array(features, dtype=np.float64)
        fits, wanted = block.shape[0] == math.prod(shape), f"({math.prod(shape)}, features)"
        given: tuple[int, ...] = block.shape
    else:
        values = np.asarray(features, dtype=np.float64)
        fits, wanted = (
            values.ndim > 0 and values.shape[1:] == shape,
            f"(features, {', '.join(map(str, shape))})",
        )
        given = values.shape
        block = csr_array(values.reshape(len(values), -1).T) if fits else None
    if not fits:
        raise ShapeError(
            f"the features of the factor over variables {scope} have shape {given}, but need {wanted}."
        )
    if not bool(np.isfinite(block.data).all()):
        raise InvalidArgumentError(f"a feature of the factor over variables {scope} is NaN or infinite.")
    return block
