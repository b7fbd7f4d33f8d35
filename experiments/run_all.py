"""Run every experiment of this folder in turn, each in a process of its own.

    make experiments

Exits 1 if an experiment fails; the others are run all the same.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
HELPERS = {
    "run_all",
    "adaptive_tasks",
    "bethe_flows",
    "bethe_letters",
    "citation_chains",
    "resolution_tasks",
    "samplerank_tasks",
}


def main() -> None:
    scripts = sorted(path for path in HERE.glob("*.py") if path.stem not in HELPERS)
    failed = []
    for script in scripts:
        print(f"== {script.stem}", flush=True)
        if subprocess.run([sys.executable, str(script), *sys.argv[1:]], check=False).returncode:
            failed.append(script.stem)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
