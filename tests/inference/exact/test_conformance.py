"""Every exact oracle of the package against enumeration, on the same awkward graphs."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from factorwise.errors import ImpossibleError, InvalidArgumentError, StructureError
from factorwise.inference import exact
from factorwise.inference.exact import Enumeration
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.testing.oracles import (
    awkward_graphs,
    impossible_checks,
    impossible_graphs,
    map_oracle_checks,
    marginal_oracle_checks,
)

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one chi-square test
ORACLES = {
    name: getattr(exact, name)()
    for name in exact.__all__
    if hasattr(getattr(exact, name), "marginals")
    and not issubclass(getattr(exact, name), exact.WorldEnumeration)
}
GRAPHS = awkward_graphs()


def is_chain(graph):
    """Pairs at most, and as an undirected graph nothing but paths."""
    scopes = [graph.scope_of(factor) for factor in range(graph.n_factors)]
    pairs = nx.Graph()
    pairs.add_nodes_from(range(graph.n_variables))
    pairs.add_edges_from(scope for scope in scopes if len(scope) == 2)
    return (
        max(map(len, scopes), default=0) <= 2
        and nx.is_forest(pairs)
        and max(degree for _, degree in pairs.degree) <= 2
    )


def is_tree(graph):
    """A forest of variables and factors, once no scope lies within another."""
    scopes = {frozenset(graph.scope_of(factor)) for factor in range(graph.n_factors)}
    largest = [scope for scope in scopes if not any(scope < other for other in scopes)]
    bipartite = nx.Graph()
    bipartite.add_nodes_from(range(graph.n_variables))
    bipartite.add_edges_from((variable, scope) for scope in largest for variable in scope)
    return nx.is_forest(bipartite)


TAKES = {"ChainOracle": is_chain, "TreeOracle": is_tree}


def takes(name, graph):
    return TAKES.get(name, lambda _: True)(graph)


def questions(oracle):
    return {
        "marginals": oracle.marginals,
        "log_partition": oracle.log_partition,
        "best": oracle.best,
        "k_best": lambda graph: oracle.k_best(graph, 3),
        "sample": lambda graph: oracle.sample(graph, Stream(1), 2),
    }


def cases(wanted, most_settings=1 << 20):
    return [
        pytest.param(oracle, graph, id=f"{name}-{title}")
        for name, oracle in ORACLES.items()
        for title, graph in GRAPHS.items()
        if takes(name, graph) == wanted and np.prod(graph.cardinality) <= most_settings
    ]


def test_the_package_offers_five_oracles():
    assert set(ORACLES) == {"ChainOracle", "Elimination", "Enumeration", "JunctionTree", "TreeOracle"}


@pytest.mark.parametrize(("oracle", "graph"), cases(wanted=True))
def test_marginals_agree_with_enumeration(oracle, graph):
    for check in marginal_oracle_checks(oracle, {"this": graph}):
        check()


@pytest.mark.parametrize(("oracle", "graph"), cases(wanted=True))
def test_best_setting_agrees_with_enumeration(oracle, graph):
    for check in map_oracle_checks(oracle, {"this": graph}):
        check()


@pytest.mark.parametrize(("oracle", "graph"), cases(wanted=True))
def test_log_partition_alone_equals_that_of_the_marginals(oracle, graph):
    alone = oracle.log_partition(graph)
    assert alone == pytest.approx(oracle.marginals(graph).log_partition, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("oracle", "graph"), cases(wanted=True))
def test_k_best_are_the_first_of_all_settings_ranked(oracle, graph):
    for k in (1, 2, 9):
        found, wanted = oracle.k_best(graph, k), Enumeration().k_best(graph, k)
        np.testing.assert_allclose([b.score for b in found], [b.score for b in wanted], atol=1e-9)
        assert len({tuple(best.values) for best in found}) == len(wanted)
        assert [best.score for best in found] == [graph.score(best.values) for best in found]
        assert [best.score for best in found] == sorted((b.score for b in found), reverse=True)


@pytest.mark.parametrize(("oracle", "graph"), cases(wanted=True, most_settings=50))
def test_asking_for_more_than_all_settings_returns_each_possible_one_once(oracle, graph):
    possible = int((Enumeration().scores(graph) > -np.inf).sum())
    found = oracle.k_best(graph, possible + 5)
    assert len({tuple(best.values) for best in found}) == len(found) == possible


@pytest.mark.statistical
@pytest.mark.parametrize(("oracle", "graph"), cases(wanted=True))
def test_samples_follow_the_enumerated_distribution(oracle, graph, seed):
    assert_samples_fit(oracle, graph, seed, 3_000)


def assert_samples_fit(oracle, graph, seed, size):
    drawn = oracle.sample(graph, Stream(seed), size)
    assert drawn.shape == (size, graph.n_variables)
    assert drawn.dtype == np.int64
    number = np.zeros(size, dtype=np.int64)
    for variable, labels in enumerate(graph.cardinality):
        number = number * labels + drawn[:, variable]
    probability = Enumeration().distribution(graph)
    observed = np.bincount(number, minlength=len(probability))
    assert observed[probability == 0].sum() == 0
    rare = probability * size < 5
    pooled = np.append(probability[~rare], probability[rare].sum())
    counts = np.append(observed[~rare], observed[rare].sum())
    kept = pooled > 0
    if kept.sum() > 1:
        wanted = pooled[kept] / pooled[kept].sum() * size
        assert chisquare(counts[kept], wanted).pvalue > FALSE_ALARM


@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)
def test_the_same_stream_draws_the_same_samples_and_is_used_up(oracle):
    graph, stream = GRAPHS["chain"], Stream(5)
    first, next_one = oracle.sample(graph, stream, 40), oracle.sample(graph, stream, 40)
    np.testing.assert_array_equal(first, oracle.sample(graph, Stream(5), 40))
    assert (first != next_one).any()


@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)
def test_no_samples_are_an_empty_array(oracle):
    assert oracle.sample(GRAPHS["chain"], Stream(5), 0).shape == (0, 4)


@pytest.mark.parametrize("name", ORACLES)
def test_every_question_about_an_impossible_graph_is_refused(name):
    graphs = {title: graph for title, graph in impossible_graphs().items() if takes(name, graph)}
    assert len(graphs) >= 3
    for ask in questions(ORACLES[name]).values():
        for check in impossible_checks(ask, graphs):
            check()


@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)
def test_the_refusal_of_an_impossible_graph_says_what_to_do(oracle):
    graph = impossible_graphs()["contradiction in a chain"]
    with pytest.raises(ImpossibleError, match="Replace some -inf by a large negative score"):
        oracle.marginals(graph)


@pytest.mark.parametrize(("oracle", "graph"), cases(wanted=False))
def test_a_graph_of_another_shape_is_refused_with_the_remedy(oracle, graph):
    for ask in questions(oracle).values():
        with pytest.raises(StructureError, match=r"JunctionTree\(\)"):
            ask(graph)


def test_each_special_oracle_refuses_some_graphs_and_takes_most():
    for name in TAKES:
        taken = sum(takes(name, graph) for graph in GRAPHS.values())
        assert len(GRAPHS) / 2 < taken < len(GRAPHS)


@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)
@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(oracle, k):
    with pytest.raises(InvalidArgumentError, match=f"k must be at least 1, but {k} was given"):
        oracle.k_best(GRAPHS["chain"], k)


@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)
def test_a_negative_number_of_samples_is_refused(oracle):
    with pytest.raises(InvalidArgumentError, match="size must be zero or more"):
        oracle.sample(GRAPHS["chain"], Stream(1), -1)


@st.composite
def graphs(draw, most_variables=5):
    """Up to five variables of up to three labels, up to six factors, hard zeros and large scores."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=most_variables))
    scores = st.sampled_from([-np.inf, -700.0, -1.5, 0.0, 0.25, 2.0, 700.0])
    factors = []
    for _ in range(draw(st.integers(0, 6))):
        scope = draw(st.lists(st.integers(0, len(sizes) - 1), max_size=3, unique=True))
        shape = [sizes[v] for v in scope]
        count = int(np.prod(shape, dtype=int))
        entries = draw(st.lists(scores, min_size=count, max_size=count))
        factors.append((scope, np.reshape(entries, shape)))
    return FactorGraph.build(sizes, factors)


@given(graphs())
def test_all_oracles_agree_on_random_graphs(graph):
    possible = Enumeration().scores(graph).max() > -np.inf
    for name, oracle in ORACLES.items():
        if not takes(name, graph):
            with pytest.raises(StructureError):
                oracle.marginals(graph)
        elif not possible:
            for ask in questions(oracle).values():
                with pytest.raises(ImpossibleError):
                    ask(graph)
        else:
            for check in marginal_oracle_checks(oracle, {"random": graph}):
                check()
            for check in map_oracle_checks(oracle, {"random": graph}):
                check()
            found, wanted = oracle.k_best(graph, 4), Enumeration().k_best(graph, 4)
            np.testing.assert_allclose([b.score for b in found], [b.score for b in wanted], atol=1e-9)
            for row in oracle.sample(graph, Stream(3), 5):
                assert graph.score(row) > -np.inf
