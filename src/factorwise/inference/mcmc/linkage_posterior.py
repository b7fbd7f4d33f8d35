"""What else the clustering of linked items could be: several chains from the best one found.

Chains walk by exact steps at a temperature that makes probabilities honest (see `learning.linkage`). Of every
linked pair they give the probability of being together; of the doubtful groups the clusterings that came up
most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from factorwise.errors import require
from factorwise.inference.mcmc.linkage import LinkWalk
from factorwise.kernels.threads import Team
from factorwise.types import Ints

SURE = 0.01  # a pair is doubtful if its probability is further than this from 0 and from 1
AT_ONCE = 64  # items of a group whose labels are compared with each other's in all draws at once


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


class Alternatives(NamedTuple):
    """A group of items whose clustering is in doubt, and the two clusterings that came up most.

    best, second
        A label for each item, the place of its cluster's first among them: of the clustering that came up
        most, and of the next.
    chances
        The shares of the draws in which they did.
    """

    items: NDArray[np.int64]
    best: NDArray[np.int32]
    second: NDArray[np.int32]
    chances: tuple[float, float]


def link_posterior(
    walk: LinkWalk,
    *,
    temperature: float = 1.0,
    chains: int = 4,
    draws: int = 100,
    burn_in: int = 50,
    thin: int = 2,
    jumps: float = 0.2,
    seed: int = 0,
    team: Team,
) -> LinkPosterior:
    """Draw clusterings by ``chains`` chains from where ``walk`` is, which stays there."""
    for name, value in (("chains", chains), ("draws", draws), ("thin", thin)):
        require(value >= 1, name, value, "at least 1")
    labels = np.empty((chains, draws, walk.n_items), np.int32)
    alone = Team(1)

    def work(low: int, high: int) -> None:
        for chain in range(low, high):
            mine = walk.copy()
            mine.place_shards(np.zeros(walk.n_items, np.int32))
            for number in range(burn_in + draws * thin):
                mine.sweep(seed, number, temperature, team=alone, jumps=jumps, strict=True, stream=chain + 1)
                kept = number - burn_in + 1
                if kept > 0 and kept % thin == 0:
                    labels[chain, kept // thin - 1] = mine.labels

    team.share(chains, work)
    graph = walk.graph
    together = np.zeros(len(graph.first), np.float32)
    for draw in labels.reshape(-1, walk.n_items):
        together += draw[graph.first] == draw[graph.second]
    return LinkPosterior(labels, together / np.float32(chains * draws))


def alternatives(posterior: LinkPosterior, walk: LinkWalk, most: int = 1_000) -> list[Alternatives]:
    """Return the groups of items that doubtful pairs connect, the most doubtful first, ``most`` at most."""
    graph, found = walk.graph, walk.labels
    pairs = posterior.doubtful()
    if not len(pairs):
        return []
    n = walk.n_items
    ties = coo_array(
        (np.ones(len(pairs)), (found[graph.first[pairs]], found[graph.second[pairs]])), shape=(n, n)
    )
    group = connected_components(ties, directed=False)[1][found]
    wanted = list(dict.fromkeys(group[graph.first[pairs]].tolist()))[:most]
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], wanted), np.searchsorted(group[order], wanted, side="right")
    draws = posterior.labels.reshape(-1, n)
    return [_two_best(order[a:b], draws[:, order[a:b]]) for a, b in zip(*starts, strict=True)]


def _two_best(items: NDArray[np.int64], draws: NDArray[np.int32]) -> Alternatives:
    """Count the clusterings of some items; the label of a cluster is where its first item stands."""
    if len(items) <= AT_ONCE:
        firsts = np.argmax(draws[:, :, None] == draws[:, None, :], axis=2)
    else:
        firsts = np.array([_first_places(draw) for draw in draws])
    kinds, counts = np.unique(firsts, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    second = kinds[order[min(1, len(order) - 1)]]
    share = counts[order] / len(draws)
    chances = float(share[0]), float(share[1]) if len(share) > 1 else 0.0
    return Alternatives(items, kinds[order[0]].astype(np.int32), second.astype(np.int32), chances)


def _first_places(labels: NDArray[np.int32]) -> NDArray[np.int64]:
    _, firsts, number = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(firsts[number])
