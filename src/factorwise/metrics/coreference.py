"""Metrics of coreference: MUC, CEAF, BLANC, LEA, the CoNLL average; and all metrics of clusterings at once.

The figures are those of the reference scorer of the CoNLL shared tasks, version 8.01, for mentions that are
given; those of LEA follow its authors' scorer. Clusters of one item count. Where the definitions leave a gap:

- MUC counts links only and is 0 if a side has none: two equal clusterings of singletons get MUC 0.
- BLANC is the mean of a figure for pairs that belong together and one for pairs that do not; if the truth has
  pairs of one kind only, that kind alone decides, and a single item, which has no pairs, gets 0.
- LEA gives a cluster of one item a link to itself, which is found if the item is alone on the other side too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.metrics.clustering import (
    ClusterLabels,
    ClusterScore,
    Contingency,
    IndexTally,
    Tally,
    document_tables,
    tally_adjusted_rand,
    tally_b_cubed,
    tally_pairwise,
    tally_rand,
)
from factorwise.types import Floats, Int32s, Int64s

#: Larger tables of similarities are kept sparse in CEAF, with only the cells that have items.
DENSE_CELLS = 10_000


@dataclass(frozen=True, slots=True)
class BlancTally:
    """Tallies of the pairs of items that belong together and of those that do not."""

    together: Tally
    apart: Tally

    def __add__(self, other: BlancTally) -> BlancTally:
        return BlancTally(self.together + other.together, self.apart + other.apart)

    @property
    def score(self) -> ClusterScore:
        """The mean of both kinds, or the only kind that the truth has."""
        kinds = [kind.score for kind in (self.together, self.apart) if kind.recall_whole]
        precision, recall, f1 = (
            sum(getattr(kind, field) for kind in kinds) / max(len(kinds), 1) for field in ClusterScore._fields
        )
        return ClusterScore(precision, recall, f1)


def _plain(scores: ClusteringScores | FoundMentionScores) -> dict[str, Any]:
    """Return scores as plain values by name."""
    return {
        name: value._asdict() if isinstance(value, ClusterScore) else value
        for name, value in asdict(scores).items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringScores:
    """All metrics of a clustering.

    conll
        Mean of the F1 of MUC, B-cubed and CEAF-e.
    documents, items, true_clusters, predicted_clusters
        Number of documents, of items and of clusters.
    """

    pairwise: ClusterScore
    b_cubed: ClusterScore
    muc: ClusterScore
    ceaf_e: ClusterScore
    ceaf_m: ClusterScore
    blanc: ClusterScore
    lea: ClusterScore
    conll: float
    rand: float
    adjusted_rand: float
    documents: int
    items: int
    true_clusters: int
    predicted_clusters: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain values by name, for JSON."""
        return _plain(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringTally:
    """Tallies of all metrics; those of several documents can be added.

    >>> first = ClusteringTally.of(Contingency.of(["a", "a"], [0, 1]))
    >>> second = ClusteringTally.of(Contingency.of(["a", "a", "b"], [0, 0, 0]))
    >>> (first + second).scores.b_cubed.recall
    0.8
    """

    pairwise: Tally
    b_cubed: Tally
    muc: Tally
    ceaf_e: Tally
    ceaf_m: Tally
    blanc: BlancTally
    lea: Tally
    rand: IndexTally
    adjusted_rand: IndexTally
    documents: int
    items: int
    true_clusters: int
    predicted_clusters: int

    @classmethod
    def of(cls, table: Contingency) -> ClusteringTally:
        """Return the tallies of one document."""
        return cls(
            pairwise=tally_pairwise(table),
            b_cubed=tally_b_cubed(table),
            muc=tally_muc(table),
            ceaf_e=tally_ceaf_e(table),
            ceaf_m=tally_ceaf_m(table),
            blanc=tally_blanc(table),
            lea=tally_lea(table),
            rand=tally_rand(table),
            adjusted_rand=tally_adjusted_rand(table),
            documents=1,
            items=table.items,
            true_clusters=len(table.true_size),
            predicted_clusters=len(table.predicted_size),
        )

    def __add__(self, other: ClusteringTally) -> ClusteringTally:
        names = [field.name for field in fields(self)]
        return ClusteringTally(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def scores(self) -> ClusteringScores:
        """All figures."""
        muc, b_cubed, ceaf_e = self.muc.score, self.b_cubed.score, self.ceaf_e.score
        return ClusteringScores(
            pairwise=self.pairwise.score,
            b_cubed=b_cubed,
            muc=muc,
            ceaf_e=ceaf_e,
            ceaf_m=self.ceaf_m.score,
            blanc=self.blanc.score,
            lea=self.lea.score,
            conll=(muc.f1 + b_cubed.f1 + ceaf_e.f1) / 3,
            rand=self.rand.score,
            adjusted_rand=self.adjusted_rand.score,
            documents=self.documents,
            items=self.items,
            true_clusters=self.true_clusters,
            predicted_clusters=self.predicted_clusters,
        )


def score_clusterings(truth: ClusterLabels, predicted: ClusterLabels) -> ClusteringScores:
    """Return all metrics of one predicted clustering, from two labels for each item.

    >>> scores = score_clusterings("a a b b".split(), [0, 0, 0, 1])
    >>> round(scores.conll, 3), scores.as_dict()["muc"]["recall"]
    (0.646, 0.5)
    """
    return ClusteringTally.of(Contingency.of(truth, predicted)).scores


def score_documents(truth: Iterable[ClusterLabels], predicted: Iterable[ClusterLabels]) -> ClusteringScores:
    """Return all metrics over several documents, with numerators and denominators summed.

    >>> score_documents([["a", "a"], ["a"]], [[0, 1], [0]]).b_cubed
    ClusterScore(precision=1.0, recall=0.6666666666666666, f1=0.8)
    """
    return reduce(add, map(ClusteringTally.of, document_tables(truth, predicted))).scores


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMentionScores:
    """How well mentions that a program found, and their clusters, agree with the true ones.

    mentions
        Precision and recall of the mentions, whatever their clusters.
    conll
        Mean of the F1 of MUC, B-cubed and CEAF-e, as the scorer of the shared tasks computes them: a mention
        that one side lacks counts against the other.
    """

    mentions: ClusterScore
    b_cubed: ClusterScore
    muc: ClusterScore
    ceaf_e: ClusterScore
    lea: ClusterScore
    conll: float
    documents: int
    true_mentions: int
    predicted_mentions: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain values by name, for JSON."""
        return _plain(self)


def score_found_mentions(
    truth: Iterable[Mapping[Any, Hashable]], predicted: Iterable[Mapping[Any, Hashable]]
) -> FoundMentionScores:
    """Score clusters of mentions that may differ from the true mentions, over several documents.

    truth, predicted
        For each document, the cluster of each mention; mentions may be identified by their positions.

    >>> score_found_mentions([{(0, 1): "a", (3, 4): "a"}], [{(0, 1): 0, (5, 6): 0}]).mentions.recall
    0.5
    """
    tables = [Contingency.of_items(*sides) for sides in zip(truth, predicted, strict=True)]
    if not any(table.true_items for table in tables):
        raise InvalidArgumentError("there are no true mentions to compare with: give at least one.")

    def pooled(tally: Callable[[Contingency], Tally]) -> ClusterScore:
        return reduce(add, map(tally, tables)).score

    scores = {name: pooled(tally) for name, tally in _FOUND.items()}
    return FoundMentionScores(
        **scores,
        conll=(scores["muc"].f1 + scores["b_cubed"].f1 + scores["ceaf_e"].f1) / 3,
        documents=len(tables),
        true_mentions=sum(table.true_items for table in tables),
        predicted_mentions=sum(table.predicted_items for table in tables),
    )


def muc(truth: ClusterLabels, predicted: ClusterLabels) -> ClusterScore:
    """Return MUC: the share of the links between the members of clusters that is found.

    A cluster of n items takes n - 1 links; cut into p pieces by the other side, it keeps n - p of them.

    >>> muc(["a", "a", "b", "b"], [0, 0, 0, 1]).recall
    0.5
    """
    return tally_muc(Contingency.of(truth, predicted)).score


def ceaf_e(truth: ClusterLabels, predicted: ClusterLabels) -> ClusterScore:
    """Return entity-based CEAF: true and predicted clusters are matched one to one for the largest overlap.

    The overlap of two clusters is twice the number of shared items by the sum of their sizes.

    >>> ceaf_e(["a", "a", "b", "b"], [0, 0, 0, 0]).recall
    0.3333333333333333
    """
    return tally_ceaf_e(Contingency.of(truth, predicted)).score


def ceaf_m(truth: ClusterLabels, predicted: ClusterLabels) -> ClusterScore:
    """Return mention-based CEAF: the share of items that the best one-to-one matching gets right."""
    return tally_ceaf_m(Contingency.of(truth, predicted)).score


def blanc(truth: ClusterLabels, predicted: ClusterLabels) -> ClusterScore:
    """Return BLANC: the mean of the figures for pairs that belong together and pairs that do not."""
    return tally_blanc(Contingency.of(truth, predicted)).score


def lea(truth: ClusterLabels, predicted: ClusterLabels) -> ClusterScore:
    """Return LEA: the share of each cluster's links that is found, averaged with sizes as weights."""
    return tally_lea(Contingency.of(truth, predicted)).score


def conll_average(truth: ClusterLabels, predicted: ClusterLabels) -> float:
    """Return the mean F1 of MUC, B-cubed and CEAF-e, as in the CoNLL shared tasks."""
    table = Contingency.of(truth, predicted)
    return sum(tally(table).score.f1 for tally in (tally_muc, tally_b_cubed, tally_ceaf_e)) / 3


def tally_muc(table: Contingency) -> Tally:
    """Return the tally of `muc`: each cell of the table is one piece of a true and of a predicted cluster."""
    kept = table.items - len(table.shared)
    links = table.predicted_items - len(table.predicted_size)
    return Tally(kept, links, kept, table.true_items - len(table.true_size))


def tally_ceaf_e(table: Contingency) -> Tally:
    """Return the tally of `ceaf_e`."""
    overlap = 2 * table.shared / (table.true_size[table.true] + table.predicted_size[table.predicted])
    best = best_matching(table, overlap)
    return Tally(best, len(table.predicted_size), best, len(table.true_size))


def tally_ceaf_m(table: Contingency) -> Tally:
    """Return the tally of `ceaf_m`."""
    best = best_matching(table, table.shared.astype(np.float64))
    return Tally(best, table.predicted_items, best, table.true_items)


def _tally_mentions(table: Contingency) -> Tally:
    return Tally(table.items, table.predicted_items, table.items, table.true_items)


def tally_blanc(table: Contingency) -> BlancTally:
    """Return the tally of `blanc`; over documents, of the pairs within them."""
    pairs = table.pairs
    apart = pairs.all - pairs.true - pairs.predicted + pairs.both
    return BlancTally(
        Tally(pairs.both, pairs.predicted, pairs.both, pairs.true),
        Tally(apart, pairs.all - pairs.predicted, apart, pairs.all - pairs.true),
    )


def tally_lea(table: Contingency) -> Tally:
    """Return the tally of `lea`."""
    return Tally(_resolved(table.swapped), table.predicted_items, _resolved(table), table.true_items)


_FOUND = {
    "mentions": _tally_mentions,
    "b_cubed": tally_b_cubed,
    "muc": tally_muc,
    "ceaf_e": tally_ceaf_e,
    "lea": tally_lea,
}


def _resolved(table: Contingency) -> float:
    """Return the sum over true clusters of their items times the share of links that is found."""
    size = table.true_size[table.true]
    alone = (size == 1) & (table.predicted_size[table.predicted] == 1)
    # Size times found links over all links: the size cancels, and one shared item is not a link.
    linked = table.shared * (table.shared - 1) / np.maximum(size - 1, 1)
    return float(linked.sum() + alone.sum())


def best_matching(table: Contingency, similarity: Floats) -> float:
    """Return the largest sum of similarities of cells of which no two are in the same cluster.

    similarity
        Greater than zero, one for each cell of the table, shape (cells,).

    Clusters that do not overlap, directly or through others, are matched separately. Most such groups have a
    single cluster on one side, which takes its best partner; the others are linear assignment problems.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n_true, n_predicted = len(table.true_size), len(table.predicted_size)
    graph = csr_array(
        (np.ones(len(similarity), dtype=bool), (table.true, table.predicted + n_true)),
        shape=(n_true + n_predicted, n_true + n_predicted),
    )
    n_groups, group = connected_components(graph, directed=False)
    n_rows = np.bincount(group[:n_true], minlength=n_groups)
    n_columns = np.bincount(group[n_true:], minlength=n_groups)
    group_of_cell = group[table.true]
    best = np.zeros(n_groups)
    np.maximum.at(best, group_of_cell, similarity)

    tangled = (n_rows > 1) & (n_columns > 1)
    cells = np.flatnonzero(tangled[group_of_cell])
    cells = cells[np.argsort(group_of_cell[cells], kind="stable")]
    ends = np.cumsum(np.bincount(group_of_cell[cells], minlength=n_groups))[tangled]
    row, column = _rank_within(group[:n_true], n_rows), _rank_within(group[n_true:], n_columns)
    start = 0
    for number, end in zip(np.flatnonzero(tangled), ends.tolist(), strict=True):
        chosen = cells[start:end]
        best[number] = _assigned(
            row[table.true[chosen]],
            column[table.predicted[chosen]],
            similarity[chosen],
            (int(n_rows[number]), int(n_columns[number])),
        )
        start = end
    return float(best.sum())


def _rank_within(group: Int32s, size: Int64s) -> Int64s:
    """Return the position of each element within its group."""
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - (np.cumsum(size) - size)[group[order]]
    return rank


def _assigned(row: Int64s, column: Int64s, similarity: Floats, shape: tuple[int, int]) -> float:
    """Return the largest sum of similarities over one-to-one choices of rows and columns."""
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    n_rows, n_columns = shape
    if n_rows * n_columns <= DENSE_CELLS:
        dense = np.zeros(shape)
        dense[row, column] = similarity
        return float(dense[linear_sum_assignment(dense, maximize=True)].sum())
    # The sparse solver must match every row and reads a weight of zero as a missing cell: each row gets its
    # own column to fall back on, and all weights grow by one, which adds the same to every full matching.
    rows = np.arange(n_rows)
    ends = [(row, rows), (column, n_columns + rows)]
    # Older versions of the solver only accept 32-bit indices.
    ends32 = tuple(np.concatenate(parts).astype(np.int32) for parts in ends)
    weight = csr_array(
        (np.concatenate((similarity + 1.0, np.ones(n_rows))), ends32), shape=(n_rows, n_columns + n_rows)
    )
    partner = np.empty(n_rows, dtype=np.int64)
    matched_rows, matched_columns = min_weight_full_bipartite_matching(weight, maximize=True)
    partner[matched_rows] = matched_columns
    return float(similarity[partner[row] == column].sum())
