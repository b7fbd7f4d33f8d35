"""Scores of the base model for learning with energies: fixed, or linear in parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from factorwise.errors import ShapeError
from factorwise.types import Floats, Ints


class BaseScores(Protocol):
    """Scores of the labels of sequences, as a function of parameters theta."""

    @property
    def start(self) -> Ints:
        """Where each sequence begins, int64[sequences + 1]."""
        ...

    @property
    def table(self) -> Ints:
        """Which table of transitions each sequence has, int64[sequences]."""
        ...

    @property
    def labels(self) -> int:
        """How many labels there are, S."""
        ...

    @property
    def parameters(self) -> int:
        """The size of theta."""
        ...

    def scores(self, parameters: Floats, which: Ints) -> tuple[list[Floats], Floats]:
        """Return float64[places, S] for each of the sequences, and float64[tables, S, S] for transitions."""
        ...

    def gradient(self, which: Ints, node: Sequence[Floats], pairs: Floats) -> Floats:
        """Carry a gradient in these scores back to the parameters."""
        ...


class GivenScores:
    """Fixed scores, so that only energies are learned.

    node_scores
        float[T, S] for each sequence.
    edge_scores : float[S, S] or float[tables, S, S]
        Scores of transitions.
    table : int[sequences]
        The table of each sequence, if there are several: scores may come from several models.
    """

    parameters = 0

    def __init__(
        self, node_scores: Sequence[ArrayLike], edge_scores: ArrayLike, table: ArrayLike | None = None
    ) -> None:
        edges = np.asarray(edge_scores, dtype=np.float64)
        self.edge = edges[None] if edges.ndim == 2 else edges
        if self.edge.ndim != 3 or self.edge.shape[1] != self.edge.shape[2]:
            raise ShapeError(f"edge_scores must be square, but has shape {edges.shape}.")
        self.labels = self.edge.shape[1]
        self.node = [np.asarray(rows, dtype=np.float64) for rows in node_scores]
        none = np.zeros(len(self.node), dtype=np.int64)
        self.table = none if table is None else np.asarray(table, dtype=np.int64)
        if self.table.shape != (len(self.node),) or (len(self.edge) > 1 and table is None):
            raise ShapeError(
                f"{len(self.edge)} tables of transitions were given for {len(self.node)} sequences: say"
                " with table= which one each sequence has."
            )
        for index, rows in enumerate(self.node):
            if rows.ndim != 2 or rows.shape[1] != self.labels or not len(rows):
                raise ShapeError(
                    f"sequence {index} has scores of shape {rows.shape}: give a row of {self.labels} for each"
                    " of its places, at least one."
                )
        self.start = np.cumsum([0, *map(len, self.node)])

    def scores(self, parameters: Floats, which: Ints) -> tuple[list[Floats], Floats]:
        """Return the fixed scores."""
        return [self.node[index] for index in which.tolist()], self.edge

    def gradient(self, which: Ints, node: Sequence[Floats], pairs: Floats) -> Floats:
        """Return nothing, because there are no parameters."""
        return np.zeros(0)


class LinearScores:
    """Scores that are linear in features, added to fixed scores.

    features : sparse float[places, F]
        Features of the positions of all sequences, one after the other. With all of a tagger's attributes
        theta is a complete model; with a column of ones it is a bias of each label on top of a tagger's
        scores.
    given
        The fixed scores from which learning starts.

    Theta is float64[F * S + S * S]: a weight for each feature with each label, then one for each transition.
    """

    def __init__(self, features: Any, given: GivenScores) -> None:
        self.features = sparse.csr_array(features, dtype=np.float64)
        self.given = given
        self.start, self.labels, self.table = given.start, given.labels, given.table
        if self.features.ndim != 2 or self.features.shape[0] != self.start[-1]:
            raise ShapeError(
                f"features of shape {self.features.shape} were given for {int(self.start[-1])}"
                " positions: give a row for each position."
            )
        self.parameters = self.features.shape[1] * self.labels + self.labels**2

    def scores(self, parameters: Floats, which: Ints) -> tuple[list[Floats], Floats]:
        """Add the parameters' scores to the fixed ones."""
        split = self.parameters - self.labels**2
        weights = parameters[:split].reshape(-1, self.labels)
        nodes, edge = self.given.scores(parameters, which)
        added = [
            rows + self._rows(index) @ weights for index, rows in zip(which.tolist(), nodes, strict=True)
        ]
        return added, edge + parameters[split:].reshape(self.labels, self.labels)

    def gradient(self, which: Ints, node: Sequence[Floats], pairs: Floats) -> Floats:
        """Sum features times gradients; transitions stay as they are."""
        total = np.zeros((self.features.shape[1], self.labels))
        for index, rows in zip(which.tolist(), node, strict=True):
            total += self._rows(index).T @ rows
        return np.concatenate([total.ravel(), pairs.ravel()])

    def _rows(self, index: int) -> Any:
        return self.features[int(self.start[index]) : int(self.start[index + 1])]
