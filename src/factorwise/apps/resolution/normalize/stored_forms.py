"""Normal forms in files, which are written once and mapped into memory each time they are read."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.normalize.forms import Form, Frequencies, Lists, Numbers, Strings
from factorwise.apps.resolution.normalize.pair_values import PairValues
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.io.columns import Columns

K = TypeVar("K")


class StoredForms(MutableMapping[K, Form]):
    """A mapping of forms by name, which are stored in files."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._files: dict[K, Path] = {}

    def __setitem__(self, name: K, form: Form) -> None:
        path = self._columns.path("form")
        with pa.OSFile(str(path), "wb") as sink:
            for table in _tables(form):
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
        self._files[name] = path

    def __getitem__(self, name: K) -> Form:
        return _read(self._files[name])

    def __delitem__(self, name: K) -> None:
        self._files.pop(name).unlink()

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[K]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _tables(form: Form) -> Iterator[pa.Table]:
    """Yield the parts of a form as tables: its type, its arrays and its values."""
    yield pa.table({type(form).__name__: pa.array([0])})
    if isinstance(form, Numbers):
        yield pa.table({"values": form.values})
        return
    if isinstance(form, Vectors):
        yield pa.table({"codes": form.codes})
        yield pa.table({"shape": form.values.shape})
        yield pa.table({"values": form.values.ravel()})
        return
    if isinstance(form, PairValues):
        yield pa.table({"n_rows": [form.n_rows]})
        yield pa.table({"first": form.first})
        yield pa.table({"second": form.second})
        yield pa.table({"values": form.values})
        return
    if isinstance(form, Lists):
        yield pa.table({"offsets": form.offsets})
    yield pa.table({"codes": form.codes})
    yield pa.table({"values": form.values})
    counts, present = form.frequencies()
    yield pa.table({"counts": counts})
    yield pa.table({"present": pa.array([present])})


def _read(path: Path) -> Form:
    mapped = np.memmap(path, np.uint8, mode="c")  # kernels do not accept read-only arrays
    source = pa.BufferReader(pa.py_buffer(mapped))

    def part() -> tuple[str, pa.Array]:
        table = pa.ipc.open_stream(source).read_all()
        column = table.column(0)
        return table.column_names[0], column.chunk(0) if column.num_chunks else pa.array([], column.type)

    def numbers(dtype: Any) -> Any:
        column = part()[1]
        if not len(column):
            return np.zeros(0, dtype)
        start = column.buffers()[1].address - mapped.ctypes.data
        return np.asarray(mapped)[start : start + len(column) * np.dtype(dtype).itemsize].view(dtype)

    kind, _ = part()
    if kind == Numbers.__name__:
        return Numbers(numbers(np.float64))
    if kind == Vectors.__name__:
        codes, shape = numbers(np.int32), numbers(np.int64)
        return Vectors(codes, numbers(np.float32).reshape(shape))
    if kind == PairValues.__name__:
        n_rows = int(numbers(np.int64)[0])
        return PairValues(n_rows, numbers(np.int64), numbers(np.int64), numbers(np.float32))
    offsets = numbers(np.int64) if kind == Lists.__name__ else None
    codes = numbers(np.int32)
    values = part()[1]
    whole = Frequencies(numbers(np.int64), int(numbers(np.int64)[0]))
    if offsets is None:
        return Strings(codes, values, whole)
    return Lists(offsets, codes, values, whole)
