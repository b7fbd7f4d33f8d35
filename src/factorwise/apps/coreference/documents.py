"""Documents with mentions: read them from JSON lines, and group the mentions to be clustered together.

A line is one document: ``tokens`` (strings), ``mentions`` (objects with ``start`` and ``end``, token
positions from 0, with the end exclusive) and, optionally, ``id``, ``sentences`` (pairs of start and end),
``topic`` and ``full_until`` (the token from which mentions are no longer fully annotated). A mention may have
``id``, ``head`` (a token position), ``type``, ``mtype`` (NAM, NOM or PRO), ``head_pos`` and, for training and
scoring, ``entity``. Other keys are kept but ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import numpy as np

from factorwise.errors import DataFileError, EmptyWorldError, InvalidArgumentError
from factorwise.io.file_kinds import refuse_other_kind
from factorwise.io.given_texts import read_bytes
from factorwise.types import Ints

Scope = Literal["document", "topic"]

_KINDS = ("NAM", "NOM", "PRO")
#: Optional attributes of a mention that features use, and their keys in files.
_TOLD = {"type": "type", "kind": "mtype", "head": "head", "head_pos": "head_pos"}


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of tokens that refers to something.

    start, end
        First token, and the token after the last one.
    head
        Position of the head token; None if unknown.
    type
        Type of the entity mentioned (PER, LOC, ...); empty if unknown.
    kind
        NAM (name), NOM (nominal) or PRO (pronoun); None if unknown.
    head_pos
        Part of speech of the head; None if unknown.
    entity
        The true entity that the mention refers to; None if unknown. It is never used as a feature.
    """

    start: int
    end: int
    head: int | None = None
    type: str = ""
    kind: str | None = None
    head_pos: str | None = None
    entity: str | int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its mentions.

    id
        Name of the document.
    tokens
        Words and punctuation.
    sentences
        Start and end of each sentence; together they cover all tokens.
    mentions
        The mentions in the order of the data.
    topic
        Documents with the same topic may mention the same entities; None if unknown.
    full_until
        Mentions that start at this token or later are only partly annotated; None if all are annotated.
    record
        The data as they were read, including keys that are not used here.
    """

    id: str
    tokens: tuple[str, ...]
    sentences: tuple[tuple[int, int], ...]
    mentions: tuple[Mention, ...]
    topic: str | None = None
    full_until: int | None = None
    record: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Discourse:
    """Mentions that are clustered together: those of one document, or of all documents of a topic.

    name
        The document's id or the topic.
    documents
        The texts, in the order of the data.
    places
        For each item, the number of its document and the number of its mention there; items are ordered by
        document and position in the text.
    scope
        Whether it is a document or a topic; the features depend on it.
    """

    name: str
    documents: tuple[Document, ...]
    places: tuple[tuple[int, int], ...]
    scope: Scope = "document"

    @property
    def mentions(self) -> list[Mention]:
        """The items, in the order of the text."""
        return [self.documents[d].mentions[m] for d, m in self.places]

    def truth(self) -> Ints:
        """Return the entity number of each item; raise an error if the entity of a mention is unknown."""
        numbers: dict[object, int] = {}
        codes = []
        for (d, m), mention in zip(self.places, self.mentions, strict=True):
            if mention.entity is None:
                raise DataFileError(
                    f"{self.documents[d].id}: mention {m} has no 'entity', so there is nothing to learn from"
                    " or to compare with: add the key to every mention, or only predict."
                )
            codes.append(numbers.setdefault(mention.entity, len(numbers)))
        return np.array(codes, dtype=np.int64)


def read_documents(path: str | os.PathLike[str], *, mentions: bool = True) -> list[Document]:
    """Read documents from a file of JSON lines; blank lines are skipped.

    mentions
        Whether every document must have the key ``mentions``.
    """
    name = os.fspath(path)
    content = read_bytes(path)
    return parse_documents(content, name=name, mentions=mentions)


def parse_documents(content: bytes, *, name: str = "input", mentions: bool = True) -> list[Document]:
    """Parse documents from the bytes of JSON lines; ``name`` is the name of the input in errors."""
    found: list[Document] = []
    lines_of: dict[str, int] = {}
    refuse_other_kind(content, name, "a text with a JSON object on each line")
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        record = _record(line, where)
        if not mentions:
            record = {"mentions": [], **record}
        document = document_from(record, where=where, name=f"document {number}")
        earlier = lines_of.setdefault(document.id, number)
        if earlier != number:
            _refuse(
                where, f"document id {document.id!r} was given in line {earlier} already: give each its own."
            )
        found.append(document)
    if not found:
        raise DataFileError(
            f"{name}: holds no document. Give one JSON object a line with 'tokens' and 'mentions'."
        )
    return found


def told_of_mentions(documents: Iterable[Document]) -> list[str]:
    """Return the keys of the optional attributes used as features that at least one mention has."""
    mentions = [mention for document in documents for mention in document.mentions]
    return [
        key
        for name, key in _TOLD.items()
        if any(getattr(mention, name) not in (None, "") for mention in mentions)
    ]


def document_from(record: object, *, where: str = "the record", name: str = "document") -> Document:
    """Validate one record and return it as a document; ``name`` is the id if the record has none."""
    if not isinstance(record, Mapping):
        _refuse(where, f"holds {_shown(record)} where an object with 'tokens' and 'mentions' must stand.")
    tokens = _listed(record, "tokens", where)
    wrong = next((k for k, token in enumerate(tokens) if not isinstance(token, str) or not token), None)
    if wrong is not None:
        _refuse(where, f"token {wrong} is {_shown(tokens[wrong])}: tokens are strings that are not empty.")
    if not tokens:
        _refuse(where, "'tokens' is empty: leave the document out.")
    given = _listed(record, "mentions", where)
    mentions = tuple(_mention(one, f"{where}, mention {k}", len(tokens)) for k, one in enumerate(given))
    _check_ids(given, where)
    topic, until = record.get("topic"), record.get("full_until")
    if until is not None and not _is_number(until):
        _refuse(where, f"'full_until' is {_shown(until)}: give a token position, or leave it out.")
    return Document(
        id=name if record.get("id") is None else str(record["id"]),
        tokens=tuple(tokens),
        sentences=_sentences(record, where, len(tokens)),
        mentions=mentions,
        topic=None if topic is None else str(topic),
        full_until=until,
        record=record,
    )


def discourses(
    documents: Iterable[Document],
    *,
    scope: Scope = "document",
    types: Collection[str] | None = None,
    without_types: Collection[str] = (),
) -> list[Discourse]:
    """Group the mentions that are clustered together; groups without mentions are left out.

    scope
        "document" to cluster each document separately, "topic" to cluster all documents of a topic together.
    types
        Keep only mentions of these types; None for all.
    without_types
        Drop mentions of these types (for example, events when clustering entities).
    """
    if scope not in ("document", "topic"):
        raise InvalidArgumentError(f"scope must be 'document' or 'topic', but {scope!r} was given.")
    groups: dict[str, list[Document]] = {}
    for number, document in enumerate(documents):
        if scope == "topic" and document.topic is None:
            raise DataFileError(
                f"{document.id}: has no 'topic', but scope='topic' clusters the documents of a topic:"
                " add the key, or use scope='document'."
            )
        groups.setdefault(f"{document.topic}" if scope == "topic" else f"{number}", []).append(document)
    found = []
    for key, members in groups.items():
        places = [
            (d, m)
            for d, document in enumerate(members)
            for m in _in_text_order(document)
            if _is_wanted(document, document.mentions[m], types, without_types)
        ]
        if places:
            name = key if scope == "topic" else members[0].id
            found.append(Discourse(name, tuple(members), tuple(places), scope))
    if not found:
        raise EmptyWorldError(
            "there is no mention to cluster: check the documents, their 'full_until' and the types asked for."
        )
    return found


def _in_text_order(document: Document) -> list[int]:
    spans = [(mention.start, -mention.end) for mention in document.mentions]
    return sorted(range(len(spans)), key=spans.__getitem__)


def _is_wanted(
    document: Document, mention: Mention, types: Collection[str] | None, without_types: Collection[str]
) -> bool:
    if document.full_until is not None and mention.start >= document.full_until:
        return False
    return (types is None or mention.type in types) and mention.type not in without_types


def _record(line: bytes, where: str) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as fault:
        raise DataFileError(
            f"{where}: byte {fault.start + 1} is not UTF-8 text. Save the file as UTF-8."
        ) from None
    except json.JSONDecodeError as fault:
        raise DataFileError(
            f"{where}: is not JSON ({fault.msg.removesuffix(' at')} at character {fault.colno})."
            " Write one whole object on each line."
        ) from None
    except (RecursionError, ValueError) as fault:
        raise DataFileError(
            f"{where}: holds JSON that is nested too deeply or has too long a number ({fault}):"
            " write the plain fields that a document has."
        ) from None


def _mention(given: Any, where: str, n_tokens: int) -> Mention:
    if not isinstance(given, Mapping):
        _refuse(where, f"is {_shown(given)}: give an object with 'start' and 'end'.")
    for key in ("start", "end"):
        if key not in given:
            _refuse(where, f"has no {key!r}: give the token positions 'start' and 'end'.")
        if not _is_number(given[key]):
            _refuse(where, f"{key!r} is {_shown(given[key])}: give a token position, a whole number.")
    start, end, head = given["start"], given["end"], given.get("head")
    if not 0 <= start < end <= n_tokens:
        _refuse(
            where,
            f"the span {start} to {end} is empty or not within the {n_tokens} tokens:"
            " start counts from 0 and end is one past the last token.",
        )
    if head is not None and not (_is_number(head) and start <= head < end):
        _refuse(
            where,
            f"'head' is {_shown(head)}, not a token from {start} to {end - 1}: correct it, or leave it out.",
        )
    kind = given.get("mtype")
    if kind is not None and kind not in _KINDS:
        _refuse(where, f"'mtype' is {_shown(kind)}: use one of {', '.join(_KINDS)}, or leave it out.")
    entity = given.get("entity")
    if entity is not None and not isinstance(entity, (str, int)):
        _refuse(where, f"'entity' is {_shown(entity)}: use a string or a whole number, or leave it out.")
    part = given.get("head_pos")
    return Mention(
        start, end, head, str(given.get("type") or ""), kind, None if part is None else str(part), entity
    )


def _check_ids(mentions: Sequence[Mapping[str, Any]], where: str) -> None:
    seen: dict[str, int] = {}
    for number, mention in enumerate(mentions):
        if "id" in mention:
            earlier = seen.setdefault(str(mention["id"]), number)
            if earlier != number:
                _refuse(
                    f"{where}, mention {number}",
                    f"id {_shown(mention['id'])} is that of mention {earlier} too: give each its own,"
                    " or none.",
                )


def _sentences(record: Mapping[str, Any], where: str, n_tokens: int) -> tuple[tuple[int, int], ...]:
    if record.get("sentences") is None:
        return ((0, n_tokens),)
    pairs = []
    after = 0
    for number, pair in enumerate(_listed(record, "sentences", where)):
        whole = isinstance(pair, Sequence) and len(pair) == 2 and all(map(_is_number, pair))
        if not whole or pair[0] != after or not pair[0] < pair[1] <= n_tokens:
            _refuse(
                where,
                f"sentence {number} is {_shown(pair)}: sentences are pairs [start, end] that follow one"
                f" another, so this one starts at token {after} and ends by {n_tokens}.",
            )
        after = pair[1]
        pairs.append((pair[0], pair[1]))
    if after != n_tokens:
        _refuse(
            where,
            f"the sentences end at token {after} of {n_tokens}: cover all tokens, or leave 'sentences' out.",
        )
    return tuple(pairs)


def _listed(record: Mapping[str, Any], key: str, where: str) -> Sequence[Any]:
    if key not in record:
        _refuse(where, f"has no {key!r}: a document needs the lists 'tokens' and 'mentions'.")
    value = record[key]
    if not isinstance(value, (list, tuple)):
        _refuse(where, f"{key!r} is {_shown(value)}: give a list.")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refuse(where: str, fault: str) -> NoReturn:
    raise DataFileError(f"{where}: {fault}")
