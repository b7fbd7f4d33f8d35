"""Weights of an earlier fit as the beginning of the next one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.encoders import Encoder
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.io.listing import some
from factorwise.learning.chains.layout import StateFeatures
from factorwise.learning.chains.structure import ChainStructure


def carried_over(
    before: ChainTagger, encoder_before: Encoder, encoder: Encoder, labels: Sequence[Any]
) -> Callable[[StateFeatures, ChainStructure], NDArray[np.float64]]:
    """Return a function that gives new weights the values of the old ones of the same name, else zero."""

    def begin(features: StateFeatures, structure: ChainStructure) -> NDArray[np.float64]:
        number = {label: code for code, label in enumerate(before.labels)}
        old_label = np.array([number.get(label, -1) for label in labels], dtype=np.int64)
        state = _state_weights(before, encoder_before, encoder, features, old_label)
        known = dict(
            zip(map(tuple, before.structure.transitions()), before.transition_weights.tolist(), strict=True)
        )
        transitions = [
            known.get(tuple(old_label[list(codes)].tolist()), 0.0) for codes in structure.transitions()
        ]
        return np.concatenate([state, np.array(transitions, dtype=np.float64)])

    return begin


class ForgottenLabelWarning(UserWarning):
    """Labels of an earlier fit that the sentences of the next one do not have."""


def warn_of_forgotten(before: Sequence[Any], labels: Sequence[Any]) -> None:
    """Warn of labels that only the earlier data had: a warm start cannot keep what nothing speaks for."""
    forgotten = [label for label in before if label not in set(labels)]
    if forgotten:
        warnings.warn(
            f"the labels {some([str(label) for label in forgotten])} of the earlier fit are not in these"
            " sentences and will no longer be known: to keep them, train on all sentences together.",
            ForgottenLabelWarning,
            stacklevel=3,
        )


def _state_weights(
    before: ChainTagger,
    encoder_before: Encoder,
    encoder: Encoder,
    features: StateFeatures,
    old_label: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Find each pair of attribute and label among the old ones, which are sorted."""
    place = {name: code for code, name in enumerate(encoder_before.names())}
    old_attribute = np.array([place.get(name, -1) for name in encoder.names()], dtype=np.int64)
    attribute = np.repeat(old_attribute, features.per_attribute)
    label = old_label[features.label]
    width = len(before.labels)
    old_key = (
        np.repeat(np.arange(len(before.features.start) - 1), before.features.per_attribute) * width
        + before.features.label
    )
    key = np.where((attribute >= 0) & (label >= 0), attribute * width + label, -1)
    at = np.searchsorted(old_key, key)
    at[at == len(old_key)] = 0
    found = (len(old_key) > 0) & (old_key[at] == key) if len(old_key) else np.zeros(len(key), dtype=bool)
    return np.where(found, before.state_weights[at] if len(old_key) else 0.0, 0.0)
