"""Estimate precision and recall, with intervals, from questions that were drawn at random.

Links are drawn from strata of their initial score, within and between entities. Links settled by any answer
are known. All other links have a probability, and the answers to random questions show how far these are off:
the log odds of each cell are shifted by an unknown amount, whose posterior is computed. Other questions were
chosen because they were uncertain, so they are not used for the shifts. But their answers correct errors, so
the remaining links are right more often than their probabilities suggest: upper bounds assume no further
errors in cells where no random answer has found one. Pairs that are not linked are not covered: recall is
among the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.regions import LinkedRecords
from factorwise.apps.resolution.curation.strata import LinkStrata
from factorwise.apps.resolution.curation.teaching import probability_of
from factorwise.types import Bools, Floats, Ints

LEVEL = 0.9  # probability of the intervals
SAMPLED = 500  # links of a cell whose probabilities represent all of its links
SPREAD = 1.5  # prior standard deviation of the shift of a cell's log odds
_SHIFTS = np.linspace(-6.0, 6.0, 121)
_DRAWS = 2_000


class Interval(NamedTuple):
    """An estimate, and the bounds of its 90% interval."""

    estimate: float
    low: float
    high: float


class Quality(NamedTuple):
    """Precision and recall of pairs among the candidates.

    answers
        Number of answers to random questions behind the estimate.
    to_halve
        Estimated number of additional answers that would halve the wider interval.
    """

    precision: Interval
    recall: Interval
    answers: int
    to_halve: int


class RandomAnswers(NamedTuple):
    """Answers to random questions, in columns.

    left, right : int[answers]
        The records.
    together, probability
        Whether they were in one entity when the question was asked, and the match probability.
    same
        Whether the answer was that they are one entity.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    together: NDArray[np.bool_]
    probability: NDArray[np.float64]
    same: NDArray[np.bool_]

    @classmethod
    def of(cls, *columns: Sequence[Any]) -> RandomAnswers:
        """Convert columns to arrays."""
        kinds = (np.int64, np.int64, np.bool_, np.float64, np.bool_)
        made: Any = (np.array(column, kind) for column, kind in zip(columns, kinds, strict=True))
        return cls(*made)


class CellAnswers(NamedTuple):
    """Answers about links, in columns: their cells, the probabilities before the answer, and the answers.

    The number of a cell is twice the stratum, plus one within entities.
    """

    cell: Ints
    probability: Floats
    same: Bools


def quality_of(
    records: LinkedRecords,
    strata: LinkStrata,
    labels: Ints,
    known: tuple[Ints, Bools],
    answers: RandomAnswers,
    seed: int,
) -> Quality:
    """Estimate precision and recall of the entities of linked records.

    known
        The links that are known, and whether they are matches.
    """
    graph, stratum = records.graph, strata.of_links
    inside = labels[graph.first] == labels[graph.second]
    links, same = known
    there = inside[links]
    settled = (int((same & there).sum()), int((same & ~there).sum()), int((~same & there).sum()))
    cell = 2 * stratum + inside
    cell[links] = -1
    link = graph.find_pairs(answers.left, answers.right)
    linked = link >= 0
    asked = 2 * stratum[link[linked]].astype(np.int64) + answers.together[linked]
    random = np.random.default_rng(seed)
    places = [np.flatnonzero(cell == k) for k in range(strata.cells)]
    sampled = [random.choice(place, min(SAMPLED, len(place)), replace=False) for place in places]
    return estimate_quality(
        settled,
        np.array([len(place) for place in places]),
        [probability_of(records.scores[place]) for place in sampled],
        CellAnswers(asked, answers.probability[linked], answers.same[linked]),
        seed,
    )


