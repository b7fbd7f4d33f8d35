"""Chains with dense tables, by summing over all paths."""

from __future__ import annotations

from itertools import product

import numpy as np

from factorwise.types import Floats, Ints


def path_weights(node_weight: Floats, edge_weight: Floats, length: int) -> dict[tuple[int, ...], float]:
    """Weight of every path through the first ``length`` places."""
    weights = {}
    for path in product(range(node_weight.shape[1]), repeat=length):
        weight = 1.0
        for place, label in enumerate(path):
            weight *= node_weight[place, label]
            if place > 0:
                table = edge_weight[place - 1 if len(edge_weight) > 1 else 0]
                weight *= table[path[place - 1], label]
        weights[path] = weight
    return weights


def exponentiated_rows(scores: Floats, weight: Floats, peak: Floats) -> None:
    """Divide by the largest of each row, in logs."""
    peak[:] = scores.max(axis=1)
    weight[:] = np.exp(scores - peak[:, None])


def forward_pass(node_weight: Floats, edge_weight: Floats, alpha: Floats, peak: Floats) -> float:
    """Sum the weights of all beginnings by their last label, then scale each row to a largest of 1."""
    largest = 1.0
    for place in range(len(node_weight)):
        alpha[place] = 0.0
        for path, weight in path_weights(node_weight, edge_weight, place + 1).items():
            alpha[place, path[-1]] += weight
        before, largest = largest, float(alpha[place].max())
        if largest == 0.0:
            return -np.inf
        peak[place] = largest / before
        alpha[place] /= largest
    return float(np.log(largest * alpha[-1].sum()))


def backward_pass(
    node_weight: Floats, edge_weight: Floats, alpha: Floats, beta: Floats, onward: Floats, node: Floats
) -> bool:
    """Share of each label at each place among all paths."""
    node[:] = 0.0
    weights = path_weights(node_weight, edge_weight, len(node_weight))
    total = sum(weights.values())
    for path, weight in weights.items():
        for place, label in enumerate(path):
            node[place, label] += weight / total
    return True


def backward_with_edges(
    node_weight: Floats,
    edge_weight: Floats,
    alpha: Floats,
    peak: Floats,
    beta: Floats,
    onward: Floats,
    node: Floats,
    edge: Floats,
) -> bool:
    """Share of each label and of each pair of neighbors among all paths."""
    edge[:] = 0.0
    weights = path_weights(node_weight, edge_weight, len(node_weight))
    total = sum(weights.values())
    for path, weight in weights.items():
        for place in range(len(path) - 1):
            edge[place, path[place], path[place + 1]] += weight / total
    return backward_pass(node_weight, edge_weight, alpha, beta, onward, node)


def backward_with_sums(
    node_weight: Floats,
    edge_weight: Floats,
    alpha: Floats,
    peak: Floats,
    beta: Floats,
    onward: Floats,
    node: Floats,
    pairs: Floats,
) -> bool:
    """Share of each label, and the expected number of each pair of neighbors."""
    edge = np.zeros((len(node_weight) - 1, *pairs.shape))
    met = backward_with_edges(node_weight, edge_weight, alpha, peak, beta, onward, node, edge)
    pairs[:] = edge.sum(axis=0)
    return met


def chains_range(
    node: Floats,
    start: Ints,
    edge_weight: Floats,
    weight: Floats,
    alpha: Floats,
    scratch: Floats,
    marginal: Floats,
    log_partition: Floats,
    first: int,
    last: int,
) -> None:
    """Share of each label at each place of each chain, and the log of the sum over its paths."""
    for chain in range(first, last):
        own = slice(start[chain], start[chain + 1])
        weights = np.exp(node[own])
        unused = np.zeros(0)
        backward_pass(weights, edge_weight, unused, unused, unused, marginal[own])
        log_partition[chain] = np.log(sum(path_weights(weights, edge_weight, len(weights)).values()))
