"""What evaluators examine and estimate, and that every part of the library that uses them does so rightly."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import assignment_cases
from factorwise.errors import InvalidArgumentError, TemplateError
from factorwise.inference.mcmc import (
    ConfidenceSample,
    DelayedAcceptance,
    Exact,
    Gibbs,
    Metropolis,
    PartitionMixture,
    PoissonMinibatch,
    RelocateToItem,
    UniformRelabel,
    UniformSample,
)
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.model.contributions import Contributions
from factorwise.model.model import Model
from factorwise.model.templates import PairTemplate
from factorwise.rng import Stream
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from partition_cases import MODELS, all_diffs, model_of, start_for
from plain_transitions import mean_acceptance, outcomes, samples, transitions

FALSE_ALARM = 1e-4
GAINS = np.array([0.8, -1.3, 0.4, 2.0, -0.6, 0.1, -0.9])
STRATUM = np.array([0, 0, 0, 0, 1, 1, 1], np.int8)
LISTED = Contributions.of(GAINS, stratum=STRATUM, certain=[False] * 6 + [True], bound=np.full(7, 0.06))
SAMPLERS = {
    "exact": Exact(),
    "uniform": UniformSample(0.5),
    "uniform sum": UniformSample(0.3, "sum"),
    "confidence": ConfidenceSample(1.5, minimum=2),
    "confidence by leaps": ConfidenceSample(1.5, minimum=2, growth=1.6, estimate="sum"),
    "stratified": ConfidenceSample(2.5, minimum=2, pooled=False),
}
EVALUATORS = {
    **SAMPLERS,
    "delayed": DelayedAcceptance(UniformSample(0.5)),
    "minibatch": PoissonMinibatch(4.0),
}


# the factors that a diff touches


@pytest.mark.parametrize("name", MODELS)
def test_contributions_over_clusterings_sum_to_gain_and_gradient(name):
    model = model_of(MODELS[name], 6)
    world = start_for(6)
    for diff in list(all_diffs(world))[::3]:
        listed = model.contributions(world, diff)
        assert listed.total() == pytest.approx(model.gain(world, diff), abs=1e-10)
        gradient = listed.gradient(np.ones(len(listed))).to_dense(model.blocks.size)
        wanted = model.difference(world, diff).to_dense(model.blocks.size)
        np.testing.assert_allclose(gradient, wanted, atol=1e-10)


@pytest.mark.parametrize("case", ["loop", "mixed", "counts", "zeros", "functions"])
def test_contributions_over_labels_sum_to_gain_and_gradient(case):
    variables, model = getattr(assignment_cases, case)()
    for world in list(assignment_cases.all_worlds(variables))[::3]:
        for proposal in UniformRelabel().support(world):
            if proposal.diff is None:
                continue
            listed = model.contributions(world, proposal.diff, bounds=True)
            gain = model.gain(world, proposal.diff)
            assert listed.total() == pytest.approx(gain, abs=1e-10)
            if math.isfinite(gain):
                gradient = listed.gradient(np.ones(len(listed))).to_dense(model.blocks.size)
                wanted = model.difference(world, proposal.diff).to_dense(model.blocks.size)
                np.testing.assert_allclose(gradient, wanted, atol=1e-10)
            free = ~listed.certain
            assert (np.abs(listed.gain[free]) <= listed.bound[free] + 1e-12).all()


@pytest.mark.parametrize("name", ["repulsion", "edges", "everything"])
def test_the_way_back_touches_the_same_factors_with_opposite_signs(name):
    model = model_of(MODELS[name], 6)
    world = start_for(6)
    for diff in list(all_diffs(world))[::3]:
        there = model.contributions(world, diff)
        other = world.copy()
        inverse = other.apply(diff)
        back = model.contributions(other, inverse)
        np.testing.assert_allclose(np.sort(there.gain), np.sort(-back.gain), atol=1e-10)
        # what the way there joins, the way back separates
        joined, separated = there.gain[there.stratum == 0], back.gain[(back.stratum == 1) & ~back.certain]
        free = joined if not there.certain.any() else there.gain[(there.stratum == 0) & ~there.certain]
        np.testing.assert_allclose(np.sort(free), np.sort(-separated), atol=1e-10)


def test_a_pair_is_one_factor_however_many_templates_score_it():
    world = Partition.from_labels([0, 0, 0, 1, 1, 1])
    diff = next(d for d in all_diffs(world) if d.items == (0,) and d.target != -1)
    one = model_of(["numbers"], 6).contributions(world, diff)
    two = model_of(["numbers", "reals"], 6).contributions(world, diff)
    assert len(one) == len(two) == 5
    np.testing.assert_array_equal(two.stratum, [0, 0, 0, 1, 1])


def test_factors_of_clusters_and_hard_factors_are_never_left_out():
    world = Partition.from_labels([0, 0, 0, 1, 1, 1])
    model = model_of(["numbers", "clusters"], 6)
    listed = model.contributions(world, next(iter(all_diffs(world))))
    assert listed.certain.sum() == 1
    for _, multiplier in samples(UniformSample(0.2), listed.gain[None], listed.stratum, listed.certain):
        assert multiplier[listed.certain] == 1.0


def test_a_template_that_cannot_list_its_factors_says_what_to_use_instead():
    variables, model = assignment_cases.runs()
    world = next(iter(assignment_cases.all_worlds(variables)))
    diff = next(UniformRelabel().support(world)).diff
    with pytest.raises(TemplateError, match=r"evaluator=Exact\(\)"):
        model.contributions(world, diff)


# samples


def test_uniform_samples_have_the_size_asked_for():
    sampler = UniformSample(0.3)
    assert [sampler.count(n) for n in (0, 1, 2, 5, 10, 100)] == [0, 1, 1, 2, 3, 30]
    for seed in range(20):
        assert sampler.evaluate(Stream(seed), np.arange(10.0)).examined == 3


@pytest.mark.parametrize("pooled", [True, False])
def test_confidence_stops_where_the_published_interval_says(pooled):
    sampler = ConfidenceSample(0.7, minimum=3, pooled=pooled)
    rng = np.random.default_rng(4)
    gains, stratum = rng.normal(size=40), np.repeat(np.array([0, 1], np.int8), [25, 15])
    listed = Contributions.of(gains, stratum=stratum)
    for seed in range(10):
        multiplier = sampler.evaluate(Stream(seed), listed).multiplier
        parts = [np.ones(40, bool)] if pooled else [stratum == 0, stratum == 1]
        variance = 0.0
        for part in parts:
            seen = gains[part & (multiplier > 0)]
            n, N = len(seen), part.sum()
            variance += (N / 40) ** 2 * seen.var(ddof=1) / n * (N - n) / (N - 1)
            assert multiplier[part & (multiplier > 0)] == pytest.approx(N / n)
        assert 2 * 1.96 * math.sqrt(variance) < 0.7
        assert np.count_nonzero(multiplier) < 40


def test_equal_factors_need_the_least_sample_and_wild_ones_need_all():
    sampler = ConfidenceSample(0.5, minimum=4)
    assert sampler.evaluate(Stream(0), np.full(50, 1.7)).examined == 4
    assert sampler.evaluate(Stream(0), np.random.default_rng(0).normal(0.0, 30.0, 50)).examined == 50


def test_a_least_sample_of_few_can_miss_that_factors_differ():
    mixed = np.where(np.arange(50) % 2, 9.0, -9.0)
    shares = []
    for minimum in (2, 5, 10):
        found = ConfidenceSample(0.5, minimum=minimum)
        shares.append(np.mean([found.evaluate(Stream(seed), mixed).examined < 50 for seed in range(100)]))
    assert shares[0] > 0.3  # two of two kinds are alike about every second time
    assert shares[0] > shares[1] > shares[2]


@pytest.mark.parametrize(
    "sampler", [UniformSample(1.0), ConfidenceSample(0.0), ConfidenceSample(0.0, pooled=False)]
)
def test_all_factors_are_examined_at_share_one_and_interval_zero(sampler):
    for gains in (GAINS, GAINS[:2], np.ones(9)):
        found = sampler.evaluate(Stream(3), Contributions.of(gains, stratum=np.arange(len(gains)) % 2))
        assert found.examined == len(gains)
        assert found.gain == pytest.approx(gains.sum())


@pytest.mark.parametrize("name", SAMPLERS)
def test_fewer_than_two_factors_are_evaluated_exactly(name):
    for gains in (np.zeros(0), np.array([0.7])):
        found = SAMPLERS[name].evaluate(Stream(1), gains)
        assert (found.gain, found.examined) == (pytest.approx(gains.sum()), len(gains))


def test_the_mean_is_unbiased_and_the_sum_is_the_sampled_share_of_it():
    for share in (0.2, 0.5, 0.9):
        mean, total = outcomes(UniformSample(share), GAINS), outcomes(UniformSample(share, "sum"), GAINS)
        assert mean.probability @ mean.gain == pytest.approx(GAINS.sum())
        share_seen = UniformSample(share).count(7) / 7
        assert total.probability @ total.gain == pytest.approx(share_seen * GAINS.sum())


def test_stopping_by_what_was_seen_leaves_a_little_bias_in_the_mean():
    found = outcomes(ConfidenceSample(1.5, minimum=2), GAINS)
    assert abs(found.probability @ found.gain - GAINS.sum()) > 0.01


@pytest.mark.parametrize("name", EVALUATORS)
def test_enumerated_outcomes_are_a_distribution(name):
    gains = Contributions.of(GAINS * 0.05, stratum=STRATUM, bound=0.1) if name == "minibatch" else LISTED
    found = outcomes(EVALUATORS[name], gains)
    assert found.probability.sum() == pytest.approx(1.0, abs=1e-11)
    assert (found.probability >= 0.0).all()


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["uniform", "confidence", "confidence by leaps", "stratified"])
def test_draws_follow_the_enumerated_outcomes(name, seed):
    sampler, draws = SAMPLERS[name], 3_000
    found = outcomes(sampler, LISTED)
    wanted = Counter()
    for probability, gain in zip(found.probability, found.gain.round(9), strict=True):
        wanted[float(gain)] += probability
    stream = Stream(seed)
    seen = Counter(round(sampler.evaluate(stream, LISTED).gain, 9) for _ in range(draws))
    assert set(seen) <= set(wanted)
    counts = np.array([[seen[g], draws * p] for g, p in wanted.items() if draws * p > 5])
    rest = [draws - counts[:, 0].sum(), draws - counts[:, 1].sum()]
    table = np.vstack([counts, rest]) if rest[1] > 1 else counts * [1.0, draws / counts[:, 1].sum()]
    assert chisquare(table[:, 0], table[:, 1] * table[:, 0].sum() / table[:, 1].sum()).pvalue > FALSE_ALARM


def test_one_sample_serves_several_labels_until_the_widest_difference_is_known():
    sampler = ConfidenceSample(1.0, minimum=3)
    same = np.random.default_rng(0).normal(size=30)
    nothing = np.zeros(30, np.int8), np.zeros(30, bool)

    def sizes(*changes):
        found = [sampler.multipliers(Stream(seed), np.array(changes), *nothing) for seed in range(20)]
        return np.count_nonzero(found, axis=1)

    assert (sizes(np.ones(30), 2 * np.ones(30)) == 3).all()
    assert (sizes(same, -same) >= sizes(same)).all()  # a difference of two labels is wider
    assert sizes(same, -same).mean() > sizes(same).mean() + 3


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: UniformSample(0.0), "greater than 0 and at most 1"),
        (lambda: UniformSample(0.5, "median"), "'sum' or 'mean'"),
        (lambda: ConfidenceSample(-1.0), "zero or more"),
        (lambda: ConfidenceSample(1.0, minimum=1), "at least 2"),
        (lambda: ConfidenceSample(1.0, growth=0.5), "at least 1"),
        (lambda: PoissonMinibatch(0.0), "greater than zero"),
        (
            lambda: DelayedAcceptance(PoissonMinibatch()),
            "UniformSample or (of type )?ConfidenceSample",
        ),
        (lambda: Metropolis(bounded_model(None), None, 0.5), "is not an evaluator"),
        (lambda: Gibbs(bounded_model(None), evaluator=PoissonMinibatch()), "UniformSample"),
    ],
)
def test_wrong_settings_are_refused_with_what_to_give(make, remedy):
    with pytest.raises(InvalidArgumentError, match=remedy):
        make()


# bounded factors


def same_name(a, b):
    return (a.name == b.name, 1)


def bounded_model(bound):
    fields = Fields(name=np.array([0, 0, 1, 1, 0, 1]))
    return Model([PairTemplate("p", fields, same_name, ["same", "bias"], bound=bound)], [0.1, -0.03])


def test_a_declared_bound_is_that_of_the_statistics_under_the_weights():
    model, world = bounded_model([1.0, 1.0]), Partition.from_labels([0, 0, 0, 1, 1, 1])
    listed = model.contributions(world, next(iter(all_diffs(world))), bounds=True)
    np.testing.assert_allclose(listed.bound, 0.13)


def test_a_minibatch_without_bounds_says_where_to_declare_them():
    world = Partition.from_labels([0, 0, 0, 1, 1, 1])
    kernel = Metropolis(bounded_model(None), PartitionMixture([RelocateToItem()]), PoissonMinibatch())
    with pytest.raises(InvalidArgumentError, match=r"PairTemplate\(\.\.\., bound=\.\.\.\)"):
        list(transitions(kernel, world))


def test_a_factor_beyond_its_bound_is_an_error_and_not_a_wrong_chain():
    world = Partition.from_labels([0, 0, 0, 1, 1, 1])
    kernel = Metropolis(bounded_model(0.2), PartitionMixture([RelocateToItem()]), PoissonMinibatch())
    with pytest.raises(TemplateError, match="declare a larger bound"):
        list(transitions(kernel, world))
    with pytest.raises(InvalidArgumentError, match="one number, zero or more, or 2 of them"):
        bounded_model([1.0, 2.0, 3.0])


def test_a_minibatch_examines_all_factors_where_drawing_would_cost_more():
    evaluator = PoissonMinibatch(1.0, bound=2.0)
    assert evaluator.evaluate(Stream(0), np.ones(5)).examined == 5
    assert outcomes(evaluator, np.ones(5)).gain == pytest.approx([5.0])
    assert evaluator.expected_draws(np.full(5, 2.0)) == 5.0
    assert PoissonMinibatch(4.0).expected_draws(np.full(1_000, 0.002)) == pytest.approx(2.0 + 4.0 / 4.0)


@pytest.mark.statistical
def test_a_minibatch_draws_what_it_enumerates_and_costs_what_it_says(seed):
    evaluator, gains = PoissonMinibatch(2.0, bound=0.3), np.array([0.3, -0.2, 0.1, -0.25])
    found, draws = outcomes(evaluator, gains, 0.8), 4_000
    stream = Stream(seed)
    seen = [evaluator.evaluate(stream, gains, 0.8) for _ in range(draws)]
    zero = found.probability @ (np.abs(found.gain) < 1e-12)
    share = np.mean([abs(s.gain) < 1e-12 for s in seen])
    limit = 4.0  # standard errors: two-sided 6e-5
    assert abs(share - zero) < limit * math.sqrt(zero * (1 - zero) / draws)
    mean, cost = found.probability @ found.gain, found.probability @ found.examined
    assert abs(np.mean([s.gain for s in seen]) - mean) < limit * np.std([s.gain for s in seen]) / draws**0.5
    spent = [s.examined for s in seen]
    assert abs(np.mean(spent) - cost) < limit * np.std(spent) / draws**0.5
    assert cost < evaluator.expected_draws(np.full(4, 0.3), 0.8)  # distinct factors are fewer than draws


@given(
    st.lists(st.floats(-0.3, 0.3), min_size=1, max_size=3),
    st.floats(-2.0, 2.0),
    st.sampled_from([0.7, 1.0, 2.0]),
    st.sampled_from(["minibatch", "delayed", "delayed confidence"]),
)
def test_exact_evaluators_are_in_detailed_balance_factor_by_factor(gains, log_ratio, temperature, name):
    evaluator = {
        "minibatch": PoissonMinibatch(2.0, bound=0.3),
        "delayed": DelayedAcceptance(UniformSample(0.4)),
        "delayed confidence": DelayedAcceptance(ConfidenceSample(0.3, minimum=2, estimate="sum")),
    }[name]
    there, back = Proposal("there", 0.0, log_ratio), Proposal("back", log_ratio, 0.0)
    changes = np.array(gains)
    forward = mean_acceptance(outcomes(evaluator, changes, temperature), there, temperature)
    backward = mean_acceptance(outcomes(evaluator, -changes, temperature), back, temperature)
    odds = math.exp(changes.sum() / temperature + log_ratio)
    assert forward == pytest.approx(odds * backward, rel=1e-9)
