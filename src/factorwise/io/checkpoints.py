"""Checkpoints of long searches: what is needed to go on, in a folder, replaced whole.

A checkpoint belongs to one run: data, model and settings have a fingerprint, and a folder with another one is
refused. Everything else of a run is computed again from the same input, which gives the same bits.
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
    """Replace the checkpoint in a folder, which is made if it is not there."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.ascontiguousarray(array) for name, array in state.arrays.items()}
    metadata = {"fingerprint": fingerprint, "numbers": dict(state.numbers)}
    write_model(place / FILE, ModelFile(kind=KIND, metadata=metadata, arrays=arrays))


def read_checkpoint(
    folder: str | os.PathLike[str], fingerprint: str, *, begun: bool = False
) -> Checkpoint | None:
    """Return the checkpoint of this run; None where there is none yet.

    begun
        Whether ``fingerprint`` is only how that of the run begins, as far as it is known.
    """
    place = Path(folder) / FILE
    if not place.exists():
        return None
    try:
        file = read_model(place, KIND)
    except ModelFileError as error:
        raise DataFileError(
            f"{place}: is damaged or no checkpoint. Give another folder, or remove it to begin anew."
        ) from error
    found, numbers = str(file.metadata.get("fingerprint")), file.metadata.get("numbers")
    if not (found.startswith(fingerprint) if begun else found == fingerprint):
        raise DataFileError(
            f"{place}: is the checkpoint of another run (other records, model, settings or seed). Give"
            " another folder, or remove it to begin anew."
        )
    return Checkpoint(numbers if isinstance(numbers, Mapping) else {}, file.arrays)


@contextmanager
def restoring(address: str | os.PathLike[str]) -> Iterator[None]:
    """Say that a checkpoint is damaged where what it holds is not what a search can go on from."""
    try:
        yield
    except (LookupError, TypeError, ValueError) as error:
        raise DataFileError(
            f"{os.fspath(address)}: the checkpoint there is damaged ({type(error).__name__}: {error}). Give"
            " another folder, or remove it to begin anew."
        ) from error


def remove_checkpoint(folder: str | os.PathLike[str]) -> None:
    """Remove the checkpoint of a run that has ended, and parts of others that were never finished."""
    (Path(folder) / FILE).unlink(missing_ok=True)
    for part in Path(folder).glob(".*.part"):
        part.unlink(missing_ok=True)
