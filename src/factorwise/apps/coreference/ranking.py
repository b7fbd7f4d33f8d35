"""An antecedent ranker: the probability that a mention refers to each earlier one or begins a new entity.

This is a log-linear model that maximizes the marginal likelihood of the true antecedents. It uses word
features, which features of whole clusters cannot. Its probabilities become features of pairs and clusters, so
that SampleRank learns how far to trust them relative to features of whole clusters. For training, these
scores come from rankers that were not trained on the discourse.

Implements: durrett2013easy, Sec. 2 (likelihood of all true antecedents, with costs of mistakes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.coreference.documents import Discourse
from factorwise.apps.coreference.mentions import mention_table
from factorwise.apps.coreference.ranking_features import HASHED, RankedDiscourse, rank_discourse
from factorwise.kernels.text.antecedents import GROUPS, learn_antecedents, score_antecedents
from factorwise.rng import Stream
from factorwise.types import Bools, Float64s, Int64s
from factorwise.variables.pair_table import PairTable

FOLDS = 5
PASSES, AVERAGED = 4, 2  # passes over the training data, and how many of the last ones are averaged
RATE = 0.3
FEWEST = 4  # minimum number of occurrences in training for a head to be a word of the vocabulary
_PARTS = ("plain", "places", "hashed", "words")
_ODDS = (-5.0, -3.0, -1.5, 0.0, 1.5, 3.0)  # bin edges of log-odds
_SHARES = (0.01, 0.05, 0.15, 0.35, 0.65, 0.9)  # bin edges of probabilities
_OPENS = {"surely": 0.9, "probably": 0.6, "perhaps": 0.3}  # thresholds of the probability of a new entity


class Antecedents(NamedTuple):
    """The scores of a ranker for a discourse.

    scores : float64[n, n]
        Score of each earlier mention (column) as antecedent; on the diagonal, of a new entity; else -inf.
    """

    scores: Float64s

    def probabilities(self) -> Float64s:
        """Return the probability of each antecedent; rows sum to one."""
        odds: Float64s = np.exp(self.scores - self.scores.max(axis=1, keepdims=True))
        shares: Float64s = odds / odds.sum(axis=1, keepdims=True)
        return shares

    def together(self) -> Float64s:
        """Return the probability of each pair of mentions that chains of antecedents connect them.

        This is exact: a mention is connected to an earlier one if its antecedent is.
        """
        shares = self.probabilities()
        joined: Float64s = np.eye(len(shares))
        for mention in range(1, len(shares)):
            joined[mention, :mention] = shares[mention, :mention] @ joined[:mention, :mention]
            joined[:mention, mention] = joined[mention, :mention]
        return joined

    def opens(self) -> dict[str, Bools]:
        """Return which mentions begin a new entity surely, probably and perhaps, by probability."""
        chance = self.probabilities().diagonal()
        return {name: chance > least for name, least in _OPENS.items()}

    def pair_features(self) -> dict[str, Bools]:
        """Return features of all pairs: bins of log-odds and probabilities, and the first two ranks."""
        n = len(self.scores)
        later, earlier = np.tril_indices(n, -1)
        odds = (self.scores - self.scores.diagonal()[:, None])[later, earlier]
        bins = np.searchsorted(_ODDS, odds)
        shares = np.searchsorted(_SHARES, self.probabilities()[later, earlier])
        among = self.scores.copy()
        np.fill_diagonal(among, -np.inf)
        rank = np.argsort(np.argsort(-among, axis=1, kind="stable"), axis=1)[later, earlier]
        features = {f"ranked: log-odds {_bin_name(_ODDS, k)}": bins == k for k in range(len(_ODDS) + 1)}
        features |= {
            f"ranked: probability {_bin_name(_SHARES, k)}": shares == k for k in range(1, len(_SHARES) + 1)
        }
        return features | {
            "ranked: best of all": self.scores.argmax(axis=1)[later] == earlier,
            "ranked: first": rank == 0,
            "ranked: second": rank == 1,
        }


class AntecedentRanker(NamedTuple):
    """The weights of the ranker, and its vocabulary of heads."""

    words: frozenset[str]
    plain: Float64s
    hashed: Float64s

    @classmethod
    def untrained(cls, n_features: int, words: frozenset[str] = frozenset()) -> Self:
        """Return a ranker whose weights are all zero."""
        return cls(words, np.zeros((1 + GROUPS + GROUPS**2, n_features)), np.zeros(HASHED))

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file; only nonzero hashed weights are included."""
        known = np.flatnonzero(self.hashed)
        words = "\n".join(sorted(self.words)).encode("utf-8", "surrogatepass")
        return {
            "ranker_plain": self.plain,
            "ranker_places": known.astype(np.int32),
            "ranker_hashed": self.hashed[known],
            "ranker_words": np.frombuffer(words, np.uint8),
        }

    @classmethod
    def from_parts(cls, parts: Mapping[str, NDArray[Any]]) -> Self | None:
        """Restore a ranker from the output of `parts`; return None if the arrays are invalid."""
        try:
            plain, places, values, words = (parts[f"ranker_{name}"] for name in _PARTS)
            sound = (
                len(parts) == len(_PARTS)
                and plain.ndim == 2
                and len(plain) == 1 + GROUPS + GROUPS**2
                and plain.dtype == values.dtype == np.float64
                and places.dtype == np.int32
                and places.ndim == values.ndim == 1
                and len(places) == len(values)
                and bool(np.isfinite(plain).all() and np.isfinite(values).all())
                and bool((places >= 0).all() and (places < HASHED).all())
                and words.dtype == np.uint8
            )
            known = words.tobytes().decode("utf-8", "surrogatepass").split("\n") if sound else []
        except (LookupError, ValueError):
            return None
        if not sound:
            return None
        hashed = np.zeros(HASHED)
        hashed[places] = values
        return cls(frozenset(known), np.ascontiguousarray(plain), hashed)

    def rank(self, discourse: Discourse, table: PairTable) -> Antecedents:
        """Score the antecedents of all mentions of a discourse, given the feature table of its pairs."""
        return self._rank(rank_discourse(discourse, table, self.words))

    def _rank(self, ranked: RankedDiscourse) -> Antecedents:
        n = len(ranked.group)
        scores = np.full((n, n), -np.inf)
        for mention in range(n):
            score_antecedents(*ranked, self.plain, self.hashed, mention, scores[mention])
        return Antecedents(scores)


