"""`Review`: questions about the records of a store, one at a time, for a page, a console or a notebook."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.curator import BASE_MODEL, Curator, Match, load_model, save_model
from factorwise.apps.resolution.curation.engine import AGAIN, RANDOM, Choice, QuestionEngine
from factorwise.apps.resolution.curation.estimates import Quality, estimate_quality
from factorwise.apps.resolution.curation.regions import LinkedRecords
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from factorwise.store import Cause, Store
from factorwise.store.store import ANSWERS, DIFFERENT, SAME
from factorwise.types import Ints

SHOWN = 20  # other members of a group that are shown
TOGETHER, APART = ", together", ", apart"  # what is added to the reason of a random question


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Two records, each with the group that it stands for: are they of one entity?

    number
        Of the question in this review.
    ids, records
        The two records: their ids, and their columns by name.
    context
        Other members of the two groups, each with its id and columns; twenty at most.
    sizes
        How many records the groups have.
    together
        Whether the two are in one entity now.
    probability
        That they belong there.
    evidence
        What each comparison adds to the score of the pair, the largest first; empty if they are not linked.
    kind, reason
        Whether entities would be merged or split; why it is asked.
    """

    number: int
    ids: tuple[str, str]
    records: tuple[dict[str, Any], dict[str, Any]]
    context: tuple[list[dict[str, Any]], list[dict[str, Any]]]
    sizes: tuple[int, int]
    together: bool
    probability: float
    evidence: tuple[tuple[str, float], ...]
    kind: str
    reason: str
    choice: Choice

    def _repr_html_(self) -> str:
        """Return a table of the two records, differences marked, for notebooks."""
        rows = []
        for name in self.records[0]:
            one, two = (record.get(name) for record in self.records)
            mark = ' style="background:#fff3c4"' if one != two else ""
            cells = "".join(f"<td{mark}>{escape('' if v is None else str(v))}</td>" for v in (one, two))
            rows.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
        head = "".join(f"<th>{escape(name)}</th>" for name in self.ids)
        evidence = "".join(f"<li>{escape(name)}: {value:+.2f}</li>" for name, value in self.evidence[:6])
        return (
            f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"
            f"<p>probability {self.probability:.2f}</p><ul>{evidence}</ul>"
        )


class Outcome(NamedTuple):
    """What an answer did: the decision that was kept, and how many records are in another entity now."""

    decision: int
    moved: int


