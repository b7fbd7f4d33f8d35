"""Open the file of a store for one writer, or for a reader, which uses a copy while there is a writer.

While a process has a DuckDB file open for writing, no other process can open it, not even for reading. A
reader therefore copies the committed data: the file, which changes only at checkpoints, and the write-ahead
log of later commits; DuckDB ignores an incomplete end of the log.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import duckdb

from factorwise.errors import StoreError
from factorwise.store.schema import PURPOSE, VERSION

_ATTEMPTS = 20  # attempts to copy a file that a writer may change meanwhile
_SETTINGS = {"autoload_known_extensions": False, "autoinstall_known_extensions": False}


def connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Open a possibly untrusted DuckDB file, without access to other files or the network."""
    connection = duckdb.connect(path, read_only=read_only, config=dict(_SETTINGS))
    connection.execute("SET checkpoint_threshold = '256MB'")  # rare, so that readers can copy the file
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def open_writer(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a store for writing; raise an error if another process is writing to it."""
    try:
        return connect(path, read_only=False)
    except duckdb.IOException as error:
        if "lock" not in str(error):
            raise _damaged(path, error) from error
        raise StoreError(
            f"{path}: another process writes to this store ({_holder(str(error))}). End it, or wait until"
            " it is done; commands that only read work meanwhile."
        ) from error
    except duckdb.Error as error:
        raise _damaged(path, error) from error


def open_reader(path: Path) -> tuple[duckdb.DuckDBPyConnection, tempfile.TemporaryDirectory[str] | None]:
    """Open a store for reading; also return the folder of the copy, or None if no copy was needed."""
    try:
        return connect(path, read_only=True), None
    except duckdb.IOException as error:
        if "lock" not in str(error):
            raise _damaged(path, error) from error
    except duckdb.Error as error:
        raise _damaged(path, error) from error
    folder = tempfile.TemporaryDirectory(prefix="factorwise-store-")
    for _ in range(_ATTEMPTS):
        copy = _copied(path, Path(folder.name))
        if copy is not None:
            try:
                return connect(copy, read_only=True), folder
            except duckdb.Error:
                pass  # the copy is inconsistent, so try again
        time.sleep(0.05)
    folder.cleanup()
    raise StoreError(f"{path}: another process is writing much to this store. Try again when it is done.")


def check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> int:
    """Return the schema version of a store; raise an error if the file is not a store or too new."""
    try:
        facts = dict(connection.execute("SELECT name, value FROM facts").fetchall())
    except duckdb.Error:
        facts = {}
    if facts.get("purpose") != PURPOSE or not facts.get("schema version", "").isdigit():
        raise StoreError(
            f"{path}: this DuckDB file is no store. To read one of its tables write {path.name}::TABLE; to"
            " make a store use `factorwise resolve init`."
        )
    version = int(facts["schema version"])
    if version > VERSION:
        raise StoreError(
            f"{path}: this store was written by a newer version of factorwise (schema {version}; this one"
            f" knows {VERSION}). Update factorwise."
        )
    return version


def _copied(path: Path, folder: Path) -> Path | None:
    """Copy a store that is being written to; return None if it changed meanwhile."""
    log = path.with_name(f"{path.name}.wal")
    before = path.stat()
    copy = folder / path.name
    shutil.copyfile(path, copy)
    copied_log = folder / log.name
    copied_log.unlink(missing_ok=True)
    if log.exists():
        try:
            shutil.copyfile(log, copied_log)
        except FileNotFoundError:
            return None
    after = path.stat()
    unchanged = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    return copy if unchanged else None


def _holder(message: str) -> str:
    start = message.find("PID ")
    return f"process {message[start + 4 :].split(')')[0]}" if start >= 0 else "its number is not known"


def _damaged(path: Path, error: duckdb.Error) -> StoreError:
    return StoreError(
        f"{path}: this is no DuckDB file, or it cannot be opened ({str(error).splitlines()[0]})."
    )
