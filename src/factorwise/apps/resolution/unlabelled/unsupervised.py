"""Weights without labels: what linked pairs look like that belong together, found by EM.

Candidates are a mixture of pairs of one entity and of two. In either part the levels of the comparisons are
taken to be independent; expectation-maximisation finds how frequent each level is in both parts. The weight
of a level is the log of the ratio of the two frequencies, shared among the comparisons of a field, which tell
much the same. Left alone, it would rather find which blocking rule made a pair; so it starts from the belief
that those candidates belong together that are alike as hardly any random pairs are, a quarter as many as
there are records, and weights never fall where pairs become more alike. Pairs that someone has labelled
belong to their part for certain, and count for several of the others.
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

SHARES = (1e-6, 0.9)  # of candidates that can be of one entity: a few that share a word prove nothing
ROUNDS = 10  # further ones wander off where levels are not independent
SETTLED = 1e-5
SMOOTHING = 1.0  # pairs that each level is taken to have been seen in beforehand
SHARED = 0.75  # power of the number of a field's comparisons: 0 if they told different things, 1 if the same
LABELLED = 100.0  # pairs that a labelled one counts for
UNLINKED = -2.0  # two members that no blocking rule saw anything in common of


class LevelMixture(NamedTuple):
    """Frequencies of levels in pairs of one entity and of two, and the share of the former.

    weights
        For each comparison those of its levels but 0: logs of the ratios, as far as they do not fall where
        pairs become more alike.
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
    """Fit the mixture to candidates.

    random_levels
        Levels of random pairs, hardly any of which are of one entity.
    expected
        How many of the candidates belong together to begin with: the most alike.
    labelled
        Pairs whose part is known. They say what the parts look like, not how large they are: nobody chooses
        pairs to label at random.
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
    """Return the different rows and how often each is there.

    Rows are told apart by 64 bits of a random linear hash: that two different ones of a million share them
    has a chance of one in ten million.
    """
    factors = np.random.default_rng(0).integers(1, 1 << 63, levels.shape[1], np.uint64)
    keys = np.zeros(len(levels), np.uint64)
    for column, factor in zip(levels.T, factors, strict=True):
        keys += column * factor  # modulo 2 ** 64
    _, rows, counts = np.unique(keys, return_index=True, return_counts=True)
    return levels[rows], counts


def weights_of(mixture: LevelMixture, comparisons: Sequence[Comparison]) -> LevelWeights:
    """Turn frequencies into weights."""
    sizes = tuple(one.cuts.size for one in comparisons)
    power = field_powers(comparisons)
    pieces = [p * table for p, table in zip(power, mixture.weights, strict=True)]
    weights = np.concatenate([np.zeros(FIXED_WEIGHTS), *pieces])
    weights[LINK_WEIGHT] = np.log(mixture.share) - np.log1p(-mixture.share)
    weights[UNLINKED_WEIGHT] = UNLINKED
    return LevelWeights(sizes, weights)


def field_powers(comparisons: Sequence[Comparison]) -> list[float]:
    """Return the share that each comparison has in what its field says."""
    of_field = Counter(one.field for one in comparisons)
    return [of_field[one.field] ** -SHARED for one in comparisons]


def surprise(
    patterns: NDArray[np.uint8], random_levels: NDArray[np.uint8], comparisons: Sequence[Comparison]
) -> NDArray[np.float64]:
    """Return how alike pairs are: -log of the share of random pairs that are as much so, summed over fields.

    Of a field with several comparisons it is their mean; what is missing says nothing.
    """
    of_field = Counter(one.field for one in comparisons)
    total = np.zeros(len(patterns))
    for c, one in enumerate(comparisons):
        share = _frequencies(random_levels[:, c], np.ones(len(random_levels)), one.cuts.size)
        as_alike = np.cumsum(share) if one.measure in FALLING else np.cumsum(share[::-1])[::-1]
        total += np.append(0.0, -np.log(as_alike))[patterns[:, c]] / of_field[one.field]
    return total


def _first(alike: NDArray[np.float64], counts: Ints, expected: float) -> NDArray[np.float64]:
    """Return the chances to begin with: 1 for the most alike patterns, as many as are expected."""
    order = np.argsort(-alike, kind="stable")
    chance = np.zeros(len(alike))
    chance[order[np.cumsum(counts[order]) - counts[order] < expected]] = 1.0
    return chance


def _log_ratios(
    same: NDArray[np.float64], other: NDArray[np.float64], comparison: Comparison
) -> NDArray[np.float64]:
    """Return the weights of levels: nearest to the logs of ratios that do not fall with likeness."""
    rising = comparison.measure not in FALLING
    logs = np.log(same) - np.log(other)
    fitted = nearest_rising(
        logs if rising else logs[::-1], (same + other) if rising else (same + other)[::-1]
    )
    return fitted if rising else fitted[::-1]


def nearest_rising(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the numbers that do not fall and are nearest to some values, in weighted squares."""
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
    """Return how frequent each level but 0 is."""
    seen = np.bincount(column, weights=mass, minlength=size + 1)[1:] + SMOOTHING
    return np.asarray(seen / seen.sum())
