"""What bethe_handwriting.py works with: letters, chains trained on some words, energies, a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from factorwise.apps.tagging import ChainCRF
from factorwise.apps.tagging.features.encoders import as_sentences
from factorwise.apps.tagging.global_tagger import node_scores, transition_table
from factorwise.datasets.local import find_data
from factorwise.inference.message_passing.projection import (
    ChainsBase,
    FeatureWeights,
    Measurement,
    NearestParts,
    RandomFourierMeanMap,
    project_chains,
)
from factorwise.kernels.compile.threads import Team
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.projections.features import LabeledChains, learn_feature_weights
from factorwise.types import Bools, Floats, Ints

LETTERS = 26
Text = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Words:
    """Handwritten words (ocr_letters).

    pixels : float32[letters, 128]
    label : int64[letters]
    start : int64[words + 1]
    fold : int64[words]
    """

    pixels: Floats
    label: Ints
    start: Ints
    fold: Ints

    @classmethod
    def read(cls) -> Words:
        """Read them from the data directory."""
        with np.load(find_data("ocr_letters") / "letters.npz") as arrays:
            pixels = np.unpackbits(arrays["pixels"], axis=1).astype(np.float32)
            others = [arrays[name].astype(np.int64) for name in ("label", "word_start", "fold")]
        return cls(pixels, *others)

    @cached_property
    def text(self) -> list[Text]:
        """Labels of each word."""
        return [tuple(self.label[a:b].tolist()) for a, b in zip(self.start, self.start[1:], strict=False)]

    @cached_property
    def strings(self) -> list[Text]:
        """The distinct words."""
        return sorted(set(self.text))

    def vocabulary(self, which: Ints) -> list[Text]:
        """The distinct words among some."""
        return sorted({self.text[word] for word in which.tolist()})

    def images(self, which: Ints) -> list[Floats]:
        """Pixels of some of the words."""
        return [self.pixels[self.start[word] : self.start[word + 1]] for word in which.tolist()]

    def labels(self, which: Ints) -> Ints:
        """Labels of some of the words, one after the other."""
        return np.concatenate([self.text[word] for word in which.tolist()])

    def mean_map(self, rows: int, length: float) -> Floats:
        """Random Fourier mean map of each word, after a one: float64[words, 1 + rows]."""
        drawn = RandomFourierMeanMap.draw(self.pixels.shape[1], rows, length=length)
        return np.stack([drawn.features(image) for image in self.images(np.arange(len(self.text)))])


def chains(words: Words, train: Ints, test: Ints, team: Team, c2: float) -> ChainsBase:
    """Train a chain on some words by maximum likelihood; return its scores of others."""
    crf = ChainCRF(
        c1=0.0,
        c2=c2,
        max_iterations=150,
        all_possible_states=True,
        all_possible_transitions=True,
        n_jobs=team.threads,
    ).fit(words.images(train), [words.text[word] for word in train.tolist()])
    rows, start = crf.encoder_.encode(as_sentences(words.images(test)))
    seen = np.array(crf.classes_)
    edge, table = transition_table(crf.tagger_), np.full((LETTERS, LETTERS), -30.0)
    table[np.ix_(seen, seen)] = edge
    nodes = []
    for scores in node_scores(crf.tagger_, rows, start, None):
        nodes.append(np.full((len(scores), LETTERS), -30.0))  # a letter that training did not show
        nodes[-1][:, seen] = scores
    return ChainsBase(nodes, table, team)


class Way(NamedTuple):
    """How to draw chains to words.

    ordered
        By the marginals of all places, L^w (Eq. 22); else by expected counts of letters, L^u (Eq. 21).
    candidates
        How many words to try.
    reach
        Distance for each letter beyond which no word is near.
    any_length
        Whether words of another length, for which Eq. 22 is not defined, stay in Eq. 21.
    """

    ordered: bool
    candidates: int
    reach: float = np.inf
    any_length: bool = False

    @property
    def name(self) -> str:
        """What the paper calls it."""
        return "L^w" if self.ordered else "L^u"


def nearest(base: ChainsBase, vocabulary: Sequence[Text], way: Way) -> NearestParts:
    """Return the energy, with one part for each chain."""
    length = np.diff(base.start)
    kinds, which = np.unique(np.zeros_like(length) if way.any_length else length, return_inverse=True)
    sets = []
    for kind in kinds.tolist():
        marked = [np.eye(LETTERS)[list(word)] for word in vocabulary if kind in (0, len(word))]
        vectors = [each.ravel() if way.ordered else each.sum(axis=0) for each in marked]
        sets.append(np.array(vectors).reshape(-1, kind * LETTERS if way.ordered else LETTERS))
    measurement = (
        Measurement.identity(base.layout.node_size)
        if way.ordered
        else Measurement.label_counts_of_each(base.layout, base.start)
    )
    return NearestParts(measurement, sets, which, reach=way.reach * length, name=way.name)


def accuracy(path: Ints, truth: Ints) -> float:
    """Share of the letters that are right, in percent."""
    right: Bools = path == truth
    return 100.0 * float(right.mean())


class Scored(NamedTuple):
    """Words and the scores that a chain gives them that has not seen them."""

    which: Ints
    base: ChainsBase
    vocabulary: Sequence[Text]

    def path(self) -> Ints:
        """Best paths of the chain alone."""
        return self.base.best(np.zeros(self.base.layout.node_size))


def predicted(scored: Scored, way: Way, weights: FeatureWeights, features: Floats) -> Ints:
    """Project words and return their best paths."""
    energy = nearest(scored.base, scored.vocabulary, way)
    energy = energy.with_weights(weights.at(features[scored.which])[:, 0])
    return project_chains(scored.base, energy, max_iterations=10, candidates=way.candidates).best()


def learned(
    words: Words,
    parts: Sequence[Scored],
    way: Way,
    features: Floats,
    price: float = 1e-3,
    weight: float = 3.0,
    rounds: int = 4,
) -> FeatureWeights:
    """Learn what words weigh, beginning with one weight for all."""
    groups = [
        LabeledChains(
            part.base,
            nearest(part.base, part.vocabulary, way),
            words.labels(part.which),
            features[part.which],
        )
        for part in parts
    ]
    begin = weight * np.eye(features.shape[1])[0]
    return learn_feature_weights(
        groups,
        prior=Prior(l2=price),
        begin=begin,
        rounds=rounds,
        max_iterations=10,
        candidates=way.candidates,
    )


def classified(words: Words, train: Ints, test: Ints, features: Floats) -> float:
    """Letters right if words are classified by their mean map, among the strings of their length."""
    length, right = np.diff(words.start), 0
    number = {text: code for code, text in enumerate(words.strings)}
    code = np.array([number[text] for text in words.text])
    for each in np.unique(length[test]).tolist():
        own, asked = train[length[train] == each], test[length[test] == each]
        middle = features[own].mean(axis=0)
        model = LogisticRegression(C=1e3, max_iter=500).fit(features[own] - middle, code[own])
        for word, found in zip(asked.tolist(), model.predict(features[asked] - middle).tolist(), strict=True):
            right += int(np.equal(words.strings[found], words.text[word]).sum())
    return 100.0 * right / float(length[test].sum())
