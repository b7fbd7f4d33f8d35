"""Extract attributes of tokens from columns of strings with feature templates.

No Python code runs per token: each function of a column is computed once per distinct string, and a kernel
combines the codes into attribute keys, which a `Vocabulary` numbers. The key of an attribute consists of its
template and the codes of its parts. The attribute's name is made from the key on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.features.templates import (
    SENTENCE_FLAGS,
    TemplatePart,
    TemplateSet,
    function_named,
)
from factorwise.apps.tagging.features.vocabulary import (
    Codes,
    Encoded,
    Longs,
    Segments,
    StringTable,
    Vocabulary,
    checked_start,
    damaged,
    frequent,
    read_only,
    segments_of,
    stored,
    without_unknown,
)
from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.kernels.text.interning import PADDING, UNKNOWN, template_keys
from factorwise.types import Bools
from factorwise.validation import check_count
from factorwise.variables.sparse_rows import SparseRows

_AT_ONCE = 2_048  # tokens whose keys are made before they are numbered, so that they stay in the cache

Column = Sequence[str] | NDArray[np.str_]


class _Source:
    """One column: its strings, and the codes of the values of each of its functions."""

    def __init__(self, column: int, functions: Sequence[str]) -> None:
        self.column = column
        self.functions = tuple(functions)
        self.strings = Vocabulary()
        self.values = {name: Vocabulary() for name in functions if not _is_flag(name)}
        if "" in self.values:
            self.values[""] = self.strings
        self.table = np.zeros((0, len(functions)), dtype=np.int32)

    def fit(self, strings: Sequence[str]) -> Codes:
        """Learn the strings and the values of their functions; return the row of each string in `table`."""
        codes = self.strings.intern(_laid_out(strings, self.column))
        self.table = self._values_of(self.strings.strings(), grow=True)
        return codes

    def rows(self, strings: Sequence[str]) -> tuple[Codes, Codes]:
        """Return the row of each string in a table of known values, and this table."""
        codes = self.strings.find(_laid_out(strings, self.column))
        unknown = np.flatnonzero(codes == UNKNOWN)
        if not len(unknown):
            return codes, self.table
        others = Vocabulary()
        codes[unknown] = len(self.table) + others.intern(segments_of([strings[i] for i in unknown.tolist()]))
        return codes, np.concatenate([self.table, self._values_of(others.strings(), grow=False)])

    def select(self, kept: Mapping[str, Bools]) -> _Source:
        """Return a source that knows only the values in ``kept``, a bool[values] for each function."""
        selected = _Source(self.column, self.functions)
        selected.values = {name: values.selected(kept[name]) for name, values in self.values.items()}
        selected.strings = selected.values.get("", selected.strings)
        selected.table = selected._values_of(selected.strings.strings(), grow=False)
        return selected

    def to_arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return arrays of the strings, and of the values of all functions that are not flags."""
        saved = {f"{name}." if name else "": values for name, values in self.values.items()}
        saved |= {"": self.strings}
        return {
            f"{prefix}{function}{name}": array
            for function, vocabulary in saved.items()
            for name, array in vocabulary.to_arrays().items()
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]], prefix: str) -> None:
        """Restore the strings and values from the output of `to_arrays`."""
        self.strings = Vocabulary.from_arrays(arrays, prefix)
        for name in self.values:
            self.values[name] = Vocabulary.from_arrays(arrays, f"{prefix}{name}.") if name else self.strings
        self.table = self._values_of(self.strings.strings(), grow=False)

    def _values_of(self, strings: list[str], grow: bool) -> Codes:
        table = np.empty((len(strings), len(self.functions)), dtype=np.int32)
        for column, name in enumerate(self.functions):
            results = list(map(function_named(name), strings))
            if _is_flag(name):
                table[:, column] = np.array(results, dtype=np.int32) - 1
            else:
                segments = segments_of(results)  # type: ignore[arg-type]
                values = self.values[name]
                table[:, column] = values.intern(segments) if grow else values.find(segments)
        return table


def _laid_out(strings: Sequence[str], column: int) -> Segments:
    try:
        return segments_of(strings)
    except TypeError:  # checking in advance would cost as much as the layout itself
        token, given = next((i, value) for i, value in enumerate(strings) if not isinstance(value, str))
        raise InvalidArgumentError(
            f"column {column} of token {token} is {given!r}, not a string: make it one with str(...)."
        ) from None


