"""What a fitted collective model knows, in a model file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.collective.features import Step, TransitionFeatures
from factorwise.apps.collective.learning import Parameters, Pass
from factorwise.errors import FactorwiseError, ModelFileError
from factorwise.io.models import ModelFile, read_model, write_model
from factorwise.io.provenance import provenance

KIND = "collective"


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Parameters, the settings they were learned with, and features if they hold for any sequence.

    places, names
        Of the features.
    features
        None if those of the training belong to its sequences alone.
    """

    places: tuple[str, ...]
    names: tuple[str, ...]
    parameters: Parameters
    settings: Mapping[str, Any]
    history: Sequence[Pass]
    features: TransitionFeatures | None


def write_learned(
    path: str | os.PathLike[str], learned: Learned, data: Sequence[str | os.PathLike[str]] = ()
) -> None:
    """Write a model file; its provenance names the files in ``data``."""
    features = learned.features
    metadata: dict[str, Any] = {
        "places": list(learned.places),
        "features": list(learned.names),
        "settings": dict(learned.settings),
        "history": [list(record) for record in learned.history],
        "tables": None if features is None else [[time, k] for (_, time), k in features.table_of.items()],
    }
    parameters = learned.parameters
    arrays: dict[str, NDArray[Any]] = {"weights": parameters.weights, "initial": parameters.initial}
    if features is not None:
        arrays |= {"values": features.values, "possible": features.possible}
    record = provenance(configuration=learned.settings, data=data)
    write_model(path, ModelFile(kind=KIND, metadata=metadata, arrays=arrays, provenance=record))


def read_learned(path: str | os.PathLike[str]) -> Learned:
    """Read a model file."""
    file = read_model(path, KIND)
    saved, arrays = file.metadata, file.arrays
    try:
        places, names = tuple(map(str, saved["places"])), tuple(map(str, saved["features"]))
        parameters = Parameters(arrays["weights"], arrays["initial"])
        if parameters.weights.shape != (len(names),) or parameters.initial.shape != (len(places),):
            raise ValueError("weights and names differ in number")
        if not all(np.isfinite(part).all() for part in (parameters.weights, parameters.initial)):
            raise ValueError("a weight is not finite")
        features: TransitionFeatures | None = None
        if saved["tables"] is not None:
            table_of: dict[Step, int] = {
                (None, None if time is None else str(time)): int(k) for time, k in saved["tables"]
            }
            features = TransitionFeatures(places, names, arrays["values"], arrays["possible"], table_of)
        history = [Pass(int(number), *map(float, rest)) for number, *rest in saved["history"]]
        return Learned(places, names, parameters, dict(saved["settings"]), history, features)
    except (AttributeError, LookupError, TypeError, ValueError, FactorwiseError) as error:
        raise ModelFileError(
            f"{os.fspath(path)}: its places, features and weights do not fit together ({error}). The file is"
            " damaged or from another version: restore it from a copy, or train again."
        ) from error
