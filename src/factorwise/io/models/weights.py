"""Saved weights of a model that is built in code: the ``weights`` kind of model file.

The array ``weights`` is the flat vector, and ``blocks`` in the metadata has the part of each template. Every
kind with weight blocks stores them this way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from factorwise.errors import ModelFileError
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.model.model import Model

KIND = "weights"


def save_weights(
    path: str | os.PathLike[str], model: Model, *, provenance: Mapping[str, Any] | None = None
) -> None:
    """Write the weights of ``model`` with the names and sizes of their blocks."""
    blocks = {"names": list(model.blocks.names), "sizes": list(model.blocks.sizes)}
    content = ModelFile(
        kind=KIND,
        metadata={"blocks": blocks},
        arrays={"weights": model.weights},
        provenance=provenance or {},
    )
    write_model(path, content)


def load_weights(path: str | os.PathLike[str], model: Model) -> None:
    """Load weights into ``model``, saved from a model with the same blocks in any order."""
    content = read_model(path, KIND)
    saved = weight_blocks(content)
    if saved is None:
        raise ModelFileError(
            f"{os.fspath(path)}: its weights do not fit its blocks. It was not written by save_weights:"
            " save the weights again."
        )
    wanted = dict(zip(model.blocks.names, model.blocks.sizes, strict=True))
    saved_sizes = {name: part.stop - part.start for name, part in saved.items()}
    if saved_sizes != wanted:
        raise ModelFileError(
            f"{os.fspath(path)}: has weight blocks {saved_sizes}, but the model has {wanted}. Build the"
            " model with the templates of the saved one."
        )
    weights = content.arrays["weights"]
    model.weights = {name: weights[part] for name, part in saved.items()}


def weight_blocks(content: ModelFile) -> dict[str, slice] | None:
    """Return where each block lies in the array ``weights``; None if the file has no such blocks."""
    weights, blocks = content.arrays.get("weights"), content.metadata.get("blocks")
    if weights is None or weights.dtype != np.float64 or weights.ndim != 1 or not isinstance(blocks, dict):
        return None
    names, sizes = blocks.get("names"), blocks.get("sizes")
    if not isinstance(names, list) or not isinstance(sizes, list) or len(names) != len(sizes):
        return None
    texts = all(type(name) is str for name in names) and len(set(names)) == len(names)
    if not texts or not all(type(size) is int and size >= 0 for size in sizes) or sum(sizes) != len(weights):
        return None
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    return {name: slice(end - size, end) for name, size, end in zip(names, sizes, ends, strict=True)}
