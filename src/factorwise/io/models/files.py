"""The model file, ``.fw``: JSON and arrays in one container, for every kind of model.

It is a ZIP archive with ``manifest.json`` first and one ``arrays/NAME.npy`` per array, so that any unzip
program and `numpy.load` can read it. Nothing in it is ever executed: no pickles, no object arrays. Members
are stored, not compressed, and headers have one legal spelling; a reader therefore checks every size against
the real length of the file before it allocates, and every array against its checksum.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from factorwise import __version__
from factorwise.errors import ModelFileError
from factorwise.io.atomic import atomic_binary

FORMAT = "factorwise-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
MANIFEST_LIMIT = 1 << 28  # bytes; larger tables belong in arrays
NESTING_LIMIT = 100  # levels of JSON, well inside what parsers accept

# The function that reads each kind, for the error that names it.
READERS: Mapping[str, str] = {
    "alignment": "factorwise.OntologyAligner.load(path)",
    "chain-crf": "factorwise.ChainCRF.load(path)",
    "collective": "factorwise.CollectiveModel.load(path)",
    "coreference": "factorwise.CoreferenceResolver.load(path)",
    "nested-tagger": "factorwise.tagging.NestedTagger.load(path)",
    "resolution": "factorwise.EntityResolver.load(path)",
    "weights": "factorwise.io.models.weights.load_weights(path, model)",
}

_KIND = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,98}[A-Za-z0-9_])?", re.ASCII)
_DTYPE = re.compile(r"[<>|]([biufc]\d{1,2}|[SU]\d{1,9})", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_UTF8_NAME = 0x800  # the only flag bit of a ZIP member that may be set
_CHUNK = 1 << 20
_SIGNATURE = b"PK\x03\x04"  # of a ZIP archive; a truncated file has at least a part of it
_GIVE_A_MODEL = "Give the path of a model file, NAME.fw."
_DAMAGE = "The file is damaged: restore it from a copy, or make the model again."
# All that zipfile raises, by observation or documentation, for damaged archives.
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    ValueError, KeyError, IndexError, OverflowError, OSError,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelFile:
    """The content of a model file.

    kind
        The kind of model, such as ``"weights"``, which determines what can read it.
    metadata
        JSON values that the kind defines. Numbers are finite; tuples come back as lists.
    arrays
        Arrays of numbers, truth values or fixed-length strings, by name.
    provenance
        The record made by `factorwise.io.models.provenance.provenance`.
    format_version
        The format version of the file that was read; files are always written in the newest version.
    """

    kind: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION


class _RefusalError(Exception):
    """What is wrong with a file and what to do, before the path is known."""

    def __init__(self, fault: str, remedy: str = _DAMAGE) -> None:
        super().__init__(fault, remedy)
        self.fault = fault
        self.remedy = remedy

    def at(self, path: str | os.PathLike[str]) -> ModelFileError:
        """Return the error to raise for ``path``."""
        return ModelFileError(f"{os.fspath(path)}: {self.fault}. {self.remedy}")


def write_model(path: str | os.PathLike[str], model: ModelFile) -> None:
    """Write a model file, completely or not at all; the same content always gives the same bytes."""
    try:
        arrays = {name: _storable(name, array) for name, array in model.arrays.items()}
        manifest = _manifest_text(model, arrays)
        with atomic_binary(path) as stream, zipfile.ZipFile(stream, "w") as archive:
            _write_member(archive, MANIFEST, manifest)
            for name, array in arrays.items():
                _write_member(archive, _member(name), _header(array.dtype, array.shape), _payload(array))
    except _RefusalError as refusal:
        raise refusal.at(path) from None
    except OSError as error:
        raise _RefusalError(
            f"could not be written: {error.strerror or error}",
            "A file that was there is unchanged: check the folder, its permissions and the free space.",
        ).at(path) from error


def read_model(path: str | os.PathLike[str], kind: str | None = None) -> ModelFile:
    """Read a model file and check it completely; with ``kind``, refuse any other kind."""
    try:
        with _opened(Path(path)) as stream:
            return _read(stream, kind, os.fstat(stream.fileno()).st_size)
    except _RefusalError as refusal:
        raise refusal.at(path) from refusal.__cause__


def may_become_model(path: Path) -> bool:
    """Whether a model file may take the place of what is there: nothing, an empty file, or a model file."""
    try:
        with _opened(path) as stream:
            head = stream.read(30 + len(MANIFEST))  # the manifest comes first, its name after 30 bytes
    except _RefusalError:
        return not path.exists()
    return not head or (head.startswith(_SIGNATURE) and head.endswith(MANIFEST.encode()))


def _read(stream: BinaryIO, kind: str | None, length: int) -> ModelFile:
    if not _SIGNATURE.startswith(stream.read(len(_SIGNATURE))):
        raise _RefusalError("not a factorwise model file, but something else", _GIVE_A_MODEL)
    try:
        with zipfile.ZipFile(stream) as archive:
            members = _members(archive, length)
            manifest = _parsed(_read_manifest(archive, members))
            _check_kind(manifest["kind"], kind)
            specifications = manifest["arrays"]
            expected = {MANIFEST, *map(_member, specifications)}
            if unexpected := sorted(set(members) - expected):
                raise _RefusalError(f"it contains {unexpected[0]!r}, which its manifest does not list")
            arrays = {
                name: _read_array(archive, members, name, specification)
                for name, specification in specifications.items()
            }
    except _ZIP_ERRORS as error:
        raise _RefusalError(f"not a readable model file ({error or type(error).__name__})") from error
    return ModelFile(
        kind=manifest["kind"],
        metadata=manifest["metadata"],
        arrays=arrays,
        provenance=manifest["provenance"],
        format_version=manifest["format_version"],
    )


def _opened(path: Path) -> BinaryIO:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
            raise _RefusalError("not a file", _GIVE_A_MODEL)
        return path.open("rb")
    except FileNotFoundError:
        raise _RefusalError("no such file", "Check the path.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _RefusalError(
            f"could not be opened: {reason}", "Check the path and its permissions."
        ) from error


def _members(archive: zipfile.ZipFile, length: int) -> dict[str, zipfile.ZipInfo]:
    """Check what can be checked without reading members, and return them by name."""
    if MANIFEST not in archive.namelist():
        raise _RefusalError(f"not a factorwise model file: it has no {MANIFEST}", _GIVE_A_MODEL)
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        if member.filename in members:
            raise _RefusalError(f"it contains {member.filename!r} twice")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & ~_UTF8_NAME:
            raise _RefusalError(
                f"member {member.filename!r} is compressed or encrypted",
                "Model files store their members uncompressed: restore the original, or pack with `zip -0`.",
            )
        members[member.filename] = member
    if sum(member.file_size for member in members.values()) > length:
        raise _RefusalError("its members claim to be larger than the file itself")
    return members


def _read_manifest(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if members[MANIFEST].file_size > MANIFEST_LIMIT:
        raise _RefusalError(f"its manifest is larger than {MANIFEST_LIMIT} bytes")
    content = archive.read(members[MANIFEST])
    try:
        manifest = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise _RefusalError("its manifest is not UTF-8 text") from error
    except (ValueError, RecursionError) as error:
        raise _RefusalError(f"its manifest is not JSON ({error})") from error
    if not isinstance(manifest, dict):
        raise _RefusalError(f"its manifest is a {type(manifest).__name__}, not an object")
    return manifest


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _parsed(manifest: dict[str, Any]) -> dict[str, Any]:
    """Check names and types of everything that this version of the format defines."""
    if manifest.get("format") != FORMAT:
        raise _RefusalError(
            f"not a factorwise model file: its format is {manifest.get('format')!r}, not {FORMAT!r}",
            _GIVE_A_MODEL,
        )
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise _RefusalError(f"its format version is {version!r}, not a positive integer")
    if version > FORMAT_VERSION:
        raise _RefusalError(
            f"written by a newer factorwise (format {version}, this one reads up to {FORMAT_VERSION})",
            "Upgrade: pip install --upgrade factorwise.",
        )
    kind = manifest.get("kind")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise _RefusalError(f"its kind is {kind!r}, not a name")
    for section in ("metadata", "provenance", "arrays"):
        if not isinstance(manifest.get(section), dict):
            raise _RefusalError(f"the manifest's {section!r} is missing or not an object")
    return manifest


def _check_kind(actual: str, wanted: str | None) -> None:
    if wanted is None or actual == wanted:
        return
    reader = READERS.get(actual)
    remedy = f"Read it with {reader}" if reader else "See what it holds with `factorwise inspect`"
    raise _RefusalError(f"its kind is {actual!r}, but {wanted!r} is needed", f"{remedy}.")


def _read_array(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], name: str, specification: object
) -> NDArray[Any]:
    dtype, shape, checksum = _specification(name, specification)
    member = members.get(_member(name))
    if member is None:
        raise _RefusalError(f"array {name!r} is missing")
    header = _header(dtype, shape)
    size = math.prod(shape) * dtype.itemsize
    if member.file_size != len(header) + size:
        raise _RefusalError(
            f"array {name!r} has {member.file_size} bytes, but dtype {dtype.str} and shape {shape}"
            f" need {len(header) + size}"
        )
    content = np.empty(size, dtype=np.uint8)
    digest = hashlib.sha256()
    with archive.open(member) as stream:
        if stream.read(len(header)) != header:
            raise _RefusalError(f"array {name!r} does not have the dtype and shape that the manifest states")
        for start in range(0, size, _CHUNK):
            chunk = stream.read(min(_CHUNK, size - start))
            content[start : start + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
            digest.update(chunk)
    if digest.hexdigest() != checksum:
        raise _RefusalError(f"array {name!r} does not match its checksum")
    return content.view(dtype).reshape(shape)


def _specification(name: str, given: object) -> tuple[np.dtype[Any], tuple[int, ...], str]:
    """Check one entry of the manifest's ``arrays``."""
    _check_name(name)
    entry = given if isinstance(given, dict) else {}
    code, shape, checksum = entry.get("dtype"), entry.get("shape"), entry.get("sha256")
    if not isinstance(code, str) or not _DTYPE.fullmatch(code):
        raise _RefusalError(f"array {name!r} has dtype {code!r}, which model files cannot contain")
    try:
        dtype = np.dtype(code)
    except TypeError:
        raise _RefusalError(f"array {name!r} has dtype {code!r}, which does not exist here") from None
    if not isinstance(shape, list) or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise _RefusalError(f"array {name!r} has shape {shape!r}, not a list of sizes")
    if not isinstance(checksum, str) or not _SHA256.fullmatch(checksum):
        raise _RefusalError(f"array {name!r} has checksum {checksum!r}, not a SHA-256 in hexadecimal")
    if dtype.itemsize == 0 or dtype.str != code:
        raise _RefusalError(f"array {name!r} has dtype {code!r}, which model files cannot contain")
    return dtype, tuple(shape), checksum


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or ".." in name:
        raise _RefusalError(
            f"{name!r} cannot name an array",
            "Use up to 100 letters, digits and '_', with single '.' and any '-' between them.",
        )


