"""Bags: how much of each key an item has, in whole numbers.

A key is anything that several items can have: a first name, a word of a title, a co-author. Templates that
count keys per cluster (see `factorwise.model.clusterings.tally_templates`) need whole amounts; `Bags.scaled`
scales bags whose direction matters, but not their size, to such amounts.

>>> bags = Bags.from_lists([["red", "car", "red"], ["car"], []])
>>> bags.of(0)
{0: 2, 1: 1}
>>> bags.of(2)
{}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.types import Float64s, Int64s
from factorwise.validation import as_array, as_numbers, check_count, is_rising
from factorwise.variables.fields import Fields
from factorwise.variables.sparse_rows import take_rows

UNIT = 4096  # length of a scaled bag


class Bags:
    """The keys of items 0 to n - 1, with amounts.

    start, key, amount : int64[n + 1], int64[entries], int64[entries]
        Item i has ``amount[k]`` of ``key[k]`` for k from ``start[i]`` to ``start[i + 1] - 1``, each key once.
        Keys are numbered from 0 without gaps.
    """

    def __init__(self, start: ArrayLike, key: ArrayLike, amount: ArrayLike | None = None) -> None:
        self.start = as_numbers("start", start, np.int64)
        keys = np.atleast_1d(as_array("key", key))
        if keys.size and keys.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"keys must be whole numbers, but have dtype {keys.dtype}: use Bags.from_lists(...) for"
                " other keys."
            )
        self.amount = _whole(np.ones(len(keys), np.int64) if amount is None else as_numbers("amount", amount))
        if self.start.ndim != 1 or len(self.start) < 2:
            raise EmptyWorldError(
                "bags need at least one item: start must have one entry more than there are items."
            )
        bounds = self.start[0] == 0 and self.start[-1] == len(keys) and is_rising(self.start)
        if not bounds or self.amount.shape != keys.shape or keys.ndim != 1:
            raise ShapeError(
                f"start must run from 0 to the {len(keys)} keys without falling, and amount must have"
                f" as many entries as key, but start goes from {self.start.tolist()[:5]}... to"
                f" {self.start[-1]} and amount has shape {self.amount.shape}."
            )
        names, self.key = np.unique(keys, return_inverse=True)
        self.n_keys = len(names)
        item = np.repeat(np.arange(self.n_items), np.diff(self.start))
        pairs = item * np.int64(max(self.n_keys, 1)) + self.key
        if len(np.unique(pairs)) < len(pairs):
            raise InvalidArgumentError(
                "an item lists a key twice: give each key once, with the sum of its amounts."
            )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.start) - 1

    @classmethod
    def from_field(cls, fields: Fields, name: str, *, missing: int | None = None) -> Bags:
        """Use the codes of a field as keys.

        An item of a field with rows has each different code of its row.

        missing
            A code that means that there is no key. Codes below zero always do.
        """
        values = fields[name].values
        if values.dtype != np.int32:
            raise InvalidArgumentError(
                f"field {name!r} contains real numbers, which cannot be counted: round them first."
            )
        rows = np.sort(values.reshape(len(values), -1), axis=1)
        known = rows >= 0
        if missing is not None:
            known &= rows != missing
        known[:, 1:] &= rows[:, 1:] != rows[:, :-1]
        start = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        return cls(start, rows[known])

    @classmethod
    def from_lists(cls, lists: Sequence[Iterable[Hashable]]) -> Bags:
        """Give item i the keys in ``lists[i]``, each with the number of times it occurs there."""
        return cls._counted([Counter(listed) for listed in lists])

    @classmethod
    def from_weights(cls, weights: Sequence[Mapping[Any, float]]) -> Bags:
        """Give item i the keys of ``weights[i]``, scaled to a length of 4096 and rounded to whole numbers."""
        return cls._counted([_to_length(item_weights) for item_weights in weights])

    @classmethod
    def _counted(cls, counts: Sequence[Mapping[Any, int]]) -> Bags:
        numbers: dict[Any, int] = {}
        keys = [numbers.setdefault(key, len(numbers)) for count in counts for key in count]
        amounts = [amount for count in counts for amount in count.values()]
        start = np.cumsum([0, *(len(count) for count in counts)])
        return cls(start, np.array(keys, np.int64), np.array(amounts, np.int64))

    def of(self, item: int) -> dict[int, int]:
        """Return the keys of one item with their amounts."""
        entries = slice(self.start[item], self.start[item + 1])
        return dict(zip(self.key[entries].tolist(), self.amount[entries].tolist(), strict=True))

    def hashed(self, dimensions: int, *, seed: int = 0) -> Float64s:
        """Return float64[items, dimensions] vectors whose inner products approximate those of the bags.

        Each key adds to one of the numbers with a random sign, so that collisions of keys cancel out on
        average.
        """
        check_count("dimensions", dimensions)
        rng = np.random.default_rng(seed)
        bucket, sign = rng.integers(dimensions, size=self.n_keys), rng.choice([-1.0, 1.0], size=self.n_keys)
        vectors = np.zeros((self.n_items, dimensions))
        item = np.repeat(np.arange(self.n_items), np.diff(self.start))
        np.add.at(vectors, (item, bucket[self.key]), sign[self.key] * self.amount)
        return vectors

    def restrict_to(self, items: Int64s) -> Bags:
        """Return the bags of some items; items and keys are renumbered in the order given."""
        start, entries = take_rows(self.start, items)
        return Bags(start, self.key[entries], self.amount[entries])

    def present(self) -> Bags:
        """Return the same keys, each with an amount of 1."""
        return Bags(self.start, self.key)

    def scaled(self) -> Bags:
        """Return bags of length 4096 in whole numbers; amounts that round to zero are left out."""
        length = np.sqrt(np.add.reduceat(np.append(self.amount**2, 0), self.start[:-1]).astype(np.float64))
        empty = np.diff(self.start) == 0
        scale = UNIT / np.where(empty, 1.0, length)
        amount = np.rint(self.amount * np.repeat(scale, np.diff(self.start))).astype(np.int64)
        kept = amount > 0
        start = np.concatenate([[0], np.cumsum(kept)])[self.start]
        return Bags(start, self.key[kept], amount[kept])


def _whole(amount: NDArray[Any]) -> Int64s:
    whole = amount.astype(np.int64)
    if (whole != amount).any() or (whole <= 0).any():
        wrong = amount[(whole != amount) | (whole <= 0)][0]
        raise InvalidArgumentError(
            f"amounts of keys must be whole numbers above zero, but {wrong} was given: leave out keys"
            " that an item does not have, and use Bags.from_weights for amounts with fractions."
        )
    return whole


def _to_length(item_weights: Mapping[Any, float]) -> dict[Any, int]:
    values = np.array(list(item_weights.values()), dtype=np.float64)
    if not (np.isfinite(values) & (values >= 0.0)).all():
        raise InvalidArgumentError(
            f"weights of keys must be finite numbers, zero or more, but {dict(item_weights)!r} was given."
        )
    length = float(np.sqrt(values @ values))
    amounts = np.rint(values * (UNIT / length)).astype(np.int64).tolist() if length > 0.0 else []
    return {key: amount for key, amount in zip(item_weights, amounts, strict=False) if amount > 0}
