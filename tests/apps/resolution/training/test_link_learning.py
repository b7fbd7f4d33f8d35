"""Learning the weights of links, and of templates of one's own, from known entities."""

import numpy as np
import pytest

from factorwise.apps.resolution.record_items import LINKS, further_model
from factorwise.apps.resolution.training.examples import TrainingData
from factorwise.apps.resolution.training.link_learning import EACH, LinkTraining, Weights
from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.model.clusterings.tally_templates import TallyTemplate
from factorwise.variables.bags import Bags
from factorwise.world.links import LinkGraph

SIZES = (3, 2)
ALONE = Team(1)
BLANK = Weights(LevelWeights.zeros(SIZES), np.zeros(0))


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
    return TrainingData(LinkGraph.from_pairs(n, first, second), levels, entity.astype(np.int32))


def f1_of(weights, given):
    """B-cubed of what is found by some weights."""
    links = weights.links
    further = further_model(given.templates, weights.further)
    walk = LinkWalk(
        given.graph,
        links.link_scores(given.levels),
        unlinked=links.unlinked,
        cluster=links.cluster,
        further=further,
    )
    LinkSearch().run(walk, seed=1, team=ALONE)
    return b_cubed(given.entity.tolist(), walk.labels.tolist()).f1


def test_a_planted_model_is_learned_and_resolves_other_items(seed):
    weights = LinkTraining(passes=3, steps=30).fit(task(seed), BLANK, seed=seed)
    telling, noise = weights.links.tables()
    assert telling[1] > telling[2] > telling[3]
    assert abs(noise).max() < 0.2 * abs(telling).max()
    other = task(seed + 1)
    assert f1_of(weights, other) > 0.97
    assert f1_of(BLANK, other) < 0.8


def test_half_of_the_entities_suffice_and_the_others_are_left_out():
    given = task(3)
    partly = np.where(given.entity % 2 == 0, given.entity, -1)
    weights = LinkTraining(passes=3, steps=30).fit(TrainingData(given.graph, given.levels, partly), BLANK)
    assert f1_of(weights, task(4)) > 0.95


def test_records_without_an_entity_are_entities_of_their_own():
    given = task(0)
    last = given.entity.max()  # a number that is that of an item, too, as is that before it
    known = np.where(given.entity >= last - 1, given.entity, np.where(given.entity == last - 2, 0, -1))
    training = LinkTraining(margin=0.5, alone=0.25)
    shard = training.shard(TrainingData(given.graph, given.levels, known), SIZES)
    truth, proposer = shard.worlds[1].truth, shard.worlds[1].proposer
    assert shard.learner.update.margin == 0.5 * (known >= 0).sum()
    assert (proposer.to_candidate, proposer.to_new) == (0.75, 0.25)
    labels, sizes = np.asarray(truth.labels), np.bincount(truth.labels)
    for entity in (0, last - 1, last):
        assert len(set(labels[known == entity])) == 1
        assert sizes[labels[known == entity][0]] == (known == entity).sum() > 1
    assert (sizes[labels[known < 0]] == 1).all()


def test_walks_are_longer_over_more_records_within_bounds():
    training = LinkTraining(steps=25, fewest=5_000, most=100_000)
    lengths = [training.walk_length(n) for n in (10, 1_000, 10_000, 1_000_000)]
    assert lengths == [5_000, 25_000, 100_000, 1_000_000 * EACH]
    only_zero = TrainingData(task(0).graph, task(0).levels, np.where(task(0).entity == 0, 0, -1))
    LinkTraining(passes=1, steps=1).fit(only_zero, BLANK)  # entity 0 is known, too


def test_the_same_seed_learns_the_same_and_leaves_the_weights_it_began_with():
    given, training = task(1, n=96), LinkTraining(passes=1, steps=5)
    one, two, other = (training.fit(given, BLANK, seed=s).links.values for s in (1, 1, 2))
    assert one.tolist() == two.tolist() != other.tolist()
    assert not BLANK.links.values.any()


def test_every_pass_walks_from_single_items_and_from_the_truth():
    given, told = task(1, n=96), []
    training = LinkTraining(passes=2, steps=1, temperature=1e-9, cap=1e-12, fewest=1)
    values = np.array([-1.0, 0.0, -1.0, -9.0, -9.0, -9.0, 0.0, 0.0])
    training.fit(given, BLANK._replace(links=LevelWeights(SIZES, values)), on_pass=told.append)
    assert [(record.number, record.steps) for record in told] == [(1, 192), (2, 192)]
    alone = b_cubed(given.entity.tolist(), list(range(96))).f1
    for record in told:
        assert 0.05 < record.accepted < 0.5  # nothing is worth joining, and the truth falls apart
        assert alone < record.value < 1.0


