"""Shards on Ray: every run of a shard is a task, and its results stay in the cluster.

Ray records how each result was computed, and recomputes what a lost machine held. That is correct because the
functions are pure; the checksum of every round would reveal one that is not. A checkpoint limits how much
would have to be recomputed.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self

from factorwise.distributed.executors import AHEAD, Step, in_order, read_shard, write_shard
from factorwise.distributed.remote_calls import PAUSE, Board, print_texts, run_call
from factorwise.distributed.shard_models import ShardModel
from factorwise.distributed.shard_rows import ShardRows
from factorwise.distributed.stepping import ShardReport, ShardStep, step_shard
from factorwise.errors import ClusterError, InvalidArgumentError, MissingExtraError
from factorwise.io.shard_files import PartFile, ShardStore
from factorwise.kernels.compile.threads import thread_count

LOCAL = "local"
RETRIES = 10  # runs of a task after losses of its worker or machine, before giving up
PATIENCE = 5.0  # seconds within which a cluster must answer; Ray would try for minutes, and end the process


class RayExecutor:
    """An existing Ray cluster, or one on this machine for the lifetime of the executor.

    address
        Address of a running cluster, ``host:port`` or ``ray://host:port``; ``"auto"`` for the one to which
        this machine belongs; ``"local"`` to start one here, with its own token, which other machines cannot
        reach.
    workers
        Tasks that run at a time on a cluster that is started here; None for one per processor.

    Use it as a context manager, or call `close`: a cluster that was started here ends with it. In a process
    that is already connected, that connection is used and stays open.
    """

    def __init__(self, address: str, workers: int | None = None) -> None:
        self._ray = _imported(address)
        self._own = not self._ray.is_initialized()
        if self._own:
            _connect(self._ray, address, workers)
        self._inbox: list[list[Any]] = []
        remote = self._ray.remote(max_retries=RETRIES)
        self._stepping = remote(_step)
        self._writing = remote(_write)
        self._reading = remote(read_shard)
        self._joining = remote(_joined)
        self._calling = remote(_call)
        self._telling = remote(run_call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the shards, and the connection if it was opened here."""
        self._inbox = []
        if self._own and self._ray.is_initialized():
            self._ray.shutdown()

    def load(self, shards: Sequence[ShardRows]) -> None:
        """Take over the rows of all shards."""
        self._inbox = [[self._ray.put(rows)] for rows in shards]

    def step(self, steps: Sequence[ShardStep], model: Any, function: Step = step_shard) -> list[ShardReport]:
        """Run every shard for a round, and send each part of the result to its shard."""
        count = len(steps)
        outputs = [
            self._stepping.options(num_returns=count + 1).remote(function, step, model, *parts)
            for step, parts in zip(steps, self._inbox, strict=True)
        ]
        reports: list[ShardReport] = self._got([refs[count] for refs in outputs])
        self._inbox = [[refs[shard] for refs in outputs] for shard in range(count)]
        return reports

    def stream(
        self, function: Callable[..., Any], items: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """Call a function with each tuple of arguments.

        Yield positions and results in order of completion.
        """
        at_once = AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        waiting = enumerate(items)
        running: dict[Any, int] = {}
        try:
            while True:
                for position, each in islice(waiting, max(0, at_once - len(running))):
                    running[self._calling.remote(function, *each)] = position
                if not running:
                    return
                done, _ = self._ray.wait(list(running), fetch_local=False)
                for reference in done:
                    yield running.pop(reference), self._got(reference)
        finally:
            if self._ray.is_initialized():  # otherwise they ended with the cluster
                for reference in running:
                    self._ray.cancel(reference)

    def map(self, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each tuple of arguments; results are in the order of the items."""
        return in_order(self.stream(function, items))

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in a task; its output is printed here, and an interrupt here reaches it.

        It may use the cluster itself: an executor that it opens belongs to the same cluster. A second
        interrupt ends the task.
        """
        board = Board(f"call-{secrets.token_hex(8)}")
        folder, looks_on = str(Path.cwd()), sys.stderr is not None and sys.stderr.isatty()
        running = self._telling.remote(board.name, looks_on, folder, function, arguments)
        interrupted = False
        try:
            while True:
                try:
                    done, _ = self._ray.wait([running], timeout=PAUSE)
                    print_texts(board)
                    if done:
                        return self._got(running)
                except KeyboardInterrupt:
                    if interrupted:
                        self._ray.cancel(running, force=True)
                        raise
                    interrupted = True
                    board.ask_to_stop()
        finally:
            board.clear()

    def share(self, value: Any) -> Any:
        """Send a value to the cluster once; functions that get the result receive the value."""
        return self._ray.put(value)

    def checkpoint(self, store: ShardStore) -> list[PartFile]:
        """Write the rows of each shard to a file, from which later losses are recovered."""
        made = [self._writing.remote(store, shard, *parts) for shard, parts in enumerate(self._inbox)]
        files: list[PartFile] = self._got(made)
        self.restore(store, files)
        return files

    def restore(self, store: ShardStore, files: Sequence[PartFile]) -> None:
        """Take over shards that `checkpoint` wrote; they are read when they are needed."""
        self._inbox = [[self._reading.remote(store, file)] for file in files]

    def rows(self) -> Iterator[ShardRows]:
        """Yield the rows of one shard after the other."""
        for parts in self._inbox:
            yield self._got(self._joining.remote(*parts))

    def _got(self, references: Any) -> Any:
        """Wait for results; errors of the functions are raised unchanged, those of the cluster as ours."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(references)
        except errors.RayTaskError as error:
            cause: BaseException = error
            while isinstance(cause, errors.RayTaskError) and cause.cause is not None:
                cause = cause.cause  # the function's own error, without Ray's traceback
            raise cause from None
        except errors.RayError as error:
            raise ClusterError(
                f"the Ray cluster failed ({type(error).__name__}: {str(error).splitlines()[0]}). Run"
                " the same command again: with a checkpoint it resumes from the last one."
            ) from error


def _step(function: Step, step: ShardStep, model: ShardModel, *parts: ShardRows) -> tuple[Any, ...]:
    sent, report = function(parts, step, model)
    return (*sent, report)


def _write(store: ShardStore, shard: int, *parts: ShardRows) -> PartFile:
    return write_shard(store, shard, parts)


def _joined(*parts: ShardRows) -> ShardRows:
    return ShardRows.joined(parts)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _imported(address: str) -> Any:
    """Import Ray, after setting the environment variables that it reads at import."""
    if not address:
        raise InvalidArgumentError("the address of the Ray cluster is empty: give host:port, auto or local.")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == LOCAL:
        # Ray otherwise treats 127.0.0.1 as a mistake, and listens where other machines can reach it
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if address == LOCAL and "ray" not in sys.modules:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        if os.environ["RAY_AUTH_MODE"] == "token" and "RAY_AUTH_TOKEN_PATH" not in os.environ:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            'Ray is not installed. Install it with: pip install "factorwise[ray]"'
        ) from error
    return ray


def _connect(ray: Any, address: str, workers: int | None) -> None:
    common: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address != LOCAL:
        try:
            _knock(address)
            ray.init(address=address, **common)
        except (OSError, ImportError, ValueError, RuntimeError) as error:
            raise InvalidArgumentError(
                f"no Ray cluster can be reached at {address!r} ({error}). Start one, or use 'local'."
            ) from error
        return
    if os.environ.get("RAY_AUTH_MODE") != "token":
        raise InvalidArgumentError(
            "a Ray cluster is started on this machine only with tokens: set RAY_AUTH_MODE=token before"
            " Ray is imported, or give the address of a running cluster."
        )
    ray.init(
        address=LOCAL,
        num_cpus=thread_count(workers),
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        **common,
    )


def _knock(address: str) -> None:
    """Raise an error if nothing listens at an address."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
