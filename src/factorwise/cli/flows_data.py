"""Counts and features as the verbs of ``factorwise flows`` take them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

import click

from factorwise.cli.files import reading_utf8
from factorwise.errors import CountsError, DataFileError, InvalidArgumentError
from factorwise.io.keyed_rows import read_keyed_rows

if TYPE_CHECKING:
    from factorwise.apps.collective import Counts, TransitionFeatures

features_option = click.option(
    "--features",
    multiple=True,
    metavar="FEATURES.csv",
    help="Table with from, to and a column for each feature, maybe time and sequence; again for more tables.",
)


@contextmanager
def naming(*paths: str | None) -> Iterator[None]:
    """Name the files that an error is about, unless it begins with one of them."""
    names = [path for path in paths if path is not None]
    try:
        yield
    except (CountsError, InvalidArgumentError) as error:
        if str(error).startswith(tuple(names)):
            raise
        raise DataFileError(f"{' and '.join(names)}: {error}") from error


def read_features(paths: tuple[str, ...]) -> TransitionFeatures | None:
    """Read tables of features and join them; None without any."""
    from factorwise.apps.collective import TransitionFeatures

    parts = []
    for path in paths:
        with reading_utf8(path):
            parts.append(TransitionFeatures.read(path))
    with naming(*paths):
        return reduce(TransitionFeatures.joined, parts) if parts else None


def read_counts(path: str, places: tuple[str, ...] | None) -> Counts:
    """Read counts, at these places only if they are given."""
    from factorwise.apps.collective import Counts

    with reading_utf8(path):
        return Counts.read(path, places)


def read_parents(path: str | None) -> dict[str, str] | None:
    """Read the tree of times: columns time and parent."""
    if path is None:
        return None
    with reading_utf8(path):
        rows = read_keyed_rows(path, keys=("time", "parent"), numbers=())
    return dict(zip(rows.keys["time"], rows.keys["parent"], strict=True))
