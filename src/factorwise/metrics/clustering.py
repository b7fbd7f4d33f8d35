"""How well one clustering of some items agrees with another.

Everything is computed from the contingency table: the number of items that each true cluster shares with each
predicted one. A metric turns the table into a tally, the numerators and denominators of its figures. Tallies
of several documents are added, and a sum is scored like a single tally, so that a pooled figure is a ratio of
sums and not a mean of ratios; items of different documents are never compared.

If a denominator is zero, precision, recall and F1 are 0: for `pairwise`, if no two items are together on one
side. The Rand indices are then 1, as in scikit-learn: the two clusterings cannot disagree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.types import Int64s

#: One label for each item, in the order of the items: any hashable objects, or an array.
ClusterLabels = Iterable[Any]


class ClusterScore(NamedTuple):
    """Precision, recall and F1; 0 if a denominator is zero."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Tally:
    """Numerators and denominators of precision and recall."""

    precision_part: float
    precision_whole: float
    recall_part: float
    recall_whole: float

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.precision_part + other.precision_part,
            self.precision_whole + other.precision_whole,
            self.recall_part + other.recall_part,
            self.recall_whole + other.recall_whole,
        )

    @property
    def score(self) -> ClusterScore:
        """Precision, recall and their harmonic mean."""
        precision = self.precision_part / self.precision_whole if self.precision_whole else 0.0
        recall = self.recall_part / self.recall_whole if self.recall_whole else 0.0
        both = precision + recall
        return ClusterScore(precision, recall, 2 * precision * recall / both if both else 0.0)


@dataclass(frozen=True, slots=True)
class IndexTally:
    """Numerator and denominator of an index, which is 1 for clusterings that cannot disagree."""

    part: float
    whole: float

    def __add__(self, other: IndexTally) -> IndexTally:
        return IndexTally(self.part + other.part, self.whole + other.whole)

    @property
    def score(self) -> float:
        """The index."""
        return self.part / self.whole if self.whole else 1.0


@dataclass(frozen=True, slots=True)
class Contingency:
    """Two clusterings, reduced to the items that their clusters share; items may be missing on either side.

    true_size, predicted_size
        Number of items of each cluster, shape (true clusters,) and (predicted clusters,).
    true, predicted
        The two clusters of each cell, shape (cells,); only cells with items are kept.
    shared
        Items in each cell, shape (cells,).
    """

    true_size: Int64s
    predicted_size: Int64s
    true: Int64s
    predicted: Int64s
    shared: Int64s

    @classmethod
    def of(cls, truth: ClusterLabels, predicted: ClusterLabels) -> Contingency:
        """Count the items that clusters share, from two labels for each item.

        >>> Contingency.of(["a", "a", "b"], [7, 8, 8]).shared.tolist()
        [1, 1, 1]
        """
        table = _counted(truth, predicted)
        if not table.items:
            raise InvalidArgumentError(
                "truth and predicted are empty, so there is nothing to compare: give two labels, a"
                " true and a predicted one, for at least one item."
            )
        return table

    @classmethod
    def of_items(cls, truth: Mapping[Any, Hashable], predicted: Mapping[Any, Hashable]) -> Contingency:
        """Count the items that clusters share if each side has its own items, from the label of each item.

        >>> table = Contingency.of_items({"x": "a", "y": "a"}, {"y": 0, "z": 0})
        >>> table.shared.tolist(), table.true_items, table.predicted_items
        ([1], 2, 2)
        """
        true_number = {label: number for number, label in enumerate(dict.fromkeys(truth.values()))}
        number = {label: number for number, label in enumerate(dict.fromkeys(predicted.values()))}
        cells = Counter(
            (true_number[label], number[predicted[item]])
            for item, label in truth.items()
            if item in predicted
        )
        sizes, true_sizes = Counter(predicted.values()), Counter(truth.values())
        pairs = np.array(list(cells), dtype=np.int64).reshape(-1, 2)
        return cls(
            np.array([true_sizes[label] for label in true_number], dtype=np.int64),
            np.array([sizes[label] for label in number], dtype=np.int64),
            pairs[:, 0],
            pairs[:, 1],
            np.array(list(cells.values()), dtype=np.int64),
        )

    @property
    def items(self) -> int:
        """Number of items that both clusterings have."""
        return int(self.shared.sum())

    @property
    def true_items(self) -> int:
        """Number of items of the true clustering."""
        return int(self.true_size.sum())

    @property
    def predicted_items(self) -> int:
        """Number of items of the predicted clustering."""
        return int(self.predicted_size.sum())

    @property
    def swapped(self) -> Contingency:
        """The same table with truth and prediction exchanged."""
        return Contingency(self.predicted_size, self.true_size, self.predicted, self.true, self.shared)

    @property
    def pairs(self) -> PairCounts:
        """Number of pairs of items that the two clusterings put together."""
        n_items = self.items
        return PairCounts(
            both=int(_pairs(self.shared).sum()),
            true=int(_pairs(self.true_size).sum()),
            predicted=int(_pairs(self.predicted_size).sum()),
            all=n_items * (n_items - 1) // 2,
        )


