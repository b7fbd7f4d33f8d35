"""Ising grids: loopy belief propagation against PGMax, exact marginals against pgmpy.

    .venv/bin/python benchmarks/ising.py [--side 200] [--iterations 100] [--rounds 3] [--full]

Spin glasses on a square grid without wrapping: log-potentials J s t of neighbours and h s of variables with
spins s, t = -1 or +1 and J, h uniform on [-0.5, 0.5]. Every contender runs in a process of its own, one
thread, in turns, and the smallest time of all rounds counts. "messages" is the iterations alone; "call" goes
from the graph to the beliefs. A "first" call compiles: ours in the first round, into an empty cache, and not
again. pgmpy answers by variable elimination, one query a variable: queries of its calibrated junction tree
take longer. ``--full`` runs pgmpy on 8 x 8 too.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from peers import ONE_THREAD, Peer, PeerUnavailableError, run_here

PGMAX = Peer("pgmax", ("pgmax==0.6.1", "jax==0.4.30", "jaxlib==0.4.30", "numpy<2", "scipy<1.14"))
PGMPY = Peer("pgmpy", ("pgmpy==1.1.2",))
REPEATS = 5
STRENGTH = 0.5


def problem(side: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fields of the variables, pairs of neighbours by number, and their couplings."""
    rng = np.random.default_rng(seed)
    field = rng.uniform(-STRENGTH, STRENGTH, size=side * side)
    number = np.arange(side * side).reshape(side, side)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    pairs = np.concatenate([across, down])
    return field, pairs, rng.uniform(-STRENGTH, STRENGTH, size=len(pairs))


def timed(function: Callable[[], Any], repeats: int = REPEATS) -> dict[str, float]:
    """First call apart, then the smallest CPU and wall time of the others."""
    begin = time.process_time()
    function()
    first = time.process_time() - begin
    cpu, wall = [], []
    for _ in range(repeats):
        begin, began = time.process_time(), time.perf_counter()
        function()
        cpu.append(time.process_time() - begin)
        wall.append(time.perf_counter() - began)
    return {"first": first, "cpu": min(cpu), "wall": min(wall)}


def loopy_ours(side: int, iterations: int) -> dict[str, Any]:
    from factorwise.inference.message_passing.belief_propagation import BeliefPropagation, run_messages
    from factorwise.inference.message_passing.wiring import wire

    graph = our_graph(side)
    # Tolerance zero: all iterations are made, as PGMax makes them.
    method = BeliefPropagation(schedule="parallel", max_iterations=iterations, tolerance=0.0)
    wired = wire(graph)
    send = partial(
        run_messages, wired, schedule="parallel", damping=0.0, max_iterations=iterations, tolerance=0.0
    )
    call = timed(partial(method.marginals, graph))
    found = method.marginals(graph)
    return {
        "messages": timed(send),
        "call": call,
        "beliefs": [float(belief[1]) for belief in found.node],
        "iterations": found.convergence.iterations if found.convergence else 0,
    }


