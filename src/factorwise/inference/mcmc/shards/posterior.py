"""What else the clustering of linked items could be: short chains from the best one found.

Chains walk by exact steps at a temperature that makes their shares probabilities (see
`apps.resolution.training.temperature`). Only items in doubt take steps: those that one would move, and the
members of clusters that could well be one; all others, mostly many more, stay where they are. Chains are
short because long ones at such a temperature drift into clusterings that are far worse than the one they
began with, all of them more scattered; a short walk around it tells more truly which pairs belong together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import require
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.kernels.compile.threads import Team
from factorwise.types import Bools, Ints

SURE = 0.01  # a pair is doubtful if its probability is further than this from 0 and from 1
MERGING = 0.1  # odds from which on two clusters could well be one
CHAINS, BURN_IN, DRAWS = 4, 3, 10


class LinkPosterior(NamedTuple):
    """Draws from several chains.

    labels : int32[chains, draws, items]
        The clusters, each named by its smallest member.
    together : float32[pairs]
        The share of the draws in which the items of each linked pair are in one cluster.
    """

    labels: NDArray[np.int32]
    together: NDArray[np.float32]

    def doubtful(self) -> NDArray[np.int64]:
        """Return the linked pairs whose probability is neither near 0 nor near 1, the most doubtful first."""
        doubt = np.minimum(self.together, 1.0 - self.together)
        found = np.flatnonzero(doubt > SURE)
        return found[np.argsort(-doubt[found], kind="stable")]

    def traces(self, first: Ints, second: Ints) -> NDArray[np.bool_]:
        """Return whether the items of some pairs are together: (chains, draws, pairs)."""
        return np.asarray(self.labels[:, :, first] == self.labels[:, :, second])


def link_posterior(
    walk: LinkWalk,
    *,
    temperature: float = 1.0,
    chains: int = CHAINS,
    draws: int = DRAWS,
    burn_in: int = BURN_IN,
    thin: int = 1,
    jumps: float = 0.05,
    least: float = SURE,
    near: Bools | None = None,
    seed: int = 0,
    team: Team,
    watch: Callable[[int], object] = lambda sweeps: None,
) -> LinkPosterior:
    """Draw clusterings by ``chains`` chains from where ``walk`` is, which stays there.

    least
        Chance to move from which on an item takes part; 0 for all items.
    near
        Items that the draws are wanted for; others take part only in clusters with one of them, or linked to
        one by a score above zero. None for all.
    watch
        Called after each sweep of each chain, from any thread, with the number of all sweeps.
    """
    for name, value in (("chains", chains), ("draws", draws), ("thin", thin)):
        require(value >= 1, name, value, "at least 1")
    start = walk.labels
    labels = np.empty((chains, draws, walk.n_items), np.int32)
    moving = items_in_doubt(walk, temperature, least, team=team)
    if near is not None:
        moving &= _around(walk, near)
    items = np.flatnonzero(moving).astype(np.int32)
    alone, sweeps = Team(1), burn_in + draws * thin

    def work(low: int, high: int) -> None:
        for chain in range(low, high):
            mine = walk.copy(strict=True, items=items)
            for number in range(sweeps):
                if team.stopping:
                    return
                if len(items):
                    mine.sweep(seed, number, temperature, team=alone, jumps=jumps, stream=chain + 1)
                watch(chains * sweeps)
                kept = number - burn_in + 1
                if kept > 0 and kept % thin == 0:
                    labels[chain, kept // thin - 1] = mine.labels

    team.share(chains, work)
    return LinkPosterior(labels, _shares(walk, start, labels.reshape(-1, walk.n_items)))


def items_in_doubt(walk: LinkWalk, temperature: float, least: float, *, team: Team) -> Bools:
    """Return the items that a step would move with more than a chance, and those of clusters that may merge.

    Which clusters may merge follows from the score of their union alone, if there is a link between them.
    """
    from scipy.sparse import coo_array  # here, so that a walk does not load SciPy

    if least <= 0.0:
        return np.ones(walk.n_items, np.bool_)
    graph, (unlinked, cluster) = walk.graph, walk.settings.tolist()
    beyond = walk.beyond()
    moving = walk.home_chances(temperature, team=team) < 1.0 - least
    label, records = walk.shards.label, walk.records()
    one, two = label[graph.first], label[graph.second]
    across = one != two
    ends = np.minimum(one, two)[across], np.maximum(one, two)[across]
    between = coo_array((beyond[across], ends), shape=(len(records), len(records))).tocsr().tocoo()
    one, two = between.coords
    gain = between.data + unlinked * records[one] * records[two] - cluster
    may = gain > temperature * np.log(MERGING)
    merging = np.zeros(len(records), np.bool_)
    merging[one[may]] = merging[two[may]] = True
    return np.asarray(moving | merging[label])


def _around(walk: LinkWalk, near: Bools) -> Bools:
    """Return the items of clusters that have an item near, or one linked to such by a score above zero."""
    label, graph = walk.labels, walk.graph
    rows = np.repeat(near, np.diff(graph.start))
    good = walk.link_scores[graph.pair] > 0.0
    reached = near.copy()
    reached[graph.neighbor[rows & good]] = True
    clusters = np.zeros(walk.n_items, np.bool_)
    clusters[label[reached]] = True
    return clusters[label]


def _shares(walk: LinkWalk, start: Ints, draws: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return in which share of the draws each linked pair is together."""
    first, second = walk.graph.first, walk.graph.second
    moved = np.zeros(walk.n_items, np.bool_)
    for draw in draws:
        moved |= draw != start
    together: NDArray[np.float32] = np.asarray(start[first] == start[second], np.float32)
    changed = np.flatnonzero(moved[first] | moved[second])
    one, two = first[changed], second[changed]
    count = np.zeros(len(changed), np.int32)
    for draw in draws:
        count += draw[one] == draw[two]
    together[changed] = count / np.float32(len(draws))
    return together
