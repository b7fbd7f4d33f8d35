"""The compiled samplers for assignments: same trace as the plain ones, and the exact distribution."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import chisquare

from assignment_cases import BIT, CASES, KERNELS, TAG, all_worlds, exact_distribution, kernels
from factorwise.errors import InvalidArgumentError, TemplateError
from factorwise.inference.mcmc.assignment_engine import AssignmentEngine
from factorwise.inference.mcmc.assignment_gibbs import Gibbs
from factorwise.inference.mcmc.assignment_proposals import LocalRelabel, Mixture, Swap, UniformRelabel
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.model.assignment_templates import Bias, Tables, Transitions
from factorwise.model.custom_assignment import DynamicTemplate
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from thinning import thinned

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
MODELS = {name: case() for name, case in CASES.items()}


def allowed_start(variables, model):
    return max(all_worlds(variables), key=model.score)


def stepped(kernel, stream, world, temperature, steps):
    """Step the plain kernel, apply what it accepts, and count."""
    accepted = 0
    for _ in range(steps):
        step = kernel.step(stream, world, temperature)
        if step.accepted:
            world.apply(step.diff)
            accepted += 1
    return accepted


def assert_same_trace(kernel, world, temperature, chunks=6, steps=25, seed=11):
    plain, fast = Stream(seed), Stream(seed)
    engine = AssignmentEngine(kernel, world)
    world = world.copy()
    for _ in range(chunks):
        accepted = stepped(kernel, plain, world, temperature, steps)
        assert engine.advance(fast, temperature, steps) == accepted
        assert engine.world == world
        assert engine.score == pytest.approx(kernel.model.score(world), abs=1e-9)
        np.testing.assert_array_equal(fast.state, plain.state)


@pytest.mark.parametrize("temperature", [0.7, 2.0])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES)
def test_the_compiled_sampler_follows_the_plain_one(case, kernel, temperature):
    variables, model = MODELS[case]
    assert_same_trace(kernels(variables, model)[kernel], allowed_start(variables, model), temperature)


def forbidden_start():
    """A world that is forbidden, with allowed neighbors."""
    tag = Column.hidden("tag", TAG, 3)
    variables = Variables([tag])
    table = np.zeros((3, 3))
    table[0, 0] = -math.inf
    model = Model([Tables(variables, [[0, 1]], table), Bias(tag)], [0.0, 1.0, 2.0])
    return model, Assignment.initial(variables)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_compiled_sampler_follows_the_plain_one_out_of_a_forbidden_world(kernel):
    model, world = forbidden_start()
    assert_same_trace(kernels(world.variables, model)[kernel], world, 1.0)


def test_without_hidden_variables_both_forms_stay_and_draw_alike():
    column = Column.of("bit", BIT, ["on", "off"])
    world = Assignment.initial(Variables([column]))
    model = Model([Transitions(column)])
    for proposer in (UniformRelabel(), LocalRelabel(model), Swap(), Mixture([UniformRelabel(), Swap()])):
        assert_same_trace(Metropolis(model, proposer), world, 1.0, chunks=2, steps=3)
    assert_same_trace(Gibbs(model), world, 1.0, chunks=2, steps=3)


@pytest.mark.statistical
@pytest.mark.parametrize(("case", "kernel"), thinned(CASES, KERNELS))
def test_chains_started_in_equilibrium_stay_there(case, kernel, seed):
    """Starts drawn exactly make the ends independent exact draws, so that the level is honest."""
    temperature, chains, steps = 0.7, 3_000, 7
    variables, model = MODELS[case]
    worlds = all_worlds(variables)
    target = exact_distribution(model, worlds, temperature)
    drawn = np.random.default_rng(seed).multinomial(chains, target)
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    ends = np.zeros(len(worlds))
    stream = Stream(seed, 1)
    sampler = kernels(variables, model)[kernel]
    for world, count in zip(worlds, drawn.tolist(), strict=True):
        if count:
            engine = AssignmentEngine(sampler, world)
            for _ in range(count):
                engine.restart(world)
                engine.advance(stream, temperature, steps)
                ends[position[engine.world.canonical()]] += 1
    assert ends[target == 0].sum() == 0
    expected, observed = pooled(chains * target[target > 0], ends[target > 0])
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


def pooled(expected, observed, least=5.0):
    """Put the rarest worlds together, so that the chi-square approximation holds."""
    order = np.argsort(expected)[::-1]
    expected, observed = expected[order], observed[order]
    kept = max(int((expected >= least).sum()), 1)
    while kept > 1 and 0 < expected[kept:].sum() < least:
        kept -= 1
    join = lambda a: np.append(a[:kept], a[kept:].sum()) if kept < len(a) else a  # noqa: E731
    return join(expected), join(observed)


def test_new_weights_count_after_a_refresh():
    column = Column.hidden("bit", BIT, 50)
    world = Assignment.initial(Variables([column]))
    model = Model([Bias(column)])
    engine = AssignmentEngine(Gibbs(model), world)
    model.weights = [-50.0, 50.0]
    engine.refresh()
    engine.advance(Stream(0), 1.0, 2_000)
    assert (engine.world.values == 1).all()
    assert engine.score == pytest.approx(50 * 50.0)


def test_two_chains_can_run_at_once():
    variables, model = MODELS["zeros"]
    world = allowed_start(variables, model)

    def ends(seed):
        engine = AssignmentEngine(Gibbs(model), world)
        engine.advance(Stream(seed), 1.0, 50_000)
        return engine.world

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ends, [1, 2])) == [ends(1), ends(2)]


def test_the_world_given_to_the_engine_stays_as_it_is():
    variables, model = MODELS["loop"]
    world = allowed_start(variables, model)
    before = world.copy()
    AssignmentEngine(Gibbs(model), world).advance(Stream(0), 1.0, 100)
    assert world == before


class OwnKernel:
    """A user's sampler."""

    model = None


