"""Steps of Metropolis-Hastings and of Gibbs sampling with gains from any evaluator."""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

import assignment_cases
from factorwise.errors import NoCompiledFormError
from factorwise.inference.mcmc import (
    ConfidenceSample,
    DelayedAcceptance,
    Exact,
    Gibbs,
    Metropolis,
    PartitionMixture,
    PlainEngine,
    PlainEngineWarning,
    PoissonMinibatch,
    RelocateToItem,
    RelocateToNew,
    UniformSample,
    Walk,
    make_engine,
    sample,
)
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.inference.mcmc.metropolis import log_acceptance
from factorwise.model.model import Model
from factorwise.model.templates import PairTemplate, Tables
from factorwise.rng import Stream
from factorwise.variables.domain import Domain
from factorwise.variables.fields import Fields
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from factorwise.world.partition import Partition
from partition_cases import model_of, start_for
from plain_transitions import transitions

FALSE_ALARM = 1e-4
EVALUATORS = {
    "exact": Exact(),
    "uniform": UniformSample(0.5),
    "uniform sum": UniformSample(0.3, "sum"),
    "confidence": ConfidenceSample(1.5, minimum=2),
    "confidence by leaps": ConfidenceSample(1.5, minimum=2, growth=1.6, estimate="sum"),
    "stratified": ConfidenceSample(2.5, minimum=2, pooled=False),
    "delayed": DelayedAcceptance(UniformSample(0.5)),
    "minibatch": PoissonMinibatch(4.0),
}


def same_name(a, b):
    return (a.name == b.name, 1)


def bounded_model():
    fields = Fields(name=np.array([0, 0, 1, 1, 0, 1]))
    return Model([PairTemplate("p", fields, same_name, ["same", "bias"], bound=1.0)], [0.1, -0.03])


# steps


def test_the_ratio_of_proposals_can_be_left_out():
    model, world = model_of(["numbers"], 4), start_for(4)
    mixture = PartitionMixture([RelocateToItem(), RelocateToNew()])
    proposals = {str(p.diff): p for p in mixture.support(world) if p.diff is not None}
    for diff, probability in transitions(Metropolis(model, mixture, hastings=False), world):
        proposal, gain = proposals[str(diff)], model.gain(world, diff)
        assert probability == pytest.approx(math.exp(proposal.log_forward) * min(1.0, math.exp(gain)))
    ratio = [p.log_backward - p.log_forward for p in proposals.values()]
    assert max(map(abs, ratio)) > 0.1  # so that leaving it out matters


def test_automatic_choice_examines_everything():
    model = bounded_model()
    assert Metropolis(model, None, None).evaluator == Metropolis(model, None, "auto").evaluator == Exact()


def test_a_correction_is_weighed_after_the_estimate():
    proposal = Proposal("there", -1.0, -1.5)
    assert log_acceptance(2.0, proposal, 2.0, -3.0) == pytest.approx(0.0 - 1.5)
    assert log_acceptance(-1.0, proposal, 2.0, 3.0) == pytest.approx(-1.0)
    assert log_acceptance(-math.inf, proposal, 2.0, 0.0) == -math.inf


@pytest.mark.parametrize("name", EVALUATORS)
def test_scores_of_a_walk_stay_those_of_its_worlds_whatever_is_examined(name):
    model = bounded_model() if name == "minibatch" else model_of(["reals", "sizes"], 6)
    kernel = Metropolis(model, PartitionMixture([RelocateToItem(), RelocateToNew()]), EVALUATORS[name])
    engine = PlainEngine(kernel, Partition.singletons(6), model)
    assert engine.advance(Stream(5), 1.0, 60) > 0
    assert engine.score == pytest.approx(model.score(engine.world))
    assert (engine.factors_seen > 0) == (name != "exact")


def test_a_rejection_in_the_first_stage_costs_the_sample_only():
    model, world = model_of(["reals"], 8), Partition.from_labels([0, 0, 0, 0, 1, 1, 1, 1])
    kernel = Metropolis(model, PartitionMixture([RelocateToItem()]), DelayedAcceptance(UniformSample(0.3)))
    steps = [kernel.step(Stream(seed), world) for seed in range(80)]
    costs = {step.examined for step in steps if step.diff is not None}
    assert costs == {2, 7}
    assert all(step.examined == 7 for step in steps if step.accepted)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["uniform", "confidence", "delayed", "minibatch"])
