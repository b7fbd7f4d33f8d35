"""Extract the values of the fields of a reference, without surrounding punctuation and keywords."""

from __future__ import annotations

import re
from typing import NamedTuple

_EDGES = " \t,;:"
_QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb\u201e\u201a"
YEAR = re.compile(r"(?<!\d)(1[4-9]\d\d|20\d\d)(?!\d)")
_MONTHS = (
    r"jan|gen|ene", r"feb|fev|f\xe9v", r"mar|m\xe4r|mrz", r"apr|avr|abr", r"may|mai|mag|mei", r"jun|juin|giu",
    r"jul|juil|lug", r"aug|ao\xfb|ago", r"sep|set", r"oct|okt|ott|out", r"nov", r"dec|dez|dic|d\xe9c",
)  # fmt: skip
_MONTH = re.compile(
    "|".join(rf"\b(?P<m{number}>{names})" for number, names in enumerate(_MONTHS, 1)), re.IGNORECASE
)
_DAY = re.compile(r"(?<!\d)(0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|\.)?(?![\d])")
_PAGES = re.compile(r"([A-Za-z]?\d+(?:[.:]\d+)?)\s*(?:[-\u2010-\u2015\u2212]+|to|bis|\xe0)\s*([A-Za-z]?\d+)")
_PAGE = re.compile(r"[A-Za-z]?\d+|(?<![^\W\d_])[ivxlc]+(?![^\W\d_])")
_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>]+")
_URL = re.compile(r"(?:https?://|ftp://|www\.)\S+", re.IGNORECASE)
_ISBN = re.compile(r"(?:97[89][- ]?)?(?:\d[- ]?){9}[\dXx]")
_ISSUE = re.compile(
    r"""\(\s*(?:no\.?|n[\xb0o]\.?|nr\.?|issue|iss\.?)?\s*([\w/\u2013-]+(?:\s(?:pt|suppl)\b[.\s\w]*)?)\s*\)
    | \b(?:no|nr|n[\xb0o]|issue|iss|heft|h)\b[.\xb0\s]*([\w/\u2013-]+)             # no. 3
    | \d\s*[:/]\s*(\d[\w\u2013-]*)                                              # 12:3
    """,
    re.VERBOSE | re.IGNORECASE,
)
_VOLUME = re.compile(r"\b(?:vols?|volume|bd|band|tome|tomo|t|v)\b[. ]*([\w\u2013-]+)", re.IGNORECASE)
_NUMBER = re.compile(r"[A-Za-z]?\d+[\w\u2013-]*|(?<![^\W\d_])[IVXLC]+(?![^\W\d_])")
_IN = re.compile(r"^(?:in|en|dans)(?::|\s)\s*(?=[^\W_])", re.IGNORECASE)


class Volume(NamedTuple):
    """Volume and issue of a journal, each empty if it is missing."""

    volume: str
    issue: str


def plain(text: str) -> str:
    """Return a title, journal or publisher without punctuation and quotes around it, and without "In".

    >>> plain("\u201cKeeping bees,\u201d"), plain("In: Journal of Hives,"), plain("Acme Inc.")
    ('Keeping bees', 'Journal of Hives', 'Acme Inc')
    """
    text = " ".join(text.split())
    before = None
    while text != before:
        before = text
        text = text.strip(_EDGES).strip(_QUOTES)
        if text.endswith(".") and not text.endswith(".."):
            text = text[:-1]
        for opening, closing in ("()", "[]"):
            if text.startswith(opening) and text.find(closing) == len(text) - 1:
                text = text[1:-1]
            elif text.endswith(closing) and opening not in text:
                text = text[:-1]
            elif text.startswith(opening) and closing not in text:
                text = text[1:]
    return _IN.sub("", text)


def read_date(text: str) -> list[int]:
    """Return year, month and day, as many of them as the text has.

    >>> read_date("(2009, March 3)."), read_date("septembre 2014,"), read_date("in press")
    ([2009, 3, 3], [2014, 9], [])
    """
    year = YEAR.search(text)
    if year is None:
        return []
    month = _MONTH.search(text)
    if month is None:
        return [int(year[0])]
    parts = [int(year[0]), int(str(month.lastgroup)[1:])]
    day = _DAY.search(text[: year.start()] + " " + text[year.end() :])
    return [*parts, int(day[1])] if day else parts


def read_pages(text: str) -> str:
    """Return the pages as "first-last", or the only page.

    >>> read_pages("pp. 1477\u201381."), read_pages("S. 12"), read_pages("p. e17")
    ('1477-81', '12', 'e17')
    """
    span = _PAGES.search(text)
    if span:
        return f"{span[1]}-{span[2]}"
    pages = _PAGE.search(re.sub(r"^\W*(?:pp?|pages?|s|seiten?)\b\.?", "", text, flags=re.IGNORECASE))
    return pages[0] if pages else plain(text)


def read_volume(text: str) -> Volume:
    """Return volume and issue.

    >>> read_volume("12(3),"), read_volume("Vol. 9, No. 2,"), read_volume("106,")
    (Volume(volume='12', issue='3'), Volume(volume='9', issue='2'), Volume(volume='106', issue=''))
    """
    issue = _ISSUE.search(text)
    number = next((group for group in issue.groups() if group), "") if issue else ""
    begin = 0 if issue is None else issue.start() + (issue[3] is not None)
    named = _VOLUME.search(text)
    remaining = text if issue is None else f"{text[:begin]} {text[issue.end() :]}"
    volume = named or _NUMBER.search(remaining)
    value = "" if volume is None else volume[1] if volume is named else volume[0]
    return Volume(value, "" if number == value and issue is not None and issue[3] is None else number)


def read_doi(text: str) -> str:
    """Return the DOI in a text, or an empty string."""
    found = _DOI.search(text)
    return found[0].rstrip(".,;)") if found else ""


def read_url(text: str) -> str:
    """Return the web address in a text, or an empty string."""
    found = _URL.search(text)
    return found[0].rstrip(".,;)>") if found else ""


def read_isbn(text: str) -> str:
    """Return the digits of the ISBN in a text, or an empty string."""
    found = _ISBN.search(text)
    return re.sub(r"[- ]", "", found[0]).upper() if found else ""
