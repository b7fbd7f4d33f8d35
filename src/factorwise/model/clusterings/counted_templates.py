r"""Pair templates declared as data, whose sums over a cluster can be computed from counts.

For an item i with value v of a key and a cluster C, let n(C, v) be the number of members with that value and
n(C) the number of members with any value. Then

.. math:: \sum_{j \in C} [v_j = v] = n(C, v), \qquad \sum_{j \in C} [v_j \ne v] = n(C) - n(C, v)

where items without a value do not count. So a weighted sum of such features over all pairs of i with members
of C takes one look-up per value of i, whatever the size of C. Features that are not linear in these counts
("at least two co-authors in common") need a `PairTemplate`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError
from factorwise.kernels.clusterings import counted
from factorwise.kernels.clusterings.code.functions import PairTerm
from factorwise.kernels.clusterings.code.row_code import row_function
from factorwise.kernels.clusterings.code.vector_code import FieldLayout
from factorwise.kernels.compile.composition import SourceText
from factorwise.kernels.compile.primitives import overlap
from factorwise.kernels.compile.programs import Program
from factorwise.model.clusterings.count_layout import KeptLayout
from factorwise.model.clusterings.partition_templates import PairTemplate
from factorwise.model.clusterings.program import check_items
from factorwise.model.clusterings.restrictions import copy_with, refuse_repulsion
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Int32s, Int64s
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition

Feature = Literal["equal", "conflict"]

MOST_KEYS = 255
MOST_CONFLICTS = 32

_WORDS = {"equal": "equal", "conflict": "in conflict"}
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Key:
    """A property of which an item has one or several values, and in which two items agree or not.

    fields
        The name of a field, or of several plain ones. The values of several fields together form one value,
        which is missing if one of them is.
    features
        ``"equal"``: both have the value; for a field with rows, the number of different values they share.
        ``"conflict"``: both have a value, but different ones; not for fields with rows.
    missing
        A code that means that there is no value. Codes below zero always do.
    """

    fields: str | tuple[str, ...]
    features: tuple[Feature, ...] = ("equal",)
    missing: int | None = None

    def __post_init__(self) -> None:
        names = (self.fields,) if isinstance(self.fields, str) else tuple(self.fields)
        features = tuple(self.features)
        if not names or len(set(names)) < len(names):
            raise InvalidArgumentError(f"a key needs one or more different fields, but {names!r} were given.")
        unknown = [feature for feature in features if feature not in _WORDS]
        if unknown or not features or len(set(features)) < len(features):
            raise InvalidArgumentError(
                f"the features of key {'+'.join(names)!r} are {features!r}: use 'equal', 'conflict' or both."
            )
        object.__setattr__(self, "fields", names)
        object.__setattr__(self, "features", features)

    @property
    def name(self) -> str:
        """The names of its fields, joined by "+"."""
        return "+".join(self.fields)


class CountedTemplate(PairTemplate):
    """A factor for every pair of items in one cluster (or, with ``repels``, in different clusters).

    It scores pairs as a `PairTemplate` does, but walks compute its sums from counts. Other templates may
    stand beside it.

    keys
        The properties to compare and the features of each; every feature has one weight.
    constant
        Whether to add a statistic that is 1 for every pair.
    """

    asks_for_groups = True

    def __init__(
        self, name: str, fields: Fields, keys: Sequence[Key], *, constant: bool = True, repels: bool = False
    ) -> None:
        self.keys = tuple(keys)
        self._layout: KeptLayout | None = None
        self._item_rows: Int32s | None = None
        self.has_constant = constant
        names = [key.name for key in self.keys]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(
                f"template {name!r} has a key twice: {names}; give the key once, with both features."
            )
        # recoded so that 0 means no value, which is also how `overlap` reads rows
        self.codes = [_codes(fields, key) for key in self.keys]
        self.attributes = [f"key_{number}" for number in range(len(self.keys))]
        columns: dict[str, Any] = dict(zip(self.attributes, self.codes, strict=True))
        statistics, bound = [], []
        for key, codes in zip(self.keys, self.codes, strict=True):
            rows = codes.ndim == 2
            for feature in key.features:
                statistics.append(f"{key.name} shared" if rows else f"{key.name} {_WORDS[feature]}")
                bound.append(codes.shape[1] if rows else 1)
        if constant:
            statistics.append("pair")
            bound.append(1)
        recoded = Fields(**columns) if columns else Fields(key_none=np.zeros(fields.n_items, np.int32))
        super().__init__(name, recoded, self._pair, statistics, repels=repels, bound=bound)

    def _pair(self, a: Any, b: Any) -> tuple[Any, ...]:
        """Return the statistics of one pair, from the definition."""
        statistics: list[Any] = []
        for attribute, key in zip(self.attributes, self.keys, strict=True):
            first, second = getattr(a, attribute), getattr(b, attribute)
            for feature in key.features:
                if isinstance(first, tuple):
                    statistics.append(overlap(first, second))
                elif feature == "equal":
                    statistics.append(first > 0 and first == second)
                else:
                    statistics.append(first > 0 and second > 0 and first != second)
        return (*statistics, 1) if self.has_constant else tuple(statistics)

    def restrict_to(self, items: Int64s) -> Self:
        """Return the template for some of the items: the pairs among them."""
        refuse_repulsion(self)
        codes = [codes[items] for codes in self.codes]
        fields = self.fields.restrict_to(items)
        return copy_with(self, fields=fields, codes=codes, _layout=None, _item_rows=None)

    def source(self) -> SourceText:
        """Return the source of the pair function, for compiling."""
        terms = []
        for attribute, key, codes in zip(self.attributes, self.keys, self.codes, strict=True):
            a, b = f"a.{attribute}", f"b.{attribute}"
            for feature in key.features:
                if codes.ndim == 2:
                    terms.append(f"overlap({a}, {b})")
                elif feature == "equal":
                    terms.append(f"({a} > 0) & ({a} == {b})")  # no branches, so that none can be mispredicted
                else:
                    terms.append(f"({a} > 0) & ({b} > 0) & ({a} != {b})")
        terms += ["True"] if self.has_constant else []
        imports = "from factorwise.kernels.compile.primitives import overlap"
        body = "".join(f"        {term},\n" for term in terms)
        function = f"compare_keys_{hashlib.sha256(body.encode()).hexdigest()[:12]}"
        text = f"{imports}\n\n@inlined\ndef {function}(a, b):\n    return (\n{body}    )"
        return SourceText(function, text, frozenset(self.attributes))

    def program(
        self, world: Partition, offset: int, weights: Float64s, groups: Int32s | None = None
    ) -> Program:
        """Return the program that computes gains from counts.

        offset
            Where the weights of the template begin.
        groups
            Group numbers: only items of the same group can ever be together.
        """
        check_items(self.name, self.fields.n_items, world.n_items)
        conflicts = [number for number, key in enumerate(self.keys) if "conflict" in key.features]
        if len(self.keys) > MOST_KEYS or len(conflicts) > MOST_CONFLICTS:
            raise NoCompiledFormError(
                f"template {self.name!r} has {len(self.keys)} keys, {len(conflicts)} of them with"
                f" conflicts, but the limits are {MOST_KEYS} and {MOST_CONFLICTS}: move some keys to"
                " another template."
            )
        known = np.zeros(world.n_items, np.uint32)
        for bit, number in enumerate(conflicts):
            known |= (self.codes[number] > 0).astype(np.uint32) << np.uint32(bit)
        at = iter(range(offset, offset + self.size))
        columns = [{feature: next(at) for feature in key.features} for key in self.keys]
        arrays = {
            **self._values().of(groups).arrays(),
            "known": known,
            "having": np.zeros((len(world.arrays.size), len(conflicts)), np.int32),
            "equal_at": np.array([column.get("equal", -1) for column in columns], np.int64),
            "conflict_at": np.array([columns[number]["conflict"] for number in conflicts], np.int64),
            "conflict_key": np.array(conflicts, np.int64),
            "pair_at": np.array([next(at, -1)], np.int64),
            "weights": weights,
            "sign": np.array([-1.0 if self.repels else 1.0]),
            "worth": np.zeros(len(self.keys)),
            "against": np.zeros(len(conflicts)),
            "each": np.zeros(1),
            "look_ups": np.zeros(1, np.int64),
            "item_ints": self._rows(),
            "offset": np.array([offset]),
        }
        return Program(
            name=f"counts of {self.name!r}",
            arrays=arrays,
            begin=counted.counted_begin,
            gain=counted.counted_gain,
            gains=counted.counted_gains,
            gradient=counted.counted_gradient,
            applied=counted.counted_applied,
            pairs=row_function([self._term()], "mine", plain=counted.counted_pairs),
            visit=counted.counted_visit,
        )

    def _term(self) -> PairTerm:
        """Return the pair function in the form that reads the rows of `_rows`."""
        layouts, start = [], 0
        for attribute, codes in zip(self.attributes, self.codes, strict=True):
            width = codes.shape[1] if codes.ndim == 2 else 0
            layouts.append(FieldLayout(attribute, False, width, start))
            start += max(width, 1)
        return PairTerm(self.source(), tuple(layouts), self.size, -1 if self.repels else 1)

    def _rows(self) -> Int32s:
        """Return all codes of each item in one row."""
        if self._item_rows is None:
            empty = np.zeros((self.fields.n_items, 0), np.int32)
            self._item_rows = np.column_stack([empty, *self.codes])
        return self._item_rows

    def _values(self) -> KeptLayout:
        """Return the layout of the tables of all values; those of an item are in the order of the keys."""
        if self._layout is None:
            items, values, kinds = [], [], []
            width = max((int(codes.max(initial=0)) for codes in self.codes), default=0).bit_length()
            for number, item_codes in enumerate(self.codes):
                rows = _without_repeats(item_codes.reshape(len(item_codes), -1))
                item, column = np.nonzero(rows)
                items.append(item)
                values.append(rows[item, column].astype(np.int64) | (number << width))
                kinds.append(np.full(len(item), number, np.uint8))
            item = np.concatenate([np.zeros(0, np.int64), *items])
            order = np.argsort(item, kind="stable")
            start = np.concatenate([[0], np.cumsum(np.bincount(item, minlength=self.fields.n_items))])
            value = np.concatenate([np.zeros(0, np.int64), *values])[order]
            kind = np.concatenate([np.zeros(0, np.uint8), *kinds])[order]
            self._layout = KeptLayout(self.name, start, value, kind=kind)
        return self._layout

    def statistics(self, world: Partition) -> SparseVector:
        """Return the sum over the pairs that are together (for repulsion: apart), from counts."""
        check_items(self.name, self.fields.n_items, world.n_items)
        totals = self._counted(world.labels)
        if self.repels:
            totals = self._counted(np.zeros(world.n_items, np.int32)) - totals
        return SparseVector.from_dense(totals)

    def _counted(self, labels: Int32s) -> Float64s:
        """Return the statistics of all pairs of items with equal labels."""
        totals: list[float] = []
        for key, codes in zip(self.keys, self.codes, strict=True):
            rows = codes.reshape(len(codes), -1)
            equal = 0
            present: Int64s = np.zeros(0, np.int64)
            if rows.shape[1]:
                rows = _without_repeats(rows)
                item, column = np.nonzero(rows)
                cluster = labels[item].astype(np.int64)
                present = np.bincount(cluster)
                both = np.unique(cluster << 32 | rows[item, column], return_counts=True)[1]
                equal = _pairs(both)
            totals += [equal if feature == "equal" else _pairs(present) - equal for feature in key.features]
        if self.has_constant:
            totals.append(_pairs(np.bincount(labels)))
        return np.array(totals, dtype=np.float64)


def _pairs(counts: Int64s) -> int:
    """Return the number of pairs of equal things, given how many there are of each kind."""
    wide = counts.astype(np.int64)
    return int((wide * (wide - 1) // 2).sum())


def _without_repeats(rows: Int32s) -> Int32s:
    """Return rows in which repeated values are kept only once."""
    if rows.shape[1] == 1:
        return rows
    ordered = np.sort(rows, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = 0
    return ordered


def _codes(fields: Fields, key: Key) -> Int32s:
    """Return the values of one key as codes from 1 on; 0 means no value."""
    columns = [fields[name].values for name in key.fields]
    for name, values in zip(key.fields, columns, strict=True):
        if values.dtype != np.int32:
            raise InvalidArgumentError(
                f"field {name!r} contains real numbers, which cannot be counted: round them, or compare"
                " them with a PairTemplate."
            )
        if values.ndim == 2 and (len(columns) > 1 or "conflict" in key.features):
            raise ShapeError(
                f"field {name!r} has several numbers per item: use it as a key of its own with the"
                " feature 'equal', which counts the values that two items share."
            )
    numbered = [_numbered(values, key.missing) for values in columns]
    if len(numbered) == 1:
        return numbered[0]
    joint = numbered[0].astype(np.int64)
    known = numbered[0] > 0
    for codes in numbered[1:]:
        known &= codes > 0
        joint = joint * (int(codes.max(initial=0)) + 1) + codes
        if joint.max(initial=0) >= _LARGEST:
            joint = np.unique(joint, return_inverse=True)[1] + 1
    return np.where(known, joint, 0).astype(np.int32)


def _numbered(values: Int32s, missing: int | None) -> Int32s:
    absent = values < 0
    if missing is not None:
        absent |= values == missing
    if values.max(initial=0) < _LARGEST:
        return np.where(absent, 0, values + np.int32(1)).astype(np.int32)
    return np.where(absent, 0, np.unique(values, return_inverse=True)[1].reshape(values.shape) + 1).astype(
        np.int32
    )
