"""Which question to ask, and what an answer changes: in memory, without a store.

The question is the one whose answer is expected to change B-cubed most; entities that were asked about lately
wait for their turn, so that doubts of all kinds come up, and a share of the questions is drawn at random for
an unbiased estimate of quality. Where several of the groups around it are in doubt, one question shows them
all. An answer holds at once, and the entities that it speaks of are searched again. What it teaches concerns
all records and takes longer: `prepare` finds new weights, entities and questions while people read the next
question, and `adopt` makes them current.
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
    candidates_of,
    near,
    sides,
)
from factorwise.apps.resolution.curation.choices import APART, EXPECTED, RANDOM, TOGETHER, UNCERTAIN, Choice
from factorwise.apps.resolution.curation.estimates import Quality, RandomAnswers, quality_of
from factorwise.apps.resolution.curation.regions import LinkedRecords
from factorwise.apps.resolution.curation.strata import LinkStrata
from factorwise.apps.resolution.curation.teaching import (
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

POOL = 2_000  # questions that are kept ready
TIRED = 0.5  # what a question is worth less for each one about the same entity before
MOST_SHOWN = 12  # records of a question about whole entities
WHOLE_GAIN = 2.5  # how many times more such a question must be worth: it takes longer to answer
LEARNING = LinkSearch(rounds=2, sweeps=1, hot=0.02, cold=0.02, jumps=1.0, extra=4)


@dataclass(slots=True)
class _Answered:
    """Answers so far, as teaching needs them: links by decision, and what was said of the groups."""

    links: list[LabelledLinks] = field(default_factory=list)
    groups: list[tuple[float, float, bool]] = field(default_factory=list)
    said: list[bool] = field(default_factory=list)


class Lessons(NamedTuple):
    """What was prepared from answers: weights, questions, and records with other entities.

    rows, before, after
        Records that would change their entity, with the entity they had and a new number of a group.
    """

    records: LinkedRecords
    teaching: Teaching | None
    pool: QuestionPairs
    rows: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


class QuestionEngine:
    """Questions about linked records, and what their answers change.

    records, labels
        The links, and the entity of each record.
    strategy
        How questions are chosen: by the ``expected change`` of B-cubed, ``nearest to one half``, or at
        ``random`` among those that could be asked.
    random_share
        The share of questions that are drawn at random, to estimate quality.
    teach
        Whether weights learn from answers.
    whole
        Whether questions may be about whole entities.
    lock
        Held by whoever calls the engine from several threads; `prepare` takes it for short moments.
    """

    def __init__(
        self,
        records: LinkedRecords,
        labels: Ints,
        *,
        strategy: str = EXPECTED,
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
        self._said = Verdicts()  # without what is taken from records that were shown beside others
        self.odds = GroupOdds()
        self.strategy, self.random_share, self.teach, self.whole = strategy, random_share, teach, whole
        self._random = np.random.default_rng([seed, 7])
        self._seed, self._team = seed, team
        self._preparing = Team(team.threads)  # of its own: an error in one search would end the other
        self._lock = threading.RLock() if lock is None else lock
        self._answered = _Answered()
        self._tired: dict[int, int] = {}
        self._pool: QuestionPairs | None = None
        self._teaching: Teaching | None = None
        self._touched: set[int] = set()  # entities that changed, or were decided about, since `prepare` began
        self._sure = sure_links(records.scores, seed)

    def next(self, skip: frozenset[tuple[int, int]] = frozenset()) -> Choice | None:
        """Return the question to ask now; None if there is none.

        skip
            Pairs of records, the smaller first, that others are being asked about.
        """
        if self._random.random() < self.random_share:
            drawn = self.random_link(skip)
            if drawn is not None:
                return drawn
        if self._pool is None:
            found = candidates_of(self.records, self.labels)
            self._pool = self._best_questions(found, self.records, self._teaching)
        pool = self._pool
        chance = self._chance(pool)
        value = np.where(pool.together, 1.0 - chance, chance) * pool.change()
        if self.strategy == EXPECTED:
            rank = value * TIRED ** self._times_asked(pool)
        elif self.strategy == UNCERTAIN:
            rank = -np.abs(chance - 0.5)
        else:
            rank = self._random.random(len(pool))
        for place in np.argsort(-rank, kind="stable").tolist():
            left, right = int(pool.left[place]), int(pool.right[place])
            together = bool(self.labels[left] == self.labels[right])
            if together != pool.together[place] or not self._open(left, right, skip):
                continue
            choice = Choice(
                left,
                right,
                together,
                float(chance[place]),
                SPLIT if together else MERGE,
                self.strategy,
                float(value[place]),
                float(pool.mean[place]),
                float(pool.best[place]),
            )
            if self.whole and self.strategy == EXPECTED:
                return self._widened(choice, pool, value)
            return choice
        return None

    def random_link(self, skip: frozenset[tuple[int, int]] = frozenset()) -> Choice | None:
        """Return a question about a link drawn by strata of its score, whatever the entities are now."""
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
        """Estimate precision and recall among the candidates from answers to questions drawn at random."""
        with self._lock:
            records, labels = self.records, self.labels.copy()
            known = self._said.known_pairs(records.graph.first, records.graph.second)
        return quality_of(records, self.strata, labels, known, answers, self._seed)

    def describe(self, left: int, right: int, reason: str) -> Choice:
        """Return a question about two records as it stands now."""
        together = bool(self.labels[left] == self.labels[right])
        link = int(self.records.graph.find_pairs(np.array([left]), np.array([right]))[0])
        score = float(self.records.scores[link]) if link >= 0 else self.records.weights.unlinked
        chance = float(probability_of(score))
        kind = SPLIT if together else MERGE
        sizes = [int((self.labels == self.labels[record]).sum()) for record in (left, right)]
        change = 2.0 * sizes[0] * sizes[1] / (sizes[0] + sizes[1])
        value = (1.0 - chance if together else chance) * change
        return Choice(left, right, together, chance, kind, reason, value, score, score)

    def ask_again(self, decision: Mapping[str, Any]) -> Choice | None:
        """Return the question that a decision has answered, as it stands now; None if nobody asked."""
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
        """Return the other members of a record's group, as far as the question is about them."""
        members = np.flatnonzero(self.labels == self.labels[record])
        if self.labels[record] == self.labels[other]:
            members = members[sides(self.records, members, other, record)]
        return np.asarray(members[(members != record) & (members != other)], np.int64)

    def decide(self, decision: Mapping[str, Any], choice: Choice | None = None) -> NDArray[np.int64]:
        """Take a decision into account; return the records whose entity changed, ascending.

        choice
            The question that it answers; None for one that nobody asked.
        """
        fits = self._take_in(decision)
        parts = [np.asarray(part, np.int64) for part in decision["parts"]]
        spoken = np.concatenate(parts)
        entities = np.unique(self.labels[spoken])
        self._touched.update(entities.tolist())
        if decision["answer"] == UNSURE:
            return np.zeros(0, np.int64)
        self._learn(decision, choice)
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
        """Begin again with decisions of earlier sessions, which the entities follow already."""
        self.verdicts, self._said, self._answered.links = Verdicts(), Verdicts(), []
        for decision in decisions:
            self._take_in(decision)
            self._learn(decision, None)
        self._pool = None

    def prepare(self) -> Lessons:
        """Find weights, entities and questions that follow from the answers so far; nothing changes yet."""
        with self._lock:
            labels, links = self.labels.copy(), LabelledLinks.join(self._answered.links)
            before, records = self._teaching, self.records
            self._touched.clear()
        teaching = None
        if self.teach and len(links.link):
            links = LabelledLinks.join([links, self._sure])
            levels = records.levels[links.link]
            teaching = teach(self.base, levels, links.same, links.weight, before)
        weights = self.base if teaching is None else teaching.weights
        if not np.array_equal(weights.values, records.weights.values):
            records = records.weighed(weights)
        rows, after = self._resettled(records, labels) if self.teach else (np.zeros(0, np.int64),) * 2
        was = labels[rows]
        labels[rows] = after
        pool = self._best_questions(candidates_of(records, labels), records, teaching)
        return Lessons(records, teaching, pool, rows, was, after)

    def adopt(self, lessons: Lessons) -> NDArray[np.int64]:
        """Make what was prepared current; return the records whose entity changed, ascending.

        Entities that answers have touched meanwhile stay as they are.
        """
        rows, before, after = lessons.rows, lessons.before, lessons.after
        self.records, self._teaching = lessons.records, lessons.teaching
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
        """Search some records, all of their entities, again."""
        found = self.records.settle(rows, self.labels[rows], self.verdicts, seed=self._seed, team=self._team)
        self._relabel(rows, found)

    def rename(self, rows: Ints, entities: Ints) -> None:
        """Call the entities of some records, all of these entities, as others do."""
        self.labels[rows] = entities
        self._touched.update(np.unique(entities).tolist())

    def _resettled(self, records: LinkedRecords, labels: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the records of entities that the weights would have otherwise, with new groups."""
        unsettled = records.unsettled(labels)
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
        """Give records their new labels: an entity keeps the label of its first record if it can."""
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
        """Begin with the parts of an entity that was said to be two, before it is searched."""
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
        """Keep what holds from now on; False if it contradicts earlier decisions."""
        self._said.add({**decision, "context": ()})
        return self.verdicts.add(decision)

    def _learn(self, decision: Mapping[str, Any], choice: Choice | None) -> None:
        """Keep what an answer says of links and of groups."""
        links = label_links(decision, self.records.graph)
        if len(links.link):
            self._answered.links.append(links)
        if choice is not None and choice.reason != RANDOM and choice.kind != WHOLE:
            self._answered.groups.append((choice.mean, choice.best, choice.together))
            self._answered.said.append(decision["answer"] == SAME)
            mean, best, together = zip(*self._answered.groups, strict=True)
            said = np.array(self._answered.said)
            self.odds.learn(np.array(mean), np.array(best), np.array(together), said)

    def _chance(self, pool: QuestionPairs) -> NDArray[np.float64]:
        """Return the probability that the groups of each question are one entity."""
        return self.odds.probability(pool.mean, pool.best, pool.together, pool.variance)

    def _best_questions(
        self, found: QuestionPairs, records: LinkedRecords, teaching: Teaching | None
    ) -> QuestionPairs:
        """Return the questions that are worth most, and how uncertain their scores are."""
        chance = self.odds.probability(found.mean, found.best, found.together)
        value = np.where(found.together, 1.0 - chance, chance) * found.change()
        pool = found.select(np.argsort(-value, kind="stable")[:POOL])
        if teaching is not None and len(pool):
            link = records.graph.find_pairs(pool.left, pool.right)
            pool.variance[link >= 0] = teaching.variance(records.levels[link[link >= 0]])
        return pool

    def _renew(self, entities: Ints) -> None:
        """Put the questions about some entities in the place of those that were about them."""
        if self._pool is None:
            return
        chosen = np.zeros(int(self.labels.max()) + 1, np.bool_)
        chosen[entities[entities < len(chosen)]] = True
        pool = self._pool
        stale = chosen[self.labels[pool.left]] | chosen[self.labels[pool.right]]
        found = near(self.records, self.labels, np.flatnonzero(chosen))
        self._pool = pool.select(~stale).plus(self._best_questions(found, self.records, self._teaching))

    def _widened(self, choice: Choice, pool: QuestionPairs, value: NDArray[np.float64]) -> Choice:
        """Return a question about all doubtful groups around a pair, if it is worth the longer answer."""
        ends = self.labels[[choice.left, choice.right]]
        one, two = self.labels[pool.left], self.labels[pool.right]
        beside = np.isin(one, ends) | np.isin(two, ends)
        entities, worth = list(dict.fromkeys(ends.tolist())), 0.0
        shown = sum(int((self.labels == entity).sum()) for entity in entities)
        for place in np.flatnonzero(beside)[np.argsort(-value[beside], kind="stable")].tolist():
            further = [e for e in (int(one[place]), int(two[place])) if e not in entities]
            more = sum(int((self.labels == entity).sum()) for entity in further)
            pair = (int(pool.left[place]), int(pool.right[place]))
            if shown + more > MOST_SHOWN or self.verdicts.known(*pair) is not None:
                continue
            if (min(pair), max(pair)) in self.verdicts.asked:
                continue
            entities += further
            shown += more
            worth += float(value[place])
        if shown < 3 or shown > MOST_SHOWN or worth < WHOLE_GAIN * choice.value:
            return choice
        rows = np.concatenate([np.flatnonzero(self.labels == entity) for entity in entities])
        return choice._replace(kind=WHOLE, value=worth, records=tuple(rows.tolist()))

    def _open(self, left: int, right: int, skip: frozenset[tuple[int, int]]) -> bool:
        """Return whether a question is neither answered, nor about two entities that were asked about."""
        pair = (min(left, right), max(left, right))
        if pair in skip or pair in self.verdicts.asked or self.verdicts.known(left, right) is not None:
            return False
        if self.labels[left] == self.labels[right]:
            return True
        return not self._asked_between(int(self.labels[left]), int(self.labels[right]))

    def _asked_between(self, one: int, two: int) -> bool:
        return any({int(self.labels[a]), int(self.labels[b])} == {one, two} for a, b in self.verdicts.asked)

    def _times_asked(self, pool: QuestionPairs) -> NDArray[np.float64]:
        """Return how often the two entities of each question were asked about."""
        times = np.zeros(int(self.labels.max(initial=0)) + 1)
        for entity, count in self._tired.items():
            if entity < len(times):
                times[entity] = count
        return np.asarray(times[self.labels[pool.left]] + times[self.labels[pool.right]])
