"""The declared probabilities of every sampler over clusterings, without chance."""

import math
from functools import cache

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Blocks,
    Merge,
    RelocateToCandidate,
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
    RetypeCluster,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.world_gibbs import PartitionGibbs
from factorwise.rng import Stream
from factorwise.testing import exact_distribution, kernel_checks, proposer_checks
from factorwise.world.diff import Transfer
from factorwise.world.partition import Partition
from partition_cases import (
    KERNELS,
    MIXTURES,
    Recalled,
    Remembering,
    halves,
    kernels,
    model_of,
    within_blocks,
)
from plain_transitions import transition_matrix, transitions

NAMES = ("numbers", "reals", "edges", "repelling pairs", "clusters", "typed")
KINDS = {"untyped": (4, 1), "typed": (3, 2)}
SIZES = {**KINDS, "small": (3, 1), "smallest typed": (2, 2)}
MODELS = {kind: Remembering(model_of(NAMES, n)) for kind, (n, _) in SIZES.items()}


@cache
def worlds_of(kind, blocked):
    """All worlds; where blocks keep items apart, all within the blocks."""
    n, n_types = SIZES[kind]
    return [w for w in all_partitions(n, n_types) if not blocked or within_blocks(w, halves(n))]


@cache
def sampler_and_worlds(kind, name):
    sampler = kernels(MODELS[kind], SIZES[kind][0])[name]
    if isinstance(sampler, Metropolis):
        sampler = Metropolis(sampler.model, Recalled(sampler.proposer))
    return sampler, worlds_of(kind, "blocks" in name)


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.0])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_sampler_leaves_the_exact_distribution_invariant(kind, name, temperature):
    sampler, worlds = sampler_and_worlds(kind, name)
    target = exact_distribution(MODELS[kind], worlds, temperature)
    matrix = transition_matrix(sampler, worlds, temperature)
    assert matrix.min() > -1e-12
    np.testing.assert_allclose(target @ matrix, target, rtol=0, atol=1e-12)
    if temperature == 1.0:  # from every world to every other in the end
        often = np.linalg.matrix_power((matrix + np.eye(len(worlds))) / 2, 128)
        assert (often > 0).all() == reaches_all(kind, name)


def reaches_all(kind, name):
    """An item alone in its block never meets another, so without retyping it keeps its type."""
    return (kind, name) != ("typed", "blocks")


