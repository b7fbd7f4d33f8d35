"""Read and write alignments of two ontologies: the relations of their concepts.

The plain form is a line for each correspondence, ``source<TAB>target<TAB>=``, with a confidence as an
optional fourth column. The alignment format of the OAEI campaigns, XML with a ``Cell`` for each
correspondence, and SSSOM (`factorwise.io.ontologies.sssom`) are read and written as well.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.io.atomic import atomic_text
from factorwise.io.file_kinds import form_by_ending, refuse_other_kind
from factorwise.io.given_texts import read_bytes
from factorwise.io.ontologies.ontology import shown

EQUIVALENT = "="
#: The form of a file by its ending.
ENDINGS = {
    ".sssom.tsv": "sssom",
    ".sssom": "sssom",
    ".tsv": "tsv",
    ".txt": "tsv",
    ".rdf": "rdf",
    ".xml": "rdf",
}
FORMS = ("tsv", "sssom", "rdf")
_ALIGNMENT = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_COLUMNS = "source, target and relation, separated by tabs, such as 'c1<TAB>w1<TAB>='"


class Correspondence(NamedTuple):
    """The ids of two concepts, their relation (``=`` for the same meaning), and the confidence in it."""

    source: str
    target: str
    relation: str = EQUIVALENT
    confidence: float = 1.0


def read_alignment(path: str | os.PathLike[str]) -> list[Correspondence]:
    """Read an alignment from XML, SSSOM or lines with tabs; the content decides which."""
    name = os.fspath(path)
    content = read_bytes(path)
    return parse_alignment(content, name=name)


def parse_alignment(content: bytes, *, name: str = "input") -> list[Correspondence]:
    """Parse an alignment from bytes; ``name`` is used in error messages."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content.lstrip().startswith(b"<"):
        return list(_cells(content, name))
    from factorwise.io.ontologies.sssom import is_sssom, parse_sssom  # here, because it imports this module

    text = content.decode(errors="replace")
    if not is_sssom(text):
        return list(_rows(content, name))
    found = []
    seen: dict[tuple[str, str, str], int] = {}
    for number, row, confidence in parse_sssom(text, name):
        where = f"{name}:{number}"
        found.append(row._replace(confidence=_confidence(confidence, where)))
        _note(seen, row, number, where, "line")
    return found


def write_alignment(
    path: str | os.PathLike[str], alignment: Iterable[Correspondence], form: str | None = None
) -> None:
    """Write an alignment atomically in a form of `FORMS`; None chooses it by the ending of the path."""
    chosen = form or form_by_ending(path, ENDINGS, "tsv")
    with atomic_text(path) as stream:
        stream.writelines(format_alignment(alignment, chosen))


def format_alignment(alignment: Iterable[Correspondence], form: str = "tsv") -> Iterator[str]:
    """Yield the lines of an alignment in a form of `FORMS`."""
    rows = [row._replace(confidence=_checked(row.confidence)) for row in alignment]
    if form == "sssom":
        from factorwise.io.ontologies.sssom import format_sssom  # here, because it imports this module

        yield from format_sssom(rows)
        return
    if form == "rdf":
        yield from _format_cells(rows)
        return
    for row in rows:
        for column in row[:3]:
            if not column or any(mark in column for mark in "\t\r\n"):
                raise InvalidArgumentError(
                    f"{column!r} cannot stand in a column of an alignment: ids and relations are not empty"
                    " and have no tabs or line ends. Rename the concept."
                )
        yield f"{row.source}\t{row.target}\t{row.relation}\t{row.confidence:.9g}\n"


