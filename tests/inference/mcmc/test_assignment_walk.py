"""Compiled walks over assignments: the exact distribution, and the trace of interpreted and plain ones."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from assignment_cases import (
    BIT,
    CASES,
    KERNELS,
    TAG,
    all_worlds,
    exact_distribution,
    forbidden_start,
    kernels,
    walked_matrix,
)
from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError, TemplateError
from factorwise.inference.mcmc import assignment_gibbs
from factorwise.inference.mcmc.assignment_gibbs import Gibbs
from factorwise.inference.mcmc.engine import PlainEngine, PlainEngineWarning, make_engine
from factorwise.inference.mcmc.evaluators import UniformSample
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.assignment_proposals import (
    LocalRelabel,
    ResampleSpan,
    Swap,
    UniformRelabel,
)
from factorwise.inference.mcmc.proposals.mixtures import Mixture
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.compile.programs import Program
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.labels.custom import DynamicTemplate
from factorwise.model.labels.library import Bias, Tables, Transitions
from factorwise.model.model import Model
from factorwise.model.template import Template
from factorwise.model.weights import SparseVector
from factorwise.rng import Stream
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from plain_transitions import transition_matrix
from thinning import thinned

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
MODELS = {name: case() for name, case in CASES.items()}


def allowed_start(variables, model):
    return max(all_worlds(variables), key=model.score)


SLOW = [("mixed", "block gibbs sweep"), ("mixed", "span")]  # some 300 paths from each of 36 worlds


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.0])
@pytest.mark.parametrize(
    ("case", "kernel"),
    [pytest.param(*both, marks=pytest.mark.slow if both in SLOW else ()) for both in product(CASES, KERNELS)],
)
def test_every_path_of_a_walk_leaves_the_exact_distribution_invariant(case, kernel, temperature):
    variables, model = MODELS[case]
    worlds = all_worlds(variables)
    target = exact_distribution(model, worlds, temperature)
    allowed = np.flatnonzero(target)
    sampler = kernels(variables, model)[kernel]
    matrix = walked_matrix(sampler, [worlds[row] for row in allowed], temperature)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(target[allowed] @ matrix, target[allowed], atol=1e-12)
    declared = transition_matrix(sampler, worlds, temperature)[np.ix_(allowed, allowed)]
    np.testing.assert_allclose(matrix, declared, atol=1e-12)


def stepped(kernel, stream, world, temperature, steps):
    """Step the plain kernel, apply what it accepts, and count."""
    accepted = 0
    for _ in range(steps):
        step = kernel.step(stream, world, temperature)
        if step.accepted:
            world.apply(step.diff)
            accepted += 1
    return accepted


def assert_same_trace(kernel, world, temperature, chunks=4, steps=30):
    """Compare a compiled walk with an interpreted one and with steps of the plain kernel."""
    walk, interpreted = Walk(kernel, world), Walk(kernel, world, interpreted=True)
    world = world.copy()
    fast, plain, slow = Stream(3), Stream(3), Stream(3)
    for _ in range(chunks):
        accepted = stepped(kernel, plain, world, temperature, steps)
        assert walk.advance(fast, temperature, steps) == accepted
        assert interpreted.advance(slow, temperature, steps) == accepted
        assert walk.world == world == interpreted.world
        assert walk.score == pytest.approx(kernel.model.score(world), abs=1e-9)
        np.testing.assert_array_equal(fast.state, plain.state)
        np.testing.assert_array_equal(slow.state, plain.state)


# compiled walks tell forbidden worlds apart by what else they score, plain ones do not: spans differ then
UNLIKE = ("pairs", "span")


@pytest.mark.parametrize("temperature", [0.7, 2.0])
@pytest.mark.parametrize(("case", "kernel"), [both for both in product(CASES, KERNELS) if both != UNLIKE])
def test_compiled_interpreted_and_plain_walks_are_one(case, kernel, temperature):
    variables, model = MODELS[case]
    assert_same_trace(kernels(variables, model)[kernel], allowed_start(variables, model), temperature)


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_walks_leave_a_forbidden_world_alike(kernel):
    model, world = forbidden_start()
    assert_same_trace(kernels(world.variables, model)[kernel], world, 1.0)


def test_without_hidden_variables_all_walks_stay_and_draw_alike():
    column = Column.of("bit", BIT, ["on", "off"])
    world = Assignment.initial(Variables([column]))
    model = Model([Transitions(column)])
    spans = ResampleSpan(model, [[0, 1]])
    for proposer in (
        UniformRelabel(),
        LocalRelabel(model),
        spans,
        Swap(),
        Mixture([UniformRelabel(), Swap()]),
    ):
        assert_same_trace(Metropolis(model, proposer), world, 1.0, chunks=2, steps=3)
    for scan in ("random", "systematic"):
        assert_same_trace(Gibbs(model, scan), world, 1.0, chunks=2, steps=3)


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.0])
@pytest.mark.parametrize("acceptance", ["metropolis", "barker"])
def test_other_acceptances_leave_the_exact_distribution_invariant(acceptance, temperature):
    variables, model = MODELS["zeros"]
    worlds = [world for world in all_worlds(variables) if model.score(world) > -np.inf]
    target = exact_distribution(model, worlds, temperature)
    proposer = Mixture([UniformRelabel(), LocalRelabel(model, 0.8), Swap()])
    matrix = walked_matrix(Metropolis(model, proposer, acceptance=acceptance), worlds, temperature)
    np.testing.assert_allclose(target @ matrix, target, atol=1e-12)


def test_a_walk_finds_its_way_out_of_worlds_that_break_several_constraints():
    """Single changes from all off to exactly two on pass through worlds that are forbidden as well."""
    bit = Column.hidden("bit", BIT, 4)
    never = -np.inf
    model = Model([Cardinality(bit, "on", fixed=[never, never, 0.0, never, never]), Bias(bit)], [0.0, 0.3])
    walk = Walk(Metropolis(model, UniformRelabel()), Assignment.initial(Variables([bit])))
    assert walk.score == never
    walk.advance(Stream(0), 1.0, 50)
    assert int(walk.view.values.sum()) == 2
    assert walk.score == pytest.approx(model.score(walk.view))


def test_reading_ahead_changes_nothing(monkeypatch):
    variables, model = MODELS["mixed"]
    world = allowed_start(variables, model)
    ends = []
    for limit in (0, 1 << 60):
        monkeypatch.setattr(assignment_gibbs, "LARGE", limit)
        walk, stream = Walk(Gibbs(model), world), Stream(4)
        changed = [walk.advance(stream, 0.7, steps) for steps in (1, 7, 100, 30)]
        ends.append((changed, walk.world.canonical(), stream.state.tolist()))
    assert ends[0] == ends[1]
    monkeypatch.setattr(assignment_gibbs, "LARGE", 0)
    assert_same_trace(Gibbs(model), world, 1.0)


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
    walk = Walk(kernels(variables, model)[kernel], worlds[0])
    for world, count in zip(worlds, drawn.tolist(), strict=True):
        for _ in range(count):
            walk.reset(world)
            walk.advance(stream, temperature, steps)
            ends[position[walk.view.canonical()]] += 1
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


def test_a_walk_scores_with_the_weights_that_it_is_given():
    column = Column.hidden("bit", BIT, 50)
    world = Assignment.initial(Variables([column]))
    walk = Walk(Gibbs(Model([Bias(column)])), world, weights=np.array([-50.0, 50.0]))
    walk.advance(Stream(0), 1.0, 2_000)
    assert (walk.view.values == 1).all()


def test_two_chains_can_run_at_once():
    variables, model = MODELS["zeros"]
    world = allowed_start(variables, model)

    def ends(seed):
        walk = Walk(Gibbs(model), world)
        walk.advance(Stream(seed), 1.0, 50_000)
        return walk.world

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ends, [1, 2])) == [ends(1), ends(2)]


def test_the_world_given_to_a_walk_stays_as_it_is():
    variables, model = MODELS["loop"]
    world = allowed_start(variables, model)
    before = world.copy()
    Walk(Gibbs(model), world).advance(Stream(0), 1.0, 100)
    assert world == before


class OwnKernel:
    """A user's sampler."""

    model = None


