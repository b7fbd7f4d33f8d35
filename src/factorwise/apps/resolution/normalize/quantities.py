"""Parse numbers and dates in texts."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.apps.resolution.normalize.forms import Form, Numbers, Strings, encoded

# The first number, with or without commas between groups of thousands.
_NUMBER = r"(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+\b)?|\.\d+)"
_NEGATIVE = r"^[\s(]*[-\x{2212}]\s*[$\x{20ac}\x{a3}\x{a5}]?\s*[\d.]"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_YEAR_FIRST = re.compile(r"(\d{4})[-/. ](\d{1,2})(?:[-/. ](\d{1,2}))?(?!\d)")
_YEAR_LAST = re.compile(r"(\d{1,2})[-/. ](\d{1,2})[-/. ](\d{4}|\d{2})(?!\d)")
_COMPACT = re.compile(r"\d{8}")
_NAMED_MONTH = re.compile(r"\b(" + "|".join(_MONTHS) + r")[a-z]*\b\.?", re.IGNORECASE)
_ONE_YEAR = re.compile(r"(?<!\d)(1[0-9]{3}|20[0-9]{2})(?!\d)")
_DAY = re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)?(?![\d:])")
_TWO_DIGITS = 100  # years below this have two digits
_PIVOT = 30  # two-digit years below this are in the 2000s


class Day(NamedTuple):
    """A date, or its known parts; unknown parts are 0."""

    year: int = 0
    month: int = 0
    day: int = 0


def number_forms(column: Strings, decimal: str = ".") -> dict[str, Form]:
    """Return the form ``number``: the first number in each text."""
    texts = column.values
    if decimal == ",":
        texts = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
    found = pc.struct_field(pc.extract_regex(texts, _NUMBER), 0)
    plain = pc.replace_substring(found, ",", "")
    values = np.array(pc.cast(plain, pa.float64()).fill_null(np.nan), np.float64)
    values[np.asarray(pc.match_substring_regex(texts, _NEGATIVE))] *= -1
    values[~np.isfinite(values)] = np.nan
    return {"number": Numbers(values).rows(column.codes)}


def numbers_of(column: pa.ChunkedArray) -> dict[str, Form]:
    """Return the form ``number`` of a numeric column."""
    values = np.asarray(column.cast(pa.float64(), safe=False).fill_null(np.nan))
    return {"number": Numbers(np.where(np.isfinite(values), values, np.nan))}


def date_forms(column: Strings, order: str = "auto") -> dict[str, Form]:
    """Return the forms of encoded dates: ISO, compact, with month names, day or month first, or years."""
    texts = column.values.to_pylist()
    if order == "auto":
        order = day_or_month_first(texts)
    days = [parse_date(text, order) for text in texts]
    parts = np.array(days, np.float64).reshape(len(days), 3)
    parts[parts == 0] = np.nan
    forms: dict[str, Form] = {
        "date": encoded(pa.array([_iso(day) for day in days], pa.string())),
        "digits": encoded(pa.array(list(map(_digits, texts, days)), pa.string())),
        "year": Numbers(parts[:, 0]),
        "month": Numbers(parts[:, 1]),
        "day": Numbers(parts[:, 2]),
        "days": Numbers(np.array([_days(day) for day in days], np.float64)),
    }
    return {name: form.rows(column.codes) for name, form in forms.items()}


def day_or_month_first(texts: list[str]) -> str:
    """Return ``mdy`` if the second number of dates exceeds 12 more often than the first, else ``dmy``."""
    first = second = 0
    for text in texts:
        found = _YEAR_LAST.search(text)
        if found:
            first += int(found[1]) > len(_MONTHS)
            second += int(found[2]) > len(_MONTHS)
    return "mdy" if second > first else "dmy"


def parse_date(text: str, order: str = "dmy") -> Day:
    """Parse a date; a month above 12 or a day above 31 is treated as unknown.

    >>> parse_date("24/06/1971"), parse_date("19710624"), parse_date("(1992),")
    (Day(year=1971, month=6, day=24), Day(year=1971, month=6, day=24), Day(year=1992, month=0, day=0))
    """
    if _COMPACT.fullmatch(text.strip()):
        compact = text.strip()
        return _checked(int(compact[:4]), int(compact[4:6]), int(compact[6:]))
    if found := _YEAR_FIRST.search(text):
        return _checked(int(found[1]), int(found[2]), int(found[3] or 0))
    if found := _YEAR_LAST.search(text):
        first, second, year = int(found[1]), int(found[2]), int(found[3])
        if len(found[3]) == 2:
            year += 2000 if year < _PIVOT else 1900
        day, month = (second, first) if order == "mdy" else (first, second)
        if month > len(_MONTHS) >= day:
            day, month = month, day
        return _checked(year, month, day)
    year_found, month_found = _ONE_YEAR.search(text), _NAMED_MONTH.search(text)
    year = int(year_found[1]) if year_found else 0
    if month_found is None:
        return Day(year)
    month = _MONTHS.index(month_found[1].lower()) + 1
    day_found = _DAY.search(text)
    return _checked(year, month, int(day_found[1]) if day_found else 0)


def _checked(year: int, month: int, day: int) -> Day:
    return Day(year, month if 1 <= month <= 12 else 0, day if 1 <= day <= 31 else 0)


def _iso(day: Day) -> str | None:
    if not any(day):
        return None
    year = f"{day.year:04d}" if day.year else "----"
    month = f"-{day.month:02d}" if day.month or day.day else ""
    return year + month + (f"-{day.day:02d}" if day.day else "")


def _digits(text: str, day: Day) -> str | None:
    if all(day):
        return f"{day.year:04d}{day.month:02d}{day.day:02d}"
    return "".join(c for c in text if c.isdecimal()) or None


def _days(day: Day) -> float:
    if not all(day):
        return np.nan
    try:
        return float(np.datetime64(f"{day.year:04d}-{day.month:02d}-{day.day:02d}", "D").astype(np.int64))
    except ValueError:
        return np.nan  # the 31st of a shorter month
