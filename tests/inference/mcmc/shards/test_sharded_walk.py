"""Sweeps over shards: the same for any number of threads, and what each shard would do by itself."""

from __future__ import annotations

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.link_moves import LinkedGibbs, LinkedJumps
from factorwise.inference.mcmc.shards.sharded_walk import ShardedWalk
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.clusterings.arrays import COMPACTIONS
from factorwise.kernels.compile.threads import Team
from factorwise.model.clusterings.link_templates import LinkTemplate, OnePerSourceTemplate
from factorwise.model.model import Model
from factorwise.model.templates import PairTemplate
from factorwise.rng import Stream
from factorwise.variables.fields import Fields
from factorwise.world.diff import Transfer
from factorwise.world.partition import Partition
from factorwise.world.shards import Shards
from link_cases import agree, check_layout


def linked_model(n, seed=0, *, function=False, counts=False):
    """Random links between items whose numbers are near each other, one per source, and a pair function."""
    rng = np.random.default_rng(seed)
    first = np.repeat(np.arange(n), 4)
    second = (first + rng.integers(1, 12, len(first))) % n
    pairs = np.unique(np.sort(np.column_stack([first, second]), axis=1), axis=0)
    features = rng.integers(-12, 14, (len(pairs), 1)) / 8.0
    count = rng.integers(1, 4, n) if counts else None
    templates = [
        LinkTemplate("links", n, pairs, features=features, counts=count),
        OnePerSourceTemplate("sources", np.where(rng.random(n) < 0.4, 1 << rng.integers(0, 5, n), 0)),
    ]
    weights = [-0.25, 0.125, 0.0, 1.0]
    if function:
        templates.append(PairTemplate("pairs", Fields(k=rng.integers(0, 3, n)), agree, ["same k"]))
        weights.append(0.125)
    return Model(templates, np.array(weights))


def walk_of(model, *, strict=False, labels=None):
    graph = model.templates[0].graph
    jumps = Metropolis(model, LinkedJumps(graph, strict))
    return ShardedWalk(LinkedGibbs(model, graph, strict), jumps, labels=labels)


def test_layouts_hold_every_item_once_before_and_after_sweeps():
    n = 300
    walk = walk_of(linked_model(n))
    for number in range(6):
        blocks = np.sort(np.random.default_rng(number).choice(np.arange(1, n), 3, replace=False))
        spread = np.searchsorted(blocks, walk.labels, side="right")
        walk.lay_out(spread)
        check_layout(walk.shards)
        walk.sweep(1, number, 0.5, team=Team(1), jumps=2.0)
        check_layout(walk.shards)
        assert (spread[walk.labels] == spread).all()


def test_arenas_of_shards_are_compacted():
    walk = walk_of(linked_model(120))
    walk.lay_out(np.arange(120) // 60)
    for number in range(40):
        walk.sweep(3, number, 5.0, team=Team(1), jumps=4.0)
    assert walk.shards.counters[:, COMPACTIONS].min() > 0
    check_layout(walk.shards)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("function", [True, False])
def test_gains_are_those_of_the_model_and_threads_do_not_matter(strict, function):
    n, found = 400, []
    model = linked_model(n, function=function, counts=strict)
    for threads in (1, 3):
        walk = walk_of(model, strict=strict)
        with Team(threads) as team:
            for number in range(3):
                walk.lay_out(walk.labels.astype(np.int64) * 7 // n)
                before = walk.score
                gain = walk.sweep(5, number * 2, 0.7, team=team, sweeps=2)
                assert walk.score == pytest.approx(before + gain, abs=1e-6)
        found.append((walk.labels.tolist(), walk.proposals, walk.changes))
    assert found[0] == found[1]
    assert found[0][2] > 0


def test_a_shard_does_what_its_rows_would_do_by_themselves():
    n, half = 200, 100
    model = linked_model(n)
    links, sources = model.templates
    walk = walk_of(model)
    walk.lay_out(np.arange(n) // half)
    inside = (links.graph.first >= half) & (links.graph.second >= half)
    pairs = np.column_stack([links.graph.first, links.graph.second])[inside] - half
    alone = Model(
        [
            LinkTemplate("links", half, pairs, features=links.features[inside]),
            OnePerSourceTemplate("sources", sources.sources[half:]),
        ],
        model.weights,
    )
    # a link into the other shard costs a jump: without jumps there is no difference
    walk.sweep(2, 0, 0.5, team=Team(1), jumps=0.0, sweeps=3)
    graph = alone.templates[0].graph
    plain = Walk(LinkedGibbs(alone, graph, strict=False), Partition.singletons(half))
    for number in range(3):
        plain.advance(Stream(2, 0, number, 1), 0.5, half)
    np.testing.assert_array_equal(
        Partition.from_keys(walk.labels[half:]).dense_labels(), plain.view.dense_labels()
    )


def test_one_shard_walks_as_the_walk_of_the_same_parts():
    n = 150
    model = linked_model(n, counts=True)
    sharded = walk_of(model, strict=True)
    graph = model.templates[0].graph
    gibbs, jumps = LinkedGibbs(model, graph), Metropolis(model, LinkedJumps(graph))
    world = Partition.singletons(n)
    for number in range(3):
        stream = Stream(9, 0, number, 0)
        first = Walk(gibbs, world)
        first.advance(stream, 0.8, n)
        second = Walk(jumps, first.view)
        second.advance(stream, 0.8, n // 2)
        world = second.world
        sharded.sweep(9, number, 0.8, team=Team(1), jumps=0.5)
    assert Partition.from_keys(sharded.labels) == world


def test_some_items_may_go_anywhere_and_chances_are_those_of_a_step():
    n = 100
    model = linked_model(n)
    walk = walk_of(model)
    walk.lay_out(np.arange(n) // 25)
    walk.sweep(0, 0, 0.5, team=Team(1))
    with Team(2) as team:
        chances = walk.home_chances(0.5, team=team)
    graph = model.templates[0].graph
    world = Partition.from_keys(walk.labels)
    for item in range(0, n, 7):
        at_home, total = 0.0, 0.0
        near = {world.cluster_of(int(k)) for k in graph.neighbor[graph.start[item] : graph.start[item + 1]]}
        home = world.cluster_of(item)
        targets = near | {home} | ({-1} if world.size_of(home) > 1 else set())
        for cluster in targets:
            gain = 0.0 if cluster == home else model.gain(world, Transfer((item,), home, cluster))
            total += np.exp(gain / 0.5)
            at_home += np.exp(gain / 0.5) if cluster == home else 0.0
        assert chances[item] == pytest.approx(at_home / total, rel=1e-5)
    before = walk.score
    gain = walk.sweep_some(np.flatnonzero(chances < 0.5), 0, 1, 0.01)
    assert gain > 0.0
    assert walk.score == pytest.approx(before + gain, abs=1e-6)


def test_clusters_lie_wholly_in_one_shard():
    shards = Shards([0, 0, 1], most=2)
    with pytest.raises(InvalidArgumentError, match="items 1 and 0 are in one cluster"):
        shards.lay_out(np.array([0, 1, 1]))
    with pytest.raises(InvalidArgumentError, match="raise most"):
        shards.lay_out(np.array([2, 2, 0]))


def test_a_copy_goes_its_own_way():
    walk = walk_of(linked_model(60))
    walk.sweep(0, 0, 0.5, team=Team(1))
    twin = walk.copy()
    before = walk.labels
    np.testing.assert_array_equal(twin.labels, before)
    twin.sweep(0, 1, 5.0, team=Team(1))
    np.testing.assert_array_equal(walk.labels, before)
    assert (twin.labels != before).any()
