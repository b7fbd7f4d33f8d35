"""``factorwise doctor``: report the environment of factorwise on this machine."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import click

import factorwise.kernels
from factorwise.cli.files import can_write
from factorwise.cli.options import Options, usable_processors, verb
from factorwise.cli.output import aligned, emit, size_text
from factorwise.datasets.local import data_directory
from factorwise.errors import MissingDataError
from factorwise.io.models.provenance import versions
from factorwise.kernels.compile.cache import cache_directory, composed_name, unsafe_cache_text
from factorwise.kernels.compile.ownership import folder_fault

PACKAGES = ("click", "numba", "numpy", "scipy")  # for a checkout that is not installed

MAKERS = ("numba", "numpy", "llvmlite")  # packages whose versions determine whether compiled code can be used

#: Environment variables that change where files are kept and how many threads work.
VARIABLES = (
    "FACTORWISE_CACHE",
    "FACTORWISE_DATA",
    "MKL_NUM_THREADS",
    "NUMBA_CACHE_DIR",
    "NUMBA_DISABLE_JIT",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)

_REQUIREMENT = re.compile(r"""([\w.-]+).*?(?:extra\s*==\s*["']([\w.-]+)["'])?$""")


@verb(example="factorwise doctor --json")
@click.option("--compile", "compiling", is_flag=True, help="Compile the code of the common verbs first.")
def command(options: Options, compiling: bool) -> None:
    """Report versions, processors, the compile cache and the data directory.

    Nothing is created or changed without --compile, which takes some minutes to run the common verbs once on
    a few lines, so that their first runs need not compile. Attach the output to bug reports.
    """
    document: dict[str, Any] = {}
    if compiling:
        from factorwise.cli.compiling import compile_all

        document["compiling"] = compile_all(options)
    document |= examine(options)
    emit(document, _lines(document), as_json=options.json)


def examine(options: Options) -> dict[str, Any]:
    """Return the report as JSON values, with advice on problems."""
    required, extras = requirements()
    folder = cache_directory()
    cache = cache_state(folder)
    compiled = {
        "kernels": compiled_state(kernel_folders()),
        "models": compiled_state([folder], composed=True),
    }
    data, advice = _data_state()
    if not cache["writable"]:
        advice.append(
            f"The compile cache {cache['path']} cannot be written, so code is kept in a temporary"
            " folder: set FACTORWISE_CACHE to a writable folder."
        )
    elif cache["exists"] and (fault := folder_fault(folder)):
        advice.append(unsafe_cache_text(folder, fault))
    if not compiled["kernels"]["writable"]:
        advice.append(
            f"Compiled kernels cannot be kept in {compiled['kernels']['path']}, so every run compiles"
            " them again: set NUMBA_CACHE_DIR to a writable folder."
        )
    return {
        "versions": versions(required),
        "extras": {
            extra: {name: versions(names)[name] for name in names} for extra, names in sorted(extras.items())
        },
        "platform": sysconfig.get_platform(),
        "processors": {"all": os.cpu_count(), "usable": usable_processors()},
        "threads": options.threads,
        "environment": {name: os.environ[name] for name in VARIABLES if os.environ.get(name)},
        "cache": cache,
        "compiled": compiled,
        "data": data,
        "advice": advice,
    }


def requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Return the required packages, and those of each extra, from the package's own metadata."""
    try:
        named = metadata.requires("factorwise") or []
    except metadata.PackageNotFoundError:
        return list(PACKAGES), {}
    required: list[str] = []
    extras: dict[str, list[str]] = {}
    for text in named:
        match = _REQUIREMENT.match(text)
        assert match is not None, "every requirement begins with a name"
        name, extra = match.groups()
        (required if extra is None else extras.setdefault(extra, [])).append(name)
    return required, extras


def cache_state(folder: Path) -> dict[str, Any]:
    """Measure a cache folder without creating it."""
    sizes = [size for _, size in _files(folder)]
    return {
        "path": str(folder),
        "exists": os.access(folder, os.F_OK),
        "writable": _could_write(folder),
        "modules": sum(1 for _ in folder.glob("factorwise_composed_*.py")),
        "files": len(sizes),
        "bytes": sum(sizes),
    }


def kernel_folders() -> list[Path]:
    """Return the folders with the sources of the kernels, whose code numba stores separately."""
    package = Path(factorwise.kernels.__path__[0])
    return sorted({module.parent for module in package.rglob("*.py")})


def compiled_state(sources: Sequence[Path], *, composed: bool = False) -> dict[str, Any]:
    """Measure the compiled code of the modules in some folders.

    The path is that of the folder that contains the compiled code of all of them. Code is current if it was
    made by the installed versions of Python and numba, and its module has not changed since.

    composed
        Whether the modules were generated: their names show whether this version would generate them.
    """
    folders = {folder: compiled_folder(folder) for folder in sources}
    makers = versions(MAKERS)
    entries = [
        (path, size, source)
        for source, folder in folders.items()
        for path, size in _files(folder)
        if path.suffix in (".nbi", ".nbc")
    ]
    indices = [(path, source) for path, _, source in entries if path.suffix == ".nbi"]
    return {
        "path": os.path.commonpath(folders.values()),
        "writable": all(_could_write(folder) for folder in folders.values()),
        "functions": len(indices),
        "for_this_version": sum(_is_current(path, source, makers, composed) for path, source in indices),
        "bytes": sum(size for _, size, _ in entries),
    }


def compiled_folder(sources: Path) -> Path:
    """Return the folder in which numba stores the compiled code of the modules in a folder.

    It is beside them, unless ``NUMBA_CACHE_DIR`` names another place, or it cannot be written to: then it is
    in the user's cache folder.
    """
    sources = sources.absolute()
    name = f"{sources.name}_{hashlib.sha1(str(sources).encode(), usedforsecurity=False).hexdigest()}"
    if own := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(own) / name
    beside = sources / "__pycache__"
    if _could_write(beside):
        return beside
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  Path.home() fails without a home
    mac = sys.platform == "darwin"
    users = home / "Library" / "Caches" if mac else Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return users / "numba" / name


def _is_current(index: Path, sources: Path, makers: Mapping[str, str | None], composed: bool) -> bool:
    """Whether the installed numba would use what an index lists; the index is searched, never loaded."""
    module, _, rest = index.name.partition(".")
    source = sources / f"{module}.py"
    python = f".py{sys.version_info[0]}{sys.version_info[1]}.nbi"
    try:
        content, modified = index.read_bytes(), index.stat().st_mtime
        text = source.read_bytes()
        unchanged = hashlib.sha256(text).digest() in content or modified >= source.stat().st_mtime
    except OSError:  # the module is gone, or another process is replacing its index
        return False
    if composed and _composed_name_of(text, makers) != module:
        return False
    return rest.endswith(python) and str(makers["numba"]).encode() in content[:64] and unchanged


def _composed_name_of(text: bytes, makers: Mapping[str, str | None]) -> str | None:
    """Return this version's name of a generated module; None if it never generates it."""
    try:
        return composed_name(text.decode(), **{package: str(makers[package]) for package in MAKERS})
    except (SyntaxError, ValueError):  # not Python, or not UTF-8
        return None


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files below a folder, and their sizes."""
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # another process may be replacing it
                yield (path := Path(parent) / name), path.lstat().st_size


def _could_write(folder: Path) -> bool:
    """Whether a folder can be written, or created and then written."""
    return can_write(next(parent for parent in (folder, *folder.parents) if os.access(parent, os.F_OK)))


def _data_state() -> tuple[dict[str, Any], list[str]]:
    """Return the state of the data directory, and advice if it is not usable."""
    try:
        folder = data_directory()
    except MissingDataError as error:
        path = os.environ.get("FACTORWISE_DATA") or None
        return {"path": path, "found": False, "sets": []}, [str(error)] if path else []
    return {"path": str(folder), "found": True, "sets": sorted(entry.name for entry in folder.iterdir())}, []


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield "versions"
    yield from aligned((name, version or "not installed") for name, version in document["versions"].items())
    if document["extras"]:
        yield "extras"
        yield from aligned(_extra_rows(document["extras"]))
    cache, data, processors = document["cache"], document["data"], document["processors"]
    state = "writable" if cache["writable"] else "not writable"
    yield "machine"
    yield from aligned(
        [
            ("platform", document["platform"]),
            ("processors", f"{processors['usable']} usable of {processors['all']}"),
            ("threads", str(document["threads"])),
            *document["environment"].items(),
        ]
    )
    yield "compile cache"
    yield from aligned(
        [
            ("folder", cache["path"]),
            ("state", state if cache["exists"] else f"does not exist yet, {state}"),
            ("content", f"{cache['modules']} models, {cache['files']} files, {size_text(cache['bytes'])}"),
            *((f"code of {name}", _compiled_text(found)) for name, found in document["compiled"].items()),
        ]
    )
    yield "data directory (FACTORWISE_DATA)"
    where = data["path"] or "not set: only needed for experiments on real data"
    found = f"found, {len(data['sets'])} entries" if data["found"] else "not found"
    yield from aligned([("folder", where), ("state", found)])
    yield from document["advice"]


def _extra_rows(extras: dict[str, dict[str, str | None]]) -> Iterator[tuple[str, str]]:
    for extra, packages in extras.items():
        text = ", ".join(f"{name} {version or 'not installed'}" for name, version in packages.items())
        missing = None in packages.values()
        yield extra, f"{text} (pip install 'factorwise[{extra}]')" if missing else text


def _compiled_text(compiled: dict[str, Any]) -> str:
    functions, current = compiled["functions"], compiled["for_this_version"]
    if not functions:
        return f"none yet in {compiled['path']}: the first run compiles"
    share = "all" if current == functions else str(current) if current else "none"
    hint = "" if current else ", so the next run that needs it compiles"
    return (
        f"{functions} functions, {size_text(compiled['bytes'])}, {share} for this version{hint}"
        f" ({compiled['path']})"
    )
