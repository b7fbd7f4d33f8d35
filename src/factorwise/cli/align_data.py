"""Ontologies and matches as the verbs of ``factorwise align`` take them: read, and checked at once."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from factorwise.cli.files import STANDARD, reading, shown
from factorwise.cli.options import Options
from factorwise.cli.output import notice
from factorwise.errors import DataFileError
from factorwise.io.alignments import EQUIVALENT, Correspondence, parse_alignment, read_alignment
from factorwise.io.listing import some
from factorwise.io.ontologies import Ontology, read_ontology

F = TypeVar("F", bound=Callable[..., Any])
SYNTAXES = ("jsonl", "xml", "turtle", "nt", "n3", "json-ld")


class Side(NamedTuple):
    """An ontology and what messages call its file."""

    ontology: Ontology
    name: str


def ontology_options(function: F) -> F:
    """Add the options that say how ontologies are written."""
    syntax = click.option(
        "--syntax",
        type=click.Choice(SYNTAXES),
        help="How both ontologies are written: JSON lines, or RDF.  [default: as their suffixes say]",
    )
    language = click.option(
        "--language",
        metavar="en",
        help="In RDF, take labels in this language; others only where there is no such.",
    )
    return syntax(language(function))


def read_side(path: str, syntax: str | None, language: str | None) -> Side:
    """Read an ontology from a file."""
    with reading(path):
        return Side(read_ontology(path, syntax=syntax, language=language), path)


def read_matches(options: Options, path: str) -> list[Correspondence]:
    """Read matches from a file, or from standard input if the path is ``-``; other relations are left out."""
    if path == STANDARD:
        found = parse_alignment(sys.stdin.buffer.read(), name=shown(path))
    else:
        with reading(path):
            found = read_alignment(path)
    matches = [row for row in found if row.relation == EQUIVALENT]
    if len(matches) < len(found):
        other = next(row.relation for row in found if row.relation != EQUIVALENT)
        notice(
            options,
            f"{shown(path)}: lines of another relation than {EQUIVALENT!r}, such as {other!r}, are left out:"
            f" {len(found) - len(matches)}.",
        )
    return matches


def read_reference(options: Options, path: str) -> list[Correspondence]:
    """Read the matches that are known; refuse a file without any."""
    matches = read_matches(options, path)
    if not matches:
        raise DataFileError(
            f"{shown(path)}: holds no match. Give a line for each, with the ids of a concept on the left and"
            f" one on the right and {EQUIVALENT!r}, separated by tabs."
        )
    return matches


def check_known(matches: Sequence[Correspondence], name: str, left: Side, right: Side) -> None:
    """Refuse matches of concepts that the ontologies do not have."""
    ours, theirs = left.ontology.by_id, right.ontology.by_id
    unknown = [
        (concept, side)
        for row in matches
        for concept, side in ((row.source, left), (row.target, right))
        if concept not in side.ontology.by_id
    ]
    if not unknown:
        return
    concept, side = unknown[0]
    lacking = some(one for one, whose in unknown if whose is side)
    if all(row.source in theirs and row.target in ours for row in matches):
        remedy = f"It fits with the ontologies exchanged: give {right.name} {left.name}."
    else:
        close = difflib.get_close_matches(concept, side.ontology.by_id, n=1)
        guess = f"Did you mean {close[0]!r}? " if close else ""
        remedy = f"{guess}Give the ontologies that its columns are about, in that order."
    more = f" (one of {len(unknown)} unknown ids)" if len(unknown) > 1 else ""
    raise DataFileError(
        f"{name}: {concept!r} is no concept of {side.name}{more}. {remedy} Not there are {lacking}; there are"
        f" {some(side.ontology.by_id)}."
    )


def notice_many(options: Options, matches: Sequence[Correspondence], name: str) -> None:
    """Tell of concepts with several matches, where one for each is learned."""
    for side in ("source", "target"):
        counts = Counter(getattr(row, side) for row in matches)
        several = [concept for concept, count in counts.items() if count > 1]
        if several:
            have = "have" if len(several) > 1 else "has"
            notice(
                options,
                f"{name}: {some(several)} {have} more than one match, of which one at most can be found one"
                " to one: give --many-to-many to find all.",
            )