def estimate_quality(
    known: tuple[int, int, int],
    unknown: Ints,
    probability: Sequence[Floats],
    answers: CellAnswers,
    seed: int = 0,
) -> Quality:
    """Estimate precision and recall.

    known
        Counts of the links that answers have settled: matches within an entity, matches between entities, and
        non-matches within an entity.
    unknown : int[cells]
        The current number of other links in each cell.
    probability
        The match probabilities of these links in each cell, or of a sample of them.
    """
    random = np.random.default_rng(seed)
    same = np.zeros((len(unknown), _DRAWS), np.int64)
    told = np.zeros(len(unknown))  # information of an answer in a cell, relative to that about its shift
    for cell in np.flatnonzero(unknown).tolist():
        mine = answers.cell == cell
        odds, said = _log_odds(answers.probability[mine]), answers.same[mine]
        likely = -0.5 * (_SHIFTS / SPREAD) ** 2
        likely -= np.logaddexp(0.0, np.where(said, -1, 1) * (odds + _SHIFTS[:, None])).sum(axis=1)
        weight = np.exp(likely - likely.max())
        weight /= weight.sum()
        chance = probability_of(_log_odds(probability[cell]) + _SHIFTS[:, None])
        variance = weight @ _SHIFTS**2 - (weight @ _SHIFTS) ** 2
        told[cell] = variance * (weight @ (chance * (1.0 - chance)).mean(axis=1))
        drawn = random.choice(chance.mean(axis=1), _DRAWS, p=weight)
        same[cell] = random.binomial(unknown[cell], drawn)
    total = int(unknown[1::2].sum()) + known[0] + known[2]
    precision, recall = _shares(same, known, total)
    to_halve = _answers_to_halve(same, known, unknown, told)
    said = (np.bincount(answers.cell[answers.same == one], minlength=len(unknown)) for one in (True, False))
    found, wrong = (counts > 0 for counts in said)
    best = same.copy()
    best[::2][~found[::2]] = 0
    best[1::2][~wrong[1::2]] = unknown[1::2][~wrong[1::2], None]
    high = _shares(best, known, total)
    precision, recall = (
        one._replace(high=most.high) for one, most in zip((precision, recall), high, strict=True)
    )
    return Quality(precision, recall, len(answers.cell), to_halve)


def _answers_to_halve(
    same: NDArray[np.int64], known: tuple[int, int, int], unknown: Ints, told: Floats
) -> int:
    """Return how many more random answers would halve the wider interval; at most the number of links.

    An answer falls into a random stratum, and there into a cell in proportion to its number of links. The
    variance of a cell shrinks as that of a normal distribution does with more observations.
    """
    total = int(unknown[1::2].sum()) + known[0] + known[2]
    by_stratum = unknown.reshape(-1, 2).sum(axis=1)
    share = unknown / np.repeat(np.maximum(by_stratum, 1), 2) / max(np.count_nonzero(by_stratum), 1)
    mean = same.mean(axis=1, keepdims=True)
    widths = [one.high - one.low for one in _shares(same, known, total)]
    wider = int(np.argmax(widths))
    answers = 1
    while answers < unknown.sum():
        shrunk = mean + (same - mean) / np.sqrt(1.0 + answers * share * told)[:, None]
        found = _shares(shrunk, known, total)[wider]
        if found.high - found.low <= 0.5 * widths[wider]:
            break
        answers += 1 + answers // 5
    return min(answers, int(unknown.sum()))


def _shares(same: Floats | Ints, known: tuple[int, int, int], total: int) -> tuple[Interval, Interval]:
    """Return precision and recall from draws of the numbers of matches in each cell.

    total
        Number of links within entities.
    """
    within, apart = same[1::2].sum(axis=0) + known[0], same[::2].sum(axis=0) + known[1]
    return _interval(within / max(total, 1)), _interval(within / np.maximum(within + apart, 1))


def _log_odds(probability: Floats) -> Floats:
    clipped = np.clip(probability, 1e-6, 1.0 - 1e-6)
    return np.log(clipped) - np.log1p(-clipped)


def _interval(draws: Floats) -> Interval:
    low, high = np.quantile(draws, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return Interval(float(np.median(draws)), float(low), float(high))
