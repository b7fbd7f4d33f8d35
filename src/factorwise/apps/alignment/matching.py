"""The model of two ontologies side by side: a clustering of the concepts of both.

Concepts in one cluster are held to be the same. Candidate pairs bear features; a cluster may hold one concept
of each side, or, if matches may be many to many, pays a learned price for every further one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from factorwise.apps.alignment.candidates import candidate_pairs
from factorwise.apps.alignment.concepts import ConceptTable
from factorwise.apps.alignment.features import pair_features
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import RelocateToCandidate, RelocateToNew
from factorwise.inference.mcmc.run import anneal
from factorwise.io.ontologies.ontology import Ontology
from factorwise.learning.samplerank.preferences import MetricName, TruthPreference
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.model.clusterings.cluster_templates import ClusterTemplate
from factorwise.model.clusterings.partition_templates import EdgeTemplate
from factorwise.model.model import Model
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition

MATCHES, CROWDING = "matches", "further concepts of a side"
BIAS = "any match"
DISCOURAGED = -1.0  # first weight of each further concept of a side where there may be many
FORBIDDEN = -1e3  # score of each further concept of a side where matches are one to one


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Pairs of concepts that may match, with their features.

    n_left, n_right
        Concepts on each side; those on the right are numbered from ``n_left`` on.
    edges : int64[pairs, 2]
        Left and right concept of each pair.
    features : float64[pairs, features]
        The last one is 1: the bias.
    names
        What each feature says.
    """

    n_left: int
    n_right: int
    edges: NDArray[np.int64]
    features: NDArray[np.float64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, left: Ontology, right: Ontology) -> Candidates:
        """Find the candidate pairs of two ontologies and describe them."""
        ours, theirs = ConceptTable.of(left), ConceptTable.of(right)
        pairs = np.asarray(candidate_pairs(ours, theirs), dtype=np.int64).reshape(-1, 2)
        found = pair_features(ours, theirs, pairs)
        values = np.hstack([found.values, np.ones((len(pairs), 1))])
        return cls(len(ours), len(theirs), pairs + np.array([0, len(ours)]), values, (*found.names, BIAS))

    def taken(self, chosen: NDArray[np.bool_]) -> tuple[Candidates, NDArray[np.int64]]:
        """Keep some of the pairs and the concepts they name; return also which concepts those are."""
        edges = self.edges[chosen]
        concepts = np.unique(edges)
        n_left = int(np.searchsorted(concepts, self.n_left))
        kept = Candidates(
            n_left,
            len(concepts) - n_left,
            np.searchsorted(concepts, edges).astype(np.int64),
            self.features[chosen],
            self.names,
        )
        return kept, concepts

    @property
    def n_concepts(self) -> int:
        """Concepts of both sides."""
        return self.n_left + self.n_right


def matching_model(candidates: Candidates) -> Model:
    """Return the model of two ontologies, with weights of zero."""
    side = np.repeat([0, 1], [candidates.n_left, candidates.n_right])
    return Model(
        [
            EdgeTemplate(
                MATCHES, candidates.n_concepts, candidates.edges, candidates.features, candidates.names
            ),
            ClusterTemplate(CROWDING, Fields(side=side), _crowding, ["left", "right"]),
        ]
    )


def _crowding(cluster: Any) -> tuple[Any, ...]:
    right = cluster.side.sum()
    return max(cluster.size - right - 1, 0), max(right - 1, 0)


def concept_mover(candidates: Candidates) -> PartitionMixture:
    """Move a random concept: to the cluster of one of its candidates, or to one of its own."""
    to_candidate = RelocateToCandidate.from_pairs(candidates.n_concepts, candidates.edges)
    return PartitionMixture([to_candidate, RelocateToNew()], [0.7, 0.3])


def starting_weights(matches: NDArray[np.float64], *, one_to_one: bool) -> dict[str, NDArray[np.float64]]:
    """Return the weights to begin with: those of matches, and those against crowded clusters."""
    return {MATCHES: matches, CROWDING: np.full(2, FORBIDDEN if one_to_one else DISCOURAGED)}


def training_world(
    candidates: Candidates, entity: NDArray[np.int64], *, metric: MetricName = "pairwise"
) -> TrainingWorld:
    """Return two ontologies to learn from; concepts of the same ``entity`` match."""
    return TrainingWorld(
        model=matching_model(candidates),
        proposer=concept_mover(candidates),
        start=Partition.singletons(candidates.n_concepts),
        preference=TruthPreference(entity, metric),
        truth=Partition.from_keys(entity),
        name="alignment",
    )


def best_matching(candidates: Candidates, scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the pairs, by number, of the one-to-one matching with the highest sum of scores: the exact MAP.

    Only pairs with a positive score can be in it, and they fall apart into small components, each an
    assignment problem.
    """
    positive = np.flatnonzero(scores > 0)
    edges = candidates.edges[positive]
    n = candidates.n_concepts
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    _, component = connected_components(graph, directed=False)
    order = np.argsort(component[edges[:, 0]], kind="stable")
    borders = np.flatnonzero(np.diff(component[edges[order, 0]])) + 1
    chosen: list[int] = []
    for group in np.split(order, borders):
        if len(group) == 1:
            chosen.append(int(positive[group[0]]))
            continue
        rows, row = np.unique(edges[group, 0], return_inverse=True)
        columns, column = np.unique(edges[group, 1], return_inverse=True)
        worth = np.zeros((len(rows), len(columns)))
        number = np.full(worth.shape, -1, np.int64)
        worth[row, column] = scores[positive[group]]
        number[row, column] = positive[group]
        taken = number[linear_sum_assignment(worth, maximize=True)]
        chosen += taken[taken >= 0].tolist()
    return np.sort(np.array(chosen, dtype=np.int64))


def annealed_matching(candidates: Candidates, model: Model, *, steps: int, seed: int) -> NDArray[np.int64]:
    """Return the pairs, by number, that are together in the best clustering that annealing finds."""
    kernel = Metropolis(model, concept_mover(candidates))
    start = Partition.singletons(candidates.n_concepts)
    labels = anneal(kernel, start, steps=steps, threads=1, seed=seed, progress=False).best.labels
    return np.flatnonzero(labels[candidates.edges[:, 0]] == labels[candidates.edges[:, 1]])
