"""Importing factorwise and asking its version are quick: nothing heavy is loaded before it is used."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import factorwise

CPU_SECONDS = 0.25
HEAVY = {"numba", "llvmlite", "scipy"}
ROOT = Path(__file__).parents[1]
COMMAND = """
from factorwise.cli.main import main
try:
    main(["%s"])
except SystemExit:
    pass
"""
ENTRIES = {
    "import": "import factorwise",
    "version": COMMAND % "--version",
    "help": COMMAND % "--help",
}


def extras() -> set[str]:
    """Names of the packages that are optional."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = project.get("optional-dependencies", {}).values()
    return {re.split(r"[^A-Za-z0-9_-]", package, maxsplit=1)[0] for group in groups for package in group}


def fresh(statements: str) -> tuple[float, set[str]]:
    """Run statements in a fresh interpreter; return their CPU seconds and the top-level packages loaded."""
    script = (
        "import json, sys, time\n"
        "start = time.process_time()\n"
        f"{statements}\n"
        "spent = time.process_time() - start\n"
        "loaded = sorted({name.partition('.')[0] for name in sys.modules})\n"
        "print(json.dumps([spent, loaded]), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    spent, loaded = json.loads(done.stderr)
    return spent, set(loaded)


@pytest.mark.parametrize("entry", ENTRIES)
def test_it_takes_little_time(entry):
    assert min(fresh(ENTRIES[entry])[0] for _ in range(4)) <= CPU_SECONDS


@pytest.mark.parametrize("entry", ENTRIES)
def test_it_loads_no_compiler_and_no_optional_package(entry):
    _, loaded = fresh(ENTRIES[entry])
    assert "factorwise" in loaded
    assert loaded & (HEAVY | extras()) == set()


def test_every_public_name_is_listed_and_can_be_had():
    assert factorwise.__all__
    assert set(factorwise.__all__) <= set(dir(factorwise))
    for name in factorwise.__all__:
        assert getattr(factorwise, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        factorwise.no_such_name  # noqa: B018
