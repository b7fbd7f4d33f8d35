"""Executors, which run the shards: a protocol, and the executor for threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from operator import itemgetter
from typing import Any, Protocol

from factorwise.distributed.shard_models import ShardModel
from factorwise.distributed.shard_rows import ShardRows
from factorwise.distributed.stepping import ShardReport, ShardStep, step_shard
from factorwise.io.checkpoints import restoring
from factorwise.io.shard_files import PartFile, ShardStore
from factorwise.kernels.compile.threads import thread_count

AHEAD = 2  # calls that are prepared for each running one
Step = Callable[[Sequence[ShardRows], ShardStep, ShardModel], tuple[list[ShardRows], ShardReport]]


class Executor(Protocol):
    """Runs functions of shards, and holds the shards between calls.

    Functions are pure, so they may be run again elsewhere if a machine is lost.
    """

    def load(self, shards: Sequence[ShardRows]) -> None:
        """Take over the rows of all shards."""
        ...

    def step(self, steps: Sequence[ShardStep], model: Any, function: Step = step_shard) -> list[ShardReport]:
        """Run every shard for a round, and send each part of the result to its shard.

        model
            The result of `share` for the `ShardModel`.
        """
        ...

    def stream(
        self, function: Callable[..., Any], items: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """Call a function with each tuple of arguments; yield positions and results in order of completion.

        Items are taken a few ahead of the results, so they need not all exist at one time.
        """
        ...

    def map(self, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each tuple of arguments; results are in the order of the items."""
        ...

    def share(self, value: Any) -> Any:
        """Send a value once to where functions run; return what to pass to them for it."""
        ...

    def checkpoint(self, store: ShardStore) -> list[PartFile]:
        """Write the rows of each shard to a file; later losses are recovered from there."""
        ...

    def restore(self, store: ShardStore, files: Sequence[PartFile]) -> None:
        """Take over shards that `checkpoint` wrote."""
        ...

    def rows(self) -> Iterator[ShardRows]:
        """Yield the rows of one shard after the other."""
        ...


class LocalExecutor:
    """Threads of this process; the compiled sampler runs without the global interpreter lock.

    threads
        Number of threads; None for all processors. The result does not depend on it.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)
        self._inbox: list[list[ShardRows]] = []

    def load(self, shards: Sequence[ShardRows]) -> None:
        """Take over the rows of all shards."""
        self._inbox = [[rows] for rows in shards]

    def step(self, steps: Sequence[ShardStep], model: Any, function: Step = step_shard) -> list[ShardReport]:
        """Run every shard for a round, and send each part of the result to its shard."""
        work = [(parts, step, model) for parts, step in zip(self._inbox, steps, strict=True)]
        done = self.map(function, work)
        self._inbox = [[sent[shard] for sent, _ in done] for shard in range(len(steps))]
        return [report for _, report in done]

    def stream(
        self, function: Callable[..., Any], items: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """Call a function with each tuple of arguments.

        Yield positions and results in order of completion.
        """
        if self.threads == 1:
            yield from ((position, function(*each)) for position, each in enumerate(items))
            return
        with ThreadPoolExecutor(self.threads) as pool:
            waiting = enumerate(items)
            running: dict[Future[Any], int] = {}
            try:
                while True:
                    for position, each in islice(waiting, AHEAD * self.threads - len(running)):
                        running[pool.submit(function, *each)] = position
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        yield running.pop(future), future.result()
            finally:
                for future in running:
                    future.cancel()

    def map(self, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each tuple of arguments; results are in the order of the items."""
        if len(items) < 2:
            return [function(*each) for each in items]
        return in_order(self.stream(function, items))

    def share(self, value: Any) -> Any:
        """Return the value itself, because functions run in this process."""
        return value

    def checkpoint(self, store: ShardStore) -> list[PartFile]:
        """Write the rows of each shard to a file."""
        return self.map(write_shard, [(store, shard, parts) for shard, parts in enumerate(self._inbox)])

    def restore(self, store: ShardStore, files: Sequence[PartFile]) -> None:
        """Take over shards that `checkpoint` wrote."""
        self.load(self.map(read_shard, [(store, file) for file in files]))

    def rows(self) -> Iterator[ShardRows]:
        """Yield the rows of one shard after the other."""
        for parts in self._inbox:
            yield ShardRows.joined(parts)


def in_order(answers: Iterable[tuple[int, Any]]) -> list[Any]:
    """Return results in the order of their positions."""
    return [answer for _, answer in sorted(answers, key=itemgetter(0))]


def write_shard(store: ShardStore, shard: int, parts: Sequence[ShardRows]) -> PartFile:
    """Write one shard; every attempt writes its own file."""
    rows = ShardRows.joined(parts)
    return store.write(shard, rows._asdict(), rows.checksum)


def read_shard(store: ShardStore, file: PartFile) -> ShardRows:
    """Read one shard, and check that it is what was written."""
    columns = store.read(file)
    with restoring(store.address):
        rows = ShardRows.checked(columns)
    file.check(rows.checksum)
    return rows
