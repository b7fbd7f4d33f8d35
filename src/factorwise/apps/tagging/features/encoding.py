"""Attributes of tokens in the user's form: dictionaries or lists of strings.

A token may be a dictionary, with the same meaning as in python-crfsuite:

=========================  ===================================
``{"name": 2.5}``          ``name`` with value 2.5
``{"name": True}``         ``name`` with value 1, False with 0
``{"name": "text"}``       ``name:text`` with value 1
``{"name": ["a", "b"]}``   ``name:a`` and ``name:b``, 1 each
``{"name": {"in": 3}}``    ``name:in`` with value 3, and so on
``{"name": array}``        ``name:0``, ``name:1`` ... with the array's numbers
=========================  ===================================

or a list, tuple or set of strings, each of which is an attribute with value 1. The values of an attribute
that is named twice are added. Bytes are decoded as UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.features.vocabulary import (
    Codes,
    Encoded,
    Longs,
    Segments,
    Vocabulary,
    damaged,
    frequent,
    no_tokens,
    place_of,
    segments_of,
    segments_of_lists,
    short,
    stored,
    without_unknown,
)
from factorwise.errors import InvalidArgumentError
from factorwise.types import Bools
from factorwise.validation import check_count

Values = NDArray[np.float32]

_AT_ONCE = 4_096  # tokens whose strings are joined at a time: they fit in the cache, and calls are few
_SENTENCES_AT_ONCE = 1_000  # sentences that are read from a generator at a time
_LISTS = {list, tuple}


class AttributeEncoder:
    """Encoder that converts sentences of dictionaries or of lists of strings into sparse rows.

    min_frequency
        Attributes that occur less often in the training data are left out.

    >>> encoder = AttributeEncoder()
    >>> rows, start = encoder.fit_encode([[["the", "first"], {"word": "cat", "length": 3}]])
    >>> encoder.names(), rows.to_dense().tolist()
    (['the', 'first', 'word:cat', 'length'], [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 3.0]])
    """

    def __init__(self, *, min_frequency: int = 1) -> None:
        check_count("min_frequency", min_frequency)
        self.min_frequency = min_frequency
        self._vocabulary = Vocabulary()
        self._slots = np.zeros(0, dtype=np.int32)

    @property
    def width(self) -> int:
        """Number of attributes."""
        return len(self._vocabulary)

    def fit_encode(self, sentences: Iterable[Sequence[Any]], *, further: bool = False) -> Encoded:
        """Learn the attributes of all tokens and return them.

        A generator is read in pieces, so that only part of its sentences are in memory at a time.

        further
            Keep the attributes learned before, and add all new ones.
        """
        slots: list[Codes] = [self._slots] if further else []
        if not further:
            self._vocabulary = Vocabulary()
        codes, values, indptr, start = self._numbered(sentences, slots)
        if len(start) == 1:
            raise InvalidArgumentError("there are no sentences to learn attributes from: give at least one.")
        self._vocabulary, kept = frequent(self._vocabulary, codes, 1 if further else self.min_frequency)
        self._slots = np.concatenate(slots)[kept]
        return Encoded(without_unknown(codes, values, indptr, self.width), start)

    def encode(self, sentences: Iterable[Sequence[Any]]) -> Encoded:
        """Return the attributes of all tokens; attributes that were not learned are left out."""
        codes, values, indptr, start = self._numbered(sentences, None)
        return Encoded(without_unknown(codes, values, indptr, self.width), start)

    def _numbered(
        self, sentences: Iterable[Sequence[Any]], slots: list[Codes] | None
    ) -> tuple[Codes, Values | None, Longs, Longs]:
        """Return the code and the value of each entry, and the start of each token and each sentence.

        slots
            A list to which the slots of new attributes are appended; None to learn no attributes.
        """
        start, indptr = np.zeros(1, np.int64), [np.zeros(1, np.int64)]
        pieces, valued = [np.zeros(0, np.int32)], {}
        for some in _pieces(sentences):
            tokens, sizes = _flattened(some, len(start) - 1)
            begin = int(start[-1])
            start = np.append(start, begin + np.cumsum(sizes))
            for first in range(0, len(tokens), _AT_ONCE):
                chunk = tokens[first : first + _AT_ONCE]
                segments, values, counts = _laid_out(chunk, begin + first, start)
                known = len(self._vocabulary)
                codes = (
                    self._vocabulary.find(segments) if slots is None else self._vocabulary.intern(segments)
                )
                local = np.cumsum(counts)
                if slots is not None:
                    slots.append(_first_places(codes, known, local))
                if values is not None:
                    valued[len(pieces)] = values
                indptr.append(indptr[-1][-1] + local)
                pieces.append(codes)
        entries, bounds = np.concatenate(pieces), np.concatenate(indptr)
        if not valued:
            return entries, None, bounds, start
        ones = (valued.get(number, np.ones(len(codes), np.float32)) for number, codes in enumerate(pieces))
        return entries, np.concatenate(list(ones)), bounds, start

    def reads_like(self, other: Any) -> bool:
        """Return whether another encoder also reads dictionaries or lists of strings."""
        return isinstance(other, AttributeEncoder)

    def names(self) -> list[str]:
        """Return the names of the attributes."""
        return self._vocabulary.strings()

    def slots(self) -> NDArray[np.int32]:
        """Return the position of each attribute in the token where it first occurred.

        If all tokens list their attributes in the same order, those of one position come from one template.
        """
        return self._slots.copy()

    def select(self, kept: Bools) -> tuple[AttributeEncoder, Bools]:
        """Return an encoder of the attributes in ``kept`` (bool[attributes]), and this mask."""
        selected = AttributeEncoder(min_frequency=self.min_frequency)
        selected._vocabulary, selected._slots = self._vocabulary.selected(kept), self._slots[kept]
        return selected, kept

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and JSON values from which `from_arrays` restores the encoder."""
        arrays = self._vocabulary.to_arrays() | {"slots": self.slots()}
        return arrays, {"encoder": "attributes", "min_frequency": self.min_frequency}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> AttributeEncoder:
        """Restore an encoder from the output of `to_arrays`."""
        made = cls(min_frequency=metadata["min_frequency"])
        made._vocabulary = Vocabulary.from_arrays(arrays)
        made._slots = stored(arrays, "slots", "i4").copy()
        if len(made._slots) != made.width:
            raise damaged("slots", f"has {len(made._slots)} numbers for {made.width} attributes")
        return made


