"""Make a call in a task as if it ran here: its output is printed here, and Ctrl-C reaches it.

Output and interrupts go through the internal key-value store of the Ray cluster, where the call uses a few
kilobytes while it runs. The result of the call is returned by Ray.
"""

from __future__ import annotations

import _thread
import contextlib
import io
import json
import os
import secrets
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from factorwise.errors import ClusterError

PAUSE = 0.2  # seconds between checks for output
LATEST = 400  # pieces of output that are kept for printing
ERR, OUT = 2, 1


class Board:
    """Where a task leaves output and finds interrupts; used from both ends.

    name
        Identifies the call.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._seen = ("", -1)

    def put(self, attempt: str, texts: list[tuple[int, int, str]]) -> None:
        """Leave the latest output of an attempt at the call: numbers, streams and contents."""
        _store().put(f"{self.name}-texts", json.dumps([attempt, texts]).encode())

    def take(self) -> Iterator[tuple[int, str]]:
        """Yield output that was not taken yet: streams and contents."""
        content = _store().get(f"{self.name}-texts")
        if content is None:
            return
        attempt, texts = json.loads(content)
        last = self._seen[1] if self._seen[0] == attempt else -1  # another machine may have started again
        for number, stream, text in texts:
            if number > last:
                if number > last + 1:
                    yield ERR, f"... {number - last - 1} pieces of output left out\n"
                self._seen, last = (attempt, number), number
                yield stream, text

    def ask_to_stop(self) -> None:
        """Interrupt the call."""
        _store().put(f"{self.name}-stop", b"1")

    def is_asked_to_stop(self) -> bool:
        """Whether the call is to be interrupted; true only once, so that its cleanup is not disturbed."""
        if _store().get(f"{self.name}-stop") is None:
            return False
        _store().delete(f"{self.name}-stop")
        return True

    def clear(self) -> None:
        """Remove everything from the store."""
        for kind in ("texts", "stop"):
            _store().delete(f"{self.name}-{kind}")


class _Stream(io.TextIOBase):
    """Standard output or error of a task: pieces of output are numbered and kept for the board."""

    encoding = "utf-8"

    def __init__(self, keep: Callable[[int, str], None], stream: int, is_terminal: bool) -> None:
        self._keep, self._stream, self._is_terminal = keep, stream, is_terminal

    def write(self, text: str) -> int:
        """Keep a piece of output."""
        if not isinstance(text, str):
            raise TypeError(f"output must be str, but {type(text).__name__} was given")
        self._keep(self._stream, text)
        return len(text)

    def writable(self) -> bool:
        """Return True, because it can be written to."""
        return True

    def isatty(self) -> bool:
        """Whether the caller's stream is a terminal."""
        return self._is_terminal


def run_call(
    name: str, looks_on: bool, folder: str, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Make a call in a task, in the same folder as the caller.

    looks_on
        Whether the caller's standard error is a terminal.
    """
    board, attempt = Board(name), secrets.token_hex(4)
    texts: deque[tuple[int, int, str]] = deque(maxlen=LATEST)
    count, over = 0, threading.Event()

    def keep(stream: int, text: str) -> None:
        nonlocal count
        texts.append((count, stream, text))
        count += 1

    def show() -> None:
        shown = -1
        while True:
            ended = over.wait(PAUSE)
            if count != shown:
                shown = count
                board.put(attempt, list(texts))
            if ended:
                return
            if board.is_asked_to_stop():
                _thread.interrupt_main()

    try:
        earlier = Path.cwd()
        os.chdir(folder)
    except OSError as error:
        raise ClusterError(
            f"the folder {folder!r} does not exist on the machine {os.uname().nodename}, which runs the"
            " task: all machines of the cluster must reach the files by the same paths. Share the"
            " folder, or give addresses of an object store."
        ) from error
    teller = threading.Thread(target=show, daemon=True)
    teller.start()
    try:
        out, err = _Stream(keep, OUT, False), _Stream(keep, ERR, looks_on)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            return function(*arguments)
    finally:
        over.set()
        teller.join()
        os.chdir(earlier)  # the process may be used for other tasks


def print_texts(board: Board) -> None:
    """Print what a call has printed since the last time."""
    for stream, text in board.take():
        target = sys.stdout if stream == OUT else sys.stderr
        target.write(text)
        target.flush()


class _Store:
    """The key-value store of the cluster that this process is connected to."""

    def __init__(self) -> None:
        from ray.experimental import internal_kv

        self._kv = internal_kv

    def put(self, key: str, value: bytes) -> None:
        """Set a value."""
        self._kv._internal_kv_put(key, value, overwrite=True, namespace=_NAMESPACE)

    def get(self, key: str) -> bytes | None:
        """Return a value; None if there is none."""
        value: bytes | None = self._kv._internal_kv_get(key, namespace=_NAMESPACE)
        return value

    def delete(self, key: str) -> None:
        """Remove a value."""
        self._kv._internal_kv_del(key, namespace=_NAMESPACE)


_NAMESPACE = "factorwise"


def _store() -> _Store:
    return _Store()
