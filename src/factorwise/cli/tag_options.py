"""What the verbs of ``factorwise tag`` share: column files, and the options that say how to read them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import click

from factorwise.cli.options import Options
from factorwise.errors import DataFileError
from factorwise.io.conll import ColumnFile, parse_columns, read_columns

F = TypeVar("F", bound=Callable[..., Any])

STANDARD = "-"  # standard input or output in place of a file


class NumberList(click.ParamType):  # type: ignore[type-arg]
    """Numbers with commas between them; in a configuration file also a single number."""

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
        if not all(map(math.isfinite, numbers)):
            self.fail(f"{value!r} is not a number, nor numbers with commas between them.", param, ctx)
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
class Layout:
    """How a column file is written; None where nothing was said.

    separator, encoding, comment
        As in `factorwise.io.conll.read_columns`.
    """

    separator: str | None = None
    encoding: str | None = None
    comment: str | None = None

    def or_else(self, other: Layout) -> Layout:
        """Fill in from another layout what was not said."""
        return Layout(
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


def read_table(path: str, layout: Layout) -> ColumnFile:
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
    try:
        return read_columns(path, separator=layout.separator, encoding=encoding, comment=layout.comment)
    except FileNotFoundError as error:
        raise DataFileError(str(error)) from None
    except OSError as error:
        raise _unreadable(path, error) from error


def read_text(path: Path) -> str:
    """Read a small text file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable(str(path), error) from error
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path}: not text in UTF-8 ({error.reason}). Save it in UTF-8.") from error


def _unreadable(path: str, error: OSError) -> DataFileError:
    return DataFileError(
        f"{path}: cannot be read: {error.strerror or error}. Check the path and its permissions."
    )


def shown(path: str) -> str:
    """Return the name of an input for messages."""
    return "standard input" if path == STANDARD else path


def check_target(option: str, path: Path, *inputs: str | Path | None) -> None:
    """Refuse a file that could not be written or is an input, before work is spent on its content."""
    if any(one is not None and Path(one).exists() and path.exists() and path.samefile(one) for one in inputs):
        raise click.UsageError(f"{option} {str(path)!r} is also read from: give another file.")
    if path.is_dir():
        raise click.UsageError(f"{option} {str(path)!r} is a folder: give the path of a file in it.")
    if not path.resolve().parent.is_dir():
        raise click.UsageError(
            f"{option} {str(path)!r}: the folder {str(path.parent)!r} does not exist. Make it first."
        )


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


def show_progress(options: Options) -> bool:
    """Whether a progress bar would be welcome."""
    return not options.quiet and not options.json and sys.stderr.isatty()


def notice(options: Options, text: str) -> None:
    """Tell the user something on standard error, unless asked to be quiet."""
    if not options.quiet:
        click.echo(f"note: {text}", err=True)
