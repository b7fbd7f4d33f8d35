"""Attributes of tokens as dense or sparse matrices, with one row per token and one column per attribute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.features.vocabulary import (
    Codes,
    Encoded,
    Longs,
    StringTable,
    Vocabulary,
    damaged,
    no_tokens,
    place_of,
    segments_of,
    short,
)
from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.types import Bools, Floats
from factorwise.variables.sparse_rows import SparseRows


class _Block(NamedTuple):
    """The compressed rows of one matrix."""

    counts: Longs
    indices: Codes
    values: Floats
    width: int


class MatrixEncoder:
    """Encoder that converts matrices of numbers into sparse rows.

    names
        The column names; ``feature 0``, ``feature 1``... by default.

    >>> encoder = MatrixEncoder(["length", "capital"])
    >>> rows, start = encoder.fit_encode([[[3, 1], [5, 0]], [[2, 0]]])
    >>> rows.to_dense().tolist(), start.tolist()
    ([[3.0, 1.0], [5.0, 0.0], [2.0, 0.0]], [0, 2, 3])
    """

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self._names: list[str] | None = None
        self.width = 0
        if names is not None:
            self._names = list(names)
            self.width = len(self._names)
            twice = next((name for name, count in Counter(self._names).items() if count > 1), None)
            if twice is not None:
                raise InvalidArgumentError(f"two columns are named {twice!r}: give each a name of its own.")

    def fit_encode(self, matrices: Any, lengths: Any = None, *, further: bool = False) -> Encoded:
        """Learn the number of columns and return the rows.

        matrices
            One matrix per sentence, or one for all tokens: SciPy matrices, arrays, or lists of rows.
        lengths
            The number of tokens of each sentence, if there is one matrix for all tokens.
        further
            Require the same number of columns as before.
        """
        blocks = _blocks(matrices, lengths)
        if not blocks:
            raise InvalidArgumentError("there are no sentences to learn attributes from: give at least one.")
        if self._names is None and not further:
            self.width = blocks[0].width
        return self._encoded(blocks, lengths)

    def encode(self, matrices: Any, lengths: Any = None) -> Encoded:
        """Return the rows of matrices, which must have the number of columns that was learned."""
        return self._encoded(_blocks(matrices, lengths), lengths)

    def _encoded(self, blocks: list[_Block], lengths: Any) -> Encoded:
        sizes = np.array([len(block.counts) for block in blocks], dtype=np.int64)
        if lengths is not None:
            sizes = _checked_lengths(lengths, int(sizes.sum()))
        if not sizes.all():
            raise no_tokens(int(np.flatnonzero(sizes == 0)[0]))
        start = np.concatenate([[0], np.cumsum(sizes)])
        for number, block in enumerate(blocks):
            if block.width != self.width:
                whose = "X has" if lengths is not None else f"sentence {number} has"
                source = "names" if self._names is not None else "columns learned"
                raise ShapeError(
                    f"{whose} {block.width} columns, but there are {self.width} {source}: give every sentence"
                    " the same columns."
                )
        counts = np.concatenate([np.zeros(1, np.int64), *(block.counts for block in blocks)])
        indices = np.concatenate([np.zeros(0, np.int32), *(block.indices for block in blocks)])
        exact = np.concatenate([np.zeros(0), *(block.values for block in blocks)])
        indptr = np.cumsum(counts)
        with np.errstate(over="ignore"):
            values = exact.astype(np.float32)
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            token = int(np.searchsorted(indptr, wrong[0], side="right")) - 1
            raise InvalidArgumentError(
                f"{place_of(token, start)} has {exact[wrong[0]]} for"
                f" {self.names()[int(indices[wrong[0]])]!r}: values are finite numbers, of 32 bits. Replace"
                " it, or add a column that says it is missing."
            )
        rows = SparseRows(indptr, indices, None if (values == 1).all() else values, self.width)
        return Encoded(rows, start)

    def reads_like(self, other: Any) -> bool:
        """Return whether another encoder also reads matrices."""
        return isinstance(other, MatrixEncoder)

    def names(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._names or StringTable(self.width, lambda column: f"feature {column}")

    def slots(self) -> NDArray[np.int32]:
        """Return the column numbers, because each column is its own slot."""
        return np.arange(self.width, dtype=np.int32)

    def select(self, kept: Bools) -> tuple[MatrixEncoder, Bools]:
        """Return this encoder unchanged, because columns of matrices cannot be dropped."""
        return self, np.ones_like(kept)

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and JSON values from which `from_arrays` restores the encoder."""
        metadata = {"encoder": "matrices", "width": self.width, "named": self._names is not None}
        if self._names is None:
            return {}, metadata
        vocabulary = Vocabulary()
        vocabulary.intern(segments_of(self._names))
        return vocabulary.to_arrays(), metadata

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> MatrixEncoder:
        """Restore an encoder from the output of `to_arrays`."""
        if not metadata["named"]:
            made = cls()
            made.width = int(metadata["width"])
            return made
        made = cls(Vocabulary.from_arrays(arrays).strings())
        if made.width != metadata["width"]:
            raise damaged("offsets", f"has {made.width} names for {metadata['width']} columns")
        return made


def _checked_lengths(lengths: Any, tokens: int) -> Longs:
    given = np.asarray(lengths)
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given < 0).any() or given.sum() != tokens:
        raise ShapeError(
            f"lengths must be the numbers of tokens of the sentences, {tokens} in all, but"
            f" {short(lengths)} was given."
        )
    return given.astype(np.int64)


def _blocks(matrices: Any, lengths: Any) -> list[_Block]:
    """Return the rows of each sentence, or of all tokens at once if ``lengths`` is given."""
    if lengths is not None:
        return [_block(matrices, "X")]
    if hasattr(matrices, "tocsr") or getattr(matrices, "ndim", 3) < 3:
        raise InvalidArgumentError(
            "X is one matrix: say with lengths how many tokens each sentence has, or give a list of matrices,"
            " one per sentence."
        )
    return [_block(matrix, f"sentence {number}") for number, matrix in enumerate(matrices)]


def _block(matrix: Any, whose: str) -> _Block:
    if hasattr(matrix, "tocsr"):
        rows = matrix.tocsr()
        if rows.ndim != 2 or rows.dtype.kind not in "biuf":
            raise _not_a_matrix(whose, rows.shape, rows.dtype)
        kept = rows.data != 0
        ends = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
        indices = rows.indices[kept].astype(np.int32)
        return _Block(np.diff(ends), indices, rows.data[kept].astype(np.float64), rows.shape[1])
    try:
        dense = np.asarray(matrix)
    except ValueError:
        raise ShapeError(
            f"{whose} has rows of different lengths: give every token the same columns."
        ) from None
    if dense.ndim != 2 or dense.dtype.kind not in "biuf":
        raise _not_a_matrix(whose, dense.shape, dense.dtype)
    present = dense != 0
    counts = np.count_nonzero(present, axis=1).astype(np.int64)
    indices = np.nonzero(present)[1].astype(np.int32)
    return _Block(counts, indices, dense[present].astype(np.float64), dense.shape[1])


def _not_a_matrix(whose: str, shape: tuple[int, ...], dtype: object) -> ShapeError:
    return ShapeError(
        f"{whose} has shape {shape} and dtype {dtype}: give a matrix of numbers, tokens x columns."
    )
