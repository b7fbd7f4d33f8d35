"""The model of one discourse, which scores a clustering of its mentions, with its training and its search.

Each cluster has first-order features: for each feature of two mentions, whether it holds for all pairs of the
cluster, for some pair, for most, how often on average, and how many times. It also has features of the whole
cluster, such as having no name or two genders. The scores of an antecedent ranker are features of both kinds,
and are also used to choose the final entities.
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
HOT, COLD = 0.6, 0.006  # first and last annealing temperatures, in units of the typical gain
RANKED, LEAST = 0.7, 0.4  # weight of the ranker against the search, and minimum probability to merge clusters
PROBES = 100  # number of proposals from which the typical gain is estimated

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
        The feature table of its pairs, if it has already been computed.
    antecedents
        The scores of a ranker, which become additional features of pairs and clusters.
    """
    table = pair_table(discourse) if table is None else table
    templates = [*cluster_templates(discourse), ClusterSize()]
    if antecedents is not None:
        table = table.with_features(antecedents.pair_features())
        templates.append(opening_template(antecedents.opens()))
    return Model([PairTableTemplate("pairs", table, aggregates), *templates])


def mention_mover() -> PartitionMixture:
    """Return a proposer that moves a mention to another one's cluster, a random one, or a new one."""
    return PartitionMixture([RelocateToItem(), RelocateToCluster(), RelocateToNew()], [0.6, 0.3, 0.1])


def training_world(
    discourse: Discourse,
    *,
    aggregates: Sequence[str] = AGGREGATES,
    metric: MetricName = "b-cubed",
    table: PairTable | None = None,
    antecedents: Antecedents | None = None,
) -> TrainingWorld:
    """Return one discourse as training data; walks start with singleton clusters."""
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
    """Return the best clustering that simulated annealing finds, numbered in the order of the text.

    Proposals move mentions, and split and merge clusters. The scale of weights depends on the learner, so
    temperatures are multiples of a typical gain.
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
    """Return entities that combine a ranker and a search, numbered in the order of the text.

    Clusters are merged by average linkage while the mean probability that their mentions corefer is at least
    `LEAST`. The probability of a pair is a weighted mean of the ranker's and of the search result (1 or 0).
    """
    if len(found) == 1:
        return found
    chance = RANKED * antecedents.together() + (1.0 - RANKED) * (found[:, None] == found)
    tree = linkage(squareform(1.0 - chance, checks=False), "average")
    return np.asarray(Partition.from_keys(fcluster(tree, 1.0 - LEAST, "distance")).dense_labels())


def typical_gain(model: Model, world: Partition, stream: Stream) -> float:
    """Return the median absolute gain of some proposals from ``world``, or 1 if it is zero."""
    mover = mention_mover()
    proposals = [mover.draw(stream, world).diff for _ in range(PROBES)]
    gains = [abs(model.gain(world, diff)) for diff in proposals if diff is not None]
    return float(np.median(gains)) or 1.0 if gains else 1.0


def in_threads(work: Callable[[Discourse], Answer], given: Sequence[Discourse], threads: int) -> list[Answer]:
    """Apply ``work`` to each discourse in threads; the answers do not depend on the number of threads."""
    if threads == 1:
        return [work(one) for one in given]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, given))
