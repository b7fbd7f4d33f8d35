"""Prior knowledge of a clustering as pairs: these belong together, those do not. No labels are needed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from factorwise.errors import InvalidArgumentError
from factorwise.learning.preferences import checked_items
from factorwise.world.diff import PartitionDiff, Retype
from factorwise.world.partition import Partition

Pair = tuple[int, int]
Links = Mapping[int, list[tuple[int, int]]]


class ConstraintPreference:
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

    def __init__(self, must_link: Iterable[Pair] = (), cannot_link: Iterable[Pair] = ()) -> None:
        self.must_link, self.cannot_link = _distinct(must_link), _distinct(cannot_link)
        both = self.must_link & self.cannot_link
        if both:
            raise InvalidArgumentError(
                f"pair {min(both)} is in must_link and in cannot_link: leave it out of one of them."
            )

    def watch(self, world: Partition) -> ConstraintJudge:
        """Start judging a walk from ``world``."""
        outside = [pair for pair in self.must_link | self.cannot_link if pair[1] >= world.n_items]
        if outside:
            raise InvalidArgumentError(
                f"pair {min(outside)} names an item that the world does not have: items run from 0 to"
                f" {world.n_items - 1}."
            )
        links: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        kept = 0
        for pairs, worth in ((self.must_link, 1), (self.cannot_link, -1)):
            for first, second in pairs:
                links[first].append((second, worth))
                links[second].append((first, worth))
                kept += (world.labels[first] == world.labels[second]) == (worth > 0)
        return ConstraintJudge(links, len(self.must_link) + len(self.cannot_link), kept, world.n_items)


class ConstraintJudge:
    """The constraints kept along one walk.

    links
        By item, each item that it has a constraint with: 1 if they must be together, -1 if they must not.
    """

    def __init__(self, links: Links, total: int, kept: int, n_items: int) -> None:
        self.links = links
        self.total = total
        self.kept = kept
        self.n_items = n_items

    @property
    def value(self) -> float:
        """Share of constraints kept; nan where there are none."""
        return self.kept / self.total if self.total else math.nan

    def gain(self, world: Partition, diff: PartitionDiff) -> float:
        """Change of the share of constraints kept under ``diff``."""
        return self._more_kept(world, diff) / self.total if self.total else 0.0

    def applied(self, world: Partition, diff: PartitionDiff) -> None:
        """Bring the share up to date with ``diff``, about to be applied."""
        self.kept += self._more_kept(world, diff)

    def _more_kept(self, world: Partition, diff: PartitionDiff) -> int:
        if isinstance(diff, Retype):
            return 0
        moving = set(checked_items(world, diff, self.n_items).tolist())
        more = 0
        for item in moving:
            for other, worth in self.links.get(item, ()):
                cluster = world.labels[other]
                if cluster == diff.target:
                    more += worth
                elif cluster == diff.source and other not in moving:
                    more -= worth
        return more


def _distinct(pairs: Iterable[Pair]) -> frozenset[Pair]:
    """Pairs with the smaller item first, each once."""
    listed = [(min(pair), max(pair)) for pair in pairs]
    for first, second in listed:
        if first == second or first < 0:
            raise InvalidArgumentError(
                f"a constraint joins two different items, but pair {(first, second)} was given."
            )
    return frozenset((int(first), int(second)) for first, second in listed)
