"""Questions that could be asked: two groups of records, and how probable it is that they are one entity.

Two entities with a link between them may be one; an entity may be two, cut where its records hang together
least. The answer changes the clustering if it is not what the clustering says now; what B-cubed then gains
or loses follows from the sizes of the groups alone: the records of A and B, when put together or taken apart,
change their share of the other group, 2 |A| |B| / (|A| + |B|) in sum over all of them.
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
LOWEST = -7.0  # scores of links between entities that are looked at, below zero
LOWEST_NEAR = -3.0  # the same right after an answer, when only the most likely ones matter
MOST_CROSSING = 300_000  # such links: of more the highest are looked at
WEAKEST = 3  # records of an entity that are asked about one by one
LARGEST_CUT = 60  # members of an entity that are looked at to find where to cut it


class QuestionPairs(NamedTuple):
    """Pairs of records, each standing for its group, in columns.

    left, right : int64[questions]
        Records that are linked: of two entities the most alike, of the parts of one the least alike.
    left_size, right_size : int64[questions]
        How many records the groups have.
    mean, best : float64[questions]
        The mean score of the pairs between the groups, and the highest.
    together : bool[questions]
        Whether the groups are in one entity now.
    variance : float64[questions]
        Of the score between left and right, as far as answers leave it open.
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
        """Return how much B-cubed changes, summed over records, if an answer is not what holds now."""
        return 2.0 * self.left_size * self.right_size / (self.left_size + self.right_size)

    def about(self, labels: Ints, entities: Ints) -> NDArray[np.bool_]:
        """Return which questions are about some entities."""
        return np.isin(labels[self.left], entities) | np.isin(labels[self.right], entities)

    def select(self, chosen: NDArray[np.bool_] | Ints) -> QuestionPairs:
        """Return some of the questions."""
        columns: Any = (column[chosen] for column in self)
        return QuestionPairs(*columns)

    def rows_of(self, rows: NDArray[np.int64]) -> QuestionPairs:
        """Return the questions with other names for the records."""
        return QuestionPairs(rows[self.left], rows[self.right], *self[2:])

    def plus(self, other: QuestionPairs) -> QuestionPairs:
        """Return the questions of both."""
        return QuestionPairs(*(np.concatenate(two) for two in zip(self, other, strict=True)))


def around(records: LinkedRecords, labels: Ints, entities: Ints) -> NDArray[np.int64]:
    """Return the records of some entities, and of those that could be one with them."""
    rows = np.flatnonzero(np.isin(labels, entities))
    _, entries = take_rows(records.graph.start, rows)
    good = records.scores[records.graph.pair[entries]] > LOWEST_NEAR
    beside = labels[records.graph.neighbor[entries[good]]]
    return np.flatnonzero(np.isin(labels, np.union1d(entities, beside)))


def near(records: LinkedRecords, labels: Ints, entities: Ints) -> QuestionPairs:
    """Return the questions about some entities, and about two of which one is one of them."""
    members = around(records, labels, entities)
    inside = np.isin(labels, entities)
    rows = np.flatnonzero(inside)
    merges = merge_candidates(records.region(members), labels[members])
    merges = merges.select(inside[members[merges.left]] | inside[members[merges.right]])
    splits = split_candidates(records.region(rows), labels[rows])
    return merges.rows_of(members).plus(splits.rows_of(rows))


def candidates_of(records: LinkedRecords, labels: Ints) -> QuestionPairs:
    """Return the questions about records and their entities."""
    return merge_candidates(records, labels).plus(split_candidates(records, labels))


def merge_candidates(records: LinkedRecords, labels: Ints) -> QuestionPairs:
    """Return a question for every two entities with a link between them that is worth a thought."""
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
    """Return questions for entities that may be two: the weakest records of each, and the weakest cut.

    most
        Entities for which a cut is looked for: those that would change most.
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
    """Return which members of an entity would rather be with ``right``, were it cut between two of them."""
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
    """Return the scores of all pairs of some records, ascending, as a matrix."""
    graph, pair = records.graph.restrict_to(members)
    matrix = np.full((len(members), len(members)), records.weights.unlinked)
    np.fill_diagonal(matrix, 0.0)
    matrix[graph.first, graph.second] = matrix[graph.second, graph.first] = records.scores[pair]
    return matrix


def _cut(records: LinkedRecords, members: Ints) -> tuple[float, ...] | None:
    """Cut an entity in two where it hangs together least; None where a single record is cut off."""
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
