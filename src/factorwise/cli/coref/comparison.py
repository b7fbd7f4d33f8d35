"""Documents with entities found, beside the same documents with the true ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from factorwise.apps.coreference.documents import Document
from factorwise.errors import DataFileError
from factorwise.metrics.coreference import FoundMentionScores, score_found_mentions

Entity = str | int
_SHOWN = 3  # as many missing ones are named


@dataclass(slots=True)
class Group:
    """Mentions that are scored together: those of a document, or of a topic.

    truth, found
        Number of the entity of each mention, the true one and the one that was found.
    """

    id: str
    truth: list[int] = field(default_factory=list)
    found: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ComparedClusterings:
    """What can be compared.

    groups
        Documents or topics that have mentions with an entity found.
    left_out
        How many mentions have none.
    shared
        Whether different documents have an entity that was found in common.
    """

    groups: list[Group]
    left_out: int
    shared: bool


def with_kept_truth(documents: Iterable[Document], name: str) -> Iterator[tuple[Document, list[Any]]]:
    """Pair each document with the entities that ``coref apply`` has kept as ``truth``."""
    for document in documents:
        truth = [mention.get("truth") for mention in document.record["mentions"]]
        if truth and all(entity is None for entity in truth):
            raise DataFileError(
                f"{name}: document {document.id!r} has no 'truth' in its mentions: give the file with the"
                " true entities with --truth."
            )
        yield document, truth


def score_own_mentions(
    documents: Sequence[Document], others: Sequence[Document], name: str, other_name: str
) -> FoundMentionScores:
    """Score entities over mentions that were found, by their places, against the documents with the truth."""
    known = {document.id: document for document in others}
    ids = [document.id for document in documents]
    _check_missing(name, other_name, "document", known, ids)
    _check_missing(other_name, name, "document", ids, known)
    for document in documents:
        if document.tokens != known[document.id].tokens:
            raise DataFileError(
                f"{name}: document {document.id!r} has other tokens than in {other_name}, so places cannot be"
                " compared. Find mentions in the same documents: `coref apply FILE.jsonl --mentions`."
            )
    sides = [
        [{(m.start, m.end): m.entity for m in side.mentions if m.entity is not None} for side in both]
        for both in ([known[name] for name in ids], documents)
    ]
    return score_found_mentions(*sides)


def with_truth_of(
    documents: Sequence[Document], others: Sequence[Document], name: str, other_name: str
) -> Iterator[tuple[Document, list[Any]]]:
    """Pair each document with the entities of the same mentions in the other file."""
    _refuse_predictions(others, other_name)
    known = {document.id: document for document in others}
    ids = [document.id for document in documents]
    _check_missing(name, other_name, "document", known, ids)
    _check_missing(other_name, name, "document", ids, known)
    for document in documents:
        other = known[document.id]
        keys, other_keys = _keys(document, other)
        here, there = f"{name}, document {document.id!r}", f"{other_name}, document {document.id!r}"
        _check_missing(here, there, "mention", other_keys, keys)
        _check_missing(there, here, "mention", keys, other_keys)
        place = {key: number for number, key in enumerate(other_keys)}
        twins = [other.mentions[place[key]] for key in keys]
        for key, mention, twin in zip(keys, document.mentions, twins, strict=True):
            if (mention.start, mention.end) != (twin.start, twin.end):
                raise DataFileError(
                    f"{here}: mention {key!r} is tokens {mention.start} to {mention.end}, but {twin.start} to"
                    f" {twin.end} in {other_name}. Compare files with the same mentions."
                )
        yield document, [twin.entity for twin in twins]


def compared(
    pairs: Iterable[tuple[Document, list[Any]]], name: str, *, by_topic: bool
) -> ComparedClusterings:
    """Number the entities, true and found, of each document or topic.

    pairs
        Documents with entities found, and the true entities of their mentions.
    """
    groups: dict[str, Group] = {}
    numbers: dict[tuple[str, str], dict[Hashable, int]] = {}
    owners: dict[Entity, set[str]] = {}
    left_out = 0
    for document, truth in pairs:
        if by_topic and document.topic is None:
            raise DataFileError(
                f"{name}: document {document.id!r} has no 'topic': add the key to every document, or give"
                " --scope document."
            )
        key = str(document.topic) if by_topic else document.id
        for place, (mention, true) in enumerate(zip(document.mentions, truth, strict=True)):
            if mention.entity is None:
                left_out += 1
                continue
            if true is None:
                raise DataFileError(
                    f"{name}, document {document.id!r}: the true entity of mention {place} is not known, so"
                    " what was found cannot be compared with it. Add it, or take the mention out."
                )
            owners.setdefault(mention.entity, set()).add(document.id)
            group = groups.setdefault(key, Group(key))
            group.truth.append(_number(numbers, (key, "true"), true))
            group.found.append(_number(numbers, (key, "found"), mention.entity))
    if not groups:
        raise DataFileError(
            f"{name}: no mention has an 'entity', so there is nothing to score. Make the file with"
            " `factorwise coref apply`."
        )
    shared = any(len(documents) > 1 for documents in owners.values())
    return ComparedClusterings(list(groups.values()), left_out, shared)


def _number(
    numbers: dict[tuple[str, str], dict[Hashable, int]], side: tuple[str, str], entity: Entity
) -> int:
    known = numbers.setdefault(side, {})
    return known.setdefault(entity, len(known))


def _refuse_predictions(documents: Sequence[Document], name: str) -> None:
    for document in documents:
        if any("truth" in mention for mention in document.record["mentions"]):
            raise DataFileError(
                f"{name}: document {document.id!r} has 'truth' beside 'entity', so its entities are those"
                " that `coref apply` found. Give --truth the file with the true entities, or leave it out to"
                " compare with 'truth'."
            )


def _keys(document: Document, other: Document) -> tuple[list[Hashable], list[Hashable]]:
    """Name the mentions of both by their ids, or by their places if not all have one."""
    records = [*document.record["mentions"], *other.record["mentions"]]
    if all("id" in mention for mention in records):
        return _ids(document.record), _ids(other.record)
    return _places(document), _places(other)


def _ids(record: Mapping[str, Any]) -> list[Hashable]:
    return [str(mention["id"]) for mention in record["mentions"]]


def _places(document: Document) -> list[Hashable]:
    """First token, last token, and which of the mentions there: the same words may be two mentions."""
    seen: Counter[tuple[int, int]] = Counter()
    found: list[Hashable] = []
    for mention in document.mentions:
        span = (mention.start, mention.end)
        found.append((*span, seen[span]) if seen[span] else span)
        seen[span] += 1
    return found


def _check_missing(
    name: str, other_name: str, what: str, wanted: Iterable[Hashable], there: Iterable[Hashable]
) -> None:
    have = set(there)
    missing = [key for key in wanted if key not in have]
    if missing:
        names = ", ".join(map(repr, missing[:_SHOWN]))
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise DataFileError(
            f"{name}: lacks {what} {names}{more}, which {other_name} has. Compare files with the same"
            " documents and mentions, as `coref apply` writes them."
        )
