"""Calls in tasks, with a plain mapping in the place of the cluster's store."""

import sys
from pathlib import Path

import pytest

from factorwise.distributed import remote_calls
from factorwise.distributed.remote_calls import LATEST, Board, print_texts, run_call


class PlainStore(dict):
    """The store of a cluster, in this process."""

    put, delete = dict.__setitem__, dict.pop


@pytest.fixture
def board(monkeypatch):
    store = PlainStore()
    monkeypatch.setattr(remote_calls, "_store", lambda: store)
    monkeypatch.setattr(remote_calls, "PAUSE", 10.0)  # it looks once, at the end
    return Board("call")


@pytest.mark.parametrize("fails", [False, True])
def test_a_call_leaves_the_process_in_the_folder_where_it_was(board, tmp_path, monkeypatch, fails):
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)

    def call():
        assert Path.cwd() == tmp_path / "there"
        return Path("missing" if fails else ".").stat()

    arguments = (board.name, False, str(tmp_path / "there"), call, ())
    if fails:
        with pytest.raises(FileNotFoundError):
            run_call(*arguments)
    else:
        run_call(*arguments)
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize("more", [0, 7])
def test_output_that_is_left_out_is_counted(board, tmp_path, capsys, more):
    def call():
        for number in range(LATEST + more):
            sys.stdout.write(f"{number} ")

    run_call(board.name, False, str(tmp_path), call, ())
    print_texts(board)
    printed = capsys.readouterr()
    assert printed.out == "".join(f"{number} " for number in range(more, LATEST + more))
    assert printed.err == (f"... {more} pieces of output left out\n" if more else "")
