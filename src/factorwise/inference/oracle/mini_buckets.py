"""Mini-buckets: elimination that splits large buckets, for upper bounds of log Z and the best score.

A bucket whose product would have too many entries is divided into several smaller ones, each of which
eliminates the variable by itself. The maximum of a product is at most the product of the maxima, and its sum
at most the sum of one factor times the maxima of the others. Before that the parts are matched: they exchange
functions of the variable until their maxima agree, which preserves the product and tightens the bound.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.exact.elimination import EliminationOrder, graph_factors, label_factors
from factorwise.model.factor import Factor, product
from factorwise.model.grounding import FactorGraph


def mini_bucket_bound(graph: FactorGraph, order: EliminationOrder, largest: int, *, maximize: bool) -> float:
    """Return an upper bound of the best score (``maximize``) or of log Z.

    largest
        Entries that a table may have; the bound is exact if every bucket fits.
    """
    waiting, _ = _eliminate(graph, order, largest, maximize=maximize, keep=False)
    return float(product(waiting).table)


def mini_bucket_setting(graph: FactorGraph, order: EliminationOrder, largest: int) -> NDArray[np.int64]:
    """Return the setting that the split buckets of a best score imply, last variable first.

    It is a best setting if every bucket fits, and otherwise a good start for a search.
    """
    _, buckets = _eliminate(graph, order, largest, maximize=True, keep=True)
    values = np.zeros(graph.n_variables, dtype=np.int64)
    for variable, parts in reversed(buckets):
        scores = np.zeros(graph.cardinality[variable])
        for part in parts:
            labels = {v: int(values[v]) for v in part.scope if v != variable}
            scores = scores + part.condition(labels).table
        values[variable] = scores.argmax()
    return values


def _eliminate(
    graph: FactorGraph, order: EliminationOrder, largest: int, *, maximize: bool, keep: bool
) -> tuple[list[Factor], list[tuple[int, list[Factor]]]]:
    """Return the constants that remain, and each variable with the parts of its bucket if they are kept."""
    buckets = []
    place = {clique[0]: number for number, clique in enumerate(order.cliques)}
    waiting: list[list[Factor]] = [[] for _ in (*place, None)]

    def send(factor: Factor) -> None:
        waiting[min((place[v] for v in factor.scope), default=-1)].append(factor)

    for factor in (*graph_factors(graph), *label_factors(graph)):
        send(factor)
    for number, (variable, *_) in enumerate(order.cliques):
        parts = _split(waiting[number], largest)
        waiting[number] = []
        if len(parts) > 1:
            parts = _matched(parts, variable)
        if keep:
            buckets.append((variable, parts))
        for index, part in enumerate(parts):
            send(part.max_out(variable) if maximize or index else part.sum_out(variable))
    return waiting[-1], buckets


def _split(factors: list[Factor], largest: int) -> list[Factor]:
    """Multiply factors into products of at most ``largest`` entries each, as few as first fit finds."""
    groups: list[tuple[dict[int, int], list[Factor]]] = []
    for factor in sorted(factors, key=lambda factor: -factor.table.size):
        own = dict(zip(factor.scope, factor.cardinality, strict=True))
        for sizes, members in groups:
            union = sizes | own
            if math.prod(union.values()) <= max(largest, math.prod(sizes.values())):
                sizes.update(own)
                members.append(factor)
                break
        else:
            groups.append((own, [factor]))
    return [product(members) for _, members in groups]


def _matched(parts: list[Factor], variable: int) -> list[Factor]:
    """Shift the parts by functions of the variable that cancel, so that their maxima agree."""
    peaks = [part.max_out(*(v for v in part.scope if v != variable)).table for part in parts]
    if not bool(np.isfinite(peaks).all()):
        return parts
    mean = np.mean(peaks, axis=0)
    return [part * Factor((variable,), mean - peak) for part, peak in zip(parts, peaks, strict=True)]
