"""Elimination orders, joint queries and what is refused."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import ImpossibleError, InvalidArgumentError, TreewidthError
from factorwise.inference.exact import Elimination, Enumeration, elimination_order
from factorwise.model.grounding import FactorGraph
from factorwise.testing.oracles import awkward_graphs, grid_edges, impossible_graphs

GRAPHS = awkward_graphs()


def pairs(count, edges):
    return FactorGraph.build([2] * count, [(edge, np.zeros((2, 2))) for edge in edges])


@pytest.mark.parametrize(
    ("graph", "width"),
    [
        (pairs(1, []), 0),
        (pairs(5, [(v, v + 1) for v in range(4)]), 1),
        (pairs(6, [(0, v) for v in range(1, 6)]), 1),
        (pairs(6, [(v, (v + 1) % 6) for v in range(6)]), 2),
        (pairs(9, grid_edges(3, 3)), 3),
        (pairs(16, grid_edges(4, 4)), 4),
        (pairs(5, [(v, w) for w in range(5) for v in range(w)]), 4),
        (GRAPHS["four variables in a factor"], 3),
    ],
)
def test_the_order_reaches_the_treewidth_of_simple_graphs(graph, width):
    assert elimination_order(graph).treewidth == width


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda e: e[0] != e[1]), max_size=16))
def test_cliques_cover_all_factors_and_meet_the_running_intersection_property(edges):
    order = elimination_order(pairs(8, edges))
    going = [clique[0] for clique in order.cliques]
    assert sorted(going) == list(range(8))
    assert all(any(set(edge) <= set(clique) for clique in order.cliques) for edge in edges)
    for clique in order.cliques:
        assert list(clique) == sorted(clique, key=going.index)
        if len(clique) > 1:
            parent = order.cliques[going.index(clique[1])]
            assert set(clique[1:]) <= set(parent)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda e: e[0] != e[1]), max_size=20))
def test_each_variable_that_goes_leaves_the_fewest_missing_pairs(edges):
    graph = nx.Graph()
    graph.add_nodes_from(range(10))
    graph.add_edges_from(edges)

    def missing(v):
        around = graph.subgraph(graph[v])
        return len(around) * (len(around) - 1) // 2 - around.number_of_edges()

    for variable, *others in elimination_order(pairs(10, edges)).cliques:
        assert missing(variable) == min(missing(v) for v in graph)
        assert set(graph[variable]) == set(others)
        graph.add_edges_from((v, w) for v in others for w in others if v < w)
        graph.remove_node(variable)


def test_single_label_variables_take_no_part_in_the_order():
    assert [clique[0] for clique in elimination_order(GRAPHS["domains of size one"]).cliques] == [1, 3]


@pytest.mark.parametrize(
    "name", ["grid", "clique", "hard zeros in a loop", "domains of size one", "no factors"]
)
def test_joint_of_a_query_equals_enumeration_in_the_order_asked(name):
    graph = GRAPHS[name]
    query = list(range(graph.n_variables))[::-1][:3]
    found = Elimination().joint(graph, query)
    wanted = np.zeros(graph.cardinality[query])
    settings = Enumeration().settings(graph)
    np.add.at(wanted, tuple(settings[:, query].T), Enumeration().distribution(graph))
    assert found.scope == tuple(query)
    np.testing.assert_allclose(found.probabilities(), wanted, atol=1e-13)


def test_the_joint_of_no_variables_is_one():
    assert Elimination().joint(GRAPHS["loop"], ()).probabilities() == pytest.approx(1.0)


def test_the_joint_of_an_impossible_graph_is_refused():
    with pytest.raises(ImpossibleError, match="large negative score"):
        Elimination().joint(impossible_graphs()["contradiction in a loop"], (0,))


@pytest.mark.parametrize("query", [(0, 0), (9,), (-1,)])
def test_a_query_of_repeated_or_unknown_variables_is_refused(query):
    with pytest.raises(InvalidArgumentError, match="query must name different variables from 0 to 3"):
        Elimination().joint(GRAPHS["loop"], query)


def test_a_query_too_large_for_the_memory_is_refused_though_the_graph_is_a_chain():
    chain = pairs(40, [(v, v + 1) for v in range(39)])
    assert Elimination().log_partition(chain) == pytest.approx(40 * np.log(2))
    with pytest.raises(TreewidthError, match="treewidth 39"):
        Elimination().joint(chain, range(40))


def test_a_memory_limit_of_nothing_is_refused():
    with pytest.raises(InvalidArgumentError, match="memory_limit must be greater than zero"):
        Elimination(memory_limit=0)
