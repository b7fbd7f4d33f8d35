"""Combine the decisions of people into groups of records that are one entity, and pairs that are not.

A decision about two records that were shown with context records is certain only for the two. Its context
records stay with them unless another decision contradicts this. If decisions contradict each other, the
earlier one holds, and the later one is a conflict, whose question is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.constraints import Constraints
from factorwise.store.store import ALL_BUT, DIFFERENT, SAME
from factorwise.types import Ints


class Verdicts:
    """Groups of records that are one entity, and pairs of records that are not.

    conflicts
        Decisions that contradict earlier ones.
    asked
        The last answer about each pair of records, the smaller record first.
    """

    def __init__(self, decisions: Iterable[Mapping[str, Any]] = ()) -> None:
        self._parent: dict[int, int] = {}
        self._apart: dict[int, set[int]] = {}  # for each group, the groups that it must not join
        self.conflicts: list[Mapping[str, Any]] = []
        self.asked: dict[tuple[int, int], str] = {}
        for decision in decisions:
            self.add(decision)

    def add(self, decision: Mapping[str, Any]) -> bool:
        """Add a decision from `Store.decisions`; return False if it contradicts others."""
        parts: Sequence[Sequence[int]] = decision["parts"]
        answer = str(decision["answer"])
        firsts = [part[0] for part in parts]
        shown = firsts if answer in (SAME, DIFFERENT) else [row for part in parts for row in part]
        first = len(parts[0]) if answer == ALL_BUT else len(shown)  # pairs of the others stay unknown
        for place, one in enumerate(shown[:first]):
            for two in shown[place + 1 :]:
                self.asked[min(one, two), max(one, two)] = answer
        if answer == SAME:
            fits = all(self._tie(firsts[0], other) for part in parts for other in part)
        elif answer == DIFFERENT:
            fits = all(self._tie(part[0], other) for part in parts for other in part)
            fits &= all(self._separate(a, b) for k, a in enumerate(firsts) for b in firsts[k + 1 :])
        elif answer == ALL_BUT:
            fits = all(self._tie(firsts[0], other) for other in parts[0])
            fits &= all(self._separate(firsts[0], other) for part in parts[1:] for other in part)
        else:
            return True
        for part, context in zip(parts, decision.get("context", ()), strict=False):
            if answer == SAME:
                for other in context:
                    self._tie(part[0], other)
        if not fits:
            self.conflicts.append(decision)
        return fits

    def group(self, record: int) -> int:
        """Return the first record of the group that is known to be one entity with a record."""
        root = record
        while self._parent.get(root, root) != root:
            root = self._parent[root]
        while self._parent.get(record, record) != root:
            self._parent[record], record = root, self._parent[record]
        return root

    def are_apart(self, one: int, two: int) -> bool:
        """Return whether two records are known to belong to different entities."""
        other = self.group(two)
        return any(self.group(record) == other for record in self._apart.get(self.group(one), ()))

    def known(self, one: int, two: int) -> bool | None:
        """Return whether two records are one entity; None if this is not known."""
        if self.group(one) == self.group(two):
            return True
        return False if self.are_apart(one, two) else None

    def known_pairs(self, first: Ints, second: Ints) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return which of some pairs of records are known, and whether these are matches."""
        spoken = np.zeros(max(int(first.max(initial=-1)), int(second.max(initial=-1))) + 1, np.bool_)
        records = np.array([*self._parent, *self._parent.values(), *self._apart], np.int64)
        spoken[records[records < len(spoken)]] = True
        places = np.flatnonzero(spoken[first] & spoken[second])
        said = [self.known(int(first[place]), int(second[place])) for place in places]
        kept = np.array([one is not None for one in said], np.bool_)
        return places[kept], np.array([one for one in said if one is not None], np.bool_)

    def within(self, rows: Ints) -> Constraints:
        """Return the verdicts on some sorted records, as constraints in their positions."""
        places = {record: place for place, record in enumerate(np.asarray(rows).tolist())}
        must, cannot = [], []
        for record, place in places.items():
            root = self.group(record)
            if root != record and root in places:
                must.append((places[root], place))
            cannot += [(place, places[other]) for other in self._apart.get(record, ()) if other in places]
        return Constraints(must=_pairs(must), cannot=_pairs(cannot))

    def _tie(self, one: int, two: int) -> bool:
        first, second = self.group(one), self.group(two)
        if first == second:
            return True
        if self.are_apart(one, two):
            return False
        low, high = min(first, second), max(first, second)
        self._parent[high] = low
        self._apart.setdefault(low, set()).update(self._apart.pop(high, ()))
        for record in self._apart[low]:  # groups are listed by their first records
            mirror = self._apart.setdefault(self.group(record), set())
            mirror.discard(high)
            mirror.add(low)
        return True

    def _separate(self, one: int, two: int) -> bool:
        first, second = self.group(one), self.group(two)
        if first == second:
            return False
        self._apart.setdefault(first, set()).add(second)
        self._apart.setdefault(second, set()).add(first)
        return True


def _pairs(found: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(found, np.int64).reshape(-1, 2)
