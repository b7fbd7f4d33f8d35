"""Which question to ask, and what an answer changes: in memory, without a store.

The question is the one whose answer is expected to change B-cubed most; entities that were asked about lately
wait for their turn, so that doubts of all kinds come up, and a share of the questions is drawn at random for
an unbiased estimate of quality. An answer holds at once, the entities around it are searched again, and the
weights learn from all answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.candidates import (
    MERGE,
    SPLIT,
    Candidates,
    merge_candidates,
    sides,
    split_candidates,
)
from factorwise.apps.resolution.curation.regions import LinkedRecords
from factorwise.apps.resolution.curation.teaching import GroupOdds, Teaching, teach
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.kernels.compile.threads import Team
from factorwise.store.store import DIFFERENT, SAME, UNSURE
from factorwise.types import Ints

EXPECTED, UNCERTAIN, RANDOM, AGAIN = "expected change", "nearest to one half", "random", "disagreement"
STRATA = (-4.0, -1.5, 0.0, 1.5, 4.0)  # scores between which random links are drawn
POOL = 2_000  # questions that are kept ready
TIRED = 0.5  # what a question is worth less for each one about the same entity before


class Choice(NamedTuple):
    """A question to ask.

    left, right
        The two records.
    together, probability
        Whether they are in one entity now, and the probability that they belong there.
    kind, reason
        Whether entities would be merged or split; by what the question was chosen.
    value
        The expected change of B-cubed, summed over all records.
    mean, best
        The scores between the two groups.
    """

    left: int
    right: int
    together: bool
    probability: float
    kind: str
    reason: str
    value: float
    mean: float
    best: float


@dataclass(slots=True)
class _Answered:
    """Answers so far, as teaching needs them: links of the pairs, and what was said of the groups."""

    link: list[int]
    same: list[bool]
    groups: list[tuple[float, float, bool]]
    said: list[bool]


class QuestionEngine:
    """Questions about linked records, and what their answers change.

    records, labels
        The links, and the entity of each record.
    verdicts
        What is known from earlier answers.
    strategy
        How questions are chosen: by the ``expected change`` of B-cubed, ``nearest to one half``, or at
        ``random`` among those that could be asked.
    random_share
        The share of questions that are drawn at random, to estimate quality.
    teach
        Whether weights learn from answers.
    """

    def __init__(
        self,
        records: LinkedRecords,
        labels: Ints,
        verdicts: Verdicts | None = None,
        *,
        strategy: str = EXPECTED,
        random_share: float = 0.1,
        teach: bool = True,
        seed: int = 0,
        team: Team,
    ) -> None:
        self.records = records
        self.base = records.weights
        self.labels = np.asarray(labels, np.int64).copy()
        self.verdicts = verdicts or Verdicts()
        self.odds = GroupOdds()
        self.strategy, self.random_share, self.teach = strategy, random_share, teach
        self._random = np.random.default_rng([seed, 7])
        self._seed, self._team = seed, team
        self._answered = _Answered([], [], [], [])
        self._tired: dict[int, int] = {}
        self._pool: Candidates | None = None
        self._teaching: Teaching | None = None
        self._stale = 0

    def next(self, skip: frozenset[tuple[int, int]] = frozenset()) -> Choice | None:
        """Return the question to ask now; None if there is none.

        skip
            Pairs of records, the smaller first, that others are being asked about.
        """
        if self._random.random() < self.random_share:
            drawn = self.random_link(skip)
            if drawn is not None:
                return drawn
        pool = self._pool if self._pool is not None and self._stale < 25 else self._filled()
        chance = self._chance(pool)
        value = np.where(pool.together, 1.0 - chance, chance) * pool.change()
        if self.strategy == EXPECTED:
            asked = np.array([self._times(a, b) for a, b in zip(pool.left, pool.right, strict=True)])
            rank = value * TIRED**asked
        elif self.strategy == UNCERTAIN:
            rank = -np.abs(chance - 0.5)
        else:
            rank = self._random.random(len(pool))
        for place in np.argsort(-rank, kind="stable").tolist():
            left, right = int(pool.left[place]), int(pool.right[place])
            together = bool(self.labels[left] == self.labels[right])
            if together != pool.together[place] or not self._open(left, right, skip):
                continue
            return Choice(
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
        if self._stale and self._pool is not None:
            self._pool = None
            return self.next(skip)
        return None

    def random_link(self, skip: frozenset[tuple[int, int]] = frozenset()) -> Choice | None:
        """Return a question about a link drawn by strata of its score, whatever the entities are now."""
        strata = [np.flatnonzero(self.strata == k) for k in np.unique(self.strata)]
        for _ in range(20 if strata else 0):
            links = strata[int(self._random.integers(len(strata)))]
            link = int(links[self._random.integers(len(links))])
            left, right = int(self.records.graph.first[link]), int(self.records.graph.second[link])
            low, high = min(left, right), max(left, right)
            if self.verdicts.known(left, right) is not None or (low, high) in self.verdicts.asked:
                continue
            if (low, high) in skip:
                continue
            return self.describe(left, right, RANDOM)
        return None

    @cached_property
    def strata(self) -> NDArray[np.int64]:
        """The stratum of each link: by its score before any answer."""
        return np.searchsorted(STRATA, self.base.link_scores(self.records.levels))

    def describe(self, left: int, right: int, reason: str) -> Choice:
        """Return a question about two records as it stands now."""
        together = bool(self.labels[left] == self.labels[right])
        link = int(self.records.graph.find_pairs(np.array([left]), np.array([right]))[0])
        score = float(self.records.scores[link]) if link >= 0 else self.records.weights.unlinked
        chance = float(self.odds.probability(np.array([score]), np.array([score]), np.array([together]))[0])
        kind = SPLIT if together else MERGE
        sizes = [int((self.labels == self.labels[record]).sum()) for record in (left, right)]
        change = 2.0 * sizes[0] * sizes[1] / (sizes[0] + sizes[1])
        value = (1.0 - chance if together else chance) * change
        return Choice(left, right, together, chance, kind, reason, value, score, score)

    def context(self, record: int, other: int) -> NDArray[np.int64]:
        """Return the other members of a record's group, as far as the question is about them."""
        members = np.flatnonzero(self.labels == self.labels[record])
        if self.labels[record] == self.labels[other]:
            members = members[sides(self.records, members, other, record)]
        return np.asarray(members[(members != record) & (members != other)], np.int64)

    def answer(self, choice: Choice, answer: str) -> NDArray[np.int64]:
        """Take an answer into account; return the records whose entity changed, ascending."""
        parts = [[choice.left], [choice.right]]
        context = [self.context(choice.left, choice.right), self.context(choice.right, choice.left)]
        decision = {"parts": parts, "context": [side.tolist() for side in context], "answer": answer}
        return self.decide(decision, choice)

    def decide(self, decision: Mapping[str, Any], choice: Choice | None = None) -> NDArray[np.int64]:
        """Take a decision into account; return the records whose entity changed, ascending.

        choice
            The question that it answers; None for one that nobody asked.
        """
        fits = self.verdicts.add(decision)
        answer, firsts = str(decision["answer"]), [part[0] for part in decision["parts"]]
        if answer == UNSURE:
            return np.zeros(0, np.int64)
        before = self.labels.copy()
        self._learn(firsts, answer, choice)
        if fits:
            self._separate(decision)
            spoken = [row for part in decision["parts"] for row in part]
            self.settle(np.unique(self.labels[np.asarray(spoken, np.int64)]))
        for row in firsts:
            entity = int(self.labels[row])
            self._tired[entity] = self._tired.get(entity, 0) + 1
        if self.teach and fits and choice is not None:  # what is done by hand changes nothing elsewhere
            self._reweigh()
        changed = np.flatnonzero(self.labels != before)
        self._stale += 1
        self._refresh(changed)
        return changed

    def replay(self, decisions: Iterable[Mapping[str, Any]]) -> None:
        """Learn from decisions of earlier sessions, which the entities follow already."""
        for decision in decisions:
            self.verdicts.add(decision)
            if decision["answer"] != UNSURE:
                self._learn([part[0] for part in decision["parts"]], decision["answer"], None)
        if self.teach:
            self._teach()

    def settle(self, entities: Ints) -> None:
        """Search the records of some entities again."""
        rows = np.flatnonzero(np.isin(self.labels, entities))
        if not len(rows):
            return
        found = self.records.settle(rows, self.labels[rows], self.verdicts, seed=self._seed, team=self._team)
        self._relabel(rows, found)

    def _relabel(self, rows: Ints, found: Ints) -> None:
        """Give records their new labels: an entity keeps the label of its first record if it can."""
        kept = np.unique(self.labels[rows])
        beyond = int(self.labels.max()) + 1
        number = np.unique(found, return_inverse=True)[1]
        names = np.full(int(number.max()) + 1, -1, np.int64)
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
        if decision["answer"] != DIFFERENT:
            return
        parts = decision["parts"]
        for place, part in enumerate(parts[1:], 1):
            left, right = parts[place - 1][0], part[0]
            if self.labels[left] == self.labels[right]:
                members = np.flatnonzero(self.labels == self.labels[left])
                leaving = members[sides(self.records, members, left, right)]
                self.labels[leaving] = int(self.labels.max()) + 1

    def _learn(self, firsts: list[int], answer: str, choice: Choice | None) -> None:
        """Keep what an answer says of links and of groups."""
        if len(firsts) != 2:
            return
        left, right = firsts
        link = int(self.records.graph.find_pairs(np.array([left]), np.array([right]))[0])
        if link >= 0:
            self._answered.link.append(link)
            self._answered.same.append(answer == SAME)
        if choice is not None and choice.reason != RANDOM:
            self._answered.groups.append((choice.mean, choice.best, choice.together))
            self._answered.said.append(answer == SAME)
            mean, best, together = zip(*self._answered.groups, strict=True)
            said = np.array(self._answered.said)
            self.odds.learn(np.array(mean), np.array(best), np.array(together), said)

    def _reweigh(self) -> None:
        """Learn the weights from all answers, and search where they would have it otherwise."""
        self._teach()
        entities = self.records.unsettled(self.labels)
        if len(entities):
            self.settle(entities)

    def _teach(self) -> None:
        links = np.array(self._answered.link, np.int64)
        if not len(links):
            return
        self._teaching = teach(self.base, self.records.levels[links], np.array(self._answered.same))
        self.records = self.records.weighed(self._teaching.weights)

    def _chance(self, pool: Candidates) -> NDArray[np.float64]:
        """Return the probability that the groups of each question are one entity."""
        if self._teaching is None:
            return self.odds.probability(pool.mean, pool.best, pool.together)
        link = self.records.graph.find_pairs(pool.left, pool.right)
        variance = np.zeros(len(pool))
        variance[link >= 0] = self._teaching.variance(self.records.levels[link[link >= 0]])
        return self.odds.probability(pool.mean, pool.best, pool.together, variance)

    def _filled(self) -> Candidates:
        found = merge_candidates(self.records, self.labels).plus(split_candidates(self.records, self.labels))
        chance = self.odds.probability(found.mean, found.best, found.together)
        value = np.where(found.together, 1.0 - chance, chance) * found.change()
        self._pool = found.select(np.argsort(-value, kind="stable")[:POOL])
        self._stale = 0
        return self._pool

    def _refresh(self, changed: Ints) -> None:
        """Leave out questions about entities that changed, until the pool is filled again."""
        if self._pool is not None and len(changed):
            self._pool = None if len(self.labels) < 100_000 else self._pool

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

    def _times(self, left: int, right: int) -> int:
        return self._tired.get(int(self.labels[left]), 0) + self._tired.get(int(self.labels[right]), 0)
