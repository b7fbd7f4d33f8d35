"""A call that is made in a task, as if it were made here: what it prints is printed, and Ctrl-C reaches it.

Texts and the wish to stop go by the key-value store that a Ray cluster has for itself, a few kilobytes of
which belong to the call while it lasts. They are for people; what the call returns comes by Ray.
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

PAUSE = 0.2  # seconds between looks at what was printed
LATEST = 400  # texts that are kept for whoever prints them
ERR, OUT = 2, 1


class Board:
    """Where a task leaves texts and finds the wish to stop; used from both ends.

    name
        Tells the call from others.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._seen = ("", -1)

    def put(self, attempt: str, texts: list[tuple[int, int, str]]) -> None:
        """Leave the latest texts of an attempt at the call: their numbers, streams and contents."""
        _store().put(f"{self.name}-texts", json.dumps([attempt, texts]).encode())

    def take(self) -> Iterator[tuple[int, str]]:
        """Yield texts that were not taken yet: their streams and contents."""
        content = _store().get(f"{self.name}-texts")
        if content is None:
            return
        attempt, texts = json.loads(content)
        last = self._seen[1] if self._seen[0] == attempt else -1  # another machine may have begun anew
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
        """Whether the call shall be interrupted; said once, so that what it then does is not disturbed."""
        if _store().get(f"{self.name}-stop") is None:
            return False
        _store().delete(f"{self.name}-stop")
        return True

    def clear(self) -> None:
        """Leave nothing in the store."""
        for kind in ("texts", "stop"):
            _store().delete(f"{self.name}-{kind}")


class _Stream(io.TextIOBase):
    """Standard output or error of a task: texts are numbered and kept for the board."""

    encoding = "utf-8"

    def __init__(self, keep: Callable[[int, str], None], stream: int, is_terminal: bool) -> None:
        self._keep, self._stream, self._is_terminal = keep, stream, is_terminal

    def write(self, text: str) -> int:
        """Keep a text."""
        if not isinstance(text, str):
            raise TypeError(f"a text is written here, not {type(text).__name__}")
        self._keep(self._stream, text)
        return len(text)

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def isatty(self) -> bool:
        """Say whether whoever made the call looks on."""
        return self._is_terminal


def run_call(
    name: str, looks_on: bool, folder: str, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """Make a call in a task; it runs in the same folder as whoever asked for it.

    looks_on
        Whether standard error is a terminal there.
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
            f"the folder {folder!r} is not there on the machine {os.uname().nodename}, which works on it: all"
            " machines of the cluster must reach the files by the same paths. Share the folder, or give"
            " addresses of a store."
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
        """Return a value; None where there is none."""
        found: bytes | None = self._kv._internal_kv_get(key, namespace=_NAMESPACE)
        return found

    def delete(self, key: str) -> None:
        """Remove a value."""
        self._kv._internal_kv_del(key, namespace=_NAMESPACE)


_NAMESPACE = "factorwise"


def _store() -> _Store:
    return _Store()
