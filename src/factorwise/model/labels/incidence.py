"""Factors listed by variable, for walks that visit variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from factorwise.types import Int64s
from factorwise.variables.sparse_rows import starts_of


class Incidence(NamedTuple):
    """Factors, listed by variable.

    start : int64[variables + 1]
        The factors of variable v are those from ``start[v]`` to ``start[v + 1] - 1``.
    factor, stride : int64[.]
        Number of the factor; distance between the variable's labels in the factor's table.
    other_start : int64[. + 1]
    other, other_stride : int64[others]
        The factor's other variables, and the distance between their labels in the table.
    """

    start: Int64s
    factor: Int64s
    stride: Int64s
    other_start: Int64s
    other: Int64s
    other_stride: Int64s


def incidence(cardinality: Int64s, scopes: Sequence[Int64s]) -> Incidence:
    """List factors by variable.

    scopes
        Flat variable numbers, int64[factors, arity] for each group of factors; factors are numbered across
        groups.
    """
    arity = np.concatenate([np.zeros(0, np.int64), *(np.full(len(s), s.shape[1], np.int64) for s in scopes)])
    first = starts_of(arity)
    scope = np.concatenate([np.zeros(0, np.int64), *(s.ravel() for s in scopes)])
    stride = np.concatenate([np.zeros(0, np.int64), *(strides_of(cardinality, s).ravel() for s in scopes)])
    order = np.argsort(scope, kind="stable")
    factor = np.repeat(np.arange(len(arity), dtype=np.int64), arity)[order]
    remaining = arity[factor] - 1
    other_start = starts_of(remaining)
    edge = np.arange(int(other_start[-1])) - np.repeat(other_start[:-1] - first[factor], remaining)
    edge += edge >= np.repeat(order, remaining)  # skip the variable's own edge
    start = starts_of(np.bincount(scope, minlength=len(cardinality)))
    return Incidence(start, factor, stride[order], other_start, scope[edge], stride[edge])


def strides_of(cardinality: Int64s, scopes: Int64s) -> Int64s:
    """Return the distance between the labels of each variable in the factors' tables (C order)."""
    strides = np.ones(scopes.shape, np.int64)
    if scopes.shape[1] > 1:
        strides[:, :-1] = np.cumprod(cardinality[scopes][:, :0:-1], axis=1)[:, ::-1]
    return strides