def _format_cells(alignment: Iterable[Correspondence]) -> Iterator[str]:
    yield "<?xml version='1.0' encoding='utf-8'?>\n"
    yield f"<rdf:RDF xmlns='{_ALIGNMENT}' xmlns:rdf='{_RDF}'>\n<Alignment>\n<xml>yes</xml>\n"
    yield "<level>0</level>\n<type>??</type>\n"
    for row in alignment:
        source, target = quoteattr(row.source), quoteattr(row.target)
        yield f"<map><Cell><entity1 rdf:resource={source}/><entity2 rdf:resource={target}/>"
        yield f"<measure rdf:datatype='http://www.w3.org/2001/XMLSchema#float'>{row.confidence:.9g}</measure>"
        yield f"<relation>{escape(row.relation)}</relation></Cell></map>\n"
    yield "</Alignment>\n</rdf:RDF>\n"


def _rows(content: bytes, name: str) -> Iterator[Correspondence]:
    seen: dict[tuple[str, str, str], int] = {}
    for number, raw in enumerate(content.split(b"\n"), 1):
        where = f"{name}:{number}"
        try:
            line = raw.decode().rstrip("\r")
        except UnicodeDecodeError as fault:
            refuse_other_kind(content, name, "a text with a match on each line")
            raise DataFileError(
                f"{where}: byte {raw[fault.start]:#04x} is not UTF-8 text. Convert the file to UTF-8."
            ) from None
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        if not 2 <= len(columns) <= 4 or not all(columns):
            refuse_other_kind(content, name, "a text with a match on each line")
            raise DataFileError(f"{where}: {shown(line)} is not a correspondence. Write {_COLUMNS}.")
        confidence = _confidence(columns[3], where) if len(columns) == 4 else 1.0
        relation = columns[2] if len(columns) > 2 else EQUIVALENT
        found = Correspondence(columns[0], columns[1], relation, confidence)
        _note(seen, found, number, where, "line")
        yield found


def _cells(content: bytes, name: str) -> Iterator[Correspondence]:
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as fault:
        raise DataFileError(
            f"{name}:{fault.position[0]}: this is not well-formed XML ({fault}). Repair the file, or write"
            f" lines of {_COLUMNS}."
        ) from None
    seen: dict[tuple[str, str, str], int] = {}
    cells = (element for element in root.iter() if _tag(element) == "Cell")
    for number, cell in enumerate(cells, 1):
        where = f"{name}: cell {number}"
        parts = {_tag(part): part for part in cell}
        entities = []
        for key in ("entity1", "entity2"):
            given = parts[key].attrib.items() if key in parts else ()
            ids = [value for attribute, value in given if attribute.endswith("}resource") and value]
            if not ids:
                raise DataFileError(
                    f"{where} has no {key} with an rdf:resource. Write <{key} rdf:resource='...'/> in it."
                )
            entities.append(ids[0])
        relation = _text(parts.get("relation")) or EQUIVALENT
        confidence = _confidence(_text(parts.get("measure")) or "1", where)
        found = Correspondence(entities[0], entities[1], relation, confidence)
        _note(seen, found, number, where, "cell")
        yield found


def _note(
    seen: dict[tuple[str, str, str], int], found: Correspondence, number: int, where: str, unit: str
) -> None:
    first = seen.setdefault(found[:3], number)
    if first != number:
        raise DataFileError(
            f"{where}: {found.source!r} and {found.target!r} were already given on {unit} {first}."
            " Remove one of them."
        )


def _confidence(text: str, where: str) -> float:
    try:
        return _checked(float(text))
    except (ValueError, InvalidArgumentError):
        raise DataFileError(
            f"{where}: the confidence {text!r} is not a number from 0 to 1. Correct it, or leave it out."
        ) from None


def _checked(confidence: float) -> float:
    if not (math.isfinite(confidence) and 0 <= confidence <= 1):
        raise InvalidArgumentError(f"a confidence is a number from 0 to 1, but {confidence!r} was given.")
    return confidence


def _tag(element: ElementTree.Element) -> str:
    """Return the name of an element without its namespace, which depends on the version of the format."""
    return element.tag.rpartition("}")[2].rpartition("#")[2] if isinstance(element.tag, str) else ""


def _text(element: ElementTree.Element | None) -> str:
    return (element.text or "").strip() if element is not None else ""
