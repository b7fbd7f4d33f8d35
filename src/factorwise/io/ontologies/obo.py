"""Read ontologies in the OBO format, in which each term or relation is a stanza of tags and values.

These tags are read: of a ``[Term]`` ``id``, ``name``, ``synonym``, ``def``, ``is_a``, ``disjoint_from``, and
``part_of`` as a relationship; of a ``[Typedef]`` also ``domain`` and ``range``; of an ``[Instance]``, on
request, ``instance_of``. Obsolete stanzas are left out, and imports are not fetched.
"""

from __future__ import annotations

import re

from factorwise.errors import DataFileError
from factorwise.io.file_kinds import refuse_other_kind
from factorwise.io.ontologies.ontology import CLASS, INDIVIDUAL, OBJECT_PROPERTY, Concept, Ontology

_KINDS = {"Term": CLASS, "Typedef": OBJECT_PROPERTY}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_PART_OF = {"part_of", "BFO:0000050"}

Stanza = dict[str, list[str]]


def parse_obo(content: bytes, *, name: str = "input", individuals: bool = False) -> Ontology:
    """Parse an ontology from the bytes of an OBO file; ``name`` is used in error messages."""
    kinds = _KINDS | ({"Instance": INDIVIDUAL} if individuals else {})
    try:
        text = content.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        refuse_other_kind(content, name, "OBO")
        raise DataFileError(f"{name}: this is not UTF-8 text. Convert the file to UTF-8.") from None
    header, *stanzas = _stanzas(text, name)
    concepts = [
        _concept(stanza, kinds[kind], where)
        for kind, where, stanza in stanzas
        if kind in kinds and stanza.get("is_obsolete") != ["true"]
    ]
    imports = header[2].get("import", [])
    notes = (f"imports are not fetched ({', '.join(imports[:3])}): merge them first if needed",) * bool(
        imports
    )
    return Ontology(tuple(concepts), name, notes=notes)


def _stanzas(text: str, name: str) -> list[tuple[str, str, Stanza]]:
    """Return the kind, the location and the tags of the header and of every stanza."""
    found: list[tuple[str, str, Stanza]] = [("header", name, {})]
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("!"):
            continue
        if line.startswith("[") and line.endswith("]"):
            found.append((line[1:-1], f"{name}:{number}", {}))
            continue
        tag, colon, value = line.partition(":")
        if not colon:
            raise DataFileError(
                f"{name}:{number}: {line[:60]!r} is neither 'tag: value' nor a stanza such as [Term]. Repair"
                " the line, or check that this is an OBO file."
            )
        found[-1][2].setdefault(tag.strip(), []).append(value.strip())
    return found


def _concept(stanza: Stanza, kind: str, where: str) -> Concept:
    identity = _id(stanza.get("id", [""])[0])
    if not identity:
        raise DataFileError(f"{where}: the stanza has no id. Write 'id: ...' in it.")
    label = _unescaped(stanza.get("name", [identity])[0]) or identity
    synonyms = (_text(value) for tag in ("synonym", "exact_synonym") for value in stanza.get(tag, []))
    above = (_id(value) for tag in ("is_a", "instance_of") for value in stanza.get(tag, []))
    related = [value.split(None, 1) for value in stanza.get("relationship", [])]
    return Concept(
        id=identity,
        label=label,
        synonyms=tuple(dict.fromkeys(text for text in synonyms if text and text != label)),
        parents=tuple(parent for parent in above if parent and parent != identity),
        part_of=tuple(_id(rest[1]) for rest in related if len(rest) == 2 and rest[0] in _PART_OF),
        comment=" ".join(_text(value) for value in stanza.get("def", [])),
        kind=kind,
        domain=tuple(map(_id, stanza.get("domain", []))),
        range=tuple(map(_id, stanza.get("range", []))),
        disjoint=tuple(map(_id, stanza.get("disjoint_from", []))),
    )


def _id(value: str) -> str:
    """Return the id before a comment or a qualifier."""
    return next(iter(re.split(r"\s", value.strip(), maxsplit=1)))


def _text(value: str) -> str:
    """Return the quoted text in a value, or the empty string."""
    match = _QUOTED.search(value)
    return _unescaped(match[1]) if match else ""


def _unescaped(value: str) -> str:
    return _ESCAPED.sub(r"\1", value).strip()
