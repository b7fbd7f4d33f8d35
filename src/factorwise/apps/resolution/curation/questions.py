"""A question as people see it, and what an answer to it says of which records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from factorwise.apps.resolution.curation.candidates import WHOLE
from factorwise.apps.resolution.curation.choices import Choice
from factorwise.errors import InvalidArgumentError
from factorwise.store.store import ALL_BUT, SAME
from factorwise.types import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Two records, each with the group that it stands for: are they of one entity?

    A question of kind ``whole`` shows whole entities: are all these records one, and who does not belong?

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
        Whether entities would be merged or split, or ``whole``; why it is asked.
    shown
        All records of a question about whole entities, each with its id and columns; else none.
    entities
        For each of these the number of its entity now: 0 for the first one that is shown.
    """

    number: int
    ids: tuple[str, str]
    records: tuple[dict[str, Any], dict[str, Any]]
    context: tuple[list[dict[str, Any]], ...]
    sizes: tuple[int, int]
    together: bool
    probability: float
    evidence: tuple[tuple[str, float], ...]
    kind: str
    reason: str
    shown: tuple[dict[str, Any], ...]
    entities: tuple[int, ...]
    choice: Choice

    def _repr_html_(self) -> str:
        """Return a table of the records, the differences of two marked, for notebooks."""
        if self.kind == WHOLE:
            return self._table_of_all()
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

    def _table_of_all(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.shown[0])
        rows = [
            f"<tr><td>{number}</td>"
            + "".join(f"<td>{escape('' if v is None else str(v))}</td>" for v in record.values())
            + "</tr>"
            for number, record in zip(self.entities, self.shown, strict=True)
        ]
        return f"<table><tr><th>entity now</th>{head}</tr>{''.join(rows)}</table>"


def parts_of_answer(question: Question, answer: str, taken_out: Sequence[str]) -> list[list[int]]:
    """Return the groups of records that an answer speaks of."""
    choice = question.choice
    if choice.kind != WHOLE:
        if answer == ALL_BUT:
            raise InvalidArgumentError(f"{ALL_BUT!r} answers questions about whole entities only.")
        return [[choice.left], [choice.right]]
    rows = list(choice.records)
    if answer == SAME:
        return [rows]
    if answer != ALL_BUT:
        return [[row] for row in rows]
    ids = [str(record["id"]) for record in question.shown]
    unknown = sorted(set(taken_out) - set(ids))
    if unknown:
        raise InvalidArgumentError(f"question {question.number} does not show a record {unknown[0]!r}.")
    out = [row for row, name in zip(rows, ids, strict=True) if name in taken_out]
    if not 0 < len(out) < len(rows):
        raise InvalidArgumentError(
            f"{ALL_BUT!r} takes some of the records out, but not all: {len(out)} of {len(rows)} were given."
        )
    return [[row for row in rows if row not in out], *([row] for row in out)]


def number_in_order(labels: Ints) -> tuple[int, ...]:
    """Number labels from 0 on, in the order in which they come."""
    names = list(dict.fromkeys(labels.tolist()))
    return tuple(names.index(label) for label in labels.tolist())
