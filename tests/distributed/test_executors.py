"""Executors: the order of answers, and rows that go to files and come back."""

import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow.fs as pafs
import pytest

from factorwise.distributed import LocalExecutor, ShardRows
from factorwise.distributed.executors import read_shard, write_shard
from factorwise.distributed.ray_executor import RayExecutor
from factorwise.errors import DataFileError, InvalidArgumentError, MissingExtraError
from factorwise.io import shard_files
from factorwise.io.shard_files import Manifest, PartFile, ShardStore
from shard_cases import planted, rows_of, same_rows

GIVEN = planted(80)
STATE = {"round": 3, "settled": False, "score": 1.5}


def folder_of(store):
    return Path(store.address)


@pytest.fixture
def store(tmp_path):
    return ShardStore(str(tmp_path / "kept" / "here"))


def committed(store, round_=3, fingerprint="this"):
    executor = LocalExecutor(1)
    executor.load(GIVEN.shards(3))
    manifest = Manifest(fingerprint, STATE | {"round": round_}, executor.checkpoint(store))
    store.commit(manifest)
    return manifest


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_answers_are_in_the_order_of_the_items(threads):
    wait = [threading.Event() for _ in range(7)]
    wait[6].set()

    def answer(number):
        if threads > 1:  # all but the last wait for one that comes later, as far as threads allow
            wait[number].wait(0.02)
            wait[number - 1].set()
        return number * 10

    assert LocalExecutor(threads).map(answer, [(k,) for k in range(7)]) == [k * 10 for k in range(7)]


def test_no_items_have_no_answers_and_a_shared_value_is_itself():
    executor, value = LocalExecutor(2), object()
    assert executor.map(divmod, []) == []
    assert executor.map(divmod, [(7, 2)]) == [(3, 1)]
    assert executor.share(value) is value


def test_threads_are_one_or_more():
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        LocalExecutor(0)


def test_an_error_in_a_shard_is_passed_on():
    with pytest.raises(ZeroDivisionError):
        LocalExecutor(2).map(divmod, [(1, 1), (1, 0), (1, 2)])


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_come_back_from_files_bit_by_bit(store, threads):
    executor, again = LocalExecutor(threads), LocalExecutor(threads)
    executor.load([*GIVEN.shards(3), rows_of([]), rows_of([900])])
    files = executor.checkpoint(store)
    again.restore(store, files)
    for one, two in zip(executor.rows(), again.rows(), strict=True):
        assert same_rows(one, two)
    assert [file.items for file in files] == [rows.n_items for rows in executor.rows()]


@pytest.mark.parametrize("name", ["plain", "memory", "file"])
def test_folders_are_paths_or_addresses(name, tmp_path):
    address = {"plain": str(tmp_path / "a b"), "memory": "memory://kept/here", "file": f"file://{tmp_path}/c"}
    store = ShardStore(address[name])
    assert store.latest("this") is None
    manifest = committed(store)
    assert store.latest("this") == manifest
    assert sum(read_shard(store, file).n_items for file in manifest.files) == 80
    store.clear()
    assert store.latest("this") is None


def test_an_address_of_no_known_kind_is_named():
    with pytest.raises(DataFileError, match="nowhere://x: is not the address of a folder"):
        ShardStore("nowhere://x").latest("this")


def test_without_ray_its_executor_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    for address in ("local", "auto", "127.0.0.1:6379"):
        with pytest.raises(MissingExtraError, match=r'pip install "factorwise\[ray\]"'):
            RayExecutor(address)


def test_infinite_scores_and_all_bits_of_sources_come_back(store):
    rows = rows_of([1, 2**40], [(1, 2**40, -np.inf)], counts=[2**31 - 1, 1], sources=[2**64 - 1, 0])
    assert same_rows(read_shard(store, write_shard(store, 0, [rows])), rows)


