"""Objectives that are sums over shards of data, such as the likelihood of a CRF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from factorwise.distributed.executors import Executor
from factorwise.errors import InvalidArgumentError
from factorwise.types import Float64s

Vector = Float64s


class SummedObjective:
    """The sum of an objective over shards, for any optimizer that takes a value and a gradient.

    executor
        The executor that evaluates the shards.
    parts
        The data of each shard, which are sent to the executor once.
    objective
        A function of a part's data and the weights that returns a value and a gradient.

    Parts are added in their order, so the sum does not depend on the executor.
    """

    def __init__(
        self,
        executor: Executor,
        parts: Sequence[Any],
        objective: Callable[[Any, Vector], tuple[float, Vector]],
    ) -> None:
        if not parts:
            raise InvalidArgumentError("a sum over shards needs at least one: parts is empty.")
        self._executor = executor
        self._objective = objective
        self._parts = [executor.share(part) for part in parts]

    def __call__(self, weights: Vector) -> tuple[float, Vector]:
        """Return the value and the gradient."""
        shared = self._executor.share(np.asarray(weights, np.float64))
        results = self._executor.map(self._objective, [(part, shared) for part in self._parts])
        value, gradient = 0.0, np.zeros(len(weights))
        for own_value, own_gradient in results:
            value += own_value
            gradient += own_gradient
        return value, gradient
