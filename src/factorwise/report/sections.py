"""The sections of a report. They contain plain data; the page shows each kind in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page with a heading.

    note
        A sentence below the heading that says what is shown and what was left out.
    """

    kind: ClassVar[str]
    title: str
    note: str = ""

    def document(self) -> dict[str, Any]:
        """Return the section as JSON values."""
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
        The area of each point of a line; None for equal points.
    """

    name: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    weight: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(Section):
    """Lines or bars.

    style
        ``"line"``, ``"bar"``; ``"diagonal"`` is a line with the diagonal for comparison, for reliability.
    """

    kind: ClassVar[str] = "chart"
    style: Literal["line", "bar", "diagonal"] = "line"
    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Entity:
    """A cluster of records: its name, its probability, and the ids and values of its members.

    left_out
        How many further members it has.
    """

    name: str
    coherence: float | None
    members: Sequence[Sequence[Cell]]
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entities(Section):
    """Clusters that can be searched, sorted by size or uncertainty, and opened; differences are marked.

    columns
        Names of the values of a member; the first is its id. Texts are the member's own values; numbers were
        computed about it.
    noun
        The word for a member.
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
    """Two uncertain records, the probability that they match, and the contribution of each comparison.

    alone
        The probability without any other records; None if it is unknown.
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
    """Tokens with their labels, the probabilities of these, and the true labels if they are known.

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
    """Sentences with their labels, shaded by uncertainty."""

    kind: ClassVar[str] = "sentences"
    sentences: Sequence[Sentence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix(Section):
    """Square or rectangular tables of numbers as colors, one for each step: confusions, flows over time.

    mistakes
        Whether only entries off the diagonal matter: only these are listed if a table would be too large.
    """

    kind: ClassVar[str] = "matrix"
    rows: Sequence[str]
    columns: Sequence[str]
    steps: Mapping[str, Sequence[Sequence[float]]]
    row_label: str = ""
    column_label: str = ""
    mistakes: bool = False
