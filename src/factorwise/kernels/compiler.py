"""The one decorator that compiles, with the flags every kernel shares, and where compiled code is kept.

numba keeps its cache beside the source file where it can write there, and in the user's cache folder
otherwise; a lock-free replace makes the cache safe for concurrent processes. Nothing breaks where
neither folder can be written: the kernel is compiled again in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Sums may be reordered so that they vectorise; infinities and NaN keep their meaning (hard zeros are -inf).
FAST_SUMS = frozenset({"nsz", "arcp", "contract", "reassoc"})


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on first use, without the interpreter lock, keeping the result on disk."""
    return _compiled(function)


def fast_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `kernel`, with sums that may be reordered."""
    return _compiled(function, fastmath=set(FAST_SUMS))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like `fast_kernel`, always inlined into the kernel that calls it."""
    return _compiled(function, fastmath=set(FAST_SUMS), forceinline=True)


def _compiled(function: Callable[P, R], **flags: Any) -> Callable[P, R]:
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy", **flags)(function)
    except RuntimeError:  # numba found no folder where it may write
        compiled = numba.njit(nogil=True, error_model="numpy", **flags)(function)
    return cast("Callable[P, R]", compiled)
