"""Generated code that scores clusters: a user's pair and cluster functions inside compiled scans.

Members' fields lie in columns beside the members themselves (``ints[column, slot]`` and
``reals[column, slot]``), so that a scan over a cluster streams memory and vectorises over members; fields of
many dimensions that are compared dimension by dimension lie in rows (``rows[slot, dimension]``) and vectorise
over dimensions. A scan adds up *statistics*, truth values as integers, and only their sums meet the weights.

Two modules come out of one description. The gains module has

``pair_gain(ints, reals, rows, t_lo, t_hi, s_lo, s_hi, slot, own, weights) -> float``
    score of the item at ``slot`` with the slots t_lo to t_hi minus that with s_lo to s_hi, where ``own`` is 1
    if the item itself stands among the latter;
``cluster_score(ints, reals, lo, hi, type, weights) -> float``
    score of the cluster-wise templates on the slots lo to hi.

The statistics module has ``pair_statistics(ints, reals, rows, lo, hi, slot, sign, out)`` and
``cluster_statistics(ints, reals, lo, hi, type, sign, out)``, which add to ``out``. They exist even where no
term needs them, so that walks which take gradients are compiled once for all models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from factorwise.errors import TemplateError
from factorwise.kernels.clusterings.lane_code import LANE_IMPORTS, fits_lanes, lane_helpers
from factorwise.kernels.clusterings.vector_code import FieldLayout, read_field, vector_helpers
from factorwise.kernels.compile.composition import Source, composed_module


@dataclass(frozen=True)
class PairTerm:
    """A pair function that returns a tuple of statistics; ``sign`` is -1 for repulsion.

    ``largest`` bounds the sum of any field's absolute values over all items; ``lowest`` and ``highest`` are
    the smallest and the largest number in the fields.
    """

    source: Source
    fields: tuple[FieldLayout, ...]
    size: int
    offset: int
    sign: int = 1
    largest: int = 0
    lowest: int = 0
    highest: int = 0


@dataclass(frozen=True)
class VectorTerm:
    """A function of two numbers applied to each dimension of a field kept in rows."""

    source: Source
    field: FieldLayout
    offset: int
    sign: int = 1


@dataclass(frozen=True)
class ClusterTerm:
    """A cluster function that returns a tuple of statistics."""

    source: Source
    fields: tuple[FieldLayout, ...]
    size: int
    offset: int


@dataclass(frozen=True)
class PairAggregateTerm:
    """An aggregate over all pairs of a cluster of each statistic of a pair function."""

    source: Source
    fields: tuple[FieldLayout, ...]
    size: int
    offset: int
    aggregate: str


Term = PairTerm | VectorTerm | ClusterTerm | PairAggregateTerm

_HEADER = '''"""Generated: pair and cluster scores of one model."""

from collections import namedtuple

import numpy as np
from numba import cfunc, types

from factorwise.kernels.compile.compiler import FAST_SUMS, inlined
from factorwise.kernels.compile.primitives import empty_sum, widened_sum
from factorwise.kernels.numeric.simd import dot_eight, eight_of, lane, load_eight

ints_type = types.Array(types.int32, 2, "C")
reals_type = types.Array(types.float32, 2, "C")
floats_type = types.Array(types.float64, 1, "C")
index = types.int64
'''

_PAIR_GAIN = """
@cfunc(
    types.float64(ints_type, reals_type, reals_type, index, index, index, index, index, index, floats_type),
    cache=True, error_model="numpy", fastmath=set(FAST_SUMS), _nrt=False,
)
def pair_gain(ints, reals, rows, t_lo, t_hi, s_lo, s_hi, slot, own, weights):
    total = 0.0
{body}    return total
"""

_CLUSTER_SCORE = """
@cfunc(
    types.float64(ints_type, reals_type, index, index, index, floats_type),
    cache=True, error_model="numpy",
)
def cluster_score(ints, reals, lo, hi, kind, weights):
    total = 0.0
{body}    return total
"""

_PAIR_STATISTICS = """
@cfunc(
    types.void(ints_type, reals_type, reals_type, index, index, index, types.float64, floats_type),
    cache=True, error_model="numpy", fastmath=set(FAST_SUMS), _nrt=False,
)
def pair_statistics(ints, reals, rows, lo, hi, slot, sign, out):
{body}    return
"""

_CLUSTER_STATISTICS = """
@cfunc(
    types.void(ints_type, reals_type, index, index, index, types.float64, floats_type),
    cache=True, error_model="numpy",
)
def cluster_statistics(ints, reals, lo, hi, kind, sign, out):
{body}    return
"""


def gains_module(terms: Sequence[Term]) -> ModuleType:
    """Compile, or find compiled, ``pair_gain`` and ``cluster_score``; None where no term needs one."""
    pairs, clusters = _bodies(terms, _gain_lines, _score_lines)
    gain = _PAIR_GAIN.format(body=pairs) if pairs else "\npair_gain = None\n"
    score = _CLUSTER_SCORE.format(body=clusters) if clusters else "\ncluster_score = None\n"
    return _module(terms, gain + score)


def statistics_module(terms: Sequence[Term]) -> ModuleType:
    """Compile, or find compiled, ``pair_statistics`` and ``cluster_statistics`` for ``terms``."""
    pairs, clusters = _bodies(terms, _pair_statistics_lines, _cluster_statistics_lines)
    return _module(terms, _PAIR_STATISTICS.format(body=pairs) + _CLUSTER_STATISTICS.format(body=clusters))


def _module(terms: Sequence[Term], functions: str) -> ModuleType:
    def composed(simd: bool) -> ModuleType:
        helpers = "\n".join(_helpers(number, term, simd) for number, term in enumerate(terms))
        return composed_module(f"{_HEADER}{LANE_IMPORTS}\n{helpers}\n{functions}")

    try:
        return composed(simd=True)
    except TemplateError:  # a function that does what lanes cannot
        return composed(simd=False)


def _bodies(
    terms: Sequence[Term],
    pair_lines: Callable[[int, PairTerm | VectorTerm], list[str]],
    cluster_lines: Callable[[int, ClusterTerm | PairAggregateTerm], list[str]],
) -> tuple[str, str]:
    pairs: list[str] = []
    clusters: list[str] = []
    for number, term in enumerate(terms):
        if isinstance(term, PairTerm | VectorTerm):
            pairs += pair_lines(number, term)
        else:
            clusters += cluster_lines(number, term)
    return tuple("".join(f"    {line}\n" for line in lines) for lines in (pairs, clusters))  # type: ignore[return-value]


def _gain_lines(number: int, term: PairTerm | VectorTerm) -> list[str]:
    sign = "+" if term.sign > 0 else "-"
    if isinstance(term, VectorTerm):
        ranges = "t_lo, t_hi, s_lo, s_hi"
        call = f"vector_gain_{number}(rows, {ranges}, slot, np.float32(own), weights)"
        return [f"total {sign}= {call}"]
    lines = [
        f"a_{number} = item_{number}(ints, reals, slot)",
        f"c_{number} = change_{number}(ints, reals, t_lo, t_hi, s_lo, s_hi, own, a_{number})",
    ]
    lines += [f"total {sign}= weights[{term.offset + k}] * c_{number}[{k}]" for k in range(term.size)]
    return lines


def _pair_statistics_lines(number: int, term: PairTerm | VectorTerm) -> list[str]:
    sign = "+" if term.sign > 0 else "-"
    if isinstance(term, VectorTerm):
        return [f"vector_statistics_{number}(rows, lo, hi, slot, {sign}sign, out)"]
    lines = [f"sum_of_{number} = sum_{number}(ints, reals, lo, hi, item_{number}(ints, reals, slot))"]
    lines += [f"out[{term.offset + k}] {sign}= sign * sum_of_{number}[{k}]" for k in range(term.size)]
    return lines


def _score_lines(number: int, term: ClusterTerm | PairAggregateTerm) -> list[str]:
    lines = [f"value_{number} = cluster_{number}(ints, reals, lo, hi, kind)"]
    lines += [
        f"total += weights[{term.offset + k}] * np.float64(value_{number}[{k}])" for k in range(term.size)
    ]
    return lines


def _cluster_statistics_lines(number: int, term: ClusterTerm | PairAggregateTerm) -> list[str]:
    lines = [f"value_{number} = cluster_{number}(ints, reals, lo, hi, kind)"]
    lines += [f"out[{term.offset + k}] += sign * np.float64(value_{number}[{k}])" for k in range(term.size)]
    return lines


def _helpers(number: int, term: Term, simd: bool) -> str:
    """Text of the functions that one term needs, the user's own first."""
    if simd and isinstance(term, PairTerm) and fits_lanes(term):
        return lane_helpers(number, term) + _item_helper(number, term)
    called = term.source.name
    own = f"{term.source.text}\n\n\n"
    if isinstance(term, VectorTerm):
        return own + vector_helpers(number, term.source.name, term.field, term.offset, simd)
    record = f'Record_{number} = namedtuple("Record_{number}", {[f.name for f in term.fields]!r})\n'
    if isinstance(term, PairTerm):
        return own + record + _item_helper(number, term) + _sum_helper(number, called, term)
    if isinstance(term, PairAggregateTerm):
        return own + record + _pair_aggregate_helper(number, called, term)
    return own + _cluster_helper(number, called, term)


