"""Sample the values of a column, and compute the shares of values that match patterns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.apps.resolution.normalize.contacts import STREET_WORDS
from factorwise.apps.resolution.normalize.lists import names_apart
from factorwise.apps.resolution.normalize.nicknames import KNOWN_FIRST_NAMES
from factorwise.apps.resolution.normalize.quantities import parse_date
from factorwise.apps.resolution.normalize.word_sets import word_set
from factorwise.apps.resolution.normalize.words import MISSING_TEXTS, normal_words

SAMPLE = 2_000  # number of sampled values, evenly spread over the rows
LONGEST = 1_000  # characters of each value that are used

EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[a-zA-Z]{2,}")
NUMBER = re.compile(r"[^\w]*-?\s*[$€£]?\s*(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?\s*(?:%|usd|eur)?[^\w]*", re.I)
NUMBER_BY_COMMA = re.compile(
    r"[^\w]*-?\s*[$€£]?\s*(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?\s*(?:%|usd|eur)?[^\w]*", re.I
)
DIGITS = re.compile(r"\d+")
YEAR = re.compile(r"\W*(1[0-9]{3}|20[0-9]{2})[a-z]?\W*")
PHONE = re.compile(r"\+?[\d\s().\-/]{7,22}(?:\s*(?:x|ext)\.?\s*\d+)?")
CODE = re.compile(r"(?=\S*\d)[A-Za-z0-9][A-Za-z0-9._:/#\-]*")
POSTCODE = re.compile(r"[a-z]{1,2}\d[a-z\d]?\s*\d?[a-z]{0,2}|[a-z]\d[a-z]\s*\d[a-z]\d", re.I)
POINT = re.compile(r"\s*[-+]?\d{1,2}\.\d+\s*[,; ]\s*[-+]?\d{1,3}\.\d+\s*")
FULL_DATE = re.compile(
    r"\D*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?!\d).*"
)
#: Eight or more numbers in brackets; the closing bracket may be cut off.
VECTOR = re.compile(r"\[(?=[^\]]*[.eE])\s*(?:[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?\s*,\s*){7,}[-+.\deE,\s]*\]?")
HOUSE = re.compile(r"\s*(?:unit\s+)?\d+[a-z]?\b.*[a-z]", re.I)
INITIAL = re.compile(r"(?:^|[\s.\-,])[A-Za-z](?:\.|(?=\s|$))")

_NAME_WORD = re.compile(r"[^\W\d_]+(?:['\u2019.\-][^\W\d_]*)*[.,]?")
_COMMON_NAMES = word_set(
    """
    ahmed ali anderson bauer becker bin bo brown chang chao chen cheng chong chun cohen costa davies davis
    diaz dong evans fan feng ferrari fischer fernandez gao garcia gonzalez green gupta guo han hao harris
    hernandez hong hoffmann hu huang hui ibrahim ivanov jackson jian jie jin jing johnson jones joshi jun jung
    kaur khan kim klein koch kobayashi kumar lee lei lewis li liang lim lin ling liu lopez lu luo ma martin
    martinez meyer miller min ming mohamed moore mueller muller murphy nakamura nguyen novak park patel perez
    petrov ping qian qiang qing ramos rao richter robinson rodriguez rossi ryan sanchez santos sato schmidt
    schmitt schneider schroeder schulz schwarz shah sharma shi silva singh smith song sun suzuki takahashi tan
    tanaka tang taylor thompson tran vogel wagner walker wang watanabe weber wei wen white williams wilson
    wolf wong wright wu xiang xiao xin xu yamamoto yan yang yao yi ying yong young yu yuan zhang zhao zheng
    zhou zhu zimmermann ajay andrea anil bjorn carlos claudia fatima gerd guenter hans heike helga ines
    ingrid jan javier joerg jorge juan juergen karin klaus luca manfred marco mario monika olga paolo
    pavel pierre pedro petra rajesh ralf renate sabine sanjay sergey stefan sven ute uwe vijay werner wolfgang
    yusuf emily olivia lachlan
    """
)
_NOT_PERSONS = word_set(
    """
    academy and association at bakery bar bistro cafe center centre child children church club co college
    company corp corporation day deli department dept diner for gmbh grill group home hospital hotel house in
    inc inst institute international kitchen lab laboratory labs learning llc ltd museum national natl new of
    on pizza place plc polytechnic press program project public restaurant room school services shop society
    store systems tavern tech technologies the to univ university with
    """
)


@dataclass(frozen=True)
class ColumnSample:
    """A sample of a column: the number of sampled rows, and their values that are not missing."""

    rows: int
    values: tuple[str, ...]

    @property
    def missing(self) -> float:
        """Share of rows without a value."""
        return 1.0 - len(self.values) / max(self.rows, 1)

    @cached_property
    def distinct(self) -> int:
        """Number of distinct values."""
        return len({value.casefold().strip() for value in self.values})

    @property
    def repetition(self) -> float:
        """Distinct values as a share of all; 1 if all are distinct."""
        return self.distinct / max(len(self.values), 1)

    @cached_property
    def n_words(self) -> float:
        """Mean number of words of a value."""
        return float(np.mean([len(value.split()) for value in self.values]))

    def share(self, test: re.Pattern[str] | Callable[[str], object]) -> float:
        """Return the share of values that a pattern matches in full, or for which a function is true."""
        function = test.fullmatch if isinstance(test, re.Pattern) else test
        return sum(bool(function(value.strip())) for value in self.values) / max(len(self.values), 1)

    @cached_property
    def persons(self) -> float:
        """Share of values that look like names of persons; see `persons`."""
        return persons(list(self.values))

    @cached_property
    def streets(self) -> float:
        """Share of values with a street word, or with a house number before words."""
        return self.share(lambda value: HOUSE.fullmatch(value) or _has_street_word(value))


def sample_of(column: pa.ChunkedArray) -> ColumnSample:
    """Return an evenly spread sample of a column as text, without missing values."""
    rows = np.unique(np.linspace(0, len(column) - 1, min(len(column), SAMPLE)).astype(np.int64))
    texts = pc.utf8_slice_codeunits(column.take(pa.array(rows)).cast(pa.string()), 0, LONGEST).to_pylist()
    return ColumnSample(
        len(rows), tuple(text for text in texts if text is not None and _says_something(text))
    )


def items_sample(values: list[str], separator: str) -> list[str]:
    """Split sampled lists into items; with a comma as separator, they are split as names."""
    if separator == ",":
        values = names_apart(pa.array(values, pa.string())).to_pylist()
        separator = "|"
    return [item.strip() for value in values for item in value.split(separator) if item.strip()]


def persons(values: list[str]) -> float:
    """Return the share of values with the shape of a name, or 0 if few have initials or common names."""
    if not values:
        return 0.0
    shaped = [value for value in values if _has_name_shape(value)]
    if not shaped:
        return 0.0
    telling = sum(_is_telling(value) for value in shaped) / len(values)
    return len(shaped) / len(values) if telling >= 0.2 else 0.0


def single_names(values: list[str]) -> float:
    """Return the share of values that consist of one to three words of letters."""
    fits = (len(value.split()) <= 3 and all(map(_NAME_WORD.fullmatch, value.split())) for value in values)
    return sum(fits) / max(len(values), 1)


def is_compact_date(value: str) -> bool:
    """Return whether a value is a date of eight digits."""
    return len(value) == 8 and value.isdigit() and value[:2] in ("18", "19", "20") and all(parse_date(value))


def is_month_of_year(value: str) -> bool:
    """Return whether a value contains a year and a month."""
    day = parse_date(value)
    return day.year > 0 and day.month > 0


def _says_something(text: str) -> bool:
    normal = " ".join(normal_words(text))
    return bool(normal) and normal not in MISSING_TEXTS


def _has_name_shape(value: str) -> bool:
    """Return whether a value is two to five words of letters, none of which rules out a person."""
    words = value.replace(",", ", ").split()
    plain = [word.strip(".,").casefold() for word in words]
    while plain and plain[-1].isdigit():  # a number that distinguishes namesakes
        plain.pop()
    glued = len(plain) == 1 and "." in value  # as in A.Smith
    fits = len(value) <= 50 and (2 <= len(plain) <= 5 or glued)
    return fits and all(map(_NAME_WORD.fullmatch, words[: len(plain)])) and not _NOT_PERSONS & set(plain)


def _is_telling(value: str) -> bool:
    words = {word for piece in value.split() for word in normal_words(piece)}
    return bool(INITIAL.search(value)) or bool(words & _COMMON_NAMES) or bool(words & KNOWN_FIRST_NAMES)


def _has_street_word(value: str) -> bool:
    words = value.replace(",", " ").replace(".", " ").casefold().split()
    return any(word in STREET_WORDS for word in words[1:])
