"""The format of the UAI inference competitions: networks, evidence, and the answers to queries.

A file is a sequence of words: MARKOV or BAYES, the number of variables, their numbers of labels, the number
of factors, the scope of each, then the size and the table of each, with the last variable of the scope
fastest.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DataFileError
from factorwise.inference.base import Best, Marginals
from factorwise.io.atomic import atomic_text
from factorwise.io.networks.network import Network, check_evidence, check_size, log_table, number_labels
from factorwise.io.networks.words import Words
from factorwise.model.grounding import FactorGraph

KINDS = ("MARKOV", "BAYES")


def parse_uai(text: str) -> Network:
    """Read a network from the text of a ``.uai`` file."""
    words = Words(text)
    kind = words.take(1, "the word MARKOV or BAYES")[0].upper()
    if kind not in KINDS:
        raise DataFileError(
            f"a network in UAI format begins with MARKOV or BAYES, but this file with {kind[:40]!r}."
            " Give another file or another format."
        )
    n_variables = words.counts(1, "the number of variables", 1)[0]
    sizes = words.counts(n_variables, "the number of labels of each variable", 1)
    labels = tuple(number_labels(sizes))
    n_factors = words.counts(1, "the number of factors")[0]
    scopes = [_scope(words, factor, n_variables) for factor in range(n_factors)]
    factors = []
    for factor, scope in enumerate(scopes):
        owner = f"factor {factor}"
        count = words.counts(1, f"the size of the table of {owner}")[0]
        shape = [sizes[v] for v in scope]
        check_size(count, shape, owner)
        table = words.numbers(count, f"the end of the table of {owner}").reshape(shape)
        factors.append((scope, log_table(table, [f"variable {v}" for v in scope])))
    words.require_end("the last table")
    return Network(
        FactorGraph.build(sizes, factors),
        tuple(map(str, range(n_variables))),
        labels,
        cast("Literal['MARKOV', 'BAYES']", kind),
    )


def _scope(words: Words, factor: int, n_variables: int) -> list[int]:
    """Read the scope of one factor."""
    what = f"the scope of factor {factor}"
    scope = words.counts(words.counts(1, what)[0], what)
    if any(v >= n_variables for v in scope) or len(set(scope)) != len(scope):
        raise DataFileError(
            f"{what} is {scope}: it must name different variables from 0 to {n_variables - 1}. Correct"
            " the file."
        )
    return scope


def parse_evidence(text: str, cardinality: NDArray[np.int64]) -> dict[int, int]:
    """Read the label of each observed variable from the text of an evidence file.

    Both layouts of the competitions are read: the number of observed variables followed by pairs of variable
    and label, or the same after a first line with the number of samples, which must be 0 or 1.
    """
    words = Words(text)
    if not words.words:
        return {}
    count = words.counts(1, "the number of observed variables")[0]
    if _holds_samples(words.words):
        if count > 1:
            raise DataFileError(f"the evidence file has {count} samples: give files with one sample each.")
        count = words.counts(1, "the number of observed variables")[0]
    flat = words.counts(2 * count, "the last pair of variable and label")
    words.require_end("the last pair of variable and label")
    evidence: dict[int, int] = {}
    for variable, label in zip(flat[::2], flat[1::2], strict=True):
        if evidence.setdefault(variable, label) != label:
            raise DataFileError(
                f"the evidence sets variable {variable} to {evidence[variable]} and to {label}:"
                " remove one of them."
            )
    check_evidence(evidence, cardinality)
    return evidence


def _holds_samples(words: Sequence[str]) -> bool:
    """Whether the first word is the number of samples, not that of observed variables."""
    if not all(word.isascii() and word.isdigit() and len(word) < 16 for word in words):
        return False
    if len(words) == 1 + 2 * int(words[0]):
        return False
    position = 1
    for _ in range(min(int(words[0]), len(words))):
        position += 1 + 2 * int(words[position]) if position < len(words) else 1
    return position == len(words) and int(words[0]) > 0


def format_uai(network: Network) -> str:
    """Return a network as the text of a ``.uai`` file; reading it returns the same potentials."""
    graph = network.graph
    scopes = [graph.scope_of(factor) for factor in range(graph.n_factors)]
    lines = [
        network.kind,
        str(graph.n_variables),
        " ".join(map(str, graph.cardinality.tolist())),
        str(graph.n_factors),
        *(" ".join(map(str, [len(scope), *scope])) for scope in scopes),
    ]
    for _, table in graph.factors():
        potentials = np.exp(table).ravel()
        if not bool(np.isfinite(potentials).all()) or bool(
            ((potentials == 0) & (table.ravel() > -np.inf)).any()
        ):
            raise DataFileError(
                f"a factor has log-potentials from {table.min():g} to {table.max():g}, whose"
                " exponentials exceed floating-point numbers: subtract a constant from its table"
                " first."
            )
        lines += ["", str(potentials.size), " ".join(map(repr, potentials.tolist()))]
    return "\n".join(lines) + "\n"


def format_evidence(evidence: Mapping[int, int]) -> str:
    """Return the text of an evidence file."""
    return (
        " ".join(map(str, [len(evidence), *(number for pair in evidence.items() for number in pair)])) + "\n"
    )


def format_marginals(marginals: Marginals) -> str:
    """Return the answer to a MAR query: the probabilities of the labels of every variable."""
    words = [str(len(marginals.node))]
    for probabilities in marginals.node:
        words += [str(len(probabilities)), *(f"{p:.10g}" for p in probabilities.tolist())]
    return f"MAR\n{' '.join(words)}\n"


def format_best(best: Best) -> str:
    """Return the answer to a MAP query: the label of every variable."""
    return f"MAP\n{' '.join(map(str, [len(best.values), *best.values.tolist()]))}\n"


def format_partition(log_partition: float) -> str:
    """Return the answer to a PR query: the decimal logarithm of the partition function."""
    return f"PR\n{log_partition / np.log(10.0):.10g}\n"


def parse_marginals(text: str) -> list[NDArray[np.float64]]:
    """Read the probabilities of every variable from the answer to a MAR query, in either layout."""
    words = Words(text)
    if words.take(1, "the word MAR")[0] != "MAR":
        raise DataFileError("marginals in UAI format begin with MAR. Give another file.")
    count = words.counts(1, "the number of variables")[0]
    if (
        count == 1 and len(words.words) > 2 and len(words.words) != 3 + int(words.words[2])
    ):  # the number of samples comes first
        count = words.counts(1, "the number of variables")[0]
    read: list[NDArray[np.float64]] = []
    for variable in range(count):
        size = words.counts(1, f"the number of labels of variable {variable}", 1)[0]
        read.append(words.numbers(size, f"the probabilities of variable {variable}"))
    return read


def write_uai(path: str | os.PathLike[str], network: Network) -> None:
    """Write a network in UAI format, completely or not at all."""
    with atomic_text(path) as stream:
        stream.write(format_uai(network))


def write_evidence(path: str | os.PathLike[str], evidence: Mapping[int, int]) -> None:
    """Write an evidence file, completely or not at all."""
    with atomic_text(path) as stream:
        stream.write(format_evidence(evidence))
