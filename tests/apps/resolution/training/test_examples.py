"""Training data, parts of it, and the labelled pairs in it."""

import numpy as np

from factorwise.apps.resolution.labelled import ComparedLabels, LabelledPairs
from factorwise.apps.resolution.training.examples import PairExamples, TrainingData
from factorwise.apps.resolution.training.pair_regression import regress_levels
from factorwise.inference.mcmc.shards.link_walk import LinkGraph
from factorwise.model.clusterings.level_weights import LevelWeights
from resolution_cases import training_data

ZEROS = LevelWeights.zeros((2,))
EVERYONE = np.ones(120, bool)


def test_a_part_is_what_concerns_its_records():
    whole = training_data(entities=8, unknown=1)
    rows = LabelledPairs(np.array([1, 5, 2]), np.array([2, 6, 7]), np.array([True, False, True]))
    labelled = ComparedLabels(rows, np.array([[1], [2], [0]]))
    sources = np.arange(16).astype(np.uint64)
    whole = TrainingData(whole.graph, whole.levels, whole.entity, labelled, sources=sources)
    chosen = np.ones(16, bool)
    chosen[[0, 1, 6]] = False
    rows = np.flatnonzero(chosen)
    part = whole.part(rows)
    inside = chosen[whole.graph.first] & chosen[whole.graph.second]
    ends, before = (
        np.sort(np.stack([graph.first, graph.second], axis=1)) for graph in (part.graph, whole.graph)
    )
    assert np.array_equal(rows[ends], before[inside])
    assert np.array_equal(part.levels, whole.levels[inside])
    assert part.entity.tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert part.sources.tolist() == rows.tolist()
    (first, second, same), levels = part.labelled
    assert (rows[first].tolist(), rows[second].tolist()) == ([2], [7])
    assert (same.tolist(), levels.tolist()) == ([True], [[0]])


def test_examples_are_the_linked_pairs_of_usable_records_with_known_entities():
    given, usable = training_data(unknown=4), EVERYONE.copy()
    usable[4:8] = False
    examples = given.pair_examples(usable)
    inside = (given.graph.first >= 8) & (given.graph.second >= 8)
    assert np.array_equal(examples.levels, given.levels[inside])
    assert np.array_equal(examples.same, given.levels[inside, 0] == 2)
    assert given.linked_share() == 1.0


def test_pairs_labelled_singly_join_those_of_entities():
    plain = training_data()
    pairs = LabelledPairs(np.zeros(400, int), np.ones(400, int), np.zeros(400, bool))
    against = ComparedLabels(pairs, np.full((400, 1), 2, np.uint8))
    told = TrainingData(plain.graph, plain.levels, plain.entity, against)
    one, two = (regress_levels(data.pair_examples(EVERYONE), ZEROS, seed=0) for data in (told, plain))
    assert one.tables()[0][2] + one.link < 0.0 < two.tables()[0][2] + two.link
    assert len(told.pair_examples(np.arange(120) > 0).same) == len(plain.pair_examples(EVERYONE).same) - 3


def test_a_large_entity_does_not_outvote_many_small_ones():
    """Level 1 is right for twenty pairs of small entities, wrong for the many pairs of one large one."""
    entity = np.concatenate([np.repeat(np.arange(20), 2), np.full(40, 20)]).astype(np.int32)
    i, j = np.triu_indices(80, 1)
    small = (entity[i] == entity[j]) & (entity[i] < 20)
    large = (entity[i] == 20) & (entity[j] == 20)
    across = (i // 2 == j // 2 - 1) & (j < 40)
    kept = small | large | across
    level = np.where(small[kept], 1, 2).astype(np.uint8)[:, None]
    graph = LinkGraph.from_pairs(80, i[kept].astype(np.int32), j[kept].astype(np.int32))
    examples = TrainingData(graph, level, entity).pair_examples(np.ones(80, bool))
    model = regress_levels(examples, ZEROS, seed=0)
    alone, together = model.link + model.tables()[0][1], model.link + model.tables()[0][2]
    assert alone > 0.5
    assert together < alone


def test_known_pairs_of_two_entities_stand_for_those_with_unknown_ones():
    """Of 30 blocks of two entities both are known in 10, one in the other 20."""
    whole = training_data()
    entity = np.where((whole.entity % 2 == 1) & (whole.entity > 20), -1, whole.entity).astype(np.int32)
    part = TrainingData(whole.graph, whole.levels, entity)
    for data, known in ((whole, 60), (part, 40)):
        _, same, share = data.known_pairs(EVERYONE)
        assert share[same].sum() == known
        pairs_of_two = 120 if data is whole else 40
        assert (~same).sum() == pairs_of_two
        np.testing.assert_allclose(share[~same].sum() / share[same].sum(), 1.0)


def test_a_sample_has_as_many_of_either_kind_as_can_be_and_keeps_the_sums_of_shares():
    same = np.arange(1_000) < 100
    share = np.where(same, 1.0, 0.1) * (1.0 + np.arange(1_000) % 3)
    examples = PairExamples((np.arange(1_000) % 5).astype(np.uint8)[:, None], same, share)
    some = examples.sample(120, seed=3)
    assert (some.same.sum(), len(some.same)) == (60, 120)
    for kind in (True, False):
        np.testing.assert_allclose(some.share[some.same == kind].sum(), share[same == kind].sum())
    assert examples.sample(2_000, seed=3).share.tolist() == share.tolist()
