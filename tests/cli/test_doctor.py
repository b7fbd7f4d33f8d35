"""``factorwise doctor``."""

import json
import os
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

import numba
import numpy as np
import pytest

import factorwise
from factorwise.cli import compiling, doctor
from factorwise.cli.doctor import compiled_folder
from factorwise.cli.options import Options, usable_processors
from factorwise.cli.progress import tell_compiling
from factorwise.kernels.chains import chains as chain_kernels
from factorwise.kernels.compile import cache as cache_of_kernels
from factorwise.kernels.compile import random
from factorwise.kernels.compile.composition import composed_module

KERNELS = Path(random.__file__).parent


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    """A cache with two files and a data directory with one set."""
    cache, data = tmp_path / "cache", tmp_path / "data"
    cache.mkdir(mode=0o700)
    (cache / "deep").mkdir()
    (cache / "one").write_bytes(bytes(1_500))
    (cache / "deep" / "two").write_bytes(bytes(10))
    (data / "cora").mkdir(parents=True)
    monkeypatch.setenv("FACTORWISE_CACHE", str(cache))
    monkeypatch.setenv("FACTORWISE_DATA", str(data))


def diagnosis(run, *words):
    result = run("doctor", "--json", "--quiet", *words)
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


def test_json_tells_versions_processors_cache_and_data(run, tmp_path):
    document = diagnosis(run, "--threads", "3")
    assert document["versions"]["factorwise"] == factorwise.__version__
    assert document["versions"]["numba"] == numba.__version__
    assert document["processors"] == {"all": os.cpu_count(), "usable": usable_processors()}
    assert document["threads"] == 3
    assert document["cache"] == {
        "path": str(tmp_path / "cache"),
        "exists": True,
        "writable": True,
        "modules": 0,
        "files": 2,
        "bytes": 1_510,
    }
    assert document["data"] == {"path": str(tmp_path / "data"), "found": True, "sets": ["cora"]}
    assert document["advice"] == []


def test_text_tells_the_same(run, tmp_path):
    out = run("doctor").out
    assert re.search(rf"^  factorwise +{re.escape(factorwise.__version__)}$", out, re.MULTILINE)
    assert str(tmp_path / "cache") in out
    assert "2 files, 1.5 kB" in out
    assert "found, 1 entries" in out


def test_a_cache_that_is_not_there_yet_is_not_created(run, tmp_path, monkeypatch):
    monkeypatch.setenv("FACTORWISE_CACHE", str(tmp_path / "new" / "cache"))
    cache = diagnosis(run)["cache"]
    assert (cache["exists"], cache["writable"], cache["files"]) == (False, True, 0)
    assert "does not exist yet, writable" in run("doctor").out
    assert not (tmp_path / "new").exists()


def test_a_cache_that_cannot_be_written_brings_advice(run, tmp_path, monkeypatch):
    """The path leads through a file, which stops even a privileged user."""
    monkeypatch.setenv("FACTORWISE_CACHE", str(tmp_path / "cache" / "one" / "inside"))
    document = diagnosis(run)
    assert not document["cache"]["writable"]
    assert "set FACTORWISE_CACHE to a writable folder" in document["advice"][0]
    assert "set FACTORWISE_CACHE" in run("doctor").out


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owner here")
def test_a_cache_that_others_can_write_brings_advice(run, tmp_path):
    (tmp_path / "cache").chmod(0o777)
    (advice,) = diagnosis(run)["advice"]
    assert "can be written by other users (mode 777)" in advice
    assert f"chmod 700 {tmp_path / 'cache'}" in advice


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder of Linux")
def test_a_cache_where_permissions_do_not_tell_that_no_file_can_be_made_brings_advice(run, monkeypatch):
    monkeypatch.setenv("FACTORWISE_CACHE", "/proc/none")
    document = diagnosis(run)
    assert not document["cache"]["writable"]
    assert "cache /proc/none cannot be written" in document["advice"][0]


def test_a_read_only_cache_brings_advice(run, monkeypatch):
    monkeypatch.setattr(doctor, "can_write", lambda folder: False)
    document = diagnosis(run)
    assert document["cache"]["exists"]
    assert not document["cache"]["writable"]


