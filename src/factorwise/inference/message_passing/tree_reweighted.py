r"""Tree-reweighted belief propagation: a concave entropy and an upper bound on log Z.

The entropy is averaged over forests of factors. For a forest T, a set of factors whose variables and factors
form no cycle, the sum

.. math:: H_T = \sum_v H(b_v) - \sum_{f \in T} I(b_f), \qquad I(b_f) = \sum_{v \in f} H(b_v) - H(b_f)

is the largest entropy of any distribution with the beliefs :math:`b` on T: as a maximum entropy under linear
constraints it is concave in :math:`b`, and it is no less than the entropy of a distribution that has these
beliefs on all factors. Both hold for averages over forests too. An average contains factor f with its
appearance :math:`r_f`, the share of forests that contain it, so

.. math:: H = \sum_f r_f H(b_f) + \sum_v \Bigl(1 - \sum_{f \ni v} r_f\Bigr) H(b_v)

is concave on the local polytope, and the largest expected score plus H bounds log Z from above. This is the
construction of Wainwright, Jaakkola and Willsky for pairs, with forests of factors in place of spanning
trees of edges so that it holds for factors of any number of variables. A factor of one variable drops out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from factorwise.errors import ShapeError, require
from factorwise.inference.base import Marginals
from factorwise.inference.message_passing.belief_propagation import (
    Schedule,
    check_message_settings,
    collected,
    message_settings,
    run_messages,
)
from factorwise.inference.message_passing.wiring import Wired, wire
from factorwise.kernels.graphs.forests import grow_forest
from factorwise.model.grounding import FactorGraph
from factorwise.types import Float64s
from factorwise.validation import check_count

CHOICES = ("spanning_trees", "uniform")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeReweighted:
    """Message passing whose converged log Z is an upper bound, and whose beliefs are unique.

    edge_appearance
        Share of forests that contain each factor. "spanning_trees" averages maximal forests, each grown from
        the factors used least so far. "uniform" splits the factors into as few forests K as the same greedy
        growth finds, and gives every factor 1 / K. Or one number per factor of the graph, above 0 and at most
        1; the bound then holds if some distribution over forests has these shares. The numbers of factors of
        fewer than two variables are ignored.
    forests
        Smallest number of forests to average for "spanning_trees".
    schedule, damping, max_iterations, tolerance
        As in `BeliefPropagation`.
    """

    edge_appearance: Literal["spanning_trees", "uniform"] | Sequence[float] = "spanning_trees"
    forests: int = 16
    schedule: Schedule = "sequential"
    damping: float = 0.0
    max_iterations: int = 500
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        if isinstance(self.edge_appearance, str):
            require(
                self.edge_appearance in CHOICES,
                "edge_appearance",
                self.edge_appearance,
                "'spanning_trees', 'uniform' or one number per factor",
            )
        else:
            shares = np.asarray(self.edge_appearance, dtype=np.float64)
            require(
                bool(((shares > 0) & (shares <= 1)).all()),
                "edge_appearance",
                self.edge_appearance,
                "above 0 and at most 1 for every factor",
            )
        check_count("forests", self.forests)
        check_message_settings(self.schedule, self.damping, self.max_iterations, self.tolerance)

    def marginals(self, graph: FactorGraph) -> Marginals:
        """Return beliefs, the upper bound on log Z and the concave entropy; exact on forests.

        The bound and the consistency of beliefs hold if ``convergence.converged``.
        """
        wired = wire(graph)
        wired = wired.weighted(self._appearance(wired))
        return collected(wired, *run_messages(wired, **message_settings(self)))

    def appearance(self, graph: FactorGraph) -> Float64s:
        """Return the weight of each factor's entropy, one for factors of fewer than two variables."""
        wired = wire(graph)
        weights = np.ones(graph.n_factors)
        weights[wired.factor] = self._appearance(wired)
        return weights

    def _appearance(self, wired: Wired) -> Float64s:
        if not isinstance(self.edge_appearance, str):
            shares = np.asarray(self.edge_appearance, dtype=np.float64)
            if shares.shape != (wired.graph.n_factors,):
                raise ShapeError(
                    f"edge_appearance has shape {shares.shape}, but the graph has {wired.graph.n_factors}"
                    " factors: give one number for each, or 'spanning_trees'."
                )
            return shares[wired.factor]
        if self.edge_appearance == "uniform":
            return np.full(len(wired.factor), 1.0 / _cover(wired))
        return _averaged(wired, self.forests)


def _averaged(wired: Wired, rounds: int) -> Float64s:
    """Return the share of greedy maximal forests that contain each wired factor; none is zero.

    The least used factor comes first in every round. Rounds beyond ``rounds`` are added while some factor is
    in no forest yet; there are at most as many as factors.
    """
    wiring = wired.wiring
    used = np.zeros(len(wired.factor), dtype=np.int64)
    if not len(used):
        return used.astype(np.float64)
    parent = np.zeros(len(wiring.cardinality), dtype=np.int64)
    chosen = np.zeros(len(used), dtype=np.bool_)
    done = 0
    while done < rounds or not used.all():
        order = np.argsort(used, kind="stable")
        grow_forest(wiring.scope_start, wiring.scope, order, parent, chosen)
        used += chosen
        done += 1
    return used / done


def _cover(wired: Wired) -> int:
    """Return the number of forests that greedy growth needs to contain each wired factor once."""
    wiring = wired.wiring
    left = np.arange(len(wired.factor))
    parent = np.zeros(len(wiring.cardinality), dtype=np.int64)
    chosen = np.zeros(len(left), dtype=np.bool_)
    count = 0
    while len(left):
        grow_forest(wiring.scope_start, wiring.scope, left, parent, chosen)
        left = left[~chosen[left]]
        count += 1
    return max(count, 1)
