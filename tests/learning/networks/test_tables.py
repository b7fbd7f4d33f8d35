"""Directed models with tables: counts, priors, the joint they stand for, and samples from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from factorwise.errors import InvalidArgumentError, ShapeError, StructureError
from factorwise.inference.exact import Enumeration, JunctionTree
from factorwise.learning.networks.counts import CliqueCounts
from factorwise.learning.networks.proportional_fitting import fit_decomposable
from factorwise.learning.networks.tables import TableNetwork, fit_tables, topological_order
from factorwise.rng import Stream

FALSE_ALARM = 1e-4  # chance that a correct sampler fails the statistical test
RAIN = TableNetwork(
    ((), (0,), (1, 0)),
    (
        np.array([0.8, 0.2]),
        np.array([[0.6, 0.4, 0.0], [0.99, 0.0, 0.01]]),
        np.array([[[1.0, 0.0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]], [[0.5, 0.5], [0.3, 0.7]]]),
    ),
)


@st.composite
def table_networks(draw):
    """Up to five variables in a random order, each with up to two of the earlier ones as parents."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    order = draw(st.permutations(range(len(sizes))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parents = [()] * len(sizes)
    for place, variable in enumerate(order):
        count = draw(st.integers(0, min(2, place)))
        parents[variable] = tuple(draw(st.permutations(order[:place]))[:count])
    tables = [
        rng.dirichlet(np.ones(sizes[v]), size=[sizes[p] for p in given] or None)
        for v, given in enumerate(parents)
    ]
    return TableNetwork(tuple(parents), tuple(tables))


@given(table_networks())
def test_the_joint_is_the_product_of_the_tables(network):
    graph = network.to_graph()
    rows = Enumeration().settings(graph)
    product = np.ones(len(rows))
    for number, row in enumerate(rows):
        for v, above in enumerate(network.parents):
            product[number] *= network.tables[v][(*row[list(above)], row[v])]
    np.testing.assert_allclose(Enumeration().distribution(graph), product, atol=1e-13)
    assert Enumeration().log_partition(graph) == pytest.approx(0.0, abs=1e-12)
    assert network.log_likelihood(rows) == pytest.approx(np.log(product).sum())


