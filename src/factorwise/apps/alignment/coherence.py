"""Find conflicting matches, which together make a class unsatisfiable, so that it can have no instances.

Ontologies state that some classes are disjoint, so that nothing is in both. A match makes two classes
equivalent, so the descendants of one are also below the ancestors of the other. Matches conflict if they put
a class below two disjoint ones and it was not before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.alignment.concepts import ConceptTable
from factorwise.kernels.compile.programs import Program
from factorwise.model.target_templates import WholeWorldTemplate
from factorwise.model.weights import SparseVector
from factorwise.variables.sparse_rows import starts_of
from factorwise.world.partition import Partition

_FAR = 1 << 40  # length of a missing path, in matches


@dataclass(frozen=True, eq=False)
class Disjointness:
    """Disjointness in two ontologies; the concepts of the second are numbered after those of the first.

    parents
        Indices of the parents of each concept in its own ontology.
    disjoint
        Pairs of disjoint concepts.
    """

    parents: tuple[tuple[int, ...], ...]
    disjoint: tuple[tuple[int, int], ...]
    _bits: dict[int, int] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def of(cls, left: ConceptTable, right: ConceptTable) -> Disjointness:
        """Combine the hierarchies and the disjointness axioms of two ontologies."""
        parents = [*left.parents, *(tuple(above + len(left) for above in some) for some in right.parents)]
        stated = [*left.disjoint, *((a + len(left), b + len(left)) for a, b in right.disjoint)]
        return cls(tuple(parents), tuple(dict.fromkeys(stated)))

    def conflicts(self, edges: NDArray[np.int64]) -> list[tuple[int, ...]]:
        """Return small sets of edges, by index, that make a class unsatisfiable; empty if no edges do.

        At least one set is returned if there is a conflict, and no set is returned twice.
        """
        if not self.disjoint or not len(edges):
            return []
        same: list[list[tuple[int, int]]] = [[] for _ in self.parents]
        for number, (a, b) in enumerate(edges.tolist()):
            same[a].append((b, number))
            same[b].append((a, number))
        broken = self._broken(same)
        found = {self._shortest(pair, concepts, same) for pair, concepts in broken.items()}
        return sorted(found)

    @cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        below: list[list[int]] = [[] for _ in self.parents]
        for concept, above in enumerate(self.parents):
            for parent in above:
                below[parent].append(concept)
        return tuple(map(tuple, below))

    @cached_property
    def _stated(self) -> list[int]:
        """Concepts that are disjoint from at least one other."""
        return sorted({concept for pair in self.disjoint for concept in pair})

    @cached_property
    def _empty_before(self) -> frozenset[int]:
        """Concepts that are unsatisfiable even without matches."""
        none: list[list[tuple[int, int]]] = [[] for _ in self.parents]
        above = self._above(none)
        return frozenset(concept for concept, bits in above.items() if self._clashes(bits))

    def _broken(self, same: Sequence[Sequence[tuple[int, int]]]) -> dict[tuple[int, int], list[int]]:
        """Return for each violated disjoint pair the concepts that the matches put below both."""
        broken: dict[tuple[int, int], list[int]] = {}
        for concept, bits in self._above(same).items():
            if concept not in self._empty_before:
                for pair in self._clashes(bits):
                    broken.setdefault(pair, []).append(concept)
        return broken

    def _above(self, same: Sequence[Sequence[tuple[int, int]]]) -> dict[int, int]:
        """Return for each concept, as bits, the concepts in disjoint pairs that it is or is below."""
        above = {concept: 1 << bit for bit, concept in enumerate(self._stated)}
        waiting = deque(above)
        while waiting:
            concept = waiting.popleft()
            bits = above[concept]
            for below in (*self._children[concept], *(other for other, _ in same[concept])):
                known = above.get(below, 0)
                if known | bits != known:
                    above[below] = known | bits
                    waiting.append(below)
        return above

    def _clashes(self, bits: int) -> list[tuple[int, int]]:
        """Return the disjoint pairs whose concepts are both in a set of bits."""
        if bits.bit_count() < 2:
            return []
        place = self._place
        return [(a, b) for a, b in self.disjoint if bits >> place[a] & bits >> place[b] & 1]

    @cached_property
    def _place(self) -> dict[int, int]:
        return {concept: bit for bit, concept in enumerate(self._stated)}

    def _shortest(
        self, pair: tuple[int, int], concepts: Sequence[int], same: Sequence[Sequence[tuple[int, int]]]
    ) -> tuple[int, ...]:
        """Return the edges on shortest paths that put one of the concepts below both of a pair."""
        walks = [self._downwards(top, same) for top in pair]
        lowest = min(concepts, key=lambda concept: sum(walk[concept][0] for walk in walks))
        edges = set()
        for walk in walks:
            concept = lowest
            while walk[concept][1] >= 0:
                _, concept, edge = walk[concept]
                edges.add(edge)
        return tuple(sorted(edges - {-1}))

    def _downwards(
        self, top: int, same: Sequence[Sequence[tuple[int, int]]]
    ) -> dict[int, tuple[int, int, int]]:
        """Return the descendants of a concept with number of edges, predecessor, and edge (-1 for is-a)."""
        reached = {top: (0, -1, -1)}
        waiting = deque([top])
        while waiting:  # is-a steps have no cost and are taken first
            concept = waiting.popleft()
            far = reached[concept][0]
            for below in self._children[concept]:
                if far < reached.get(below, (_FAR,))[0]:
                    reached[below] = (far, concept, -1)
                    waiting.appendleft(below)
            for other, edge in same[concept]:
                if far + 1 < reached.get(other, (_FAR,))[0]:
                    reached[other] = (far + 1, concept, edge)
                    waiting.append(other)
        return reached


class ConflictTemplate(WholeWorldTemplate):
    """Counts the conflicts that occur: sets of pairs in which the items of every pair are in one cluster.

    conflicts
        Sets of pairs, int[pairs, 2] each.
    """

    worlds = (Partition,)
    size = 1

    def __init__(self, name: str, conflicts: Sequence[NDArray[np.int64]]) -> None:
        self.name = name
        self.conflicts = list(conflicts)

    def weight_name(self, index: int) -> str:
        """Return the name of the only weight."""
        return self.name

    def statistics(self, world: Partition) -> SparseVector:
        """Count the conflicts of which all pairs are in one cluster."""
        labels = world.labels
        whole = sum(bool((labels[pairs[:, 0]] == labels[pairs[:, 1]]).all()) for pairs in self.conflicts)
        return SparseVector.from_dense(np.array([whole], dtype=np.float64))

    def program(self, world: Partition, offset: int, weights: NDArray[np.float64]) -> Program:
        """Return the compiled program, which indexes the conflicts of each item."""
        member: list[list[int]] = [[] for _ in range(world.n_items)]
        for number, pairs in enumerate(self.conflicts):
            for item in np.unique(pairs).tolist():
                member[item].append(number)
        arrays = {
            "first": starts_of([len(pairs) for pairs in self.conflicts]),
            "pair": np.concatenate([np.zeros((0, 2), np.int64), *self.conflicts]),
            "begin": starts_of([len(some) for some in member]),
            "conflict": np.array([number for some in member for number in some], dtype=np.int64),
            "weights": weights,
            "offset": [offset],
        }
        return Program(name=self.name, gain=_conflict_gain, arrays=arrays)


def _conflict_gain(world: Any, mine: Any, move: Any) -> float:
    """Return the score gain of a move, from the item's conflicts; plain loops, because it is compiled."""
    gained = 0.0
    for k in range(mine.begin[move.item], mine.begin[move.item + 1]):
        conflict = mine.conflict[k]
        before = after = 1.0
        for row in range(mine.first[conflict], mine.first[conflict + 1]):
            a, b = mine.pair[row, 0], mine.pair[row, 1]
            mine_a, mine_b = world.label[a], world.label[b]
            if mine_a != mine_b:
                before = 0.0
            if a == move.item:
                mine_a = move.target
            if b == move.item:
                mine_b = move.target
            if mine_a != mine_b:
                after = 0.0
        gained += after - before
    return float(gained * mine.weights[mine.offset[0]])
