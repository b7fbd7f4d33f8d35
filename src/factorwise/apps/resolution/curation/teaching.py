"""Learn from answers: the probability that two groups are one entity, and the weights of comparison levels.

Both are logistic regressions with a normal prior around the estimates without answers, so one answer changes
little, and a hundred change a lot. Choosing uncertain pairs causes no bias, because the model is that of an
answer given the comparisons. An answer about two groups labels all pairs between them. Links that were
confident before any answer are training data as well, and keep the weights stable where no question was
asked.
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

#: Prior mean of the coefficients of the log odds of two groups: a constant, and factors of the mean and of
#: the best score, first for groups in two entities, then for groups in one.
START = (-1.0, 0.3, 0.5, 1.0, 0.3, 0.0)
SPREAD = (1.5, 0.2, 0.2, 1.5, 0.2, 0.2)  # prior standard deviations of these coefficients
SHIFT_SPREAD, SLOPE_SPREAD, STEP_SPREAD = 2.0, 0.3, 0.25
GROUP_WEIGHT = 3.0  # total weight of all pairs of two groups, where the pair that was asked counts 1
LARGEST_GROUP, MOST_LINKS = 40, 25  # most members of a group, and most links, used per answer
SETTLED = 1e-3  # largest change of log odds in a step at which the fit stops
SURE, SURE_LINKS, SURE_WEIGHT = 3.0, 300, 100.0  # least score, number per class, and total weight


class AnsweredGroups:
    """Answers about pairs of groups, with the links between them, so that they can be scored again."""

    def __init__(self) -> None:
        self._answers: list[tuple[NDArray[np.int64], int, bool, bool]] = []

    def add(self, graph: LinkGraph, groups: Sequence[Ints], *, together: bool, same: bool) -> None:
        """Add an answer: whether the groups were in one entity, and whether they are one by the answer."""
        one, two = (np.asarray(group[:LARGEST_GROUP], np.int64) for group in groups)
        link = graph.find_pairs(np.repeat(one, len(two)), np.tile(two, len(one)))
        self._answers.append((link[link >= 0], len(link), together, same))

    def odds(self, scores: NDArray[np.float32], unlinked: float) -> GroupOdds:
        """Fit the odds of groups to the answers, given the scores of the links."""
        answers = list(self._answers)  # another thread may add answers
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
        """Return the probability of each pair of groups; ``variance`` is that of the scores."""
        return damped(_described(mean, best, together) @ self.coefficients, np.asarray(variance))


class LabelledLinks(NamedTuple):
    """Labelled links.

    link, same, weight
        The links, whether each is a match, and its sample weight.
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
        """Concatenate labelled links."""
        if not parts:
            return cls.none()
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Teaching(NamedTuple):
    """Weights that were learned from answers, with their uncertainty.

    weights
        Weights of links and of comparison levels.
    base
        The weights before any answer.
    change, covariance
        Posterior mode and covariance of the change: a shift, a factor of the score, and steps of levels.
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
    """Return the links that a decision labels: the pair of the question, and all links between its groups.

    The pair has weight 1; the others, which are hardly independent of it, have a small total weight.
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
    if not any(len(beside) for beside in context):  # whole entities: the pairs within them are labelled, too
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
            weight[others == link[0]] += 1.0  # the link between the first records of the groups
        weight /= len(pairs)  # an answer about many groups still counts as one answer
        found.append(LabelledLinks(others, np.full(len(others), same), weight))
    return LabelledLinks.join(found)


def sure_links(scores: Floats, seed: int) -> LabelledLinks:
    """Return some confident links of either class, labelled by their scores."""
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
    """Learn weights from labelled links with these comparison levels.

    base
        The weights before any answer.
    weight
        The sample weight of each link.
    before
        The result from fewer answers, at which the fit starts.
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
    """Convert log odds to probabilities."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * np.asarray(odds, np.float64)))


def damped(odds: Floats, variance: Floats) -> NDArray[np.float64]:
    """Convert uncertain log odds to probabilities, which are moved towards one half."""
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
    """Fit a logistic regression with an offset and a normal prior around 0; return mode and covariance.

    offset
        Log odds at coefficients of 0.
    weight
        The sample weight of each example.
    spread
        Standard deviations of the prior.
    begin
        Initial coefficients; None for 0.
    """
    found = np.zeros(features.shape[1]) if begin is None else np.array(begin, np.float64)
    precision = np.diag(1.0 / np.asarray(spread, np.float64) ** 2)
    with threadpool_limits(1, "blas"):  # the matrices are too small for several threads to help
        for _ in range(25):
            chance = probability_of(offset + features @ found)
            gradient = features.T @ (weight * (same - chance)) - precision @ found
            certain = weight * np.maximum(chance * (1.0 - chance), 1e-6)
            curvature = (features * certain[:, None]).T @ features + precision
            step = np.linalg.solve(curvature, gradient)
            size = float(np.abs(features @ step).max(initial=0.0))
            found += step * min(1.0, 4.0 / max(size, 1e-12))  # limits the change of log odds in one step
            if size < SETTLED:
                break
        return found, np.asarray(np.linalg.inv(curvature), np.float64)


def _link_features(base: LevelWeights, levels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the features of links: a constant, the score before any answer, and steps of levels."""
    steps = [levels[:, [c]] >= np.arange(1, size + 1) for c, size in enumerate(base.sizes)]
    return np.column_stack([np.ones(len(levels)), base.link_scores(levels), *steps])


def _described(mean: Floats, best: Floats, together: Bools) -> NDArray[np.float64]:
    each = np.column_stack([np.ones(len(mean)), mean, best])
    return np.hstack(
        [np.where(together, 0.0, 1.0)[:, None] * each, np.where(together, 1.0, 0.0)[:, None] * each]
    )
