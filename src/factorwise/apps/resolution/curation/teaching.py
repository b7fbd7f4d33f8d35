"""What answers teach: how probable it is that two groups are one entity, and the weights of the levels.

Both are logistic regressions with a normal prior around what is known without answers, so that one answer
changes little and a hundred a lot. That the pairs were chosen because they are doubtful does no harm: what is
learned is how probable the answer is given what the comparison says. An answer about two groups says the same
of all pairs between them, and links that were sure before any answer keep the weights from wandering where
nobody was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from factorwise.kernels.clusterings.links import LINK_WEIGHT
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.store.store import ALL_BUT, DIFFERENT, SAME
from factorwise.types import Bools, Floats, Ints
from factorwise.world.links import LinkGraph

#: What the log odds of two groups start from: a constant, and factors of the mean and of the best score,
#: first for groups in two entities, then for groups in one.
START = (-1.0, 0.3, 0.5, 1.0, 0.3, 0.0)
SPREAD = (1.5, 0.2, 0.2, 1.5, 0.2, 0.2)  # standard deviations of the prior around it
SHIFT_SPREAD, SLOPE_SPREAD, STEP_SPREAD = 2.0, 0.3, 0.25
GROUP_WEIGHT = 3.0  # what all pairs of two groups count for beside the one that was asked about
LARGEST_GROUP, MOST_LINKS = 40, 25  # members of two groups, and links between them, that are learned from
SETTLED = 1e-3  # log odds that a step of the fit still moves
SURE, SURE_LINKS, SURE_WEIGHT = 3.0, 300, 100.0  # score, number of each kind, and what they count for in all


class AnsweredGroups:
    """Answers about two groups each, with the links between them, so that they can be scored anew."""

    def __init__(self) -> None:
        self._answers: list[tuple[NDArray[np.int64], int, bool, bool]] = []

    def add(self, graph: LinkGraph, groups: Sequence[Ints], *, together: bool, same: bool) -> None:
        """Keep an answer: whether the groups were in one entity, and whether they are said to be."""
        one, two = (np.asarray(group[:LARGEST_GROUP], np.int64) for group in groups)
        link = graph.find_pairs(np.repeat(one, len(two)), np.tile(two, len(one)))
        self._answers.append((link[link >= 0], len(link), together, same))

    def odds(self, scores: NDArray[np.float32], unlinked: float) -> GroupOdds:
        """Return what the answers say of groups under these scores of the links."""
        answers = list(self._answers)  # others may come meanwhile
        if not answers:
            return GroupOdds(np.array(START))
        mean, best = np.full(len(answers), unlinked), np.full(len(answers), unlinked)
        for place, (links, pairs, _, _) in enumerate(answers):
            if len(links):
                mine = scores[links].astype(np.float64)
                mean[place] += float((mine - unlinked).sum()) / pairs
                best[place] = mine.max()
        together, same = (np.array([answer[k] for answer in answers]) for k in (2, 3))
        features, start = _described(mean, best, together), np.array(START)
        found, _ = fit_around(features, features @ start, same, np.ones(len(same)), np.array(SPREAD))
        return GroupOdds(start + found)


class GroupOdds(NamedTuple):
    """The probability that two groups are one entity, from the scores between them."""

    coefficients: NDArray[np.float64]

    def probability(
        self, mean: Floats, best: Floats, together: Bools, variance: Floats | float = 0.0
    ) -> NDArray[np.float64]:
        """Return the probability for each of some pairs of groups; ``variance`` is that of the scores."""
        return damped(_described(mean, best, together) @ self.coefficients, np.asarray(variance))


class LabelledLinks(NamedTuple):
    """Links whose records are known to be of one entity, or of two.

    link, same, weight
        The links, whether they are of one entity, and how much each counts.
    """

    link: NDArray[np.int64]
    same: NDArray[np.bool_]
    weight: NDArray[np.float64]

    @classmethod
    def none(cls) -> LabelledLinks:
        """Return no links."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0))

    @classmethod
    def join(cls, parts: list[LabelledLinks]) -> LabelledLinks:
        """Return the links of all of some."""
        if not parts:
            return cls.none()
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Teaching(NamedTuple):
    """Weights that have learned from answers, and how uncertain they are.

    weights
        Of links and of their levels.
    base
        What was known before any answer.
    change, covariance
        What was added: a shift, a factor of the score, and the steps from level to level.
    """

    weights: LevelWeights
    base: LevelWeights
    change: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def variance(self, levels: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the variance of the scores of links with these levels."""
        features = _link_features(self.base, levels)
        return np.asarray(((features @ self.covariance) * features).sum(axis=1))


def label_links(decision: Mapping[str, Any], graph: LinkGraph) -> LabelledLinks:
    """Return the links that a decision speaks of: the pair that was asked about, and all between its groups.

    The pair counts for one; the others, which are hardly independent of it, for a few in all.
    """
    answer, parts = str(decision["answer"]), decision["parts"]
    if answer not in (SAME, DIFFERENT, ALL_BUT):
        return LabelledLinks.none()
    context = decision.get("context") or [()] * len(parts)
    groups = [np.array([*part, *beside], np.int64) for part, beside in zip(parts, context, strict=False)]
    groups = [group[:LARGEST_GROUP] for group in groups]
    between = list(combinations(range(len(groups)), 2))
    if answer == ALL_BUT:
        between = [pair for pair in between if pair[0] == 0]
    pairs = [(groups[a], groups[b], answer == SAME) for a, b in between]
    within = groups if answer == DIFFERENT else groups[:1]
    if not any(len(beside) for beside in context):  # whole entities: their own pairs are decided, too
        pairs += [(group, group, True) for group in within if len(group) > 1]
    found = []
    for one, two, same in pairs:
        first, second = np.repeat(one, len(two)), np.tile(two, len(one))
        if one is two:
            first, second = (side[first < second] for side in (first, second))
        link = graph.find_pairs(first, second)
        others = link[link >= 0]
        others = others[
            np.unique(np.linspace(0, len(others) - 1, MOST_LINKS).astype(np.int64))[: len(others)]
        ]
        weight = np.full(len(others), GROUP_WEIGHT / max(len(others), 1))
        if one is not two:
            weight[others == link[0]] += 1.0  # of the first record of either group
        weight /= len(pairs)  # an answer about many groups is one answer, and not mostly of one kind
        found.append(LabelledLinks(others, np.full(len(others), same), weight))
    return LabelledLinks.join(found)


def sure_links(scores: Floats, seed: int) -> LabelledLinks:
    """Return some links of either kind that are sure without any answer."""
    random = np.random.default_rng([seed, 5])
    found = []
    for sure, same in ((np.flatnonzero(scores >= SURE), True), (np.flatnonzero(scores <= -SURE), False)):
        link = random.choice(sure, min(SURE_LINKS, len(sure)), replace=False)
        weight = np.full(len(link), 0.5 * SURE_WEIGHT / SURE_LINKS)
        found.append(LabelledLinks(link.astype(np.int64), np.full(len(link), same), weight))
    return LabelledLinks.join(found)


def teach(
    base: LevelWeights, levels: NDArray[np.uint8], same: Bools, weight: Floats, before: Teaching | None = None
) -> Teaching:
    """Learn weights from links with these levels.

    base
        What was known before any answer.
    weight
        How much each link counts.
    before
        What was learned from fewer answers, to begin with.
    """
    features, scores = _link_features(base, levels), base.link_scores(levels)
    steps = features.shape[1] - 2
    spread = np.concatenate([[SHIFT_SPREAD, SLOPE_SPREAD], np.full(steps, STEP_SPREAD)])
    begin = None if before is None else before.change
    change, covariance = fit_around(features, scores, same, weight, spread, begin)
    start = int(base.offsets[0]) if base.sizes else len(base.values)
    values = base.values.copy()
    values[LINK_WEIGHT] = base.link * (1.0 + change[1]) + change[0]
    values[start:] *= 1.0 + change[1]
    added = LevelWeights.zeros(base.sizes)
    added.values[start:] = change[2:]
    values[start:] += added.cumulated().values[start:]
    return Teaching(LevelWeights(base.sizes, values), base, change, covariance)


def probability_of(odds: Floats | float) -> NDArray[np.float64]:
    """Return probabilities from log odds."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * np.asarray(odds, np.float64)))


def damped(odds: Floats, variance: Floats) -> NDArray[np.float64]:
    """Return probabilities from log odds that are uncertain themselves: nearer to one half."""
    moderate = odds / np.sqrt(1.0 + np.pi / 8.0 * variance)
    return probability_of(moderate)


def fit_around(
    features: Floats,
    offset: Floats,
    same: Bools,
    weight: Floats,
    spread: Floats,
    begin: Floats | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what to add to a logistic regression: mode and covariance under a normal prior around nothing.

    offset
        Log odds before anything is added.
    weight
        How much each example counts.
    spread
        Standard deviations of the prior.
    begin
        Where to begin the search for the mode.
    """
    found = np.zeros(features.shape[1]) if begin is None else np.array(begin, np.float64)
    precision = np.diag(1.0 / np.asarray(spread, np.float64) ** 2)
    with threadpool_limits(1, "blas"):  # small matrices: more threads only wait for each other
        for _ in range(25):
            chance = probability_of(offset + features @ found)
            gradient = features.T @ (weight * (same - chance)) - precision @ found
            certain = weight * np.maximum(chance * (1.0 - chance), 1e-6)
            curvature = (features * certain[:, None]).T @ features + precision
            step = np.linalg.solve(curvature, gradient)
            size = float(np.abs(features @ step).max(initial=0.0))
            found += step * min(1.0, 4.0 / max(size, 1e-12))  # no answer's odds may leap
            if size < SETTLED:
                break
        return found, np.asarray(np.linalg.inv(curvature), np.float64)


def _link_features(base: LevelWeights, levels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return what the scores of links are made of: a constant, the score before, and steps of levels."""
    steps = [levels[:, [c]] >= np.arange(1, size + 1) for c, size in enumerate(base.sizes)]
    return np.column_stack([np.ones(len(levels)), base.link_scores(levels), *steps])


def _described(mean: Floats, best: Floats, together: Bools) -> NDArray[np.float64]:
    each = np.column_stack([np.ones(len(mean)), mean, best])
    return np.hstack(
        [np.where(together, 0.0, 1.0)[:, None] * each, np.where(together, 1.0, 0.0)[:, None] * each]
    )
