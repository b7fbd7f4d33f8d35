"""Training data: compared pairs, and the entities of some of the records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.labelled import ComparedLabels
from factorwise.model.template import AnyTemplate
from factorwise.types import Bools, Ints
from factorwise.world.links import LinkGraph


class PairExamples(NamedTuple):
    """Labelled pairs as training examples.

    levels : uint8[pairs, comparisons]
        The comparison levels of each pair.
    same : bool[pairs]
        Whether each pair belongs to one entity.
    share : float64[pairs]
        The sample weight of each pair.
    offset : float64[pairs] or None
        The initial score of each pair; None for zero.
    """

    levels: NDArray[np.uint8]
    same: Bools
    share: NDArray[np.float64]
    offset: NDArray[np.float64] | None = None

    @property
    def teach_nothing(self) -> bool:
        """Whether there is nothing to learn: all pairs match, or none does, or there are no comparisons."""
        return not self.levels.shape[1] or bool(self.same.all()) or not self.same.any()

    def sample(self, most: int, seed: int) -> PairExamples:
        """Sample at most ``most`` pairs, as balanced as possible; each class keeps its sum of shares."""
        kinds = [np.flatnonzero(self.same), np.flatnonzero(~self.same)]
        rare = min(len(kinds[0]), len(kinds[1]), most // 2)
        chosen, share = [], self.share.copy()
        for rows in kinds:
            count = min(len(rows), most - rare)
            drawn = rows
            if count < len(rows):
                drawn = np.random.default_rng([seed, 4]).choice(rows, count, replace=False)
                share[drawn] *= share[rows].sum() / share[drawn].sum()
            chosen.append(drawn)
        rows = np.sort(np.concatenate(chosen))
        offset = None if self.offset is None else self.offset[rows]
        return PairExamples(self.levels[rows], self.same[rows], share[rows], offset)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """Compared pairs of records with their entities (-1 where not known), and single labelled pairs.

    templates
        User-defined templates over the records.
    sources : uint64[records] or None
        Bit of the source of each record, if an entity has one record per source; else None.
    offset : float64[pairs] or None
        The initial score of each compared pair; None for zero.
    """

    graph: LinkGraph
    levels: NDArray[np.uint8]
    entity: NDArray[np.int32]
    labelled: ComparedLabels | None = None
    templates: tuple[AnyTemplate, ...] = ()
    sources: NDArray[np.uint64] | None = None
    offset: NDArray[np.float64] | None = None

    def part(self, records: Ints) -> TrainingData:
        """Restrict the data to some records, given in ascending order, and renumber them from 0 on."""
        graph, pairs = self.graph.restrict_to(records)
        known = self.entity[records]
        dense = np.full(len(known), -1, np.int32)
        dense[known >= 0] = np.unique(known[known >= 0], return_inverse=True)[1]
        chosen = np.zeros(len(self.entity), bool)
        chosen[records] = True
        labelled = None if self.labelled is None else self.labelled.part(chosen)
        templates = tuple(template.restrict_to(np.asarray(records)) for template in self.templates)
        sources = None if self.sources is None else self.sources[records]
        offset = None if self.offset is None else self.offset[pairs]
        return TrainingData(graph, self.levels[pairs], dense, labelled, templates, sources, offset)

    def pair_examples(self, usable: Bools) -> PairExamples:
        """Return the linked pairs of usable records with known entities, and the single labelled pairs."""
        known, same, share = self.known_pairs(usable)
        levels = self.levels[known]
        if self.labelled is not None:
            pairs = self.labelled.pairs
            kept = usable[pairs.first] & usable[pairs.second]
            levels = np.concatenate([levels, self.labelled.levels[kept]])
            same = np.append(same, pairs.same[kept])
            share = np.append(share, np.ones(len(same) - len(share)))
        return PairExamples(levels, same, share, None if self.offset is None else self.offset[known])

    def known_pairs(self, usable: Bools) -> tuple[Ints, Bools, NDArray[np.float64]]:
        """Return linked pairs of usable records with known entities, whether they match, and their shares.

        The matches of a record count for about one pair in all, and so do its non-matches: neither large
        entities nor the many non-matches dominate the fit. If few entities are known, most links between
        two entities lead to a record of unknown entity, so the known non-matches count for more in order
        to represent those as well.
        """
        inside = usable & (self.entity >= 0)
        one, two = self.graph.first, self.graph.second
        known = np.flatnonzero(inside[one] & inside[two])
        first, second = one[known], two[known]
        same = self.entity[first] == self.entity[second]
        share = np.empty(len(same))
        for kind in (same, ~same):
            degree = np.bincount(np.append(first[kind], second[kind]), minlength=len(self.entity))
            share[kind] = 1.0 / np.minimum(degree[first[kind]], degree[second[kind]])
        apart = self.entity[one] != self.entity[two]
        have_others = int((_ends(one[apart], two[apart], len(inside)) & inside).sum())
        with_known = int(_ends(first[~same], second[~same], len(inside)).sum())
        share[~same] *= have_others / max(with_known, 1)
        return known, same, share

    def linked_share(self) -> float:
        """Return the share of linked pairs among all pairs within known entities."""
        first, second, entity = self.graph.first, self.graph.second, self.entity
        same = (entity[first] >= 0) & (entity[first] == entity[second])
        size = np.bincount(entity[entity >= 0]).astype(np.float64)
        return float(same.sum()) / max(float((size * (size - 1.0)).sum()) / 2.0, 1.0)

    def linked_with(self, chosen: Bools) -> Bools:
        """Return which records have a link to a chosen record."""
        first, second = self.graph.first, self.graph.second
        found = np.zeros(len(chosen), bool)
        found[first[chosen[second]]] = True
        found[second[chosen[first]]] = True
        return found


def _ends(first: Ints, second: Ints, count: int) -> Bools:
    """Return which of ``count`` records are in at least one pair."""
    found = np.zeros(count, bool)
    found[first] = True
    found[second] = True
    return found
