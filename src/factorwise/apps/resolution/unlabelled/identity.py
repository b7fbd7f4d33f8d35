"""The identity of each record: its value, the comparison of two values, and the namesakes of a value.

Identities are compared in six levels; level 0 means that one is missing. Persons: 6 last and first name
equal; 5 equal except for a nickname or a misspelling; 4 a matching initial; 3 similar, or different middle
initials; 2 one name equal; 1 different. Texts: 6 the same words, 5 to 1 by similarity, with codes and numbers
decisive.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.measures import string_measure
from factorwise.apps.resolution.normalize.forms import NormalField, NormalTable, Strings, encoded
from factorwise.apps.resolution.normalize.words import text_forms
from factorwise.apps.resolution.unlabelled.about import PERSON, About
from factorwise.apps.resolution.unlabelled.decorations import plain_texts
from factorwise.apps.resolution.unlabelled.namesakes import person_namesakes, text_namesakes
from factorwise.apps.resolution.unlabelled.texts import TextLevels
from factorwise.types import Bools, Floats, Ints

TOP = 6
FEW, SHARING = 50, 40_000  # most values that share a rare word, and most pairs that are drawn
CONFLICT = 2  # the highest level at which two identities conflict
_SIMILAR, _CLOSE = 0.86, 0.92  # least Jaro-Winkler similarity of parts of names


class Identity:
    """The identities of the records of a table.

    code : int64[rows]
        Id of the value; -1 where it is missing.
    namesakes : float64[values]
        Expected number of *other* entities in the table with the same value.
    group : int64[rows]
        Id of the last name; for texts, of the value.
    """

    def __init__(
        self,
        code: NDArray[np.int64],
        namesakes: NDArray[np.float64],
        group: NDArray[np.int64],
        is_person: bool,
    ) -> None:
        self.code, self.namesakes, self.group, self.is_person = code, namesakes, group, is_person

    @property
    def known(self) -> Bools:
        """Which records have an identity."""
        return self.code >= 0

    def levels(self, first: Ints, second: Ints) -> NDArray[np.uint8]:
        """Return the comparison levels of the identities of pairs of rows."""
        raise NotImplementedError

    def sharing_words(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return random pairs of rows that share a rare word of their identity."""
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    def expected(self, first: Ints, second: Ints) -> Floats:
        """Return for each pair the larger number of namesakes; a missing identity counts as 1."""
        each = np.append(self.namesakes, 1.0)
        return np.asarray(np.maximum(each[self.code[first]], each[self.code[second]]))


def identity_of(normal: NormalTable, about: About, sources: Ints | None = None) -> Identity:
    """Return the identities of the records of a table."""
    if about.form == PERSON:
        return PersonIdentity(*_name_parts(normal, about))
    texts = [_text_of(normal[column]) for column in about.columns]
    return TextIdentity(plain_texts(_coalesced(texts), sources))


class _NameParts(NamedTuple):
    """Normal forms of names, one string per row each."""

    last: Strings
    first: Strings
    root: Strings
    sound: Strings
    initial: Strings
    middle: Strings


def _name_parts(normal: NormalTable, about: About) -> _NameParts:
    first = normal[about.columns[0]]
    last = normal[about.columns[-1]]
    names = ("first", "root", "first_sound", "first_initial", "middle_initial")
    return _NameParts(last.strings("last"), *(first.strings(name) for name in names))


