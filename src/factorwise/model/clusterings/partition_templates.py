"""Templates over clusterings: pairs of items within clusters and between them.

A transfer of items M from the cluster S to the cluster T joins every pair of M x T, separates every pair of
M x (S - M), and touches no other pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError
from factorwise.kernels.clusterings import links
from factorwise.kernels.clusterings.code.functions import PairTerm, VectorTerm
from factorwise.kernels.compile.binding import Bound
from factorwise.kernels.compile.composition import SourceText, source_of
from factorwise.kernels.compile.programs import Later, Program
from factorwise.kernels.walks.frames import run
from factorwise.model.clusterings.program import PartitionProgram, check_items
from factorwise.model.clusterings.restrictions import copy_with, refuse_repulsion
from factorwise.model.contributions import Contributions
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.model.template import Template
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Int8s, Int32s, Int64s, Ints
from factorwise.validation import as_numbers, check_count, check_range
from factorwise.variables.fields import Fields
from factorwise.world.diff import NEW, PartitionDiff, Retype, Transfer
from factorwise.world.links import LinkGraph
from factorwise.world.partition import Partition

Items = Int32s
Numbers = Sequence[float]

MANY_PAIRS = 20_000  # above this number, the statistics of a whole world are computed by compiled code


class PartitionTemplate(Template[Partition, PartitionDiff]):
    """Base class of templates over clusterings: named statistics, and checks of a user's function.

    pairwise
        Whether each statistic of a cluster is a sum over the pairs of its members.
    """

    function: Callable[..., Any]
    layout = PartitionProgram
    pairwise: bool = False
    #: What sampling evaluators may treat as a factor: "pairs", each pair of items, of which some are
    #: examined; "whole", the template as one factor that is always examined; "", only what `contributions`
    #: lists.
    examined = ""

    def __init__(self, name: str, statistics: Sequence[str]) -> None:
        self.name = name
        self.statistic_names = tuple(statistics)
        self.size = len(self.statistic_names)
        if not self.statistic_names:
            raise InvalidArgumentError(f"template {name!r} needs names for its statistics: ['...'].")

    def weight_name(self, index: int) -> str:
        """Return the names of the template and the statistic."""
        return f"{self.name}: {self.statistic_names[index]}"

    def _answer(self, description: str, *arguments: Any) -> Any:
        """Call the user's function; an error in it is reported with the template's name."""
        try:
            return self.function(*arguments)
        except (AttributeError, ArithmeticError, IndexError, TypeError, ValueError) as fault:
            raise TemplateError(
                f"the function of template {self.name!r} failed for {description}: {fault}. It is called with"
                " records (or a cluster) whose fields are attributes, and must return statistics for"
                " any of them, including a record paired with itself."
            ) from fault

    def _checked(self, answer: Any, description: str) -> tuple[float, ...]:
        if not isinstance(answer, tuple) or len(answer) != self.size:
            raise TemplateError(
                f"template {self.name!r} declares {self.size} statistics {list(self.statistic_names)},"
                f" but its function returned {answer!r} for {description}: return a tuple of"
                f" {self.size} numbers."
            )
        try:
            numbers = tuple(float(value) for value in answer)
        except (TypeError, ValueError):
            numbers = (math.nan,)
        if not all(math.isfinite(value) for value in numbers):
            raise TemplateError(
                f"template {self.name!r} returned {answer!r} for {description}: statistics must be"
                " finite numbers."
            )
        return numbers

    def _compiled_statistics(self, world: Partition) -> Float64s | None:
        """Return `_totals`, or None for small worlds and for functions that cannot be compiled."""
        sizes = world.arrays.size[world.cluster_ids()].astype(np.int64)
        if (sizes * (sizes - 1)).sum() < 2 * MANY_PAIRS:
            return None
        try:
            return self._totals(world)
        except TemplateError:
            return None

    def _totals(self, world: Partition) -> Float64s:
        """Return the sum over all clusters from compiled code; repulsions count with a minus sign."""
        programs = model_programs(Model([self]), world)
        frame = world.frame(np.zeros(2, np.uint64), weights=self.size)._replace(world=programs.arrays)
        for program in programs.templates:
            run(Bound(program, frame), "totals")
        return frame.gradient.value


def parts_of(world: Partition, diff: Transfer) -> tuple[Items, Items, Items]:
    """Return the moving items, the members of the target, and the items that stay behind."""
    moving = np.array(diff.items, dtype=np.int32)
    source = world.members(diff.source)
    target = world.members(diff.target) if diff.target != NEW else moving[:0]
    return moving, target, source[~np.isin(source, moving)]


def touched_pairs(world: Partition, diff: PartitionDiff) -> tuple[list[tuple[int, int]], Int8s]:
    """Return the pairs that ``diff`` joins, item by item, then those it separates; and 0 or 1 for each."""
    if isinstance(diff, Retype):
        return [], np.zeros(0, np.int8)
    moving, target, staying = (part.tolist() for part in parts_of(world, diff))
    joined, undone = list(product(moving, target)), list(product(moving, staying))
    return joined + undone, np.repeat(np.array([0, 1], np.int8), [len(joined), len(undone)])


class PairTemplate(PartitionTemplate):
    """A factor for every pair of items in one cluster (or, with ``repels``, in different clusters).

    function
        ``function(a, b)`` of two records whose fields are read as attributes. It returns a tuple of numbers
        or truth values, one per statistic. They must be finite, also for an item paired with itself, and must
        not depend on the order of ``a`` and ``b``.
    statistics
        Names of the statistics, each of which has one weight.
    bound
        An upper limit of the absolute value of the statistics, one number for all or one each (1 for truth
        values). Some evaluators need it to know how much a factor can matter before they examine it.
    """

    pairwise = True
    examined = "pairs"

    def __init__(
        self,
        name: str,
        fields: Fields,
        function: Callable[[Any, Any], tuple[Any, ...]],
        statistics: Sequence[str],
        *,
        repels: bool = False,
        bound: ArrayLike | None = None,
    ) -> None:
        super().__init__(name, statistics)
        self.bound = None if bound is None else _bounds(name, bound, self.size)
        self.fields = fields
        self.function = function
        self.repels = repels
        for i, j in {(0, fields.n_items - 1), (0, fields.n_items // 2), (fields.n_items // 3, 0)}:
            a, b = fields.record(i), fields.record(j)
            self._of(a, a)  # compiled scans include the moving item itself and subtract it afterwards
            forward, back = self._of(a, b), self._of(b, a)
            if forward != back:
                raise TemplateError(
                    f"template {self.name!r} returned {forward} for items ({i}, {j}) and {back} for"
                    f" ({j}, {i}): a pair has no order, so its function must be symmetric."
                )

    def _of(self, a: Any, b: Any) -> tuple[float, ...]:
        description = f"{a} and {b}"
        return self._checked(self._answer(description, a, b), description)

    def restrict_to(self, items: Int64s) -> Self:
        """Return the template for some of the items: the pairs among them."""
        refuse_repulsion(self)
        return copy_with(self, fields=self.fields.restrict_to(items))

    def source(self) -> SourceText:
        """Return the source of the function, for compiling."""
        return source_of(self.function)

    def add_to(self, program: PartitionProgram, offset: int) -> None:
        """Add the template to a compiled program; its weights begin at ``offset``."""
        program.check_items(self.name, self.fields.n_items)
        source = self.source()
        columns = program.columns(self.fields, source.attributes)
        sign = -1 if self.repels else 1
        values = [field.values.astype(np.int64) for field in self.fields.columns.values()]
        lowest = min((int(column.min()) for column in values), default=0)
        highest = max((int(column.max()) for column in values), default=0)
        largest = max(-lowest, highest) * program.n_items
        program.add_pairs(PairTerm(source, columns, self.size, sign, largest, lowest, highest), offset, self)

    def between(self, first: Items, second: Items) -> Numbers:
        """Return the sum over all pairs with one item in each list."""
        return self._sum(list(product(self.fields.records(first), self.fields.records(second))))

    def within(self, items: Items) -> Numbers:
        """Return the sum over all pairs of items of one list."""
        return self._sum(list(combinations(self.fields.records(items), 2)))

    def _sum(self, pairs: Sequence[tuple[Any, Any]]) -> Numbers:
        """Sum over the given pairs; if the sum shows that an answer is wrong, check them one by one."""
        totals: list[float] = [0.0] * self.size
        try:
            for a, b in pairs:
                totals = [total + value for total, value in zip(totals, self.function(a, b), strict=True)]
        except (TypeError, ValueError):
            totals = [math.nan]
        if not all(map(math.isfinite, totals)):
            for a, b in pairs:
                self._of(a, b)
        return totals

    def statistics(self, world: Partition) -> SparseVector:
        """Return the sum over the pairs that are together (for repulsion: apart)."""
        check_items(self.name, self.fields.n_items, world.n_items)
        compiled = self._compiled_statistics(world)
        if compiled is not None:
            # minus the pairs within clusters, plus all pairs: leaves the pairs between clusters
            if self.repels:
                everything = Partition.from_labels(np.zeros(world.n_items, np.int64))
                compiled -= self._totals(everything)
            return SparseVector.from_dense(compiled)
        if self.repels:
            members = list(world.clusters())
            sums = [self.between(first, second) for first, second in combinations(members, 2)]
        else:
            sums = [self.within(members) for members in world.clusters()]
        return SparseVector.from_dense(np.sum(np.reshape(sums, (-1, self.size)), axis=0))

    def difference(self, world: Partition, diff: PartitionDiff) -> SparseVector:
        """Return the sum over the pairs joined minus the sum over the pairs separated."""
        if isinstance(diff, Retype):
            return SparseVector.empty()
        moving, target, staying = parts_of(world, diff)
        change = np.subtract(self.between(moving, target), self.between(moving, staying))
        return SparseVector.from_dense(-change if self.repels else change)

    def contributions(
        self, world: Partition, diff: PartitionDiff, weights: Float64s, *, bounds: bool = False
    ) -> Contributions:
        """List the pairs joined and the pairs separated; bounds on statistics give bounds on scores."""
        pairs, stratum = touched_pairs(world, diff)
        records = self.fields.record
        rows = np.array([self._of(records(i), records(j)) for i, j in pairs]).reshape(-1, self.size)
        signs = np.where((stratum == 0) != self.repels, 1.0, -1.0)
        bound = np.inf if self.bound is None else float(self.bound @ np.abs(weights))
        return _listed_pairs(rows * signs[:, None], stratum, weights, bound)


class VectorPairTemplate(PairTemplate):
    """A factor for every pair, which compares a field of many dimensions dimension by dimension.

    function
        ``function(p, q)`` of two numbers, applied to each dimension of ``field``; each dimension has one
        weight.
    """

    def __init__(
        self,
        name: str,
        fields: Fields,
        field: str,
        function: Callable[[Any, Any], Any],
        *,
        repels: bool = False,
        bound: ArrayLike | None = None,
    ) -> None:
        if not fields[field].width:
            raise ShapeError(
                f"field {field!r} has one number per item: use PairTemplate, or give the field shape"
                " (items, width)."
            )
        self.field = field
        self.elementwise = function
        names = [f"{field}[{d}]" for d in range(fields[field].width)]
        super().__init__(name, fields, self._rowwise, names, repels=repels, bound=bound)

    def _rowwise(self, a: Any, b: Any) -> tuple[Any, ...]:
        pairs = zip(getattr(a, self.field), getattr(b, self.field), strict=True)
        return tuple(self.elementwise(p, q) for p, q in pairs)

    def source(self) -> SourceText:
        """Return the source of the function of two numbers, for compiling."""
        return source_of(self.elementwise)

    def add_to(self, program: PartitionProgram, offset: int) -> None:
        """Add the template to a compiled program; its weights begin at ``offset``."""
        program.check_items(self.name, self.fields.n_items)
        row = program.row(self.fields, self.fields[self.field])
        program.add_pairs(VectorTerm(self.source(), row, -1 if self.repels else 1), offset, self)


class EdgeTemplate(PartitionTemplate):
    """A factor for each given pair of items, with features computed beforehand.

    edges : int[pairs, 2]
        Pairs of different items, each pair once.
    features : float[pairs, statistics]
        The statistics of each pair if its items are in one cluster (with ``repels``, in different ones).
    """

    pairwise = True

    def __init__(
        self,
        name: str,
        n_items: int,
        edges: ArrayLike,
        features: ArrayLike,
        statistics: Sequence[str],
        *,
        repels: bool = False,
    ) -> None:
        super().__init__(name, statistics)
        self.n_items = n_items
        self.repels = repels
        check_count("n_items", n_items)
        self.edges = as_numbers("edges", edges, np.int64)
        if self.edges.size % 2:
            raise ShapeError(
                f"edges must be pairs of items, but an array of shape {self.edges.shape} was given."
            )
        self.edges = self.edges.reshape(-1, 2)
        self.features = as_numbers("features", features)
        if self.features.shape != (len(self.edges), self.size):
            raise ShapeError(
                f"{len(self.edges)} edges with {self.size} statistics need features of shape"
                f" {(len(self.edges), self.size)}, but {self.features.shape} was given."
            )
        if not np.isfinite(self.features).all():
            row, column = np.argwhere(~np.isfinite(self.features))[0]
            raise InvalidArgumentError(
                f"feature {self.statistic_names[column]!r} of edge {row} is {self.features[row, column]}:"
                " features are finite numbers."
            )
        check_range("edges", self.edges, n_items)
        ordered = np.sort(self.edges, axis=1)
        if (ordered[:, 0] == ordered[:, 1]).any() or len(np.unique(ordered, axis=0)) != len(ordered):
            raise InvalidArgumentError(
                "each edge must connect two different items, and each pair must be listed once."
            )
        self.graph = LinkGraph.from_pairs(n_items, self.edges[:, 0], self.edges[:, 1])

    def restrict_to(self, items: Int64s) -> Self:
        """Return the template for some of the items: the edges among them."""
        refuse_repulsion(self)
        graph, pairs = self.graph.restrict_to(items)
        edges = np.column_stack([graph.first, graph.second]).astype(np.int64)
        return copy_with(self, n_items=len(items), edges=edges, features=self.features[pairs], graph=graph)

    def program(self, world: Partition, offset: int, weights: Float64s) -> Program:
        """Return the program of links, without weights for unlinked pairs."""
        check_items(self.name, self.n_items, world.n_items)
        features, pair = -self.features if self.repels else self.features, self.graph.pair
        scores = Later(lambda: (features @ weights[offset : offset + self.size])[pair], np.dtype(np.float64))
        arrays = {
            "start": self.graph.start,
            "neighbor": self.graph.neighbor,
            "graph": [self.graph.neighbor.ctypes.data],
            "score": scores,
            "pair": pair,
            "levels": np.zeros((len(features), 0), np.uint8),
            "features": features,
            "place": [offset - links.FIXED_WEIGHTS],
            "level_start": np.zeros(1, np.int64),
            "level_count": np.zeros(0),
        }
        return Program(
            name=f"edges of {self.name!r}",
            gain=links.edge_gain,
            gains=links.edge_gains,
            gradient=links.edge_gradient,
            arrays=arrays,
        )

    def statistics(self, world: Partition) -> SparseVector:
        """Return the sum of the features of the edges inside clusters (for repulsion: between clusters)."""
        check_items(self.name, self.n_items, world.n_items)
        labels = world.labels
        together = labels[self.edges[:, 0]] == labels[self.edges[:, 1]]
        return SparseVector.from_dense(self.features[together != self.repels].sum(axis=0))

    def difference(self, world: Partition, diff: PartitionDiff) -> SparseVector:
        """Return edges joined minus edges separated, from the edges of the items that move."""
        joined, undone = self._touched(world, diff)
        change = self.features[joined].sum(axis=0) - self.features[undone].sum(axis=0)
        return SparseVector.from_dense(-change if self.repels else change)

    def _touched(self, world: Partition, diff: PartitionDiff) -> tuple[Ints, Ints]:
        """Return the edges joined and the edges separated."""
        if isinstance(diff, Retype):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        moving, target, staying = parts_of(world, diff)
        return self.graph.between(moving, target), self.graph.between(moving, staying)

    def contributions(
        self, world: Partition, diff: PartitionDiff, weights: Float64s, *, bounds: bool = False
    ) -> Contributions:
        """List the edges joined and the edges separated; the largest features bound their scores."""
        joined, undone = self._touched(world, diff)
        edge = np.concatenate([joined, undone])
        kept = np.repeat(np.array([0, 1], np.int8), [len(joined), len(undone)])
        signs = np.where((kept == 0) != self.repels, 1.0, -1.0)
        bound = float(np.abs(self.features).max(axis=0, initial=0.0) @ np.abs(weights))
        return replace(
            _listed_pairs(self.features[edge] * signs[:, None], kept, weights, bound), of_pairs=False
        )


def _listed_pairs(rows: Float64s, stratum: Int8s, weights: Float64s, bound: float) -> Contributions:
    """List factors with the given rows of statistics."""
    count, size = rows.shape
    listed = Contributions.weighted(
        count,
        np.repeat(np.arange(count), size),
        np.tile(np.arange(size), count),
        rows.ravel(),
        weights,
        stratum=stratum,
        bound=bound,
    )
    return replace(listed, of_pairs=True)


def _bounds(name: str, bound: ArrayLike, size: int) -> Float64s:
    bounds = np.asarray(bound, dtype=np.float64)
    if bounds.shape not in ((), (size,)) or not (np.isfinite(bounds) & (bounds >= 0.0)).all():
        raise InvalidArgumentError(
            f"the bound of template {name!r} must be one number, zero or more, or {size} of them, one"
            f" per statistic, but {bounds!r} was given."
        )
    return np.broadcast_to(bounds, (size,))
