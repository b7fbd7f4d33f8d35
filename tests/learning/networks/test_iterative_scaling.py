"""Tied log-linear networks: scaling and gradient against a solver that sums over all settings."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array
from scipy.special import logsumexp

from factorwise.errors import ConvergenceWarning, InvalidArgumentError, ShapeError, WeightError
from factorwise.inference.exact import Elimination, Enumeration, JunctionTree
from factorwise.learning.networks import iterative_scaling
from factorwise.learning.networks.counts import CliqueCounts
from factorwise.learning.networks.iterative_scaling import (
    LogLinearNetwork,
    fit_maximum_likelihood,
    fit_scaling,
)
from factorwise.learning.networks.proportional_fitting import fit_proportional
from factorwise.testing.oracles import grid_edges
from network_cases import any_cliques, assert_same_tables, clique_marginals, positive_counts, settings_of

AGREE = np.stack([np.eye(3), np.zeros((3, 3)), np.zeros((3, 3))])
FIELD = np.stack([np.zeros(3), [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])


def tied_grid(rows=2, columns=2):
    """A grid of three labels: one weight for all agreeing neighbors, two for the labels; six factors tied."""
    factors = [(edge, AGREE) for edge in grid_edges(rows, columns)]
    factors += [((v,), FIELD) for v in range(rows * columns)]
    return LogLinearNetwork.build([3] * (rows * columns), factors)


def feature_totals(network):
    """Value of every feature in every setting, straight from the definition."""
    dense, rows = network.statistics.toarray(), settings_of(network.cardinality)
    totals = np.zeros((len(rows), network.n_features))
    for scope, start in zip(network.scopes, network.table_start, strict=True):
        place = np.zeros(len(rows), dtype=int)
        for v in scope:
            place = place * network.cardinality[v] + rows[:, v]
        totals += dense[start + place]
    return totals


def brute_force(network, shares, penalty=0.0):
    """Weights and mean log-likelihood by a solver that sees every setting."""
    totals = feature_totals(network)

    def loss(weights):
        scores = totals @ weights
        chance = np.exp(scores - logsumexp(scores))
        value = logsumexp(scores) - shares @ scores + penalty * weights @ weights
        return value, totals.T @ (chance - shares) + 2 * penalty * weights

    best = minimize(loss, np.zeros(network.n_features), jac=True, method="BFGS", options={"gtol": 1e-8})
    scores = totals @ best.x
    return best.x, float(shares @ scores - logsumexp(scores))


@st.composite
def tied_networks(draw, values):
    """Random cliques under three features with some of ``values``, shared by all factors."""
    sizes, cliques = draw(any_cliques())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = [(clique, rng.choice(values, size=(3, *[sizes[v] for v in clique]))) for clique in cliques]
    return LogLinearNetwork.build(sizes, factors), draw(st.integers(0, 2**32 - 1))


def counted(network, seed):
    return positive_counts(network.cardinality, network.scopes, seed)


@pytest.mark.parametrize("fit", [fit_scaling, fit_maximum_likelihood])
def test_tied_weights_reach_the_optimum_of_a_solver_over_all_settings(fit):
    network = tied_grid()
    counts, shares = counted(network, 11)
    found = fit(network, counts, tolerance=1e-9)
    weights, likelihood = brute_force(network, shares)
    np.testing.assert_allclose(found.weights, weights, atol=1e-6)
    assert found.log_likelihood == pytest.approx(counts.total * likelihood, rel=1e-12)
    assert found.converged
    np.testing.assert_allclose(
        feature_totals(network).T @ Enumeration().distribution(found.graph),
        feature_totals(network).T @ shares,
        atol=1e-8,
    )


@settings(max_examples=8)
@given(tied_networks([0.0, 0.0, 1.0]))
def test_scaling_finds_the_same_distribution_as_the_gradient(case):
    network, seed = case
    counts, _ = counted(network, seed)
    # The data need not settle every weight, so the distributions are compared and not the weights.
    scaled = fit_scaling(network, counts, tolerance=1e-7, oracle=Enumeration())
    steepest = fit_maximum_likelihood(network, counts, oracle=Enumeration())
    assert scaled.log_likelihood == pytest.approx(steepest.log_likelihood, abs=1e-9 * counts.total)
    assert_same_tables(clique_marginals(scaled.graph), clique_marginals(steepest.graph), 1e-5)


@settings(max_examples=25)
@given(tied_networks([-1.0, 0.0, 0.3, 1.5]), st.sampled_from([0.0, 0.3]))
def test_gradients_equal_finite_differences(case, l2):
    network, seed = case
    counts, _ = counted(network, seed)
    problem = iterative_scaling._Problem(network, counts, None, l2)
    weights = np.random.default_rng(seed).normal(size=network.n_features)
    differences = approx_fprime(weights, lambda w: problem(w)[0], 1e-6)
    np.testing.assert_allclose(problem(weights)[1], differences, atol=2e-5)


@settings(max_examples=15)
@given(any_cliques(), st.integers(0, 2**32 - 1))
def test_scaling_of_free_tables_is_proportional_fitting(case, seed):
    counts, _ = positive_counts(*case, seed)
    scaled = fit_scaling(LogLinearNetwork.saturated(*case), counts, tolerance=1e-9)
    assert_same_tables(clique_marginals(scaled.graph), clique_marginals(fit_proportional(counts).graph), 1e-8)


def test_the_likelihood_never_falls_while_scaling():
    network = tied_grid(2, 3)
    counts, _ = counted(network, 3)
    climb = []
    for iterations in range(1, 25):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            climb.append(fit_scaling(network, counts, max_iterations=iterations).log_likelihood)
    assert (np.diff(climb) > 0).all()


def test_data_at_the_bound_of_the_features_leave_no_slack_to_learn():
    network = LogLinearNetwork.build(
        [3, 3], [((0,), [[1, 0, 0], [0, 1, 0]]), ((1,), [[1, 0, 0], [0, 0.5, 0]])]
    )
    counts = network.counts([[0, 0], [1, 0]])
    with pytest.warns(ConvergenceWarning, match="weights that the data drive to infinity"):
        fit = fit_scaling(network, counts, max_iterations=200)
    chance = Enumeration().distribution(fit.graph).reshape(3, 3)
    assert chance[:2, 0].sum() > 0.9
    assert fit.residual < 0.05


@pytest.mark.parametrize("fit", [fit_scaling, fit_maximum_likelihood])
def test_a_feature_never_seen_gets_the_weight_that_forbids_it(fit):
    network = tied_grid(1, 2)
    counts = network.counts([[0, 1], [1, 1], [0, 0], [1, 0], [0, 0], [1, 0]])
    found = fit(network, counts)
    assert found.weights[2] == -np.inf
    assert np.isfinite(found.weights[:2]).all()
    assert found.converged
    chance = Enumeration().distribution(found.graph).reshape(3, 3)
    assert chance[2].sum() == chance[:, 2].sum() == 0.0
    assert np.isfinite(found.log_likelihood)
    assert found.log_likelihood == pytest.approx(
        np.log(chance[[0, 1, 0, 1, 0, 1], [1, 1, 0, 0, 0, 0]]).sum(), rel=1e-12
    )


def test_a_penalty_holds_the_weights_where_a_solver_over_all_settings_does():
    network = tied_grid()
    counts, shares = counted(network, 6)
    found = fit_maximum_likelihood(network, counts, l2=2.5)
    weights, likelihood = brute_force(network, shares, 2.5 / counts.total)
    np.testing.assert_allclose(found.weights, weights, atol=1e-7)
    assert found.log_likelihood == pytest.approx(counts.total * likelihood, rel=1e-9)


def test_a_penalty_keeps_the_weight_of_a_feature_never_seen_finite():
    network = tied_grid(1, 2)
    found = fit_maximum_likelihood(network, network.counts([[0, 1], [1, 1], [0, 0]]), l2=0.1)
    assert np.isfinite(found.weights).all()
    assert found.weights[2] < -0.5


@pytest.mark.parametrize("fit", [fit_scaling, fit_maximum_likelihood])
def test_any_oracle_serves(fit):
    network = tied_grid(1, 3)
    counts, _ = counted(network, 2)
    joint, single = fit(network, counts), fit(network, counts, oracle=Elimination())
    np.testing.assert_allclose(single.weights, joint.weights, atol=1e-9)


def test_sparse_features_are_the_same_as_dense_ones():
    dense = LogLinearNetwork.build([3, 3], [((0, 1), AGREE), ((1,), FIELD)])
    sparse = LogLinearNetwork.build(
        [3, 3], [((0, 1), csr_array(AGREE.reshape(3, -1).T)), ((1,), csr_array(FIELD.T))]
    )
    weights = [0.5, -1.0, 2.0]
    np.testing.assert_array_equal(dense.graph(weights).tables, sparse.graph(weights).tables)
    np.testing.assert_array_equal(dense.graph(weights).table_of(0), 0.5 * np.eye(3))
    np.testing.assert_array_equal(dense.graph(weights).table_of(1), [0.0, -1.0, 4.0])


def test_one_array_shared_by_factors_of_different_shapes_is_refused_where_it_does_not_fit():
    with pytest.raises(
        ShapeError, match=r"over variables \(1,\) have shape \(3, 3, 3\), but need \(features, 3\)"
    ):
        LogLinearNetwork.build([3, 3], [((0, 1), AGREE), ((1,), AGREE)])


@pytest.mark.parametrize(
    ("factors", "fault", "message"),
    [
        ([], InvalidArgumentError, "at least one pair of a scope and its features"),
        ([((0, 5), AGREE)], InvalidArgumentError, "use numbers from 0 to 1"),
        ([((0,), FIELD), ((1,), FIELD[:2])], ShapeError, r"\[2, 3\] features, but all share one vector"),
        ([((0,), csr_array(np.ones((2, 3))))], ShapeError, r"shape \(2, 3\), but need \(3, features\)"),
        ([((0,), [[0.0, np.nan, 1.0]])], InvalidArgumentError, "is NaN or infinite"),
        ([((0, 0), AGREE)], InvalidArgumentError, "twice"),
    ],
)
def test_features_that_do_not_fit_are_refused(factors, fault, message):
    with pytest.raises(fault, match=message):
        LogLinearNetwork.build([3, 3], factors).graph(np.zeros(3))


def test_features_below_zero_cannot_be_scaled():
    network = LogLinearNetwork.build([2], [((0,), [[1.0, 0.0], [0.0, -0.5]])])
    with pytest.raises(
        InvalidArgumentError, match=r"feature 1 takes the value -0\.5.*use fit_maximum_likelihood"
    ):
        fit_scaling(network, network.counts([[0], [1]]))


def test_counts_of_other_cliques_are_refused():
    network = tied_grid()
    other = CliqueCounts.from_records([3] * 4, [(0, 1)], [[0, 0, 0, 0]])
    for fit in (fit_scaling, fit_maximum_likelihood):
        with pytest.raises(InvalidArgumentError, match=r"make them with network.counts\(records\)"):
            fit(network, other)


def test_weights_of_another_number_are_refused():
    with pytest.raises(WeightError, match=r"3 features need as many weights, but \(2,\) was given"):
        tied_grid().graph([0.0, 1.0])


def test_scaling_cut_short_warns_and_says_what_to_try():
    network = tied_grid()
    counts, _ = counted(network, 1)
    with pytest.warns(ConvergenceWarning, match="after 2 iterations .* Raise max_iterations or tolerance"):
        fit = fit_scaling(network, counts, max_iterations=2)
    assert not fit.converged
    assert fit.iterations == 2


@pytest.mark.parametrize(("option", "value"), [("tolerance", 0.0), ("max_iterations", 0)])
@pytest.mark.parametrize("fit", [fit_scaling, fit_maximum_likelihood])
def test_limits_of_nothing_are_refused(fit, option, value):
    network = tied_grid(1, 2)
    with pytest.raises(InvalidArgumentError, match=option):
        fit(network, network.counts([[0, 1]]), **{option: value})


def test_a_negative_penalty_is_refused():
    network = tied_grid(1, 2)
    with pytest.raises(InvalidArgumentError, match="l2 must be zero or more, but -1 was given"):
        fit_maximum_likelihood(network, network.counts([[0, 1]]), l2=-1)


def test_the_graph_of_the_fit_is_the_network_at_its_weights():
    network = tied_grid()
    counts, _ = counted(network, 9)
    found = fit_maximum_likelihood(network, counts)
    np.testing.assert_array_equal(found.graph.tables, network.graph(found.weights).tables)
    log_partition = JunctionTree().log_partition(found.graph)
    tables = [table for _, table in found.graph.factors()]
    assert found.log_likelihood == pytest.approx(counts.log_likelihood(tables, log_partition))