class OwnProposer:
    """A user's proposer."""


class OwnTemplate(Template):
    """A user's template: how many variables have label 0."""

    name, size = "own", 1

    def statistics(self, world):
        return SparseVector.of([0], [float((world.values == 0).sum())])

    def difference(self, world, diff):
        return SparseVector.of([0], [float(diff.new.count(0) - diff.old.count(0))])


def own_gain(mine, move):
    """Count one change from or to label 0."""
    return mine.weights[mine.offset[0]] * (np.float64(move.target == 0) - np.float64(move.source == 0))


def own_gains(mine, move, choice):
    """Count label 0 among those on offer."""
    for k in range(move.choices):
        if choice.targets[k] == 0:
            choice.out[k] += mine.weights[mine.offset[0]]


class OwnGain(OwnTemplate):
    """The same with a program that has one function, the gain of a change."""

    def program(self, world, offset, weights):
        return Program(gain=own_gain, arrays={"weights": weights, "offset": [offset]}, name="label 0")


class OwnGains(OwnTemplate):
    """The same with a program that has the other function, the gains of all labels on offer."""

    def program(self, world, offset, weights):
        return Program(gains=own_gains, arrays={"weights": weights, "offset": [offset]}, name="label 0")


BAD = {
    "a kernel of one's own": (lambda m: OwnKernel(), "OwnKernel has no compiled form"),
    "a proposer of one's own": (lambda m: Metropolis(m, OwnProposer()), "OwnProposer has no program"),
    "a mixture with one's own": (
        lambda m: Metropolis(m, Mixture([OwnProposer(), Swap()])),
        "OwnProposer has no program",
    ),
    "local scores of another model": (
        lambda m: Metropolis(m, LocalRelabel(Model(m.templates))),
        "build LocalRelabel with the kernel's model",
    ),
    "sampled factors": (
        lambda m: Gibbs(m, evaluator=UniformSample(0.5)),
        "UniformSample has no compiled form",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_compiled_is_refused(name):
    build, message = BAD[name]
    variables, model = MODELS["loop"]
    with pytest.raises(NoCompiledFormError, match=message):
        Walk(build(model), Assignment.initial(variables))


def test_a_template_without_a_program_is_named_and_told_what_to_write():
    variables, model = MODELS["loop"]
    kernel = Gibbs(Model([*model.templates, OwnTemplate()]))
    with pytest.raises(TemplateError, match=r"'own' \(OwnTemplate\) has no program: .* Program\(gain=...\)"):
        Walk(kernel, Assignment.initial(variables))
    with pytest.warns(PlainEngineWarning, match="OwnTemplate"):
        assert isinstance(make_engine(kernel, Assignment.initial(variables)), PlainEngine)


@pytest.mark.parametrize("template", [OwnGain, OwnGains])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_template_of_ones_own_walks_in_every_sampler_with_either_function(kernel, template):
    variables, model = MODELS["zeros"]
    own = Model([*model.templates, template()], [*model.weights, 0.7])
    assert_same_trace(kernels(variables, own)[kernel], allowed_start(variables, own), 0.7)


def greedy(values, variable, out):
    return 9 if values[0] == 1 else 0


def one(values, key):
    return (1.0,)


def unreadable(values, key):
    return (float(str(values[0]).strip()),)


def dynamic_walk(touched, statistics):
    bit = Column.hidden("bit", BIT, 3)
    template = DynamicTemplate("mine", touched, statistics, ["one"], key_width=1, max_touched=4)
    return Walk(Gibbs(Model([template])), Assignment.initial(Variables([bit])))


def test_compiled_functions_that_claim_too_many_keys_are_told_to_raise_the_limit():
    with pytest.raises(TemplateError, match="raise max_touched"):
        dynamic_walk(greedy, one).advance(Stream(0), 1.0, 100)


def test_functions_that_cannot_be_compiled_are_named_with_the_way_out():
    with pytest.raises(NoCompiledFormError, match=r"cannot be compiled.*It still runs with engine='plain'"):
        dynamic_walk(greedy, unreadable)


def test_a_world_over_other_variables_cannot_take_over():
    variables, model = MODELS["loop"]
    walk = Walk(Gibbs(model), Assignment.initial(variables))
    walk.reset(Assignment(Variables(variables.columns), [1, 0, 1]))
    assert walk.view.values.tolist() == [1, 0, 1]
    others = [Column.hidden("bit", BIT, 4), Column.of("bit", BIT, ["on"] * 3), Column.hidden("bit", TAG, 3)]
    for column in others:
        with pytest.raises(ShapeError, match="give a world of the same"):
            walk.reset(Assignment.initial(Variables([column])))


def test_a_temperature_of_zero_is_refused():
    variables, model = MODELS["loop"]
    walk = Walk(Gibbs(model), Assignment.initial(variables))
    with pytest.raises(InvalidArgumentError, match="temperature must be greater than zero"):
        walk.advance(Stream(0), 0.0, 1)


def test_large_tables_are_read_as_they_lie():
    """Factors with tables of their own, too many to be kept twice."""
    rng = np.random.default_rng(3)
    tag = Column.hidden("tag", TAG, 1_000)
    variables = Variables([tag])
    pairs = rng.permuted(np.tile(np.arange(1_000), (2_000, 1)), axis=1)[:, :2]
    model = Model([Tables(variables, pairs, rng.normal(size=(2_000, 3, 3)))])
    world = Assignment.uniform(variables, 1)
    for kernel in (Gibbs(model), Metropolis(model, UniformRelabel())):
        walk = Walk(kernel, world)
        start = walk.score
        assert walk.advance(Stream(2), 1.0, 5_000) > 1_000
        assert walk.score == pytest.approx(model.score(walk.view), abs=1e-8)
        assert walk.score > start
