"""Tables as folders of Parquet files, by path or address; tasks may write the files.

Every attempt to write a file uses its own name, so that a task that runs twice overwrites nothing. The file
``_SUCCESS``, written last, marks the folder as complete.
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
from factorwise.io.columns import table_in_file
from factorwise.io.tables.addresses import open_address

WHOLE = "_SUCCESS"
ROWS_OF_A_PART = 1_000_000
_UNPACKED = 4  # times larger than in a Parquet file, where values that repeat stand once
_PART = re.compile(r"part-\d{5}-[0-9a-f]{16}\.parquet")


def begin_parts(address: str) -> None:
    """Create the folder; refuse one that has other files in it."""
    files, folder = open_address(address)
    try:
        files.create_dir(folder, recursive=True)
        contents = files.get_file_info(pafs.FileSelector(folder))
    except OSError as error:
        raise DataFileError(
            f"{address}: cannot be written to ({error}). Check your permissions, or give another folder."
        ) from error
    foreign = sorted(info.base_name for info in contents if not _PART.fullmatch(info.base_name))
    if foreign:
        raise DataFileError(f"{address}: has files, such as {foreign[0]!r}. Give an empty folder.")


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
    """Mark these files as complete, and remove the files of abandoned attempts."""
    files, folder = open_address(address)
    for info in files.get_file_info(pafs.FileSelector(folder)):
        if _PART.fullmatch(info.base_name) and info.base_name not in names:
            files.delete_file(posixpath.join(folder, info.base_name))
    with files.open_output_stream(posixpath.join(folder, WHOLE)):
        pass


def refuse_unfinished(address: str, names: Collection[str]) -> None:
    """Refuse a folder whose parts are incomplete, because files of abandoned attempts may be among them."""
    if WHOLE not in names and any(map(_PART.fullmatch, names)):
        raise DataFileError(
            f"{address}: the run that wrote these parts has not finished, because {WHOLE} is missing."
            f" Wait for it, or run it again; if only {WHOLE} was not copied, add an empty file of that"
            " name."
        )


def is_large(metadata: pq.FileMetaData, most: int | None) -> bool:
    """Whether the records of a Parquet file may take more than so many bytes in memory; None for no limit."""
    if most is None:
        return False
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    return bool(_UNPACKED * sum(group.total_byte_size for group in groups) > most)


def read_address(address: str, columns: Sequence[str] | None = None, most: int | None = None) -> pa.Table:
    """Return the records of a Parquet file, or of all below a folder in the order of their names.

    most
        Bytes that they may take in memory; more of them lie in a file that is mapped.
    """
    import pyarrow.dataset as pads  # it takes long to load

    files, location = open_address(address)
    try:
        if files.get_file_info(location).type == pafs.FileType.Directory:
            names = [info.base_name for info in files.get_file_info(pafs.FileSelector(location))]
            refuse_unfinished(address, names)
        dataset = pads.dataset(location, filesystem=files, format="parquet")
        wanted = None if columns is None else [name for name in columns if name in dataset.schema.names]
        if most is not None and any(is_large(part.metadata, most) for part in dataset.get_fragments()):
            scanner = dataset.scanner(wanted, batch_readahead=1, fragment_readahead=1)
            return table_in_file(scanner.projected_schema, scanner.to_batches())
        return dataset.to_table(wanted)
    except (OSError, pa.ArrowException) as error:
        raise DataFileError(
            f"{address}: cannot be read ({str(error).splitlines()[0]}). Give the address of a Parquet"
            " file, or of a folder of Parquet files."
        ) from error
