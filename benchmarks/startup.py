"""Start-up: how long a new process takes to its first result, with empty caches, warm, and after an edit.

    make bench ARGS=startup
    make bench ARGS="startup --quick"

Each line is the run of least CPU time among several new processes: a user's whole program, from the start of
the interpreter to the first steps of a sampler with a pair function of the user's own on 1,000 items. "cold"
begins with empty caches for kernels and models, "warm" with full ones, "edited" with full ones and a pair
function that has never been seen. Commands are measured as whole processes: the help of every verb, and
`resolve apply` of 5,000 made-up records with a model and without one, both with full caches.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from peers import ONE_THREAD, run_here
from timing import Timed, smallest_process, table, verdict

from factorwise.cli.main import VERBS

BARS = {"cold": 8.0, "warm": 1.0, "edited": 1.5}  # seconds
IMPORT_BAR, HELP_BAR = 0.1, 0.5
APPLY_BARS = {"with a model": 2.0, "without a model": 4.0}
RECORDS = 5_000
PHASES = ("import", "world", "compile", "sweep")
RELOCATE = "mcmc.RelocateToItem(), mcmc.RelocateToNew()"
ALL_MOVES = f"{RELOCATE}, mcmc.Merge(), mcmc.Split(), mcmc.RestrictedGibbs(model)"

# What a user would write, with the clock read between the parts.
PROGRAM = """
import sys, time
stamps = [(time.process_time(), time.monotonic())]
import json
import numpy as np
from factorwise import Fields, Model, Partition, mcmc, templates
from factorwise.rng import Stream
Pair, Metropolis, Engine = templates.PairTemplate, mcmc.Metropolis, mcmc.Walk
stamps.append((time.process_time(), time.monotonic()))

def alike(a, b):
    return (a.name == b.name, abs(a.year - b.year) < {edited}, 1)

