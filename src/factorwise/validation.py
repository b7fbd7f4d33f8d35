"""Checks of arrays and numbers before compiled code, which checks nothing, indexes or computes with them.

Whatever comes from a file or from a caller passes through these functions: they return it in the form that
kernels read, or raise an error that names it, shows what was given and says what is wanted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.types import Ints

LARGEST_WEIGHT = 1e30  # of a learned weight: sums and products of many are still far from infinite


def as_ints(
    name: str, values: object, *, size: int | None = None, dtype: DTypeLike = np.int64
) -> NDArray[Any]:
    """Return whole numbers in one dimension, ``size`` of them if that is given, as an array of ``dtype``."""
    array = _as_vector(name, values, size)
    wanted = np.dtype(dtype)
    if array.size == 0:
        return np.zeros(0, wanted)
    if array.dtype.kind not in "biu":
        raise InvalidArgumentError(f"{name} must be whole numbers, but {_shown(array)} was given.")
    limits = np.iinfo(wanted)
    if array.dtype != wanted and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        raise InvalidArgumentError(
            f"{name} must be from {limits.min} to {limits.max}, but {_shown(array)} was given."
        )
    return np.ascontiguousarray(array, wanted)


def as_floats(
    name: str, values: object, *, size: int | None = None, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Return numbers in one dimension, ``size`` of them if that is given, as an array of ``dtype``."""
    array = _as_vector(name, values, size)
    if array.size and array.dtype.kind not in "biuf":
        raise InvalidArgumentError(f"{name} must be numbers, but {_shown(array)} was given.")
    return np.ascontiguousarray(array, dtype)


def as_whole(name: str, value: object, least: int = 0, most: int = 2**62) -> int:
    """Return a whole number from ``least`` to ``most``."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value <= most:
        return int(value)
    limit = f"from {least} on" if most == 2**62 else f"from {least} to {most}"
    raise InvalidArgumentError(f"{name} must be a whole number {limit}, but {_shown(value)} was given.")


def as_number(name: str, value: object) -> float:
    """Return a finite number."""
    if isinstance(value, int | float | np.number) and not isinstance(value, bool | complex):
        try:
            number = float(value)
        except (OverflowError, TypeError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise InvalidArgumentError(f"{name} must be a finite number, but {_shown(value)} was given.")


def check_number(name: str, value: object) -> None:
    """Complain of what is no number at all; which numbers it may be, the caller says."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        raise InvalidArgumentError(f"{name} must be a number, but {_shown(value)} was given.")


def as_text(name: str, value: object) -> str:
    """Return a text."""
    if isinstance(value, str):
        return value
    raise InvalidArgumentError(f"{name} must be a text, but {_shown(value)} was given.")


def check_range(name: str, array: Ints, end: int) -> None:
    """Complain of the first entry that is not from 0 to ``end - 1``."""
    if array.size and not (int(array.min()) >= 0 and int(array.max()) < end):
        flat = array.ravel()
        place = int(np.flatnonzero((flat < 0) | (flat >= end))[0])
        wanted = f"numbers from 0 to {end - 1}" if end > 0 else "empty, for there is nothing to name"
        raise ShapeError(f"{name} must be {wanted}, but entry {place} is {int(flat[place])}.")


def check_starts(name: str, starts: Ints, entries: int) -> None:
    """Complain unless ``starts`` rises from 0 to the number of entries without falling in between."""
    if not len(starts) or int(starts[0]) != 0 or int(starts[-1]) != entries or (np.diff(starts) < 0).any():
        ends = f"goes from {int(starts[0])} to {int(starts[-1])}" if len(starts) else "is empty"
        raise ShapeError(
            f"{name} {ends}, but there are {entries} entries: it must begin with 0, never fall and end with"
            " their number."
        )


def check_permutation(name: str, array: Ints) -> None:
    """Complain unless every number from 0 to the length of ``array`` less one stands in it once."""
    check_range(name, array, len(array))
    if (np.bincount(array, minlength=len(array)) != 1).any():
        raise ShapeError(f"{name} must name each of {len(array)} entries once, but some stand in it twice.")


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Complain of the first entry that is NaN or infinite."""
    wrong = np.flatnonzero(~np.isfinite(array.ravel()))
    if len(wrong):
        place = int(wrong[0])
        raise InvalidArgumentError(f"{name} must be finite, but entry {place} is {array.ravel()[place]}.")


def check_weights(name: str, array: NDArray[Any]) -> None:
    """Complain of learned weights that are not finite, or so large that sums of them would not be."""
    if array.dtype != np.float64:
        raise InvalidArgumentError(f"{name} must be float64, but are {array.dtype}.")
    check_finite(name, array)
    if array.size and float(np.abs(array).max()) > LARGEST_WEIGHT:
        raise InvalidArgumentError(
            f"{name} must be at most {LARGEST_WEIGHT:g} in size, but {_shown(array)} was given."
        )


def as_array(name: str, values: object) -> NDArray[Any]:
    """Return values as an array of whatever shape; refuse what is none, as lists of different lengths."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{name} must be an array of numbers, but {_shown(values)} was given."
        ) from error
    if array.dtype.kind == "O":
        raise InvalidArgumentError(f"{name} must be an array of numbers, but {_shown(values)} was given.")
    return array


def _as_vector(name: str, values: object, size: int | None) -> NDArray[Any]:
    array = as_array(name, values)
    if array.ndim != 1:
        raise ShapeError(
            f"{name} must have one dimension, but {_shown(values)} of shape {array.shape} was given."
        )
    if size is not None and len(array) != size:
        raise ShapeError(f"{name} must have {size} entries, but has {len(array)}.")
    return array


def _shown(value: object) -> str:
    text = (
        f"{value.dtype} {value.tolist()!r}"
        if isinstance(value, np.ndarray) and value.size < 10
        else repr(value)
    )
    return text if len(text) <= 80 else f"{text[:77]}..."
