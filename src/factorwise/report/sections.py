"""What a report is made of. Sections hold plain data; the page shows each kind its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page with a heading.

    note
        A sentence below the heading: what is shown, what was left out.
    """

    kind: ClassVar[str]
    title: str
    note: str = ""

    def document(self) -> dict[str, Any]:
        """Return the section as what JSON can hold."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(Section):
    """Names and values: provenance, settings, scores."""

    kind: ClassVar[str] = "facts"
    rows: Sequence[tuple[str, Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Section):
    """A table that can be sorted by any column and searched."""

    kind: ClassVar[str] = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Series:
    """One line or set of bars: its name and its points.

    weight
        How large each point of a line is drawn, by area; None for all alike.
    """

    name: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    weight: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(Section):
    """Lines or bars.

    style
        ``"line"``, ``"bar"``; ``"diagonal"`` is a line with the diagonal beside it, for
        reliability.
    """

    kind: ClassVar[str] = "chart"
    style: Literal["line", "bar", "diagonal"] = "line"
    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Entity:
    """A cluster of records: its name, how sure it is, and the ids and values of its members.

    left_out
        How many further members it has.
    """

    name: str
    coherence: float | None
    members: Sequence[Sequence[Cell]]
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entities(Section):
    """Clusters to be searched, sorted by size or doubt, and looked into, with what differs marked.

    columns
        Names of the values of a member; the first is its id. Texts are its values; numbers are
        what was found out about it.
    noun
        What members are called.
    compared
        Whether to mark the words in which members differ.
    """

    kind: ClassVar[str] = "entities"
    columns: Sequence[str]
    entities: Sequence[Entity]
    noun: str = "records"
    compared: bool = True


@dataclass(frozen=True, slots=True)
class PairCase:
    """Two records in doubt, the probability that they are one, and what each comparison adds to the score.

    alone
        The probability if there were no other records; None if it is not known.
    """

    one: Sequence[Cell]
    two: Sequence[Cell]
    probability: float
    together: bool
    steps: Sequence[tuple[str, float]]
    alone: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs(Section):
    """Uncertain pairs, each with its waterfall."""

    kind: ClassVar[str] = "pairs"
    columns: Sequence[str]
    pairs: Sequence[PairCase]


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens with their labels, how probable these are, and the true ones where they are known.

    left_out
        How many further tokens it has.
    """

    tokens: Sequence[str]
    labels: Sequence[str]
    probability: Sequence[float]
    truth: Sequence[str] | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences(Section):
    """Sentences with their labels, shaded by doubt."""

    kind: ClassVar[str] = "sentences"
    sentences: Sequence[Sentence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix(Section):
    """Square or oblong tables of numbers as colors, one for each step: confusions, flows over time.

    mistakes
        Whether what matters is off the diagonal: only that is listed where a table would be too large.
    """

    kind: ClassVar[str] = "matrix"
    rows: Sequence[str]
    columns: Sequence[str]
    steps: Mapping[str, Sequence[Sequence[float]]]
    row_label: str = ""
    column_label: str = ""
    mistakes: bool = False