def test_every_attempt_has_a_file_of_its_own(store):
    rows = rows_of([1, 2])
    files = [write_shard(store, 4, [rows]) for _ in range(5)]
    assert len({file.name for file in files}) == 5
    assert all(file.name.startswith("shard-00004-") for file in files)
    for file in files:
        assert same_rows(read_shard(store, file), rows)


def test_a_new_checkpoint_replaces_the_old_one(store):
    committed(store, 3)
    (folder_of(store) / "mine.txt").write_text("not ours")
    latest = committed(store, 5)
    assert store.latest("this") == latest
    names = {path.name for path in folder_of(store).iterdir()}
    assert names == {"manifest-000005.json", "mine.txt", *(file.name for file in latest.files)}


def test_files_that_no_manifest_names_do_not_count_and_are_cleared_later(store):
    first = committed(store, 3)
    stray = write_shard(store, 1, [rows_of([5])])
    (folder_of(store) / f"manifest-000009.json.{'0123' * 4}.part").write_text("{")
    assert store.latest("this") == first
    committed(store, 4)
    names = {path.name for path in folder_of(store).iterdir()}
    assert stray.name not in names
    assert not any(name.endswith(".part") for name in names)


class Full:
    """Files of this machine, of which one operation fails."""

    def __init__(self, operation):
        self.operation, self.files = operation, pafs.LocalFileSystem()

    def __getattr__(self, name):
        return self.fail if name == self.operation else getattr(self.files, name)

    def fail(self, *_):
        raise OSError("no space left on device")


@pytest.mark.parametrize("operation", ["open_output_stream", "move"])
def test_a_checkpoint_whose_manifest_was_not_written_leaves_the_old_one(store, monkeypatch, operation):
    first = committed(store, 3)
    executor = LocalExecutor(1)
    executor.load(GIVEN.shards(3))
    files = executor.checkpoint(store)
    full = Full(operation)
    monkeypatch.setattr(shard_files.pafs, "LocalFileSystem", lambda: full)
    with pytest.raises(OSError, match="no space left"):
        store.commit(Manifest("this", STATE | {"round": 4}, files))
    monkeypatch.undo()
    assert store.latest("this") == first
    again = LocalExecutor(1)
    again.restore(store, first.files)
    assert ShardRows.joined(list(again.rows())).n_items == 80


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "fingerprint": 3}'])
def test_a_damaged_manifest_is_named(store, text):
    committed(store, 3)
    (folder_of(store) / "manifest-000003.json").write_text(text)
    with pytest.raises(DataFileError, match=r"manifest-000003\.json is damaged.*remove it to start again"):
        store.latest("this")


def test_a_manifest_of_another_format_or_run_is_refused(store):
    committed(store, 3)
    with pytest.raises(DataFileError, match="the checkpoint of another run"):
        store.latest("that")
    path = folder_of(store) / "manifest-000003.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(DataFileError, match="the checkpoint of another run"):
        store.latest("this")


@pytest.mark.parametrize("damage", ["cut", "gone", "empty", "text"])
def test_a_damaged_file_of_a_shard_is_named(store, damage):
    file = committed(store, 3).files[1]
    path = folder_of(store) / file.name
    if damage == "gone":
        path.unlink()
    else:
        content = {"cut": path.read_bytes()[:-20], "empty": b"", "text": b"PAR1 and nothing else PAR1"}
        path.write_bytes(content[damage])
    executor = LocalExecutor(2)
    with pytest.raises(DataFileError, match=rf"cannot read {file.name}.*Remove the checkpoint"):
        executor.restore(store, [file, file])


def test_a_file_with_other_items_than_were_written_is_named(store):
    file = write_shard(store, 0, [rows_of([1, 2, 3])])
    other = write_shard(store, 0, [rows_of([1, 2, 4])])
    swapped = PartFile(other.name, file.items, file.hashes)
    with pytest.raises(DataFileError, match=rf"{other.name}: has 3 items instead of 3, or other items"):
        read_shard(store, swapped)
