"""Arrays and functions by their addresses, so that one compiled loop can call any parts.

A part of a walk is a native function ``double entry(int64 context)``. The context is the address of a table
of int64 words, three for each array that the function may see: its address and its two lengths. `view_1` and
`view_2` make an array of such words in registers, without counting references; `call` calls an entry.
Interpreted, an entry is any function of one argument, so the loops themselves run in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload
from numba.np import arrayobj
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import two_forms

_LOOSE: Any = arrayobj  # numba's own functions have no types
WORDS = 3  # of a table for each array: address, length, second length


@two_forms
def call(entry: Any, context: Any) -> float:
    """Call a function by its address; interpreted, ``entry`` is the function itself."""
    return float(entry(context))


_FLAT: Any = {"forceinline": True, "_nrt": False}


@overload(call, jit_options=_FLAT)
def _call_compiled(entry: Any, context: Any) -> Callable[..., float]:
    def compiled(entry: Any, context: Any) -> float:
        return _call(entry, context)  # type: ignore[call-arg]  # the first argument is the compiler's

    return compiled


@intrinsic
def _call(typing_context: Any, entry: Any, context: Any) -> Any:
    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.DoubleType(), [ir.IntType(64)])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(function, [arguments[1]])

    return types.float64(types.int64, types.int64), generate


@intrinsic
def view_1(typing_context: Any, table: Any, word: Any, dtype: Any) -> Any:
    """View the array whose words stand in ``table`` from ``word`` on, as one of one dimension."""
    return _view(_element(dtype), 1)(table, word, dtype)


@intrinsic
def view_2(typing_context: Any, table: Any, word: Any, dtype: Any) -> Any:
    """View the array whose words stand in ``table`` from ``word`` on, as one of two dimensions."""
    return _view(_element(dtype), 2)(table, word, dtype)


def _element(dtype: Any) -> Any:
    """Return the type that a number class, a dtype or a record type in the code stands for."""
    return dtype.instance_type if isinstance(dtype, types.TypeRef) else dtype.dtype


def _view(element: Any, dimensions: int) -> Callable[..., Any]:
    def make(table: Any, word: Any, dtype: Any) -> Any:
        kind = types.Array(element, dimensions, "C")

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())

            def read(offset: int) -> Any:
                position = builder.add(arguments[1], ir.Constant(ir.IntType(64), offset))
                return builder.load(builder.gep(words, [position]))

            array = _LOOSE.make_array(kind)(target, builder)
            size = target.get_abi_sizeof(target.get_data_type(element))
            item = ir.Constant(ir.IntType(64), size)
            shape = [read(1 + k) for k in range(dimensions)]
            strides = [item] if dimensions == 1 else [builder.mul(shape[1], item), item]
            data = builder.inttoptr(read(0), target.get_data_type(element).as_pointer())
            _LOOSE.populate_array(
                array, data=data, shape=shape, strides=strides, itemsize=item, meminfo=None, parent=None
            )
            return array._getvalue()

        return kind(types.int64, types.int64, dtype), generate

    return make


def fill_words(table: NDArray[np.int64], position: int, array: NDArray[Any]) -> None:
    """Write the words of ``array`` as number ``position`` of a table; the caller keeps the array alive."""
    if not array.flags.c_contiguous or array.ndim not in (1, 2):
        raise ValueError(f"an array of shape {array.shape} that is not contiguous cannot be passed to a part")
    at = WORDS * position
    table[at] = array.ctypes.data
    table[at + 1 : at + 1 + array.ndim] = array.shape
