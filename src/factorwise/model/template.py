"""Templates: families of factors that share weights.

A template defines the statistics of a whole world, and how a diff changes them, computed only from the
factors that the diff touches. `factorwise.testing.check_template` compares the second with the first by brute
force. Scores that carry no weight (fixed log-potentials, hard constraints) are the template's ``constant``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Self, TypeVar, get_args, get_origin

from factorwise.errors import TemplateError
from factorwise.model.contributions import Contributions
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Int64s

WorldType = TypeVar("WorldType", contravariant=True)
DiffType = TypeVar("DiffType", contravariant=True)


class Template(Generic[WorldType, DiffType]):
    """A family of factors with tied weights; subclasses override the first three methods.

    name
        The name of its block of weights.
    size
        How many weights the block has.
    """

    name: str
    size: int
    #: The class that lays out templates of this kind for a walk, if they have a method ``add_to``.
    layout: Any
    #: The kinds of worlds that it supports, by default those of ``Template[world, diff]``; empty for any
    #: kind.
    worlds: ClassVar[tuple[type[Any], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in vars(cls).get("__orig_bases__", ()):
            kind = get_args(base)[0] if get_origin(base) is Template else Any
            if isinstance(kind, type) and kind is not Any:
                cls.worlds = (kind,)

    def statistics(self, world: WorldType) -> SparseVector:
        """Return the sum of the statistics of all factors; indices count from the start of its block."""
        raise NotImplementedError(f"{type(self).__name__} does not define its statistics")

    def difference(self, world: WorldType, diff: DiffType) -> SparseVector:
        """Return the statistics after ``diff`` minus those before it, from the touched factors only."""
        raise NotImplementedError(f"{type(self).__name__} does not define what a diff touches")

    def weight_name(self, index: int) -> str:
        """Return the name of weight ``index`` of the block, in words for people."""
        return f"{self.name}[{index}]"

    def constant(self, world: WorldType) -> float:
        """Return the score of ``world`` that no weight multiplies; ``-inf`` forbids it."""
        return 0.0

    def constant_gain(self, world: WorldType, diff: DiffType) -> float:
        """Return the change of `constant` under ``diff``, from the touched factors only."""
        return 0.0

    def restrict_to(self, items: Int64s) -> Self:
        """Return the template for some items of a clustering: its factors among these items alone.

        items
            Ascending; in the template that is returned they are renumbered from 0.

        Shards need this: the score of a clustering must be the sum of the scores of its shards, each of which
        consists of whole clusters.
        """
        raise TemplateError(
            f"template {self.name!r} ({type(self).__name__}) cannot be restricted to some of the items,"
            " which walks in shards need: give it a method restrict_to(items) that returns the"
            " template for these items alone, renumbered from 0 in the order given."
        )

    def contributions(
        self, world: WorldType, diff: DiffType, weights: Float64s, *, bounds: bool = False
    ) -> Contributions:
        """List the touched factors one by one, under ``weights``, the weights of this template.

        bounds
            Also return an upper limit of each change.
        """
        raise TemplateError(
            f"template {self.name!r} ({type(self).__name__}) does not list the factors that a diff"
            " touches, so an evaluator cannot sample them: use evaluator=Exact(), or give the template"
            " a method contributions(world, diff, weights)."
        )


def finite_difference(after: float, before: float) -> float:
    """Return ``after - before``, where either may be ``-inf``.

    Leaving a forbidden world is always accepted, entering one never.
    """
    if after == float("-inf"):
        return after
    if before == float("-inf"):
        return float("inf")
    return after - before


AnyTemplate = Template[Any, Any]
