"""Walks of SampleRank that begin at the truth."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from factorwise.errors import InvalidArgumentError
from factorwise.learning.samplerank.learner import SampleRank
from factorwise.learning.samplerank.walkers import TrainingWorld
from walk_cases import MIXTURES, whole_world

FALSE_ALARM = 1e-6
ENGINES = ("compiled", "plain")


def where_walks_begin(world, share, *, passes=1, **options):
    """The metric where walks end that never leave their beginning: no weight is learned, all gains are 0."""
    still = SampleRank(accept="greedy", fixed=world.model.blocks.names)
    found = still.fit([world], passes=passes, steps=2, truth_starts=share, progress=False, **options)
    assert all(record.accepted == 0.0 for record in found.history)
    return [record.value for record in found.history]


def value_at_start(world):
    return world.preference.watch(world.start).value


@pytest.mark.parametrize("engine", ENGINES)
def test_all_walks_begin_at_the_truth_or_none(engine):
    world = whole_world(2, 9)
    assert where_walks_begin(world, 1.0, passes=5, engine=engine) == [1.0] * 5
    assert where_walks_begin(world, 0.0, passes=5, engine=engine) == pytest.approx(
        [value_at_start(world)] * 5
    )
    assert value_at_start(world) < 0.9


@pytest.mark.statistical
def test_a_share_of_the_walks_begins_at_the_truth(seed):
    world, passes, share = whole_world(2, 9), 400, 0.3
    values = where_walks_begin(world, share, passes=passes, seed=seed)
    at_truth = values.count(1.0)
    low, high = binom.interval(1.0 - FALSE_ALARM, passes, share)
    assert low <= at_truth <= high
    others = [value for value in values if value != 1.0]
    assert others == pytest.approx([value_at_start(world)] * len(others))


def test_walks_that_begin_at_the_truth_still_do_so_with_a_larger_share():
    world = whole_world(2, 9)
    few, many = (where_walks_begin(world, share, passes=60) for share in (0.3, 0.6))
    assert all(b == 1.0 for a, b in zip(few, many, strict=True) if a == 1.0)
    assert few.count(1.0) < many.count(1.0) < 60


def test_each_world_of_a_pass_is_decided_by_itself():
    worlds = [whole_world(seed, 9) for seed in range(8)]
    still = SampleRank(accept="greedy", fixed=worlds[0].model.blocks.names)
    found = still.fit(worlds, passes=6, steps=1, truth_starts=0.5, progress=False)
    values = {round(record.value, 9) for record in found.history}
    assert len(values) > 2
    assert max(values) < 1.0


def test_walks_that_go_on_begin_nowhere_anew():
    world = whole_world(2, 9)
    values = where_walks_begin(world, 1.0, passes=3, restart=False)
    assert values == pytest.approx([value_at_start(world)] * 3)


@pytest.mark.parametrize("mixture", ["items", "many"])
def test_compiled_and_plain_walks_learn_the_same_from_the_truth(mixture):
    worlds = [whole_world(seed, 8, n_types=2, proposer=MIXTURES[mixture]) for seed in (2, 3)]
    for share in (0.5, 1.0):
        fast, slow = (
            SampleRank(update="arow").fit(
                worlds, passes=3, steps=30, truth_starts=share, engine=engine, progress=False
            )
            for engine in ENGINES
        )
        np.testing.assert_allclose(fast.last, slow.last, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-9, atol=1e-12)
        assert fast.updates == slow.updates > 0
        values = [[record.value for record in found.history] for found in (fast, slow)]
        assert values[0] == pytest.approx(values[1])


@pytest.mark.parametrize("engine", ENGINES)
def test_the_truth_is_left_as_it_was(engine):
    world = whole_world(2, 9)
    before = world.truth.copy()
    learner = SampleRank(accept="always")
    first, again = (
        learner.fit([world], passes=2, steps=25, truth_starts=1.0, engine=engine, progress=False)
        for _ in range(2)
    )
    assert world.truth == before
    assert first.last.tobytes() == again.last.tobytes()
    assert first.history[0].value < 1.0


def test_other_starts_teach_other_weights():
    world = whole_world(2, 9)
    found = [
        SampleRank().fit([world], passes=1, steps=40, truth_starts=share, progress=False).last.tobytes()
        for share in (0.0, 1.0)
    ]
    assert found[0] != found[1]


def test_a_world_without_truth_is_refused_only_where_the_truth_is_needed():
    known = whole_world(2, 9)
    world = TrainingWorld(
        model=known.model,
        proposer=known.proposer,
        start=known.start,
        preference=known.preference,
        name="dev 7",
    )
    assert len(where_walks_begin(world, 0.0)) == 1
    with pytest.raises(InvalidArgumentError, match=r"dev 7 has no truth: give TrainingWorld\(truth=\.\.\.\)"):
        where_walks_begin(world, 0.1)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, math.inf])
def test_a_share_is_between_zero_and_one(share):
    with pytest.raises(InvalidArgumentError, match="truth_starts must be between 0 and 1"):
        where_walks_begin(whole_world(2, 9), share)
