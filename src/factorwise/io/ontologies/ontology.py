"""Ontologies and taxonomies: classes and properties with names, a hierarchy and texts.

Several file formats are read. JSON lines contain one concept each::

    {"id": "c2", "label": "Latin", "synonyms": ["..."], "parents": ["c1"], "part_of": [], "comment": "...",
     "instances": [["name", "description"], ...]}

Only ``id`` is required; without a ``label``, the id is the label. ``kind`` is "class" (the default),
"object_property", "datatype_property" or "property"; properties have a "domain" and a "range", lists of ids.
"disjoint" lists the ids of concepts that are disjoint from this one. Lines of the kind "individual", whose
parents are their classes, are read on request; lines of other kinds are skipped. OWL, RDF Schema and SKOS are
read by `factorwise.io.ontologies.rdf`, through rdflib, and OBO by `factorwise.io.ontologies.obo`. Imports are
not fetched.

Files may be inconsistent. If the file does not contain a concept's parents, they stay in `Concept.parents`,
and `Ontology.outside` lists them. A cycle in the hierarchy means that its concepts are equivalent: each gets
the parents of all, without those in the cycle. `Ontology.notes` reports cycles and skipped lines.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from factorwise.errors import DataFileError
from factorwise.io.file_kinds import refuse_other_kind
from factorwise.io.given_texts import read_bytes

CLASS, OBJECT_PROPERTY, DATATYPE_PROPERTY, PROPERTY, INDIVIDUAL = (
    "class",
    "object_property",
    "datatype_property",
    "property",
    "individual",
)
_KINDS = {kind: kind for kind in (CLASS, OBJECT_PROPERTY, DATATYPE_PROPERTY, PROPERTY)} | {
    "concept": CLASS,
    "category": CLASS,
    "data_property": DATATYPE_PROPERTY,
}
_PASSED_OVER = {"annotation_property", INDIVIDUAL}  # kinds that are skipped without a note
JSON_SUFFIXES = {".jsonl", ".json", ".ndjson"}
_OBO_SUFFIX = ".obo"
_RDF_SUFFIXES = {".owl", ".rdf", ".xml", ".ttl", ".nt", ".n3", ".jsonld"}
_GENERATED = re.compile(
    r"(_:)?(genid|bnode|node|autos?)[-_]?[0-9a-z]*\d[0-9a-z]*|[a-z]+://\S+", re.IGNORECASE
)
_LONGEST_SHOWN = 60  # characters of a line in an error message


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept, as described in its file.

    parents, part_of
        Ids of the concepts above it by is-a and by part-of.
    instances
        Name and description of each instance.
    kind
        ``"class"``, ``"object_property"``, ``"datatype_property"``, ``"property"`` or ``"individual"``.
    domain, range
        Of a property, the ids of the classes of its subjects and objects.
    disjoint
        Ids of concepts that are disjoint from it; it is enough to state this for one of two concepts.
    """

    id: str
    label: str
    synonyms: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    part_of: tuple[str, ...] = ()
    comment: str = ""
    instances: tuple[tuple[str, str], ...] = ()
    kind: str = CLASS
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    disjoint: tuple[str, ...] = ()

    @property
    def is_property(self) -> bool:
        """Whether it is a property, rather than a class or an individual."""
        return self.kind not in (CLASS, INDIVIDUAL)


#: The keys of a JSON line that are read.
KEYS = Concept.__slots__


@dataclass(frozen=True, eq=False)
class Ontology:
    """Concepts in the order of their file; ids are unique, and is-a has no cycles.

    unread
        Keys of JSON lines that the reader ignored.

    Notes
        Problems that were found in the file, as sentences.
    """

    concepts: tuple[Concept, ...]
    name: str = "ontology"
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.concepts:
            raise DataFileError(
                f"{self.name}: no concepts. Check that this is the right file: an ontology has at least one."
                + "".join(f" Note: {note}." for note in self.notes)
            )
        if len(self.by_id) < len(self.concepts):
            (twice, _), *_ = Counter(concept.id for concept in self.concepts).most_common(1)
            raise DataFileError(f"{self.name}: id {twice!r} is there twice. Give every concept its own id.")
        circles = _circles({concept.id: concept.parents for concept in self.concepts})
        if circles:
            object.__setattr__(self, "concepts", _without_circles(self.concepts, circles))
            self.__dict__.pop("by_id")
            note = (
                f"the hierarchy runs in {len(circles)} circle{'s' * (len(circles) > 1)}, which says that"
                f" {', '.join(map(repr, circles[0][:4]))} are equivalent: each got the parents of all of them"
            )
            object.__setattr__(self, "notes", (*self.notes, note))

    def __len__(self) -> int:
        return len(self.concepts)

    @cached_property
    def by_id(self) -> Mapping[str, Concept]:
        """Concepts by their ids."""
        return {concept.id: concept for concept in self.concepts}

    @property
    def outside(self) -> tuple[str, ...]:
        """Sorted ids that concepts refer to and that the file does not contain."""
        above = {
            i
            for concept in self.concepts
            for i in (*concept.parents, *concept.part_of, *concept.domain, *concept.range, *concept.disjoint)
        }
        return tuple(sorted(above - self.by_id.keys()))


