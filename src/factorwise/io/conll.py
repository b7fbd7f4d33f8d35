"""Column files: a token per line with its annotations in columns, and a blank line after each sentence.

CoNLL-2000, CoNLL-2003, WNUT, and the word lines of Universal Dependencies have this format. Lines of white
space count as blank, several of them as one. ``-DOCSTART-`` lines are ordinary tokens, in sentences of their
own if blank lines surround them; remove them if you do not want them. A BOM is dropped, and lines may end in
CR LF.

A file is read in blocks of bytes. NumPy counts the columns of all lines of a block at once, so that single
lines are examined only if there is something to report; equal strings are stored once.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DataFileError, InvalidArgumentError, ShapeError, require
from factorwise.io.atomic import atomic_text
from factorwise.io.file_kinds import known_encoding, refuse_other_kind
from factorwise.io.given_texts import read_bytes
from factorwise.types import Bools, Ints

_BLOCK = 1 << 17  # bytes that are read at a time
_TOKENS = 1 << 14  # tokens in a chunk of text written
_WANTED = "a text with a token and its columns on each line"
_FIELD = re.compile(rb"[^ \t\n]+")
_SPACE, _TAB, _NEWLINE = b" \t\n"


@dataclass(frozen=True, slots=True, eq=False)
class ColumnFile:
    """The tokens of a column file, with every string stored once.

    vocabulary : object[strings]
        The different strings of all columns.
    codes : int32[columns, tokens]
        The string in each column of each token.
    start : int64[sentences + 1]
        Sentence ``s`` has the tokens ``start[s]:start[s + 1]``.
    line : int32[tokens]
        The line of each token in the file, counted from 1.
    separator
        The separator of columns; None for runs of spaces and tabs, which are written as one space.
    comments
        Comment lines before a sentence, by its number; the number of sentences for those at the end.
    """

    vocabulary: NDArray[np.object_]
    codes: NDArray[np.int32]
    start: NDArray[np.int64]
    line: NDArray[np.int32]
    separator: str | None = None
    comments: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def n_tokens(self) -> int:
        """Number of tokens of all sentences."""
        return len(self.line)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.codes)

    @property
    def columns(self) -> tuple[NDArray[np.object_], ...]:
        """All columns, each as `column` gives it."""
        return tuple(self.column(number) for number in range(self.n_columns))

    def column(self, number: int) -> NDArray[np.object_]:
        """Return the strings of one column over all tokens; negative numbers count from the last column."""
        return self.vocabulary[self._codes_of(number)]

    def sentences(self, number: int) -> list[list[str]]:
        """Return the strings of one column, a list for each sentence."""
        strings: list[str] = self.column(number).tolist()
        bounds = self.start.tolist()
        return [strings[first:after] for first, after in pairwise(bounds)]

    def encoded(self, number: int) -> tuple[list[str], NDArray[np.int32]]:
        """Return the different strings of one column, in the order of the vocabulary, and their codes."""
        codes = self._codes_of(number)
        used = np.zeros(len(self.vocabulary), dtype=bool)
        used[codes] = True
        rank = np.cumsum(used, dtype=np.int32) - np.int32(1)
        return self.vocabulary[used].tolist(), rank[codes]

    def _codes_of(self, number: int) -> NDArray[np.int32]:
        columns = self.n_columns
        allowed = -columns <= number < columns
        require(allowed, "column", number, f"from 0 to {columns - 1}, or from -{columns} to -1")
        codes: NDArray[np.int32] = self.codes[number]
        return codes


def read_columns(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
    comment: str | None = None,
) -> ColumnFile:
    """Read a column file.

    separator
        One character between columns; two in a row enclose an empty column. By default a tab if the first
        token's line has one; otherwise columns are separated by runs of spaces or tabs.
    encoding
        Name of the text encoding.
    comment
        The beginning of comment lines, such as ``"# "``; by default there are none. Comments come before the
        first token of a sentence; a later line that begins like this is a token. As the first line of a
        sentence it is a comment if its number of columns is not that of a token, and a token if a separator
        character shows that it has all of them. If columns are words between spaces, this cannot be decided,
        and the line is refused, so that no token is ever lost.
    """
    content = read_bytes(path)
    return parse_columns(
        content, name=os.fspath(path), separator=separator, encoding=encoding, comment=comment
    )


def parse_columns(
    content: bytes,
    *,
    name: str = "input",
    separator: str | None = None,
    encoding: str = "utf-8",
    comment: str | None = None,
) -> ColumnFile:
    """Read a column file from its bytes.

    The other arguments as in `read_columns`, with ``name`` for errors.
    """
    if separator is not None:
        _check_separator(separator)
    prefix = b"" if comment is None else comment.encode()
    plain = comment is None or (comment.strip() != "" and "\n" not in comment)
    require(plain, "comment", comment, "None or the beginning of a line, such as '# '")
    return _Reader(_as_utf8(content, name, encoding), name, separator, prefix).read()


def format_columns(file: ColumnFile, extra_columns: Sequence[Sequence[str]] = ()) -> Iterator[str]:
    """Yield the text of a column file in chunks, with further columns after its own."""
    _check_writable(file, extra_columns)
    joined = (" " if file.separator is None else file.separator).join
    bounds = file.start.tolist()
    first = 0
    while first < len(file):
        after = max(first + 1, int(np.searchsorted(file.start, bounds[first] + _TOKENS, side="right")) - 1)
        part = slice(bounds[first], bounds[after])
        own = [file.vocabulary[codes[part]].tolist() for codes in file.codes]
        lines = list(map(joined, zip(*own, *(column[part] for column in extra_columns), strict=True)))
        chunk: list[str] = []
        for sentence in range(first, after):
            chunk += file.comments.get(sentence, ())
            chunk += lines[bounds[sentence] - part.start : bounds[sentence + 1] - part.start]
            chunk.append("")
        yield "\n".join([*chunk, ""])
        first = after
    yield "".join(f"{line}\n" for line in file.comments.get(len(file), ()))


def write_columns(
    path: str | os.PathLike[str],
    file: ColumnFile,
    extra_columns: Sequence[Sequence[str]] = (),
    *,
    encoding: str = "utf-8",
) -> None:
    """Write what `format_columns` yields, completely or not at all."""
    try:
        with atomic_text(path, encoding=encoding) as stream:
            for chunk in format_columns(file, extra_columns):
                stream.write(chunk)
    except UnicodeEncodeError as error:
        raise DataFileError(
            f"{os.fspath(path)}: {error.object[error.start]!r} cannot be written in {encoding}, and nothing"
            " was written. Give encoding='utf-8'."
        ) from None


class _Numbers(dict[bytes, int]):
    """Numbers strings in the order of their first lookup."""

    def __missing__(self, key: bytes) -> int:
        self[key] = number = len(self)
        return number


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Whole lines of a file, as bytes and as an array of them."""

    content: bytes
    text: NDArray[np.uint8]
    end: Ints

    @property
    def start(self) -> Ints:
        """Where each line starts."""
        return np.concatenate(([0], self.end[:-1] + 1))

    def count(self, mask: Bools) -> Ints:
        """Count the marked bytes of each line."""
        return np.diff(np.cumsum(mask, dtype=np.int32)[self.end], prepend=0)

    def line(self, index: int) -> str:
        """One line without its end."""
        first = self.end[index - 1] + 1 if index else 0
        return self.content[first : self.end[index]].decode()


