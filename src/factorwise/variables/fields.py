"""Fields: what is observed of each record or mention, as named columns of numbers.

A field has one number per item, or a short row of numbers (co-authors, an embedding). Integers are stored in
32 bits and reals in single precision, because samplers scan millions of them. Encode strings with a `Domain`
first.
"""

from __future__ import annotations

import keyword
from collections import namedtuple
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.types import Int64s
from factorwise.validation import as_array


class Field(NamedTuple):
    """One field: ``values`` is int32 or float32, of shape (items,) or (items, width)."""

    name: str
    values: NDArray[Any]

    @property
    def width(self) -> int:
        """Numbers per item; 0 for a field with a single number."""
        return 0 if self.values.ndim == 1 else self.values.shape[1]


class Fields:
    """Named fields over the same items.

    >>> fields = Fields(last=[3, 3, 5], coauthors=[[1, 2], [2, 4], [0, 0]])
    >>> fields.record(1)
    Record(last=3, coauthors=(2, 4))
    """

    def __init__(self, **columns: ArrayLike) -> None:
        if not columns:
            raise InvalidArgumentError("fields need at least one column: give Fields(name=values, ...).")
        self.columns = {name: Field(name, _checked(name, values)) for name, values in columns.items()}
        lengths = {name: len(field.values) for name, field in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise ShapeError(
                f"all fields must have the same number of items, but their lengths differ: {lengths}."
            )
        self.n_items = next(iter(lengths.values()))
        if self.n_items == 0:
            raise EmptyWorldError("fields need at least one item, but the columns are empty.")
        self._restrictions: WeakValueDictionary[int, Fields] = WeakValueDictionary()
        self._items: Int64s | None = None
        self.record_type = _tuple_type("Record", [*columns])
        self.cluster_type = _tuple_type("Cluster", [*columns, "size", "type"])

    def __getitem__(self, name: str) -> Field:
        if name not in self.columns:
            raise InvalidArgumentError(f"no field is called {name!r}: the fields are {list(self.columns)}.")
        return self.columns[name]

    def __reduce__(self) -> tuple[Any, ...]:
        """Save the columns only; the types of records are created again when they are loaded."""
        return _from_columns, ({name: field.values for name, field in self.columns.items()},)

    def restrict_to(self, items: Int64s) -> Fields:
        """Return the fields of some items, which are renumbered in the order given.

        Templates that share fields keep sharing them if they are restricted with the same array of items.
        """
        known = self._restrictions.get(id(items))
        if known is not None and known._items is items:
            return known
        restricted = Fields(**{name: field.values[items] for name, field in self.columns.items()})
        restricted._items = items
        self._restrictions[id(items)] = restricted
        return restricted

    def record(self, item: int) -> Any:
        """Return the fields of one item as plain Python numbers, rows as tuples."""
        values = (field.values[item].tolist() for field in self.columns.values())
        return self.record_type(*(tuple(v) if isinstance(v, list) else v for v in values))

    def records(self, items: ArrayLike) -> list[Any]:
        """Return the records of several items."""
        chosen = np.asarray(items, dtype=np.int64)
        listed = [
            field.values[chosen].tolist()
            if not field.width
            else list(map(tuple, field.values[chosen].tolist()))
            for field in self.columns.values()
        ]
        return [self.record_type(*row) for row in zip(*listed, strict=True)]

    def cluster(self, items: ArrayLike, cluster_type: int = 0) -> Any:
        """Return the fields of a cluster's members as arrays, with its ``size`` and ``type``."""
        chosen = np.asarray(items, dtype=np.int64)
        arrays = (field.values[chosen] for field in self.columns.values())
        return self.cluster_type(*arrays, len(chosen), cluster_type)


def _from_columns(columns: dict[str, NDArray[Any]]) -> Fields:
    return Fields(**columns)


def _tuple_type(name: str, attributes: list[str]) -> Any:
    return namedtuple(name, attributes)  # the attributes are known only at run time


def _checked(name: str, column: ArrayLike) -> NDArray[Any]:
    if not name.isidentifier() or keyword.iskeyword(name) or name in {"size", "type"} or name.startswith("_"):
        raise InvalidArgumentError(
            f"{name!r} cannot name a field: use a Python identifier without a leading underscore"
            " other than 'size' and 'type', which every cluster has."
        )
    values = as_array(f"field {name!r}", column)
    if values.ndim not in (1, 2):
        raise ShapeError(
            f"field {name!r} must have shape (items,) or (items, width), but has {values.shape}."
        )
    if values.dtype.kind in "iub":
        if len(values) and (values.min() <= -(2**31) or values.max() >= 2**31):
            raise InvalidArgumentError(
                f"field {name!r} has numbers beyond 32 bits ({values.min()} to {values.max()}): encode"
                " them as codes of a domain."
            )
        return np.ascontiguousarray(values, dtype=np.int32)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            where = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
            raise InvalidArgumentError(
                f"field {name!r} is {values[where]} at {where}: fill in missing numbers and add a field that"
                " marks them."
            )
        return np.ascontiguousarray(values, dtype=np.float32)
    raise InvalidArgumentError(
        f"field {name!r} has dtype {values.dtype}: fields are numbers; encode labels with a Domain."
    )
