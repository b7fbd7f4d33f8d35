"""Connected components of undirected graphs."""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import inlined_kernel, kernel
from factorwise.types import Int32s, Ints

Nodes = Int32s


def component_numbers(n: int, first: Ints, second: Ints) -> Nodes:
    """Return the component of each of ``n`` nodes, numbered from 0 in order of their smallest nodes.

    first, second
        The two nodes of each edge.
    """
    parent = np.arange(n, dtype=np.int32)
    join_ends(np.ascontiguousarray(first, np.int32), np.ascontiguousarray(second, np.int32), parent)
    number_roots(parent)
    return parent


@inlined_kernel
def root_of(parent: Ints, node: int) -> int:
    """Return the root of a node's tree, and halve the path to it."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def join_ends(first: Nodes, second: Nodes, parent: Nodes) -> None:
    """Merge the trees of the two nodes of each edge; the smaller root becomes the root of both."""
    for edge in range(len(first)):
        one, two = root_of(parent, first[edge]), root_of(parent, second[edge])
        if one < two:
            parent[two] = one
        elif two < one:
            parent[one] = two


@kernel
def number_roots(parent: Nodes) -> None:
    """Replace the parent of each node by the number of its tree; trees are in order of their roots."""
    count = 0
    for node in range(len(parent)):
        if parent[node] == node:
            parent[node] = count
            count += 1
        else:  # a parent is smaller than its child, so its number is already assigned
            parent[node] = parent[parent[node]]
