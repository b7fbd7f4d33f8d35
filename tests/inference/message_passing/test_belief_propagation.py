"""Belief propagation against enumeration, and its fixed points against their own conditions."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings

from factorwise.errors import ImpossibleError, InvalidArgumentError
from factorwise.inference.exact.enumeration import Enumeration
from factorwise.inference.message_passing.belief_propagation import BeliefPropagation
from factorwise.inference.message_passing.bethe import bethe_free_energy, local_inconsistency
from factorwise.model.grounding import FactorGraph
from factorwise.testing.oracles import (
    awkward_graphs,
    check_name,
    impossible_checks,
    impossible_graphs,
    is_acyclic,
    map_oracle_checks,
    marginal_oracle_checks,
)
from message_cases import graphs, grid

GRAPHS = awkward_graphs()
FORESTS = {name: graph for name, graph in GRAPHS.items() if is_acyclic(graph)}
LOOPS = {name: graph for name, graph in GRAPHS.items() if name not in FORESTS}
# Messages see a contradiction of hard zeros unless it takes a way around a loop.
CONTRADICTIONS = {n: g for n, g in impossible_graphs().items() if n != "contradiction in a loop"}
METHODS = {
    f"{schedule}, damping {damping}": BeliefPropagation(schedule=schedule, damping=damping)
    for schedule, damping in product(("sequential", "parallel", "residual"), (0.0, 0.3))
}


@pytest.fixture(params=METHODS.values(), ids=METHODS.keys())
def method(request):
    return request.param


def test_every_schedule_is_exact_on_every_awkward_forest(method):
    for check in (*marginal_oracle_checks(method, FORESTS), *map_oracle_checks(method, FORESTS)):
        try:
            check()
        except AssertionError as wrong:
            raise AssertionError(check_name(check)) from wrong


def test_every_schedule_refuses_contradictions(method):
    for ask in (method.marginals, method.best):
        for check in impossible_checks(ask, CONTRADICTIONS):
            check()


@settings(max_examples=50)
@given(graphs(hard=True, scale=3.0, factors=(0, 4)))
def test_random_forests_are_exact(graph):
    assume(is_acyclic(graph))
    found, wanted = BeliefPropagation().marginals(graph), Enumeration().marginals(graph)
    assert found.log_partition == pytest.approx(wanted.log_partition, abs=1e-9)
    assert found.entropy == pytest.approx(wanted.entropy, abs=1e-9)
    for ours, exact in zip((*found.node, *found.factor), (*wanted.node, *wanted.factor), strict=True):
        np.testing.assert_allclose(ours, exact, atol=1e-10)
    best = BeliefPropagation().best(graph)
    assert best.exact
    assert best.score == pytest.approx(Enumeration().best(graph).score, abs=1e-9)


def test_one_sequential_sweep_and_one_to_see_it_settle_a_long_chain():
    rng = np.random.default_rng(3)
    chain = FactorGraph.build([3] * 400, [((v, v + 1), rng.normal(size=(3, 3))) for v in range(399)])
    found = BeliefPropagation().marginals(chain)
    assert found.convergence.iterations == 2
    assert local_inconsistency(chain, found.node, found.factor) < 1e-12


@pytest.mark.parametrize("graph", LOOPS.values(), ids=LOOPS.keys())
def test_converged_beliefs_on_loops_agree_with_each_other(method, graph):
    found = method.marginals(graph)
    assert found.convergence.converged
    assert local_inconsistency(graph, found.node, found.factor) < 1e-7
    assert found.log_partition == pytest.approx(-bethe_free_energy(graph, found.node, found.factor))


@pytest.mark.parametrize("graph", LOOPS.values(), ids=LOOPS.keys())
def test_all_schedules_reach_the_same_fixed_point_on_the_awkward_loops(graph):
    first, *others = [method.marginals(graph) for method in METHODS.values()]
    for other in others:
        for ours, theirs in zip(first.node, other.node, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_weakly_coupled_loops_are_nearly_exact(method):
    graph = grid(4, coupling=0.15)
    found, wanted = method.marginals(graph), Enumeration().marginals(graph)
    # Loops of four weak couplings carry about 0.15 ** 4 = 5e-4.
    assert found.log_partition == pytest.approx(wanted.log_partition, abs=2e-3)
    for ours, exact in zip(found.node, wanted.node, strict=True):
        np.testing.assert_allclose(ours, exact, atol=1e-3)


@pytest.mark.parametrize("graph", LOOPS.values(), ids=LOOPS.keys())
def test_best_on_loops_is_possible_honest_and_not_called_exact(method, graph):
    found = method.best(graph)
    assert found.score == graph.score(found.values)
    assert np.isfinite(found.score)
    assert found.score <= Enumeration().best(graph).score + 1e-9
    assert not found.exact


def test_no_single_change_improves_the_best_setting_found_on_a_loop():
    graph = grid(6, coupling=1.5)
    found = BeliefPropagation(max_iterations=20).best(graph)
    for variable in range(graph.n_variables):
        flipped = found.values.copy()
        flipped[variable] ^= 1
        assert graph.score(flipped) <= found.score + 1e-12


def test_ties_are_decoded_to_one_of_the_best_settings():
    unlike = np.array([[0.0, 1.0], [1.0, 0.0]])
    chain = FactorGraph.build([2] * 5, [((v, v + 1), unlike) for v in range(4)])
    assert BeliefPropagation().best(chain).score == 4.0


def test_report_tells_how_the_run_ended(method):
    graph = GRAPHS["loop"]
    found = method.marginals(graph).convergence
    assert found.converged
    assert found.iterations == len(found.trace) < method.max_iterations
    assert found.residual == found.trace[-1] <= method.tolerance
    assert found.trace[0] > method.tolerance


def test_report_says_when_sweeps_ran_out():
    found = BeliefPropagation(schedule="parallel", max_iterations=3).marginals(GRAPHS["loop"]).convergence
    assert not found.converged
    assert found.iterations == 3
    assert found.residual > 1e-9


def test_damping_settles_what_oscillates():
    anti = np.array([[0.0, 3.0], [3.0, 0.0]])
    pairs = [(0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3)]
    lean = [((v,), [0.0, 0.3]) for v in range(4)]
    clique = FactorGraph.build([2] * 4, [*lean, *((pair, anti) for pair in pairs)])
    assert not BeliefPropagation(schedule="parallel").marginals(clique).convergence.converged
    assert BeliefPropagation(schedule="parallel", damping=0.5).marginals(clique).convergence.converged


def test_variables_without_factors_are_uniform():
    found = BeliefPropagation().marginals(GRAPHS["unused variable"])
    np.testing.assert_allclose(found.node[1], 1 / 3)


def test_shared_tables_give_what_copies_of_them_give(method):
    shared = GRAPHS["shared tables"]
    copied = FactorGraph.build(shared.cardinality, list(shared.factors()))
    ours, theirs = method.marginals(shared), method.marginals(copied)
    assert ours.log_partition == theirs.log_partition
    np.testing.assert_array_equal(np.concatenate(ours.node), np.concatenate(theirs.node))


def test_a_contradiction_names_the_variable_and_the_remedy():
    graph = FactorGraph.build([2, 2], [((1,), [-np.inf, -np.inf]), ((0, 1), np.zeros((2, 2)))])
    with pytest.raises(ImpossibleError, match=r"variable 1 is ruled out.*relax a -inf.*\[0, 1\]"):
        BeliefPropagation().marginals(graph)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"schedule": "random"}, "schedule must be one of 'sequential', 'parallel', 'residual'"),
        ({"damping": 1.0}, "damping must be zero or more and less than 1"),
        ({"damping": -0.1}, "damping must be zero or more"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
        ({"tolerance": -1.0}, "tolerance must be zero or more"),
        ({"tolerance": float("nan")}, "tolerance must be zero or more"),
    ],
)
def test_bad_settings_are_refused_with_what_would_do(settings, wanted):
    with pytest.raises(InvalidArgumentError, match=wanted):
        BeliefPropagation(**settings)
