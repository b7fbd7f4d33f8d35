"""Candidate questions: are two groups of records one entity?

Two entities with a link between them may be one, and one entity may be two, split at its weakest connection.
An answer changes the clustering if it contradicts it. The resulting change of B-cubed depends only on the
sizes of the groups: merging or splitting A and B changes it by 2 |A| |B| / (|A| + |B|), summed over all of
their records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import average
from scipy.spatial.distance import squareform

from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.curation.regions import LinkedRecords
from factorwise.types import Floats, Ints
from factorwise.variables.sparse_rows import take_rows

MERGE, SPLIT, WHOLE = "merge", "split", "whole"
LOWEST = -7.0  # lowest score of a link between entities for a merge question
LOWEST_NEAR = -3.0  # the same right after an answer, when only the most probable merges matter
MOST_CROSSING = 300_000  # most such links; if there are more, those with the highest scores are used
WEAKEST = 3  # weakest records of an entity that get a split question of their own
LARGEST_CUT = 60  # most members of an entity that are used to find a cut


class QuestionPairs(NamedTuple):
    """Pairs of records in columns, in which each record represents its group.

    left, right : int64[questions]
        Linked records: the most similar ones of two entities, or the least similar ones of two parts.
    left_size, right_size : int64[questions]
        The sizes of the two groups.
    mean, best : float64[questions]
        The mean score of the pairs between the groups, and the highest score.
    together : bool[questions]
        Whether the groups are currently in one entity.
    variance : float64[questions]
        The posterior variance of the score between left and right.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    left_size: NDArray[np.int64]
    right_size: NDArray[np.int64]
    mean: NDArray[np.float64]
    best: NDArray[np.float64]
    together: NDArray[np.bool_]
    variance: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.left)

    def change(self) -> NDArray[np.float64]:
        """Return the change of B-cubed, summed over records, if an answer contradicts the clustering."""
        return 2.0 * self.left_size * self.right_size / (self.left_size + self.right_size)

    def about(self, labels: Ints, entities: Ints) -> NDArray[np.bool_]:
        """Return which questions are about one of some entities."""
        return np.isin(labels[self.left], entities) | np.isin(labels[self.right], entities)

    def select(self, chosen: NDArray[np.bool_] | Ints) -> QuestionPairs:
        """Return some of the questions."""
        columns: Any = (column[chosen] for column in self)
        return QuestionPairs(*columns)

    def rows_of(self, rows: NDArray[np.int64]) -> QuestionPairs:
        """Return the questions with rows replaced by other record numbers."""
        return QuestionPairs(rows[self.left], rows[self.right], *self[2:])

    def plus(self, other: QuestionPairs) -> QuestionPairs:
        """Concatenate the questions of both."""
        return QuestionPairs(*(np.concatenate(two) for two in zip(self, other, strict=True)))


def around(records: LinkedRecords, labels: Ints, entities: Ints) -> NDArray[np.int64]:
    """Return the records of some entities, and of entities that may be the same as one of them."""
    rows = np.flatnonzero(np.isin(labels, entities))
    _, entries = take_rows(records.graph.start, rows)
    good = records.scores[records.graph.pair[entries]] > LOWEST_NEAR
    beside = labels[records.graph.neighbor[entries[good]]]
    return np.flatnonzero(np.isin(labels, np.union1d(entities, beside)))


def near(records: LinkedRecords, labels: Ints, entities: Ints) -> QuestionPairs:
    """Return the questions that involve at least one of some entities."""
    members = around(records, labels, entities)
    inside = np.isin(labels, entities)
    rows = np.flatnonzero(inside)
    merges = merge_candidates(records.region(members), labels[members])
    merges = merges.select(inside[members[merges.left]] | inside[members[merges.right]])
    splits = split_candidates(records.region(rows), labels[rows])
    return merges.rows_of(members).plus(splits.rows_of(rows))


def candidates_of(records: LinkedRecords, labels: Ints) -> QuestionPairs:
    """Return all candidate questions for the current entities."""
    return merge_candidates(records, labels).plus(split_candidates(records, labels))


def merge_candidates(records: LinkedRecords, labels: Ints) -> QuestionPairs:
    """Return a merge question for each pair of entities that is linked with a sufficient score."""
    graph, unlinked = records.graph, records.weights.unlinked
    number = np.unique(labels, return_inverse=True)[1]
    size = np.bincount(number)
    pairs = np.flatnonzero(records.scores > LOWEST)
    pairs = pairs[number[graph.first[pairs]] != number[graph.second[pairs]]]
    if records.sources is not None:
        held = replace(Constraints(), sources=records.sources, one_per_source=True)
        bits = held.source_bits(number, len(size))
        assert bits is not None
        clash = bits[number[graph.first[pairs]]] & bits[number[graph.second[pairs]]]
        pairs = pairs[clash == 0]
    if len(pairs) > MOST_CROSSING:
        highest = np.argpartition(-records.scores[pairs], MOST_CROSSING)[:MOST_CROSSING]
        pairs = np.sort(pairs[highest])
    first, second = graph.first[pairs].astype(np.int64), graph.second[pairs].astype(np.int64)
    one, two = number[first], number[second]
    key = np.minimum(one, two) * len(size) + np.maximum(one, two)
    order = np.lexsort((-records.scores[pairs], key))
    starts = np.flatnonzero(np.append(True, np.diff(key[order]) != 0)) if len(order) else order
    heads = order[starts]
    beyond = records.scores[pairs][order].astype(np.float64) - unlinked
    total = np.add.reduceat(beyond, starts) if len(starts) else np.zeros(0)
    left_size, right_size = size[one[heads]], size[two[heads]]
    return QuestionPairs(
        left=first[heads],
        right=second[heads],
        left_size=left_size,
        right_size=right_size,
        mean=total / (left_size * right_size) + unlinked,
        best=records.scores[pairs[heads]].astype(np.float64),
        together=np.zeros(len(heads), bool),
        variance=np.zeros(len(heads)),
    )


