r"""Bethe entropy and free energy of node and factor beliefs, and whether beliefs agree with each other.

With beliefs :math:`b_v` of variables and :math:`b_f` of factors and an appearance :math:`r_f` of each factor,

.. math:: H = \sum_f r_f H(b_f) + \sum_v \Bigl(1 - \sum_{f \ni v} r_f\Bigr) H(b_v).

With all appearances one it is the Bethe entropy, which is the entropy itself if the factors form a forest and
the beliefs are its marginals. A factor of one variable cancels, whatever its appearance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.wiring import Wired, ragged
from factorwise.model.grounding import FactorGraph
from factorwise.types import Float64s, Floats, Int64s


def bethe_entropy(
    graph: FactorGraph,
    node: Sequence[Floats],
    factor: Sequence[Floats],
    *,
    appearance: ArrayLike | None = None,
) -> float:
    """Return the weighted sum of the entropies of factors and variables.

    appearance : float[factors], optional
        Weight of each factor's entropy; one everywhere unless given.
    """
    sizes, joint = _checked(graph, node, factor)
    weights = np.ones(graph.n_factors) if appearance is None else np.asarray(appearance, dtype=np.float64)
    if weights.shape != (graph.n_factors,):
        raise ShapeError(
            f"appearance has shape {weights.shape}, but the graph has {graph.n_factors} factors:"
            " give one weight for each."
        )
    counts = 1.0 - np.bincount(
        graph.scope, np.repeat(weights, np.diff(graph.scope_start)), minlength=graph.n_variables
    )
    return _weighted_entropy(counts, graph.cardinality, np.concatenate(node), weights, sizes, joint)


def expected_score(graph: FactorGraph, factor: Sequence[Floats]) -> float:
    """Return the mean score under the factor beliefs; ``-inf`` if a forbidden setting has mass."""
    sizes, joint = _flat_factors(graph, factor)
    return _mean(graph.tables[ragged(graph.table_start, sizes)], joint)


def bethe_free_energy(
    graph: FactorGraph,
    node: Sequence[Floats],
    factor: Sequence[Floats],
    *,
    appearance: ArrayLike | None = None,
) -> float:
    """Return minus the expected score minus the Bethe entropy; its minimum is minus the approximate log Z."""
    return -expected_score(graph, factor) - bethe_entropy(graph, node, factor, appearance=appearance)


def local_inconsistency(graph: FactorGraph, node: Sequence[Floats], factor: Sequence[Floats]) -> float:
    """Return how far beliefs are from local consistency: zero exactly on the local polytope.

    It is the largest of: a belief below zero, a total different from one, and the difference between the
    belief of a variable and that of a factor at it.
    """
    _checked(graph, node, factor)
    faults = [0.0]
    for belief in (*node, *factor):
        faults += [-belief.min(), abs(belief.sum() - 1.0)]
    for index, belief in enumerate(factor):
        scope = graph.scope_of(index)
        for axis, variable in enumerate(scope):
            margin = belief.sum(axis=tuple(other for other in range(len(scope)) if other != axis))
            faults.append(np.abs(margin - node[variable]).max())
    return float(np.max(faults))


def check_consistency(
    graph: FactorGraph, node: Sequence[Floats], factor: Sequence[Floats], *, tolerance: float = 1e-6
) -> None:
    """Raise `InvalidArgumentError` unless the beliefs are locally consistent within ``tolerance``."""
    disagreement = local_inconsistency(graph, node, factor)
    if not disagreement <= tolerance:
        raise InvalidArgumentError(
            f"the beliefs disagree by {disagreement:.3g}, more than the tolerance of {tolerance:.3g}:"
            " they are not locally consistent. Run the method that computed them to convergence, or"
            " use a larger tolerance."
        )


def wired_score(wired: Wired, labels: Float64s, entries: Float64s) -> float:
    """Expected score of flat beliefs of a wired graph."""
    wiring = wired.wiring
    return wired.constant + _mean(wiring.unary, labels) + _mean(wiring.tables[wired.entries()], entries)


def wired_entropy(wired: Wired, labels: Float64s, entries: Float64s) -> float:
    """Weighted entropy of flat beliefs of a wired graph."""
    wiring = wired.wiring
    counts = 1.0 - np.bincount(
        wiring.scope, wiring.appearance[wiring.owner], minlength=len(wiring.cardinality)
    )
    sizes = np.diff(wired.entry_start)
    return _weighted_entropy(counts, wiring.cardinality, labels, wiring.appearance, sizes, entries)


def _mean(scores: Float64s, beliefs: Float64s) -> float:
    return float(beliefs @ np.where(beliefs > 0, scores, 0.0))


def _weighted_entropy(
    counts: Floats, cardinality: Int64s, labels: Float64s, weights: Float64s, sizes: Int64s, joint: Float64s
) -> float:
    return float(np.repeat(counts, cardinality) @ entr(labels) + np.repeat(weights, sizes) @ entr(joint))


def _checked(graph: FactorGraph, node: Sequence[Floats], factor: Sequence[Floats]) -> tuple[Int64s, Float64s]:
    if [len(belief) for belief in node] != graph.cardinality.tolist():
        raise ShapeError(
            f"the node beliefs have sizes {[len(belief) for belief in node][:8]}, but the variables have"
            f" {graph.cardinality[:8].tolist()} labels: give one array per variable, one entry per label."
        )
    return _flat_factors(graph, factor)


def _flat_factors(graph: FactorGraph, factor: Sequence[Floats]) -> tuple[Int64s, Float64s]:
    if len(factor) != graph.n_factors:
        raise ShapeError(
            f"{len(factor)} factor beliefs were given, but the graph has {graph.n_factors} factors:"
            " give one array per factor, shaped by its scope."
        )
    cards = graph.cardinality.tolist()
    for index, belief in enumerate(factor):
        wanted = tuple(cards[variable] for variable in graph.scope_of(index))
        if np.shape(belief) != wanted:
            raise ShapeError(
                f"the belief of factor {index} has shape {np.shape(belief)}, but its scope"
                f" {graph.scope_of(index)} requires {wanted}: reshape or transpose it."
            )
    sizes = np.array([np.size(belief) for belief in factor], dtype=np.int64)
    flat = [np.ravel(belief) for belief in factor]
    return sizes, np.concatenate(flat) if flat else np.zeros(0)
