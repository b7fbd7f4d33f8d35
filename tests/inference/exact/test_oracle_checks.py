"""The public checks: right oracles pass, and each way of being wrong is caught."""

import dataclasses

import numpy as np
import pytest

from factorwise.inference.exact import Enumeration
from factorwise.testing.oracles import (
    awkward_graphs,
    check_name,
    impossible_checks,
    impossible_graphs,
    is_acyclic,
    map_oracle_checks,
    marginal_oracle_checks,
)

GRAPHS = awkward_graphs()
CHAIN = GRAPHS["chain"]


class Altered:
    """Enumeration with one answer changed."""

    def __init__(self, **changes):
        self.changes = changes

    def marginals(self, graph):
        found = Enumeration().marginals(graph)
        return dataclasses.replace(found, **{name: change(found) for name, change in self.changes.items()})

    def best(self, graph):
        found = Enumeration().best(graph)
        return dataclasses.replace(found, **{name: change(found) for name, change in self.changes.items()})


class Meddling:
    """Right, but it writes into the graph."""

    def marginals(self, graph):
        found = Enumeration().marginals(graph)
        graph.tables[:] += 1.0
        return found

    def best(self, graph):
        found = Enumeration().best(graph)
        graph.tables[:] += 1.0
        return found


class Moody(Altered):
    """Right within the tolerance, but never the same twice."""

    calls = 0

    def marginals(self, graph):
        self.calls += 1
        found = Enumeration().marginals(graph)
        return dataclasses.replace(found, log_partition=found.log_partition + 1e-12 * self.calls)


def failures(checks):
    failed = set()
    for check in checks:
        try:
            check()
        except AssertionError:
            failed.add(check_name(check).split(":")[0])
    return failed


def uniform(found):
    return tuple(np.full(p.shape, 1 / max(p.size, 1)) for p in found.factor)


@pytest.mark.parametrize(
    ("oracle", "caught"),
    [
        (Altered(), set()),
        (Altered(log_partition=lambda m: m.log_partition + 1e-3), {"log_partition_equals_enumeration"}),
        (Altered(entropy=lambda m: m.entropy + 1e-3), {"entropy_equals_enumeration"}),
        (Altered(factor=uniform), {"factor_marginals_equal_enumeration"}),
        (
            Altered(node=lambda m: tuple(p[::-1] for p in m.node)),
            {"node_marginals_equal_enumeration"},
        ),
        (Moody(), {"marginals_are_the_same_twice"}),
    ],
)
def test_each_fault_of_a_marginal_oracle_is_caught_by_its_own_check(oracle, caught):
    assert failures(marginal_oracle_checks(oracle, {"chain": CHAIN})) == caught


def test_missing_marginals_are_caught():
    short = Altered(node=lambda m: m.node[:-1])
    found = failures(marginal_oracle_checks(short, {"chain": CHAIN}))
    assert "marginals_have_the_shapes_of_the_graph" in found


@pytest.mark.parametrize(
    ("changes", "caught"),
    [
        ({}, set()),
        ({"values": lambda b: b.values.astype(np.int32)}, {"best_is_a_setting_of_the_graph"}),
        ({"score": lambda b: b.score - 1e-12}, {"best_score_is_the_score_of_its_values"}),
        (
            {"values": lambda b: 2 - b.values, "score": lambda b: CHAIN.score(2 - b.values)},
            {"best_score_equals_enumeration"},
        ),
    ],
)
def test_each_fault_of_a_map_oracle_is_caught_by_its_own_check(changes, caught):
    assert failures(map_oracle_checks(Altered(**changes), {"chain": CHAIN})) == caught


def test_an_oracle_that_writes_into_the_graph_is_caught():
    fresh = {"chain": awkward_graphs()["chain"]}
    assert "marginals_leave_the_graph_alone" in failures(marginal_oracle_checks(Meddling(), fresh))
    assert "best_leaves_the_graph_alone" in failures(map_oracle_checks(Meddling(), fresh))


def test_an_answer_to_an_impossible_question_is_caught():
    assert failures(impossible_checks(lambda _: 0.0, impossible_graphs())) == {"the_impossible_is_refused"}
    assert failures(impossible_checks(Enumeration().best, impossible_graphs())) == set()


def test_checks_are_named_after_what_they_check_and_the_graph():
    first = next(marginal_oracle_checks(Enumeration(), {"loop": GRAPHS["loop"]}))
    assert check_name(first) == "marginals_have_the_shapes_of_the_graph: loop"


def test_awkward_graphs_are_new_and_equal_on_every_call():
    again = awkward_graphs()
    assert list(again) == list(GRAPHS)
    for name, graph in GRAPHS.items():
        np.testing.assert_array_equal(graph.tables, again[name].tables)
        assert not np.shares_memory(graph.tables, again[name].tables) or graph.tables.size == 0


@pytest.mark.parametrize(
    ("name", "acyclic"),
    [
        ("tree", True),
        ("forest", True),
        ("four variables in a factor", True),
        ("loop", False),
        ("grid", False),
        ("duplicate factors", False),
        ("overlapping large factors", False),
    ],
)
def test_acyclic_means_no_loop_of_variables_and_factors(name, acyclic):
    assert is_acyclic(GRAPHS[name]) is acyclic
