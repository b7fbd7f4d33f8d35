"""The model of one discourse: a clustering of its mentions, scored cluster by cluster, learned and searched.

Every cluster has first-order features: for each feature of two mentions, whether it holds for all pairs of
the cluster, for some, for most, how often on average, and how many times; and features of the cluster as a
whole, such as having no name or two genders. What a ranker of antecedents says is among both, and has a say
in the entities that are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from factorwise.apps.coreference.cluster_features import cluster_templates, opening_template
from factorwise.apps.coreference.documents import Discourse
from factorwise.apps.coreference.pair_features import pair_table
from factorwise.apps.coreference.ranking import Antecedents
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
    SplitMerge,
)
from factorwise.inference.mcmc.run import anneal
from factorwise.inference.mcmc.schedules import Geometric
from factorwise.learning.samplerank.preferences import MetricName, TruthPreference
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.model.clusterings.cluster_templates import ClusterSize
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition

AGGREGATES = ("count", "all", "exists", "majority", "mean")
HOT, COLD = 0.6, 0.006  # temperatures between which the search cools down, in typical gains
RANKED, LEAST = 0.7, 0.4  # weight of the ranker against the search, and least chance of two to be together
PROBES = 100  # proposals that say what gain is typical

Answer = TypeVar("Answer")


def discourse_model(
    discourse: Discourse,
    aggregates: Sequence[str] = AGGREGATES,
    *,
    table: PairTable | None = None,
    antecedents: Antecedents | None = None,
) -> Model:
    """Return the model of one discourse, with weights of zero.

    table
        The features of its pairs, where they have been computed already.
    antecedents
        What a ranker says of it, as more features of pairs and clusters.
    """
    table = pair_table(discourse) if table is None else table
    templates = [*cluster_templates(discourse), ClusterSize()]
    if antecedents is not None:
        table = table.with_features(antecedents.pair_features())
        templates.append(opening_template(antecedents.opens()))
    return Model([PairTableTemplate("pairs", table, aggregates), *templates])


def mention_mover() -> PartitionMixture:
    """Move a random mention: to the cluster of another one, to a random cluster, to one of its own."""
    return PartitionMixture([RelocateToItem(), RelocateToCluster(), RelocateToNew()], [0.6, 0.3, 0.1])


def training_world(
    discourse: Discourse,
    *,
    aggregates: Sequence[str] = AGGREGATES,
    metric: MetricName = "b-cubed",
    table: PairTable | None = None,
    antecedents: Antecedents | None = None,
) -> TrainingWorld:
    """Return one discourse to learn from: walks start with every mention by itself."""
    truth = discourse.truth()
    return TrainingWorld(
        model=discourse_model(discourse, aggregates, table=table, antecedents=antecedents),
        proposer=mention_mover(),
        start=Partition.singletons(len(truth)),
        preference=TruthPreference(truth, metric),
        truth=Partition.from_keys(truth),
        name=discourse.name,
    )


def search(model: Model, n_mentions: int, *, steps: int, seed: int) -> NDArray[np.int64]:
    """Return the clusters of the best clustering that annealing finds, numbered in the order of the text.

    Beside moving mentions it splits and merges clusters. What is hot and cold depends on how large the
    weights are, which learners do not agree on, so temperatures are multiples of a typical gain.
    """
    if n_mentions == 1:
        return np.zeros(1, np.int64)
    start = Partition.singletons(n_mentions)
    moves = PartitionMixture(
        [RelocateToItem(), RelocateToCluster(), RelocateToNew(), SplitMerge()], [0.55, 0.3, 0.1, 0.05]
    )
    scale = typical_gain(model, start, Stream(seed))
    found = anneal(
        Metropolis(model, moves),
        start,
        steps=steps,
        schedule=Geometric(HOT * scale, COLD * scale),
        threads=1,
        seed=seed,
        progress=False,
    )
    return np.asarray(found.best.dense_labels())


def settle(antecedents: Antecedents, found: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the entities on which a ranker and a search agree, numbered in the order of the text.

    Clusters are merged, the likeliest first, as long as their mentions are together with a chance of at least
    `LEAST` on average: a mean of the ranker's probability and of whether the search put them together.
    """
    if len(found) == 1:
        return found
    chance = RANKED * antecedents.together() + (1.0 - RANKED) * (found[:, None] == found)
    tree = linkage(squareform(1.0 - chance, checks=False), "average")
    return np.asarray(Partition.from_keys(fcluster(tree, 1.0 - LEAST, "distance")).dense_labels())


def typical_gain(model: Model, world: Partition, stream: Stream) -> float:
    """Return the median size of the gains of some proposals from ``world``; 1 where they are all zero."""
    mover = mention_mover()
    proposals = [mover.draw(stream, world).diff for _ in range(PROBES)]
    gains = [abs(model.gain(world, diff)) for diff in proposals if diff is not None]
    return float(np.median(gains)) or 1.0 if gains else 1.0


def in_threads(work: Callable[[Discourse], Answer], given: Sequence[Discourse], threads: int) -> list[Answer]:
    """Do the same for each discourse, several at a time; the answers do not depend on how many."""
    if threads == 1:
        return [work(one) for one in given]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, given))
