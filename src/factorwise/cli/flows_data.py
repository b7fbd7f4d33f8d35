"""Counts and features as the verbs of ``factorwise flows`` take them."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import click

from factorwise.cli.files import reading_utf8, speaking_of
from factorwise.io.keyed_rows import read_keyed_rows

if TYPE_CHECKING:
    from factorwise.apps.collective import Counts, TransitionFeatures

features_option = click.option(
    "--features",
    multiple=True,
    metavar="FEATURES.csv",
    help="Table with from, to and a column for each feature, maybe time and sequence; again for more tables.",
)


def read_features(paths: tuple[str, ...]) -> TransitionFeatures | None:
    """Read tables of features and join them; None without any."""
    from factorwise.apps.collective import TransitionFeatures

    parts = []
    for path in paths:
        with reading_utf8(path):
            parts.append(TransitionFeatures.read(path))
    with speaking_of(*paths):
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
