"""The labels of a chain: which may follow which, which pairs have weights, and which labels are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from factorwise.errors import ImpossibleError, ShapeError
from factorwise.inference.base import Best
from factorwise.inference.exact.chain import chain_k_best, chain_log_partition, chain_marginals
from factorwise.kernels.chains import chain_rows
from factorwise.kernels.chains.chain_rows import FORBIDDEN, Known, Steps
from factorwise.types import Bools, Floats, Int32s, Int64s, Ints
from factorwise.validation import check_range
from factorwise.variables.sparse_rows import SparseRows


@dataclass(frozen=True, eq=False)
class Supervision:
    """What is known of the labels, and how much it counts.

    truth : int32[tokens]
        The label of each token; -1 if it is unknown.
    allowed_row : int32[tokens] or empty
        For a token with -1: the row of ``allowed`` with its possible labels.
    allowed : bool[rows, labels]
    emphasis : float64[sentences] or empty
        How much each sentence counts.
    cost : float64[labels] or empty
        For each right label, how far it must lead.
    """

    truth: Int32s
    allowed_row: Int32s = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    allowed: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    emphasis: Floats = field(default_factory=lambda: np.zeros(0))
    cost: Floats = field(default_factory=lambda: np.zeros(0))

    def check(self, rows: SparseRows, start: Int64s) -> None:
        """Refuse labels for another number of tokens."""
        if int(start[-1]) != len(rows) or len(self.truth) != len(rows):
            raise ShapeError(
                f"{len(rows)} tokens with {len(self.truth)} labels were given for sentences that end"
                f" at token {int(start[-1])}: the three must agree."
            )

    def padded(self, labels: int, columns: int, dtype: DTypeLike) -> Known:
        """Return the same in the kernels' layout."""
        allowed = np.zeros((len(self.allowed), columns), dtype=dtype)
        if self.allowed.size:
            allowed[:, :labels] = self.allowed
        emphasis, cost = self.emphasis.astype(dtype), self.cost.astype(dtype)
        return Known(self.truth, self.allowed_row, allowed, emphasis, cost)

    def charge(self, node: Floats, begin: int) -> None:
        """Subtract the cost from the scores of right labels, from token ``begin`` on.

        node : float64[tokens, labels]
            The scores, which are changed in place.
        """
        if len(self.cost):
            truth = self.truth[begin : begin + len(node)]
            sure = np.flatnonzero(truth >= 0)
            node[sure, truth[sure]] -= self.cost[truth[sure]]

    def may_be(self, token: int, labels: int) -> Bools:
        """Return the labels that agree with what is known of a token."""
        if self.truth[token] < 0:
            return np.asarray(self.allowed[self.allowed_row[token]], dtype=bool)
        return np.asarray(np.arange(labels) == self.truth[token], dtype=bool)


