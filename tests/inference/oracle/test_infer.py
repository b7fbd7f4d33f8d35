"""Inference that chooses its method: each against enumeration, and never a setting of zero."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factorwise as fw
from factorwise.errors import ImpossibleError, InvalidArgumentError
from factorwise.inference.exact import Enumeration, JunctionTree, elimination_order
from factorwise.inference.oracle import choice, local_search
from factorwise.inference.oracle.choice import _Choice
from factorwise.inference.oracle.cutsets import condition_on_cutset, plan_with_cutset
from factorwise.inference.oracle.local_search import search_best, soften
from factorwise.inference.oracle.mini_buckets import mini_bucket_bound, mini_bucket_setting
from factorwise.inference.oracle.reduction import reduce_labels
from factorwise.model.grounding import FactorGraph
from message_cases import graphs, grid

MEMORY = 1 << 20


def assert_same_marginals(found, wanted):
    assert found.log_partition == pytest.approx(wanted.log_partition, abs=1e-10)
    assert found.entropy == pytest.approx(wanted.entropy, abs=1e-9)
    for ours, theirs in zip((*found.node, *found.factor), (*wanted.node, *wanted.factor), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def coloring(side, colors=3):
    """Colors of a torus, different for neighbors, with preferences; many settings have probability zero."""
    rng = np.random.default_rng(4)
    differ = np.where(np.eye(colors, dtype=bool), -np.inf, 0.0)
    factors = [((v,), rng.normal(size=colors)) for v in range(side * side)]
    for v in range(side * side):
        row, column = divmod(v, side)
        others = ((row + 1) % side * side + column, row * side + (column + 1) % side)
        factors += [((v, other), differ) for other in others]
    return FactorGraph.build([colors] * side**2, factors)


@given(graphs(hard=True))
@settings(max_examples=40, deadline=None)
def test_what_fits_is_exact(graph):
    answer = fw.infer(graph)
    wanted = Enumeration().marginals(graph)
    assert_same_marginals(answer.marginals, wanted)
    assert answer.best.score == pytest.approx(Enumeration().best(graph).score, abs=1e-12)
    assert answer.best.score == graph.score(answer.best.values)
    assert answer.exact
    assert answer.score_bound == pytest.approx(answer.best.score)


@given(graphs(hard=True), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_labels_go_only_if_they_are_impossible(graph, seed):
    reduced = reduce_labels(graph)
    wanted = Enumeration().marginals(graph)
    for kept, probabilities in zip(reduced.kept, wanted.node, strict=True):
        assert set(np.flatnonzero(probabilities > 0)) <= set(kept)
    assert_same_marginals(reduced.restore_marginals(Enumeration().marginals(reduced.graph)), wanted)
    best = reduced.restore_values(Enumeration().best(reduced.graph).values)
    assert graph.score(best) == pytest.approx(Enumeration().best(graph).score, abs=1e-12)


@given(graphs(hard=True, variables=(3, 6), factors=(3, 9)))
@settings(max_examples=40, deadline=None)
def test_a_mixture_over_a_cutset_is_exact(graph):
    cutset, plan = plan_with_cutset(elimination_order(graph), graph, 3, MEMORY)
    assert plan.order.largest <= 3
    found = condition_on_cutset(graph, cutset, plan, MEMORY)
    assert_same_marginals(found, Enumeration().marginals(graph))


@given(graphs(hard=True, variables=(3, 6), factors=(3, 9)), st.sampled_from([1, 4, 9, 10_000]))
@settings(max_examples=40, deadline=None)
def test_mini_buckets_bound_from_above_and_are_exact_where_all_fits(graph, largest):
    order = elimination_order(graph)
    exact = Enumeration()
    for maximize, wanted in ((True, exact.best(graph).score), (False, exact.log_partition(graph))):
        bound = mini_bucket_bound(graph, order, largest, maximize=maximize)
        assert bound >= wanted - 1e-10
        if largest == 10_000:
            assert bound == pytest.approx(wanted, abs=1e-10)
    reached = graph.score(mini_bucket_setting(graph, order, largest))
    assert reached <= exact.best(graph).score + 1e-10
    if largest == 10_000:
        assert reached == pytest.approx(exact.best(graph).score, abs=1e-10)


@given(graphs(hard=True, variables=(3, 6), factors=(3, 9)), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_the_search_never_leaves_a_possible_setting_for_a_worse_one(graph, seed):
    start = np.random.default_rng(seed).integers(0, graph.cardinality)
    values, _ = search_best(
        graph, [start], largest=4, memory=MEMORY, deadline=np.inf, bound=np.inf, seed=seed
    )
    assert graph.score(values) >= graph.score(start)
    possible = Enumeration().best(graph).values
    values, _ = search_best(
        graph, [possible, start], largest=4, memory=MEMORY, deadline=np.inf, bound=np.inf, seed=seed
    )
    assert graph.score(values) == pytest.approx(Enumeration().best(graph).score, abs=1e-9)


def test_a_penalty_outweighs_everything_else():
    graph = coloring(3)
    soft = soften(graph)
    settings_of = Enumeration().settings(FactorGraph.build([3] * 4, []))
    rng = np.random.default_rng(0)
    possible = Enumeration().best(graph).score
    for row in settings_of[:20]:
        values = np.concatenate([row, rng.integers(0, 3, 5)])
        if graph.score(values) == -np.inf:
            assert soft.score(values) < possible
        else:
            assert soft.score(values) == graph.score(values)


@pytest.mark.parametrize(
    ("graph", "memory"), [(grid(10, 2.0), 150_000), (coloring(6), 20_000)], ids=["spin glass", "coloring"]
)
def test_what_does_not_fit_is_bounded_and_its_best_setting_possible(graph, memory, monkeypatch):
    for name in ("SUM_SECONDS", "MAX_SECONDS"):
        monkeypatch.setattr(choice, name, 1e6)  # no exact method fits the time, however slow the machine
    monkeypatch.setattr(local_search, "RESTARTS", 2)
    wanted = JunctionTree().marginals(graph)
    best = JunctionTree().best(graph)
    answer = fw.infer(graph, memory=memory, budget=200)
    low, high = answer.log_partition_bounds
    assert low <= wanted.log_partition <= high
    assert low < high
    assert not answer.exact
    assert answer.best.score == graph.score(answer.best.values)
    assert best.score >= answer.best.score > best.score - 0.001 * abs(best.score)
    assert answer.score_bound >= best.score - 1e-9
    text = str(answer)
    assert "by belief propagation" in text
    assert re.search(r"best score .* by max-product .* (optimal|below the optimum)", text)


def test_a_cutset_is_taken_where_it_fits_and_the_whole_does_not():
    graph = grid(5, 1.0)
    chosen = _Choice(graph, np.inf, 2_000, 0)
    assert chosen.plan.needed > 2_000
    found, method = chosen._exact_marginals()
    assert "cutset" in method
    assert_same_marginals(found, JunctionTree().marginals(graph))


def test_parts_of_the_answer_are_left_out_if_not_asked_for():
    graph = grid(3, 1.0)
    assert fw.infer(graph, query="best").marginals is None
    assert fw.infer(graph, query="marginals").best is None
    assert fw.infer(graph, query="marginals").log_partition == pytest.approx(
        Enumeration().log_partition(graph)
    )
    with pytest.raises(InvalidArgumentError, match="query must be one of 'all', 'marginals', 'best'"):
        fw.infer(graph, query="mar")
    with pytest.raises(InvalidArgumentError, match="budget must be greater than zero"):
        fw.infer(graph, budget=0)


def test_a_contradiction_is_reported():
    never = [[0.0, -np.inf], [-np.inf, 0.0]]
    other = [[-np.inf, 0.0], [0.0, -np.inf]]
    graph = FactorGraph.build([2, 2, 2], [((0, 1), never), ((1, 2), never), ((0, 2), other)])
    with pytest.raises(ImpossibleError):
        fw.infer(graph)
    with pytest.raises(ImpossibleError, match="is ruled out by the hard zeros"):
        fw.infer(FactorGraph.build([2, 2], [((0,), [0.0, -np.inf]), ((1,), [-np.inf, 0.0]), ((0, 1), never)]))
