"""Estimate match weights without labels, by EM on the comparison levels of candidate pairs.

The candidates are a mixture of matching and non-matching pairs. Within each part, the levels of comparisons
are assumed to be independent; EM estimates the m and u frequencies of each level. The match weight of a level
is log m/u, reduced if a field has several comparisons, because these are correlated. Unguided, EM would
rather separate pairs by blocking rule. So the initial matches are the candidates that are most similar
compared with random pairs, and the weights are constrained not to fall as similarity rises. Labelled pairs
belong to their part with certainty, and each counts as many unlabelled ones.
After the ideas of fellegi1969theory (the weights) and winkler2000em (their estimation by EM).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons import Comparison
from factorwise.apps.resolution.comparisons.measures import FALLING
from factorwise.apps.resolution.labelled import ComparedLabels
from factorwise.kernels.clusterings.links import FIXED_WEIGHTS, LINK_WEIGHT, UNLINKED_WEIGHT
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.types import Ints

SHARES = (1e-6, 0.9)  # bounds on the share of matching pairs among the candidates
ROUNDS = 10  # more rounds drift away if the levels are not independent
SETTLED = 1e-5  # largest change of a match probability at convergence
SMOOTHING = 1.0  # pseudo-count of each level
SHARED = 0.75  # exponent of a field's number of comparisons: 0 if they are independent, 1 if redundant
LABELLED = 100.0  # unlabelled pairs that one labelled pair counts as
UNLINKED = -2.0  # unlinked pair weight: of two members that are not a candidate pair


class LevelMixture(NamedTuple):
    """The share of matching pairs, and the m (``same``) and u (``other``) frequencies of levels.

    weights
        For each comparison, the match weights of its levels without level 0: log m/u, constrained not to fall
        as similarity rises.
    """

    share: float
    same: list[NDArray[np.float64]]
    other: list[NDArray[np.float64]]
    weights: list[NDArray[np.float64]]
    rounds: int


def fit_mixture(
    levels: NDArray[np.uint8],
    random_levels: NDArray[np.uint8],
    comparisons: Sequence[Comparison],
    labelled: ComparedLabels | None = None,
    *,
    expected: float,
) -> LevelMixture:
    """Fit the mixture to candidates by EM.

    random_levels
        Levels of random pairs, of which hardly any match.
    expected
        Initial number of matches; the most similar candidates are used.
    labelled
        Labelled pairs. They are used to estimate the frequencies of levels but not the share of matches,
        because pairs to label are not chosen at random.
    """
    sizes = [one.cuts.size for one in comparisons]
    patterns, counts = different_rows(levels)
    power = field_powers(comparisons)
    chance = _first(surprise(patterns, random_levels, comparisons), counts, expected)
    seen, known = patterns, np.zeros(0, bool)
    if labelled is not None:
        seen, known = np.concatenate([patterns, labelled.levels]), labelled.pairs.same
    rounds = 0
    while rounds < ROUNDS:
        rounds += 1
        mass = counts * chance
        share = float(np.clip(mass.sum() / counts.sum(), *SHARES)) if len(counts) else 0.5
        in_same, in_other = np.append(mass, LABELLED * known), np.append(counts - mass, LABELLED * ~known)
        same = [_frequencies(seen[:, c], in_same, size) for c, size in enumerate(sizes)]
        other = [_frequencies(seen[:, c], in_other, size) for c, size in enumerate(sizes)]
        weights = [_log_ratios(*each) for each in zip(same, other, comparisons, strict=True)]
        odds = np.full(len(patterns), np.log(share) - np.log1p(-share))
        for c, (table, p) in enumerate(zip(weights, power, strict=True)):
            odds += p * np.append(0.0, table)[patterns[:, c]]
        fresh = 0.5 * (1.0 + np.tanh(0.5 * odds))
        moved = float(np.abs(fresh - chance).max(initial=0.0))
        chance = fresh
        if moved < SETTLED:
            break
    return LevelMixture(share, same, other, weights, rounds)


def different_rows(levels: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the distinct rows and the count of each.

    Rows are compared by a random linear hash of 64 bits. Among a million distinct rows, the probability of a
    collision is about one in ten million.
    """
    factors = np.random.default_rng(0).integers(1, 1 << 63, levels.shape[1], np.uint64)
    keys = np.zeros(len(levels), np.uint64)
    for column, factor in zip(levels.T, factors, strict=True):
        keys += column * factor  # modulo 2 ** 64
    _, rows, counts = np.unique(keys, return_index=True, return_counts=True)
    return levels[rows], counts


