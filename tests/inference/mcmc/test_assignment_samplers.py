"""The declared probabilities of every sampler for assignments, without chance."""

import math

import numpy as np
import pytest

from assignment_cases import (
    BIT,
    CASES,
    KERNELS,
    PROPOSERS,
    TAG,
    all_worlds,
    exact_distribution,
    forbidden_start,
    kernels,
    reaches_all,
)
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.assignment_gibbs import BlockGibbs, Gibbs
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.assignment_proposals import (
    LocalRelabel,
    ResampleSpan,
    Swap,
    UniformRelabel,
)
from factorwise.inference.mcmc.proposals.mixtures import Mixture
from factorwise.model.labels.library import Bias, SkipEdges, Transitions
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.testing import proposer_checks
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from plain_transitions import transition_matrix, transitions

MODELS = {name: case() for name, case in CASES.items()}


def allowed_worlds(variables, model):
    return [world for world in all_worlds(variables) if model.score(world) > -math.inf]


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.0])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES)
def test_every_sampler_leaves_the_exact_distribution_invariant(case, kernel, temperature):
    variables, model = MODELS[case]
    worlds = all_worlds(variables)
    target = exact_distribution(model, worlds, temperature)
    matrix = transition_matrix(kernels(variables, model)[kernel], worlds, temperature)
    assert matrix.min() > -1e-12
    np.testing.assert_allclose(target @ matrix, target, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES)
def test_samplers_reach_every_allowed_world_where_their_moves_can(case, kernel):
    variables, model = MODELS[case]
    worlds = all_worlds(variables)
    matrix = transition_matrix(kernels(variables, model)[kernel], worlds, 1.0)
    allowed = exact_distribution(model, worlds, 1.0) > 0
    often = np.linalg.matrix_power((matrix + np.eye(len(worlds))) / 2, 64)[np.ix_(allowed, allowed)]
    assert (often > 0).all() == reaches_all(case, kernel)


FORBIDDING = {"counts", "pairs", "zeros"}  # there is no way back from a world that is never entered


@pytest.mark.parametrize("kernel", PROPOSERS)
@pytest.mark.parametrize("case", [case for case in CASES if case not in FORBIDDING])
def test_every_proposer_passes_the_checks_of_any_proposer(case, kernel):
    variables, model = MODELS[case]
    for check in proposer_checks(kernels(variables, model)[kernel].proposer, all_worlds(variables)):
        check()


@pytest.mark.parametrize("gain", [-3.0, 0.0, 1.0])
@pytest.mark.parametrize("kernel", PROPOSERS)
@pytest.mark.parametrize("case", CASES)
def test_as_much_flows_back_as_flows_there_between_allowed_worlds(case, kernel, gain):
    variables, model = MODELS[case]
    proposer = kernels(variables, model)[kernel].proposer
    worlds = allowed_worlds(variables, model)
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    there, back = np.zeros((2, len(worlds), len(worlds)))
    for row, world in enumerate(worlds):
        proposals = list(proposer.support(world))
        assert sum(math.exp(p.log_forward) for p in proposals) == pytest.approx(1.0, abs=1e-12)
        for proposal in proposals:
            column = None if proposal.diff is None else position.get(world.after(proposal.diff).canonical())
            if column is not None:
                forward, backward = proposal.log_forward, proposal.log_backward
                there[row, column] += math.exp(min(forward, backward + gain))
                back[row, column] += math.exp(min(backward, forward + gain))
    np.testing.assert_allclose(there, back.T, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES)
def test_a_step_decides_by_its_stream_alone_and_leaves_the_world_alone(case, kernel):
    variables, model = MODELS[case]
    sampler = kernels(variables, model)[kernel]
    world = allowed_worlds(variables, model)[0]
    before = world.canonical()
    for seed in range(10):
        first, second = (sampler.step(Stream(seed), world, 0.7) for _ in range(2))
        assert first == second
        assert world.canonical() == before
        if first.diff is not None:
            gain = model.score(world.after(first.diff)) - model.score(world)
            assert first.gain == pytest.approx(gain, abs=1e-12)


def test_local_proposals_at_temperature_one_are_accepted_more_often_than_gibbs_moves():
    variables, model = MODELS["loop"]
    worlds = all_worlds(variables)
    local = transition_matrix(Metropolis(model, LocalRelabel(model)), worlds, 1.0)
    gibbs = transition_matrix(Gibbs(model), worlds, 1.0)
    off_diagonal = ~np.eye(len(worlds), dtype=bool)
    assert (local[off_diagonal] >= gibbs[off_diagonal] - 1e-12).all()


