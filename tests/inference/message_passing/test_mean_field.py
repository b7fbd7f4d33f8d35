"""Mean field: a lower bound that rises with every sweep, naive and by blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.errors import ImpossibleError, InvalidArgumentError, TreewidthError
from factorwise.inference.exact.enumeration import Enumeration
from factorwise.inference.message_passing.bethe import local_inconsistency
from factorwise.inference.message_passing.mean_field import MeanField
from factorwise.model.grounding import FactorGraph
from factorwise.testing.oracles import (
    awkward_graphs,
    impossible_checks,
    impossible_graphs,
    marginal_oracle_checks,
)
from message_cases import graphs, grid

GRAPHS = awkward_graphs()


def rows(graph):
    """All variables in one block, in an order that is not theirs."""
    return MeanField(blocks=[range(graph.n_variables - 1, -1, -1)])


def pairs(graph):
    """Blocks of neighbouring numbers."""
    return MeanField(blocks=[range(v, min(v + 2, graph.n_variables)) for v in range(0, graph.n_variables, 2)])


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
def test_bound_is_below_log_z_and_beliefs_agree(graph):
    exact = Enumeration().log_partition(graph)
    for method in (MeanField(), MeanField(blocks=[]), pairs(graph)):
        found = method.marginals(graph)
        assert found.convergence.converged
        assert found.log_partition <= exact + 1e-9 * abs(exact)
        assert np.isfinite(found.log_partition)
        assert local_inconsistency(graph, found.node, found.factor) < 1e-12


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
def test_one_block_of_all_variables_is_exact(graph):
    for check in marginal_oracle_checks(rows(graph), {"graph": graph}):
        check()


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
def test_blocks_of_one_are_naive_mean_field(graph):
    naive, alone = MeanField().marginals(graph), MeanField(blocks=[[0]]).marginals(graph)
    assert naive.log_partition == pytest.approx(alone.log_partition)
    np.testing.assert_allclose(np.concatenate(naive.node), np.concatenate(alone.node), atol=1e-9)


def test_contradictions_are_refused():
    for check in impossible_checks(MeanField().marginals, impossible_graphs()):
        check()


@settings(max_examples=50)
@given(graphs(hard=True, scale=2.0), st.booleans())
def test_bound_never_falls_from_sweep_to_sweep(graph, blocked):
    blocks = [range(0, graph.n_variables, 2)] if blocked else None
    try:
        bounds = [
            MeanField(blocks=blocks, max_iterations=sweeps, tolerance=0.0).marginals(graph).log_partition
            for sweeps in (1, 2, 3, 6, 20)
        ]
    except ImpossibleError:  # max-product found no start; the graph itself is possible
        return
    assert (np.diff(bounds) >= -1e-10).all()
    assert bounds[-1] <= Enumeration().log_partition(graph) + 1e-10


def test_joint_blocks_tighten_the_bound_of_a_strongly_coupled_grid():
    graph = grid(4, coupling=1.0, seed=1)
    exact = Enumeration().log_partition(graph)
    naive = MeanField().marginals(graph).log_partition
    by_row = MeanField(blocks=[range(4 * row, 4 * row + 4) for row in range(4)]).marginals(graph)
    assert naive < by_row.log_partition < exact
    assert exact - by_row.log_partition < 0.5 * (exact - naive)


def test_factors_inside_a_block_keep_their_correlation():
    same = np.array([[2.0, 0.0], [0.0, 2.0]])
    graph = FactorGraph.build([2, 2, 2], [((1, 0), same), ((1, 2), 0.1 * same)])
    joint = MeanField(blocks=[[0, 1]]).marginals(graph).factor[0]
    assert joint[0, 0] + joint[1, 1] > 0.85


def test_report_says_when_sweeps_ran_out():
    for blocks in (None, [[0, 1]]):
        found = MeanField(blocks=blocks, max_iterations=2).marginals(GRAPHS["clique"]).convergence
        assert (found.converged, found.iterations, len(found.trace)) == (False, 2, 2)
        assert found.residual == found.trace[-1] > 1e-9


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"blocks": [[0, 1], [1, 2]]}, "variable 1 more than once: blocks must not overlap"),
        ({"blocks": [[-1]]}, "variable numbers from 0 up"),
        ({"max_table": 0}, "max_table must be at least 1"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
        ({"tolerance": -1.0}, "tolerance must be zero or more"),
    ],
)
def test_bad_settings_are_refused_with_what_would_do(settings, wanted):
    with pytest.raises(InvalidArgumentError, match=wanted):
        MeanField(**settings)


def test_a_block_outside_the_graph_is_refused():
    with pytest.raises(InvalidArgumentError, match="use numbers from 0 to 3"):
        MeanField(blocks=[[2, 4]]).marginals(GRAPHS["loop"])


def test_a_block_too_large_for_its_table_is_refused():
    with pytest.raises(TreewidthError, match=r"joint table of 24 entries.*split it, or raise"):
        MeanField(blocks=[[0, 1, 2, 3]], max_table=23).marginals(GRAPHS["loop"])
