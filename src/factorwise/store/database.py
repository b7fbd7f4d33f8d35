"""The DuckDB file of a store: opening, closing and transactions."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Self

import duckdb
import pyarrow as pa

from factorwise.errors import StoreError
from factorwise.store.opening import check_version, connect, open_reader, open_writer
from factorwise.store.schema import VERSION, create_schema, migrate


class Database:
    """The file of a store.

    Every method that changes data is a transaction, or a part of the one that `transaction` began. When a
    method returns outside of a transaction, its change is on disk. One process can write while others read;
    the threads of a process take turns.
    """

    def __init__(
        self,
        path: Path,
        connection: duckdb.DuckDBPyConnection,
        *,
        read_only: bool,
        copy: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self.path = path
        self.read_only = read_only
        self._connection = connection
        self._copy = copy
        self._nested = 0
        self.revision = 0  # increases with every change of this process, which is the only writer
        self._turn = threading.RLock()  # a connection cannot be used by two threads at once

    @staticmethod
    def refuse_existing(target: Path) -> None:
        """Raise an error if a store cannot be created: the path exists, or its folder does not."""
        if target.exists():
            raise StoreError(f"{target}: exists already. Choose another name, or remove it.")
        if not target.parent.is_dir():
            raise StoreError(f"{target}: there is no folder {target.parent}. Make it first.")

    @classmethod
    def create(cls, path: str | PathLike[str]) -> Self:
        """Create an empty store; raise an error if the file exists."""
        target = Path(path)
        cls.refuse_existing(target)
        store = cls(target, connect(target, read_only=False), read_only=False)
        with store.transaction():
            create_schema(store._connection)
        return store

    @classmethod
    def open(cls, path: str | PathLike[str], *, read_only: bool = False) -> Self:
        """Open a store.

        read_only
            Open for reading only. While another process writes, a copy of the committed data is read.
        """
        target = Path(path)
        if not target.is_file():
            raise StoreError(f"{target}: there is no such file. `factorwise resolve init` makes a store.")
        connection, copy = open_reader(target) if read_only else (open_writer(target), None)
        store = cls(target, connection, read_only=read_only, copy=copy)
        try:
            version = check_version(connection, target)
            if version < VERSION:
                store._migrate(version)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the file; committed changes are kept."""
        self._connection.close()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction: commit at its end, or roll back all changes on an error."""
        if self.read_only:
            raise StoreError(f"{self.path}: is open for reading only.")
        with self._turn:
            if self._nested:
                yield
                self.revision += 1
                return
            self._nested = 1
            try:
                self.execute("BEGIN")
                yield
                self.execute("COMMIT")
            except BaseException:
                with suppress(duckdb.Error):  # already rolled back, for example if the disk is full
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._nested = 0
                self.revision += 1

    def execute(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run SQL and return its rows; pass user input only as ``values``, never in the query."""
        try:
            with self._turn:
                return self._connection.execute(query, list(values)).fetchall()
        except duckdb.Error as error:
            raise self._failed(error) from error

    def query(self, query: str, values: Sequence[object] = (), **tables: pa.Table) -> pa.Table:
        """Run SQL and return an Arrow table; the query can refer to ``tables`` by name."""
        try:
            with self._turn, self._registered(tables):
                return self._connection.sql(query, params=list(values) or None).to_arrow_table()
        except duckdb.Error as error:
            raise self._failed(error) from error

    def write(self, query: str, **tables: pa.Table) -> None:
        """Run SQL that changes data; the query can refer to ``tables`` by name."""
        try:
            with self.transaction(), self._registered(tables):
                self._connection.execute(query)
        except duckdb.Error as error:
            raise self._failed(error) from error

    def fact(self, name: str, default: str = "") -> str:
        """Return a property of the store by name, such as its column of ids."""
        found = self.execute("SELECT value FROM facts WHERE name = ?", [name])
        return str(found[0][0]) if found else default

    def set_fact(self, name: str, value: str) -> None:
        """Store a property under a name."""
        with self.transaction():
            self.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", [name, value])

    def _migrate(self, version: int) -> None:
        if self.read_only:
            raise StoreError(f"{self.path}: is of an older version. Open it for writing once.")
        with self.transaction():
            migrate(self._connection, version)

    @contextmanager
    def _registered(self, tables: Mapping[str, pa.Table]) -> Iterator[None]:
        for name, table in tables.items():
            self._connection.register(name, table)
        try:
            yield
        finally:
            for name in tables:
                with suppress(duckdb.Error):  # do not hide an earlier error
                    self._connection.unregister(name)

    def _failed(self, error: duckdb.Error) -> StoreError:
        return StoreError(
            f"{self.path}: the database refused ({str(error).splitlines()[0]}). Nothing of this change was"
            " kept; what was saved before is there. If the disk is full, make room and try again."
        )
