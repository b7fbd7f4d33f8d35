"""Ways of learning weights, and the choice among them."""

import numpy as np
import pytest

from factorwise.apps.resolution import weighing
from factorwise.apps.resolution.labelled import ComparedLabels, LabelledPairs
from factorwise.apps.resolution.weighing import DOUBT, WAYS, Lesson, held_out, learned, weigh
from factorwise.inference.mcmc.linkage import LinkGraph, LinkWalk
from factorwise.inference.mcmc.linkage_search import Found, LinkSearch
from factorwise.kernels.threads import Team
from factorwise.learning.linkage import LinkLearner
from factorwise.learning.linkage_calibration import Calibration
from factorwise.metrics.clustering import b_cubed
from factorwise.model.linkage import LinkModel

ALONE = Team(1)
SIZES = (2,)
LEARNER = LinkLearner(passes=2, steps=2, fewest=200)
SEARCH = LinkSearch(rounds=4, extra=2)
GOOD = LinkModel(SIZES, np.array([-1.0, 0.0, 0.0, -2.0, 2.0]))
POOR = LinkModel(SIZES, np.array([-1.0, 0.0, 0.0, -2.0, -2.0]))


def lesson(entities=60, unknown=0):
    """Blocks of two entities of two records each; level 2 is for pairs of one entity, level 1 for others."""
    entity = np.repeat(np.arange(entities), 2)
    pairs = [(i, j) for j in range(len(entity)) for i in range(j // 4 * 4, j)]
    first, second = np.array(pairs, np.int32).T.copy()
    levels = np.where(entity[first] == entity[second], 2, 1).astype(np.uint8)[:, None]
    known = np.where(np.arange(len(entity)) < unknown, -1, entity).astype(np.int32)
    return Lesson(LinkGraph.from_pairs(len(entity), first, second), levels, known)


def weighed(monkeypatch, models, given=None):
    """Weigh with the models that the ways are made to learn."""
    named = dict(zip((way.name for way in WAYS), models, strict=True))
    monkeypatch.setattr(weighing, "learned", lambda part, way, *rest, **more: named[way.name])
    monkeypatch.setattr(weighing, "calibrate", lambda *given, **more: Calibration(0.5, {}))
    return weigh(given or lesson(), SIZES, LEARNER, SEARCH, seed=0, team=ALONE)


@pytest.mark.parametrize("best", range(len(WAYS)))
def test_the_way_that_does_best_on_entities_kept_apart_is_taken(monkeypatch, best):
    models = [POOR] * len(WAYS)
    models[best] = GOOD
    found = weighed(monkeypatch, models)
    assert (found.way, found.model) == (WAYS[best].name, GOOD)
    assert found.scores[found.way] == 1.0
    assert [found.scores[way.name] < 0.8 for way in WAYS] == [k != best for k in range(len(WAYS))]
    assert (found.temperature, found.held_out) == (0.5, 24)


def test_of_ways_that_are_about_as_good_the_first_is_taken(monkeypatch):
    assert weighed(monkeypatch, [GOOD] * len(WAYS)).way == WAYS[0].name
    clearly = DOUBT / 24**0.5  # records that are kept apart
    figures = iter([0.8, 0.8 + 0.9 * clearly, 0.8 + 1.1 * clearly, 0.8 + 1.9 * clearly])
    monkeypatch.setattr(
        weighing, "b_cubed", lambda truth, found: b_cubed([0], [0])._replace(f1=next(figures))
    )
    assert weighed(monkeypatch, [GOOD] * len(WAYS)).way == WAYS[2].name


def test_with_few_entities_nothing_is_kept_apart_and_one_way_is_gone(monkeypatch):
    found = weighed(monkeypatch, [GOOD] * len(WAYS), lesson(entities=20, unknown=8))
    assert (found.held_out, list(found.scores)) == (0, [WAYS[0].name])


def test_an_interrupted_search_ends_the_learning(monkeypatch):
    monkeypatch.setattr(LinkSearch, "run", lambda *given, **more: Found(1, "interrupted", 0.0))
    with pytest.raises(KeyboardInterrupt):
        weighed(monkeypatch, [GOOD] * len(WAYS))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_learns_a_rule_that_is_in_the_data(way):
    given = lesson()
    model = learned(given, way, SIZES, LinkLearner(passes=6, steps=20), seed=1)
    walk = LinkWalk(given.graph, model.link_scores(given.levels), apart=model.apart, cluster=model.cluster)
    SEARCH.run(walk, seed=0, team=ALONE)
    assert b_cubed(given.entity, walk.labels).f1 > 0.95


def test_weights_temperature_and_way_come_from_the_data_in_earnest():
    found = weigh(lesson(), SIZES, LEARNER, SEARCH, seed=0, team=ALONE)
    assert list(found.scores) == [way.name for way in WAYS]
    assert found.scores[found.way] > 0.95
    table = found.model.tables()[0]
    assert table[2] > table[1]
    assert found.temperature > 0.0


def test_entities_are_kept_apart_whole_and_records_of_unknown_ones_never():
    entity = np.concatenate([np.repeat(np.arange(100), 3), [-1, -1]])
    apart = held_out(entity, seed=3)
    assert not apart[-2:].any()
    assert apart[:-2].reshape(100, 3).all(axis=1).sum() == apart.sum() // 3 == 20
    assert not np.array_equal(apart, held_out(entity, seed=4))


def test_of_very_many_records_a_smaller_part_is_kept_apart(monkeypatch):
    monkeypatch.setattr(weighing, "MOST_HELD_OUT", 30)
    assert held_out(np.repeat(np.arange(100), 3), seed=3).sum() == 30


def test_a_part_of_a_lesson_is_what_concerns_its_records():
    whole = lesson(entities=8, unknown=1)
    rows = LabelledPairs(np.array([1, 5, 2]), np.array([2, 6, 7]), np.array([True, False, True]))
    whole = Lesson(whole.graph, whole.levels, whole.entity, ComparedLabels(rows, np.array([[1], [2], [0]])))
    chosen = np.ones(16, bool)
    chosen[[0, 1, 6]] = False
    part = whole.part(chosen)
    rows = np.flatnonzero(chosen)
    inside = chosen[whole.graph.first] & chosen[whole.graph.second]
    assert np.array_equal(rows[part.graph.first], whole.graph.first[inside])
    assert np.array_equal(rows[part.graph.second], whole.graph.second[inside])
    assert np.array_equal(part.levels, whole.levels[inside])
    assert part.entity.tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    (first, second, same), levels = part.labelled
    assert (rows[first].tolist(), rows[second].tolist()) == ([2], [7])
    assert (same.tolist(), levels.tolist()) == ([True], [[0]])


def test_labelled_pairs_join_those_of_entities_in_the_start():
    plain = lesson()
    pairs = LabelledPairs(np.zeros(400, int), np.ones(400, int), np.zeros(400, bool))
    against = ComparedLabels(pairs, np.full((400, 1), 2, np.uint8))
    way = WAYS[1]
    told = learned(Lesson(plain.graph, plain.levels, plain.entity, against), way, SIZES, LEARNER, seed=0)
    untold = learned(plain, way, SIZES, LEARNER, seed=0)
    assert told.tables()[0][2] + told.link < 0.0 < untold.tables()[0][2] + untold.link
