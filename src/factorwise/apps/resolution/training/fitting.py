"""Fit a model to a table: blocking rules, comparison levels, weights and the calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from factorwise.apps.resolution.blocking import (
    Candidates,
    Rule,
    default_rules,
    find_candidates,
    learned_rules,
    thrifty_budget,
)
from factorwise.apps.resolution.blocking.filters import learn_filter
from factorwise.apps.resolution.comparisons import Comparer, planned
from factorwise.apps.resolution.comparisons.measures import FALLING
from factorwise.apps.resolution.comparisons.plan import compared_forms
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.labelled import ComparedLabels, LabelledPairs, with_constraints
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.record_items import (
    RecordItems,
    TemplateMaker,
    flat_weights,
    make_templates,
    weights_by_template,
)
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.apps.resolution.training.chance import describe_chance
from factorwise.apps.resolution.training.examples import TrainingData
from factorwise.apps.resolution.training.ladder import Start, climb_ladder
from factorwise.apps.resolution.training.link_learning import LinkTraining
from factorwise.apps.resolution.training.own_weights import (
    impose_weights,
    refuse_own_levels,
    with_own_levels,
)
from factorwise.apps.resolution.unlabelled.learning import Hints, learn_from_anchors
from factorwise.apps.resolution.unlabelled.unsupervised import LevelMixture, fit_mixture, weights_of
from factorwise.distributed.mixing import Mixer
from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.learning.samplerank.learner import PassRecord
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.model.template import AnyTemplate
from factorwise.types import Ints
from factorwise.validation import shown
from factorwise.world.links import LinkGraph

SAMPLE = 200_000  # sampled pairs, for the thresholds of levels and for the mixture without labels
EXPECTED = 0.25  # initial guess of the number of matches per record
MOST_EXPECTED = 0.5  # largest initial share of matches among the candidates

NEARLY = 0.99  # recall, relative to the full budget, from which the smaller candidate budget is used

Tell = Callable[[str], None]
Blocked = Callable[[Candidates, NormalTable, Ints | None], None]


def ignore_blocks(candidates: Candidates, normal: NormalTable, entity: Ints | None) -> None:
    """Do nothing: the default callback for candidates."""


def learn(
    table: pa.Table,
    fields: Sequence[FieldSpec],
    entity: NDArray[np.int32],
    *,
    pairs: LabelledPairs | None = None,
    constraints: Constraints | None = None,
    rules: Sequence[Rule] | None = None,
    templates: Sequence[TemplateMaker] = (),
    template_weights: Mapping[str, ArrayLike] | None = None,
    context: bool = True,
    learner: LinkTraining,
    search: LinkSearch,
    seed: int,
    team: Team,
    tell: Tell,
    mixer: Mixer | None = None,
    blocked: Blocked = ignore_blocks,
    on_pass: Callable[[PassRecord], None] | None = None,
) -> Knowledge:
    """Fit a model to records with known entities: numbers from 0 on, -1 where not known.

    pairs
        Additional labelled pairs.
    constraints
        Hard constraints; must-link and cannot-link pairs serve as labelled pairs, too.
    templates, template_weights
        User-defined templates, and the initial weights of some of them by name; those of others are zero.
    context
        Whether pairs may be scored in the context of the clusters of their records.
    mixer
        Runs the SampleRank passes in shards; None to run them here, unsharded.
    """
    if int((np.bincount(entity[entity >= 0]) > 1).sum()) == 0:
        raise InvalidArgumentError(
            "no two labelled records are of one entity: there is nothing to learn from. Check the column of"
            " entities, or resolve without a model."
        )
    if int((entity >= 0).sum()) == int(np.bincount(entity[entity >= 0]).max()):
        raise InvalidArgumentError(
            "all labelled records are of one entity: nothing says what keeps records apart. Check the column"
            " of entities, or resolve without a model."
        )
    normal = normalize(table, fields)
    chosen = list(rules) if rules is not None else learned_rules(fields, normal, entity)
    limits = constraints or Constraints()
    pairs = with_constraints(pairs, limits)
    candidates, thrifty = _enough_candidates(normal, chosen, entity, limits, team)
    tell(f"{len(candidates.first):,} candidate pairs by {len(chosen)} rules")
    blocked(candidates, normal, entity)
    if not len(candidates.first):
        raise InvalidArgumentError("no two records have anything in common that the blocking rules look at.")
    comparisons = planned(normal, *sampled(candidates, seed), candidates, labels=True)
    comparisons = with_own_levels(comparisons, fields, normal)
    comparer = Comparer(normal, comparisons, candidates)
    levels = comparer.all_levels(candidates.first, candidates.second, team)
    tell(f"{len(comparisons)} comparisons of each pair")
    graph = LinkGraph.from_pairs(normal.n_rows, candidates.first, candidates.second)
    own = _own_templates(table, templates)
    sources = limits.source_bits(np.arange(normal.n_rows), normal.n_rows)
    data = TrainingData(graph, levels, entity, _compared(pairs, comparer), own, sources)
    unlabelled = _unlabelled_weights(normal, comparer, data, seed, team)
    directions = tuple(-1 if one.measure in FALLING else 1 for one in comparisons)
    doubt = describe_chance(candidates, levels, directions, entity)
    fitted = climb_ladder(
        data,
        Start(unlabelled, directions, seed),
        _first_weights(own, template_weights),
        learner,
        search,
        team=team,
        normal=normal if context else None,
        mixer=mixer,
        on_pass=on_pass,
        on_message=tell,
    )
    score = fitted.scores[fitted.method]
    training: dict[str, Any] = {
        "labelled": int((entity >= 0).sum()),
        "labelled_pairs": 0 if pairs is None else len(pairs.same),
        "records": len(entity),
        "linked_share": data.linked_share(),
        "joined_share": candidates.joined_share,
        "held_out": fitted.held_out,
        "method": fitted.method,
        "b_cubed": score.f1,
        "precision": score.precision,
        "recall": score.recall,
        "methods": {method: score.f1 for method, score in fitted.scores.items()},
        **fitted.calibration.as_dict(),
    }
    if doubt is not None:
        tell(doubt)
        training["warnings"] = [doubt]
    links = impose_weights(fitted.weights.links, comparisons, fields)
    used = links.used()
    pair_filter = None
    if not own and fitted.context is None:  # both may join pairs with negative link scores
        scores, same = links.link_scores(levels), candidates.of_one_entity(entity)
        pair_filter = learn_filter(
            normal, candidates.first, candidates.second, scores, same, fitted.calibration.temperature
        )
    return Knowledge(
        tuple(fields),
        tuple(chosen),
        tuple(comparisons[place] for place in used),
        links.only(used),
        fitted.calibration.temperature,
        thrifty,
        training,
        weights_by_template(own, fitted.weights.further),
        fitted.context,
        merges=fitted.calibration.merges,
        pair_filter=pair_filter,
    )


def _own_templates(table: pa.Table, makers: Sequence[TemplateMaker]) -> tuple[AnyTemplate, ...]:
    """Make the user-defined templates, with one item per record."""
    return make_templates(
        makers, RecordItems(table, np.arange(table.num_rows, dtype=np.int32), table.num_rows)
    )


def _first_weights(
    templates: Sequence[AnyTemplate], given: Mapping[str, ArrayLike] | None
) -> NDArray[np.float64]:
    """Return the initial weights of user-defined templates: those given, or zero."""
    zeros = {template.name: np.zeros(template.size) for template in templates}
    return flat_weights(templates, zeros | dict(given or {}))


def _enough_candidates(
    normal: NormalTable, rules: Sequence[Rule], entity: Ints, limits: Constraints, team: Team
) -> tuple[Candidates, bool]:
    """Find candidates, with the smaller budget if its recall is nearly as high; also return whether it is."""
    sources, within = limits.sources, not limits.one_per_source
    found = find_candidates(normal, rules, sources=sources, within=within, threads=team.threads)
    few = thrifty_budget(normal.n_rows)
    if len(found) <= few:
        return found, False
    fewer = find_candidates(normal, rules, budget=few, sources=sources, within=within, threads=team.threads)
    true, still = (int(one.of_one_entity(entity).sum()) for one in (found, fewer))
    return (fewer, True) if still >= NEARLY * true else (found, False)


def entity_numbers(table: pa.Table, entity: ArrayLike | str) -> NDArray[np.int32]:
    """Return the entity of each record as a number; -1 where it is missing."""
    coded = entity_column(table, entity).dictionary_encode()
    return np.asarray(coded.indices.fill_null(-1), dtype=np.int32)


def entity_column(table: pa.Table, entity: ArrayLike | str) -> pa.Array:
    """Return the entity of each record, from an array or a column; null where it is missing."""
    if isinstance(entity, str):
        if entity not in table.column_names:
            raise InvalidArgumentError(
                f"there is no column {entity!r} with entities; there are {', '.join(table.column_names)}."
            )
        column = table.column(entity).combine_chunks()
    else:
        try:
            column = pa.array(entity, from_pandas=True)  # NaN means a missing entity
        except (pa.ArrowException, TypeError):
            column = None
    if column is None or pa.types.is_nested(column.type):
        raise InvalidArgumentError(
            "entities must be the name of a column, or a list with a text or a number for each record (None"
            f" where it is not known), but {shown(entity)} was given."
        )
    if len(column) != table.num_rows:
        raise ShapeError(f"{table.num_rows} records need an entity each, but {len(column)} were given.")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
    return column


def learn_without_labels(
    table: pa.Table,
    fields: Sequence[FieldSpec],
    *,
    pairs: LabelledPairs | None = None,
    rules: Sequence[Rule] | None = None,
    templates: Sequence[TemplateMaker] = (),
    template_weights: Mapping[str, ArrayLike] | None = None,
    hints: Hints | None = None,
    seed: int,
    team: Team,
    tell: Tell,
    blocked: Blocked = ignore_blocks,
) -> Knowledge:
    """Fit a model without entities: from anchors, or from labelled pairs and a mixture over candidates.

    pairs
        Labelled pairs.
    templates, template_weights
        User-defined templates, and their weights by name, which are not changed; zero where none are given.
    hints
        What the user knows about the table.
    """
    own = _own_templates(table, templates)
    refuse_own_levels(fields)
    if pairs is None and table.num_rows > 1:
        knowledge = learn_from_anchors(
            table,
            fields,
            hints or Hints(),
            rules=rules,
            seed=seed,
            team=team,
            on_message=tell,
            on_candidates=blocked,
        )
        further = weights_by_template(own, _first_weights(own, template_weights))
        return replace(knowledge, further=further)
    normal = normalize(table, fields)
    chosen = list(rules) if rules is not None else default_rules(fields, normal)
    candidates = find_candidates(normal, chosen, threads=team.threads)
    tell(f"{len(candidates.first):,} candidate pairs by {len(chosen)} rules")
    blocked(candidates, normal, None)
    first, second = sampled(candidates, seed)
    comparisons = planned(normal, first, second, candidates, labels=False) if len(first) else []
    comparer = Comparer(normal, comparisons, candidates)
    levels, labelled = comparer.all_levels(first, second, team), _compared(pairs, comparer)
    mixture = _mixture(comparer, levels, labelled, len(candidates), normal.n_rows, seed, team)
    training = {"labelled": 0, "records": normal.n_rows, "share": mixture.share, "rounds": mixture.rounds}
    training["labelled_pairs"] = 0 if pairs is None else len(pairs.same)
    return Knowledge(
        tuple(fields),
        tuple(chosen),
        tuple(comparisons),
        impose_weights(weights_of(mixture, comparisons), comparisons, fields),
        training=training,
        further=weights_by_template(own, _first_weights(own, template_weights)),
    )


def _mixture(
    comparer: Comparer,
    levels: NDArray[np.uint8],
    labelled: ComparedLabels | None,
    n_candidates: int,
    n_records: int,
    seed: int,
    team: Team,
) -> LevelMixture:
    """Fit a two-class mixture of matches and non-matches to the levels of some candidates."""
    return fit_mixture(
        levels,
        comparer.all_levels(*_random_pairs(n_records, seed), team),
        comparer.comparisons,
        labelled,
        expected=min(EXPECTED * n_records / max(n_candidates, 1), MOST_EXPECTED) * len(levels),
    )


def _unlabelled_weights(
    normal: NormalTable, comparer: Comparer, data: TrainingData, seed: int, team: Team
) -> LevelWeights:
    """Estimate weights with a mixture, without labels; comparisons that need labels get zero."""
    comparisons, count = comparer.comparisons, len(data.levels)
    free = set(compared_forms(normal, count, labels=False))
    used = [k for k, one in enumerate(comparisons) if (one.field, one.form, one.measure) in free]
    weights = LevelWeights.zeros([one.cuts.size for one in comparisons])
    some, labelled = data.levels[_sampled_rows(count, seed)][:, used], data.labelled
    if labelled is not None:
        labelled = labelled._replace(levels=labelled.levels[:, used])
    part = Comparer(normal, [comparisons[k] for k in used])
    mixture = _mixture(part, some, labelled, count, normal.n_rows, seed, team)
    return weights.with_tables(used, weights_of(mixture, part.comparisons))


def _compared(pairs: LabelledPairs | None, comparer: Comparer) -> ComparedLabels | None:
    return None if pairs is None else ComparedLabels(pairs, comparer.levels(pairs.first, pairs.second))


def sampled(candidates: Candidates, seed: int) -> tuple[Ints, Ints]:
    """Return all candidate pairs, or a random sample of them if there are many."""
    if len(candidates) <= SAMPLE:
        return candidates.first, candidates.second
    rows = _sampled_rows(len(candidates), seed)
    return candidates.first[rows], candidates.second[rows]


def _sampled_rows(count: int, seed: int) -> NDArray[np.int64] | slice:
    if count <= SAMPLE:
        return slice(None)
    return np.sort(np.random.default_rng([seed, 1]).choice(count, SAMPLE, replace=False))


def _random_pairs(n: int, seed: int) -> tuple[Ints, Ints]:
    if n < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    draws = np.random.default_rng([seed, 3])
    first = draws.integers(0, n, SAMPLE)
    second = (first + draws.integers(1, n, SAMPLE)) % n
    return first, second