class Review:
    """Questions worth asking about the records of a store, and what answers do.

    ``next`` returns a question, ``answer`` keeps the answer. When ``answer`` returns, the answer is on the
    disk, it holds, the entities around it have changed, and the weights have learned from it. Several people
    may take turns, from several threads.

    store
        An open store, or the path of one.
    random_share
        The share of questions that are drawn at random, to estimate precision and recall.
    """

    def __init__(
        self,
        store: Store | str | PathLike[str],
        *,
        random_share: float = 0.15,
        random_state: int = 0,
        n_jobs: int = 1,
    ) -> None:
        self.store = store if isinstance(store, Store) else Store.open(store)
        self.curator = Curator(self.store, n_jobs=n_jobs, random_state=random_state)
        base = self.store.fact(BASE_MODEL)
        self._base = load_model(self.store, int(base) if base else None)
        self._random_share, self._seed, self._team = random_share, random_state, Team(n_jobs)
        self._lock = threading.RLock()
        self._open: dict[str, Question] = {}
        self._taken: dict[int, Question] = {}
        self._numbers = 0
        self._learned_from = self._decided()  # what the current model knows
        self.reload()

    def reload(self) -> None:
        """Read links, entities and decisions anew."""
        with self._lock:
            links = self.store.index.links()
            records = LinkedRecords.of(
                self.store.n_records, links.first, links.second, links.levels, self._base.weights
            )
            self.engine = QuestionEngine(
                records,
                self.store.membership(),
                Verdicts(),
                random_share=self._random_share,
                seed=self._seed + len(self.store.decisions()),
                team=self._team,
            )
            self.engine.replay(self.store.decisions())

    def next(self, who: str = "me") -> Question | None:
        """Return the question to ask a person now, the same until it is answered; None if there is none."""
        with self._lock:
            if who not in self._open:
                choice = self._choose()
                if choice is None:
                    return None
                self._open[who] = self._question(choice)
                self._taken[self._open[who].number] = self._open[who]
            return self._open[who]

    def answer(self, question: Question | int, answer: str, *, who: str = "me", why: str = "") -> Outcome:
        """Keep an answer: ``same``, ``different`` or ``unsure``.

        question
            The question, or its number.
        """
        if answer not in ANSWERS:
            raise InvalidArgumentError(f"an answer is one of {', '.join(ANSWERS)}, but {answer!r} was given.")
        with self._lock:
            number = question if isinstance(question, int) else question.number
            asked = self._taken.pop(number, None)
            if asked is None:
                raise InvalidArgumentError(f"question {number} is not open: it was answered already.")
            self._open = {name: one for name, one in self._open.items() if one.number != number}
            choice = asked.choice
            reason = choice.reason
            if reason == RANDOM:
                reason += TOGETHER if choice.together else APART
            context = [self.engine.context(*pair) for pair in _both(choice.left, choice.right)]
            parts = [[choice.left], [choice.right]]
            if reason == AGAIN:
                self._withdraw_others(parts, answer)
            return self._decide(parts, context, answer, who, why, reason, choice.probability, choice)

    def merge(self, ids: Sequence[str], *, who: str = "me", why: str = "") -> Outcome:
        """Make the entities of some records one, by hand."""
        with self._lock:
            rows = self.store.find_ids(ids)
            members = np.flatnonzero(np.isin(self.engine.labels, self.engine.labels[rows]))
            return self._decide([members.tolist()], [], SAME, who, why, "hand", None, None)

    def split(self, ids: Sequence[str], *, who: str = "me", why: str = "") -> Outcome:
        """Take some records out of their entity, by hand: they are one entity, what stays is another."""
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
        """Take a person's last decision back with what it changed; return its number, None for none."""
        with self._lock:
            mine = [one["decision"] for one in self.store.decisions() if one["who"] == who]
            if not mine:
                return None
            decision = int(mine[-1])
            changes = self.store.execute(
                "SELECT change FROM changes WHERE decision = ? ORDER BY change DESC",
                [decision],
            )
            with self.store.transaction():
                self.store.withdraw(decision)
                for (change,) in changes:
                    self.store.undo(int(change), who)
            waiting = self._open.pop(who, None)
            if waiting is not None:  # may be asked again
                self._taken.pop(waiting.number, None)
            self.reload()
            return decision

    def quality(self) -> Quality:
        """Estimate precision and recall from the answers to random questions."""
        with self._lock:
            engine = self.engine
            graph = engine.records.graph
            together = engine.labels[graph.first] == engine.labels[graph.second]
            scores = engine.base.link_scores(engine.records.levels)
            prior = engine.odds.probability(scores, scores, together)
            drawn, same = [], []
            for one in self.store.decisions():
                if str(one["asked"]).startswith(RANDOM) and one["answer"] in (SAME, DIFFERENT):
                    left, right = one["parts"][0][0], one["parts"][1][0]
                    link = int(graph.find_pairs(np.array([left]), np.array([right]))[0])
                    if link >= 0:
                        drawn.append(2 * int(engine.strata[link]) + str(one["asked"]).endswith(TOGETHER))
                        same.append(one["answer"] == SAME)
            cell = 2 * engine.strata + together
            return estimate_quality(
                cell, together, prior, np.array(drawn, np.int64), np.array(same, np.bool_)
            )

    def entities(self, search: str = "", *, most: int = 50) -> list[dict[str, Any]]:
        """Return entities with a record that holds some text, the largest first: id, size and one record."""
        with self._lock:
            rows = self._holding(search)
            labels = self.engine.labels
            names, first = np.unique(labels[rows], return_index=True)
            sizes = np.bincount(labels)[names]
            order = np.argsort(-sizes, kind="stable")[:most]
            shown = self._described(rows[first[order]])
            return [
                {"entity": int(names[k]), "records": int(sizes[k]), "example": one}
                for k, one in zip(order.tolist(), shown, strict=True)
            ]

    def members(self, entity: int) -> list[dict[str, Any]]:
        """Return the records of an entity, each with its id and columns."""
        with self._lock:
            return self._described(np.flatnonzero(self.engine.labels == entity))

    def history(self, entity: int) -> list[dict[str, Any]]:
        """Return what happened to an entity: see `Store.history`."""
        with self._lock:
            return self.store.history(entity)

    def decisions(self, *, most: int = 100) -> list[dict[str, Any]]:
        """Return the last decisions that count, the newest first, with the ids of their parts."""
        with self._lock:
            last = self.store.decisions()[-most:][::-1]
            rows = np.unique([row for one in last for part in one["parts"] for row in part]).astype(np.int64)
            names = (
                dict(zip(rows.tolist(), self.store.ids(rows).to_pylist(), strict=True)) if len(rows) else {}
            )
            kept = ("decision", "made", "who", "answer", "why", "asked", "probability")
            return [
                {name: one[name] for name in kept}
                | {"parts": [[names[row] for row in part] for part in one["parts"]]}
                for one in last
            ]

    def lookup(self, record: dict[str, Any], *, most: int = 5) -> list[Match]:
        """Return the entities that a record may be of: see `Curator.lookup`."""
        with self._lock:
            return self.curator.lookup(record, most=most)

    def compared_columns(self) -> list[str]:
        """Return the columns that are compared."""
        return [field.name for field in self._base.fields if field.kind != "ignore"]

    def name_of(self, record: str, columns: Sequence[str]) -> str:
        """Return what a record is called: all that it has in some columns."""
        with self._lock:
            values = self.store.records(self.store.find_ids([record]), columns).to_pylist()[0]
        return " ".join(str(value) for value in values.values() if value not in (None, ""))[:200] or record

    def close(self) -> None:
        """Keep what the weights have learned as the current model, and close the store."""
        with self._lock:
            decided = self._decided()
            if not self.store.read_only and decided != self._learned_from:
                knowledge = replace(self._base, weights=self.engine.records.weights)
                save_model(self.store, knowledge, {"answers": len(decided)})
            self.store.close()

    def _decided(self) -> list[int]:
        """Return the numbers of the decisions that count."""
        return [int(one["decision"]) for one in self.store.decisions()]

    def _choose(self) -> Choice | None:
        open_pairs = frozenset(
            (min(one.choice.left, one.choice.right), max(one.choice.left, one.choice.right))
            for one in self._taken.values()
        )
        for conflict in self.engine.verdicts.conflicts:
            if len(conflict["parts"]) == 2 and not conflict.get("asked_again"):
                left, right = (part[0] for part in conflict["parts"])
                if (min(left, right), max(left, right)) not in open_pairs:
                    self.engine.verdicts.conflicts.remove(conflict)
                    return self.engine.describe(left, right, AGAIN)
        return self.engine.next(open_pairs)

    def _withdraw_others(self, parts: list[list[int]], answer: str) -> None:
        """Take back what was said otherwise of two records, now that someone has looked at it again."""
        for one in self.store.decisions():
            if sorted(one["parts"]) == sorted(parts) and one["answer"] != answer:
                self.store.withdraw(one["decision"])
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
        """Keep a decision and what it changes in one transaction; nothing changes if the disk refuses."""
        decision = {"parts": parts, "context": [side.tolist() for side in context], "answer": answer}
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
                changed = self.engine.decide(decision, choice)
                if len(changed):
                    touched = np.flatnonzero(np.isin(self.engine.labels, self.engine.labels[changed]))
                    left = self.store.members(np.unique(self.store.entities_of(changed)))
                    rows = np.union1d(touched, left.column("record").to_numpy())
                    self.store.regroup(
                        rows, self.engine.labels[rows], Cause("decision", decision=number, who=who)
                    )
                    self.engine.labels[rows] = self.store.entities_of(rows)
        except BaseException:
            self.reload()
            raise
        return Outcome(number, len(changed))

    def _question(self, choice: Choice) -> Question:
        self._numbers += 1
        left, right = choice.left, choice.right
        sides = [self.engine.context(*pair) for pair in _both(left, right)]
        shown = [self._described(side[:SHOWN]) for side in sides]
        records = self._described(np.array([left, right]))
        ids = (str(records[0].pop("id")), str(records[1].pop("id")))
        return Question(
            number=self._numbers,
            ids=ids,
            records=(records[0], records[1]),
            context=(shown[0], shown[1]),
            sizes=(len(sides[0]) + 1, len(sides[1]) + 1),
            together=choice.together,
            probability=choice.probability,
            evidence=self._evidence(left, right),
            kind=choice.kind,
            reason=choice.reason,
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

    def _described(self, rows: Ints) -> list[dict[str, Any]]:
        if not len(rows):
            return []
        ids = self.store.ids(rows).to_pylist()
        records = self.store.records(rows).to_pylist()
        return [
            {"id": name} | {k: v for k, v in one.items() if k != "id"}
            for name, one in zip(ids, records, strict=True)
        ]

    def _holding(self, search: str) -> NDArray[np.int64]:
        """Return the records that hold some text in a column or in their id."""
        if not search:
            return np.arange(len(self.engine.labels))
        columns = range(len(self.store.columns))
        texts = " || ' ' || ".join(["r.id", *(f"coalesce(v.c{k}::VARCHAR, '')" for k in columns)])
        found = self.store.execute(
            f"SELECT r.record FROM record_ids r JOIN record_values v USING (record)"
            f" WHERE contains(lower({texts}), lower(?)) ORDER BY r.record",
            [search],
        )
        return np.array([row for (row,) in found], np.int64)


def _both(left: int, right: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (left, right), (right, left)
