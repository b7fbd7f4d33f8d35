"""What the verbs of ``factorwise tag`` share: column files, and the options that say how to read them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import click

from factorwise.cli.files import STANDARD, reading, shown
from factorwise.cli.numbers import LARGEST
from factorwise.errors import DataFileError
from factorwise.io.conll import ColumnFile, parse_columns, read_columns
from factorwise.validation import as_text

F = TypeVar("F", bound=Callable[..., Any])


NBEST = "# nbest="  # what the comment before each sentence begins with in a file of several best sequences


class NumberList(click.ParamType):  # type: ignore[type-arg]
    """Numbers from 0 on with commas between them; in a configuration file also a single number."""

    name = "numbers"
    toml_type: ClassVar[Any] = ((int, float, str), "a number, or numbers with commas in quotes")

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Read the numbers."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(word) for word in str(value).split(","))
        except ValueError:
            numbers = (math.nan,)
        if not all(number >= 0.0 for number in numbers):
            self.fail(
                f"{value!r} is not a number, nor numbers with commas between them, from 0 on.", param, ctx
            )
        if max(numbers) > LARGEST:
            self.fail(f"{max(numbers):g} is outside the usable range: give {LARGEST:g} at most.", param, ctx)
        return numbers


class ColumnNumbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers of columns, counted from 0, with commas between them."""

    name = "columns"
    toml_type: ClassVar[Any] = ((int, str), "a column's number, or numbers with commas in quotes")

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Read the numbers."""
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if not all(word.isascii() and word.isdigit() and len(word) < 7 for word in words):
            self.fail(
                f"{value!r} is no list of columns: give their numbers, counted from 0, as in 0,1.", param, ctx
            )
        if len(set(map(int, words))) < len(words):
            self.fail(f"{value!r} names a column twice.", param, ctx)
        return tuple(map(int, words))


class Separator(click.ParamType):  # type: ignore[type-arg]
    """A character between columns; ``tab`` for a tab."""

    name = "separator"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read the character."""
        character = "\t" if value in ("tab", "\\t") else str(value)
        if len(character) != 1 or not character.isascii() or character in "\r\n\0":
            self.fail(f"{value!r} is not one ASCII character, nor 'tab'.", param, ctx)
        return character


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLayout:
    """How a column file is written; None where nothing was said.

    separator, encoding, comment
        As in `factorwise.io.conll.read_columns`.
    """

    separator: str | None = None
    encoding: str | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        for name in ("separator", "encoding", "comment"):
            if getattr(self, name) is not None:
                as_text(name, getattr(self, name))

    def or_else(self, other: ColumnLayout) -> ColumnLayout:
        """Fill in from another layout what was not said."""
        return ColumnLayout(
            separator=self.separator if self.separator is not None else other.separator,
            encoding=self.encoding if self.encoding is not None else other.encoding,
            comment=self.comment if self.comment is not None else other.comment,
        )


def layout_options(function: F) -> F:
    """Add the options that say how a column file is written."""
    separator = click.option(
        "--separator",
        type=Separator(),
        metavar="CHARACTER",
        help="Character between columns, or 'tab'.  [default: a tab if the first token has one, or spaces]",
    )
    encoding = click.option("--encoding", metavar="NAME", help="Text encoding of files.  [default: utf-8]")
    comment = click.option("--comment", metavar="TEXT", help="What comment lines begin with, as in '# '.")
    return separator(encoding(comment(function)))


def read_table(path: str, layout: ColumnLayout) -> ColumnFile:
    """Read a column file, or standard input if the path is ``-``."""
    encoding = layout.encoding or "utf-8"
    if path == STANDARD:
        content = sys.stdin.buffer.read()
        return parse_columns(
            content,
            name=shown(path),
            separator=layout.separator,
            encoding=encoding,
            comment=layout.comment,
        )
    with reading(path):
        return read_columns(path, separator=layout.separator, encoding=encoding, comment=layout.comment)


def read_plain_text(path: str, encoding: str | None = None) -> str:
    """Read a text from a file, or from standard input if the path is ``-``.

    encoding
        None for a verb that has no option for it: UTF-8.
    """
    with reading(path):
        content = sys.stdin.buffer.read() if path == STANDARD else Path(path).read_bytes()
    try:
        return content.decode(encoding or "utf-8")
    except (UnicodeDecodeError, LookupError) as error:
        remedy = "Save it in UTF-8." if encoding is None else "Give its --encoding, or save it in UTF-8."
        raise DataFileError(f"{shown(path)}: not text in {encoding or 'UTF-8'} ({error}). {remedy}") from None


def column_number(file: ColumnFile, number: int, option: str, name: str) -> int:
    """Return a column's number counted from 0, given from either end."""
    columns = file.n_columns
    if not -columns <= number < columns:
        raise DataFileError(
            f"{name}: {option} is {number}, but the file has {columns}"
            f" column{'s' * (columns != 1)}, 0 to {columns - 1}. Name one of them."
        )
    return number % columns


def check_labels(file: ColumnFile, column: int, labels: Sequence[str], name: str) -> None:
    """Refuse an empty label."""
    if "" in labels:
        code = file.vocabulary.tolist().index("")
        line = int(file.line[int((file.codes[column] == code).argmax())])
        raise DataFileError(
            f"{name}, line {line}: column {column} is empty, where a label should be. Fill it in, or choose"
            " another column."
        )
