"""What every evaluator does to the stationary distribution, by enumerating all clusterings of six items.

Nothing here is left to chance: transition probabilities are averaged over all samples an evaluator may draw.
"""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc import (
    ConfidenceSample,
    DelayedAcceptance,
    Exact,
    Metropolis,
    PartitionMixture,
    PoissonMinibatch,
    RelocateToItem,
    RelocateToNew,
    UniformSample,
)
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.model.model import Model
from factorwise.model.templates import ClusterSize, EdgeTemplate
from factorwise.testing import exact_distribution
from partition_cases import mixtures
from plain_transitions import mean_acceptance, outcomes, samples, transition_matrix
from thinning import thinned

ITEMS = 6
TEMPERATURES = (1.0, 0.7, 2.0)
EDGES = list(combinations(range(ITEMS), 2))


@cache
def affinities(scale, *, sizes=False, items=ITEMS):
    """Every pair of items attracts or repels by a random amount."""
    edges = [edge for edge in EDGES if max(edge) < items]
    features = np.random.default_rng(3).uniform(-1.0, 1.0, (len(edges), 1)) * scale
    templates = [EdgeTemplate("pairs", items, edges, features, ["affinity"])]
    weights = {"pairs": [1.0]}
    if sizes:
        templates.append(ClusterSize("sizes"))
        weights["sizes"] = [0.2, -0.3]
    return Model(templates, weights)


@cache
def worlds(items=ITEMS):
    return all_partitions(items)


@cache
def mixture_of(moves, items):
    """Moves by name; the relocations prefer large clusters, so that their proposal ratio is not one."""
    if moves == "relocations":
        return PartitionMixture([RelocateToItem(), RelocateToNew()], (1.0, 0.4))
    return mixtures(affinities(0.4, items=items), items)[moves]


@cache
def proposals(moves, items):
    """Every proposal from every world: row, column, the proposal."""
    position = {world.canonical(): row for row, world in enumerate(worlds(items))}
    return [
        (row, position[world.after(proposal.diff).canonical()], proposal)
        for row, world in enumerate(worlds(items))
        for proposal in mixture_of(moves, items).support(world)
        if proposal.diff is not None
    ]


@cache
def factors(model, moves, items):
    """What each proposal touches."""
    return [
        model.contributions(worlds(items)[row], proposal.diff, bounds=True)
        for row, _, proposal in proposals(moves, items)
    ]


def matrix_of(evaluator, temperature, model, moves="relocations", items=ITEMS, *, hastings=True):
    """What `transition_matrix` gives, with the outcomes for equal lists of factors enumerated once."""
    size = len(worlds(items))
    matrix, known = np.zeros((size, size)), {}
    touched = factors(model, moves, items)
    for (row, column, proposal), listed in zip(proposals(moves, items), touched, strict=True):
        key = (listed.gain.tobytes(), listed.stratum.tobytes())
        if key not in known:
            known[key] = outcomes(evaluator, listed, temperature)
        weighed = proposal if hastings else Proposal(proposal.diff, 0.0, 0.0)
        matrix[row, column] += np.exp(proposal.log_forward) * mean_acceptance(
            known[key], weighed, temperature
        )
    matrix[np.diag_indices(size)] += 1.0 - matrix.sum(axis=1)
    return matrix


