"""Generated code that scores clusters: users' pair and cluster functions inside compiled scans.

The members' fields are stored in columns beside the members themselves (``ints[column, slot]`` and
``reals[column, slot]``), so that a scan over a cluster streams memory and vectorises over members; fields of
many dimensions that are compared dimension by dimension are stored in rows (``rows[slot, dimension]``) and
vectorise over dimensions. A scan sums *statistics*, truth values as integers, and only the sums are
multiplied by weights.

All pair functions of a model are one program, and so are all its cluster functions: `pair_functions` and
`cluster_functions` write the functions of these programs. Term k reads its weights from ``mine.offset[k]`` on
and adds its statistics to the gradient's head from ``mine.place[k]`` on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factorwise.kernels.clusterings.code.lane_code import LANE_IMPORTS, fits_lanes, lane_helpers
from factorwise.kernels.clusterings.code.vector_code import FieldLayout, read_field, vector_helpers
from factorwise.kernels.compile.composition import SourceText
from factorwise.kernels.compile.programs import Written


@dataclass(frozen=True)
class PairTerm:
    """A pair function that returns a tuple of statistics; ``sign`` is -1 for repulsion.

    ``largest`` bounds the sum of any field's absolute values over all items; ``lowest`` and ``highest`` are
    the smallest and the largest number in the fields.
    """

    source: SourceText
    fields: tuple[FieldLayout, ...]
    size: int
    sign: int = 1
    largest: int = 0
    lowest: int = 0
    highest: int = 0


@dataclass(frozen=True)
class VectorTerm:
    """A function of two numbers applied to each dimension of a field kept in rows."""

    source: SourceText
    field: FieldLayout
    sign: int = 1

    @property
    def size(self) -> int:
        """Number of statistics."""
        return self.field.width


@dataclass(frozen=True)
class ClusterTerm:
    """A cluster function that returns a tuple of statistics."""

    source: SourceText
    fields: tuple[FieldLayout, ...]
    size: int


PairKind = PairTerm | VectorTerm

_IMPORTS = f"""from factorwise.kernels.compile.compiler import part_with_arrays
from factorwise.kernels.compile.primitives import empty_sum, widened_sum
from factorwise.kernels.numeric.simd import dot_eight, eight_of, lane, load_eight
{LANE_IMPORTS}"""

_PAIR_FUNCTIONS = {
    "gain": (
        ("world", "mine", "move"),
        """
@inlined
def pairs_gain(world, mine, move):
    ints, reals, rows, weights = world.ints, world.reals, world.rows, mine.weights
    slot, own = world.slot[move.item], 1
    s_lo, t_lo = world.start[move.source], world.start[move.target]
    s_hi, t_hi = s_lo + world.size[move.source], t_lo + world.size[move.target]
    move.factors += s_hi - s_lo - 1 + t_hi - t_lo
    total = 0.0
{gain}    return total
""",
    ),
    "gains": (
        ("world", "mine", "move", "choice"),
        """
@inlined
def pairs_with(world, mine, item, t_lo, t_hi, s_lo, s_hi, own):
    ints, reals, rows, weights = world.ints, world.reals, world.rows, mine.weights
    slot = world.slot[item]
    total = 0.0
{gain}    return total


@inlined
def pairs_gains(world, mine, move, choice):
    zero = np.int64(0)
    for k in range(move.choices):
        lo = world.start[choice.targets[k]]
        hi = lo + world.size[choice.targets[k]]
        if choice.targets[k] == move.source:  # what the item would lose
            choice.out[k] -= pairs_with(world, mine, move.item, zero, zero, lo, hi, 1)
        else:
            choice.out[k] += pairs_with(world, mine, move.item, lo, hi, zero, zero, 0)
        move.factors += hi - lo
""",
    ),
    "gradient": (
        ("world", "mine", "move", "gradient"),
        """
@inlined
def add_pairs(world, mine, out, lo, hi, slot, sign):
    ints, reals, rows = world.ints, world.reals, world.rows
{statistics}    return


@inlined
def pairs_gradient(world, mine, move, gradient):
    slot = world.slot[move.item]
    s_lo, t_lo = world.start[move.source], world.start[move.target]
    s_hi, t_hi = s_lo + world.size[move.source], t_lo + world.size[move.target]
    move.factors += s_hi - s_lo - 1 + t_hi - t_lo
    add_pairs(world, mine, gradient.value, t_lo, t_hi, slot, 1.0)
    add_pairs(world, mine, gradient.value, s_lo, slot, slot, -1.0)
    add_pairs(world, mine, gradient.value, slot + 1, s_hi, slot, -1.0)
""",
    ),
    "totals": (
        ("world", "mine", "gradient"),
        """
@inlined
def add_pairs(world, mine, out, lo, hi, slot, sign):
    ints, reals, rows = world.ints, world.reals, world.rows
{statistics}    return


@inlined
def pairs_totals(world, mine, gradient):
    for position in range(world.counters[0]):
        cluster = world.live[position]
        lo = world.start[cluster]
        for slot in range(lo + 1, lo + world.size[cluster]):
            add_pairs(world, mine, gradient.value, lo, slot, slot, 1.0)
""",
    ),
}

_CLUSTER_FUNCTIONS = {
    "score": """
@inlined
def clusters_score(world, mine):
    ints, reals, weights = world.ints, world.reals, mine.weights
    lo, hi, kind = mine.span[0], mine.span[1], mine.span[2]
    total = 0.0
{score}    return total
""",
    "add": """
