"""Generated code for factors that come and go with the labels: a user's two functions in one compiled one.

The module has ``touched_score(values, variable, weights, keys) -> float``, the score of all factors that
touch ``variable`` now. ``keys`` is scratch; its last row tells whether a function claimed too many keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from factorwise.kernels.compile.composition import Source, composed_module


@dataclass(frozen=True)
class TouchedTerm:
    """One template: which factors a variable touches, their statistics, and where its weights begin.

    width, limit
        Integers in a key, and most keys that one variable may touch.
    """

    touched: Source
    statistics: Source
    size: int
    offset: int
    width: int
    limit: int


_HEADER = '''"""Generated: scores of the factors that touch a variable."""

import numpy as np
from numba import cfunc, types

from factorwise.kernels.compile.compiler import inlined

values_type = types.Array(types.int32, 1, "C")
floats_type = types.Array(types.float64, 1, "C")
keys_type = types.Array(types.int64, 2, "C")
'''

_TERM = """
@inlined
def score_{number}(values, variable, weights, keys):
    rows = keys[:, :{width}]
    count = {touched}(values, variable, rows)
    if count < 0 or count > {limit}:
        keys[-1, 0] = {number} + 1
        return 0.0
    total = 0.0
    for row in range(count):
        fresh = True
        for earlier in range(row):
            same = True
            for k in range({width}):
                same = same and rows[earlier, k] == rows[row, k]
            fresh = fresh and not same
        if fresh:
            found = {statistics}(values, rows[row])
{sums}    return total
"""

_TOTAL = """
@cfunc(
    types.float64(values_type, types.int64, floats_type, keys_type), cache=True, error_model="numpy",
)
def touched_score(values, variable, weights, keys):
    return {terms}
"""


def touched_module(terms: Sequence[TouchedTerm]) -> ModuleType:
    """Compile, or find compiled, ``touched_score`` for ``terms``."""
    texts = [_HEADER]
    for number, term in enumerate(terms):
        sums = "".join(
            f"            total += weights[{term.offset + k}] * np.float64(found[{k}])\n"
            for k in range(term.size)
        )
        own = f"\n{term.touched.text}\n\n\n{term.statistics.text}\n"
        texts.append(
            own
            + _TERM.format(
                number=number,
                width=term.width,
                limit=term.limit,
                touched=term.touched.name,
                statistics=term.statistics.name,
                sums=sums,
            )
        )
    calls = " + ".join(f"score_{number}(values, variable, weights, keys)" for number in range(len(terms)))
    return composed_module("\n".join([*texts, _TOTAL.format(terms=calls)]))
