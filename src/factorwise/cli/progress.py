"""Progress and cost of a run: whether to show a progress bar, the time of its parts, and memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from factorwise.cli.options import Options
from factorwise.cli.output import aligned, notice, size_text


def show_progress(options: Options) -> bool:
    """Whether to show a progress bar."""
    return not options.quiet and not options.json and sys.stderr.isatty()


def tell_compiling(options: Options) -> None:
    """Explain the delay of the first run, if it must compile and standard error is a terminal."""
    if not show_progress(options):
        return
    from factorwise.cli.doctor import compiled_folder, kernel_folders

    if not any(any(compiled_folder(folder).glob("*.nbi")) for folder in kernel_folders()):
        notice(options, "compiling on the first run, for up to a minute; later runs start at once.")


class Clock:
    """Measures the parts of a run, one after the other."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.parts: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure the time of the block."""
        began = time.perf_counter()
        yield
        self.parts[name] = time.perf_counter() - began

    def seconds(self) -> dict[str, float]:
        """Return the time of each part, and the total time since the clock was created."""
        return self.parts | {"all": time.perf_counter() - self._began}

    def cost(self) -> dict[str, Any]:
        """Return the time and memory of the run for its summary."""
        return {"seconds": self.seconds(), "peak_memory": peak_memory()}


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if the system does not report it."""
    with suppress(OSError), Path("/proc/self/status").open(encoding="ascii") as status:
        # on Linux, getrusage starts with the peak of the process that started this one
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def cost_rows(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the cost of a run as rows of text: the time of its parts, and memory if known."""
    seconds = document["seconds"]
    whole = max(seconds["all"], 1e-9)
    shares = [f"{name} {part:.2f} s ({part / whole:.0%})" for name, part in seconds.items() if name != "all"]
    rows = [("time", f"{seconds['all']:.2f} s{': ' if shares else ''}{', '.join(shares)}")]
    if document["peak_memory"] is not None:
        rows.append(("peak memory", size_text(document["peak_memory"])))
    return rows


def report_row(entry: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the line of the summary that names the report."""
    return [] if entry is None else [("report", f"{entry['file']}  ({size_text(entry['bytes'])})")]


def written_lines(document: Mapping[str, Any], rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Return the summary of a run as text: the file it wrote, facts, its report and its cost.

    document
        The summary, with the ``output`` that was written and its ``bytes``, or a ``model`` with both.
    rows
        The facts, each with its name.
    """
    model = document["model"] if "output" not in document else {"file": document["output"], **document}
    yield f"{model['file']}  ({size_text(model['bytes'])}, written)"
    yield from aligned([*rows, *report_row(document.get("report")), *cost_rows(document)])
