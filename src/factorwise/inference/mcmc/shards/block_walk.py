"""Walking over items in blocks that never meet, several blocks at a time, in threads.

Blocks are gathered into parts, and each part is a walk by itself, under the model of its items. What it does
depends on the stream and on the number of the part alone: the result is the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.partition_moves import Blocks, Relocate
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.compile.threads import Team
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.validation import check_count, check_number
from factorwise.world.partition import Partition

PARTS = 64  # more than threads, so that one slow part does not hold up the rest


def relocate_in_turn(model: Model, blocks: Blocks) -> Metropolis:
    """Return the kernel that visits blocks in turn, and moves items to clusters of others or to new ones."""
    return Metropolis(model, Relocate(to_item=0.9, to_new=0.1, blocks=blocks, in_turn=True))


class BlockWalk:
    """A clustering on its way, by sweeps over the items of all blocks.

    model
        Of all items; its factors must lie within clusters, see `Model.restrict_to`.
    blocks
        Groups of items that may be together at all.
    world
        Where to start: clusters lie within blocks.
    kernel
        ``kernel(model, blocks)`` of some of the blocks: how their items take steps. It must not bring items
        of different blocks together.
    most
        Into how many parts the blocks go at most. Like the seed it is a matter of the configuration: another
        number gives another walk.

    parts
        The items of each part, ascending.
    """

    def __init__(
        self,
        model: Model,
        blocks: Blocks,
        world: Partition,
        *,
        kernel: Callable[[Model, Blocks], Any] = relocate_in_turn,
        most: int = PARTS,
    ) -> None:
        check_count("most", most)
        blocks.check(world)
        self.n_items = world.n_items
        cuts = np.linspace(0, self.n_items, min(most, len(blocks.start) - 1) + 1)
        edges = np.unique(np.searchsorted(blocks.start, cuts))
        self.parts = [np.sort(blocks.item[blocks.start[a] : blocks.start[b]]) for a, b in pairwise(edges)]
        self._walks = [
            Walk(
                kernel(model.restrict_to(items), Blocks.from_keys(blocks.of[items])),
                Partition.from_keys(world.labels[items]),
            )
            for items in self.parts
        ]

    def sweep(self, stream: Stream, temperature: float, *, team: Team, sweeps: int = 1) -> int:
        """Take ``sweeps`` steps for each item; return how many changed the clustering.

        The random numbers of a part come from one number drawn here and from the part.
        """
        check_number("temperature", temperature, above=0)
        check_count("sweeps", sweeps)
        root, changed = stream.bits(), np.zeros(len(self._walks), np.int64)

        def work(low: int, high: int) -> None:
            for part in range(low, high):
                steps = sweeps * len(self.parts[part])
                changed[part] = self._walks[part].advance(Stream(root, part), temperature, steps)

        team.share(len(self._walks), work)
        return int(changed.sum())

    @property
    def score(self) -> float:
        """Score of the clustering."""
        return float(sum(walk.score for walk in self._walks))

    @property
    def labels(self) -> NDArray[np.int64]:
        """The cluster of each item, named by its smallest member."""
        found = np.empty(self.n_items, np.int64)
        for items, walk in zip(self.parts, self._walks, strict=True):
            _, first, cluster = np.unique(walk.view.labels, return_index=True, return_inverse=True)
            found[items] = items[first][cluster]
        return found

    @property
    def world(self) -> Partition:
        """The clustering (a copy)."""
        return Partition.from_keys(self.labels)
