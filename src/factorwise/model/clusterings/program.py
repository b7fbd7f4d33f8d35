"""Prepare a model over clusterings for compiled walks: lay out fields, write functions, group templates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ShapeError
from factorwise.kernels.clusterings import clusters, tables
from factorwise.kernels.clusterings.arrays import Clustering
from factorwise.kernels.clusterings.code.functions import (
    ClusterTerm,
    PairKind,
    cluster_functions,
    pair_functions,
)
from factorwise.kernels.clusterings.code.row_code import row_function
from factorwise.kernels.clusterings.code.vector_code import FieldLayout
from factorwise.kernels.compile.programs import Pointers, Program, Written
from factorwise.kernels.numeric.int_lanes import SIXTEEN
from factorwise.kernels.numeric.simd import LANES
from factorwise.types import Float32s, Float64s, Int32s
from factorwise.variables.fields import Field, Fields
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition


class PartitionProgram:
    """What compiled walks need of templates over clusterings.

    Templates add themselves with `add_pairs`, `add_clusters` and `add_table`. Then `programs` makes one
    program for all pair functions, one for all cluster functions, and so on, and `with_columns` stores what
    the functions read next to the members of a world.
    """

    def __init__(self, world: Partition) -> None:
        self.n_items = world.n_items
        self.n_ids = len(world.arrays.size)
        self._columns: dict[tuple[int, str], FieldLayout] = {}
        self._rows: dict[tuple[int, str], FieldLayout] = {}
        self._ints: list[NDArray[Any]] = []
        self._reals: list[NDArray[Any]] = []
        self._vectors: list[Float32s] = []
        self._pairs: list[tuple[PairKind, int, Any]] = []
        self._clusters: list[tuple[ClusterTerm, int, Any]] = []
        self._tables: list[PairTable] = []
        self._table_blocks: list[tuple[int, int, int, int]] = []

    def check_items(self, name: str, count: int) -> None:
        """Refuse a template that was made for another number of items."""
        check_items(name, count, self.n_items)

    def add_pairs(self, term: PairKind, offset: int, template: Any) -> None:
        """Add a pair function, whose weights begin at ``offset``."""
        self._pairs.append((term, offset, template))

    def add_clusters(self, term: ClusterTerm, offset: int, template: Any) -> None:
        """Add a cluster function, whose weights begin at ``offset``."""
        self._clusters.append((term, offset, template))

    def add_table(self, table: PairTable, aggregates: Sequence[int], offset: int) -> None:
        """Add a table of pair features with its aggregates, whose weights begin at ``offset``."""
        if table not in self._tables:
            self._tables.append(table)
        widths = [known.padded.shape[1] for known in self._tables]
        first = sum(widths[: self._tables.index(table)])
        size = table.n_features
        self._table_blocks += [(code, first, size, offset + k * size) for k, code in enumerate(aggregates)]

    def columns(self, fields: Fields, names: frozenset[str]) -> tuple[FieldLayout, ...]:
        """Lay out the columns of ``fields`` that a function reads, each once."""
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

    def with_columns(self, world: Clustering) -> Clustering:
        """Return the arrays of a world with the columns that functions read, stored by item and by slot."""
        n = self.n_items
        items = {
            "item_ints": _stacked(self._ints, n, np.int32),
            "item_reals": _stacked(self._reals, n, np.float32),
            "item_rows": np.hstack(self._vectors) if self._vectors else np.zeros((n, 0), np.float32),
        }
        # room for a cluster that is moved in storage; scans may read past the last member
        slots = len(world.members) + n + 2 + SIXTEEN
        ints = np.zeros((items["item_ints"].shape[1], slots), np.int32)
        reals = np.zeros((items["item_reals"].shape[1], slots), np.float32)
        rows = np.zeros((slots, items["item_rows"].shape[1]), np.float32)
        ints[:, world.slot] = items["item_ints"].T
        reals[:, world.slot] = items["item_reals"].T
        rows[world.slot] = items["item_rows"]
        return world._replace(**items, ints=ints, reals=reals, rows=rows)

    def programs(self, weights: Float64s) -> list[Program]:
        """Return the programs of all templates, which score with ``weights``."""
        programs = []
        if self._pairs:
            programs.append(self._pair_program(weights))
        if self._clusters:
            programs.append(self._cluster_program(weights))
        if self._tables:
            programs.append(self._table_program(weights))
        return programs

    def _pair_program(self, weights: Float64s) -> Program:
        offset = np.array([offset for _, offset, _ in self._pairs], np.int64)
        plain = _PlainPairs([(template, offset) for _, offset, template in self._pairs], weights)
        terms = [term for term, _, _ in self._pairs]
        functions = _with_plain({**pair_functions(terms), "pairs": row_function(terms)}, plain)
        return Program(
            name="pair functions", arrays={"offset": offset, "place": offset, "weights": weights}, **functions
        )

    def _cluster_program(self, weights: Float64s) -> Program:
        offset = np.array([offset for _, offset, _ in self._clusters], np.int64)
        written = cluster_functions([term for term, _, _ in self._clusters])
        functions = _with_plain(written, _PlainClusters(self._clusters, weights))
        span = {"span": np.zeros(3, np.int64), "sign": np.zeros(1)}
        inner = Program(arrays={**span, "offset": offset, "place": offset, "weights": weights}, **functions)
        arrays = {
            **span,
            "scorer": Pointers([inner], ("score",)),
            "adder": Pointers([inner], ("add",)),
            "value": np.zeros(self.n_ids),
            "after": np.zeros(2),
            "change": np.full(3, -1, np.int64),
        }
        retyped = {
            "gain": clusters.type_gain,
            "gradient": clusters.type_gradient,
            "applied": clusters.type_applied,
        }
        return Program(
            name="cluster functions",
            for_gains=("begin", "applied"),  # scores of clusters, from which gains are computed
            arrays=arrays,
            worlds=[retyped],
            begin=clusters.begin_clusters,
            gain=clusters.clusters_gain,
            gains=clusters.clusters_gains,
            gradient=clusters.clusters_gradient,
            applied=clusters.clusters_applied,
            totals=clusters.clusters_totals,
        )

    def _table_program(self, weights: Float64s) -> Program:
        padded = [table.padded for table in self._tables]
        rows = padded[0] if len(padded) == 1 else np.hstack(padded)
        width = rows.shape[1]
        linked = any(code == tables.LINKED for code, *_ in self._table_blocks)
        arrays = {
            "rows": rows,
            "counts": np.zeros((self.n_ids, width), np.int32),
            "without": np.zeros((3, width), np.int32),
            "joined": np.zeros((3, width), np.int32),
            "links": np.zeros((self.n_items if linked else 0, width), np.uint16),
            "won": np.zeros((3, width), np.int32),
            "small": np.zeros(width, np.uint8),
            "fresh": np.zeros(width, np.uint8),
            "change": np.full(3, -1, np.int64),
            "blocks": np.array(self._table_blocks, np.int64),
            "value": np.zeros(max(size for _, _, size, _ in self._table_blocks)),
            "weights": weights,
        }
        return Program(
            name="tables of pairs",
            begin=tables.begin_tables,
            gains=tables.tables_gains,
            gradient=tables.tables_gradient,
            applied=tables.tables_applied,
            arrays=arrays,
        )


def _with_plain(functions: dict[str, Written], plain: Any) -> dict[str, Any]:
    """Give each written function, as its plain form, the method of the same name if there is one."""
    return {role: replace(written, plain=getattr(plain, role, None)) for role, written in functions.items()}


class _PlainPairs:
    """The plain forms of written pair functions, by the definitions of their templates."""

    def __init__(self, templates: Sequence[tuple[Any, int]], weights: Float64s) -> None:
        self.templates = templates
        self.weights = weights

    def _statistics(self, item: int, members: Int32s) -> list[Float64s]:
        """Return how the statistics of ``members`` change in each template when ``item`` joins them."""
        alone, rest = np.array([item], np.int32), members[members != item]
        signs = [-1.0 if template.repels else 1.0 for template, _ in self.templates]
        statistics = [template.between(alone, rest) for template, _ in self.templates]
        return [sign * np.asarray(value) for sign, value in zip(signs, statistics, strict=True)]

    def _joining(self, item: int, members: Int32s) -> float:
        parts = zip(self.templates, self._statistics(item, members), strict=True)
        return float(sum(self.weights[at : at + t.size] @ value for (t, at), value in parts))

    def gain(self, world: Any, mine: Any, move: Any) -> float:
        """Return the gain of moving one item; it counts the pairs, as compiled code does."""
        move.factors += int(world.size[move.source]) - 1 + int(world.size[move.target])
        target, source = _members(world, move.target), _members(world, move.source)
        return self._joining(move.item, target) - self._joining(move.item, source)

    def gains(self, world: Any, mine: Any, move: Any, choice: Any) -> None:
        """Return what the item adds to each target."""
        for k in range(move.choices):
            choice.out[k] += self._joining(move.item, _members(world, int(choice.targets[k])))

    def pairs(self, world: Any, mine: Any, move: Any, choice: Any) -> None:
        """Return the score of the pair of the item with each target."""
        for k in range(move.choices):
            choice.out[k] += self._joining(move.item, choice.targets[k : k + 1])

    def gradient(self, world: Any, mine: Any, move: Any, gradient: Any) -> None:
        """Return the statistics after the change minus those before it."""
        for cluster, sign in ((move.target, 1.0), (move.source, -1.0)):
            statistics = self._statistics(move.item, _members(world, cluster))
            for (template, at), value in zip(self.templates, statistics, strict=True):
                gradient.value[at : at + template.size] += sign * value


class _PlainClusters:
    """The plain forms of written cluster functions, by the definitions of their templates."""

    def __init__(self, terms: Sequence[tuple[ClusterTerm, int, Any]], weights: Float64s) -> None:
        self.terms = terms
        self.weights = weights

    def _statistics(self, world: Any, mine: Any) -> Iterator[tuple[int, Float64s]]:
        """Yield the statistics of the members at some slots, and where their weights begin."""
        lo, hi, kind = (int(number) for number in mine.span)
        for term, offset, template in self.terms:
            fields: dict[str, Any] = {}
            for field in term.fields:
                columns = world.reals if field.real else world.ints
                values = columns[field.start : field.start + max(field.width, 1), lo:hi]
                fields[field.name] = values.T if field.width else values[0]
            yield offset, template.statistics_of(SimpleNamespace(**fields, size=hi - lo, type=kind))

    def score(self, world: Any, mine: Any) -> float:
        """Return the score of the members at some slots."""
        statistics = self._statistics(world, mine)
        return float(sum(self.weights[at : at + len(value)] @ value for at, value in statistics))

    def add(self, world: Any, mine: Any, gradient: Any) -> None:
        """Add their statistics with a sign."""
        for at, value in self._statistics(world, mine):
            gradient.value[at : at + len(value)] += mine.sign[0] * value


def _members(world: Any, cluster: int) -> Int32s:
    start = int(world.start[cluster])
    members: Int32s = world.members[start : start + int(world.size[cluster])].copy()
    return members


def _stacked(columns: list[NDArray[Any]], n_items: int, dtype: type) -> NDArray[Any]:
    return np.ascontiguousarray(np.column_stack(columns)) if columns else np.zeros((n_items, 0), dtype)


def check_items(name: str, count: int, n_items: int) -> None:
    """Refuse template ``name``, which has fields for ``count`` items, if the world has ``n_items``."""
    if count != n_items:
        raise ShapeError(
            f"template {name!r} has fields for {count} items, but the world has {n_items}: build both"
            " from the same records."
        )
