"""Sort pairs of items out of core.

A pair is one 64-bit word (see `factorwise.kernels.records.pair_joins`). Words are gathered in memory; what
does not fit is sorted and written to a scratch folder, from which the pairs are read back in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import require
from factorwise.io.columns import AT_ONCE, release
from factorwise.io.scratch import scratch_folder
from factorwise.kernels.records.pair_joins import ITEM_BITS, TAG_BITS

Words = NDArray[np.uint64]

_BEGIN = 1 << 16


class PairSorter:
    """Gathers pairs and returns them in order; use it as a context manager, which removes its files.

    Files of a process that was killed are removed by the next one.

    at_once
        Number of pairs to hold in memory while they are gathered; None for `AT_ONCE`. The result does not
        depend on it.
    folder
        Where a scratch folder is created if there are more pairs; None for the system's own place.
    """

    def __init__(self, n_items: int, *, at_once: int | None = None, folder: str | Path | None = None) -> None:
        require(n_items <= 1 << ITEM_BITS, "n_items", n_items, f"at most {1 << ITEM_BITS}")
        self._at_once = AT_ONCE if at_once is None else at_once
        require(self._at_once >= 1, "at_once", at_once, "at least 1")
        self._parent = folder
        self._folder: Path | None = None
        self._words, self._count = np.empty(min(_BEGIN, self._at_once), np.uint64), 0
        self._runs: list[Words] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs.clear()
        self._stack.close()

    def room(self, least: int) -> Words:
        """Return free space for at least this many words, to be filled from its beginning; see `keep`."""
        needed = self._count + least
        if needed > len(self._words):
            if needed > self._at_once and self._count:
                self._put_down()
                needed = least
            if needed > len(self._words):
                grown = np.empty(max(needed, min(2 * len(self._words), self._at_once)), np.uint64)
                grown[: self._count] = self._words[: self._count]
                self._words = grown
        return self._words[self._count :]

    def keep(self, count: int) -> None:
        """Keep the first words of the space that `room` returned last."""
        self._count += count

    def add(self, words: Words) -> None:
        """Add pairs that were made elsewhere."""
        for begin in range(0, len(words), self._at_once):
            part = words[begin : begin + self._at_once]
            self.room(len(part))[: len(part)] = part
            self.keep(len(part))

    def gathered(self) -> Words:
        """Return the pairs in memory, in the order in which they were added."""
        return self._words[: self._count]

    def sorted_pairs(self) -> Iterator[Words]:
        """Yield all pairs in order, in stretches of first items; a pair may be repeated."""
        last = self.gathered()
        last.sort()
        runs = [*self._runs, last]
        total = sum(map(len, runs))
        pieces = -(-total // self._at_once)
        if not total:
            return
        if pieces == 1 and len(runs) == 1:
            yield last
            return
        samples = []
        for run in runs:  # a word here and there brings many around it into memory
            samples.append(run[:: max(1, len(run) // 256)].copy())
            release(run)
        bounds = np.sort(np.concatenate(samples))
        cuts = np.array([bounds[len(bounds) * k // pieces] for k in range(1, pieces)], np.uint64)
        cuts = np.unique(cuts >> np.uint64(TAG_BITS + ITEM_BITS)) << np.uint64(TAG_BITS + ITEM_BITS)
        places = [np.concatenate([[0], np.searchsorted(run, cuts), [len(run)]]) for run in runs]
        release(*runs)
        for k in range(len(cuts) + 1):
            slices = [run[at[k] : at[k + 1]] for run, at in zip(runs, places, strict=True)]
            merged = np.concatenate(slices)
            merged.sort()
            release(*runs)
            yield merged

    def _put_down(self) -> None:
        """Sort the words in memory and write them to the scratch folder."""
        if self._folder is None:
            self._folder = self._stack.enter_context(scratch_folder(self._parent))
        path = self._folder / f"run{len(self._runs)}"
        words = self.gathered()
        words.sort()
        with path.open("xb") as stream:
            stream.write(words.data)
        self._runs.append(np.memmap(path, np.uint64, mode="r"))
        self._count = 0