class ChainStructure(Protocol):
    """What training and tagging need of a chain, whatever its order."""

    @property
    def labels(self) -> int:
        """Number of labels."""
        ...

    @property
    def not_first(self) -> Bools:
        """Labels that must not begin a sentence."""
        ...

    @property
    def not_last(self) -> Bools:
        """Labels that must not end a sentence."""
        ...

    @property
    def size(self) -> int:
        """Number of transition weights."""
        ...

    @property
    def kernels(self) -> Any:
        """Module with `expectations`, `marginals` and `decode`."""
        ...

    def steps(self, weights: Floats, columns: int, dtype: DTypeLike) -> tuple[Any, float]:
        """Return the transitions in the kernels' layout, and the score that was subtracted from each."""
        ...

    def base(self, columns: int, dtype: DTypeLike) -> Floats:
        """Return the initial scores of a token."""
        ...

    def edge(self, chunks: int, columns: int, dtype: DTypeLike) -> Floats:
        """Return an array for the products from which `gradient` computes expected transitions."""
        ...

    def scratch(self, forms: int, longest: int, columns: int, dtype: DTypeLike) -> Floats:
        """Return an array for the rows of one sentence."""
        ...

    def gradient(self, edge: Floats, steps: Any, observed: Floats) -> Floats:
        """Return expected minus observed transitions that have a weight, from products and counts."""
        ...

    def observed(self, start: Int64s, supervision: Supervision) -> Floats:
        """Count transitions in sentences with known labels only."""
        ...

    def transitions(self) -> list[tuple[int, ...]]:
        """Return the labels of each transition weight."""
        ...

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a model file."""
        ...

    def in_logs(self, node: Floats, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return log Z, label probabilities and expected transitions of a sentence, without underflow."""
        ...

    def log_partition(self, node: Floats, weights: Floats) -> float:
        """Return log Z of one sentence; ``-inf`` if no path is possible."""
        ...

    def k_best(self, node: Floats, weights: Floats, k: int) -> list[Best]:
        """Return the best paths of one sentence, best first."""
        ...


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """A chain in which a label depends on the label before it.

    labels
        The number of labels.
    pairs : int32[transitions, 2]
        Pairs of labels that have a weight; they follow the state weights in the weight vector.
    forbidden : bool[labels, labels]
        Pairs that must not be consecutive.
    not_first, not_last : bool[labels]
        Labels that must not begin or end a sentence.
    """

    labels: int
    pairs: Int32s
    forbidden: Bools
    not_first: Bools
    not_last: Bools

    kernels: ClassVar[Any] = chain_rows

    @classmethod
    def free(cls, labels: int, pairs: Ints | None = None) -> FirstOrder:
        """Return a chain that forbids nothing; by default every pair of labels has a weight."""
        if pairs is None:
            pairs = np.indices((labels, labels)).reshape(2, -1).T
        no = np.zeros(labels, dtype=bool)
        return cls(labels, np.asarray(pairs, dtype=np.int32), np.zeros((labels, labels), dtype=bool), no, no)

    @classmethod
    def from_labels(
        cls,
        truth: Ints,
        start: Int64s,
        labels: int,
        *,
        every: bool,
        forbidden: Bools,
        not_first: Bools,
        not_last: Bools,
        lowest: float = 0.0,
    ) -> FirstOrder:
        """Give a weight to the pairs of labels that occur, or to ``every`` pair that is not forbidden.

        lowest
            Leave out pairs that occur less often than this.
        """
        times = np.zeros((labels, labels), dtype=np.int64)
        np.add.at(times, neighbors(truth, start), 1)
        seen = ~forbidden if every else times > 0
        pairs = np.argwhere(seen & (times >= lowest)).astype(np.int32)
        return cls(labels, pairs, forbidden, not_first, not_last)

    def transitions(self) -> list[tuple[int, ...]]:
        """Return the labels of each transition weight."""
        return [tuple(pair) for pair in self.pairs.tolist()]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `from_arrays` makes the chain again."""
        return {"pairs": self.pairs, **constraint_arrays(self.forbidden, self.not_first, self.not_last)}

    @classmethod
    def from_arrays(cls, labels: int, arrays: Mapping[str, NDArray[Any]]) -> FirstOrder:
        """Restore the result of `to_arrays`."""
        return cls(labels, label_tuples(arrays["pairs"], labels, 2), *constraints_from(arrays, labels))

    @property
    def size(self) -> int:
        """Number of transition weights."""
        return len(self.pairs)

    def table(self, weights: Floats) -> Floats:
        """Return the transition scores, float64[labels, labels]; ``-inf`` if forbidden."""
        table = np.zeros((self.labels, self.labels))
        table[self.pairs[:, 0], self.pairs[:, 1]] = weights
        table[self.forbidden] = -np.inf
        return table

    def steps(self, weights: Floats, columns: int, dtype: DTypeLike) -> tuple[Steps, float]:
        """Return the transitions in the kernels' layout, and the score that was subtracted from each."""
        table = self.table(weights)
        finite = table[np.isfinite(table)]
        shift = float(finite.max()) if len(finite) else 0.0
        lowered = rounded(np.maximum(table - shift, FORBIDDEN), dtype)
        weight = np.exp(lowered)
        forms = ((lowered, FORBIDDEN), (lowered.T, FORBIDDEN), (weight, 0.0), (weight.T, 0.0))
        return Steps(*(_padded(values, columns, empty, dtype) for values, empty in forms)), shift

    def base(self, columns: int, dtype: DTypeLike) -> Floats:
        """Return the initial scores of a token: inside a sentence, first, last, or both."""
        table = np.full((4, columns), FORBIDDEN, dtype=dtype)
        table[:, : self.labels] = 0.0
        table[1::2, : self.labels][:, self.not_first] = FORBIDDEN
        table[2:, : self.labels][:, self.not_last] = FORBIDDEN
        return table

    def edge(self, chunks: int, columns: int, dtype: DTypeLike) -> Floats:
        """Return an array for the products from which `gradient` computes expected transitions."""
        return np.zeros((chunks, self.labels, columns), dtype=dtype)

    def scratch(self, forms: int, longest: int, columns: int, dtype: DTypeLike) -> Floats:
        """Return an array for the rows of one sentence."""
        return np.empty((forms, longest, columns), dtype=dtype)

    def gradient(self, edge: Floats, steps: Steps, observed: Floats) -> Floats:
        """Return expected minus observed transitions that have a weight, from products and counts."""
        products = edge[:, : self.labels] * steps.weight[:, : self.labels].astype(np.float64)
        return self.at_pairs(products - observed)

    def at_pairs(self, table: Floats) -> Floats:
        """Return the entries of a table of pairs that have weights."""
        return np.asarray(table[self.pairs[:, 0], self.pairs[:, 1]], dtype=np.float64)

    def observed(self, start: Int64s, supervision: Supervision) -> Floats:
        """Count the pairs of consecutive labels, in sentences with known labels only."""
        truth = supervision.truth
        sentence = np.repeat(np.arange(len(start) - 1), np.diff(start))
        known = np.minimum.reduceat(truth, start[:-1]) >= 0
        inside = (sentence[1:] == sentence[:-1]) & known[sentence[1:]]
        left, right = truth[:-1][inside].astype(np.int64), truth[1:][inside]
        amount = supervision.emphasis[sentence[1:][inside]] if len(supervision.emphasis) else None
        counts = np.bincount(left * self.labels + right, weights=amount, minlength=self.labels**2)
        return counts.reshape(self.labels, self.labels).astype(np.float64)

    def in_logs(self, node: Floats, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return log Z, label probabilities and expected pairs of a sentence, for scores of any size."""
        marginals = chain_marginals(node, self.table(weights))
        return marginals.log_partition, marginals.node, marginals.edge.sum(axis=0)

    def log_partition(self, node: Floats, weights: Floats) -> float:
        """Return log Z of one sentence; ``-inf`` if no path is possible."""
        try:
            return chain_log_partition(node, self.table(weights))
        except ImpossibleError:
            return float("-inf")

    def k_best(self, node: Floats, weights: Floats, k: int) -> list[Best]:
        """Return the best paths of one sentence, best first."""
        return chain_k_best(node, self.table(weights), k)


def constraint_arrays(forbidden: Bools, not_first: Bools, not_last: Bools) -> dict[str, NDArray[Any]]:
    """Return the constraints of a chain as named arrays for a model file."""
    return {"forbidden": forbidden, "not_first": not_first, "not_last": not_last}


def constraints_from(arrays: Mapping[str, NDArray[Any]], labels: int) -> tuple[Bools, Bools, Bools]:
    """Read constraints from named arrays, and check their types and shapes."""
    shapes = {"forbidden": (labels, labels), "not_first": (labels,), "not_last": (labels,)}
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype != np.bool_:
            raise ShapeError(f"{name} has shape {arrays[name].shape} and dtype {arrays[name].dtype}.")
    return arrays["forbidden"], arrays["not_first"], arrays["not_last"]


def label_tuples(array: NDArray[Any], labels: int, size: int) -> Int32s:
    """Check that an array has rows of ``size`` labels each, and return it."""
    if array.dtype != np.int32 or array.ndim != 2 or array.shape[1] != size:
        raise ShapeError(f"transitions have shape {array.shape} and dtype {array.dtype}.")
    check_range("transitions", array, labels)
    return array


def neighbors(truth: Ints, start: Int64s) -> tuple[Ints, Ints]:
    """Return consecutive labels of a sentence where both are known."""
    inside = np.ones(max(len(truth) - 1, 0), dtype=bool)
    inside[start[1:-1] - 1] = False
    inside &= (truth[:-1] >= 0) & (truth[1:] >= 0)
    return truth[:-1][inside], truth[1:][inside]


def rounded(scores: Floats, dtype: DTypeLike) -> Floats:
    """Return scores that are exact in ``dtype``, so that a score and its exponential agree.

    A path uses some transitions tens of thousands of times: rounding both separately would make the loss
    jump.
    """
    return scores.astype(dtype).astype(np.float64)


def _padded(values: Floats, columns: int, empty: float, dtype: DTypeLike) -> Floats:
    rows = np.full((len(values), columns), empty, dtype=dtype)
    rows[:, : len(values)] = values
    return rows