class _Reader:
    """Goes through the blocks of a file and keeps what later blocks need of earlier ones."""

    def __init__(self, content: bytes, name: str, separator: str | None, comment: bytes) -> None:
        self.content = content
        self.name = name
        self.comment = comment
        self.first_line, line = self._first_token()
        self.first_may_be_comment = line.startswith(b"#")
        if separator is None and b"\t" in line:
            separator = "\t"
        self.separator = separator
        self.mark = None if separator is None else separator.encode()
        self.width = len(_FIELD.findall(line)) if self.mark is None else line.count(self.mark) + 1
        self.numbers = _Numbers()
        self.lines = self.tokens = self.sentences = 0
        self.within_sentence = False
        self.codes: list[NDArray[np.int32]] = []
        self.line: list[NDArray[np.int32]] = []
        self.heads: list[Ints] = []
        self.comments: dict[int, tuple[str, ...]] = {}

    def read(self) -> ColumnFile:
        """Read all blocks and return the file."""
        for block in _blocks(self.content):
            self._take(block)
        return ColumnFile(
            _strings([key.decode() for key in self.numbers]),
            np.ascontiguousarray(np.concatenate(self.codes).T),
            np.concatenate([*self.heads, [self.tokens]]).astype(np.int64),
            np.concatenate(self.line),
            self.separator,
            self.comments,
        )

    def _first_token(self) -> tuple[int, bytes]:
        """Return the number and content of the first line that is neither blank nor looks like a comment."""
        number = 0
        for block in _blocks(self.content):
            for line in block.split(b"\n")[:-1]:
                number += 1
                if line.strip(b" \t") and not (self.comment and line.startswith(self.comment)):
                    return number, line
        besides = " besides comments" if self.comment else ""
        raise DataFileError(
            f"{self.name}: {number} lines, but no tokens{besides}. Check that this is the right file: a"
            " column file has a token and its columns on each line."
        )

    def _take(self, content: bytes) -> None:
        """Keep the tokens of one block."""
        text = np.frombuffer(content, dtype=np.uint8)
        block = _Block(content, text, np.flatnonzero(text == _NEWLINE))
        gap = (text == _SPACE) | (text == _TAB) | (text == _NEWLINE)
        word_start = ~gap
        word_start[1:] &= gap[:-1]
        width = block.count(word_start)
        is_token = width > 0
        if self.mark is not None:
            width = block.count(text == self.mark[0]) + 1
        comments = self._comments_of(block, is_token, width) if self.comment else []
        is_token[comments] = False
        ragged = is_token & (width != self.width)
        if ragged.any():
            raise self._ragged(block, int(ragged.argmax()), width)
        if self.mark is not None or comments:
            content = text[np.repeat(is_token, block.end + 1 - block.start)].tobytes()
        fields = self._fields(content)
        codes = np.fromiter(map(self.numbers.__getitem__, fields), dtype=np.int32, count=len(fields))
        self.codes.append(codes.reshape(-1, self.width))
        self._keep_sentences(is_token, {index: block.line(index) for index in comments})

    def _fields(self, content: bytes) -> list[bytes]:
        """Return the columns of all lines, concatenated."""
        if self.mark is not None:
            return content.replace(b"\n", self.mark).split(self.mark)[:-1]
        if any(character in content for character in (b"\r", b"\v", b"\f")):
            return _FIELD.findall(content)  # bytes.split would treat these as white space
        return content.split()

    def _comments_of(self, block: _Block, is_token: Bools, width: Ints) -> list[int]:
        """Return which lines of a block are comments."""
        begins = is_token.copy()
        for offset, byte in enumerate(self.comment):
            begins &= block.text[np.minimum(block.start + offset, len(block.text) - 1)] == byte
        comments: list[int] = []
        for index in np.flatnonzero(begins).tolist():
            behind_token = self.within_sentence if index == 0 else is_token[index - 1]
            if behind_token and comments[-1:] != [index - 1]:
                continue
            if width[index] != self.width or len(self.comment.strip()) > 1:  # more than a sign is meant
                comments.append(index)
            elif self.mark is None or self.width == 1:
                raise DataFileError(
                    f"{self._place(index)}: {_shown(block.line(index))} begins like a comment, but has"
                    f" the {self.width} columns of a token, so it could be either. Separate columns by"
                    " tabs, give a longer beginning of comments, or comment=None if the file has none."
                )
        return comments

    def _keep_sentences(self, is_token: Bools, comments: dict[int, str]) -> None:
        lines = np.flatnonzero(is_token)
        head = is_token.copy()
        head[1:] &= ~is_token[:-1]
        head[0] &= not self.within_sentence
        heads = np.flatnonzero(head)
        for index, line in comments.items():
            sentence = self.sentences + int(np.searchsorted(heads, index))
            self.comments[sentence] = (*self.comments.get(sentence, ()), line)
        self.heads.append(np.flatnonzero(head[lines]) + self.tokens)
        self.line.append((lines + self.lines + 1).astype(np.int32))
        self.sentences += len(heads)
        self.tokens += len(lines)
        self.lines += len(is_token)
        self.within_sentence = bool(is_token[-1])

    def _ragged(self, block: _Block, index: int, width: Ints) -> DataFileError:
        line, columns_found = block.line(index), int(width[index])
        between = "runs of spaces or tabs" if self.separator is None else repr(self.separator)
        remedy = f"Columns are separated by {between} here: complete the line, or give another separator."
        if line.startswith("#") and not self.comment:
            remedy = f"If it is a comment, give comment={'# ' if line[1:2] == ' ' else '#'!r}. {remedy}"
        elif self.first_may_be_comment and not self.comment:
            remedy = f"If line {self.first_line} is a comment, give comment='# '. {remedy}"
        return DataFileError(
            f"{self._place(index)}: {_shown(line)} has {columns_found}"
            f" column{'s' * (columns_found != 1)}, but line {self.first_line} has {self.width}."
            f" {remedy}"
        )

    def _place(self, index: int) -> str:
        return f"{self.name}, line {self.lines + index + 1}"


