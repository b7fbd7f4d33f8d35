"""What a template is: a family of factors that share weights.

A template says two things: the statistics of a whole world, and how a diff changes them, computed from the
factors that the diff touches and no others. `factorwise.testing.check_template` compares the second with
the first by brute force. Scores that carry no weight (fixed log-potentials, hard constraints) are the
template's ``constant``.
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
    #: What lays out templates of this kind for a walk, where they have a method ``add_to``.
    layout: Any
    #: The kinds of worlds that it is for, by default those of ``Template[world, diff]``; none for any.
    worlds: ClassVar[tuple[type[Any], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in vars(cls).get("__orig_bases__", ()):
            kind = get_args(base)[0] if get_origin(base) is Template else Any
            if isinstance(kind, type) and kind is not Any:
                cls.worlds = (kind,)

    def statistics(self, world: WorldType) -> SparseVector:
        """Sum of the statistics of all factors in ``world``; indices are local to the block."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its statistics are")

    def difference(self, world: WorldType, diff: DiffType) -> SparseVector:
        """Statistics after ``diff`` minus statistics before it, from the touched factors only."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a diff touches")

    def weight_name(self, index: int) -> str:
        """Return what weight ``index`` of the block stands for, in words for people."""
        return f"{self.name}[{index}]"

    def constant(self, world: WorldType) -> float:
        """Score of ``world`` that no weight multiplies; ``-inf`` forbids it."""
        return 0.0

    def constant_gain(self, world: WorldType, diff: DiffType) -> float:
        """Change of `constant` under ``diff``, from the touched factors only."""
        return 0.0

    def restrict_to(self, items: Int64s) -> Self:
        """Return the same template for some items of a clustering: its factors among these items alone.

        items
            Ascending; in the template that is returned they are numbered from 0.

        Shards need it: the score of a clustering must be the sum of the scores of its shards, of which each
        has whole clusters.
        """
        raise TemplateError(
            f"template {self.name!r} ({type(self).__name__}) does not say what it is for some of the items,"
            " which walks in shards need: give it a method restrict_to(items) that returns the template for"
            " these items alone, numbered from 0 in the order given."
        )

    def contributions(
        self, world: WorldType, diff: DiffType, weights: Float64s, *, bounds: bool = False
    ) -> Contributions:
        """List the touched factors one by one, under ``weights``, the template's own block.

        bounds
            Say what each change cannot exceed, too.
        """
        raise TemplateError(
            f"template {self.name!r} ({type(self).__name__}) does not list the factors that a diff touches,"
            " so no evaluator can choose among them: use evaluator=Exact(), or give the template a method"
            " contributions(world, diff, weights)."
        )


def finite_difference(after: float, before: float) -> float:
    """``after - before`` where either may be ``-inf``: a forbidden world is left at once, never entered."""
    if after == float("-inf"):
        return after
    if before == float("-inf"):
        return float("inf")
    return after - before


AnyTemplate = Template[Any, Any]