class PairCounts(NamedTuple):
    """Pairs of items in one cluster: of both clusterings, of the true, of the predicted; and all pairs.

    They are Python integers, because their products exceed 64 bits.
    """

    both: int
    true: int
    predicted: int
    all: int


class _Addable(Protocol):
    def __add__(self, other: Self, /) -> Self: ...


SomeTally = TypeVar("SomeTally", bound=_Addable)


def pooled(
    tally: Callable[[Contingency], SomeTally],
    truth: Iterable[ClusterLabels],
    predicted: Iterable[ClusterLabels],
) -> SomeTally:
    """Return the sum of a tally over documents, each with its own labels.

    >>> truth, predicted = [["a", "a"], ["a", "b"]], [[0, 0], [0, 0]]
    >>> pooled(tally_pairwise, truth, predicted).score
    ClusterScore(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """
    return reduce(add, map(tally, document_tables(truth, predicted)))


def document_tables(truth: Iterable[ClusterLabels], predicted: Iterable[ClusterLabels]) -> list[Contingency]:
    """Return the contingency table of each document that has items."""
    documents = [_documents(truth, "truth"), _documents(predicted, "predicted")]
    if len(documents[0]) != len(documents[1]):
        raise ShapeError(
            f"truth has {len(documents[0])} documents but predicted has {len(documents[1])}:"
            " give the labels of every document on both sides, an empty list for one without items."
        )
    tables = [
        _counted(true_labels, labels, f" of document {number} (counted from 0)")
        for number, (true_labels, labels) in enumerate(zip(*documents, strict=True))
    ]
    tables = [table for table in tables if table.items]
    if not tables:
        raise InvalidArgumentError(
            f"none of the {len(documents[0])} documents has items, so there is nothing to compare: give"
            " at least one document with items."
        )
    return tables


def pairwise(truth: ClusterLabels, predicted: ClusterLabels) -> ClusterScore:
    """Return precision, recall and F1 of the pairs of items in one cluster.

    >>> pairwise(["a", "a", "b", "b"], [0, 0, 0, 1]).precision
    0.3333333333333333
    """
    return tally_pairwise(Contingency.of(truth, predicted)).score


def b_cubed(truth: ClusterLabels, predicted: ClusterLabels) -> ClusterScore:
    """Return B-cubed, the mean over items of how pure and how complete their predicted clusters are.

    The precision of an item is the share of its predicted cluster that lies in its true one, itself
    included; its recall is the share of its true cluster that lies in its predicted one.

    >>> b_cubed(["a", "a", "b", "b"], [0, 0, 0, 1]).recall
    0.75
    """
    return tally_b_cubed(Contingency.of(truth, predicted)).score


def rand_index(truth: ClusterLabels, predicted: ClusterLabels) -> float:
    """Return the share of the pairs of items on which both clusterings agree, together or separate."""
    return tally_rand(Contingency.of(truth, predicted)).score


def adjusted_rand_index(truth: ClusterLabels, predicted: ClusterLabels) -> float:
    """Return the Rand index corrected for chance: 1 for equal clusterings, 0 expected by chance.

    >>> adjusted_rand_index(["a", "a", "b", "b"], [0, 1, 0, 1])
    -0.5
    """
    return tally_adjusted_rand(Contingency.of(truth, predicted)).score


def tally_pairwise(table: Contingency) -> Tally:
    """Return the tally of `pairwise`."""
    pairs = table.pairs
    return Tally(pairs.both, pairs.predicted, pairs.both, pairs.true)


