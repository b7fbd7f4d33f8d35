"""How well the predicted matches between two ontologies agree with a reference, at one or every confidence.

A match is a pair of a left and a right concept: ids, names, anything that can be hashed. A concept may be
matched more than once; a predicted pair is right if the reference has it, with left and right as they stand.
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
    """A confidence, and the score of the matches that have it or more."""

    threshold: float
    score: Score


@dataclass(frozen=True, slots=True)
class MatchCurve:
    """Precision and recall as ever less confident matches are let in.

    threshold
        The distinct confidences from high to low, shape (points,).
    right, predicted
        How many matches have that confidence or more, the right ones and all of them, shape (points,).
    support
        How many matches the reference has.
    """

    threshold: Float64s
    right: Int64s
    predicted: Int64s
    support: int

    @property
    def precision(self) -> Float64s:
        """Share of the matches let in that are right, shape (points,)."""
        return self.right / self.predicted

    @property
    def recall(self) -> Float64s:
        """Share of the reference that is found, shape (points,); never falls."""
        return self.right / self.support

    @property
    def f1(self) -> Float64s:
        """Harmonic mean of precision and recall, shape (points,)."""
        return 2 * self.right / (self.predicted + self.support)

    @property
    def best(self) -> OperatingPoint:
        """Where F1 is highest; of several such points the one with the fewest matches.

        Without any matches the threshold is infinite and the score 0.
        """
        if not len(self.threshold):
            return OperatingPoint(np.inf, Score.of(0, self.support, 0))
        return self.at(int(np.argmax(self.f1)))

    def at(self, point: int) -> OperatingPoint:
        """One point of the curve, counted from the highest confidence."""
        score = Score.of(int(self.right[point]), self.support, int(self.predicted[point]))
        return OperatingPoint(float(self.threshold[point]), score)


def score_matches(
    reference: Iterable[Pair],
    predicted: Iterable[Pair],
    confidences: ArrayLike | None = None,
    *,
    threshold: float = -np.inf,
) -> Score:
    """Precision, recall and F1 of predicted matches; with confidences, of those not below ``threshold``.

    >>> score_matches([("ear", "Ohr"), ("eye", "Auge")], [("ear", "Ohr"), ("eye", "Ei")])
    Score(precision=0.5, recall=0.5, f1=0.5, support=2, predicted=2)
    """
    require(not np.isnan(threshold), "threshold", threshold, "a number")
    wanted = _reference(reference)
    pairs = list(_checked(predicted, "predicted"))
    if confidences is None:
        if threshold != -np.inf:
            raise InvalidArgumentError(
                f"a threshold of {threshold!r} was given without confidences to hold against it:"
                " give one confidence for each predicted pair, or no threshold."
            )
        kept = pairs
    else:
        enough = _confidences(confidences, len(pairs)) >= threshold
        kept = [pair for pair, keep in zip(pairs, enough.tolist(), strict=True) if keep]
    return Score.of(sum(pair in wanted for pair in kept), len(wanted), len(kept))


def match_curve(reference: Iterable[Pair], predicted: Iterable[Pair], confidences: ArrayLike) -> MatchCurve:
    """Precision and recall at each confidence that occurs; matches of equal confidence come in together.

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
    """The confidence from which on matches should be kept for the highest F1, and the score they get.

    Choose it on matches that are not the ones to be scored in the end.
    """
    return match_curve(reference, predicted, confidences).best


def _reference(pairs: Iterable[Pair]) -> frozenset[Pair]:
    wanted = frozenset(_checked(pairs, "reference"))
    if not wanted:
        raise InvalidArgumentError(
            "reference has no pairs, so that there is nothing to compare with: give at least one."
        )
    return wanted


def _checked(pairs: Iterable[Pair], name: str) -> dict[Pair, int]:
    """Pairs in their order, each with its place."""
    places: dict[Pair, int] = {}
    for place, given in enumerate(pairs):
        pair = _pair(given, place, name)
        if pair in places:
            raise InvalidArgumentError(
                f"{name} has the pair {pair!r} twice, at {places[pair]} and {place} (counted from 0):"
                " give each pair once, of several confidences the highest."
            )
        places[pair] = place
    return places


def _pair(given: object, place: int, name: str) -> Pair:
    """Two concepts as a tuple, from what stands at a place."""
    if not isinstance(given, tuple | list | np.ndarray) or len(given) != 2:
        wrong = "which is no pair"
    else:
        pair: Pair = (given[0], given[1])
        try:
            hash(pair)
        except TypeError:
            wrong = "where a concept cannot be hashed"
        else:
            if not any(map(is_missing, pair)):
                return pair
            wrong = "where a concept is missing"
    raise InvalidArgumentError(
        f"{name} has {given!r} at {place} (counted from 0), {wrong}: give a left and a right concept, as in"
        " ('MA_0000270', 'NCI_C33736'); confidences go into an argument of their own."
    )


def _confidences(confidences: ArrayLike, n_pairs: int) -> Float64s:
    try:
        given = np.asarray(confidences, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"confidences must be numbers: {error}.") from error
    if given.shape != (n_pairs,):
        raise ShapeError(
            f"confidences has the shape {given.shape}, but there are {n_pairs} predicted pairs:"
            " give one confidence for each of them, in the same order."
        )
    if np.isnan(given).any():
        raise InvalidArgumentError(
            f"confidences has NaN at {np.argmax(np.isnan(given))} (counted from 0):"
            " give a number for every predicted pair, or leave the pair out."
        )
    return given
