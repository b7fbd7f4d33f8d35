"""Codes of rows, put in order within each row."""

from __future__ import annotations

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Int32s, Int64s


@kernel
def sort_rows(offsets: Int64s, codes: Int32s) -> None:
    """Sort the codes ``offsets[r]:offsets[r + 1]`` of each row, in place."""
    for r in range(len(offsets) - 1):
        if offsets[r + 1] - offsets[r] > 1:
            codes[offsets[r] : offsets[r + 1]].sort()
