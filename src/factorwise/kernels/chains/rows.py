"""Rows of labels in registers: 8, 16, 24... numbers that are added, multiplied and compared at once.

A table with a row per token, attribute or label is padded to a multiple of eight columns. The number of
groups of eight is part of the type, so that the compiler keeps a whole row in registers; it is passed as a
tuple of that many zeros (`groups_of`). Tables may be float32 or float64, and a row has the type of its table.

``+``, ``-``, ``*`` and ``/`` work on two rows, or on a row and a number. Loads and stores do not check
bounds.

"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic
from numba.extending import models, overload, register_model

GROUP = 8
Groups: TypeAlias = tuple[int, ...]
Row: TypeAlias = Any  # exists only in compiled code
intrinsic: Any = _intrinsic  # Any, because compiled callers omit the typing context
_FAST = ("nsz", "arcp", "contract", "reassoc")
_INT = ir.IntType(32)


def groups_of(labels: int) -> Groups:
    """Return the tuple whose length is the number of groups of eight that hold ``labels`` numbers."""
    return (0,) * max(1, -(-labels // GROUP))


class _RowType(types.Type):
    def __init__(self, count: int, element: Any) -> None:
        self.count = count
        self.element = element
        super().__init__(name=f"Row({count}, {element})")

    @property
    def vector(self) -> Any:
        return ir.VectorType(_number(self.element), GROUP)


@register_model(_RowType)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.ArrayType(kind.vector, kind.count))  # type: ignore[no-untyped-call]


def _number(element: Any) -> Any:
    return ir.FloatType() if element == types.float32 else ir.DoubleType()


def _parts(builder: Any, kind: Any, row: Any) -> list[Any]:
    return [builder.extract_value(row, index) for index in range(kind.count)]


def _packed(builder: Any, kind: Any, parts: list[Any]) -> Any:
    row = ir.Constant(ir.ArrayType(kind.vector, kind.count), ir.Undefined)
    for index, part in enumerate(parts):
        row = builder.insert_value(row, part, index)
    return row


def _splat(builder: Any, vector: Any, value: Any) -> Any:
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_INT, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INT, GROUP), [0] * GROUP))


def _constant(vector: Any, value: float) -> Any:
    return ir.Constant(vector, [value] * GROUP)


def _called(builder: Any, name: str, result: Any, arguments: list[Any], **flags: Any) -> Any:
    """Call an intrinsic function of LLVM."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
    return builder.call(function, arguments, **flags)


def _suffix(kind: Any) -> str:
    return f"v{GROUP}f{32 if kind.element == types.float32 else 64}"


def _pointers(context: Any, builder: Any, kind: Any, array_kind: Any, array: Any, index: Any) -> list[Any]:
    """Return pointers to the groups of row ``index``."""
    view = context.make_array(array_kind)(context, builder, array)
    step = ir.Constant(ir.IntType(64), kind.count * GROUP)
    begin = builder.gep(view.data, [builder.mul(index, step)])
    return [
        builder.bitcast(
            builder.gep(begin, [ir.Constant(ir.IntType(64), group * GROUP)]), kind.vector.as_pointer()
        )
        for group in range(kind.count)
    ]


