"""Convert the user's labels, sample weights and class weights into the form that training uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.labels import EncodedLabels
from factorwise.apps.tagging.training import EncodedSentences, HeldOutSentences
from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.learning.chains.structure import Supervision
from factorwise.rng import Stream
from factorwise.types import Bools, Floats, Ints


def supervision_of(
    known: EncodedLabels,
    names: Sequence[Any],
    start: NDArray[np.int64],
    sample_weight: Any,
    class_weight: Any,
) -> Supervision:
    """Return the labels and weights of sentences, which begin at ``start``, as supervision."""
    allowed_row = np.zeros(0, dtype=np.int32)
    if len(known.partial):
        allowed_row = np.full(len(known.codes), -1, dtype=np.int32)
        allowed_row[known.partial] = np.arange(len(known.partial), dtype=np.int32)
    return Supervision(
        known.codes,
        allowed_row,
        known.allowed,
        sentence_weights(sample_weight, len(start) - 1),
        class_costs(class_weight, known.codes, names),
    )


def class_costs(class_weight: Any, codes: Ints, names: Sequence[Any]) -> Floats:
    """Return the margin of each label, which is the log of its class weight; empty without class weights."""
    if class_weight is None:
        return np.zeros(0)
    weight: Floats
    if isinstance(class_weight, Mapping):
        unknown = [label for label in class_weight if label not in names]
        if unknown:
            raise InvalidArgumentError(
                f"class_weight names {unknown[0]!r}, which is none of the labels {list(names)}: leave it out."
            )
        weight = _numbers([class_weight.get(name, 1.0) for name in names], "class_weight")
    elif isinstance(class_weight, str) and class_weight == "balanced":
        count = np.bincount(codes[codes >= 0], minlength=len(names))
        weight = count.sum() / (len(names) * np.maximum(count, 1))
    else:
        raise InvalidArgumentError(
            f"class_weight must be 'balanced' or a dictionary, but {class_weight!r} was given."
        )
    sound = bool(((weight > 0) & (weight < np.inf)).all())
    require(sound, "class_weight", class_weight, "finite and above zero for every label")
    return np.asarray(np.log(weight), dtype=np.float64)


def sentence_weights(sample_weight: Any, sentences: int) -> Floats:
    """Return the weight of each sentence; empty if all sentences have the same weight."""
    if sample_weight is None:
        return np.zeros(0)
    weight = _numbers(sample_weight, "sample_weight")
    if weight.shape != (sentences,):
        raise ShapeError(
            f"sample_weight has shape {weight.shape}, but there are {sentences} sentences: give one number"
            " for each."
        )
    sound = bool((np.isfinite(weight) & (weight >= 0)).all())
    require(sound, "sample_weight", sample_weight, "finite and not negative")
    return weight


def random_share(able: Bools, share: float, seed: int) -> Bools:
    """Choose eligible sentences at random, in number about ``share`` times all sentences, at least one."""
    stream = Stream(seed, len(able))
    order = np.argsort([stream.uniform() for _ in range(len(able))])
    chosen = np.zeros(len(able), dtype=bool)
    chosen[order[able[order]][: max(1, round(share * len(able)))]] = True
    return chosen


def held_out_from(sentences: EncodedSentences, chosen: Bools, patience: int | None) -> HeldOutSentences:
    """Return the chosen sentences as held-out sentences."""
    return HeldOutSentences.of(sentences.taken(chosen), patience)


def _numbers(given: Any, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} must be numbers, but {given!r} was given.") from None
