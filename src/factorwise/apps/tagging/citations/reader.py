"""Parse reference strings into fields, each with a confidence.

A tagger assigns BIO labels (author, title, journal and so on) to the pieces of a reference between spaces.
Pieces that medical journals write without spaces, "2001;12(3):45-9", are split into date, volume and pages.
The package includes a tagger trained on the references of AnyStyle's core set. `CitationReader.fit` trains
another one on your own data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import as_file, files
from os import PathLike
from typing import NamedTuple, Self

from factorwise.apps.tagging.answers import Span
from factorwise.apps.tagging.citations.values import YEAR
from factorwise.apps.tagging.estimator import ChainCRF
from factorwise.apps.tagging.features.templates import TemplateSet
from factorwise.errors import InvalidArgumentError
from factorwise.metrics.sequence import spans

_TEMPLATES = TemplateSet.parse(
    """
    bias
    first
    last
    w[0]
    prefix1(w[0])
    suffix1(w[0])
    shape(w[0])
    short_shape(w[0])
    is_digit(w[0])
    has_digit(w[0])
    core[0]
    prefix2(core[0])
    prefix3(core[0])
    prefix4(core[0])
    suffix2(core[0])
    suffix3(core[0])
    suffix4(core[0])
    core[-3]
    core[-2]
    core[-1]
    core[1]
    core[2]
    core[3]
    suffix3(core[-1])
    suffix3(core[1])
    core[-1]|core[0]
    core[0]|core[1]
    outer[0]
    outer[-2]
    outer[-1]
    outer[1]
    outer[2]
    outer[-1]|outer[0]
    outer[0]|outer[1]
    outer[-1]|short_shape(w[0])
    short_shape(w[-2])
    short_shape(w[-1])
    short_shape(w[1])
    short_shape(w[2])
    short_shape(w[-1])|short_shape(w[0])
    short_shape(w[0])|short_shape(w[1])
    short_shape(w[-1])|short_shape(w[0])|short_shape(w[1])
    short_shape(w[-2])|short_shape(w[-1])|short_shape(w[0])
    tenth[0]
    tenth[0]|short_shape(w[0])
    tenth[0]|outer[-1]
    """,
    ("w", "core", "outer", "tenth"),
)
_PIECE = re.compile(r"\S+")
_PAGES = r"[A-Za-z]{0,2}\d+(?:[-\u2010-\u2015\u2212]+[A-Za-z]{0,2}\d+)?"
_GLUED = re.compile(rf"(?<=\w);(?=\(?\d)|(?<=[\d)]):(?={_PAGES}[^\w:]*$)")
_NUMBER = re.compile(r"\s*[\[(]?(\d{1,4})[\]).]\s")
_BULLET = re.compile(r"\s*[-*\u2022\u2013]\s+")
_HEADING = re.compile(
    r"\W*(?:references|bibliography|works cited|literature(?: cited)?|literatur)\W*", re.IGNORECASE
)
_MOST = 0.8  # if more than this share of the lines have a year, each line is a reference
_GLUED_NAMES = ("date", "volume", "pages")
_OUTER = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)
_DIGIT = re.compile(r"\d")
LONGEST = 20_000  # maximum length of a reference, in characters


class Field(NamedTuple):
    """A field of a reference: its characters from ``start`` to ``end`` (exclusive)."""

    name: str
    text: str
    start: int
    end: int
    confidence: float


class Citation(NamedTuple):
    """A reference and its fields, in the order of the text."""

    text: str
    fields: tuple[Field, ...]

    def values(self, name: str) -> list[str]:
        """Return the texts of all fields of one name."""
        return [field.text for field in self.fields if field.name == name]


class CitationReader:
    """Parser of reference strings that uses a tagger of their pieces.

    tagger
        A trained `ChainCRF`; `fit` trains one and `load` reads one.

    >>> reader = CitationReader.bundled()
    >>> [citation] = reader.read(["Brand, R. (1990). Keeping bees. Journal of Hives, 12(3), 4-9."])
    >>> citation.values("title")
    ['Keeping bees.']
    """

    def __init__(self, tagger: ChainCRF) -> None:
        self.tagger = tagger

    @classmethod
    def bundled(cls, *, n_jobs: int | None = None) -> Self:
        """Return the reader that comes with the package."""
        with as_file(files("factorwise.apps.tagging.citations") / "citations.fw") as path:
            return cls.load(path, n_jobs=n_jobs)

    @classmethod
    def load(cls, path: str | PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Return a reader that was saved with `save`."""
        tagger = ChainCRF.load(path, n_jobs=n_jobs)
        templates = getattr(tagger.encoder_, "templates", None)
        if templates is None or templates.columns != _TEMPLATES.columns:
            raise InvalidArgumentError(
                f"{path} is a tagger, but none of references: train one with CitationReader.fit."
            )
        return cls(tagger)

    @classmethod
    def fit(
        cls,
        pieces: Sequence[Sequence[str]],
        labels: Sequence[Sequence[str]],
        *,
        c1: float = 0.1,
        c2: float = 0.1,
        n_jobs: int | None = None,
    ) -> Self:
        """Train a reader.

        pieces
            The pieces of each reference, which are separated by spaces.
        labels
            A label for each piece: ``B-author``, ``I-author``, ``B-title``, ..., ``O``.
        c1, c2
            The prior, as in `ChainCRF`.
        """
        tagger = ChainCRF(templates=_TEMPLATES, c1=c1, c2=c2, n_jobs=n_jobs)
        divided = [divided_labels(*each) for each in zip(pieces, labels, strict=True)]
        return cls(tagger.fit([_columns(parts) for parts, _ in divided], [named for _, named in divided]))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tagger to a model file."""
        self.tagger.save(path)

    def read(self, references: Iterable[str]) -> list[Citation]:
        """Return the fields of each reference."""
        texts = list(references)
        pieces, columns = _take_apart(texts)
        predicted = self.tagger.predict_spans(columns)
        return [
            Citation(text, tuple(_fields(text, found, spans)))
            for text, found, spans in zip(texts, pieces, predicted, strict=True)
        ]

    def read_nbest(self, references: Iterable[str], k: int = 5) -> list[list[tuple[Citation, float]]]:
        """Return the ``k`` most probable parses of each reference, each with its probability.

        The confidence of a field is the probability share of these parses that contain it.
        """
        texts = list(references)
        pieces, columns = _take_apart(texts)
        readings = []
        for text, found, best in zip(texts, pieces, self.tagger.predict_nbest(columns, k), strict=True):
            total = sum(probability for _, probability in best)
            held = [(spans(labels), probability) for labels, probability in best]
            shares: dict[tuple[str, int, int], float] = {}
            for fields, probability in held:
                for field in fields:
                    shares[field] = shares.get(field, 0.0) + probability / total
            readings.append(
                [
                    (
                        Citation(text, tuple(_fields(text, found, [Span(*f, shares[f]) for f in fields]))),
                        probability,
                    )
                    for fields, probability in held
                ]
            )
        return readings


def split_references(text: str) -> list[str]:
    r"""Return the references in a plain text, each as one line.

    References start at lines that are numbered consecutively. Without numbers, blank lines separate them,
    unless most lines have a year; otherwise each line is a reference. An indented line continues the previous
    line. Bullets and a heading are removed.

    >>> split_references("A. First.\nB. Second.")
    ['A. First.', 'B. Second.']
    >>> split_references("A. First\n  goes on.\n\nB. Second.")
    ['A. First goes on.', 'B. Second.']
    >>> split_references("[1] A. First\ngoes on.\n[2] B. Second.")
    ['[1] A. First goes on.', '[2] B. Second.']
    """
    lines = text.expandtabs().splitlines()
    filled = [number for number, line in enumerate(lines) if line.strip() and not _HEADING.fullmatch(line)]
    begins = _numbered(lines, filled)
    if len(begins) < 2:
        begins = {number for number in filled if number == 0 or not lines[number - 1].strip()}
        with_year = sum(YEAR.search(lines[number]) is not None for number in filled)
        if len(begins) < 2 or with_year > _MOST * len(filled):
            margin = min((_indent(lines[number]) for number in filled), default=0)
            begins = {number for number in filled if _indent(lines[number]) == margin}
    references: list[list[str]] = []
    for number in filled:
        if number in begins or not references:
            references.append([])
        references[-1] += (_BULLET.sub("", lines[number]) if number in begins else lines[number]).split()
    return [" ".join(words) for words in references]


def _numbered(lines: Sequence[str], filled: Sequence[int]) -> set[int]:
    """Return the lines that begin with a number, if the first line does and the numbers are consecutive."""
    found = {number: int(match[1]) for number in filled if (match := _NUMBER.match(lines[number]))}
    counted = list(found.values())
    counts = bool(counted) and counted == list(range(counted[0], counted[0] + len(counted)))
    return set(found) if counts and filled[0] in found else set()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def divided_labels(pieces: Sequence[str], labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split pieces such as "2001;12(3):45-9" and give each part its own label.

    >>> divided_labels(["Hives", "2001;12(3):45-9."], ["B-journal", "B-volume"])
    (['Hives', '2001;', '12(3):', '45-9.'], ['B-journal', 'B-date', 'B-volume', 'B-pages'])
    """
    parts: list[str] = []
    named: list[str] = []
    for piece, label in zip(pieces, labels, strict=True):
        mark, _, name = label.partition("-")
        own = [piece[start:end] for start, end in _divided(piece)]
        for number, part in enumerate(own):
            said = _name_of(part, own[number - 1]) if len(own) > 1 and name in _GLUED_NAMES else name
            goes_on = (number > 0 or mark == "I") and named and named[-1].endswith(f"-{said}")
            named.append(label if len(own) == 1 or not name else f"{'I' if goes_on else 'B'}-{said}")
            parts.append(part)
    return parts, named