@pytest.mark.parametrize("name", ["all but restricted", "gibbs"])
def test_five_items_are_no_different(name):
    model, worlds = Remembering(model_of(NAMES, 5)), all_partitions(5)
    assert len(worlds) == 52
    target = exact_distribution(model, worlds, 0.7)
    matrix = transition_matrix(kernels(model, 5)[name], worlds, 0.7)
    np.testing.assert_allclose(target @ matrix, target, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all but restricted", "restricted and more"])
def test_four_typed_items_are_no_different(name):
    model, worlds = Remembering(model_of(NAMES, 4)), all_partitions(4, 2)
    target = exact_distribution(model, worlds, 2.0)
    matrix = transition_matrix(kernels(model, 4)[name], worlds, 2.0)
    np.testing.assert_allclose(target @ matrix, target, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["small", "smallest typed"])
@pytest.mark.parametrize("name", MIXTURES)
def test_every_mixture_passes_the_public_checks(name, kind):
    sampler, worlds = sampler_and_worlds(kind, name)
    for check in proposer_checks(sampler.proposer, worlds):
        check()


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kernel_passes_the_public_checks(kind, name):
    sampler, worlds = sampler_and_worlds(kind, name)
    for check in kernel_checks(sampler, worlds[::4]):
        check()


def test_a_single_item_stays_where_it_is():
    model, world = model_of(NAMES, 1), Partition.singletons(1)
    moves = [RelocateToCluster(), RelocateToItem(), RelocateToNew(), Merge(), Split(), SplitMerge()]
    for sampler in (Metropolis(model, PartitionMixture(moves)), PartitionGibbs(model)):
        assert not sampler.step(Stream(1), world).accepted
        assert list(transitions(sampler, world)) == []


def test_a_single_item_can_change_its_type():
    model, world = model_of(NAMES, 1), Partition.singletons(1, n_types=2)
    worlds = all_partitions(1, 2)
    for sampler in (Metropolis(model, PartitionMixture([RetypeCluster(), Merge()])), PartitionGibbs(model)):
        target = exact_distribution(model, worlds, 0.7)
        np.testing.assert_allclose(target @ transition_matrix(sampler, worlds, 0.7), target, atol=1e-12)
        assert {step.diff.new for step in _steps(sampler, world) if step.accepted} == {1}


def _steps(sampler, world):
    return [sampler.step(Stream(seed), world) for seed in range(20)]


def test_a_step_in_which_a_move_has_nothing_to_propose_changes_nothing():
    everything_apart = Partition.singletons(3)
    mixture = PartitionMixture([Split(), Merge()], [5.0, 1.0])
    *merges, stay = mixture.support(everything_apart)
    assert len(merges) == 3
    assert all(math.exp(p.log_forward) == pytest.approx(1 / 18) for p in merges)
    assert stay.diff is None
    assert math.exp(stay.log_forward) == pytest.approx(5 / 6)


def test_candidates_given_twice_count_twice():
    """Probabilities follow the list as it is given."""
    move = RelocateToCandidate.from_pairs(3, [(0, 1), (0, 1), (0, 2)])
    chances = {p.diff: math.exp(p.log_forward) for p in move.support(Partition.from_labels([0, 1, 0]))}
    assert chances[Transfer((0,), 0, 1)] == pytest.approx(2 / 3 / 3)
    for check in proposer_checks(PartitionMixture([move, RelocateToNew()]), all_partitions(3)):
        check()


BLOCKS = Blocks.from_keys([0, 0, 1, 1])
BAD = {
    "no moves": (lambda m: PartitionMixture([]), "at least one proposer"),
    "a weight too few": (lambda m: PartitionMixture([Merge(), Split()], [1.0]), "one weight for each"),
    "a weight of zero": (lambda m: PartitionMixture([Merge()], [0.0]), "leave a proposer out"),
    "an infinite weight": (lambda m: PartitionMixture([Merge()], [math.inf]), "leave a proposer out"),
    "merging across blocks": (
        lambda m: PartitionMixture([RelocateToItem(BLOCKS), Merge()]),
        r"use RelocateToItem\(blocks\), RelocateToNew, Split",
    ),
    "items across blocks": (
        lambda m: PartitionMixture([RelocateToItem(BLOCKS), RelocateToItem()]),
        "give all moves the same Blocks",
    ),
    "two sets of blocks": (
        lambda m: PartitionMixture([RelocateToItem(BLOCKS), RelocateToItem(Blocks.from_keys([0, 1, 1, 1]))]),
        "give all moves the same Blocks",
    ),
    "two lists of candidates": (
        lambda m: PartitionMixture([RelocateToCandidate.from_pairs(4, [(0, 1)])] * 2),
        "only one RelocateToCandidate.*into one",
    ),
    "a world across blocks": (
        lambda m: BLOCKS.check(Partition.from_labels([0, 0, 0, 1])),
        r"start from a world whose clusters lie within blocks, such as Partition.singletons\(n\)",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_configuration_is_refused_with_a_remedy(name):
    build, message = BAD[name]
    with pytest.raises(InvalidArgumentError, match=message):
        build(MODELS["untyped"])


def test_blocks_and_candidates_must_fit_the_world():
    with pytest.raises(ShapeError, match="cover 4 items, but the world has 3"):
        BLOCKS.check(Partition.singletons(3))
    for pairs, message in (
        ([(0, 0)], "two different items"),
        ([(0, 9)], "second must be"),
        ([(-1, 0)], "first must be"),
    ):
        with pytest.raises((InvalidArgumentError, ShapeError), match=message):
            RelocateToCandidate.from_pairs(4, pairs)
