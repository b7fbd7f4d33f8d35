"""Fits of free clique tables against brute force, the closed form, and maximum likelihood by gradient."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from factorwise.errors import (
    ConvergenceWarning,
    CountsError,
    InvalidArgumentError,
    StructureError,
    TreewidthError,
)
from factorwise.inference.exact import Enumeration, JunctionTree
from factorwise.learning.networks import proportional_fitting
from factorwise.learning.networks.counts import CliqueCounts
from factorwise.learning.networks.proportional_fitting import fit_decomposable, fit_proportional
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.testing.oracles import awkward_graphs, grid_edges
from network_cases import (
    any_cliques,
    assert_same_tables,
    clique_marginals,
    decomposable_cliques,
    positive_counts,
    settings_of,
)

SEEDS = st.integers(0, 2**32 - 1)
# Scores of hundreds leave settings of probability 1e-300: the fit is on the boundary, approached slowly.
GRAPHS = {name: graph for name, graph in awkward_graphs().items() if "large scores" not in name}
LOOP = [(0, 1), (1, 2), (2, 3), (3, 0)]


@pytest.fixture(params=["one table", "junction tree"])
def form(request, monkeypatch):
    """Run small networks both as one table over all variables and as a tree of clusters."""
    limit = 10**6 if request.param == "one table" else 0
    monkeypatch.setattr(proportional_fitting, "SMALL_JOINT", limit)


@given(any_cliques(), SEEDS, st.sampled_from([0, 10**6]))
def test_the_fit_has_the_empirical_marginals_of_all_cliques(case, seed, limit):
    counts, _ = positive_counts(*case, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proportional_fitting, "SMALL_JOINT", limit)
        fit = fit_proportional(counts)
    assert fit.converged
    assert fit.residual <= 1e-10
    assert_same_tables(clique_marginals(fit.graph), counts.proportions(), 1e-9)


@pytest.mark.parametrize("cliques", [LOOP, [*LOOP, (0, 2)], [(0, 1, 2), (2, 3), (3, 0)]])
def test_the_fit_is_as_likely_as_the_best_that_a_solver_over_all_settings_finds(cliques):
    sizes = [2, 3, 2, 2]
    counts, shares = positive_counts(sizes, cliques, 8)
    fit = fit_proportional(counts)
    rows = settings_of(sizes)
    places = [np.ravel_multi_index(tuple(rows[:, c].T), [sizes[v] for v in c]) for c in map(list, cliques)]
    design = np.concatenate([np.eye(place.max() + 1)[place] for place in places], axis=1)

    def loss(weights):
        scores = design @ weights
        chance = np.exp(scores - logsumexp(scores))
        return logsumexp(scores) - shares @ scores, design.T @ (chance - shares)

    best = minimize(loss, np.zeros(design.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7})
    assert fit.log_likelihood == pytest.approx(-counts.total * best.fun, rel=1e-12)
    distribution = Enumeration().distribution(fit.graph)
    assert fit.log_likelihood == pytest.approx(counts.total * (shares @ np.log(distribution)), rel=1e-12)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", GRAPHS)
def test_a_distribution_of_the_family_is_found_again(name):
    graph = GRAPHS[name]
    cliques = [scope for scope, _ in graph.factors()]
    shares = Enumeration().distribution(graph)
    counts = CliqueCounts.from_records(graph.cardinality, cliques, Enumeration().settings(graph), shares)
    fit = fit_proportional(counts, tolerance=1e-12)
    np.testing.assert_allclose(Enumeration().distribution(fit.graph), shares, rtol=0, atol=1e-10)
    assert fit.log_likelihood == pytest.approx(-Enumeration().marginals(graph).entropy, abs=1e-9)


@settings(max_examples=60)
@given(decomposable_cliques(), SEEDS, st.sampled_from([0, 10**6]))
def test_the_closed_form_is_the_fit_that_one_sweep_finds_and_a_second_confirms(case, seed, limit):
    counts, _ = positive_counts(*case, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proportional_fitting, "SMALL_JOINT", limit)
        closed, fit = fit_decomposable(counts), fit_proportional(counts)
    assert fit.iterations <= 2
    wanted = Enumeration().distribution(closed.graph)
    np.testing.assert_allclose(Enumeration().distribution(fit.graph), wanted, rtol=0, atol=1e-12)
    assert closed.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-9)
    assert_same_tables(clique_marginals(closed.graph), counts.proportions(), 1e-12)
    assert (closed.iterations, closed.converged) == (0, True)


def test_the_closed_form_of_a_chain_is_cliques_over_separators():
    rng = np.random.default_rng(4)
    records = rng.integers(0, 3, size=(200, 3))
    fit = fit_decomposable(CliqueCounts.from_records([3, 3, 3], [(0, 1), (1, 2)], records))
    first, second = (np.zeros((3, 3)) for _ in range(2))
    np.add.at(first, tuple(records[:, :2].T), 1 / 200)
    np.add.at(second, tuple(records[:, 1:].T), 1 / 200)
    wanted = first[:, :, None] * second[None] / first.sum(axis=0)[None, :, None]
    np.testing.assert_allclose(Enumeration().distribution(fit.graph), wanted.ravel(), atol=1e-14)
    assert Enumeration().log_partition(fit.graph) == pytest.approx(0.0, abs=1e-13)


def test_the_closed_form_of_one_clique_over_everything_is_the_data():
    counts, shares = positive_counts([2, 3, 2], [(2, 0, 1)], 5)
    np.testing.assert_allclose(Enumeration().distribution(fit_decomposable(counts).graph), shares, atol=1e-15)


@pytest.mark.parametrize(
    ("cliques", "cycle"),
    [
        ([*LOOP, (3, 4), (4, 5)], "(0, 1, 2, 3)"),
        ([(0, 1, 2), (2, 3), (3, 4), (4, 5), (5, 1)], "(1, 2, 3, 4, 5)"),
        ([(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 1), (4, 5)], "(1, 2, 3, 4)"),
    ],
)
def test_a_cycle_without_a_chord_is_named_and_the_method_for_it(cliques, cycle):
    counts, _ = positive_counts([2] * 6, cliques, 0)
    with pytest.raises(StructureError, match="Use fit_proportional") as refusal:
        fit_decomposable(counts)
    assert f"variables {cycle} form a cycle without a chord" in str(refusal.value)


def test_pairs_around_a_triangle_are_no_decomposable_network():
    counts, _ = positive_counts([2, 2, 2], [(0, 1), (1, 2), (2, 0)], 0)
    with pytest.raises(
        StructureError, match=r"\(0, 1, 2\) are connected pairwise, but no clique contains them all"
    ):
        fit_decomposable(counts)


def is_decomposable(cliques):
    """Whether networkx finds the graph chordal, with all its cliques among the given ones."""
    graph = nx.Graph((v, w) for clique in cliques for v in clique for w in clique if v != w)
    return nx.is_chordal(graph) and all(
        any(found <= set(clique) for clique in cliques) for found in map(set, nx.find_cliques(graph))
    )


@given(any_cliques(), SEEDS)
def test_whatever_has_no_closed_form_is_refused_and_all_else_is_right(case, seed):
    counts, _ = positive_counts(*case, seed)
    several = [[v for v in clique if case[0][v] > 1] for clique in case[1]]
    if is_decomposable(several):
        closed = fit_decomposable(counts)
        assert_same_tables(clique_marginals(closed.graph), counts.proportions(), 1e-12)
    else:
        with pytest.raises(StructureError, match="Use fit_proportional"):
            fit_decomposable(counts)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("cliques", [LOOP, [(0, 1), (1, 2), (1, 3)]])
def test_settings_never_seen_are_forbidden(cliques):
    records = np.array([[0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0]])
    counts = CliqueCounts.from_records([2, 3, 2, 2], cliques, records)
    fit = fit_proportional(counts, tolerance=1e-9)
    assert_same_tables(clique_marginals(fit.graph), counts.proportions(), 1e-8)
    for (_, table), count in zip(fit.graph.factors(), counts.tables, strict=True):
        assert (table[count == 0] == -np.inf).all()
        assert np.isfinite(table[count > 0]).all()
    assert math.isfinite(fit.log_likelihood)


def test_the_closed_form_forbids_settings_never_seen():
    counts = CliqueCounts.from_records([2, 3, 2], [(0, 1), (1, 2)], [[0, 0, 1], [1, 1, 1], [0, 0, 0]])
    fit = fit_decomposable(counts)
    assert_same_tables(clique_marginals(fit.graph), counts.proportions(), 1e-14)
    assert fit.log_likelihood == pytest.approx(fit_proportional(counts).log_likelihood)


@pytest.mark.usefixtures("form")
def test_what_no_clique_names_stays_uniform():
    records = np.array([[0, 0, 2, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    counts = CliqueCounts.from_records([2, 1, 3, 2], [(0, 1), (), (1,)], records)
    for fit in (fit_proportional(counts), fit_decomposable(counts)):
        np.testing.assert_allclose(JunctionTree().marginals(fit.graph).node[2], [1 / 3] * 3)
        np.testing.assert_allclose(JunctionTree().marginals(fit.graph).node[0], [1 / 3, 2 / 3])
        expected = math.log(1 / 3) + 2 * math.log(2 / 3) - 3 * math.log(6)
        assert fit.log_likelihood == pytest.approx(expected)


def test_a_network_without_cliques_is_uniform():
    counts = CliqueCounts.from_records([2, 3], [], [[0, 1], [1, 2]])
    for fit in (fit_proportional(counts), fit_decomposable(counts)):
        assert fit.log_likelihood == pytest.approx(-2 * math.log(6))
        assert fit.converged


def test_a_grid_too_large_for_one_table_is_fitted_through_its_junction_tree():
    rng = np.random.default_rng(2)
    edges = grid_edges(4, 4)
    truth = FactorGraph.build([3] * 16, [(edge, rng.normal(size=(3, 3))) for edge in edges])
    records = JunctionTree().sample(truth, Stream(5), 10_000)
    counts = CliqueCounts.from_records([3] * 16, edges, records)
    fit = fit_proportional(counts)
    found = JunctionTree().marginals(fit.graph)
    assert_same_tables(found.factor, counts.proportions(), 1e-9)
    scores = sum(table[tuple(records[:, list(scope)].T)] for scope, table in fit.graph.factors())
    assert fit.log_likelihood == pytest.approx(float(scores.sum()) - 10_000 * found.log_partition)
    true = sum(table[tuple(records[:, list(scope)].T)] for scope, table in truth.factors())
    assert fit.log_likelihood > float(true.sum()) - 10_000 * JunctionTree().log_partition(truth)


def test_a_long_chain_takes_one_sweep_and_one_to_confirm_it():
    records = np.random.default_rng(1).integers(0, 2, size=(500, 400))
    counts = CliqueCounts.from_records([2] * 400, [(v + 1, v) for v in range(399)], records)
    fit = fit_proportional(counts)
    assert fit.iterations == 2
    assert fit.log_likelihood == pytest.approx(fit_decomposable(counts).log_likelihood)


def test_a_fit_cut_short_warns_and_says_what_to_try():
    counts, _ = positive_counts([2, 3, 2, 2], LOOP, 3)
    with pytest.warns(
        ConvergenceWarning, match="after 1 sweeps .* Raise max_sweeps or tolerance; if counts are"
    ):
        fit = fit_proportional(counts, max_sweeps=1)
    assert not fit.converged
    assert fit.residual > 1e-10
    found = max(
        np.abs(ours - wanted).max()
        for ours, wanted in zip(clique_marginals(fit.graph), counts.proportions(), strict=True)
    )
    assert fit.residual == pytest.approx(found)


def disagreement(leak):
    """Three variables of which each two should be told apart with a chance of error: no joint has that."""
    same, other = np.array([[1.0, leak], [leak, 1.0]]), np.array([[leak, 1.0], [1.0, leak]])
    return CliqueCounts.from_tables([2, 2, 2], [((0, 1), same), ((1, 2), same), ((2, 0), other)])


@pytest.mark.usefixtures("form")
def test_tables_that_only_agree_two_by_two_are_refused():
    with pytest.raises(
        CountsError, match=r"no distribution fits all these tables\. Count all cliques on the same"
    ):
        fit_proportional(disagreement(0.0))


def test_tables_that_no_distribution_comes_near_end_in_a_warning():
    with pytest.warns(ConvergenceWarning, match="no distribution may fit them all"):
        fit = fit_proportional(disagreement(0.01), max_sweeps=50)
    assert not fit.converged


def test_a_network_too_dense_for_the_memory_is_refused():
    cliques = [(v, w) for w in range(14) for v in range(w)]
    counts = CliqueCounts.from_records([8] * 14, cliques, np.zeros((1, 14), int))
    with pytest.raises(TreewidthError, match="treewidth 13"):
        fit_proportional(counts)


@pytest.mark.parametrize(("option", "value"), [("tolerance", 0.0), ("max_sweeps", 0), ("memory_limit", 0)])
def test_limits_of_nothing_are_refused(option, value):
    counts, _ = positive_counts([2, 2], [(0, 1)], 0)
    with pytest.raises(InvalidArgumentError, match=option):
        fit_proportional(counts, **{option: value})
