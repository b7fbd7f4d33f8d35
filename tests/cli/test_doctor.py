"""``factorwise doctor``."""

import json
import os

import numba
import pytest

import factorwise
from factorwise.cli.options import usable_processors


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    """A cache with two files and a data directory with one set."""
    cache, data = tmp_path / "cache", tmp_path / "data"
    (cache / "deep").mkdir(parents=True)
    (cache / "one").write_bytes(bytes(1_500))
    (cache / "deep" / "two").write_bytes(bytes(10))
    (data / "cora").mkdir(parents=True)
    monkeypatch.setenv("FACTORWISE_CACHE", str(cache))
    monkeypatch.setenv("FACTORWISE_DATA", str(data))


def diagnosis(run, *words):
    result = run("doctor", "--json", *words)
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
        "files": 2,
        "bytes": 1_510,
    }
    assert document["data"] == {"path": str(tmp_path / "data"), "found": True, "sets": ["cora"]}
    assert document["advice"] == []


def test_text_tells_the_same(run, tmp_path):
    out = run("doctor").out
    assert f"factorwise  {factorwise.__version__}" in out
    assert str(tmp_path / "cache") in out
    assert "2 files, 1.5 kB" in out
    assert "found, 1 entries" in out


def test_a_cache_that_is_not_there_yet_is_not_created(run, tmp_path, monkeypatch):
    monkeypatch.setenv("FACTORWISE_CACHE", str(tmp_path / "new" / "cache"))
    cache = diagnosis(run)["cache"]
    assert (cache["exists"], cache["writable"], cache["files"]) == (False, True, 0)
    assert "not there yet, writable" in run("doctor").out
    assert not (tmp_path / "new").exists()


def test_a_cache_that_cannot_be_written_brings_advice(run, tmp_path, monkeypatch):
    """The path leads through a file, which stops even a privileged user."""
    monkeypatch.setenv("FACTORWISE_CACHE", str(tmp_path / "cache" / "one" / "inside"))
    document = diagnosis(run)
    assert not document["cache"]["writable"]
    assert "set FACTORWISE_CACHE to a folder that can" in document["advice"][0]
    assert "set FACTORWISE_CACHE" in run("doctor").out


def test_a_read_only_cache_brings_advice(run, monkeypatch):
    genuine = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and genuine(path, mode))
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
