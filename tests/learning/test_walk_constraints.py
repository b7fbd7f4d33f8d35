"""Constraints of a walk, solved at once: the batch alternative to SampleRank and its yardstick."""

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
    solve_ranking_program,
)
from factorwise.learning.ranking_bounds import largest_margin, radius_of

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


def test_the_program_satisfies_every_ranking_of_a_separable_walk():
    rows = collect_constraints([world()], steps=300, seed=1)
    solved = solve_ranking_program(rows.matrix(), C=1e3)
    assert len(rows) > 100
    assert (rows.matrix() @ solved.weights > 0.999).all()
    assert solved.weights[0] > 0 > solved.weights[1]


def test_unit_steps_along_the_same_kind_of_walk_make_no_more_mistakes_than_the_bound():
    rows = collect_constraints([world()], steps=300, seed=1).matrix()
    separation = largest_margin(rows)
    learned = SampleRank(update="unit", accept="truth", average=False).fit(
        [world()], passes=1, steps=300, seed=1, engine="plain", progress=False
    )
    assert 0 < learned.updates <= separable_bound(radius_of(rows), separation.margin)


def test_noise_leaves_slacks_but_the_program_still_ranks_most():
    noisy = TRUTH.copy()
    noisy[[0, 5]] = 2, 0
    rows = collect_constraints([world(noisy)], steps=400, seed=2).matrix()
    solved = solve_ranking_program(rows, C=1.0)
    assert solved.slacks.max() > 1.0
    assert (rows @ solved.weights > 0).mean() > 0.6


def test_two_walks_with_one_seed_meet_the_same_constraints():
    first, second = (collect_constraints([world()], steps=50, seed=3).matrix() for _ in range(2))
    assert (first != second).nnz == 0


def test_a_world_without_a_preference_has_no_rankings_to_collect():
    with pytest.raises(InvalidArgumentError, match="give TrainingWorld\\(preference="):
        collect_constraints([world(preference=False)])
