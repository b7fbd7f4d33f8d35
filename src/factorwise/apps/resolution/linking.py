"""From a table to a walk: candidates, their comparison, and the clustering that is searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking import Candidates
from factorwise.apps.resolution.comparisons import Comparer, HasPairs, Pairs
from factorwise.apps.resolution.constraints import Constraints, tied
from factorwise.apps.resolution.context.features import PairContext
from factorwise.apps.resolution.context.model import FIRST_PASS as SEARCH
from factorwise.apps.resolution.context.model import STRICTNESS, ContextModel
from factorwise.apps.resolution.forms import NormalTable
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.normal_forms import normalize
from factorwise.apps.resolution.record_items import (
    LINKS,
    RecordItems,
    TemplateMaker,
    flat_weights,
    further_model,
    make_templates,
)
from factorwise.distributed.executors import Executor
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import parts
from factorwise.kernels.compile.threads import Team
from factorwise.kernels.graphs.components import component_numbers
from factorwise.model.link_templates import LinkTemplate
from factorwise.model.model import Model
from factorwise.types import Ints
from factorwise.world.links import LinkGraph


class FirstPass(NamedTuple):
    """Scores of candidate pairs by themselves, and the cluster of each record by them."""

    scores: NDArray[np.float32]
    labels: Ints


@dataclass(frozen=True, slots=True, eq=False)
class LinkedItems:
    """Items that stand for records, and a walk over their clusterings.

    unit : int32[rows]
        The item of the walk that stands for each record: records that must be together share one.
    walk
        A clustering of the items, every one by itself to begin with.
    """

    unit: NDArray[np.int32]
    walk: LinkWalk

    def rows_of_units(self, labels: Ints) -> NDArray[np.int32]:
        """Return for each record the label of its item."""
        return np.asarray(labels[self.unit], np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Linked(LinkedItems):
    """Records with links that were scored by comparing them, ready to be clustered.

    normal, candidates
        Their normal forms and the candidate pairs, in rows of the table.
    scores : float32[pairs]
        Of the candidate pairs if they are together.
    first_pass
        What the context of pairs was computed from, if there is one.
    """

    normal: NormalTable
    candidates: Candidates
    scores: NDArray[np.float32]
    first_pass: FirstPass | None = None


def link(
    table: pa.Table,
    knowledge: Knowledge,
    *,
    constraints: Constraints | None = None,
    templates: Sequence[TemplateMaker] = (),
    team: Team,
    executor: Executor | None = None,
) -> Linked:
    """Find the candidates of a table, by joins that the executor makes if there is one, and score them.

    templates
        Those of one's own that the weights were learned with.
    """
    limits = constraints or Constraints()
    limits.check()
    knowledge = knowledge.for_size(table.num_rows)
    normal = normalize(table, knowledge.fields)
    candidates = knowledge.candidates(
        normal,
        sources=limits.sources,
        within=not limits.one_per_source,
        filtered=True,
        threads=team.threads,
        executor=executor,
    )
    candidates, scores = score_candidates(normal, candidates, knowledge, limits, team)
    if knowledge.loses_links(candidates):
        knowledge = weigh_unlinked(table, normal, candidates, scores, knowledge, limits, team=team)
    if knowledge.context is None:
        return joined(table, normal, candidates, scores, knowledge, limits, templates)
    first = run_first_pass(table, normal, candidates, scores, knowledge, limits, team=team)
    scores = score_in_context(normal, candidates, first, knowledge.context)
    linked = joined(table, normal, candidates, scores, knowledge, limits, templates)
    return replace(linked, first_pass=first)


def weigh_unlinked(
    table: pa.Table,
    normal: NormalTable,
    candidates: Candidates,
    scores: NDArray[np.float32],
    knowledge: Knowledge,
    limits: Constraints,
    *,
    team: Team,
) -> Knowledge:
    """Return the model for the share of linked pairs in clusters that are found without that weight."""
    loose = replace(knowledge.with_linked_share(0.0), further={})
    labels = _search_by_pairs(joined(table, normal, candidates, scores, loose, limits), team)
    size = np.bincount(labels).astype(np.float64)
    together = np.count_nonzero(labels[candidates.first] == labels[candidates.second])
    return knowledge.with_linked_share(together / max(float((size * (size - 1.0)).sum()) / 2.0, 1.0))


def run_first_pass(
    table: pa.Table,
    normal: NormalTable,
    candidates: Candidates,
    scores: NDArray[np.float32],
    knowledge: Knowledge,
    limits: Constraints,
    *,
    team: Team,
) -> FirstPass:
    """Cluster records strictly by the scores of pairs alone: what the context of pairs is computed from."""
    plain = replace(knowledge, further={})
    strict = joined(table, normal, candidates, scores - np.float32(STRICTNESS), plain, limits)
    return FirstPass(scores, _search_by_pairs(strict, team))


def _search_by_pairs(linked: Linked, team: Team) -> NDArray[np.int32]:
    """Return the cluster of each record by a search that only prepares the one to show."""
    if SEARCH.run(linked.walk, seed=0, team=team).reason == "interrupted":
        raise KeyboardInterrupt  # there is nothing to show for it yet
    return linked.rows_of_units(linked.walk.labels)


def score_in_context(
    normal: NormalTable, candidates: HasPairs, first: FirstPass, model: ContextModel
) -> NDArray[np.float32]:
    """Return the scores of candidate pairs among the clusters of the first pass."""
    return model.scores(PairContext(normal, candidates.first, candidates.second, first.scores, first.labels))


def score_candidates(
    normal: NormalTable, candidates: Candidates, knowledge: Knowledge, limits: Constraints, team: Team
) -> tuple[Candidates, NDArray[np.float32]]:
    """Score all candidates, and those that a filter left out between records that may come together.

    A best clustering has no cluster across two parts of the graph of positive links, so what a filter leaves
    out between parts changes nothing; within a part it may speak against a cluster.
    """
    if candidates.tested is None:
        pairs = candidates.first, candidates.second
        return candidates, score_pairs(normal, knowledge, *pairs, team, sources=limits.sources)
    comparer = Comparer(normal, knowledge.comparisons, among=candidates)
    scores = _weigh(comparer, knowledge, candidates, team)
    good = scores > 0.0
    first = np.concatenate([candidates.first[good], limits.must[:, 0]])
    second = np.concatenate([candidates.second[good], limits.must[:, 1]])
    part = component_numbers(normal.n_rows, first, second)
    alone_or_linked = np.bincount(part)[part] < 3  # of one or two records nothing was left out
    inside = candidates.pairs_inside(np.where(alone_or_linked, -1, part))
    if not len(inside):
        return candidates, scores
    scores = np.concatenate([scores, _weigh(comparer, knowledge, inside, team)])
    first = np.concatenate([candidates.first, inside.first])
    second = np.concatenate([candidates.second, inside.second])
    order = np.argsort(first.astype(np.int64) << 32 | second)
    return replace(candidates, first=first[order], second=second[order], tested=None), scores[order]


def _weigh(comparer: Comparer, knowledge: Knowledge, pairs: HasPairs, team: Team) -> NDArray[np.float32]:
    """Return the scores of pairs by the weights of comparison levels."""
    scores = comparer.scores(knowledge.weights.tables(), pairs.first, pairs.second, team)
    scores += np.float32(knowledge.weights.link)
    return scores


def score_pairs(
    normal: NormalTable,
    knowledge: Knowledge,
    first: Ints,
    second: Ints,
    team: Team,
    among: HasPairs | None = None,
    sources: Ints | None = None,
) -> NDArray[np.float32]:
    """Return the scores of pairs of rows, of all candidates or of some ``among`` them.

    sources
        The source of each row, if it is known.
    """
    if knowledge.unlabelled is not None:
        return knowledge.unlabelled.scores(normal, first, second, team, sources)
    comparer = Comparer(normal, knowledge.comparisons, among=Pairs(first, second) if among is None else among)
    return _weigh(comparer, knowledge, Pairs(first, second), team)


def joined(
    table: pa.Table,
    normal: NormalTable,
    candidates: Candidates,
    scores: NDArray[np.float32],
    knowledge: Knowledge,
    limits: Constraints,
    templates: Sequence[TemplateMaker] = (),
) -> Linked:
    """Make the items of the walk, and lay out their links."""
    weights = knowledge.weights
    # a link that counts as much as none is none: without labels most are such
    kept = np.flatnonzero(scores != np.float32(weights.unlinked)) if knowledge.unlabelled else slice(None)
    links = Links(candidates.first[kept], candidates.second[kept], scores[kept])
    unit, links, graph = lay_out_items(normal.n_rows, links, limits, weights.unlinked)
    own = make_templates(templates, RecordItems(table, unit, graph.n_items))
    walk = LinkWalk(
        graph,
        links.score,
        unlinked=weights.unlinked,
        cluster=weights.cluster,
        counts=np.bincount(unit, minlength=graph.n_items),
        sources=limits.source_bits(unit, graph.n_items),
        further=further_model(own, flat_weights(own, knowledge.further)),
    )
    return Linked(unit, walk, normal, candidates, scores)


def lay_out_items(
    n: int, links: Links, limits: Constraints, unlinked: float
) -> tuple[NDArray[np.int32], Links, LinkGraph]:
    """Return the item of each of ``n`` records, the links between items, and their graph.

    Items are numbered by the part of the graph that they lie in: linked ones lie together in memory.

    links
        Between records, in rows.
    unlinked
        Unlinked pair weight, which stands for the missing links of records that are one item.
    """
    unit = _units(n, limits.must, parts(n, links.first, links.second, links.score))
    links = Links(unit[links.first], unit[links.second], links.score)
    if len(limits.must) or len(limits.cannot):
        links = _merged(links, unit, limits, unlinked)
    return unit, links, LinkGraph.from_pairs(int(unit.max(initial=-1)) + 1, links.first, links.second)


def record_model(
    table: pa.Table, knowledge: Knowledge, *, templates: Sequence[TemplateMaker] = (), team: Team
) -> Model:
    """Return the model of the records of a table, each an item: links by levels, and further templates."""
    normal, n = normalize(table, knowledge.fields), table.num_rows
    knowledge = knowledge.for_size(n)
    candidates = knowledge.candidates(normal, threads=team.threads)
    graph = LinkGraph.from_pairs(n, candidates.first, candidates.second)
    values = knowledge.weights.values
    if knowledge.unlabelled is not None:
        scores = score_pairs(normal, knowledge, candidates.first, candidates.second, team)
        links = LinkTemplate(LINKS, n, graph, features=scores[:, None], statistics=["odds less one"])
        values = np.append(values, 1.0)
    else:
        links = LinkTemplate(
            LINKS,
            n,
            graph,
            levels=Comparer(normal, knowledge.comparisons, candidates).all_levels(
                candidates.first, candidates.second, team
            ),
            sizes=knowledge.weights.sizes,
            statistics=[comparison.name for comparison in knowledge.comparisons],
        )
    own = make_templates(templates, RecordItems(table, np.arange(n, dtype=np.int32), n))
    weights = np.concatenate([values, flat_weights(own, knowledge.further)])
    return Model([links, *own], weights)


class Links(NamedTuple):
    """Pairs of items and the scores of each two together."""

    first: Ints
    second: Ints
    score: NDArray[np.float32]


def _units(n: int, must: Ints, part: Ints) -> NDArray[np.int32]:
    order = np.argsort(part, kind="stable")
    unit = np.empty(n, np.int32)
    unit[order] = np.arange(n, dtype=np.int32)
    if not len(must):
        return unit
    together = tied(must, n)
    smallest = np.full(n, n, np.int32)
    np.minimum.at(smallest, together, unit)
    return np.unique(smallest[together], return_inverse=True)[1].astype(np.int32)


def _merged(links: Links, unit: Ints, limits: Constraints, apart: float) -> Links:
    """Add up the links of records that are one item, and forbid what must not be together."""
    cannot = unit[limits.cannot].reshape(-1, 2)
    one = np.concatenate([links.first, cannot[:, 0]]).astype(np.int64)
    two = np.concatenate([links.second, cannot[:, 1]]).astype(np.int64)
    beyond = np.concatenate([links.score.astype(np.float64) - apart, np.full(len(cannot), -np.inf)])
    apart_already = one != two
    low, high = np.minimum(one, two)[apart_already], np.maximum(one, two)[apart_already]
    n = int(unit.max(initial=0)) + 1
    pairs, place = np.unique(low * n + high, return_inverse=True)
    total = np.zeros(len(pairs))
    np.add.at(total, place, beyond[apart_already])
    return Links(pairs // n, pairs % n, (total + apart).astype(np.float32))
