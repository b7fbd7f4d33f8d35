"""Estimate, without labels, the constants with which scored pairs are clustered.

Tools that score pairs are rarely calibrated: the best threshold can be off by several nats in either
direction. Two kinds of evidence show by how much, without labels. If entities have three or more records, the
links above the right threshold close triangles: with a lower threshold false links leave triangles open, and
with a higher one true links are missing from them. And if true and false pairs are two populations, the
scores have a valley between them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from factorwise.apps.resolution.merge_odds import DEFAULT_ODDS, MergeOdds
from factorwise.apps.resolution.results.trust import describe_calibration
from factorwise.apps.resolution.scored_pairs.tables import ScoredPairs
from factorwise.types import Floats, Ints

THRESHOLDS = np.arange(-4.0, 9.0)  # log odds
OPEN_COST = 0.5  # share of closed triangles above which a record is evidence for a threshold
FEWEST_RECORDS = 50  # records with two or more links that are needed to rely on triangles
LEAST_CLOSED = 0.7  # share of closed triangles that is needed to rely on them
NEARLY_BEST = 1e-3  # relative difference up to which thresholds count as equally good
MOST_LINKS = 64  # most links of a record in the sample
MOST_WEDGES = 1_000_000

MISSING_LINK_COST = 0.03  # cost of missing links per pair of an entity, at any share of missing links
DEFAULT_UNLINKED = -1.0
STRONGEST_UNLINKED, WEAKEST_UNLINKED = -4.0, -0.05
DAMPED = 0.8  # exponent of the score: tools assume independent comparisons, so scores are too large
FLOOR = 2.0  # lowest score of a scored pair, as a multiple of the unlinked pair weight

VALLEY_WIDTH, VALLEY_STEP = 1.0, 0.25  # nats: width of the smoothing kernel, and of a bin
FEWEST_PAIRS = 100  # pairs that are needed to look for a valley
LEAST_SIDE = 0.02  # least share of the pairs on either side of a valley


class PairConstants(NamedTuple):
    """Constants that turn the log odds of pairs into scores for clustering.

    offset
        Added to the log odds of every pair; its negative is the threshold of a single pair.
    unlinked
        Unlinked pair weight: the score of two records of an entity without a scored pair.
    temperature
        Calibration temperature; it is fitted if there are labels, else 1.
    merges
        Log odds of merges, for probabilities of clusterings and pairs; they are fitted if there are labels.
    reason
        How the constants were estimated, in a phrase.
    calibration
        Whether probabilities are calibrated, in a phrase.
    """

    offset: float
    unlinked: float
    temperature: float = 1.0
    merges: MergeOdds = DEFAULT_ODDS
    reason: str = "given"
    calibration: str = describe_calibration({})

    def scores(self, log_odds: Floats) -> NDArray[np.float32]:
        """Return damped scores of pairs, because tools are overconfident if many comparisons agree.

        The score of a pair is at least `FLOOR` times the unlinked pair weight.
        """
        score = np.asarray(log_odds, np.float64) + self.offset
        damped = np.sign(score) * np.abs(score) ** DAMPED
        return np.asarray(np.maximum(damped, FLOOR * self.unlinked), np.float32)


class Closure(NamedTuple):
    """How often links above each of the `THRESHOLDS` close triangles, in a sample of the records.

    records : int64[thresholds]
        Number of records with two or more links.
    closed : float64[thresholds]
        Sum over these records of the share of pairs of their links that a third link closes.
    """

    records: NDArray[np.int64]
    closed: NDArray[np.float64]

    def share(self, place: int) -> float:
        """Return the mean share of closed triangles at a threshold."""
        return float(self.closed[place] / max(self.records[place], 1))


def estimate_constants(pairs: ScoredPairs, *, seed: int) -> PairConstants:
    """Estimate the offset and the unlinked pair weight from the scored pairs alone."""
    closure = measure_closure(pairs, seed=seed)
    worth = closure.closed - OPEN_COST * closure.records
    good = np.flatnonzero(worth >= worth.max() - NEARLY_BEST * abs(worth.max()))
    best = int(good[np.argmin(np.abs(THRESHOLDS[good]))])
    share = closure.share(best)
    if closure.records[best] >= FEWEST_RECORDS and share >= LEAST_CLOSED:
        unlinked = -MISSING_LINK_COST / max(1.0 - share, 1e-9)
        return PairConstants(
            float(-THRESHOLDS[best]),
            float(np.clip(unlinked, STRONGEST_UNLINKED, WEAKEST_UNLINKED)),
            reason=f"triangles of links, {share:.0%} of them closed",
        )
    threshold, depth = find_valley(pairs)
    offset = -float(np.clip(threshold, THRESHOLDS[0], THRESHOLDS[-1])) * (1.0 - 1.0 / depth)
    place = int(np.argmin(np.abs(THRESHOLDS + offset)))
    bipartite = closure.records[place] >= FEWEST_RECORDS and closure.closed[place] == 0.0
    reason = "a valley among the scores" if depth > 1.0 else "the scores as they are"
    if bipartite:
        reason += "; no triangle is closed, as between two sources"
    unlinked = STRONGEST_UNLINKED if bipartite else DEFAULT_UNLINKED
    return PairConstants(offset, unlinked, reason=reason)


def measure_closure(pairs: ScoredPairs, *, seed: int) -> Closure:
    """Count closed and open triangles of links above each threshold, in a sample of pairs of links."""
    linked = pairs.log_odds > THRESHOLDS[0]
    first, second, scores = pairs.first[linked], pairs.second[linked], pairs.log_odds[linked]
    wedges = _sample_wedges(first, second, scores, pairs.n_records, np.random.default_rng(seed))
    if not len(wedges.center):
        return Closure(np.zeros(len(THRESHOLDS), np.int64), np.zeros(len(THRESHOLDS)))
    key = first * pairs.n_records + second  # sorted, because the pairs are
    ends = np.sort(np.stack([wedges.one, wedges.two]), axis=0)
    wanted = ends[0] * pairs.n_records + ends[1]
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    third = np.where(key[place] == wanted, scores[place], -np.inf)
    total = _count_above(wedges.center, wedges.score)
    closed = _count_above(wedges.center, np.minimum(wedges.score, third))
    has = total > 0
    share = np.where(has, closed / np.maximum(total, 1), 0.0)
    return Closure(has.sum(axis=0), share.sum(axis=0))


class _Wedges(NamedTuple):
    """Pairs of links of one record: its number in the sample, the two neighbors, and the lower score."""

    center: NDArray[np.int64]
    one: NDArray[np.int64]
    two: NDArray[np.int64]
    score: NDArray[np.float32]


def _sample_wedges(first: Ints, second: Ints, scores: Floats, n: int, rng: np.random.Generator) -> _Wedges:
    """Sample pairs of links that share a record, about `MOST_WEDGES` at most."""
    here, there = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.argsort(here, kind="stable")
    neighbor, score = there[order], np.tile(scores, 2)[order]
    degree = np.bincount(here, minlength=n)
    start = np.cumsum(degree) - degree
    records = rng.permutation(np.flatnonzero(degree > 1))
    used = np.minimum(degree[records], MOST_LINKS)
    records = records[: max(1, int(np.searchsorted(np.cumsum(used * (used - 1) // 2), MOST_WEDGES)))]
    center, slot = _expand(start[records], degree[records])
    shuffled = np.lexsort((rng.random(len(slot)), center))
    center, slot = center[shuffled], slot[shuffled]
    kept = _rank_within(degree[records]) < MOST_LINKS
    center, slot = center[kept], slot[kept]
    used = np.minimum(degree[records], MOST_LINKS)
    later = used[center] - 1 - _rank_within(used)
    one, two = _expand(np.arange(len(slot)) + 1, later)
    lower = np.minimum(score[slot[one]], score[slot[two]])
    return _Wedges(center[one], neighbor[slot[one]], neighbor[slot[two]], lower)


def _expand(start: Ints, count: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Expand ranges that begin at ``start``: return the range number of each value, and the values."""
    number = np.repeat(np.arange(len(count)), count)
    return number, start[number] + _rank_within(count)


