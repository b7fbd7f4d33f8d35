"""Ontologies and matches as the verbs of ``factorwise align`` take them: read, and checked at once."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from factorwise.cli.files import STANDARD, check_kind, reading, shown
from factorwise.cli.numbers import Real
from factorwise.cli.options import Options, path_option
from factorwise.cli.output import notice
from factorwise.errors import DataFileError
from factorwise.io.listing import some
from factorwise.io.ontologies.alignments import EQUIVALENT, Correspondence, parse_alignment, read_alignment
from factorwise.io.ontologies.ontology import JSON_SUFFIXES, KEYS, Ontology, read_ontology
from factorwise.io.ontologies.rdf import FORMATS

if TYPE_CHECKING:
    from factorwise.apps.alignment.estimator import OntologyAligner

F = TypeVar("F", bound=Callable[..., Any])
SYNTAXES = ("jsonl", "obo", "xml", "turtle", "nt", "n3", "json-ld")


#: The aligner that matches two ontologies.
model_option = path_option(
    "--model",
    metavar="MODEL.fw",
    help="The aligner.  [default: weights that come with factorwise and adapt to A and B]",
)
#: The confidence that a match must have.
threshold_option = click.option(
    "--threshold",
    type=Real(0, 1),
    default=0.0,
    show_default="all",
    help="Leave out matches of less confidence.",
)


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
    individuals = click.option(
        "--individuals", is_flag=True, help="Match individuals too, not classes and properties alone."
    )
    return syntax(language(individuals(function)))


def read_side(options: Options, path: str, syntax: str | None = None, **given: Any) -> Side:
    """Read an ontology from a file, and report what in it is not used; ``given`` is as in `read_ontology`."""
    if path == STANDARD:
        raise click.UsageError("An ontology is not read from standard input ('-'): give a file.")
    try:
        with reading(path):
            side = Side(read_ontology(path, syntax=syntax, **given), path)
    except DataFileError as error:
        if syntax in (None, told := _told_syntax(path)) or told is None:
            raise
        raise DataFileError(
            f"{error} --syntax {syntax} holds for both ontologies, and the suffix of this one tells {told}:"
            " leave --syntax out, or give two files of one syntax."
        ) from error
    _notice_unused(options, side)
    return side


def _told_syntax(path: str) -> str | None:
    """Return the syntax that the suffix of a file tells."""
    suffix = Path(path).suffix.lower()
    return "jsonl" if suffix in JSON_SUFFIXES else "obo" if suffix == ".obo" else FORMATS.get(suffix)


def _notice_unused(options: Options, side: Side) -> None:
    """Tell of keys that are not read, of parents that are not there, and of concepts without a label."""
    ontology = side.ontology
    for note in ontology.notes:
        notice(options, f"{side.name}: {note}.")
    if ontology.unread:
        close = [difflib.get_close_matches(key, KEYS, n=1) for key in ontology.unread]
        meant = some(found[0] for found in close if found)
        guess = f" Did you mean {meant}?" if meant else ""
        notice(options, f"{side.name}: the keys {some(ontology.unread)} of concepts are not read.{guess}")
    if ontology.outside:
        notice(
            options,
            f"{side.name}: ids that concepts name as their parents or wholes, and that no concept has, are"
            f" left out: {len(ontology.outside)}, such as {ontology.outside[0]!r}.",
        )
    unnamed = [concept.id for concept in ontology.concepts if concept.label == concept.id]
    if unnamed:
        notice(
            options,
            f"{side.name}: concepts without a label go by their id, which seldom matches:"
            f" {len(unnamed)} of {len(ontology)}, such as {unnamed[0]!r}.",
        )


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


def load_aligner(model: Path, seed: int, search_steps: int | None = None) -> OntologyAligner:
    """Read an aligner from a model file."""
    # scikit-learn takes its time to load: help, and mistakes in options, do not wait for it
    from factorwise.apps.alignment.estimator import KIND, OntologyAligner

    check_kind(model, KIND)
    chosen = {} if search_steps is None else {"search_steps": search_steps}
    return OntologyAligner.load(model, random_state=seed, **chosen)


def adapted_aligner(sides: Sequence[Side], seed: int, **settings: Any) -> OntologyAligner:
    """Return an aligner for two ontologies of which no match is known."""
    from factorwise.apps.alignment.estimator import OntologyAligner

    aligner = OntologyAligner(random_state=seed, **settings)
    return aligner.fit_unlabelled(*(side.ontology for side in sides))


def read_pair(
    options: Options,
    files: tuple[str, str, str],
    *,
    one_to_one: bool,
    **given: Any,
) -> tuple[Ontology, Ontology, list[tuple[str, str]]]:
    """Read two ontologies and their known matches, and check that these fit; ``given`` is of `read_side`."""
    left, right = (read_side(options, path, **given) for path in files[:2])
    known, name = read_reference(options, files[2]), shown(files[2])
    check_known(known, name, left, right)
    if one_to_one:
        notice_many(options, known, name)
    return left.ontology, right.ontology, [(row.source, row.target) for row in known]


def concept_named(side: Side, text: str) -> str:
    """Return the id of the concept that a text names: its id, the end of its id, or its label."""
    by_id = side.ontology.by_id
    if text in by_id:
        return text
    ends = [one for one in by_id if one.endswith((f"#{text}", f"/{text}", f":{text}"))]
    found = ends or [concept.id for concept in by_id.values() if concept.label == text]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataFileError(f"{side.name}: {text!r} may be {some(found)}. Give the whole id.")
    close = difflib.get_close_matches(text, [*by_id, *(c.label for c in by_id.values())], n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    raise DataFileError(f"{side.name} has no concept {text!r}.{guess} Give an id, its last part, or a label.")


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
    lacking = list(dict.fromkeys(one for one, whose in unknown if whose is side))
    if all(row.source in theirs and row.target in ours for row in matches):
        remedy = f"It fits with the ontologies exchanged: give {right.name} {left.name}."
    else:
        close = difflib.get_close_matches(concept, side.ontology.by_id, n=1)
        guess = f"Did you mean {close[0]!r}? " if close else ""
        remedy = f"{guess}Give the ontologies that its columns are about, in that order."
    are = "is no concept" if len(lacking) == 1 else "are no concepts"
    raise DataFileError(
        f"{name}: {some(lacking)} {are} of {side.name}, which has {some(side.ontology.by_id)}. {remedy}"
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