rng = np.random.default_rng(0)
fields = Fields(name=rng.integers(0, 100, 1000), year=rng.integers(1900, 2000, 1000))
model = Model([Pair("alike", fields, alike, ["same name", "close years", "together"])], [2.0, 1.0, -2.0])
world = Partition.singletons(1000)
stamps.append((time.process_time(), time.monotonic()))
engine = Engine(Metropolis(model, mcmc.PartitionMixture([{moves}])), world)
stamps.append((time.process_time(), time.monotonic()))
engine.advance(Stream(0), 1.0, 10_000)
stamps.append((time.process_time(), time.monotonic()))
cpu, clock = zip(*stamps)
print(json.dumps(dict(
    cpu=cpu[-1], wall=clock[-1] - float(sys.argv[1]), phases=np.diff(cpu).tolist(), score=engine.score
)))
"""

_EDITS = itertools.count(5)


def caches(folder: Path) -> dict[str, str]:
    return {"NUMBA_CACHE_DIR": str(folder / "kernels"), "FACTORWISE_CACHE": str(folder / "models")}


def start(folder: Path, edited: int, moves: str = RELOCATE) -> dict[str, Any]:
    """Run the program in a new process whose caches are in ``folder``."""
    script = folder / "program.py"
    script.write_text(PROGRAM.format(edited=edited, moves=moves), encoding="utf-8")
    found: dict[str, Any] = run_here(script, [str(time.monotonic())], variables=ONE_THREAD | caches(folder))
    return found


def cold(repeats: int, moves: str = RELOCATE) -> dict[str, Any]:
    runs = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            runs.append(start(Path(folder), next(_EDITS), moves))
    return best(runs)


def warm_and_edited(repeats: int, moves: str = RELOCATE) -> tuple[dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder, known = Path(name), next(_EDITS)
        start(folder, known, moves)
        again = [start(folder, known, moves) for _ in range(repeats)]
        other = [start(folder, next(_EDITS), moves) for _ in range(repeats)]
    return best(again), best(other)


def best(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return min(runs, key=lambda run: run["cpu"])


def row(name: str, run: dict[str, Any], bar: float | None = None) -> list[str]:
    met = "none" if bar is None else f"{bar:g} s: {verdict(run['cpu'], bar, at_most=True)}"
    seconds = [run["cpu"], run["wall"], *run["phases"]]
    return [name, *(f"{value:.2f}" for value in seconds), met]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one run of each, without the general sweep")
    quick = parser.parse_args(arguments).quick
    repeats, cold_repeats = (1, 1) if quick else (7, 3)
    again, other = warm_and_edited(repeats)
    rows = [
        row("relocations, cold", cold(cold_repeats), BARS["cold"]),
        row("relocations, warm", again, BARS["warm"]),
        row("relocations, edited function", other, BARS["edited"]),
    ]
    if not quick:
        again, other = warm_and_edited(3, ALL_MOVES)
        rows += [
            row("all moves, cold", cold(1, ALL_MOVES)),
            row("all moves, warm", again),
            row("all moves, edited function", other),
        ]
    print("seconds from the start of the interpreter to 10,000 steps; phases in CPU seconds; bars are CPU")
    print(table(["start", "cpu", "wall", *PHASES, "bar"], rows))

    command = str(Path(sys.executable).with_name("factorwise"))
    processes = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
        "python -c 'import factorwise'": [sys.executable, "-c", "import factorwise"],
        "python -c 'import factorwise; factorwise.mcmc'": [
            sys.executable,
            "-c",
            "import factorwise; factorwise.mcmc",
        ],
        "factorwise --version": [command, "--version"],
    }
    whole = {name: smallest_process(words, repeats, ONE_THREAD) for name, words in processes.items()}
    rows = [[name, f"{run.cpu:.2f}", f"{run.wall:.2f}", ""] for name, run in whole.items()]
    rows[2][3] = f"{IMPORT_BAR:g} s: {verdict(whole[rows[2][0]].cpu, IMPORT_BAR, at_most=True)}"
    helps = {
        words: smallest_process([command, *words, "--help"], repeats, ONE_THREAD) for words in every_verb()
    }
    slowest = max(helps, key=lambda words: helps[words].cpu)
    rows.append(command_row(f"the slowest help, of {' '.join(slowest)}", helps[slowest], HELP_BAR))
    rows += [
        command_row(f"resolve apply, {RECORDS:,} records {name}", run, APPLY_BARS[name])
        for name, run in applied(command, repeats).items()
    ]
    print("\nseconds of a whole process")
    print(table(["command", "cpu", "wall", "bar"], rows))


def command_row(name: str, run: Timed[str], bar: float) -> list[str]:
    """Return a line of the table of commands."""
    return [name, f"{run.cpu:.2f}", f"{run.wall:.2f}", f"{bar:g} s: {verdict(run.cpu, bar, at_most=True)}"]


def every_verb() -> list[tuple[str, ...]]:
    """Return the words of every verb, of groups those inside."""
    words: list[tuple[str, ...]] = []
    for name, (module, _) in VERBS.items():
        inside = getattr(import_module(module).command, "verbs", ())
        words += [(name, verb) for verb in inside] or [(name,)]
    return words


def applied(command: str, repeats: int) -> dict[str, Timed[str]]:
    """Resolve made-up records with a model and without one, after a run that fills the caches."""
    generator = [sys.executable, str(Path(__file__).parent / "resolution_peers" / "febrl_like.py")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, test, model = folder / "train.csv", folder / "test.csv", folder / "model.fw"
        subprocess.run([*generator, str(RECORDS), "2", str(train)], check=True)
        subprocess.run([*generator, str(RECORDS), "1", str(test), str(folder / "truth.csv")], check=True)
        variables = ONE_THREAD | caches(folder)
        fit = [
            command,
            "resolve",
            "fit",
            str(train),
            "--id",
            "id",
            "--entity",
            "entity",
            "--model",
            str(model),
        ]
        smallest_process(fit, 1, variables)
        apply = [command, "resolve", "apply", str(test), "--id", "id", "-o", str(folder / "found.csv")]
        runs = {"with a model": [*apply, "--model", str(model)], "without a model": apply}
        for words in runs.values():
            smallest_process(words, 1, variables)
        return {name: smallest_process(words, repeats, variables) for name, words in runs.items()}


if __name__ == "__main__":
    main()
