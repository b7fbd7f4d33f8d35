"""Many chains that share a table as one base model, for energies of any kind.

A sum of energies, one for each chain, over the union of the chains solves all problems at once. RDA and fixed
step lengths treat each chain as if it were alone; solvers that adapt their steps adapt them to all together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection.bases import Answer, check_shift
from factorwise.inference.message_passing.projection.chain_base import ChainBase
from factorwise.inference.message_passing.projection.layout import Layout
from factorwise.kernels.chains.dense_chains import chains_range
from factorwise.kernels.compile.threads import Team
from factorwise.types import Floats, Int64s
from factorwise.variables.sparse_rows import starts_of


class ChainsBase:
    """A union of chains of different lengths with the same labels and the same transitions.

    node_scores
        float[T, S] for each chain.
    edge_scores : float[S, S]
    team
        Threads that share the chains; one by default.

    Answers to shifts of variables are compiled; those for pairs are computed chain by chain.
    """

    def __init__(
        self, node_scores: Sequence[ArrayLike], edge_scores: ArrayLike, team: Team | None = None
    ) -> None:
        self.edge = np.asarray(edge_scores, dtype=np.float64)
        rows = [np.asarray(scores, dtype=np.float64) for scores in node_scores]
        labels = len(self.edge)
        for index, scores in enumerate(rows):
            if scores.ndim != 2 or scores.shape[1] != labels or not len(scores):
                raise ShapeError(
                    f"chain {index} has scores of shape {scores.shape}: give a row of {labels} for each of"
                    " its places, at least one."
                )
        if not rows:
            raise InvalidArgumentError("node_scores is empty: give at least one chain.")
        self.node = np.concatenate(rows)
        likeliest = self.node.max(axis=1)
        bad = np.flatnonzero(~np.isfinite(likeliest))
        if len(bad):
            raise InvalidArgumentError(
                f"the largest score of position {int(bad[0])}, counted over all chains, is"
                f" {likeliest[bad[0]]}: scores must be finite, or -inf to forbid some of the labels."
            )
        self.start = starts_of([len(scores) for scores in rows])
        self.team = team or Team(1)
        ends = set(self.start.tolist())
        scopes = tuple(
            (position - 1, position) for position in range(1, len(self.node)) if position not in ends
        )
        self.layout = Layout(np.full(len(self.node), labels), scopes)
        self._table = ChainBase(np.zeros((2, labels)), self.edge)

    def answer(self, shift: Floats) -> Answer:
        """Return the marginals that the shift covers, and the sum of log Z over the chains."""
        marginals, log_partitions = self.answers(shift)
        return Answer(marginals, float(log_partitions.sum()))

    def answers(self, shift: Floats) -> tuple[Floats, Floats]:
        """Return the marginals that the shift covers, and log Z of each chain."""
        check_shift(self.layout, shift)
        if len(shift) > self.layout.node_size:
            each = [base.answer(own) for base, own in self._split(shift)]
            return self._joined([answer.marginals for answer in each]), np.array(
                [answer.log_partition for answer in each]
            )
        node = self.node - shift.reshape(self.node.shape)
        weight, alpha, marginal = np.empty((3, *node.shape))
        log_partition = np.empty(len(self.start) - 1)
        table, peak = self._weights
        longest = int(np.diff(self.start).max())

        def work(first: int, last: int) -> None:
            scratch = np.empty(longest + 2 * len(self.edge))
            chains_range(
                node, self.start, table, weight, alpha, scratch, marginal, log_partition, first, last
            )

        self.team.share(len(log_partition), work)
        log_partition += peak * (np.diff(self.start) - 1)
        for chain in np.flatnonzero(np.isnan(log_partition)).tolist():
            own = slice(int(self.start[chain]), int(self.start[chain + 1]))
            answer = ChainBase(node[own], self.edge).answer(np.zeros(node[own].size))
            marginal[own] = answer.marginals.reshape(node[own].shape)
            log_partition[chain] = answer.log_partition
        return marginal.ravel(), log_partition

    def marginals(self, shift: Floats) -> Floats:
        """Return all marginals, including those of neighboring pairs."""
        return self._joined([base.marginals(own) for base, own in self._split(shift)])

    def scores(self, shift: Floats) -> Floats:
        """Return the shifted scores of all variables and pairs."""
        return self._joined([base.scores(own) for base, own in self._split(shift)])

    def best(self, shift: Floats) -> Int64s:
        """Return best paths at the shifted scores, one after the other."""
        return np.concatenate([base.best(own) for base, own in self._split(shift)])

    @cached_property
    def _weights(self) -> tuple[Floats, float]:
        peak = float(self.edge.max())
        return np.exp(self._table.edge - peak), peak

    def _split(self, shift: Floats) -> list[tuple[ChainBase, Floats]]:
        """Return each chain as its own base model, with its part of the shift."""
        check_shift(self.layout, shift)
        labels, nodes = len(self.edge), self.layout.node_size
        parts = []
        for chain, (begin, end) in enumerate(zip(self.start[:-1], self.start[1:], strict=True)):
            own = shift[begin * labels : end * labels]
            if len(shift) > nodes:
                # a chain of T positions has T - 1 pairs, so each earlier chain accounts for one pair less
                pairs = shift[nodes:].reshape(-1, labels, labels)[begin - chain : end - chain - 1]
                own = np.concatenate([own, pairs.ravel()])
            parts.append((ChainBase(self.node[begin:end], self.edge), own))
        return parts

    def _joined(self, parts: list[Floats]) -> Floats:
        """Concatenate vectors over each chain's layout: all variables, then all pairs."""
        sizes = np.diff(self.start) * len(self.edge)
        return np.concatenate(
            [part[:size] for part, size in zip(parts, sizes, strict=True)]
            + [part[size:] for part, size in zip(parts, sizes, strict=True)]
        )