def tally_b_cubed(table: Contingency) -> Tally:
    """Return the tally of `b_cubed`."""
    squared = table.shared.astype(np.float64) ** 2
    precision = float((squared / table.predicted_size[table.predicted]).sum())
    recall = float((squared / table.true_size[table.true]).sum())
    return Tally(precision, table.predicted_items, recall, table.true_items)


def tally_rand(table: Contingency) -> IndexTally:
    """Return the tally of `rand_index`; over documents, of the pairs within them."""
    pairs = table.pairs
    return IndexTally(pairs.all - pairs.true - pairs.predicted + 2 * pairs.both, pairs.all)


def tally_adjusted_rand(table: Contingency) -> IndexTally:
    """Return the tally of `adjusted_rand_index`: pairs above expectation, found and possible.

    Over documents, the expectation is that of shuffling the items within each of them.
    """
    pairs = table.pairs
    if not pairs.all:
        return IndexTally(0.0, 0.0)
    # Whole numbers until the division, because a difference of large products would lose its digits.
    product = pairs.true * pairs.predicted
    observed = (pairs.both * pairs.all - product) / pairs.all
    possible = ((pairs.true + pairs.predicted) * pairs.all - 2 * product) / (2 * pairs.all)
    return IndexTally(observed, possible)


def is_missing(label: Any) -> bool:
    """Whether a label is None, or NaN, or the NA of a library."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):
        return True


def _pairs(size: Int64s) -> Int64s:
    return size * (size - 1) // 2


def _counted(truth: ClusterLabels, predicted: ClusterLabels, where: str = "") -> Contingency:
    """Return the contingency table, also without items; ``where`` completes the names in errors."""
    true_codes, true_size = _codes(truth, f"truth{where}")
    codes, size = _codes(predicted, f"predicted{where}")
    if len(true_codes) != len(codes):
        raise ShapeError(
            f"truth{where} has {len(true_codes)} labels but predicted has {len(codes)}:"
            " give two labels, a true and a predicted one, for every item, in the same order."
        )
    cell, shared = np.unique(true_codes * len(size) + codes, return_counts=True)
    return Contingency(true_size, size, *np.divmod(cell, max(len(size), 1)), shared.astype(np.int64))


def _codes(labels: ClusterLabels, name: str) -> tuple[Int64s, Int64s]:
    """Return the cluster number of each item, and the sizes of the clusters."""
    if isinstance(labels, str | bytes | Mapping | AbstractSet) or not isinstance(labels, Iterable):
        raise InvalidArgumentError(
            f"{name} must be a list or an array with one label for each item,"
            f" but a {type(labels).__name__} was given."
        )
    if hasattr(labels, "__array__") and not isinstance(labels, np.ma.MaskedArray):
        array = np.asarray(labels)
        if array.ndim != 1:
            raise ShapeError(
                f"{name} has the shape {array.shape}: give one label for each item, in one dimension."
            )
        if array.dtype.kind in "iub":
            _, codes, size = np.unique(array, return_inverse=True, return_counts=True)
            return codes.astype(np.int64), size.astype(np.int64)
        labels = array
    values = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    numbers: dict[Any, int] = {}
    try:
        codes = np.array([numbers.setdefault(label, len(numbers)) for label in values], dtype=np.int64)
    except TypeError as error:
        item, label = next((item, label) for item, label in enumerate(values) if not _hashable(label))
        raise InvalidArgumentError(
            f"{name} has the label {label!r} at item {item} (counted from 0), and a {type(label).__name__}"
            " cannot be hashed: give numbers, strings or tuples."
        ) from error
    for label, code in numbers.items():
        if is_missing(label):
            raise InvalidArgumentError(
                f"{name} has the label {label!r} at item {np.argmax(codes == code)} (counted from 0),"
                " which is not a cluster: leave the item out on both sides, or, if it is a cluster of"
                " its own, give it a label that no other item has."
            )
    return codes, np.bincount(codes, minlength=len(numbers)).astype(np.int64)


def _hashable(label: object) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _documents(documents: Iterable[ClusterLabels], name: str) -> Sequence[ClusterLabels]:
    if isinstance(documents, str | bytes | Mapping | AbstractSet) or not isinstance(documents, Iterable):
        raise InvalidArgumentError(
            f"{name} must be a list with the labels of each document,"
            f" but a {type(documents).__name__} was given."
        )
    return list(documents)
