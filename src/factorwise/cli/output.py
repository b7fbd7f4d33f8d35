"""Output of verbs: one JSON document or lines of text, without escape codes from files."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import click

from factorwise.cli.files import standard_output
from factorwise.cli.options import Options

#: Arguments named in error messages whose options have other names.
_ARGUMENTS = re.compile(
    r"\b(c1|comment|constraint_folds|encoding|order|prefix_ids|separator|syntax)=(True\b|None\b|'[^']*'|\d+)"
)
_OPTIONS = {"constraint_folds": "global-folds"}


def emit(document: dict[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result on standard output: ``document`` as JSON, or ``lines``."""
    shown = [json.dumps(document, indent=2, allow_nan=False)] if as_json else map(printable, lines)
    encoding, errors = getattr(sys.stdout, "encoding", None), getattr(sys.stdout, "errors", None)
    with standard_output(encoding or "utf-8", errors or "strict") as stream:
        stream.writelines(f"{line}\n" for line in shown)


def tell_on_the_way(lines: Iterable[str]) -> None:
    """Print lines on standard output before the work; if that fails, the work continues without them."""
    text = "".join(f"{printable(line)}\n" for line in lines)
    stream = sys.stdout
    with suppress(OSError):  # the result at the end reports it
        try:
            number = stream.fileno()
        except (AttributeError, OSError):  # closed, a notebook's, or a text in memory
            print(text, end="", file=stream)
            return
        stream.flush()
        # nothing stays in a buffer
        os.write(number, text.encode(stream.encoding or "utf-8", "backslashreplace"))


def printable(text: str) -> str:
    """Replace control characters, which may come from a file and would reach the terminal."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text
    )


def with_options(text: str) -> str:
    """Replace arguments of Python in an error message by options: ``--encoding cp1252``."""

    def option(match: re.Match[str]) -> str:
        name, value = match.groups()
        named = f"--{_OPTIONS.get(name, name.replace('_', '-'))}"
        if value in ("True", "None"):
            return named if value == "True" else f"no {named}"
        return f"{named} {shlex.quote(value.strip(chr(39)))}"

    return _ARGUMENTS.sub(option, text)


def aligned(rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
    """Arrange rows in columns; the last column is not padded."""
    table = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)][:-1]
    return [
        indent
        + "  ".join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]])
        for row in table
    ]


def size_text(count: int) -> str:
    """Return a number of bytes as text."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def notice(options: Options, text: str) -> None:
    """Print a notice on standard error, unless ``--quiet`` is set."""
    if not options.quiet:
        click.echo(f"note: {text}", err=True)
