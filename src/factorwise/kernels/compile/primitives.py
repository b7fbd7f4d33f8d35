"""Small building blocks for pair functions, the same in plain Python and inside a compiled scan.

Each is an ordinary function with a second form for the compiler, unrolled over the width of the row so that a
scan over a cluster's members vectorises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from factorwise.kernels.compile.compiler import FAST_SUMS
from factorwise.kernels.numeric.int_lanes import (
    ABSENT,
    EIGHT_INTS,
    SIXTEEN_INTS,
    eight_ints_of,
    sixteen_ints_of,
)

NOWHERE = np.int32(-(2**31))  # the only 32-bit number that fields must not contain

_INLINE: Any = {"forceinline": True, "fastmath": set(FAST_SUMS)}


def overlap(first: Sequence[int], second: Sequence[int]) -> int:
    """Count the different values that occur in both rows; zero and below mean no value."""
    return len({value for value in first if value > 0} & set(second))


@overload(overlap, jit_options=_INLINE, strict=False)
def _compiled_overlap(first: Any, second: Any) -> Callable[..., Any] | None:
    if not (isinstance(first, types.UniTuple) and isinstance(second, types.UniTuple)):
        return None
    # Missing and repeated values become a number that no field contains; this happens once per scan, because
    # the first row stays the same.
    lines, terms = "", []
    for i in range(first.count):
        fresh = "".join(f" & (first[{i}] != first[{j}])" for j in range(i))
        lines += f"    value_{i} = first[{i}] if (first[{i}] > 0){fresh} else nowhere\n"
        terms.append(" | ".join(f"(value_{i} == second[{j}])" for j in range(second.count)))
    nowhere, convert, add = NOWHERE, "np.int32({})", "np.int32({} + {})"
    if second.dtype is EIGHT_INTS:
        convert, add = "eight_ints_of({})", "{} + {}"
    elif second.dtype is SIXTEEN_INTS:
        nowhere, convert, add = np.int32(ABSENT), "sixteen_ints_of({})", "{} + {}"
    total = convert.format(terms[0])
    for term in terms[1:]:  # int32 again after each sum, because half of the lanes would be lost otherwise
        total = add.format(total, convert.format(term))
    scope: dict[str, Any] = {
        "np": np,
        "nowhere": nowhere,
        "eight_ints_of": eight_ints_of,
        "sixteen_ints_of": sixteen_ints_of,
    }
    exec(f"def unrolled(first, second):\n{lines}    return {total}", scope)
    return scope["unrolled"]


def widened_sum(total: Any, value: Any) -> Any:
    """Add a statistic to its running sum: truth values and small integers in 32 bits, others unchanged."""
    return total + value


@overload(widened_sum, jit_options=_INLINE, strict=False)
def _compiled_widened_sum(total: Any, value: Any) -> Callable[..., Any]:
    if _is_small(value):
        return lambda total, value: np.int32(total + np.int32(value))
    if isinstance(value, types.Integer):
        return lambda total, value: total + np.int64(value)
    return lambda total, value: total + value


def empty_sum(value: Any) -> Any:
    """Return the zero for sums of statistics like ``value``."""
    return 0


@overload(empty_sum, jit_options=_INLINE, strict=False)
def _compiled_empty_sum(value: Any) -> Callable[..., Any]:
    if _is_small(value):
        return lambda value: np.int32(0)
    if isinstance(value, types.Integer):
        return lambda value: np.int64(0)
    return lambda value: 0.0


def _is_small(kind: Any) -> bool:
    whole = isinstance(kind, types.Integer)
    return isinstance(kind, types.Boolean) or (whole and kind.bitwidth <= 32)
