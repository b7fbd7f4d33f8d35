"""A store and its review: how long people wait for the next question, and programs for a lookup.

    make bench ARGS=review
    make bench ARGS="review --records 1e6 --fitted 1e5 --folder /tmp/million"
    make bench ARGS="review --quick"

Mentions of authors are generated (`factorwise generate authors`); all but the last thousand go into a store.
``--fitted`` learns weights from that many other mentions with labels first, for stores in which finding
weights without labels would take long. Three things are timed, on a copy of the store:

- answers on the page that ``factorwise review`` serves, from sending one to having the next question, by a
  person who knows the truth and thinks for ``--think`` seconds; what the answers teach is learned meanwhile;
- lookups of the last thousand mentions, warm;
- ``factorwise resolve add`` of these thousand, as a whole process.

``--folder`` keeps mentions and store for the next run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from timing import smallest_process, table, verdict

from factorwise.apps.resolution.curation import Curator
from factorwise.store import Store

NEW = 1_000  # mentions that are looked up and added
PROGRAM = [sys.executable, "-m", "factorwise"]


def make_store(folder: Path, records: int, fitted: int) -> Path:
    """Generate mentions, and put all but the last thousand into a store, unless that was done before."""
    store = folder / "mentions.duckdb"
    if store.exists():
        return store
    truth = folder / "mentions.parquet"
    generate(truth, records + NEW, 1)
    mentions = pq.read_table(truth).drop_columns(["entity"])
    old, new = folder / "old.parquet", folder / "new.parquet"
    pq.write_table(mentions.slice(0, records), old)
    pq.write_table(mentions.slice(records), new)
    options: list[str] = []
    if fitted:
        labels, model = folder / "labels.parquet", folder / "model.fw"
        generate(labels, fitted, 2)
        run("resolve", "fit", str(labels), "--id", "id", "--entity", "entity", "--model", str(model))
        options = ["--model", str(model)]
    run("resolve", "init", str(store), str(old), "--id", "id", *options)
    return store


def generate(target: Path, mentions: int, seed: int) -> None:
    run("generate", "authors", "-n", str(mentions), "--seed", str(seed), "-o", str(target))


def run(*arguments: str) -> None:
    subprocess.run([*PROGRAM, *arguments, "--quiet", "--threads", "1"], check=True, stdout=subprocess.DEVNULL)


class Page:
    """The page of a store, served by a process of its own."""

    def __init__(self, store: Path) -> None:
        command = [*PROGRAM, "review", str(store), "--no-browser", "--threads", "1"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the page gets."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as response:
            found: dict[str, Any] = json.load(response)
        return found

    def cpu(self) -> float:
        """Return the CPU seconds that the server has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def said_by_truth(question: dict[str, Any], truth: dict[str, int]) -> dict[str, Any]:
    """Return what a person who knows the truth answers."""
    answer: dict[str, Any] = {"number": question["number"]}
    if question["kind"] != "whole":
        one, two = (truth[name] for name in question["ids"])
        return answer | {"answer": "same" if one == two else "different"}
    ids = [record["id"] for record in question["shown"]]
    number = np.unique([truth[name] for name in ids], return_inverse=True)[1]
    out = [name for name, k in zip(ids, number, strict=True) if k != np.bincount(number).argmax()]
    return answer | ({"answer": "all but", "taken_out": out} if out else {"answer": "same"})


def measure_page(store: Path, truth: dict[str, int], answers: int, think: float) -> list[list[str]]:
    """Answer on the page; return rows of the waiting times."""
    began = time.perf_counter()
    page = Page(store)
    try:
        question = page.ask("api/question")["question"]
        first, begun = time.perf_counter() - began, page.cpu()
        waits = []
        for _ in range(answers):
            if question is None:
                break
            time.sleep(think)
            sent = time.perf_counter()
            question = page.ask("api/answer", said_by_truth(question, truth))["question"]
            waits.append(time.perf_counter() - sent)
        used = (page.cpu() - begun) / len(waits)
    finally:
        page.stop()
    median, most = np.quantile(waits, [0.5, 0.95])
    bars = (2.0, 2.0) if len(truth) >= 1_000_000 else (0.3, 1.0)
    return [
        ["first question, from the start", f"{first:.1f} s", "", ""],
        row(f"next question, median of {len(waits)}", median, bars[0]),
        row("next question, 95 %", most, bars[1]),
        ["CPU of the server, with learning, an answer", f"{used:.2f} s", "", ""],
    ]


def measure_lookups(path: Path, new: list[dict[str, Any]]) -> list[list[str]]:
    """Look new mentions up; return rows of the times."""
    with Store.open(path, read_only=True) as store:
        curator = Curator(store)
        began = time.perf_counter()
        curator.lookup(new[0])
        first, walls, begun = time.perf_counter() - began, [], time.process_time()
        for record in new[1:]:
            began = time.perf_counter()
            curator.lookup(record)
            walls.append(time.perf_counter() - began)
        cpu = (time.process_time() - begun) / len(walls)
    median, most = np.quantile(walls, [0.5, 0.95])
    return [
        ["first lookup", f"{first:.1f} s", "", ""],
        row("next lookups, median", median, 0.02),
        ["next lookups, 95 %", f"{most:.4f} s", "", ""],
        ["next lookups, CPU", f"{cpu:.4f} s", "", ""],
    ]


def row(what: str, seconds: float, bar: float) -> list[str]:
    return [what, f"{seconds:.4f} s", f"{bar} s", verdict(seconds, bar, at_most=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=float, default=5e4, help="mentions in the store")
    parser.add_argument(
        "--fitted", type=float, default=0, help="mentions with labels that a model is fitted to"
    )
    parser.add_argument("--answers", type=int, default=100, help="answers on the page")
    parser.add_argument("--think", type=float, default=1.0, help="seconds between question and answer")
    parser.add_argument("--folder", type=Path, help="where mentions and store are kept")
    parser.add_argument("--quick", action="store_true", help="5,000 mentions, ten answers")
    options = parser.parse_args()
    if options.quick:
        options.records, options.answers, options.think = 5e3, 10, 0.2
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        made = make_store(folder, int(options.records), int(options.fitted))
        mentions = pq.read_table(folder / "mentions.parquet", columns=["id", "entity"])
        truth = dict(
            zip(mentions["id"].cast("string").to_pylist(), mentions["entity"].to_pylist(), strict=True)
        )
        store = Path(temporary) / "copy.duckdb"
        shutil.copyfile(made, store)
        rows = measure_lookups(store, pq.read_table(folder / "new.parquet").to_pylist())
        rows += measure_page(store, truth, options.answers, options.think)
        command = [*PROGRAM, "resolve", "add", str(store), str(folder / "new.parquet"), "--id", "id"]
        added = smallest_process([*command, "--threads", "1", "--quiet"], 1)
        rows.append(row(f"add of {NEW:,}, CPU", added.cpu, 5.0))
    print(table([f"{int(options.records):,} mentions", "measured", "bar", ""], rows))


if __name__ == "__main__":
    main()
