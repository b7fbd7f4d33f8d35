"""Tables as folders of Parquet files, by path or address; tasks may write the files.

Every attempt to write a file has a name of its own, so that a task which is run twice overwrites nothing. The
file ``_SUCCESS``, written last, says that the folder is whole.
"""

from __future__ import annotations

import posixpath
import re
import secrets
from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from factorwise.errors import DataFileError
from factorwise.io.tables.addresses import open_address

WHOLE = "_SUCCESS"
ROWS_OF_A_PART = 1_000_000
_PART = re.compile(r"part-\d{5}-[0-9a-f]{16}\.parquet")


def begin_parts(address: str) -> None:
    """Make the folder; refuse one that has files in it."""
    files, folder = open_address(address)
    try:
        files.create_dir(folder, recursive=True)
        found = files.get_file_info(pafs.FileSelector(folder))
    except OSError as error:
        raise DataFileError(
            f"{address}: cannot be written to ({error}). Check what you are allowed, or give another folder."
        ) from error
    others = sorted(info.base_name for info in found if not _PART.fullmatch(info.base_name))
    if others:
        raise DataFileError(f"{address}: has files, such as {others[0]!r}. Give a folder that is empty.")


def cut_parts(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of a table, as many at a time as a file gets."""
    for low in range(0, max(table.num_rows, 1), ROWS_OF_A_PART):
        yield table.slice(low, ROWS_OF_A_PART)


def write_part(address: str, number: int, table: pa.Table) -> str:
    """Write one file, and return its name."""
    files, folder = open_address(address)
    name = f"part-{number:05d}-{secrets.token_hex(8)}.parquet"
    try:
        with files.open_output_stream(posixpath.join(folder, name)) as stream:
            pq.write_table(table, stream)
    except OSError as error:
        raise DataFileError(
            f"{address}: {name} could not be written ({error}). Check the free space, and empty the folder."
        ) from error
    return name


def end_parts(address: str, names: Collection[str]) -> None:
    """Say that these files are all, and remove what attempts that were given up have left."""
    files, folder = open_address(address)
    for info in files.get_file_info(pafs.FileSelector(folder)):
        if _PART.fullmatch(info.base_name) and info.base_name not in names:
            files.delete_file(posixpath.join(folder, info.base_name))
    with files.open_output_stream(posixpath.join(folder, WHOLE)):
        pass


def refuse_unfinished(address: str, names: Collection[str]) -> None:
    """Refuse a folder whose parts were never finished: attempts that were given up may be among them."""
    if WHOLE not in names and any(map(_PART.fullmatch, names)):
        raise DataFileError(
            f"{address}: the run that wrote these parts has not ended, because {WHOLE} is not there. Let it"
            f" end, or run it again; if only {WHOLE} was not copied, add an empty file of that name."
        )


def read_address(address: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the records of a Parquet file, or of all below a folder in the order of their names."""
    import pyarrow.dataset as pads  # which takes its time to load

    files, place = open_address(address)
    try:
        if files.get_file_info(place).type == pafs.FileType.Directory:
            names = [info.base_name for info in files.get_file_info(pafs.FileSelector(place))]
            refuse_unfinished(address, names)
        found = pads.dataset(place, filesystem=files, format="parquet")
        wanted = None if columns is None else [name for name in columns if name in found.schema.names]
        return found.to_table(wanted)
    except (OSError, pa.ArrowException) as error:
        raise DataFileError(
            f"{address}: cannot be read ({str(error).splitlines()[0]}). Give the address of a Parquet file,"
            " or of a folder of such."
        ) from error
