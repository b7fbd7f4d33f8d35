"""Checkpoints: what was kept comes back, of the same run only, and a folder never holds half of one."""

import numpy as np
import pytest

from factorwise.errors import DataFileError, ModelFileError
from factorwise.io import atomic
from factorwise.io.checkpoints import FILE, Checkpoint, read_checkpoint, remove_checkpoint, write_checkpoint

STATE = Checkpoint({"round": 3, "score": -0.1}, {"label": np.array([2, 0, 2], np.int32), "none": np.zeros(0)})


def contents(state):
    return dict(state.numbers), {name: (a.dtype, a.tolist()) for name, a in state.arrays.items()}


def test_what_was_written_is_read(tmp_path):
    write_checkpoint(tmp_path / "a" / "b", "run", STATE)
    assert contents(read_checkpoint(tmp_path / "a" / "b", "run")) == contents(STATE)


def test_a_later_one_replaces_the_earlier(tmp_path):
    later = STATE._replace(numbers={"round": 4, "score": 1.5})
    for state in (STATE, later):
        write_checkpoint(tmp_path, "run", state)
    assert contents(read_checkpoint(tmp_path, "run")) == contents(later)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_arrays_that_are_not_contiguous_are_kept_by_value(tmp_path):
    array = np.arange(12).reshape(3, 4)[:, ::2]
    write_checkpoint(tmp_path, "run", Checkpoint({}, {"a": array}))
    assert read_checkpoint(tmp_path, "run").arrays["a"].tolist() == array.tolist()


def test_where_there_is_none_yet_nothing_is_read(tmp_path):
    assert read_checkpoint(tmp_path / "nowhere", "run") is None
    assert read_checkpoint(tmp_path, "run") is None


def test_one_of_another_run_is_refused(tmp_path):
    write_checkpoint(tmp_path, "run", STATE)
    with pytest.raises(DataFileError, match=r"of another run.*Give another folder, or remove it"):
        read_checkpoint(tmp_path, "other run")


def test_a_damaged_one_is_refused(tmp_path):
    write_checkpoint(tmp_path, "run", STATE)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataFileError, match=r"damaged.*remove it to start again"):
        read_checkpoint(tmp_path, "run")


def test_a_removed_one_is_gone_and_removing_none_is_no_error(tmp_path):
    write_checkpoint(tmp_path, "run", STATE)
    for _ in range(2):
        remove_checkpoint(tmp_path)
        assert read_checkpoint(tmp_path, "run") is None


def test_writing_that_breaks_off_leaves_the_earlier_one(tmp_path, monkeypatch):
    write_checkpoint(tmp_path, "run", STATE)

    def broken(*given, **named):
        raise OSError("no space left")

    monkeypatch.setattr(atomic.os, "replace", broken)
    with pytest.raises(ModelFileError, match="no space left"):
        write_checkpoint(tmp_path, "run", STATE._replace(numbers={"round": 4}))
    monkeypatch.undo()
    assert contents(read_checkpoint(tmp_path, "run")) == contents(STATE)
