"""Ontologies and taxonomies: concepts with names, places in a hierarchy and texts.

Two kinds of files are read. JSON lines hold one concept each::

    {"id": "c2", "label": "Latin", "synonyms": ["..."], "parents": ["c1"], "part_of": [], "comment": "...",
     "instances": [["name", "description"], ...]}

Only ``id`` is required; without a ``label`` the id is the label. Lines whose ``kind`` is a property or an
individual are passed over. OWL, RDF Schema and SKOS are read by `factorwise.io.rdf`, through rdflib.

A concept may name parents that the file does not hold: taxonomies in the wild refer to the outside. They
stay in `Concept.parents`, and `Ontology.outside` lists them. A hierarchy that runs in a circle is refused.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from factorwise.errors import DataFileError
from factorwise.io.file_kinds import refuse_other_kind

_CONCEPT_KINDS = {"class", "concept", "category"}
_OTHER_KINDS = {"object_property", "datatype_property", "annotation_property", "property", "individual"}
JSON_SUFFIXES = {".jsonl", ".json", ".ndjson"}
_RDF_SUFFIXES = {".owl", ".rdf", ".xml", ".ttl", ".nt", ".n3", ".jsonld"}
_GENERATED = re.compile(
    r"(_:)?(genid|bnode|node|autos?)[-_]?[0-9a-z]*\d[0-9a-z]*|[a-z]+://\S+", re.IGNORECASE
)
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept as its file describes it.

    parents, part_of
        Ids of the concepts above it by is-a and by part-of.
    instances
        Name and description of things filed under it.
    """

    id: str
    label: str
    synonyms: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()
    comment: str = ""
    instances: tuple[tuple[str, str], ...] = ()


#: What is read of a JSON line.
KEYS = ("kind", *Concept.__slots__)


@dataclass(frozen=True, eq=False)
class Ontology:
    """Concepts in the order of their file; ids are unique, and is-a has no circle.

    unread
        Keys of JSON lines that say nothing to the reader.
    """

    concepts: tuple[Concept, ...]
    name: str = "ontology"
    unread: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.concepts:
            raise DataFileError(
                f"{self.name}: no concepts. Check that this is the right file: an ontology has at least one."
            )
        if len(self.by_id) < len(self.concepts):
            (twice, _), *_ = Counter(concept.id for concept in self.concepts).most_common(1)
            raise DataFileError(f"{self.name}: id {twice!r} is there twice. Give every concept its own id.")
        circle = _circle({concept.id: concept.parents for concept in self.concepts})
        if circle:
            raise DataFileError(
                f"{self.name}: the hierarchy runs in a circle: {' -> '.join(circle)}. Remove one of these"
                " parents, or merge the concepts."
            )

    def __len__(self) -> int:
        return len(self.concepts)

    @cached_property
    def by_id(self) -> Mapping[str, Concept]:
        """Concepts by their ids."""
        return {concept.id: concept for concept in self.concepts}

    @property
    def outside(self) -> tuple[str, ...]:
        """Ids that parents and wholes refer to and the file does not describe, sorted."""
        above = {i for concept in self.concepts for i in (*concept.parents, *concept.part_of)}
        return tuple(sorted(above - self.by_id.keys()))


def read_ontology(
    path: str | os.PathLike[str], *, syntax: str | None = None, language: str | None = None
) -> Ontology:
    """Read an ontology from JSON lines, or from OWL, RDF Schema or SKOS in any form that rdflib reads.

    syntax
        ``"jsonl"``, or a format of rdflib (``"turtle"``, ``"xml"``, ``"nt"``, ``"json-ld"``, ...). By default
        the suffix decides: .jsonl, .json or .ndjson; .owl, .rdf, .xml, .ttl, .nt, .n3 or .jsonld.
    language
        For RDF: labels in this language (such as ``"en"``) come first and those in others are left out.
    """
    name = os.fspath(path)
    suffix = Path(path).suffix.lower()
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{name}: there is no such file. Check the path and the current folder."
        ) from None
    if syntax == "jsonl" or (syntax is None and suffix in JSON_SUFFIXES):
        return parse_jsonl(content, name=name)
    if syntax is None and suffix not in _RDF_SUFFIXES:
        raise DataFileError(
            f"{name}: the suffix {suffix!r} does not tell what the file is. Give syntax='jsonl', or one of"
            " rdflib such as 'turtle' or 'xml'."
        )
    from factorwise.io.rdf import parse_rdf  # below the reader of JSON lines, and needed for RDF only

    return parse_rdf(content, name=name, syntax=syntax, language=language)


