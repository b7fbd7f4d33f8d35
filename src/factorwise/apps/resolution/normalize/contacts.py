"""Normal forms of contact data: addresses, e-mail, telephone numbers and points on the earth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.apps.resolution.normalize.forms import Form, Numbers, Strings, encoded
from factorwise.apps.resolution.normalize.words import (
    MISSING_TEXTS,
    WordRows,
    joined,
    mapped,
    normal_text,
    selected,
    set_of_words,
    text_words,
    without,
)

# Each entry is a word of addresses, followed by its abbreviations and other spellings.
_ABBREVIATIONS = """
access ac, alley al aly, apartment apt, avenue ave av aven, boulevard blvd blv boul, bridge br, building bldg,
center ctr centre, circle cir, circuit circ cct, close cl, court ct crt, crescent cres cr, drive dr drv,
east e, estate est, expressway expy, floor fl, fort ft, freeway fwy, gardens gdns, grove gr gve, heights hts,
highway hwy, junction jct, lane ln, mount mt, mountain mtn, north n, northeast ne, northwest nw, parade pde,
park pk, parkway pkwy pky, place pl, plaza plz, post po, road rd, room rm, route rte, south s, southeast se,
southwest sw, square sq, street st str strasse, suite ste, terrace tce ter terr, trail trl, turnpike tpke,
unit u, way wy, west w
"""
_STREET_WORDS: Mapping[str, str] = {
    short: long for long, *others in map(str.split, _ABBREVIATIONS.split(",")) for short in others
}
# Words that mark a street, in full or abbreviated, without words that occur elsewhere, such as directions.
STREET_WORDS = frozenset(
    word
    for line in map(str.split, _ABBREVIATIONS.split(","))
    if line[0]
    in {"alley", "avenue", "boulevard", "circle", "circuit", "close", "court", "crescent", "drive", "grove"}
    | {"highway", "lane", "parade", "parkway", "place", "road", "square", "street", "terrace", "trail"}
    for word in line
    if len(word) > 1
)
_HOUSE_NUMBER = (
    r"(?i)^\s*(?:(?:unit|flat|apt|no)\.?\s*)?(?P<number>\d+[A-Za-z]?(?:\s*[-/]\s*\d+[A-Za-z]?)?)\b"
)
_POSTCODE = (
    r"(?i)\b(?P<code>\d{5}(?:-\d{4})?|\d{4}|[a-z]{1,2}\d[a-z\d]?\s*\d[a-z]{2}|[a-z]\d[a-z]\s*\d[a-z]\d)\s*$"
)
_LONGEST_TAIL = 7  # last digits of a telephone number that form its tail
_POINT = r"(?P<lat>[-+]?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*(?P<lon>[-+]?\d{1,3}(?:\.\d+)?)"


def address_forms(column: Strings) -> dict[str, Form]:
    """Return the normal forms of encoded addresses."""
    words = text_words(column.values)
    known = normal_text(words).codes >= 0
    spelled = encoded(pa.array([_STREET_WORDS.get(w, w) for w in words.values.to_pylist()], pa.string()))
    rows = selected(
        WordRows(words.offsets, spelled.codes[words.codes], spelled.values),
        np.repeat(known, np.diff(words.offsets)),
    )
    whole = joined(rows)
    after = pc.replace_substring_regex(column.values, _HOUSE_NUMBER, "")
    streets = normal_text(text_words(_street_alone(after)))
    forms: dict[str, Form] = {
        "text": whole,
        "tokens": set_of_words(rows, whole),
        "number": _extracted(column.values, _HOUSE_NUMBER),
        "street": mapped(streets, _spelled_out),
        "postcode": _extracted(after, _POSTCODE),
    }
    return {name: form.rows(column.codes) for name, form in forms.items()}


def email_forms(column: Strings) -> dict[str, Form]:
    """Return the normal forms of encoded e-mail addresses; text without an @ is taken as the local part."""
    email = without(encoded(pc.utf8_lower(pc.utf8_trim_whitespace(column.values))), {"", *MISSING_TEXTS})
    forms: dict[str, Form] = {
        "email": email,
        "local": mapped(email, _local_part),
        "domain": mapped(email, _domain),
    }
    return {name: form.rows(column.codes) for name, form in forms.items()}


def phone_forms(column: Strings) -> dict[str, Form]:
    """Return the normal forms of encoded telephone numbers."""
    digits = without(encoded(pc.replace_substring_regex(column.values, r"\D+", "")), {""})
    tail = encoded(pc.utf8_slice_codeunits(digits.values, -_LONGEST_TAIL))
    return {"phone": digits.rows(column.codes), "tail": tail.rows(digits.codes).rows(column.codes)}


def identifier_forms(column: Strings) -> dict[str, Form]:
    """Return the form ``code``: the letters and digits in lower case."""
    bare = pc.utf8_lower(pc.replace_substring_regex(column.values, r"[^\pL\pN]+", ""))
    return {"code": without(encoded(bare), {"", *MISSING_TEXTS}).rows(column.codes)}


def point_forms(column: Strings) -> dict[str, Form]:
    """Return the forms ``latitude`` and ``longitude`` of texts such as ``52.5, 13.4``."""
    found = pc.extract_regex(column.values, _POINT)
    latitude, longitude = (
        np.array(pc.cast(pc.struct_field(found, place), pa.float64()).fill_null(np.nan), np.float64)
        for place in range(2)
    )
    wrong = ~((np.abs(latitude) <= 90) & (np.abs(longitude) <= 180))
    latitude[wrong] = longitude[wrong] = np.nan
    return {
        "latitude": Numbers(latitude).rows(column.codes),
        "longitude": Numbers(longitude).rows(column.codes),
    }


def _extracted(texts: pa.Array, pattern: str) -> Strings:
    found = pc.struct_field(pc.extract_regex(texts, pattern), 0)
    return encoded(pc.utf8_lower(pc.replace_substring_regex(found, r"\s+", "")))


def _street_alone(texts: pa.Array) -> pa.Array:
    """Return the texts up to the first comma, line end or post code."""
    before = pc.replace_substring_regex(texts, r"[,\n].*$", "")
    return pc.replace_substring_regex(before, _POSTCODE, "")


def _spelled_out(text: str) -> str:
    return " ".join(_STREET_WORDS.get(word, word) for word in text.split())


def _local_part(email: str) -> str | None:
    return email.partition("@")[0].partition("+")[0] or None


def _domain(email: str) -> str | None:
    return email.partition("@")[2] or None
