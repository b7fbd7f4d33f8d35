"""Save and load a trained tagger as JSON and arrays, without executable content."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.features.encoders import Encoder, restore_encoder
from factorwise.apps.tagging.global_constraints import ConstraintSet
from factorwise.apps.tagging.global_tagger import GlobalTagger
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.apps.tagging.training import without_zeros
from factorwise.errors import FactorwiseError, InvalidArgumentError, ModelFileError
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.learning.chains.layout import StateFeatures
from factorwise.learning.chains.second_order import SecondOrder
from factorwise.learning.chains.structure import ChainStructure, FirstOrder
from factorwise.validation import check_range, check_starts, check_weights

KIND = "chain-crf"
_ENCODER = "encoder."


class SavedTagger(NamedTuple):
    """The content of a tagger's model file."""

    tagger: ChainTagger
    encoder: Encoder
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]


def write_tagger(
    path: str | os.PathLike[str],
    tagger: ChainTagger,
    encoder: Encoder,
    settings: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> None:
    """Write a tagger atomically, without the attributes that have no nonzero weight."""
    metadata, arrays = _parts(tagger, encoder)
    metadata["settings"] = dict(settings)
    write_model(path, ModelFile(kind=KIND, metadata=metadata, arrays=arrays, provenance=provenance))


def write_levels(
    path: str | os.PathLike[str],
    kind: str,
    levels: Sequence[tuple[ChainTagger, Encoder]],
    settings: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> None:
    """Write the taggers of nested spans, one for each level, as `write_tagger` does."""
    parts = [_parts(tagger, encoder) for tagger, encoder in levels]
    arrays = {f"{level}.{name}": array for level, (_, own) in enumerate(parts) for name, array in own.items()}
    metadata = {"levels": [own for own, _ in parts], "settings": dict(settings)}
    write_model(path, ModelFile(kind=kind, metadata=metadata, arrays=arrays, provenance=provenance))


def _parts(tagger: ChainTagger, encoder: Encoder) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the JSON values and the arrays from which `_restore` restores the tagger."""
    wrong = [label for label in tagger.classes if not isinstance(label, str)]
    if wrong:
        raise InvalidArgumentError(
            f"the label {wrong[0]!r} is a {type(wrong[0]).__name__}: a model file holds labels that are"
            " strings. Train with str(label)."
        )
    tagger, encoder = without_zeros(tagger, encoder)
    arrays, described = encoder.to_arrays()
    structure = tagger.structure
    metadata = {
        "labels": list(tagger.classes),
        "order": 2 if isinstance(structure, SecondOrder) else 1,
        "encoder": described,
        "constraints": tagger.constraints.to_json() if isinstance(tagger, GlobalTagger) else [],
    }
    return metadata, {
        **{_ENCODER + name: array for name, array in arrays.items()},
        **structure.to_arrays(),
        "feature_start": tagger.features.start,
        "feature_label": tagger.features.label,
        "weights": tagger.weights,
    }


def read_tagger(path: str | os.PathLike[str]) -> SavedTagger:
    """Read a tagger and check that its parts are consistent."""
    model = read_model(path, KIND)
    with _telling_damage(path):
        return _restore(model, model.metadata["settings"])


def read_levels(path: str | os.PathLike[str], kind: str) -> list[SavedTagger]:
    """Read the taggers that `write_levels` wrote, each with the common settings."""
    model = read_model(path, kind)
    with _telling_damage(path):
        saved = []
        for level, metadata in enumerate(model.metadata["levels"]):
            prefix = f"{level}."
            arrays = {
                name[len(prefix) :]: array for name, array in model.arrays.items() if name.startswith(prefix)
            }
            part = replace(model, metadata=metadata, arrays=arrays)
            saved.append(_restore(part, model.metadata["settings"]))
        return saved


@contextmanager
def _telling_damage(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the file name to errors raised while its content is read."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, FactorwiseError) as error:
        raise ModelFileError(
            f"{os.fspath(path)}: its parts do not make up a tagger ({type(error).__name__}: {error}). The"
            " file is damaged: restore it from a copy, or train again."
        ) from error


def _restore(model: ModelFile, settings: Mapping[str, Any]) -> SavedTagger:
    encoder = restore_encoder(
        {name[len(_ENCODER) :]: array for name, array in model.arrays.items() if name.startswith(_ENCODER)},
        model.metadata["encoder"],
    )
    tagger = _tagger(model)
    _check(tagger, encoder)
    return SavedTagger(tagger, encoder, dict(settings), model.provenance)


def _tagger(model: ModelFile) -> ChainTagger:
    labels, order = model.metadata["labels"], model.metadata["order"]
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ModelFileError("its labels are not a list of strings. The file is damaged: restore a copy.")
    if order not in (1, 2):
        raise ModelFileError(
            f"its chain has order {order!r}, which this factorwise does not know: upgrade it, or train again."
        )
    kind: type[FirstOrder] | type[SecondOrder] = FirstOrder if order == 1 else SecondOrder
    structure: ChainStructure = kind.from_arrays(len(labels), model.arrays)
    features = StateFeatures(
        _typed(model.arrays["feature_start"], np.int64), _typed(model.arrays["feature_label"], np.int32)
    )
    weights = _typed(model.arrays["weights"], np.float64)
    constraints = ConstraintSet.from_json(model.metadata.get("constraints", []))  # older files have none
    if not constraints.constraints:
        return ChainTagger(tuple(labels), features, structure, weights)
    if order != 1 or not constraints.learned:
        raise ModelFileError(
            "its constraints have no weights, or its chain has order 2. The file is damaged: restore a copy."
        )
    constraints.check(labels)
    return GlobalTagger(tuple(labels), features, structure, weights, constraints)


def _typed(array: NDArray[Any], kind: type) -> NDArray[Any]:
    if array.dtype != kind or array.ndim != 1:
        raise ModelFileError(
            f"an array has dtype {array.dtype} and shape {array.shape}, but one dimension of"
            f" {np.dtype(kind)} was expected. The file is damaged: restore it from a copy."
        )
    return array


def _check(tagger: ChainTagger, encoder: Encoder) -> None:
    """Raise an error if the sizes of the parts do not match, before compiled code reads them."""
    features, labels = tagger.features, len(tagger.classes)
    check_starts("feature_start", features.start, len(features.label))
    check_range("feature_label", features.label, labels)
    check_weights("weights", tagger.weights)
    sound = (
        len(features.start) == encoder.width + 1
        and len(tagger.weights) == len(features) + tagger.structure.size
        and len(set(tagger.classes)) == labels > 0
    )
    if not sound:
        raise ModelFileError(
            "its weights, features and attributes do not fit together. The file is damaged: restore it from a"
            " copy, or train again."
        )
