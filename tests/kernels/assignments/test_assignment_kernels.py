"""The compiled samplers against their twins, on grounded graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignment_cases import STATIC, all_worlds
from factorwise.inference.mcmc.assignment_engine import (
    AssignmentEngine,
    counted_factors,
    local_factors,
    scope_strides,
)
from factorwise.inference.mcmc.assignment_gibbs import BlockGibbs, Gibbs
from factorwise.inference.mcmc.assignment_proposals import LocalRelabel, Mixture, Swap, UniformRelabel
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.kernels.assignments import assignment_gains
from factorwise.kernels.assignments.assignment_gains import WholeFactors
from factorwise.model.unrolling import unroll_counts
from factorwise.rng import Stream
from factorwise.world.assignment import Assignment
from reference import assignment_gains as gains_twin
from reference import assignment_metropolis as metropolis_twin
from reference import assignment_sweeps as sweeps_twin

MODELS = {name: case() for name, case in STATIC.items()}
GROUNDED = {name: unroll_counts(model, variables) for name, (variables, model) in MODELS.items()}


def differences(scores):
    """Scores relative to the best one: constants of the rest of the world drop out."""
    scores = np.array(scores)
    return scores - scores.max()


@pytest.mark.parametrize("name", STATIC)
@given(seed=st.integers(0, 2**31))
@settings(max_examples=15)
def test_local_scores_equal_rescoring_the_whole_world(name, seed):
    variables, _ = MODELS[name]
    graph, counts = GROUNDED[name]
    world = Assignment.uniform(variables, seed)
    local, counted = local_factors(graph), counted_factors(counts, world)
    for variable in variables.hidden.tolist():
        labels = int(variables.cardinality[variable])
        scores = np.zeros(labels)
        assignment_gains.local_scores(world.values, local, counted, variable, labels, scores)
        whole = gains_twin.local_scores(world.values.tolist(), graph, counts, variable)
        if np.isfinite(whole).any() and np.isfinite(scores).any():
            np.testing.assert_allclose(differences(scores), differences(whole), atol=1e-12)
        for first in range(labels):
            pair = assignment_gains.two_scores(world.values, local, counted, variable, first, labels - 1)
            np.testing.assert_allclose(pair, (scores[first], scores[labels - 1]), atol=1e-12)


@pytest.mark.parametrize("name", STATIC)
@given(seed=st.integers(0, 2**31))
@settings(max_examples=15)
def test_scores_of_pairs_and_blocks_equal_rescoring_the_whole_world(name, seed):
    variables, _ = MODELS[name]
    graph, counts = GROUNDED[name]
    world = Assignment.uniform(variables, seed)
    other = world.copy()
    first, second = np.random.default_rng(seed).choice(variables.hidden, size=2, replace=False).tolist()
    counted = counted_factors(counts, other)
    for variable in (first, second):
        label = (int(world.values[variable]) + 1) % int(variables.cardinality[variable])
        assignment_gains.assign(other.values, counted, variable, label)
    recounted = counted_factors(counts, other)
    np.testing.assert_array_equal(counted.counts, recounted.counts)

    start, factor = graph.touching
    touched = np.unique(np.concatenate([factor[start[v] : start[v + 1]] for v in (first, second)]))
    groups = np.unique(
        np.concatenate([counted.factor[counted.start[v] : counted.start[v + 1]] for v in (first, second)])
    )
    whole = WholeFactors(
        graph.scope_start, graph.scope, scope_strides(graph), graph.table_start, graph.tables
    )
    local = local_factors(graph)
    before = counted_factors(counts, world)
    pairs = [
        assignment_gains.pair_score(w.values, local, c, first, second)
        for w, c in ((world, before), (other, counted))
    ]
    blocks = [
        assignment_gains.score_of(w.values, whole, c, touched, groups)
        for w, c in ((world, before), (other, counted))
    ]
    totals = [gains_twin.total_score(w.values.tolist(), graph, counts) for w in (world, other)]
    if np.isfinite(totals).all():
        assert pairs[1] - pairs[0] == pytest.approx(totals[1] - totals[0], abs=1e-12)
        assert blocks[1] - blocks[0] == pytest.approx(totals[1] - totals[0], abs=1e-12)
    np.testing.assert_allclose(pairs, blocks, atol=1e-12)


@given(
    scores=st.lists(st.one_of(st.floats(-5, 5), st.just(-np.inf)), min_size=1, max_size=6),
    chance=st.floats(0, 1, exclude_max=True),
    without=st.integers(-1, 5),
)
def test_picking_by_chance_equals_the_twin(scores, chance, without):
    array = np.array(scores)
    fast = assignment_gains.pick_position(chance, array, len(array), 0.5, without, np.zeros(len(array)))
    assert fast == gains_twin.pick_position(chance, [0.5 * score for score in scores], without)


COMPONENTS = {
    "uniform": [("uniform", 1.0, 1.0)],
    "local": [("local", 1.0, 0.7)],
    "swap": [("swap", 1.0, 1.0)],
    "mixture": [("swap", 1.5, 1.0), ("uniform", 1.0, 1.0), ("local", 2.0, 1.2)],
}


def proposer(model, components):
    made = [
        {"uniform": UniformRelabel(), "local": LocalRelabel(model, sharpness), "swap": Swap()}[kind]
        for kind, _, sharpness in components
    ]
    return made[0] if len(made) == 1 else Mixture(made, [weight for _, weight, _ in components])


def run_both(name, kernel, twin):
    """Run some steps of both and compare; ``twin`` gets the problem, a stream and the values."""
    variables, model = MODELS[name]
    graph, counts = GROUNDED[name]
    pools = [pool.tolist() for pool in variables.pools]
    problem = sweeps_twin.Problem(graph, counts, variables.movable.tolist(), pools)
    world = max(all_worlds(variables), key=model.score)
    values = world.values.tolist()
    engine = AssignmentEngine(kernel, world)
    fast, slow = Stream(3), Stream(3)
    for _ in range(4):
        changed = twin(problem, slow, values)
        assert engine.advance(fast, 0.7, 20) == changed
        assert engine.world.values.tolist() == values
    np.testing.assert_array_equal(fast.state, slow.state)


@pytest.mark.parametrize("kind", COMPONENTS)
@pytest.mark.parametrize("name", STATIC)
def test_metropolis_steps_equal_the_twin(name, kind):
    _, model = MODELS[name]
    run_both(
        name,
        Metropolis(model, proposer(model, COMPONENTS[kind])),
        lambda p, stream, values: metropolis_twin.metropolis_steps(
            p, stream, values, COMPONENTS[kind], 0.7, 20
        ),
    )


@pytest.mark.parametrize("scan", ["random", "systematic"])
@pytest.mark.parametrize("name", STATIC)
def test_gibbs_steps_equal_the_twin(name, scan):
    _, model = MODELS[name]
    run_both(
        name,
        Gibbs(model, scan),
        lambda p, stream, values: sweeps_twin.gibbs_steps(p, stream, values, scan == "systematic", 0.7, 20),
    )


@pytest.mark.parametrize("scan", ["random", "systematic"])
@pytest.mark.parametrize("name", STATIC)
def test_block_gibbs_steps_equal_the_twin(name, scan):
    variables, model = MODELS[name]
    hidden = variables.hidden.tolist()
    blocks = [hidden[:2], hidden[1:]]
    run_both(
        name,
        BlockGibbs(model, blocks, scan),
        lambda p, stream, values: sweeps_twin.block_gibbs_steps(
            p, stream, values, blocks, scan == "systematic", 0.7, 20
        ),
    )