def test_steps_go_where_the_transitions_say(name, seed):
    temperature, draws = 0.7, 1_500
    model = bounded_model() if name == "minibatch" else model_of(["reals"], 6)
    world = Partition.from_labels([0, 0, 0, 1, 1, 1])
    kernel = Metropolis(model, PartitionMixture([RelocateToItem(), RelocateToNew()]), EVALUATORS[name])
    wanted = Counter()
    for diff, probability in transitions(kernel, world, temperature):
        wanted[world.after(diff).canonical()] += probability
    wanted[world.canonical()] += 1.0 - sum(wanted.values())
    stream, seen = Stream(seed), Counter()
    for _ in range(draws):
        step = kernel.step(stream, world, temperature)
        seen[world.after(step.diff).canonical() if step.accepted else world.canonical()] += 1
    assert set(seen) <= set(wanted)
    observed, expected = zip(*((seen[key], draws * p) for key, p in wanted.items()), strict=True)
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


# engines


def test_what_no_walk_can_sample_is_walked_plainly_and_said():
    world, moves = start_for(6), PartitionMixture([RelocateToItem(), RelocateToNew()])
    kernel = Metropolis(model_of(["numbers"], 6), moves, PoissonMinibatch(bound=5.0))
    with pytest.raises(NoCompiledFormError, match="engine='plain'"):
        Walk(kernel, world)
    with pytest.warns(PlainEngineWarning, match="PoissonMinibatch has no compiled form"):
        assert isinstance(make_engine(kernel, world), PlainEngine)


def test_a_sampled_gibbs_step_is_never_walked_exactly():
    variables, model = assignment_cases.loop()
    world = next(iter(assignment_cases.all_worlds(variables)))
    kernel = Gibbs(model, evaluator=UniformSample(0.5))
    with pytest.raises(NoCompiledFormError, match="UniformSample"):
        Walk(kernel, world)
    with pytest.warns(PlainEngineWarning, match="UniformSample"):
        assert isinstance(make_engine(kernel, world), PlainEngine)


# Gibbs sampling


def many_unary_factors(count=7, labels=2, seed=0):
    """One variable with many factors of its own."""
    column = Column.hidden("type", Domain("type", [f"t{k}" for k in range(labels)]), 1)
    variables = Variables([column])
    tables = np.random.default_rng(seed).normal(size=(count, labels))
    return variables, Model([Tables(variables, np.zeros((count, 1), np.int64), tables)]), tables


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("estimate", ["mean", "sum"])
def test_a_sampled_gibbs_step_averages_the_conditional_over_the_samples(labels, estimate):
    variables, model, tables = many_unary_factors(labels=labels)
    world = Assignment.initial(variables)
    kernel = Gibbs(model, evaluator=UniformSample(0.4, estimate))
    chances = np.zeros(labels)
    subsets = list(combinations(range(7), 3))
    for subset in subsets:
        scores = tables[list(subset)].sum(axis=0) / 0.7 * (7 / 3 if estimate == "mean" else 1.0)
        weights = np.exp(scores - scores.max())
        chances += weights / weights.sum() / len(subsets)
    present = int(world.values[0])
    found = {int(diff.new[0]): chance for diff, chance in transitions(kernel, world, 0.7)}
    assert found == pytest.approx({k: chances[k] for k in range(labels) if k != present})


@pytest.mark.parametrize("scan", ["random", "systematic"])
@pytest.mark.parametrize("case", ["loop", "mixed", "counts", "zeros"])
def test_gibbs_over_all_factors_is_exact_gibbs(case, scan):
    variables, model = getattr(assignment_cases, case)()
    for world in list(assignment_cases.all_worlds(variables))[::5]:
        exact = dict(transitions(Gibbs(model, scan), world, 0.7))
        full = transitions(Gibbs(model, scan, ConfidenceSample(0.0)), world, 0.7)
        for diff, chance in full:
            assert chance == pytest.approx(exact.pop(diff), abs=1e-12)
        assert sum(exact.values()) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("sampler", [UniformSample(0.4), ConfidenceSample(3.0, minimum=2)])
def test_sampled_gibbs_steps_go_where_the_transitions_say(sampler, seed):
    variables, model, _ = many_unary_factors(labels=3)
    world = next(iter(assignment_cases.all_worlds(variables)))
    kernel, stream, draws = Gibbs(model, evaluator=sampler), Stream(seed), 2_000
    wanted = np.zeros(3)
    for diff, chance in transitions(kernel, world):
        wanted[diff.new[0]] += chance
    wanted[world.values[0]] = 1.0 - wanted.sum()
    seen, examined = np.zeros(3), 0
    for _ in range(draws):
        step = kernel.step(stream, world)
        seen[step.diff.new[0] if step.accepted else world.values[0]] += 1
        examined += step.examined
    assert chisquare(seen, draws * wanted).pvalue > FALSE_ALARM
    assert 0 < examined < 7 * draws


def test_a_sampled_walk_runs_through_sample():
    variables, model, _ = many_unary_factors()
    world = next(iter(assignment_cases.all_worlds(variables)))
    found = sample(
        Gibbs(model, evaluator=UniformSample(0.4)), world, draws=50, engine="plain", progress=False, seed=1
    )
    assert found.last[0].values[0] in (0, 1)
