"""Alignments in SSSOM, an exchange format for mappings: tab-separated values after a header of metadata.

Ids are written as CURIEs: the part of an IRI up to its last ``#`` or ``/`` becomes a prefix, ``ns1``,
``ns2``...; ids that are not IRIs get the prefixes ``source`` and ``target``. The reader expands the prefixes
that the header defines, and removes those two.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import count
from urllib.parse import quote, unquote

from factorwise.errors import DataFileError
from factorwise.io.ontologies.alignments import EQUIVALENT, Correspondence

COLUMNS = ("subject_id", "predicate_id", "object_id", "mapping_justification", "confidence")
SIDES = {"source": "urn:factorwise:source:", "target": "urn:factorwise:target:"}  # of ids that are not IRIs
_PREDICATES = {EQUIVALENT: "skos:exactMatch", "<": "skos:broadMatch", ">": "skos:narrowMatch"}
_RELATIONS = {predicate: relation for relation, predicate in _PREDICATES.items()} | dict.fromkeys(
    ("owl:equivalentClass", "owl:equivalentProperty", "owl:sameAs"), EQUIVALENT
)
_JUSTIFICATION = "semapv:CompositeMatching"
_IRI = re.compile(r"([a-z][a-z0-9+.-]*:\S*[#/])([^\s#/]+)", re.IGNORECASE)
_SAFE = "-._~!$&'()*+;=@"  # characters that are not escaped in a local name


def is_sssom(text: str) -> bool:
    """Return whether the first line that is not a comment contains the columns of SSSOM."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {"subject_id", "object_id"} <= set(next(lines, "").split("\t"))


def format_sssom(alignment: Iterable[Correspondence]) -> Iterator[str]:
    """Yield the lines of an alignment in SSSOM."""
    prefixes: dict[str, str] = {}
    numbers = count(1)
    rows = []
    for row in alignment:
        ends = []
        for side, identity in zip(SIDES, (row.source, row.target), strict=True):
            match = _IRI.fullmatch(identity)
            space, local = match.groups() if match else (SIDES[side], identity)
            if space not in prefixes:
                prefixes[space] = f"ns{next(numbers)}" if match else side
            ends.append(f"{prefixes[space]}:{quote(local, safe=_SAFE)}")
        predicate = _PREDICATES.get(row.relation, "skos:relatedMatch")
        rows.append(f"{ends[0]}\t{predicate}\t{ends[1]}\t{_JUSTIFICATION}\t{row.confidence:.9g}\n")
    digest = hashlib.sha256("".join(rows).encode()).hexdigest()[:16]
    yield "#curie_map:\n"
    for space, prefix in prefixes.items():
        yield f'#  {prefix}: "{space}"\n'
    yield '#license: "https://w3id.org/sssom/license/unspecified"\n'
    yield f'#mapping_set_id: "urn:factorwise:{digest}"\n'
    yield "#mapping_tool: factorwise\n"
    yield "\t".join(COLUMNS) + "\n"
    yield from rows


def parse_sssom(text: str, name: str) -> Iterator[tuple[int, Correspondence, str]]:
    """Yield the line number, the correspondence and the confidence (as text) of every mapping.

    A predicate other than an equivalence, a broader or a narrower match is returned as the relation.
    """
    prefixes: dict[str, str] = {}
    header: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            explained = re.fullmatch(r"#\s+([\w.-]+):\s+[\"']?(\S+?)[\"']?\s*", line)
            if explained:
                prefixes[explained[1]] = explained[2]
        elif header is None and line.strip():
            header = [column.strip() for column in line.split("\t")]
        elif line.strip() and header is not None:
            cells = dict(zip(header, (cell.strip() for cell in line.split("\t")), strict=False))
            if not cells.get("subject_id") or not cells.get("object_id"):
                raise DataFileError(f"{name}:{number}: subject_id or object_id is empty. Fill it in.")
            if cells.get("predicate_modifier") == "Not":
                continue
            predicate = cells.get("predicate_id") or _PREDICATES[EQUIVALENT]
            source, target = (_expanded(cells[key], prefixes) for key in ("subject_id", "object_id"))
            row = Correspondence(source, target, _RELATIONS.get(predicate, predicate))
            yield number, row, cells.get("confidence") or "1"


def _expanded(curie: str, prefixes: dict[str, str]) -> str:
    prefix, colon, local = curie.partition(":")
    if not colon or prefix not in prefixes:
        return curie
    if prefixes[prefix] in SIDES.values():
        return unquote(local)
    return prefixes[prefix] + unquote(local)
