"""Estimate the memory that resolving a table takes, and decide whether columns are kept on disk."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from factorwise.errors import InvalidArgumentError
from factorwise.io.columns import AT_ONCE, IN_MEMORY, Columns

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "MIB": 1 << 20, "GIB": 1 << 30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
LEAST = 200_000_000  # bytes that Python, Arrow and compiled code need by themselves
_PROGRAM = 350_000_000  # bytes that a run without any records takes
_OF_CONTEXT = 300_000_000  # bytes for one batch of pairs whose context is computed
_OF_TABLE = (
    2.5  # bytes per byte of the compared columns, for the columns, their normal forms and what follows
)
_OF_PAIR = 44  # bytes per candidate pair
_ON_DISK, _PAIR_ON_DISK = 3.0, 49
# CPU seconds, measured on a million author mentions and on a million Febrl-like records with few pairs
_CPU_OF_RECORD, _CPU_OF_PAIR, _CPU_IN_CONTEXT = 8e-6, 2.3e-6, 2e-6
_PER_PAIR_AT_ONCE = 256  # bytes of the limit for each pair held in memory while candidates are joined


class MemoryPlan(NamedTuple):
    """The memory and disk space that a run is expected to take.

    limit, needed
        Bytes that the run may take, and bytes that it would take if everything were kept in memory.
    disk
        Bytes that go to scratch files; 0 if everything fits into memory.
    """

    limit: int
    needed: int
    disk: int

    def open_columns(self, folder: str | Path | None = None) -> Columns:
        """Return the storage for columns; raise an error if the disk has too little free space.

        folder
            Where to create a scratch folder, if one is needed; None for the system's temporary folder.
        """
        if not self.disk:
            return IN_MEMORY
        place = tempfile.gettempdir() if folder is None else str(folder)
        free = shutil.disk_usage(place).free
        if free < self.disk:
            raise InvalidArgumentError(
                f"about {as_text(self.disk)} would go to {place}, which has {as_text(free)} left: set TMPDIR"
                f" to a folder with more room, or allow about {as_text(self.needed)} of memory."
            )
        return Columns.in_scratch(place, at_once=min(AT_ONCE, max(self.limit // _PER_PAIR_AT_ONCE, 1 << 16)))


def plan_memory(
    limit: int | str | None, table_bytes: int, most_pairs: int, *, context: bool = False
) -> MemoryPlan:
    """Decide whether resolving a table fits into memory.

    limit
        Bytes, or text such as "4GB"; None for half of the free memory.
    table_bytes, most_pairs
        Bytes of the columns that are compared, and the largest number of candidate pairs.
    context
        Whether pairs are also scored in the context of clusters.
    """
    allowed = allowed_memory(limit)
    needed = int(_PROGRAM + _OF_CONTEXT * context + _OF_TABLE * table_bytes + _OF_PAIR * most_pairs)
    disk = 0 if needed <= allowed else int(_ON_DISK * table_bytes + _PAIR_ON_DISK * most_pairs)
    return MemoryPlan(allowed, needed, disk)


def allowed_memory(limit: int | str | None) -> int:
    """Return how many bytes a run may use: the limit, or half of the free memory."""
    return free_memory() // 2 if limit is None else parse_memory(limit)


def expected_seconds(records: int, pairs: int, *, context: bool = False) -> float:
    """Estimate the CPU seconds that resolving a table takes, from measurements on other tables.

    pairs
        The number of pairs that are compared; pairs that a filter leaves out cost next to nothing.
    """
    of_pair = _CPU_OF_PAIR + _CPU_IN_CONTEXT * context
    return 2.0 + _CPU_OF_RECORD * records + of_pair * pairs


def parse_memory(given: int | str) -> int:
    """Parse a number of bytes, which may be written with a unit, such as "4GB" or "1.5 GiB"."""
    found = _SIZE.fullmatch(str(given))
    unit = None if found is None else UNITS.get(found[2].upper())
    if found is None or unit is None:
        raise InvalidArgumentError(f"memory must be a size such as 4GB or 800MB, but {given!r} was given.")
    size = int(float(found[1]) * unit)
    if size < LEAST:
        raise InvalidArgumentError(f"memory must be at least {as_text(LEAST)}, but {given!r} was given.")
    return size


def free_memory() -> int:
    """Return the bytes of memory that are free now, within the limits of the container if there is one."""
    free = 8 * 10**9
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = 1024 * int(line.split()[1])
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            used = int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
            free = min(free, max(int(limit) - used, LEAST))
    except (OSError, ValueError):  # not Linux, or these files do not exist
        return free
    return free


def as_text(size: int) -> str:
    """Format a number of bytes as text in MB or GB."""
    return f"{size / 1e9:.1f} GB" if size >= 10**9 else f"{size / 1e6:.0f} MB"
