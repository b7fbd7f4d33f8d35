"""Two passes over a forest of cliques that share single variables, and its construction from a factor graph.

``up[label]`` combines everything below a variable; ``message`` is the message of a clique to its parent
variable. Both are written by the inward pass and read by the outward pass, in which a clique's joint is its
parent's marginal times the conditional ``table * up / message``. The scratch array ``labels`` (int64[edges])
holds the labels of the current entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.compile.compiler import inlined, kernel
from factorwise.kernels.compile.random import random_uniform
from factorwise.types import Floats, Ints, UInt64s

DONE, IMPOSSIBLE, UNDERFLOW = 0, 1, 2


class Forest(NamedTuple):
    """Cliques oriented away from one root per tree; an "edge" is one variable of one clique.

    node_start : int64[variables + 1]
        Where the labels of each variable begin in arrays over all labels.
    roots : int64[trees]
    scope_start : int64[cliques + 1]
    scope : int64[edges]
        Variables of each clique.
    begin : int64[edges]
        Where the labels of the edge's variable begin: ``node_start[scope]``.
    size : int64[edges]
        The number of labels of that variable.
    table_start : int64[cliques + 1]
        Where the entries of each clique begin in arrays over all entries, in C order over its scope.
    order : int64[cliques]
        Cliques from the roots outward.
    parent : int64[cliques]
        The edge of the clique that leads to its root.
    message_start : int64[cliques + 1]
        Where the message of each clique to its parent variable begins.
    """

    node_start: Ints
    roots: Ints
    scope_start: Ints
    scope: Ints
    begin: Ints
    size: Ints
    table_start: Ints
    order: Ints
    parent: Ints
    message_start: Ints


@kernel
def fill_uniforms(state: UInt64s, out: Floats) -> None:
    """Fill ``out`` with random numbers from [0, 1), advancing ``state``."""
    for index in range(len(out)):
        out[index] = random_uniform(state)


@kernel
def find_hosts(
    scope_start: Ints, scope: Ints, touch_start: Ints, touch: Ints, mark: Ints, host: Ints
) -> None:
    """Find for each factor a maximal factor whose scope contains its scope; -1 for constant factors.

    touch_start, touch
        Factors of each variable, as in `FactorGraph.touching`.
    mark : int64[variables]
        Scratch space, filled with -1.
    """
    for factor in range(len(host)):
        first, last = scope_start[factor], scope_start[factor + 1]
        host[factor] = factor if last > first else -1
        rare = first  # the variable with the fewest factors has the shortest list of candidates
        for edge in range(first, last):
            mark[scope[edge]] = factor
            degree = touch_start[scope[edge] + 1] - touch_start[scope[edge]]
            if degree < touch_start[scope[rare] + 1] - touch_start[scope[rare]]:
                rare = edge
        if last == first:
            continue
        for index in range(touch_start[scope[rare]], touch_start[scope[rare] + 1]):
            other = touch[index]
            surplus = scope_start[other + 1] - scope_start[other] - (last - first)
            if surplus < 0 or (surplus == 0 and other >= factor):
                continue
            covered = 0
            for edge in range(scope_start[other], scope_start[other + 1]):
                if mark[scope[edge]] == factor:
                    covered += 1
            if covered == last - first:
                host[factor] = other
                break
    for factor in range(len(host)):
        while host[factor] >= 0 and host[host[factor]] != host[factor]:
            host[factor] = host[host[factor]]


@kernel
def orient(
    scope_start: Ints,
    scope: Ints,
    touch_start: Ints,
    touch: Ints,
    queue: Ints,
    above: Ints,
    parent: Ints,
    order: Ints,
    roots: Ints,
) -> tuple[int, int, int]:
    """Walk breadth first from the lowest variable of each tree.

    Writes ``above`` (the clique above each variable, -1 at a root), ``parent``, ``order`` and ``roots``;
    ``above`` and ``parent`` must be filled with -2. Returns the number of roots, and the edge that closes a
    cycle with its clique, or -1 and -1.
    """
    trees, placed = 0, 0
    for root in range(len(above)):
        if above[root] != -2:
            continue
        above[root] = -1
        roots[trees] = root
        trees += 1
        queue[0] = root
        head, tail = 0, 1
        while head < tail:
            variable = queue[head]
            head += 1
            for index in range(touch_start[variable], touch_start[variable + 1]):
                clique = touch[index]
                if parent[clique] != -2:
                    continue
                order[placed] = clique
                placed += 1
                for edge in range(scope_start[clique], scope_start[clique + 1]):
                    if scope[edge] == variable:
                        parent[clique] = edge
                for edge in range(scope_start[clique], scope_start[clique + 1]):
                    if edge == parent[clique]:
                        continue
                    if above[scope[edge]] != -2:
                        return trees, edge, clique
                    above[scope[edge]] = clique
                    queue[tail] = scope[edge]
                    tail += 1
    return trees, -1, -1


@inlined
def _span(forest: Forest, clique: int) -> tuple[int, int, int]:
    """Return the first edge of a clique, the edge after its last, and the edge to its parent."""
    return forest.scope_start[clique], forest.scope_start[clique + 1], forest.parent[clique]


@inlined
def _advance(forest: Forest, labels: Ints, first: int, last: int, held: int) -> bool:
    """Advance to the next entry in C order, keeping edge ``held`` fixed; return False after the last one."""
    for edge in range(last - 1, first - 1, -1):
        if edge == held:
            continue
        labels[edge] += 1
        if labels[edge] < forest.size[edge]:
            return True
        labels[edge] = 0
    return False


@inlined
def _log_value(forest: Forest, table: Floats, clique: int, labels: Ints, up: Floats) -> float:
    """Return the table entry of a clique at ``labels`` plus the scores of its children's subtrees."""
    first, last, above = _span(forest, clique)
    entry = 0
    value: float = 0.0
    for edge in range(first, last):
        entry = entry * forest.size[edge] + labels[edge]
        if edge != above:
            value += up[forest.begin[edge] + labels[edge]]
    value += table[forest.table_start[clique] + entry]
    return value