def weights_of(mixture: LevelMixture, comparisons: Sequence[Comparison]) -> LevelWeights:
    """Return the match weights of a mixture as `LevelWeights`."""
    sizes = tuple(one.cuts.size for one in comparisons)
    power = field_powers(comparisons)
    pieces = [p * table for p, table in zip(power, mixture.weights, strict=True)]
    weights = np.concatenate([np.zeros(FIXED_WEIGHTS), *pieces])
    weights[LINK_WEIGHT] = np.log(mixture.share) - np.log1p(-mixture.share)
    weights[UNLINKED_WEIGHT] = UNLINKED
    return LevelWeights(sizes, weights)


def field_powers(comparisons: Sequence[Comparison]) -> list[float]:
    """Return the factor of each comparison's weights, which is less than 1 if its field has several."""
    of_field = Counter(one.field for one in comparisons)
    return [of_field[one.field] ** -SHARED for one in comparisons]


def surprise(
    patterns: NDArray[np.uint8], random_levels: NDArray[np.uint8], comparisons: Sequence[Comparison]
) -> NDArray[np.float64]:
    """Return the similarity of pairs: the sum over fields of -log(share of random pairs as similar).

    For a field with several comparisons, their mean is used; a missing value adds 0.
    """
    of_field = Counter(one.field for one in comparisons)
    total = np.zeros(len(patterns))
    for c, one in enumerate(comparisons):
        share = _frequencies(random_levels[:, c], np.ones(len(random_levels)), one.cuts.size)
        as_alike = np.cumsum(share) if one.measure in FALLING else np.cumsum(share[::-1])[::-1]
        total += np.append(0.0, -np.log(as_alike))[patterns[:, c]] / of_field[one.field]
    return total


def _first(alike: NDArray[np.float64], counts: Ints, expected: float) -> NDArray[np.float64]:
    """Return the initial match probabilities: 1 for the most similar patterns, about ``expected`` pairs."""
    order = np.argsort(-alike, kind="stable")
    chance = np.zeros(len(alike))
    chance[order[np.cumsum(counts[order]) - counts[order] < expected]] = 1.0
    return chance


def _log_ratios(
    same: NDArray[np.float64], other: NDArray[np.float64], comparison: Comparison
) -> NDArray[np.float64]:
    """Return the match weights: log m/u by isotonic regression, not falling as similarity rises."""
    rising = comparison.measure not in FALLING
    logs = np.log(same) - np.log(other)
    fitted = nearest_rising(
        logs if rising else logs[::-1], (same + other) if rising else (same + other)[::-1]
    )
    return fitted if rising else fitted[::-1]


def nearest_rising(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the isotonic (never falling) regression of the values, by weighted least squares."""
    pools: list[tuple[float, float, int]] = []  # mean, weight and length of each run of equal numbers
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, length = value, weight, 1
        while pools and pools[-1][0] >= mean:
            before, mass, count = pools.pop()
            mean = (before * mass + mean * total) / (mass + total)
            total, length = total + mass, length + count
        pools.append((mean, total, length))
    return np.repeat([mean for mean, _, _ in pools], [length for _, _, length in pools])


def _frequencies(column: NDArray[np.uint8], mass: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the smoothed frequency of each level except 0."""
    seen = np.bincount(column, weights=mass, minlength=size + 1)[1:] + SMOOTHING
    return np.asarray(seen / seen.sum())
