"""Shared parts of the encoders: a string table that assigns codes, and the construction of sparse rows.

Looking up millions of attribute strings is faster in arrays than in a dictionary: the strings of thousands
of tokens are joined into one, and a kernel processes it (`factorwise.kernels.text.interning`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ModelFileError, ShapeError
from factorwise.kernels.text.interning import (
    PADDING,
    UNKNOWN,
    find_segments,
    intern_segments,
    keep_known,
    segment_ends,
)
from factorwise.types import Bools
from factorwise.validation import is_rising
from factorwise.variables.sparse_rows import SparseRows

Codes = NDArray[np.int32]
Longs = NDArray[np.int64]

_SEPARATOR = "\0"
_AT_ONCE = 1 << 15  # number of strings for which memory is reserved before they are interned


class Encoded(NamedTuple):
    """The attributes of all tokens: sentence ``s`` has the rows ``start[s]:start[s + 1]``."""

    rows: SparseRows
    start: Longs


class Segments(NamedTuple):
    """Strings in one byte array: ``ends`` has the end of each, and the next begins ``gap`` bytes later."""

    data: NDArray[np.uint8]
    ends: Longs
    gap: int


class StringTable(Sequence[str]):
    """A sequence of strings that are made on access."""

    def __init__(self, size: int, name: Callable[[int], str]) -> None:
        self._size = size
        self._name = name

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._name(number) for number in range(*index.indices(self._size))]
        return self._name(range(self._size)[index])

    def __iter__(self) -> Iterator[str]:
        return map(self._name, range(self._size))


class Vocabulary:
    """Strings with codes in order of first appearance; `intern` adds new strings, `find` does not.

    >>> words = Vocabulary()
    >>> words.intern(segments_of(["the", "cat", "the"])).tolist()
    [0, 1, 0]
    >>> words.find(segments_of(["cat", "dog"])).tolist()
    [1, -1]
    """

    def __init__(self) -> None:
        self._known = 0
        self._slots = np.zeros(64, dtype=np.uint64)
        self._text = np.zeros(PADDING, dtype=np.uint8)
        self._offsets = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        return self._known

    def intern(self, segments: Segments) -> Codes:
        """Return the code of each string; new strings are added."""
        data, ends, gap = segments
        codes = np.empty(len(ends), dtype=np.int32)
        begin = 0
        for first in range(0, len(ends), _AT_ONCE):
            part = ends[first : first + _AT_ONCE]
            self._make_room(len(part), int(part[-1]) - begin)
            self._known = intern_segments(
                data, begin, part, gap, self._slots, self._text, self._offsets, self._known,
                codes[first : first + _AT_ONCE],
            )  # fmt: skip
            begin = int(part[-1]) + gap
        return codes

    def find(self, segments: Segments) -> Codes:
        """Return the code of each string, or -1 if it is not in the vocabulary."""
        data, ends, gap = segments
        codes = np.empty(len(ends), dtype=np.int32)
        find_segments(data, 0, ends, gap, self._slots, self._text, self._offsets, codes)
        return codes

    def key(self, code: int) -> bytes:
        """Return the string of a code, as bytes."""
        return self._text[self._offsets[code] : self._offsets[code + 1]].tobytes()

    def string(self, code: int) -> str:
        """Return the string of a code."""
        return self.key(code).decode("utf-8", "surrogatepass")

    def strings(self) -> list[str]:
        """Return all strings in the order of their codes."""
        ends = self._offsets[: self._known + 1].tolist()
        text = self._text[: ends[-1]].tobytes()
        return [text[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(ends)]

    def selected(self, kept: Bools) -> Vocabulary:
        """Return a vocabulary of the strings where ``kept`` is true, in the same order."""
        lengths = np.diff(self._offsets[: self._known + 1])
        text = self._text[: self._offsets[self._known]][np.repeat(kept, lengths)]
        return Vocabulary._of(text, np.concatenate([[0], np.cumsum(lengths[kept])]))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the strings as ``text`` and ``offsets``."""
        size = int(self._offsets[self._known])
        return {"text": self._text[:size].copy(), "offsets": self._offsets[: self._known + 1].copy()}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], prefix: str = "", *, readable: bool = True
    ) -> Vocabulary:
        """Restore a vocabulary from the output of `to_arrays`, whose names have the prefix ``prefix``.

        readable
            Raise an error if the strings are not UTF-8.
        """
        text, offsets = stored(arrays, f"{prefix}text", "u1"), stored(arrays, f"{prefix}offsets", "i8")
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(text) or not is_rising(offsets):
            raise damaged(f"{prefix}offsets", "does not divide the text into strings")
        if readable and not _is_text(text, offsets):
            raise damaged(f"{prefix}text", "is not text")
        restored = cls._of(text, offsets)
        if len(restored) != len(offsets) - 1:
            raise damaged(f"{prefix}text", "has a string twice")
        return restored

    @classmethod
    def _of(cls, text: NDArray[np.uint8], offsets: Longs) -> Vocabulary:
        made = cls()
        made._make_room(len(offsets) - 1, len(text))
        made.intern(Segments(_padded(text), offsets[1:].astype(np.int64), 0))
        return made

    def _make_room(self, strings: int, length: int) -> None:
        """Reserve memory for ``strings`` more strings of ``length`` bytes in total."""
        used = int(self._offsets[self._known])
        self._text = _enlarged(self._text, used + length + PADDING)
        self._offsets = _enlarged(self._offsets, self._known + strings + 1)
        if 4 * (self._known + strings) > 3 * len(self._slots):
            size = len(self._slots)
            while 4 * (self._known + strings) > 3 * size:
                size *= 2
            ends, again = self._offsets[1 : self._known + 1].copy(), np.empty(self._known, dtype=np.int32)
            self._slots = np.zeros(size, dtype=np.uint64)
            present = _padded(self._text[:used])
            intern_segments(present, 0, ends, 0, self._slots, self._text, self._offsets, 0, again)


