"""Saved weights of an adaptive proposer: the ``proposer`` kind of model file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from factorwise.errors import FactorwiseError, ModelFileError
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.io.models.files import ModelFile, read_model, write_model

KIND = "proposer"


def save_proposer(
    path: str | os.PathLike[str], weights: JumpWeights, *, provenance: Mapping[str, Any] | None = None
) -> None:
    """Write what a proposer has learned, with the names of its features."""
    metadata = {"names": list(weights.names), "kinds": list(weights.kinds)}
    arrays = {"split": weights.split, "merge": weights.merge}
    write_model(path, ModelFile(kind=KIND, metadata=metadata, arrays=arrays, provenance=provenance or {}))


def load_proposer(path: str | os.PathLike[str]) -> JumpWeights:
    """Read what `save_proposer` wrote."""
    content = read_model(path, KIND)
    try:
        names, kinds = content.metadata["names"], content.metadata["kinds"]
        if not all(type(name) is str for name in names):
            raise TypeError
        return JumpWeights(tuple(names), content.arrays["split"], content.arrays["merge"], tuple(kinds))
    except (FactorwiseError, LookupError, TypeError, ValueError) as fault:
        raise ModelFileError(
            f"{os.fspath(path)}: its weights, names and kinds do not fit together. The file is damaged:"
            " restore it from a copy, or train the proposer again."
        ) from fault