def _item_helper(number: int, term: PairTerm) -> str:
    values = "".join(f"{read_field(field, '{kind}[{column}, slot]')}, " for field in term.fields)
    return f"""
@inlined
def item_{number}(ints, reals, slot):
    return Record_{number}({values})
"""


def _columns(fields: Sequence[FieldLayout]) -> str:
    """Lines that cut the slots lo to hi out of each column once, before the scan."""
    lines = []
    for field in fields:
        kind = "reals" if field.real else "ints"
        for column in range(field.start, field.start + max(field.width, 1)):
            lines.append(f"{kind}_{column} = {kind}[{column}, lo:hi]")
    return "".join(f"    {line}\n" for line in lines)


def _record_at(number: int, fields: Sequence[FieldLayout], slot: str) -> str:
    values = "".join(f"{read_field(field, '{kind}_{column}[' + slot + ']')}, " for field in fields)
    return f"Record_{number}({values})"


def _sum_helper(number: int, called: str, term: PairTerm) -> str:
    keys = range(term.size)
    begin = "".join(f"    n{k} = empty_sum(s[{k}])\n" for k in keys)
    add = "".join(f"        n{k} = widened_sum(n{k}, s[{k}])\n" for k in keys)
    return f"""
@inlined
def sum_{number}(ints, reals, lo, hi, a):
{_columns(term.fields)}    s = {called}(a, a)
{begin}    for j in range(hi - lo):
        s = {called}(a, {_record_at(number, term.fields, "j")})
{add}    return ({"".join(f"n{k}, " for k in keys)})


@inlined
def change_{number}(ints, reals, t_lo, t_hi, s_lo, s_hi, own, a):
    more = sum_{number}(ints, reals, t_lo, t_hi, a)
    less = sum_{number}(ints, reals, s_lo, s_hi, a)
    itself = {called}(a, a)
    return ({"".join(f"more[{k}] - less[{k}] + own * itself[{k}], " for k in keys)})
"""


