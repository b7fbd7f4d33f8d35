r"""Base models: tractable models with fixed scores that compute marginals at shifted scores.

Every projection solver needs the marginals of a base model with scores :math:`\theta - \delta` for many
shifts :math:`\delta`. A shift of variables only, the usual case, does not change the tables of factors, so a
base model may prepare them once.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.base import MarginalOracle
from factorwise.inference.message_passing.projection.layout import Layout
from factorwise.inference.message_passing.wiring import ragged
from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats, Int64s
from factorwise.variables.sparse_rows import starts_of


class Answer(NamedTuple):
    """The marginals that the shift covers, and the log partition function, at the shifted scores."""

    marginals: Floats
    log_partition: float


class BaseModel(Protocol):
    """A tractable model, as solvers use it.

    A shift is a vector over the layout: of length ``node_size``, which does not change the factors, or
    ``size``.
    """

    layout: Layout

    def answer(self, shift: Floats) -> Answer:
        """Return the marginals that the shift covers."""
        ...

    def marginals(self, shift: Floats) -> Floats:
        """Return all marginals, including those of factors."""
        ...

    def scores(self, shift: Floats) -> Floats:
        """Return the shifted scores of all variables and factors."""
        ...

    def best(self, shift: Floats) -> Int64s:
        """Return a most probable setting at the shifted scores."""
        ...


class GraphBase:
    """A factor graph, solved by any marginal oracle.

    The oracle determines which graphs are possible: chains, trees, graphs of small treewidth, or any graph
    through `TreeReweighted`, whose entropy is concave. Its answers must be converged to be useful.
    """

    def __init__(self, graph: FactorGraph, oracle: MarginalOracle) -> None:
        arity = np.diff(graph.scope_start)
        joint = np.flatnonzero(arity >= 2)
        scopes = tuple(graph.scope_of(int(factor)) for factor in joint)
        self.oracle = oracle
        self.layout = Layout(graph.cardinality, scopes)
        node = np.zeros(self.layout.node_size)
        single = np.flatnonzero(arity == 1)
        alone = graph.scope[graph.scope_start[single]]
        sizes = graph.cardinality[alone]
        np.add.at(
            node,
            ragged(self.layout.node_start[alone], sizes),
            graph.tables[ragged(graph.table_start[single], sizes)],
        )
        lengths = np.diff(self.layout.factor_start)
        tables = graph.tables[ragged(graph.table_start[joint], lengths)]
        self._scores = np.concatenate([node, tables])
        self._constant = float(graph.tables[graph.table_start[arity == 0]].sum())
        variables = np.arange(graph.n_variables)
        self._scope = np.concatenate([variables, graph.scope[np.repeat(arity >= 2, arity)]])
        self._scope_start = starts_of(np.concatenate([np.ones_like(variables), arity[joint]]))
        self._table_start = np.concatenate([self.layout.node_start[:-1], self.layout.factor_start[:-1]])

    def graph(self, shift: Floats) -> FactorGraph:
        """Return the graph with shifted scores: one unary factor per variable, then the larger factors."""
        return FactorGraph(
            self.layout.cardinality,
            self._scope_start,
            self._scope,
            self._table_start,
            self.scores(shift).astype(np.float64, copy=False),
        )

    def answer(self, shift: Floats) -> Answer:
        """Return the marginals that the shift covers."""
        flat, log_partition = self._asked(shift)
        return Answer(flat[: len(shift)], log_partition)

    def marginals(self, shift: Floats) -> Floats:
        """Return all marginals, including those of factors."""
        return self._asked(shift)[0]

    def scores(self, shift: Floats) -> Floats:
        """Return the shifted scores of all variables and factors."""
        check_shift(self.layout, shift)
        scores = self._scores.copy()
        scores[: len(shift)] -= shift
        return scores

    def best(self, shift: Floats) -> Int64s:
        """Return a most probable setting at the shifted scores, if the oracle can find one."""
        find = getattr(self.oracle, "best", None)
        if find is None:
            raise InvalidArgumentError(
                f"{type(self.oracle).__name__} gives marginals but no best setting: use an oracle that has"
                " both, such as TreeOracle() or JunctionTree()."
            )
        values: Int64s = find(self.graph(shift)).values
        return values

    def _asked(self, shift: Floats) -> tuple[Floats, float]:
        marginals = self.oracle.marginals(self.graph(shift))
        joint = marginals.factor[len(self.layout.cardinality) :]
        flat = np.concatenate([*marginals.node, *(table.ravel() for table in joint)])
        return flat, marginals.log_partition + self._constant


def check_shift(layout: Layout, shift: Floats) -> None:
    """Raise `ShapeError` unless the shift covers the variables, or the variables and factors."""
    if shift.shape not in ((layout.node_size,), (layout.size,)):
        raise ShapeError(
            f"a shift of shape {shift.shape} was given, but the model has {layout.node_size} marginals"
            f" of variables and {layout.size} in total: give one number for each marginal of one of"
            " these."
        )