def _rank_within(count: Ints) -> NDArray[np.int64]:
    """Return 0, 1, ... within each of several consecutive groups."""
    return np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)


def _count_above(center: Ints, score: Floats) -> NDArray[np.int64]:
    """Count the scores of each record above each threshold: int[records, thresholds]."""
    width = len(THRESHOLDS) + 1
    level = np.searchsorted(THRESHOLDS, score, side="left")
    counts = np.bincount(center * width + level, minlength=(int(center.max()) + 1) * width).reshape(-1, width)
    return np.cumsum(counts[:, ::-1], axis=1)[:, ::-1][:, 1:]


def find_valley(pairs: ScoredPairs) -> tuple[float, float]:
    """Return the log odds of the deepest valley of the scores, and its depth.

    The depth is the height of the lower side divided by that of the valley, or 1 if there is no valley.
    Every record has the same weight, however many pairs it is in.
    """
    if len(pairs.first) < FEWEST_PAIRS:
        return 0.0, 1.0
    degree = np.bincount(np.concatenate([pairs.first, pairs.second]), minlength=pairs.n_records)
    weight = 1.0 / degree[pairs.first] + 1.0 / degree[pairs.second]
    low, high = float(pairs.log_odds.min()), float(pairs.log_odds.max())
    edges = np.arange(low, high + VALLEY_STEP, VALLEY_STEP)
    if len(edges) < 3:
        return 0.0, 1.0
    counts = np.histogram(pairs.log_odds, edges, weights=weight)[0]
    height = gaussian_filter1d(counts, VALLEY_WIDTH / VALLEY_STEP, mode="nearest")
    left, right = np.maximum.accumulate(height), np.maximum.accumulate(height[::-1])[::-1]
    depth = np.minimum(left, right) / np.maximum(height, 1e-9)
    below = np.cumsum(counts) / counts.sum()
    depth[(below < LEAST_SIDE) | (below > 1.0 - LEAST_SIDE)] = 1.0
    place = int(np.argmax(depth))
    return float(edges[place] + VALLEY_STEP / 2.0), max(float(depth[place]), 1.0)
