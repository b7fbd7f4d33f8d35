"""Unrolling: static templates and their variables into one factor graph.

Tied factors share one table, so a million tied transitions cost a million offsets and one table. Variables
keep their numbers and their labels. An observed variable gets one more factor that forbids its other labels,
so that methods on factor graphs condition on it without special treatment.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from factorwise.errors import InvalidArgumentError, TreewidthError
from factorwise.model.grounding import FactorGraph
from factorwise.model.labels.base import ScopedTemplate, TableGroup
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.model import Model
from factorwise.types import Float64s
from factorwise.variables.variable import Variables
from factorwise.world.assignment import Assignment

MAX_TABLE_ENTRIES = 1 << 20


def unroll(model: Model, source: Variables | Assignment, *, clamp: bool = True) -> FactorGraph:
    """Return the factor graph of ``model`` over the variables of ``source``, with the model's weights.

    The score of any world that agrees with the observations is the model's score of that world.

    clamp
        Forbid the labels that contradict observations.
    """
    variables = source.variables if isinstance(source, Assignment) else source
    groups = [
        group for template, weights in _weighted(model) for group in _groups(template, variables, weights)
    ]
    if clamp:
        groups.extend(_clamps(variables))
    return _assembled(variables, groups)


def _weighted(model: Model) -> Iterator[tuple[object, Float64s]]:
    for template, offset in model.parts():
        yield template, model.weights[offset : offset + template.size]


def _groups(template: object, variables: Variables, weights: Float64s) -> Iterator[TableGroup]:
    if isinstance(template, ScopedTemplate):
        yield from template.tables(variables, weights)
    elif isinstance(template, Cardinality):
        yield from _count_tables(template, variables, weights)
    else:
        name = getattr(template, "name", "")
        raise InvalidArgumentError(
            f"template {name!r} ({type(template).__name__}) cannot be unrolled, because its factors"
            " depend on the labels. Use MCMC, which unrolls only what a step touches, or static"
            " templates."
        )


def _count_tables(template: Cardinality, variables: Variables, weights: Float64s) -> Iterator[TableGroup]:
    """Yield the groups of each size with one table that all groups of that size share."""
    labels = len(template.column.domain)
    sizes = np.diff(template.start)
    largest = int(sizes.max(initial=0))
    if labels**largest > MAX_TABLE_ENTRIES:
        raise TreewidthError(
            f"template {template.name!r} counts in a group of {largest} variables with {labels} labels:"
            f" its table would have {labels}**{largest} entries, but the limit is {MAX_TABLE_ENTRIES}."
            " Use smaller groups, or MCMC, which keeps counts instead of tables."
        )
    members = template.members(variables)
    potentials = template.potentials(weights)
    for size in np.unique(sizes[sizes > 0]).tolist():
        chosen = np.flatnonzero(sizes == size)
        scopes = members[template.start[chosen][:, None] + np.arange(size)]
        count = (np.indices((labels,) * size) == template.code).sum(axis=0)
        yield TableGroup(scopes, np.zeros(len(scopes), dtype=np.int64), potentials[count].reshape(1, -1))


def _clamps(variables: Variables) -> Iterator[TableGroup]:
    """Yield, for each column, one factor per observed variable that forbids its other labels."""
    for column, start in zip(variables.columns, variables.start[:-1], strict=True):
        rows = np.flatnonzero(column.observed)
        if len(rows):
            only = np.where(np.eye(len(column.domain), dtype=bool), 0.0, -np.inf)
            yield TableGroup((start + rows)[:, None], column.codes[rows].astype(np.int64), only)


def _assembled(variables: Variables, groups: list[TableGroup]) -> FactorGraph:
    arities = [np.full(len(group.scopes), group.scopes.shape[1], dtype=np.int64) for group in groups]
    starts, base = [], 0
    for group in groups:
        starts.append(base + group.which * group.tables.shape[1])
        base += group.tables.size
    nothing = [np.zeros(0, dtype=np.int64)]
    return FactorGraph(
        variables.cardinality,
        np.concatenate([[0], np.cumsum(np.concatenate(arities or nothing))]).astype(np.int64),
        np.concatenate([group.scopes.ravel() for group in groups] or nothing),
        np.concatenate(starts or nothing),
        np.concatenate([group.tables.ravel() for group in groups] or [np.zeros(0)]),
    )
