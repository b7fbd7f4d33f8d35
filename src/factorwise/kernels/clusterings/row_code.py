"""Generated code that scores single pairs: a user's pair functions on rows gathered by index.

Scans over whole clusters (see `partition_code`) want fields in columns; a sample of a few members wants all
fields of a member in one row, ``ints[item, column]`` and ``reals[item, column]``. The module has

``row_scores(ints, reals, item, others, lo, hi, weights, out)``
    sets ``out[k]`` to the score of the pair of ``item`` and ``others[k]``, for k from lo to hi.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from factorwise.kernels.clusterings.partition_code import PairTerm
from factorwise.kernels.clusterings.vector_code import FieldLayout
from factorwise.kernels.compile.composition import composed_module

_HEADER = '''"""Generated: pair scores of one model on rows."""

from collections import namedtuple

import numpy as np
from numba import cfunc, types

from factorwise.kernels.compile.compiler import FAST_SUMS, inlined

ints_type = types.Array(types.int32, 2, "C")
reals_type = types.Array(types.float32, 2, "C")
items_type = types.Array(types.int32, 1, "C")
floats_type = types.Array(types.float64, 1, "C")
index = types.int64
'''

_ROW_SCORES = """
@cfunc(
    types.void(ints_type, reals_type, index, items_type, index, index, floats_type, floats_type),
    cache=True, error_model="numpy", fastmath=set(FAST_SUMS), _nrt=False,
)
def row_scores(ints, reals, item, others, lo, hi, weights, out):
{before}    for k in range(lo, hi):
        other = np.uint64(others[k])
        total = 0.0
{body}        out[k] = total
"""


def rows_module(terms: Sequence[PairTerm]) -> ModuleType:
    """Compile, or find compiled, ``row_scores``."""
    helpers, before, body = [], [], []
    for number, term in enumerate(terms):
        names = [field.name for field in term.fields]
        values = "".join(f"{_value(field)}, " for field in term.fields)
        helpers.append(
            f"{term.source.text}\n\n\n"
            f'Record_{number} = namedtuple("Record_{number}", {names!r})\n\n\n'
            f"@inlined\ndef row_{number}(ints, reals, item):\n    return Record_{number}({values})\n"
        )
        before.append(f"    a_{number} = row_{number}(ints, reals, np.uint64(item))\n")
        # read once: the compiler cannot know that writing scores leaves the weights alone
        before += [f"    w_{term.offset + k} = weights[{term.offset + k}]\n" for k in range(term.size)]
        body.append(
            f"        s_{number} = {term.source.name}(a_{number}, row_{number}(ints, reals, other))\n"
        )
        sign = "+" if term.sign > 0 else "-"
        body += [
            f"        total {sign}= w_{term.offset + k} * np.float64(s_{number}[{k}])\n"
            for k in range(term.size)
        ]
    scores = _ROW_SCORES.format(before="".join(before), body="".join(body))
    return composed_module("\n".join([_HEADER, *helpers, scores]))


def _value(field: FieldLayout) -> str:
    """Read one field of a row: reals in double precision as in plain Python, several numbers as a tuple."""
    form = "np.float64(reals[item, {}])" if field.real else "ints[item, {}]"
    if field.width == 0:
        return form.format(field.start)
    return "(" + "".join(f"{form.format(field.start + k)}, " for k in range(field.width)) + ")"
