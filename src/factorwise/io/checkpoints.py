"""Checkpoints of long searches: the state for resuming, in a folder, replaced atomically.

A checkpoint belongs to one run: a fingerprint covers data, model and settings, and a folder with another
fingerprint is refused. Everything else of a run is computed again from the same input, with the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DataFileError, ModelFileError
from factorwise.io.models.files import ModelFile, read_model, write_model

KIND = "checkpoint"
FILE = "search.fw"


class Checkpoint(NamedTuple):
    """Numbers and arrays of a search."""

    numbers: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def write_checkpoint(folder: str | os.PathLike[str], fingerprint: str, state: Checkpoint) -> None:
    """Replace the checkpoint in a folder, which is created if necessary."""
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.ascontiguousarray(array) for name, array in state.arrays.items()}
    metadata = {"fingerprint": fingerprint, "numbers": dict(state.numbers)}
    write_model(directory / FILE, ModelFile(kind=KIND, metadata=metadata, arrays=arrays))


def read_checkpoint(
    folder: str | os.PathLike[str], fingerprint: str, *, begun: bool = False
) -> Checkpoint | None:
    """Return the checkpoint of this run; None if there is none yet.

    begun
        Whether ``fingerprint`` is only the known beginning of the run's fingerprint.
    """
    path = Path(folder) / FILE
    if not path.exists():
        return None
    try:
        file = read_model(path, KIND)
    except ModelFileError as error:
        raise DataFileError(
            f"{path}: is damaged or not a checkpoint. Give another folder, or remove it to start again."
        ) from error
    actual, numbers = str(file.metadata.get("fingerprint")), file.metadata.get("numbers")
    if not (actual.startswith(fingerprint) if begun else actual == fingerprint):
        raise DataFileError(
            f"{path}: is the checkpoint of another run (other records, model, settings or seed). Give"
            " another folder, or remove it to start again."
        )
    return Checkpoint(numbers if isinstance(numbers, Mapping) else {}, file.arrays)


@contextmanager
def restoring(address: str | os.PathLike[str]) -> Iterator[None]:
    """Report a checkpoint as damaged if a search cannot resume from its content."""
    try:
        yield
    except (LookupError, TypeError, ValueError) as error:
        raise DataFileError(
            f"{os.fspath(address)}: the checkpoint there is damaged ({type(error).__name__}: {error})."
            " Give another folder, or remove it to start again."
        ) from error


def remove_checkpoint(folder: str | os.PathLike[str]) -> None:
    """Remove the checkpoint of a finished run, and incomplete parts of others."""
    (Path(folder) / FILE).unlink(missing_ok=True)
    for part in Path(folder).glob(".*.part"):
        part.unlink(missing_ok=True)
