"""Documents as the verbs of ``factorwise coref`` take them: read, and checked at once."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Collection, Sequence

import click

from factorwise.apps.coreference.documents import (
    Discourse,
    Document,
    Scope,
    discourses,
    parse_documents,
    read_documents,
    told_of_mentions,
)
from factorwise.cli.files import STANDARD, reading, shown, speaking_of
from factorwise.cli.options import Options
from factorwise.cli.output import notice
from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.io.listing import some

SCOPES = ("document", "topic")
#: What is clustered, or scored, together.
scope_option = click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="document",
    help="Take each document by itself, or all documents of a topic together; scores are sums over all.",
)


def given_documents(path: str, *, mentions: bool = True) -> list[Document]:
    """Read documents from a file, or from standard input if the path is ``-``.

    mentions
        Whether every document must have some marked.
    """
    if path == STANDARD:
        return parse_documents(sys.stdin.buffer.read(), name=shown(path), mentions=mentions)
    with reading(path):
        return read_documents(path, mentions=mentions)


def gathered(
    documents: Sequence[Document],
    name: str,
    *,
    remedy: str = "give --scope document",
    scope: Scope,
    types: Collection[str] | None = None,
    without_types: Collection[str] = (),
) -> list[Discourse]:
    """Return what is clustered together; refuse documents without a topic where topics are asked for.

    remedy
        What to do then, other than adding topics.
    """
    if scope == "topic":
        for document in documents:
            if document.topic is None:
                raise DataFileError(
                    f"{name}: document {document.id!r} has no 'topic', but all documents of a topic are to be"
                    f" clustered together: add the key to every document, or {remedy}."
                )
    with speaking_of(name):
        return discourses(documents, scope=scope, types=types, without_types=without_types)


def check_like_training(
    options: Options,
    documents: Sequence[Document],
    name: str,
    types: Collection[str] | None,
    told: Sequence[str],
) -> None:
    """Refuse documents without any mention of a model's types; remark on keys that mentions lack.

    told
        Keys that mentions had when the model was learned.
    """
    there = sorted({mention.type for document in documents for mention in document.mentions} - {""})
    if types is not None and not set(types) & set(there):
        found = f"those here are {some(there, 8)}" if there else "no mention here has a 'type'"
        raise DataFileError(
            f"{name}: the model is for mentions of type {some(sorted(types), 8)}, but {found}. Give documents"
            " with such mentions, or another model."
        )
    told_here = told_of_mentions(documents)
    missing = [key for key in told if key not in told_here]
    if missing:
        notice(
            options,
            f"the mentions of {name} have no {some(missing)}, which those that the model was learned from"
            " had: entities are found less surely.",
        )


def notice_repeated(options: Options, documents: Sequence[Document], name: str) -> None:
    """Tell of mentions of one type with the same words, which are clustered and scored as two."""
    found = [
        (document.id, mention)
        for document in documents
        for mention, count in Counter((one.start, one.end, one.type) for one in document.mentions).items()
        if count > 1
    ]
    if found:
        document_id, (start, end, _) = found[0]
        notice(
            options,
            f"{name}: mentions that stand there more than once count as several: {len(found)}, such as tokens"
            f" {start} to {end} of document {document_id!r}. Leave out the repeated ones.",
        )


def check_truth(together: Sequence[Discourse], name: str) -> int:
    """Refuse mentions without an entity; return how many entities there are."""
    with speaking_of(name):
        return sum(int(discourse.truth().max()) + 1 for discourse in together)


def check_types(documents: Sequence[Document], name: str, option: str, wanted: Sequence[str]) -> None:
    """Refuse types that no mention has, which are misspelled more often than not."""
    there = sorted({mention.type for document in documents for mention in document.mentions} - {""})
    for kind in wanted:
        if kind in there:
            continue
        close = difflib.get_close_matches(kind, there, n=1)
        remedy = f"There are: {', '.join(there)}." if there else "No mention has a 'type': leave it out."
        if close:
            remedy = f"Did you mean {close[0]!r}?"
        raise InvalidArgumentError(f"{option} names {kind!r}, which no mention of {name} has. {remedy}")
