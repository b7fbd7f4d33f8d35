"""The same input, settings and seed give the same bytes, whenever they are used and on how many threads."""

import contextlib
import hashlib
import io
import os
import sys

import pytest

from command_lines import LINES, is_written, whole_folder
from factorwise.cli import main

# pages say when they were made
WRITING = [line for line in LINES if any(is_written(w) and not w.endswith(".html") for w in line.split())]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return whole_folder(tmp_path_factory.getbasetemp())


def digests(line, folder, threads, seed):
    """Run a line whose outputs go to another folder; return the digest of each file but pages."""
    words = [str(folder / word) if is_written(word) else word for word in line.split()]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as left:
        main.main([*words, "--quiet", "--threads", str(threads), "--seed", str(seed)])
    assert left.value.code == 0, line
    files = [path for path in sorted(folder.iterdir()) if path.suffix != ".html"]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("line", WRITING)
def test_two_runs_one_digest(line, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(whole)
    runs = []
    for number, threads in enumerate((1, 2, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setattr(sys, "argv", [f"/run/{number}/factorwise", str(folder), f"--threads={threads}"])
        monkeypatch.setenv("USER", f"user{number}")
        runs.append(digests(line, folder, threads, 3))
    assert runs[0]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("line", [line for line in LINES if line.split()[1:2] == ["fit"]])
def test_a_model_file_names_no_folder_and_no_user(line, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(whole)
    monkeypatch.setenv("USER", "a-very-special-user")
    words = [str(whole / word) if (whole / word).is_file() else word for word in line.split()]
    words = [str(tmp_path / word) if is_written(word) else word for word in words]
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as left:
        main.main([*words, "--quiet"])
    assert left.value.code == 0
    content = (tmp_path / "out.fw").read_bytes()
    for told in (str(whole), str(tmp_path), "a-very-special-user", os.uname().nodename):
        assert told.encode() not in content
