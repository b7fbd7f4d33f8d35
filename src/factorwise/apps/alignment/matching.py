"""The model of an alignment: a clustering of the concepts of two ontologies.

Concepts in one cluster match. Candidate pairs have features. A cluster may contain one concept of each side;
if matches may be many to many, each further concept has a learned weight instead. Sets of matches that make a
class unsatisfiable are forbidden by a factor for each, which is added when the set is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from factorwise.apps.alignment.candidates import candidate_pairs
from factorwise.apps.alignment.coherence import ConflictTemplate, Disjointness
from factorwise.apps.alignment.concepts import ConceptTable
from factorwise.apps.alignment.features import PairEvidence, PairFeatures
from factorwise.apps.alignment.lexicon import Lexicon
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
CONFLICTS = "unsatisfiable classes"
BIAS = "any match"
DISCOURAGED = -1.0  # initial weight of each further concept of a side, in many-to-many matching
# score of each set of conflicting matches, and of each further concept in one-to-one matching
FORBIDDEN = -1e3


@dataclass(frozen=True, slots=True, eq=False)
class ConceptPairs:
    """Candidate pairs of concepts with their features.

    n_left, n_right
        Number of concepts on each side; those on the right are numbered from ``n_left`` on.
    edges : int64[pairs, 2]
        Left and right concept of each pair.
    features : float64[pairs, features]
        The last feature is the bias, which is 1.
    names
        The name of each feature.
    disjointness
        Disjointness axioms; None to ignore them.
    evidence
        Evidence from which the features can be computed again; None if they do not change.
    """

    n_left: int
    n_right: int
    edges: NDArray[np.int64]
    features: NDArray[np.float64]
    names: tuple[str, ...]
    disjointness: Disjointness | None = None
    evidence: PairEvidence | None = None

    @classmethod
    def of(cls, left: Ontology, right: Ontology) -> ConceptPairs:
        """Generate the candidate pairs of two ontologies and their features."""
        ours, theirs = ConceptTable.of(left), ConceptTable.of(right)
        lexicon = Lexicon.of(ours, theirs)
        pairs = candidate_pairs(ours, theirs, lexicon=lexicon)
        evidence = PairEvidence(ours, theirs, pairs, lexicon=lexicon)
        edges, disjointness = pairs + np.array([0, len(ours)]), Disjointness.of(ours, theirs)
        features, names = _with_bias(evidence.features())
        return cls(len(ours), len(theirs), edges, features, names, disjointness, evidence)

    def judged_by(self, matches: NDArray[np.int64]) -> ConceptPairs:
        """Return the pairs with features that use these matches (indices of pairs) as anchors."""
        if self.evidence is None:
            return self
        return replace(self, features=_with_bias(self.evidence.features(matches))[0])

    def conflicts(self, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return sets of the chosen pairs, by index, that make a class unsatisfiable."""
        if self.disjointness is None:
            return []
        return [chosen[list(some)] for some in self.disjointness.conflicts(self.edges[chosen])]

    def taken(self, chosen: NDArray[np.bool_]) -> tuple[ConceptPairs, NDArray[np.int64]]:
        """Return the chosen pairs with renumbered concepts, and the previous indices of the concepts."""
        edges = self.edges[chosen]
        concepts = np.unique(edges)
        n_left = int(np.searchsorted(concepts, self.n_left))
        kept = ConceptPairs(
            n_left,
            len(concepts) - n_left,
            np.searchsorted(concepts, edges).astype(np.int64),
            self.features[chosen],
            self.names,
        )
        return kept, concepts

    @property
    def n_concepts(self) -> int:
        """Number of concepts of both sides."""
        return self.n_left + self.n_right


def _with_bias(found: PairFeatures) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    return np.hstack([found.values, np.ones((len(found.values), 1))]), (*found.names, BIAS)


def matching_model(candidates: ConceptPairs) -> Model:
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


def concept_mover(candidates: ConceptPairs) -> PartitionMixture:
    """Return a proposal that moves a random concept to a candidate's cluster or to a new one."""
    to_candidate = RelocateToCandidate.from_pairs(candidates.n_concepts, candidates.edges)
    return PartitionMixture([to_candidate, RelocateToNew()], [0.7, 0.3])


def starting_weights(matches: NDArray[np.float64], *, one_to_one: bool) -> dict[str, NDArray[np.float64]]:
    """Return the initial weights of features, and of further concepts of a side in a cluster."""
    return {MATCHES: matches, CROWDING: np.full(2, FORBIDDEN if one_to_one else DISCOURAGED)}


def training_world(
    candidates: ConceptPairs, entity: NDArray[np.int64], *, metric: MetricName = "pairwise"
) -> TrainingWorld:
    """Return two ontologies as training data; concepts with the same ``entity`` match."""
    return TrainingWorld(
        model=matching_model(candidates),
        proposer=concept_mover(candidates),
        start=Partition.singletons(candidates.n_concepts),
        preference=TruthPreference(entity, metric),
        truth=Partition.from_keys(entity),
        name="alignment",
    )


