"""Brute force over all settings of a factor graph: the reference for all other methods."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from factorwise.errors import ImpossibleError, TreewidthError
from factorwise.inference.base import Best, Marginals
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.types import Float64s, Floats, Int64s
from factorwise.validation import check_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """Exact answers by visiting every setting.

    limit
        Largest number of settings to visit; a larger graph is refused before anything is allocated.
    """

    limit: int = 1 << 20

    def __post_init__(self) -> None:
        check_count("limit", self.limit)

    def settings(self, graph: FactorGraph) -> Int64s:
        """Return all settings, int64[settings, variables]."""
        count = self._count(graph)
        return np.stack([_labels(graph, v, count) for v in range(graph.n_variables)], axis=1)

    def scores(self, graph: FactorGraph) -> Float64s:
        """Return the score of every setting, float64[settings]."""
        count = self._count(graph)
        total = np.zeros(count)
        for scope, table in graph.factors():
            total += table.ravel()[_entries(graph, scope, count)]
        return total

    def log_partition(self, graph: FactorGraph) -> float:
        """Return the log of the sum of exp(score) over all settings."""
        scores = self.scores(graph)
        peak = _peak(scores)
        return float(peak + np.log(np.exp(scores - peak).sum()))

    def distribution(self, graph: FactorGraph) -> Float64s:
        """Return the probability of every setting, float64[settings]."""
        scores = self.scores(graph)
        weights = np.exp(scores - _peak(scores))
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def marginals(self, graph: FactorGraph) -> Marginals:
        """Return node and factor marginals, the log partition function and the entropy."""
        probability = self.distribution(graph)
        count = len(probability)
        node = tuple(
            _totals(_labels(graph, v, count), probability, int(graph.cardinality[v]))
            for v in range(graph.n_variables)
        )
        factor = tuple(
            _totals(_entries(graph, scope, count), probability, table.size).reshape(table.shape)
            for scope, table in graph.factors()
        )
        possible = probability[probability > 0]
        entropy = max(0.0, float(-(possible * np.log(possible)).sum()))
        return Marginals(self.log_partition(graph), node, factor, entropy)

    def best(self, graph: FactorGraph) -> Best:
        """Return a most probable setting, the first in the order of `settings` among equals."""
        return self.k_best(graph, 1)[0]

    def k_best(self, graph: FactorGraph, k: int) -> list[Best]:
        """Return the ``k`` most probable settings, best first; fewer if fewer are possible."""
        check_count("k", k)
        scores = self.scores(graph)
        _peak(scores)
        ranked = np.argsort(-scores, kind="stable")[:k]
        rows = [_setting(graph, int(number)) for number in ranked if scores[number] > -math.inf]
        return [Best(values, graph.score(values)) for values in rows]

    def sample(self, graph: FactorGraph, stream: Stream, size: int) -> Int64s:
        """Draw independent settings, int64[size, variables], with one uniform number each."""
        check_count("size", size, 0)
        ladder = np.cumsum(self.distribution(graph))
        uniform = np.array([stream.uniform() for _ in range(size)])
        # A uniform number below 1 times the total stays below it, despite rounding.
        drawn = np.searchsorted(ladder, uniform * ladder[-1], side="right")
        rows = [_setting(graph, int(number)) for number in drawn]
        return np.array(rows, dtype=np.int64).reshape(size, graph.n_variables)

    def _count(self, graph: FactorGraph) -> int:
        count: int = math.prod(graph.cardinality.tolist())
        if count > self.limit:
            raise TreewidthError(
                f"the graph's {graph.n_variables} variables have {count} settings, more than the limit of"
                f" {self.limit}: use JunctionTree(), or raise Enumeration(limit=...)."
            )
        return count


def _peak(scores: Float64s) -> float:
    peak = float(scores.max())
    if peak == -math.inf:
        raise ImpossibleError(
            f"each of the {len(scores)} settings has probability zero: every one meets a log-potential of"
            " -inf. Replace some -inf by a large negative score."
        )
    return peak


def _totals(group: Int64s, probability: Float64s, groups: int) -> Floats:
    totals = np.zeros(groups)
    np.add.at(totals, group, probability)
    return totals


def _stride(graph: FactorGraph, variable: int) -> int:
    stride: int = math.prod(graph.cardinality[variable + 1 :].tolist())
    return stride


def _labels(graph: FactorGraph, variable: int, count: int) -> Int64s:
    """Return the label of one variable in every setting."""
    return np.arange(count) // _stride(graph, variable) % int(graph.cardinality[variable])


def _entries(graph: FactorGraph, scope: Iterable[int], count: int) -> Int64s:
    """Return the entry of a table over ``scope`` that belongs to every setting."""
    entry = np.zeros(count, dtype=np.int64)
    for variable in scope:
        entry = entry * int(graph.cardinality[variable]) + _labels(graph, variable, count)
    return entry


def _setting(graph: FactorGraph, number: int) -> Int64s:
    labels = [
        number // _stride(graph, v) % int(cardinality) for v, cardinality in enumerate(graph.cardinality)
    ]
    return np.array(labels, dtype=np.int64)