def stationary(matrix):
    """The distribution that a chain of this matrix ends in."""
    size = len(matrix)
    equations = np.vstack([matrix.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(equations, np.append(np.zeros(size), 1.0), rcond=None)[0]


def distance(evaluator, temperature=1.0, scale=1.5):
    """Total variation between what the chain samples and what it was asked for."""
    model = affinities(scale)
    target = exact_distribution(model, worlds(), temperature)
    return 0.5 * np.abs(stationary(matrix_of(evaluator, temperature, model)) - target).sum()


EVALUATORS = [Exact(), UniformSample(0.5), ConfidenceSample(1.0, minimum=2), PoissonMinibatch(8.0)]


@pytest.mark.parametrize("evaluator", [*EVALUATORS, DelayedAcceptance(UniformSample(0.5))])
@pytest.mark.parametrize("hastings", [True, False])
def test_the_matrices_of_this_file_are_what_the_kernel_says(evaluator, hastings):
    model = affinities(0.4, sizes=True, items=4)
    kernel = Metropolis(model, mixture_of("relocations", 4), evaluator, hastings)
    wanted = transition_matrix(kernel, worlds(4), 0.7)
    found = matrix_of(evaluator, 0.7, model, items=4, hastings=hastings)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)


# evaluators that keep the distribution

FIRST_STAGES = {
    "share": UniformSample(0.4),
    "share, sum": UniformSample(0.6, "sum"),
    "confidence": ConfidenceSample(1.0, minimum=2),
    "confidence by leaps": ConfidenceSample(1.5, minimum=2, growth=1.5, estimate="sum"),
    "confidence, stratified": ConfidenceSample(1.5, minimum=2, pooled=False),
}


@pytest.mark.parametrize(("first", "temperature"), thinned(FIRST_STAGES, TEMPERATURES))
def test_delayed_acceptance_leaves_the_exact_distribution_invariant(first, temperature):
    model = affinities(1.5, sizes=True)
    target = exact_distribution(model, worlds(), temperature)
    matrix = matrix_of(DelayedAcceptance(FIRST_STAGES[first]), temperature, model)
    np.testing.assert_allclose(target @ matrix, target, rtol=0, atol=1e-10)
    flow = target[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_poisson_minibatches_leave_the_exact_distribution_invariant(temperature):
    model = affinities(0.35)
    target = exact_distribution(model, worlds(), temperature)
    evaluator = PoissonMinibatch(8.0)
    matrix = matrix_of(evaluator, temperature, model)
    np.testing.assert_allclose(target @ matrix, target, rtol=0, atol=1e-10)
    flow = target[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, rtol=0, atol=1e-11)
    for listed in factors(model, "relocations", ITEMS):  # drawn, that is, and never all examined
        assert evaluator.expected_draws(listed.bound, temperature) < len(listed)


@pytest.mark.parametrize("name", ["merge and split", "split-merge", "candidates and merge", "everything"])
@pytest.mark.parametrize("evaluator", ["delayed", "minibatch"])
def test_exact_evaluators_stay_exact_under_asymmetric_moves_of_many_items(evaluator, name):
    model = affinities(0.4, items=4)
    chosen = {"delayed": DelayedAcceptance(UniformSample(0.5)), "minibatch": PoissonMinibatch(8.0)}[evaluator]
    matrix = matrix_of(chosen, 0.7, model, name, items=4)
    target = exact_distribution(model, worlds(4), 0.7)
    np.testing.assert_allclose(target @ matrix, target, rtol=0, atol=1e-10)
    assert np.abs(matrix - matrix_of(Exact(), 0.7, model, name, items=4)).max() > 1e-4


def test_a_first_stage_whose_law_looks_at_signs_would_not_be_exact():
    """The condition on the first stage is needed: sampling until a change is positive breaks the balance."""

    class UntilPositive(UniformSample):
        pass

    @samples.register(UntilPositive)
    def _(sampler, changes, stratum, certain):
        gains = changes[0]
        first = 0 if gains[0] > 0 or len(gains) < 2 else slice(None)
        multiplier = np.zeros(len(gains))
        multiplier[first] = 1.0
        yield 1.0, multiplier

    model = affinities(1.5)
    target = exact_distribution(model, worlds(), 1.0)
    matrix = matrix_of(DelayedAcceptance(UntilPositive(0.5)), 1.0, model)
    assert np.abs(target @ matrix - target).max() > 1e-4


def test_exact_evaluators_move_less_often_than_examining_everything():
    model = affinities(0.35)
    target = exact_distribution(model, worlds(), 1.0)
    stay = [
        target @ np.diag(matrix_of(evaluator, 1.0, model))
        for evaluator in (Exact(), PoissonMinibatch(8.0), DelayedAcceptance(UniformSample(0.4)))
    ]
    assert stay[0] < stay[1]
    assert stay[0] < stay[2]


# evaluators that do not


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("estimate", ["mean", "sum"])
def test_the_bias_of_a_sampled_share_is_seen_and_vanishes_at_one(estimate, temperature):
    biased = [distance(UniformSample(share, estimate), temperature) for share in (0.25, 0.5, 0.75)]
    assert biased[0] > 0.05
    assert biased[0] > biased[1] > biased[2] > 0.002
    assert distance(UniformSample(1.0, estimate), temperature) < 1e-10


@pytest.mark.parametrize(
    ("temperature", "estimate", "pooled"),
    [(1.0, "mean", True), (0.7, "mean", True), (2.0, "mean", True), (1.0, "sum", True), (1.0, "mean", False)],
)
def test_the_bias_of_a_confident_sample_is_seen_and_vanishes_at_zero(temperature, estimate, pooled):
    def biased(interval):
        evaluator = ConfidenceSample(interval, minimum=2, estimate=estimate, pooled=pooled)
        return distance(evaluator, temperature)

    wide = biased(4.0)
    assert wide > 0.02
    assert wide > biased(1.0) > 1e-3
    assert biased(0.0) < 1e-10


def test_the_sum_of_half_the_factors_samples_at_about_twice_the_temperature():
    model = affinities(1.5)
    found = stationary(matrix_of(UniformSample(0.5, "sum"), 1.0, model))
    asked, hotter = (exact_distribution(model, worlds(), t) for t in (1.0, 2.0))
    assert np.abs(found - hotter).sum() < 0.5 * np.abs(found - asked).sum()


def test_leaving_out_the_proposal_ratio_changes_what_is_sampled():
    model = affinities(1.5)
    target = exact_distribution(model, worlds(), 1.0)
    without = stationary(matrix_of(Exact(), 1.0, model, hastings=False))
    assert 0.5 * np.abs(without - target).sum() > 0.05
