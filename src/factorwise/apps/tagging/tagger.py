"""A trained chain: its labels, its weights, and inference on new sentences.

All functions take encoded sentences: `SparseRows`, with a row of attributes per token, and ``start``, the
index of the first token of each sentence. Labels are represented by codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ImpossibleError
from factorwise.inference.base import Best
from factorwise.inference.exact.chain import chain_marginals
from factorwise.kernels.chains import attribute_rows
from factorwise.kernels.chains.attribute_rows import AHEAD, Entries, Tokens
from factorwise.kernels.chains.chain_rows import FORBIDDEN, Steps
from factorwise.kernels.chains.rows import GROUP, Groups, groups_of
from factorwise.kernels.compile.threads import Team
from factorwise.learning.chains.layout import StateFeatures, WeightLayout
from factorwise.learning.chains.structure import ChainStructure, FirstOrder
from factorwise.types import Bools, Floats
from factorwise.validation import check_count
from factorwise.variables.sparse_rows import SparseRows


@dataclass(frozen=True, eq=False)
class ChainTagger:
    """The labels and weights of a trained chain.

    classes
        The names of the labels.
    features
        The pairs of attribute and label that have a weight.
    structure
        The transitions that are allowed, and those that have a weight.
    weights : float64[weights]
        State weights, followed by transition weights.
    """

    classes: tuple[Any, ...]
    features: StateFeatures
    structure: ChainStructure
    weights: NDArray[np.float64]

    def labels(self) -> list[Any]:
        """Return the names of the labels, as python-crfsuite's tagger does."""
        return list(self.classes)

    @property
    def state_weights(self) -> NDArray[np.float64]:
        """The weights of pairs of attribute and label."""
        return self.weights[: len(self.features)]

    @property
    def transition_weights(self) -> NDArray[np.float64]:
        """The weights of transitions."""
        return self.weights[len(self.features) :]

    def __getstate__(self) -> dict[str, Any]:
        names = ("classes", "features", "structure", "weights")
        return {name: self.__dict__[name] for name in names}  # without cached values

    @cached_property
    def _groups(self) -> Groups:
        return groups_of(len(self.classes))

    @cached_property
    def _columns(self) -> int:
        return GROUP * len(self._groups)

    @cached_property
    def _layout(self) -> WeightLayout:
        return WeightLayout.of(self.features)

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        table = np.zeros((max(1, len(self._layout.rows)), self._columns), dtype=np.float32)
        attribute_rows.expand(
            self.features.start,
            self.features.label,
            self._layout.rows,
            0,
            len(self._layout.rows),
            self.state_weights,
            table,
        )
        return table

    @cached_property
    def _steps(self) -> tuple[Steps, float]:
        return self.structure.steps(self.transition_weights, self._columns, np.float32)

    def _tokens(self, rows: SparseRows, start: NDArray[np.int64]) -> Tokens:
        unit = np.eye(len(self.classes), self._columns, dtype=np.float32)
        base = self.structure.base(self._columns, np.float32)
        return Tokens(start, self._layout.entries(rows), self._table, unit, self.state_weights, base)

    def _tokens_within(self, rows: SparseRows, start: NDArray[np.int64], allowed: Bools | None) -> Tokens:
        """Return `_tokens`, with the labels forbidden that ``allowed`` (bool[tokens, labels]) excludes."""
        tokens = self._tokens(rows, start)
        if allowed is None:
            return tokens
        scores = np.zeros((len(rows), self._columns), dtype=np.float32)
        nothing = np.zeros((1, self._columns), dtype=np.float32)
        attribute_rows.sum_rows(self._groups, tokens._replace(base=nothing), 0, len(rows), 0, scores)
        scores[:, : len(self.classes)][~allowed] = FORBIDDEN
        return tokens._replace(entries=_one_row_each(len(rows)), table=scores)

    def decode(
        self, rows: SparseRows, start: NDArray[np.int64], team: Team, allowed: Bools | None = None
    ) -> NDArray[np.int32]:
        """Return the labels of a best path of each sentence, restricted to the allowed labels."""
        tokens = self._tokens_within(rows, start, allowed)
        path = np.zeros(len(rows), dtype=np.int32)
        score = np.zeros(len(start) - 1)
        longest = int(np.diff(start).max(initial=1))

        def work(first: int, last: int) -> None:
            scratch = self.structure.scratch(1, longest, self._columns, np.float32)
            self.structure.kernels.decode(
                self._groups, tokens, self._steps[0], first, last, scratch[0], path, score
            )

        team.share(len(start) - 1, work)
        if (score < FORBIDDEN / 2).any():
            raise self._impossible(int(np.flatnonzero(score < FORBIDDEN / 2)[0]))
        return path

    def marginals(
        self, rows: SparseRows, start: NDArray[np.int64], team: Team, allowed: Bools | None = None
    ) -> tuple[Floats, Floats]:
        """Return the marginal probabilities of the labels at each token, and log Z of each sentence."""
        tokens = self._tokens_within(rows, start, allowed)
        steps, shift = self._steps
        out = np.zeros((len(rows), self._columns), dtype=np.float32)
        log_partition = np.zeros(len(start) - 1)
        longest = int(np.diff(start).max(initial=1))

        def work(first: int, last: int) -> None:
            scratch = self.structure.scratch(2, longest, self._columns, np.float32)
            self.structure.kernels.marginals(
                self._groups, tokens, steps, first, last, scratch, out, log_partition
            )

        team.share(len(start) - 1, work)
        probability = out[:, : len(self.classes)].astype(np.float64)
        log_partition += shift * (np.diff(start) - 1)
        for sentence in np.flatnonzero(np.isnan(log_partition)).tolist():
            begin, end = int(start[sentence]), int(start[sentence + 1])
            within = None if allowed is None else allowed[begin:end]
            node = self._node_scores(tokens, begin, end, within)
            try:
                found = self.structure.in_logs(node, self.transition_weights)
            except ImpossibleError:
                raise self._impossible(sentence) from None
            log_partition[sentence], probability[begin:end] = found[0], found[1]
        return normalized(probability), log_partition

    def node_scores(self, rows: SparseRows, start: NDArray[np.int64]) -> Iterator[Floats]:
        """Yield the scores of the labels of each sentence, float64[tokens, labels]."""
        tokens = self._tokens(rows, start)
        for begin, end in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
            yield self._node_scores(tokens, begin, end, None)

    def _node_scores(self, tokens: Tokens, begin: int, end: int, allowed: Bools | None) -> Floats:
        out = np.zeros((end - begin, self._columns), dtype=np.float32)
        nothing = np.zeros((1, self._columns), dtype=np.float32)
        attribute_rows.sum_rows(self._groups, tokens._replace(base=nothing), begin, end, -begin, out)
        node = out[:, : len(self.classes)].astype(np.float64)
        node[0, self.structure.not_first] = -np.inf
        node[-1, self.structure.not_last] = -np.inf
        if allowed is not None:
            node[~allowed] = -np.inf
        return node

    def log_partition_of(self, node: Floats) -> float:
        """Return the log of the sum over all paths (log Z), from the node scores of one sentence."""
        return self.structure.log_partition(node, self.transition_weights)

    def k_best(self, node: Floats, k: int) -> list[Best]:
        """Return the ``k`` best paths of one sentence, best first; fewer if fewer exist."""
        check_count("k", k)
        return self.structure.k_best(node, self.transition_weights, k)

    def span_probabilities(
        self, node: Floats, path: Sequence[int], spans: Sequence[tuple[int, int]], goes_on: Bools
    ) -> list[float]:
        """Return the probability that each span is labelled as in ``path`` and is not part of a longer one.

        spans
            Start and (exclusive) end of each span.
        goes_on : bool[labels, labels]
            Whether a label continues the span of the previous label.
        """
        if not isinstance(self.structure, FirstOrder):
            total = self.log_partition_of(node)
            return [self._span_probability(node, path, span, goes_on, total) for span in spans]
        # Given its first and last label, a span of a first-order chain does not depend on what is outside.
        found = chain_marginals(node, self.structure.table(self.transition_weights))
        steps = [float(found.edge[t, path[t], path[t + 1]]) for t in range(len(path) - 1)]
        single = [float(found.node[t, path[t]]) for t in range(len(path))]
        probabilities = []
        for begin, end in spans:
            share = single[begin]
            for t in range(begin, end - 1):
                share *= steps[t] / single[t]
            if begin > 0:
                before = found.edge[begin - 1, goes_on[:, path[begin]], path[begin]]
                share *= 1.0 - float(before.sum()) / single[begin]
            if end < len(node):
                after = found.edge[end - 1, path[end - 1], goes_on[path[end - 1]]]
                share *= 1.0 - float(after.sum()) / single[end - 1]
            probabilities.append(min(max(share, 0.0), 1.0))
        return probabilities

    def _span_probability(
        self, node: Floats, path: Sequence[int], span: tuple[int, int], goes_on: Bools, log_total: float
    ) -> float:
        begin, end = span
        inside = node.copy()
        for position in range(begin, end):
            others = np.arange(node.shape[1]) != path[position]
            inside[position, others] = -np.inf
        if end < len(node):
            inside[end, goes_on[path[end - 1]]] = -np.inf
        if begin > 0:
            inside[begin - 1, goes_on[:, path[begin]]] = -np.inf
        return float(np.exp(self.log_partition_of(inside) - log_total))

    def log_probability(self, node: Floats, path: Sequence[int]) -> float:
        """Return the log-probability of one path."""
        clamped = np.full_like(node, -np.inf)
        places = np.arange(len(node))
        clamped[places, path] = node[places, path]
        return self.log_partition_of(clamped) - self.log_partition_of(node)

    def _impossible(self, sentence: int) -> ImpossibleError:
        return ImpossibleError(
            f"no labels of sentence {sentence} satisfy the constraints: allow more labels at its tokens."
        )


def normalized(probability: Floats) -> Floats:
    """Return marginals rescaled to sum to one, which single-precision sums miss by a rounding error."""
    return np.asarray(probability / probability.sum(axis=1, keepdims=True))


def _one_row_each(count: int) -> Entries:
    """Return entries that give each token its own row of the table."""
    none = np.zeros(0, dtype=np.int32)
    column = np.zeros(count + AHEAD, dtype=np.int32)
    column[:count] = np.arange(count, dtype=np.int32)
    real = np.zeros(0, dtype=np.float32)
    no_singles = np.zeros(count + 1, dtype=np.int64)
    return Entries(
        np.arange(count + 1, dtype=np.int64), column, real, no_singles, none, none.astype(np.int16), real
    )
