"""How likely the two parts of a merge are one entity: three numbers, learned on held-out entities.

A merge tree (see `factorwise.inference.merge_trees`) leads from single records over the entities that were
found to unions of these. The log odds that a node is of one entity, if what lies above it is not, are linear
in the mean score between its two parts, and higher by a constant where the search has joined them. So the
evidence of many pairs, which is hardly ever independent, counts as one piece of evidence. The numbers are
those under which the true entities are most probable as cuts of the tree: maximum likelihood, with a prior
that matters where held-out entities are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.merge_trees import SURE, MergeTree, grow_merge_tree
from factorwise.types import Bools, Floats, Ints
from factorwise.validation import as_number

SPREAD = (1.0, 0.5, 2.0)  # standard deviations of the prior, around the defaults
ROUNDS = 50  # of Newton's method
UNKNOWN, MIXED = -1, -2


class MergeOdds(NamedTuple):
    """Log odds that a node of a merge tree is of one entity, if the node above it is not.

    offset, mean
        Of every node, and for each unit of the mean score between its parts.
    joined
        Added where the search has joined the parts.
    lowest
        Entities that were found are joined no further where the mean score is lower: there, no held-out
        entity was in two parts.

    The defaults are typical of what labels gave on tables of persons, schools, authors and citations.
    """

    offset: float = 0.0
    mean: float = 0.6
    joined: float = 1.0
    lowest: float = -1.0

    def chances(self, tree: MergeTree) -> NDArray[np.float64]:
        """Return for each node the probability that it is one entity, if none above it is."""
        odds = merge_features(tree) @ np.array(self[:3])
        chance = 1.0 / (1.0 + np.exp(-np.clip(odds, -700.0, 700.0)))
        outer = np.arange(len(chance)) >= tree.n_inner
        chance[outer & ((tree.mean < self.lowest) | (chance < SURE))] = 0.0
        chance[~tree.possible] = 0.0
        chance[: tree.n_items] = 1.0
        return np.asarray(chance, np.float64)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what ``_asdict`` gave."""
        return cls(*(as_number(name, values[name]) for name in cls._fields))


DEFAULT_ODDS = MergeOdds()


class MergeCases(NamedTuple):
    """The nodes of a tree that truth decides from the top down: roots, and parts of what is not one entity.

    node
        Which they are.
    same
        Whether each is of one entity.
    """

    node: NDArray[np.int64]
    same: Bools


def tree_of_walk(walk: LinkWalk) -> MergeTree:
    """Return the merge tree around the clustering of a walk."""
    return grow_merge_tree(
        walk.graph, walk.link_scores, walk.labels, counts=walk.counts, sources=walk.sources
    )


def merge_features(tree: MergeTree) -> Floats:
    """Return what the log odds of nodes are linear in: float[nodes, 3]."""
    inner = np.arange(len(tree.mean)) < tree.n_inner
    mean = np.clip(tree.mean, -1e6, 1e6)
    return np.column_stack([np.ones(len(mean)), mean, inner])


def decided_merges(tree: MergeTree, truth: Ints, judged: Bools) -> MergeCases:
    """Return the nodes that true entities decide.

    truth
        Entity of each item, -1 where it is not known.
    judged
        Items that shall be learned from: nodes without any are left out.
    """
    entity = np.append(truth, np.full(len(tree.mean) - tree.n_items, UNKNOWN)).astype(np.int64)
    learned = np.append(judged, np.zeros(len(tree.mean) - tree.n_items, np.bool_))
    for node in range(tree.n_items, len(tree.mean)):
        one, two = entity[tree.left[node]], entity[tree.right[node]]
        learned[node] = learned[tree.left[node]] or learned[tree.right[node]]
        if one == UNKNOWN or two == UNKNOWN:
            entity[node] = max(one, two) if MIXED not in (one, two) else MIXED
        else:
            entity[node] = one if one == two else MIXED
    both = np.zeros(len(entity), np.bool_)
    both[tree.n_items :] = (entity[tree.left[tree.n_items :]] != UNKNOWN) & (
        entity[tree.right[tree.n_items :]] != UNKNOWN
    )
    reached = (tree.parent < 0) | (entity[tree.parent] == MIXED)
    decided = np.flatnonzero(both & reached & learned & tree.possible & np.isfinite(tree.mean))
    return MergeCases(decided, entity[decided] != MIXED)


def fit_merge_odds(tree: MergeTree, cases: MergeCases) -> MergeOdds:
    """Learn the odds from decided merges by maximum likelihood, with a prior around the defaults."""
    center, precision = np.array(DEFAULT_ODDS[:3]), np.diag(1.0 / np.square(SPREAD))
    outer = cases.node >= tree.n_inner
    mean = tree.mean[cases.node]
    lowest = float(mean[outer & cases.same].min(initial=0.0))
    used = ~outer | (mean >= lowest)
    features, same = merge_features(tree)[cases.node[used]], cases.same[used].astype(np.float64)
    weights = center.copy()
    for _ in range(ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(features @ weights, -30.0, 30.0)))
        slope = features.T @ (same - chance) - precision @ (weights - center)
        curvature = (features * (chance * (1.0 - chance))[:, None]).T @ features + precision
        step = np.linalg.solve(curvature, slope)
        weights = weights + step / max(1.0, float(np.abs(step).max()))
        if float(np.abs(step).max()) < 1e-8:
            break
    offset, slope_of_mean, joined = weights.tolist()
    return MergeOdds(offset, slope_of_mean, joined, lowest)