def _blocks(content: bytes) -> Iterator[bytes]:
    """Cut at ends of lines, all of which become line feeds."""
    position = 0
    while position < len(content):
        end = content.rfind(b"\n", position, position + _BLOCK) + 1
        if not end:  # a line longer than a block
            end = content.find(b"\n", position) + 1 or len(content)
        block = content[position:end]
        if not block.endswith(b"\n"):
            block += b"\n"
        yield block.replace(b"\r\n", b"\n") if b"\r" in block else block
        position = end


def _shown(line: str) -> str:
    return repr(line if len(line) <= 60 else f"{line[:57]}...")


def _strings(strings: list[str]) -> NDArray[np.object_]:
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    return array


def _as_utf8(content: bytes, name: str, encoding: str) -> bytes:
    """Check that content is text, and return it in UTF-8 without a BOM."""
    codec = known_encoding(encoding)
    if codec is None:
        raise InvalidArgumentError(
            f"encoding must be the name of a text encoding, but {encoding!r} was given."
            " Common ones are 'utf-8', 'latin-1' and 'utf-16'."
        )
    try:
        if codec != "utf-8":
            content = content.decode(encoding).encode()
        elif not content.isascii():
            content.decode()
    except UnicodeDecodeError as error:
        refuse_other_kind(content, name, _WANTED)
        line = content.count(b"\n", 0, error.start) + 1
        likely = "utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin-1"
        raise DataFileError(
            f"{name}, line {line}: byte 0x{content[error.start]:02x} is not {encoding}. If the file has"
            f" another encoding, name it, as in encoding={likely!r}; otherwise fix the line."
        ) from None
    if (position := content.find(b"\0")) >= 0:
        refuse_other_kind(content, name, _WANTED)
        line = content.count(b"\n", 0, position) + 1
        raise DataFileError(
            f"{name}, line {line}: contains a NUL byte, which text never does. Check that this is a"
            " text file; if it is one in UTF-16, give encoding='utf-16'."
        )
    return content.removeprefix(codecs.BOM_UTF8)


def _check_separator(separator: str) -> None:
    usable = len(separator) == 1 and separator.isascii() and separator not in "\r\n\0"
    require(usable, "separator", separator, "None or one ASCII character that ends no line")


def _check_writable(file: ColumnFile, extra_columns: Sequence[Sequence[str]]) -> None:
    """Refuse content that would be read back differently."""
    separator = file.separator
    if separator is not None:
        _check_separator(separator)
    for number, column in enumerate(extra_columns):
        if len(column) != file.n_tokens:
            raise ShapeError(
                f"extra column {number} has {len(column)} strings, but the file has {file.n_tokens} tokens:"
                " give one for every token."
            )
    bad = re.compile(r"[ \t\n]|^$" if separator is None else f"[\n{re.escape(separator)}]")
    for text in {*file.vocabulary.tolist(), *chain.from_iterable(extra_columns)}:
        if bad.search(text):
            between = "spaces" if separator is None else repr(separator)
            raise InvalidArgumentError(
                f"{text!r} cannot be written into a column between {between}, because it would be read"
                " back differently. Replace it, or separate the columns by another character."
            )
