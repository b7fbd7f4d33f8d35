"""Random factor graphs and conversions that the tests of message passing share."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from factorwise.model.grounding import FactorGraph


@st.composite
def graphs(
    draw, *, cards=(1, 3), arities=(0, 1, 2, 2, 2, 3), scale=1.0, hard=False, variables=(1, 5), factors=(0, 6)
):
    """A few variables under random factors, numbers of each from a range; label 0 throughout is possible."""
    sizes = draw(st.lists(st.integers(*cards), min_size=variables[0], max_size=variables[1]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parts = []
    for _ in range(draw(st.integers(*factors))):
        arity = min(int(rng.choice(arities)), len(sizes))
        scope = tuple(rng.choice(len(sizes), size=arity, replace=False).tolist())
        table = rng.normal(scale=scale, size=[sizes[v] for v in scope])
        if hard and arity:
            table[rng.random(table.shape) < 0.3] = -np.inf
            table[(0,) * arity] = 0.5
        parts.append((scope, table))
    return FactorGraph.build(sizes, parts)


@st.composite
def pair_graphs(draw, *, cards):
    """Variables under one pairwise factor at least and others of one or two variables, without hard zeros."""
    graph = draw(graphs(cards=cards, arities=(1, 2, 2), scale=2.0, variables=(2, 5)))
    ends = draw(st.permutations(range(graph.n_variables)))[:2]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = rng.normal(scale=2.0, size=graph.cardinality[ends])
    return FactorGraph.build(graph.cardinality, [*graph.factors(), (ends, table)])


def binary_pairs():
    """Graphs the binary kernels take."""
    return pair_graphs(cards=(2, 2))


def larger_pairs():
    """Graphs the pairwise kernels take and the binary ones do not."""
    return pair_graphs(cards=(3, 4))


def grid(side, coupling, field=0.5, seed=0):
    """A spin glass on a square grid with couplings and fields uniform up to the given strength."""
    rng = np.random.default_rng(seed)
    parts = []
    for row in range(side):
        for column in range(side):
            here = row * side + column
            strength = rng.uniform(-field, field)
            parts.append(((here,), np.array([-strength, strength])))
            for there in [here + 1] * (column + 1 < side) + [here + side] * (row + 1 < side):
                weight = rng.uniform(-coupling, coupling)
                parts.append(((here, there), weight * np.array([[1.0, -1.0], [-1.0, 1.0]])))
    return FactorGraph.build(np.full(side * side, 2), parts)


def normalized(message):
    """A log-message with its largest entry at zero."""
    values = np.asarray(message, dtype=float)
    return values - values.max()


def flat(messages):
    """Reference messages, normalized, in the order of the kernels' arrays."""
    pieces = [normalized(message) for message in messages.values()]
    return np.concatenate(pieces) if pieces else np.zeros(0)


def per_edge(wiring, values):
    """Kernel messages, normalized edge by edge."""
    return _normalized_pieces(values, wiring.message_start)


def per_variable(wiring, totals):
    """Kernel totals, normalized variable by variable."""
    return _normalized_pieces(totals, wiring.label_start)


def _normalized_pieces(values, bounds):
    pieces = [normalized(values[first:last]) for first, last in pairwise(bounds)]
    return np.concatenate(pieces) if pieces else np.zeros(0)
