"""Walks through a factor graph: breadth-first order of its factors, and greedy selection of forests.

A set of factors is a forest if the graph of its variables and factors has no cycle: no two factors share two
variables, and no chain of factors closes a cycle.
"""

from __future__ import annotations

from factorwise.kernels.compile.compiler import kernel
from factorwise.kernels.graphs.components import root_of
from factorwise.types import Bools, Int64s


@kernel
def breadth_first(
    scope_start: Int64s,
    scope: Int64s,
    owner: Int64s,
    touch_start: Int64s,
    touch: Int64s,
    order: Int64s,
    queue: Int64s,
    seen: Bools,
    used: Bools,
) -> bool:
    """Fill ``order`` with the factors in breadth-first order; return whether they form a forest.

    ``queue`` and ``seen`` have room for every variable, ``used`` for every factor; all flags must be false.
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


@kernel
def grow_forest(scope_start: Int64s, scope: Int64s, order: Int64s, parent: Int64s, chosen: Bools) -> None:
    """Choose factors in ``order``, skipping those that would close a cycle with the chosen ones.

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
                if root_of(parent, scope[edge]) == root_of(parent, scope[earlier]):
                    apart = False
        if apart:
            chosen[factor] = True
            for edge in range(first + 1, last):
                parent[root_of(parent, scope[edge])] = root_of(parent, scope[first])
