r"""What an adaptive proposer sees of a clustering: features of one cluster, and of two.

Both are statistics of a model, counted per pair of items so that large and small clusters compare:

.. math:: \phi_w(c) = \frac{\phi(c) - \sum_{i \in c} \phi(\{i\})}{|c| (|c| - 1) / 2}, \qquad
          \phi_b(c, d) = \frac{\phi(c \cup d) - \phi(c) - \phi(d)}{|c|\,|d|}

For a factor per pair of items these are its means over the pairs within c and between c and d. One more
feature each is the logarithm of the size, :math:`\log |c|` and :math:`\log |c|\,|d|`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.model.model import Model
from factorwise.world.moves import merge, relocate
from factorwise.world.partition import Partition

LARGEST_MEMORY = 100_000  # features of so many sets are kept before all are forgotten


class JumpFeatures:
    """Features of clusters and of pairs of clusters, from the statistics of a model.

    model
        Its templates score clusters one by one, so that two clusters are described by their members alone.
        Its weights play no part.
    chosen
        Which statistics, by the names of their weights; all by default.

    columns : int64[.]
        Where the chosen statistics stand in the model's weight vector.
    names
        Of the features: those of the statistics, then the logarithm of the size.
    """

    def __init__(self, model: Model, chosen: Callable[[str], bool] | None = None) -> None:
        names = [model.weight_name(index) for index in range(model.blocks.size)]
        self.model = model
        self.columns = np.array(
            [index for index, name in enumerate(names) if chosen is None or chosen(name)], np.int64
        )
        if len(self.columns) == 0:
            raise InvalidArgumentError(
                f"none of the model's {len(names)} statistics is chosen; some of their names are {names[:5]}."
            )
        self.names = (*(names[index] for index in self.columns), "log size")
        self._known: dict[frozenset[frozenset[int]], NDArray[np.float64]] = {}

    @property
    def size(self) -> int:
        """How many features there are."""
        return len(self.names)

    def within(self, members: Sequence[int], n_items: int) -> NDArray[np.float64]:
        """Features of one cluster of two or more, in a world of ``n_items``."""
        key = frozenset({frozenset(members)})
        if len(set(members)) < 2:
            raise InvalidArgumentError(f"a cluster with pairs has two members or more, but has {members}.")
        if key not in self._known:
            world, first = _apart(n_items, members[:1]), members[0]
            held = np.zeros(self.model.blocks.size)
            for item in members[1:]:
                joins = relocate(world, item, world.cluster_of(first))
                held += self.model.difference(world, joins).to_dense(len(held))
                world.apply(joins)
            pairs = len(members) * (len(members) - 1) / 2
            return self._remembered(key, np.append(held[self.columns] / pairs, math.log(len(members))))
        return self._known[key]

    def between(self, first: Sequence[int], second: Sequence[int], n_items: int) -> NDArray[np.float64]:
        """Features of two clusters, in either order, in a world of ``n_items``."""
        key = frozenset({frozenset(first), frozenset(second)})
        if not first or not second or set(first) & set(second):
            raise InvalidArgumentError(f"two clusters share no member, but {first} and {second} were given.")
        if key not in self._known:
            world = _apart(n_items, first, second)
            joins = merge(world, world.cluster_of(first[0]), world.cluster_of(second[0]))
            gradient = self.model.difference(world, joins).to_dense(self.model.blocks.size)
            pairs = len(first) * len(second)
            return self._remembered(key, np.append(gradient[self.columns] / pairs, math.log(pairs)))
        return self._known[key]

    def _remembered(self, key: frozenset[frozenset[int]], found: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(self._known) >= LARGEST_MEMORY:
            self._known.clear()
        self._known[key] = found
        return found


def _apart(n_items: int, *clusters: Sequence[int]) -> Partition:
    """Return a world with these clusters and every other item by itself."""
    labels = np.arange(n_items)
    for members in clusters:
        labels[list(members)] = members[0]
    return Partition.from_keys(labels)
