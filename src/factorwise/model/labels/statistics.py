"""How the statistics of factors over labels depend on the labels, as arrays for compiled gradients.

Most templates count features crossed with the joint setting of a factor's labels (`Crossed`). The statistics
of all others are listed for every setting (`StatisticRows`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from factorwise.types import Float64s, Int64s


class Crossed(NamedTuple):
    """Features crossed with the joint setting: in setting s weight ``base[k] + s`` counts ``value[k]`` times.

    row : int64[factors]
        The row of features of each factor, which factors may share.
    start : int64[rows + 1]
        Row r has the features from ``start[r]`` to ``start[r + 1] - 1``.
    base, value : int64[features], float64[features]
        Weights are numbered from 0, the first of the template.
    """

    row: Int64s
    start: Int64s
    base: Int64s
    value: Float64s

    @classmethod
    def counting(cls, factors: int) -> Crossed:
        """Count the joint setting itself."""
        zero = np.zeros(1, np.int64)
        return cls(np.zeros(factors, np.int64), np.array([0, 1]), zero, np.ones(1))


class StatisticRows(NamedTuple):
    """Listed statistics: those of setting s of a factor are in row ``first + s``.

    scopes, first : int64[factors, arity], int64[factors]
        Flat variable numbers of each factor, and its first row; factors may share rows.
    start, weight, value : int64[rows + 1], int64[entries], float64[entries]
        Row r has the entries from ``start[r]`` to ``start[r + 1] - 1``: a weight and an amount.
    """

    scopes: Int64s
    first: Int64s
    start: Int64s
    weight: Int64s
    value: Float64s


def written_out(
    scopes: Int64s,
    which: Int64s,
    cardinality: Int64s,
    statistics: Callable[[int, tuple[int, ...]], tuple[Int64s, Float64s]],
) -> StatisticRows:
    """List the statistics of every setting, once for all factors that are equal.

    which
        Factors with the same number are equal.
    statistics
        Function of a factor and a setting.
    """
    _, example, alike = np.unique(which, return_index=True, return_inverse=True)
    counts: list[int] = []
    weight, value, first = [np.zeros(0, np.int64)], [np.zeros(0)], []
    for factor in example.tolist():
        first.append(len(counts))
        for setting in itertools.product(*(range(int(cardinality[v])) for v in scopes[factor])):
            where, amount = statistics(factor, setting)
            kept = amount != 0.0
            counts.append(int(np.count_nonzero(kept)))
            weight.append(where[kept])
            value.append(amount[kept])
    return StatisticRows(
        scopes,
        np.array(first, np.int64)[alike.ravel()],
        np.append(0, np.cumsum(counts)).astype(np.int64),
        np.concatenate(weight),
        np.concatenate(value),
    )


def joined_rows(parts: list[StatisticRows]) -> StatisticRows:
    """Concatenate the rows of several templates; scopes are left out."""
    starts, rows, entries = [np.zeros(1, np.int64)], 0, 0
    first = []
    for part in parts:
        first.append(part.first + rows)
        starts.append(part.start[1:] + entries)
        rows += len(part.start) - 1
        entries += len(part.weight)
    nothing = np.zeros(0, np.int64)
    return StatisticRows(
        np.zeros((0, 0), np.int64),
        np.concatenate([nothing, *first]),
        np.concatenate(starts),
        np.concatenate([nothing, *(part.weight for part in parts)]),
        np.concatenate([np.zeros(0), *(part.value for part in parts)]),
    )
