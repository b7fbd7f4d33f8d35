"""``factorwise doctor``: what factorwise finds on this machine."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from factorwise.cli.options import Options, usable_processors, verb
from factorwise.cli.output import aligned, emit, size_text
from factorwise.errors import MissingDataError
from factorwise.io.data import data_directory
from factorwise.io.provenance import versions
from factorwise.kernels.cache import cache_directory

PACKAGES = ("numpy", "numba", "scipy", "click", "tqdm", "arviz")


@verb(example="factorwise doctor --json")
def command(options: Options) -> None:
    """Report versions, processors, the compile cache and the data directory.

    Nothing is created or changed. Attach the output to a bug report.
    """
    document = examine(options)
    emit(document, _lines(document), as_json=options.json)


def examine(options: Options) -> dict[str, Any]:
    """Return what was found as JSON values, with advice on what is not as it should be."""
    cache = cache_state(cache_directory())
    advice = []
    if not cache["writable"]:
        advice.append(
            f"The compile cache {cache['path']} cannot be written, so code is kept in a temporary folder:"
            " set FACTORWISE_CACHE to a folder that can."
        )
    try:
        folder = data_directory()
        data = {"path": str(folder), "found": True, "sets": sorted(entry.name for entry in folder.iterdir())}
    except MissingDataError as error:
        data = {"path": os.environ.get("FACTORWISE_DATA") or None, "found": False, "sets": []}
        if data["path"]:
            advice.append(str(error))
    return {
        "versions": versions(PACKAGES),
        "platform": sysconfig.get_platform(),
        "processors": {"all": os.cpu_count(), "usable": usable_processors()},
        "threads": options.threads,
        "cache": cache,
        "data": data,
        "advice": advice,
    }


def cache_state(folder: Path) -> dict[str, Any]:
    """Measure a cache folder without creating it."""
    sizes = []
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # another process may be replacing it
                sizes.append((Path(parent) / name).lstat().st_size)
    nearest = next(place for place in (folder, *folder.parents) if os.access(place, os.F_OK))
    return {
        "path": str(folder),
        "exists": folder == nearest,
        "writable": nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK),
        "files": len(sizes),
        "bytes": sum(sizes),
    }


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield "versions"
    yield from aligned((name, version or "not installed") for name, version in document["versions"].items())
    cache, data, processors = document["cache"], document["data"], document["processors"]
    state = "writable" if cache["writable"] else "not writable"
    yield "machine"
    yield from aligned(
        [
            ("platform", document["platform"]),
            ("processors", f"{processors['usable']} usable of {processors['all']}"),
            ("threads", str(document["threads"])),
        ]
    )
    yield "compile cache"
    yield from aligned(
        [
            ("folder", cache["path"]),
            ("state", state if cache["exists"] else f"not there yet, {state}"),
            ("content", f"{cache['files']} files, {size_text(cache['bytes'])}"),
        ]
    )
    yield "data directory (FACTORWISE_DATA)"
    where = data["path"] or "not set: only needed for experiments on real data"
    found = f"found, {len(data['sets'])} entries" if data["found"] else "not found"
    yield from aligned([("folder", where), ("state", found)])
    yield from document["advice"]