def _first_places(codes: Codes, known: int, ends: Longs) -> Codes:
    """Return, for each code from ``known`` on, its position in the row of its first occurrence."""
    new = np.flatnonzero(codes >= known)
    row = np.searchsorted(ends, new, side="right")
    places = np.zeros(int(codes.max(initial=known - 1)) + 1 - known, dtype=np.int32)
    begin = np.concatenate([[0], ends])[row]
    places[codes[new[::-1]] - known] = (new - begin)[::-1]  # the first of equal codes is written last
    return places


def _pieces(sentences: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield lists of sentences: all at once, or some at a time if the input can be read only once."""
    listed = isinstance(sentences, Iterable) and getattr(sentences, "ndim", 1) > 0
    if isinstance(sentences, str | bytes | Mapping) or not listed:
        raise InvalidArgumentError(
            f"X is a {type(sentences).__name__}, not a list of sentences, each a list of tokens."
        )
    if isinstance(sentences, Sequence | np.ndarray):
        yield list(sentences)
        return
    remaining = iter(sentences)
    while some := list(islice(remaining, _SENTENCES_AT_ONCE)):
        yield some


def _flattened(sentences: Sequence[Any], before: int) -> tuple[list[Any], Longs]:
    """Return all tokens, and the number of tokens of each sentence; ``before`` sentences came earlier."""
    listed = [
        sentence if type(sentence) in _LISTS else _as_list(sentence, before + number)
        for number, sentence in enumerate(sentences)
    ]
    sizes = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    if not sizes.all():
        raise no_tokens(before + int(np.flatnonzero(sizes == 0)[0]))
    return list(chain.from_iterable(listed)), sizes


def _as_list(sentence: Any, number: int) -> Sequence[Any]:
    """Return the tokens of a sentence that is no list or tuple; raise an error if it is not a sentence."""
    if isinstance(sentence, str | bytes | Mapping):
        kind = "dictionary" if isinstance(sentence, Mapping) else "string"
        raise InvalidArgumentError(
            f"sentence {number} is the {kind} {short(sentence)}: X is a list of sentences, each a list of"
            " tokens, each a dictionary or a list of strings. For a single sentence, give [X]; for words"
            " without attributes, use feature templates."
        )
    if isinstance(sentence, Sequence | np.ndarray):
        return sentence  # type: ignore[return-value]
    if isinstance(sentence, Iterator):
        return list(sentence)
    raise InvalidArgumentError(
        f"sentence {number} is a {type(sentence).__name__}, not a list of tokens: give list(sentence)."
    )


def _laid_out(tokens: list[Any], first: int, start: Longs) -> tuple[Segments, Values | None, Longs]:
    """Return attributes as strings, their values (None if all are 1), and their number per token."""
    if set(map(type, tokens)) <= _LISTS:
        sizes = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
        try:
            return segments_of_lists(tokens, sizes), None, sizes
        except TypeError:  # bytes among the strings, or a mistake
            pass
    names: list[str] = []
    values: list[Any] = []
    sizes = np.zeros(len(tokens), dtype=np.int64)
    for number, token in enumerate(tokens):
        before = len(names)
        try:
            if isinstance(token, Mapping):
                _add_items(token, names, values)
            else:
                names += _strings_of(token)
                values += [1.0] * (len(names) - before)
        except _UnreadableError as error:
            raise InvalidArgumentError(f"{place_of(first + number, start)} {error}") from None
        sizes[number] = len(names) - before
    return segments_of(names), _checked(values, names, sizes, first, start), sizes


class _UnreadableError(Exception):
    """Describes what is wrong with a token, before its position is known."""


def _add_items(token: Mapping[Any, Any], names: list[str], values: list[Any], prefix: str = "") -> None:
    """Add the attributes of a dictionary to ``names`` and ``values``."""
    for key, value in token.items():
        name = prefix + (key if type(key) is str else _text(key))
        kind = type(value)
        if kind is float or kind is bool or kind is int:
            names.append(name)
            values.append(value)
        elif kind is str:
            names.append(f"{name}:{value}")
            values.append(1.0)
        elif isinstance(value, Mapping):
            _add_items(value, names, values, f"{name}:")
        elif isinstance(value, str | bytes):
            names.append(f"{name}:{_text(value)}")
            values.append(1.0)
        elif isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biuf":
            names += [f"{name}:{position}" for position in range(len(value))]
            values += value.tolist()
        elif isinstance(value, list | tuple | AbstractSet):
            inner = [f"{name}:{string}" for string in _strings_of(value)]
            names += inner
            values += [1.0] * len(inner)
        else:
            names.append(name)
            values.append(_number(value, name))


def _strings_of(token: Any) -> list[str]:
    """Return the strings of a list or a set; those of a set are sorted, so that runs are reproducible."""
    if isinstance(token, str | bytes):
        raise _UnreadableError(
            f"is the string {short(token)}: a token is a dictionary or a list of strings. For a single"
            f" attribute, give [{short(token)}]; for words without attributes, use feature templates."
        )
    if isinstance(token, AbstractSet):
        return sorted(map(_text, token))
    if isinstance(token, list | tuple | np.ndarray):
        return [_text(string) for string in token]
    raise _UnreadableError(
        f"is {short(token)}, a {type(token).__name__}: a token is a dictionary or a list of strings."
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise _UnreadableError(
                f"has the attribute {short(value)}, which is not UTF-8: decode it first."
            ) from None
    raise _UnreadableError(
        f"has the attribute {short(value)}, a {type(value).__name__}: attributes are strings. For a value of"
        " its own, give a dictionary, such as {'name': 2.5}."
    )


def _number(value: Any, name: str) -> float:
    try:
        if value is None or isinstance(value, np.ndarray):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise _UnreadableError(
            f"has {short(value)}, a {type(value).__name__}, for {name!r}: give a number, a string, a list of"
            " strings, an array of numbers with one dimension, or a dictionary."
        ) from None
    except OverflowError:
        return np.inf


def _checked(values: list[Any], names: list[str], sizes: Longs, first: int, start: Longs) -> Values | None:
    """Return the values as floats, or None if all are 1; raise an error if one is not finite."""
    try:
        exact = np.array(values, dtype=np.float64)
    except OverflowError:  # an integer with hundreds of digits
        exact = np.array([_number(value, "") for value in values])
    with np.errstate(over="ignore"):
        short = exact.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(short))
    if len(wrong):
        token = int(np.searchsorted(np.cumsum(sizes), wrong[0], side="right"))
        given = exact[wrong[0]]
        large = " (in 32 bits)" if np.isfinite(given) else ""
        raise InvalidArgumentError(
            f"{place_of(first + token, start)} has {given}{large} for {names[wrong[0]]!r}: values are finite"
            " numbers. Replace it, or leave the attribute out and add one that says it is missing."
        )
    return None if (short == 1).all() else short
