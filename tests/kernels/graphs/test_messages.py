"""Message kernels against the twins written from the definition."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from factorwise.inference.message_passing.belief_propagation import _domain, run_messages
from factorwise.inference.message_passing.wiring import wire
from factorwise.kernels.chains import decoding
from factorwise.kernels.graphs import forests, messages, residual_messages
from factorwise.model.grounding import FactorGraph
from message_cases import binary_pairs, flat, graphs, larger_pairs, pair_graphs, per_edge, per_variable
from reference import decoding as plain_decoding
from reference import forests as plain_forests
from reference import messages as plain
from reference import pair_messages as plain_pairs
from reference import residual_messages as plain_residual

CLOSE = {"rtol": 1e-9, "atol": 1e-9}
dampings = st.sampled_from([0.0, 0.4])


def scopes_of(graph):
    return [scope for scope, _ in plain.joint_factors(graph)]


@settings(max_examples=50)
@given(graphs(hard=True), st.integers(1, 3), st.booleans(), st.booleans(), dampings, st.booleans())
def test_sweeps_equal_the_definition(graph, sweeps, maximize, sequential, damping, weighted):
    wired = wire(graph)
    shares = np.linspace(0.4, 0.9, len(wired.factor)) if weighted else np.ones(len(wired.factor))
    wired = wired.weighted(shares)
    work, trace = wired.workspace(), np.zeros(sweeps)
    order = wired.order()
    done, empty = messages.run_sweeps(wired.wiring, work, order, maximize, sequential, damping, -1.0, trace)
    expected, changes = plain.run_sweeps(
        graph,
        sweeps,
        maximize=maximize,
        order=order.tolist() if sequential else None,
        damping=damping,
        appearance=shares.tolist(),
    )
    assert (done, empty) == (sweeps, -1)
    np.testing.assert_allclose(trace, changes, **CLOSE)
    np.testing.assert_allclose(per_edge(wired.wiring, work.messages), flat(expected), **CLOSE)


@settings(max_examples=50)
@given(graphs(hard=True), st.integers(0, 3), st.booleans())
def test_beliefs_equal_the_definition(graph, sweeps, weighted):
    wired = wire(graph)
    shares = np.linspace(0.4, 0.9, len(wired.factor)) if weighted else np.ones(len(wired.factor))
    wired = wired.weighted(shares)
    work = wired.workspace()
    messages.run_sweeps(wired.wiring, work, wired.order(), False, False, 0.0, -1.0, np.zeros(sweeps))
    labels, entries = np.zeros(len(work.totals)), np.zeros(wired.entry_start[-1])
    messages.label_beliefs(wired.wiring.cardinality, wired.wiring.label_start, work.totals, labels)
    assert messages.factor_beliefs(wired.wiring, work, wired.entry_start, entries) == -1

    expected, _ = plain.run_sweeps(graph, sweeps, appearance=shares.tolist())
    nodes = plain.label_beliefs(plain.node_totals(graph, expected, shares.tolist()))
    np.testing.assert_allclose(labels, np.concatenate(nodes), **CLOSE)
    joints = plain.factor_beliefs(graph, expected, shares.tolist())
    np.testing.assert_allclose(entries, np.concatenate([np.zeros(0), *map(np.ravel, joints)]), **CLOSE)


@settings(max_examples=50)
@given(graphs(hard=True), st.booleans(), dampings)
def test_residual_updates_equal_a_search_for_the_largest_change(graph, maximize, damping):
    wired = wire(graph)
    factors = len(wired.factor)
    assume(factors > 0)
    work, trace = wired.workspace(), np.zeros(1)
    queue = residual_messages.Queue(
        np.zeros(factors, dtype=np.int64), np.zeros(factors, dtype=np.int64), np.zeros(factors)
    )
    done, empty = residual_messages.run_residual(wired.wiring, work, queue, maximize, damping, -1.0, trace)
    expected, left = plain_residual.run_residual(graph, factors, maximize=maximize, damping=damping)
    assert (done, empty) == (1, -1)
    np.testing.assert_allclose(trace[0], left, **CLOSE)
    np.testing.assert_allclose(per_edge(wired.wiring, work.messages), flat(expected), **CLOSE)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=30))
def test_queue_has_the_largest_change_on_top(changes):
    queue = residual_messages.Queue(np.arange(7), np.arange(7), np.zeros(7))
    current = np.zeros(7)
    for factor, change in changes:
        residual_messages.reprioritize(queue, factor, float(change))
        current[factor] = change
        assert queue.heap[0] == current.argmax()
        np.testing.assert_array_equal(queue.heap[queue.place], np.arange(7))


@settings(max_examples=50)
@given(binary_pairs(), st.integers(1, 4), dampings)
def test_binary_ratios_equal_products_of_probabilities(graph, sweeps, damping):
    wired = wire(graph)
    assert _domain(wired) == "binary"
    work, _ = run_messages(wired, schedule="parallel", damping=damping, max_iterations=sweeps, tolerance=0.0)
    found = work.messages.reshape(-1, 2)
    expected = plain_pairs.run_binary(graph, sweeps, damping=damping)
    np.testing.assert_allclose(np.exp(found[:, 1] - found[:, 0]), list(expected.values()), rtol=1e-9)


@settings(max_examples=50)
@given(binary_pairs(), st.integers(1, 3), dampings)
def test_binary_ratios_in_order_equal_the_definition(graph, sweeps, damping):
    wired = wire(graph)
    work, convergence = run_messages(
        wired, schedule="sequential", damping=damping, max_iterations=sweeps, tolerance=0.0
    )
    found = work.messages.reshape(-1, 2)
    order = wired.order().tolist()
    expected = plain_pairs.run_binary_in_order(graph, order, convergence.iterations, damping=damping)
    np.testing.assert_allclose(np.exp(found[:, 1] - found[:, 0]), list(expected.values()), rtol=1e-9)


@settings(max_examples=50)
@given(larger_pairs(), st.integers(1, 4), dampings)
def test_pair_messages_equal_products_of_probabilities(graph, sweeps, damping):
    wired = wire(graph)
    assert _domain(wired) == "probability"
    work, _ = run_messages(wired, schedule="parallel", damping=damping, max_iterations=sweeps, tolerance=0.0)
    expected = plain_pairs.run_pairs(graph, sweeps, damping=damping)
    found = per_edge(wired.wiring, work.messages)
    np.testing.assert_allclose(found, flat({key: np.log(m) for key, m in expected.items()}), **CLOSE)


@settings(max_examples=50)
@given(
    st.one_of(binary_pairs(), pair_graphs(cards=(1, 3))),
    st.integers(1, 4),
    st.booleans(),
    dampings,
)
def test_probability_domain_and_log_domain_make_the_same_sweeps(graph, sweeps, sequential, damping):
    wired = wire(graph)
    assert _domain(wired) != "log"
    work, convergence = run_messages(
        wired,
        schedule="sequential" if sequential else "parallel",
        damping=damping,
        max_iterations=sweeps,
        tolerance=0.0,
    )
    slow, trace = wired.workspace(), np.zeros(sweeps)
    messages.run_sweeps(wired.wiring, slow, wired.order(), False, sequential, damping, 0.0, trace)
    made = convergence.iterations
    np.testing.assert_allclose(convergence.trace, trace[:made], **CLOSE)
    np.testing.assert_allclose(
        per_edge(wired.wiring, work.messages), per_edge(wired.wiring, slow.messages), **CLOSE
    )
    np.testing.assert_allclose(
        per_variable(wired.wiring, work.totals), per_variable(wired.wiring, slow.totals), **CLOSE
    )


@pytest.mark.parametrize(
    ("span", "domain"), [(299.0, "binary"), (301.0, "log"), (np.inf, "log")], ids=["safe", "wide", "hard"]
)
def test_tables_of_wide_range_are_left_to_the_log_domain(span, domain):
    graph = FactorGraph.build([2, 2], [((0, 1), [[0.0, -span], [0.0, 0.0]])])
    assert _domain(wire(graph)) == domain


def test_the_range_that_counts_is_all_there_is_at_one_variable():
    table = np.array([[0.0, 110.0], [0.0, 0.0]])
    star = [((0, leaf), table) for leaf in (1, 2, 3)]
    assert _domain(wire(FactorGraph.build([2] * 4, star[:2]))) == "binary"
    assert _domain(wire(FactorGraph.build([2] * 4, star))) == "log"


@given(graphs(cards=(1, 2), variables=(1, 7), factors=(0, 8)))
def test_walk_and_forests_equal_the_definition(graph):
    wired = wire(graph)
    scopes = scopes_of(graph)
    assert wired.forest == plain_forests.is_forest(graph.n_variables, scopes)
    assert wired.wiring.walk.tolist() == plain_forests.breadth_first(graph.n_variables, scopes)


@given(graphs(cards=(1, 2), variables=(1, 7), factors=(0, 8)), st.randoms(use_true_random=False))
def test_grown_forest_takes_every_factor_that_closes_no_cycle(graph, random):
    wired = wire(graph)
    scopes = scopes_of(graph)
    order = list(range(len(scopes)))
    random.shuffle(order)
    chosen = np.ones(len(scopes), dtype=bool)
    parent = np.zeros(graph.n_variables, dtype=np.int64)
    forests.grow_forest(
        wired.wiring.scope_start, wired.wiring.scope, np.array(order, dtype=np.int64), parent, chosen
    )
    assert chosen.tolist() == plain_forests.grow_forest(graph.n_variables, scopes, order)


@settings(max_examples=50)
@given(graphs(hard=True), st.integers(0, 3))
def test_decoding_equals_the_definition(graph, sweeps):
    wired = wire(graph)
    work = wired.workspace()
    messages.run_sweeps(wired.wiring, work, wired.order(), True, False, 0.0, -1.0, np.zeros(sweeps))
    messages.node_totals(wired.wiring, work.messages, work.totals)
    values = np.zeros(graph.n_variables, dtype=np.int64)
    decoding.decode(wired.wiring, work, values)
    expected, _ = plain.run_sweeps(graph, sweeps, maximize=True)
    assert values.tolist() == plain_decoding.decode(graph, expected, wired.wiring.walk.tolist())


@settings(max_examples=50)
@given(graphs(hard=True), st.integers(0, 2**32 - 1))
def test_climbing_equals_the_definition_and_never_descends(graph, seed):
    values = np.random.default_rng(seed).integers(0, graph.cardinality)
    before = graph.score(values)
    expected = plain_decoding.climb(graph, values.tolist())
    decoding.climb(wire(graph).wiring, values, 100)
    assert values.tolist() == expected
    assert graph.score(values) >= before


@given(graphs(hard=True), st.integers(0, 2**32 - 1))
def test_setting_score_is_the_score_of_the_graph_to_the_last_bit(graph, seed):
    values = np.random.default_rng(seed).integers(0, graph.cardinality)
    found = decoding.setting_score(
        graph.cardinality, graph.scope_start, graph.scope, graph.table_start, graph.tables, values
    )
    assert found == plain_decoding.setting_score(graph, values)
