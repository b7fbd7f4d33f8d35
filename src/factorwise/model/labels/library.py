"""The library of static templates over assignments.

Biases, features, transitions, skip edges, and tables over any tuple of variables. Templates that count labels
in groups are in `cardinality`, templates with a user's own functions in `custom`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.model.labels.base import (
    ScopedTemplate,
    TableGroup,
    log_potentials,
    ranges,
    scope_array,
)
from factorwise.model.labels.statistics import Crossed
from factorwise.model.weights import SparseVector
from factorwise.types import Bools, Float64s, Floats, Int64s
from factorwise.validation import as_numbers, is_rising
from factorwise.variables.features import Features
from factorwise.variables.variable import Column, Variables


class SharedTable(ScopedTemplate):
    """Factors that share one weight per joint setting of their labels; the statistics count settings."""

    def crossing(self) -> Crossed | None:
        """Count the setting."""
        return Crossed.counting(len(self.scopes))

    def tables(self, variables: Variables, weights: Floats) -> Iterator[TableGroup]:
        """Yield one shared table: the weights."""
        yield _shared(self, variables, weights)

    def adjoint(self, variables: Variables, arrays: Sequence[Floats]) -> SparseVector:
        """Return the entries as they are, because the table is the weights."""
        return SparseVector.from_dense(np.ravel(arrays[0]))


class FeatureTemplate(ScopedTemplate):
    """Factors with a row of features each, and one weight per feature and joint setting of the labels."""

    column: Column
    features: Features

    def tables(self, variables: Variables, weights: Floats) -> Iterator[TableGroup]:
        """Yield one table per factor."""
        scores = self.features.times(weights.reshape(self.features.width, -1))
        yield TableGroup(self.scopes + self.offset(variables), np.arange(len(self.scopes)), scores)

    def adjoint(self, variables: Variables, arrays: Sequence[Floats]) -> SparseVector:
        """Add each factor's array to the weights of its features."""
        return _feature_sums(self.features, arrays[0])

    def expected(self, variables: Variables, beliefs: Sequence[Floats]) -> SparseVector:
        """Add each factor's joint probabilities to the weights of its features."""
        if self.size == 0 or not len(beliefs):
            return SparseVector.empty()
        return _feature_sums(self.features, np.array([np.ravel(belief) for belief in beliefs]))


class Bias(SharedTable):
    """One weight per label, whose statistic counts that label in ``column``."""

    column: Column

    def __init__(self, column: Column, *, name: str | None = None) -> None:
        self.column = column
        self.name = name or f"{column.name} bias"
        self.size = len(column.domain)
        self.scopes = np.arange(len(column), dtype=np.int64)[:, None]

    def entries(self, variables: Variables, factors: Int64s, labels: Int64s) -> tuple[Int64s, Float64s]:
        """Count the label."""
        return labels[:, 0], np.ones(len(labels))

    def weight_name(self, index: int) -> str:
        """Return the name of the label."""
        return f"{self.name}: {self.column.domain.labels[index]}"


class UnaryFeatures(FeatureTemplate):
    """One weight per feature and label, for the features of a variable and its label.

    features
        One row per row of ``column``.
    """

    def __init__(self, column: Column, features: Features, *, name: str | None = None) -> None:
        self.column = column
        self.features = features
        self.name = name or f"{column.name} features"
        _require_rows(self.name, features, len(column), f"rows of column {column.name!r}")
        self.size = features.width * len(column.domain)
        self.scopes = np.arange(len(column), dtype=np.int64)[:, None]

    def entries(self, variables: Variables, factors: Int64s, labels: Int64s) -> tuple[Int64s, Float64s]:
        """Return the features of each variable at its label."""
        return _crossed(self.features, factors, labels[:, 0], len(self.column.domain))

    def crossing(self) -> Crossed:
        """Cross the features of each variable with its label."""
        return _crossing(self.features, len(self.column.domain))

    def weight_name(self, index: int) -> str:
        """Return the names of the feature and the label."""
        feature, label = divmod(index, len(self.column.domain))
        seen, tag = self.features.vocabulary.labels[feature], self.column.domain.labels[label]
        return f"{self.name}: {seen} with {tag}"


