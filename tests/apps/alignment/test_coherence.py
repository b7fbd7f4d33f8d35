"""No match makes a class unsatisfiable: against every matching of small ontologies, and in the aligner."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise import OntologyAligner
from factorwise.apps.alignment.coherence import ConflictTemplate, Disjointness
from factorwise.apps.alignment.matching import (
    CROWDING,
    MATCHES,
    ConceptPairs,
    annealed_matching,
    best_matching,
    matching_model,
)
from factorwise.inference.exact import all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import RelocateToItem, RelocateToNew
from factorwise.io.ontologies.ontology import Concept, Ontology
from factorwise.model.model import Model
from factorwise.testing import check_walk
from factorwise.world.partition import Partition


def above(concept, up):
    """All that a concept is below, itself included, over steps of is-a and matches."""
    seen, waiting = {concept}, [concept]
    while waiting:
        for other in up[waiting.pop()]:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def unsatisfiable(knowledge, edges):
    """The classes below two disjoint ones, by the definition."""
    up = [list(parents) for parents in knowledge.parents]
    for a, b in edges:
        up[a].append(b)
        up[b].append(a)
    return {
        concept
        for concept in range(len(up))
        if any({a, b} <= above(concept, up) for a, b in knowledge.disjoint)
    }


def is_coherent(knowledge, edges):
    return unsatisfiable(knowledge, edges) == unsatisfiable(knowledge, [])


@st.composite
def ontologies(draw):
    """Candidates of two small ontologies, each a hierarchy without circles, with disjoint concepts."""
    sizes = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    parents, disjoint = [], []
    for begin, size in zip((0, sizes[0]), sizes, strict=True):
        parents.append(())
        parents += [
            tuple(draw(st.sets(st.integers(begin, begin + k - 1), max_size=2))) for k in range(1, size)
        ]
        every = list(combinations(range(begin, begin + size), 2))
        disjoint += draw(st.lists(st.sampled_from(every), unique=True, max_size=3)) if every else []
    pairs = [(a, b) for a in range(sizes[0]) for b in range(sizes[0], sum(sizes))]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=9))
    score = st.one_of(st.integers(-1, 3), st.integers(-100, 500)).map(lambda k: k / 8.0)
    scores = draw(st.lists(score, min_size=len(edges), max_size=len(edges)))
    ends, values = np.array(edges, np.int64).reshape(-1, 2), np.array(scores).reshape(-1, 1)
    return ConceptPairs(*sizes, ends, values, ("score",), Disjointness(tuple(parents), tuple(disjoint)))


def allowed(candidates):
    """All one-to-one matchings by which no class becomes unsatisfiable."""
    for size in range(len(candidates.edges) + 1):
        for chosen in map(list, combinations(range(len(candidates.edges)), size)):
            edges = candidates.edges[chosen].tolist()
            ends = [end for edge in edges for end in edge]
            if len(set(ends)) == len(ends) and is_coherent(candidates.disjointness, edges):
                yield chosen


@settings(max_examples=400, deadline=None)
@given(ontologies())
def test_the_best_matching_is_the_best_of_all_that_are_coherent(candidates):
    scores = candidates.features[:, 0]
    best = max(scores[chosen].sum() for chosen in allowed(candidates))
    chosen = best_matching(candidates, scores)
    assert chosen.tolist() in allowed(candidates)
    assert scores[chosen].sum() == pytest.approx(best, abs=1e-9)
    assert (scores[chosen] > 0).all()


@settings(max_examples=300)
@given(ontologies())
def test_conflicts_are_conflicts_and_one_is_found_where_there_is_one(candidates):
    knowledge, edges = candidates.disjointness, candidates.edges
    conflicts = knowledge.conflicts(edges)
    assert bool(conflicts) == (not is_coherent(knowledge, edges.tolist()))
    for conflict in conflicts:
        assert not is_coherent(knowledge, edges[list(conflict)].tolist())
    assert len(set(conflicts)) == len(conflicts)


# left: 1 and 2 are below 0, and disjoint; 3 is below 1; right: 5 and 6 are below 4; 7 is below 5
ANIMALS = Disjointness(((), (0,), (0,), (1,), (), (4,), (4,), (5,)), ((1, 2),))
EDGES = np.array([[1, 5], [2, 7], [3, 7], [2, 6]])


def animals(scores):
    return ConceptPairs(4, 4, EDGES, np.array(scores).reshape(-1, 1), ("score",), ANIMALS)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([2.0, 3.0, 1.0, 0.5], [0, 2, 3]),  # 2 is not below 1, though 7 is below 5
        ([1.0, 3.0, 1.0, 0.5], [1]),  # together the other three are worth less
        ([1.5, 3.0, 1.0, -1.0], [1]),
        ([2.0, 1.0, -1.0, -1.0], [0]),
    ],
)
def test_conflicts_worked_out_by_hand(scores, expected):
    candidates = animals(scores)
    assert best_matching(candidates, np.array(scores)).tolist() == expected
    model = matching_model(candidates)
    model.weights = model.blocks.flat({MATCHES: [1.0], CROWDING: [-1e3, -1e3]})
    assert annealed_matching(candidates, model, steps=4_000, seed=0).tolist() == expected


def test_a_class_may_be_unsatisfiable_by_three_matches_of_which_two_are_none():
    """1 is below 0 and 2; 0 is 5, which is 3 by way of 4, and 2 is disjoint from 3."""
    knowledge = Disjointness(((), (0, 2), (), (), (), (4,)), ((2, 3),))
    edges = np.array([[0, 5], [3, 4]])
    assert knowledge.conflicts(edges) == [(0, 1)]
    assert knowledge.conflicts(edges[:1]) == knowledge.conflicts(edges[1:]) == []


def test_what_is_unsatisfiable_before_is_no_fault_of_matches_but_spreads_by_them():
    knowledge = Disjointness(((), (), (0, 1), ()), ((0, 1),))
    assert knowledge.conflicts(np.array([[0, 3]])) == []
    assert knowledge.conflicts(np.array([[2, 3]])) == [(0,)]


def test_the_factor_of_conflicts_walks_right():
    conflicts = [np.array([[0, 1], [2, 3]]), np.array([[1, 3]])]
    model = Model([ConflictTemplate("conflicts", conflicts)], [-0.8])
    scores = {round(model.score(world), 9) for world in all_partitions(4)}
    assert scores == {0.0, -0.8, -1.6}
    mover = PartitionMixture([RelocateToItem(), RelocateToNew()])
    check_walk(Metropolis(model, mover), all_partitions(4))
    assert model.score(Partition.from_keys([0, 0, 1, 1])) == -0.8


def world_of_names(names, apart):
    """A root, two classes that may be disjoint, and two below each; ids begin with a letter of their own."""
    prefix, (first, second, *below) = names
    return Ontology(
        (
            Concept(f"{prefix}:root", "living thing"),
            Concept(
                f"{prefix}:1", first, parents=(f"{prefix}:root",), disjoint=(f"{prefix}:2",) if apart else ()
            ),
            Concept(f"{prefix}:2", second, parents=(f"{prefix}:root",)),
            *(
                Concept(f"{prefix}:{k}", label, parents=(f"{prefix}:{1 + (k > 4)}",))
                for k, label in enumerate(below, 3)
            ),
        )
    )


@pytest.mark.parametrize("one_to_one", [True, False])
def test_the_aligner_leaves_out_what_disjointness_forbids_and_says_so(one_to_one):
    left = ("l", ["animal", "plant", "blue coral", "red lion", "white rose", "green oak"])
    right = ("r", ["animal", "plant", "green oak", "red lion", "white rose", "blue coral"])
    aligner = OntologyAligner(one_to_one=one_to_one)
    for apart in (False, True):
        sides = world_of_names(left, apart), world_of_names(right, False)
        found = {(a, b) for a, b, _ in aligner.fit_unlabelled(*sides).predict(*sides)}
        assert {("l:1", "r:1"), ("l:2", "r:2"), ("l:4", "r:4"), ("l:5", "r:5")} <= found
        assert (("l:3", "r:6") in found) is not apart
        explained = aligner.explain(*sides, "l:3", "r:6")
        assert explained.is_match is not apart
        assert {(a, b) for a, b, _ in explained.conflicts} == ({("l:2", "r:2")} if apart else set())
