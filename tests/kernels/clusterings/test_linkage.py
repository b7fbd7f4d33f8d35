"""Gibbs steps over linked items against plain ones, and what they leave invariant."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from factorwise.kernels.clusterings.linkage import CHANGED, gibbs_sweep, home_chances, link_rows
from factorwise.rng import Stream
from linkage_cases import (
    CASES,
    check,
    plain,
    pooled,
    random_walk,
    same_clusters,
    target,
    transition_matrix,
    walk_of,
)
from reference import linkage as reference

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
TEMPERATURES = (1.0, 0.7, 2.0)


def sweep(walk, stream, temperature, strict, shard=0, tally=None):
    """One compiled sweep over one shard."""
    first, last = walk.shard_start[shard : shard + 2].tolist()
    tally = np.zeros(2, np.int64) if tally is None else tally
    common = (walk.arrays, walk.settings, stream.state, walk.items, first, last)
    return gibbs_sweep(*common, temperature, strict, tally)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(2, 10), st.integers(1, 2), st.booleans())
def test_compiled_sweeps_go_the_way_of_plain_ones(seed, n, shards, strict):
    rng = np.random.default_rng(seed)
    walk = random_walk(rng, n, shards=shards)
    world = plain(walk)
    one, two = Stream(seed, 1), Stream(seed, 1)
    temperature = float(rng.choice([0.05, 0.7, 3.0]))
    for number in range(4):
        shard = number % (len(walk.shard_start) - 1)
        members = walk.items[walk.shard_start[shard] : walk.shard_start[shard + 1]].tolist()
        gain = sweep(walk, one, temperature, strict, shard)
        draws = reference.StreamDraws(two)
        expected = reference.gibbs_sweep(world, draws, members, temperature, strict)
        assert gain == pytest.approx(expected, abs=1e-9)
        assert one.state.tolist() == two.state.tolist()
        assert same_clusters(walk, world)
        check(walk)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_every_strict_gibbs_step_is_reversible(name, temperature):
    case = CASES[name]
    worlds, chances = target(case, temperature)
    for item in range(case["n"]):

        def step(world, draws, item=item):
            reference.gibbs_step(world, draws, item, temperature, True)

        matrix = transition_matrix(case, worlds, step)
        flow = chances[:, None] * matrix
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        assert np.abs(flow - flow.T).max() < 1e-14


def test_a_step_that_is_not_strict_is_not_reversible():
    case = CASES["missing links"]
    worlds, chances = target(case, 1.0)

    def step(world, draws):
        reference.gibbs_step(world, draws, 4, 1.0, False)

    flow = chances[:, None] * transition_matrix(case, worlds, step)
    assert np.abs(flow - flow.T).max() > 1e-3


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["forbidden", "heavy", "everything"])
def test_compiled_sweeps_from_exact_draws_give_exact_draws(name, seed):
    case = CASES[name]
    worlds, chances = target(case, 0.7)
    rng = np.random.default_rng(seed)
    starts = rng.choice(len(worlds), 3_000, p=chances)
    number = {world: k for k, world in enumerate(worlds)}
    walk, ends = walk_of(case), np.zeros(len(worlds))
    for k, start in enumerate(starts):
        walk.place_items(np.array(worlds[start]))
        sweep(walk, Stream(seed, k), 0.7, True)
        ends[number[tuple(walk.labels.tolist())]] += 1
    assert chisquare(*pooled(ends, len(starts) * chances)).pvalue > FALSE_ALARM


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 9), st.sampled_from([0.1, 1.0, 2.0]))
def test_chances_to_stay_are_those_of_the_clusterings_an_item_can_choose_among(seed, n, temperature):
    walk = random_walk(np.random.default_rng(seed), n)
    found = np.zeros(n, np.float32)
    home_chances(walk.arrays, walk.settings, walk.items, temperature, found)
    assert found == pytest.approx(reference.home_chances(plain(walk), temperature), rel=1e-5, abs=1e-7)
    check(walk)


def test_steps_at_temperatures_near_zero_take_the_best_place():
    walk = walk_of(CASES["missing links"])
    sweep(walk, Stream(0), 1e-4, True)
    assert walk.labels.tolist() == [0, 0, 0, 3, 3]
    assert walk.score == 1.5 + 0.75 + 1.0 + 2.0 + 2 * 0.5


def test_the_gain_adds_up_over_thousands_of_steps():
    walk = random_walk(np.random.default_rng(5), 300, density=0.03)
    stream, tally = Stream(3), np.zeros(2, np.int64)
    score = walk.score
    for temperature in np.geomspace(3.0, 0.05, 30):
        score += sweep(walk, stream, float(temperature), temperature < 1.0, tally=tally)
        assert walk.score == pytest.approx(score, abs=1e-7)
    check(walk)
    assert tally[CHANGED] > 1_000


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_rows_of_links_are_those_of_the_pairs(seed, n):
    rng = np.random.default_rng(seed)
    pairs = rng.permutation([(i, j) for i in range(n) for j in range(n) if i != j and rng.random() < 0.3])
    first, second = pairs.reshape(-1, 2).astype(np.int32).T.copy()
    start = np.full(n + 1, 7, np.int64)
    neighbor, pair = np.empty((2, 2 * len(first)), np.int32)
    link_rows(first, second, start, neighbor, pair)
    expected = reference.link_rows(n, first.tolist(), second.tolist())
    assert (start.tolist(), neighbor.tolist(), pair.tolist()) == expected
