"""Pairs of items that lie in a block together: self joins in DuckDB, out of core.

Rows (block, item) go into a table; ranges of blocks are joined with themselves, each small enough to be held;
what comes of it is sorted and, if there are several ranges, put down in a scratch folder, from where the
pairs are read back in order. A pair is one 64-bit word: the two items, smaller first, and a tag that says
how they met.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.errors import require
from factorwise.io.scratch import scratch_folder
from factorwise.types import Ints
from factorwise.validation import check_count

Words = NDArray[np.uint64]

TAG_BITS = 12
ITEM_BITS = (64 - TAG_BITS) // 2
AT_ONCE = 1 << 24  # pairs joined, or merged, in one go

_WORD = "(l.item::UBIGINT << $high::UBIGINT) | (r.item::UBIGINT << $low::UBIGINT) | {tag}"
_APART = "AND l.source <> r.source"
_COMPLETE = """
    SELECT {word} AS pair
    FROM (SELECT * FROM blocks WHERE block >= $first AND block < $last) l
    JOIN (SELECT * FROM blocks WHERE block >= $first AND block < $last) r
    ON l.block = r.block AND l.item < r.item {apart}
"""
_WINDOWED = """
    SELECT {word} AS pair
    FROM (SELECT * FROM windows WHERE cell >= $first AND cell < $last) l
    JOIN (
        SELECT cell + near AS cell, place, item, source
        FROM windows, (VALUES (-1), (0), (1)) s(near)
        WHERE cell >= $first - 1 AND cell <= $last
    ) r
    ON l.cell = r.cell AND l.item < r.item AND abs(l.place - r.place) <= $reach {apart}