def _storable(name: str, array: object) -> NDArray[Any]:
    """Check an array that is to be written and return it in C order."""
    _check_name(name)
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise _RefusalError(
            f"array {name!r} is a {type(array).__name__}, not a plain array", "Convert it with numpy.asarray."
        )
    if not _DTYPE.fullmatch(array.dtype.str) or array.dtype.itemsize == 0 or array.dtype.str[1:] == "f16":
        raise _RefusalError(
            f"array {name!r} has dtype {array.dtype}, which model files cannot contain",
            "Convert it to truth values, integers, floats up to 64 bits or fixed-length strings;"
            " store the fields of records as arrays of their own.",
        )
    return np.asarray(array, order="C")


def _payload(array: NDArray[Any]) -> memoryview:
    """View a C-ordered array as its bytes."""
    return array.reshape(-1).view(np.uint8).data


def _member(name: str) -> str:
    return f"arrays/{name}.npy"


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the NPY 1.0 header in its one legal spelling, so that reading compares and never parses."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    padding = -(len(text) + 11) % 64
    return (
        b"\x93NUMPY\x01\x00"
        + struct.pack("<H", len(text) + padding + 1)
        + text.encode()
        + b" " * padding
        + b"\n"
    )


def _manifest_text(model: ModelFile, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    if not isinstance(model.kind, str) or not _KIND.fullmatch(model.kind):
        raise _RefusalError(
            f"{model.kind!r} cannot be a kind",
            "Use up to 64 lower-case letters, digits, '_' and '-', beginning with a letter.",
        )
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": model.kind,
        "factorwise": __version__,
        "metadata": _json_value(model.metadata, "metadata"),
        "provenance": _json_value(model.provenance, "provenance"),
        "arrays": {
            name: {
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "sha256": hashlib.sha256(_payload(array)).hexdigest(),
            }
            for name, array in arrays.items()
        },
    }
    text = json.dumps(manifest, indent=1, allow_nan=False).encode("ascii")
    if len(text) > MANIFEST_LIMIT:
        raise _RefusalError(
            f"its manifest would be larger than {MANIFEST_LIMIT} bytes", "Move large tables into arrays."
        )
    return text


