"""Templates of links and constraints: statistics, differences and gradients against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import Merge, RelocateToItem, RelocateToNew, Split
from factorwise.inference.mcmc.walk import Walk
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.model.clusterings.link_templates import (
    FIXED_NAMES,
    CannotLinkTemplate,
    LinkTemplate,
    OnePerSourceTemplate,
)
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.world.partition import Partition
from link_cases import CASES, SPARSE, allowed_worlds, links_of, model_of, partitions

MOVES = PartitionMixture([RelocateToItem(), RelocateToNew(), Merge(), Split()])


@pytest.mark.parametrize("case", CASES)
def test_differences_are_those_of_statistics_for_every_diff_of_every_world(case):
    model = model_of(CASES[case]())
    worlds, _ = allowed_worlds(model)
    for world in worlds[::3]:
        for proposal in MOVES.support(world):
            if proposal.diff is None:
                continue
            after = model.score(world.after(proposal.diff))
            assert model.gain(world, proposal.diff) == pytest.approx(after - model.score(world), abs=1e-12)


def test_the_score_is_the_sum_over_pairs_and_clusters():
    template = links_of(SPARSE, counts=[1, 3, 2, 1, 2])
    model = model_of([template])
    unlinked, cluster = model.weights[:2]
    scores = dict(zip(SPARSE, template.link_scores(model.weights), strict=True))
    for world in partitions(5):
        total = cluster * world.n_clusters
        for members in world.clusters():
            records = int(template.counts[members].sum())
            together = [pair for pair in SPARSE if set(pair) <= set(members.tolist())]
            total += unlinked * (records * (records - 1) / 2 - len(together))
            total += sum(scores[pair] for pair in together)
        assert model.score(world) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("case", ["sparse", "counts", "features", "all constraints"])
@pytest.mark.parametrize("learning", [False, True])
def test_compiled_gains_and_gradients_keep_the_score(case, learning):
    model = model_of(CASES[case]())
    kernel = Metropolis(model, MOVES)
    walk = Walk(kernel, Partition.singletons(5), learning=learning)
    plain_stream = Stream(3)
    plain = Walk(kernel, Partition.singletons(5), learning=learning, interpreted=plain_stream)
    stream = Stream(3)
    walk.advance(stream, 2.0, 400)
    plain.parts.advance(400, 2.0)
    assert walk.view == plain.view
    assert stream.state.tolist() == plain_stream.state.tolist()
    gained = float(walk.parts.walk.score[0])
    assert model.score(walk.view) == pytest.approx(model.score(Partition.singletons(5)) + gained, abs=1e-9)


def test_constraints_forbid():
    sources = OnePerSourceTemplate("sources", [1, 2, 1])
    assert sources.constant(Partition.from_labels([0, 0, 1])) == 0.0
    assert sources.constant(Partition.from_labels([0, 1, 0])) == -math.inf
    cannot = CannotLinkTemplate("cannot", 3, [(1, 2)])
    assert cannot.constant(Partition.from_labels([0, 0, 1])) == 0.0
    assert cannot.constant(Partition.from_labels([0, 1, 1])) == -math.inf


def test_weights_have_names():
    template = links_of(SPARSE)
    assert [template.weight_name(k) for k in range(template.size)] == [
        "links: two members not linked",
        "links: a cluster",
        "links: two members linked",
        "links: name, level 1",
        "links: name, level 2",
        "links: name, level 3",
        "links: year, level 1",
        "links: year, level 2",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "levels or features"),
        ({"levels": np.zeros((5, 1)), "features": np.zeros((5, 1))}, "levels or features"),
        ({"levels": np.zeros((4, 1))}, "5 links need a row"),
        ({"features": np.full((5, 1), -np.inf)}, "CannotLinkTemplate"),
        ({"levels": np.full((5, 1), 3), "sizes": [2]}, "reach"),
        ({"levels": np.zeros((5, 1)), "counts": [1, 1]}, "count each"),
        ({"levels": np.zeros((5, 1)), "counts": [1, 1, 0, 1, 1]}, "1 or more"),
        ({"levels": np.zeros((5, 1)), "statistics": ["a", "b"]}, "names"),
    ],
)
def test_what_does_not_fit_is_refused(given, message):
    with pytest.raises((ShapeError, InvalidArgumentError), match=message):
        LinkTemplate("links", 5, SPARSE, **given)


def test_tables_and_link_scores_give_level_zero_no_weight():
    weights = LevelWeights((2, 1), np.array([9.0, 8.0, 0.5, 1.0, 2.0, 4.0]))
    assert (weights.unlinked, weights.cluster, weights.link) == (9.0, 8.0, 0.5)
    assert [table.tolist() for table in weights.tables()] == [[0.0, 1.0, 2.0], [0.0, 4.0]]
    levels = np.array([[0, 0], [1, 0], [2, 1]], np.uint8)
    assert weights.link_scores(levels).tolist() == [0.5, 1.5, 6.5]


def test_weights_of_some_comparisons_are_taken_out_and_put_back():
    weights = LevelWeights((2, 1, 1), np.array([9.0, 8.0, 0.5, 1.0, 2.0, 0.0, 4.0]))
    assert weights.used() == [0, 2]
    some = weights.only([0, 2])
    assert (some.sizes, some.values.tolist()) == ((2, 1), [9.0, 8.0, 0.5, 1.0, 2.0, 4.0])
    assert LevelWeights.zeros((2, 1, 1)).with_tables([0, 2], some).values.tolist() == weights.values.tolist()


def test_steps_and_levels_turn_into_each_other():
    weights = LevelWeights((3, 1), np.array([9.0, 8.0, 0.5, 1.0, 2.0, 4.0, 3.0]))
    assert weights.cumulated().values.tolist() == [9.0, 8.0, 0.5, 1.0, 3.0, 7.0, 3.0]
    assert weights.cumulated().steps().values.tolist() == weights.values.tolist()


def test_weights_without_comparisons_are_the_fixed_ones_alone():
    weights = LevelWeights.zeros(())
    assert len(weights.values) == len(FIXED_NAMES)
    assert weights.link_scores(np.zeros((2, 0), np.uint8)).tolist() == [0.0, 0.0]


def test_weights_that_do_not_fit_the_levels_are_refused():
    with pytest.raises(ShapeError, match="need 6 weights"):
        LevelWeights((2, 1), np.zeros(5))
    with pytest.raises(InvalidArgumentError, match="zero or more levels"):
        LevelWeights.zeros((2, -1))


def test_cumulative_levels_score_as_the_sums_of_their_steps():
    plain = links_of(SPARSE)
    steps = LinkTemplate("links", 5, SPARSE, levels=plain.levels, sizes=plain.sizes, cumulative=True)
    weights = LevelWeights(plain.sizes, np.random.default_rng(1).normal(size=plain.size))
    one, two = Model([plain], weights.cumulated().values), Model([steps], weights.values)
    for world in partitions(5):
        assert two.score(world) == pytest.approx(one.score(world), abs=1e-12)
