"""Convert networks of other libraries by their attributes, without importing these libraries."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.io.networks.network import Network, build_network


def from_pgmpy(model: Any) -> Network:
    """Return a pgmpy Bayesian network, Markov network, factor graph or junction tree as a `Network`.

    The variables are numbered in the order of the model's nodes. Labels are the state names of pgmpy.
    """
    kind = "BAYES" if hasattr(model, "get_cpds") else "MARKOV"
    if kind == "MARKOV" and not hasattr(model, "get_factors"):
        raise InvalidArgumentError(
            f"a pgmpy model has get_cpds or get_factors, but {type(model).__name__} has neither: give a"
            " Bayesian or Markov network of pgmpy."
        )
    parts = list(model.get_cpds() if kind == "BAYES" else model.get_factors())
    nodes = list(model.nodes())
    without = (
        [node for node in nodes if node not in {part.variable for part in parts}] if kind == "BAYES" else []
    )
    if without:
        raise InvalidArgumentError(f"{without[0]!r} has no CPD: add one with add_cpds first.")
    labels: dict[Hashable, list[str]] = {}
    for part in parts:
        for variable, size in zip(part.variables, part.cardinality, strict=True):
            names = part.state_names.get(variable) or range(int(size))
            labels.setdefault(variable, [str(name) for name in names])
    # the nodes of factor graphs and junction trees include factors and cliques
    order = [node for node in dict.fromkeys((*nodes, *labels)) if node in labels]
    tables = [(list(part.variables), np.asarray(part.values, dtype=np.float64)) for part in parts]
    return _named({node: labels[node] for node in order}, tables, kind)


def from_networkx(graph: Any) -> Network:
    """Return a networkx graph whose nodes and edges carry tables as a `Network`.

    Every node has an attribute ``labels`` (names) or ``cardinality`` (their number). In a directed graph its
    ``table`` is the probability of the node's labels (first axis) given those of its predecessors (the other
    axes, in the order of ``graph.predecessors``). In an undirected graph its ``table``, if any, is a
    potential over its labels. The ``table`` of an edge is a potential over the labels of both ends, with the
    node that was added first on the first axis. Tables hold potentials, not logarithms.
    """
    labels: dict[Hashable, list[str]] = {}
    for node, data in graph.nodes(data=True):
        if "labels" in data:
            labels[node] = [str(label) for label in data["labels"]]
        elif "cardinality" in data:
            labels[node] = [str(label) for label in range(int(data["cardinality"]))]
        else:
            raise InvalidArgumentError(
                f"node {node!r} has neither 'labels' nor 'cardinality': give it one of these attributes."
            )
    if graph.is_directed():
        tables = []
        for node, data in graph.nodes(data=True):
            if "table" not in data:
                raise InvalidArgumentError(
                    f"node {node!r} has no 'table': give the probabilities of its labels."
                )
            tables.append(([node, *graph.predecessors(node)], np.asarray(data["table"], dtype=np.float64)))
        return _named(labels, tables, "BAYES")
    number_of = {node: number for number, node in enumerate(labels)}
    tables = [
        ([node], np.asarray(data["table"], dtype=np.float64))
        for node, data in graph.nodes(data=True)
        if "table" in data
    ]
    for left, right, data in graph.edges(data=True):
        if "table" not in data:
            raise InvalidArgumentError(f"the edge {left!r} - {right!r} has no 'table': give one.")
        ends = sorted((left, right), key=number_of.__getitem__)
        tables.append((ends, np.asarray(data["table"], dtype=np.float64)))
    return _named(labels, tables, "MARKOV")


def _named(
    labels: Mapping[Hashable, Sequence[str]],
    tables: Sequence[tuple[Sequence[Hashable], NDArray[np.float64]]],
    kind: Any,
) -> Network:
    """Build the network with the text of every node as its name."""
    names = {node: str(node) for node in labels}
    if len(set(names.values())) != len(names):
        raise InvalidArgumentError("two nodes have the same name as text: rename one of them.")
    return build_network(
        {names[node]: known for node, known in labels.items()},
        [([names[node] for node in scope], table) for scope, table in tables],
        kind,
    )
