"""Small clusterings to learn from, with every kind of factor, and walks over them."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Merge,
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
    RetypeCluster,
    Split,
    SplitMerge,
)
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.model.templates import ClusterSize, ClusterTemplate, EdgeTemplate, PairTemplate
from factorwise.variables.fields import Fields
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition
from partition_cases import TEMPLATES, fields_for

# Whole numbers alone: walks are compared to the last bit where all statistics are.
WHOLE = ("count", "all", "exists", "majority", "linked")
EVERY = (*WHOLE, "mean", "per member")


def table_for(n, features, seed=0, share=0.6):
    """Random truth values; with a large share some clusters have a feature in all their pairs."""
    rng = np.random.default_rng([seed, n, features])
    values = rng.random((n * (n - 1) // 2, features)) < share
    return PairTable(n, [f"f{k}" for k in range(features)], values)


def mixed_model(n, names, tables, aggregates=EVERY, seed=0):
    """A model of templates named as in `partition_cases` and of tables."""
    fields = fields_for(n, seed)
    templates = [TEMPLATES[name](fields) for name in names]
    templates += [PairTableTemplate(f"table {k}", table, aggregates) for k, table in enumerate(tables)]
    size = sum(template.size for template in templates)
    return Model(templates, np.random.default_rng(seed).normal(scale=0.3, size=size))


def agree(a, b):
    return (a.k == b.k, abs(a.v - b.v) < 2)


def mixed_up(cluster):
    return (cluster.size > 3, cluster.k.max() > cluster.k.min(), cluster.type * 1)


MIXTURES = {
    "items": PartitionMixture([RelocateToItem(), RelocateToNew()], [2.0, 1.0]),
    "clusters": PartitionMixture([RelocateToCluster(), RelocateToNew()]),
    "merge and split": PartitionMixture([Merge(), Split()]),
    "split-merge": PartitionMixture([SplitMerge()]),
    "many": PartitionMixture(
        [RelocateToItem(), RelocateToNew(), Merge(), Split(), SplitMerge(), RetypeCluster()],
        [4.0, 1.5, 1.0, 1.0, 1.0, 1.5],
    ),
}


def whole_world(seed, n=9, *, n_types=1, proposer=None, metric="b-cubed"):
    """A world whose statistics are all whole numbers, of every kind of factor, and its noisy truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    same = truth[:, None] == truth
    squares = {}
    for k in range(3):
        square = np.triu(np.where(same, rng.random((n, n)) < 0.7, rng.random((n, n)) < 0.3), 1)
        squares[f"f{k}"] = square | square.T
    fields = Fields(k=truth * (rng.random(n) < 0.7), v=rng.integers(0, 9, n))
    edges = [pair for pair in combinations(range(n), 2) if sum(pair) % 3]
    model = Model(
        [
            PairTableTemplate("table", PairTable.from_squares(squares), WHOLE),
            ClusterSize(),
            PairTemplate("pairs", fields, agree, ["k", "v"]),
            ClusterTemplate("clusters", fields, mixed_up, ["big", "mixed", "type"]),
            EdgeTemplate("edges", n, edges, rng.integers(0, 3, (len(edges), 2)), ["x", "y"]),
        ]
    )
    labels = np.unique(truth, return_inverse=True)[1]
    return TrainingWorld(
        model=model,
        proposer=proposer or MIXTURES["many"],
        start=Partition.singletons(n, n_types=n_types),
        preference=TruthPreference(truth, metric),
        truth=Partition.from_labels(labels, types=np.arange(labels.max() + 1) % n_types, n_types=n_types),
        name=f"world {seed}",
    )


def tell_tale_world(truth, proposer, *, noise=2, seed=0, metric="rand", start=None):
    """A task with a known answer: pairs of one entity look alike, others do not, and there is noise.

    Counting the pairs that look alike and those that do not, weights of +1 and -1 rank every two neighbors
    as Rand does.
    """
    truth = np.asarray(truth)
    n = len(truth)
    same = truth[:, None] == truth
    squares = {"alike": same, "unlike": ~same}
    rng = np.random.default_rng(seed)
    for k in range(noise):
        square = np.triu(rng.random((n, n)) < 0.5, 1)
        squares[f"noise {k}"] = square | square.T
    template = PairTableTemplate("table", PairTable.from_squares(squares), ("count",))
    return TrainingWorld(
        model=Model([template]),
        proposer=proposer,
        start=Partition.singletons(n) if start is None else start,
        preference=TruthPreference(truth, metric),
        truth=Partition.from_keys(truth),
    )


def statistics_of(model, world):
    return model.statistics(world).to_dense(model.blocks.size)
