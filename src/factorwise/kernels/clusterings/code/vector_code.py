"""Generated code for fields that are compared dimension by dimension, eight dimensions at a time.

Running sums stay in registers and are multiplied by the weights only at the end. A function that branches on
its numbers cannot process eight at a time and runs on single numbers instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factorwise.kernels.numeric.simd import LANES

REGISTERS = 4  # groups of eight dimensions that are summed at a time: as many as stay in registers


@dataclass(frozen=True)
class FieldLayout:
    """The position of one field: from column or dimension ``start`` of the reals or the ints.

    A field with a single number has ``width`` 0.
    """

    name: str
    real: bool
    width: int
    start: int


def read_field(field: FieldLayout, form: str) -> str:
    """Code that reads one field: reals in double precision as in plain Python, several numbers as a tuple.

    ``form`` says how a column is read, with ``{kind}`` (ints or reals) and ``{column}`` left open.
    """

    def number(column: int) -> str:
        read = form.format(kind="reals" if field.real else "ints", column=column)
        return f"np.float64({read})" if field.real else read

    if field.width == 0:
        return number(field.start)
    return "(" + "".join(f"{number(field.start + k)}, " for k in range(field.width)) + ")"


def vector_helpers(number: int, called: str, field: FieldLayout, simd: bool) -> str:
    """Text of ``vector_gain`` and ``vector_statistics`` for the function ``called`` on one field."""
    if not simd:
        return _scalar_helpers(number, called, field)
    gain, statistics = "", ""
    groups = list(range(0, field.width, LANES))
    for first in range(0, len(groups), REGISTERS):
        chunk = groups[first : first + REGISTERS]
        gain += _sums(called, field, chunk, "own", ("t_lo, t_hi", "+"), ("s_lo, s_hi", "-"))
        statistics += _sums(called, field, chunk, "np.float32(0.0)", ("lo, hi", "+"))
        for start in chunk:
            lanes = range(min(LANES, field.width - start))
            for k in lanes:
                statistics += f"    out[base + {start + k}] += sign * lane(n{start}, {k})\n"
            if len(lanes) == LANES:
                gain += f"    total += dot_eight(n{start}, weights, base + {start})\n"
            else:
                for k in lanes:
                    gain += f"    total += weights[base + {start + k}] * lane(n{start}, {k})\n"
    return f"""
@inlined
def vector_gain_{number}(rows, t_lo, t_hi, s_lo, s_hi, slot, own, weights, base):
    total = 0.0
{gain}    return total


@inlined
def vector_statistics_{number}(rows, lo, hi, slot, sign, out, base):
{statistics}    return
"""


def _sums(called: str, field: FieldLayout, chunk: Sequence[int], own: str, *ranges: tuple[str, str]) -> str:
    """Return lines that sum the function over ranges of slots, with signs, for groups of dimensions."""
    lines = ""
    for d in chunk:
        lines += f"    x{d} = load_eight(rows, slot, {field.start + d})\n"
        lines += f"    n{d} = eight_of({own} * {called}(x{d}, x{d}))\n"
    for slots, sign in ranges:
        lines += f"    for j in range({slots}):\n"
        for d in chunk:
            lines += f"        n{d} = n{d} {sign} {called}(x{d}, load_eight(rows, j, {field.start + d}))\n"
    return lines


def _scalar_helpers(number: int, called: str, field: FieldLayout) -> str:
    dimensions = f"range({field.start}, {field.start + field.width})"
    weight = f"weights[base - {field.start} + d]"
    value = f"{called}(rows[slot, d], rows[j, d])"
    return f"""
@inlined
def vector_gain_{number}(rows, t_lo, t_hi, s_lo, s_hi, slot, own, weights, base):
    total = 0.0
    for d in {dimensions}:
        total += {weight} * own * {called}(rows[slot, d], rows[slot, d])
    for j in range(t_lo, t_hi):
        for d in {dimensions}:
            total += {weight} * {value}
    for j in range(s_lo, s_hi):
        for d in {dimensions}:
            total -= {weight} * {value}
    return total


@inlined
def vector_statistics_{number}(rows, lo, hi, slot, sign, out, base):
    for j in range(lo, hi):
        for d in {dimensions}:
            out[base - {field.start} + d] += sign * {value}
"""
