"""Compiled adaptive jumps sample the exact distribution, and are drawn as often as is declared."""

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from adaptive_cases import KINDS, jumps_for, model_for, proposer_for, walk_for
from factorwise.inference.exact.clusterings import PartitionEnumeration, all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.run import sample
from factorwise.rng import Stream
from factorwise.testing import exact_distribution
from factorwise.world.partition import Partition
from partition_cases import start_for
from reference.jumps import JumpLaw, clusters_of
from thinning import thinned

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test


@cache
def equilibrium(temperature):
    model = model_for("few", 5)
    worlds = all_partitions(5)
    return worlds, exact_distribution(model, worlds, temperature)


def pooled(expected, observed):
    """Put the rarest outcomes together, so that the chi-square approximation holds."""
    rare = expected < 5.0
    if not rare.any():
        return observed, expected
    return tuple(np.append(a[~rare], a[rare].sum()) for a in (observed, expected))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("parts", "kinds", "temperature"), thinned(("uniform", "guided"), KINDS, (1.0, 0.7, 2.5))
)
def test_chains_started_in_equilibrium_stay_there(parts, kinds, temperature, seed):
    """Starts drawn exactly make the ends independent exact draws, so that the level is honest."""
    chains = 1_000
    worlds, target = equilibrium(temperature)
    walk = walk_for("few", 5, worlds[0], parts=parts, kinds=kinds)
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    observed, changed, stream = np.zeros(len(worlds)), 0, Stream(seed, 1)
    drawn = np.random.default_rng(seed).multinomial(chains, target)
    for world, count in zip(worlds, drawn.tolist(), strict=True):
        for _ in range(count):
            walk.reset(world)
            changed += walk.advance(stream, temperature, 4)
            observed[position[walk.view.canonical()]] += 1
    assert changed > chains
    assert chisquare(*pooled(chains * target, observed)).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("parts", ["uniform", "guided"])
def test_jumps_are_drawn_as_often_as_the_law_says(parts, seed):
    draws = 3_000
    world = Partition.from_labels([0, 0, 0, 1, 1, 2])
    jumps = jumps_for("everything", 6, world, parts=parts)
    expected = {}
    for there, log_forward, _ in JumpLaw(jumps.proposer, 6).jumps(clusters_of(world)):
        expected[there] = expected.get(there, 0.0) + draws * math.exp(log_forward)
    observed = dict.fromkeys(expected, 0)
    for jump in jumps.draw(Stream(seed), draws):
        observed[clusters_of(world.after(jump.diff))] += 1
    counts = [np.array(list(found.values()), float) for found in (expected, observed)]
    assert chisquare(*pooled(*counts)).pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_sampling_with_a_trained_proposer_gives_the_exact_chances_of_being_together(seed):
    """Chains of one draw each: the draws are independent, so that counts are binomial."""
    model = model_for("few", 5)
    proposer = proposer_for(model, parts="guided", explore=0.1)
    pairs, chains = list(combinations(range(5), 2)), 120
    options = {"draws": 1, "burn_in": 300, "chains": chains, "engine": "compiled", "progress": False}
    found = sample(Metropolis(model, proposer), Partition.singletons(5), seed=seed, pairs=pairs, **options)
    together = PartitionEnumeration(model, 5).together()
    for pair, share in zip(pairs, found.co_clustering(), strict=True):
        count = round(share * chains)
        assert binomtest(count, chains, together[pair]).pvalue > FALSE_ALARM / len(pairs)


def test_draws_do_not_depend_on_the_number_of_threads():
    model = model_for("tables", 12)
    sampler = Metropolis(model, proposer_for(model))
    runs = [
        sample(sampler, start_for(12), draws=10, thin=20, chains=3, threads=threads, progress=False)
        for threads in (1, 2)
    ]
    np.testing.assert_array_equal(runs[0].scores, runs[1].scores)
    assert runs[0].last == runs[1].last
