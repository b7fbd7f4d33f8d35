"""Generated code for pair functions on whole numbers, eight or sixteen members at a time.

Sixteen are possible if all codes are from 0 to 65,534 and are only compared, as names and identifiers are:
every instruction then serves twice as many members. A change of score is summed over the cluster joined and
the cluster left together, so that lanes are combined only once.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from textwrap import indent
from typing import TYPE_CHECKING, NamedTuple

from factorwise.kernels.clusterings.code.vector_code import FieldLayout, read_field
from factorwise.kernels.compile.composition import SourceText
from factorwise.kernels.compile.dependencies import parsed
from factorwise.kernels.numeric.int_lanes import HIGHEST, SIXTEEN
from factorwise.kernels.numeric.simd import LANES

if TYPE_CHECKING:
    from factorwise.kernels.clusterings.code.functions import PairTerm

LANE_IMPORTS = """
from factorwise.kernels.numeric.int_lanes import (
    eight_ints_of, first_lanes, first_of_sixteen, load_eight_ints, load_sixteen_ints, sixteen_ints_of,
    sum_eight_ints, sum_sixteen_ints
)
"""
WIDEST = 64  # numbers in a field, for sixteen lanes: a sum of 16 bits must hold hundreds of overlaps


class Lanes(NamedTuple):
    """Names of the functions that read, spread, mask and add members, ``width`` at a time."""

    width: int
    load: str
    spread: str
    first: str
    total: str


_EIGHT = Lanes(LANES, "load_eight_ints", "eight_ints_of", "first_lanes", "sum_eight_ints")
_SIXTEEN = Lanes(SIXTEEN, "load_sixteen_ints", "sixteen_ints_of", "first_of_sixteen", "sum_sixteen_ints")


def fits_lanes(term: PairTerm) -> bool:
    """Whether a pair function may process several members at a time.

    It must use whole numbers only, without branches, and without arithmetic that could exceed 32 bits: each
    sum or difference adds one bound; products, powers and the like are left to the scan of single members.
    """
    nodes = list(ast.walk(parsed(term.source.text)))
    branches = ast.If | ast.IfExp | ast.While | ast.For | ast.Match | ast.Try
    if not term.fields or any(field.real for field in term.fields):
        return False
    if any(isinstance(node, branches) for node in nodes):
        return False
    operators = [node.op for node in nodes if isinstance(node, ast.BinOp | ast.AugAssign)]
    steps = sum(isinstance(op, ast.Add | ast.Sub) for op in operators)
    other = any(
        not isinstance(op, ast.Add | ast.Sub | ast.BitAnd | ast.BitOr | ast.BitXor) for op in operators
    )
    return not other and (not (steps or _hands_on_fields(nodes)) or (steps + 1) * term.largest < 2**31)


def _fits_sixteen(term: PairTerm) -> bool:
    """Whether sixteen lanes are possible: codes fit, and are compared only with codes or constants.

    There must be no arithmetic, and the results must be truth values, 0, 1 and overlaps, so that sums grow
    slowly.
    """
    nodes = list(ast.walk(parsed(term.source.text)))
    if term.lowest < 0 or term.highest > HIGHEST or _widest(term) > WIDEST or _hands_on_fields(nodes):
        return False
    if any(isinstance(node, ast.BinOp | ast.AugAssign) and _adds(node.op) for node in nodes):
        return False
    if any(isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not) for node in nodes):
        return False
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    numbers = [value for value in constants if not isinstance(value, str)]  # without the docstring
    return all(isinstance(value, int) and 0 <= value <= HIGHEST for value in numbers) and all(
        part.value in (0, 1) for part in _handed_on(nodes) if isinstance(part, ast.Constant)
    )


def _adds(op: ast.operator) -> bool:
    return not isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor)


def _widest(term: PairTerm) -> int:
    return max(max(field.width, 1) for field in term.fields)


def _hands_on_fields(nodes: Sequence[ast.AST]) -> bool:
    """Whether a function may return the number in a field, instead of comparing it with others."""
    for node in nodes:
        if isinstance(node, ast.Call) and not ast.unparse(node.func).startswith("overlap"):
            return True
    return any(isinstance(part, ast.Attribute | ast.Subscript) for part in _handed_on(nodes))


def _handed_on(nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """Yield everything that is returned or assigned, with tuples unpacked."""
    parts: list[ast.expr] = []
    for node in nodes:
        if isinstance(node, ast.Return | ast.Assign) and node.value is not None:
            parts += node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return parts


def lane_helpers(number: int, term: PairTerm) -> str:
    """Text of a user's function in lanes, its record, and ``sum`` and ``change`` over members."""
    source = _in_lanes(term.source)
    names = [field.name for field in term.fields]
    lanes, longest = _EIGHT, 2**31 * LANES
    if _fits_sixteen(term):
        lanes, longest = _SIXTEEN, SIXTEEN * ((2**15 - 1) // _widest(term) - 2)
    keys = range(term.size)
    sums = "".join(f"sum_eight_ints(n{k}), " for k in keys)
    empty = "".join(f"    n{k} = eight_ints_of(0)\n" for k in keys)
    zero = "".join(f"    c{k} = 0\n" for k in keys)
    itself = "".join(f"    n{k} = {lanes.first}({lanes.spread}(s[{k}]), own)\n" for k in keys)
    scans = _scan(number, source.name, term, lanes, "t_lo", "t_end", "+")
    scans += _scan(number, source.name, term, lanes, "s_lo", "s_end", "-")
    scans += "".join(f"    c{k} += {lanes.total}(n{k})\n" for k in keys)
    again = "".join(f"        n{k} = {lanes.spread}(0)\n" for k in keys)
    return f"""{source.text}


Record_{number} = namedtuple("Record_{number}", {names!r})


@inlined
def sum_{number}(ints, reals, lo, hi, a):
{empty}{_scan(number, source.name, term, _EIGHT, "lo", "hi", "+")}    return ({sums})


@inlined
def change_{number}(ints, reals, t_lo, t_hi, s_lo, s_hi, own, a):
{zero}    s = {source.name}(a, {_copies(number, term.fields, lanes)})
{itself}    while True:
        t_end, s_end = min(t_hi, t_lo + {longest}), min(s_hi, s_lo + {longest})
{indent(scans, "    ")}        t_lo, s_lo = t_end, s_end
        if t_lo == t_hi and s_lo == s_hi:
            break
{again}    return ({"".join(f"c{k}, " for k in keys)})
"""


def _scan(number: int, called: str, term: PairTerm, lanes: Lanes, lo: str, hi: str, sign: str) -> str:
    """Lines that add the statistics of the members at slots lo to hi to the sums in lanes."""
    keys = range(term.size)

    def record(slot: str) -> str:
        form = f"{lanes.load}(ints, {{column}}, {slot})"
        return f"Record_{number}({''.join(read_field(field, form) + ', ' for field in term.fields)})"

    add = "".join(f"        n{k} = n{k} {sign} {lanes.spread}(s[{k}])\n" for k in keys)
    last = "".join(
        f"        n{k} = n{k} {sign} {lanes.first}({lanes.spread}(s[{k}]), {hi} - whole)\n" for k in keys
    )
    return f"""    whole = {hi} - ({hi} - {lo}) % {lanes.width}
    for j in range({lo}, whole, {lanes.width}):
        s = {called}(a, {record("j")})
{add}    if whole < {hi}:
        s = {called}(a, {record("whole")})
{last}"""


def _copies(number: int, fields: Sequence[FieldLayout], lanes: Lanes) -> str:
    """The item itself in all lanes."""
    values = ""
    for field in fields:
        parts = [f"a.{field.name}[{k}]" for k in range(field.width)] or [f"a.{field.name}"]
        copies = "".join(f"{lanes.spread}({part}), " for part in parts)
        values += f"({copies}), " if field.width else copies
    return f"Record_{number}({values})"


def _in_lanes(source: SourceText) -> SourceText:
    """Write ``and``, ``or`` and ``not`` as ``&``, ``|`` and ``^``: the same for truth values, in lanes."""
    tree = _Bitwise().visit(parsed(source.text))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    text = ast.unparse(ast.fix_missing_locations(tree))
    for name in names:
        text = text.replace(name, f"{name}_lanes")
    return SourceText(f"{source.name}_lanes", text, source.attributes)


class _Bitwise(ast.NodeTransformer):
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:  # the name that ast calls
        operator = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        joined, *others = [self.visit(value) for value in node.values]
        for other in others:
            joined = ast.BinOp(joined, operator, other)
        return joined

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return ast.BinOp(node.operand, ast.BitXor(), ast.Constant(True))
        return node
