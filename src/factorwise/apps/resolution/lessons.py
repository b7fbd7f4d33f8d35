"""What weights are learned from, and the entities that are kept apart to judge them by.

Entities kept apart are judged among all the records that they are linked with: by themselves they would be
easier to tell apart than the records of the whole are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.labelled import ComparedLabels, LabelledPairs
from factorwise.metrics.clustering import Tally
from factorwise.model.template import AnyTemplate
from factorwise.types import Bools, Ints
from factorwise.world.links import LinkGraph

PARTS = 5  # one entity in so many is kept apart in a trial, or fewer
MOST_HELD_OUT = 3_000  # records of a trial
JUDGED = 2_000  # records of all trials, if one has fewer
KNOWN_PAIRS = 1_000
FEWEST_HELD_OUT = 8  # entities; with fewer, nothing is kept apart


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """Compared pairs among records whose entities are known (-1 where not), and pairs labelled singly.

    templates
        Further templates over the records.
    """

    graph: LinkGraph
    levels: NDArray[np.uint8]
    entity: NDArray[np.int32]
    labelled: ComparedLabels | None = None
    templates: tuple[AnyTemplate, ...] = ()

    def part(self, records: Ints) -> Lesson:
        """Return what concerns some of the records, ascending, which are numbered anew."""
        graph, pairs = self.graph.restrict_to(records)
        known = self.entity[records]
        dense = np.full(len(known), -1, np.int32)
        dense[known >= 0] = np.unique(known[known >= 0], return_inverse=True)[1]
        chosen = np.zeros(len(self.entity), bool)
        chosen[records] = True
        labelled = None if self.labelled is None else self.labelled.part(chosen)
        templates = tuple(template.restrict_to(np.asarray(records)) for template in self.templates)
        return Lesson(graph, self.levels[pairs], dense, labelled, templates)

    def known_pairs(self, seed: int) -> ComparedLabels | None:
        """Return the pairs that are labelled singly, and if entities are few, some linked pairs of these too.

        Many entities need not make do with what is found without labels.
        """
        if held_out(self.entity, seed):
            return self.labelled
        first, second, entity = self.graph.first, self.graph.second, self.entity
        known = np.flatnonzero((entity[first] >= 0) & (entity[second] >= 0))
        known = np.sort(np.random.default_rng([seed, 5]).permutation(known)[:KNOWN_PAIRS])
        one, two = first[known].astype(np.int64), second[known].astype(np.int64)
        found = ComparedLabels(LabelledPairs(one, two, entity[one] == entity[two]), self.levels[known])
        return found if self.labelled is None else self.labelled.plus(found)

    def linked_with(self, chosen: Bools) -> Bools:
        """Return which records have a link to one of the chosen."""
        first, second = self.graph.first, self.graph.second
        found = np.zeros(len(chosen), bool)
        found[first[chosen[second]]] = True
        found[second[chosen[first]]] = True
        return found


class Trial(NamedTuple):
    """Records to learn from, and records with others around them to judge by.

    judged : bool[records of among]
        Those of ``among`` that are judged; none of them is learned from.
    """

    training: Lesson
    among: Lesson
    judged: Bools

    def score(self, labels: Ints) -> Tally:
        """Judge a clustering of ``among``; others of unknown entities count for nothing."""
        known = self.among.entity >= 0
        true, cluster = self.among.entity[known].astype(np.int64), labels[known].astype(np.int64)
        cells = true * (int(cluster.max()) + 1) + cluster
        _, cell, shared = np.unique(cells, return_inverse=True, return_counts=True)
        both = shared[cell].astype(np.float64)
        chosen = self.judged[known]
        precision = (both / np.bincount(cluster)[cluster])[chosen].sum()
        recall = (both / np.bincount(true)[true])[chosen].sum()
        records = float(chosen.sum())
        return Tally(float(precision), records, float(recall), records)


def trials(lesson: Lesson, seed: int) -> list[Trial]:
    """Return as many trials as it takes to judge enough records: one if there are many, none if too few."""
    found = []
    for apart in held_out(lesson.entity, seed):
        there = apart | lesson.linked_with(apart)
        training, among = (lesson.part(np.flatnonzero(chosen)) for chosen in (~apart, there))
        found.append(Trial(training, among, apart[there]))
    return found


def held_out(entity: Ints, seed: int) -> list[Bools]:
    """Return, for each trial, which records belong to the entities that are kept apart."""
    count, known = int(entity.max(initial=-1)) + 1, int((entity >= 0).sum())
    if count < PARTS * FEWEST_HELD_OUT:
        return []
    parts = max(PARTS, -(-known // MOST_HELD_OUT))
    number = max(1, min(PARTS, JUDGED * parts // known))
    part = np.random.default_rng([seed, 2]).permutation(count) % parts
    return [np.asarray((entity >= 0) & (part[np.maximum(entity, 0)] == k)) for k in range(number)]


def effective_number(entity: Ints) -> float:
    """Return of how many entities of one size records tell as much as these: a few large ones tell little."""
    size = np.unique(entity, return_counts=True)[1].astype(np.float64)
    return float(size.sum() ** 2 / (size**2).sum())
