"""The provenance record: enough to make a result again, nothing about the machine's folders."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import factorwise
from factorwise.errors import InvalidArgumentError
from factorwise.io.models.provenance import HIDDEN, fingerprint, provenance, public_command, versions


def test_the_record_is_json_and_complete(tmp_path):
    data = tmp_path / "train.txt"
    data.write_bytes(b"abc")
    record = provenance({"steps": 3, "sizes": (1, 2)}, 7, [data])
    assert json.loads(json.dumps(record)) == record
    assert record["versions"]["factorwise"] == factorwise.__version__
    assert set(record["versions"]) == {"factorwise", "python", "numpy", "numba", "scipy"}
    assert all(record["versions"].values())
    assert set(record) == {"versions", "platform", "configuration", "seed", "data"}
    assert record["configuration"] == {"steps": 3, "sizes": [1, 2]}
    assert record["seed"] == 7
    digest = hashlib.sha256(b"abc").hexdigest()
    assert record["data"] == [{"name": "train.txt", "bytes": 3, "sha256": digest}]


def test_no_folder_of_the_machine_is_recorded(tmp_path):
    data = tmp_path / "train.txt"
    data.write_text("abc")
    record = provenance({"config": tmp_path / "a.toml", "more": {"out": [Path("x/y.fw")]}}, 0, [data])
    assert str(tmp_path) not in json.dumps(record)
    assert record["configuration"] == {"config": "a.toml", "more": {"out": ["y.fw"]}}


def test_a_command_line_is_shown_without_folders(tmp_path):
    words = [str(tmp_path / "factorwise"), f"--config={tmp_path}/a.toml", "near/b.txt", "a=b", "--keys", "x"]
    assert public_command(words) == ["factorwise", "--config=a.toml", "near/b.txt", "a=b", "--keys", "x"]


@pytest.mark.parametrize(
    "words",
    [
        ["--password", "hunter2"],
        ["--password=hunter2"],
        ["--api-key", "hunter2"],
        ["--auth-token=hunter2"],
        ["--left", "postgresql://ann:hunter2@host/db"],
        ["--checkpoint=s3://AKIA:hunter2@bucket/run"],
        ["s3://bucket/run?secret_key=hunter2&region=x"],
        ["https://host/t.csv?sig=hunter2"],
        ["host=db password=hunter2 user=ann"],
    ],
)
def test_a_command_line_is_shown_without_credentials(words):
    public = public_command(["factorwise", "resolve", "fit", *words, "records.csv"])
    assert "hunter2" not in " ".join(public)
    assert HIDDEN in " ".join(public)
    assert public[:3] == ["factorwise", "resolve", "fit"]
    assert public[-1] == "records.csv"


def test_a_package_that_is_absent_has_no_version():
    assert versions(["surely-not-installed"])["surely-not-installed"] is None


def test_versions_are_found_without_importing_the_packages():
    script = (
        "import sys; from factorwise.io.models.provenance import provenance; provenance();"
        " print(sorted({'numba', 'scipy', 'numpy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_what_is_not_a_file_has_no_fingerprint(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, tmp_path / "none", pipe):
        with pytest.raises(InvalidArgumentError, match="give the files that were used"):
            fingerprint(path)
