"""Checkpoints of sharded runs: what counts, and what is none of theirs."""

import numpy as np
import pytest

from factorwise.errors import DataFileError
from factorwise.io import shard_files
from factorwise.io.shard_files import Manifest, ShardStore

COLUMNS = {
    "item": np.arange(2),
    "start": np.array([0, 1, 1]),
    "neighbor": np.array([1]),
    "score": np.array([0.5], np.float32),
}


def kept(folder, number):
    store = ShardStore(str(folder))
    store.commit(Manifest("run", {"round": number}, [store.write(0, COLUMNS, (2, 7))]))
    return store


def test_only_the_last_checkpoint_stays_and_files_of_others_are_left_alone(tmp_path):
    mine = ["shard-1.csv", "manifest-of-ship.txt", "manifest-x.json", "shard-00000-notes.parquet"]
    for name in mine:
        (tmp_path / name).write_text("keep")
    kept(tmp_path, 4)
    store = kept(tmp_path, 8)
    assert store.latest("run").state == {"round": 8}
    ours = sorted(path.name for path in tmp_path.iterdir() if path.name not in mine)
    assert [name.partition("-")[0] for name in ours] == ["manifest", "shard"]
    store.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(mine)


def test_drafts_that_were_never_finished_are_removed(tmp_path):
    draft = tmp_path / f"manifest-000004.json.{'0' * 16}.part"
    draft.write_text("{")
    kept(tmp_path, 8)
    assert not draft.exists()


def test_columns_come_back(tmp_path):
    store = ShardStore(str(tmp_path))
    found = store.read(store.write(3, COLUMNS, (2, 7)))
    for name, column in COLUMNS.items():
        np.testing.assert_array_equal(found[name], column)


def test_a_store_that_cannot_be_reached_is_named(monkeypatch):
    class Unreachable:
        @staticmethod
        def from_uri(address):
            raise OSError("no network")

    monkeypatch.setattr(shard_files.pafs, "FileSystem", Unreachable)
    with pytest.raises(DataFileError, match=r"s3://b/run: cannot be reached \(no network\)"):
        ShardStore("s3://b/run").reach()


def test_a_folder_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataFileError, match="cannot be written to"):
        ShardStore(str(tmp_path / "file" / "folder")).reach()