class Transitions(SharedTable):
    """One weight per pair of labels on linked rows of ``column``.

    pairs : int[edges, 2]
        Linked rows, from and to. By default every row is linked to the next one.
    chains : int[sequences + 1]
        Boundaries of sequences: sequence ``s`` has the rows ``chains[s]:chains[s + 1]``, and rows are linked
        to the next one within a sequence only.
    """

    column: Column

    def __init__(
        self,
        column: Column,
        *,
        pairs: ArrayLike | None = None,
        chains: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        self.column = column
        self.name = name or f"{column.name} transitions"
        self.scopes = _linked(self.name, column, pairs, chains)
        self.size = len(column.domain) ** 2

    def entries(self, variables: Variables, factors: Int64s, labels: Int64s) -> tuple[Int64s, Float64s]:
        """Count the pair of labels."""
        return labels[:, 0] * len(self.column.domain) + labels[:, 1], np.ones(len(labels))

    def weight_name(self, index: int) -> str:
        """Return the names of both labels."""
        return f"{self.name}: {_pair(self.column, index)}"


class SkipEdges(Transitions):
    """Links between any rows of ``column``, for example equal words far apart.

    pairs : int[edges, 2]
        Linked rows.
    same_label
        Keep one weight only, which counts the links that join two equal labels.
    """

    def __init__(
        self, column: Column, pairs: ArrayLike, *, same_label: bool = False, name: str | None = None
    ) -> None:
        super().__init__(column, pairs=pairs, name=name or f"{column.name} skip edges")
        self.same_label = same_label
        if same_label:
            self.size = 1

    def entries(self, variables: Variables, factors: Int64s, labels: Int64s) -> tuple[Int64s, Float64s]:
        """Count the pair of labels, or whether they are equal."""
        if not self.same_label:
            return super().entries(variables, factors, labels)
        agree = labels[:, 0] == labels[:, 1]
        return np.zeros(len(labels), dtype=np.int64), agree.astype(np.float64)

    def crossing(self) -> Crossed | None:
        """Count the pair of labels; with ``same_label`` the statistics are listed instead."""
        return None if self.same_label else super().crossing()

    def tables(self, variables: Variables, weights: Floats) -> Iterator[TableGroup]:
        """Yield one shared table."""
        yield _shared(
            self, variables, np.eye(len(self.column.domain)) * weights if self.same_label else weights
        )

    def adjoint(self, variables: Variables, arrays: Sequence[Floats]) -> SparseVector:
        """Return the entries as they are, or the sum of those of equal labels."""
        if not self.same_label:
            return super().adjoint(variables, arrays)
        count = len(self.column.domain)
        return SparseVector.from_dense(arrays[0].reshape(count, count).trace().reshape(1))

    def weight_name(self, index: int) -> str:
        """Return the names of both labels, or say that they are equal."""
        return f"{self.name}: same label" if self.same_label else super().weight_name(index)


class FeatureTransitions(FeatureTemplate):
    """One weight per feature and pair of labels on linked rows.

    features
        One row per link, in the order of the links.
    pairs, chains
        As for `Transitions`.
    """

    def __init__(
        self,
        column: Column,
        features: Features,
        *,
        pairs: ArrayLike | None = None,
        chains: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        self.column = column
        self.features = features
        self.name = name or f"{column.name} feature transitions"
        self.scopes = _linked(self.name, column, pairs, chains)
        _require_rows(self.name, features, len(self.scopes), "links")
        self.size = features.width * len(column.domain) ** 2

    def entries(self, variables: Variables, factors: Int64s, labels: Int64s) -> tuple[Int64s, Float64s]:
        """Return the features of each link at its pair of labels."""
        count = len(self.column.domain)
        return _crossed(self.features, factors, labels[:, 0] * count + labels[:, 1], count**2)

    def crossing(self) -> Crossed:
        """Cross the features of each link with its pair of labels."""
        return _crossing(self.features, len(self.column.domain) ** 2)

    def weight_name(self, index: int) -> str:
        """Return the names of the feature and both labels."""
        feature, pair = divmod(index, len(self.column.domain) ** 2)
        return f"{self.name}: {self.features.vocabulary.labels[feature]} with {_pair(self.column, pair)}"


class Tables(ScopedTemplate):
    """Fixed log-potentials over any tuples of variables, without weights.

    scopes : int[factors, arity]
        Flat variable numbers; see `Variables.number`.
    tables
        One table in the shape of the labels of a scope, which all factors share, or a stack of such tables.
        ``-inf`` forbids a setting.
    which : int[factors]
        For a stack, the table of each factor; by default each factor has its own.
    """

    size = 0

    def __init__(
        self,
        variables: Variables,
        scopes: ArrayLike,
        tables: ArrayLike,
        *,
        which: ArrayLike | None = None,
        name: str = "tables",
    ) -> None:
        self.name = name
        self.scopes = scope_array(name, scopes)
        self.check(variables)
        self.shape = _shape(name, variables, self.scopes)
        stack = log_potentials(name, tables)
        if stack.shape == self.shape:
            stack = stack[None]
            which = np.zeros(len(self.scopes), dtype=np.int64)
        self.which = np.arange(len(self.scopes)) if which is None else np.asarray(which, dtype=np.int64)
        if stack.shape[1:] != self.shape or self.which.shape != (len(self.scopes),):
            raise ShapeError(
                f"template {name!r} has {len(self.scopes)} factors over labels {self.shape}, but tables of"
                f" shape {stack.shape} for {self.which.size} factors were given: give one table of shape"
                f" {self.shape}, or {(len(self.scopes), *self.shape)} for one per factor."
            )
        if len(self.which) and not 0 <= self.which.min() <= self.which.max() < len(stack):
            raise ShapeError(
                f"template {name!r} has {len(stack)} tables, but a factor uses table"
                f" {int(self.which.max())}: give one table per factor, or use tables 0 to"
                f" {len(stack) - 1}."
            )
        self.stack = stack.reshape(len(stack), -1)

    def check(self, variables: Variables) -> None:
        """Refuse variables with other cardinalities."""
        super().check(variables)
        if hasattr(self, "shape"):
            _require_shape(self.name, variables, self.scopes, self.shape)

    def constants(self, factors: Int64s, labels: Int64s) -> Float64s | None:
        """Look up the score of each factor in its table."""
        entry = np.ravel_multi_index(tuple(labels.T), self.shape)
        return np.asarray(self.stack[self.which[factors], entry])

    def hard(self, factors: Int64s) -> Bools:
        """Return the factors whose tables contain -inf."""
        return np.asarray((self.stack == -np.inf).any(axis=1))[self.which[factors]]

    def tables(self, variables: Variables, weights: Floats) -> Iterator[TableGroup]:
        """Yield the tables unchanged."""
        self.offset(variables)
        yield TableGroup(self.scopes, self.which, self.stack)


class WeightedTables(SharedTable):
    """One weight per joint setting of a tuple of variables, shared by all factors.

    scopes : int[factors, arity]
        Flat variable numbers; every scope has the same cardinalities.
    """

    def __init__(self, variables: Variables, scopes: ArrayLike, *, name: str = "weighted tables") -> None:
        self.name = name
        self.scopes = scope_array(name, scopes)
        self.check(variables)
        self.shape = _shape(name, variables, self.scopes)
        self.size = int(np.prod(self.shape, dtype=np.int64))
        first = self.scopes[0] if len(self.scopes) else []
        self._domains = [variables.domain_of(int(variable)) for variable in first]

    def check(self, variables: Variables) -> None:
        """Refuse variables with other cardinalities."""
        super().check(variables)
        if hasattr(self, "shape"):
            _require_shape(self.name, variables, self.scopes, self.shape)

    def entries(self, variables: Variables, factors: Int64s, labels: Int64s) -> tuple[Int64s, Float64s]:
        """Count the joint setting."""
        return np.ravel_multi_index(tuple(labels.T), self.shape).astype(np.int64), np.ones(len(labels))

    def weight_name(self, index: int) -> str:
        """Return the name of the joint setting, from its labels."""
        codes = np.unravel_index(index, self.shape)
        names = (str(domain.labels[int(c)]) for domain, c in zip(self._domains, codes, strict=True))
        return f"{self.name}: {', '.join(names)}"


def _shared(template: ScopedTemplate, variables: Variables, table: Floats) -> TableGroup:
    scopes = template.scopes + template.offset(variables)
    flat = np.asarray(table, dtype=np.float64).reshape(1, -1)
    return TableGroup(scopes, np.zeros(len(scopes), dtype=np.int64), flat)


def _crossed(features: Features, rows: Int64s, code: Int64s, codes: int) -> tuple[Int64s, Float64s]:
    """Return the entries of ``rows`` with each feature crossed with the row's ``code``."""
    position = ranges(features.indptr, rows)
    repeats = features.indptr[rows + 1] - features.indptr[rows]
    return features.indices[position] * codes + np.repeat(code, repeats), features.data[position]


def _crossing(features: Features, codes: int) -> Crossed:
    """Cross the features of each row with one of ``codes``."""
    rows = np.arange(len(features), dtype=np.int64)
    return Crossed(rows, features.indptr, features.indices * codes, features.data)


def _feature_sums(features: Features, arrays: Floats) -> SparseVector:
    """Multiply the transposed features with ``arrays``, which has one row per row of features."""
    codes = arrays.shape[1]
    if features.width > 4 * len(features.data):  # most features do not occur: do not write their zeros
        position = features.indices[:, None] * codes + np.arange(codes)
        owner = np.repeat(np.arange(len(features)), np.diff(features.indptr))
        return SparseVector.of(position.ravel(), (features.data[:, None] * arrays[owner]).ravel())
    from scipy.sparse import csr_array  # imported here, so that building a model does not load SciPy

    matrix = csr_array(
        (features.data, features.indices, features.indptr), shape=(len(features), features.width)
    )
    return SparseVector.from_dense(np.ravel(matrix.T @ arrays))


def _linked(name: str, column: Column, pairs: ArrayLike | None, chains: ArrayLike | None) -> Int64s:
    if pairs is not None and chains is not None:
        raise InvalidArgumentError(f"template {name!r} was given pairs and chains: give one of them.")
    if pairs is not None:
        scopes = scope_array(name, pairs, 2)
        if len(scopes) and int(scopes.max()) >= len(column):
            raise InvalidArgumentError(
                f"template {name!r} links row {int(scopes.max())}, but column {column.name!r} has rows 0 to"
                f" {len(column) - 1}."
            )
        return scopes
    first = np.arange(max(len(column) - 1, 0), dtype=np.int64)
    if chains is not None:
        ends = as_numbers("chains", chains, np.int64)
        if ends.ndim != 1 or len(ends) < 2 or ends[0] != 0 or ends[-1] != len(column) or not is_rising(ends):
            raise InvalidArgumentError(
                f"the chains of template {name!r} must rise from 0 to {len(column)}, the number of"
                " rows: give the boundaries of all sequences, including the first and the last."
            )
        first = np.setdiff1d(first, ends[1:] - 1, assume_unique=False)
    return np.stack([first, first + 1], axis=1)


def _shape(name: str, variables: Variables, scopes: Int64s) -> tuple[int, ...]:
    if not len(scopes):
        raise InvalidArgumentError(f"template {name!r} has no factors: give at least one scope.")
    shape = tuple(variables.cardinality[scopes[0]].tolist())
    _require_shape(name, variables, scopes, shape)
    return shape


def _require_shape(name: str, variables: Variables, scopes: Int64s, shape: tuple[int, ...]) -> None:
    wrong = np.flatnonzero((variables.cardinality[scopes] != np.array(shape)).any(axis=1))
    if len(wrong):
        cardinalities = variables.cardinality[scopes[wrong[0]]].tolist()
        raise ShapeError(
            f"factor {int(wrong[0])} of template {name!r} joins variables of {cardinalities} labels,"
            f" but the table has shape {list(shape)}: use one template for each shape."
        )


def _require_rows(name: str, features: Features, rows: int, of_what: str) -> None:
    if len(features) != rows:
        raise ShapeError(
            f"template {name!r} has features for {len(features)} rows, but there are {rows} {of_what}:"
            " give one row of features each."
        )


def _pair(column: Column, index: int) -> str:
    first, second = divmod(index, len(column.domain))
    return f"{column.domain.labels[first]} to {column.domain.labels[second]}"
