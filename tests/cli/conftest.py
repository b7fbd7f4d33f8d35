"""Running the command line inside the test, with a verb of the test's own."""

import sys
from types import ModuleType
from typing import NamedTuple

import pytest

from factorwise.cli import main


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Run ``factorwise WORDS...`` and return exit code, standard output and standard error."""

    def run(*words) -> Result:
        with pytest.raises(SystemExit) as left:
            main.main([str(word) for word in words])
        return Result(left.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def add_verb(monkeypatch):
    """Register a verb as a new file would: one line in the registry, one module with ``command``."""

    def add_verb(name, command):
        module = ModuleType(f"verb_{name}")
        module.command = command
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(main.VERBS, name, (module.__name__, f"Do {name}."))

    return add_verb
