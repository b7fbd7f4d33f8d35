"""Entity resolution beside splink 5 and dedupe 3, trained on half of the entities, scored on the rest.

    make bench ARGS=resolution
    make bench ARGS="resolution --quick"
    make bench ARGS="resolution --tools factorwise --reuse"
    make bench ARGS="resolution --tools splink,dedupe --sets restaurant,febrl3"

The ten sets are looked for in FACTORWISE_DATA (er/restaurant and so on); a million records in the manner of
Febrl are generated. ``factorwise`` is run by its command line, with a model fitted on the training half and
without one. splink is trained without labels, dedupe from 1,000 labelled pairs; both get the threshold that
is best on the training half by B-cubed F1, and beside the result stands the best they could have had on the
test half. dedupe has one thread and ten minutes of CPU time a set. On the million, splink is trained on
those records themselves, and labels come from 20,000 others.

Results are kept in benchmarks/out/resolution/; ``--reuse`` prints those of tools that are not run now.
Our kernels are compiled before the first set. Costs are those of whole processes, children included: CPU
seconds, wall seconds and peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from peers import Peer, PeerUnavailableError
from resolution_peers.halves import SETS, Halves, clusters_of_rule, write_halves
from resolution_peers.measuring import read_entities
from timing import table, verdict

from factorwise.datasets.local import find_data
from factorwise.errors import MissingDataError
from factorwise.metrics.clustering import b_cubed, pairwise

HERE = Path(__file__).parent
SCRIPTS = HERE / "resolution_peers"
KEPT = HERE / "out" / "resolution"
SPLINK = Peer("splink", ("splink==5.0.0",))
DEDUPE = Peer("dedupe", ("dedupe==3.0.3", "BTrees<=6.4"))
MILLION = "febrl_like"
LABELED_OTHERS = 20_000
BEST_BAR, SPEED_BAR = 8, 2.0
LONGEST = 7_200.0  # wall seconds for one phase of one tool
QUICK_SETS, QUICK_RECORDS = ("restaurant", MILLION), 20_000


class Cost(NamedTuple):
    """What a phase took: seconds of wall and CPU time, MB of the largest process."""

    wall: float
    cpu: float
    peak: float

    def __add__(self, other: object) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(self.wall + other.wall, self.cpu + other.cpu, max(self.peak, other.peak))


@dataclass(frozen=True)
class Outcome:
    """What one tool made of one set; a ``note`` says why it has no answer, a ``fault`` what is wrong."""

    tool: str
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    pair_f1: float = 0.0
    threshold: float | None = None
    best_f1: float | None = None
    best_threshold: float | None = None
    fit: Cost | None = None
    choose: Cost | None = None
    apply: Cost | None = None
    note: str = ""
    fault: str = ""
    day: str = ""
    earlier: bool = False

    def scored(self, truth: dict[str, str], found: dict[str, str]) -> Outcome:
        """Add the scores of a clustering."""
        labels = [found[record] for record in truth]
        whole, pairs = b_cubed(truth.values(), labels), pairwise(truth.values(), labels)
        return replace(self, precision=whole.precision, recall=whole.recall, f1=whole.f1, pair_f1=pairs.f1)


class Bench(NamedTuple):
    """How tools are run: threads, CPU seconds that dedupe has for a set, and a folder for what they write."""

    threads: int
    limit: float
    folder: Path

    def measured(self, command: Sequence[str]) -> tuple[str, Cost]:
        """Run a command in a process group of its own and return what it printed and cost."""
        variables = {**os.environ, "TMPDIR": str(self.folder), "LOKY_MAX_CPU_COUNT": "1"}
        variables |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            began = time.time()
            process = subprocess.Popen(
                [*command], stdout=out, stderr=err, env=variables, start_new_session=True
            )
            try:
                cost = wait_for(process, began)
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)
            out.seek(0)
            err.seek(0)
            if process.returncode:
                tail = " | ".join((err.read() or out.read()).strip().splitlines()[-2:])
                raise PeerUnavailableError(f"exit status {process.returncode}: {tail[-300:]}")
            return out.read(), cost

    def script(self, peer: Peer, name: str, *words: object) -> list[Any]:
        """Run a peer's script and return the lines of JSON it printed."""
        command = [str(peer.python()), str(SCRIPTS / f"{peer.name}_run.py"), name, *map(str, words)]
        printed, _ = self.measured([*command, "--began", repr(time.time())])
        return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def wait_for(process: subprocess.Popen[bytes], began: float) -> Cost:
    """Wait until a process ends; its resources are told only by the call that reaps it."""
    while time.time() - began < LONGEST:
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            process.returncode = os.waitstatus_to_exitcode(status)
            return Cost(time.time() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
        time.sleep(0.02)
    raise PeerUnavailableError(f"no answer within {LONGEST:.0f} s")


def cost_of(told: dict[str, Any]) -> Cost:
    return Cost(told["wall"], told["cpu"], told["peak"])


def checked(outcome: Outcome, best: dict[str, Any]) -> Outcome:
    """Note where two ways to the same figure differ: the written answer, and the sweep over thresholds."""
    swept = best.get("scores", {}).get(str(outcome.threshold), outcome.f1)
    if abs(swept - outcome.f1) < 1e-6:
        return outcome
    return replace(outcome, fault=f"B-cubed F1 {outcome.f1:.6f} as written, {swept:.6f} in the sweep")


def run_splink(bench: Bench, name: str, files: Halves, truth: dict[str, str]) -> list[Outcome]:
    model, out = bench.folder / "splink.json", bench.folder / "splink.csv"
    fitted_on = files.test if name == MILLION else files.train
    threads = ("--threads", bench.threads)
    fit = bench.script(SPLINK, name, "fit", fitted_on, model, *threads)[-1]
    chosen = bench.script(SPLINK, name, "choose", files.train, model, *threads)[-1]
    applied = bench.script(SPLINK, name, "apply", files.test, model, chosen["threshold"], out, *threads)[-1]
    best = bench.script(SPLINK, name, "sweep", files.test, model, files.truth, *threads)[-1]
    outcome = Outcome(
        "splink",
        threshold=chosen["threshold"],
        best_f1=best["f1"],
        best_threshold=best["threshold"],
        fit=cost_of(fit),
        choose=cost_of(chosen),
        apply=cost_of(applied),
    )
    return [checked(outcome.scored(truth, read_entities(out)), best)]


def run_dedupe(bench: Bench, name: str, files: Halves, truth: dict[str, str]) -> list[Outcome]:
    if name == MILLION:
        return []
    model, out = bench.folder / "dedupe.model", bench.folder / "dedupe.csv"
    costs: dict[str, Cost] = {}
    told: dict[str, Any] = {}
    best: dict[str, Any] = {}
    for phase in ("fit", "choose", "apply"):
        left = bench.limit - sum(cost.cpu for cost in costs.values())
        words = [phase, files.test if phase == "apply" else files.train, model]
        words += [told["threshold"], out, files.truth] if phase == "apply" else []
        lines = bench.script(DEDUPE, name, *words, "--limit", max(left, 1.0))
        if "failed" in lines[0]:
            note = f"{lines[0]['failed']} in {phase} ({bench.limit:.0f} CPU s for all)"
            return [Outcome("dedupe", **costs, note=note)]
        told, best, costs[phase] = {**told, **lines[0]}, lines[-1], cost_of(lines[0])
    outcome = Outcome(
        "dedupe",
        threshold=told["threshold"],
        best_f1=best.get("f1"),
        best_threshold=best.get("threshold"),
        **costs,
    )
    return [checked(outcome.scored(truth, read_entities(out)), best)]


def run_factorwise(bench: Bench, name: str, files: Halves, truth: dict[str, str]) -> list[Outcome]:
    """Fit and apply by the command line; the second row is without a model."""
    model, out = bench.folder / "ours.fw", bench.folder / "ours.csv"
    given = [*(SETS[name].options if name in SETS else ()), "--id", "id", "--quiet"]
    given += ["--threads", str(bench.threads)]

    def resolve(verb: str, *words: object) -> Cost:
        program = Path(sys.executable).with_name("factorwise")
        return bench.measured([str(program), "resolve", verb, *map(str, words), *given])[1]

    rows = []
    for tool, learned in (("factorwise", True), ("factorwise, no labels", False)):
        out.unlink(missing_ok=True)
        try:
            fit = resolve("fit", files.train, "--entity", "entity", "--model", model) if learned else None
            apply = resolve("apply", files.test, *(("--model", model) if learned else ()), "-o", out)
        except PeerUnavailableError as failure:
            rows.append(Outcome(tool, note=str(failure)))
        else:
            rows.append(Outcome(tool, fit=fit, apply=apply).scored(truth, read_entities(out)))
    return rows


def warm_up(options: argparse.Namespace) -> None:
    """Let our kernels be compiled and kept: a machine does that once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = prepare(MILLION, folder, 2_000)
        run_factorwise(
            Bench(options.threads, options.limit, folder), MILLION, files, read_entities(files.truth)
        )


RUNNERS: dict[str, Callable[[Bench, str, Halves, dict[str, str]], list[Outcome]]] = {
    "splink": run_splink,
    "dedupe": run_dedupe,
    "factorwise": run_factorwise,
}


def keep(name: str, tool: str, rows: Sequence[Outcome]) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{name}.{tool}.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))


def kept(name: str, tool: str) -> list[Outcome]:
    """Return what an earlier run left."""
    path = KEPT / f"{name}.{tool}.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    for row in rows:
        row |= {phase: Cost(*row[phase]) for phase in ("fit", "choose", "apply") if row[phase]}
    return [Outcome(**row | {"earlier": True}) for row in rows]


def prepare(name: str, folder: Path, records: int) -> Halves:
    """Write the files of a set."""
    if name != MILLION:
        return write_halves(name, find_data(SETS[name].folder), folder)
    files = Halves(folder / "train.csv", folder / "test.csv", folder / "truth.csv")
    script = [sys.executable, str(SCRIPTS / "febrl_like.py")]
    subprocess.run([*script, str(records), "1", str(files.test), str(files.truth)], check=True)
    subprocess.run([*script, str(min(records, LABELED_OTHERS)), "2", str(files.train)], check=True)
    return files


def run_set(name: str, options: argparse.Namespace) -> list[Outcome]:
    """Run the tools that are asked for on one set, and take what is kept of the others."""
    with tempfile.TemporaryDirectory() as scratch:
        files = prepare(name, Path(scratch), options.records)
        truth = read_entities(files.truth)
        head = f"{name}: {len(truth):,} records of {len(set(truth.values())):,} entities to resolve"
        print(head, flush=True)
        rule = SETS[name].rule if name in SETS else ("soc_sec_id",)
        rows = [Outcome(f"same {' and '.join(rule)}").scored(truth, clusters_of_rule(files.test, rule))]
        for tool, runner in RUNNERS.items():
            if tool not in options.tools:
                rows += kept(name, tool) if options.reuse else []
                continue
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                try:
                    found = runner(Bench(options.threads, options.limit, Path(folder)), name, files, truth)
                except PeerUnavailableError as failure:
                    found = [Outcome(tool, note=str(failure))]
            found = [replace(row, day=date.today().isoformat()) for row in found]
            if not options.quick:
                keep(name, tool, found)
            rows += found
    print(table(HEAD, [cells(row) for row in rows]), flush=True)
    for row in rows:
        if row.note or row.fault:
            print(f"  {row.tool}: {row.note or row.fault}")
    print(flush=True)
    return rows


HEAD = ("", "P", "R", "B3 F1", "pair F1", "at", "best", "at", "fit CPU", "wall", "apply CPU", "wall", "MB")


def cells(row: Outcome) -> list[str]:
    """Format a row; fitting is what needs the training half, the choice of a threshold apart."""
    name = f"  {row.tool}" + (f" (run of {row.day})" if row.earlier else "")
    if row.note:
        return [name, *("-" for _ in HEAD[1:])]
    scores = [f"{value:.4f}" for value in (row.precision, row.recall, row.f1, row.pair_f1)]
    chosen = "" if row.threshold is None else f"{row.threshold:g}"
    best = ["", ""] if row.best_f1 is None else [f"{row.best_f1:.4f}", f"{row.best_threshold:g}"]
    times = [
        text
        for cost in (row.fit, row.apply)
        for text in ([f"{cost.cpu:.1f}", f"{cost.wall:.1f}"] if cost else ["", ""])
    ]
    peak = max((cost.peak for cost in (row.fit, row.apply) if cost), default=0.0)
    return [name, *scores, chosen, *best, *times, f"{peak:,.0f}" if peak else ""]


def ratio(ours: Outcome, splink: Outcome, field: str, *, choosing: bool = True) -> float:
    """Return our time over splink's: fitting, choosing the threshold by the labels or not, and applying.

    Ours has no threshold; what it chooses by the labels, it chooses while fitting.
    """
    times = []
    for row in (ours, splink):
        costs = (row.fit, row.choose if choosing else None, row.apply)
        times.append(sum(getattr(cost, field) for cost in costs if cost is not None))
    return float(times[0] / times[1])


def summary(results: dict[str, list[Outcome]]) -> None:
    """Print the bars: quality of each set, how often ours is best, and how much slower it is than splink."""
    lines, best, compared = [], 0, 0
    for name, rows in results.items():
        by_tool = {row.tool: row for row in rows if not row.note}
        ours, splink = by_tool.get("factorwise"), by_tool.get("splink")
        if ours is None:
            continue
        bar = SETS[name].bar if name in SETS else None
        if name == MILLION and splink is not None:
            bar = splink.f1
        rivals = [by_tool[tool].f1 for tool in ("splink", "dedupe") if tool in by_tool]
        if name != MILLION and rivals:
            compared += 1
            best += ours.f1 >= max(rivals)
        lines.append(
            [
                f"  {name}",
                f"{ours.f1:.4f}",
                "" if bar is None else f"bar {bar:.4f}: {verdict(ours.f1, bar)}",
                *(f"{by_tool[tool].f1:.4f}" if tool in by_tool else "-" for tool in ("splink", "dedupe")),
                f"{ratio(ours, splink, 'cpu', choosing=False):.2f}" if splink else "-",
                *(f"{ratio(ours, splink, field):.2f}" if splink else "-" for field in ("cpu", "wall")),
                verdict(ratio(ours, splink, "cpu"), SPEED_BAR, at_most=True) if splink else "",
            ]
        )
    if lines:
        head = ("B-cubed F1, and our time over splink's", "ours", "", "splink", "dedupe")
        times = ("CPU, threshold given", "CPU", "wall", f"CPU at most {SPEED_BAR:g}")
        print(table((*head, *times), lines))
        met = "met" if best >= BEST_BAR else "not met"
        print(f"best on {best} of {compared} sets; the bar is {BEST_BAR} of {len(SETS)}: {met}")


def listed(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Return a parser of names between commas."""

    def parse(text: str) -> list[str]:
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return text.split(",")

    return parse


def main(arguments: Sequence[str] | None = None) -> None:
    known = [*SETS, MILLION]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", type=listed(known), help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--tools", type=listed([*RUNNERS]), default=[*RUNNERS], help=", ".join(RUNNERS))
    parser.add_argument("--reuse", action="store_true", help="take results of an earlier run of other tools")
    parser.add_argument("--threads", type=int, default=2, help="for splink and factorwise")
    parser.add_argument("--limit", type=float, default=600.0, help="CPU seconds that dedupe has for a set")
    parser.add_argument("--records", type=int, default=1_000_000, help="how many to generate")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.records = QUICK_RECORDS
    if "factorwise" in options.tools:
        warm_up(options)
    results = {}
    for name in options.sets or (QUICK_SETS if options.quick else known):
        try:
            results[name] = run_set(name, options)
        except MissingDataError as absent:
            print(f"{name}: left out, {absent}\n")
    summary(results)
    faults = [
        f"{name}, {row.tool}: {row.fault}" for name, rows in results.items() for row in rows if row.fault
    ]
    if faults:
        sys.exit("WRONG: " + "; ".join(faults))


if __name__ == "__main__":
    main()
