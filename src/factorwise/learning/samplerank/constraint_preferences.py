"""Prior knowledge of a clustering as pairs: these belong together, those do not. No labels are needed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from factorwise.arguments import check_types
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.clusterings import preferences as kernels
from factorwise.kernels.compile.programs import Program
from factorwise.learning.samplerank.preferences import ProgramPreference
from factorwise.world.pairs import both_ends

Pair = tuple[int, int]


class ConstraintPreference(ProgramPreference):
    """Clusterings by the share of constraints they keep.

    must_link
        Pairs of items that belong to one entity.
    cannot_link
        Pairs of items that do not.

    A gain costs the number of constraints on the items that move. Pairs given twice count once.

    >>> from factorwise.world.moves import merge
    >>> world = Partition.singletons(4)
    >>> judge = ConstraintPreference(must_link=[(0, 1)], cannot_link=[(1, 2)]).watch(world)
    >>> [judge.gain(world, merge(world, 1, target)) for target in (0, 2, 3)]
    [0.5, -0.5, 0.0]
    """

    @check_types
    def __init__(self, must_link: Iterable[Pair] = (), cannot_link: Iterable[Pair] = ()) -> None:
        self.must_link, self.cannot_link = _distinct(must_link), _distinct(cannot_link)
        both = self.must_link & self.cannot_link
        if both:
            raise InvalidArgumentError(
                f"pair {min(both)} is in must_link and in cannot_link: leave it out of one of them."
            )

    def program(self, parts: Surroundings) -> Program:
        """Judge one change by the constraints on its item."""
        n_items = parts.world.n_items
        outside = [pair for pair in self.must_link | self.cannot_link if pair[1] >= n_items]
        if outside:
            raise InvalidArgumentError(
                f"pair {min(outside)} names an item that the world does not have: items run from 0 to"
                f" {n_items - 1}."
            )
        pairs = [*sorted(self.must_link), *sorted(self.cannot_link)]
        start, neighbor, pair = both_ends(n_items, np.array(pairs, np.int64).reshape(-1, 2))
        arrays = {
            "start": start,
            "neighbor": neighbor,
            "worth": np.where(pair < len(self.must_link), 1.0, -1.0),
            "total": np.array([len(pairs)], np.int64),
            "kept": np.zeros(1),
        }
        return Program(
            judge=kernels.judge_constraints,
            applied=kernels.constraints_applied,
            begin=kernels.begin_constraints,
            value=kernels.constraints_value,
            arrays=arrays,
            name="constraints on pairs",
        )


def _distinct(pairs: Iterable[Pair]) -> frozenset[Pair]:
    """Pairs with the smaller item first, each once."""
    listed = [(min(pair), max(pair)) for pair in pairs]
    for first, second in listed:
        if first == second or first < 0:
            raise InvalidArgumentError(
                f"a constraint joins two different items, but pair {(first, second)} was given."
            )
    return frozenset((int(first), int(second)) for first, second in listed)
