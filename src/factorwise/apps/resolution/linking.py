"""From a table to a walk: candidates, their comparison, and the clustering that is searched for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from factorwise.apps.resolution.blocking import Candidates, find_candidates
from factorwise.apps.resolution.comparisons import Comparer
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.forms import NormalTable
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.normal_forms import normalize
from factorwise.inference.mcmc.linkage import LinkGraph, LinkWalk
from factorwise.kernels.threads import Team
from factorwise.types import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """Records with scored links, ready to be clustered.

    normal, candidates
        Their normal forms and the candidate pairs, in rows of the table.
    scores : float32[pairs]
        Of the candidate pairs if they are together.
    unit : int32[rows]
        The item of the walk that stands for each record: records that must be together share one.
    walk
        A clustering of the items, every one by itself to begin with.
    keys
        For each blocking rule the key of every item.
    """

    normal: NormalTable
    candidates: Candidates
    scores: NDArray[np.float32]
    unit: NDArray[np.int32]
    walk: LinkWalk
    keys: list[NDArray[np.int64]]

    def rows_of_units(self, labels: Ints) -> NDArray[np.int32]:
        """Return for each record the label of its item."""
        return np.asarray(labels[self.unit], np.int32)


def link(
    table: pa.Table,
    knowledge: Knowledge,
    *,
    constraints: Constraints | None = None,
    team: Team,
) -> Linked:
    """Find the candidates of a table and score them."""
    normal = normalize(table, knowledge.fields)
    limits = constraints or Constraints()
    candidates = find_candidates(
        normal,
        knowledge.rules,
        sources=limits.sources,
        within=not limits.one_per_source,
        threads=team.threads,
    )
    scores = score_pairs(normal, knowledge, candidates.first, candidates.second, team)
    return joined(normal, candidates, scores, knowledge, limits)


def score_pairs(
    normal: NormalTable, knowledge: Knowledge, first: Ints, second: Ints, team: Team
) -> NDArray[np.float32]:
    """Return the scores of pairs of rows."""
    model = knowledge.model
    comparer = Comparer(normal, knowledge.comparisons)
    return np.float32(model.link) + comparer.scores(model.tables(), first, second, team)


def joined(
    normal: NormalTable,
    candidates: Candidates,
    scores: NDArray[np.float32],
    knowledge: Knowledge,
    limits: Constraints,
) -> Linked:
    """Make the items of the walk, and lay out their links.

    Items are numbered by the key of the first rule, so that those that meet often lie together in memory.
    """
    n, model = normal.n_rows, knowledge.model
    unit = _units(n, limits.must, candidates.keys[0] if candidates.keys else None)
    first, second, score = unit[candidates.first], unit[candidates.second], scores
    if len(limits.must) or len(limits.cannot):
        first, second, score = _merged(first, second, score, unit, limits, model.apart)
    graph = LinkGraph.from_pairs(int(unit.max(initial=-1)) + 1, first, second)
    weight = np.bincount(unit, minlength=graph.n_items)
    keys = [_of_units(key, unit, graph.n_items) for key in candidates.keys]
    sources = limits.source_bits(unit, graph.n_items)
    walk = LinkWalk(graph, score, apart=model.apart, cluster=model.cluster, weight=weight, sources=sources)
    return Linked(normal, candidates, scores, unit, walk, keys)


def _units(n: int, must: Ints, key: Ints | None) -> NDArray[np.int32]:
    order = np.arange(n) if key is None else np.argsort(key, kind="stable")
    unit = np.empty(n, np.int32)
    unit[order] = np.arange(n, dtype=np.int32)
    if not len(must):
        return unit
    ties = coo_array((np.ones(len(must)), (must[:, 0], must[:, 1])), shape=(n, n))
    together = connected_components(ties, directed=False)[1]
    smallest = np.full(n, n, np.int32)
    np.minimum.at(smallest, together, unit)
    return np.unique(smallest[together], return_inverse=True)[1].astype(np.int32)


def _merged(
    first: Ints, second: Ints, score: NDArray[np.float32], unit: Ints, limits: Constraints, apart: float
) -> tuple[Ints, Ints, NDArray[np.float32]]:
    """Add up the links of records that are one item, and forbid what must not be together."""
    cannot = unit[limits.cannot].reshape(-1, 2)
    one = np.concatenate([first, cannot[:, 0]]).astype(np.int64)
    two = np.concatenate([second, cannot[:, 1]]).astype(np.int64)
    beyond = np.concatenate([score.astype(np.float64) - apart, np.full(len(cannot), -np.inf)])
    apart_already = one != two
    low, high = np.minimum(one, two)[apart_already], np.maximum(one, two)[apart_already]
    n = int(unit.max(initial=0)) + 1
    pairs, place = np.unique(low * n + high, return_inverse=True)
    total = np.zeros(len(pairs))
    np.add.at(total, place, beyond[apart_already])
    return pairs // n, pairs % n, (total + apart).astype(np.float32)


def _of_units(key: Ints, unit: Ints, n_items: int) -> NDArray[np.int64]:
    found = np.full(n_items, -1, np.int64)
    np.maximum.at(found, unit, key)
    return found