def split_candidates(records: LinkedRecords, labels: Ints, most: int = 100) -> QuestionPairs:
    """Return split questions: for the weakest records of each entity, and for its weakest cut.

    most
        The number of entities for which a cut is searched: those that would change most.
    """
    graph, unlinked = records.graph, records.weights.unlinked
    number = np.unique(labels, return_inverse=True)[1]
    size = np.bincount(number)
    inside = np.flatnonzero(number[graph.first] == number[graph.second])
    item = np.concatenate([graph.first[inside], graph.second[inside]]).astype(np.int64)
    other = np.concatenate([graph.second[inside], graph.first[inside]]).astype(np.int64)
    score = np.tile(records.scores[inside].astype(np.float64), 2)
    total = np.bincount(item, weights=score - unlinked, minlength=len(number))
    mean = np.where(size[number] > 1, total / np.maximum(size[number] - 1, 1) + unlinked, np.inf)
    best, worst = np.full(len(number), -np.inf), np.full(len(number), np.inf)
    np.maximum.at(best, item, score)
    np.minimum.at(worst, item, score)
    partner = np.full(len(number), -1, np.int64)
    reached = score == worst[item]
    partner[item[reached]] = other[reached]
    order = np.lexsort((mean, number))
    rank = np.arange(len(order)) - np.append(0, np.cumsum(size))[number[order]]
    weakest = order[rank < WEAKEST]
    weakest = weakest[(size[number[weakest]] > 1) & (partner[weakest] >= 0)]
    ones = np.ones(len(weakest), np.int64)
    alone = QuestionPairs(
        left=weakest,
        right=partner[weakest],
        left_size=ones,
        right_size=size[number[weakest]] - 1,
        mean=mean[weakest],
        best=best[weakest],
        together=np.ones(len(weakest), bool),
        variance=np.zeros(len(weakest)),
    )
    large = np.flatnonzero(size >= 4)
    doubt = size[large] / (1.0 + np.exp(np.clip(_entity_means(mean, number, size)[large], -30, 30)))
    chosen = large[np.argsort(-doubt, kind="stable")][:most]
    by_entity = np.argsort(number, kind="stable")
    starts = np.append(0, np.cumsum(size))
    cuts = [_cut(records, by_entity[starts[k] : starts[k + 1]]) for k in chosen.tolist()]
    return alone.plus(_columns([cut for cut in cuts if cut is not None]))


def sides(records: LinkedRecords, members: Ints, left: int, right: int) -> NDArray[np.bool_]:
    """Return which members go with ``right`` if the entity is split between ``left`` and ``right``."""
    matrix = _scores(records, members)
    places = {record: place for place, record in enumerate(members.tolist())}
    mine = np.zeros(len(members), bool)
    mine[places[right]] = True
    fixed = [places[left], places[right]]
    for _ in range(5):
        gain = (matrix @ mine) / mine.sum() - (matrix @ ~mine) / (~mine).sum()
        fresh = gain > 0
        fresh[fixed] = [False, True]
        if (fresh == mine).all():
            break
        mine = fresh
    return mine


def _entity_means(mean: Floats, number: Ints, size: Ints) -> NDArray[np.float64]:
    finite = np.where(np.isfinite(mean), mean, 0.0)
    return np.bincount(number, weights=finite, minlength=len(size)) / size


def _scores(records: LinkedRecords, members: Ints) -> NDArray[np.float64]:
    """Return a matrix of the scores of all pairs of some records, given in ascending order."""
    graph, pair = records.graph.restrict_to(members)
    matrix = np.full((len(members), len(members)), records.weights.unlinked)
    np.fill_diagonal(matrix, 0.0)
    matrix[graph.first, graph.second] = matrix[graph.second, graph.first] = records.scores[pair]
    return matrix


def _cut(records: LinkedRecords, members: Ints) -> tuple[float, ...] | None:
    """Split an entity at its weakest connection; return None if this cuts off a single record."""
    size = len(members)
    if size > LARGEST_CUT:
        members = np.sort(np.random.default_rng(size).choice(members, LARGEST_CUT, replace=False))
    matrix = _scores(records, members)
    distance = matrix.max() - matrix
    np.fill_diagonal(distance, 0.0)
    tree = average(squareform(distance, checks=False))
    right = np.zeros(len(members), bool)
    stack = [int(tree[-1, 1])]
    while stack:
        node = stack.pop()
        if node < len(members):
            right[node] = True
        else:
            stack += [int(tree[node - len(members), side]) for side in (0, 1)]
    if min(right.sum(), (~right).sum()) < 2:
        return None
    between = matrix[np.ix_(~right, right)]
    linked = np.where(between == records.weights.unlinked, np.inf, between)
    row, column = np.unravel_index(int(linked.argmin()), between.shape)
    scale = size / len(members)
    return (
        float(members[~right][row]),
        float(members[right][column]),
        float(round((~right).sum() * scale)),
        float(round(right.sum() * scale)),
        float(between.mean()),
        float(between.max()),
    )


def _columns(cuts: list[tuple[float, ...]]) -> QuestionPairs:
    table = np.array(cuts, np.float64).reshape(-1, 6).T
    whole = [column.astype(np.int64) for column in table[:4]]
    together = np.ones(table.shape[1], bool)
    unknown = np.zeros(table.shape[1])
    return QuestionPairs(whole[0], whole[1], whole[2], whole[3], table[4], table[5], together, unknown)