class OwnProposer:
    """A user's proposer."""


BAD = {
    "a kernel of one's own": (lambda v, m: OwnKernel(), "OwnKernel has no compiled form"),
    "a proposer of one's own": (
        lambda v, m: Metropolis(m, OwnProposer()),
        "OwnProposer has no compiled form",
    ),
    "local scores of another model": (
        lambda v, m: Metropolis(m, LocalRelabel(Model(m.templates))),
        "build LocalRelabel with the kernel's model",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_compiled_is_refused(name):
    build, message = BAD[name]
    variables, model = MODELS["loop"]
    with pytest.raises(InvalidArgumentError, match=message):
        AssignmentEngine(build(variables, model), Assignment.initial(variables))


def greedy(values, variable, out):
    return 9 if values[0] == 1 else 0


def one(values, key):
    return (1.0,)


def unreadable(values, key):
    return (float(str(values[0]).strip()),)


def dynamic_engine(touched, statistics):
    bit = Column.hidden("bit", BIT, 3)
    template = DynamicTemplate("mine", touched, statistics, ["one"], key_width=1, max_touched=4)
    return AssignmentEngine(Gibbs(Model([template])), Assignment.initial(Variables([bit])))


def test_compiled_functions_that_claim_too_many_keys_are_told_to_raise_the_limit():
    with pytest.raises(TemplateError, match="raise max_touched"):
        dynamic_engine(greedy, one).advance(Stream(0), 1.0, 100)


def test_functions_that_cannot_be_compiled_are_named_with_the_way_out():
    with pytest.raises(TemplateError, match="cannot be compiled; it can still run"):
        dynamic_engine(greedy, unreadable)


def test_a_world_over_other_variables_cannot_take_over():
    variables, model = MODELS["loop"]
    engine = AssignmentEngine(Gibbs(model), Assignment.initial(variables))
    with pytest.raises(InvalidArgumentError, match="build a new one"):
        engine.restart(Assignment.initial(Variables(variables.columns)))


def test_a_temperature_of_zero_is_refused():
    variables, model = MODELS["loop"]
    engine = AssignmentEngine(Gibbs(model), Assignment.initial(variables))
    with pytest.raises(InvalidArgumentError, match="temperature must be greater than zero"):
        engine.advance(Stream(0), 0.0, 1)