@inlined
def _entry_at(forest: Forest, edges: Ints, labels: Ints) -> int:
    """Return the index of the table entry over some edges at their labels."""
    entry = 0
    for edge in edges:
        entry = entry * forest.size[edge] + labels[edge]
    return entry


@kernel
def merge_tables(
    forest: Forest,
    clique_of: Ints,
    scope_start: Ints,
    place: Ints,
    table_start: Ints,
    tables: Floats,
    labels: Ints,
    out: Floats,
) -> None:
    """Add the table of every factor to the table of its clique.

    clique_of : int64[factors]
        The clique of each factor; -1 for constant factors, which are left out.
    place : int64[edges of the factors]
        The edge of the clique that has the same variable.
    """
    for factor in range(len(clique_of)):
        clique = clique_of[factor]
        if clique < 0:
            continue
        first, last, _ = _span(forest, clique)
        labels[first:last] = 0
        for entry in range(forest.table_start[clique], forest.table_start[clique + 1]):
            source = _entry_at(forest, place[scope_start[factor] : scope_start[factor + 1]], labels)
            out[entry] += tables[table_start[factor] + source]
            _advance(forest, labels, first, last, -1)


@kernel
def share_joints(
    forest: Forest,
    clique_of: Ints,
    scope_start: Ints,
    place: Ints,
    out_start: Ints,
    joint: Floats,
    labels: Ints,
    out: Floats,
) -> None:
    """Sum the joint of every clique to the scopes of its factors, the reverse of `merge_tables`."""
    for factor in range(len(clique_of)):
        clique = clique_of[factor]
        if clique < 0:
            out[out_start[factor]] = 1.0
            continue
        first, last, _ = _span(forest, clique)
        labels[first:last] = 0
        for entry in range(forest.table_start[clique], forest.table_start[clique + 1]):
            target = _entry_at(forest, place[scope_start[factor] : scope_start[factor + 1]], labels)
            out[out_start[factor] + target] += joint[entry]
            _advance(forest, labels, first, last, -1)


@kernel
def inward_scaled(
    forest: Forest, weight: Floats, tiny: float, labels: Ints, up: Floats, message: Floats, scale: Floats
) -> int:
    """Pass sums towards the roots in the probability domain, scaling ``up`` to a maximum of 1.

    Reads ``weight`` (exp of the tables, with maximum 1 in each); writes ``up``, ``message`` and, per clique,
    the log of its ``scale``. Returns UNDERFLOW as soon as a nonzero number falls below ``tiny``, because
    later products might underflow.
    """
    up[:] = 1.0
    for turn in range(len(forest.order) - 1, -1, -1):
        clique = forest.order[turn]
        first, last, above = _span(forest, clique)
        start, node, size = forest.message_start[clique], forest.begin[above], forest.size[above]
        message[start : start + size] = 0.0
        labels[first:last] = 0
        for entry in range(forest.table_start[clique], forest.table_start[clique + 1]):
            value = weight[entry]
            for edge in range(first, last):
                if edge != above:
                    value *= up[forest.begin[edge] + labels[edge]]
            message[start + labels[above]] += value
            _advance(forest, labels, first, last, -1)
        peak = 0.0
        for label in range(size):
            up[node + label] *= message[start + label]
            peak = max(peak, up[node + label])
        if peak == 0.0:
            return IMPOSSIBLE
        for label in range(size):
            up[node + label] /= peak
            if 0.0 < up[node + label] < tiny:
                return UNDERFLOW
        scale[clique] = np.log(peak)
    return DONE