class PersonIdentity(Identity):
    """Names of persons; middle names matter only if both are known and differ."""

    def __init__(self, *parts: Strings) -> None:
        names = self.names = _NameParts(*parts)
        last = names.last.codes.astype(np.int64)
        given = _spelled_or_initial(names.first, names.initial)
        width = int(given.max(initial=0)) + 2
        both = np.where((last >= 0) | (given >= 0), last * width + given + 1, -1)
        both[last < 0] = np.where(given >= 0, -2 - given, -1)[last < 0]
        values, code = np.unique(both, return_inverse=True)
        missing = np.searchsorted(values, -1) if -1 in values else -5
        code = np.where(code == missing, -1, code - (code > missing) * (missing >= 0))
        row_of = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
        row_of[code[code >= 0]] = np.flatnonzero(code >= 0)
        is_initial = names.first.missing & ~names.initial.missing
        self.similar_last = string_measure(names.last, "jaro-winkler")
        self.similar_first = string_measure(names.first, "jaro-winkler")
        counts = np.bincount(code[code >= 0], minlength=len(row_of))
        namesakes = person_namesakes(
            last[row_of], given[row_of], names.initial.codes[row_of], is_initial[row_of], counts
        )
        super().__init__(code, namesakes, last, is_person=True)

    def levels(self, first: Ints, second: Ints) -> NDArray[np.uint8]:
        """Return the comparison levels of the names of pairs of rows."""
        names = self.names
        last = _same(names.last, first, second)
        spelled = ~names.first.missing
        both = spelled[first] & spelled[second]
        same = _same(names.first, first, second)
        initial = _same(names.initial, first, second)
        alike = both & (_same(names.root, first, second) | _same(names.sound, first, second))
        middle = names.middle.codes
        clash = (middle[first] >= 0) & (middle[second] >= 0) & (middle[first] != middle[second])
        near_last, near_first = np.zeros((2, len(first)), np.float32)
        near_last[last], near_first[same] = 1.0, 1.0
        some = np.flatnonzero(~last & (same | alike | initial))
        near_last[some] = np.nan_to_num(self.similar_last(first[some], second[some]))
        some = np.flatnonzero(both & ~same & (near_last >= _SIMILAR))
        near_first[some] = np.nan_to_num(self.similar_first(first[some], second[some]))
        level = np.ones(len(first), np.uint8)
        level[last | same] = 2
        level[(near_last >= _SIMILAR) & (alike | (near_first >= _SIMILAR))] = 3
        level[last & ((names.initial.codes[first] < 0) | (names.initial.codes[second] < 0))] = 3
        level[self._swapped(first, second)] = 3
        level[last & initial & ~both] = 4
        level[last & (alike | (near_first >= _CLOSE))] = 5
        level[same & (near_last >= _CLOSE)] = 5
        level[last & same] = TOP
        level[last & initial & ~spelled[first] & ~spelled[second]] = TOP
        level[clash & (level >= 4)] = 3
        level[(self.code[first] < 0) | (self.code[second] < 0)] = 0
        return level

    def _swapped(self, first: Ints, second: Ints) -> Bools:
        """Return which pairs have their first and last names swapped."""
        last, given = self._comparable_parts
        return np.asarray((last[first] == given[second]) & (last[second] == given[first]), bool)

    @cached_property
    def _comparable_parts(self) -> tuple[Ints, Ints]:
        """Last and first names of the rows, encoded together; -1 and -2 where they are missing."""
        both = encoded(pa.concat_arrays([_text(self.names.last.values), _text(self.names.first.values)]))
        count = len(self.names.last.values)
        last = np.append(both.codes[:count], -1)[self.names.last.codes]
        return last, np.append(both.codes[count:], -2)[self.names.first.codes]


class TextIdentity(Identity):
    """Titles and names of things."""

    def __init__(self, texts: Strings) -> None:
        forms = text_forms(texts)
        self.field = NormalField("identity", "text", forms)
        self.compared = TextLevels(self.field, is_identity=True)
        code = self.compared.code
        row_of = self.row_of_value = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
        row_of[code[code >= 0]] = np.flatnonzero(code >= 0)
        text = self.field.strings("text")
        values = text.values.take(pa.array(text.codes[row_of])).to_pylist() if len(row_of) else []
        super().__init__(code, text_namesakes(values), code, is_person=False)

    def levels(self, first: Ints, second: Ints) -> NDArray[np.uint8]:
        """Return the comparison levels of the texts of pairs of rows."""
        return self.compared.levels(first, second)

    def sharing_words(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return random pairs of rows whose values share a rare word."""
        tokens = self.field.lists("tokens").rows(self.row_of_value)
        counts = np.bincount(tokens.codes, minlength=len(tokens.values))
        value = np.repeat(np.arange(len(tokens)), np.diff(tokens.offsets))
        few = np.flatnonzero((counts[tokens.codes] > 1) & (counts[tokens.codes] <= FEW))
        order = few[np.argsort(tokens.codes[few], kind="stable")]
        start = np.searchsorted(tokens.codes[order], np.arange(len(tokens.values)))
        one = rng.permutation(len(order))[:SHARING]
        word = tokens.codes[order[one]]
        two = start[word] + rng.integers(0, np.maximum(counts[word], 1))
        row = self.row_of_value[value]
        return row[order[one]], row[order[two]]


def _text_of(field: NormalField) -> Strings:
    return field.strings(next(name for name in ("text", "full", "last", "given") if name in field))


def _coalesced(texts: Sequence[Strings]) -> Strings:
    if len(texts) == 1:
        return texts[0]
    return encoded(pc.coalesce(*(one.to_arrow().cast(pa.string()) for one in texts)))


def _spelled_or_initial(first: Strings, initial: Strings) -> NDArray[np.int64]:
    """Return the id of the first name, or else of the initial, or -1 if both are missing."""
    code = np.where(first.codes >= 0, first.codes.astype(np.int64), len(first.values) + initial.codes)
    return np.where((first.codes < 0) & (initial.codes < 0), -1, code)


def _same(form: Strings, first: Ints, second: Ints) -> Bools:
    one = form.codes[first]
    found: Bools = (one == form.codes[second]) & (one >= 0)
    return found


def _text(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())
