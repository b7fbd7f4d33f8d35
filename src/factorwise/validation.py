"""Check arrays and numbers before they reach compiled code, which checks nothing itself.

Everything that comes from a file or from a caller passes through these functions. They return it in the form
that kernels read, or raise an error that names it, shows what was given and says what is allowed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.types import Ints

LARGEST_WEIGHT = 1e30  # of a learned weight: sums and products of many such weights stay finite


def as_ints(
    name: str, values: object, *, size: int | None = None, dtype: DTypeLike = np.int64
) -> NDArray[Any]:
    """Return a one-dimensional array of whole numbers.

    name
        What the values are, for the message.
    values
        The numbers: a list or an array.
    size
        How many there must be; any number by default.
    dtype
        The type of the array that is returned; numbers that do not fit it are refused.
    """
    array = _as_vector(name, values, size)
    wanted = np.dtype(dtype)
    if array.size == 0:
        return np.zeros(0, wanted)
    if array.dtype.kind not in "biu":
        raise InvalidArgumentError(f"{name} must be whole numbers, but {shown(array)} was given.")
    limits = np.iinfo(wanted)
    if array.dtype != wanted and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        raise InvalidArgumentError(
            f"{name} must be from {limits.min} to {limits.max}, but {shown(array)} was given."
        )
    return np.ascontiguousarray(array, wanted)


def as_floats(
    name: str, values: object, *, size: int | None = None, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Return a one-dimensional array of numbers; the arguments are those of `as_ints`."""
    array = _as_vector(name, values, size)
    if array.size and array.dtype.kind not in "biuf":
        raise InvalidArgumentError(f"{name} must be numbers, but {shown(array)} was given.")
    return np.ascontiguousarray(array, dtype)


def as_whole(name: str, value: object, least: int = 0, most: int = 2**62) -> int:
    """Return ``value`` as an int; it must be a whole number from ``least`` to ``most``."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value <= most:
        return int(value)
    limit = f"from {least} on" if most == 2**62 else f"from {least} to {most}"
    raise InvalidArgumentError(f"{name} must be a whole number {limit}, but {shown(value)} was given.")


def as_number(name: str, value: object) -> float:
    """Return ``value`` as a float; it must be a finite number."""
    if isinstance(value, int | float | np.number) and not isinstance(value, bool | complex):
        try:
            number = float(value)
        except (OverflowError, TypeError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise InvalidArgumentError(f"{name} must be a finite number, but {shown(value)} was given.")


def check_count(name: str, value: object, least: int = 1) -> None:
    """Raise an error unless ``value`` is a whole number of at least ``least``."""
    wanted = "zero or more" if least == 0 else f"at least {least}"
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value >= 2**63:
        wanted = f"a whole number, {wanted}"
    elif value >= least:
        return
    raise InvalidArgumentError(f"{name} must be {wanted}, but {shown(value)} was given.")


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    finite: bool = False,
) -> None:
    """Raise an error unless ``value`` is a number within the limits; NaN never is.

    above, below
        Limits that are themselves not allowed.
    least, most
        Limits that are allowed.
    finite
        Whether infinite numbers are refused, too.
    """
    limits = (above, least, below, most)
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if (
        not is_number
        or (above is not None and not value > above)
        or (least is not None and not value >= least)
        or (below is not None and not value < below)
        or (most is not None and not value <= most)
        or (finite and not abs(value) < math.inf)
    ):
        wanted = _limits_in_words(*limits)
        if finite or not is_number:
            kind = "a finite number" if finite else "a number"
            wanted = f"{kind}{' ' if wanted.startswith('greater') else ', ' if wanted else ''}{wanted}"
        raise InvalidArgumentError(f"{name} must be {wanted}, but {shown(value)} was given.")


def _limits_in_words(
    above: float | None, least: float | None, below: float | None, most: float | None
) -> str:
    if least is not None and most is not None:
        return f"between {least:g} and {most:g}"
    if above is not None and below is not None:
        return f"between {above:g} and {below:g}, neither included"
    lower = f"greater than {above:g}" if above is not None else f"at least {least:g}" if least else ""
    if most is not None or below is not None:
        upper = f"at most {most:g}" if most is not None else f"less than {below:g}"
        return f"{lower or 'zero or more'} and {upper}"
    return "zero or more" if least == 0 else "greater than zero" if above == 0 else lower


def as_text(name: str, value: object) -> str:
    """Return ``value``, which must be a string."""
    if isinstance(value, str):
        return value
    raise InvalidArgumentError(f"{name} must be a string, but {shown(value)} was given.")


def check_range(name: str, array: Ints, end: int) -> None:
    """Raise an error unless every entry is from 0 to ``end - 1``; it names the first that is not."""
    if array.size and not (int(array.min()) >= 0 and int(array.max()) < end):
        flat = array.ravel()
        position = int(np.flatnonzero((flat < 0) | (flat >= end))[0])
        wanted = (
            f"numbers from 0 to {end - 1}" if end > 0 else ("empty, because there are no entries to refer to")
        )
        raise ShapeError(f"{name} must be {wanted}, but entry {position} is {int(flat[position])}.")


def check_starts(name: str, starts: Ints, entries: int) -> None:
    """Raise an error unless ``starts`` rises from 0 to the number of entries and never falls."""
    if not len(starts) or int(starts[0]) != 0 or int(starts[-1]) != entries or not is_rising(starts):
        ends = f"goes from {int(starts[0])} to {int(starts[-1])}" if len(starts) else "is empty"
        raise ShapeError(
            f"{name} {ends}, but there are {entries} entries: it must begin with 0, never fall, and end"
            " with the number of entries."
        )


def is_rising(numbers: NDArray[Any], *, strictly: bool = False) -> bool:
    """Whether no number is smaller than the one before it, or, if ``strictly``, each is larger.

    An array with NaN is not rising. Neighbors are compared, not subtracted, because a difference of two whole
    numbers can overflow.
    """
    before, after = numbers[:-1], numbers[1:]
    return bool((after > before if strictly else after >= before).all())


def check_permutation(name: str, array: Ints) -> None:
    """Raise an error unless ``array`` contains each number from 0 to its length minus one exactly once."""
    check_range(name, array, len(array))
    if (np.bincount(array, minlength=len(array)) != 1).any():
        raise ShapeError(f"{name} must name each of {len(array)} entries exactly once, but some occur twice.")


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Raise an error that names the first entry that is NaN or infinite."""
    wrong = np.flatnonzero(~np.isfinite(array.ravel()))
    if len(wrong):
        position = int(wrong[0])
        raise InvalidArgumentError(
            f"{name} must be finite, but entry {position} is {array.ravel()[position]}."
        )