def segments_of(strings: Sequence[str]) -> Segments:
    """Return strings in the layout that a `Vocabulary` reads."""
    return _separated(_SEPARATOR.join(chain(strings, _TAIL)), len(strings)) or _measured(strings)


def segments_of_lists(lists: Sequence[Sequence[str]], sizes: Longs) -> Segments:
    """Return the strings of all ``lists``, of lengths ``sizes``; raise `TypeError` if one is no string."""
    joined = _SEPARATOR.join(chain(map(_SEPARATOR.join, lists), _TAIL))
    segments = _separated(joined, int(sizes.sum()))  # also None if a list is empty: it looks like [""]
    return segments or segments_of(list(chain.from_iterable(lists)))


_TAIL = (_SEPARATOR * PADDING,)


def _separated(joined: str, count: int) -> Segments | None:
    """Find the ``count`` strings in the joined text; return None if one of them contains the separator."""
    data = np.frombuffer(joined.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    ends = np.empty(count, dtype=np.int64)
    return Segments(data, ends, 1) if segment_ends(data[:-PADDING], ends) == count else None


def _measured(strings: Iterable[str]) -> Segments:
    pieces = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.cumsum(np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces)))
    return Segments(_padded(np.frombuffer(b"".join(pieces), dtype=np.uint8)), ends, 0)


def _is_text(text: NDArray[np.uint8], offsets: Longs) -> bool:
    """Return whether all strings are UTF-8: the whole text is, and no string begins within a character."""
    begin = text[offsets[:-1][np.diff(offsets) > 0]]
    try:
        text.tobytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return not ((begin & 0xC0) == 0x80).any()


def _padded(text: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return read_only(np.concatenate([text, np.zeros(PADDING, dtype=np.uint8)]))


def read_only(array: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a read-only view: for writable arrays, the kernels would be compiled a second time."""
    view = array[:]
    view.flags.writeable = False
    return view


def _enlarged(array: NDArray[Any], size: int) -> NDArray[Any]:
    if size <= len(array):
        return array
    larger = np.zeros(max(size, 2 * len(array)), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def without_unknown(
    codes: Codes, values: NDArray[np.float32] | None, indptr: Longs, width: int
) -> SparseRows:
    """Return rows of the known codes; ``codes`` and ``indptr`` are changed in place."""
    if values is not None:
        values = values[codes != UNKNOWN]
        values = None if (values == 1).all() else values
    kept = keep_known(codes, indptr)
    return SparseRows(indptr, codes[:kept], values, width)


def frequent(vocabulary: Vocabulary, codes: Codes, min_frequency: int) -> tuple[Vocabulary, Bools]:
    """Drop strings with fewer than ``min_frequency`` codes and renumber ``codes``; also return a mask."""
    if min_frequency == 1:
        return vocabulary, np.ones(len(vocabulary), dtype=np.bool_)
    kept = np.bincount(codes, minlength=len(vocabulary)) >= min_frequency
    number = np.where(kept, np.cumsum(kept) - 1, UNKNOWN).astype(np.int32)
    np.take(number, codes, out=codes)
    return vocabulary.selected(kept), kept


def checked_start(start: Any, tokens: int) -> Longs:
    """Return the sentence starts as int64; raise an error if they are invalid or a sentence is empty."""
    given = np.asarray(start)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iu":
        raise ShapeError(
            f"start must be whole numbers, one per sentence and one more, but it has dtype {given.dtype} and"
            f" shape {given.shape}."
        )
    listed = given.astype(np.int64)
    if listed[0] != 0 or listed[-1] != tokens:
        raise ShapeError(
            f"start goes from {listed[0]} to {listed[-1]}, but there are {tokens} tokens: it must begin with"
            " 0 and end with their number."
        )
    empty = np.flatnonzero(listed[1:] <= listed[:-1])
    if len(empty):
        raise no_tokens(int(empty[0]))
    return listed


def no_tokens(sentence: int) -> ShapeError:
    """Return the error for a sentence without tokens."""
    return ShapeError(
        f"sentence {sentence} has no tokens: leave it out, of the labels too. Sentences are counted from 0."
    )


def place_of(token: int, start: Longs) -> str:
    """Return text that names the token and the sentence of a row, both counted from 0."""
    sentence = int(np.searchsorted(start, token, side="right")) - 1
    return f"token {token - int(start[sentence])} of sentence {sentence}"


def short(value: object) -> str:
    """Return a value as text for a message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def stored(arrays: Mapping[str, NDArray[Any]], name: str, kind: str) -> NDArray[Any]:
    """Return one array of a model after checking its type and its dimension."""
    found = arrays.get(name)
    if found is None:
        raise damaged(name, "is missing")
    if found.ndim != 1 or found.dtype != np.dtype(kind):
        raise damaged(name, f"has dtype {found.dtype} and shape {found.shape}")
    return found


def damaged(name: str, fault: str) -> ModelFileError:
    """Return the error for a damaged array of a model."""
    return ModelFileError(f"array {name!r} of the encoder {fault}: restore the model from a copy.")
