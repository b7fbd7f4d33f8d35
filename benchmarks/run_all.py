"""Run the benchmarks in turn, each in a process of its own, and keep what they print in benchmarks/out/.

    make bench
    make bench ARGS=--quick
    make bench ARGS="clustering startup"
    make bench ARGS="resolution --tools=splink,dedupe --sets=febrl3"

Options that are not known here are handed to the benchmark; then one benchmark has to be named first.

Exits 1 if a benchmark fails: a wrong answer, not a slow one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
HELPERS = {"run_all", "peers", "timing"}
QUICK = {"ising": ("--side", "50", "--rounds", "1")}


def benchmarks() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in HELPERS)


def run(name: str, quick: bool, own: Sequence[str]) -> bool:
    """Run one benchmark, showing and keeping its output; return whether it went well."""
    options = (*(QUICK.get(name, ("--quick",)) if quick else ()), *own)
    command = [sys.executable, "-u", str(HERE / f"{name}.py"), *options]
    print(f"== {name} {' '.join(options)}".rstrip(), flush=True)
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    with (
        (out / f"{name}.txt").open("w", encoding="utf-8") as kept,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process,
    ):
        for line in process.stdout or ():
            print(line, end="", flush=True)
            kept.write(line)
    print(flush=True)
    return process.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(benchmarks())}; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    options, own = parser.parse_known_args()
    unknown = sorted(set(options.names) - set(benchmarks()))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}: there are {', '.join(benchmarks())}.")
    if own and len(options.names) != 1:
        parser.error(f"{own[0]!r} is for one benchmark: name it, as in 'resolution --tools splink'.")
    failed = [name for name in options.names or benchmarks() if not run(name, options.quick, own)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
