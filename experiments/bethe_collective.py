"""Collective graphical models: seconds to a gap of 1e-6 (Table 4), and flows of birds and bikes.

    python experiments/bethe_collective.py
    python experiments/bethe_collective.py speed --sizes 25 100
    python experiments/bethe_collective.py birds bikes

Speed: chains of 20 times with random scores, Poisson counts of 1,000 members that move by other scores. mbi
and cvxpy with Clarabel are installed under benchmarks/.peers and take turns with ours; each line tells the
smallest of several CPU and wall times, without compilation. Tables are in single precision, as mbi has them;
how far what was found is from the optimum is measured in double precision. mbi's solver is the fastest of
those tried, with its step chosen for each problem and the number of steps known beforehand.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from bethe_flows import bikes, birds

from factorwise.inference.message_passing.projection import ChainBase, Projection, poisson_counts, project
from factorwise.inference.message_passing.projection.problem import Problem

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from peers import ONE_THREAD, Peer, PeerUnavailableError
from timing import table, verdict

HERE = Path(__file__).parent
MBI = Peer("mbi", ("mbi==2.0.0",))
CLARABEL = Peer("clarabel", ("cvxpy==1.9.3", "clarabel==0.11.1"))
TIMES, MEMBERS, GAP = 20, 1_000, 1e-6
INTERIOR_SIZES = (25, 100)
CAP = 170.0  # seconds for one solution of the interior-point solver, its preparation included


def instance(size: int, seed: int = 0) -> dict[str, Any]:
    """Scores of a chain, and counts of members that move by other scores."""
    rng = np.random.default_rng(seed)
    first, edge = rng.normal(size=size), rng.normal(size=(TIMES - 1, size, size))
    start = np.exp(first + rng.normal(size=size))
    members = np.zeros((TIMES, size), dtype=np.int64)
    members[0] = rng.multinomial(MEMBERS, start / start.sum())
    for t in range(TIMES - 1):
        odds = np.exp(edge[t] + rng.normal(size=edge[t].shape))
        moves = odds / odds.sum(axis=1, keepdims=True)
        members[t + 1] = sum(rng.multinomial(n, row) for n, row in zip(members[t], moves, strict=True))
    node = np.zeros((TIMES, size))
    node[0] = first
    counts = rng.poisson(members).astype(float)
    energy = poisson_counts(counts, population=MEMBERS)
    return {"node": node, "edge": edge, "counts": counts, "energy": energy}


def ours(problem: dict[str, Any], tolerance: float, single: bool = True) -> Projection:
    """Solve by the dual over the measured marginals; tables are made ready anew, the energy is at hand."""
    base = ChainBase(problem["node"], problem["edge"], single=single)
    return project(base, problem["energy"], tolerance=tolerance)


def true_objective(problem: dict[str, Any], found: Projection) -> float:
    """Return the objective at what was found, in double precision."""
    exact = Problem(ChainBase(problem["node"], problem["edge"]), problem["energy"])
    return exact.point(found.shift).objective


class Worker:
    """A peer that has prepared a problem and solves it again and again."""

    def __init__(self, peer: Peer, script: str, problem: Path) -> None:
        command = [str(peer.python()), str(HERE / "bethe_peers" / script), str(problem)]
        environment = {**ONE_THREAD, "PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        self.ready = self._answer()

    def run(self) -> dict[str, Any]:
        """Solve once."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            tail = " | ".join(self.process.communicate()[1].strip().splitlines()[-3:])
            raise PeerUnavailableError(tail)
        return json.loads(line)


@contextmanager
def worker(peer: Peer, script: str, problem: Path) -> Iterator[Worker | None]:
    """Start a peer; None, and a line that says why, where it cannot run here."""
    try:
        made = Worker(peer, script, problem)
    except (PeerUnavailableError, OSError) as error:
        print(f"  {peer.name} cannot run here: {error}", flush=True)
        yield None
        return
    try:
        yield made
    finally:
        made.close()


