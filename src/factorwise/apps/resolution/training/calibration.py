"""Calibration: turn scores into probabilities, with a temperature for single records and odds of merges.

Both are fitted on held-out entities, which are clustered together with all other records: in a smaller table
they would meet few of the records that they can be confused with, and probabilities would be overconfident.

- SampleRank learns which of two clusterings is better, but not by how much. The temperature is chosen so that
  the confidence of records is closest to whether they are in the right cluster.
- The odds of merges give clusterings, pairs and whole entities their probabilities: see `merge_odds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.merge_odds import (
    DEFAULT_ODDS,
    MergeCases,
    MergeExamples,
    MergeOdds,
    decided_merges,
    fit_merge_odds,
    tree_of_walk,
)
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.merge_trees import SURE, MergeTree
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.calibration import Reliability, reliability
from factorwise.types import Bools, Floats, Ints

TEMPERATURES = tuple(float(t) for t in 0.1 * 2.0 ** (np.arange(17) / 2.0))
FOLDS = 5  # folds of merges; the probabilities of a fold come from odds learned on the others
CHANCE_DRAWS = 40  # draws from which the calibration error by chance is estimated
CHANCE_LIMIT = 0.95  # quantile of their errors up to which chance explains an error


class Calibration(NamedTuple):
    """How scores become probabilities, and how well calibrated these are.

    temperature
        Temperature of the probability of a record's entity, given the entities of all other records.
    merges
        Log odds that the two parts of a merge are one entity.
    reliability
        Share of matches among held-out pairs, by their probability; None if there are no held-out pairs.
    uncertain_error, chance_error, chance_limit
        Calibration error of the uncertain pairs alone, and the mean and the 95% quantile of the error that
        perfectly calibrated probabilities would show on these pairs. None if there are no such pairs.
    """

    temperature: float = 1.0
    merges: MergeOdds = DEFAULT_ODDS
    reliability: Reliability | None = None
    uncertain_error: float | None = None
    chance_error: float | None = None
    chance_limit: float | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the reliability and the calibration errors as JSON values."""
        return {
            "reliability": None if self.reliability is None else self.reliability.as_dict(),
            "uncertain_error": self.uncertain_error,
            "chance_error": self.chance_error,
            "chance_limit": self.chance_limit,
        }


class Case(NamedTuple):
    """A clustering from a search, and the true entities.

    truth
        Entities of the items of ``walk``, -1 where not known.
    judged
        Whether each item is evaluated; None for all.
    group
        The block of entities of each item, which is held out as a whole; None to use its entity.
    """

    walk: LinkWalk
    truth: Ints
    judged: Bools | None = None
    group: Ints | None = None

    def judged_items(self) -> Bools:
        """Return which items are evaluated and have a known entity."""
        known = np.asarray(self.truth >= 0)
        return known if self.judged is None else known & self.judged


class _Judged(NamedTuple):
    """Linked pairs of evaluated items: probability, whether they match, weight in the mean, and draws.

    drawn : bool[draws, pairs]
        Whether each pair is together in clusterings drawn from the probabilities.
    """

    together: NDArray[np.float32]
    same: Bools
    weight: Floats
    drawn: Bools


def calibrate(cases: Sequence[Case], *, seed: int, team: Team) -> Calibration:
    """Fit the temperature and the odds of merges; return the defaults if there are no linked pairs.

    cases
        Clusterings, each of which is evaluated on different items.
    """
    cases = [case for case in cases if _weights_of_pairs(case).any()]
    if not cases:
        return Calibration()
    trees = [tree_of_walk(case.walk) for case in cases]
    decided = [
        decided_merges(tree, case.truth, case.judged_items(), case.group)
        for tree, case in zip(trees, cases, strict=True)
    ]
    examples = [MergeExamples.of(tree, merges) for tree, merges in zip(trees, decided, strict=True)]
    merges = fit_merge_odds(examples)
    chances = _out_of_fold_chances(trees, decided, examples, merges, seed)
    judged = [
        _judge(case, tree, whole, seed) for case, tree, whole in zip(cases, trees, chances, strict=True)
    ]
    together, same, weight = (
        np.concatenate([getattr(one, name) for one in judged]) for name in ("together", "same", "weight")
    )
    found = Calibration(fit_temperature(cases, team=team), merges, reliability(together, same, weight=weight))
    uncertain = np.minimum(together, 1.0 - together) > SURE
    if not uncertain.any():
        return found

    def error(outcome: Bools) -> float:
        return reliability(together[uncertain], outcome[uncertain], weight=weight[uncertain]).error

    by_chance = [error(outcome) for outcome in np.concatenate([one.drawn for one in judged], axis=1)]
    return found._replace(
        uncertain_error=error(same),
        chance_error=float(np.mean(by_chance)),
        chance_limit=float(np.quantile(by_chance, CHANCE_LIMIT)),
    )


