"""Learning the weights of links from known entities."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.linkage import LinkGraph, LinkWalk
from factorwise.inference.mcmc.linkage_search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.learning.linkage import LinkLearner
from factorwise.metrics.clustering import b_cubed
from factorwise.model.linkage import LinkModel

SIZES = (3, 2)
ALONE = Team(1)


def task(seed, n=400):
    """Items in blocks of 16; three levels that tell, and two of which the second is noise where it is known.

    Level 1 of the first comparison speaks for one entity, level 3 against, level 2 for neither.
    """
    rng = np.random.default_rng(seed)
    entity = np.arange(n) // 16 * 8 + rng.integers(0, 3, n)
    pairs = [(i, j) for i in range(n) for j in range(i // 16 * 16, i) if rng.random() < 0.8]
    first, second = np.array(pairs, np.int32).T.copy()
    same = entity[first] == entity[second]
    chances = [[0.1, 0.84, 0.05, 0.01], [0.1, 0.01, 0.05, 0.84]]
    telling = np.where(same, *(rng.choice(4, len(same), p=row) for row in chances))
    noise = rng.integers(0, 3, len(same))
    levels = np.stack([telling, noise], axis=1).astype(np.uint8)
    return LinkGraph.from_pairs(n, first, second), levels, entity.astype(np.int32)


def found_by(model, graph, levels):
    walk = LinkWalk(graph, model.link_scores(levels), apart=model.apart, cluster=model.cluster)
    LinkSearch().run(walk, seed=1, team=ALONE)
    return walk.labels.tolist()


def test_a_planted_model_is_learned_and_resolves_other_items(seed):
    learner = LinkLearner(passes=6, steps=30)
    model = learner.fit(*task(seed), LinkModel.blank(SIZES), seed=seed)
    telling, noise = model.tables()
    assert telling[1] > telling[2] > telling[3]
    assert abs(noise).max() < 0.2 * abs(telling).max()
    graph, levels, entity = task(seed + 1)
    learned = b_cubed(entity.tolist(), found_by(model, graph, levels)).f1
    assert learned > 0.97
    assert b_cubed(entity.tolist(), found_by(LinkModel.blank(SIZES), graph, levels)).f1 < 0.8


def test_half_of_the_entities_suffice_and_the_others_are_left_out():
    graph, levels, entity = task(3)
    partly = np.where(entity % 2 == 0, entity, -1)
    model = LinkLearner(passes=6, steps=30).fit(graph, levels, partly, LinkModel.blank(SIZES))
    graph, levels, entity = task(4)
    assert b_cubed(entity.tolist(), found_by(model, graph, levels)).f1 > 0.95


def test_the_same_seed_learns_the_same_and_leaves_the_model_it_began_with():
    graph, levels, entity = task(1, n=96)
    blank = LinkModel.blank(SIZES)
    learner = LinkLearner(passes=2, steps=5)
    one, two, other = (learner.fit(graph, levels, entity, blank, seed=s).weights for s in (1, 1, 2))
    assert one.tolist() == two.tolist() != other.tolist()
    assert not blank.weights.any()


def test_passes_start_by_turns_from_single_items_and_from_the_truth():
    graph, levels, entity = task(1, n=96)
    told = []
    learner = LinkLearner(passes=4, steps=1, temperature=1e-9, cap=1e-12, fewest=1)
    start = LinkModel(SIZES, np.array([-1.0, 0.0, -1.0, -9.0, -9.0, -9.0, 0.0, 0.0]))
    learner.fit(graph, levels, entity, start, callback=told.append)
    assert [record.number for record in told] == [1, 2, 3, 4]
    assert [record.start for record in told] == ["alone", "truth", "alone", "truth"]
    assert {record.steps for record in told} == {96}
    assert told[0].accepted == 0.0  # nothing is worth joining
    assert told[0].value == pytest.approx(b_cubed(entity.tolist(), list(range(96))).f1)
    assert told[1].accepted > 0.1  # the truth falls apart
    assert told[1].value > told[0].value


def test_levels_in_columns_of_another_order_in_memory_are_learned_from_too():
    graph, levels, entity = task(1, n=96)
    learner = LinkLearner(passes=2, steps=5)
    plain, turned = (
        learner.fit(graph, given, entity, LinkModel.blank(SIZES)).weights
        for given in (levels, np.asfortranarray(levels))
    )
    assert plain.tolist() == turned.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda levels, entity: (levels[:-1], entity), "pairs by comparisons"),
        (lambda levels, entity: (levels[:, :1], entity), "pairs by comparisons"),
        (lambda levels, entity: (levels + np.uint8(1), entity), "the levels that the model has weights for"),
        (lambda levels, entity: (levels, entity[:-1]), "96 items need an entity each"),
        (lambda levels, entity: (levels, entity * 0 - 1), "no item's entity is known"),
    ],
)
def test_lessons_that_do_not_fit_are_refused(change, message):
    graph, levels, entity = task(1, n=96)
    with pytest.raises((ShapeError, InvalidArgumentError), match=message):
        LinkLearner().fit(graph, *change(levels, entity), LinkModel.blank(SIZES))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"passes": 0}, "passes must be"),
        ({"own": 1.0}, "own must be"),
        ({"temperature": 0.0}, "temperature must"),
        ({"cap": 0.0}, "cap must"),
        ({"margin": -1.0}, "margin must"),
        ({"fewest": 0}, "fewest must"),
        ({"most": 4_999}, "most must be at least fewest, 5000"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(InvalidArgumentError, match=message):
        LinkLearner(**settings)
