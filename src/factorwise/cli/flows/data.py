"""Options and input files that the verbs of ``factorwise flows`` share."""

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

LOW = 0.5  # warn of a population below this share of the counts

features_option = click.option(
    "--features",
    multiple=True,
    metavar="FEATURES.csv",
    help="Table with from, to, a column per feature and, if they vary, time and sequence; repeatable.",
)


def read_features(paths: tuple[str, ...]) -> TransitionFeatures | None:
    """Read and join tables of features; None if there are none."""
    from factorwise.apps.collective import TransitionFeatures

    parts = []
    for path in paths:
        with reading_utf8(path):
            parts.append(TransitionFeatures.read(path))
    with speaking_of(*paths):
        return reduce(TransitionFeatures.join, parts) if parts else None


def read_counts(path: str, places: tuple[str, ...] | None) -> Counts:
    """Read counts; with ``places``, other places are an error."""
    from factorwise.apps.collective import Counts

    with reading_utf8(path):
        return Counts.read(path, places)


def read_parents(path: str | None) -> dict[str, str] | None:
    """Read the tree of times: columns time and parent."""
    if path is None:
        return None
    from factorwise.apps.collective.structure import check_acyclic
    from factorwise.io.tables.keyed_rows import read_keyed_rows

    with reading_utf8(path):
        rows = read_keyed_rows(path, keys=("time", "parent"), numbers=())
    parents: dict[str, str] = {}
    for row, (time, parent) in enumerate(zip(rows.keys["time"], rows.keys["parent"], strict=True)):
        if parents.setdefault(time, parent) != parent:
            raise DataFileError(
                f"{rows.where(row)}: the parent of time {time!r} is {parent!r} here and {parents[time]!r}"
                " above. Give one parent for each time."
            )
    with speaking_of(path):
        check_acyclic(parents)
    return parents


def notice_population(
    options: Options, counts: Counts, populations: Mapping[str, float], share: float
) -> None:
    """Warn of populations that are far smaller than the counts imply.

    share
        Expected count per member present.
    """
    for series in counts.series:
        made = ~np.isnan(series.counts).all(axis=1)
        counted = float(series.fill_missing()[made].sum(axis=1).mean()) / share
        population = populations.get(series.name, counted)
        if population < LOW * counted:
            notice(
                options,
                f"sequence {series.name!r} has {population:g} members, but its counts imply {counted:.4g}:"
                " give a larger --population.",
            )
