"""Concatenate the normal forms of consecutive chunks of rows, with one set of values.

Values keep the order of their first appearance, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.normalize.forms import LARGEST, Form, Lists, Numbers, Strings, encoded
from factorwise.errors import InvalidArgumentError
from factorwise.io.columns import IN_MEMORY, Columns, release
from factorwise.kernels.text.hashes import sort_rows
from factorwise.types import Int32s


def unite_forms(parts: Sequence[Form], columns: Columns = IN_MEMORY) -> Form:
    """Return the chunks of rows as one form, in order; ``columns`` stores the codes of lists."""
    if len(parts) == 1:
        return parts[0]
    numbers = [part for part in parts if isinstance(part, Numbers)]
    if len(numbers) == len(parts):
        return Numbers(np.concatenate([part.values for part in numbers]))
    strings = [part for part in parts if isinstance(part, Strings)]
    if len(strings) == len(parts):
        values, places = _united_values(strings)
        rows = [
            np.append(place, np.int32(-1))[part.codes] for part, place in zip(strings, places, strict=True)
        ]
        return Strings(np.concatenate(rows), values)
    lists = [part for part in parts if isinstance(part, Lists)]
    if len(lists) < len(parts):
        kinds = {type(part).__name__ for part in parts}
        raise InvalidArgumentError(f"forms of stretches of rows cannot be put together: {sorted(kinds)}.")
    values, places = _united_values(lists)
    offsets = np.zeros(sum(map(len, lists)) + 1, np.int64)
    kept = columns.make(sum(len(part.codes) for part in lists), np.int32)
    codes = np.asarray(kept)
    row = item = 0
    for part, place in zip(lists, places, strict=True):
        offsets[row + 1 : row + len(part) + 1] = part.offsets[1:] + item
        codes[item : item + len(part.codes)] = place[part.codes]
        sort_rows(offsets[row : row + len(part) + 1], codes)
        row, item = row + len(part), item + len(part.codes)
        release(part.codes, part.offsets, kept)
    return Lists(offsets, codes, values)


def _united_values(parts: Sequence[Strings] | Sequence[Lists]) -> tuple[pa.Array, list[Int32s]]:
    """Return the distinct values of all parts, and for each part the indices of its values in them."""
    each = [part.values for part in parts]
    if sum(values.nbytes for values in each) > LARGEST:
        each = [values.cast(pa.large_string()) for values in each]
    coded = encoded(pa.chunked_array(each))
    ends = np.cumsum([len(values) for values in each])
    places = [coded.codes[end - len(values) : end] for end, values in zip(ends.tolist(), each, strict=True)]
    return coded.values, places
