"""Compute the named features of candidate pairs, which the model weights.

Every feature is 0 or 1. Numbers are binarized by several thresholds, because the score is not linear in a
similarity and online learning needs features of the same scale. The rank of a pair among its rivals is more
informative than its similarity and transfers to other ontologies, so ranks among the candidates of either
concept are features too.

Word rarity and lexicon are computed from the two ontologies alone. Anchors (pairs that are assumed to match,
by which the neighbors of other pairs are compared) come from an untrained score, or from confident matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from factorwise.apps.alignment.concepts import ConceptTable
from factorwise.apps.alignment.lexicon import OFTEN, ONCE, Lexicon
from factorwise.apps.alignment.names import NameEvidence
from factorwise.apps.alignment.structure import (
    StructureEvidence,
    anchor_matrix,
    anchors,
    standing,
)
from factorwise.apps.alignment.texts import shared_instances, text_vectors
from factorwise.apps.alignment.vectors import cosines, letter_terms, tfidf, word_terms
from factorwise.errors import ShapeError
from factorwise.types import Floats, Ints

HEIGHTS: Mapping[str, Sequence[float]] = {
    "overlap": (0.4, 0.6, 0.75, 0.9),
    "covered": (0.6, 0.9),
    "explained overlap": (0.6, 0.75, 0.9),
    "unmatched replaced": (ONCE, OFTEN),
    "letters": (0.3, 0.45, 0.6, 0.75, 0.9),
    "words": (0.3, 0.5, 0.7, 0.9),
    "text": (0.1, 0.2, 0.3, 0.45, 0.6),
    "text below": (0.1, 0.2, 0.3, 0.45, 0.6),
    "shared instances": (0.05, 0.2, 0.5),
    "children share": (0.34, 0.67),
    "parts share": (0.34, 0.67),
    "below share": (0.34, 0.67),
    "ancestors share": (0.25, 0.5, 0.75),
    "parents share": (),
    "wholes share": (),
    "above share": (),
}
LEADS = (0.0, 0.05, 0.15, 0.3)  # thresholds of the lead over the best rival
ROUNDS = 2  # rounds in which anchors are found, given the previous ones
ANCHOR = 0.85  # least untrained score of an anchor


@dataclass(frozen=True, slots=True, eq=False)
class PairFeatures:
    """Features of pairs of concepts.

    values : float64[pairs, features]
        Zeros and ones.
    names
        The name of each feature.
    score : float64[pairs]
        Untrained score of each pair, from 0 up, from which the ranks are computed.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    score: NDArray[np.float64]


class PairEvidence:
    """Evidence for candidate pairs from names, texts and neighbors.

    The rivals of a concept are found among ``pairs`` (index on the left, index on the right), so pass all
    candidate pairs at once.
    """

    def __init__(
        self, left: ConceptTable, right: ConceptTable, pairs: Ints, *, lexicon: Lexicon | None = None
    ) -> None:
        self.pairs = np.asarray(pairs)
        if self.pairs.ndim != 2 or self.pairs.shape[1] != 2:
            raise ShapeError(f"pairs must have the shape (pairs, 2), but {self.pairs.shape} was given.")
        self.shape = len(left), len(right)
        lexicon = lexicon or Lexicon.of(left, right)
        raw = NameEvidence(left, right, lexicon).columns(self.pairs)
        raw["letters"] = cosines(*tfidf(letter_terms(left), letter_terms(right)), self.pairs)
        raw["words"] = cosines(*tfidf(word_terms(left, lexicon), word_terms(right, lexicon)), self.pairs)
        raw["text"] = cosines(*text_vectors(left, right), self.pairs)
        raw["text below"] = cosines(*text_vectors(left, right, below=True), self.pairs)
        raw["shared instances"] = shared_instances(left, right, self.pairs)
        self.raw = raw
        by_name = (
            0.5 * raw["explained overlap"] * raw["covered"] + 0.3 * raw["overlap"] + 0.2 * raw["letters"]
        )
        self.by_name = np.where(raw["contrast"] > 0, 0.7, 1.0) * by_name
        self.by_text = np.maximum(raw["text"], raw["text below"])
        self.structure = StructureEvidence(left, right)

    def features(self, matches: Ints | None = None) -> PairFeatures:
        """Return the features of the pairs.

        matches : int[matches]
            Indices of the pairs that are used as anchors; None to choose those with a high untrained
            score.
        """
        if matches is None:
            score = self.by_name
            for _ in range(ROUNDS):
                around, score = self._placed(anchors(score, self.pairs, self.shape, ANCHOR))
        else:
            around, score = self._placed(anchor_matrix(self.pairs[matches], self.shape))
        raw = self.raw | around
        raw |= _standings("", score, self.pairs)
        raw |= _standings("by name ", self.by_name, self.pairs)
        raw |= _standings("by text ", self.by_text, self.pairs)
        raw["text on both sides"] = (self.by_text > 0).astype(np.float64)
        binned = _binned(raw)
        shape = len(self.pairs), len(binned)
        return PairFeatures(np.stack([*binned.values()], axis=1).reshape(shape), tuple(binned), score)

    def _placed(self, anchored: csr_array) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
        """Return the evidence from neighbors of each pair, and the untrained score of the pairs."""
        around = self.structure.columns(self.pairs, anchored)
        by_place = 0.5 * around["above meet"] + 0.3 * around["below share"] + 0.2 * around["ancestors share"]
        return around, self.by_name + 0.15 * by_place + 0.3 * self.by_text


def pair_features(
    left: ConceptTable, right: ConceptTable, pairs: Ints, *, lexicon: Lexicon | None = None
) -> PairFeatures:
    """Return the features of pairs, with anchors chosen by the untrained score."""
    return PairEvidence(left, right, pairs, lexicon=lexicon).features()


def _standings(prefix: str, score: Floats, pairs: Ints) -> dict[str, NDArray[np.float64]]:
    """Return the rank of each pair among its rivals by one score, as features; all 0 for a score of 0."""
    (left_place, left_lead), (right_place, right_lead) = (standing(score, pairs, side) for side in (0, 1))
    place, lead = np.maximum(left_place, right_place), np.minimum(left_lead, right_lead)
    found = {
        f"{prefix}best of left": left_place == 0,
        f"{prefix}best of right": right_place == 0,
        f"{prefix}best of both": place == 0,
        f"{prefix}among three best of both": place <= 2,
    }
    found |= {f"{prefix}best of both by {height:g}": (place == 0) & (lead > height) for height in LEADS}
    return {name: (value & (score > 0)).astype(np.float64) for name, value in found.items()}


def _binned(raw: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    found = {}
    for name, value in raw.items():
        if name in HEIGHTS:
            for height in HEIGHTS[name]:
                found[f"{name} >= {height:g}"] = (value >= height).astype(np.float64)
        else:
            found[name] = value
    return found
