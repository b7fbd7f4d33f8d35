"""A partition model made ready to run compiled: fields laid out, functions composed, edges gathered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ShapeError, TemplateError
from factorwise.kernels.clusterings.pair_tables import BLOCK, COUNT, LINKED, TableArrays
from factorwise.kernels.clusterings.partition_code import (
    PairTerm,
    Term,
    VectorTerm,
    gains_module,
    statistics_module,
)
from factorwise.kernels.clusterings.partition_gains import add_statistics
from factorwise.kernels.clusterings.partition_gradients import EdgeArrays
from factorwise.kernels.clusterings.vector_code import FieldLayout
from factorwise.kernels.numeric.simd import LANES
from factorwise.kernels.numeric.sixteen import SIXTEEN
from factorwise.model.model import Model
from factorwise.variables.fields import Field, Fields
from factorwise.variables.pair_table import PairTable
from factorwise.world.pairs import both_ends
from factorwise.world.partition import Partition


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
        self.terms: list[Term] = []
        self._columns: dict[tuple[int, str], FieldLayout] = {}
        self._rows: dict[tuple[int, str], FieldLayout] = {}
        self._ints: list[NDArray[Any]] = []
        self._reals: list[NDArray[Any]] = []
        self._vectors: list[NDArray[np.float32]] = []
        self._edges: list[NDArray[np.int64]] = [np.zeros((0, 2), np.int64)]
        self._edge_features: list[tuple[NDArray[np.float64], int]] = []
        self._tables: list[PairTable] = []
        self._table_blocks: list[tuple[int, int, int, int]] = []
        for template, offset in model.parts():
            if not hasattr(template, "add_to"):
                raise TemplateError(
                    f"template {template.name!r} ({type(template).__name__}) has no compiled form here:"
                    " run it with engine='plain'."
                )
            template.add_to(self, offset)
        self.ints = _stacked(self._ints, n_items, np.int32)
        self.reals = _stacked(self._reals, n_items, np.float32)
        self.rows = np.hstack(self._vectors) if self._vectors else np.zeros((n_items, 0), np.float32)
        self.edge_start, self.edge_neighbor, self._edge_order = both_ends(
            n_items, np.concatenate(self._edges)
        )

    def check_items(self, name: str, given: int) -> None:
        """Refuse a template made for another number of items."""
        check_items(name, given, self.n_items)

    def add_edges(self, edges: NDArray[np.int64], features: NDArray[np.float64], offset: int) -> None:
        """Take in pairs of items with the features of being together, weighed from ``offset`` on."""
        self._edges.append(edges)
        self._edge_features.append((features, offset))

    def add_table(self, table: PairTable, aggregates: Sequence[int], offset: int) -> None:
        """Take in a table of pair features with its cluster-wise aggregates, weighed from ``offset`` on."""
        if table not in self._tables:
            self._tables.append(table)
        widths = [known.padded.shape[1] for known in self._tables]
        first = sum(widths[: self._tables.index(table)])
        size = table.n_features
        self._table_blocks += [(code, first, size, offset + k * size) for k, code in enumerate(aggregates)]

    @property
    def has_tables(self) -> bool:
        """Whether a template has a table of pair features."""
        return bool(self._tables)

    def table_arrays(self) -> TableArrays:
        """Lay out the tables of pair features, of width 0 where no template has one."""
        padded = [table.padded for table in self._tables] or [np.zeros((0, 0), np.uint8)]
        rows = padded[0] if len(padded) == 1 else np.hstack(padded)
        width = rows.shape[1]
        linked = any(code == LINKED for code, *_ in self._table_blocks)
        return TableArrays(
            rows=rows,
            counts=np.zeros((self.n_items + 3 if width else 0, width), np.int32),
            after=np.zeros((2, width), np.int32),
            links=np.zeros((self.n_items if linked else 0, width), np.uint16),
            won=np.zeros(width, np.int32),
            small=np.zeros(width, np.uint8),
            fresh=np.zeros(width, np.uint8),
            sums=np.zeros(width, np.int32),
            blocks=np.array(self._table_blocks, BLOCK),
        )

    def pair_sums(self) -> set[int]:
        """Return the statistics that are sums over the pairs of items in a cluster, each pair by itself."""
        found: set[int] = set()
        for term in self.terms:
            if isinstance(term, PairTerm):
                found.update(range(term.offset, term.offset + term.size))
            elif isinstance(term, VectorTerm):
                found.add(term.offset)
        for features, offset in self._edge_features:
            found.update(range(offset, offset + features.shape[1]))
        for code, _, size, offset in self._table_blocks:
            if code == COUNT:
                found.update(range(offset, offset + size))
        return found

    def edge_arrays(self) -> EdgeArrays:
        """Lay out the given pairs with the features that are not zero."""
        counts, index, value = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        for features, offset in self._edge_features:
            edge, column = np.nonzero(features)
            counts.append(np.bincount(edge, minlength=len(features)))
            index.append(column + offset)
            value.append(features[edge, column])
        per_edge = np.concatenate(counts)
        return EdgeArrays(
            start=self.edge_start,
            neighbor=self.edge_neighbor,
            edge=self._edge_order,
            entry=np.concatenate([np.zeros(1, np.int64), np.cumsum(per_edge)]),
            index=np.concatenate(index),
            value=np.concatenate(value),
        )

    @property
    def edge_score(self) -> NDArray[np.float64]:
        """Score of each given pair at the model's present weights, in the order of ``edge_neighbor``."""
        weights = self.model.weights
        scores = [features @ weights[at : at + features.shape[1]] for features, at in self._edge_features]
        return np.concatenate([np.zeros(0), *scores])[self._edge_order]

    def columns(self, fields: Fields, names: frozenset[str]) -> tuple[FieldLayout, ...]:
        """Lay out those of ``fields`` that a function reads, each once."""
        return tuple(self._column(fields, f) for name, f in fields.columns.items() if name in names)

    def _column(self, fields: Fields, field: Field) -> FieldLayout:
        key = (id(fields), field.name)
        if key not in self._columns:
            real = field.values.dtype == np.float32
            columns: list[NDArray[Any]] = self._reals if real else self._ints
            self._columns[key] = FieldLayout(field.name, real, field.width, len(columns))
            columns += list(field.values.T) if field.width else [field.values]
        return self._columns[key]

    def row(self, fields: Fields, field: Field) -> FieldLayout:
        """Lay out a field that is compared dimension by dimension."""
        key = (id(fields), field.name)
        if key not in self._rows:
            start = sum(block.shape[1] for block in self._vectors)
            self._rows[key] = FieldLayout(field.name, True, field.width, start)
            padding = -field.width % LANES  # rows are read eight numbers at a time
            self._vectors.append(np.pad(field.values.astype(np.float32), ((0, 0), (0, padding))))
        return self._rows[key]

    @cached_property
    def gains(self) -> ModuleType:
        """Compiled ``pair_gain`` and ``cluster_score``."""
        return gains_module(self.terms)

    @cached_property
    def statistics(self) -> ModuleType:
        """Compiled ``pair_statistics`` and ``cluster_statistics``."""
        return statistics_module(self.terms)

    def world_statistics(self, world: Partition) -> NDArray[np.float64]:
        """Sum the statistics of pair and cluster functions over all clusters; given pairs are left out.

        A repulsion counts its pairs within clusters, with a minus.
        """
        out = np.zeros(self.model.blocks.size)
        slots = np.append(world.arrays.members, np.zeros(SIXTEEN, np.int32))  # scans may read past the last
        slots = slots.clip(0, self.n_items - 1)  # free slots hold anything
        add_statistics(
            self.statistics.pair_statistics,
            self.statistics.cluster_statistics,
            world.arrays,
            np.ascontiguousarray(self.ints[slots].T),
            np.ascontiguousarray(self.reals[slots].T),
            self.rows[slots],
            out,
        )
        return out


def _stacked(columns: list[NDArray[Any]], n_items: int, dtype: type) -> NDArray[Any]:
    return np.column_stack(columns) if columns else np.zeros((n_items, 0), dtype)


def check_items(name: str, given: int, n_items: int) -> None:
    """Refuse template ``name``, with fields for ``given`` items, where the world has ``n_items``."""
    if given != n_items:
        raise ShapeError(
            f"template {name!r} has fields for {given} items, but the world has {n_items}:"
            " build both from the same records."
        )
