"""Short arrays on the stack, for running sums that the compiler shall keep in registers.

Nothing else can point to them, so loops over them vectorise without checks for overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_ALIGNMENT = 32  # bytes: one vector register


@intrinsic(prefer_literal=True)
def stack_floats(typing_context: Any, count: Any) -> tuple[Any, Callable[..., Any]] | None:
    """Room for ``count`` numbers of single precision, a constant, until the function returns."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    length = count.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        with builder.goto_entry_block():
            room = builder.alloca(ir.FloatType(), ir.Constant(ir.IntType(64), length))
            room.align = _ALIGNMENT
        return room

    pointer: Any = types.CPointer(types.float32)  # type: ignore[no-untyped-call]
    return pointer(count), generate
