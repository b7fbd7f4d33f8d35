"""Walks through a factor graph: breadth-first order of its factors, and forests grown greedily from them.

A set of factors is a forest when the graph of variables and factors has no cycle: no two factors of it share
two variables, and no chain of them comes back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import inlined_kernel, kernel


@kernel
def breadth_first(
    scope_start: NDArray[np.int64],
    scope: NDArray[np.int64],
    owner: NDArray[np.int64],
    touch_start: NDArray[np.int64],
    touch: NDArray[np.int64],
    order: NDArray[np.int64],
    queue: NDArray[np.int64],
    seen: NDArray[np.bool_],
    used: NDArray[np.bool_],
) -> bool:
    """Fill ``order`` with the factors as a breadth-first walk meets them; True if they form a forest.

    ``queue`` and ``seen`` have room for every variable, ``used`` for every factor; the flags come in false.
    """
    forest = True
    met = 0
    for root in range(len(seen)):
        if seen[root]:
            continue
        seen[root] = True
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            variable = queue[head]
            head += 1
            for place in range(touch_start[variable], touch_start[variable + 1]):
                factor = owner[touch[place]]
                if used[factor]:
                    continue
                used[factor] = True
                order[met] = factor
                met += 1
                for edge in range(scope_start[factor], scope_start[factor + 1]):
                    other = scope[edge]
                    if other == variable:
                        continue
                    if seen[other]:
                        forest = False
                    else:
                        seen[other] = True
                        queue[tail] = other
                        tail += 1
    return forest


@inlined_kernel
def _root(parent: NDArray[np.int64], variable: int) -> int:
    while parent[variable] != variable:
        parent[variable] = parent[parent[variable]]
        variable = parent[variable]
    return variable


@kernel
def grow_forest(
    scope_start: NDArray[np.int64],
    scope: NDArray[np.int64],
    order: NDArray[np.int64],
    parent: NDArray[np.int64],
    chosen: NDArray[np.bool_],
) -> None:
    """Go through the factors in ``order`` and choose each that keeps the chosen ones a forest.

    ``parent`` has room for every variable, ``chosen`` for every factor; both are overwritten.
    """
    for variable in range(len(parent)):
        parent[variable] = variable
    chosen[:] = False
    for factor in order:
        first, last = scope_start[factor], scope_start[factor + 1]
        apart = True
        for edge in range(first, last):
            for earlier in range(first, edge):
                if _root(parent, scope[edge]) == _root(parent, scope[earlier]):
                    apart = False
        if apart:
            chosen[factor] = True
            for edge in range(first + 1, last):
                parent[_root(parent, scope[edge])] = _root(parent, scope[first])
