"""The decorators that compile, with the flags they share, and where compiled code is kept.

numba keeps its cache beside the source file if it can write there, and otherwise in the user's cache folder;
a lock-free replace makes the cache safe for concurrent processes. If neither folder can be written, kernels
are compiled again in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.extending import register_jitable

P = ParamSpec("P")
R = TypeVar("R")

# Sums may be reordered so that they vectorise; infinities and NaN keep their meaning (hard zeros are -inf).
FAST_SUMS = frozenset({"nsz", "arcp", "contract", "reassoc"})


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on first use, without the global interpreter lock, and keep the result on disk."""
    return _compiled(function)


def fast_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `kernel`, with sums that may be reordered."""
    return _compiled(function, fastmath=set(FAST_SUMS))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like `fast_kernel`, always inlined into the kernel that calls it."""
    return _compiled(function, fastmath=set(FAST_SUMS), forceinline=True)


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `kernel`, always inlined into the kernel that calls it.

    For code in which ``-inf`` meets ``-inf``: reordering ``a * x + (1 - a) * y`` may compute their
    difference.
    """
    return _compiled(function, forceinline=True)


def lean_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `kernel`, without reference counting, for functions that create no arrays.

    Counting takes an atomic operation whenever an array is read from a record of arrays, which happens sixty
    times in a sampler's step: a third of its time.
    """
    return _compiled(function, _nrt=False)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` as a part of the lean kernels that call it, and only for them.

    Python cannot call the result (see `exposed`). Without the Python wrapper and the copy on disk, a function
    with many array arguments compiles four times faster.
    """
    return _part(function)


def hot(function: Callable[P, R]) -> Callable[P, R]:
    """Like `inner`, always inlined: passing records of arrays costs as much as a short function does."""
    return _part(function, forceinline=True)


def part_of_entry(function: Callable[P, R]) -> Callable[P, R]:
    """Like `hot`, with sums that may be reordered, for the functions of generated entries."""
    return _part(function, fastmath=set(FAST_SUMS), forceinline=True)


def part_with_arrays(function: Callable[P, R]) -> Callable[P, R]:
    """Like `part_of_entry`, for functions that may create arrays, as methods of arrays do internally."""
    return _part(function, _nrt=True, fastmath=set(FAST_SUMS), forceinline=True)


def exposed(function: Callable[P, R]) -> Callable[P, R]:
    """Compile an `inner` function again so that Python can call it, for tests of it alone."""
    return _compiled(cast("Any", function).py_func, _nrt=False)


def shared(function: Callable[P, R]) -> Callable[P, R]:
    """Let compiled code call ``function``, inlined, and Python call it uncompiled."""
    return _inlined(function)


def _inlined(function: Callable[P, R], **more: Any) -> Callable[P, R]:
    flags: Any = {"forceinline": True, "_nrt": False, "error_model": "numpy", **more}
    return register_jitable(**flags)(function)


def strict(function: Callable[P, R]) -> Callable[P, R]:
    """Like `shared`, but with sums that are never reordered, also in generated code.

    For formulas whose rounding matters, such as differences that must be exactly zero.
    """
    # stated, because it would otherwise be that of the caller
    return two_forms(_inlined(function, fastmath=False))


def two_forms(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a plain function that has another form in compiled code.

    That form is given by `numba.extending.overload`.
    """
    function.has_two_forms = True  # type: ignore[attr-defined]  # generated modules import it as it is
    return function


def _part(function: Callable[P, R], **flags: Any) -> Callable[P, R]:
    bare: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, **flags}
    return cast("Callable[P, R]", numba.njit(nogil=True, error_model="numpy", **bare)(function))


def _compiled(function: Callable[P, R], **flags: Any) -> Callable[P, R]:
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy", **flags)(function)
    except RuntimeError:  # numba found no writable folder
        compiled = numba.njit(nogil=True, error_model="numpy", **flags)(function)
    return cast("Callable[P, R]", compiled)
