"""A partition model made ready to run compiled: fields laid out, functions composed, edges gathered."""

from __future__ import annotations

from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ShapeError, TemplateError
from factorwise.kernels.partition_code import (
    ClusterTerm,
    FieldLayout,
    PairAggregateTerm,
    PairTerm,
    Term,
    VectorTerm,
    gains_module,
    statistics_module,
)
from factorwise.model.model import Model
from factorwise.model.partition_templates import (
    ClusterTemplate,
    EdgeTemplate,
    PairAggregate,
    PairTemplate,
    VectorPairTemplate,
)
from factorwise.variables.fields import Field, Fields


class PartitionProgram:
    """What compiled samplers need of a model over clusterings.

    ints, reals, rows : int32[n, .], float32[n, .], float32[n, dimensions]
        The fields that the functions read: integers, reals, those compared dimension by dimension.
    edge_start, edge_neighbor, edge_score
        The given pairs of all edge templates from both ends, with their scores at the model's weights.
    """

    def __init__(self, model: Model, n_items: int) -> None:
        self.model = model
        self.n_items = n_items
        self.edge_templates: list[tuple[EdgeTemplate, int]] = []
        self.terms: list[Term] = []
        self._columns: dict[tuple[int, str], FieldLayout] = {}
        self._rows: dict[tuple[int, str], FieldLayout] = {}
        self._ints: list[NDArray[np.int32]] = []
        self._reals: list[NDArray[np.float32]] = []
        self._vectors: list[NDArray[np.float32]] = []
        for template, offset in model.parts():
            self._add(template, offset)
        self.ints = _stacked(self._ints, n_items, np.int32)
        self.reals = _stacked(self._reals, n_items, np.float32)
        self.rows = np.hstack(self._vectors) if self._vectors else np.zeros((n_items, 0), np.float32)
        self.edge_start, self.edge_neighbor, self.edge_score = self._gathered_edges()

    def _add(self, template: Any, offset: int) -> None:
        if isinstance(template, EdgeTemplate):
            self._check_items(template.name, template.n_items)
            self.edge_templates.append((template, offset))
            return
        if not isinstance(template, PairTemplate | ClusterTemplate):
            raise TemplateError(
                f"template {template.name!r} ({type(template).__name__}) has no compiled form here:"
                " run it with engine='plain'."
            )
        if not (isinstance(template, ClusterTemplate) and not template.needs_fields):
            self._check_items(template.name, template.fields.n_items)
        source = template.source()
        if isinstance(template, VectorPairTemplate):
            row = self._row(template.fields, template.fields[template.field])
            self.terms.append(VectorTerm(source, row, offset, -1 if template.repels else 1))
            return
        used = [f for name, f in template.fields.columns.items() if name in source.attributes]
        layout = tuple(self._column(template.fields, field) for field in used)
        if isinstance(template, PairTemplate):
            self.terms.append(PairTerm(source, layout, template.size, offset, -1 if template.repels else 1))
        elif isinstance(template, PairAggregate):
            self.terms.append(PairAggregateTerm(source, layout, template.size, offset, template.aggregate))
        else:
            self.terms.append(ClusterTerm(source, layout, template.size, offset))

    def _check_items(self, name: str, given: int) -> None:
        if given != self.n_items:
            raise ShapeError(
                f"template {name!r} has fields for {given} items, but the world has {self.n_items}:"
                " build both from the same records."
            )

    def _column(self, fields: Fields, field: Field) -> FieldLayout:
        key = (id(fields), field.name)
        if key not in self._columns:
            real = field.values.dtype == np.float32
            columns: list[NDArray[Any]] = self._reals if real else self._ints
            self._columns[key] = FieldLayout(field.name, real, field.width, len(columns))
            columns += list(field.values.T) if field.width else [field.values]
        return self._columns[key]

    def _row(self, fields: Fields, field: Field) -> FieldLayout:
        key = (id(fields), field.name)
        if key not in self._rows:
            start = sum(block.shape[1] for block in self._vectors)
            self._rows[key] = FieldLayout(field.name, True, field.width, start)
            self._vectors.append(field.values.astype(np.float32))
        return self._rows[key]

    def _gathered_edges(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        ends: list[NDArray[np.int64]] = [np.zeros((0, 2), np.int64)]
        scores: list[NDArray[np.float64]] = [np.zeros(0)]
        for template, offset in self.edge_templates:
            value = template.features @ self.model.weights[offset : offset + template.size]
            ends.append(template.edges)
            scores.append(-value if template.repels else value)
        edges, score = np.concatenate(ends), np.concatenate(scores)
        both = np.concatenate([edges[:, 0], edges[:, 1]])
        order = np.argsort(both, kind="stable")
        start = np.zeros(self.n_items + 1, np.int64)
        np.cumsum(np.bincount(both, minlength=self.n_items), out=start[1:])
        neighbor = np.concatenate([edges[:, 1], edges[:, 0]])[order].astype(np.int32)
        return start, neighbor, np.concatenate([score, score])[order]

    @cached_property
    def gains(self) -> ModuleType:
        """Compiled ``pair_gain`` and ``cluster_score``."""
        return gains_module(self.terms)

    @cached_property
    def statistics(self) -> ModuleType:
        """Compiled ``pair_statistics`` and ``cluster_statistics``."""
        return statistics_module(self.terms)


def _stacked(columns: list[NDArray[Any]], n_items: int, dtype: type) -> NDArray[Any]:
    return np.column_stack(columns) if columns else np.zeros((n_items, 0), dtype)