def check_weights(name: str, array: NDArray[Any]) -> None:
    """Raise an error if learned weights are not finite, or so large that sums of them would not be."""
    if array.dtype != np.float64:
        raise InvalidArgumentError(f"{name} must be float64, but have dtype {array.dtype}.")
    check_finite(name, array)
    if array.size and float(np.abs(array).max()) > LARGEST_WEIGHT:
        raise InvalidArgumentError(
            f"{name} must be at most {LARGEST_WEIGHT:g} in absolute value, but {shown(array)} was given."
        )


def as_array(name: str, values: object) -> NDArray[Any]:
    """Return values as an array of any shape; refuse what NumPy cannot make one, such as ragged lists."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{name} must be an array of numbers, but {shown(values)} was given."
        ) from error
    if array.dtype.kind == "O":
        raise InvalidArgumentError(f"{name} must be an array of numbers, but {shown(values)} was given.")
    return array


def as_numbers(name: str, values: object, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return numbers of any shape as an array of ``dtype``; an integer ``dtype`` takes whole numbers only."""
    array = as_array(name, values)
    wanted = np.dtype(dtype)
    if array.size and array.dtype.kind not in ("biu" if wanted.kind == "i" else "biuf"):
        whole = "whole numbers" if wanted.kind == "i" else "numbers"
        raise InvalidArgumentError(f"{name} must be {whole}, but {shown(values)} was given.")
    return array.astype(wanted, copy=False)


def _as_vector(name: str, values: object, size: int | None) -> NDArray[Any]:
    array = as_array(name, values)
    if array.ndim != 1:
        raise ShapeError(
            f"{name} must have one dimension, but {shown(values)} of shape {array.shape} was given."
        )
    if size is not None and len(array) != size:
        raise ShapeError(f"{name} must have {size} entries, but has {len(array)}.")
    return array


def shown(value: object) -> str:
    """Return a value in short form, for a message."""
    text = (
        f"{value.dtype} {value.tolist()!r}"
        if isinstance(value, np.ndarray) and value.size < 10
        else repr(value)
    )
    return text if len(text) <= 80 else f"{text[:77]}..."