def read_ontology(
    path: str | os.PathLike[str],
    *,
    syntax: str | None = None,
    language: str | None = None,
    individuals: bool = False,
) -> Ontology:
    """Read an ontology from JSON lines, from OBO, or from OWL, RDF Schema or SKOS in a format of rdflib.

    syntax
        ``"jsonl"``, ``"obo"``, or a format of rdflib (``"turtle"``, ``"xml"``, ``"nt"``, ``"json-ld"``, ...).
        By default the suffix decides: .jsonl, .json or .ndjson; .obo; .owl, .rdf, .xml, .ttl, .nt, .n3 or
        .jsonld.
    language
        For RDF, the preferred language of texts, such as ``"en"``; see `parse_rdf`.
    individuals
        Whether individuals are read as concepts too; their parents are their classes.
    """
    name = os.fspath(path)
    suffix = Path(path).suffix.lower()
    content = read_bytes(path)
    if syntax == "jsonl" or (syntax is None and suffix in JSON_SUFFIXES):
        return parse_jsonl(content, name=name, individuals=individuals)
    if syntax == "obo" or (syntax is None and suffix == _OBO_SUFFIX):
        from factorwise.io.ontologies.obo import parse_obo  # here, because it imports this module

        return parse_obo(content, name=name, individuals=individuals)
    if syntax is None and suffix not in _RDF_SUFFIXES:
        raise DataFileError(
            f"{name}: the suffix {suffix!r} does not tell what the file is. Give syntax='jsonl', or one of"
            " rdflib such as 'turtle' or 'xml'."
        )
    from factorwise.io.ontologies.rdf import (
        parse_rdf,  # below the reader of JSON lines, and needed for RDF only
    )

    return parse_rdf(content, name=name, syntax=syntax, language=language, individuals=individuals)


def parse_jsonl(content: bytes, *, name: str = "input", individuals: bool = False) -> Ontology:
    """Parse an ontology from the bytes of JSON lines; ``name`` is used in error messages."""
    kinds = _KINDS | ({INDIVIDUAL: INDIVIDUAL} if individuals else {})
    lines: dict[str, int] = {}
    concepts = []
    unread: dict[str, None] = {}
    unknown: Counter[str] = Counter()
    for number, record in json_lines(content, name):
        where = f"{name}:{number}"
        kind = record.get("kind", CLASS)
        if not isinstance(kind, str) or kind not in kinds:
            unknown[str(kind)] += str(kind) not in _PASSED_OVER
            continue
        concept = _concept(record, kinds[kind], where)
        if concept.id in lines:
            raise DataFileError(
                f"{where}: id {concept.id!r} was already used on line {lines[concept.id]}. Give every concept"
                " its own id, or merge the two lines."
            )
        lines[concept.id] = number
        concepts.append(concept)
        unread |= dict.fromkeys(key for key in record if key not in KEYS)
    notes = [
        f"lines of the kind {kind!r} are not read: {count}. Kinds that are read are {', '.join(kinds)}"
        for kind, count in unknown.items()
        if count
    ]
    return Ontology(tuple(concepts), name, tuple(unread), tuple(notes))


def write_jsonl(path: str | os.PathLike[str], ontology: Ontology) -> None:
    """Write an ontology as JSON lines, atomically; empty values are left out."""
    from factorwise.io.atomic import atomic_text

    with atomic_text(path) as stream:
        for concept in ontology.concepts:
            record = {key: getattr(concept, key) for key in Concept.__slots__}
            kept = {key: value for key, value in record.items() if value or key in ("id", "label")}
            if concept.kind == CLASS:
                del kept["kind"]
            stream.write(json.dumps(kept, ensure_ascii=False) + "\n")


def json_lines(content: bytes, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the object of every line that is not blank."""
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
            refuse_other_kind(content, name, "a text with a JSON object on each line")
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
    """Return whether a name is a generated node id or a URL, as in exports that lost the text of a node."""
    return _GENERATED.fullmatch(name.strip()) is not None


def shown(line: str) -> str:
    """Return the beginning of a line in quotes."""
    line = line.strip()
    return repr(line if len(line) <= _LONGEST_SHOWN else line[:_LONGEST_SHOWN] + "...")


def _concept(record: Mapping[str, Any], kind: str, where: str) -> Concept:
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
        kind,
        tuple(_texts(record, "domain", where)),
        tuple(_texts(record, "range", where)),
        tuple(_texts(record, "disjoint", where)),
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


def _circles(parents: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the ids of each cycle of parents: the strongly connected components, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    circles = []
    for root in parents:
        path = [] if root in order else [(root, iter(parents[root]))]
        if path:
            order[root] = low[root] = len(order)
            stack.append(root)
            on_stack.add(root)
        while path:
            node, above = path[-1]
            step = next((p for p in above if p in parents and (p not in order or p in on_stack)), None)
            if step is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == order[node]:
                    members = stack[stack.index(node) :]
                    del stack[-len(members) :]
                    on_stack -= set(members)
                    if len(members) > 1:
                        circles.append(members)
            elif step in order:
                low[node] = min(low[node], order[step])
            else:
                order[step] = low[step] = len(order)
                stack.append(step)
                on_stack.add(step)
                path.append((step, iter(parents[step])))
    return circles


def _without_circles(concepts: Iterable[Concept], circles: Iterable[Iterable[str]]) -> tuple[Concept, ...]:
    """Give each concept of a cycle the parents and disjoint concepts of all, without parents in the cycle."""
    concepts = tuple(concepts)
    members = {concept: frozenset(circle) for circle in circles for concept in circle}
    above: dict[frozenset[str], dict[str, None]] = {}
    apart: dict[frozenset[str], dict[str, None]] = {}
    for concept in concepts:
        if concept.id in members:
            circle = members[concept.id]
            above.setdefault(circle, {}).update(dict.fromkeys(p for p in concept.parents if p not in circle))
            apart.setdefault(circle, {}).update(dict.fromkeys(concept.disjoint))
    return tuple(
        replace(
            concept, parents=tuple(above[members[concept.id]]), disjoint=tuple(apart[members[concept.id]])
        )
        if concept.id in members
        else concept
        for concept in concepts
    )
