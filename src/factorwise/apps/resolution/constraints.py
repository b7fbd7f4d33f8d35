"""What is known for certain of some records: hard factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.linkage import MOST_SOURCES
from factorwise.types import Ints


def _no_pairs() -> NDArray[np.int64]:
    return np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Pairs of rows that are, or are not, of one entity; and sources that have each entity once.

    must, cannot : int64[., 2]
        Rows of the table.
    sources : int32[rows] or None
        The source of each record.
    one_per_source
        Whether no source has two records of an entity.
    """

    must: NDArray[np.int64] = field(default_factory=_no_pairs)
    cannot: NDArray[np.int64] = field(default_factory=_no_pairs)
    sources: NDArray[np.int32] | None = None
    one_per_source: bool = False

    def source_bits(self, unit: Ints, n_items: int) -> NDArray[np.uint64] | None:
        """Return the bits of the sources of each item, where an entity has one record of each; else None."""
        if not self.one_per_source or self.sources is None:
            return None
        count = int(self.sources.max(initial=0)) + 1
        if count > MOST_SOURCES:
            raise InvalidArgumentError(
                f"one record per source can be asked of up to {MOST_SOURCES} sources, but there are {count}."
            )
        bits = np.zeros(n_items, np.uint64)
        np.bitwise_or.at(bits, unit, np.uint64(1) << self.sources.astype(np.uint64))
        members = np.bincount(unit, minlength=n_items)
        spread = np.bitwise_count(bits)
        if (spread < members).any():
            raise InvalidArgumentError(
                "records of one source must be together and must not be: remove one of the two constraints."
            )
        return bits

    def check(self, ids: Sequence[object] | None = None) -> None:
        """Refuse pairs that must and must not be together; ``ids`` name the records in the error."""
        if len(self.must) and len(self.cannot):
            n = int(max(self.must.max(), self.cannot.max())) + 1
            root = _roots(self.must, n)
            clash = root[self.cannot[:, 0]] == root[self.cannot[:, 1]]
            if clash.any():
                a, b = (row if ids is None else ids[row] for row in self.cannot[clash][0].tolist())
                raise InvalidArgumentError(
                    f"records {a} and {b} must be together and must not be: remove one of the constraints."
                )


def _roots(pairs: Ints, n: int) -> NDArray[np.int32]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ties = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return np.asarray(connected_components(ties, directed=False)[1], np.int32)
