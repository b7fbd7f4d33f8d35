"""Integers in one register: eight of 32 bits, or sixteen of 16 bits for codes up to 65,534.

Comparisons give truth values, which support ``&``, ``|`` and ``^``. Sixteen-lane numbers are not negative,
and can only be compared and added or subtracted; running sums may be negative: the final sum is signed.

Sixteen numbers stored as 32 bits in memory are combined in pairs: the number eight places further on goes
into the upper half of each. Loaded from 16 bits before its address, it is already there, so that combining
takes one instruction for sixteen numbers, and all later instructions are halved.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload, register_model

from factorwise.kernels.numeric.simd import (
    LANES,
    address,
    declared,
    lanewise,
    model_of,
    offer_lanewise,
    splat,
)

SIXTEEN = 16
HIGHEST = 2**16 - 2  # largest number in sixteen lanes
ABSENT = HIGHEST + 1  # marks a missing number, and equals no valid number

_WIDE = ir.VectorType(ir.IntType(32), SIXTEEN)
_ALTERNATELY = ir.Constant(_WIDE, [place + SIXTEEN * (place % 2) for place in range(SIXTEEN)])
_NUMBERS = (types.Integer, types.Boolean)

COMPARISONS = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
CONNECTIVES = {operator.and_: "and_", operator.or_: "or_", operator.xor: "xor"}


class Lanes(NamedTuple):
    """The type of integers in one register, and its operations in compiled code.

    ints
        The type of the numbers.
    load, of, first, total
        ``load`` reads them from ``array[row, column]`` on, C-ordered int32, without bounds checks; ``of``
        converts truth values (1 or 0) or copies one number; ``first`` keeps those read from the first places
        and sets the others to zero; ``total`` adds them up.
    """

    ints: Any
    load: Any
    of: Any
    first: Any
    total: Any


def _lanes(width: int, name: str, compare: str, sums: dict[Any, str], *, mixed: bool) -> Lanes:
    """Define ``width`` integers as a type for the compiler.

    compare
        The instruction that compares them.
    sums, mixed
        Arithmetic operations, and whether one operand may be a truth value or a plain number.
    """
    numbers = ir.VectorType(ir.IntType(256 // width), width)
    bits = ir.VectorType(ir.IntType(1), width)
    none = ir.Constant(numbers, [0] * width)
    order = [place // 2 + LANES * (place % 2) for place in range(width)] if width == SIXTEEN else range(width)

    class Ints(types.Type):
        def __init__(self) -> None:
            super().__init__(name=f"{name}Ints")

    class Truths(types.Type):
        def __init__(self) -> None:
            super().__init__(name=f"{name}Truths")

    ints, truths = Ints(), Truths()
    register_model(Ints)(model_of(numbers))
    register_model(Truths)(model_of(bits))

    def as_ints(context: Any, builder: Any, value: Any, kind: Any) -> Any:
        if isinstance(kind, Ints):
            return value
        if isinstance(kind, Truths):
            return builder.zext(value, numbers)
        narrow = types.int16 if width == SIXTEEN else types.int32
        return splat(builder, context.cast(builder, value, kind, narrow), numbers)

    def as_truths(context: Any, builder: Any, value: Any, kind: Any) -> Any:
        if isinstance(kind, Truths):
            return value
        return splat(builder, context.cast(builder, value, kind, types.boolean), bits)

    for function, sign in COMPARISONS.items():
        compared = lanewise(truths, as_ints, _called(compare, sign))
        offer_lanewise(function, compared, Ints, _NUMBERS)
    for function, method in sums.items():
        others = (Truths, *_NUMBERS) if mixed else ()
        offer_lanewise(function, lanewise(ints, as_ints, _called(method)), Ints, others)
    for function, method in CONNECTIVES.items():
        offer_lanewise(function, lanewise(truths, as_truths, _called(method)), Truths, (types.Boolean,))

    @intrinsic
    def load(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            begin = address(context, builder, signature, arguments, ir.VectorType(ir.IntType(32), LANES))
            if width == LANES:
                return builder.load(begin, align=4)
            halves = builder.bitcast(begin, ir.IntType(16).as_pointer())
            second = builder.gep(halves, [ir.Constant(ir.IntType(64), SIXTEEN - 1)])
            low = builder.bitcast(builder.load(begin, align=4), numbers)
            high = builder.load(builder.bitcast(second, numbers.as_pointer()), align=2)
            return builder.shuffle_vector(low, high, _ALTERNATELY)

        return ints(array, row, column), code

    @intrinsic
    def of(typing_context: Any, value: Any) -> Any:
        if not isinstance(value, (Ints, Truths, *_NUMBERS)):
            return None  # a floating-point number would lose its fraction

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return as_ints(context, builder, arguments[0], signature.args[0])

        return ints(value), code

    @intrinsic
    def first(typing_context: Any, vector: Any, count: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            limit = as_ints(context, builder, arguments[1], signature.args[1])
            kept = builder.icmp_signed("<", ir.Constant(numbers, list(order)), limit)
            return builder.select(kept, arguments[0], none)

        return ints(vector, count), code

    @intrinsic
    def total(typing_context: Any, vector: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            wide = ir.VectorType(ir.IntType(32), width)
            reduce = declared(builder, f"llvm.vector.reduce.add.v{width}i32", ir.IntType(32), [wide])
            summed = arguments[0] if width == LANES else builder.sext(arguments[0], wide)
            return builder.sext(builder.call(reduce, [summed]), ir.IntType(64))

        return types.int64(vector), code

    return Lanes(ints, load, of, first, total)


def _called(method: str, *first: str) -> Callable[[Any, Any, Any], Any]:
    """Return a function that builds an instruction with two operands."""
    return lambda builder, a, b: getattr(builder, method)(*first, a, b)


_SUMS = {operator.add: "add", operator.sub: "sub"}
_EIGHT = _lanes(LANES, "Eight", "icmp_signed", {**_SUMS, operator.mul: "mul"}, mixed=True)
_SIXTEEN = _lanes(SIXTEEN, "Sixteen", "icmp_unsigned", _SUMS, mixed=False)
EIGHT_INTS, load_eight_ints, eight_ints_of, first_lanes, sum_eight_ints = _EIGHT
SIXTEEN_INTS, load_sixteen_ints, sixteen_ints_of, first_of_sixteen, sum_sixteen_ints = _SIXTEEN


@intrinsic
def _absolute_ints(typing_context: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        negative = builder.icmp_signed("<", arguments[0], ir.Constant(arguments[0].type, [0] * LANES))
        return builder.select(negative, builder.neg(arguments[0]), arguments[0])

    return EIGHT_INTS(value), code


for _function in (abs, np.abs):

    @overload(_function, strict=False)
    def _chosen_absolute_ints(value: Any) -> Any:
        return (lambda value: _absolute_ints(value)) if value is EIGHT_INTS else None  # type: ignore[call-arg]
