"""Gibbs steps, splits and merges along links, for any model over clusterings.

See `kernels.clusterings.link_moves`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.proposals.partition_moves import PartitionMove
from factorwise.kernels.clusterings.link_moves import draw_linked_jump, offer_linked
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks.acceptances import choose_by_score
from factorwise.model.model import Model
from factorwise.types import Int32s
from factorwise.world.links import LinkGraph
from factorwise.world.partition import Partition


def _no_items() -> Int32s:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class LinkedGibbs:
    """Visit one item after the other, and draw its cluster among those it has links into and a new one.

    links
        Which items are linked.
    strict
        Leave exp(score / temperature) invariant: an item without a link into its own cluster stays, because
        it could not come back. Otherwise such an item may leave, which is for searches.
    items
        The items to visit; empty for all.
    choose
        The program that chooses a target; by score if none is given.
    """

    model: Model
    links: LinkGraph
    strict: bool = True
    items: Int32s = field(default_factory=_no_items)
    choose: Program = field(default_factory=lambda: Program(choose=choose_by_score, name="Gibbs"))

    changes = "one"

    @property
    def proposer(self) -> LinkedGibbs:
        """The proposer, which checks the world."""
        return self

    @property
    def most_choices(self) -> int:
        """The largest number of targets of an item: a cluster for each link, its own and an empty one."""
        return int(np.diff(self.links.start).max(initial=0)) + 2

    def check(self, world: Partition) -> None:
        """Refuse a world that the links do not fit."""
        check_links(self.links, world)

    def programs(self, parts: Surroundings) -> dict[str, Program]:
        """Return the programs that offer linked clusters and choose one."""
        arrays = {**link_arrays(self.links, self.strict), "items": self.items.astype(np.int32)}
        return {
            "support": Program(support=offer_linked, arrays=arrays, name="linked clusters"),
            "choose": self.choose,
        }


@dataclass(frozen=True, eq=False)
class LinkedJumps(PartitionMove):
    """Split the cluster of two linked items, or merge their two clusters.

    links
        Which items are linked.
    strict
        Compute the probability of the way back. Otherwise only the change of score decides, which is for
        searches.
    """

    links: LinkGraph
    strict: bool = True
    changes = "many"
    crosses_blocks = True

    def check(self, world: Partition) -> None:
        """Refuse a world that the links do not fit."""
        super().check(world)
        check_links(self.links, world)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws a link, and allocates items by the walk's templates."""
        roles = ("gains", "applied", "sides")
        pairwise = all("sides" in program.functions for program in parts.templates)
        most = parts.world.n_items
        arrays = link_arrays(self.links, self.strict) | {
            "apply": Pointers([parts.world.program()], ("apply",)),
            "templates": Pointers(parts.templates, roles),
            "pairwise": [int(pairwise)],
            "order": np.zeros(most, np.int32),
            "home": np.zeros(most, np.int32),
        }
        return Program(draw=draw_linked_jump, arrays=arrays, name="splits and merges along links")


def check_links(links: LinkGraph, world: Partition) -> None:
    """Refuse a world with another number of items, or whose clusters have types."""
    if links.n_items != world.n_items:
        raise ShapeError(f"the links are between {links.n_items} items, but the world has {world.n_items}.")
    if world.n_types > 1:
        raise InvalidArgumentError(
            "moves along links need clusters without types: use a world with n_types=1."
        )


def link_arrays(links: LinkGraph, strict: bool) -> dict[str, Any]:
    """Return the arrays of programs that follow links."""
    return {
        "start": links.start,
        "neighbor": links.neighbor,
        "graph": [links.neighbor.ctypes.data],
        "turn": np.zeros(2, np.int64),
        "strict": [int(strict)],
    }