def train_ranker(
    discourses: Sequence[Discourse], tables: Sequence[PairTable], *, seed: int
) -> tuple[AntecedentRanker, list[Antecedents]]:
    """Return a ranker trained on all discourses, and cross-fitted scores of each discourse.

    There must be two or more discourses; each is scored by a ranker trained on the other folds.
    """
    words = frequent_heads(discourses)
    ranked = [
        rank_discourse(discourse, table, words) for discourse, table in zip(discourses, tables, strict=True)
    ]
    truths = [discourse.truth().astype(np.int64) for discourse in discourses]
    width = tables[0].n_features
    folds = min(FOLDS, len(ranked))
    seen: list[Antecedents] = [Antecedents(np.empty((0, 0)))] * len(ranked)
    for fold in range(folds):
        others = [number for number in range(len(ranked)) if number % folds != fold]
        ranker = _learn(ranked, truths, others, AntecedentRanker.untrained(width, words), seed)
        for number in range(fold, len(ranked), folds):
            seen[number] = ranker._rank(ranked[number])
    everything = range(len(ranked))
    return _learn(ranked, truths, everything, AntecedentRanker.untrained(width, words), seed), seen


def frequent_heads(discourses: Sequence[Discourse]) -> frozenset[str]:
    """Return the heads that occur often enough to be in the vocabulary."""
    counts = Counter(one.head for discourse in discourses for one in mention_table(discourse).described)
    return frozenset(word for word, count in counts.items() if count >= FEWEST)


def _learn(
    ranked: Sequence[RankedDiscourse],
    truths: Sequence[Int64s],
    chosen: Sequence[int],
    ranker: AntecedentRanker,
    seed: int,
) -> AntecedentRanker:
    """Train on the chosen discourses, shuffled in each pass; average the weights of the last passes."""
    plain, hashed = ranker.plain, ranker.hashed
    squares = np.zeros_like(plain), np.zeros_like(hashed)
    sums = np.zeros_like(plain), np.zeros_like(hashed)
    for number in range(PASSES):
        stream = Stream(seed, number)
        for index in sorted(chosen, key=lambda _: stream.uniform()):
            scores = np.zeros(len(truths[index]))
            learn_antecedents(*ranked[index], truths[index], plain, hashed, *squares, RATE, scores)
            if number >= PASSES - AVERAGED:
                for total, weights in zip(sums, (plain, hashed), strict=True):
                    total += weights
    visits = AVERAGED * len(chosen)
    return AntecedentRanker(ranker.words, sums[0] / visits, sums[1] / visits)


def _bin_name(bounds: Sequence[float], number: int) -> str:
    if number == 0:
        return f"up to {bounds[0]:g}"
    return (
        f"above {bounds[-1]:g}" if number == len(bounds) else f"{bounds[number - 1]:g} to {bounds[number]:g}"
    )
