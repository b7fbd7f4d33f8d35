"""Templates over hierarchies: the similarity of children to their parents, and the number of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import ShapeError
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.structures import subtree_bags as kernels
from factorwise.model.target_templates import WholeWorldTemplate
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s
from factorwise.world.hierarchy import Hierarchy


class SubtreeCosine(WholeWorldTemplate):
    """The similarity of children to the rest of their parents: the sum of the cosines of their bags.

    The bag of an inner node, which is stored with the node, is the sum of the bags of the items below it. A
    change takes one inner product for every child of an ancestor whose bag changes, however many items there
    are.

    vectors : float[items, numbers]
        The bags of the items: counts of words, or embeddings; `Bags.hashed` makes vectors of bags.

    These are the factors between parents and children of Wick, Singh and McCallum (2012).

    >>> template = SubtreeCosine("words", [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> template.statistics(Hierarchy([[0, 1], 2])).value.tolist()
    [2.0]
    """

    size = 1
    worlds = (Hierarchy,)

    def __init__(self, name: str, vectors: ArrayLike) -> None:
        self.name = name
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float64)
        if self.vectors.ndim != 2 or not self.vectors.size or not np.isfinite(self.vectors).all():
            raise ShapeError(
                f"template {name!r} needs a row of finite numbers for each item, but vectors of shape"
                f" {self.vectors.shape} were given."
            )

    def weight_name(self, index: int) -> str:
        """Return the name of the statistic."""
        return f"{self.name}: cosine of child and parent"

    def statistics(self, world: Hierarchy) -> SparseVector:
        """Return the sum over all nodes except the roots."""
        self._check(world)
        total: dict[int, Any] = dict(enumerate(self.vectors))
        for item in range(world.n_items):
            for node in world._ancestors(item):
                total[node] = total.get(node, 0.0) + self.vectors[item]
        cosines = [
            kernels.cosine_of_rest(
                total[node] @ total[parent], total[node] @ total[node], total[parent] @ total[parent]
            )
            for node, parent in ((node, int(world.values[node])) for node in total)
            if parent in total
        ]
        return SparseVector.from_dense([sum(cosines)])

    def _check(self, world: Hierarchy) -> None:
        if world.n_items != len(self.vectors):
            raise ShapeError(
                f"template {self.name!r} has vectors of {len(self.vectors)} items, but the world has"
                f" {world.n_items}."
            )

    def program(self, world: Hierarchy, offset: int, weights: Float64s) -> Program:
        """Return the program, which keeps the sum of each node."""
        self._check(world)
        nodes = len(world.values)
        arrays = {
            "vector": self.vectors,
            "total": np.zeros((nodes, self.vectors.shape[1])),
            **{name: np.zeros(nodes) for name in ("square", "inner", "cosine")},
            "change": np.zeros(nodes + 1, np.int64),
            "weights": weights,
            "offset": [offset],
        }
        return Program(
            begin=kernels.begin_totals,
            gain=kernels.gain_of_cosines,
            gradient=kernels.gradient_of_cosines,
            applied=kernels.applied_regraft,
            arrays=arrays,
            name=self.name,
            entries=1,
        )


class HierarchyCounts(WholeWorldTemplate):
    """The number of entities and the number of inner nodes.

    >>> HierarchyCounts().statistics(Hierarchy([[0, [1, 2]], 3])).value.tolist()
    [2.0, 2.0]
    """

    size = 2
    worlds = (Hierarchy,)

    def __init__(self, name: str = "counts") -> None:
        self.name = name

    def weight_name(self, index: int) -> str:
        """Return the name of the statistic."""
        return f"{self.name}: {('entities', 'inner nodes')[index]}"

    def statistics(self, world: Hierarchy) -> SparseVector:
        """Count entities and inner nodes."""
        return SparseVector.from_dense([world.n_clusters, world.n_groups])

    def program(self, world: Hierarchy, offset: int, weights: Float64s) -> Program:
        """Return the program, which reads where the node comes from and where it goes."""
        return Program(
            gain=kernels.gain_of_counts,
            gradient=kernels.gradient_of_counts,
            arrays={"weights": weights, "offset": [offset]},
            name=self.name,
            entries=2,
        )
