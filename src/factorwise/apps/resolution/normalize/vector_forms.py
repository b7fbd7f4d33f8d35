"""Read columns of vectors: Arrow lists of numbers, or texts of such lists."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.apps.resolution.normalize.words import MISSING_TEXTS, normal_words
from factorwise.errors import InvalidArgumentError
from factorwise.types import Ints

_ROWS = 1 << 13  # texts that are parsed at once


def is_vector(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is a list type that is taken for vectors.

    Integers in lists of variable length are values, such as years, and not vectors.
    """
    if pa.types.is_fixed_size_list(kind):
        return _is_number(kind.value_type)
    return bool(
        (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_floating(kind.value_type)
    )


def vector_forms(column: pa.ChunkedArray, name: str, length: str = "") -> Mapping[str, Vectors]:
    """Return the only form of a column of vectors.

    length
        Length of the vectors, if it is known; else the empty string.
    """
    return {"vector": read_vectors(column, name, int(length) if length else None)}


def read_vectors(column: pa.ChunkedArray, name: str, length: int | None = None) -> Vectors:
    """Read vectors from Arrow lists of numbers, or from texts such as ``[0.12, -3e-2]``."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        rows, numbers = _of_texts(array, name)
    else:
        rows, numbers = _of_lists(array, name)
    size = numbers.shape[1]
    if length is not None and len(rows) and size != length:
        raise InvalidArgumentError(
            f"column {name!r} holds vectors of {size} numbers, where {length} are expected: vectors can be"
            " compared only if one model made them all. Make them again, or train again."
        )
    odd = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(odd):
        raise InvalidArgumentError(
            f"column {name!r} has a number that is not finite in the vector of record {rows[odd[0]] + 1}:"
            " leave that vector out, or make it again."
        )
    largest = np.abs(numbers).max(axis=1, initial=0.0)
    some = np.flatnonzero(largest > 0.0)
    scaled = numbers[some] / largest[some, None]  # avoids overflow of the squares
    units = (scaled / np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]).astype(np.float32)
    codes = np.full(len(array), -1, np.int32)
    if not len(some):
        return Vectors(codes, np.zeros((0, size), np.float32))
    words = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(units.itemsize * size), len(units), [None, pa.py_buffer(np.ascontiguousarray(units + 0.0))]
    )
    coded = words.dictionary_encode()
    codes[rows[some]] = np.asarray(coded.indices, np.int32)
    return Vectors(codes, units[np.unique(np.asarray(coded.indices), return_index=True)[1]])


def _of_lists(array: pa.Array, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the indices of rows with a vector, and the vectors."""
    if pa.types.is_null(array.type):
        return np.zeros(0, np.int64), np.zeros((0, 0))
    if not is_vector(array.type) and not (_is_any_list(array.type) and _is_number(array.type.value_type)):
        raise InvalidArgumentError(
            f"column {name!r} holds {array.type}, which vectors cannot be made of: give lists of numbers."
        )
    lengths = np.asarray(pc.list_value_length(array).fill_null(0), np.int64)
    rows = np.flatnonzero(lengths > 0)
    flat = pc.list_flatten(array)
    if flat.null_count:
        missing = np.asarray(pc.list_parent_indices(array))[np.asarray(flat.is_null())]
        raise InvalidArgumentError(
            f"column {name!r} has a vector with a missing number in record {missing[0] + 1}: leave that"
            " vector out, or make it again."
        )
    return rows, _stacked(rows, lengths[rows], flat, name)


def _of_texts(array: pa.Array, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the indices of rows with a vector, and the vectors, parsing texts in chunks."""
    texts = pc.utf8_trim_whitespace(array)
    said = np.asarray(pc.match_substring_regex(texts, r"\d").fill_null(False))
    wordy = np.flatnonzero(~said & np.asarray(texts.is_valid()))
    for row in wordy.tolist():  # such as unknown, n/a and []
        normal = " ".join(normal_words(texts[row].as_py()))
        said[row] = bool(normal) and normal not in MISSING_TEXTS
    rows = np.flatnonzero(said)
    parts: list[NDArray[np.float64]] = []
    for low in range(0, len(rows), _ROWS):
        part = rows[low : low + _ROWS]
        inside = pc.utf8_trim(texts.take(pa.array(part)), "[]")
        cut = pc.split_pattern(inside, ",")
        flat = pc.utf8_trim_whitespace(cut.flatten())
        try:
            numbers = flat.cast(pa.float64())
        except pa.ArrowInvalid as error:
            raise InvalidArgumentError(
                f"column {name!r} is to hold vectors, but not all of its texts are lists of numbers such as"
                f" [0.12, -0.3] ({error})."
            ) from None
        lengths = np.asarray(pc.list_value_length(cut), np.int64)
        parts.append(_stacked(part, lengths, numbers, name, parts[0].shape[1] if parts else None))
    return rows, np.concatenate(parts) if parts else np.zeros((0, 0))


def _stacked(
    rows: Ints, lengths: Ints, flat: pa.Array, name: str, size: int | None = None
) -> NDArray[np.float64]:
    """Return vectors as the rows of a matrix; raise an error if their lengths differ."""
    if not len(rows):
        return np.zeros((0, 0))
    first = int(lengths[0]) if size is None else size
    other = np.flatnonzero(lengths != first)
    if len(other):
        raise InvalidArgumentError(
            f"column {name!r} has a vector of {lengths[other[0]]} numbers in record {rows[other[0]] + 1},"
            f" where the records before it have {first}: vectors can be compared only if one model made them"
            " all."
        )
    return np.asarray(flat.cast(pa.float64()), np.float64).reshape(len(rows), first)


def _is_any_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
