"""``factorwise infer``: marginals, a best setting or the partition function of a network in a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factorwise.cli.files import STANDARD, check_target, output_option, reading, writing
from factorwise.cli.numbers import Real
from factorwise.cli.options import Options, verb
from factorwise.cli.output import emit, notice, printable
from factorwise.errors import DataFileError

if TYPE_CHECKING:
    from factorwise.inference.oracle import Answer
    from factorwise.io.networks import Network

SYNTAXES = ("uai", "bif", "xmlbif", "fg")
GIGABYTE = 10**9


@verb(example="factorwise infer model.uai --evidence model.uai.evid --query mar -o model.tsv")
@click.argument("file", metavar="NETWORK")
@click.option("--evidence", metavar="FILE", help="Observed variables, in the format of the UAI competitions.")
@click.option(
    "--observe",
    multiple=True,
    metavar="NAME=LABEL",
    help="An observed variable and its label, by name or number; may be repeated.",
)
@click.option(
    "--query",
    type=click.Choice(["mar", "map", "pr"]),
    default="mar",
    help="Marginals, a most probable setting, or the partition function (the probability of the evidence).",
)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["table", "uai"]),
    default="table",
    help="A table with names, or the answer in the format of the UAI competitions.",
)
@click.option("--syntax", type=click.Choice(SYNTAXES), help="Format of NETWORK.  [default: by its ending]")
@click.option("--budget", type=Real(0.001), default=60.0, help="Time limit in seconds.")
@click.option("--memory", type=Real(1e-6), default=2.0, help="Memory limit of tables in gigabytes.")
@output_option(metavar="OUT")
def command(
    options: Options,
    file: str,
    evidence: str | None,
    observe: tuple[str, ...],
    query: str,
    layout: str,
    syntax: str | None,
    budget: float,
    memory: float,
    output: str,
) -> None:
    """Answer a query about the network in NETWORK: UAI, BIF, XMLBIF or libDAI's .fg, packed with gzip or not.

    The method is exact if that fits the time and memory limits, else approximate. The method and the
    certainty of the answer are reported on standard error, or on standard output if a file is written. The
    table has a line for each variable and label (mar), for each variable (map), or one (pr), with columns
    separated by tabs. With --json the answer is one JSON document.
    """
    if output != STANDARD:
        check_target("--output", Path(output), file, evidence)
    if STANDARD in (file, evidence):
        raise click.UsageError("networks and evidence are not read from standard input ('-'): give files.")

    # the compiler takes long to load, so help and errors in options come first
    from factorwise.inference.oracle import infer
    from factorwise.io.networks import read_evidence, read_network

    with reading(file):
        network = read_network(file, syntax=syntax)
    observed = {}
    if evidence is not None:
        with reading(evidence):
            observed = read_evidence(evidence, network)
    observed |= _observed(network, observe)
    answer = infer(
        network.given(observed).graph,
        query="best" if query == "map" else "marginals",
        budget=budget,
        memory=int(memory * GIGABYTE),
        seed=options.seed,
    )
    if query == "map" and answer.best is None:
        raise DataFileError(f"{file}: no setting of positive probability was found: give a larger --budget.")
    lines = [f"{len(observed)} of {len(network.names)} variables observed", *answer.lines()]
    document = _document(network, answer, query, lines)
    if options.json and output == STANDARD:
        emit(document, (), as_json=True)
        return
    with writing(output) as stream:
        stream.writelines(_uai(answer, query) if layout == "uai" else _table(network, answer, query))
    if output != STANDARD:
        emit({**document, "output": Path(output).name}, lines, as_json=options.json)
    else:
        for line in lines:
            notice(options, printable(line))


def _observed(network: Network, pairs: Sequence[str]) -> dict[int, int]:
    """Return the numbers of variables and labels given as NAME=LABEL."""
    named: dict[str, object] = {}
    for pair in pairs:
        name, sign, label = pair.partition("=")
        if not sign:
            raise click.UsageError(
                f"--observe {pair!r} has no '=': give a variable and its label as NAME=LABEL."
            )
        if name in network.names:
            known = network.labels[network.names.index(name)]
            named[name] = int(label) if label not in known and label.isdecimal() else label
        else:
            named[name] = label
    return network.codes(named)


def _uai(answer: Answer, query: str) -> Iterator[str]:
    from factorwise.io.networks.uai import format_best, format_marginals, format_partition

    if query == "map" and answer.best is not None:
        yield format_best(answer.best)
    elif answer.marginals is not None:
        yield (
            format_marginals(answer.marginals)
            if query == "mar"
            else format_partition(answer.marginals.log_partition)
        )


def _table(network: Network, answer: Answer, query: str) -> Iterator[str]:
    """Yield the lines of a table with names."""
    if query == "map" and answer.best is not None:
        yield "variable\tlabel\n"
        for name, labels, value in zip(
            network.names, network.labels, answer.best.values.tolist(), strict=True
        ):
            yield f"{printable(name)}\t{printable(labels[value])}\n"
    elif query == "mar" and answer.marginals is not None:
        yield "variable\tlabel\tprobability\n"
        for name, labels, node in zip(network.names, network.labels, answer.marginals.node, strict=True):
            for label, probability in zip(labels, node.tolist(), strict=True):
                yield f"{printable(name)}\t{printable(label)}\t{probability:.10g}\n"
    elif answer.marginals is not None:
        log = answer.marginals.log_partition
        yield "log\tlog10\n"
        yield f"{log:.12g}\t{log / math.log(10.0):.12g}\n"


def _document(network: Network, answer: Answer, query: str, lines: Sequence[str]) -> dict[str, Any]:
    """Return the answer as JSON values."""
    document: dict[str, Any] = {"query": query, "exact": answer.exact, "how": list(lines)}
    if answer.best is not None:
        bound = answer.score_bound
        document |= {
            "score": answer.best.score,
            "score_bound": bound if bound is not None and math.isfinite(bound) else None,
            "best": {
                name: labels[value]
                for name, labels, value in zip(
                    network.names, network.labels, answer.best.values.tolist(), strict=True
                )
            },
        }
    if answer.marginals is not None and answer.log_partition_bounds is not None:
        document |= {
            "log_partition": answer.marginals.log_partition,
            "log_partition_bounds": [
                bound if math.isfinite(bound) else None for bound in answer.log_partition_bounds
            ],
        }
        if query == "mar":
            document["marginals"] = {
                name: dict(zip(labels, node.tolist(), strict=True))
                for name, labels, node in zip(
                    network.names, network.labels, answer.marginals.node, strict=True
                )
            }
    return document
