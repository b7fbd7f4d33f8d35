"""Small models over clusterings with every kind of template, and every sampler for them."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Blocks,
    Merge,
    RelocateToCandidate,
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
    RetypeCluster,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.proposals.restricted_gibbs import RestrictedGibbs
from factorwise.inference.mcmc.world_gibbs import PartitionGibbs
from factorwise.kernels.compile.primitives import overlap
from factorwise.model.model import Model
from factorwise.model.templates import (
    ClusterSize,
    ClusterTemplate,
    EdgeTemplate,
    PairTemplate,
    VectorPairTemplate,
)
from factorwise.variables.fields import Fields
from factorwise.world.diff import NEW, Retype, Transfer
from factorwise.world.partition import Partition


def fields_for(n, seed=0):
    """Whole numbers, truth values, reals, rows of codes and rows of reals."""
    rng = np.random.default_rng(seed)
    coauthors = np.array([rng.permutation(6)[:3] for _ in range(n)])  # none twice in a row; 0 is nothing
    return Fields(
        name=rng.integers(0, 3, n),
        flag=rng.integers(0, 2, n),
        year=rng.normal(size=n),
        coauthors=coauthors,
        vector=rng.normal(size=(n, 5)),
    )


def same_name(a, b):
    return a.name == b.name, (a.flag + b.flag) * 0.25, 1


def year_distance(a, b):
    return abs(a.year - b.year), a.year * b.year > 0.0


def shared_coauthors(a, b):
    return (overlap(a.coauthors, b.coauthors),)


def squared(p, q):
    return (p - q) * (p - q)


def spread(cluster):
    return (
        cluster.year.max() - cluster.year.min(),
        cluster.size == 1,
        cluster.size * cluster.size * 0.1,
    )


def typed_flags(cluster):
    flags = cluster.flag.sum()
    return cluster.type * flags * 0.5, (1.0 if cluster.type == 0 else 0.0)


def name_counts(cluster):
    distinct = 0
    for code in range(3):
        distinct += (cluster.name == code).any()
    return (cluster.name != 0).sum(), cluster.name.min(), cluster.name.max(), distinct


def majority_of_pairs(cluster):
    apart, same_sign, pairs = 0, 0, 0
    for i in range(cluster.size):
        for j in range(i):
            pairs += 1
            apart += abs(cluster.year[i] - cluster.year[j]) > 0.5
            same_sign += cluster.year[i] * cluster.year[j] > 0.0
    return 2 * apart > pairs, 2 * same_sign > pairs


def edges_for(n, seed=1):
    pairs = [pair for pair in combinations(range(n), 2) if sum(pair) % 3]
    return pairs, np.random.default_rng(seed).normal(size=(len(pairs), 2))


PAIR_SETS = {
    "numbers": lambda f: PairTemplate("numbers", f, same_name, ["same name", "flags", "bias"]),
    "reals": lambda f: PairTemplate("reals", f, year_distance, ["distance", "same sign"]),
    "rows": lambda f: PairTemplate("rows", f, shared_coauthors, ["shared"]),
    "vectors": lambda f: VectorPairTemplate("vectors", f, "vector", squared),
    "edges": lambda f: EdgeTemplate("edges", f.n_items, *edges_for(f.n_items), ["first", "second"]),
    "repelling pairs": lambda f: PairTemplate(
        "repelling pairs", f, year_distance, ["distance", "same sign"], repels=True
    ),
    "repelling vectors": lambda f: VectorPairTemplate("repelling vectors", f, "vector", squared, repels=True),
    "repelling edges": lambda f: EdgeTemplate(
        "repelling edges", f.n_items, *edges_for(f.n_items, 2), ["first", "second"], repels=True
    ),
}
CLUSTER_SETS = {
    "sizes": lambda f: ClusterSize("sizes"),
    "clusters": lambda f: ClusterTemplate("clusters", f, spread, ["range", "single", "square"]),
    "typed": lambda f: ClusterTemplate("typed", f, typed_flags, ["flags", "plain"]),
    "counts": lambda f: ClusterTemplate("counts", f, name_counts, ["named", "min", "max", "distinct"]),
    "majority of pairs": lambda f: ClusterTemplate(
        "majority of pairs", f, majority_of_pairs, ["apart", "same sign"]
    ),
}
TEMPLATES = PAIR_SETS | CLUSTER_SETS


def model_of(names, n, seed=0):
    """A model of the named templates with small random weights."""
    fields = fields_for(n, seed)
    templates = [TEMPLATES[name](fields) for name in names]
    size = sum(template.size for template in templates)
    return Model(templates, np.random.default_rng(seed).normal(scale=0.4, size=size))


MODELS = {
    "whole numbers": ("numbers", "sizes"),
    "reals": ("reals", "sizes"),
    "rows": ("rows", "sizes"),
    "vectors": ("vectors", "sizes"),
    "edges": ("edges", "numbers", "sizes"),
    "clusters": ("numbers", "clusters"),
    "aggregates": ("numbers", "counts", "majority of pairs"),
    "repulsion": ("repelling pairs", "repelling vectors", "repelling edges", "sizes"),
    "everything": ("numbers", "rows", "vectors", "edges", "repelling pairs", "clusters", "typed", "counts"),
}


class Recalled:
    """A proposer that enumerates each world once, however often it is asked."""

    def __init__(self, proposer):
        self.proposer = proposer
        self.known = {}

    def support(self, world):
        if id(world) not in self.known:
            self.known[id(world)] = world, list(self.proposer.support(world))
        return self.known[id(world)][1]

    def draw(self, stream, world):
        return self.proposer.draw(stream, world)


class Remembering(Model):
    """A model that keeps the gains it was asked for: enumeration asks for the same ones many times."""

    def __init__(self, model):
        super().__init__(model.templates, model.weights)
        self.known = {}

    def gain(self, world, diff):
        # ids are handles: the same diff means another change where storage differs
        key = (world.labels.tobytes(), world.arrays.type.tobytes(), diff)
        if key not in self.known:
            self.known[key] = super().gain(world, diff)
        return self.known[key]


def all_diffs(world):
    """Every transfer and every change of type."""
    ids = world.cluster_ids().tolist()
    for source in ids:
        members = world.members(source).tolist()
        for size in range(1, len(members) + 1):
            for part in combinations(members, size):
                yield from (Transfer(part, source, target) for target in ids if target != source)
                if size < len(members):
                    yield from (Transfer(part, source, NEW, kind) for kind in range(world.n_types))
        old = world.type_of(source)
        yield from (Retype(source, old, new) for new in range(world.n_types) if new != old)


def nearby(n):
    """Candidates by which every clustering can be reached, though not every pair is one."""
    return RelocateToCandidate.from_pairs(n, [(i, j) for i, j in combinations(range(n), 2) if j - i <= 2])


def halves(n):
    return Blocks.from_keys([0] * (n // 2) + [1] * (n - n // 2))


def within_blocks(world, blocks):
    return all(len(set(blocks.of[members].tolist())) == 1 for members in world.clusters())


def mixtures(model, n):
    """Every mixture of moves that makes sense, by name, with weights that are not all alike."""
    candidates = nearby(n)
    relocations = [RelocateToCluster(), RelocateToItem(), candidates, RelocateToNew()]
    everything = [*relocations, Merge(), Split(), SplitMerge(), RetypeCluster()]
    named = {
        "to cluster": [RelocateToCluster(), RelocateToNew()],
        "to item": [RelocateToItem(), RelocateToNew()],
        "to candidate": [candidates, RelocateToNew()],
        "relocations": relocations,
        "merge and split": [Merge(), Split()],
        "split-merge": [SplitMerge()],
        "restricted, no scan": [RestrictedGibbs(model, 0)],
        "restricted, one scan": [RestrictedGibbs(model, 1)],
        "restricted and more": [RestrictedGibbs(model, 1), Merge(), Split(), RelocateToItem()],
        "retype and merge": [RetypeCluster(), Merge(), Split()],
        "blocks": [RelocateToItem(halves(n)), RelocateToNew()],
        "blocks and more": [RelocateToItem(halves(n)), RelocateToNew(), Split(), RetypeCluster()],
        "candidates and merge": [candidates, Merge(), Split()],
        "all but restricted": everything,
        "everything": [*everything, RestrictedGibbs(model, 1)],
    }
    weights = (1.0, 0.6, 1.7, 0.9, 1.2, 0.5, 1.4, 0.8, 1.1)
    return {name: PartitionMixture(moves, weights[: len(moves)]) for name, moves in named.items()}


def kernels(model, n):
    """Every sampler by name."""
    walks = {name: Metropolis(model, mixture) for name, mixture in mixtures(model, n).items()}
    return {**walks, "gibbs": PartitionGibbs(model)}


MIXTURES = tuple(mixtures(Model([ClusterSize()]), 4))
KERNELS = (*MIXTURES, "gibbs")


def start_for(n, n_types=1):
    """A world within the halves that has clusters of several sizes."""
    labels = np.arange(n) // 3 if n > 9 else np.arange(n)
    labels = np.unique(np.where(np.arange(n) < n // 2, labels, labels + n), return_inverse=True)[1]
    types = np.arange(labels.max() + 1) % n_types
    return Partition.from_labels(labels, types=types, n_types=n_types)
