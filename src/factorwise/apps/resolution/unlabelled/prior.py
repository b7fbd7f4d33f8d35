"""The prior log odds of two identities, by comparison level and number of namesakes.

Equal identities have odds share * m / a: the probability that a record has a match at the level, divided by
the expected number of namesakes. Other levels have odds of expected matching to non-matching pairs. If there
are other columns, both are corrected: in strata of level and namesakes, EM on the evidence C estimates the
share of matching pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.unlabelled.identity import CONFLICT, TOP
from factorwise.arguments import check_types
from factorwise.errors import InvalidArgumentError
from factorwise.types import Floats, Ints

NEVER = -50.0  # log odds of identities that practically never match
STRATA = 5  # strata by number of namesakes, per level
LOWEST_STRATUM = 4  # the lowest level that is stratified
LEAST_ALONE = 0.5  # lower bound of the log odds of equal texts if there are no other columns
FORMULA_PAIRS = 10.0  # pseudo-pairs with the share by the formula that are added to a stratum
DEFAULT_PAIRS = 30.0  # pseudo-pairs with the default frequencies of levels
_PERSON = np.array([0.0, 0.005, 0.015, 0.03, 0.10, 0.10, 0.75])
_TEXT = np.array([0.0, 0.001, 0.009, 0.05, 0.12, 0.22, 0.60])
MOST_CONFLICTS = {True: 0.05, False: 0.01}  # share of matching pairs; for persons (True), texts
ROUNDS = 30  # EM rounds per stratum
LEVEL_ROUNDS = 20  # EM rounds for the frequencies of levels
TAIL = 0.3  # least ratio of the non-matching text pairs of a level to those of the level below
SUREST_TAIL = 20.0  # largest odds of a level if there are only texts
FEWEST_AT_LEVEL = 10.0  # least number of pairs of a level to estimate its matching ones


@check_types
@dataclass(frozen=True, slots=True, eq=False)
class LevelPrior:
    """Log odds of pairs by their identities.

    is_person
        Whether identities are names of persons.
    share, partners
        Share of the records that have a match with an equal identity, and the mean number of such matches.
    same, other : float64[7]
        Frequency of each level among matching pairs, and among non-matching pairs.
    edges : float64[4]
        Thresholds between strata, in logs of namesakes.
    shifts : float64[7, 5]
        Log odds that each stratum adds to the formula.
    alone
        Whether identities are texts and there are no other columns.
    """

    is_person: bool
    share: float
    partners: float
    same: NDArray[np.float64]
    other: NDArray[np.float64]
    edges: NDArray[np.float64]
    shifts: NDArray[np.float64]
    alone: bool = False

    def formula(self, levels: NDArray[np.uint8], namesakes: Floats, n_records: int) -> NDArray[np.float64]:
        """Return the log odds by the formula, without the shifts of the strata."""
        rate = max(self.partners, 1e-6) / max(n_records - 1, 1) / self.same[TOP]
        by_level = np.log(rate) + np.log(self.same[1:]) - np.log(self.other[1:])
        found = np.append(np.log(rate), by_level)[levels]
        equal = levels >= (LOWEST_STRATUM if self.is_person else TOP)
        counted = np.log(max(self.share, 1e-6)) + np.log(self.same[levels[equal]]) - np.log(namesakes[equal])
        found[equal] = np.maximum(counted, LEAST_ALONE) if self.alone else counted
        if not self.is_person:
            found[levels == 1] = NEVER
        return found

    def share_of_others(self, counts: Floats, n_records: int) -> NDArray[np.float64]:
        """Return the share of ``counts`` pairs in the non-matching pairs of each level, at most 0.99."""
        pairs = max(n_records * (n_records - 1) / 2.0, 1.0)
        return np.asarray(np.clip(counts / np.maximum(self.other * pairs, 1.0), 0.0, 0.99))

    def stratum(self, namesakes: Floats) -> Ints:
        """Return the stratum of each pair."""
        return np.searchsorted(self.edges, np.log(namesakes))

    def __call__(self, levels: NDArray[np.uint8], namesakes: Floats, n_records: int) -> NDArray[np.float64]:
        """Return the log odds of pairs."""
        return self.formula(levels, namesakes, n_records) + self.shifts[levels, self.stratum(namesakes)]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for the model file."""
        arrays = {name: getattr(self, name).tolist() for name in ("same", "other", "edges", "shifts")}
        return {
            "is_person": self.is_person,
            "share": self.share,
            "partners": self.partners,
            "alone": self.alone,
            **arrays,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> LevelPrior:
        """Rebuild the object from the values that `as_dict` returned."""
        shapes = {"same": (7,), "other": (7,), "edges": (STRATA - 1,), "shifts": (7, STRATA)}
        arrays = {name: np.asarray(content[name], np.float64) for name in shapes}
        for name, shape in shapes.items():
            if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
                raise InvalidArgumentError(f"its prior has {name} of shape {arrays[name].shape}, not {shape}")
        return cls(
            is_person=bool(content["is_person"]),
            share=float(content["share"]),
            partners=float(content["partners"]),
            alone=bool(content["alone"]),
            **arrays,
        )


def level_frequencies(
    is_person: bool, sure_levels: NDArray[np.uint8], weight: Floats, random_levels: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the frequencies of levels among matching pairs, and among random pairs.

    sure_levels, weight
        Levels and weights of pairs that match by the evidence of other columns alone.
    """
    default = _PERSON if is_person else _TEXT
    seen = np.bincount(sure_levels, weights=weight, minlength=TOP + 1)[: TOP + 1]
    seen[0] = 0.0
    same = seen + DEFAULT_PAIRS * default
    same = same / same.sum()
    conflicts, most = same[1 : CONFLICT + 1].sum(), MOST_CONFLICTS[is_person]
    if conflicts > most:
        same[1 : CONFLICT + 1] *= most / conflicts
        same /= same.sum()
    other = np.bincount(random_levels, minlength=TOP + 1)[: TOP + 1] + 0.5
    other[0] = 0.0
    return np.maximum(same, 1e-6), np.maximum(other / other.sum(), 1e-9)


def divide_equal_and_near(
    same: NDArray[np.float64], anchors: NDArray[np.uint8], weight: Floats, partners: float
) -> tuple[NDArray[np.float64], float]:
    """Divide the total frequency of equal and near-equal identities in the proportion seen in anchors.

    same
        Frequencies of levels among matching pairs.
    anchors, weight
        Levels and weights of the anchors, some of which are near-equal.
    partners
        Matches per record. The returned number counts only those with equal identities, as `LevelPrior` does.
    """
    near = TOP - 1
    seen = np.bincount(anchors, weights=weight, minlength=TOP + 1)[near:]
    both = same[near:].sum()
    share = (seen + DEFAULT_PAIRS * same[near:]) / (seen.sum() + DEFAULT_PAIRS * both)
    divided = same.copy()
    divided[near:] = both * share
    return divided, partners * float(share[-1])


def seen_among_candidates(
    other: NDArray[np.float64],
    same: NDArray[np.float64],
    counts: Ints,
    partners: float,
    n_records: int,
) -> NDArray[np.float64]:
    """Return the frequencies of levels among non-matching pairs, from random pairs and candidates.

    At each level, the random pairs and the candidates without the expected matching pairs are counted as
    non-matching, but at least a quarter of them.
    """
    pairs = max(n_records * (n_records - 1) / 2.0, 1.0)
    expected = n_records * partners / 2.0 * same / same[TOP]
    left = np.maximum(counts - expected, counts / 4.0) / pairs
    found = other.copy()
    high = slice(3, TOP)
    found[high] = np.maximum(other - expected / pairs, other / 4.0)[high]
    found[high] = np.maximum(found[high], left[high])
    return found


def count_persons_alone(
    prior: LevelPrior, levels: NDArray[np.uint8], namesakes: Floats, weight: Floats, n_records: int
) -> LevelPrior:
    """Return the prior with frequencies of levels that are estimated from names alone.

    How frequent matching initials are depends on how often names are abbreviated in the table. EM estimates
    the number of matching candidates of each level from the number of namesakes.
    """
    high = np.arange(LOWEST_STRATUM, TOP + 1)
    default = prior.same[high]
    found = prior
    for _ in range(LEVEL_ROUNDS):
        odds = found.formula(levels, namesakes, n_records)
        chance = weight * 0.5 * (1.0 + np.tanh(0.5 * np.clip(odds, -30.0, 30.0)))
        seen = np.bincount(levels, weights=chance, minlength=TOP + 1)[high] + DEFAULT_PAIRS * default
        same = prior.same.copy()
        same[high] = default.sum() * seen / seen.sum()
        # `share` times the frequency of equal identities was measured, so it is kept constant
        found = replace(prior, same=same, share=float(prior.share * prior.same[TOP] / same[TOP]))
    return found


def count_texts_alone(
    prior: LevelPrior, levels: NDArray[np.uint8], weight: Floats, n_records: int
) -> LevelPrior:
    """Return the prior with frequencies of levels that are estimated from texts alone.

    Non-matching pairs become fewer from level to level. The pairs of a level in excess of what this tail
    predicts are counted as matching.
    """
    seen = np.bincount(levels, weights=weight, minlength=TOP + 1)
    same, other = prior.same.copy(), prior.other.copy()
    pairs = max(n_records * (n_records - 1) / 2.0, 1.0)
    fewest = np.inf
    for level in range(LOWEST_STRATUM, TOP):
        falling = max(seen[level - 1] / max(seen[level - 2], 1.0), TAIL)
        fewest = min(fewest, seen[level - 1] * falling)
        if seen[level] >= FEWEST_AT_LEVEL:
            least = seen[level] / (1.0 + SUREST_TAIL)
            two = min(max(fewest, least), seen[level] - least)
            one = seen[level] - two
            same[level] = prior.same[TOP] * 2.0 * one / (n_records * max(prior.partners, 1e-6))
            other[level] = two / pairs
    return replace(prior, same=same, other=other)


def strata_shifts(
    prior: LevelPrior,
    levels: NDArray[np.uint8],
    namesakes: Floats,
    evidence: Floats,
    weight: Floats,
    n_records: int,
    *,
    has_namesakes: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the thresholds of the strata and their shifts, from the evidence of candidates.

    has_namesakes
        Whether many equal identities belong to different entities, so that the formula is less reliable.
    """
    high = np.flatnonzero(levels >= LOWEST_STRATUM)
    shifts = np.zeros((TOP + 1, STRATA))
    if not len(high):
        return np.arange(STRATA - 1.0), shifts
    logs = np.log(namesakes[high])
    edges = np.quantile(logs, np.arange(1, STRATA) / STRATA)
    stratum = np.searchsorted(edges, logs)
    formula = prior.formula(levels[high], namesakes[high], n_records)
    for level in range(LOWEST_STRATUM, TOP + 1):
        for number in range(STRATA):
            rows = np.flatnonzero((levels[high] == level) & (stratum == number))
            if len(rows):
                mean = float(np.average(formula[rows], weights=weight[high[rows]]))
                seen = _share_by_evidence(evidence[high[rows]], weight[high[rows]], mean)
                trust = 1.0 if level == TOP and (prior.is_person or has_namesakes) else 0.5
                # similar texts are often related things that share evidence: it may only lower the odds
                most = 6.0 if prior.is_person or level == TOP else 0.0
                shifts[level, number] = np.clip(trust * (seen - mean), -6.0, most)
    return edges, shifts


def _share_by_evidence(evidence: Floats, weight: Floats, start: float) -> float:
    """Return the log odds of the share of matching pairs in a stratum, by EM on the evidence of its pairs."""
    prior = 1.0 / (1.0 + np.exp(-np.clip(start, -12.0, 12.0)))
    share, total = prior, float(weight.sum())
    for _ in range(ROUNDS):
        odds = np.log(share) - np.log1p(-share) + evidence
        chance = 0.5 * (1.0 + np.tanh(0.5 * odds))
        share = (float((weight * chance).sum()) + FORMULA_PAIRS * prior) / (total + FORMULA_PAIRS)
        share = min(max(share, 1e-6), 1.0 - 1e-6)
    return float(np.log(share) - np.log1p(-share))
