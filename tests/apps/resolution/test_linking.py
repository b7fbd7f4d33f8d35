"""From a table to a walk: scores, constraints, and records that are one item."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.linking import link
from factorwise.apps.resolution.merge_odds import tree_of_walk
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards import search as linkage_search
from factorwise.inference.mcmc.shards.search import LinkSearch, walk_parts
from factorwise.inference.merge_trees import UNLINKED
from factorwise.kernels.clusterings.links import UNLINKED_WEIGHT
from factorwise.kernels.compile.threads import Team
from factorwise.model.clusterings.level_weights import LevelWeights
from reference.merge_trees import items_below
from resolution_cases import clusters, compared, known_of, link_score, people_table

ALONE = Team(1)
PEOPLE = people_table(24)
KNOWN = known_of(PEOPLE)
N = PEOPLE.num_rows


def pairs(*rows):
    return np.array(rows, np.int64).reshape(-1, 2)


def eager():
    """Knowledge by which everything wants to be together."""
    sizes = KNOWN.weights.sizes
    weights = np.zeros(len(LevelWeights.zeros(sizes).values))
    weights[:3] = 0.5, -0.5, 1.0
    return known_of(PEOPLE, weights=weights)


def found(constraints=None, knowledge=None):
    linked = link(PEOPLE, knowledge or KNOWN, constraints=constraints, team=ALONE)
    LinkSearch(rounds=6).run(linked.walk, seed=1, team=ALONE)
    return linked, linked.rows_of_units(linked.walk.labels)


def test_scores_of_candidates_are_those_of_the_model():
    linked = link(PEOPLE, KNOWN, team=ALONE)
    pairs_of, levels = compared(PEOPLE, KNOWN)
    assert np.array_equal(linked.candidates.first, pairs_of.first)
    np.testing.assert_allclose(linked.scores, KNOWN.weights.link_scores(levels), rtol=1e-4, atol=1e-4)


def test_every_record_is_an_item():
    linked = link(PEOPLE, KNOWN, team=ALONE)
    assert linked.unit.tolist() == list(range(N))


def test_many_records_are_searched_by_the_parts_that_good_links_connect(monkeypatch):
    monkeypatch.setattr(linkage_search, "ITEMS_PER_SHARD", 5)
    linked = link(PEOPLE, KNOWN, team=ALONE)
    part = walk_parts(linked.walk)
    graph, good = linked.walk.graph, linked.scores > 0.0
    assert (part[graph.first[good]] == part[graph.second[good]]).all()
    LinkSearch(rounds=6).run(linked.walk, seed=1, team=ALONE)
    assert len(np.unique(linked.walk.labels)) < N


def score_of(linked, labels):
    """Score of a clustering of the records by the walk over items."""
    by_unit = np.zeros(linked.walk.n_items, np.int64)
    by_unit[linked.unit] = labels
    linked.walk.place_items(by_unit)
    return linked.walk.score


@pytest.mark.parametrize(
    "must", [pairs(), pairs((0, 1), (1, 5), (7, 30), (30, 31), (8, 9))], ids=["free", "tied"]
)
def test_a_walk_over_items_scores_as_the_model_does_up_to_a_constant(must, seed):
    linked = link(PEOPLE, KNOWN, constraints=Constraints(must=must), team=ALONE)
    pairs_of, levels = compared(PEOPLE, KNOWN)
    rng = np.random.default_rng(seed)
    gaps = []
    for groups in (2, 5, 20, N):
        by_unit = rng.integers(0, groups, linked.walk.n_items)
        labels = by_unit[linked.unit]
        gaps.append(
            link_score(KNOWN.weights, labels, pairs_of.first, pairs_of.second, levels)
            - score_of(linked, labels)
        )
    np.testing.assert_allclose(gaps, gaps[0], atol=2e-3)
    assert np.ptp(linked.walk.counts) == (2 if len(must) else 0)


def test_records_that_must_be_together_are_by_way_of_others_too():
    far = pairs((0, 20), (20, 41), (3, 12))
    linked, labels = found(Constraints(must=far))
    assert labels[0] == labels[20] == labels[41]
    assert labels[3] == labels[12]
    assert linked.walk.n_items == N - 3
    free = found()[1]
    assert len({free[0], free[20], free[41]}) > 1


@pytest.mark.parametrize("by_weight", [0.0, -0.7])
def test_trees_sum_the_pairs_of_records_that_must_be_together(by_weight):
    """Where several records are tied, the mean of a merge is that of its pairs of records."""
    values = KNOWN.weights.values.copy()
    values[UNLINKED_WEIGHT] = by_weight
    known = replace(KNOWN, weights=LevelWeights(KNOWN.weights.sizes, values))
    linked = link(
        PEOPLE, known, constraints=Constraints(must=pairs((0, 1), (1, 2), (4, 5), (5, 3))), team=ALONE
    )
    walk, tree = linked.walk, tree_of_walk(linked.walk)
    assert walk.link_pairs.max() > 2
    scores = {}
    for a, b, score in zip(linked.candidates.first, linked.candidates.second, linked.scores, strict=True):
        scores[int(a), int(b)] = scores[int(b), int(a)] = float(score)
    rows = [np.flatnonzero(linked.unit == item).tolist() for item in range(walk.n_items)]
    for node in range(tree.n_items, len(tree.mean)):
        one, two = (
            [row for item in items_below(part, tree.left, tree.right) for row in rows[item]]
            for part in (tree.left[node], tree.right[node])
        )
        each = [scores.get((a, b), UNLINKED) for a in one for b in two]
        assert tree.mean[node] == pytest.approx(np.mean(each), abs=1e-4)


def test_records_that_must_not_be_together_are_apart():
    _, free = found(knowledge=eager())
    together = [(int(a), int(b)) for a, b in pairwise(np.flatnonzero(free == free[0]))]
    assert len(together) > 3
    far = next((a, b) for a in range(N) for b in range(N) if free[a] == free[b] and abs(a - b) > 20)
    _, labels = found(Constraints(cannot=pairs(*together, far)), eager())
    assert all(labels[a] != labels[b] for a, b in [*together, far])


def test_what_must_not_be_together_holds_for_all_that_is_tied_to_it():
    limits = Constraints(must=pairs((0, 1), (3, 4)), cannot=pairs((1, 3)))
    _, labels = found(limits, eager())
    assert labels[0] == labels[1] != labels[3] == labels[4]


def test_no_entity_has_two_records_of_one_source():
    sources = (np.arange(N) % 5).astype(np.int32)
    _, labels = found(Constraints(sources=sources, one_per_source=True), eager())
    held = [[int(sources[row]) for row in group] for group in clusters(labels)]
    assert all(len(group) == len(set(group)) for group in held)
    assert max(map(len, held)) > 2
    _, free = found(Constraints(sources=sources), eager())
    assert max(map(len, clusters(free))) > 5


def test_ties_and_sources_hold_together():
    sources = (np.arange(N) % 5).astype(np.int32)
    limits = Constraints(must=pairs((0, 21), (21, 42)), sources=sources, one_per_source=True)
    _, labels = found(limits, eager())
    assert labels[0] == labels[21] == labels[42]
    groups = clusters(labels)
    assert all(len({int(sources[row]) for row in group}) == len(group) for group in groups)


def test_constraints_that_contradict_each_other_are_refused():
    limits = Constraints(must=pairs((0, 1)), cannot=pairs((0, 1)))
    with pytest.raises(InvalidArgumentError, match="records 0 and 1 must be together and must not be"):
        link(PEOPLE, KNOWN, constraints=limits, team=ALONE)
