"""Turn a table into scored links between records: candidates, comparisons and context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking import Candidates
from factorwise.apps.resolution.comparisons import Comparer, HasPairs, OverlapPairs
from factorwise.apps.resolution.comparisons.plan import chunks
from factorwise.apps.resolution.comparisons.record_ranges import RangedPairs
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.context.features import PairContext
from factorwise.apps.resolution.context.grouping import cluster_parts
from factorwise.apps.resolution.context.model import FIRST_PASS as SEARCH
from factorwise.apps.resolution.context.model import STRICTNESS, ContextModel
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.linked_items import LinkedItems, Links, link_items
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.record_items import (
    LINKS,
    RecordItems,
    TemplateMaker,
    flat_weights,
    further_model,
    make_templates,
)
from factorwise.distributed.executors import Executor
from factorwise.distributed.group_search import answer_group
from factorwise.inference.mcmc.shards.component_search import (
    ComponentGroups,
    ScoredLinks,
    find_groups,
    search_group,
)
from factorwise.io.columns import IN_MEMORY, Columns, release
from factorwise.kernels.compile.threads import Team
from factorwise.kernels.graphs.components import component_numbers
from factorwise.model.clusterings.link_templates import LinkTemplate
from factorwise.model.model import Model
from factorwise.types import Ints
from factorwise.world.links import LinkGraph

ITEMS_THAT_TELL = 100_000  # items from which the linked share of pairs within entities is estimated


PAIRS_AT_ONCE = 1_000_000  # number of pairs whose context is computed in one batch


class FirstPass(NamedTuple):
    """Scores of candidate pairs without context, and the cluster of each record by these scores."""

    scores: NDArray[np.float32]
    labels: Ints


class Linked(LinkedItems):
    """Records with scored links, ready to be clustered.

    normal, candidates
        The normal forms of the records and the candidate pairs, in rows of the table.
    scores : float32[pairs]
        The score of each candidate pair if its records are in one cluster.
    first_pass
        The scores and clusters from which the context of pairs was computed; None without context.
    """

    def __init__(
        self,
        unit: NDArray[np.int32],
        links: ScoredLinks,
        normal: NormalTable,
        candidates: Candidates,
        scores: NDArray[np.float32],
    ) -> None:
        super().__init__(unit, links)
        self.normal, self.candidates, self.scores = normal, candidates, scores
        self.first_pass: FirstPass | None = None


def link(
    table: pa.Table,
    knowledge: Knowledge,
    *,
    constraints: Constraints | None = None,
    templates: Sequence[TemplateMaker] = (),
    team: Team,
    executor: Executor | None = None,
    columns: Columns = IN_MEMORY,
) -> Linked:
    """Find the candidate pairs of a table, and score them.

    templates
        The user-defined templates that the weights were learned with.
    executor
        Where joins, comparisons and searches of groups run; None for this process. The result does not depend
        on it.
    columns
        The storage for normal forms and pairs. The result does not depend on it.
    """
    limits = constraints or Constraints()
    limits.check()
    knowledge = knowledge.for_size(table.num_rows)
    normal = normalize(table, knowledge.fields, columns, executor)
    candidates = knowledge.candidates(
        normal,
        sources=limits.sources,
        within=not limits.one_per_source,
        filtered=True,
        threads=team.threads,
        executor=executor,
    )
    columns.rest()
    candidates, scores = score_candidates(normal, candidates, knowledge, limits, team, executor)
    columns.rest()
    if knowledge.loses_links(candidates):
        knowledge = weigh_unlinked(
            table, normal, candidates, scores, knowledge, limits, team=team, executor=executor
        )
    if knowledge.context is None:
        return joined(table, normal, candidates, scores, knowledge, limits, templates)
    first = run_first_pass(table, normal, candidates, scores, knowledge, limits, team=team, executor=executor)
    columns.rest()
    scores = score_in_context(normal, candidates, first, knowledge.context)
    columns.rest()
    linked = joined(table, normal, candidates, scores, knowledge, limits, templates)
    linked.first_pass = first
    return linked


def weigh_unlinked(
    table: pa.Table,
    normal: NormalTable,
    candidates: Candidates,
    scores: NDArray[np.float32],
    knowledge: Knowledge,
    limits: Constraints,
    *,
    team: Team,
    executor: Executor | None = None,
) -> Knowledge:
    """Adjust the unlinked pair weight to the linked share in clusters found without this weight."""
    loose = replace(knowledge.with_linked_share(0.0), further={}, context=None)
    linked = joined(table, normal, candidates, scores, loose, limits)
    groups = find_groups(linked.links)
    step = max(1, groups.open_items // ITEMS_THAT_TELL)
    some = range(0, len(groups), step)
    linked.place_items(_search_groups(groups, some, team, executor))
    labels = linked.rows_of_units(linked.labels)
    whole = linked.rows_of_units(groups.group[groups.component])
    counted = (whole < 0) | (whole % step == 0)
    times = np.where(whole < 0, 1.0, len(groups) / max(len(some), 1))
    of_cluster = np.flatnonzero(counted)
    size = np.bincount(labels[of_cluster], minlength=len(labels)).astype(np.float64)
    weight = np.zeros(len(labels))
    weight[labels[of_cluster]] = times[of_cluster]
    together = 0.0
    for first, second in candidates.stretches():
        inside = (labels[first] == labels[second]) & counted[first]
        together += float(times[first[inside]].sum())
    return knowledge.with_linked_share(together / max(float((weight * size * (size - 1.0)).sum()) / 2.0, 1.0))


def run_first_pass(
    table: pa.Table,
    normal: NormalTable,
    candidates: Candidates,
    scores: NDArray[np.float32],
    knowledge: Knowledge,
    limits: Constraints,
    *,
    team: Team,
    executor: Executor | None = None,
) -> FirstPass:
    """Cluster records by pair scores alone, with a stricter threshold, to compute the context of pairs."""
    plain = replace(knowledge, further={}, context=None)
    strict = joined(table, normal, candidates, scores, plain, limits)
    strict.links.shift = -STRICTNESS
    groups = find_groups(strict.links)
    labels = _search_groups(groups, range(len(groups)), team, executor)
    return FirstPass(scores, strict.rows_of_units(labels))


def _search_groups(
    groups: ComponentGroups, numbers: range, team: Team, executor: Executor | None
) -> NDArray[np.int32]:
    """Return the cluster of each item by a short search, which only prepares the final one.

    numbers
        The groups to search; the items of other groups stay unmerged.
    """
    labels: dict[int, NDArray[np.int32]] = {}
    groups.sort_links()

    def work(low: int, high: int) -> None:
        for number in numbers[low:high]:
            group = groups.take(number)
            found = search_group(group, groups.links.weights, SEARCH, 0, team=team if alone else None)
            if found.found.reason == "interrupted":
                raise KeyboardInterrupt  # there is no result to return yet
            labels[number] = found.labels

    alone = len(numbers) == 1  # a single group may use all threads
    if alone:
        work(0, 1)
    elif executor is None:
        team.share(len(numbers), work)
    else:
        tasks = ((groups.take(number), groups.links.weights, SEARCH, 0) for number in numbers)
        for place, answer in executor.stream(answer_group, tasks):
            if answer.found.reason == "interrupted":
                raise KeyboardInterrupt
            labels[numbers[place]] = answer.labels
    return groups.labels(iter(labels.items()))


def score_in_context(
    normal: NormalTable, candidates: HasPairs, first: FirstPass, model: ContextModel
) -> NDArray[np.float32]:
    """Return the scores of candidate pairs in the context of the clusters of the first pass.

    Pairs of the same two clusters are scored in the same batch, and a batch reads only the records of its
    clusters. Value frequencies are those of the whole table.
    """
    forms = normal.only(sorted({each[:2] for each in model.features if each.field in normal}))
    label = np.unique(first.labels, return_inverse=True)[1].astype(np.int32)
    scores = normal.columns.make(len(first.scores), np.float32)
    for pairs in cluster_parts(candidates, label, PAIRS_AT_ONCE):
        one, two = candidates.first[pairs], candidates.second[pairs]
        touched = np.zeros(int(label.max(initial=-1)) + 1, np.bool_)
        touched[label[one]] = touched[label[two]] = True
        rows = np.flatnonzero(touched[label])
        place = np.zeros(normal.n_rows, np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        some = PairContext(forms.rows(rows), place[one], place[two], first.scores[pairs], label[rows])
        scores[pairs] = model.scores(some)
        release(candidates.first, candidates.second, first.scores, scores, *forms.arrays())
    return scores


def score_candidates(
    normal: NormalTable,
    candidates: Candidates,
    knowledge: Knowledge,
    limits: Constraints,
    team: Team,
    executor: Executor | None = None,
) -> tuple[Candidates, NDArray[np.float32]]:
    """Score all candidates, and pairs that the filter left out within components of positive links.

    The best clustering has no cluster across two components of the graph of positive links, so pairs that are
    left out between components change nothing. Within a component they may be evidence against a cluster.
    """
    if candidates.tested is None:
        pairs = candidates.first, candidates.second
        scores = score_pairs(normal, knowledge, *pairs, team, sources=limits.sources, executor=executor)
        return candidates, scores
    weigh = _weighing(normal, knowledge, candidates, team, executor)
    scores = weigh(candidates)
    good = scores > 0.0
    first = np.concatenate([candidates.first[good], limits.must[:, 0]])
    second = np.concatenate([candidates.second[good], limits.must[:, 1]])
    part = component_numbers(normal.n_rows, first, second)
    alone_or_linked = np.bincount(part)[part] < 3  # components of one or two records lack no pair
    inside = candidates.pairs_inside(np.where(alone_or_linked, -1, part))
    if not len(inside):
        return candidates, scores
    scores = np.concatenate([scores, weigh(inside)])
    first = np.concatenate([candidates.first, inside.first])
    second = np.concatenate([candidates.second, inside.second])
    order = np.argsort(first.astype(np.int64) << 32 | second)
    return replace(candidates, first=first[order], second=second[order], tested=None), scores[order]


def _weighing(
    normal: NormalTable, knowledge: Knowledge, among: HasPairs, team: Team, executor: Executor | None
) -> Callable[[HasPairs], NDArray[np.float32]]:
    """Return a function that scores pairs by match weights, in batches if there is an executor."""
    weights = knowledge.weights
    prepared: Comparer | RangedPairs
    if executor is None:
        prepared = Comparer(normal, knowledge.comparisons, among)
    else:
        prepared = RangedPairs(normal, knowledge.comparisons, among, executor)

    def weigh(pairs: HasPairs) -> NDArray[np.float32]:
        if isinstance(prepared, Comparer):
            scores = prepared.scores(weights.tables(), pairs.first, pairs.second, team)
        else:
            scores = prepared.scores(weights.tables(), pairs)
        for low, high in chunks(0, len(scores)):
            scores[low:high] += np.float32(weights.link)
        return scores

    return weigh


def score_pairs(
    normal: NormalTable,
    knowledge: Knowledge,
    first: Ints,
    second: Ints,
    team: Team,
    among: HasPairs | None = None,
    sources: Ints | None = None,
    executor: Executor | None = None,
) -> NDArray[np.float32]:
    """Return the scores of pairs of rows, which are all candidates or some ``among`` the candidates.

    sources
        The source of each row, if known.
    """
    if knowledge.unlabelled is not None:
        return knowledge.unlabelled.scores(normal, first, second, team, sources)
    pairs = OverlapPairs(first, second)
    return _weighing(normal, knowledge, pairs if among is None else among, team, executor)(pairs)


def joined(
    table: pa.Table,
    normal: NormalTable,
    candidates: Candidates,
    scores: NDArray[np.float32],
    knowledge: Knowledge,
    limits: Constraints,
    templates: Sequence[TemplateMaker] = (),
) -> Linked:
    """Make the items that stand for records, and the links between them."""
    weights = knowledge.cluster_weights
    # a link that scores as much as a missing one is dropped: without labels, most links do
    kept = np.flatnonzero(scores != np.float32(weights.unlinked)) if knowledge.unlabelled else slice(None)
    links = Links(candidates.first[kept], candidates.second[kept], scores[kept])
    unit, scored = link_items(normal.n_rows, links, limits, weights)
    scored.make, scored.release = normal.columns.make, release
    own = make_templates(templates, RecordItems(table, unit, scored.n_items))
    scored.further = further_model(own, flat_weights(own, knowledge.further))
    return Linked(unit, scored, normal, candidates, scores)


def record_model(
    table: pa.Table, knowledge: Knowledge, *, templates: Sequence[TemplateMaker] = (), team: Team
) -> Model:
    """Return the factor graph of the records of a table, with links by comparison levels and own templates.

    If context is used, its features have levels like those of the comparisons, and the clusters of the first
    pass are treated as fixed, as the records are.
    """
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
        comparer = Comparer(normal, knowledge.comparisons, candidates)
        levels = comparer.all_levels(candidates.first, candidates.second, team)
        sizes, names = knowledge.weights.sizes, [one.name for one in knowledge.comparisons]
        if knowledge.context is not None:
            scores = knowledge.weights.link_scores(levels).astype(np.float32)
            limits = Constraints()
            first = run_first_pass(table, normal, candidates, scores, knowledge, limits, team=team)
            context = PairContext(normal, candidates.first, candidates.second, scores, first.labels)
            levels = np.hstack([levels, knowledge.context.levels(context)])
            sizes += knowledge.context.weights.sizes
            names += [feature.name for feature in knowledge.context.features]
            values = knowledge.context.with_pair_weights(knowledge.weights)
        links = LinkTemplate(LINKS, n, graph, levels=levels, sizes=sizes, statistics=names)
    own = make_templates(templates, RecordItems(table, np.arange(n, dtype=np.int32), n))
    weights = np.concatenate([values, flat_weights(own, knowledge.further)])
    return Model([links, *own], weights)
