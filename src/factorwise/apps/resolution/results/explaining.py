"""Explanations of why two records are together or apart: the contribution of each factor.

The score of a clustering is a sum over clusters and over the pairs inside them (see `LinkTemplate`), plus the
scores of user-defined templates. Merging two singletons changes it by the score of their pair, minus the
cluster weight, because there is one cluster less, plus the change in those templates. Divided by the
temperature that was fitted on held-out entities, this is the log odds that the two are one entity, if no
other records are considered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.blocking import Candidates
from factorwise.apps.resolution.blocking.keys import KeyMaker, KeyRows
from factorwise.apps.resolution.comparisons import Comparer, Comparison, HasPairs
from factorwise.apps.resolution.comparisons.measures import Values
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.context.features import PairContext
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.linking import FirstPass, run_first_pass, score_pairs, weigh_unlinked
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.record_items import (
    RecordItems,
    TemplateMaker,
    flat_weights,
    further_model,
    make_templates,
)
from factorwise.apps.resolution.repeats import count_different
from factorwise.apps.resolution.unlabelled.model import EvidenceStep
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from factorwise.types import Bools, Floats, Ints
from factorwise.world.moves import merge
from factorwise.world.partition import Partition


class Weighed(NamedTuple):
    """One comparison of two records, with its match weight.

    value, level, meaning
        The measured value (None if it is missing), its comparison level, and a description of the level.
    weight
        The weight of the level, which is added to the score of the pair.
    """

    field: str
    form: str
    measure: str
    value: float | None
    level: int
    meaning: str
    weight: float

    @classmethod
    def of_step(cls, step: EvidenceStep) -> Weighed:
        """Return a step of a model fitted without labels, which has a level but no value."""
        return cls(step.field, step.form, "level", None, step.level, step.meaning, step.weight)


class _Odds:
    """Base class that derives odds of together against apart from a gain and a temperature."""

    __slots__ = ()
    temperature: float

    @property
    def gain(self) -> float:
        """The change of the score if the records are merged."""
        raise NotImplementedError

    @property
    def log_odds(self) -> float:
        """Log odds of together against apart."""
        return self.gain / self.temperature

    @property
    def probability(self) -> float:
        """Probability of together, if no other records are considered."""
        return _sigmoid(self.log_odds)


@dataclass(frozen=True, slots=True)
class PairExplanation(_Odds):
    """Explanation of why two records are together or apart.

    candidates
        Whether the two are linked. If not, comparisons do not count: the score of the pair in one cluster is
        then ``unlinked``.
    rules
        Names of the blocking rules whose key they share.
    weighed
        The comparisons with their weights.
    link, unlinked, cluster
        The link weight, the unlinked pair weight and the cluster weight.
    temperature
        The calibration temperature.
    further
        The contribution of each statistic of user-defined templates if the two are merged, by name.
    context
        The contributions of context features to the score, by name, from the clusters of the first pass.
    """

    candidates: bool
    rules: tuple[str, ...]
    weighed: tuple[Weighed, ...]
    link: float
    unlinked: float
    cluster: float
    temperature: float
    further: tuple[tuple[str, float], ...] = ()
    context: tuple[tuple[str, float], ...] = ()

    @property
    def linked_score(self) -> float:
        """Score of the pair without context, as if it were linked."""
        return self.link + sum(one.weight for one in self.weighed)

    @property
    def score(self) -> float:
        """Score of the pair in one cluster."""
        if not self.candidates:
            return self.unlinked
        return self.linked_score + sum(value for _, value in self.context)

    @property
    def gain(self) -> float:
        """The change of the score if the two are merged as singletons."""
        return self.score - self.cluster + sum(value for _, value in self.further)


@dataclass(frozen=True, slots=True)
class Placing(_Odds):
    """The gain of a record in an entity, compared with being a singleton.

    linked
        Rows of the members it is linked with, and the scores of these pairs, the largest first.
    others
        The number of members that it is not linked with.
    unlinked, cluster, temperature
        As in `PairExplanation`.
    further
        The contribution of each statistic of user-defined templates, by name.
    """

    linked: tuple[tuple[int, float], ...]
    others: int
    unlinked: float
    cluster: float
    temperature: float
    further: tuple[tuple[str, float], ...] = ()

    @property
    def gain(self) -> float:
        """The sum of the scores with all members, minus the cluster weight; zero without other members."""
        if not self.linked and not self.others:
            return 0.0
        pairs = sum(score for _, score in self.linked) + self.others * self.unlinked
        return pairs - self.cluster + sum(value for _, value in self.further)


class Explainer:
    """Explains pairs of records of one table with a fitted model.

    Candidates are found in the same way as for resolving, because they depend on all records of the table.

    templates
        The user-defined templates that the weights were learned with.
    """

    def __init__(
        self, table: pa.Table, knowledge: Knowledge, *, templates: Sequence[TemplateMaker] = (), team: Team
    ) -> None:
        n = table.num_rows
        self.knowledge = knowledge = knowledge.for_size(count_different(table, knowledge))
        self._team = team
        own = make_templates(templates, RecordItems(table, np.arange(n, dtype=np.int32), n))
        self._further = further_model(own, flat_weights(own, knowledge.further))
        self._normal = normalize(table, knowledge.fields)
        self.candidates = knowledge.candidates(self._normal, threads=team.threads)
        self._comparer = Comparer(self._normal, knowledge.comparisons, self.candidates)
        self._first_pass = None
        loses_links = knowledge.loses_links(self.candidates)
        if loses_links or knowledge.context is not None:
            first, second = self.candidates.first, self.candidates.second
            scores = self._comparer.scores(knowledge.weights.tables(), first, second, team)
            scores += np.float32(knowledge.weights.link)
            compared = table, self._normal, self.candidates, scores
            if loses_links:
                self.knowledge = knowledge = weigh_unlinked(*compared, knowledge, Constraints(), team=team)
            if knowledge.context is not None:
                self._first_pass = run_first_pass(*compared, knowledge, Constraints(), team=team)
        self._prepared = None if knowledge.unlabelled is None else knowledge.unlabelled.prepare(self._normal)

    def pair(self, first: int, second: int) -> PairExplanation:
        """Explain the pair of two different rows."""
        self._check(first, second)
        weights, comparisons = self.knowledge.weights, self.knowledge.comparisons
        together = self.knowledge.cluster_weights
        values = self._comparer.values(np.array([min(first, second)]), np.array([max(first, second)]))
        return PairExplanation(
            candidates=bool(are_candidates(self.candidates, first, np.array([second]))[0]),
            rules=self._shared_rules(first, second),
            weighed=tuple(
                _weighed(one, table, value)
                for one, table, value in zip(comparisons, weights.tables(), values, strict=True)
            )
            + self._unlabelled(first, second),
            link=weights.link,
            unlinked=together.unlinked,
            cluster=together.cluster,
            temperature=self.knowledge.temperature,
            further=self._further_of(first, [second]),
            context=tuple(
                self._context_of(np.array([min(first, second)]), np.array([max(first, second)]))[0]
            ),
        )

    def _context_of(self, first: Ints, second: Ints) -> list[list[tuple[str, float]]]:
        """Return the contributions of context features to the score of each pair."""
        if self._first_pass is None:
            return [[] for _ in first]
        return context_contributions(
            self._normal, self.candidates, self._first_pass, self.knowledge, first, second
        )

    def _unlabelled(self, first: int, second: int) -> tuple[Weighed, ...]:
        """Return the comparisons of two rows by a model fitted without labels; empty for others."""
        if self._prepared is None:
            return ()
        steps = self._prepared.steps(min(first, second), max(first, second))
        return tuple(Weighed.of_step(step) for step in steps)

    def placing(self, row: int, members: Ints) -> Placing:
        """Explain the gain of a row in an entity with some members, among which it may be itself."""
        weights = self.knowledge.cluster_weights
        others = np.unique(np.asarray(members, np.int64))
        others = others[others != row]
        linked = others[are_candidates(self.candidates, row, others)]
        low, high = np.minimum(linked, row), np.maximum(linked, row)
        scores = score_pairs(self._normal, self.knowledge, low, high, self._team, among=self.candidates)
        scores += [sum(value for _, value in steps) for steps in self._context_of(low, high)]
        order = np.argsort(-scores, kind="stable")
        return Placing(
            linked=tuple(zip(linked[order].tolist(), scores[order].tolist(), strict=True)),
            others=len(others) - len(linked),
            unlinked=weights.unlinked,
            cluster=weights.cluster,
            temperature=self.knowledge.temperature,
            further=self._further_of(row, others.tolist()),
        )

    def _further_of(self, row: int, members: list[int]) -> tuple[tuple[str, float], ...]:
        """Return the gain of user-defined templates when a singleton row joins the members."""
        if self._further is None or not members:
            return ()
        items = np.unique([row, *members])
        model = self._further.restrict_to(items)
        labels = np.ones(len(items), np.int64)
        place = int(np.searchsorted(items, row))
        labels[place] = 0
        world = Partition.from_labels(labels)
        home, there = world.labels[place], world.labels[1 if place == 0 else 0]
        change = model.difference(world, merge(world, int(home), int(there)))
        found = zip(change.index.tolist(), (change.value * model.weights[change.index]).tolist(), strict=True)
        return tuple((model.weight_name(index), value) for index, value in found)

    def _check(self, first: int, second: int) -> None:
        rows = self._normal.n_rows
        whole = all(isinstance(row, int | np.integer) for row in (first, second))
        if not whole or first == second or not (0 <= first < rows and 0 <= second < rows):
            raise InvalidArgumentError(
                f"rows {first!r} and {second!r} cannot be explained: give two different ones from 0 to"
                f" {rows - 1}."
            )

    def _shared_rules(self, first: int, second: int) -> tuple[str, ...]:
        maker = KeyMaker(self._normal)
        return tuple(
            rule.name for rule in self.knowledge.rules if _share_key(maker.keys(rule), first, second)
        )


def _weighed(comparison: Comparison, weights: Floats, value: Values) -> Weighed:
    level = int(comparison.cuts.levels(value)[0])
    return Weighed(
        field=comparison.field,
        form=comparison.form,
        measure=comparison.measure,
        value=None if np.isnan(value[0]) else float(value[0]),
        level=level,
        meaning=comparison.level_text(level),
        weight=float(weights[level]),
    )


def context_contributions(
    normal: NormalTable,
    candidates: HasPairs,
    first_pass: FirstPass,
    knowledge: Knowledge,
    first: Ints,
    second: Ints,
) -> list[list[tuple[str, float]]]:
    """Return the names and values of the contributions of context features to the score of each pair.

    Pairs that are not candidates have no contributions.
    """
    assert knowledge.context is not None
    labels = np.asarray(first_pass.labels)
    wanted = np.zeros(int(labels.max(initial=0)) + 1, bool)
    wanted[labels[first]] = wanted[labels[second]] = True
    near = np.flatnonzero(wanted[labels[candidates.first]] & wanted[labels[candidates.second]])
    one, two = candidates.first[near].astype(np.int64), candidates.second[near].astype(np.int64)
    context = PairContext(normal, one, two, first_pass.scores[near], labels)
    width = np.int64(normal.n_rows)
    keys, asked = one * width + two, np.minimum(first, second) * width + np.maximum(first, second)
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys, asked, sorter=order)
    there = np.append(order, 0)[place]
    is_candidate = (place < len(keys)) & (np.append(keys, -1)[there] == asked)
    added = iter(knowledge.context.contributions(context, there[is_candidate]))
    return [next(added) if candidate else [] for candidate in is_candidate.tolist()]


def contributions(
    normal: NormalTable,
    knowledge: Knowledge,
    first: Ints,
    second: Ints,
    among: HasPairs,
    first_pass: FirstPass | None = None,
) -> list[list[tuple[str, float]]]:
    """Return the names and values of the contributions to the gain of merging each pair of rows.

    among
        All candidates.
    first_pass
        The scores and clusters from which context is computed; None without context.

    The fixed weights come first, then the comparisons, the largest first, and then the context. The sum is
    the gain of merging two singletons.
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    if knowledge.unlabelled is not None:
        prepared = knowledge.unlabelled.prepare(normal)
        return [
            [(step.name, step.weight) for step in prepared.steps(*pair)]
            for pair in zip(low.tolist(), high.tolist(), strict=True)
        ]
    with Team(1) as team:
        levels = Comparer(normal, knowledge.comparisons, among).all_levels(low, high, team)
    tables = knowledge.weights.tables()
    context: list[list[tuple[str, float]]] = [[] for _ in low]
    if first_pass is not None:
        context = context_contributions(normal, among, first_pass, knowledge, low, high)
    found = []
    for row, added in zip(levels.tolist(), context, strict=True):
        steps = [
            (f"{one.name}, {one.level_text(level)}", float(weights[level]))
            for one, weights, level in zip(knowledge.comparisons, tables, row, strict=True)
        ]
        steps = [step for step in steps if step[1] != 0.0]
        always = [("linked", knowledge.weights.link), ("one entity less", -knowledge.cluster_weights.cluster)]
        found.append([*always, *sorted(steps, key=lambda step: -abs(step[1])), *added])
    return found


def probability_alone(steps: Sequence[tuple[str, float]], temperature: float) -> float:
    """Return the probability that two records are a match, if no other records are considered.

    steps
        The result of `contributions` for the pair.
    """
    return _sigmoid(sum(value for _, value in steps) / temperature)


def are_candidates(candidates: Candidates, row: int, others: Ints) -> Bools:
    """Return which of the other rows are candidates of a row."""
    firsts = candidates.first
    after = slice(*np.searchsorted(firsts, [row, row + 1]).tolist())
    neighbors = np.concatenate([candidates.second[after], firsts[candidates.second == row]])
    return np.isin(others, neighbors)


def _share_key(rows: KeyRows, first: int, second: int) -> bool:
    one, two = (rows.key[slice(*np.searchsorted(rows.item, [row, row + 1]))] for row in (first, second))
    return bool(np.isin(one, two).any())


def _sigmoid(x: float) -> float:
    return 0.5 * (1.0 + math.tanh(0.5 * x))
