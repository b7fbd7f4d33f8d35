"""Small tables in normal form, made directly."""

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.normalize.forms import Lists, NormalField, NormalTable, Numbers, encoded, sets
from factorwise.variables.sparse_rows import starts_of


def strings(values):
    return encoded(pa.array(values, pa.string()))


def numbers(values):
    return Numbers(np.array([np.nan if value is None else value for value in values], float))


def lists(rows) -> Lists:
    flat = strings([item for row in rows for item in row])
    return sets(starts_of(np.array([len(row) for row in rows], np.int64)), flat.codes, flat.values)


def table(n_rows, **fields):
    """A field is a tuple of its kind and its forms."""
    made = {name: NormalField(name, kind, forms) for name, (kind, forms) in fields.items()}
    return NormalTable(n_rows, made)