def test_no_data_directory_is_no_fault_but_a_wrong_one_is(run, monkeypatch):
    monkeypatch.delenv("FACTORWISE_DATA")
    document = diagnosis(run)
    assert document["data"] == {"path": None, "found": False, "sets": []}
    assert document["advice"] == []
    assert "only needed for experiments" in run("doctor").out
    monkeypatch.setenv("FACTORWISE_DATA", "/nowhere/at/all")
    document = diagnosis(run)
    assert document["data"]["found"] is False
    assert "or unset it" in document["advice"][0]


def test_every_package_that_is_needed_and_every_extra_is_named_with_its_version(run, monkeypatch):
    named = ["numba>=0.61", 'jax>=0.5; extra == "autodiff"', "rdflib>=7; extra == 'ontologies'"]
    monkeypatch.setattr(metadata, "requires", lambda name: named)
    genuine = metadata.version

    def version(name):
        if name == "jax":
            raise metadata.PackageNotFoundError(name)
        return "7.1" if name == "rdflib" else genuine(name)

    monkeypatch.setattr(metadata, "version", version)
    document = diagnosis(run)
    assert set(document["versions"]) == {"factorwise", "python", "numba"}
    assert document["extras"] == {"autodiff": {"jax": None}, "ontologies": {"rdflib": "7.1"}}
    out = run("doctor").out
    assert "jax not installed (pip install 'factorwise[autodiff]')" in out
    assert "ontologies  rdflib 7.1\n" in out


