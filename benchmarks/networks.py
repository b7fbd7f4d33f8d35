"""Published networks: UAI problems against their published marginals, bnlearn's against pgmpy 1.1.2.

    .venv/bin/python benchmarks/networks.py [--quick] [--memory GB] [PART ...]

Parts: uai, narrow, bif. Data: networks/uai and networks/bif of FACTORWISE_DATA.

``uai`` answers every problem by ``infer`` with 2 GB: marginals against the published ones, log Z against a
method of its own (elimination in the probability domain along another order), the best setting with its
score. ``narrow`` answers the same MAP queries in far less memory than exact inference needs, and compares the
scores with the optimum. ``bif`` reads every network, and compares the marginals of all variables with those
of pgmpy, in an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from peers import Peer, PeerUnavailableError
from timing import table, verdict

PGMPY = Peer("pgmpy", ("pgmpy==1.1.2",))
#: The published marginals of this problem belong to other evidence than the file beside it has.
PUBLISHED_EVIDENCE = {"06-grid3x3": {0: 1, 3: 1, 4: 1}}
PEER_SECONDS = (
    20.0  # of pgmpy's queries for one network, one variable at a time; no more are begun after that
)
MARGINAL_BAR, PARTITION_BAR, SCORE_BAR, READING_BAR = 1e-5, 1e-6, 1e-3, 0.5


def problems(quick: bool) -> list[tuple[str, Any, Any]]:
    """Return name, network with evidence and published marginals of every problem."""
    from factorwise.datasets.local import find_data
    from factorwise.io.networks import read_evidence, read_network
    from factorwise.io.networks.uai import parse_marginals

    found = []
    for path in sorted(find_data("networks/uai").glob("*.uai")):
        if quick and path.stat().st_size > 20_000:
            continue
        network = read_network(path)
        evidence = PUBLISHED_EVIDENCE.get(path.stem) or read_evidence(f"{path}.evid", network)
        published = parse_marginals(Path(f"{path}.MAR").read_text())
        found.append((path.stem, network.given(evidence), published))
    return found


def run_uai(quick: bool, memory: float) -> None:
    """Compare marginals, log Z and feasibility of every problem."""
    from factorwise import infer
    from factorwise.inference.exact import JunctionTree

    rows, worst = [], {"marginals": 0.0, "log Z": 0.0}
    for name, network, published in problems(quick):
        began = time.process_time()
        answer = infer(network.graph, memory=int(memory * 2**30), budget=600)
        seconds = time.process_time() - began
        marginals, best = answer.marginals, answer.best
        error = max(float(np.abs(a - b).max()) for a, b in zip(marginals.node, published, strict=True))
        other = eliminated(network.graph)
        difference = abs(other - marginals.log_partition)
        worst = {"marginals": max(worst["marginals"], error), "log Z": max(worst["log Z"], difference)}
        if not math.isfinite(best.score):
            sys.exit(f"{name}: the best setting has probability zero")
        width = JunctionTree().treewidth(network.graph)
        exact = "yes" if answer.exact else "no"
        log_z = f"{marginals.log_partition:.6f}"
        cells = (f"{width}", exact, f"{error:.1e}", log_z, f"{difference:.1e}", f"{best.score:.6f}")
        rows.append((name, *cells, f"{seconds:.1f}"))
        print(".", end="", flush=True)
    head = ("problem", "width", "exact", "marginals", "log Z", "difference", "best score", "CPU s")
    print("\n" + table(head, rows))
    print(f"marginals within {MARGINAL_BAR:g}: {verdict(worst['marginals'], MARGINAL_BAR, at_most=True)}")
    print(f"log Z within {PARTITION_BAR:g}: {verdict(worst['log Z'], PARTITION_BAR, at_most=True)}")


def run_narrow(quick: bool, memory: float) -> None:
    """Compare best settings found in little memory with the optimum."""
    from factorwise import infer
    from factorwise.inference.exact import JunctionTree

    rows, worst = [], 0.0
    for name, network, _ in problems(quick):
        oracle = JunctionTree(memory_limit=int(memory * 2**30))
        plan = oracle.plan(network.graph)
        optimum = oracle.best(network.graph, plan=plan).score
        least = JunctionTree(memory_limit=1).plan(network.graph).needed
        given = max(1_000_000, min(64_000_000, least // 4))
        began = time.process_time()
        answer = infer(network.graph, query="best", memory=given, budget=60)
        seconds = time.process_time() - began
        if answer.best is None:
            sys.exit(f"{name}: no setting of positive probability was found")
        # relative to the score above a setting that means nothing: log-scores have no zero
        gap = (optimum - answer.best.score) / max(1.0, abs(optimum))
        worst = max(worst, gap)
        exact = "yes" if answer.best.exact else "no"
        cells = (f"{given / 1e6:.0f}", exact, f"{answer.best.score:.6f}", f"{optimum:.6f}", f"{gap:.1e}")
        rows.append((name, *cells, f"{answer.score_bound:.2f}", f"{seconds:.1f}"))
        print(".", end="", flush=True)
    print("\n" + table(("problem", "MB", "exact", "score", "optimum", "gap", "bound", "CPU s"), rows))
    print(f"score within 0.1 %: {verdict(worst, SCORE_BAR, at_most=True)}")


def run_bif(quick: bool) -> None:
    """Compare reading times with the bar and marginals with pgmpy's."""
    from factorwise import infer
    from factorwise.datasets.local import find_data
    from factorwise.io.networks import read_network

    rows, worst, slowest = [], 0.0, 0.0
    for path in sorted(find_data("networks/bif").glob("*.bif.gz"))[: 4 if quick else None]:
        began = time.process_time()
        network = read_network(path)
        reading = time.process_time() - began
        began = time.process_time()
        answer = infer(network.graph, query="marginals", budget=600)
        seconds = time.process_time() - began
        try:
            theirs = PGMPY.run(Path(__file__), ["--pgmpy", str(path)], timeout=240)
        except PeerUnavailableError as reason:
            print(f"{path.stem}: pgmpy did not answer: {reason}")
            continue
        error = 0.0
        for name, labels, node in zip(network.names, network.labels, answer.marginals.node, strict=True):
            if name in theirs["marginals"]:
                wanted = np.array([theirs["marginals"][name][label] for label in labels])
                error = max(error, float(np.abs(wanted - node).max()))
        worst, slowest = max(worst, error), max(slowest, reading)
        cells = (f"{len(network.names)}", f"{reading:.3f}", f"{theirs['reading']:.3f}", f"{seconds:.2f}")
        compared = f"{len(theirs['marginals'])}"
        rows.append((path.name.split(".")[0], *cells, f"{theirs['seconds']:.2f}", compared, f"{error:.1e}"))
        print(".", end="", flush=True)
    head = ("network", "variables", "read s", "pgmpy", "marginals s", "pgmpy", "compared", "difference")
    print("\n" + table(head, rows))
    print(f"read in {READING_BAR:g} s: {verdict(slowest, READING_BAR, at_most=True)}")
    print(f"marginals within {MARGINAL_BAR:g} of pgmpy's: {verdict(worst, MARGINAL_BAR, at_most=True)}")


