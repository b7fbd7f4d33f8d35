"""Counts and features as the verbs of ``factorwise flows`` take them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

import click
import numpy as np

from factorwise.cli.files import reading_utf8, speaking_of
from factorwise.cli.options import Options
from factorwise.cli.output import notice
from factorwise.errors import DataFileError

if TYPE_CHECKING:
    from factorwise.apps.collective import Counts, TransitionFeatures

LOW = 0.5  # of what was counted: a population below is told of

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
    from factorwise.apps.collective.structure import refuse_cycles
    from factorwise.io.tables.keyed_rows import read_keyed_rows

    with reading_utf8(path):
        rows = read_keyed_rows(path, keys=("time", "parent"), numbers=())
    parents: dict[str, str] = {}
    for row, (time, parent) in enumerate(zip(rows.keys["time"], rows.keys["parent"], strict=True)):
        if parents.setdefault(time, parent) != parent:
            raise DataFileError(
                f"{rows.where(row)}: time {time!r} comes from {parent!r} here, and from {parents[time]!r}"
                " above. Give one parent for each time."
            )
    with speaking_of(path):
        refuse_cycles(parents)
    return parents


def notice_population(
    options: Options, counts: Counts, populations: Mapping[str, float], share: float
) -> None:
    """Tell of populations that are far below what was counted.

    share
        Expected count by the number of members there.
    """
    for series in counts.series:
        made = ~np.isnan(series.counts).all(axis=1)
        counted = float(series.filled()[made].sum(axis=1).mean()) / share
        given = populations.get(series.name, counted)
        if given < LOW * counted:
            notice(
                options,
                f"sequence {series.name!r} has {given:g} members, but its counts tell of {counted:.4g} at a"
                " time: give a larger --population.",
            )
