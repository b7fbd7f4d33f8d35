"""Scratch folders: gone at the end, also that of a process that was killed, and never one in use."""

import os
import signal
import subprocess
import sys

import pytest

from factorwise.io import scratch
from factorwise.io.scratch import LOCK, PREFIX, remove_abandoned, scratch_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="abandoned folders stay there")

HOLD = """
import sys
from factorwise.io.scratch import scratch_folder
with scratch_folder(sys.argv[1]) as folder:
    (folder / "data").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process with a scratch folder."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    ) as process:
        yield process, process.stdout.readline().strip()
        process.kill()


def folders(place):
    return [str(path) for path in place.iterdir()]


def test_a_folder_is_there_in_its_context_and_gone_afterwards(tmp_path):
    with scratch_folder(tmp_path) as folder:
        (folder / "data").write_text("x")
        assert folders(tmp_path) == [str(folder)]
        assert folder.name.startswith(PREFIX)
    assert folders(tmp_path) == []


def test_a_folder_in_use_stays_here_and_in_another_process(tmp_path, holder):
    _, theirs = holder
    with scratch_folder(tmp_path) as first, scratch_folder(tmp_path) as second:
        remove_abandoned(tmp_path)
        assert sorted(folders(tmp_path)) == sorted([theirs, str(first), str(second)])


def test_the_folder_of_a_process_that_was_killed_is_removed_by_the_next(tmp_path, holder):
    process, theirs = holder
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert folders(tmp_path) == [theirs]
    with scratch_folder(tmp_path) as folder:
        assert folders(tmp_path) == [str(folder)]


def test_folders_that_are_just_being_made_and_other_files_stay(tmp_path):
    (tmp_path / f"{PREFIX}made").mkdir()
    (tmp_path / f"{PREFIX}file").write_text("x")
    (tmp_path / "factorwise-0").mkdir()
    (tmp_path / "factorwise-0" / LOCK).touch()
    before = sorted(folders(tmp_path))
    remove_abandoned(tmp_path)
    assert sorted(folders(tmp_path)) == before


def test_where_nothing_can_be_locked_nothing_is_removed(tmp_path, monkeypatch):
    def refuse(*given):
        raise OSError("no locks here")

    monkeypatch.setattr(scratch.fcntl, "flock", refuse)
    (tmp_path / f"{PREFIX}a").mkdir()
    (tmp_path / f"{PREFIX}a" / LOCK).touch()
    with scratch_folder(tmp_path) as folder:
        assert not (folder / LOCK).exists()
        assert len(folders(tmp_path)) == 2
    assert folders(tmp_path) == [str(tmp_path / f"{PREFIX}a")]
