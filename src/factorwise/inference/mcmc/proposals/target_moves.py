"""Proposals for matchings, permutations and trees.

Each is a program (see `factorwise.kernels.structures.moves`), which compiled walks and ``draw`` both follow;
`Mixture` combines them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from factorwise.errors import InvalidArgumentError, require
from factorwise.inference.mcmc.parts import ProgramProposer, Surroundings
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.structures import moves
from factorwise.world.kinds import check_kind
from factorwise.world.structures import Matching, Tree
from factorwise.world.targets import TargetWorld


def check_order(part: Any, world: Any) -> None:
    """Refuse a world whose items do not exchange their targets."""
    check_kind(part, world)
    if not world.exchanges:
        raise InvalidArgumentError(
            f"{type(part).__name__} needs items in an order, but the world is {world!r}: give a Permutation."
        )


@dataclass(frozen=True)
class Rematch(ProgramProposer):
    """Give a random left item of a `Matching` one of its candidates as partner, or none.

    If the candidate has a partner, the two left items exchange their partners.
    """

    worlds = (Matching,)

    changes = 3

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws an item and a candidate."""
        return Program(draw=moves.draw_match, name="rematching")


@dataclass(frozen=True)
class Exchange(ProgramProposer):
    """Exchange the positions of two random items of a `Permutation`."""

    worlds = (TargetWorld,)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws two items."""
        check_order(self, parts.world)
        return Program(draw=moves.draw_exchange, name="exchanges")


@dataclass(frozen=True)
class Insert(ProgramProposer):
    """Take a random item of a `Permutation` out and insert it elsewhere.

    reach
        The largest number of positions that it moves.
    """

    worlds = (TargetWorld,)

    reach: int = 3

    def __post_init__(self) -> None:
        require(self.reach >= 1, "reach", self.reach, "at least 1")

    @property
    def changes(self) -> int:  # type: ignore[override]
        """How many changes a move may have."""
        return self.reach

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws an item and how far it moves."""
        check_order(self, parts.world)
        reach = min(self.reach, parts.world.n_items)
        return Program(draw=moves.draw_insertion, arrays={"reach": [reach]}, name="insertions")


@dataclass(frozen=True)
class Reattach(ProgramProposer):
    """Move a random item of a `Tree` to another parent, with everything below it."""

    worlds = (Tree,)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws an item and a parent."""
        return Program(draw=moves.draw_parent, name="reattaching")
