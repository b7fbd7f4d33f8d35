"""Weights that were learned by walking, with their names, settings and learning curve, in a model file."""

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
    """What such a model file holds.

    weights, names
        The flat vector, and what each weight stands for.
    settings
        With which the estimator was made and trained.
    history
        One record per pass over the training data.
    provenance
        What made it.
    """

    weights: NDArray[np.float64]
    names: list[str]
    settings: Mapping[str, Any]
    history: list[PassRecord]
    provenance: Mapping[str, Any]


def write_learned(path: str | os.PathLike[str], kind: str, learned: LearnedWeights) -> None:
    """Write the weights of an application, whole or not at all."""
    write_model(
        path,
        ModelFile(
            kind=kind,
            metadata={
                "names": list(learned.names),
                "settings": dict(learned.settings),
                "history": [record._asdict() for record in learned.history],
            },
            arrays={"weights": learned.weights},
            provenance=learned.provenance,
        ),
    )


def read_learned(path: str | os.PathLike[str], kind: str, needed: Collection[str]) -> LearnedWeights:
    """Read the weights of an application and check that its parts fit together.

    needed
        Settings that must be there.
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
    return LearnedWeights(weights, names, settings, history, model.provenance)


def damaged(path: str | os.PathLike[str]) -> ModelFileError:
    """Return the error to raise for a file whose parts are not those of a model."""
    return ModelFileError(
        f"{os.fspath(path)}: its weights, names and settings do not fit together. The file is damaged:"
        " restore it from a copy, or train again."
    )


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Copy settings with plain values for NumPy's, as from a grid of parameters: files hold plain ones."""
    return {name: _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain_settings(value)
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