def _name_of(part: str, before: str) -> str:
    """Return the field of a part of a split piece, from its last sign or that of the previous part."""
    if part.endswith(";"):
        return "date"
    return "pages" if before.endswith(":") else "volume"


def _divided(piece: str) -> list[tuple[int, int]]:
    """Return the start and end of each part of a piece; there is one part unless it holds several values."""
    ends = [] if "//" in piece else [found.end() for found in _GLUED.finditer(piece)]
    return list(zip([0, *ends], [*ends, len(piece)], strict=True))


def _take_apart(
    texts: Sequence[str],
) -> tuple[list[list[tuple[int, int]]], list[list[tuple[str, str, str, str]]]]:
    """Return the positions of the pieces of each reference, and the columns that the templates read."""
    pieces = [_checked_pieces(text, number) for number, text in enumerate(texts)]
    return pieces, [
        _columns([text[start:end] for start, end in found]) for text, found in zip(texts, pieces, strict=True)
    ]


def _checked_pieces(text: object, number: int) -> list[tuple[int, int]]:
    """Return the start and end of each piece of a reference; raise an error if it is not a valid string."""
    if not isinstance(text, str):
        raise InvalidArgumentError(f"reference {number} is a {type(text).__name__}: give strings.")
    if len(text) > LONGEST:
        raise InvalidArgumentError(
            f"reference {number} has {len(text)} characters, more than {LONGEST}: give one reference a"
            " string, or a line of the file."
        )
    return [
        (found.start() + start, found.start() + end)
        for found in _PIECE.finditer(text)
        for start, end in _divided(found[0])
    ]


def _columns(pieces: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Return the template columns: piece, normalized core, surrounding punctuation, and relative position."""
    columns = []
    for position, piece in enumerate(pieces):
        before, core, behind = _OUTER.match(piece).groups()  # type: ignore[union-attr]  # matches anything
        core = _DIGIT.sub("0", (core or piece).lower())
        columns.append((piece, core, f"{before}_{behind}", str(10 * position // len(pieces))))
    return columns


def _fields(text: str, pieces: Sequence[tuple[int, int]], spans: Iterable[NamedTuple]) -> Iterator[Field]:
    for span in spans:
        start, end = pieces[span.start][0], pieces[span.end - 1][1]  # type: ignore[attr-defined]
        yield Field(span.kind, text[start:end], start, end, span.confidence)  # type: ignore[attr-defined]