def speed(sizes: list[int], seconds: float) -> None:
    """Print seconds by size, and how they stand to each other."""
    rows, bars = [], []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            problem = instance(size)
            best = ours(problem, 1e-12, single=False).objective
            # the peers' objective is in shares of the population: without the logarithm of its size
            plain = best + problem["counts"].sum() / MEMBERS * np.log(MEMBERS)
            allowed = GAP * min(abs(best), abs(plain))
            problem["tolerance"] = allowed / max(1.0, abs(best))
            path = Path(folder) / f"{size}.npz"
            share = problem["counts"] / MEMBERS
            np.savez(
                path, node=problem["node"], edge=problem["edge"], share=share, best=plain, allowed=allowed
            )
            with worker(MBI, "mbi_run.py", path) as mbi:
                times = _interleaved(problem, mbi, seconds)
            found = ours(problem, problem["tolerance"])
            above = true_objective(problem, found) - best
            print(
                f"  {size} places: allowed {allowed:.1e}; ours certified {found.gap:.1e}, really {above:.1e},"
                f" {found.calls} calls; mbi {mbi.ready if mbi else 'none'}",
                flush=True,
            )
            if size in INTERIOR_SIZES:
                times["Clarabel"] = _capped(path)
            rows += [(f"{size}", who, f"{cpu:.4f}", f"{wall:.4f}") for who, (cpu, wall) in times.items()]
            bars += _bars(size, times)
    print(table(("places", "solver", "CPU s", "wall s"), rows))
    print("\n".join(bars))


def oracle(size: int = 224, times: int = 200) -> None:
    """Print what one answer of the chain takes, against reading its tables once."""
    problem = instance(size)
    base = ChainBase(problem["node"], problem["edge"])
    none = np.zeros(base.layout.node_size)
    work = {
        "reading": lambda: problem["edge"].sum(),
        "node marginals": lambda: base.answer(none),
        "edge marginals": lambda: base.marginals(none),
    }
    seconds = dict.fromkeys(work, np.inf)
    for _ in range(times):
        for name, function in work.items():
            begin = time.perf_counter()
            function()
            seconds[name] = min(seconds[name], time.perf_counter() - begin)
    for name, bar in (("node marginals", 2.0), ("edge marginals", 3.5)):
        taken = seconds[name] / seconds["reading"]
        print(
            f"{size} places, {name}: {1e3 * seconds[name]:.2f} ms, {taken:.1f} times a reading of its tables"
            f" ({1e3 * seconds['reading']:.2f} ms), bar {bar:g}: {'met' if taken <= bar else 'missed'}"
        )


def _interleaved(
    problem: dict[str, Any], mbi: Worker | None, patience: float
) -> dict[str, tuple[float, float]]:
    seconds: dict[str, list[tuple[float, float]]] = {"ours": []}
    end = time.monotonic() + patience
    while time.monotonic() < end or len(seconds["ours"]) < 5:
        begin, began = time.process_time(), time.perf_counter()
        ours(problem, problem["tolerance"])
        wall, cpu = time.perf_counter() - began, time.process_time() - begin
        seconds["ours"].append((cpu, wall))
        if mbi is not None and mbi.ready["solver"]:
            answer = mbi.run()
            seconds.setdefault("mbi", []).append((answer["cpu"], answer["wall"]))
    return {who: (min(c for c, _ in runs), min(w for _, w in runs)) for who, runs in seconds.items()}


def _capped(path: Path) -> tuple[float, float]:
    """Solve once by the interior-point solver; the cap if it does not end before."""
    with worker(CLARABEL, "clarabel_run.py", path) as interior:
        if interior is None:
            return (np.nan, np.nan)
        assert interior.process.stdin is not None
        try:
            out, _ = interior.process.communicate("\n", timeout=CAP)
        except subprocess.TimeoutExpired:
            print(f"  Clarabel did not end within {CAP:.0f} s: its time is that at least", flush=True)
            return (CAP, CAP)
    answer = json.loads(out.strip().splitlines()[-1])
    print(f"  Clarabel: gap {answer['gap']:.1e}; with cvxpy's own work {answer['wall']:.1f} s", flush=True)
    return (answer["solver_seconds"], answer["solver_seconds"])


def _bars(size: int, times: dict[str, tuple[float, float]]) -> Iterator[str]:
    def ratio(peer: str) -> float:
        return min(theirs / own for theirs, own in zip(times[peer], times["ours"], strict=True))

    if "mbi" in times:
        bar = 1.0 if size == 25 else 5.0
        taken = ratio("mbi")
        yield f"{size} places: mbi takes {taken:.1f} times ours, bar {bar:g}: {verdict(taken, bar)}"
    if "Clarabel" in times:
        text = f"{size} places: Clarabel takes {ratio('Clarabel'):.0f} times ours"
        yield f"{text}, bar 300: {verdict(ratio('Clarabel'), 300)}" if size == 100 else text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["speed", "birds", "bikes"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 100, 224])
    parser.add_argument("--seconds", type=float, default=4.0, help="to take turns for, for each size")
    given = parser.parse_args()
    if "speed" in given.parts:
        print("seconds to a relative gap of 1e-6")
        speed(given.sizes, given.seconds)
        oracle()
    if "birds" in given.parts:
        birds()
    if "bikes" in given.parts:
        bikes()


if __name__ == "__main__":
    main()
