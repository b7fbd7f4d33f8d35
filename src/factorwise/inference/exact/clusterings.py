"""Every clustering of a few items: the reference for all samplers over partitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.inference.exact.worlds import WorldEnumeration
from factorwise.model.model import Model
from factorwise.types import Float64s
from factorwise.world.partition import Partition

LARGEST = 9  # items; there are 21,147 clusterings of nine (the ninth Bell number)


def all_partitions(n_items: int, n_types: int = 1) -> list[Partition]:
    """Return every clustering of ``n_items`` items, with every choice of types for its clusters."""
    if not 1 <= n_items <= LARGEST:
        raise InvalidArgumentError(
            f"clusterings can be enumerated for 1 to {LARGEST} items, but n_items is {n_items}:"
            " sample larger worlds with MCMC."
        )
    return [
        Partition.from_labels(labels, types=types, n_types=n_types)
        for labels in _growing(n_items)
        for types in product(range(n_types), repeat=max(labels) + 1)
    ]


def _growing(n_items: int) -> Iterator[list[int]]:
    """Yield label lists in which each new label is one more than the largest so far: each clustering once."""

    def extend(labels: list[int], used: int) -> Iterator[list[int]]:
        if len(labels) == n_items:
            yield labels
            return
        for label in range(used + 1):
            yield from extend([*labels, label], max(used, label + 1))

    return extend([], 0)


class PartitionEnumeration(WorldEnumeration):
    """The distribution of a model over all clusterings of a few items.

    model
        Scores each of them.
    temperature
        Scores are divided by it.
    """

    def __init__(self, model: Model, n_items: int, *, n_types: int = 1, temperature: float = 1.0) -> None:
        super().__init__(model, all_partitions(n_items, n_types), temperature=temperature)

    def together(self) -> Float64s:
        """Probability that each two items are in one cluster: float64[n, n]."""
        n = self.worlds[0].n_items
        result = np.eye(n)
        for world, probability in zip(self.worlds, self.probabilities, strict=True):
            for members in world.clusters():
                for i, j in combinations(members.tolist(), 2):
                    result[i, j] += probability
                    result[j, i] += probability
        return result