def _as_numbers(strings: Sequence[str], column: int) -> NDArray[np.float32]:
    """Return the numbers in a column; raise an error if a value is not a finite number."""
    try:
        numbers = np.array(strings, dtype=np.float64).astype(np.float32)
    except ValueError:
        numbers = np.array([_as_number(string) for string in strings], dtype=np.float32)
    if not np.isfinite(numbers).all():
        token = int(np.argmin(np.isfinite(numbers)))
        raise InvalidArgumentError(
            f"column {column} of token {token} is {strings[token]!r}, where a finite number should be:"
            " correct it, or do not read the column as numbers."
        )
    return numbers


def _as_number(string: str) -> float:
    try:
        return float(string)
    except ValueError:
        return np.nan


def _is_flag(function: str) -> bool:
    return TemplatePart(function, 0, 0).is_flag


class TemplateExtractor:
    r"""Convert columns of strings into sparse rows of attributes with feature templates.

    templates
        The feature templates.
    min_frequency
        Attributes that occur less often in the training data are left out.

    >>> extractor = TemplateExtractor(TemplateSet.parse("w[0]\nw[-1]|w[0]"))
    >>> rows, start = extractor.fit_encode([["the", "cat"]], [0, 2])
    >>> list(extractor.names())
    ['w[0]=the', 'w[-1]|w[0]=<before 1>|the', 'w[0]=cat', 'w[-1]|w[0]=the|cat']
    """

    def __init__(self, templates: TemplateSet, *, min_frequency: int = 1) -> None:
        check_count("min_frequency", min_frequency)
        self.templates = templates
        self._symbolic = tuple(template for template in templates.templates if not template.is_number)
        self._numbers = tuple(template for template in templates.templates if template.is_number)
        self.min_frequency = min_frequency
        self._keys = Vocabulary()
        self._lay_out()

    def _lay_out(self) -> None:
        """Assign an index to every function of every column, and to every sentence flag."""
        parts = [part for template in self._symbolic for part in template.parts]
        used = dict.fromkeys((part.column, part.function) for part in parts)
        self._sources = {
            column: _Source(column, [function for other, function in used if other == column])
            for column in sorted({column for column, _ in used} - {-1})
        }
        places = [(c, function) for c, source in self._sources.items() for function in source.functions]
        places += [(-1, name) for name in SENTENCE_FLAGS if (-1, name) in used]
        number = {place: index for index, place in enumerate(places)}
        self._flags = np.array([_is_flag(function) for _, function in places], dtype=np.bool_)
        self._sentence_flags = {name: number[-1, name] for name in SENTENCE_FLAGS if (-1, name) in number}
        self._part_value = np.array([number[p.column, p.function] for p in parts], dtype=np.int32)
        self._part_offset = np.array([part.offset for part in parts], dtype=np.int32)
        sizes = [len(template.parts) for template in self._symbolic]
        self._part_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def width(self) -> int:
        """Number of attributes."""
        return len(self._keys) + len(self._numbers)

    def fit_encode(self, columns: Sequence[Column], start: Any, *, further: bool = False) -> Encoded:
        """Learn the attributes of all tokens and return them.

        columns
            The strings of all tokens, one sequence per column.
        start
            Sentence ``s`` has the tokens ``start[s]:start[s + 1]``.
        further
            Keep the attributes learned before, and add all new ones.
        """
        listed, bounds = self._checked(columns, start)
        if len(bounds) < 2:
            raise InvalidArgumentError("there are no sentences to learn attributes from: give at least one.")
        if not further:
            self._keys = Vocabulary()
            self._lay_out()
        rows = {column: source.fit(listed[column]) for column, source in self._sources.items()}
        tables = {column: source.table for column, source in self._sources.items()}
        numbered, indptr = self._numbered(rows, tables, bounds, grow=True)
        self._keys, _ = frequent(self._keys, numbered, 1 if further else self.min_frequency)
        symbols = without_unknown(numbered, None, indptr, self.width)
        return Encoded(self._with_numbers(symbols, listed, bounds), bounds)

    def encode(self, columns: Sequence[Column], start: Any) -> Encoded:
        """Return the attributes of all tokens; attributes that were not learned are left out."""
        listed, bounds = self._checked(columns, start)
        found = {column: source.rows(listed[column]) for column, source in self._sources.items()}
        rows = {column: codes for column, (codes, _) in found.items()}
        tables = {column: table for column, (_, table) in found.items()}
        numbered, indptr = self._numbered(rows, tables, bounds, grow=False)
        symbols = without_unknown(numbered, None, indptr, self.width)
        return Encoded(self._with_numbers(symbols, listed, bounds), bounds)

    def _checked(self, columns: Sequence[Column], start: Any) -> tuple[list[list[str]], Longs]:
        self.templates.check(len(columns))
        if any(isinstance(column, str) for column in columns):
            raise InvalidArgumentError(
                "a column is a string: give for each column the strings of all tokens, and where the"
                " sentences begin; one sentence of words is [words], [0, len(words)]."
            )
        listed = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns]
        for number, column in enumerate(listed):
            if len(column) != len(listed[0]):
                raise ShapeError(
                    f"column {number} has {len(column)} tokens, but column 0 has {len(listed[0])}: give each"
                    " column a string for every token."
                )
        tokens = len(listed[0]) if listed else int(np.max(start, initial=0))
        return listed, checked_start(start, tokens)

    def _numbered(
        self, rows: Mapping[int, Codes], tables: Mapping[int, Codes], start: Longs, *, grow: bool
    ) -> tuple[Codes, Longs]:
        """Return the code of each attribute of each token, and the start of each token's codes."""
        pieces = [np.zeros(0, dtype=np.int32)]
        indptr = np.zeros(int(start[-1]) + 1, dtype=np.int64)
        for first, last in _spans(start):
            begin, end = int(start[first]), int(start[last])
            local = start[first : last + 1] - begin
            values = self._values(rows, tables, local, begin, end)
            segments, entries = self._keys_of(values, local)
            pieces.append(self._keys.intern(segments) if grow else self._keys.find(segments))
            indptr[begin + 1 : end + 1] = indptr[begin] + entries[1:]
        return np.concatenate(pieces), indptr

    def _values(
        self, rows: Mapping[int, Codes], tables: Mapping[int, Codes], start: Longs, begin: int, end: int
    ) -> Codes:
        values = np.full((end - begin, len(self._flags)), UNKNOWN, dtype=np.int32)
        place = 0
        for column, codes in rows.items():
            width = tables[column].shape[1]
            values[:, place : place + width] = tables[column][codes[begin:end]]
            place += width
        if "first" in self._sentence_flags:
            values[start[:-1], self._sentence_flags["first"]] = 0
        if "last" in self._sentence_flags:
            values[start[1:] - 1, self._sentence_flags["last"]] = 0
        return values

    def _keys_of(self, values: Codes, start: Longs) -> tuple[Segments, Longs]:
        tokens, templates, parts = len(values), len(self._symbolic), len(self._part_value)
        keys = np.zeros(tokens * (templates + parts) + PADDING // 4, dtype=np.int32)
        ends = np.empty(tokens * templates, dtype=np.int64)
        entries = np.empty(tokens + 1, dtype=np.int64)
        count = template_keys(
            values, self._flags, start, self._part_start, self._part_value, self._part_offset,
            keys, ends, entries,
        )  # fmt: skip
        return Segments(read_only(keys.view(np.uint8)), ends[:count], 0), entries

    def _with_numbers(self, rows: SparseRows, columns: Sequence[Sequence[str]], start: Longs) -> SparseRows:
        """Add the numeric attributes; their codes follow all others."""
        if not self._numbers or not len(rows):
            return rows
        table = np.zeros((len(rows), len(self._numbers)), dtype=np.float32)
        sentence = np.repeat(np.arange(len(start) - 1), np.diff(start))
        for place, template in enumerate(self._numbers):
            part = template.parts[0]
            source = np.arange(len(rows)) + part.offset
            inside = (source >= 0) & (source < len(rows))
            inside[inside] = sentence[source[inside]] == sentence[inside]
            table[inside, place] = _as_numbers(columns[part.column], part.column)[source[inside]]
        token, number = np.nonzero(table)
        owner = np.concatenate([np.repeat(np.arange(len(rows)), np.diff(rows.indptr)), token])
        order = np.argsort(owner, kind="stable")
        codes = np.concatenate([rows.indices, (len(self._keys) + number).astype(np.int32)])[order]
        values = np.concatenate([np.ones(rows.n_entries, np.float32), table[token, number]])[order]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(rows)))])
        return SparseRows(indptr, codes, values, self.width)

    def names(self) -> StringTable:
        """Return the names of the attributes, which are made on access."""
        return StringTable(self.width, self._name)

    def _name(self, code: int) -> str:
        if code >= len(self._keys):
            return self._numbers[code - len(self._keys)].text
        key = np.frombuffer(self._keys.key(code), dtype=np.int32).tolist()
        template = self._symbolic[key[0]]
        values = [
            self._value(part, value)
            for part, value in zip(template.parts, key[1:], strict=True)
            if not part.is_flag
        ]
        return f"{template.text}={'|'.join(values)}" if values else template.text

    def _value(self, part: TemplatePart, code: int) -> str:
        if code >= 0:
            return self._sources[part.column].values[part.function].string(code)
        return f"<{'after' if code % 2 else 'before'} {-code // 2}>"

    def slots(self) -> NDArray[np.int32]:
        """Return the template number of each attribute."""
        arrays = self._keys.to_arrays()
        symbols: NDArray[np.int32] = arrays["text"].view(np.int32)[arrays["offsets"][:-1] // 4]
        numbers = np.arange(len(self._symbolic), len(self.templates), dtype=np.int32)
        return np.concatenate([symbols, numbers])

    def select(self, kept: Bools) -> tuple[TemplateExtractor, Bools]:
        """Return an extractor of the attributes in ``kept`` (bool[attributes]) and of all numeric ones.

        Also returns the mask of attributes that it has. Strings that no attribute needs are dropped.
        """
        kept = kept.copy()
        kept[len(self._keys) :] = True
        arrays = self._keys.selected(kept[: len(self._keys)]).to_arrays()
        codes, begin = arrays["text"].view(np.int32), arrays["offsets"][:-1] // 4
        uses: dict[tuple[int, str], list[Longs]] = {}
        for number, template in enumerate(self._symbolic):
            keys = begin[codes[begin] == number]
            for shift, part in enumerate(template.parts, 1):
                if not part.is_flag:
                    at = keys + shift
                    uses.setdefault((part.column, part.function), []).append(at[codes[at] >= 0])
        selected = TemplateExtractor(self.templates, min_frequency=self.min_frequency)
        for column, source in self._sources.items():
            needed = {name: np.zeros(len(values), dtype=np.bool_) for name, values in source.values.items()}
            for name, mask in needed.items():
                for at in uses[column, name]:
                    mask[codes[at]] = True
            for name, mask in needed.items():
                number_of = (np.cumsum(mask) - 1).astype(np.int32)
                for at in uses[column, name]:
                    codes[at] = number_of[codes[at]]
            selected._sources[column] = source.select(needed)
        selected._keys = Vocabulary.from_arrays(arrays, readable=False)
        return selected, kept

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and JSON values from which `from_arrays` restores the extractor."""
        arrays = {f"keys.{name}": array for name, array in self._keys.to_arrays().items()}
        for column, source in self._sources.items():
            arrays |= source.to_arrays(f"column{column}.")
        metadata = {
            "encoder": "templates",
            "templates": list(self.templates.lines()),
            "columns": list(self.templates.columns),
            "min_frequency": self.min_frequency,
        }
        return arrays, metadata

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
    ) -> TemplateExtractor:
        """Restore an extractor from the output of `to_arrays`."""
        templates = TemplateSet.parse(metadata["templates"], metadata["columns"])
        made = cls(templates, min_frequency=metadata["min_frequency"])
        for column, source in made._sources.items():
            source.restore(arrays, f"column{column}.")
        made._check_keys(stored(arrays, "keys.text", "u1"), stored(arrays, "keys.offsets", "i8"))
        made._keys = Vocabulary.from_arrays(arrays, "keys.", readable=False)
        return made

    def _check_keys(self, text: NDArray[np.uint8], offsets: Longs) -> None:
        """Raise an error for keys that this extractor cannot have made; kernels use their codes unchecked."""
        sizes = np.diff(offsets)
        if len(text) % 4 or (offsets % 4).any() or (sizes < 4).any() or offsets[-1:] != [len(text)]:
            raise damaged("keys.offsets", "does not divide the keys of attributes")
        template = text.view(np.int32)[offsets[:-1] // 4]
        if len(template) and not 0 <= template.min() <= template.max() < len(self._symbolic):
            raise damaged("keys.text", "names a template that is not there")
        if (sizes != 4 * (1 + np.diff(self._part_start)[template])).any():
            raise damaged("keys.text", "has keys that do not fit their templates")
        for number, one in enumerate(self._symbolic):
            place = offsets[:-1][template == number] // 4
            for shift, part in enumerate(one.parts, 1):
                if part.is_flag:
                    continue
                known = len(self._sources[part.column].values[part.function])
                if (text.view(np.int32)[place + shift] >= known).any():
                    raise damaged("keys.text", "names a value that is not there")


def _spans(start: Longs) -> Iterator[tuple[int, int]]:
    """Split the sentences into ranges of about `_AT_ONCE` tokens."""
    first, sentences = 0, len(start) - 1
    while first < sentences:
        last = int(np.searchsorted(start, start[first] + _AT_ONCE))
        last = min(max(last, first + 1), sentences)
        yield first, last
        first = last