def test_levels_in_columns_of_another_order_in_memory_are_learned_from_too():
    given, training = task(1, n=96), LinkTraining(passes=1, steps=5)
    turned = TrainingData(given.graph, np.asfortranarray(given.levels), given.entity)
    plain, also = (training.fit(each, BLANK).links.values.tolist() for each in (given, turned))
    assert plain == also


def present(count):
    return count > 0


def beyond_one(total, size):
    return total - 1.0


def one_color(given, seed, name="color"):
    """A tally over items of which those of one entity mostly have one color."""
    rng = np.random.default_rng(seed)
    color = np.where(rng.random(len(given.entity)) < 0.95, given.entity % 7, rng.integers(0, 7))
    return TallyTemplate(name, Bags(np.arange(len(color) + 1), color), present, beyond_one, ["more"])


@pytest.mark.parametrize("fixed", [(), (LINKS,)])
def test_templates_of_ones_own_are_learned_with_the_links_or_beside_them(fixed):
    """Links of which two in three say nothing are made up for by a tally."""
    given, other = (
        TrainingData(each.graph, each.levels * (np.arange(len(each.levels)) % 3 == 0)[:, None], each.entity)
        for each in (task(1), task(2))
    )
    start = LinkTraining(passes=2).fit(given, BLANK, seed=1)
    own = TrainingData(given.graph, given.levels, given.entity, None, (one_color(given, 1),))
    weights = LinkTraining(passes=2).fit(own, Weights(start.links, np.zeros(1)), fixed=fixed, seed=1)
    assert weights.further[0] < -0.1
    assert (weights.links.values.tolist() == start.links.values.tolist()) == bool(fixed)
    held_out = TrainingData(other.graph, other.levels, other.entity, None, (one_color(other, 2),))
    assert f1_of(weights, held_out) > f1_of(start, other) + 0.02


def test_links_may_have_scores_that_a_template_is_learned_beside():
    """Scores that are too sure of what is noise, and a tally that makes up for it."""
    given, other = task(1), task(2)
    rng = np.random.default_rng(0)

    def scored(each, seed):
        score = np.array([0.0, 2.0, 0.0, -2.0])[each.levels[:, 0]] + rng.normal(0.0, 2.0, len(each.levels))
        return TrainingData(each.graph, each.levels, each.entity, None, (one_color(each, seed),), None, score)

    def f1(weights, each):
        links = weights.links
        score = links.values[-1] * each.offset + links.link
        further = further_model(each.templates, weights.further)
        walk = LinkWalk(each.graph, score, unlinked=links.unlinked, cluster=links.cluster, further=further)
        LinkSearch().run(walk, seed=1, team=ALONE)
        return b_cubed(each.entity.tolist(), walk.labels.tolist()).f1

    start = Weights.of_scores(-1.0, np.zeros(1))
    weights = LinkTraining(passes=2).fit(scored(given, 1), start, seed=1)
    plain = weights.in_units_of_scores()
    assert plain.links.values[-1] == 1.0
    assert plain.further[0] < -0.1
    held_out = scored(other, 2)
    assert f1(plain, held_out) > f1(start, held_out) + 0.02
    slope = weights.links.values[-1]
    np.testing.assert_allclose(slope * plain.links.values, weights.links.values)
    np.testing.assert_allclose(slope * plain.further, weights.further)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda levels, entity: (levels[:-1], entity), "need a row of levels"),
        (lambda levels, entity: (levels[:, :1], entity), "comparisons have"),
        (lambda levels, entity: (levels + np.uint8(1), entity), "the comparisons have"),
        (lambda levels, entity: (levels, entity[:-1]), "96 records need an entity each"),
        (lambda levels, entity: (levels, entity * 0 - 1), "no record's entity is known"),
    ],
)
def test_data_that_do_not_fit_are_refused(change, message):
    given = task(1, n=96)
    with pytest.raises((ShapeError, InvalidArgumentError), match=message):
        LinkTraining().fit(TrainingData(given.graph, *change(given.levels, given.entity)), BLANK)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"passes": 0}, "passes must be"),
        ({"alone": 1.0}, "alone must be"),
        ({"temperature": 0.0}, "temperature must"),
        ({"cap": 0.0}, "cap must"),
        ({"margin": 0.0}, "margin must"),
        ({"fewest": 0}, "fewest must"),
        ({"most": 4_999}, "most must be at least fewest, 5000"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(InvalidArgumentError, match=message):
        LinkTraining(**settings)
