"""End a run on SIGTERM and SIGHUP as on Ctrl-C: results so far are kept, and no file is left incomplete."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
AGAIN = 0.02  # seconds after which a signal is sent again whose exception was lost


@contextmanager
def interrupted_by_signals() -> Iterator[list[signal.Signals]]:
    """Let SIGTERM and SIGHUP raise `KeyboardInterrupt` in the block; yield the list of those that arrived.

    A signal that is already ignored or handled, such as SIGHUP under ``nohup``, is left alone, and so are all
    signals outside the main thread, where Python cannot set handlers.
    """
    arrived: list[signal.Signals] = []
    ended = False

    def interrupt(number: int, _frame: FrameType | None) -> None:
        arrived.append(signal.Signals(number))
        if not ended:
            raise KeyboardInterrupt

    def raise_again(unraisable: Any) -> None:
        """Interrupt again if the exception was lost, as in a destructor or a callback of C code."""
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            number = arrived.pop() if arrived else signal.SIGINT
            # if it were sent now, it would be lost here, too
            threading.Timer(AGAIN, _thread.interrupt_main, [number]).start()
        else:
            report(unraisable)

    if threading.current_thread() is not threading.main_thread():
        yield arrived
        return
    report = sys.unraisablehook
    handled = [number for number in ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, interrupt)
    sys.unraisablehook = raise_again
    try:
        yield arrived
    finally:
        ended = True
        sys.unraisablehook = report
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