def answer_with_pgmpy(path: str) -> None:
    """Print marginals of all variables by pgmpy's variable elimination; runs in its environment."""
    import gzip
    import logging

    logging.disable(logging.WARNING)
    from pgmpy.inference import VariableElimination
    from pgmpy.readwrite import BIFReader

    text = gzip.decompress(Path(path).read_bytes()).decode()
    began = time.process_time()
    model = BIFReader(string=text).get_model()
    reading = time.process_time() - began
    began = time.process_time()
    oracle = VariableElimination(model)
    marginals = {}
    for name in model.nodes():
        if time.process_time() - began > PEER_SECONDS:
            break
        factor = oracle.query([name], show_progress=False)
        marginals[name] = dict(zip(map(str, factor.state_names[name]), factor.values.tolist(), strict=True))
    print(json.dumps({"marginals": marginals, "reading": reading, "seconds": time.process_time() - began}))


def eliminated(graph: Any) -> float:
    """Return log Z by elimination in the probability domain, along an order of its own."""
    sizes = graph.cardinality.tolist()
    factors = []
    constant = 0.0
    for scope, log_table in graph.factors():
        rest = [v for v in scope if sizes[v] > 1]
        plain = np.exp(log_table).reshape([sizes[v] for v in rest])
        constant += math.log(plain.max())
        factors.append((rest, plain / plain.max()))
    free = sorted({v for scope, _ in factors for v in scope})
    constant += sum(math.log(size) for v, size in enumerate(sizes) if size > 1 and v not in set(free))
    for v in cheaper(smallest_first([set(s) for s, _ in factors], sizes), free, factors, sizes):
        mine = [factor for factor in factors if v in factor[0]]
        factors = [factor for factor in factors if v not in factor[0]]
        axes = sorted({w for scope, _ in mine for w in scope} - {v})
        total = np.ones([sizes[w] for w in (*axes, v)])
        for scope, plain in mine:
            order = sorted(range(len(scope)), key=lambda axis: (*axes, v).index(scope[axis]))
            shape = [sizes[w] if w in scope else 1 for w in (*axes, v)]
            total *= plain.transpose(order).reshape(shape)
        summed = total.sum(axis=-1)
        constant += math.log(summed.max())
        factors.append((axes, summed / summed.max()))
    return constant + math.log(math.prod(float(plain) for _, plain in factors))


def cheaper(first: list[int], second: list[int], factors: list[Any], sizes: list[int]) -> list[int]:
    """Return the order of the two whose largest table is smaller."""

    def largest(order: list[int]) -> int:
        scopes, most = [set(scope) for scope, _ in factors], 0
        for v in order:
            joint = set().union(*(scope for scope in scopes if v in scope))
            most = max(most, math.prod(sizes[w] for w in joint))
            scopes = [*(scope for scope in scopes if v not in scope), joint - {v}]
        return most

    return min((first, second), key=largest)


def smallest_first(scopes: list[set[int]], sizes: list[int]) -> list[int]:
    """Eliminate next what makes the smallest table."""
    left, order = set().union(*scopes), []
    near = {v: set().union(*(scope for scope in scopes if v in scope)) for v in left}
    while left:
        v = min(sorted(left), key=lambda v: math.prod(sizes[w] for w in near[v]))
        order.append(v)
        left.discard(v)
        others = near.pop(v) - {v}
        for w in others:
            near[w] = (near[w] | others) - {v}
    return order


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", help="uai, narrow, bif; all by default")
    parser.add_argument("--quick", action="store_true", help="small networks only")
    parser.add_argument("--memory", type=float, default=2.0, help="GiB for exact inference")
    parser.add_argument("--pgmpy", metavar="FILE", help="answer with pgmpy; used by the part bif")
    options = parser.parse_args()
    if options.pgmpy:
        answer_with_pgmpy(options.pgmpy)
        return
    for part in options.parts or ["uai", "narrow", "bif"]:
        print(f"-- {part}")
        if part == "bif":
            run_bif(options.quick)
        else:
            {"uai": run_uai, "narrow": run_narrow}[part](options.quick, options.memory)


if __name__ == "__main__":
    main()
