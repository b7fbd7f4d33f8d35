"""Warm starts: training continues from the labels, attributes and weights of an earlier fit.

Labels and attributes that only the earlier training data had keep their weights, which stay fixed while the
other weights are learned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.features.encoders import Encoder
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.learning.chains.layout import StateFeatures
from factorwise.learning.chains.second_order import SecondOrder
from factorwise.learning.chains.structure import ChainStructure, FirstOrder
from factorwise.types import Bools, Ints

Kind = TypeVar("Kind", bound=Encoder)


def continued(fresh: Kind, before: Encoder | None) -> tuple[Kind, bool]:
    """Return the encoder for new training sentences, and whether it knows the attributes of the earlier fit.

    fresh
        The encoder chosen for the new sentences.
    before
        The encoder of the earlier fit, or None. It is ignored if it makes attributes in another way.
    """
    if before is None or not fresh.reads_like(before):
        return fresh, False
    return cast("Kind", deepcopy(before)), True  # a copy: if this fit fails, the earlier one is unchanged


class Beginning(NamedTuple):
    """The weights with which training starts.

    features, structure
        The state features and the transitions that have a weight.
    weights : float64[weights]
        The initial values.
    held : bool[weights]
        Weights that stay fixed, because the new sentences do not have their labels or attributes.
    absent : bool[weights]
        The fixed weights whose attribute occurs in no new sentence.
    """

    features: StateFeatures
    structure: ChainStructure
    weights: NDArray[np.float64]
    held: Bools
    absent: Bools

    @classmethod
    def at_zero(cls, features: StateFeatures, structure: ChainStructure) -> Beginning:
        """Return zero weights, for training without an earlier fit."""
        size = len(features) + structure.size
        return cls(features, structure, np.zeros(size), *np.zeros((2, size), dtype=bool))


@dataclass(frozen=True, eq=False)
class EarlierFit:
    """An earlier tagger, its attribute names, and the attribute names of the encoder of the new sentences.

    labels
        The labels of the new fit, which include those of the tagger.
    """

    tagger: ChainTagger
    attributes: Sequence[str]
    new_attributes: Sequence[str]
    labels: Sequence[Any]

    @classmethod
    def of(
        cls, tagger: ChainTagger, encoder_before: Encoder, encoder: Encoder, labels: Sequence[Any]
    ) -> EarlierFit:
        """Take the attribute names from the encoders."""
        return cls(tagger, encoder_before.names(), encoder.names(), labels)

    def beginning(
        self, features: StateFeatures, structure: ChainStructure, seen: Bools, present: Bools
    ) -> Beginning:
        """Return the weights of both fits, initialized with the values of the earlier fit or with zero.

        features, structure
            The weights that the new sentences need.
        seen, present : bool[attributes], bool[labels]
            Which attributes and which labels occur in the new sentences.
        """
        n = len(self.labels)
        code = {label: number for number, label in enumerate(self.labels)}
        old_label = np.array([code.get(label, -1) for label in self.tagger.classes], dtype=np.int64)
        number = {name: place for place, name in enumerate(self.new_attributes)}
        old_attribute = np.array([number.get(name, -1) for name in self.attributes], dtype=np.int64)
        old_key = _keys(old_attribute, self.tagger.features, old_label, n)
        order = np.argsort(old_key, kind="stable")
        order = order[old_key[order] >= 0]
        known, value = old_key[order], self.tagger.state_weights[order]
        asked = _keys(np.arange(len(seen)), features, np.arange(n), n)
        every = np.union1d(asked, known)
        attribute, label = np.divmod(every, n)
        joined = StateFeatures(
            np.searchsorted(attribute, np.arange(len(seen) + 1)).astype(np.int64), label.astype(np.int32)
        )
        state = np.zeros(len(every))
        state[np.searchsorted(every, known)] = value
        learned = np.isin(every, asked) & seen[attribute] & present[label]

        old_steps = {
            tuple(old_label[list(codes)].tolist()): weight
            for codes, weight in zip(
                self.tagger.structure.transitions(), self.tagger.transition_weights.tolist(), strict=True
            )
        }
        wanted = set(structure.transitions())
        structure = _with_transitions(structure, [codes for codes in old_steps if min(codes) >= 0])
        steps = structure.transitions()
        taught = [codes in wanted and bool(present[list(codes)].all()) for codes in steps]
        return Beginning(
            joined,
            structure,
            np.concatenate([state, [old_steps.get(codes, 0.0) for codes in steps]]),
            ~np.concatenate([learned, np.array(taught, dtype=bool)]),
            np.concatenate([~seen[attribute], np.zeros(len(steps), dtype=bool)]),
        )


def _keys(
    attribute: NDArray[np.int64], features: StateFeatures, label: NDArray[np.int64], labels: int
) -> NDArray[np.int64]:
    """Number the pairs of attribute and label; the number is -1 where either is missing."""
    first, second = np.repeat(attribute, features.per_attribute), label[features.label]
    return np.where((first >= 0) & (second >= 0), first * labels + second, -1)


def _with_transitions(structure: ChainStructure, more: Sequence[tuple[int, ...]]) -> ChainStructure:
    """Add weights for more transitions, if the order of the chain allows transitions of their length."""
    if isinstance(structure, SecondOrder):
        first = _with_transitions(structure.first, more)
        assert isinstance(first, FirstOrder)
        return SecondOrder(first, _joined(structure.triples, more, 3))
    assert isinstance(structure, FirstOrder)
    return replace(structure, pairs=_joined(structure.pairs, more, 2))


def _joined(rows: Ints, more: Sequence[tuple[int, ...]], size: int) -> NDArray[np.int32]:
    """Return the sorted union of the rows and of those further rows that have the same size."""
    further = np.array([codes for codes in more if len(codes) == size], dtype=np.int32).reshape(-1, size)
    return np.unique(np.concatenate([np.asarray(rows, dtype=np.int32), further]), axis=0)


def holding(
    objective: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    weights: NDArray[np.float64],
    held: Bools,
) -> Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]:
    """Return the objective as a function of the weights that are not fixed."""
    everything, free = weights.copy(), np.flatnonzero(~held)

    def of_the_free(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        everything[free] = values
        loss, gradient = objective(everything)
        return loss, gradient[free]

    return of_the_free
