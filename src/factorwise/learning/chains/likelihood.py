r"""The negative conditional log-likelihood of a chain CRF, and its gradient.

.. math:: L(\theta) = \sum_s \left( \log Z_\theta(x_s) - \theta \cdot f(x_s, y_s) \right)

The gradient is a difference of expectations, model minus data. It is formed token by token (expected minus
observed label) before anything is summed over attributes; this needs no table of observed counts and loses no
digits if both are large. A token whose label is unknown, or known to be one of several, contributes the sum
over its possible labels: log Z minus log Z of the paths that agree with what is known.

Every sum is computed in an order that does not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from factorwise.errors import ShapeError
from factorwise.kernels.chains import attribute_rows
from factorwise.kernels.chains.attribute_rows import Members, Tokens
from factorwise.kernels.chains.chain_rows import Steps
from factorwise.kernels.chains.rows import GROUP, groups_of
from factorwise.kernels.compile.threads import Team
from factorwise.learning.chains.layout import BLOCK, SEGMENTS, Bundles, StateFeatures, WeightLayout
from factorwise.learning.chains.structure import ChainStructure, Supervision
from factorwise.types import Float64s, Floats, Int64s, Ints
from factorwise.variables.sparse_rows import SparseRows

# Transitions are summed within chunks of sentences, then over the chunks in double precision: a long sum in
# single precision loses the many small probabilities (0.2 in 50,000 for chunks of 7,000 tokens).
CHUNK_TOKENS = 512
FEWEST_CHUNKS = 32  # enough for threads to share
CHUNK_BYTES = 1 << 25


class ChainLikelihood:
    """The loss as a function of the flat weight vector: state weights, then transition weights.

    slot : int32[attributes] or None
        The kind of each attribute, used to find attributes that can be summed together (`Bundles.find`).
    dtype
        Precision of the rows; sums over sentences always use double precision.
    """

    def __init__(
        self,
        rows: SparseRows,
        start: Int64s,
        supervision: Supervision,
        features: StateFeatures,
        structure: ChainStructure,
        *,
        slot: Ints | None = None,
        team: Team | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        supervision.check(rows, start)
        if (np.diff(start) < 1).any():
            sentence = int(np.flatnonzero(np.diff(start) < 1)[0])
            raise ShapeError(f"sentence {sentence} has no tokens: leave it out.")
        self.features, self.structure, self.supervision = features, structure, supervision
        self.team = Team(1) if team is None else team
        self._groups = groups_of(structure.labels)
        self._columns, self._dtype = GROUP * len(self._groups), np.dtype(dtype)
        self._known = supervision.padded(structure.labels, self._columns, self._dtype)
        self._observed = structure.observed(start, supervision)
        room = structure.edge(1, self._columns, self._dtype).nbytes
        self._chunk = _even_chunks(start, CHUNK_BYTES // room)
        self._longest = int(np.diff(start).max(initial=1))

        bundles = Bundles.find(rows, slot)
        self._layout, self._n_bundles = WeightLayout.of(features), len(bundles.contents)
        n_rows = len(self._layout.rows) + self._n_bundles
        entries = self._layout.entries(bundles.tokens, self._n_bundles)
        self._members = self._layout.members(entries, n_rows)
        self._bundle_entries = self._layout.entries(bundles.contents)
        self._bundle_members = self._layout.members(self._bundle_entries, len(self._layout.rows))
        self._tokens = Tokens(
            start,
            entries,
            self._zeros(n_rows),
            np.eye(structure.labels, self._columns, dtype=self._dtype),
            np.zeros(self.size),
            structure.base(self._columns, self._dtype),
        )
        self._nothing = self._zeros(1)
        self._row_gradient = self._zeros(n_rows)
        self._residual = self._zeros(len(rows))
        self._edge = structure.edge(len(self._chunk) - 1, self._columns, self._dtype)
        self._loss = np.zeros(len(start) - 1)
        self._gradient = np.zeros(self.size)

    @property
    def size(self) -> int:
        """The number of weights."""
        return len(self.features) + self.structure.size

    def __call__(self, weights: Float64s) -> tuple[float, Float64s]:
        """Return the loss and its gradient; the next call overwrites the gradient's array."""
        state, tail = weights[: len(self.features)], weights[len(self.features) :]
        tokens = self._tokens._replace(weights=state)
        steps, _ = self.structure.steps(tail, self._columns, self._dtype)
        self._lay_out(tokens)
        self._edge[:] = 0.0
        chunks = len(self._chunk) - 1
        self.team.share(chunks, lambda first, last: self._expect(first, last, tokens, steps))
        repaired = self._repair(tokens, tail)
        self._sum_over_attributes()
        edge = self._edge.sum(axis=0, dtype=np.float64)
        self._gradient[len(state) :] = self.structure.gradient(edge, steps, self._observed - repaired)
        return float(self._loss.sum()), self._gradient

    def _zeros(self, rows: int) -> Floats:
        return np.zeros((rows, self._columns), dtype=self._dtype)

    def _lay_out(self, tokens: Tokens) -> None:
        """Write the weights into rows, then sum the rows of each bundle."""
        features, rows = self.features, self._layout.rows
        self.team.share(
            len(rows),
            lambda first, last: attribute_rows.expand(
                features.start, features.label, rows, first, last, tokens.weights, tokens.table
            ),
        )
        bundles = tokens._replace(entries=self._bundle_entries, base=self._nothing)
        self.team.share(
            self._n_bundles,
            lambda first, last: attribute_rows.sum_rows(
                self._groups, bundles, first, last, len(rows), tokens.table
            ),
        )

    def _expect(self, first: int, last: int, tokens: Tokens, steps: Steps) -> None:
        """Run forward and backward over the sentences of some chunks."""
        scratch = self.structure.scratch(4, self._longest, self._columns, self._dtype)
        for chunk in range(first, last):
            self.structure.kernels.expectations(
                self._groups,
                tokens,
                self._known,
                steps,
                self._chunk[chunk],
                self._chunk[chunk + 1],
                scratch,
                self._residual,
                self._edge[chunk],
                self._loss,
            )

    def _sum_over_attributes(self) -> None:
        """Sum the tokens' residual rows over their attributes into the gradient of the state weights."""
        out, gradient, rows = self._row_gradient, self._gradient, self._layout.rows
        out[:] = 0.0
        gradient[:] = 0.0
        self._sum_over_members(self._members, self._residual, 0)
        self._sum_over_members(self._bundle_members, out, len(rows))
        self.team.share(
            len(rows),
            lambda first, last: attribute_rows.collect(
                self.features.start, self.features.label, rows, first, last, out, gradient
            ),
        )

    def _sum_over_members(self, members: Members, source: Floats, offset: int) -> None:
        """Add the rows of ``source``, from ``offset`` on, to the rows and single weights of their members."""
        self.team.share(
            SEGMENTS,
            lambda first, last: attribute_rows.sum_members(
                self._groups, members, source, offset, BLOCK, first, last, self._row_gradient
            ),
        )
        self.team.share(
            len(members.single_place),
            lambda first, last: attribute_rows.sum_single_members(
                members, source, offset, first, last, self._gradient
            ),
        )

    def _repair(self, tokens: Tokens, tail: Floats) -> Floats:
        """Compute sentences whose probabilities underflow in log space.

        Return their transitions minus the known ones.
        """
        pairs = np.zeros_like(self._observed)
        for sentence in np.flatnonzero(np.isnan(self._loss)).tolist():
            begin, end = int(tokens.start[sentence]), int(tokens.start[sentence + 1])
            node = self._node_scores(tokens, begin, end)
            log_total, expected, expected_pairs = self.structure.in_logs(node, tail)
            may_be = np.array([self.supervision.may_be(t, self.structure.labels) for t in range(begin, end)])
            log_known, known, known_pairs = self.structure.in_logs(np.where(may_be, node, -np.inf), tail)
            emphasis = self.supervision.emphasis
            amount = float(emphasis[sentence]) if len(emphasis) else 1.0
            self._loss[sentence] = amount * (log_total - log_known)
            self._residual[begin:end, : self.structure.labels] = amount * (expected - known)
            pairs += amount * (expected_pairs - known_pairs)
            if (self.supervision.truth[begin:end] >= 0).all():  # counted among the observed pairs
                pairs += amount * known_pairs
        return pairs

    def _node_scores(self, tokens: Tokens, begin: int, end: int) -> Floats:
        """Return the scores of the labels of a sentence's tokens, in double precision."""
        out = self._zeros(end - begin)
        attribute_rows.sum_rows(self._groups, tokens._replace(base=self._nothing), begin, end, -begin, out)
        node = out[:, : self.structure.labels].astype(np.float64)
        node[0, self.structure.not_first] = -np.inf
        node[-1, self.structure.not_last] = -np.inf
        self.supervision.charge(node, begin)
        return node


def _even_chunks(start: Int64s, most: int) -> Int64s:
    """Cut the sentences into chunks of about equally many tokens, and not more than ``most`` chunks."""
    chunks = max(FEWEST_CHUNKS, min(int(start[-1]) // CHUNK_TOKENS, most))
    edges = np.searchsorted(start, np.linspace(0, start[-1], chunks + 1)[1:-1])
    return np.concatenate([[0], edges, [len(start) - 1]]).astype(np.int64)
