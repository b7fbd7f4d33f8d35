"""What the identities of two records say by themselves: log odds by level and by the number of namesakes.

Equal identities: share m / a, the chance that a record has a partner that is equal to it against the number
of other entities expected to bear the value. Other levels: how many pairs of one entity are expected at the
level, against how many pairs there are. Where other columns say something, the table corrects both: in
strata of level and namesakes, the share of pairs of one entity is found by EM on their evidence C.
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

NEVER = -50.0
STRATA = 5
LOWEST_STRATUM = 4  # level
LEAST_ALONE = 0.5  # log odds of equal texts where there is nothing else
FORMULA_PAIRS = 10.0  # pairs that the formula counts for beside those of a stratum
DEFAULT_PAIRS = 30.0
_PERSON = np.array([0.0, 0.005, 0.015, 0.03, 0.10, 0.10, 0.75])
_TEXT = np.array([0.0, 0.001, 0.009, 0.05, 0.12, 0.22, 0.60])
MOST_CONFLICTS = {True: 0.05, False: 0.01}  # share of the pairs of one entity, of persons and of texts
ROUNDS = 30
LEVEL_ROUNDS = 20
TAIL = 0.3  # of the similar pairs at a level of texts, at least so many at the next one are two entities
SUREST_TAIL = 20.0  # odds at a level of texts at most, where nothing but texts is known
FEWEST_AT_LEVEL = 10.0  # pairs that show how many are of one entity


@check_types
@dataclass(frozen=True, slots=True, eq=False)
class LevelPrior:
    """Log odds of pairs by their identities.

    is_person
        Whether identities are names of persons.
    share, partners
        Share of the records that have a partner with an equal identity, and how many on average.
    same, other : float64[7]
        Frequency of each level among pairs of one entity, and among all others.
    edges : float64[4]
        Where strata are cut, in logs of namesakes.
    shifts : float64[7, 5]
        What strata add to the formula.
    alone
        Whether equal texts are all that there is, so that nothing could tell them apart.
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
        """Return the log odds without strata."""
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
        """Return which share of the pairs of two entities, at each level, these pairs are."""
        pairs = max(n_records * (n_records - 1) / 2.0, 1.0)
        return np.asarray(np.clip(counts / np.maximum(self.other * pairs, 1.0), 0.0, 0.99))

    def stratum(self, namesakes: Floats) -> Ints:
        """Return the stratum of each pair."""
        return np.searchsorted(self.edges, np.log(namesakes))

    def __call__(self, levels: NDArray[np.uint8], namesakes: Floats, n_records: int) -> NDArray[np.float64]:
        """Return the log odds of pairs."""
        return self.formula(levels, namesakes, n_records) + self.shifts[levels, self.stratum(namesakes)]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the model file."""
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
        """Return what `as_dict` wrote."""
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
    """Return the frequencies of levels among pairs of one entity, and among random pairs.

    sure_levels, weight
        Levels of pairs that other columns make sure by themselves.
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
    """Divide what equal and all but equal identities have together as the anchors do.

    same
        Frequencies of levels among pairs of one entity.
    anchors, weight
        Levels and weights of anchors, of which some are all but equal.
    partners
        Anchors of a record; what comes back are those with equal identities, as `LevelPrior` counts them.
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
    """Return frequencies of levels among other pairs, by what random pairs and the candidates show.

    Of the random pairs, and of the candidates, at a level, those that are not expected to be of one entity
    are others, a quarter at least.
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
    """Return the prior with the frequencies of levels that the names show, where names are all there is.

    Pairs with fitting initials are as frequent as authors of the table abbreviate. How many of the candidates
    of a level are of one entity follows from the number of namesakes, by EM.
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
        # `share` times the frequency of equal identities was counted, and stays
        found = replace(prior, same=same, share=float(prior.share * prior.same[TOP] / same[TOP]))
    return found


def count_texts_alone(
    prior: LevelPrior, levels: NDArray[np.uint8], weight: Floats, n_records: int
) -> LevelPrior:
    """Return the prior with frequencies of similar texts that are known to be of two entities or of one.

    Where texts are all there is, similar texts of two entities become fewer from level to level. If more
    pairs are all but equal than that tail lets expect, these are of one entity.
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
    """Return edges of strata and what they add to the formula, from the evidence of candidates.

    has_namesakes
        Whether many equal identities are known to be of two entities: the formula says little then.
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
                # similar texts are often related things that share evidence: it can only speak against them
                most = 6.0 if prior.is_person or level == TOP else 0.0
                shifts[level, number] = np.clip(trust * (seen - mean), -6.0, most)
    return edges, shifts


def _share_by_evidence(evidence: Floats, weight: Floats, start: float) -> float:
    """Return the log odds of being of one entity in a stratum, by EM on the evidence of its pairs."""
    prior = 1.0 / (1.0 + np.exp(-np.clip(start, -12.0, 12.0)))
    share, total = prior, float(weight.sum())
    for _ in range(ROUNDS):
        odds = np.log(share) - np.log1p(-share) + evidence
        chance = 0.5 * (1.0 + np.tanh(0.5 * odds))
        share = (float((weight * chance).sum()) + FORMULA_PAIRS * prior) / (total + FORMULA_PAIRS)
        share = min(max(share, 1e-6), 1.0 - 1e-6)
    return float(np.log(share) - np.log1p(-share))
