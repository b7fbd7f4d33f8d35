"""Weights learned by walking, with their names, settings and learning curve, in a model file."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ModelFileError
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.learning.samplerank.learner import PassRecord
from factorwise.validation import check_weights


class LearnedWeights(NamedTuple):
    """The content of such a model file.

    weights, names
        The flat vector, and the name of each weight.
    settings
        The settings of the estimator and its training.
    history
        One record per pass over the training data.
    provenance
        The provenance record.
    parts
        Further arrays, whose check is up to the estimator.
    """

    weights: NDArray[np.float64]
    names: list[str]
    settings: Mapping[str, Any]
    history: list[PassRecord]
    provenance: Mapping[str, Any]
    parts: Mapping[str, NDArray[Any]] = {}


def write_learned(path: str | os.PathLike[str], kind: str, learned: LearnedWeights) -> None:
    """Write the weights of an application, completely or not at all."""
    write_model(
        path,
        ModelFile(
            kind=kind,
            metadata={
                "names": list(learned.names),
                "settings": dict(learned.settings),
                "history": [record._asdict() for record in learned.history],
            },
            arrays={"weights": learned.weights, **learned.parts},
            provenance=learned.provenance,
        ),
    )


def read_learned(path: str | os.PathLike[str], kind: str, needed: Collection[str]) -> LearnedWeights:
    """Read the weights of an application and check that its parts fit together.

    needed
        Settings that must be present.
    """
    model = read_model(path, kind)
    try:
        names, settings, weights = (
            model.metadata["names"],
            model.metadata["settings"],
            model.arrays["weights"],
        )
        history = [PassRecord(**record) for record in model.metadata["history"]]
        sound = (
            isinstance(names, list)
            and isinstance(settings, dict)
            and all(isinstance(name, str) for name in names)
            and set(needed) <= set(settings)
            and weights.shape == (len(names),)
        )
        check_weights("weights", weights)
    except (AttributeError, LookupError, TypeError, ValueError):
        sound = False
    if not sound:
        raise damaged(path)
    parts = {name: array for name, array in model.arrays.items() if name != "weights"}
    return LearnedWeights(weights, names, settings, history, model.provenance, parts)


def damaged(path: str | os.PathLike[str]) -> ModelFileError:
    """Return the error to raise for a file whose parts do not form a model."""
    return ModelFileError(
        f"{os.fspath(path)}: its weights, names and settings do not fit together. The file is damaged:"
        " restore it from a copy, or train again."
    )


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Copy settings with NumPy's values, as from a parameter grid, replaced by plain ones for files."""
    return {name: _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain_settings(value)
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