"""
# Next neighbors get the highest tag of their rule: they are kept whatever the budget.
_NEAR_TAG = (
    "CASE WHEN abs(l.place - r.place) <= 1 THEN l.tag::UBIGINT | $near::UBIGINT ELSE l.tag::UBIGINT END"
)


class BlockRows(NamedTuple):
    """Members of blocks, ordered by block.

    block : int64[rows]
        Blocks are numbered from zero; rows of one block stand together.
    item : int32[rows]
    tag : int32[rows]
        What to write beside the pairs of the block, below 2**TAG_BITS.
    """

    block: NDArray[np.int64]
    item: NDArray[np.int32]
    tag: NDArray[np.int32]


class PairJoins:
    """A scratch database of blocks, to be used as a context; nothing is left of it afterwards.

    What a process that was killed left behind is removed by the next one.

    memory_limit
        What DuckDB may hold, such as ``"2GB"``; beyond that it writes to the scratch folder.
    threads
        How many threads it may use; the result does not depend on it.
    folder
        Where the scratch folder is made; None for the system's own place.
    sources
        int32[items]: leave out pairs of items with the same source. None to keep all.
    """

    def __init__(
        self,
        n_items: int,
        *,
        memory_limit: str = "2GB",
        threads: int = 2,
        folder: str | Path | None = None,
        sources: Ints | None = None,
    ) -> None:
        require(n_items <= 1 << ITEM_BITS, "n_items", n_items, f"at most {1 << ITEM_BITS}")
        check_count("threads", threads)
        self._settings: dict[str, Any] = {
            "memory_limit": memory_limit,
            "threads": threads,
            "preserve_insertion_order": False,
        }
        self._parent = folder
        self._sources = None if sources is None else np.asarray(sources, np.int32)
        self._runs: list[Words] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._folder = stack.enter_context(scratch_folder(self._parent))
            settings = {**self._settings, "temp_directory": str(self._folder)}
            self._connection = stack.enter_context(duckdb.connect(":memory:", config=settings))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs.clear()
        self._stack.close()

    def complete(self, rows: BlockRows, sizes: NDArray[np.int64]) -> None:
        """Join blocks with themselves; block b has ``sizes[b]`` members."""
        ends = np.cumsum(sizes * (sizes - 1) // 2)
        table: dict[str, NDArray[Any]] = {
            "block": rows.block,
            "item": rows.item,
            "tag": rows.tag,
            "source": self._source(rows.item),
        }
        with self._table("blocks", table):
            query = self._query(_COMPLETE, "l.tag::UBIGINT")
            for first, last in _stretches(ends):
                self._run(query, first=first, last=last)

    def windowed(self, rows: BlockRows, place: NDArray[np.int64], reach: int, near_tag: int) -> None:
        """Join each row with those of its block at most ``reach`` places away.

        place : int64[rows]
            Ascending, with at least ``reach`` numbers left out between blocks.
        near_tag
            Bits to set in the tag of next neighbors.
        """
        cell = place // reach
        table: dict[str, NDArray[Any]] = {"cell": cell, "place": place, "item": rows.item, "tag": rows.tag}
        ends = np.cumsum(np.bincount(cell)) * reach
        with self._table("windows", {**table, "source": self._source(rows.item)}):
            query = self._query(_WINDOWED, _NEAR_TAG)
            for first, last in _stretches(ends):
                self._run(query, first=first, last=last, reach=reach, near=near_tag)

    def add(self, words: Words) -> None:
        """Take over pairs in order that were made elsewhere."""
        if len(words):
            self._runs.append(words)

    def sorted_pairs(self) -> Iterator[Words]:
        """Yield all pairs in order, a stretch of first items at a time; a pair may stand more than once."""
        total = sum(map(len, self._runs))
        pieces = -(-total // AT_ONCE)
        if not total:
            return
        bounds = np.sort(np.concatenate([run[:: max(1, len(run) // 256)] for run in self._runs]))
        cuts = np.array([bounds[len(bounds) * k // pieces] for k in range(1, pieces)], np.uint64)
        cuts = np.unique(cuts >> np.uint64(TAG_BITS + ITEM_BITS)) << np.uint64(TAG_BITS + ITEM_BITS)
        places = [np.concatenate([[0], np.searchsorted(run, cuts), [len(run)]]) for run in self._runs]
        for k in range(len(cuts) + 1):
            slices = [run[at[k] : at[k + 1]] for run, at in zip(self._runs, places, strict=True)]
            merged = np.concatenate(slices)
            merged.sort()
            yield merged

    def _source(self, items: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.zeros(len(items), np.int32) if self._sources is None else self._sources[items]

    def _query(self, pattern: str, tag: str) -> str:
        apart = "" if self._sources is None else _APART
        return pattern.format(word=_WORD.format(tag=tag), apart=apart)

    def _table(self, name: str, columns: dict[str, NDArray[Any]]) -> ExitStack:
        """Make a table that is gone at the end of the context."""
        self._connection.register("given", pa.table(columns))
        with heeding_interrupts():
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self._connection.unregister("given")
        stack = ExitStack()
        stack.callback(self._connection.execute, f"DROP TABLE {name}")
        return stack

    def _run(self, query: str, **values: int) -> None:
        shifts = {"high": TAG_BITS + ITEM_BITS, "low": TAG_BITS}
        with heeding_interrupts():
            found = self._connection.execute(query, {**shifts, **values}).fetchnumpy()["pair"]
        assert found.dtype == np.uint64  # anything else would have lost bits
        words = np.sort(found)
        if len(words) >= AT_ONCE // 4:
            path = self._folder / f"run{len(self._runs)}"
            words.tofile(path)
            words = np.memmap(path, np.uint64, mode="r")
        self._runs.append(words)


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Make a Ctrl-C what it is elsewhere: DuckDB ends the query with an error of its own."""
    try:
        yield
    except (RuntimeError, duckdb.InterruptException) as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from error
        raise


def _stretches(ends: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut what has these running totals into stretches of about `AT_ONCE`."""
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + AT_ONCE, side="right")))
        yield first, last
        first = last
