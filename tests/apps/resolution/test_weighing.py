"""Ways of learning weights, and the choice among them."""

import numpy as np
import pytest

from factorwise.apps.resolution import weighing
from factorwise.apps.resolution.labelled import ComparedLabels, LabelledPairs
from factorwise.apps.resolution.lessons import Lesson, Trial
from factorwise.apps.resolution.link_learning import LinkTraining, Weights
from factorwise.apps.resolution.temperature import Calibration
from factorwise.apps.resolution.weighing import (
    DOUBT,
    PAIRS_ALONE,
    WALKS_FROM_PAIRS,
    WAYS,
    Start,
    beginning,
    learned,
    learned_from_pairs,
    weigh,
)
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.inference.mcmc.shards.search import Found, LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import Tally, b_cubed
from factorwise.model.level_weights import LevelWeights
from resolution_cases import lesson

ALONE = Team(1)
SIZES = (2,)
LEARNER = LinkTraining(passes=1, steps=2, fewest=200)
SEARCH = LinkSearch(rounds=4, extra=2)


def of_levels(*values):
    return Weights(LevelWeights(SIZES, np.array(values)), np.zeros(0))


GOOD = of_levels(-1.0, 0.0, 0.0, -2.0, 2.0)
UNLABELLED = of_levels(-2.0, 0.0, 0.0, -1.0, 1.0)
POOR = of_levels(-1.0, 0.0, 0.0, -2.0, -2.0)


def weighed(monkeypatch, models, given=None):
    """Weigh with the models that the ways are made to learn."""
    named = dict(zip((way.name for way in WAYS), models, strict=True))
    monkeypatch.setattr(weighing, "learned", lambda part, way, *rest, **more: named[way.name])
    monkeypatch.setattr(weighing, "calibrate", lambda *given, **more: Calibration(0.5, {}))
    return weigh(given or lesson(), UNLABELLED, LEARNER, SEARCH, seed=0, team=ALONE)


@pytest.mark.parametrize("best", range(len(WAYS)))
def test_the_way_that_does_best_on_entities_kept_apart_is_taken(monkeypatch, best):
    models = [POOR] * len(WAYS)
    models[best] = GOOD
    found = weighed(monkeypatch, models)
    assert (found.way, found.weights) == (WAYS[best].name, GOOD)
    assert found.scores[found.way].f1 == 1.0
    assert [found.scores[way.name].f1 < 0.8 for way in WAYS] == [k != best for k in range(len(WAYS))]
    assert (found.temperature, found.held_out) == (0.5, 120)


def test_the_best_way_is_taken_if_it_is_clearly_better_than_the_usual_one(monkeypatch):
    assert weighed(monkeypatch, [GOOD] * len(WAYS)).way == PAIRS_ALONE.name
    clearly = DOUBT / 60**0.5  # entities that are kept apart, all of one size
    for lead, taken in ((0.9, PAIRS_ALONE), (1.1, WAYS[4])):
        f1 = np.array([0.7, 0.8, 0.8, 0.8 + 0.5 * clearly, 0.8 + lead * clearly, 0.75])
        figures = iter(np.repeat(f1, 5).tolist())  # five trials of each way
        monkeypatch.setattr(Trial, "score", lambda trial, labels: Tally(*[next(figures), 1] * 2))  # noqa: B023
        assert weighed(monkeypatch, [GOOD] * len(WAYS)).way == taken.name


def test_of_very_many_entities_walks_are_what_others_have_to_beat(monkeypatch):
    monkeypatch.setattr(weighing, "MANY_ENTITIES", 60)
    assert weighed(monkeypatch, [GOOD] * len(WAYS)).way == WALKS_FROM_PAIRS.name


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
    start = beginning(way.start, given, UNLABELLED, seed=1)
    links = learned(given, way, start, LinkTraining(passes=3, steps=20), seed=1).links
    scores = links.link_scores(given.levels)
    walk = LinkWalk(given.graph, scores, unlinked=links.unlinked, cluster=links.cluster)
    SEARCH.run(walk, seed=0, team=ALONE)
    assert b_cubed(given.entity, walk.labels).f1 > 0.95


def test_weights_temperature_and_way_come_from_the_data_in_earnest():
    found = weigh(lesson(), UNLABELLED, LEARNER, SEARCH, seed=0, team=ALONE)
    assert list(found.scores) == [way.name for way in WAYS]
    assert found.scores[found.way].f1 > 0.95
    table = found.weights.links.tables()[0]
    assert table[2] > table[1]
    assert found.temperature > 0.0
    assert found.reliability.cases.sum() > found.held_out  # a pair for each record at least, on average


def test_labelled_pairs_join_those_of_entities_in_the_start():
    plain = lesson()
    pairs = LabelledPairs(np.zeros(400, int), np.ones(400, int), np.zeros(400, bool))
    against = ComparedLabels(pairs, np.full((400, 1), 2, np.uint8))
    told = learned_from_pairs(Lesson(plain.graph, plain.levels, plain.entity, against), SIZES, seed=0)
    untold = learned_from_pairs(plain, SIZES, seed=0)
    assert told.tables()[0][2] + told.link < 0.0 < untold.tables()[0][2] + untold.link


def test_a_large_entity_does_not_outvote_many_small_ones():
    """Level 1 is right for twenty pairs of small entities, wrong for the many pairs of one large one."""
    entity = np.concatenate([np.repeat(np.arange(20), 2), np.full(40, 20)]).astype(np.int32)
    i, j = np.triu_indices(80, 1)
    small = (entity[i] == entity[j]) & (entity[i] < 20)
    large = (entity[i] == 20) & (entity[j] == 20)
    across = (i // 2 == j // 2 - 1) & (j < 40)
    kept = small | large | across
    level = np.where(small[kept], 1, 2).astype(np.uint8)[:, None]
    given = Lesson(
        LinkGraph.from_pairs(80, i[kept].astype(np.int32), j[kept].astype(np.int32)), level, entity
    )
    model = learned_from_pairs(given, SIZES, seed=0)
    alone, together = model.link + model.tables()[0][1], model.link + model.tables()[0][2]
    assert alone > 0.5
    assert together < alone


def test_the_shift_of_a_way_goes_to_the_weight_of_links():
    given = lesson()
    start = learned_from_pairs(given, SIZES, seed=0)
    ways = [way for way in WAYS if way.start is Start.PAIRS and way.temperature is None]
    assert sorted(way.shift for way in ways) == [-1.0, 0.0, 1.0]
    for way in ways:
        links = learned(given, way, Weights(start, np.zeros(0)), LEARNER, seed=0).links
        assert links.link == start.link + way.shift
        assert np.array_equal(links.tables()[0], start.tables()[0])