@pytest.mark.parametrize("sharpness", [1.0, 1.6])
def test_spans_of_a_skip_chain_are_drawn_from_their_conditional_distribution(sharpness):
    tag = Column.of("tag", TAG, ["N", "V", "O", "N", "N"], observed=[False, False, False, False, True])
    variables = Variables([tag])
    model = Model([Transitions(tag, chains=[0, 3, 5]), SkipEdges(tag, [[0, 4], [1, 3]]), Bias(tag)])
    model.weights = np.random.default_rng(3).normal(size=model.blocks.size)
    proposer = ResampleSpan(model, [range(3), range(3, 5)], 1, 3, sharpness)
    lengths, seen = set(), 0
    for world in all_worlds(variables)[::7]:
        for proposal in proposer.support(world):
            if proposal.diff is not None:
                gain = model.gain(world, proposal.diff)
                ratio = proposal.log_backward - proposal.log_forward
                assert ratio == pytest.approx(-sharpness * gain, abs=1e-9)
                lengths.add(len(proposal.diff.variables))
                seen += 1
    assert lengths == {1, 2, 3}
    assert seen > 100


@pytest.mark.parametrize("kernel", ["uniform", "local", "span", "mixture", "gibbs", "block gibbs"])
def test_a_forbidden_world_is_left(kernel):
    model, world = forbidden_start()
    sampler = kernels(world.variables, model)[kernel]
    stream = Stream(1)
    for _ in range(20):
        step = sampler.step(stream, world)
        if step.accepted:
            world.apply(step.diff)
    assert model.score(world) > -math.inf


def test_gibbs_draws_from_the_conditional_even_in_a_forbidden_world():
    model, world = forbidden_start()
    chances = {
        diff.new[0]: chance for diff, chance in transitions(Gibbs(model), world) if diff.variables == (0,)
    }
    assert chances[2] / chances[1] == pytest.approx(math.e)
    assert sum(chances.values()) == pytest.approx(1 / 3)


def all_observed():
    column = Column.of("bit", BIT, ["on", "off"])
    variables = Variables([column])
    return Model([Transitions(column)]), Assignment.initial(variables)


@pytest.mark.parametrize("kernel", ["uniform", "local", "swap", "mixture", "gibbs", "gibbs sweep"])
def test_a_world_without_hidden_variables_stays(kernel):
    model, world = all_observed()
    sampler = {
        "uniform": Metropolis(model, UniformRelabel()),
        "local": Metropolis(model, LocalRelabel(model)),
        "swap": Metropolis(model, Swap()),
        "mixture": Metropolis(model, Mixture([UniformRelabel(), Swap()])),
        "gibbs": Gibbs(model),
        "gibbs sweep": Gibbs(model, scan="systematic"),
    }[kernel]
    assert not sampler.step(Stream(0), world).accepted
    assert sum(chance for _, chance in transitions(sampler, world)) == 0.0


BAD = {
    "sharpness of zero": (
        lambda v, m: LocalRelabel(m, 0.0),
        "sharpness must be a finite number greater than zero",
    ),
    "a span of none": (lambda v, m: ResampleSpan(m, [[0]], 0), "shortest must be at least 1"),
    "spans the wrong way round": (lambda v, m: ResampleSpan(m, [[0]], 3, 2), "longest must be at least 3"),
    "a chain with a variable twice": (lambda v, m: ResampleSpan(m, [[0], [2, 2]]), "chain 1 names .* twice"),
    "a chain beyond the world": (
        lambda v, m: ResampleSpan(m, [[2, 9]]).check(Assignment.initial(v)),
        "variables 2 to 9, but there are only 6",
    ),
    "no components": (lambda v, m: Mixture([]), "at least one proposer"),
    "a weight of zero": (lambda v, m: Mixture([Swap()], [0.0]), "leave a proposer out"),
    "a weight too many": (lambda v, m: Mixture([Swap()], [1.0, 2.0]), "one weight for each"),
    "an unknown scan": (lambda v, m: Gibbs(m, "zigzag"), "'random' or 'systematic'"),
    "no blocks": (lambda v, m: BlockGibbs(m, []), "at least one block"),
    "a variable twice": (lambda v, m: BlockGibbs(m, [[0, 0]]), "twice"),
    "an observed variable": (lambda v, m: BlockGibbs(m, [[0, 1]]).blocks_of(v), "leave it out of the block"),
    "a variable that is not there": (lambda v, m: BlockGibbs(m, [[99]]).blocks_of(v), "there are only 6"),
    "too many settings": (lambda v, m: BlockGibbs(m, [[0, 2]], limit=8).blocks_of(v), "use smaller blocks"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_configuration_is_refused_with_a_remedy(name):
    build, message = BAD[name]
    with pytest.raises(InvalidArgumentError, match=message):
        build(*MODELS["mixed"])