@inlined
def clusters_add(world, mine, gradient):
    ints, reals, out, sign = world.ints, world.reals, gradient.value, mine.sign[0]
    lo, hi, kind = mine.span[0], mine.span[1], mine.span[2]
{statistics}    return
""",
}


def pair_functions(terms: Sequence[PairKind]) -> dict[str, Written]:
    """Write ``gain``, ``gains``, ``gradient`` and ``totals`` of all pair functions of a model."""
    found = {}
    for role, (arguments, text) in _PAIR_FUNCTIONS.items():
        body = text.format(gain=_pair_gains(terms), statistics=_pair_statistics(terms))
        found[role] = _written(f"pairs_{role}", terms, body, arguments)
    return found


def cluster_functions(terms: Sequence[ClusterTerm]) -> dict[str, Written]:
    """Write ``score`` and ``add`` of all cluster functions of a model.

    See `factorwise.kernels.clusterings.clusters`.
    """
    score = _CLUSTER_FUNCTIONS["score"].format(score=_cluster_scores(terms))
    add = _CLUSTER_FUNCTIONS["add"].format(statistics=_cluster_statistics(terms))
    return {
        "score": _written("clusters_score", terms, score, ("world", "mine")),
        "add": _written("clusters_add", terms, add, ("world", "mine", "gradient")),
    }


def _written(
    name: str, terms: Sequence[PairKind | ClusterTerm], body: str, arguments: tuple[str, ...]
) -> Written:
    def text(simd: bool) -> str:
        helpers = "\n".join(_helpers(number, term, simd) for number, term in enumerate(terms))
        return f"{_IMPORTS}\n{helpers}\n{body}"

    of_clusters = name.startswith("clusters")  # whose functions may call methods of arrays
    plain = Written(name, text(simd=False), arguments, makes_arrays=of_clusters)
    return plain if of_clusters else Written(name, text(simd=True), arguments, fallback=plain)


def _pair_gains(terms: Sequence[PairKind]) -> str:
    lines = []
    for number, term in enumerate(terms):
        sign = "+" if term.sign > 0 else "-"
        base = f"mine.offset[{number}]"
        if isinstance(term, VectorTerm):
            ranges = "t_lo, t_hi, s_lo, s_hi"
            lines.append(
                f"total {sign}= vector_gain_{number}(rows, {ranges}, slot, np.float32(own), weights, {base})"
            )
            continue
        lines.append(f"a_{number} = item_{number}(ints, reals, slot)")
        lines.append(f"c_{number} = change_{number}(ints, reals, t_lo, t_hi, s_lo, s_hi, own, a_{number})")
        lines += [f"total {sign}= weights[{base} + {k}] * c_{number}[{k}]" for k in range(term.size)]
    return "".join(f"    {line}\n" for line in lines)


def _pair_statistics(terms: Sequence[PairKind]) -> str:
    lines = []
    for number, term in enumerate(terms):
        sign = "+" if term.sign > 0 else "-"
        base = f"mine.place[{number}]"
        if isinstance(term, VectorTerm):
            lines.append(f"vector_statistics_{number}(rows, lo, hi, slot, {sign}sign, out, {base})")
            continue
        lines.append(f"s_{number} = sum_{number}(ints, reals, lo, hi, item_{number}(ints, reals, slot))")
        lines += [f"out[{base} + {k}] {sign}= sign * s_{number}[{k}]" for k in range(term.size)]
    return "".join(f"    {line}\n" for line in lines)


def _cluster_scores(terms: Sequence[ClusterTerm]) -> str:
    lines = []
    for number, term in enumerate(terms):
        lines.append(f"v_{number} = cluster_{number}(ints, reals, lo, hi, kind)")
        base = f"mine.offset[{number}]"
        lines += [f"total += weights[{base} + {k}] * np.float64(v_{number}[{k}])" for k in range(term.size)]
    return "".join(f"    {line}\n" for line in lines)


def _cluster_statistics(terms: Sequence[ClusterTerm]) -> str:
    lines = []
    for number, term in enumerate(terms):
        lines.append(f"v_{number} = cluster_{number}(ints, reals, lo, hi, kind)")
        base = f"mine.place[{number}]"
        lines += [f"out[{base} + {k}] += sign * np.float64(v_{number}[{k}])" for k in range(term.size)]
    return "".join(f"    {line}\n" for line in lines)


def _helpers(number: int, term: PairKind | ClusterTerm, simd: bool) -> str:
    """Text of the functions that one term needs, the user's own first."""
    if simd and isinstance(term, PairTerm) and fits_lanes(term):
        return lane_helpers(number, term) + _item_helper(number, term)
    called = term.source.name
    own = term.source.text.replace("@inlined\n", "@part_with_arrays\n") + "\n\n\n"
    if isinstance(term, VectorTerm):
        return own + vector_helpers(number, term.source.name, term.field, simd)
    record = f'Record_{number} = namedtuple("Record_{number}", {[f.name for f in term.fields]!r})\n'
    if isinstance(term, PairTerm):
        return own + record + _item_helper(number, term) + _sum_helper(number, called, term)
    return own + _cluster_helper(number, called, term)


def _item_helper(number: int, term: PairTerm) -> str:
    values = "".join(f"{read_field(field, '{kind}[{column}, slot]')}, " for field in term.fields)
    return f"""
@inlined
def item_{number}(ints, reals, slot):
    return Record_{number}({values})
"""


def _columns(fields: Sequence[FieldLayout]) -> str:
    """Return lines that slice each column to the slots lo to hi once, before the scan."""
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