def _index(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    return context.cast(builder, value, kind, types.int64)


# memory


@intrinsic
def zero_row(typing_context: Any, groups: Any, table: Any) -> Any:
    """Return a row of zeros of the type of ``table``."""
    result = _RowType(len(groups), table.dtype)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(result.vector, [0.0] * GROUP)
        return _packed(builder, result, [zero] * result.count)

    return result(groups, table), code


@intrinsic
def load_row(typing_context: Any, groups: Any, table: Any, index: Any) -> Any:
    """Load row ``index`` of a C-ordered table whose width matches the groups."""
    result = _RowType(len(groups), table.dtype)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _index(context, builder, arguments[2], signature.args[2])
        places = _pointers(context, builder, result, signature.args[1], arguments[1], at)
        size = 4 if result.element == types.float32 else 8
        return _packed(builder, result, [builder.load(place, align=size) for place in places])

    return result(groups, table, index), code


@intrinsic
def store_row(typing_context: Any, table: Any, index: Any, row: Any) -> Any:
    """Store ``row`` as row ``index`` of a table of the same width, which may be of single precision."""
    written = _RowType(row.count, table.dtype)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _index(context, builder, arguments[1], signature.args[1])
        places = _pointers(context, builder, written, signature.args[0], arguments[0], at)
        size = 4 if written.element == types.float32 else 8
        for place, part in zip(places, _parts(builder, row, arguments[2]), strict=True):
            rounded = part if written.element == row.element else builder.fptrunc(part, written.vector)
            builder.store(rounded, place, align=size)
        return context.get_dummy_value()

    return types.void(table, index, row), code


@intrinsic
def prefetch_row(typing_context: Any, groups: Any, table: Any, index: Any) -> Any:
    """Prefetch the cache lines of a row that will be read soon."""
    kind = _RowType(len(groups), table.dtype)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _index(context, builder, arguments[2], signature.args[2])
        places = _pointers(context, builder, kind, signature.args[1], arguments[1], at)
        per_line = 2 if kind.element == types.float32 else 1
        byte = ir.IntType(8).as_pointer()
        for place in places[::per_line]:
            arguments_of = [builder.bitcast(place, byte), *(ir.Constant(_INT, n) for n in (0, 3, 1))]
            _called(builder, "llvm.prefetch.p0i8", ir.VoidType(), arguments_of)
        return context.get_dummy_value()

    return types.void(groups, table, index), code


# arithmetic


def _operands(context: Any, builder: Any, kind: Any, signature: Any, arguments: Any) -> Any:
    """Convert both operands to groups; a number is copied to all eight places."""
    for value, own in zip(arguments, signature.args, strict=True):
        if isinstance(own, _RowType):
            yield _parts(builder, kind, value)
        else:
            number = context.cast(builder, value, own, kind.element)
            yield [_splat(builder, kind.vector, number)] * kind.count


def _groupwise(generate: Callable[[Any, Any, Any], Any]) -> Any:
    @intrinsic
    def apply(typing_context: Any, first: Any, second: Any) -> Any:
        result = first if isinstance(first, _RowType) else second

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            left, right = _operands(context, builder, result, signature, arguments)
            return _packed(
                builder, result, [generate(builder, a, b) for a, b in zip(left, right, strict=True)]
            )

        return result(first, second), code

    return apply


def _arithmetic(name: str) -> Callable[[Any, Any, Any], Any]:
    return lambda builder, a, b: getattr(builder, name)(a, b, flags=_FAST)


def _offer(function: Any, apply: Any) -> None:
    @overload(function, strict=False)
    def chosen(first: Any, second: Any) -> Any:
        kinds = (first, second)
        fits = all(isinstance(kind, (_RowType, types.Float, types.Integer)) for kind in kinds)
        if fits and any(isinstance(kind, _RowType) for kind in kinds):
            return lambda first, second: apply(first, second)
        return None


for _function, _name in {operator.add: "fadd", operator.sub: "fsub", operator.mul: "fmul"}.items():
    _offer(_function, _groupwise(_arithmetic(_name)))

# no fast-math flags: an approximate division by a root would give NaN for the root of infinity
_offer(operator.truediv, _groupwise(lambda builder, a, b: builder.fdiv(a, b)))

greater = _groupwise(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
"""The larger of two rows, number by number."""


@intrinsic
def add_scaled(typing_context: Any, row: Any, factor: Any, table: Any, index: Any) -> Any:
    """Return ``row + factor * table[index]``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = _index(context, builder, arguments[3], signature.args[3])
        places = _pointers(context, builder, row, signature.args[2], arguments[2], at)
        number = context.cast(builder, arguments[1], signature.args[1], row.element)
        copies = _splat(builder, row.vector, number)
        size = 4 if row.element == types.float32 else 8
        parts = []
        for part, place in zip(_parts(builder, row, arguments[0]), places, strict=True):
            product = builder.fmul(copies, builder.load(place, align=size), flags=_FAST)
            parts.append(builder.fadd(part, product, flags=_FAST))
        return _packed(builder, row, parts)

    return row(row, factor, table, index), code


@intrinsic
def square_root(typing_context: Any, row: Any) -> Any:
    """Return the square root of every number in a row."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        name = f"llvm.sqrt.{_suffix(row)}"
        parts = _parts(builder, row, arguments[0])
        return _packed(builder, row, [_called(builder, name, row.vector, [part]) for part in parts])

    return row(row), code


@intrinsic
def keep_where(typing_context: Any, row: Any, bits: Any, index: Any) -> Any:
    """Return ``row`` with zeros where row ``index`` of ``bits``, uint8[rows, groups], has no bit set."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[1])(context, builder, arguments[1])
        at = builder.mul(
            _index(context, builder, arguments[2], signature.args[2]), ir.Constant(ir.IntType(64), row.count)
        )
        nothing = ir.Constant(row.vector, [0.0] * GROUP)
        lanes = ir.VectorType(ir.IntType(1), GROUP)
        parts = []
        for group, part in enumerate(_parts(builder, row, arguments[0])):
            place = builder.gep(view.data, [builder.add(at, ir.Constant(ir.IntType(64), group))])
            kept = builder.bitcast(builder.load(place), lanes)
            parts.append(builder.select(kept, part, nothing))
        return _packed(builder, row, parts)

    return row(row, bits, index), code


def _reduced(name: str, combine: Callable[[Any, Any, Any], Any], first: float | None) -> Any:
    @intrinsic
    def apply(typing_context: Any, row: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            total, *others = _parts(builder, row, arguments[0])
            for other in others:
                total = combine(builder, total, other)
            number = _number(row.element)
            begin = [] if first is None else [ir.Constant(number, first)]
            flags = {"fastmath": ("reassoc", "nnan") if first is None else ("reassoc",)}
            full = f"llvm.vector.reduce.{name}.{_suffix(row)}"
            return _called(builder, full, number, [*begin, total], **flags)

        return row.element(row), code

    return apply


sum_of = _reduced("fadd", lambda builder, a, b: builder.fadd(a, b, flags=_FAST), 0.0)
"""The sum of the numbers of a row, padding included."""

largest = _reduced("fmax", lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b), None)
"""The largest number of a row, padding included."""


@intrinsic
def first_place(typing_context: Any, row: Any, value: Any) -> Any:
    """Return the index of the first number equal to ``value``; past the end if there is none."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = context.cast(builder, arguments[1], signature.args[1], row.element)
        wanted = _splat(builder, row.vector, number)
        place = ir.Constant(ir.IntType(64), row.count * GROUP)
        for group in range(row.count - 1, -1, -1):
            part = builder.extract_value(arguments[0], group)
            bits = builder.bitcast(builder.fcmp_ordered("==", part, wanted), ir.IntType(GROUP))
            zeros = builder.cttz(bits, ir.Constant(ir.IntType(1), 0))
            here = builder.add(
                builder.zext(zeros, ir.IntType(64)), ir.Constant(ir.IntType(64), group * GROUP)
            )
            place = builder.select(builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0)), here, place)
        return place

    return types.int64(row, value), code


