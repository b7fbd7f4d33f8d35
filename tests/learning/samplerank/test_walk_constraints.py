"""The rankings along a walk: those of a plain look at its steps, and what the bounds say of them."""

import numpy as np
import pytest

from factorwise import Fields, Model, Partition, mcmc, templates
from factorwise.errors import InvalidArgumentError
from factorwise.learning import (
    SampleRank,
    TrainingWorld,
    TruthPreference,
    collect_constraints,
    separable_bound,
)
from factorwise.learning.samplerank import walk_constraints
from factorwise.learning.samplerank.ranking_bounds import largest_margin, noisy_bound, radius_of
from factorwise.rng import Stream, as_stream

TRUTH = np.repeat([0, 1, 2], 4)


def agree(a, b):
    return a.x == b.x, a.x != b.x


def world(codes=TRUTH, preference=True):
    fields = Fields(x=codes)
    return TrainingWorld(
        model=Model([templates.PairTemplate("x", fields, agree, ["same", "other"])]),
        proposer=mcmc.PartitionMixture([mcmc.RelocateToItem(), mcmc.RelocateToNew()]),
        start=Partition.singletons(len(codes)),
        preference=TruthPreference(TRUTH, "rand") if preference else None,
        truth=Partition.from_keys(TRUTH),
    )


def test_the_largest_margin_ranks_every_pair_of_a_separable_walk():
    rows = collect_constraints([world()], steps=300, seed=1)
    assert rows.shape[0] > 100
    direction = largest_margin(rows).direction
    assert (rows @ direction > 0.0).all()
    assert direction[0] > 0 > direction[1]


def test_every_ranking_is_the_difference_of_two_worlds_toward_the_better_one():
    """With everything accepted and one move at a time, the worlds of the walk tell what its rows must be."""
    training = world()
    rows = collect_constraints([training], steps=40, accept="always", seed=5).toarray()
    seen, here = [], training.start.copy()
    stream = Stream(as_stream(5).bits(), 0)
    judge = training.preference.watch(here)
    for _ in range(40):
        diff = training.proposer.draw(stream, here).diff
        if diff is None:
            continue
        better = judge.gain(here, diff)
        if better != 0.0:
            seen.append(np.sign(better) * training.model.difference(here, diff).to_dense(2))
        judge.applied(here, diff)
        here.apply(diff)
    np.testing.assert_array_equal(rows, seen)


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_many_rankings_are_gathered_piece_by_piece_and_sampled_to_what_there_is_room_for(engine, monkeypatch):
    whole = collect_constraints([world(), world()], steps=60, seed=2, engine=engine)
    monkeypatch.setattr(walk_constraints, "ENTRIES", 14)
    pieces = collect_constraints([world(), world()], steps=60, seed=2, engine=engine)
    np.testing.assert_array_equal(whole.toarray(), pieces.toarray())
    some = collect_constraints([world(), world()], steps=60, seed=2, capacity=10, engine=engine)
    assert some.shape == (10, 2)
    rows = whole.toarray().tolist()
    assert all(row in rows for row in some.toarray().tolist())


def test_unit_steps_along_the_same_kind_of_walk_make_no_more_mistakes_than_the_bound():
    rows = collect_constraints([world()], steps=300, seed=1)
    separation = largest_margin(rows)
    learned = SampleRank(update="unit", accept="truth", average=False).fit(
        [world()], passes=1, steps=300, seed=1, engine="plain", progress=False
    )
    assert 0 < learned.updates <= separable_bound(radius_of(rows), separation.margin)


def test_noise_leaves_no_margin_and_a_bound_all_the_same():
    noisy = TRUTH.copy()
    noisy[[0, 5]] = 2, 0
    rows = collect_constraints([world(noisy)], steps=400, seed=2)
    assert largest_margin(rows) is None
    learned = SampleRank(update="unit", accept="truth", average=False).fit(
        [world(noisy)], passes=1, steps=400, seed=2, progress=False
    )
    assert 0 < learned.updates <= noisy_bound(rows, [1.0, -1.0], 1.0)


def test_two_walks_with_one_seed_meet_the_same_constraints():
    first, second = (collect_constraints([world()], steps=50, seed=3) for _ in range(2))
    assert (first != second).nnz == 0


def test_a_world_without_a_preference_has_no_rankings_to_collect():
    with pytest.raises(InvalidArgumentError, match="give TrainingWorld\\(preference="):
        collect_constraints([world(preference=False)])
