"""How well predicted matches between two ontologies agree with a reference, at one confidence or all.

A match is a pair of a left and a right concept: ids, names, or any hashable objects. A concept may be matched
more than once; a predicted pair is correct if the reference contains it, in the same order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.metrics.clustering import is_missing
from factorwise.metrics.sequence import Score
from factorwise.types import Float64s, Int64s

Pair: TypeAlias = tuple[Hashable, Hashable]


class OperatingPoint(NamedTuple):
    """A confidence, and the score of the matches with that confidence or more."""

    threshold: float
    score: Score


@dataclass(frozen=True, slots=True)
class MatchCurve:
    """Precision and recall as less and less confident matches are included.

    threshold
        The distinct confidences from high to low, shape (points,).
    right, predicted
        Number of matches with that confidence or more, the correct ones and all, shape (points,).
    support
        Number of matches of the reference.
    """

    threshold: Float64s
    right: Int64s
    predicted: Int64s
    support: int

    @property
    def precision(self) -> Float64s:
        """Share of the included matches that are correct, shape (points,)."""
        return self.right / self.predicted

    @property
    def recall(self) -> Float64s:
        """Share of the reference that is found, shape (points,); never decreases."""
        return self.right / self.support

    @property
    def f1(self) -> Float64s:
        """Harmonic mean of precision and recall, shape (points,)."""
        return 2 * self.right / (self.predicted + self.support)

    @property
    def best(self) -> OperatingPoint:
        """The point with the highest F1; of several such points the one with the fewest matches.

        Without any matches the threshold is infinite and the score 0.
        """
        if not len(self.threshold):
            return OperatingPoint(np.inf, Score.of(0, self.support, 0))
        return self.at(int(np.argmax(self.f1)))

    def at(self, point: int) -> OperatingPoint:
        """Return one point of the curve, counted from the highest confidence."""
        score = Score.of(int(self.right[point]), self.support, int(self.predicted[point]))
        return OperatingPoint(float(self.threshold[point]), score)


def score_matches(
    reference: Iterable[Pair],
    predicted: Iterable[Pair],
    confidences: ArrayLike | None = None,
    *,
    threshold: float = -np.inf,
) -> Score:
    """Score predicted matches; with confidences, those of at least ``threshold``.

    >>> score_matches([("ear", "Ohr"), ("eye", "Auge")], [("ear", "Ohr"), ("eye", "Ei")])
    Score(precision=0.5, recall=0.5, f1=0.5, support=2, predicted=2)
    """
    require(not np.isnan(threshold), "threshold", threshold, "a number")
    wanted = _reference(reference)
    pairs = list(_checked(predicted, "predicted"))
    if confidences is None:
        if threshold != -np.inf:
            raise InvalidArgumentError(
                f"a threshold of {threshold!r} was given without confidences to compare with it: give"
                " one confidence for each predicted pair, or no threshold."
            )
        kept = pairs
    else:
        enough = _confidences(confidences, len(pairs)) >= threshold
        kept = [pair for pair, keep in zip(pairs, enough.tolist(), strict=True) if keep]
    return Score.of(sum(pair in wanted for pair in kept), len(wanted), len(kept))


def match_curve(reference: Iterable[Pair], predicted: Iterable[Pair], confidences: ArrayLike) -> MatchCurve:
    """Return precision and recall at each confidence; matches of equal confidence are included together.

    >>> pairs = [("ear", "Ohr"), ("eye", "Ei"), ("eye", "Auge")]
    >>> curve = match_curve([("ear", "Ohr"), ("eye", "Auge")], pairs, [0.9, 0.2, 0.6])
    >>> curve.precision.round(2).tolist(), curve.recall.tolist(), curve.best.threshold
    ([1.0, 1.0, 0.67], [0.5, 1.0, 1.0], 0.6)
    """
    wanted = _reference(reference)
    pairs = list(_checked(predicted, "predicted"))
    confidence = _confidences(confidences, len(pairs))
    order = np.argsort(-confidence, kind="stable")
    falling = confidence[order]
    right = np.cumsum(np.array([pair in wanted for pair in pairs], dtype=np.int64)[order])
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], len(falling) > 0))
    return MatchCurve(falling[last], right[last], last + 1, len(wanted))


def best_threshold(
    reference: Iterable[Pair], predicted: Iterable[Pair], confidences: ArrayLike
) -> OperatingPoint:
    """Return the confidence from which on matches should be kept for the highest F1, and their score.

    Choose it on matches other than those that are finally scored.
    """
    return match_curve(reference, predicted, confidences).best


def _reference(pairs: Iterable[Pair]) -> frozenset[Pair]:
    wanted = frozenset(_checked(pairs, "reference"))
    if not wanted:
        raise InvalidArgumentError(
            "reference has no pairs, so there is nothing to compare with: give at least one."
        )
    return wanted


def _checked(pairs: Iterable[Pair], name: str) -> dict[Pair, int]:
    """Check pairs; return each with its position."""
    positions: dict[Pair, int] = {}
    for position, pair_given in enumerate(pairs):
        pair = _pair(pair_given, position, name)
        if pair in positions:
            raise InvalidArgumentError(
                f"{name} has the pair {pair!r} twice, at {positions[pair]} and {position} (counted from"
                " 0): give each pair once, with the highest of its confidences."
            )
        positions[pair] = position
    return positions


def _pair(entry: object, position: int, name: str) -> Pair:
    """Return an entry of a list of pairs as a tuple of two concepts."""
    if not isinstance(entry, tuple | list | np.ndarray) or len(entry) != 2:
        wrong = "which is not a pair"
    else:
        pair: Pair = (entry[0], entry[1])
        try:
            hash(pair)
        except TypeError:
            wrong = "in which a concept cannot be hashed"
        else:
            if not any(map(is_missing, pair)):
                return pair
            wrong = "in which a concept is missing"
    raise InvalidArgumentError(
        f"{name} has {entry!r} at {position} (counted from 0), {wrong}: give a left and a right"
        " concept, as in ('MA_0000270', 'NCI_C33736'); give confidences as a separate argument."
    )


def _confidences(confidences: ArrayLike, n_pairs: int) -> Float64s:
    try:
        array = np.asarray(confidences, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"confidences must be numbers: {error}.") from error
    if array.shape != (n_pairs,):
        raise ShapeError(
            f"confidences has the shape {array.shape}, but there are {n_pairs} predicted pairs: give"
            " one confidence for each of them, in the same order."
        )
    if np.isnan(array).any():
        raise InvalidArgumentError(
            f"confidences has NaN at {np.argmax(np.isnan(array))} (counted from 0): give a number for"
            " every predicted pair, or leave the pair out."
        )
    return array