def best_matching(candidates: ConceptPairs, scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the pairs, by index, of the exact MAP one-to-one matching without unsatisfiable classes.

    Conflicts are added as constraints until none is violated. A matching that is optimal under some of the
    constraints and violates none of the others is optimal under all of them (a cutting-plane method).
    """
    conflicts: list[NDArray[np.int64]] = []
    while True:
        chosen = _best_under(candidates, scores, conflicts)
        broken = candidates.conflicts(chosen)
        if not broken:
            return chosen
        conflicts += broken


def _best_under(
    candidates: ConceptPairs, scores: NDArray[np.float64], conflicts: Sequence[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Return the best one-to-one matching that contains none of the conflicts completely.

    It contains only pairs with a positive score. They form small connected components, each of which is an
    assignment problem, or a 0-1 linear program if it has conflicts.
    """
    positive = np.flatnonzero(scores > 0)
    edges = candidates.edges
    linked = [np.column_stack([np.full(len(some), edges[some[0], 0]), edges[some, 0]]) for some in conflicts]
    ends = np.concatenate([edges[positive], *linked])
    n = candidates.n_concepts
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    _, component = connected_components(graph, directed=False)
    part = component[edges[positive, 0]]
    order = np.argsort(part, kind="stable")
    limits: dict[int, list[NDArray[np.int64]]] = {}
    for some in conflicts:
        limits.setdefault(int(component[edges[some[0], 0]]), []).append(some)
    chosen = [np.zeros(0, np.int64)]
    for group in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        pairs = positive[group]
        within = limits.get(int(part[group[0]]), []) if len(group) else []
        if within:
            places = [np.searchsorted(pairs, some) for some in within]  # pairs are sorted
            chosen.append(pairs[_solve(edges[pairs], scores[pairs], places)])
        else:
            chosen.append(pairs if len(pairs) < 2 else pairs[_assign(edges[pairs], scores[pairs])])
    return np.sort(np.concatenate(chosen))


def _assign(edges: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indices of the edges with the highest total score, no two of which share an end."""
    rows, row = np.unique(edges[:, 0], return_inverse=True)
    columns, column = np.unique(edges[:, 1], return_inverse=True)
    worth = np.zeros((len(rows), len(columns)))
    number = np.full(worth.shape, -1, np.int64)
    worth[row, column] = scores
    number[row, column] = np.arange(len(edges))
    taken = number[linear_sum_assignment(worth, maximize=True)]
    return np.asarray(taken[taken >= 0])


def _solve(
    edges: NDArray[np.int64], scores: NDArray[np.float64], limits: Sequence[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Return the indices of the best edges: no two share an end, and no limit is included completely."""
    _, ends = np.unique(edges, return_inverse=True)
    ends = ends.reshape(edges.shape)
    sets = [*(np.flatnonzero((ends == end).any(axis=1)) for end in range(ends.max() + 1)), *limits]
    most = np.array([1] * (len(sets) - len(limits)) + [len(some) - 1 for some in limits], dtype=np.float64)
    start = np.cumsum([0, *map(len, sets)])
    matrix = csr_array((np.ones(start[-1]), np.concatenate(sets), start), shape=(len(sets), len(edges)))
    solved = milp(
        -scores,
        integrality=np.ones(len(edges)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, ub=most),
        options={"mip_rel_gap": 0.0},
    )
    if solved.x is None:  # this cannot happen without a time limit
        raise AssertionError(solved.message)
    return np.flatnonzero(solved.x > 0.5)


def annealed_matching(candidates: ConceptPairs, model: Model, *, steps: int, seed: int) -> NDArray[np.int64]:
    """Return the pairs, by index, that are in one cluster of the best clustering found by annealing.

    No class is unsatisfiable by it: factors for the conflicts that occur are added, and the search restarts
    from the beginning, because continuing from the previous clustering gives worse results.
    """
    start = Partition.singletons(candidates.n_concepts)
    conflicts: list[NDArray[np.int64]] = []
    while True:
        kernel = Metropolis(_with_conflicts(model, candidates, conflicts), concept_mover(candidates))
        labels = anneal(kernel, start, steps=steps, threads=1, seed=seed, progress=False).best.labels
        chosen = np.flatnonzero(labels[candidates.edges[:, 0]] == labels[candidates.edges[:, 1]])
        broken = candidates.conflicts(chosen)
        if not broken:
            return chosen
        conflicts += broken


def _with_conflicts(model: Model, candidates: ConceptPairs, conflicts: Sequence[NDArray[np.int64]]) -> Model:
    """Return the model with a factor for each conflict."""
    if not conflicts:
        return model
    template = ConflictTemplate(CONFLICTS, [candidates.edges[some] for some in conflicts])
    return Model([*model.templates, template], np.append(model.weights, FORBIDDEN))
