"""Hard constraints on which records may belong to the same entity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.shards.link_walk import MOST_SOURCES
from factorwise.kernels.graphs.components import component_numbers
from factorwise.types import Ints


def _no_pairs() -> NDArray[np.int64]:
    return np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Must-link and cannot-link pairs of rows, and sources that contain each entity at most once.

    must, cannot : int64[., 2]
        Pairs of rows of the table.
    sources : int32[rows] or None
        The source of each record: numbers from 0 on, or names, which are then numbered.
    one_per_source
        Whether an entity has at most one record from each source.
    """

    must: NDArray[np.int64] = field(default_factory=_no_pairs)
    cannot: NDArray[np.int64] = field(default_factory=_no_pairs)
    sources: NDArray[np.int32] | None = None
    one_per_source: bool = False

    def __post_init__(self) -> None:
        for name in ("must", "cannot"):
            pairs = np.asarray(getattr(self, name))
            pairs = _no_pairs() if not pairs.size else pairs
            if (
                pairs.ndim != 2
                or pairs.shape[1] != 2
                or pairs.dtype.kind not in "iu"
                or pairs.min(initial=0) < 0
            ):
                raise InvalidArgumentError(
                    f"{name} must be pairs of row numbers, such as [[0, 3], [2, 5]], but"
                    f" {getattr(self, name)!r} was given."
                )
            object.__setattr__(self, name, pairs.astype(np.int64))
        if self.sources is not None and np.asarray(self.sources).dtype.kind not in "iu":
            names = ["" if name is None else str(name) for name in self.sources]
            numbers = np.unique(names, return_inverse=True)[1].astype(np.int32)
            object.__setattr__(self, "sources", numbers)
        elif self.sources is not None:
            given = np.asarray(self.sources)
            if given.min(initial=0) < 0 or given.max(initial=0) >= MOST_SOURCES:
                given = np.unique(given, return_inverse=True)[1].astype(np.int32)
            object.__setattr__(self, "sources", given)

    def source_bits(self, unit: Ints, n_items: int) -> NDArray[np.uint64] | None:
        """Return the sources of each item as bits; None unless an entity has one record per source."""
        if not self.one_per_source or self.sources is None:
            return None
        count = int(self.sources.max(initial=0)) + 1
        if count > MOST_SOURCES:
            raise InvalidArgumentError(
                f"one record per source can be asked of up to {MOST_SOURCES} sources, but there are {count}."
                " Resolve without it, or put sources that share no entity under one number."
            )
        bits = np.zeros(n_items, np.uint64)
        np.bitwise_or.at(bits, unit, np.uint64(1) << self.sources.astype(np.uint64))
        return bits

    def check_rows(self, n_rows: int) -> None:
        """Raise an error if constraints name rows that a table of ``n_rows`` records does not have."""
        if self.sources is not None and len(self.sources) != n_rows:
            raise ShapeError(f"{n_rows} records need a source each, not {len(self.sources)}.")
        for name, pairs in (("must", self.must), ("cannot", self.cannot)):
            if pairs.max(initial=-1) >= n_rows:
                raise InvalidArgumentError(
                    f"{name} names row {pairs.max()}, but there are {n_rows} records: rows are numbered from"
                    f" 0 to {n_rows - 1}."
                )

    def check(self, ids: Sequence[object] | None = None) -> None:
        """Raise an error if constraints contradict each other, even indirectly; ``ids`` name the records."""
        rows = np.concatenate([self.must.ravel(), self.cannot.ravel()])
        group = tied(self.must, int(rows.max(initial=-1)) + 1)
        clash = group[self.cannot[:, 0]] == group[self.cannot[:, 1]]
        if clash.any():
            one, two = _named(self.cannot[clash][0], ids)
            raise InvalidArgumentError(
                f"records {one} and {two} must be together and must not be: remove one of the constraints."
            )
        if self.one_per_source and self.sources is not None and len(self.must):
            one, two = _named(_of_one_source(group, self.sources[: len(group)], self.must), ids)
            if one is not None:
                raise InvalidArgumentError(
                    f"records {one} and {two} must be together, but they are of one source, of which an"
                    " entity may have one record: remove one of the constraints."
                )


def tied(pairs: Ints, n: int) -> NDArray[np.int32]:
    """Return the group of each of ``n`` rows: the connected components of the pairs."""
    return component_numbers(n, pairs[:, 0], pairs[:, 1])


def _of_one_source(group: Ints, sources: Ints, must: Ints) -> Ints:
    """Return two rows of one source that must be together; an empty array if there are none."""
    rows = np.unique(must)
    order = rows[np.lexsort((sources[rows], group[rows]))]
    again = (group[order][1:] == group[order][:-1]) & (sources[order][1:] == sources[order][:-1])
    found = np.flatnonzero(again)[:1]
    return np.sort(np.concatenate([order[found], order[found + 1]]))


def _named(rows: Ints, ids: Sequence[object] | None) -> tuple[object, object]:
    if not len(rows):
        return None, None
    one, two = rows.tolist()
    return (one, two) if ids is None else (ids[one], ids[two])
