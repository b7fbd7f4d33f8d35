"""Proposals for hierarchies: prune and regraft, and create or dissolve inner nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import ShapeError, require
from factorwise.inference.mcmc.parts import ProgramProposer, Surroundings
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.structures import hierarchies
from factorwise.types import Int64s
from factorwise.validation import check_range, check_starts
from factorwise.world.hierarchy import Hierarchy
from factorwise.world.links import LinkGraph


@dataclass(frozen=True)
class Regraft(ProgramProposer):
    """Move a random node of a `Hierarchy`, with everything below it.

    It goes below an inner node, beside any node, or to the top: entities merge and split, groups form and
    dissolve.
    """

    worlds = (Hierarchy,)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws a node and a target."""
        return Program(draw=hierarchies.draw_regraft, name="regrafting")


@dataclass(frozen=True)
class RegraftToCandidate(ProgramProposer):
    """Move a random item of a `Hierarchy`, or an ancestor of it, near one of the item's candidates.

    It goes beside the candidate or an ancestor of it, below such an ancestor, or to the top.

    start, candidate
        The candidates of item i are ``candidate[start[i]:start[i + 1]]``.
    """

    worlds = (Hierarchy,)

    start: Int64s
    candidate: NDArray[np.integer[Any]]

    @classmethod
    def from_pairs(cls, n_items: int, pairs: ArrayLike) -> RegraftToCandidate:
        """Make the two items of each pair candidates of each other."""
        graph = LinkGraph.from_rows(n_items, pairs)
        return cls(graph.start, graph.neighbor)

    def check(self, world: Any) -> None:
        """Refuse a world with another number of items."""
        super().check(world)
        if len(self.start) != world.n_items + 1:
            raise ShapeError(
                f"the candidates are those of {len(self.start) - 1} items, but the world has {world.n_items}."
            )
        check_starts("start", self.start, len(self.candidate))
        check_range("candidate", self.candidate, world.n_items)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws an item, an ancestor of it, a candidate and a target."""
        arrays = {"start": self.start, "candidate": self.candidate.astype(np.int32)}
        return Program(draw=hierarchies.draw_regraft_near, arrays=arrays, name="regrafting to candidates")


@dataclass(frozen=True)
class Regroup(ProgramProposer):
    """Put a new inner node above some children of a node of a `Hierarchy`, or dissolve an inner node.

    most
        The largest number of children that a new or dissolved inner node may have.
    """

    worlds = (Hierarchy,)

    most: int = 4

    def __post_init__(self) -> None:
        require(self.most >= 2, "most", self.most, "at least 2")

    @property
    def changes(self) -> int:  # type: ignore[override]
        """How many changes a move may have."""
        return self.most

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws one of the two, and the node."""
        most = min(self.most, parts.world.n_items)
        return Program(draw=hierarchies.draw_regroup, arrays={"most": [most]}, name="regrouping")
