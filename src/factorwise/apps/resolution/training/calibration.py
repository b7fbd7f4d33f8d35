"""From scores to probabilities: the temperature of single records, and the odds of merges.

Both are fitted on entities that the weights were not learned from, but among all the others: kept by
themselves they would meet few of the records that they can be confused with, and look surer than they are.

- SampleRank fixes which of two clusterings is better, not by how much. The temperature makes up for it: there
  the confidence in records is nearest to whether they are where they belong.
- The odds of merges give clusterings, pairs and whole entities their probabilities: see `merge_odds`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.merge_odds import (
    DEFAULT_ODDS,
    MergeCases,
    MergeOdds,
    decided_merges,
    fit_merge_odds,
    tree_of_walk,
)
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.merge_trees import SURE, MergeTree
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.calibration import Reliability, reliability
from factorwise.types import Bools, Ints

TEMPERATURES = tuple(float(t) for t in 0.1 * 2.0 ** (np.arange(17) / 2.0))
FOLDS = 5  # of merges: the probabilities of each are judged by odds that were learned from the others
CHANCE_DRAWS = 20  # that say how large an error is by chance


class Calibration(NamedTuple):
    """How scores become probabilities, and how far these can be trusted.

    temperature
        At which scores give the probability of a record's entity, given those of all others.
    merges
        Odds that the parts of a merge are of one entity.
    reliability
        How often held-out pairs are of one entity, by their probability; None where there are none.
    uncertain_error, chance_error
        The calibration error among uncertain pairs alone, and the one that probabilities without any fault
        would show on as many pairs; None where there are none.
    """

    temperature: float = 1.0
    merges: MergeOdds = DEFAULT_ODDS
    reliability: Reliability | None = None
    uncertain_error: float | None = None
    chance_error: float | None = None

    def as_dict(self) -> dict[str, object]:
        """Return how far probabilities can be trusted, as JSON values."""
        return {
            "reliability": None if self.reliability is None else self.reliability.as_dict(),
            "uncertain_error": self.uncertain_error,
            "chance_error": self.chance_error,
        }


class Case(NamedTuple):
    """A clustering that was found, and what is true of it.

    truth
        Entities of the items of ``walk``, -1 where not known.
    judged
        The items that are judged; None for all.
    """

    walk: LinkWalk
    truth: Ints
    judged: Bools | None = None

    def judged_items(self) -> Bools:
        """Return which items are judged, and of a known entity."""
        known = np.asarray(self.truth >= 0)
        return known if self.judged is None else known & self.judged


def calibrate(case: Case, *, seed: int, team: Team) -> Calibration:
    """Fit the temperature and the odds of merges; where nothing is linked, they are the defaults."""
    judged = case.judged_items()
    first, second = case.walk.graph.first, case.walk.graph.second
    weight = judged[first].astype(np.float64) + judged[second]
    weight[(case.truth[first] < 0) | (case.truth[second] < 0)] = 0.0
    pairs = np.flatnonzero(weight)
    if not len(pairs):
        return Calibration()
    tree = tree_of_walk(case.walk)
    cases = decided_merges(tree, case.truth, judged)
    merges = fit_merge_odds(tree, cases)
    posterior = tree.posterior(
        _out_of_fold_chances(tree, cases, merges, seed), case.walk.graph, draws=CHANCE_DRAWS, seed=seed
    )
    together, same = posterior.together[pairs], case.truth[first[pairs]] == case.truth[second[pairs]]
    uncertain = np.minimum(together, 1.0 - together) > SURE
    found = Calibration(
        fit_temperature(case, judged, team=team), merges, reliability(together, same, weight=weight[pairs])
    )
    if not uncertain.any():
        return found
    pairs, together, same = pairs[uncertain], together[uncertain], same[uncertain]

    def error(outcome: Bools) -> float:
        return reliability(together, outcome, weight=weight[pairs]).error

    drawn = [error(labels[first[pairs]] == labels[second[pairs]]) for labels in posterior.labels]
    return found._replace(uncertain_error=error(same), chance_error=float(np.mean(drawn)))


def fit_temperature(case: Case, judged: Bools, *, team: Team) -> float:
    """Return the temperature at which the confidence of judged items is nearest to whether they are right.

    The distance is squared, which is bounded: items that no temperature moves do not heat all others.
    """
    right = is_right(case.truth, case.walk.labels)[judged]

    def loss(temperature: float) -> float:
        return float(np.sum((case.walk.home_chances(temperature, team=team)[judged] - right) ** 2))

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
    tree: MergeTree, cases: MergeCases, merges: MergeOdds, seed: int
) -> NDArray[np.float64]:
    """Return the chances of nodes, of each decided one by odds that were learned from the other folds."""
    chances = merges.chances(tree)
    fold: NDArray[np.int64] = np.random.default_rng([seed, 4]).permutation(len(cases.node)) % FOLDS
    for number in range(FOLDS):
        held = fold == number
        others = fit_merge_odds(tree, MergeCases(cases.node[~held], cases.same[~held]))
        chances[cases.node[held]] = others.chances(tree)[cases.node[held]]
    return chances