@given(table_networks())
def test_data_in_the_shares_of_a_network_give_its_tables_back(network):
    graph = network.to_graph()
    records, shares = Enumeration().settings(graph), Enumeration().distribution(graph)
    fit = fit_tables(network.cardinality, network.parents, records, shares)
    for ours, theirs in zip(fit.tables, network.tables, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


@given(table_networks(), st.integers(0, 2**32 - 1))
def test_no_other_tables_make_the_data_likelier(network, seed):
    records = network.sample(40, seed=seed)
    fit = fit_tables(network.cardinality, network.parents, records)
    assert fit.log_likelihood(records) >= network.log_likelihood(records) - 1e-9
    graph = fit.to_graph()
    score = sum(graph.score(row) for row in records)
    assert fit.log_likelihood(records) == pytest.approx(score)


def test_tables_are_the_shares_of_the_counts():
    records = [[0, 0], [0, 1], [0, 1], [1, 0]]
    fit = fit_tables([2, 2], [(), (0,)], records)
    np.testing.assert_array_equal(fit.tables[0], [0.75, 0.25])
    np.testing.assert_allclose(fit.tables[1], [[1 / 3, 2 / 3], [1.0, 0.0]])


def test_pseudo_counts_are_added_to_the_counts():
    records = [[0, 0], [0, 1], [0, 1], [1, 0]]
    fit = fit_tables([2, 2], [(), (0,)], records, pseudo_counts=0.5)
    np.testing.assert_allclose(fit.tables[0], [3.5 / 5, 1.5 / 5])
    np.testing.assert_allclose(fit.tables[1], [[1.5 / 4, 2.5 / 4], [1.5 / 2, 0.5 / 2]])
    own = fit_tables([2, 2], [(), (0,)], records, pseudo_counts=[0.0, [[3.0, 1.0], [0.0, 7.0]]])
    np.testing.assert_allclose(own.tables[0], [0.75, 0.25])
    np.testing.assert_allclose(own.tables[1], [[4 / 7, 3 / 7], [1 / 8, 7 / 8]])


def test_labels_are_equally_likely_where_the_parents_were_never_seen():
    fit = fit_tables([3, 4], [(), (0,)], [[0, 1], [2, 1]])
    np.testing.assert_array_equal(fit.tables[1][1], [0.25] * 4)
    np.testing.assert_array_equal(fit.tables[1][0], [0, 1, 0, 0])
    nothing = fit_tables([3], [()], np.zeros((0, 1), int))
    np.testing.assert_allclose(nothing.tables[0], [1 / 3] * 3)


def test_a_weight_counts_as_that_many_records():
    records, times = RAIN.sample(30, seed=3), np.arange(30) % 4
    weighted = fit_tables(RAIN.cardinality, RAIN.parents, records, times)
    repeated = fit_tables(RAIN.cardinality, RAIN.parents, np.repeat(records, times, axis=0))
    for ours, theirs in zip(weighted.tables, repeated.tables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert RAIN.log_likelihood(records, times) == pytest.approx(
        RAIN.log_likelihood(np.repeat(records, times, axis=0))
    )


def test_a_tree_fits_the_same_whether_directed_or_not():
    records = np.random.default_rng(7).integers(0, 3, size=(300, 4))
    directed = fit_tables([3] * 4, [(), (0,), (0,), (2,)], records)
    undirected = fit_decomposable(CliqueCounts.from_records([3] * 4, [(0, 1), (2, 0), (2, 3)], records))
    np.testing.assert_allclose(
        Enumeration().distribution(directed.to_graph()),
        Enumeration().distribution(undirected.graph),
        atol=1e-14,
    )
    assert directed.log_likelihood(records) == pytest.approx(undirected.log_likelihood)


def test_inference_works_on_the_graph_of_a_network():
    rain_given_wet = [
        RAIN.tables[0][r] * RAIN.tables[1][r, s] * RAIN.tables[2][s, r, 1] for r in range(2) for s in range(3)
    ]
    wet = JunctionTree().marginals(RAIN.to_graph()).node[2][1]
    assert wet == pytest.approx(sum(rain_given_wet))


def test_an_impossible_record_has_no_likelihood():
    assert RAIN.log_likelihood([[0, 0, 0], [0, 2, 1]]) == -np.inf
    assert np.isfinite(RAIN.log_likelihood([[0, 0, 0], [1, 2, 1]]))


@pytest.mark.statistical
def test_samples_have_the_joint_distribution(seed):
    graph = RAIN.to_graph()
    chance = Enumeration().distribution(graph)
    drawn = RAIN.sample(20_000, seed=seed)
    places = np.ravel_multi_index(tuple(drawn.T), graph.cardinality)
    seen = np.bincount(places, minlength=len(chance))
    assert (seen[chance == 0] == 0).all()
    likely = chance > 0
    assert chisquare(seen[likely], 20_000 * chance[likely]).pvalue > FALSE_ALARM


@given(table_networks(), st.integers(0, 2**32 - 1))
def test_samples_depend_on_the_seed_alone_and_are_codes(network, seed):
    drawn = network.sample(20, seed=seed)
    np.testing.assert_array_equal(drawn, network.sample(20, seed=seed))
    assert drawn.shape == (20, len(network.tables))
    assert ((drawn >= 0) & (drawn < network.cardinality)).all()
    assert np.isfinite(network.log_likelihood(drawn))


def test_seeds_of_every_kind_are_taken():
    for make in (lambda: 4, lambda: np.random.default_rng(4), lambda: Stream(4)):
        np.testing.assert_array_equal(RAIN.sample(50, seed=make()), RAIN.sample(50, seed=make()))
    assert RAIN.sample(0).shape == (0, 3)
    assert (RAIN.sample(50, seed=4) != RAIN.sample(50, seed=5)).any()


def test_parents_come_before_their_children():
    parents = [(2, 3), (), (1,), (1, 2), (0,)]
    order = topological_order(parents)
    assert sorted(order) == list(range(5))
    assert all(order.index(p) < order.index(v) for v, given in enumerate(parents) for p in given)


@pytest.mark.parametrize(
    ("parents", "cycle"),
    [([(1,), (2,), (0,), ()], "(2, 1, 0)"), ([(0,)], "(0,)"), ([(1,), (2,), (1,), (0,)], "(2, 1)")],
)
def test_a_circle_of_parents_is_named(parents, cycle):
    with pytest.raises(StructureError, match="in a cycle: drop one of these parents") as refusal:
        fit_tables([2] * len(parents), parents, np.zeros((1, len(parents)), int))
    assert f"variables {cycle} depend on each other" in str(refusal.value)


@pytest.mark.parametrize("given", [(0, 0), (5,), (-1,)])
def test_parents_that_are_repeated_or_unknown_are_refused(given):
    with pytest.raises(
        InvalidArgumentError, match="parents of variable 1 must be different variables from 0 to 1"
    ):
        fit_tables([2, 2], [(), given], [[0, 0]])


def test_parents_for_another_number_of_variables_are_refused():
    with pytest.raises(ShapeError, match=r"2 variables need a list of parents each, .* but 1 were given"):
        fit_tables([2, 2], [()], [[0, 0]])


@pytest.mark.parametrize(
    ("pseudo_counts", "fault", "message"),
    [
        (-0.5, InvalidArgumentError, "zero or more, but those of variable 0 are -0.5"),
        (float("nan"), InvalidArgumentError, "pseudo_counts must be finite"),
        ([1.0], ShapeError, "one array for each of 2 variables, but 1 were given"),
        ([1.0, [1.0, 2.0, 3.0]], ShapeError, r"shape \(3,\), which does not broadcast to that of its table"),
    ],
)
def test_pseudo_counts_that_do_not_fit_are_refused(pseudo_counts, fault, message):
    with pytest.raises(fault, match=message):
        fit_tables([2, 2], [(), (0,)], [[0, 0]], pseudo_counts=pseudo_counts)


@pytest.mark.parametrize(
    ("parents", "tables", "fault", "message"),
    [
        ([()], [], ShapeError, "1 lists of parents and 0 tables"),
        ([()], [0.5], ShapeError, "give it an axis for the labels"),
        ([(), (0,)], [[0.5, 0.5], [0.5, 0.5]], ShapeError, r"require \(2, 'labels'\): one axis per parent"),
        ([(), (0,)], [[0.5, 0.5], np.full((3, 2), 0.5)], ShapeError, r"has shape \(3, 2\)"),
        ([()], [[0.5, 0.6]], InvalidArgumentError, "sum to one over its last axis: divide it by its sums"),
        ([()], [[1.5, -0.5]], InvalidArgumentError, "must hold probabilities"),
        ([()], [[np.nan, 1.0]], InvalidArgumentError, "must hold probabilities"),
        ([(1,), (0,)], [np.eye(2), np.eye(2)], StructureError, "in a cycle"),
    ],
)
def test_tables_that_are_not_conditional_probabilities_are_refused(parents, tables, fault, message):
    with pytest.raises(fault, match=message):
        TableNetwork(parents, tables)


def test_records_outside_the_domains_are_refused():
    with pytest.raises(InvalidArgumentError, match="record 0 gives variable 1 the code 3"):
        RAIN.log_likelihood([[0, 3, 0]])
    with pytest.raises(InvalidArgumentError, match="size must be zero or more, but -1 was given"):
        RAIN.sample(-1)
