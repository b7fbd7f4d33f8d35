"""Choose questions and apply answers, in memory and without a store.

The engine asks the most uncertain question, whose probability is closest to one half. A share of the
questions is drawn at random, for an unbiased estimate of quality. If several groups around a question are
uncertain, one question shows them all. An answer takes effect at once, and the entities in it are searched
again. Learning from it affects all records and takes longer: `prepare` computes new weights, entities and
questions while the next question is read, and `adopt` makes them current.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.candidates import (
    MERGE,
    SPLIT,
    WHOLE,
    QuestionPairs,
    around,
    candidates_of,
    near,
    sides,
)
from factorwise.apps.resolution.curation.choices import (
    APART,
    EXPECTED,
    RANDOM,
    TOGETHER,
    UNCERTAIN,
    Choice,
    widen,
)
from factorwise.apps.resolution.curation.estimates import Quality, RandomAnswers, quality_of
from factorwise.apps.resolution.curation.regions import LinkedRecords
from factorwise.apps.resolution.curation.strata import LinkStrata
from factorwise.apps.resolution.curation.teaching import (
    AnsweredGroups,
    GroupOdds,
    LabelledLinks,
    Teaching,
    label_links,
    probability_of,
    sure_links,
    teach,
)
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.kernels.graphs.components import component_numbers
from factorwise.store.store import ALL_BUT, DIFFERENT, SAME, UNSURE
from factorwise.types import Ints

POOL = 2_000  # questions that are kept in the pool
TIRED = 0.5  # factor of a question's value for each earlier question about the same entity
FIRST = 25  # answers before questions about whole entities; before, pairs improve the weights more
AT_ONCE = 1_500_000  # links scored again after an answer; larger tables take turns by parts
LEARNING = LinkSearch(rounds=2, sweeps=1, hot=0.02, cold=0.02, jumps=1.0, extra=4)


@dataclass(slots=True)
class _Answered:
    """The answers so far as training data: links by decision, and answers about two groups."""

    links: list[LabelledLinks] = field(default_factory=list)
    groups: AnsweredGroups = field(default_factory=AnsweredGroups)


class Lessons(NamedTuple):
    """The prepared results of learning: weights, odds of groups, questions, and records that move.

    rows, before, after
        Records that would change their entity, with their old entity and the number of their new group.
    """

    records: LinkedRecords
    teaching: Teaching | None
    odds: GroupOdds
    pool: QuestionPairs
    rows: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


class QuestionEngine:
    """Chooses questions about linked records, and applies the answers.

    records, labels
        The linked records, and the entity of each record.
    strategy
        How questions are chosen: ``nearest to one half``, by the ``expected change`` of B-cubed, or at
        ``random`` among the candidate questions.
    random_share
        The share of questions that are drawn at random to estimate quality.
    teach
        Whether weights are learned from answers.
    whole
        Whether questions may be about whole entities.
    lock
        The lock that callers in several threads hold; `prepare` acquires it only for short moments.
    """

    def __init__(
        self,
        records: LinkedRecords,
        labels: Ints,
        *,
        strategy: str = UNCERTAIN,
        random_share: float = 0.1,
        teach: bool = True,
        whole: bool = True,
        seed: int = 0,
        team: Team,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.records = records
        self.base = records.weights
        self.strata = LinkStrata(records.scores)
        self.labels = np.asarray(labels, np.int64).copy()
        self.verdicts = Verdicts()
        self._said = Verdicts()  # without inferences from context records
        self.strategy, self.random_share, self.teach, self.whole = strategy, random_share, teach, whole
        self._random = np.random.default_rng([seed, 7])
        self._seed, self._team = seed, team
        self._preparing = Team(team.threads)  # separate: an error in one search would end the other
        self._lock = threading.RLock() if lock is None else lock
        self._answered = _Answered()
        self.odds = self._answered.groups.odds(records.scores, records.weights.unlinked)
        self._turn = 0  # the part of a large table that is next
        self._tired: dict[int, int] = {}
        self._pool: QuestionPairs | None = None
        self._teaching: Teaching | None = None
        self._touched: set[int] = set()  # entities changed, or decided about, since `prepare` began
        self._sure = sure_links(records.scores, seed)

    def next(self, skip: frozenset[tuple[int, int]] = frozenset()) -> Choice | None:
        """Return the next question; None if there is none.

        skip
            Pairs of records, the smaller first, that other people are being asked about.
        """
        if self._random.random() < self.random_share:
            drawn = self.random_link(skip)
            if drawn is not None:
                return drawn
        if self._pool is None:
            possible = candidates_of(self.records, self.labels)
            self._pool = self._best_questions(possible, self.records, self._teaching, self.odds)
        pool = self._pool
        chance = self.odds.probability(pool.mean, pool.best, pool.together, pool.variance)
        value = np.where(pool.together, 1.0 - chance, chance) * pool.change()
        rank = self._rank(pool, chance, value)
        for place in np.argsort(-rank, kind="stable").tolist():
            left, right = int(pool.left[place]), int(pool.right[place])
            together = bool(self.labels[left] == self.labels[right])
            if together != pool.together[place] or not self._open(left, right, skip):
                continue
            kind, wanted = SPLIT if together else MERGE, self.strategy
            found = Choice(left, right, together, float(chance[place]), kind, wanted, float(value[place]))
            if self.whole and self.strategy != RANDOM and len(self._answered.links) >= FIRST:
                return widen(found, pool, value, self.labels, self.verdicts)
            return found
        return None

    def _rank(
        self, pool: QuestionPairs, chance: NDArray[np.float64], value: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if self.strategy == EXPECTED:
            return np.asarray(value * TIRED ** self._times_asked(pool))
        if self.strategy == UNCERTAIN:
            return np.asarray(-np.abs(chance - 0.5))
        return self._random.random(len(pool))

    def random_link(self, skip: frozenset[tuple[int, int]] = frozenset()) -> Choice | None:
        """Return a question about a random link, stratified by score and independent of the entities."""
        for _ in range(20 if len(self.records.scores) else 0):
            link = self.strata.draw(self._random)
            left, right = int(self.records.graph.first[link]), int(self.records.graph.second[link])
            low, high = min(left, right), max(left, right)
            if self._said.known(left, right) is not None or (low, high) in self.verdicts.asked:
                continue
            if (low, high) in skip:
                continue
            return self.describe(left, right, RANDOM)
        return None

    def quality(self, answers: RandomAnswers) -> Quality:
        """Estimate precision and recall among the candidates from answers to random questions."""
        with self._lock:
            records, labels = self.records, self.labels.copy()
            known = self._said.known_pairs(records.graph.first, records.graph.second)
        return quality_of(records, self.strata, labels, known, answers, self._seed)

    def describe(self, left: int, right: int, reason: str) -> Choice:
        """Return a question about two records in the current state."""
        together = bool(self.labels[left] == self.labels[right])
        link = int(self.records.graph.find_pairs(np.array([left]), np.array([right]))[0])
        score = float(self.records.scores[link]) if link >= 0 else self.records.weights.unlinked
        chance = float(probability_of(score))
        kind = SPLIT if together else MERGE
        sizes = [int((self.labels == self.labels[record]).sum()) for record in (left, right)]
        change = 2.0 * sizes[0] * sizes[1] / (sizes[0] + sizes[1])
        value = (1.0 - chance if together else chance) * change
        return Choice(left, right, together, chance, kind, reason, value)

    def ask_again(self, decision: Mapping[str, Any]) -> Choice | None:
        """Return the question of a decision in the current state; None if it was made by hand."""
        reason = str(decision["asked"]).removesuffix(TOGETHER).removesuffix(APART)
        rows = [int(row) for part in decision["parts"] for row in part]
        if reason == "hand":
            return None
        choice = self.describe(rows[0], rows[-1], reason)
        if len(rows) == 2:
            return choice
        in_order = sorted(rows, key=lambda row: (int(self.labels[row]), row))
        return choice._replace(kind=WHOLE, records=tuple(in_order))

    def context(self, record: int, other: int) -> NDArray[np.int64]:
        """Return the other members of a record's group in a question about two records."""
        members = np.flatnonzero(self.labels == self.labels[record])
        if self.labels[record] == self.labels[other]:
            members = members[sides(self.records, members, other, record)]
        return np.asarray(members[(members != record) & (members != other)], np.int64)

    def decide(self, decision: Mapping[str, Any], choice: Choice | None = None) -> NDArray[np.int64]:
        """Apply a decision; return the records whose entity changed, in ascending order.

        choice
            The question that it answers; None for a decision made by hand.
        """
        fits = self._take_in(decision)
        parts = [np.asarray(part, np.int64) for part in decision["parts"]]
        spoken = np.concatenate(parts)
        entities = np.unique(self.labels[spoken])
        self._touched.update(entities.tolist())
        if decision["answer"] == UNSURE:
            return np.zeros(0, np.int64)
        self._learn(decision, None if choice is None else choice.together)
        self.odds = self._answered.groups.odds(self.records.scores, self.records.weights.unlinked)
        changed = np.zeros(0, np.int64)
        if fits:
            region = np.flatnonzero(np.isin(self.labels, entities))
            before = self.labels[region]
            self._separate(decision)
            self.settle(region)
            changed = region[self.labels[region] != before]
            self._touched.update(self.labels[region].tolist())
        for entity in np.unique(self.labels[spoken]).tolist():
            self._tired[entity] = self._tired.get(entity, 0) + 1
        self._renew(np.union1d(entities, self.labels[spoken]))
        return changed

    def replay(self, decisions: Iterable[Mapping[str, Any]]) -> None:
        """Restart with decisions of earlier sessions, with which the entities already agree."""
        self.verdicts, self._said, self._answered = Verdicts(), Verdicts(), _Answered()
        for decision in decisions:
            self._take_in(decision)
            asked = str(decision["asked"])
            self._learn(decision, asked.endswith(TOGETHER) if asked.endswith((TOGETHER, APART)) else None)
        self.odds = self._answered.groups.odds(self.records.scores, self.records.weights.unlinked)
        self._pool = None

    def prepare(self) -> Lessons:
        """Compute weights, entities and questions from the answers so far, without changing anything."""
        with self._lock:
            labels, links = self.labels.copy(), LabelledLinks.join(self._answered.links)
            before, records, groups = self._teaching, self.records, self._answered.groups
            due, pool = self._due(labels), self._pool
            self._touched.clear()
        teaching = None
        if self.teach and len(links.link):
            links = LabelledLinks.join([links, self._sure])
            levels = records.levels[links.link]
            teaching = teach(self.base, levels, links.same, links.weight, before)
        weights = self.base if teaching is None else teaching.weights
        if due is not None or not np.array_equal(weights.values, records.weights.values):
            records = records.weighed(weights, None if due is None else records.links_of(labels, due))
        rows, after = self._resettled(records, labels, due) if self.teach else (np.zeros(0, np.int64),) * 2
        was = labels[rows]
        labels[rows] = after
        odds = groups.odds(records.scores, records.weights.unlinked)
        if due is None or pool is None:
            pool = self._best_questions(candidates_of(records, labels), records, teaching, odds)
        else:
            looked_at = np.union1d(due, after)
            found = self._best_questions(near(records, labels, looked_at), records, teaching, odds)
            pool = pool.select(~pool.about(labels, looked_at)).plus(found)
        return Lessons(records, teaching, odds, pool, rows, was, after)

    def adopt(self, lessons: Lessons) -> NDArray[np.int64]:
        """Make prepared results current; return the records whose entity changed, in ascending order.

        Entities that were touched by answers in the meantime are not changed.
        """
        rows, before, after = lessons.rows, lessons.before, lessons.after
        self.records, self._teaching, self.odds = lessons.records, lessons.teaching, lessons.odds
        if len(rows):
            old, new = (np.unique(side, return_inverse=True)[1] for side in (before, after))
            part = component_numbers(int(old.max()) + int(new.max()) + 2, old, int(old.max()) + 1 + new)[old]
            stale = (self.labels[rows] != before) | np.isin(before, list(self._touched))
            kept = ~np.isin(part, part[stale])
            rows = rows[kept]
            before = self.labels[rows]
            self._relabel(rows, after[kept])
            rows = rows[self.labels[rows] != before]
        self._pool = lessons.pool
        if self._touched:
            self._renew(np.array(sorted(self._touched)))
        return rows

    def settle(self, rows: Ints) -> None:
        """Search again among some records, which must be all records of their entities."""
        found = self.records.settle(rows, self.labels[rows], self.verdicts, seed=self._seed, team=self._team)
        self._relabel(rows, found)

    def rename(self, rows: Ints, entities: Ints) -> None:
        """Set the labels of some records, which must be all records of their entities."""
        self.labels[rows] = entities
        self._touched.update(np.unique(entities).tolist())

    def _due(self, labels: Ints) -> NDArray[np.int64] | None:
        """Return the entities to search after an answer, which are a part of a large table; None for all."""
        parts = -(-len(self.records.scores) // AT_ONCE)
        if parts <= 1 or self._pool is None:
            return None
        self._turn = (self._turn + 1) % parts
        return np.arange(self._turn, int(labels.max()) + 1, parts)

    def _resettled(
        self, records: LinkedRecords, labels: Ints, due: Ints | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the records whose entities change under the current weights, with their new groups.

        due
            The entities to search; None for all.
        """
        if due is None:
            unsettled = records.unsettled(labels)
        else:
            members = around(records, labels, due)
            unsettled = members[records.region(members).unsettled(labels[members])]
        wanted = np.zeros(int(labels.max(initial=-1)) + 1, np.bool_)
        wanted[labels[unsettled]] = True
        rows = np.flatnonzero(wanted[labels])
        if not len(rows):
            return rows, rows
        region = records.region(rows)
        with self._lock:
            limits = self.verdicts.within(rows)
        walk, unit = region.walk_within(labels[rows], limits)
        LEARNING.run(walk, seed=self._seed, team=self._preparing)
        return rows, int(labels.max()) + 1 + np.asarray(walk.labels[unit], np.int64)

    def _relabel(self, rows: Ints, found: Ints) -> None:
        """Set new labels of records; an entity keeps the label of its first record if possible."""
        kept = np.unique(self.labels[rows])
        beyond = int(self.labels.max()) + 1
        number = np.unique(found, return_inverse=True)[1]
        names = np.full(int(number.max(initial=-1)) + 1, -1, np.int64)
        free = set(kept.tolist())
        for place in np.unique(number, return_index=True)[1].tolist():
            label = int(self.labels[rows[place]])
            if label in free:
                names[number[place]] = label
                free.discard(label)
        fresh = np.flatnonzero(names < 0)
        names[fresh] = beyond + np.arange(len(fresh))
        self.labels[rows] = names[number]

    def _separate(self, decision: Mapping[str, Any]) -> None:
        """Split an entity as a decision says, before it is searched."""
        if decision["answer"] not in (DIFFERENT, ALL_BUT):
            return
        parts, shown = decision["parts"], not decision.get("context")
        for place, part in enumerate(parts[1:], 1):
            left, right = parts[0 if shown else place - 1][0], part[0]
            if self.labels[left] != self.labels[right]:
                continue
            leaving = np.asarray(part, np.int64)
            if not shown:
                members = np.flatnonzero(self.labels == self.labels[left])
                leaving = members[sides(self.records, members, left, right)]
            self.labels[leaving] = int(self.labels.max()) + 1

    def _take_in(self, decision: Mapping[str, Any]) -> bool:
        """Add a decision to the verdicts; return False if it contradicts earlier decisions."""
        self._said.add({**decision, "context": ()})
        return self.verdicts.add(decision)

    def _learn(self, decision: Mapping[str, Any], together: bool | None) -> None:
        """Add an answer to the training data: its links, and its groups if ``together`` is known."""
        links = label_links(decision, self.records.graph)
        if len(links.link):
            self._answered.links.append(links)
        parts, context = decision["parts"], decision.get("context")
        if together is not None and context and decision["answer"] != UNSURE:
            groups = [np.array([*part, *beside]) for part, beside in zip(parts, context, strict=True)]
            said = decision["answer"] == SAME
            self._answered.groups.add(self.records.graph, groups, together=together, same=said)

    def _best_questions(
        self, found: QuestionPairs, records: LinkedRecords, teaching: Teaching | None, odds: GroupOdds
    ) -> QuestionPairs:
        """Return the most valuable questions, with the variance of their scores."""
        chance = odds.probability(found.mean, found.best, found.together)
        value = np.where(found.together, 1.0 - chance, chance) * found.change()
        pool = found.select(np.argsort(-value, kind="stable")[:POOL])
        if teaching is not None and len(pool):
            link = records.graph.find_pairs(pool.left, pool.right)
            pool.variance[link >= 0] = teaching.variance(records.levels[link[link >= 0]])
        return pool

    def _renew(self, entities: Ints) -> None:
        """Replace the questions about some entities by new ones."""
        if self._pool is None:
            return
        found = near(self.records, self.labels, entities)
        fresh = self._best_questions(found, self.records, self._teaching, self.odds)
        self._pool = self._pool.select(~self._pool.about(self.labels, entities)).plus(fresh)

    def _open(self, left: int, right: int, skip: frozenset[tuple[int, int]]) -> bool:
        """Return whether a question may be asked: nothing is known of it, and it was not asked before."""
        pair = (min(left, right), max(left, right))
        if pair in skip or pair in self.verdicts.asked or self.verdicts.known(left, right) is not None:
            return False
        if self.labels[left] == self.labels[right]:
            return True
        ends = {int(self.labels[left]), int(self.labels[right])}
        return not any({int(self.labels[a]), int(self.labels[b])} == ends for a, b in self.verdicts.asked)

    def _times_asked(self, pool: QuestionPairs) -> NDArray[np.float64]:
        """Return how often the two entities of each question were in earlier questions."""
        times = np.zeros(int(self.labels.max(initial=0)) + 1)
        for entity, count in self._tired.items():
            if entity < len(times):
                times[entity] = count
        return np.asarray(times[self.labels[pool.left]] + times[self.labels[pool.right]])
