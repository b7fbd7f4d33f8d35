"""Precision and recall from questions that were drawn at random, with intervals.

Links are drawn from strata of their score before any answer, so each one's chance to be drawn is known. In
each stratum, the share of pairs of one entity is estimated separately for links within and between entities;
of the links that were asked about it is known. Pairs that are not linked are not seen: recall is
among the candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.types import Bools, Floats, Ints

LEVEL = 0.9  # of the intervals
STRENGTH = 1.0  # answers that the probability before any answer counts for, in each stratum
_DRAWS = 2_000


class Interval(NamedTuple):
    """An estimate, and bounds between which it is with a probability of nine in ten."""

    estimate: float
    low: float
    high: float


class Quality(NamedTuple):
    """Precision and recall of pairs among the candidates.

    answers
        How many answers to random questions it rests on.
    to_halve
        How many more of those would halve the wider interval, about.
    """

    precision: Interval
    recall: Interval
    answers: int
    to_halve: int


def estimate_quality(
    cell: Ints, prior: Floats, drawn: Ints, same: Bools, link: Ints, seed: int = 0
) -> Quality:
    """Estimate precision and recall.

    cell : int[links]
        Twice the stratum of each link, and one more if it is within an entity now.
    prior : float[links]
        The probability that its records are of one entity, before any random answer.
    drawn : int[answers], same : bool[answers]
        The cells that random links were in when they were asked about, and what was answered.
    link : int[answers]
        Which links these are: of them it is known, and of the others in their cells it is estimated.
    """
    size = int(cell.max(initial=-1)) + 2
    count = np.bincount(cell, minlength=size).astype(np.float64)
    cells = np.flatnonzero(count)
    expected = np.bincount(cell, weights=prior, minlength=size)[cells] / count[cells]
    left = count - np.bincount(cell[link], minlength=size)
    known = np.bincount(cell[link], weights=same, minlength=size)
    inside = cells % 2 == 1
    yes, no = (_counted(cells, drawn[same == said]) for said in (True, False))
    random = np.random.default_rng(seed)
    expected = np.clip(expected, 1e-4, 1.0 - 1e-4)
    shares = random.beta(
        STRENGTH * expected + yes, STRENGTH * (1.0 - expected) + no, size=(_DRAWS, len(cells))
    )
    held = shares * left[cells] + known[cells]
    right, missed = held[:, inside].sum(axis=1), held[:, ~inside].sum(axis=1)
    precision = right / max(float(count[cells[inside]].sum()), 1.0)
    recall = right / np.maximum(right + missed, 1e-12)
    return Quality(_interval(precision), _interval(recall), len(drawn), 3 * max(len(drawn), 1))


def _counted(cells: Ints, drawn: Ints) -> NDArray[np.int64]:
    known = drawn[np.isin(drawn, cells)]
    return np.bincount(np.searchsorted(cells, known), minlength=len(cells))


def _interval(draws: Floats) -> Interval:
    low, high = np.quantile(draws, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return Interval(float(np.median(draws)), float(low), float(high))
