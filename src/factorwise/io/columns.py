"""Columns of numbers, and tables, in memory or memory-mapped from files of a scratch folder.

Code that works on columns reads them in stretches and calls `release` after each, so that columns in files
need hardly any memory. The disk space of a file is allocated when it is created, so that a full disk raises
an error there instead of failing in the middle of the work.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from factorwise.errors import DataFileError
from factorwise.io.scratch import scratch_folder

AT_ONCE = 1 << 24  # pairs gathered, or merged, in one go, unless another number is asked for


class Columns:
    """Where columns are kept.

    folder
        The folder of their files; None to keep them in memory.
    at_once
        Number of pairs that are held in memory while they are made and sorted; None for the default.
    """

    def __init__(self, folder: Path | None = None, *, at_once: int | None = None) -> None:
        self.folder, self.at_once = folder, at_once
        self._numbers = itertools.count()
        self._tables: list[NDArray[np.uint8]] = []

    @classmethod
    def in_scratch(cls, parent: str | Path | None = None, *, at_once: int | None = None) -> Columns:
        """Keep columns in a scratch folder, which is removed with the last reference to the result."""
        stack = ExitStack()
        columns = cls(stack.enter_context(scratch_folder(parent)), at_once=at_once)
        weakref.finalize(columns, stack.close)
        return columns

    @property
    def in_files(self) -> bool:
        """Whether columns lie in files."""
        return self.folder is not None

    def path(self, name: str) -> Path:
        """Return the path of a new file."""
        assert self.folder is not None
        return self.folder / f"{next(self._numbers)}-{name}"

    def make(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return a column of zeros."""
        if self.folder is None or not count:
            return np.zeros(count, dtype)
        path, size = self.path("column"), count * np.dtype(dtype).itemsize
        with path.open("xb") as stream:
            take_room(stream.fileno(), size)
        return np.memmap(path, dtype, mode="r+", shape=(count,))

    def keep_table(self, table: pa.Table) -> pa.Table:
        """Return a table that lies in a file; in memory, the given table."""
        if self.folder is None:
            return table
        lying = _lying_in(table)
        if not lying:
            table = table_in_file(table.schema, table.to_batches(), self.folder)
            lying = _lying_in(table)
        self._tables += lying
        return table

    def rest(self) -> None:
        """Free the memory of tables in files and return it to the system, between two stages of work."""
        if self.folder is None:
            return
        release(*self._tables)
        pa.default_memory_pool().release_unused()
        if sys.platform == "linux":  # the allocator of Linux would otherwise keep it
            getattr(ctypes.CDLL(None), "malloc_trim", lambda kept: None)(0)

    def gather(self, parts: Iterable[tuple[NDArray[Any], ...]], dtypes: tuple[DTypeLike, ...]) -> list[Any]:
        """Return columns that concatenate the columns of parts."""
        if self.folder is None:
            kept = [tuple(np.zeros(0, dtype) for dtype in dtypes), *parts]
            kept = kept[1:] if len(kept) == 2 else kept
            return [np.concatenate(each) if len(each) > 1 else each[0] for each in zip(*kept, strict=True)]
        paths = [self.path("column") for _ in dtypes]
        with ExitStack() as stack:
            streams = [stack.enter_context(path.open("xb")) for path in paths]
            for part in parts:
                for stream, values, dtype in zip(streams, part, dtypes, strict=True):
                    stream.write(np.ascontiguousarray(values, dtype).data)
        return [
            np.memmap(path, dtype, mode="r+") if path.stat().st_size else np.zeros(0, dtype)
            for path, dtype in zip(paths, dtypes, strict=True)
        ]


IN_MEMORY = Columns()
_MAPPED: list[weakref.ref[NDArray[np.uint8]]] = []  # files that tables lie in


def table_in_file(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], folder: str | Path | None = None
) -> pa.Table:
    """Return a table that lies in a file, which is gone with the last reference to it, however that ends.

    folder
        Where the file is; None for the system's own place.
    """
    place = tempfile.gettempdir() if folder is None else str(folder)
    try:
        with tempfile.TemporaryFile(dir=place) as file:  # which has no name
            with pa.ipc.new_stream(pa.PythonFile(file, "w"), schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            file.flush()
            mapped = np.memmap(file, np.uint8, mode="r")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise DataFileError(
            f"the records do not fit into {place}: set TMPDIR to a folder with more room, or allow more"
            " memory."
        ) from error
    _MAPPED[:] = [one for one in _MAPPED if one() is not None] + [weakref.ref(mapped)]
    return pa.ipc.open_stream(pa.py_buffer(mapped)).read_all()


def _lying_in(table: pa.Table) -> list[NDArray[np.uint8]]:
    """Return the files that all of a table lies in; none if some of it is in memory."""
    there = [mapped for one in _MAPPED if (mapped := one()) is not None]
    found: dict[int, NDArray[np.uint8]] = {}
    for column in table.columns if there else ():
        for chunk in column.chunks:
            for address in (each.address for each in chunk.buffers() if each is not None and each.size):
                inside = [one for one in there if 0 <= address - one.ctypes.data < one.size]
                if not inside:
                    return []
                found[id(inside[0])] = inside[0]
    return list(found.values())


def take_room(handle: int, size: int) -> None:
    """Give an open file its final size, with its disk space allocated."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
    else:
        os.truncate(handle, size)


def release(*columns: Any) -> None:
    """Free the memory of columns that lie in files; their content stays."""
    if sys.platform != "linux":
        return
    for column in columns:
        mapped = column
        while mapped is not None and not isinstance(mapped, mmap.mmap):
            mapped = getattr(mapped, "base", None)
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)
