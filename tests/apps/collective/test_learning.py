"""MAP flows and hard EM, against definitions, brute force and finite differences."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from factorwise.apps.collective import (
    CollectiveProblem,
    Counts,
    Noise,
    Parameters,
    TransitionFeatures,
    Transitions,
    hard_em,
)
from factorwise.apps.collective.learning import SMOOTHING, fewest_moves
from factorwise.apps.collective.structure import Structure
from factorwise.errors import CountsError, InvalidArgumentError

seeds = st.integers(0, 10_000)


def features_of(rng, places=3, count=2, possible=None):
    return TransitionFeatures.of(rng.normal(size=(places, places, count)), possible=possible)


def parameters_of(rng, places=3, count=2):
    initial = rng.normal(size=places)
    return Parameters(rng.normal(size=count), initial - logsumexp(initial))


def by_brute_force(counts, steps, parameters, features, noise_loss, population):
    """Minimise over distributions of whole paths, with a generic solver."""
    times, places = counts.shape
    log_probability = Transitions(features, 0.0).log_probabilities(parameters.weights)[0]
    paths = list(product(range(places), repeat=times))
    score = np.array(
        [
            parameters.initial[path[0]] + sum(log_probability[path[a], path[b]] for a, b in steps)
            for path in paths
        ]
    )
    at = np.zeros((times, places, len(paths)))
    for k, path in enumerate(paths):
        at[np.arange(times), path, k] = 1.0

    def value(free):
        log_q = free - logsumexp(free)
        q = np.exp(log_q)
        return population * float(q @ (log_q - score)) + noise_loss(counts, population * (at @ q))

    found = minimize(
        value, score, method="L-BFGS-B", options={"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-15}
    )
    q = np.exp(found.x - logsumexp(found.x))
    flows = np.zeros((len(steps), places, places))
    for k, path in enumerate(paths):
        for index, (a, b) in enumerate(steps):
            flows[index, path[a], path[b]] += population * q[k]
    return flows


LOSSES = {
    "poisson": lambda y, n: np.nansum(n - y * np.log(n)),
    "gaussian": lambda y, n: np.nansum((y - n) ** 2) / 2,
    "multinomial": lambda y, n: -np.nansum(y * np.log(n / n.sum(axis=1, keepdims=True))),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_flows_of_a_chain_are_those_of_a_generic_solver(kind):
    rng = np.random.default_rng(1)
    features, parameters = features_of(rng), parameters_of(rng)
    counts = rng.poisson(7, size=(3, 3)).astype(float)
    if kind != "multinomial":
        counts[1, 2] = np.nan
    problem = CollectiveProblem(
        Counts.of(counts), features, Noise(kind=kind), populations={"1": 20.0}, tolerance=1e-10
    )
    wanted = by_brute_force(counts, [(0, 1), (1, 2)], parameters, features, LOSSES[kind], 20.0)
    np.testing.assert_allclose(problem.flows(parameters)[0].expected, wanted, atol=2e-3)


def test_flows_of_a_tree_are_those_of_a_generic_solver():
    rng = np.random.default_rng(2)
    features, parameters = features_of(rng), parameters_of(rng)
    counts = rng.poisson(7, size=(4, 3)).astype(float)
    parents = {"1": "0", "2": "0", "3": "2"}
    problem = CollectiveProblem(
        Counts.of(counts), features, Noise(), populations={"1": 20.0}, parents=parents, tolerance=1e-10
    )
    steps = [(0, 1), (0, 2), (2, 3)]
    wanted = by_brute_force(counts, steps, parameters, features, LOSSES["poisson"], 20.0)
    found = problem.flows(parameters)[0]
    assert found.steps == ("1", "2", "3")
    np.testing.assert_allclose(found.expected, wanted, atol=2e-3)


def test_a_tree_without_branches_is_a_chain():
    rng = np.random.default_rng(3)
    features, parameters = features_of(rng), parameters_of(rng)
    counts = Counts.of(rng.poisson(50, size=(5, 3)))
    chain, tree = (
        CollectiveProblem(counts, features, Noise(), parents=parents, tolerance=1e-12).flows(parameters)[0]
        for parents in (None, {str(k): str(k - 1) for k in range(1, 5)})
    )
    np.testing.assert_allclose(tree.expected, chain.expected, atol=1e-3)
    assert chain.steps == ("0", "1", "2", "3")
    assert tree.steps == ("1", "2", "3", "4")


@given(seeds, st.sampled_from(["poisson", "gaussian", "multinomial", "exact"]))
@settings(deadline=None, max_examples=20)
def test_flows_add_up_to_the_counts_before_and_after_them(seed, kind):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(200, [0.5, 0.3, 0.2], size=4).astype(float)
    problem = CollectiveProblem(Counts.of(counts), features_of(rng), Noise(kind=kind))
    flows = problem.flows(parameters_of(rng))[0]
    np.testing.assert_allclose(flows.expected.sum(axis=2), flows.counts[:-1], atol=1e-6)
    np.testing.assert_allclose(flows.expected.sum(axis=1), flows.counts[1:], atol=1e-6)
    np.testing.assert_allclose(flows.counts.sum(axis=1), flows.population)
    assert flows.gap <= 1e-6 * max(1.0, abs(flows.objective))
    if kind == "exact":
        np.testing.assert_allclose(flows.counts, counts, atol=1.0)


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_the_gradient_of_the_weights_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    possible = rng.random((3, 3)) < 0.7
    possible[np.arange(3), np.arange(3)] = True
    transitions = Transitions(features_of(rng, possible=possible), l2=0.3)
    weights, flows = rng.normal(size=2), rng.random((1, 3, 3)) * possible * 100
    _, gradient = transitions.objective(weights, flows)
    step = 1e-5
    numeric = [
        (transitions.objective(weights + d, flows)[0] - transitions.objective(weights - d, flows)[0])
        / (2 * step)
        for d in step * np.eye(2)
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


def test_probabilities_sum_to_one_over_what_is_possible():
    rng = np.random.default_rng(0)
    transitions = Transitions(features_of(rng, possible=np.tri(3)), l2=0.0)
    probability = np.exp(transitions.log_probabilities(rng.normal(size=2)))
    np.testing.assert_allclose(probability.sum(axis=2), 1.0)
    assert (probability[0][~np.tri(3, dtype=bool)] == 0).all()


def test_the_weights_of_flows_in_their_expected_proportions_are_found_again():
    rng = np.random.default_rng(4)
    transitions = Transitions(features_of(rng, places=4, count=3), l2=0.0)
    weights = rng.normal(size=3)
    flows = 100 * np.exp(transitions.log_probabilities(weights))
    np.testing.assert_allclose(transitions.fit(flows, np.zeros(3)), weights, atol=1e-4)


def simulated(rng, features, weights, population, times, sequences):
    probability = np.exp(Transitions(features, 0.0).log_probabilities(weights)[0])
    counts = np.zeros((sequences, times, len(probability)))
    for k in range(sequences):
        counts[k, 0] = rng.multinomial(population, np.full(len(probability), 1 / len(probability)))
        for t in range(times - 1):
            moved = [rng.multinomial(int(n), row) for n, row in zip(counts[k, t], probability, strict=True)]
            counts[k, t + 1] = np.sum(moved, axis=0)
    return counts


def test_hard_em_never_raises_its_objective():
    rng = np.random.default_rng(5)
    features = features_of(rng, places=4, count=3)
    counts = Counts.of(rng.poisson(simulated(rng, features, rng.normal(size=3), 500, 6, 2)))
    _, history = hard_em(CollectiveProblem(counts, features, Noise()), passes=15, tolerance=0.0)
    values = np.array([record.objective for record in history])
    slack = np.array([record.gap for record in history])[:-1]
    assert (np.diff(values) <= slack + 1e-6 * np.abs(values[1:])).all()
    assert values[-1] < values[0]


def test_hard_em_finds_the_weights_that_counts_were_made_with():
    rng = np.random.default_rng(6)
    features = features_of(rng, places=6, count=2)
    true = np.array([1.5, -1.0])
    starts = np.eye(6)  # everybody begins at one place: the counts then tell where they went
    blocks = []
    for begin in starts:
        block = simulated(rng, features, true, 20_000, 3, 1)[0]
        probability = np.exp(Transitions(features, 0.0).log_probabilities(true)[0])
        block[0] = 20_000 * begin
        for t in range(2):
            moved = [rng.multinomial(int(n), row) for n, row in zip(block[t], probability, strict=True)]
            block[t + 1] = np.sum(moved, axis=0)
        blocks.append(block)
    problem = CollectiveProblem(Counts.of(np.array(blocks)), features, Noise(kind="exact"), l2=0.0)
    parameters, _ = hard_em(problem, passes=200, tolerance=1e-9)
    np.testing.assert_allclose(parameters.weights, true, atol=0.1)


@given(seeds)
@settings(deadline=None, max_examples=20)
def test_fewest_moves_join_the_counts_and_keep_whoever_can_stay(seed):
    rng = np.random.default_rng(seed)
    here, there = rng.multinomial(50, [0.2, 0.3, 0.5], size=2).astype(float)
    flows = fewest_moves(here, there)
    np.testing.assert_allclose(flows.sum(axis=1), here, atol=1e-9)
    np.testing.assert_allclose(flows.sum(axis=0), there, atol=1e-9)
    np.testing.assert_allclose(np.diag(flows), np.minimum(here, there))


def test_learning_starts_from_the_weights_of_fewest_moves_unless_told_otherwise():
    counts = Counts.of([[90, 10], [80, 20], [np.nan, 30]])
    stay = TransitionFeatures.of(np.eye(2)[:, :, None])
    problem = CollectiveProblem(counts, stay, Noise(), l2=0.0)
    start = problem.initial_parameters()
    sums = [100.0, 100.0, 115.0]
    shares = np.array([[90, 10], [80, 20], [85, 30]]) / np.array(sums)[:, None]
    stayed = np.minimum(shares[:-1], shares[1:]).sum()
    assert np.exp(start.weights[0]) == pytest.approx(stayed / (2 - stayed), rel=1e-3)
    _, told = hard_em(problem, passes=1, tolerance=0.0, start=problem.uniform_parameters())
    _, own = hard_em(problem, passes=1, tolerance=0.0)
    assert own[0].objective < told[0].objective


def test_the_first_places_are_learned_from_the_members_at_the_roots_and_weigh_in_the_objective():
    rng = np.random.default_rng(8)
    problem = CollectiveProblem(Counts.of(rng.poisson(50, (2, 4, 3))), features_of(rng), Noise(), l2=0.3)
    given = parameters_of(rng)
    flows = problem.flows(given)
    at_first = sum(series.counts[0] for series in flows.series) + SMOOTHING
    found = problem.fit_parameters(flows, given)
    np.testing.assert_allclose(np.exp(found.initial), at_first / at_first.sum())
    fit = sum(series.population * series.objective for series in flows.series)
    rest = problem.objective(given, flows) - fit - problem.transitions.penalty(given.weights)
    assert rest == pytest.approx(-SMOOTHING * given.initial.sum())  # the prior of `SMOOTHING` members


def test_learning_ends_when_the_callback_says_so_or_nothing_improves():
    rng = np.random.default_rng(7)
    problem = CollectiveProblem(Counts.of(rng.poisson(50, (4, 3))), features_of(rng), Noise())
    assert len(hard_em(problem, passes=50, tolerance=0.0, callback=lambda r, _: r.number == 3)[1]) == 3
    assert len(hard_em(problem, passes=500, tolerance=1e-4)[1]) < 100


def test_counts_where_no_move_leads_are_refused():
    possible = np.eye(2, dtype=bool)
    features = TransitionFeatures.of(np.zeros((2, 2, 1)), possible=possible)
    start = Parameters(np.zeros(1), np.array([0.0, -np.inf]))
    problem = CollectiveProblem(Counts.of([[5, 0], [4, 1]]), features, Noise())
    with pytest.raises(CountsError, match=r"time '1', place '1': the count is 1, but no possible move"):
        problem.flows(start)


def test_a_sequence_of_one_time_is_refused():
    with pytest.raises(InvalidArgumentError, match="flows need two or more"):
        CollectiveProblem(Counts.of([[5, 1]]), features_of(np.random.default_rng(0), places=2), Noise())


def test_parents_that_are_unknown_or_run_in_a_circle_are_refused():
    with pytest.raises(InvalidArgumentError, match="the parent of time 'b' is time 'z', which has no counts"):
        Structure(("a", "b"), {"b": "z"})
    with pytest.raises(
        InvalidArgumentError, match=r"time 'a' is its own ancestor through 'b', but a tree has no"
    ):
        Structure(("a", "b"), {"a": "b", "b": "a"})
    with pytest.raises(InvalidArgumentError, match=r"time 'a' is its own ancestor, but a tree has no cycles"):
        Structure(("a", "b"), {"b": "a", "a": "a"})