def test_a_checkout_that_is_not_installed_has_versions_too(run, monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    document = diagnosis(run)
    assert document["versions"]["numpy"]
    assert document["extras"] == {}


def test_variables_that_decide_threads_and_places_are_told(run, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "")
    found = diagnosis(run)["environment"]
    assert found["OMP_NUM_THREADS"] == "3"
    assert "NUMBA_NUM_THREADS" not in found
    assert "OMP_NUM_THREADS" in run("doctor").out


def compiled(run, name="kernels"):
    return diagnosis(run)["compiled"][name]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder for the compiled code of one room, with one kernel in it, of this version."""
    random.random_uniform(np.array([1, 2], np.uint64))
    genuine = Path(random.random_uniform.stats.cache_path)
    assert genuine == compiled_folder(KERNELS)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    folder = compiled_folder(KERNELS)
    folder.mkdir(parents=True)
    for path in genuine.glob("random.random_uniform-*"):
        shutil.copy(path, folder)
    return folder


def index_in(folder):
    (index,) = folder.glob("*.nbi")
    return index


def test_compiled_kernels_are_counted_where_numba_keeps_them(run, kept):
    files = list(kept.iterdir())
    assert compiled(run) == {
        "path": str(kept.parent),
        "writable": True,
        "functions": 1,
        "for_this_version": 1,
        "bytes": sum(path.stat().st_size for path in files),
    }
    assert "1 functions" in run("doctor").out
    assert "all for this version" in run("doctor").out


def test_compiled_kernels_of_all_rooms_are_counted(run, kept):
    chains = compiled_folder(Path(chain_kernels.__file__).parent)
    chains.mkdir()
    index = chains / index_in(kept).name.replace("random.", "chains.")
    shutil.copy(index_in(kept), index)
    found = compiled(run)
    assert chains != kept
    assert (found["functions"], found["for_this_version"]) == (2, 2)
    assert found["path"] == str(kept.parent)


def test_beside_the_sources_compiled_kernels_of_all_rooms_are_counted(run, tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(factorwise.kernels, "__path__", [str(tmp_path / "kernels")])
    for room in ("chains", "text"):
        (tmp_path / "kernels" / room / "__pycache__").mkdir(parents=True)
        (tmp_path / "kernels" / room / "code.py").touch()
        (tmp_path / "kernels" / room / "__pycache__" / "code.some-1.py312.nbi").write_bytes(b"0123")
    found = compiled(run)
    assert (found["functions"], found["bytes"]) == (2, 8)
    assert found["path"] == str(tmp_path / "kernels")


def _by_another_numba(index):
    index.write_bytes(index.read_bytes().replace(numba.__version__.encode(), b"0" * len(numba.__version__)))


def _by_another_python(index):
    index.rename(index.with_name(index.name.replace(f".py3{sys.version_info[1]}.", ".py39.")))


def _of_a_module_that_is_gone(index):
    index.rename(index.with_name(f"gone{index.name}"))


@pytest.mark.parametrize("change", [_by_another_numba, _by_another_python, _of_a_module_that_is_gone])
def test_code_of_another_version_is_told_from_that_of_this_one(run, kept, change):
    change(index_in(kept))
    found = compiled(run)
    assert (found["functions"], found["for_this_version"]) == (1, 0)
    assert "none for this version, so the next run that needs it compiles" in run("doctor").out


def test_code_of_a_module_that_was_changed_since_is_of_another_version(run, tmp_path, monkeypatch, kept):
    """The copy of a kernel's module is the same at first, and then is not."""
    sources = tmp_path / "kernels"
    sources.mkdir()
    shutil.copy(KERNELS / "random.py", sources)
    monkeypatch.setattr(factorwise.kernels, "__path__", [str(sources)])
    shutil.copytree(kept, compiled_folder(sources))
    assert compiled(run)["for_this_version"] == 1
    long_after = index_in(kept).stat().st_mtime + 1e6
    (sources / "random.py").write_text("changed")
    os.utime(sources / "random.py", (long_after, long_after))
    assert compiled(run)["for_this_version"] == 0


def test_code_of_models_is_of_this_version_if_this_library_would_compose_it(run, tmp_path, monkeypatch, kept):
    cache = tmp_path / "cache"
    composed_module("ANSWER = 42\n")
    (module,) = cache.glob("factorwise_composed_*.py")
    folder = compiled_folder(cache)
    folder.mkdir(parents=True)
    index = folder / index_in(kept).name.replace("random.", f"{module.stem}.")
    shutil.copy(index_in(kept), index)
    assert diagnosis(run)["cache"]["modules"] == 1
    assert compiled(run, "models")["for_this_version"] == 1
    os.utime(index, (1e9, 1e9))  # before the library was installed, which is no change of it
    os.utime(module, (1e9, 1e9))
    assert compiled(run, "models")["for_this_version"] == 1
    monkeypatch.setattr(cache_of_kernels, "__version__", "another")
    found = compiled(run, "models")
    assert (found["functions"], found["for_this_version"]) == (1, 0)


@pytest.mark.parametrize("content", [b"not Python", b"\0", b"\xff"])
def test_a_generated_module_that_is_damaged_is_not_of_this_version(run, tmp_path, kept, content):
    cache, name = tmp_path / "cache", "factorwise_composed_damaged"
    (cache / f"{name}.py").write_bytes(content)
    folder = compiled_folder(cache)
    folder.mkdir(parents=True)
    shutil.copy(index_in(kept), folder / index_in(kept).name.replace("random.", f"{name}."))
    found = compiled(run, "models")
    assert (found["functions"], found["for_this_version"]) == (1, 0)


def test_where_nothing_was_compiled_yet_nothing_is_created(run, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert compiled(run)["functions"] == 0
    assert "none yet in" in run("doctor").out
    assert not (tmp_path / "numba").exists()


def test_kernels_that_cannot_be_kept_bring_advice(run, tmp_path, monkeypatch):
    """The path leads through a file, which stops even a privileged user."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache" / "one"))
    document = diagnosis(run)
    assert not document["compiled"]["kernels"]["writable"]
    assert "set NUMBA_CACHE_DIR to a writable folder" in document["advice"][0]


def test_code_is_kept_beside_its_source_or_else_in_the_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert compiled_folder(tmp_path) == tmp_path / "__pycache__"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(sys, "platform", "linux")
    through_a_file = tmp_path / "cache" / "one" / "inside"
    found = compiled_folder(through_a_file)
    assert found.parent == tmp_path / "user" / "numba"
    assert found.name.startswith("inside_")


def test_somebody_who_looks_on_is_told_that_a_first_run_compiles(monkeypatch, tmp_path, capsys):
    options = Options(seed=0, threads=1, config=None, json=False, quiet=False, verbose=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    tell_compiling(options)
    assert "compiling on the first run" in capsys.readouterr().err
    folder = compiled_folder(KERNELS)
    folder.mkdir()
    (folder / "some.nbi").touch()
    tell_compiling(options)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    (folder / "some.nbi").unlink()
    tell_compiling(options)
    assert capsys.readouterr().err == ""


def test_compiling_beforehand_runs_verbs_and_leaves_no_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(compiling, "COMMANDS", {"align": compiling.COMMANDS["align"]})
    document = diagnosis(run, "--compile")
    assert set(document["compiling"]) == {"align"}
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
def test_every_verb_that_is_compiled_beforehand_runs(run):
    assert set(diagnosis(run, "--compile")["compiling"]) == set(compiling.COMMANDS)
