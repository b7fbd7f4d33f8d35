"""Run the benchmarks in turn, each in a process of its own, and keep what they print in benchmarks/out/.

    make bench
    make bench ARGS=--quick
    make bench ARGS="clustering startup"

Exits 1 if a benchmark fails: a wrong answer, not a slow one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
HELPERS = {"run_all", "peers", "timing"}
QUICK = {"ising": ("--side", "50", "--rounds", "1")}


def benchmarks() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in HELPERS)


def run(name: str, quick: bool) -> bool:
    """Run one benchmark, showing and keeping its output; return whether it went well."""
    options = QUICK.get(name, ("--quick",)) if quick else ()
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
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(benchmarks()))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}: there are {', '.join(benchmarks())}.")
    failed = [name for name in options.names or benchmarks() if not run(name, options.quick)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
