"""Index for adding records efficiently: links with comparison levels, blocking keys and value counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.types import Ints

if TYPE_CHECKING:
    from factorwise.store.store import Store


class StoredLinks(NamedTuple):
    """Compared pairs of records, ``first < second``, and their levels: uint8[pairs, comparisons]."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    levels: NDArray[np.uint8]


class IndexTables:
    """The index tables of a store, whose contents only a resolver interprets."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def clear(self) -> None:
        """Delete all links, keys and counts."""
        with self._store.transaction():
            for table in ("links", "block_keys", "value_counts"):
                self._store.execute(f"DELETE FROM {table}")

    def add_links(self, links: StoredLinks) -> None:
        """Add links to the index."""
        width = links.levels.shape[1]
        levels = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(width), len(links.first), [None, pa.py_buffer(np.ascontiguousarray(links.levels))]
        )
        first, second = (np.asarray(side, np.int64) for side in (links.first, links.second))
        table = pa.table({"first": first, "second": second, "levels": levels.cast(pa.binary())})
        self._store.write("INSERT INTO links SELECT * FROM new_links", new_links=table)

    def links(self, rows: Ints | None = None) -> StoredLinks:
        """Return the links between two of ``rows``, sorted by record; with None return all links."""
        if rows is None:
            return _as_links(self._store.query("SELECT * FROM links"))
        wanted = pa.table({"record": pa.array(np.unique(np.asarray(rows, np.int64)))})
        query = (
            "SELECT l.* FROM links l SEMI JOIN wanted a ON l.first = a.record"
            " SEMI JOIN wanted b ON l.second = b.record ORDER BY l.first, l.second"
        )
        return _as_links(self._store.query(query, wanted=wanted))

    def add_keys(self, rule: int, key: NDArray[np.uint64], record: Ints) -> None:
        """Add the blocking keys of records for a rule."""
        order = np.argsort(key, kind="stable")
        table = pa.table(
            {"rule": pa.repeat(rule, len(key)), "key": key[order], "record": np.asarray(record)[order]}
        )
        self._store.write("INSERT INTO block_keys SELECT * FROM new_keys", new_keys=table)

    def matching_keys(self, rule: NDArray[np.int64], key: NDArray[np.uint64]) -> pa.Table:
        """Return ``rule``, ``key`` and ``record`` of all records with one of the given keys."""
        wanted = pa.table({"rule": rule, "key": key})
        query = "SELECT * FROM block_keys SEMI JOIN wanted USING (rule, key) ORDER BY rule, key, record"
        return self._store.query(query, wanted=wanted)

    def all_keys(self) -> pa.Table:
        """Return ``rule``, ``key`` and ``record`` of all blocking keys."""
        return self._store.query("SELECT * FROM block_keys")

    def add_counts(self, form: int, value: NDArray[np.uint64], rows: Ints) -> None:
        """Add to the numbers of rows with each value of a form."""
        table = pa.table(
            {"form": pa.repeat(form, len(value)), "value": value, "rows": np.asarray(rows, np.int64)}
        )
        self._store.write("INSERT INTO value_counts SELECT * FROM new_counts", new_counts=table)

    def counts(self, form: NDArray[np.int64], value: NDArray[np.uint64]) -> pa.Table:
        """Return ``form``, ``value`` and ``rows`` of the given values of forms, without unknown values."""
        wanted = pa.table({"form": form, "value": value})
        return self._store.query(
            "SELECT form, value, sum(rows)::BIGINT AS rows FROM value_counts"
            " SEMI JOIN wanted USING (form, value) GROUP BY form, value",
            wanted=wanted,
        )


def _as_links(table: pa.Table) -> StoredLinks:
    rows = table.num_rows
    first, second = (table.column(name).to_numpy() for name in ("first", "second"))
    if not rows:
        return StoredLinks(first, second, np.zeros((0, 0), np.uint8))
    joined = table.column("levels").combine_chunks()
    width = len(joined[0].as_py())
    levels = np.frombuffer(joined.buffers()[2], np.uint8, count=rows * width).reshape(rows, width)
    return StoredLinks(first, second, levels)
