"""Walks over blocks in threads: each part by itself, and the same for any number of threads."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.partition_mixture import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import Blocks, RelocateToItem, RelocateToNew
from factorwise.inference.mcmc.shards.block_walk import BlockWalk, relocate_in_turn
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.compile.threads import Team
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.world.partition import Partition
from restriction_cases import templates_of

N = 90
BLOCKS = Blocks.from_keys(np.arange(N) * 31 % 17)
ALONE = Team(1)


def model_of(names, n=N):
    known = templates_of(n)
    templates = [known[name] for name in names]
    size = sum(template.size for template in templates)
    return Model(templates, np.random.default_rng(1).integers(-3, 4, size) / 8.0)


def with_new(model, blocks):
    return Metropolis(model, PartitionMixture([RelocateToItem(blocks), RelocateToNew()], [0.6, 0.4]))


@pytest.mark.parametrize("kernel", [relocate_in_turn, with_new])
@pytest.mark.parametrize("names", [["counted"], ["counted", "edges", "tally"], ["pairs", "clusters"]])
def test_any_number_of_threads_gives_the_same_walk(names, kernel):
    model, ends = model_of(names), []
    for threads in (1, 2, 3):
        walk, stream = BlockWalk(model, BLOCKS, Partition.singletons(N), kernel=kernel, most=5), Stream(8)
        with Team(threads) as team:
            changed = [walk.sweep(stream, 1.0, team=team, sweeps=2) for _ in range(3)]
        ends.append((walk.labels.tolist(), walk.score, changed, stream.bits()))
        assert walk.score == pytest.approx(model.score(walk.world), abs=1e-4)
    assert ends[0] == ends[1] == ends[2]
    assert sum(ends[0][2]) > 50
    BLOCKS.check(walk.world)


def test_a_part_walks_as_by_itself():
    model = model_of(["counted", "edges"])
    walk = BlockWalk(model, BLOCKS, Partition.singletons(N), most=17)
    walk.sweep(Stream(4), 0.8, team=ALONE, sweeps=3)
    root = Stream(4).bits()
    assert len(walk.parts) > 10
    for part, items in enumerate(walk.parts):
        alone = Walk(
            relocate_in_turn(model.restrict_to(items), Blocks.from_keys(BLOCKS.of[items])),
            Partition.singletons(len(items)),
        )
        alone.advance(Stream(root, part), 0.8, 3 * len(items))
        assert Partition.from_keys(walk.labels[items]) == alone.view


def test_the_number_of_parts_is_a_walk_of_its_own_and_no_more_than_blocks():
    model, ends = model_of(["counted"]), set()
    for parts in (1, 3, 17, 64):
        walk = BlockWalk(model, BLOCKS, Partition.singletons(N), most=parts)
        walk.sweep(Stream(4), 0.8, team=ALONE, sweeps=3)
        ends.add(tuple(walk.labels.tolist()))
    assert len(ends) == 3  # 64 is 17


def test_worlds_are_visited_as_often_as_they_should_be():
    """Two blocks of three items: clusterings of each by their probabilities, independently."""
    n, blocks = 6, Blocks.from_keys([0, 0, 0, 1, 1, 1])
    model = model_of(["counted", "clusters"], n)
    worlds = [w for w in all_partitions(n) if not set(w.labels[:3].tolist()) & set(w.labels[3:].tolist())]
    scores = np.array([model.score(world) for world in worlds])
    wanted = np.exp(scores - scores.max())
    number = {world.canonical(): k for k, world in enumerate(worlds)}
    walk, stream, seen = (
        BlockWalk(model, blocks, worlds[0], kernel=with_new),
        Stream(2),
        np.zeros(len(worlds)),
    )
    draws = 6_000
    for _ in range(draws):
        walk.sweep(stream, 1.0, team=ALONE)
        seen[number[walk.world.canonical()]] += 1
    assert len(worlds) == 25
    np.testing.assert_allclose(seen / draws, wanted / wanted.sum(), atol=0.03)


def test_worlds_across_blocks_and_settings_out_of_range_are_refused():
    model = model_of(["counted"])
    with pytest.raises(InvalidArgumentError, match="reaches across blocks"):
        BlockWalk(model, BLOCKS, Partition.from_labels(np.zeros(N, np.int64)))
    with pytest.raises(InvalidArgumentError, match=r"most.*at least 1"):
        BlockWalk(model, BLOCKS, Partition.singletons(N), most=0)
    walk = BlockWalk(model, BLOCKS, Partition.singletons(N))
    with pytest.raises(InvalidArgumentError, match=r"sweeps.*at least 1"):
        walk.sweep(Stream(0), 1.0, team=ALONE, sweeps=0)
    with pytest.raises(InvalidArgumentError, match=r"temperature.*greater than zero"):
        walk.sweep(Stream(0), 0.0, team=ALONE)