# exponential: exp(x) = 2**n exp(r) with an integer n and |r| <= ln(2) / 2, and a polynomial for exp(r)

_COEFFICIENTS = {
    types.float32: [1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0],
    types.float64: [
        1 / 6227020800,
        1 / 479001600,
        1 / 39916800,
        1 / 3628800,
        1 / 362880,
        1 / 40320,
        1 / 5040,
        1 / 720,
        1 / 120,
        1 / 24,
        1 / 6,
        1 / 2,
        1.0,
        1.0,
    ],
}
_LN2_HIGH, _LN2_LOW = (
    0.693145751953125,
    1.4286068203094172e-06,
)  # the first has few digits, so that n times it is exact
_LOG2_E = 1.4426950408889634


def _exponential(builder: Any, kind: Any, x: Any) -> Any:
    vector, single = kind.vector, kind.element == types.float32
    lowest, bias, fraction = (-87.0, 127, 23) if single else (-708.0, 1023, 52)
    whole = ir.VectorType(ir.IntType(32 if single else 64), GROUP)

    def fused(a: Any, b: Any, c: Any) -> Any:
        return builder.fadd(builder.fmul(a, b, flags=_FAST), c, flags=_FAST)

    scaled = builder.fmul(x, _constant(vector, _LOG2_E))
    n = _called(
        builder, f"llvm.floor.{_suffix(kind)}", vector, [builder.fadd(scaled, _constant(vector, 0.5))]
    )
    # no reordering here: the two subtractions must be rounded separately
    rest = builder.fsub(x, builder.fmul(n, _constant(vector, _LN2_HIGH)))
    rest = builder.fsub(rest, builder.fmul(n, _constant(vector, _LN2_LOW)))
    total = _constant(vector, _COEFFICIENTS[kind.element][0])
    for coefficient in _COEFFICIENTS[kind.element][1:]:
        total = fused(total, rest, _constant(vector, coefficient))
    if single:
        bits = builder.fptosi(n, whole)
    else:  # no vector instruction converts to 64 bits: after this addition, the lowest bits are n
        bits = builder.bitcast(builder.fadd(n, _constant(vector, 1.5 * 2.0**52)), whole)
    exponent = builder.add(bits, ir.Constant(whole, [bias] * GROUP))
    power = builder.bitcast(builder.shl(exponent, ir.Constant(whole, [fraction] * GROUP)), vector)
    tiny = builder.fcmp_ordered("<", x, _constant(vector, lowest))
    return builder.select(tiny, _constant(vector, 0.0), builder.fmul(total, power))


@intrinsic
def exponential(typing_context: Any, row: Any) -> Any:
    """Return exp of every number; exactly zero below -87 (float64: -708), valid up to 88 (709)."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        parts = _parts(builder, row, arguments[0])
        return _packed(builder, row, [_exponential(builder, row, part) for part in parts])

    return row(row), code
