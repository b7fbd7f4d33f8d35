"""Eight numbers in one register, for loops that the compiler does not vectorize well by itself.

A plain function of two numbers such as ``abs(p - q)`` works on `EIGHT` as it does on floats: sums,
differences, products, quotients, ``abs``, ``min``, ``max`` and comparisons (1.0 if true, else 0.0) apply lane
by lane. The function must not branch on a number, because lanes cannot take different branches. `int_lanes`
has the same for integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 8
_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_FAST = ("nsz", "arcp", "contract", "reassoc")


class _EightType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Eight")


EIGHT = _EightType()


def model_of(vector: Any) -> Any:
    """Return a data model for a type whose values are held in a register of type ``vector``."""

    class Model(models.PrimitiveModel):
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, vector)  # type: ignore[no-untyped-call]

    return Model


register_model(_EightType)(model_of(_VECTOR))


def splat(builder: Any, value: Any, kind: Any = _VECTOR) -> Any:
    """Copy a number to all lanes."""
    vector = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(vector, ir.Constant(kind, ir.Undefined), lanes)


def _as_eight(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    if isinstance(kind, _EightType):
        return value
    return splat(builder, context.cast(builder, value, kind, types.float32))


def lanewise(result: Any, convert: Any, generate: Callable[[Any, Any, Any], Any]) -> Any:
    """Return an intrinsic of two operands, each converted to lanes first; one may be a plain number."""

    @intrinsic
    def apply(typing_context: Any, first: Any, second: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            operands = (
                convert(context, builder, value, kind)
                for value, kind in zip(arguments, signature.args, strict=True)
            )
            return generate(builder, *operands)

        return result(first, second), code

    return apply


def offer_lanewise(function: Any, apply: Any, own: type, others: tuple[type, ...]) -> None:
    """Overload ``function`` with ``apply`` for operands of the ``own`` type; one may be of the ``others``."""

    @overload(function, strict=False)
    def chosen(first: Any, second: Any) -> Any:
        operands = (first, second)
        fits = all(isinstance(kind, (own, *others)) for kind in operands)
        if not fits or not any(isinstance(kind, own) for kind in operands):
            return None
        return lambda first, second: apply(first, second)


def _compared(name: str) -> Callable[[Any, Any, Any], Any]:
    return lambda builder, a, b: builder.uitofp(builder.fcmp_ordered(name, a, b), _VECTOR)


def _selected(name: str) -> Callable[[Any, Any, Any], Any]:
    return lambda builder, a, b: builder.select(builder.fcmp_ordered(name, a, b), a, b)


_OPERATIONS: dict[Any, Callable[[Any, Any, Any], Any]] = {
    operator.add: lambda builder, a, b: builder.fadd(a, b, flags=_FAST),
    operator.sub: lambda builder, a, b: builder.fsub(a, b, flags=_FAST),
    operator.mul: lambda builder, a, b: builder.fmul(a, b, flags=_FAST),
    operator.truediv: lambda builder, a, b: builder.fdiv(a, b, flags=_FAST),
    operator.eq: _compared("=="),
    operator.ne: _compared("!="),
    operator.lt: _compared("<"),
    operator.le: _compared("<="),
    operator.gt: _compared(">"),
    operator.ge: _compared(">="),
    min: _selected("<"),
    max: _selected(">"),
    np.minimum: _selected("<"),
    np.maximum: _selected(">"),
}


for _function, _generate in _OPERATIONS.items():
    _apply = lanewise(EIGHT, _as_eight, _generate)
    offer_lanewise(_function, _apply, _EightType, (types.Float, types.Integer, types.Boolean))


def declared(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Return an intrinsic function of LLVM."""
    kind = ir.FunctionType(result, arguments)
    return cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]


@intrinsic
def _absolute(typing_context: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = declared(builder, f"llvm.fabs.v{LANES}f32", _VECTOR, [_VECTOR])
        return builder.call(function, arguments)

    return EIGHT(value), code


for _function in (abs, np.abs, np.fabs):

    @overload(_function, strict=False)
    def _chosen_absolute(value: Any) -> Any:
        return (lambda value: _absolute(value)) if isinstance(value, _EightType) else None  # type: ignore[call-arg]


@overload(operator.neg, strict=False)
def _chosen_negative(value: Any) -> Any:
    return (lambda value: 0.0 - value) if isinstance(value, _EightType) else None


def address(context: Any, builder: Any, signature: Any, arguments: Any, vector: Any) -> Any:
    """Return a pointer to the eight numbers at ``array[row, column]``."""
    kind, row_kind, column_kind = signature.args
    view = context.make_array(kind)(context, builder, arguments[0])
    width = builder.extract_value(view.shape, 1)
    row = context.cast(builder, arguments[1], row_kind, types.int64)
    column = context.cast(builder, arguments[2], column_kind, types.int64)
    position = builder.add(builder.mul(row, width), column)
    return builder.bitcast(builder.gep(view.data, [position]), vector.as_pointer())


@intrinsic
def load_eight(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """Load eight numbers of a C-ordered float32 array from ``array[row, column]`` on, unchecked."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(address(context, builder, signature, arguments, _VECTOR), align=4)

    return EIGHT(array, row, column), code


@intrinsic
def eight_of(typing_context: Any, value: Any) -> Any:
    """Return eight copies of a number."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _as_eight(context, builder, arguments[0], signature.args[0])

    return EIGHT(value), code


@intrinsic
def lane(typing_context: Any, vector: Any, index: Any) -> Any:
    """Return one of the eight numbers."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        position = context.cast(builder, arguments[1], signature.args[1], types.int32)
        return builder.extract_element(arguments[0], position)

    return types.float32(vector, index), code


@intrinsic
def dot_eight(typing_context: Any, vector: Any, weights: Any, offset: Any) -> Any:
    """Return the double-precision inner product with the eight weights at ``weights[offset]``, unchecked."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.VectorType(ir.DoubleType(), LANES)
        view = context.make_array(signature.args[1])(context, builder, arguments[1])
        position = context.cast(builder, arguments[2], signature.args[2], types.int64)
        pointer = builder.bitcast(builder.gep(view.data, [position]), wide.as_pointer())
        products = builder.fmul(
            builder.fpext(arguments[0], wide), builder.load(pointer, align=8), flags=_FAST
        )
        name = f"llvm.vector.reduce.fadd.v{LANES}f64"
        reduce = declared(builder, name, ir.DoubleType(), [ir.DoubleType(), wide])
        return builder.call(reduce, [ir.Constant(ir.DoubleType(), 0.0), products], fastmath=("reassoc",))

    return types.float64(vector, weights, offset), code
