"""Named features of candidate pairs: what a relational model learns to weigh.

Every feature is 0 or 1: numbers enter by "at least so much" at several heights, because no answer is a
straight line of a similarity and because online learners want features of one size. Where a pair stands
among its rivals says more than how similar it is, and holds for other ontologies too, so its places among
all candidates of either concept are features of their own.

Rarity and lexicon come from the two ontologies alone. Anchors, the pairs that the neighbours of others are
judged by, come from an untrained score at first; matches that are found to be sure can take their place.
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
LEADS = (0.0, 0.05, 0.15, 0.3)  # over the rivals of both concepts
ROUNDS = 2  # of finding anchors by what the last ones say
ANCHOR = 0.85  # first score of a pair that others are judged by


@dataclass(frozen=True, slots=True, eq=False)
class PairFeatures:
    """Features of pairs of concepts.

    values : float64[pairs, features]
        Zeros and ones.
    names
        What each feature says.
    score : float64[pairs]
        An untrained guess of how well each pair matches, from 0 up: what the places were taken from.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    score: NDArray[np.float64]


class PairEvidence:
    """What names, texts and neighbours say about the pairs of `candidate_pairs`.

    A concept's rivals are sought among ``pairs`` (number on the left, number on the right): give all
    candidates at once.
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
            Numbers of the pairs by which the neighbours of others are judged; None: those that an untrained
            score takes for sure.
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
        """Return what the neighbours of each pair say, and an untrained score of the pairs."""
        around = self.structure.columns(self.pairs, anchored)
        by_place = 0.5 * around["above meet"] + 0.3 * around["below share"] + 0.2 * around["ancestors share"]
        return around, self.by_name + 0.15 * by_place + 0.3 * self.by_text


def pair_features(
    left: ConceptTable, right: ConceptTable, pairs: Ints, *, lexicon: Lexicon | None = None
) -> PairFeatures:
    """Return the features of pairs, judged by an untrained score of their neighbours."""
    return PairEvidence(left, right, pairs, lexicon=lexicon).features()


def _standings(prefix: str, score: Floats, pairs: Ints) -> dict[str, NDArray[np.float64]]:
    """How a pair stands among its rivals by one score, as features; zero says nothing."""
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
