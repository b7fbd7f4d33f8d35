"""Trees of cliques from the definition: every setting is visited.

A clique is a pair of a scope (variables) and a table (a dictionary from the labels of the scope to a score).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from factorwise.rng import Stream
from reference.chains import choose, log_sum, scaled

Scope: TypeAlias = tuple[int, ...]
Labels: TypeAlias = tuple[int, ...]
Table: TypeAlias = Mapping[Labels, float]
Clique: TypeAlias = tuple[Scope, Table]


def fill_uniforms(stream: Stream, count: int) -> list[float]:
    """The next numbers of the stream."""
    return [stream.uniform() for _ in range(count)]


def find_hosts(scopes: Sequence[Scope]) -> list[int]:
    """For each factor one that covers it and that none covers: the first, and again; -1 for constants."""

    def cover(factor: int) -> int:
        for other, scope in enumerate(scopes):
            larger = len(scope) > len(scopes[factor])
            earlier = len(scope) == len(scopes[factor]) and other < factor
            if set(scopes[factor]) <= set(scope) and (larger or earlier):
                return cover(other)
        return factor

    return [cover(factor) if scope else -1 for factor, scope in enumerate(scopes)]


def orient(scopes: Sequence[Scope], variables: int) -> tuple[list[int], list[int], list[int]] | None:
    """Roots, cliques from the roots outward, and each clique's parent variable; None if a loop closes."""
    seen: set[int] = set()
    roots, order, parent = [], [], {}
    for root in range(variables):
        if root in seen:
            continue
        roots.append(root)
        seen.add(root)
        queue = [root]
        for variable in queue:
            for clique, scope in enumerate(scopes):
                if variable in scope and clique not in parent:
                    children = [v for v in scope if v != variable]
                    if seen & set(children):
                        return None
                    seen.update(children)
                    queue.extend(children)
                    order.append(clique)
                    parent[clique] = variable
    return roots, order, [parent[clique] for clique in range(len(scopes))]


def merge_tables(
    factors: Sequence[Clique], host: Sequence[int], cardinality: Sequence[int]
) -> dict[int, Table]:
    """The table of each host: the sum of all that it covers."""
    merged: dict[int, Table] = {}
    for clique in sorted(set(host) - {-1}):
        scope = factors[clique][0]
        guests = [factor for factor, other in zip(factors, host, strict=True) if other == clique]
        merged[clique] = {
            labels: sum(restricted(dict(zip(scope, labels, strict=True)), guest) for guest in guests)
            for labels in settings(scope, cardinality)
        }
    return merged


def share_joints(
    factors: Sequence[Clique], joint: Table, scope: Scope, cardinality: Sequence[int]
) -> list[dict[Labels, float]]:
    """Sum a joint over ``scope`` down to the scope of each factor."""
    shares = []
    for inner, _ in factors:
        share = dict.fromkeys(settings(inner, cardinality), 0.0)
        for labels in settings(scope, cardinality):
            known = dict(zip(scope, labels, strict=True))
            share[tuple(known[v] for v in inner)] += joint[labels]
        shares.append(share)
    return shares


def settings(scope: Sequence[int], cardinality: Sequence[int]) -> Iterator[Labels]:
    """All labels of some variables."""
    return itertools.product(*(range(cardinality[v]) for v in scope))


def restricted(setting: Mapping[int, int], clique: Clique) -> float:
    """Score of one clique at a setting."""
    scope, table = clique
    return table[tuple(setting[v] for v in scope)]


def inward_log(
    cardinality: Sequence[int], cliques: Sequence[Clique], parent: Sequence[int], maximize: bool
) -> list[list[float]]:
    """What each clique says to the labels of its parent variable: the sum, or maximum, over its branch."""
    combine = max if maximize else log_sum
    return [
        [
            combine(_branch_scores(cardinality, cliques, parent, c, label))
            for label in range(cardinality[above])
        ]
        for c, above in enumerate(parent)
    ]