def _json_value(value: object, where: str, depth: int = 0) -> Any:
    """Copy a JSON value, with tuples as lists; refuse values that would be read back differently."""
    if depth > NESTING_LIMIT:
        raise _RefusalError(
            f"{where[:60]}... is nested more than {NESTING_LIMIT} levels deep", "Make it flatter."
        )
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int and value.bit_length() <= 4096:  # Python refuses to parse numbers of 4300 digits
        return value
    if type(value) is float:
        if math.isfinite(value):
            return value
        raise _RefusalError(
            f"{where} is {value}, which JSON cannot represent", "Store it in an array, or leave it out."
        )
    if isinstance(value, list | tuple):
        return [_json_value(entry, f"{where}[{index}]", depth + 1) for index, entry in enumerate(value)]
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {key: _json_value(entry, f"{where}.{key}", depth + 1) for key, entry in value.items()}
    raise _RefusalError(
        f"{where} is a {type(value).__name__}, which JSON cannot represent",
        "Use None, bool, int, float, str, lists, and dictionaries with text keys; store numbers from NumPy"
        " with .item() and large tables as arrays.",
    )


def _write_member(archive: zipfile.ZipFile, name: str, *parts: bytes | memoryview) -> None:
    member = zipfile.ZipInfo(name)  # dated 1980, so that bytes depend on content alone
    member.external_attr = 0o644 << 16
    member.file_size = sum(len(part) for part in parts)  # decides about 64-bit sizes
    with archive.open(member, "w") as stream:
        for part in parts:
            stream.write(part)
