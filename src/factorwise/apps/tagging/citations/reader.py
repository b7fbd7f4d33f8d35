"""Reference strings read into fields, with a confidence for each.

A tagger labels the pieces of a reference between its spaces: BIO labels of author, title, journal and so on.
The package has one that was trained on the references of AnyStyle's core set, and `CitationReader.fit` trains
another on one's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import as_file, files
from os import PathLike
from typing import NamedTuple, Self

from factorwise.apps.tagging.estimator import ChainCRF
from factorwise.apps.tagging.templates import TemplateSet
from factorwise.errors import InvalidArgumentError

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
_OUTER = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)
_DIGIT = re.compile(r"\d")
LONGEST = 20_000  # characters of a reference: whatever is longer is no reference


class Field(NamedTuple):
    """A field of a reference: characters ``start`` to ``end`` of it, the end exclusive."""

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
    """Reads reference strings by a tagger of their pieces.

    tagger
        A `ChainCRF` that `fit` has trained or `load` has read.

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
        """Return a reader that `save` wrote."""
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
            The pieces of each reference, as they stand between its spaces.
        labels
            A label for each piece: ``B-author``, ``I-author``, ``B-title``, ..., ``O``.
        c1, c2
            The prior, as in `ChainCRF`.
        """
        tagger = ChainCRF(templates=_TEMPLATES, c1=c1, c2=c2, n_jobs=n_jobs)
        return cls(tagger.fit([_columns(reference) for reference in pieces], labels))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tagger to a model file."""
        self.tagger.save(path)

    def read(self, references: Iterable[str]) -> list[Citation]:
        """Return the fields of each reference."""
        texts = list(references)
        pieces = [_checked_pieces(text, number) for number, text in enumerate(texts)]
        predicted = self.tagger.predict_spans([_columns([m[0] for m in found]) for found in pieces])
        return [
            Citation(text, tuple(_fields(text, found, spans)))
            for text, found, spans in zip(texts, pieces, predicted, strict=True)
        ]


def split_references(text: str) -> list[str]:
    r"""Return the references of a plain text: paragraphs where blank lines divide it, otherwise lines.

    >>> split_references("A. First.\nB. Second.")
    ['A. First.', 'B. Second.']
    >>> split_references("A. First\n  goes on.\n\nB. Second.")
    ['A. First goes on.', 'B. Second.']
    """
    paragraphs = re.split(r"\n[ \t\r]*\n", text.strip())
    parts = paragraphs if len(paragraphs) > 1 else text.splitlines()
    return [joined for part in parts if (joined := " ".join(part.split()))]


def _checked_pieces(text: object, number: int) -> list[re.Match[str]]:
    if not isinstance(text, str):
        raise InvalidArgumentError(f"reference {number} is a {type(text).__name__}: give strings.")
    if len(text) > LONGEST:
        raise InvalidArgumentError(
            f"reference {number} has {len(text)} characters, more than {LONGEST}: give one reference a"
            " string, or a line of the file."
        )
    return list(_PIECE.finditer(text))


def _columns(pieces: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Return what the templates look at: the piece, its core, the signs around it, and where it is."""
    columns = []
    for position, piece in enumerate(pieces):
        before, core, behind = _OUTER.match(piece).groups()  # type: ignore[union-attr]  # matches anything
        core = _DIGIT.sub("0", (core or piece).lower())
        columns.append((piece, core, f"{before}_{behind}", str(10 * position // len(pieces))))
    return columns


def _fields(text: str, pieces: Sequence[re.Match[str]], spans: Iterable[NamedTuple]) -> Iterator[Field]:
    for span in spans:
        start, end = pieces[span.start].start(), pieces[span.end - 1].end()  # type: ignore[attr-defined]
        yield Field(span.kind, text[start:end], start, end, span.confidence)  # type: ignore[attr-defined]
