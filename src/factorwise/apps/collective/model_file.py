"""The model file of a fitted collective model."""

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
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.io.models.provenance import provenance
from factorwise.validation import as_number, as_text, as_whole, check_finite, check_weights

KIND = "collective"


@dataclass(frozen=True, slots=True, eq=False)
class LearnedFlows:
    """A fitted collective model.

    places, names
        Names of the places and of the features.
    parameters, settings, history
        Learned parameters, the settings of the estimator and the passes of EM.
    features
        None if the features of the training apply to its own sequences only.
    """

    places: tuple[str, ...]
    names: tuple[str, ...]
    parameters: Parameters
    settings: Mapping[str, Any]
    history: Sequence[Pass]
    features: TransitionFeatures | None


def write_learned(
    path: str | os.PathLike[str], learned: LearnedFlows, data: Sequence[str | os.PathLike[str]] = ()
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


def read_learned(path: str | os.PathLike[str], needed: Sequence[str] = ()) -> LearnedFlows:
    """Read a model file.

    needed
        Names of settings that the file must contain.
    """
    file = read_model(path, KIND)
    saved, arrays = file.metadata, file.arrays
    try:
        places, names = tuple(map(str, saved["places"])), tuple(map(str, saved["features"]))
        parameters = Parameters(arrays["weights"], arrays["initial"])
        if parameters.weights.shape != (len(names),) or parameters.initial.shape != (len(places),):
            raise ValueError("the numbers of weights and names differ")
        check_weights("weights", parameters.weights)
        check_weights("initial", parameters.initial)
        features: TransitionFeatures | None = None
        if saved["tables"] is not None:
            table_of: dict[Step, int] = {
                (None, None if time is None else str(time)): as_whole(
                    "tables", k, 0, len(arrays["values"]) - 1
                )
                for time, k in saved["tables"]
            }
            _check_tables(arrays, len(places), len(names))
            features = TransitionFeatures(places, names, arrays["values"], arrays["possible"], table_of)
        history = [Pass(int(number), *map(float, rest)) for number, *rest in saved["history"]]
        settings = dict(saved["settings"])
        _check_settings({name: settings[name] for name in needed})
        return LearnedFlows(places, names, parameters, settings, history, features)
    except (AttributeError, LookupError, TypeError, ValueError, FactorwiseError) as error:
        raise ModelFileError(
            f"{os.fspath(path)}: its places, features and weights do not fit together ({error}). The file is"
            " damaged or from another version: restore it from a copy, or train again."
        ) from error


def _check_tables(arrays: Mapping[str, NDArray[Any]], places: int, names: int) -> None:
    """Raise an error if the features do not have the shape that places and names imply."""
    values, possible = arrays["values"], arrays["possible"]
    sound = values.ndim == 4 and values.shape[1:] == (places, places, names) and values.dtype == np.float64
    if not sound or possible.shape != values.shape[:3] or possible.dtype != np.bool_:
        raise ValueError(f"features have shapes {values.shape} and {possible.shape}")
    check_finite("features", values)


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raise an error if a setting does not have the type that the estimator requires."""
    for name, value in settings.items():
        if name == "passes":
            as_whole(name, value, 1)
        elif name == "noise":
            as_text(name, value)
        elif name in ("population", "parents") and isinstance(value, Mapping):
            for entry in value.values():
                (as_text if name == "parents" else as_number)(name, entry)
        elif name == "parents" and value is not None:
            raise ValueError(f"parents must be named by time, but {value!r} was given")
        elif value is not None or name in ("l2", "tolerance", "gap"):
            as_number(name, value)
