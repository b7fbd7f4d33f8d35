"""Counts of fully observed discrete data per clique, which are sufficient for maximum likelihood.

Records are rows of codes, one column per variable; a record may have a weight. The likelihood of a network
over some cliques depends only on the counts of each clique.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import CountsError, InvalidArgumentError, ShapeError, require
from factorwise.model.factor import expectation
from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats, Int64s

# Margins of the same counts differ only by rounding; this share of the total is far larger.
AGREEMENT = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class CliqueCounts:
    """How often each setting of each clique occurred.

    cardinality : int64[variables]
        Number of labels of each variable.
    cliques
        Tuples of variables, each variable at most once per clique.
    tables : float64[cardinality of each variable of the clique], one per clique
        Number, or total weight, of the records with each setting.
    total
        Number, or total weight, of all records.
    """

    cardinality: Int64s
    cliques: tuple[tuple[int, ...], ...]
    tables: tuple[Floats, ...]
    total: float

    @classmethod
    def from_records(
        cls,
        cardinality: ArrayLike,
        cliques: Iterable[Sequence[int]],
        records: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> CliqueCounts:
        """Count ``records``, which are integer codes [records, variables], each times its weight."""
        sizes = checked_cardinality(cardinality)
        scopes = _checked_cliques(sizes, cliques)
        codes, importance = checked_records(sizes, records, weights)
        tables = tuple(count_table(sizes, scope, codes, importance) for scope in scopes)
        total = float(len(codes) if importance is None else importance.sum())
        if not total > 0.0:
            raise CountsError(
                f"the {len(codes)} records have a total weight of {total}: give at least one record with a"
                " weight above zero."
            )
        return cls(sizes, scopes, tables, total)

    @classmethod
    def from_tables(
        cls, cardinality: ArrayLike, tables: Iterable[tuple[Sequence[int], ArrayLike]]
    ) -> CliqueCounts:
        """Build from ``(clique, counts)`` pairs whose margins agree; counts need not be whole numbers."""
        sizes = checked_cardinality(cardinality)
        pairs = [(clique, np.array(table, dtype=np.float64)) for clique, table in tables]
        require(len(pairs) > 0, "tables", pairs, "at least one pair of a clique and its counts")
        scopes = _checked_cliques(sizes, (clique for clique, _ in pairs))
        counts = tuple(table for _, table in pairs)
        for scope, table in zip(scopes, counts, strict=True):
            _check_counts(sizes, scope, table)
        _check_agreement(scopes, counts)
        return cls(sizes, scopes, counts, float(counts[0].sum()))

    def proportions(self) -> list[Floats]:
        """Return the empirical distribution of each clique."""
        return [table / self.total for table in self.tables]

    def graph(self, log_potentials: Iterable[Floats]) -> FactorGraph:
        """Return the network with one factor per clique."""
        return FactorGraph.build(self.cardinality, zip(self.cliques, log_potentials, strict=True))

    def log_likelihood(self, log_potentials: Iterable[Floats], log_partition: float) -> float:
        """Return the log-probability of all records; ``-inf`` if one is impossible."""
        scores = (expectation(n, t) for n, t in zip(self.tables, log_potentials, strict=True))
        return float(sum(scores)) - self.total * log_partition


def count_table(cardinality: Int64s, scope: Sequence[int], codes: Int64s, weights: Floats | None) -> Floats:
    """Count the settings of the variables in ``scope``, in an array shaped by their cardinalities."""
    shape = tuple(cardinality[list(scope)].tolist())
    if not shape:
        return np.array(float(len(codes) if weights is None else weights.sum()))
    cells = np.ravel_multi_index(tuple(codes[:, v] for v in scope), shape)
    counts = np.bincount(cells, weights, minlength=int(np.prod(shape)))
    return counts.astype(np.float64).reshape(shape)


def checked_cardinality(cardinality: ArrayLike) -> Int64s:
    """Return the numbers of labels, all at least 1."""
    sizes = np.atleast_1d(np.asarray(cardinality))
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or not len(sizes) or int(sizes.min()) < 1:
        raise InvalidArgumentError(
            f"cardinality must be one whole number of labels per variable, at least 1 each, but"
            f" {cardinality!r} was given."
        )
    return sizes.astype(np.int64)


def checked_records(
    cardinality: Int64s, records: ArrayLike, weights: ArrayLike | None = None
) -> tuple[Int64s, Floats | None]:
    """Check records and weights; return int64[records, variables] and float64[records]."""
    codes = np.asarray(records)
    if codes.ndim != 2 or codes.shape[1] != len(cardinality):
        raise ShapeError(
            f"records need one row each and one column for each of {len(cardinality)} variables, but have"
            f" shape {codes.shape}."
        )
    if codes.dtype.kind not in "iu" and codes.size:
        raise InvalidArgumentError(
            f"records must be integer codes, but {codes.dtype} was given: encode labels with Domain.encode."
        )
    codes = codes.astype(np.int64)
    wrong = np.argwhere((codes < 0) | (codes >= cardinality))
    if len(wrong):
        row, variable = wrong[0].tolist()
        raise InvalidArgumentError(
            f"record {row} gives variable {variable} the code {codes[row, variable]}, but its codes are"
            f" 0 to {cardinality[variable] - 1}: data must be fully observed, so drop records with"
            " missing values, or fill them in."
        )
    if weights is None:
        return codes, None
    importance = np.asarray(weights, dtype=np.float64)
    if importance.shape != (len(codes),):
        raise ShapeError(
            f"{len(codes)} records need one weight each, but weights have shape {importance.shape}."
        )
    if not bool((np.isfinite(importance) & (importance >= 0)).all()):
        row = int(np.flatnonzero(~(np.isfinite(importance) & (importance >= 0)))[0])
        raise InvalidArgumentError(
            f"record {row} has weight {importance[row]}: weights must be finite, and zero or more."
        )
    return codes, importance


def _checked_cliques(cardinality: Int64s, cliques: Iterable[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    scopes = tuple(tuple(int(v) for v in clique) for clique in cliques)
    for scope in scopes:
        if len(set(scope)) < len(scope) or not all(0 <= v < len(cardinality) for v in scope):
            raise InvalidArgumentError(
                f"a clique must name different variables from 0 to {len(cardinality) - 1}, but {scope} was"
                " given."
            )
    return scopes


def _check_counts(cardinality: Int64s, scope: tuple[int, ...], table: Floats) -> None:
    shape = tuple(cardinality[list(scope)].tolist())
    if table.shape != shape:
        raise ShapeError(
            f"the counts of clique {scope} have shape {table.shape}, but the cardinalities of its"
            f" variables require {shape}: reshape or transpose them."
        )
    if not bool((np.isfinite(table) & (table >= 0)).all()) or not float(table.sum()) > 0.0:
        raise CountsError(
            f"the counts of clique {scope} must be finite, zero or more, and not all zero, but"
            f" {table.tolist()} was given."
        )


def _check_agreement(cliques: Sequence[tuple[int, ...]], tables: Sequence[Floats]) -> None:
    """Refuse tables that disagree on the counts of their shared variables; compare totals first."""
    total = float(tables[0].sum())
    around: dict[int, list[int]] = {}
    for index, clique in enumerate(cliques):
        for v in clique:
            around.setdefault(v, []).append(index)
    pairs = {(0, index) for index in range(1, len(cliques))}
    ordered = sorted(pairs) + sorted(
        {pair for near in around.values() for pair in combinations(near, 2)} - pairs
    )
    for left, right in ordered:
        shared = sorted(set(cliques[left]) & set(cliques[right]))
        first, second = (margin(tables[index], cliques[index], shared) for index in (left, right))
        if float(np.abs(first - second).max()) > AGREEMENT * total:
            what = f"variables {tuple(shared)}" if shared else "all records"
            raise CountsError(
                f"cliques {cliques[left]} and {cliques[right]} disagree on the counts of {what}:"
                f" {first.tolist()} and {second.tolist()}. Count both on the same records."
            )


def margin(table: Floats, scope: Sequence[int], kept: Sequence[int]) -> Floats:
    """Sum a table over ``scope`` to the variables ``kept``, with axes in the order of ``kept``."""
    rest = tuple(axis for axis, v in enumerate(scope) if v not in kept)
    left = [v for v in scope if v in kept]
    return np.asarray(table.sum(axis=rest).transpose([left.index(v) for v in kept]))