def _weights_of_pairs(case: Case) -> Floats:
    """Return how many items of each linked pair are evaluated; zero if one entity is not known."""
    judged, known = case.judged_items(), np.asarray(case.truth >= 0)
    first, second = case.walk.graph.first, case.walk.graph.second
    both = known[first] & known[second]
    return np.where(both, judged[first].astype(np.float64) + judged[second], 0.0)


def _judge(case: Case, tree: MergeTree, chances: NDArray[np.float64], seed: int) -> _Judged:
    """Return the evaluated pairs of a case, with probabilities from the chances of the tree's nodes."""
    graph, weight = case.walk.graph, _weights_of_pairs(case)
    pairs = np.flatnonzero(weight)
    posterior = tree.posterior(chances, graph, draws=CHANCE_DRAWS, seed=seed)
    first, second = graph.first[pairs], graph.second[pairs]
    return _Judged(
        posterior.together[pairs],
        case.truth[first] == case.truth[second],
        weight[pairs],
        posterior.labels[:, first] == posterior.labels[:, second],
    )


def fit_temperature(cases: Sequence[Case], *, team: Team) -> float:
    """Return the temperature with the least Brier score of the confidence of evaluated items.

    The Brier score is bounded, so items that are wrong at any temperature do not dominate the choice.
    """
    right = [is_right(case.truth, case.walk.labels) for case in cases]

    def loss(temperature: float) -> float:
        total = 0.0
        for case, is_home in zip(cases, right, strict=True):
            chances = case.walk.home_chances(temperature, team=team)
            total += float(np.sum((chances - is_home)[case.judged_items()] ** 2))
        return total

    return min(TEMPERATURES, key=loss)


def is_right(truth: Ints, labels: Ints) -> Bools:
    """Return whether each item is in the right cluster, given the clusters of all others of known entities.

    It is right if no other cluster holds more of the other items of its entity, and at least half of the
    others in its cluster are of its entity. An item without others of its entity is right as a singleton.
    """
    known = np.flatnonzero(truth >= 0)
    cluster = np.unique(labels[known], return_inverse=True)[1]
    entity = truth[known].astype(np.int64)
    cells, cell = np.unique(entity * (len(known) + 1) + cluster, return_inverse=True)
    shared = np.bincount(cell, minlength=len(cells))
    of_entity = cells // (len(known) + 1)
    order = np.lexsort((-shared, of_entity))
    first = np.append(True, of_entity[order][1:] != of_entity[order][:-1])[: len(order)]
    most = np.zeros(int(entity.max(initial=-1)) + 1, np.int64)
    most[of_entity[order[first]]] = order[first]
    runner_up = np.zeros(len(most), np.int64)
    later = np.flatnonzero(~first)
    later = later[first[later - 1]]
    runner_up[of_entity[order[later]]] = shared[order[later]]
    elsewhere = np.where(most[entity] == cell, runner_up[entity], shared[most[entity]])
    others = shared[cell] - 1
    size = np.bincount(cluster, minlength=1)[cluster] - 1
    right = np.zeros(len(truth), np.bool_)
    right[known] = (others >= elsewhere) & (2 * others >= size)
    return right


def _out_of_fold_chances(
    trees: Sequence[MergeTree],
    decided: Sequence[MergeCases],
    examples: Sequence[MergeExamples],
    merges: MergeOdds,
    seed: int,
) -> list[NDArray[np.float64]]:
    """Return the chances of nodes; those of decided nodes use odds learned on other groups."""
    chances = [merges.likely_chances(tree) for tree in trees]
    groups, number = np.unique(np.concatenate([cases.group for cases in decided]), return_inverse=True)
    fold_of = np.random.default_rng([seed, 4]).permutation(len(groups)) % FOLDS
    ends = np.cumsum([len(cases.group) for cases in decided])[:-1]
    folds = np.split(fold_of[number], ends)
    for fold in range(FOLDS):
        held = [of == fold for of in folds]
        others = fit_merge_odds([one.part(~some) for one, some in zip(examples, held, strict=True)])
        for tree, cases, some, found in zip(trees, decided, held, chances, strict=True):
            held_out = cases.node[some]
            found[:, held_out] = others.likely_chances(tree)[:, held_out]
    return chances
