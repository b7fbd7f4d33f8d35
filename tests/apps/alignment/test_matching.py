"""Candidate pairs as a model: the best one-to-one matching, and the search for any other."""

from itertools import combinations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.apps.alignment.matching import (
    BIAS,
    CROWDING,
    DISCOURAGED,
    FORBIDDEN,
    MATCHES,
    ConceptPairs,
    annealed_matching,
    best_matching,
    concept_mover,
    matching_model,
    starting_weights,
    training_world,
)
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.io.ontologies.ontology import Concept, Ontology
from factorwise.world.partition import Partition

EDGES = [(0, 3), (0, 4), (1, 4), (1, 5), (2, 5)]  # a path through three concepts of each side


def graph(n_left, n_right, edges, scores):
    """Candidates of one feature, the score itself."""
    values = np.array(scores, dtype=np.float64).reshape(-1, 1)
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return ConceptPairs(n_left, n_right, ends, values, ("score",))


def model_of(candidates, weight=1.0, crowding=FORBIDDEN):
    model = matching_model(candidates)
    model.weights = model.blocks.flat({MATCHES: [weight], CROWDING: [crowding, crowding]})
    return model


def is_one_to_one(edges):
    return len(set(edges[:, 0].tolist())) == len(set(edges[:, 1].tolist())) == len(edges)


def largest_sum(candidates, scores):
    """The best of all one-to-one matchings, by trying every set of pairs."""
    best = 0.0
    for size in range(1, min(candidates.n_left, candidates.n_right) + 1):
        for chosen in map(list, combinations(range(len(scores)), size)):
            if is_one_to_one(candidates.edges[chosen]):
                best = max(best, float(scores[chosen].sum()))
    return best


@st.composite
def graphs(draw):
    """Small graphs; scores from few values, so that ties are common, or from many."""
    n_left, n_right = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    every = [(a, n_left + b) for a in range(n_left) for b in range(n_right)]
    edges = draw(st.lists(st.sampled_from(every), unique=True, max_size=9))
    values = st.one_of(st.integers(-2, 2), st.integers(-1000, 1000)).map(lambda k: k / 8.0)
    scores = draw(st.lists(values, min_size=len(edges), max_size=len(edges)))
    return graph(n_left, n_right, edges, scores)


@settings(max_examples=300)
@given(graphs())
def test_the_best_matching_is_the_best_of_all_one_to_one_matchings(candidates):
    scores = candidates.features[:, 0]
    chosen = best_matching(candidates, scores)
    assert scores[chosen].sum() == largest_sum(candidates, scores)  # eighths are summed without rounding
    assert is_one_to_one(candidates.edges[chosen])
    assert (scores[chosen] > 0).all()
    assert (np.diff(chosen) > 0).all()
    assert chosen.dtype == np.int64


@given(graphs())
def test_the_best_matching_has_the_score_of_the_best_clustering(candidates):
    """Exactly what the model of the clustering says, crowded clusters being forbidden."""
    scores = candidates.features[:, 0] / 64.0  # less than a crowded cluster costs
    small = graph(candidates.n_left, candidates.n_right, candidates.edges, scores)
    if small.n_concepts > 5:
        return
    model = model_of(small)
    best = max(model.score(world) for world in all_partitions(small.n_concepts))
    assert scores[best_matching(small, scores)].sum() == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1.0, 1.0, 1.0, 1.0, 1.0], [0, 2, 4]),  # all tied: as many as can be
        ([1.0, 5.0, 1.0, 1.5, 1.0], [1, 3]),  # a strong pair takes the concepts of two others
        ([1.0, 1.25, 1.0, 1.25, 1.0], [0, 2, 4]),  # the greedy choice would be worse
        ([-1.0, -1.0, -1.0, -1.0, -1.0], []),
        ([0.0, 0.0, 0.0, 0.0, 0.0], []),
        ([-1.0, 0.0, 2.0, -3.0, 0.0], [2]),
    ],
)
def test_matchings_worked_out_by_hand(scores, expected):
    candidates = graph(3, 3, EDGES, scores)
    assert best_matching(candidates, np.array(scores)).tolist() == expected


def test_no_candidates_have_no_matches():
    nothing = graph(2, 3, [], [])
    assert best_matching(nothing, np.zeros(0)).tolist() == []
    assert annealed_matching(nothing, model_of(nothing), steps=10, seed=0).tolist() == []


def test_a_large_matching_is_as_good_as_that_of_another_library():
    n = 200
    rng = np.random.default_rng(0)
    edges = sorted({(a, n + (a + step) % n) for a in range(n) for step in rng.integers(0, 9, 2).tolist()})
    scores = rng.normal(size=len(edges))
    candidates = graph(n, n, edges, scores)
    chosen = best_matching(candidates, scores)
    other = networkx.Graph()
    other.add_weighted_edges_from((a, b, score) for (a, b), score in zip(edges, scores, strict=True))
    expected = sum(other.edges[pair]["weight"] for pair in networkx.max_weight_matching(other))
    assert is_one_to_one(candidates.edges[chosen])
    assert scores[chosen].sum() == pytest.approx(expected)


