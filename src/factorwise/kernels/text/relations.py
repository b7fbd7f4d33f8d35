"""Compare the values of two rows by their codes alone, for many pairs of rows at a time."""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Float32s, Int32s, UInt8s

Codes = Int32s
Values = Float32s


@kernel
def shared_rarities(codes: Codes, rarity: Values, first: Codes, second: Codes, found: Values) -> None:
    """Write the rarity of the value that both rows share, 0 for different values, NaN if one is missing."""
    for k in range(len(first)):
        one, two = codes[first[k]], codes[second[k]]
        if one < 0 or two < 0:
            found[k] = np.nan
        else:
            found[k] = rarity[one] if one == two else np.float32(0.0)


@kernel
def name_relations(
    name: Codes, root: Codes, sound: Codes, initial: Codes, first: Codes, second: Codes, found: Values
) -> None:
    """Write the relation of two given names: 1 to 6, from equal names to different initials.

    name, root, sound, initial
        Codes of the name of each row, of its full form, of its phonetic code and of its first letter.
    """
    for k in range(len(first)):
        one, two = first[k], second[k]
        if initial[one] < 0 or initial[two] < 0:
            found[k] = np.nan
        elif name[one] >= 0 and name[one] == name[two]:
            found[k] = 1.0
        elif root[one] >= 0 and root[one] == root[two]:
            found[k] = 2.0
        elif sound[one] >= 0 and sound[one] == sound[two]:
            found[k] = 3.0
        elif initial[one] != initial[two]:
            found[k] = 6.0
        else:
            found[k] = 5.0 if name[one] >= 0 and name[two] >= 0 else 4.0


@kernel
def cut_levels(values: Values, edges: Values, found: UInt8s) -> None:
    """Write the comparison level of each value: 0 for NaN, else one plus the number of thresholds reached.

    Without thresholds (``edges``), the values are the levels themselves.
    """
    for k in range(len(values)):
        value = values[k]
        if value != value:
            found[k] = 0
        elif len(edges) == 0:
            found[k] = np.uint8(value)
        else:
            level = 1
            for edge in range(len(edges)):
                level += value >= edges[edge]
            found[k] = level


@kernel
def add_level_weights(values: Values, edges: Values, weights: Values, scores: Values) -> None:
    """Add to each score the weight of its value's comparison level, as defined in `cut_levels`."""
    for k in range(len(values)):
        value = values[k]
        if value != value:
            scores[k] += weights[0]
        elif len(edges) == 0:
            scores[k] += weights[np.int64(value)]
        else:
            level = 1
            for edge in range(len(edges)):
                level += value >= edges[edge]
            scores[k] += weights[level]