def inward_scaled(
    cardinality: Sequence[int], cliques: Sequence[Clique], parent: Sequence[int]
) -> list[list[float]]:
    """What all branches of a variable say to its labels together, scaled to a largest of 1."""
    messages = inward_log(cardinality, cliques, parent, False)
    up = []
    for variable, size in enumerate(cardinality):
        heard = [message for message, above in zip(messages, parent, strict=True) if above == variable]
        up.append(scaled([sum(message[label] for message in heard) for label in range(size)]))
    return up


def outward_log(
    cardinality: Sequence[int], cliques: Sequence[Clique], maximize: bool
) -> tuple[list[list[float]], list[dict[Labels, float]]]:
    """Log-marginals of variables and cliques, or the best score with each label and each entry held."""
    scored = _scored(cardinality, cliques)
    combine = max if maximize else log_sum
    total = 0.0 if maximize else log_sum(value for _, value in scored)

    def held(scope: Scope, labels: Labels) -> float:
        return combine(v for s, v in scored if tuple(s[w] for w in scope) == labels) - total

    node = [[held((v,), (label,)) for label in range(size)] for v, size in enumerate(cardinality)]
    joint = [{labels: held(scope, labels) for labels in settings(scope, cardinality)} for scope, _ in cliques]
    return node, joint


def outward_scaled(
    cardinality: Sequence[int], cliques: Sequence[Clique]
) -> tuple[list[list[float]], list[dict[Labels, float]]]:
    """Marginals of variables and cliques."""
    node, joint = outward_log(cardinality, cliques, False)
    return (
        [[math.exp(value) for value in row] for row in node],
        [{labels: math.exp(value) for labels, value in table.items()} for table in joint],
    )


def decode(cardinality: Sequence[int], cliques: Sequence[Clique]) -> Labels:
    """A best setting, the first among equals."""
    return max(_scored(cardinality, cliques), key=lambda pair: pair[1])[0]


def sample(
    cardinality: Sequence[int],
    cliques: Sequence[Clique],
    order: Sequence[int],
    parent: Sequence[int],
    root_labels: Sequence[Mapping[int, int]],
    stream: Stream,
) -> list[Labels]:
    """Complete drawn roots to settings, clique by clique from the roots outward."""
    messages = inward_log(cardinality, cliques, parent, False)
    drawn = []
    for roots in root_labels:
        setting = dict(roots)
        for clique in order:
            scope = cliques[clique][0]
            children = [v for v in scope if v != parent[clique]]
            options = [dict(zip(children, labels, strict=True)) for labels in settings(children, cardinality)]
            terms = []
            for option in options:
                hanging = [
                    message[option[above]]
                    for message, above in zip(messages, parent, strict=True)
                    if above in option
                ]
                terms.append(restricted({**setting, **option}, cliques[clique]) + sum(hanging))
            setting |= options[choose(terms, stream)]
        drawn.append(tuple(setting[v] for v in range(len(cardinality))))
    return drawn


def _branch(cliques: Sequence[Clique], parent: Sequence[int], clique: int) -> list[int]:
    """A clique and all that hangs from its children."""
    found = [clique]
    for member in found:
        children = set(cliques[member][0]) - {parent[member]}
        found.extend(other for other, variable in enumerate(parent) if variable in children)
    return found


def _branch_scores(
    cardinality: Sequence[int], cliques: Sequence[Clique], parent: Sequence[int], clique: int, label: int
) -> Iterator[float]:
    """Scores of everything that hangs from a clique, its parent variable held at ``label``."""
    branch = _branch(cliques, parent, clique)
    below = sorted({v for member in branch for v in cliques[member][0]} - {parent[clique]})
    for labels in settings(below, cardinality):
        setting = {**dict(zip(below, labels, strict=True)), parent[clique]: label}
        yield sum(restricted(setting, cliques[member]) for member in branch)


def _scored(cardinality: Sequence[int], cliques: Sequence[Clique]) -> list[tuple[Labels, float]]:
    everything = range(len(cardinality))
    return [
        (setting, sum(restricted(dict(enumerate(setting)), clique) for clique in cliques))
        for setting in settings(everything, cardinality)
    ]
