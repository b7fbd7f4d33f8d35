"""The base class of estimators that learn weights by SampleRank: names, saving and loading of weights."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from factorwise.errors import InvalidArgumentError
from factorwise.io.models.learned import LearnedWeights, damaged, read_learned, write_learned
from factorwise.io.models.provenance import provenance
from factorwise.learning.samplerank.learner import Learned, PassRecord
from factorwise.model.model import Model
from factorwise.validation import as_whole

MOST_STEPS = 1_000_000  # most steps per item that a model file may request


class LearnedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator with named weights, a learning curve and a model file of its own kind.

    A subclass has a parameter ``random_state``. Its `fit` calls `_keep` and sets ``settings_``, the training
    settings that the model file records; they include ``random_state`` and everything in ``_kept``.

    _kind
        Kind of the model file.
    _kept
        Constructor parameters that the file records, so that a loaded estimator has them again.
    _noun
        Name of the estimator in messages.
    _other_features
        Part of an error message: why features may differ from those of the training, and what to do.
    """

    _kind: ClassVar[str]
    _kept: ClassVar[tuple[str, ...]]
    _noun: ClassVar[str]
    _other_features: ClassVar[str]

    random_state: int
    weights_: NDArray[np.float64]
    weight_names_: list[str]
    history_: list[PassRecord]
    settings_: dict[str, Any]

    def weights_by_name(self) -> dict[str, float]:
        """Return the weights by feature name, in decreasing order of magnitude."""
        self._check_fitted()
        order = np.argsort(-np.abs(self.weights_), kind="stable")
        return {self.weight_names_[k]: float(self.weights_[k]) for k in order}

    def save(self, path: str | PathLike[str], *, data: Iterable[str | PathLike[str]] = ()) -> None:
        """Write the model to a file, ``NAME.fw`` (JSON and arrays, no pickle).

        data
            Files of training data whose names, sizes and checksums the model file records.
        """
        self._check_fitted()
        seed = self.settings_["random_state"]
        record = provenance(configuration=self.settings_, seed=seed, data=[*data])
        learned = LearnedWeights(
            self.weights_, self.weight_names_, self.settings_, self.history_, record, self._parts()
        )
        write_learned(path, self._kind, learned)

    @classmethod
    def load(cls, path: str | PathLike[str], **parameters: Any) -> Self:
        """Read a model that `save` or the command line wrote; ``parameters`` replace its settings."""
        saved = read_learned(path, cls._kind, cls._kept)
        for name in cls._kept:
            if not _is_like(name, saved.settings[name], inspect.signature(cls).parameters[name].default):
                raise damaged(path)
        keys = saved.settings.get("mentions_told", [])  # coreference: keys that mentions had
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise damaged(path)
        estimator = cls(**{**{name: saved.settings[name] for name in cls._kept}, **parameters})
        estimator.weights_, estimator.weight_names_ = saved.weights, saved.names
        estimator.settings_, estimator.history_ = dict(saved.settings), saved.history
        if not estimator._take_parts(saved.parts):
            raise damaged(path)
        return estimator

    def _parts(self) -> dict[str, NDArray[Any]]:
        """Return what the model file keeps beside the weights."""
        return {}

    def _take_parts(self, parts: Mapping[str, NDArray[Any]]) -> bool:
        """Take over what `_parts` returned when the model was saved, and whether it is as it must be."""
        return not parts

    def _keep(self, learned: Learned, model: Model) -> None:
        """Store learned weights with the names that the model gives them."""
        self.weights_, self.weight_names_ = learned.weights, _names(model)
        self.history_ = learned.history

    def _give_weights(self, model: Model) -> None:
        """Set the weights of a model; its features must be those of the training."""
        if _names(model) != self.weight_names_:
            raise self._unlike_training()
        model.weights = self.weights_

    def _unlike_training(self) -> InvalidArgumentError:
        return InvalidArgumentError(
            "the features that are computed now differ from those that the model was trained with, by"
            f" another version of factorwise{self._other_features}"
        )

    def _seed(self) -> int:
        return as_whole("random_state", self.random_state)

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError(f"this {self._noun} is not fitted: call fit, or load a model.")


def _names(model: Model) -> list[str]:
    return [model.weight_name(k) for k in range(model.blocks.size)]


def _is_like(name: str, value: object, default: object) -> bool:
    """Whether a setting from a file has the type of its default; a default of None allows names."""
    if isinstance(default, bool | str):
        return type(value) is type(default)
    if isinstance(default, int):
        return type(value) is int and 0 <= value <= (MOST_STEPS if name == "search_steps" else 2**64)
    names = value is None or (isinstance(value, str | list) and all(isinstance(name, str) for name in value))
    return names and (default is None or value is not None)
