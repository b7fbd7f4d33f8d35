"""A question as it is shown to people, and the groups of records in an answer."""

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
    """A question whether two records, with the groups that they represent, are one entity.

    A question of kind ``whole`` asks which of all the records of some entities are one entity.

    number
        Number of the question in this review.
    ids, records
        The ids of the two records, and their columns by name.
    context
        Other members of the two groups, with ids and columns; at most twenty each.
    sizes
        Numbers of records of the two groups.
    together
        Whether the two are currently in one entity.
    probability
        The probability that the two are one entity.
    evidence
        Contributions of comparisons to the score, the largest first; empty if the two are not linked.
    kind, reason
        ``merge``, ``split`` or ``whole``, and why the question is asked.
    shown
        All records of a question about whole entities, with ids and columns; empty for others.
    entities
        The current entity of each of these as a number, counted from 0 in the order shown.
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
        """Return an HTML table of the records for notebooks, with differences highlighted."""
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
    """Return the groups of records in an answer."""
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
    """Number labels from 0 on, in order of appearance."""
    names = list(dict.fromkeys(labels.tolist()))
    return tuple(names.index(label) for label in labels.tolist())
