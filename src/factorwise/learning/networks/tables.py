"""Directed models with tables (Bayesian networks): counting is maximum likelihood.

With known parents and fully observed data the likelihood falls apart into one term per table, so each table
is fitted alone, by the shares of its counts. Dirichlet priors are conjugate and come in as counts too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, StructureError
from factorwise.kernels.graphs.trees import fill_uniforms
from factorwise.learning.networks.counts import checked_cardinality, checked_records, count_table
from factorwise.model.factor import expectation
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream, as_stream
from factorwise.types import Floats, Int64s
from factorwise.validation import check_count

PseudoCounts: TypeAlias = float | Sequence[ArrayLike]


@dataclass(frozen=True, slots=True, eq=False)
class TableNetwork:
    """A distribution over discrete variables, each drawn from a table given its parents.

    parents
        Variables that each variable depends on directly; without cycles.
    tables : float64[cardinality of each parent, cardinality of the variable], one per variable
        Probability of each label given the labels of the parents, in the order of ``parents``.
    """

    parents: tuple[tuple[int, ...], ...]
    tables: tuple[Floats, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", tuple(tuple(int(v) for v in given) for given in self.parents))
        object.__setattr__(self, "tables", tuple(np.asarray(t, dtype=np.float64) for t in self.tables))
        if len(self.parents) != len(self.tables) or not self.tables:
            raise ShapeError(
                f"{len(self.parents)} lists of parents and {len(self.tables)} tables were given: give one of"
                " each per variable."
            )
        if not all(table.ndim for table in self.tables):
            raise ShapeError("a table is a single number: give it an axis for the labels of its variable.")
        topological_order(self.parents)
        for variable, table in enumerate(self.tables):
            self._check_table(variable, table)

    def _check_table(self, variable: int, table: Floats) -> None:
        given = self.parents[variable]
        sizes = tuple(self.tables[v].shape[-1] for v in given)
        if table.ndim != len(given) + 1 or table.shape[:-1] != sizes or not table.size:
            raise ShapeError(
                f"the table of variable {variable} has shape {table.shape}, but its parents {given} ask"
                f" for {(*sizes, 'labels')}: one axis per parent, then one for the variable."
            )
        if not bool((table >= 0.0).all()) or not np.allclose(table.sum(axis=-1), 1.0, rtol=0.0, atol=1e-9):
            raise InvalidArgumentError(
                f"the table of variable {variable} must hold probabilities that sum to one over its last"
                " axis: divide it by its sums."
            )

    @property
    def cardinality(self) -> Int64s:
        """Number of labels of each variable."""
        return np.array([table.shape[-1] for table in self.tables], dtype=np.int64)

    def scope_of(self, variable: int) -> tuple[int, ...]:
        """Return the variables of one table: the parents, then the variable."""
        return (*self.parents[variable], variable)

    def log_likelihood(self, records: ArrayLike, weights: ArrayLike | None = None) -> float:
        """Log-probability of fully observed records, int [records, variables], each as often as its weight.

        ``-inf`` if a record is impossible.
        """
        codes, importance = checked_records(self.cardinality, records, weights)
        counts = (
            count_table(self.cardinality, self.scope_of(v), codes, importance)
            for v in range(len(self.tables))
        )
        return float(sum(expectation(n, _log(t)) for n, t in zip(counts, self.tables, strict=True)))

    def to_graph(self) -> FactorGraph:
        """Return the same distribution as a factor graph, one factor per table; its log Z is zero."""
        factors = ((self.scope_of(v), _log(table)) for v, table in enumerate(self.tables))
        return FactorGraph.build(self.cardinality, factors)

    def sample(self, size: int, *, seed: int | np.random.Generator | Stream = 0) -> Int64s:
        """Draw independent records, int64[size, variables], parents first."""
        check_count("size", size, 0)
        stream = as_stream(seed)
        values = np.zeros((size, len(self.tables)), dtype=np.int64)
        uniform = np.empty(size)
        for variable in topological_order(self.parents):
            given = tuple(values[:, v] for v in self.parents[variable])
            ladder = self.tables[variable][given].cumsum(axis=-1)
            fill_uniforms(stream.state, uniform)
            # The first label whose rung lies above: never one of probability zero, whose rung adds nothing.
            rung = uniform * ladder[..., -1]
            values[:, variable] = (ladder > rung[:, None]).argmax(axis=-1)
        return values


def fit_tables(
    cardinality: ArrayLike,
    parents: Iterable[Sequence[int]],
    records: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    pseudo_counts: PseudoCounts = 0.0,
) -> TableNetwork:
    """Fit every table by the shares of its counts, pseudo-counts included.

    Labels of a variable whose parents were never seen in some setting, and have no pseudo-counts there, are
    taken to be equally likely: the likelihood does not depend on them.

    parents
        For each variable, those it depends on directly.
    records : int [records, variables]
        Codes, fully observed.
    weights
        How often each record counts; once by default.
    pseudo_counts
        Added to the counts: one number for all entries, or an array for each variable that broadcasts to its
        table. The fit is then the posterior mean under a Dirichlet prior with these parameters, and the
        posterior mode under one with 1 more; 0 is maximum likelihood.

    Implements: mccallum17learning, "Parameter Estimation in Bayesian Networks: Decomposability".
    """
    sizes = checked_cardinality(cardinality)
    structure = tuple(tuple(int(v) for v in given) for given in parents)
    if len(structure) != len(sizes):
        raise ShapeError(
            f"{len(sizes)} variables need a list of parents each, empty for those without, but"
            f" {len(structure)} were given."
        )
    topological_order(structure)
    codes, importance = checked_records(sizes, records, weights)
    tables = []
    for variable, given in enumerate(structure):
        counts = count_table(sizes, (*given, variable), codes, importance)
        counts += _pseudo_counts(pseudo_counts, variable, counts.shape, len(sizes))
        totals = counts.sum(axis=-1, keepdims=True)
        uniform = np.full(counts.shape, 1.0 / sizes[variable])
        tables.append(np.divide(counts, totals, out=uniform, where=totals > 0.0))
    return TableNetwork(structure, tuple(tables))


def topological_order(parents: Sequence[Sequence[int]]) -> list[int]:
    """Return all variables, parents first; a structure with a cycle is refused, and the cycle named."""
    count = len(parents)
    for variable, given in enumerate(parents):
        if len(set(given)) < len(given) or not all(0 <= v < count for v in given):
            raise InvalidArgumentError(
                f"parents of variable {variable} must be different variables from 0 to {count - 1}, but"
                f" {tuple(given)} was given."
            )
    waiting = {variable: len(given) for variable, given in enumerate(parents)}
    children: list[list[int]] = [[] for _ in parents]
    for variable, given in enumerate(parents):
        for v in given:
            children[v].append(variable)
    order = [variable for variable, missing in waiting.items() if not missing]
    for done in order:
        del waiting[done]
        for child in children[done]:
            waiting[child] -= 1
            if not waiting[child]:
                order.append(child)
    if waiting:
        raise StructureError(
            f"variables {_cycle(parents, set(waiting))} depend on each other in a circle: drop a parent"
            " somewhere along it, or use an undirected network (fit_proportional)."
        )
    return order


def _cycle(parents: Sequence[Sequence[int]], stuck: set[int]) -> tuple[int, ...]:
    """Walk from parent to parent among variables that wait for one another until one comes again."""
    path = [min(stuck)]
    while True:
        ahead = next(v for v in parents[path[-1]] if v in stuck)
        if ahead in path:
            return tuple(reversed(path[path.index(ahead) :]))
        path.append(ahead)


def _pseudo_counts(given: PseudoCounts, variable: int, shape: tuple[int, ...], variables: int) -> Floats:
    if not isinstance(given, int | float) and len(given) != variables:
        raise ShapeError(
            f"pseudo_counts must be one number, or one array for each of {variables} variables, but"
            f" {len(given)} were given."
        )
    values = np.asarray(given if isinstance(given, int | float) else given[variable], dtype=np.float64)
    try:
        prior = np.broadcast_to(values, shape)
    except ValueError:
        raise ShapeError(
            f"the pseudo-counts of variable {variable} have shape {values.shape}, which does not broadcast to"
            f" that of its table, {shape}."
        ) from None
    if not bool((np.isfinite(prior) & (prior >= 0.0)).all()):
        raise InvalidArgumentError(
            f"pseudo_counts must be finite, and zero or more, but those of variable {variable} are"
            f" {values.tolist()}."
        )
    return prior


def _log(table: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table))
