"""Splits and merges of linked items against plain ones, and what they leave invariant."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from factorwise.kernels.clusterings.linkage import CHANGED
from factorwise.kernels.clusterings.linkage_splits import FIRST, NEITHER, jump_sweep
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
from reference import linkage as plain_steps
from reference import linkage_splits as reference

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
TEMPERATURES = (1.0, 0.7, 2.0)


def jump(walk, stream, temperature, strict, jumps, shard=0, tally=None):
    """Compiled splits and merges in one shard."""
    first, last = walk.shard_start[shard : shard + 2].tolist()
    tally = np.zeros(2, np.int64) if tally is None else tally
    common = (walk.arrays, walk.settings, stream.state, walk.items, first, last)
    return jump_sweep(*common, temperature, strict, jumps, tally)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(2, 10), st.integers(1, 2), st.booleans())
def test_compiled_jumps_go_the_way_of_plain_ones(seed, n, shards, strict):
    rng = np.random.default_rng(seed)
    walk = random_walk(rng, n, shards=shards, density=0.6)
    world = plain(walk)
    one, two = Stream(seed, 1), Stream(seed, 1)
    temperature = float(rng.choice([0.05, 0.7, 3.0]))
    for number in range(12):
        shard = number % (len(walk.shard_start) - 1)
        members = walk.items[walk.shard_start[shard] : walk.shard_start[shard + 1]].tolist()
        if not members:
            continue
        gain = jump(walk, one, temperature, strict, 3, shard)
        draws = plain_steps.StreamDraws(two)
        expected = reference.jump_sweep(world, draws, members, temperature, strict, 3)
        assert gain == pytest.approx(expected, abs=1e-9)
        assert one.state.tolist() == two.state.tolist()
        assert same_clusters(walk, world)
        check(walk)


@pytest.mark.parametrize("strict", [True, False])
def test_jumps_of_many_records_are_left_out_by_the_same_draws(strict):
    walk = random_walk(np.random.default_rng(3), 9, density=0.8)
    walk.arrays.weight[:] = 60  # two items are more than LARGE records
    walk.place_items(np.arange(9) // 3)
    world = plain(walk)
    one, two = Stream(5, 1), Stream(5, 1)
    for _ in range(10):
        gain = jump(walk, one, 500.0, strict, 3)
        expected = reference.jump_sweep(world, plain_steps.StreamDraws(two), range(9), 500.0, strict, 3)
        assert gain == pytest.approx(expected, rel=1e-9, abs=1e-6)
        assert one.state.tolist() == two.state.tolist()
        assert same_clusters(walk, world)


def jump_along(one, two, temperature, hastings=True):
    def step(world, draws):
        reference.split_or_merge(world, draws, one, two, temperature, hastings)

    return step


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_splits_and_merges_along_a_link_balance_each_other(name, temperature):
    case = CASES[name]
    worlds, chances = target(case, temperature)
    for one, two, _ in case["links"][:: 1 if case["n"] == 5 else 3]:
        matrix = transition_matrix(case, worlds, jump_along(two, one, temperature))
        flow = chances[:, None] * matrix
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        assert np.abs(flow - flow.T).max() < 1e-14


def test_without_the_odds_of_the_way_back_they_do_not():
    case = CASES["missing links"]
    worlds, chances = target(case, 1.0)
    flow = chances[:, None] * transition_matrix(case, worlds, jump_along(0, 2, 1.0, hastings=False))
    assert np.abs(flow - flow.T).max() > 1e-3


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_a_sweep_of_steps_and_jumps_leaves_the_target_as_it_is(temperature):
    case = CASES["forbidden"]
    worlds, chances = target(case, temperature)

    def all_steps(world, draws):
        for item in (0, 3, 1):
            plain_steps.gibbs_step(world, draws, item, temperature, True)

    def one_jump(world, draws):
        reference.jump_sweep(world, draws, range(case["n"]), temperature, True, 1)

    steps, jumps = (transition_matrix(case, worlds, step) for step in (all_steps, one_jump))
    assert chances @ steps == pytest.approx(chances, abs=1e-14)
    assert chances @ jumps == pytest.approx(chances, abs=1e-14)
    assert chances @ steps @ jumps @ jumps == pytest.approx(chances, abs=1e-14)
    far = np.linalg.matrix_power(steps @ jumps, 2**14)
    assert far == pytest.approx(np.tile(chances, (len(worlds), 1)), abs=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["missing links", "one per source", "everything"])
def test_compiled_jumps_from_exact_draws_give_exact_draws(name, seed):
    case = CASES[name]
    worlds, chances = target(case, 2.0)
    rng = np.random.default_rng(seed)
    starts = rng.choice(len(worlds), 3_000, p=chances)
    number = {world: k for k, world in enumerate(worlds)}
    walk, ends = walk_of(case), np.zeros(len(worlds))
    for k, start in enumerate(starts):
        walk.place_items(np.array(worlds[start]))
        jump(walk, Stream(seed, k), 2.0, True, 4)
        ends[number[tuple(walk.labels.tolist())]] += 1
    assert chisquare(*pooled(ends, len(starts) * chances)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("strict", [True, False])
def test_gains_add_up_over_thousands_of_jumps(strict):
    walk = random_walk(np.random.default_rng(8), 300, density=0.03)
    stream, tally = Stream(3), np.zeros(2, np.int64)
    score = walk.score
    for temperature in np.geomspace(3.0, 0.3, 20):
        score += jump(walk, stream, float(temperature), strict, 400, tally=tally)
        assert walk.score == pytest.approx(score, abs=1e-7)
        check(walk)
    assert tally[CHANGED] > 300


def test_what_another_shard_is_about_does_not_matter():
    """Its scratch holds sides while it splits: they are not ours."""
    ends = []
    for busy in (NEITHER, FIRST):
        walk = random_walk(np.random.default_rng(11), 60, shards=2, density=0.3, constrained=False)
        walk.arrays.side[walk.arrays.shard == 1] = busy
        gain = jump(walk, Stream(1), 1.0, True, 500)
        ends.append((gain, walk.labels.tolist()))
    assert ends[0] == ends[1]


def test_joining_large_clusters_keeps_the_order_of_both():
    """Two chains of ten, one link between them that is worth it."""
    links = [(i, i + 1, 3.0) for i in range(19)]
    walk = walk_of({"n": 20, "links": links, "apart": 0.0, "cluster": 0.0}, [0] * 10 + [1] * 10)
    tally = np.zeros(2, np.int64)
    jump(walk, Stream(1), 1e-3, False, 400, tally=tally)
    check(walk)
    assert walk.n_clusters == 1
    assert tally[CHANGED] == 1
