"""Weights without labels: what linked pairs look like that belong together, found by EM.

Candidates are a mixture of pairs of one entity and of two. In either part the levels of the comparisons are
taken to be independent; expectation-maximisation finds how frequent each level is in both parts, starting
from random pairs of records (hardly any belong together) and from the belief that the most alike candidates
do. Pairs that someone has labelled belong to their part for certain, and count for several of the others. The
weight of a level is the log of the ratio of the two frequencies, shared among the comparisons of a field,
which tell much the same.
Implements: fellegi1969theory (the weights), winkler2000em (their estimation by EM).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons import Comparison
from factorwise.apps.resolution.labelled import ComparedLabels
from factorwise.kernels.linkage_learning import APART_WEIGHT, FIXED_WEIGHTS, LINK_WEIGHT
from factorwise.model.linkage import LinkModel

ROUNDS = 100
SETTLED = 1e-5
SMOOTHING = 1.0  # pairs that each level is taken to have been seen in beforehand
LABELLED = 100.0  # pairs that a labelled one counts for
APART = -2.0  # two members that no blocking rule saw anything in common of


class Mixture(NamedTuple):
    """Frequencies of levels in pairs of one entity and of two, and the share of the former."""

    share: float
    same: list[NDArray[np.float64]]
    other: list[NDArray[np.float64]]
    rounds: int


def fit_mixture(
    levels: NDArray[np.uint8],
    random_levels: NDArray[np.uint8],
    comparisons: Sequence[Comparison],
    labelled: ComparedLabels | None = None,
) -> Mixture:
    """Fit the mixture to candidates, with the levels of random pairs as the first guess of different ones.

    labelled
        Pairs whose part is known. They say what the parts look like, not how large they are: nobody chooses
        pairs to label at random.
    """
    sizes = [one.cuts.size for one in comparisons]
    patterns, counts = np.unique(levels, axis=0, return_counts=True)
    power = field_powers(comparisons)
    other = [
        _frequencies(random_levels[:, c], np.ones(len(random_levels)), size) for c, size in enumerate(sizes)
    ]
    everyone = [_frequencies(patterns[:, c], counts.astype(float), size) for c, size in enumerate(sizes)]
    chance = _sigmoid(_log_odds(patterns, everyone, other, power))  # more common in candidates: more likely
    seen, known = patterns, np.zeros(0, bool)
    if labelled is not None:
        seen, known = np.concatenate([patterns, labelled.levels]), labelled.pairs.same
    rounds = 0
    while rounds < ROUNDS:
        rounds += 1
        mass = counts * chance
        share = float(np.clip(mass.sum() / counts.sum(), 1e-6, 1.0 - 1e-6)) if len(counts) else 0.5
        in_same, in_other = np.append(mass, LABELLED * known), np.append(counts - mass, LABELLED * ~known)
        same = [_frequencies(seen[:, c], in_same, size) for c, size in enumerate(sizes)]
        other = [_frequencies(seen[:, c], in_other, size) for c, size in enumerate(sizes)]
        prior = np.log(share) - np.log1p(-share)
        fresh = _sigmoid(prior + _log_odds(patterns, same, other, power))
        moved = float(np.abs(fresh - chance).max(initial=0.0))
        chance = fresh
        if moved < SETTLED:
            break
    return Mixture(share, same, other, rounds)


def model_of(mixture: Mixture, comparisons: Sequence[Comparison]) -> LinkModel:
    """Turn frequencies into weights."""
    sizes = tuple(one.cuts.size for one in comparisons)
    power = field_powers(comparisons)
    pieces = [p * (np.log(m) - np.log(u)) for p, m, u in zip(power, mixture.same, mixture.other, strict=True)]
    weights = np.concatenate([np.zeros(FIXED_WEIGHTS), *pieces])
    weights[LINK_WEIGHT] = np.log(mixture.share) - np.log1p(-mixture.share)
    weights[APART_WEIGHT] = APART
    return LinkModel(sizes, weights)


def field_powers(comparisons: Sequence[Comparison]) -> list[float]:
    """Return the share that each comparison has in what its field says."""
    of_field = Counter(one.field for one in comparisons)
    return [1.0 / of_field[one.field] ** 0.5 for one in comparisons]


def _frequencies(column: NDArray[np.uint8], mass: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return how frequent each level but 0 is."""
    seen = np.bincount(column, weights=mass, minlength=size + 1)[1:] + SMOOTHING
    return np.asarray(seen / seen.sum())


def _log_odds(
    patterns: NDArray[np.uint8],
    same: Sequence[NDArray[np.float64]],
    other: Sequence[NDArray[np.float64]],
    power: Sequence[float],
) -> NDArray[np.float64]:
    total = np.zeros(len(patterns))
    for c, (m, u, p) in enumerate(zip(same, other, power, strict=True)):
        total += p * np.append(0.0, np.log(m) - np.log(u))[patterns[:, c]]
    return total


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))
