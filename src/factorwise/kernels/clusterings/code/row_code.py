"""Generated code that scores single pairs: users' pair functions on the rows of two items.

Scans over whole clusters (see `functions`) want fields in columns; a sample of a few members wants all fields
of a member in one row, ``item_ints[item, column]`` and ``item_reals[item, column]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from factorwise.kernels.clusterings.code.functions import PairKind, VectorTerm
from factorwise.kernels.clusterings.code.vector_code import read_field
from factorwise.kernels.compile.programs import Written

_PAIRS = """
@inlined
def score_pairs(world, mine, move, choice):
    item = np.uint64(move.item)
{before}    for k in range(move.choices):
        other = np.uint64(choice.targets[k])
        total = 0.0
{body}        choice.out[k] += total
"""


def row_function(
    terms: Sequence[PairKind], rows: str = "world", plain: Callable[..., Any] | None = None
) -> Written:
    """Write ``pairs`` of pair functions: what each pair of the item with a target scores.

    rows
        Where the arrays ``item_ints``, ``item_reals`` and ``item_rows`` are: "world" or "mine".
    plain
        The plain form, by definition.
    """
    helpers, before, body = [], [], []
    for number, term in enumerate(terms):
        sign = "+" if term.sign > 0 else "-"
        helpers.append(f"{term.source.text}\n")
        if isinstance(term, VectorTerm):
            before.append(f"    base_{number} = mine.offset[{number}]\n")
            first, second = (f"{rows}.item_rows[{row}, {term.field.start} + d]" for row in ("item", "other"))
            called = f"{term.source.name}(np.float64({first}), np.float64({second}))"
            body.append(f"        for d in range({term.size}):\n")
            body.append(f"            total {sign}= mine.weights[base_{number} + d] * {called}\n")
            continue
        names = [field.name for field in term.fields]
        form = rows + ".item_{kind}[item, {column}]"
        values = "".join(f"{read_field(field, form)}, " for field in term.fields)
        helpers.append(f'Record_{number} = namedtuple("Record_{number}", {names!r})\n')
        helpers.append(f"@inlined\ndef row_{number}({rows}, item):\n    return Record_{number}({values})\n")
        before.append(f"    a_{number} = row_{number}({rows}, item)\n")
        body.append(f"        s_{number} = {term.source.name}(a_{number}, row_{number}({rows}, other))\n")
        for k in range(term.size):
            # read once, because the compiler cannot know that writing scores does not change the weights
            before.append(f"    w_{number}_{k} = mine.weights[mine.offset[{number}] + {k}]\n")
            body.append(f"        total {sign}= w_{number}_{k} * np.float64(s_{number}[{k}])\n")
    text = "\n\n".join([*helpers, _PAIRS.format(before="".join(before), body="".join(body))])
    return Written("score_pairs", text, ("world", "mine", "move", "choice"), plain)
