"""The ladder of training methods, and the choice among its rungs."""

import numpy as np
import pytest

from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.training import ladder
from factorwise.apps.resolution.training.boosted_tables import boost_tables
from factorwise.apps.resolution.training.calibration import Calibration
from factorwise.apps.resolution.training.folds import Judgement
from factorwise.apps.resolution.training.ladder import (
    RUNGS,
    Rung,
    Start,
    climb_ladder,
    cluster_by,
    is_better,
    unlinked_pair_weight,
)
from factorwise.apps.resolution.training.link_learning import LinkTraining, Weights
from factorwise.apps.resolution.training.pair_regression import regress_levels
from factorwise.inference.mcmc.shards.search import Found, LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed
from factorwise.model.clusterings.level_weights import LevelWeights
from resolution_cases import FIELDS, people_table, training_data

ALONE = Team(1)
LEARNER = LinkTraining(passes=1, steps=2, fewest=200)
SEARCH = LinkSearch(rounds=4, extra=2)


def of_levels(*values):
    return LevelWeights((2,), np.array(values))


GOOD = of_levels(-1.0, 0.0, 0.0, -2.0, 2.0)
POOR = of_levels(-1.0, 0.0, 0.0, -2.0, -2.0)
START = Start(of_levels(-2.0, 0.0, 0.0, -1.0, 1.0), (1,), 0)


def climbed(given=None):
    return climb_ladder(given or training_data(), START, np.zeros(0), LEARNER, SEARCH, team=ALONE)


@pytest.mark.parametrize("best", range(3))
def test_the_first_rung_that_none_above_does_clearly_better_than_is_taken(monkeypatch, best):
    rungs = [Rung(f"rung {k}", lambda pairs, start, k=k: GOOD if k >= best else POOR) for k in range(3)]
    monkeypatch.setattr(ladder, "RUNGS", rungs)
    monkeypatch.setattr(ladder, "calibrate", lambda *given, **more: Calibration(0.5))
    found = climbed()
    assert found.method == f"rung {best}"
    assert found.weights.links.values.tolist() == GOOD.values.tolist()
    assert [found.scores[f"rung {k}"].f1 == 1.0 for k in range(3)] == [k >= best for k in range(3)]
    assert (found.calibration.temperature, found.held_out) == (0.5, 120)


@pytest.mark.parametrize(
    ("right", "loss", "better"),
    [(60, 1.0, True), (50, 1.0, False), (50, 0.5, True), (49, 0.5, False), (10, 0.5, False)],
)
def test_a_method_is_better_by_its_clusters_or_by_its_pairs_if_its_clusters_are_no_worse(right, loss, better):
    group, noise = np.arange(100), np.tile([0.1, -0.1], 50)
    ones = np.ones(100)

    def judged(right, loss):
        return Judgement((group < right) * 0.5 + 0.5, ones, group, loss * ones + noise)

    held = judged(50, 1.0)._replace(loss=ones)
    assert is_better(judged(right, loss), held) == better


def test_labelled_pairs_teach_the_mean_of_two_methods():
    given, start = training_data().pair_examples(np.ones(120, bool)), START
    sizes = start.unlabelled.sizes
    both = (
        regress_levels(given, LevelWeights.zeros(sizes), seed=0).values,
        boost_tables(given, sizes, start.directions, seed=0).values,
    )
    np.testing.assert_allclose(RUNGS[-1].fit(given, start).values, np.mean(both, axis=0))


@pytest.mark.parametrize(("entities", "tried"), [(99, False), (100, True)])
def test_the_context_is_tried_where_there_are_many_entities_to_judge_it_on(monkeypatch, entities, tried):
    asked = []
    monkeypatch.setattr(ladder, "_add_context", lambda held, *given, **more: asked.append(held) or held)
    people = people_table(entities)
    climb_ladder(
        training_data(entities=entities),
        START,
        np.zeros(0),
        LEARNER,
        SEARCH,
        team=ALONE,
        normal=normalize(people, FIELDS),
    )
    assert len(asked) == tried


@pytest.mark.parametrize(("entities", "rungs"), [(19, 1), (20, 3)])
def test_weights_of_levels_are_learned_where_there_are_enough_entities_to_judge_them_on(entities, rungs):
    assert len(climbed(training_data(entities=entities)).scores) == rungs


def test_with_few_entities_unlabelled_weights_are_scaled_and_nothing_is_held_out():
    found = climbed(training_data(entities=4))
    assert (found.held_out, list(found.scores), found.calibration.temperature) == (0, [RUNGS[0].name], 1.0)
    table = found.weights.links.tables()[0]
    assert table[2] > 0.0 > table[1]


def test_an_interrupted_search_ends_the_learning(monkeypatch):
    monkeypatch.setattr(LinkSearch, "run", lambda *given, **more: Found(1, "interrupted", 0.0))
    with pytest.raises(KeyboardInterrupt):
        climbed()


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_every_rung_learns_a_rule_that_is_in_the_data(rung):
    given = training_data()
    links = rung.fit(given.pair_examples(given.entity >= 0), START)
    weights = Weights(links, np.zeros(0))
    walk = cluster_by(given, links.link_scores(given.levels), weights, SEARCH, seed=0, team=ALONE)
    assert b_cubed(given.entity, walk.labels).f1 > 0.95


def test_weights_temperature_and_method_come_from_the_data_in_earnest():
    found = climbed()
    assert list(found.scores) == [rung.name for rung in RUNGS]
    assert found.scores[found.method].f1 > 0.95
    table = found.weights.links.tables()[0]
    assert table[2] > table[1]
    assert found.weights.links.unlinked == -1.0  # all pairs of one entity are linked
    assert found.calibration.temperature > 0.0
    assert (
        found.calibration.reliability.cases.sum() > found.held_out
    )  # a pair for each record at least, on average


@pytest.mark.parametrize(("linked", "weight"), [(1.0, -1.0), (0.75, -0.5), (0.5, 0.0), (0.1, 0.0)])
def test_not_being_linked_speaks_against_a_pair_as_far_as_pairs_of_one_entity_are(linked, weight):
    assert unlinked_pair_weight(linked) == pytest.approx(weight)
