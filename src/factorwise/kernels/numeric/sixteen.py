"""Sixteen small whole numbers in one register: twice as many as `simd.EIGHT_INTS`, for codes up to 65,534.

Numbers that lie in memory as 32 bits are brought together in pairs: the one eight places further on goes into
the upper half of each. Read from 16 bits before its place it already stands there, so that bringing together
takes one instruction for sixteen numbers, and those of everything that follows are halved.

`SIXTEEN_INTS` are not negative and know comparisons and sums; comparing them gives `SIXTEEN_TRUTHS`, which
know ``&``, ``|`` and ``^``. Running sums may fall below zero: they are understood as signed when added up.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_model

from factorwise.kernels.numeric import simd

SIXTEEN = 16
HIGHEST = 2**16 - 2  # of the numbers that may be held
ABSENT = HIGHEST + 1  # what stands for nothing: no number that is held equals it

_HALVES = ir.VectorType(ir.IntType(16), SIXTEEN)
_WIDE = ir.VectorType(ir.IntType(32), SIXTEEN)
_TRUTHS = ir.VectorType(ir.IntType(1), SIXTEEN)
_PLACES = ir.Constant(_HALVES, [place // 2 + simd.LANES * (place % 2) for place in range(SIXTEEN)])
_ALTERNATELY = ir.Constant(_WIDE, [place + SIXTEEN * (place % 2) for place in range(SIXTEEN)])


class _SixteenIntsType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="SixteenInts")


class _SixteenTruthsType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="SixteenTruths")


SIXTEEN_INTS, SIXTEEN_TRUTHS = _SixteenIntsType(), _SixteenTruthsType()
register_model(_SixteenIntsType)(simd.model_of(_HALVES))
register_model(_SixteenTruthsType)(simd.model_of(_TRUTHS))


def _as_ints(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    if isinstance(kind, _SixteenIntsType):
        return value
    if isinstance(kind, _SixteenTruthsType):
        return builder.zext(value, _HALVES)
    return simd.splat(builder, context.cast(builder, value, kind, types.int16), _HALVES)


def _as_truths(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    if isinstance(kind, _SixteenTruthsType):
        return value
    return simd.splat(builder, context.cast(builder, value, kind, types.boolean), _TRUTHS)


def _compared(name: str) -> Any:
    return lambda builder, a, b: builder.icmp_unsigned(name, a, b)


_NUMBERS = (types.Integer, types.Boolean)
for _function, _name in simd.COMPARISONS.items():
    _apply = simd.lanewise(SIXTEEN_TRUTHS, _as_ints, _compared(_name))
    simd.offer_lanewise(_function, _apply, _SixteenIntsType, _NUMBERS)
for _function, _method in {operator.add: "add", operator.sub: "sub"}.items():
    _apply = simd.lanewise(SIXTEEN_INTS, _as_ints, simd.called(_method))
    simd.offer_lanewise(_function, _apply, _SixteenIntsType, ())
for _function, _method in simd.CONNECTIVES.items():
    _apply = simd.lanewise(SIXTEEN_TRUTHS, _as_truths, simd.called(_method))
    simd.offer_lanewise(_function, _apply, _SixteenTruthsType, (types.Boolean,))


@intrinsic
def load_sixteen_ints(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """Read sixteen numbers of a C-ordered int32 array from ``array[row, column]`` on; nothing is checked."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first = simd.address(context, builder, signature, arguments, simd.INTS)
        halves = builder.bitcast(first, ir.IntType(16).as_pointer())
        second = builder.gep(halves, [ir.Constant(ir.IntType(64), SIXTEEN - 1)])
        low = builder.bitcast(builder.load(first, align=4), _HALVES)
        high = builder.load(builder.bitcast(second, _HALVES.as_pointer()), align=2)
        return builder.shuffle_vector(low, high, _ALTERNATELY)

    return SIXTEEN_INTS(array, row, column), code


@intrinsic
def sixteen_ints_of(typing_context: Any, value: Any) -> Any:
    """Return sixteen whole numbers: of truth values 1 or 0, of one number sixteen copies."""
    if not isinstance(value, (_SixteenIntsType, _SixteenTruthsType, *_NUMBERS)):
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _as_ints(context, builder, arguments[0], signature.args[0])

    return SIXTEEN_INTS(value), code


@intrinsic
def first_of_sixteen(typing_context: Any, vector: Any, count: Any) -> Any:
    """Keep the numbers read from the first ``count`` places and make the others zero."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kept = builder.icmp_signed("<", _PLACES, _as_ints(context, builder, arguments[1], signature.args[1]))
        return builder.select(kept, arguments[0], ir.Constant(_HALVES, [0] * SIXTEEN))

    return SIXTEEN_INTS(vector, count), code


@intrinsic
def sum_sixteen_ints(typing_context: Any, vector: Any) -> Any:
    """Add up sixteen numbers, each from -32,768 to 32,767."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        reduce = simd.declared(builder, f"llvm.vector.reduce.add.v{SIXTEEN}i32", ir.IntType(32), [_WIDE])
        return builder.sext(builder.call(reduce, [builder.sext(arguments[0], _WIDE)]), ir.IntType(64))

    return types.int64(vector), code