@pytest.mark.parametrize("scores", [[1.0, 5.0, 1.0, 1.25, 1.0], [1.0, 1.25, 1.0, 1.25, 1.0], [-1.0] * 5])
def test_annealing_agrees_with_the_exact_matching_on_a_small_task(scores):
    candidates = graph(3, 3, EDGES, scores)
    found = annealed_matching(candidates, model_of(candidates), steps=4_000, seed=1)
    assert found.tolist() == best_matching(candidates, np.array(scores)).tolist()


def test_where_crowding_costs_nothing_every_good_pair_is_found():
    candidates = graph(3, 3, EDGES, [1.0] * 5)
    free = annealed_matching(candidates, model_of(candidates, crowding=0.0), steps=4_000, seed=1)
    assert free.tolist() == [0, 1, 2, 3, 4]


def test_pairs_of_one_cluster_are_matches_even_if_only_others_hold_it_together():
    """Concept 0 would rather not be with concept 4, but 3 and 1 pull both into one cluster."""
    candidates = graph(2, 3, [(0, 2), (0, 3), (1, 2), (1, 3)], [2.0, -1.0, 2.0, 2.0])
    model = model_of(candidates, crowding=-0.5)
    found = annealed_matching(candidates, model, steps=4_000, seed=1)
    assert found.tolist() == [0, 1, 2, 3]


@given(st.integers(0, 4), st.integers(0, 4))
def test_a_crowded_cluster_counts_every_further_concept_of_a_side(left, right):
    if left + right == 0:
        return
    candidates = graph(4, 4, [(0, 4)], [1.0])
    apart = list(range(1, 9 - left - right))
    members = [*range(left), *range(4, 4 + right)]
    labels = np.zeros(8, np.int64)
    labels[[item for item in range(8) if item not in members]] = apart
    model = matching_model(candidates)
    statistics = model.statistics(Partition.from_keys(labels)).to_dense(3)
    assert statistics.tolist() == [float(left > 0 and right > 0), max(left - 1, 0), max(right - 1, 0)]


def test_crowded_clusters_are_forbidden_or_discouraged_from_the_beginning():
    candidates = graph(3, 3, EDGES, [1.0] * 5)
    blocks, first = matching_model(candidates).blocks, np.array([0.5])
    strict, free = (blocks.flat(starting_weights(first, one_to_one=flag)) for flag in (True, False))
    assert strict.tolist() == [0.5, FORBIDDEN, FORBIDDEN]
    assert free.tolist() == [0.5, DISCOURAGED, DISCOURAGED]


def test_a_world_to_learn_from_has_a_cluster_for_each_entity():
    candidates = graph(3, 3, EDGES, [1.0] * 5)
    entity = np.array([0, 1, 2, 0, 1, 9])
    world = training_world(candidates, entity, metric="rand")
    assert world.start.n_clusters == 6
    assert world.truth.dense_labels().tolist() == [0, 1, 2, 0, 1, 3]
    assert world.preference.watch(world.start).value == pytest.approx(13 / 15)
    assert world.preference.watch(world.truth).value == 1.0


def test_concepts_move_to_their_candidates_and_nowhere_else():
    start = Partition.singletons(6)
    joined = set()
    for proposal in concept_mover(graph(3, 3, EDGES, [1.0] * 5)).support(start):
        if proposal.diff is not None:
            joined |= {
                tuple(cluster) for cluster in start.after(proposal.diff).clusters() if len(cluster) > 1
            }
    assert {tuple(sorted(pair)) for pair in joined} == set(EDGES)


def ontology(prefix, *labels):
    return Ontology(tuple(Concept(f"{prefix}{n}", label) for n, label in enumerate(labels)))


def test_candidates_number_the_right_side_after_the_left_and_end_with_the_bias():
    found = ConceptPairs.of(ontology("a", "heart", "upper lip"), ontology("b", "lip", "zebra", "heart"))
    assert (found.n_left, found.n_right, found.n_concepts) == (2, 3, 5)
    assert {tuple(edge) for edge in found.edges.tolist()} >= {(0, 4), (1, 2)}
    assert found.edges[:, 0].max() < 2 <= found.edges[:, 1].min()
    assert found.names[-1] == BIAS
    assert found.features.shape == (len(found.edges), len(found.names))
    assert (found.features[:, -1] == 1.0).all()


def test_ontologies_with_nothing_in_common_have_no_candidates():
    found = ConceptPairs.of(ontology("a", "zebra"), ontology("b", "fjord"))
    assert found.edges.shape == (0, 2)
    assert found.features.shape == (0, len(found.names))


def test_some_pairs_are_taken_with_the_concepts_they_name():
    candidates = graph(3, 3, EDGES, [1.0, 2.0, 3.0, 4.0, 5.0])
    kept, concepts = candidates.taken(np.array([False, True, False, False, True]))
    assert concepts.tolist() == [0, 2, 4, 5]
    assert (kept.n_left, kept.n_right) == (2, 2)
    assert kept.edges.tolist() == [[0, 2], [1, 3]]
    assert concepts[kept.edges].tolist() == [[0, 4], [2, 5]]
    assert kept.features[:, 0].tolist() == [2.0, 5.0]
    assert kept.names == candidates.names
    everything, concepts = candidates.taken(np.ones(5, bool))
    assert concepts.tolist() == list(range(6))
    assert everything.edges.tolist() == candidates.edges.tolist()
