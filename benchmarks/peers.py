"""Peers in environments of their own: install pinned versions once, run a script there, read its JSON.

Each peer gets a virtual environment under ``benchmarks/.peers/<name>/``. A peer that cannot be installed
here raises `PeerUnavailableError`, so that a benchmark can say so and go on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent / ".peers"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


class PeerUnavailableError(RuntimeError):
    """A peer that could not be installed or did not run; the message is the end of its output."""


class Peer(NamedTuple):
    """A named set of pinned requirements."""

    name: str
    requirements: tuple[str, ...]

    def python(self) -> Path:
        """Return the peer's interpreter, installing the peer on first use or after its pins changed."""
        home = FOLDER / self.name
        interpreter = home / "bin" / "python"
        installed = home / "installed.txt"
        wanted = "\n".join(self.requirements)
        if installed.exists() and installed.read_text() == wanted:
            return interpreter
        venv.create(home, with_pip=True, clear=True)
        command = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _checked([*command, *self.requirements], f"installing {self.name}")
        installed.write_text(wanted)
        return interpreter

    def run(
        self,
        script: Path,
        arguments: Sequence[str] = (),
        *,
        variables: Mapping[str, str] = ONE_THREAD,
        timeout: float = 3600.0,
    ) -> Any:
        """Run ``script`` in the peer's environment and return the JSON on the last line it prints."""
        command = [str(self.python()), str(script), *arguments]
        output = _checked(command, f"running {script.name} with {self.name}", variables, timeout)
        return last_json(output)


def run_here(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    variables: Mapping[str, str] = ONE_THREAD,
    timeout: float = 3600.0,
) -> Any:
    """Run ``script`` with the interpreter of this process, in the same way as a peer."""
    command = [sys.executable, str(script), *arguments]
    return last_json(_checked(command, f"running {script.name}", variables, timeout))


def last_json(output: str) -> Any:
    """Read the last line of ``output`` as JSON."""
    return json.loads(output.strip().splitlines()[-1])


def _checked(
    command: Sequence[str],
    what: str,
    variables: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> str:
    environment = {**os.environ, **(variables or {})}
    environment.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise PeerUnavailableError(f"{what}: no answer within {timeout:.0f} s") from late
    if done.returncode:
        tail = " | ".join((done.stderr or done.stdout).strip().splitlines()[-4:])
        raise PeerUnavailableError(f"{what} failed: {tail}")
    return done.stdout
