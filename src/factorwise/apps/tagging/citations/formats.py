"""Export citations to CSL-JSON (which Zotero, pandoc and citeproc read) and to BibTeX."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from factorwise.apps.tagging.citations.people import People, read_people
from factorwise.apps.tagging.citations.reader import Citation
from factorwise.apps.tagging.citations.values import (
    plain,
    read_date,
    read_doi,
    read_isbn,
    read_pages,
    read_url,
    read_volume,
)

_PEOPLE = frozenset(["author", "editor", "translator", "director", "producer"])  # CSL has the same names
_TEXTS = {
    "title": "title",
    "journal": "container-title",
    "container-title": "container-title",
    "collection-title": "collection-title",
    "publisher": "publisher",
    "location": "publisher-place",
    "edition": "edition",
    "genre": "genre",
    "medium": "medium",
    "source": "source",
    "note": "note",
    "citation-number": "citation-number",
}
_READ = {
    "doi": ("DOI", read_doi),
    "url": ("URL", read_url),
    "isbn": ("ISBN", read_isbn),
    "pages": ("page", read_pages),
}
_THESIS = re.compile(r"thesis|dissertation|th\xe8se|tesis|tese|diss\b|ph\.? ?d", re.IGNORECASE)
_REPORT = re.compile(r"\breport\b|working paper|rapport\b|bericht\b", re.IGNORECASE)
_MEETING = re.compile(
    r"\bproc(?:eedings|\.)|\bconference\b|\bsymposium\b|\bworkshop\b|\bcongress\b|\btagung\b|\bmeeting\b",
    re.IGNORECASE,
)
_BIBTEX_TYPES = {
    "article-journal": "article",
    "paper-conference": "inproceedings",
    "chapter": "incollection",
    "book": "book",
    "thesis": "phdthesis",
    "report": "techreport",
}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_"},
}


def to_csl(citations: Iterable[Citation]) -> list[dict[str, Any]]:
    """Return citations as CSL-JSON items with unique ids.

    ``custom.confidence`` has the probability of each field, or the lowest one if a field occurs twice.
    ``custom.text`` has the reference string.
    """
    items: list[dict[str, Any]] = []
    keys: dict[str, int] = {}
    for citation in citations:
        item = _csl_item(citation)
        key = _key(item)
        keys[key] = keys.get(key, 0) + 1
        items.append({"id": key if keys[key] == 1 else f"{key}-{keys[key]}", **item})
    return items


def to_bibtex(items: Iterable[dict[str, Any]]) -> str:
    """Return the items of `to_csl` as the text of a BibTeX file."""
    return "\n".join(map(_bibtex_entry, items))


def _csl_item(citation: Citation) -> dict[str, Any]:
    values: dict[str, Any] = {}
    confidence: dict[str, float] = {}
    for field in citation.fields:
        for name, value in _csl_values(field.name, field.text):
            if name in values and isinstance(value, list):
                values[name] += value
            elif name in ("title", "note", "genre") and name in values:
                values[name] += f". {value}"
            else:
                values.setdefault(name, value)
            confidence[name] = min(confidence.get(name, 1.0), round(field.confidence, 4))
    custom = {"confidence": confidence, "text": citation.text}
    return {"type": _csl_type(citation, values), **values, "custom": custom}


def _csl_values(name: str, text: str) -> list[tuple[str, Any]]:
    """Return the CSL variables of one field, without empty ones."""
    if name in _PEOPLE:
        people = read_people(text)
        return [(name, _csl_names(people))] if people.names else []
    if name == "date":
        parts = read_date(text)
        return [("issued", {"date-parts": [parts]} if parts else {"literal": plain(text)})]
    if name == "volume":
        volume = read_volume(text)
        return [(key, value) for key, value in zip(("volume", "issue"), volume, strict=True) if value]
    if name in _READ:
        variable, read = _READ[name]
        pairs = [(variable, read(text))]
        if name == "url":
            pairs.append(("DOI", read_doi(text)))
    else:
        pairs = [(_TEXTS.get(name, "note"), plain(text))]
    return [(variable, value) for variable, value in pairs if value]


def _csl_names(people: People) -> list[dict[str, str]]:
    names = [
        {"family": person.family, "given": person.given} if person.given else {"literal": person.family}
        for person in people.names
    ]
    return [*names, {"literal": "others"}] if people.others else names


def _csl_type(citation: Citation, values: dict[str, Any]) -> str:
    """Choose the CSL type from the fields that are present and from words in them."""
    container = str(values.get("container-title", ""))
    if _THESIS.search(str(values.get("genre", ""))):
        return "thesis"
    if citation.values("journal"):
        return "article-journal"
    if _MEETING.search(container):
        return "paper-conference"
    if container:
        return "chapter"
    if _REPORT.search(str(values.get("genre", ""))):
        return "report"
    if "publisher" in values or "ISBN" in values:
        return "book"
    return "webpage" if "URL" in values else "document"


def _key(item: dict[str, Any]) -> str:
    """Return an id made of the first author, the year and the first long word of the title."""
    people = item.get("author") or item.get("editor") or [{}]
    name = people[0].get("family") or people[0].get("literal") or "anonymous"
    year = next(iter(item.get("issued", {}).get("date-parts", [[""]])[0]), "")
    title = next((word for word in re.findall(r"\w+", str(item.get("title", ""))) if len(word) > 3), "")
    joined = unicodedata.normalize("NFKD", f"{name}{year}{title}").encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "", joined.lower()) or "reference"


def _bibtex_entry(item: dict[str, Any]) -> str:
    kind = _BIBTEX_TYPES.get(item["type"], "misc")
    container = {"article": "journal", "incollection": "booktitle", "inproceedings": "booktitle"}.get(
        kind, "howpublished"
    )
    school = {"phdthesis": "school", "techreport": "institution"}.get(kind, "publisher")
    names = {
        "title": "title", "container-title": container, "collection-title": "series", "publisher": school,
        "publisher-place": "address", "volume": "volume", "issue": "number", "page": "pages",
        "edition": "edition", "genre": "type", "DOI": "doi", "URL": "url", "ISBN": "isbn", "note": "note",
    }  # fmt: skip
    fields: dict[str, str] = {
        role: _bibtex_names(item[role]) for role in ("author", "editor", "translator") if role in item
    }
    fields |= {names[name]: _escaped(item[name]) for name in names if name in item}
    for name in ("DOI", "URL"):  # BibTeX styles print these verbatim
        if name in item:
            fields[names[name]] = re.sub(r"[{}\\\s]", "", item[name])
    if "pages" in fields:
        fields["pages"] = fields["pages"].replace("-", "--")
    issued = item.get("issued", {})
    parts = issued.get("date-parts", [[]])[0]
    for name, value in zip(("year", "month", "day"), parts or [issued.get("literal")], strict=False):
        if value:
            fields[name] = _escaped(str(value))
    confidence = item["custom"]["confidence"]
    fields["confidence"] = ", ".join(f"{name} {value:.2f}" for name, value in confidence.items())
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{item['id']},", *lines, "}", ""])


def _bibtex_names(people: list[dict[str, str]]) -> str:
    return " and ".join(map(_bibtex_name, people))


def _bibtex_name(person: dict[str, str]) -> str:
    if "family" in person:
        return f"{_escaped(person['family'])}, {_escaped(person['given'])}"
    return "others" if person["literal"] == "others" else f"{{{_escaped(person['literal'])}}}"


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)
