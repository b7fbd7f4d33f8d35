"""Directed models with tables (Bayesian networks), for which counting is maximum likelihood.

With known parents and fully observed data, the likelihood separates into one term per table, so each table is
fitted alone, by the proportions of its counts. Dirichlet priors are conjugate and are added as counts, too.
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
        object.__setattr__(
            self, "parents", tuple(tuple(int(v) for v in own_parents) for own_parents in self.parents)
        )
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
        own_parents = self.parents[variable]
        sizes = tuple(self.tables[v].shape[-1] for v in own_parents)
        if table.ndim != len(own_parents) + 1 or table.shape[:-1] != sizes or not table.size:
            raise ShapeError(
                f"the table of variable {variable} has shape {table.shape}, but its parents"
                f" {own_parents} require {(*sizes, 'labels')}: one axis per parent, then one for the"
                " variable."
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
        """Return the log-probability of fully observed records, each times its weight.

        records : int [records, variables]
            Codes. The result is ``-inf`` if a record is impossible.
        """
        codes, importance = checked_records(self.cardinality, records, weights)
        counts = (
            count_table(self.cardinality, self.scope_of(v), codes, importance)
            for v in range(len(self.tables))
        )
        return float(sum(expectation(n, _log(t)) for n, t in zip(counts, self.tables, strict=True)))

    def to_graph(self) -> FactorGraph:
        """Return the same distribution as a factor graph with one factor per table; its log Z is zero."""
        factors = ((self.scope_of(v), _log(table)) for v, table in enumerate(self.tables))
        return FactorGraph.build(self.cardinality, factors)

    def sample(self, size: int, *, seed: int | np.random.Generator | Stream = 0) -> Int64s:
        """Draw independent records, int64[size, variables], parents first."""
        check_count("size", size, 0)
        stream = as_stream(seed)
        values = np.zeros((size, len(self.tables)), dtype=np.int64)
        uniform = np.empty(size)
        for variable in topological_order(self.parents):
            parent_values = tuple(values[:, v] for v in self.parents[variable])
            ladder = self.tables[variable][parent_values].cumsum(axis=-1)
            fill_uniforms(stream.state, uniform)
            # The first label whose cumulative sum is larger: never one of probability zero, which adds
            # nothing to the sum.
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
    """Fit every table by the proportions of its counts, including pseudo-counts.

    If the parents of a variable never have some setting and there are no pseudo-counts for it, the variable's
    labels are equally likely in that setting: the likelihood does not depend on them.

    cardinality
        Number of labels of each variable.
    parents
        For each variable, those on which it depends directly.
    records : int [records, variables]
        Codes, fully observed.
    weights
        How often each record counts; once by default.
    pseudo_counts
        Added to the counts: one number for all entries, or an array for each variable that broadcasts to its
        table. The fit is then the posterior mean under a Dirichlet prior with these parameters, and the
        posterior mode under one with parameters larger by 1; 0 is maximum likelihood.

    Implements: mccallum17learning, "Parameter Estimation in Bayesian Networks: Decomposability".
    """
    sizes = checked_cardinality(cardinality)
    structure = tuple(tuple(int(v) for v in own_parents) for own_parents in parents)
    if len(structure) != len(sizes):
        raise ShapeError(
            f"{len(sizes)} variables need a list of parents each, empty for those without, but"
            f" {len(structure)} were given."
        )
    topological_order(structure)
    codes, importance = checked_records(sizes, records, weights)
    tables = []
    for variable, own_parents in enumerate(structure):
        counts = count_table(sizes, (*own_parents, variable), codes, importance)
        counts += _pseudo_counts(pseudo_counts, variable, counts.shape, len(sizes))
        totals = counts.sum(axis=-1, keepdims=True)
        uniform = np.full(counts.shape, 1.0 / sizes[variable])
        tables.append(np.divide(counts, totals, out=uniform, where=totals > 0.0))
    return TableNetwork(structure, tuple(tables))


def topological_order(parents: Sequence[Sequence[int]]) -> list[int]:
    """Return all variables, parents first; a cycle is refused, and the error names it."""
    count = len(parents)
    for variable, own_parents in enumerate(parents):
        if len(set(own_parents)) < len(own_parents) or not all(0 <= v < count for v in own_parents):
            raise InvalidArgumentError(
                f"parents of variable {variable} must be different variables from 0 to {count - 1}, but"
                f" {tuple(own_parents)} was given."
            )
    waiting = {variable: len(own_parents) for variable, own_parents in enumerate(parents)}
    children: list[list[int]] = [[] for _ in parents]
    for variable, own_parents in enumerate(parents):
        for v in own_parents:
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
            f"variables {_cycle(parents, set(waiting))} depend on each other in a cycle: drop one of"
            " these parents, or use an undirected network (fit_proportional)."
        )
    return order


def _cycle(parents: Sequence[Sequence[int]], stuck: set[int]) -> tuple[int, ...]:
    """Follow parents among the variables that wait for one another until one repeats."""
    path = [min(stuck)]
    while True:
        ahead = next(v for v in parents[path[-1]] if v in stuck)
        if ahead in path:
            return tuple(reversed(path[path.index(ahead) :]))
        path.append(ahead)


def _pseudo_counts(
    pseudo_counts: PseudoCounts, variable: int, shape: tuple[int, ...], variables: int
) -> Floats:
    if not isinstance(pseudo_counts, int | float) and len(pseudo_counts) != variables:
        raise ShapeError(
            f"pseudo_counts must be one number, or one array for each of {variables} variables, but"
            f" {len(pseudo_counts)} were given."
        )
    values = np.asarray(
        pseudo_counts if isinstance(pseudo_counts, int | float) else pseudo_counts[variable], dtype=np.float64
    )
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
