"""Why two records are together or apart: what each factor contributes.

The score of a clustering is a sum over clusters and over the pairs inside them (`factorwise.model.linkage`).
Putting two records that stand alone together changes it by the score of their pair minus that of a cluster,
of which there is one less. Divided by the temperature that was found on held-out entities, this is the log of
the odds that they are of one entity, as far as nothing but the two is looked at.
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
from factorwise.apps.resolution.forms import NormalTable
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.linking import score_pairs
from factorwise.apps.resolution.normal_forms import normalize
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from factorwise.types import Bools, Floats, Ints


class Weighed(NamedTuple):
    """One comparison of two records.

    value, level, meaning
        What the measure gave (None where a record has nothing to compare), its level, and what that holds.
    weight
        What the level adds to the score of the pair.
    """

    field: str
    form: str
    measure: str
    value: float | None
    level: int
    meaning: str
    weight: float


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """What keeps two records together or apart.

    candidates
        Whether they are linked. If not, the comparisons are not weighed: two members of a cluster that are
        not linked score ``apart``.
    rules
        Names of the blocking rules whose key they share.
    weighed
        The comparisons.
    link, apart, cluster
        Weights of two linked members whatever their comparisons, of two that are not linked, of a cluster.
    temperature
        At which scores are probabilities.
    """

    candidates: bool
    rules: tuple[str, ...]
    weighed: tuple[Weighed, ...]
    link: float
    apart: float
    cluster: float
    temperature: float

    @property
    def linked_score(self) -> float:
        """Score of the pair if it is, or were, linked."""
        return self.link + sum(one.weight for one in self.weighed)

    @property
    def score(self) -> float:
        """Score of the pair in one cluster."""
        return self.linked_score if self.candidates else self.apart

    @property
    def gain(self) -> float:
        """What the score gains if the two, each by itself, are put together."""
        return self.score - self.cluster

    @property
    def log_odds(self) -> float:
        """Log of the odds of together against apart."""
        return self.gain / self.temperature

    @property
    def probability(self) -> float:
        """Probability of together, as far as nothing but the two is looked at."""
        return _sigmoid(self.log_odds)


@dataclass(frozen=True, slots=True)
class Placing:
    """What a record gains in an entity, against being by itself.

    linked
        Rows of the members it is linked with, and the scores of these pairs, the largest first.
    unlinked
        How many other members there are.
    apart, cluster, temperature
        As in `PairExplanation`.
    """

    linked: tuple[tuple[int, float], ...]
    unlinked: int
    apart: float
    cluster: float
    temperature: float

    @property
    def gain(self) -> float:
        """Scores of its pairs with all members, minus that of a cluster; zero with nobody there."""
        if not self.linked and not self.unlinked:
            return 0.0
        return sum(score for _, score in self.linked) + self.unlinked * self.apart - self.cluster

    @property
    def log_odds(self) -> float:
        """Log of the odds of being there against being by itself."""
        return self.gain / self.temperature

    @property
    def probability(self) -> float:
        """Probability of being there, if it were there or by itself."""
        return _sigmoid(self.log_odds)


class Explainer:
    """Explains pairs of records of one table by what was learned.

    Candidates are found as they are for resolving: whether two records meet depends on all others.
    """

    def __init__(self, table: pa.Table, knowledge: Knowledge, *, team: Team) -> None:
        self.knowledge = knowledge
        self._team = team
        self._normal = normalize(table, knowledge.fields)
        self.candidates = knowledge.candidates(self._normal, threads=team.threads)
        self._comparer = Comparer(self._normal, knowledge.comparisons, self.candidates)

    def pair(self, first: int, second: int) -> PairExplanation:
        """Explain two different rows."""
        self._check(first, second)
        model = self.knowledge.model
        values = self._comparer.values(np.array([min(first, second)]), np.array([max(first, second)]))
        return PairExplanation(
            candidates=bool(are_candidates(self.candidates, first, np.array([second]))[0]),
            rules=self._shared_rules(first, second),
            weighed=tuple(
                _weighed(one, table, value)
                for one, table, value in zip(self.knowledge.comparisons, model.tables(), values, strict=True)
            ),
            link=model.link,
            apart=model.apart,
            cluster=model.cluster,
            temperature=self.knowledge.temperature,
        )

    def placing(self, row: int, members: Ints) -> Placing:
        """Explain what a row gains in an entity; if it is one of the members, with the others."""
        model = self.knowledge.model
        others = np.unique(np.asarray(members, np.int64))
        others = others[others != row]
        linked = others[are_candidates(self.candidates, row, others)]
        low, high = np.minimum(linked, row), np.maximum(linked, row)
        scores = score_pairs(self._normal, self.knowledge, low, high, self._team, self.candidates)
        order = np.argsort(-scores, kind="stable")
        return Placing(
            linked=tuple(zip(linked[order].tolist(), scores[order].tolist(), strict=True)),
            unlinked=len(others) - len(linked),
            apart=model.apart,
            cluster=model.cluster,
            temperature=self.knowledge.temperature,
        )

    def _check(self, first: int, second: int) -> None:
        rows = self._normal.n_rows
        if first == second or not (0 <= first < rows and 0 <= second < rows):
            raise InvalidArgumentError(
                f"rows {first} and {second} cannot be explained: give two different ones from 0 to"
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


def contributions(
    normal: NormalTable, knowledge: Knowledge, first: Ints, second: Ints, among: HasPairs
) -> list[list[tuple[str, float]]]:
    """Return for each pair of rows what is gained by putting them together: names and what they add.

    among
        All candidates.

    The comparisons come last, the largest first. The sum is the gain of two records that are alone.
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    with Team(1) as team:
        levels = Comparer(normal, knowledge.comparisons, among).all_levels(low, high, team)
    tables = knowledge.model.tables()
    found = []
    for row in levels.tolist():
        steps = [
            (f"{one.name}, {one.level_text(level)}", float(weights[level]))
            for one, weights, level in zip(knowledge.comparisons, tables, row, strict=True)
        ]
        steps = [step for step in steps if step[1] != 0.0]
        always = [("linked", knowledge.model.link), ("one entity less", -knowledge.model.cluster)]
        found.append([*always, *sorted(steps, key=lambda step: -abs(step[1]))])
    return found


def probability_alone(steps: Sequence[tuple[str, float]], temperature: float) -> float:
    """Return the probability that two records are one, as far as nothing but the two is looked at.

    steps
        What `contributions` says of the pair.
    """
    return _sigmoid(sum(value for _, value in steps) / temperature)


def are_candidates(candidates: Candidates, row: int, others: Ints) -> Bools:
    """Return which of the other rows are linked with a row."""
    firsts = candidates.first
    after = slice(*np.searchsorted(firsts, [row, row + 1]).tolist())
    neighbors = np.concatenate([candidates.second[after], firsts[candidates.second == row]])
    return np.isin(others, neighbors)


def _share_key(rows: KeyRows, first: int, second: int) -> bool:
    one, two = (rows.key[slice(*np.searchsorted(rows.item, [row, row + 1]))] for row in (first, second))
    return bool(np.isin(one, two).any())


def _sigmoid(x: float) -> float:
    return 0.5 * (1.0 + math.tanh(0.5 * x))
