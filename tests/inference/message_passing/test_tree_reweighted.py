"""Tree-reweighted messages: an upper bound, exact on forests, with an entropy that is concave."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.exact.enumeration import Enumeration
from factorwise.inference.message_passing.belief_propagation import BeliefPropagation
from factorwise.inference.message_passing.bethe import bethe_entropy, local_inconsistency
from factorwise.inference.message_passing.tree_reweighted import TreeReweighted
from factorwise.testing.oracles import (
    awkward_graphs,
    impossible_checks,
    impossible_graphs,
    is_acyclic,
    marginal_oracle_checks,
)
from message_cases import graphs, grid

GRAPHS = awkward_graphs()
FORESTS = {name: graph for name, graph in GRAPHS.items() if is_acyclic(graph)}
LOOPS = {name: graph for name, graph in GRAPHS.items() if name not in FORESTS}
CONTRADICTIONS = {n: g for n, g in impossible_graphs().items() if n != "contradiction in a loop"}
CHOICES = ("spanning_trees", "uniform")


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("schedule", ["sequential", "parallel", "residual"])
def test_exact_on_every_awkward_forest(choice, schedule):
    for check in marginal_oracle_checks(TreeReweighted(edge_appearance=choice, schedule=schedule), FORESTS):
        check()


def test_contradictions_are_refused():
    for check in impossible_checks(TreeReweighted().marginals, CONTRADICTIONS):
        check()


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("graph", LOOPS.values(), ids=LOOPS.keys())
def test_bound_is_above_log_z_and_beliefs_agree(choice, graph):
    found = TreeReweighted(edge_appearance=choice).marginals(graph)
    assert found.convergence.converged
    assert found.log_partition >= Enumeration().log_partition(graph) - 1e-9
    assert local_inconsistency(graph, found.node, found.factor) < 1e-7


@settings(max_examples=50)
@given(graphs(hard=True, scale=2.0), st.sampled_from(CHOICES))
def test_bound_holds_on_random_graphs(graph, choice):
    found = TreeReweighted(edge_appearance=choice, damping=0.3).marginals(graph)
    assume(found.convergence.converged)
    assert found.log_partition >= Enumeration().log_partition(graph) - 1e-6


def test_bound_holds_where_the_bethe_approximation_fails_to_be_one():
    graph = grid(4, coupling=1.0, seed=4)
    exact = Enumeration().log_partition(graph)
    bethe = BeliefPropagation(damping=0.3).marginals(graph)
    assert bethe.convergence.converged
    assert bethe.log_partition < exact - 0.01
    assert TreeReweighted(damping=0.3).marginals(graph).log_partition > exact


@settings(max_examples=50)
@given(graphs(scale=2.0, factors=(0, 8)), st.sampled_from(CHOICES), st.floats(0.05, 0.95))
def test_entropy_is_concave_between_any_two_locally_consistent_points(graph, choice, share):
    """Marginals of two distributions over the same variables, and their mixture."""
    weights = TreeReweighted(edge_appearance=choice).appearance(graph)
    twisted = type(graph)(
        graph.cardinality, graph.scope_start, graph.scope, graph.table_start, graph.tables[::-1].copy()
    )
    ends = [Enumeration().marginals(g) for g in (graph, twisted)]
    node = [share * a + (1 - share) * b for a, b in zip(ends[0].node, ends[1].node, strict=True)]
    factor = [share * a + (1 - share) * b for a, b in zip(ends[0].factor, ends[1].factor, strict=True)]
    values = [bethe_entropy(graph, end.node, end.factor, appearance=weights) for end in ends]
    middle = bethe_entropy(graph, node, factor, appearance=weights)
    assert middle >= share * values[0] + (1 - share) * values[1] - 1e-10


@settings(max_examples=50)
@given(graphs(scale=2.0, factors=(0, 8)), st.sampled_from(CHOICES))
def test_entropy_is_no_less_than_that_of_a_distribution_with_these_marginals(graph, choice):
    exact = Enumeration().marginals(graph)
    weights = TreeReweighted(edge_appearance=choice).appearance(graph)
    assert bethe_entropy(graph, exact.node, exact.factor, appearance=weights) >= exact.entropy - 1e-10


@given(graphs(variables=(1, 7), factors=(0, 10)), st.sampled_from(CHOICES))
def test_appearances_are_shares_of_forests(graph, choice):
    weights = TreeReweighted(edge_appearance=choice, forests=5).appearance(graph)
    assert ((weights > 0) & (weights <= 1)).all()
    # A forest joins at most all variables into one part, and a factor of k of them joins k parts into one.
    joins = np.maximum(np.diff(graph.scope_start) - 1, 0)
    assert weights @ joins <= graph.n_variables - 1 + 1e-9
    if is_acyclic(graph):
        assert (weights == 1).all()


def test_spanning_trees_cover_a_square_grid_evenly_and_completely():
    graph = grid(5, coupling=1.0)
    weights = TreeReweighted(forests=64).appearance(graph)[np.diff(graph.scope_start) == 2]
    assert weights.sum() == pytest.approx(24)
    assert weights.max() - weights.min() < 0.05


def test_given_appearances_are_used_and_ones_are_belief_propagation():
    graph = GRAPHS["loop"]
    ours = TreeReweighted(edge_appearance=[1.0] * 4).marginals(graph)
    assert ours.log_partition == pytest.approx(BeliefPropagation().marginals(graph).log_partition)
    shares = [0.75] * 4
    assert TreeReweighted(edge_appearance=shares).marginals(graph).log_partition == pytest.approx(
        TreeReweighted(forests=4).marginals(graph).log_partition
    )


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"edge_appearance": "random"}, "'spanning_trees', 'uniform' or one number per factor"),
        ({"edge_appearance": [0.5, 0.0]}, "above 0 and at most 1"),
        ({"edge_appearance": [0.5, 1.5]}, "above 0 and at most 1"),
        ({"forests": 0}, "forests must be at least 1"),
        ({"schedule": "backwards"}, "schedule must be one of"),
    ],
)
def test_bad_settings_are_refused_with_what_would_do(settings, wanted):
    with pytest.raises(InvalidArgumentError, match=wanted):
        TreeReweighted(**settings)


def test_appearances_of_the_wrong_number_are_refused():
    with pytest.raises(ShapeError, match=r"the graph has 4 factors: give one number for each"):
        TreeReweighted(edge_appearance=[0.5]).marginals(GRAPHS["loop"])
