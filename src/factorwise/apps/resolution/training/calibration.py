"""From scores to probabilities: the temperature of single records, and the odds of merges.

Both are fitted on entities that the weights were not learned from, but among all the others: kept by
themselves they would meet few of the records that they can be confused with, and look surer than they are.

- SampleRank fixes which of two clusterings is better, not by how much. The temperature makes up for it: there
  the confidence in records is nearest to whether they are where they belong.
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
FOLDS = 5  # of merges: the probabilities of each are judged by odds that were learned from the others
CHANCE_DRAWS = 40  # that say how large an error is by chance
CHANCE_LIMIT = 0.95  # share of them with an error that chance is said to explain


class Calibration(NamedTuple):
    """How scores become probabilities, and how far these can be trusted.

    temperature
        At which scores give the probability of a record's entity, given those of all others.
    merges
        Odds that the parts of a merge are of one entity.
    reliability
        How often held-out pairs are of one entity, by their probability; None where there are none.
    uncertain_error, chance_error, chance_limit
        The calibration error among uncertain pairs alone; the one that probabilities without any fault would
        show on these pairs, in the mean and at most (in 19 cases of 20). None where there are none.
    """

    temperature: float = 1.0
    merges: MergeOdds = DEFAULT_ODDS
    reliability: Reliability | None = None
    uncertain_error: float | None = None
    chance_error: float | None = None
    chance_limit: float | None = None

    def as_dict(self) -> dict[str, object]:
        """Return how far probabilities can be trusted, as JSON values."""
        return {
            "reliability": None if self.reliability is None else self.reliability.as_dict(),
            "uncertain_error": self.uncertain_error,
            "chance_error": self.chance_error,
            "chance_limit": self.chance_limit,
        }


class Case(NamedTuple):
    """A clustering that was found, and what is true of it.

    truth
        Entities of the items of ``walk``, -1 where not known.
    judged
        The items that are judged; None for all.
    group
        Of each item: its block of entities, which are held out together; None for its entity.
    """

    walk: LinkWalk
    truth: Ints
    judged: Bools | None = None
    group: Ints | None = None

    def judged_items(self) -> Bools:
        """Return which items are judged, and of a known entity."""
        known = np.asarray(self.truth >= 0)
        return known if self.judged is None else known & self.judged


class _Judged(NamedTuple):
    """Linked pairs of judged items: their probability, whether same, how much each counts, and draws.

    drawn : bool[draws, pairs]
        Whether each is together in clusterings that were drawn from the probabilities.
    """

    together: NDArray[np.float32]
    same: Bools
    weight: Floats
    drawn: Bools


def calibrate(cases: Sequence[Case], *, seed: int, team: Team) -> Calibration:
    """Fit the temperature and the odds of merges; where nothing is linked, they are the defaults.

    cases
        Clusterings in which different items are judged.
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
    """Return how many of the items of each linked pair are judged, zero where truth does not say enough."""
    judged, known = case.judged_items(), np.asarray(case.truth >= 0)
    first, second = case.walk.graph.first, case.walk.graph.second
    both = known[first] & known[second]
    return np.where(both, judged[first].astype(np.float64) + judged[second], 0.0)


def _judge(case: Case, tree: MergeTree, chances: NDArray[np.float64], seed: int) -> _Judged:
    """Return the judged pairs of a case, with their probabilities by the chances of the nodes."""
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
    """Return the temperature at which the confidence of judged items is nearest to whether they are right.

    The distance is squared, which is bounded: items that no temperature moves do not heat all others.
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
    """Return whether each item is in the right cluster, given where all others of known entities are.

    It is if no other cluster has more of the others of its entity, and at least half of its own cluster is of
    its entity; by itself, if there are no others of its entity.
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
    """Return the chances of nodes, of each decided one by odds that were learned from other groups."""
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
