"""Folds of entities, and the quality of clusterings by out-of-fold scores.

A pair is scored by weights that were learned without the fold of either of its records. All records are then
clustered together by these scores, with all records that they are linked with: in a smaller table, entities
would be easier to separate than they are in the whole table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.training.examples import PairExamples, TrainingData
from factorwise.apps.resolution.training.pair_regression import fit_slope_and_shift
from factorwise.kernels.graphs.components import component_numbers
from factorwise.metrics.clustering import ClusterScore, Tally
from factorwise.types import Bools, Floats, Ints

FOLDS = 3
FEWEST_ENTITIES = 6  # with fewer known entities, no folds are made
DENSE = 0.5  # share of linked pairs from which on two entities belong to one block
LARGEST_BLOCK = 0.2  # largest share of records in a block; beyond it, blocks are not used
MOST_JUDGED = 10_000  # most records on which clusterings are compared

Scorer = Callable[[NDArray[np.uint8]], Floats]


class Judgement(NamedTuple):
    """The quality of out-of-fold scores, and of a clustering by them, on some records.

    precision, recall : float64[records]
        The B-cubed precision and recall of each record.
    group : int64[records]
        The entity, or block of entities, of each record.
    loss : float64[groups]
        Logistic loss of the pairs of each group, after a slope and a shift were fitted to the scores.
    """

    precision: Floats
    recall: Floats
    group: Ints
    loss: Floats

    @property
    def score(self) -> ClusterScore:
        """B-cubed precision, recall and F1 of all records."""
        count = float(len(self.group))
        return Tally(float(self.precision.sum()), count, float(self.recall.sum()), count).score

    def lead_over(self, other: Judgement) -> tuple[float, float]:
        """Return the lead in F1 over another judgement on the same records, and its standard error.

        The standard error uses the first-order contribution of each group to the difference.
        """
        mine, its = self.score, other.score
        part = self._influence(mine) - other._influence(its)
        _, number = np.unique(self.group, return_inverse=True)
        by_group = np.bincount(number, weights=part - part.mean())
        count = len(by_group)
        error = np.sqrt(float((by_group**2).sum()) * count / max(count - 1, 1)) / max(len(part), 1)
        return mine.f1 - its.f1, float(error)

    def loss_saved_over(self, other: Judgement) -> tuple[float, float]:
        """Return how much lower the pair loss is than that of another judgement, and its standard error."""
        saved = other.loss - self.loss
        count = len(saved)
        return float(saved.sum()), float(saved.std() * np.sqrt(count * count / max(count - 1, 1)))

    def _influence(self, score: ClusterScore) -> Floats:
        both = max(score.precision + score.recall, 1e-12)
        slopes = 2.0 * (score.recall / both) ** 2, 2.0 * (score.precision / both) ** 2
        return np.asarray(slopes[0] * self.precision + slopes[1] * self.recall)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutRecords:
    """Records in folds, and the evaluation records on which clusterings are compared.

    data, fold
        All training data, and the fold of each record: -1 where its entity is not known.
    among, fold_among
        The evaluation records with all records that they are linked with, and their folds.
    records
        The row in ``data`` of each record of ``among``.
    judged, group
        Whether each record of ``among`` is an evaluation record, and its entity or block of entities.
    """

    data: TrainingData
    fold: NDArray[np.int64]
    among: TrainingData
    fold_among: NDArray[np.int64]
    records: NDArray[np.int64]
    judged: Bools
    group: NDArray[np.int64]

    def out_of_fold_scores(self, fit: Callable[[PairExamples], Scorer]) -> Floats:
        """Return the out-of-fold score of each linked pair of ``among``.

        A pair across two folds gets the mean of two scores, and a pair without known entities that of all.
        """
        return self.scores_by_fold(lambda fold: fit(self.data.pair_examples(self.fold != fold)))

    def scores_by_fold(self, fit: Callable[[int], Scorer]) -> Floats:
        """Return out-of-fold scores; ``fit`` returns a scorer that was fitted without a given fold."""
        graph = self.among.graph
        one, two = self.fold_among[graph.first], self.fold_among[graph.second]
        unknown = (one < 0) & (two < 0)
        total, count = np.zeros(len(one)), np.zeros(len(one))
        for fold in range(FOLDS):
            rows = np.flatnonzero((one == fold) | (two == fold) | unknown)
            total[rows] += fit(fold)(self.among.levels[rows])
            count[rows] += 1.0
        return np.asarray(total / count)

    def judge(self, labels: Ints, score: Floats) -> Judgement:
        """Evaluate out-of-fold scores of the pairs of ``among``, and a clustering by them.

        Records of unknown entities are ignored.
        """
        known = self.among.entity >= 0
        true, cluster = self.among.entity[known].astype(np.int64), labels[known].astype(np.int64)
        cells = true * (int(cluster.max(initial=0)) + 1) + cluster
        _, cell, shared = np.unique(cells, return_inverse=True, return_counts=True)
        both = shared[cell].astype(np.float64)
        chosen = self.judged[known]
        precision = (both / np.bincount(cluster)[cluster])[chosen]
        recall = (both / np.bincount(true)[true])[chosen]
        return Judgement(precision, recall, self.group[known][chosen], self._loss_by_group(score))

    def _loss_by_group(self, score: Floats) -> Floats:
        """Return the loss of evaluated pairs, summed by the group of their first record."""
        pairs, same, share = self.among.known_pairs(self.judged)
        slope, shift = fit_slope_and_shift(score[pairs], same, share)
        loss = share * np.logaddexp(0.0, np.where(same, -1.0, 1.0) * (slope * score[pairs] + shift))
        number = np.unique(self.group[self.judged], return_inverse=True)[1]
        place = np.full(len(self.judged), -1, np.int64)
        place[self.judged] = number
        groups = int(number.max(initial=-1)) + 1
        sums = np.bincount(place[self.among.graph.first[pairs]], weights=loss, minlength=groups)
        return np.asarray(sums, np.float64)


def hold_out(data: TrainingData, seed: int) -> HeldOutRecords | None:
    """Split entities into folds of about equal size, keeping blocks whole; None if there are few entities.

    The data has blocks if entities that are linked by most of their pairs form many groups, such as the
    authors who share a name. Weights learned from one part of a block fit its other part better than they
    will fit a new block.
    """
    entity = data.entity
    known = entity >= 0
    if int(entity.max(initial=-1)) + 1 < FEWEST_ENTITIES:
        return None
    block = _blocks(data)
    size = np.bincount(block[entity[known]])
    order = np.random.default_rng([seed, 2]).permutation(len(size))
    fold = np.full(len(entity), -1, np.int64)
    fold[known] = _balanced(size, order)[block[entity[known]]]
    group = np.where(known, block[entity], -1)
    judged = known
    if int(known.sum()) > MOST_JUDGED:
        chosen = np.zeros(len(size), bool)
        chosen[order[np.cumsum(size[order]) <= MOST_JUDGED]] = True
        judged = known & chosen[group]
    if judged.all():
        return HeldOutRecords(data, fold, data, fold, np.arange(len(entity)), judged, group)
    there = np.flatnonzero(judged | data.linked_with(judged))
    return HeldOutRecords(data, fold, data.part(there), fold[there], there, judged[there], group[there])


def _balanced(size: Ints, order: Ints) -> NDArray[np.int64]:
    """Return the fold of each block: large blocks first, each into the fold with the fewest records."""
    fold, filled = np.zeros(len(size), np.int64), np.zeros(FOLDS)
    for block in order[np.argsort(-size[order], kind="stable")].tolist():
        fold[block] = int(np.argmin(filled))
        filled[fold[block]] += size[block]
    return fold


def _blocks(data: TrainingData) -> NDArray[np.int64]:
    """Return the block of each entity; each entity is its own block if the data has no blocks."""
    entity = data.entity.astype(np.int64)
    count = int(entity.max()) + 1
    one, two = entity[data.graph.first], entity[data.graph.second]
    across = (one >= 0) & (two >= 0) & (one != two)
    low, high = np.minimum(one, two)[across], np.maximum(one, two)[across]
    pairs, links = np.unique(low * count + high, return_counts=True)
    size = np.bincount(entity[entity >= 0], minlength=count)
    low, high = pairs // count, pairs % count
    dense = links >= DENSE * size[low] * size[high]
    block = component_numbers(count, low[dense], high[dense]).astype(np.int64)
    largest = float(np.bincount(block, weights=size).max()) / max(float(size.sum()), 1.0)
    return block if largest < LARGEST_BLOCK else np.arange(count)
