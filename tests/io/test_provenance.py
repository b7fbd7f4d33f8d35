"""The provenance record: enough to make a result again, nothing about the machine's folders."""

import hashlib
import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import factorwise
from factorwise.errors import InvalidArgumentError
from factorwise.io.provenance import fingerprint, provenance, versions


def test_the_record_is_json_and_complete(tmp_path):
    data = tmp_path / "train.txt"
    data.write_bytes(b"abc")
    record = provenance(["factorwise", "tag"], {"steps": 3, "sizes": (1, 2)}, 7, [data])
    assert json.loads(json.dumps(record)) == record
    assert record["versions"]["factorwise"] == factorwise.__version__
    assert set(record["versions"]) == {"factorwise", "python", "numpy", "numba", "scipy"}
    assert all(record["versions"].values())
    assert record["command"] == ["factorwise", "tag"]
    assert record["configuration"] == {"steps": 3, "sizes": [1, 2]}
    assert record["seed"] == 7
    assert datetime.fromisoformat(record["time"]).utcoffset() == timedelta(0)
    digest = hashlib.sha256(b"abc").hexdigest()
    assert record["data"] == [{"name": "train.txt", "bytes": 3, "sha256": digest}]


def test_no_folder_of_the_machine_is_recorded(tmp_path):
    data = tmp_path / "train.txt"
    data.write_text("abc")
    command = [
        str(tmp_path / "bin" / "factorwise"),
        f"--config={tmp_path}/a.toml",
        str(data),
        "near/b.txt",
        "a=b",
    ]
    record = provenance(
        command, {"config": tmp_path / "a.toml", "more": {"out": [Path("x/y.fw")]}}, 0, [data]
    )
    assert str(tmp_path) not in json.dumps(record)
    assert record["command"] == ["factorwise", "--config=a.toml", "train.txt", "near/b.txt", "a=b"]
    assert record["configuration"] == {"config": "a.toml", "more": {"out": ["y.fw"]}}


def test_the_command_line_of_the_process_is_the_default(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/opt/bin/factorwise", "doctor"])
    assert provenance()["command"] == ["factorwise", "doctor"]


def test_a_package_that_is_absent_has_no_version():
    assert versions(["surely-not-installed"])["surely-not-installed"] is None


def test_versions_are_found_without_importing_the_packages():
    script = (
        "import sys; from factorwise.io.provenance import provenance; provenance();"
        " print(sorted({'numba', 'scipy', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_what_is_not_a_file_has_no_fingerprint(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, tmp_path / "none", pipe):
        with pytest.raises(InvalidArgumentError, match="give the files in it"):
            fingerprint(path)
