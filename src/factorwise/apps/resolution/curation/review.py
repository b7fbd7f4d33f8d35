"""`Review`: ask questions about the records of a store, from a web page, a console or a notebook.

When `Review.answer` returns, the answer is saved and has changed the entities in it. Learning from it affects
all records, and happens at once or in the background while the next question is read.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.browsing import Browser
from factorwise.apps.resolution.curation.candidates import WHOLE
from factorwise.apps.resolution.curation.choices import AGAIN, APART, RANDOM, TOGETHER, Choice
from factorwise.apps.resolution.curation.curator import (
    BASE_MODEL,
    Curator,
    load_model,
    load_records,
    save_model,
)
from factorwise.apps.resolution.curation.engine import Lessons, QuestionEngine
from factorwise.apps.resolution.curation.estimates import Quality, RandomAnswers
from factorwise.apps.resolution.curation.questions import Question, number_in_order, parts_of_answer
from factorwise.errors import InvalidArgumentError, StoreError
from factorwise.kernels.compile.threads import Team
from factorwise.store import Cause, Store
from factorwise.store.store import ANSWERS, DIFFERENT, SAME, UNSURE
from factorwise.types import Ints

SHOWN = 20  # most other members of a group that are shown


class Outcome(NamedTuple):
    """The effect of an answer.

    decision
        The number of the saved decision.
    moved
        How many records changed their entity.
    changed
        The old and new entities of these records, with their current sizes.
    """

    decision: int
    moved: int
    changed: tuple[tuple[int, int], ...] = ()


class Review(Browser):
    """Asks questions about the records of a store, and applies the answers.

    ``next`` returns a question, and ``answer`` saves the answer. When ``answer`` returns, the answer is on
    disk and the entities around it have changed. Several people may review at the same time, from several
    threads.

    store
        An open store, or the path of one.
    random_share
        The share of questions that are drawn at random to estimate precision and recall.
    whole
        Whether questions may be about whole entities.
    background
        Whether to learn from answers in a background thread, instead of before ``answer`` returns. An error
        there is raised by the next call of ``answer``, whose answer is then not saved, or by ``close``.
    """

    def __init__(
        self,
        store: Store | str | PathLike[str],
        *,
        random_share: float = 0.15,
        whole: bool = True,
        background: bool = False,
        random_state: int = 0,
        n_jobs: int = 1,
    ) -> None:
        opened = store if isinstance(store, Store) else Store.open(store)
        base = opened.fact(BASE_MODEL)
        self._base_number = int(base) if base else None
        self._base = load_model(opened, self._base_number).for_size(opened.n_records)
        curator = Curator(opened, n_jobs=n_jobs, random_state=random_state)
        super().__init__(opened, curator, threading.RLock())
        self._open: dict[str, Question] = {}
        self._taken: dict[int, Question] = {}
        self._aside: dict[str, list[Question]] = {}  # questions put back; the last one is asked first
        self._numbers = 0
        model, provenance = self.store.model_provenance()
        self._taught = model if model != self._base_number else None  # the model learned from answers
        self._learned_from = provenance.get("decisions", [])
        self.engine = QuestionEngine(
            load_records(self.store, self._base),
            self.store.membership(),
            random_share=random_share,
            whole=whole,
            seed=random_state + len(self._decided()),
            team=Team(n_jobs),
            lock=self._lock,
        )
        self._last: tuple[int, str] | None = None  # the last decision and its author
        self._lesson, self._closing = threading.Event(), False
        self._learner: threading.Thread | None = None
        self._failure: Exception | None = None  # error of the background thread, until it is raised
        self.reload()
        if self._decided():
            self._adopt(self.engine.prepare(), keep=False)
        if background:
            self._learner = threading.Thread(target=self._learn_in_background, daemon=True)
            self._learner.start()

    @property
    def labels(self) -> NDArray[np.int64]:
        """The entity of every record."""
        return self.engine.labels

    def reload(self) -> None:
        """Read entities and decisions from the store again."""
        with self._lock:
            self.engine.labels = self.store.membership().copy()
            self.engine.replay(self.store.decisions())

    def learn(self) -> int:
        """Learn from all answers; return how many records changed their entity."""
        return self._adopt(self.engine.prepare())

    def next(self, who: str = "me") -> Question | None:
        """Return a person's next question, the same one until it is answered; None if there is none."""
        with self._lock:
            if who not in self._open:
                found = self._return_to(who)
                if found is None:
                    choice = self._choose()
                    if choice is None:
                        return None
                    found = self._question(choice)
                self._open[who] = self._taken[found.number] = found
            return self._open[who]

    def _return_to(self, who: str) -> Question | None:
        """Return the question that a person put aside last, if it is still open."""
        waiting = self._aside.get(who, [])
        while waiting:
            found = waiting.pop()
            choice = found.choice
            if choice.kind == WHOLE or self.engine.verdicts.known(choice.left, choice.right) is None:
                return found
        return None

    def answer(
        self,
        question: Question | int,
        answer: str,
        *,
        taken_out: Sequence[str] = (),
        who: str = "me",
        why: str = "",
    ) -> Outcome:
        """Save an answer: ``same``, ``different``, ``unsure`` or, for whole entities, ``all but``.

        question
            The question, or its number.
        taken_out
            With ``all but``, the ids of the records that do not belong to the others.
        """
        if answer not in ANSWERS:
            raise InvalidArgumentError(f"an answer is one of {', '.join(ANSWERS)}, but {answer!r} was given.")
        self._raise_failure()
        with self._lock:
            number = question if isinstance(question, int) else question.number
            asked = self._taken.pop(number, None)
            if asked is None:
                raise InvalidArgumentError(f"question {number} is not open: it was answered already.")
            try:
                parts = parts_of_answer(asked, answer, taken_out)
            except InvalidArgumentError:
                self._taken[number] = asked
                raise
            self._open = {name: one for name, one in self._open.items() if one.number != number}
            choice = asked.choice
            reason = choice.reason
            if choice.kind != WHOLE:
                reason += TOGETHER if choice.together else APART
            context = []
            if choice.kind != WHOLE:
                context = [
                    self.engine.context(*pair)
                    for pair in ((choice.left, choice.right), (choice.right, choice.left))
                ]
            if choice.disputed is not None:
                self._settle_dispute(parts, answer, choice.disputed)
            outcome = self._decide(parts, context, answer, who, why, reason, choice.probability, choice)
        if answer != UNSURE:
            if self._learner is None:
                outcome = outcome._replace(moved=outcome.moved + self.learn())
            else:
                self._lesson.set()
        return outcome

    def merge(self, ids: Sequence[str], *, who: str = "me", why: str = "") -> Outcome:
        """Merge the entities of some records by hand."""
        with self._lock:
            rows = self.store.find_ids(ids)
            members = np.flatnonzero(np.isin(self.engine.labels, self.engine.labels[rows]))
            return self._decide([members.tolist()], [], SAME, who, why, "hand", None, None)

    def split(self, ids: Sequence[str], *, who: str = "me", why: str = "") -> Outcome:
        """Split some records from their entity by hand: they become one entity, the rest another."""
        with self._lock:
            rows = self.store.find_ids(ids)
            if len(np.unique(self.engine.labels[rows])) != 1:
                raise InvalidArgumentError("records that are taken out together must be of one entity.")
            members = np.flatnonzero(self.engine.labels == self.engine.labels[rows[0]])
            rest = np.setdiff1d(members, rows)
            if not len(rest):
                raise InvalidArgumentError("nothing would stay in the entity: take fewer records out.")
            parts = [rest.tolist(), rows.tolist()]
            return self._decide(parts, [], DIFFERENT, who, why, "hand", None, None)

    def undo(self, *, who: str = "me") -> int | None:
        """Undo a person's last decision and its effects; return its number, or None if there is none.

        The person's next question is the one of that decision, followed by the one that was open.
        """
        with self._lock:
            mine = [one for one in self.store.decisions() if one["who"] == who]
            if not mine:
                return None
            decision = int(mine[-1]["decision"])
            self.store.take_back(decision, who)
            self._last = None
            self.reload()
            choice = self.engine.ask_again(mine[-1])
            if choice is not None:
                waiting = self._open.pop(who, None)
                if waiting is not None:
                    self._taken.pop(waiting.number)
                    self._aside.setdefault(who, []).append(waiting)
                found = self._question(choice)
                self._open[who] = self._taken[found.number] = found
            return decision

    def quality(self) -> Quality:
        """Estimate precision and recall from the answers to random questions."""
        with self._lock:
            drawn = [
                (*(part[0] for part in one["parts"]), one["asked"], one["probability"], one["answer"] == SAME)
                for one in self.store.decisions()
                if str(one["asked"]).startswith(RANDOM) and one["answer"] in (SAME, DIFFERENT)
            ]
        left, right, asked, probability, same = zip(*drawn, strict=True) if drawn else ((),) * 5
        together = [str(reason).endswith(TOGETHER) for reason in asked]
        return self.engine.quality(RandomAnswers.of(left, right, together, probability, same))

    def close(self) -> None:
        """Save the learned weights as the current model, and close the store."""
        self._closing = True
        if self._learner is not None:
            self._lesson.set()
            self._learner.join()
        with self._lock:
            decided = self._decided()
            if not self.store.read_only and decided != self._learned_from:
                training = {**self._base.training, "records": self.store.n_records}
                weights = self.engine.records.weights
                knowledge = replace(self._base, weights=weights, training=training)
                save_model(self.store, knowledge, {"decisions": decided}, in_place_of=self._taught)
            self.store.close()
        self._raise_failure()

    @property
    def answers(self) -> int:
        """Number of valid decisions."""
        return int(self.store.execute("SELECT count(*) FROM decisions WHERE withdrawn IS NULL")[0][0])

    def _decided(self) -> list[int]:
        """Return the numbers of the valid decisions."""
        return [int(one["decision"]) for one in self.store.decisions()]

    def _learn_in_background(self) -> None:
        while True:
            self._lesson.wait()
            self._lesson.clear()
            if self._closing:
                return
            try:
                self.learn()
            except StoreError:  # for example, the disk is full: the next answer raises it
                continue
            except Exception as error:
                self._failure = error

    def _raise_failure(self) -> None:
        """Raise the error that ended learning in the background, but only once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _adopt(self, lessons: Lessons, *, keep: bool = True) -> int:
        """Make prepared results current, and save the entities that change.

        keep
            False to use only the weights, because the entities already agree with them.
        """
        with self._lock:
            if not keep or self.store.read_only or self._last is None:
                self.engine.adopt(lessons._replace(rows=lessons.rows[:0], before=lessons.before[:0]))
                return 0
            decision, who = self._last
            try:
                before = self.engine.labels.copy()
                with self.store.transaction():
                    changed = self.engine.adopt(lessons)
                    self._keep_entities(before, changed, Cause("decision", decision=decision, who=who))
            except BaseException:
                self.reload()
                raise
            return len(changed)

    def _keep_entities(self, before: Ints, changed: Ints, cause: Cause) -> None:
        """Save the changed entities of records, and use the entity numbers of the store in the engine.

        before
            The entity of every record before the change.
        """
        if not len(changed):
            return
        labels = self.engine.labels
        old, new = (np.zeros(int(side.max()) + 1, np.bool_) for side in (before, labels))
        old[before[changed]], new[labels[changed]] = True, True
        rows = np.flatnonzero(old[before] | new[labels])
        after = self.store.regroup_all(rows, before[rows], labels[rows], cause)
        self.engine.rename(rows, after)

    def _choose(self) -> Choice | None:
        open_pairs = frozenset(
            (min(one.choice.left, one.choice.right), max(one.choice.left, one.choice.right))
            for one in self._taken.values()
        )
        for conflict in self.engine.verdicts.conflicts:
            if len(conflict["parts"]) == 2 and not conflict["asked"].startswith(
                AGAIN
            ):  # ask a second time, but not again
                left, right = (part[0] for part in conflict["parts"])
                if (min(left, right), max(left, right)) not in open_pairs:
                    self.engine.verdicts.conflicts.remove(conflict)
                    choice = self.engine.describe(left, right, AGAIN)
                    return choice._replace(disputed=conflict["decision"])
        return self.engine.next(open_pairs)

    def _settle_dispute(self, parts: list[list[int]], answer: str, disputed: int) -> None:
        """Undo the decisions about two records that contradict the answer to a repeated question.

        disputed
            The decision that contradicts others; it is undone as well if it still does.
        """
        for one in self.store.decisions():
            if sorted(one["parts"]) == sorted(parts) and one["answer"] != answer:
                self.store.withdraw(one["decision"])
        self.reload()
        if any(conflict["decision"] == disputed for conflict in self.engine.verdicts.conflicts):
            self.store.withdraw(disputed)
            self.reload()

    def _decide(
        self,
        parts: list[list[int]],
        context: list[NDArray[np.int64]],
        answer: str,
        who: str,
        why: str,
        reason: str,
        probability: float | None,
        choice: Choice | None,
    ) -> Outcome:
        """Save a decision and its effects in one transaction; if this fails, nothing changes."""
        decision = {"parts": parts, "context": [side.tolist() for side in context], "answer": answer}
        before = self.engine.labels.copy()
        try:
            with self.store.transaction():
                number = self.store.decide(
                    parts,
                    answer,
                    who=who,
                    why=why,
                    context=context,
                    asked=reason,
                    probability=probability,
                )
                changed = self.engine.decide(decision | {"decision": number, "asked": reason}, choice)
                self._keep_entities(before, changed, Cause("decision", decision=number, who=who))
        except BaseException:
            self.reload()
            raise
        self._last = (number, who)
        labels = self.engine.labels
        names = np.unique([before[changed], labels[changed]]).tolist()
        return Outcome(number, len(changed), tuple((name, int((labels == name).sum())) for name in names))

    def _question(self, choice: Choice) -> Question:
        self._numbers += 1
        left, right = choice.left, choice.right
        sides, rows = [np.zeros(0, np.int64)] * 2, np.array(choice.records, np.int64)
        if choice.kind != WHOLE:
            sides = [self.engine.context(*pair) for pair in ((left, right), (right, left))]
            rows = np.concatenate([[left, right], *(side[:SHOWN] for side in sides)]).astype(np.int64)
        described = self.describe_records(rows)
        by_row = dict(zip(rows.tolist(), described, strict=True))
        pair = [dict(by_row[left]), dict(by_row[right])]
        return Question(
            number=self._numbers,
            ids=(str(pair[0].pop("id")), str(pair[1].pop("id"))),
            records=(pair[0], pair[1]),
            context=tuple([by_row[row] for row in side[:SHOWN].tolist()] for side in sides),
            sizes=(len(sides[0]) + 1, len(sides[1]) + 1),
            together=choice.together,
            probability=choice.probability,
            evidence=self._evidence(left, right),
            kind=choice.kind,
            reason=choice.reason,
            shown=tuple(described) if choice.kind == WHOLE else (),
            entities=number_in_order(self.engine.labels[rows]) if choice.kind == WHOLE else (),
            choice=choice,
        )

    def _evidence(self, left: int, right: int) -> tuple[tuple[str, float], ...]:
        records, knowledge = self.engine.records, self._base
        link = int(records.graph.find_pairs(np.array([left]), np.array([right]))[0])
        if link < 0:
            return ()
        steps = [
            (f"{one.name}, {one.level_text(int(level))}", float(table[level]))
            for one, table, level in zip(
                knowledge.comparisons, records.weights.tables(), records.levels[link], strict=True
            )
        ]
        steps = [("linked", records.weights.link), *steps]
        return tuple(sorted((one for one in steps if one[1]), key=lambda one: -abs(one[1])))