def parse_jsonl(content: bytes, *, name: str = "input") -> Ontology:
    """Read an ontology from the bytes of JSON lines; ``name`` is for errors."""
    lines: dict[str, int] = {}
    concepts = []
    unread: dict[str, None] = {}
    for number, record in json_lines(content, name):
        where = f"{name}:{number}"
        concept = _concept(record, where)
        if concept is None:
            continue
        if concept.id in lines:
            raise DataFileError(
                f"{where}: id {concept.id!r} was already used on line {lines[concept.id]}. Give every concept"
                " its own id, or merge the two lines."
            )
        lines[concept.id] = number
        concepts.append(concept)
        unread |= dict.fromkeys(key for key in record if key not in KEYS)
    circle = _circle({concept.id: concept.parents for concept in concepts})
    if circle:
        raise DataFileError(
            f"{name}:{lines[circle[0]]}: the hierarchy runs in a circle: {' -> '.join(circle)}. Remove one of"
            " these parents, or merge the concepts."
        )
    return Ontology(tuple(concepts), name, tuple(unread))


def write_jsonl(path: str | os.PathLike[str], ontology: Ontology) -> None:
    """Write an ontology as JSON lines, whole or not at all; what is empty is left out."""
    from factorwise.io.atomic import atomic_text

    with atomic_text(path) as stream:
        for concept in ontology.concepts:
            record = {key: getattr(concept, key) for key in Concept.__slots__}
            kept = {key: value for key, value in record.items() if value or key in ("id", "label")}
            stream.write(json.dumps(kept, ensure_ascii=False) + "\n")


def json_lines(content: bytes, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of every line that is not blank."""
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode())
        except UnicodeDecodeError as fault:
            refuse_other_kind(content, name, "a text with a JSON object on each line")
            raise DataFileError(
                f"{name}:{number}: byte {line[fault.start]:#04x} is not UTF-8 text. Convert the file to"
                " UTF-8."
            ) from None
        except (json.JSONDecodeError, RecursionError) as fault:
            raise DataFileError(
                f"{name}:{number}: {shown(line.decode())} is not JSON ({fault}). Write one object on each"
                ' line, such as {"id": "c1", "label": "Latin"}.'
            ) from None
        if not isinstance(record, dict):
            raise DataFileError(
                f"{name}:{number}: {shown(line.decode())} is not an object. Write one object on each line,"
                ' such as {"id": "c1", "label": "Latin"}.'
            )
        yield number, record


def is_generated(name: str) -> bool:
    """Tell whether a would-be name is the id of a node: an export that lost what the node said."""
    return _GENERATED.fullmatch(name.strip()) is not None


def shown(line: str) -> str:
    """Quote the beginning of a line."""
    line = line.strip()
    return repr(line if len(line) <= _LONGEST_SHOWN else line[:_LONGEST_SHOWN] + "...")


def _concept(record: Mapping[str, Any], where: str) -> Concept | None:
    kind = record.get("kind", "class")
    if kind in _OTHER_KINDS:
        return None
    if kind not in _CONCEPT_KINDS:
        raise DataFileError(
            f"{where}: kind {kind!r} is not known. Concepts have the kind 'class' or none; lines of the kinds"
            f" {', '.join(sorted(_OTHER_KINDS))} are passed over."
        )
    identity = record.get("id")
    if not isinstance(identity, str) or not identity:
        given = f"its id is {identity!r}" if "id" in record else f"it has the keys {list(record)}"
        raise DataFileError(
            f"{where}: a concept needs an id that is a string of at least one letter, but {given}."
            ' Write {"id": "...", ...}.'
        )
    label = _text(record, "label", where) or identity
    synonyms = [name for name in _texts(record, "synonyms", where) if not is_generated(name)]
    return Concept(
        identity,
        label,
        tuple(dict.fromkeys(name for name in synonyms if name and name != label)),
        tuple(_texts(record, "parents", where)),
        tuple(_texts(record, "part_of", where)),
        _text(record, "comment", where),
        tuple(_instances(record, where)),
    )


def _text(record: Mapping[str, Any], key: str, where: str) -> str:
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataFileError(f"{where}: {key!r} must be a string, but {shown(repr(value))} was given.")
    return value


def _texts(record: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DataFileError(
            f"{where}: {key!r} must be a list of strings, but {shown(repr(value))} was given."
            f' Write "{key}": ["...", "..."].'
        )
    return value


def _instances(record: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    value = record.get("instances") or []
    if not isinstance(value, list):
        value = [None]
    for item in value:
        pair = [item] if isinstance(item, str) else item
        text = isinstance(pair, list) and all(isinstance(part, str) for part in pair)
        if not text or not 1 <= len(pair) <= 2:
            raise DataFileError(
                f"{where}: 'instances' must be a list of names or of [name, description], but"
                f" {shown(repr(item))} is among them."
            )
        yield pair[0], pair[1] if len(pair) == 2 else ""


def _circle(parents: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the ids of one circle of parents, the first repeated at the end; nothing if there is none."""
    done: set[str] = set()
    for start in parents:
        path: dict[str, Iterator[str]] = {}
        node: str | None = start
        while node is not None:
            if node not in done and node not in path:
                path[node] = iter(parents.get(node, ()))
            if not path:
                break
            last = next(reversed(path))
            step = next(path[last], None)
            if step is None:
                path.pop(last)
                done.add(last)
                node = last if path else None
            elif step in path:
                ring = list(path)
                return [*ring[ring.index(step) :], step]
            else:
                node = step
    return []