def _pair_aggregate_helper(number: int, called: str, term: PairAggregateTerm) -> str:
    keys = range(term.size)
    result = {
        "all": "np.float64(smallest{k} > 0.0)",
        "exists": "np.float64(largest{k} > 0.0)",
        "count": "total{k}",
        "min": "smallest{k}",
        "max": "largest{k}",
        "mean": "total{k} / pairs",
        "majority": "np.float64(2.0 * above{k} > pairs)",
    }[term.aggregate]
    begin = "".join(
        f"    total{k}, above{k}, smallest{k}, largest{k} = 0.0, 0.0, np.inf, -np.inf\n" for k in keys
    )
    update = "".join(
        f"            v = np.float64(s[{k}])\n            total{k} += v\n            above{k} += v > 0.0\n"
        f"            smallest{k} = min(smallest{k}, v)\n            largest{k} = max(largest{k}, v)\n"
        for k in keys
    )
    return f"""
@inlined
def cluster_{number}(ints, reals, lo, hi, kind):
{_columns(term.fields)}    members = hi - lo
    if members < 2:
        return ({"0.0, " * term.size})
    pairs = 0.5 * members * (members - 1)
{begin}    for i in range(members):
        a = {_record_at(number, term.fields, "i")}
        for j in range(i):
            s = {called}({_record_at(number, term.fields, "j")}, a)
{update}    return ({"".join(result.format(k=k) + ", " for k in keys)})
"""


def _cluster_helper(number: int, called: str, term: ClusterTerm) -> str:
    names = [field.name for field in term.fields] + ["size", "type"]
    arrays = ""
    for field in term.fields:
        kind = "reals" if field.real else "ints"
        if field.width:
            arrays += f"{kind}[{field.start}:{field.start + field.width}, lo:hi].T, "
        else:
            arrays += f"{kind}[{field.start}, lo:hi], "
    return f"""
Cluster_{number} = namedtuple("Cluster_{number}", {names!r})


@inlined
def cluster_{number}(ints, reals, lo, hi, kind):
    return {called}(Cluster_{number}({arrays}hi - lo, kind))
"""
