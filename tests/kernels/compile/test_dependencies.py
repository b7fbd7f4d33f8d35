"""Which sources of the library the name of a generated module depends on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from factorwise.kernels.clusterings.code.functions import _IMPORTS as PAIR_IMPORTS
from factorwise.kernels.compile import cache, dependencies
from factorwise.kernels.compile.binding import _ENTRY
from factorwise.kernels.compile.cache import composed_name
from factorwise.kernels.compile.dependencies import LIBRARY, parsed, reached_modules

TEXT = f"{_ENTRY[: _ENTRY.index('{helpers}')].format(role='', inlined='part_of_entry')}\n{PAIR_IMPORTS}\n"
REACHED = sorted(reached_modules(TEXT))
NOT_REACHED = [
    "factorwise",
    "factorwise.kernels",
    "factorwise.kernels.chains.chains",
    "factorwise.kernels.clusterings.code.lane_code",
    "factorwise.kernels.compile.cache",
    "factorwise.model.model",
]
VERSIONS = {"numba": "1", "numpy": "2", "llvmlite": "3"}


@pytest.fixture(autouse=True)
def afresh():
    """Nothing is remembered of sources that a test has changed."""
    forget()
    yield
    forget()


def forget():
    for remembered in (dependencies._module, dependencies._path, dependencies.library_digest):
        remembered.cache_clear()


def file_of(module):
    place = LIBRARY.parent.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def edit(monkeypatch, module, addition=b"\n# edited\n"):
    """Let a file of the library end with something more."""
    edited, genuine = file_of(module), dependencies._read
    assert edited.is_file()
    monkeypatch.setattr(
        dependencies, "_read", lambda path: genuine(path) + (addition if path == edited else b"")
    )
    forget()


def test_generated_code_reaches_the_modules_that_it_imports_and_those_they_import():
    assert {
        "factorwise.kernels.compile.compiler",
        "factorwise.kernels.compile.primitives",
        "factorwise.kernels.numeric.simd",
        "factorwise.kernels.numeric.int_lanes",
    } <= set(REACHED)


def test_all_that_is_loaded_with_generated_code_is_reached():
    """But for the packages on the way, and what these load their names with."""
    command = [sys.executable, "-c", f"{TEXT}\nimport json, sys\nprint(json.dumps([*sys.modules]))"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    loaded = {name for name in json.loads(done.stdout) if name.split(".")[0] == "factorwise"}
    packages = {name for name in loaded if file_of(name).name == "__init__.py"}
    packages.add("factorwise.lazy")
    assert loaded - packages == set(REACHED) - packages


@pytest.mark.parametrize("module", REACHED)
def test_an_edit_of_what_is_reached_gives_another_name(monkeypatch, module):
    before = composed_name(TEXT, **VERSIONS)
    edit(monkeypatch, module)
    assert composed_name(TEXT, **VERSIONS) != before


@pytest.mark.parametrize("module", NOT_REACHED)
def test_an_edit_of_what_is_not_reached_gives_the_same_name(monkeypatch, module):
    before = composed_name(TEXT, **VERSIONS)
    edit(monkeypatch, module)
    assert composed_name(TEXT, **VERSIONS) == before


def test_a_new_import_in_what_is_reached_is_followed(monkeypatch):
    edit(monkeypatch, REACHED[0], b"\nimport factorwise.kernels.chains.chains\n")
    assert "factorwise.kernels.chains.chains" in reached_modules(TEXT)


@pytest.mark.parametrize("package", VERSIONS)
def test_another_version_of_a_package_gives_another_name(package):
    assert composed_name(TEXT, **{**VERSIONS, package: "4"}) != composed_name(TEXT, **VERSIONS)


def test_another_version_of_the_library_or_of_python_gives_another_name(monkeypatch):
    names = {composed_name(TEXT, **VERSIONS)}
    monkeypatch.setattr(cache, "__version__", "another")
    names.add(composed_name(TEXT, **VERSIONS))
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    names.add(composed_name(TEXT, **VERSIONS))
    assert len(names) == 3


def test_each_file_is_read_once(monkeypatch):
    read, genuine = [], dependencies._read
    monkeypatch.setattr(dependencies, "_read", lambda path: read.append(path) or genuine(path))
    for number in range(3):
        composed_name(f"{TEXT}VALUE = {number}\n", **VERSIONS)
    assert len(read) == len(set(read)) == len(REACHED)


IMPORTS = {
    "import factorwise.rng": {"factorwise.rng"},
    "import factorwise.rng as r, numpy": {"factorwise.rng", "numpy"},
    "from factorwise.rng import Stream": {"factorwise.rng", "factorwise.rng.Stream"},
    "from . import rng": {"factorwise.model", "factorwise.model.rng"},
    "from ..rng import Stream": {"factorwise.rng", "factorwise.rng.Stream"},
    "def f():\n    import factorwise.rng": {"factorwise.rng"},
    "try:\n    import one\nexcept ImportError:\n    import two": {"one", "two"},
    "if True:\n    pass\nelse:\n    with x:\n        import one": {"one"},
    "match x:\n    case 1:\n        import one": {"one"},
    "if TYPE_CHECKING:\n    import one\nelse:\n    import two": {"two"},
    "import typing\nif typing.TYPE_CHECKING:\n    import one": {"typing"},
    "text = 'import one'": set(),
}


@pytest.mark.parametrize("text", IMPORTS)
def test_imports_are_found_wherever_they_stand_but_for_those_of_type_checkers(text):
    assert dependencies._imports(parsed(text), "factorwise.model") == IMPORTS[text]


def test_names_that_are_no_modules_of_the_library_are_left_out():
    text = "import numpy\nfrom factorwise.types import Floats\nimport factorwise_other\n"
    assert reached_modules(text) == {"factorwise.types"}


def test_the_library_is_where_it_is_imported_from():
    assert Path(dependencies.__file__).is_relative_to(LIBRARY)
    assert LIBRARY.name == "factorwise"
