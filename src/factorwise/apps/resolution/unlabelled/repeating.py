"""Find the columns that only repeat the identity, which are not used as evidence."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.normalize.words import normal_words
from factorwise.apps.resolution.unlabelled.about import About

REPEATED = {True: 0.5, False: 0.9}  # least share of repeating rows, for names (True) and others
_ROWS = 2_000  # rows that are sampled


def telling_columns(table: pa.Table, normal: NormalTable, about: About) -> list[str]:
    """Return the columns that carry information beyond the identity."""
    rows = np.unique(np.linspace(0, table.num_rows - 1, min(_ROWS, table.num_rows)).astype(np.int64))
    some = table.take(rows)
    identity = [
        _words(values)
        for values in zip(*(some.column(name).to_pylist() for name in about.columns), strict=True)
    ]
    found = []
    for name in normal:
        if name in about.columns:
            continue
        if normal[name].kind in ("vector", "scores"):  # even those of the identity
            found.append(name)
        if normal[name].kind in ("vector", "scores", "source"):
            continue
        words = [_words((value,)) for value in some.column(name).to_pylist()]
        both = [(one, two) for one, two in zip(identity, words, strict=True) if one and two]
        repeats = sum(one <= two or two <= one for one, two in both)
        if not both or repeats < REPEATED[normal[name].kind == "name"] * len(both):
            found.append(name)
    return found


def _words(values: tuple[object, ...]) -> frozenset[str]:
    """Return the words of the given values of one record."""
    return frozenset(
        word
        for value in values
        if value is not None
        for each in (value if isinstance(value, list) else [value])
        for piece in str(each).split()
        for word in normal_words(piece)
    )
