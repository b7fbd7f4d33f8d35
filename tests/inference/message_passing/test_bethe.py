"""Bethe entropy and free energy of given beliefs, and the check that beliefs agree."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.exact.enumeration import Enumeration
from factorwise.inference.message_passing.bethe import (
    bethe_entropy,
    bethe_free_energy,
    check_consistency,
    expected_score,
    local_inconsistency,
)
from factorwise.model.grounding import FactorGraph
from factorwise.testing.oracles import awkward_graphs, is_acyclic
from message_cases import graphs

GRAPHS = awkward_graphs()
FORESTS = {name: graph for name, graph in GRAPHS.items() if is_acyclic(graph)}
PAIR = FactorGraph.build([2, 2], [((0, 1), [[1.0, 0.0], [0.0, 2.0]]), ((0,), [0.5, 0.0])])
HALF = np.full(2, 0.5)


@pytest.mark.parametrize("graph", FORESTS.values(), ids=FORESTS.keys())
def test_exact_marginals_of_a_forest_have_the_exact_entropy_and_free_energy(graph):
    exact = Enumeration().marginals(graph)
    assert bethe_entropy(graph, exact.node, exact.factor) == pytest.approx(exact.entropy, abs=1e-9)
    assert bethe_free_energy(graph, exact.node, exact.factor) == pytest.approx(-exact.log_partition)


def test_entropy_is_that_of_factors_less_what_variables_are_counted_twice():
    graph = FactorGraph.build([2, 2, 2], [((0, 1), np.zeros((2, 2))), ((1, 2), np.zeros((2, 2)))])
    same = np.eye(2) / 2
    factor = [same, np.full((2, 2), 0.25)]
    assert bethe_entropy(graph, [HALF] * 3, factor) == pytest.approx((1 + 2 - 1) * math.log(2))
    half_weight = bethe_entropy(graph, [HALF] * 3, factor, appearance=[0.5, 1.0])
    assert half_weight == pytest.approx((0.5 * 1 + 2 + 0.5 * 1 + (1 - 1.5) * 1 + 0) * math.log(2))


def test_expected_score_weighs_every_factor():
    joint = np.array([[0.5, 0.1], [0.2, 0.2]])
    assert expected_score(PAIR, [joint, np.array([0.6, 0.4])]) == pytest.approx(0.5 + 0.4 + 0.3)


def test_mass_on_a_forbidden_entry_makes_the_expected_score_minus_infinity():
    graph = FactorGraph.build([2], [((0,), [0.0, -np.inf])])
    assert expected_score(graph, [np.array([1.0, 0.0])]) == 0.0
    assert expected_score(graph, [HALF]) == -np.inf


@given(graphs(hard=True))
def test_marginals_of_a_distribution_are_consistent(graph):
    exact = Enumeration().marginals(graph)
    assert local_inconsistency(graph, exact.node, exact.factor) < 1e-12
    check_consistency(graph, exact.node, exact.factor)


@given(st.floats(1e-4, 0.2))
def test_inconsistency_is_the_size_of_the_disagreement(gap):
    joint = np.full((2, 2), 0.25)
    tilted = np.array([0.5 + gap, 0.5 - gap])
    assert local_inconsistency(PAIR, [tilted, HALF], [joint, tilted]) == pytest.approx(gap)
    with pytest.raises(InvalidArgumentError, match="Run the method that computed them to convergence"):
        check_consistency(PAIR, [tilted, HALF], [joint, tilted])


@pytest.mark.parametrize("wrong", [np.array([0.7, 0.4]), np.array([1.2, -0.2])], ids=["total", "negative"])
def test_what_is_no_distribution_is_inconsistent(wrong):
    graph = FactorGraph.build([2], [])
    assert local_inconsistency(graph, [wrong], []) > 0.09


def test_a_belief_that_is_not_a_number_is_refused():
    graph = FactorGraph.build([2], [])
    with pytest.raises(InvalidArgumentError, match="disagree by nan"):
        check_consistency(graph, [np.array([np.nan, 1.0])], [])


@pytest.mark.parametrize(
    ("node", "factor", "wanted"),
    [
        ([HALF], [np.full((2, 2), 0.25), HALF], "give one array per variable"),
        ([HALF, HALF], [np.full((2, 2), 0.25)], "give one array per factor"),
        ([HALF, HALF], [np.full(4, 0.25), HALF], "requires (2, 2): reshape or transpose"),
    ],
)
def test_beliefs_of_the_wrong_shape_are_refused(node, factor, wanted):
    with pytest.raises(ShapeError) as refusal:
        bethe_entropy(PAIR, node, factor)
    assert wanted in str(refusal.value)


def test_appearances_of_the_wrong_number_are_refused():
    with pytest.raises(ShapeError, match="give one weight"):
        bethe_entropy(PAIR, [HALF, HALF], [np.full((2, 2), 0.25), HALF], appearance=[1.0])