def loopy_pgmax(side: int, iterations: int) -> dict[str, Any]:
    import jax
    from pgmax import fgraph, fgroup, infer, vgroup

    field, pairs, coupling = problem(side)
    variables = vgroup.NDVarArray(num_states=2, shape=(side, side))
    graph = fgraph.FactorGraph(variable_groups=variables)
    places = [[divmod(int(v), side) for v in pair] for pair in pairs]
    tables = coupling[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    graph.add_factors(
        fgroup.PairwiseFactorGroup(
            variables_for_factors=[[variables[a], variables[b]] for a, b in places],
            log_potential_matrix=tables,
        )
    )
    inferer = infer.build_inferer(graph.bp_state, backend="bp")
    evidence = np.stack([-field, field], axis=-1).reshape(side, side, 2)
    start = inferer.init(evidence_updates={variables: evidence})
    run = jax.jit(partial(inferer.run, num_iters=iterations, damping=0.0, temperature=1.0))

    def send() -> Any:
        return jax.block_until_ready(run(start))

    def call() -> np.ndarray:
        marginals = infer.get_marginals(inferer.get_beliefs(run(start)))
        return np.asarray(marginals[variables])

    messages = timed(send)
    return {"messages": messages, "call": timed(call), "beliefs": call()[..., 1].ravel().tolist()}


def exact_ours(side: int) -> dict[str, Any]:
    from factorwise.inference.exact.junction_tree import JunctionTree

    graph = our_graph(side)
    times = timed(partial(JunctionTree().marginals, graph))
    found = JunctionTree().marginals(graph)
    return {"call": times, "beliefs": [float(belief[1]) for belief in found.node]}


def exact_pgmpy(side: int) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteMarkovNetwork

    field, pairs, coupling = problem(side)
    names = [f"x{v}" for v in range(len(field))]
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(names)
    network.add_edges_from([(names[a], names[b]) for a, b in pairs])
    network.add_factors(
        *(DiscreteFactor([n], [2], np.exp([-h, h])) for n, h in zip(names, field, strict=True)),
        *(
            DiscreteFactor([names[a], names[b]], [2, 2], np.exp([j, -j, -j, j]))
            for (a, b), j in zip(pairs, coupling, strict=True)
        ),
    )

    def call() -> list[float]:
        method = VariableElimination(network)
        tables = [method.query([name], show_progress=False).values for name in names]
        return [float(table[1] / table.sum()) for table in tables]

    beliefs = call()
    return {"call": timed(call, repeats=2), "beliefs": beliefs}


def our_graph(side: int) -> Any:
    from factorwise.model.grounding import FactorGraph

    field, pairs, coupling = problem(side)
    variables, edges = len(field), len(pairs)
    return FactorGraph(
        np.full(variables, 2),
        np.concatenate([np.arange(variables + 1), variables + 2 * np.arange(1, edges + 1)]),
        np.concatenate([np.arange(variables), pairs.ravel()]),
        np.concatenate([2 * np.arange(variables), 2 * variables + 4 * np.arange(edges)]),
        np.concatenate(
            [np.stack([-field, field], axis=1).ravel(), np.outer(coupling, [1.0, -1.0, -1.0, 1.0]).ravel()]
        ),
    )


WORKERS: dict[str, Callable[..., dict[str, Any]]] = {
    function.__name__: function for function in (loopy_ours, loopy_pgmax, exact_ours, exact_pgmpy)
}


def in_turns(
    peer: Peer, ours: list[str], theirs: list[str], rounds: int
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Best times of both over rounds in which each runs once in a new process."""
    script = Path(__file__)
    found: list[list[dict[str, Any]]] = [[], []]
    available = True
    with tempfile.TemporaryDirectory() as empty:
        cache = {"NUMBA_CACHE_DIR": empty, "FACTORWISE_CACHE": empty}
        for _ in range(rounds):
            found[0].append(run_here(script, ["--worker", *ours], variables=ONE_THREAD | cache))
            try:
                if available:
                    found[1].append(peer.run(script, ["--worker", *theirs]))
            except PeerUnavailableError as reason:
                available = False
                print(f"  {peer.name} is left out: {reason}")
    merged = [merge(runs) if runs else None for runs in found]
    assert merged[0] is not None
    return merged[0], merged[1]


def merge(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Keep the smallest time of each kind, and the first call of the first run."""
    best = dict(runs[0])
    for part in ("messages", "call"):
        if part in best:
            smallest = {kind: min(run[part][kind] for run in runs) for kind in ("cpu", "wall")}
            best[part] = {**best[part], **smallest}
    return best


def report(
    task: str, part: str, name: str, ours: dict[str, Any], theirs: dict[str, Any] | None, apart: float | None
) -> None:
    mine = ours[part]
    row = f"{task:24} {part:9} {mine['cpu']:9.4f} {mine['wall']:9.4f}"
    if theirs is not None:
        other = theirs[part]
        row += f" {name:>8} {other['cpu']:9.4f} {other['wall']:9.4f} {other['cpu'] / mine['cpu']:7.1f}x"
        row += f" {other['wall'] / mine['wall']:7.1f}x {apart:10.1e}"
    row += f"   first {mine['first']:.2f}"
    print(row + (f" / {theirs[part]['first']:.2f}" if theirs is not None else ""))


def difference(ours: dict[str, Any], theirs: dict[str, Any] | None) -> float | None:
    if theirs is None:
        return None
    return float(np.abs(np.array(ours["beliefs"]) - np.array(theirs["beliefs"])).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--side", type=int, default=200)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        name, *numbers = options.worker
        print(json.dumps(WORKERS[name](*map(int, numbers))))
        return

    print("seconds; ratios are theirs to ours; difference is the largest of any belief")
    head = f"{'task':24} {'part':9} {'cpu':>9} {'wall':>9} {'peer':>8} {'cpu':>9} {'wall':>9}"
    print(f"{head} {'cpu':>8} {'wall':>8} {'difference':>10}")
    size = [str(options.side), str(options.iterations)]
    ours, theirs = in_turns(PGMAX, ["loopy_ours", *size], ["loopy_pgmax", *size], options.rounds)
    task = f"loopy {options.side}x{options.side}, {ours['iterations']} it."
    for part in ("messages", "call"):
        report(task, part, "PGMax", ours, theirs, difference(ours, theirs))
    for side in (5, 6, 7, 8) if options.full else (5, 6, 7):
        rounds = 1 if side == 8 else options.rounds
        ours, theirs = in_turns(PGMPY, ["exact_ours", str(side)], ["exact_pgmpy", str(side)], rounds)
        report(f"exact {side}x{side}", "call", "pgmpy", ours, theirs, difference(ours, theirs))
    if not options.full:
        alone = run_here(Path(__file__), ["--worker", "exact_ours", "8"])
        report("exact 8x8", "call", "", alone, None, None)


if __name__ == "__main__":
    main()
