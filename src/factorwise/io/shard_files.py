"""Checkpoints of sharded runs: a Parquet file for each shard, and a manifest that is written last.

A folder may be a path, or an address that Arrow knows (``s3://``, ``gs://``, ``hdfs://``...) or that fsspec
does. Every attempt to write a shard uses its own file name, so that a task that runs twice, or whose machine
was believed lost, overwrites nothing. Files that no manifest names are ignored.
"""

from __future__ import annotations

import json
import posixpath
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from numpy.typing import NDArray

from factorwise.errors import DataFileError
from factorwise.io.tables.addresses import open_address
from factorwise.validation import as_whole

FORMAT = 1
_SHARD = re.compile(r"shard-\d{5}-[0-9a-f]{16}\.parquet")
_MANIFEST = re.compile(r"manifest-\d{6}\.json")
_DRAFT = re.compile(r"manifest-\d{6}\.json\.[0-9a-f]{16}\.part")
_LISTS = {"neighbor": pa.int64(), "score": pa.float32()}


class PartFile(NamedTuple):
    """A file of one shard: its name, the number of items, and the sum of their hashes."""

    name: str
    items: int
    hashes: int

    def check(self, checksum: tuple[int, int]) -> None:
        """Raise an error if what was read is not what was written."""
        if tuple(checksum) != (self.items, self.hashes):
            raise DataFileError(
                f"{self.name}: has {checksum[0]} items instead of {self.items}, or other items than"
                " were written. Remove the checkpoint to start again."
            )


class Manifest(NamedTuple):
    """A committed checkpoint: its run, the state of that, and the files of the shards."""

    fingerprint: str
    state: Mapping[str, Any]
    files: Sequence[PartFile]


@dataclass(frozen=True)
class ShardStore:
    """A folder of checkpoints, by path or address."""

    address: str

    def reach(self) -> None:
        """Raise an error now if the folder cannot be created or reached."""
        files, folder = self._opened()
        try:
            files.create_dir(folder, recursive=True)
        except OSError as error:
            raise DataFileError(
                f"{self.address}: cannot be written to ({error}). Check your permissions, or give"
                " another folder."
            ) from error

    def write(self, shard: int, columns: Mapping[str, NDArray[Any]], checksum: tuple[int, int]) -> PartFile:
        """Write the rows of a shard to its own file."""
        files, folder = self._opened()
        files.create_dir(folder, recursive=True)
        name = f"shard-{shard:05d}-{secrets.token_hex(8)}.parquet"
        with files.open_output_stream(posixpath.join(folder, name)) as stream:
            pq.write_table(_table(columns), stream, compression="zstd")
        return PartFile(name, *checksum)

    def read(self, file: PartFile) -> dict[str, NDArray[Any]]:
        """Return the columns of a shard."""
        files, folder = self._opened()
        try:
            with files.open_input_file(posixpath.join(folder, file.name)) as stream:
                return _columns(pq.read_table(stream))
        except (OSError, pa.ArrowException, AttributeError, KeyError, ValueError) as error:
            raise DataFileError(
                f"{self.address}: cannot read {file.name} of the checkpoint ({error}). Remove the"
                " checkpoint to start again."
            ) from error

    def commit(self, manifest: Manifest) -> None:
        """Commit a checkpoint, and remove earlier ones."""
        files, folder = self._opened()
        text = {
            "format": FORMAT,
            "fingerprint": manifest.fingerprint,
            "state": dict(manifest.state),
            "files": [list(file) for file in manifest.files],
        }
        name = f"manifest-{int(manifest.state['round']):06d}.json"
        draft = posixpath.join(folder, f"{name}.{secrets.token_hex(8)}.part")
        with files.open_output_stream(draft) as stream:
            stream.write(json.dumps(text).encode())
        files.move(draft, posixpath.join(folder, name))
        self._clear(keeping={name, *(file.name for file in manifest.files)})

    def latest(self, fingerprint: str, *, begun: bool = False) -> Manifest | None:
        """Return the manifest of the last checkpoint of this run; None if there is none.

        begun
            Whether ``fingerprint`` is only the known beginning of the run's fingerprint.
        """
        files, folder = self._opened()
        names = sorted(filter(_MANIFEST.fullmatch, self._names()))
        if not names:
            return None
        try:
            with files.open_input_stream(posixpath.join(folder, names[-1])) as stream:
                text = json.loads(stream.read())
            manifest = Manifest(
                text["fingerprint"], text["state"], [_part_file(*file) for file in text["files"]]
            )
            known = text["format"] == FORMAT
            if not isinstance(manifest.fingerprint, str) or not isinstance(manifest.state, dict):
                raise TypeError("neither a fingerprint nor a state")
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataFileError(
                f"{self.address}: {names[-1]} is damaged. Give another folder, or remove it to start again."
            ) from error
        same = manifest.fingerprint.startswith(fingerprint) if begun else manifest.fingerprint == fingerprint
        if not known or not same:
            raise DataFileError(
                f"{self.address}: is the checkpoint of another run (other records, model, settings,"
                " seed or number of shards). Give another folder, or remove it to start again."
            )
        return manifest

    def clear(self) -> None:
        """Remove all checkpoints."""
        self._clear(keeping=set())

    def _clear(self, keeping: set[str]) -> None:
        """Remove checkpoints, and incomplete parts of others; other files stay."""
        files, folder = self._opened()
        old = self._names() - keeping
        # manifests first: one without its files would be an unreadable checkpoint
        for kind in (_MANIFEST, _DRAFT, _SHARD):
            for name in sorted(filter(kind.fullmatch, old)):
                files.delete_file(posixpath.join(folder, name))

    def _names(self) -> set[str]:
        files, folder = self._opened()
        listed = files.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
        return {info.base_name for info in listed}

    def _opened(self) -> tuple[pafs.FileSystem, str]:
        return open_address(self.address)


def _part_file(name: object, items: object, hashes: object) -> PartFile:
    """Return an entry of a manifest whose name is a plain file name in the folder."""
    if not isinstance(name, str) or not _SHARD.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a shard file")
    return PartFile(name, as_whole("items", items), as_whole("hashes", hashes, 0, 2**64))


def _table(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return rows as a table, possibly with lists of links, whose bounds are those of the lists."""
    arrays = {name: pa.array(columns[name]) for name in columns if name not in ("start", *_LISTS)}
    for name, kind in _LISTS.items():
        if name in columns:
            bounds = pa.array(columns["start"].astype(np.int64))
            arrays[name] = pa.LargeListArray.from_arrays(bounds, pa.array(columns[name], kind))
    return pa.table(arrays)


def _columns(table: pa.Table) -> dict[str, NDArray[Any]]:
    whole = table.combine_chunks()
    columns: dict[str, NDArray[Any]] = {}
    for name in whole.column_names:
        array = _single(whole[name])
        if name in _LISTS:
            columns["start"] = array.offsets.to_numpy() - array.offsets[0].as_py()
            columns[name] = array.flatten().to_numpy()
        else:
            columns[name] = array.to_numpy()
    return columns


def _single(column: pa.ChunkedArray) -> pa.Array:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    )