@kernel
def outward_scaled(
    forest: Forest, weight: Floats, labels: Ints, up: Floats, message: Floats, node: Floats, joint: Floats
) -> None:
    """Compute marginals after `inward_scaled`; ``node`` holds those of the roots, and zero elsewhere."""
    for turn in range(len(forest.order)):
        clique = forest.order[turn]
        first, last, above = _span(forest, clique)
        labels[first:last] = 0
        for entry in range(forest.table_start[clique], forest.table_start[clique + 1]):
            outer = node[forest.begin[above] + labels[above]]
            value = 0.0
            if outer > 0.0:
                value = weight[entry] * (outer / message[forest.message_start[clique] + labels[above]])
                for edge in range(first, last):
                    if edge != above:
                        value *= up[forest.begin[edge] + labels[edge]]
            joint[entry] = value
            for edge in range(first, last):
                if edge != above:
                    node[forest.begin[edge] + labels[edge]] += value
            _advance(forest, labels, first, last, -1)


@kernel
def inward_log(
    forest: Forest, table: Floats, maximize: bool, labels: Ints, up: Floats, message: Floats
) -> None:
    """Pass sums, or maxima, towards the roots in the log domain.

    ``up`` initially holds a score per label (0, or ``-inf`` to exclude it), to which messages are added.
    """
    for turn in range(len(forest.order) - 1, -1, -1):
        clique = forest.order[turn]
        first, last, above = _span(forest, clique)
        start = forest.message_start[clique]
        for label in range(forest.size[above]):
            labels[first:last] = 0
            labels[above] = label
            peak, total = -np.inf, 0.0
            more = True
            while more:
                value = _log_value(forest, table, clique, labels, up)
                if maximize:
                    peak = max(peak, value)
                elif value > peak:
                    total = total * np.exp(peak - value) + 1.0
                    peak = value
                elif value > -np.inf:
                    total += np.exp(value - peak)
                more = _advance(forest, labels, first, last, above)
            message[start + label] = peak if total == 0.0 else peak + np.log(total)
        for label in range(forest.size[above]):
            up[forest.begin[above] + label] += message[start + label]


@kernel
def outward_log(
    forest: Forest,
    table: Floats,
    maximize: bool,
    labels: Ints,
    up: Floats,
    message: Floats,
    node: Floats,
    joint: Floats,
) -> None:
    """Compute log-marginals, or max-marginals, after `inward_log`.

    ``node`` holds those of the roots, and ``-inf`` elsewhere.
    """
    for turn in range(len(forest.order)):
        clique = forest.order[turn]
        first, last, above = _span(forest, clique)
        labels[first:last] = 0
        for entry in range(forest.table_start[clique], forest.table_start[clique + 1]):
            value = node[forest.begin[above] + labels[above]]
            if value > -np.inf:
                value -= message[forest.message_start[clique] + labels[above]]
                value += _log_value(forest, table, clique, labels, up)
            joint[entry] = value
            for edge in range(first, last):
                if edge != above and value > -np.inf:
                    spot = forest.begin[edge] + labels[edge]
                    high, low = max(node[spot], value), min(node[spot], value)
                    node[spot] = high if maximize else high + np.log1p(np.exp(low - high))
            _advance(forest, labels, first, last, -1)


@kernel
def decode(forest: Forest, table: Floats, labels: Ints, up: Floats, values: Ints) -> None:
    """Complete ``values``, which holds the best labels of the roots, to a best setting."""
    for turn in range(len(forest.order)):
        clique = forest.order[turn]
        first, last, above = _span(forest, clique)
        labels[first:last] = 0
        labels[above] = values[forest.scope[above]]
        peak = -np.inf
        more = True
        while more:
            value = _log_value(forest, table, clique, labels, up)
            if value > peak:
                peak = value
                for edge in range(first, last):
                    values[forest.scope[edge]] = labels[edge]
            more = _advance(forest, labels, first, last, above)


@kernel
def sample(
    forest: Forest, table: Floats, state: UInt64s, labels: Ints, up: Floats, message: Floats, values: Ints
) -> None:
    """Complete settings (rows of ``values``) whose roots have been drawn, from the sums of `inward_log`.

    Draws one uniform number per clique in ``order``, setting by setting.
    """
    for row in range(len(values)):
        for turn in range(len(forest.order)):
            clique = forest.order[turn]
            first, last, above = _span(forest, clique)
            labels[first:last] = 0
            labels[above] = values[row, forest.scope[above]]
            norm = message[forest.message_start[clique] + labels[above]]
            uniform = random_uniform(state)
            total = 0.0
            more = True
            while more and total <= uniform:
                value = np.exp(_log_value(forest, table, clique, labels, up) - norm)
                total += value
                if value > 0.0:  # kept if rounding leaves the sum below 1 and the number is larger
                    for edge in range(first, last):
                        values[row, forest.scope[edge]] = labels[edge]
                more = _advance(forest, labels, first, last, above)
