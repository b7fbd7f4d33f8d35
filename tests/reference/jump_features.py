"""What an adaptive proposer sees of clusters, from the definition: by the statistics of whole worlds."""

import math

import numpy as np

from factorwise.world.moves import merge, relocate
from factorwise.world.partition import Partition


def cluster_row(features, members, n_items):
    """Features of one cluster of two or more, in a world of ``n_items``."""
    model, first = features.model, members[0]
    world = world_with(n_items, members[:1])
    held = np.zeros(model.blocks.size)
    for item in members[1:]:
        joins = relocate(world, item, world.cluster_of(first))
        held += model.difference(world, joins).to_dense(len(held))
        world.apply(joins)
    pairs = len(members) * (len(members) - 1) / 2
    return np.append(held[features.columns] / pairs, math.log(len(members)))


def pair_row(features, first, second, n_items):
    """Features of two clusters, in either order, in a world of ``n_items``."""
    first, second = sorted((sorted(first), sorted(second)))
    world = world_with(n_items, first, second)
    joins = merge(world, world.cluster_of(first[0]), world.cluster_of(second[0]))
    gradient = features.model.difference(world, joins).to_dense(features.model.blocks.size)
    pairs = len(first) * len(second)
    return np.append(gradient[features.columns] / pairs, math.log(pairs))


def world_with(n_items, *clusters):
    """A world with these clusters and every other item by itself."""
    labels = np.arange(n_items)
    for members in clusters:
        labels[list(members)] = members[0]
    return Partition.from_keys(labels)
