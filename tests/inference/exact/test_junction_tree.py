"""Junction trees on graphs too large to enumerate, and the refusal of those too large for the memory."""

import re
import tracemalloc

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, TreewidthError
from factorwise.inference.exact import Enumeration, JunctionTree, elimination_order
from factorwise.inference.exact.passes import plan_passes
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.testing.oracles import grid_edges

RING = [(0, 6, (2, 3)), (1, 12, (3, 4)), (2, 8, (4, 2)), (3, 6, (2, 3)), (4, 6, (3, 2))]


def spin_glass(rows, columns, seed=3):
    """A grid of spins with random fields and couplings, and the arrays it was built from."""
    rng = np.random.default_rng(seed)
    field = rng.uniform(-0.5, 0.5, size=(rows, columns))
    coupling = {edge: rng.uniform(-0.5, 0.5) for edge in grid_edges(rows, columns)}
    factors = [((v,), [-h, h]) for v, h in enumerate(field.ravel())]
    factors += [(edge, [[j, -j], [-j, j]]) for edge, j in coupling.items()]
    return FactorGraph.build([2] * (rows * columns), factors), field, coupling


def transfer_matrices(rows, columns, field, coupling):
    """Probability that each spin is up and log Z, by a sweep over whole rows: another exact method."""
    spins = 2 * ((np.arange(2**columns)[:, None] >> np.arange(columns)) & 1) - 1
    across = [
        [coupling[(r * columns + c, r * columns + c + 1)] for c in range(columns - 1)] for r in range(rows)
    ]
    inside = [spins @ field[r] + (spins[:, 1:] * spins[:, :-1]) @ np.array(across[r]) for r in range(rows)]
    down = [
        (spins * [coupling[(r * columns + c, (r + 1) * columns + c)] for c in range(columns)]) @ spins.T
        for r in range(rows - 1)
    ]
    above, below = [inside[0]], [np.zeros(2**columns)]
    for r in range(rows - 1):
        above.append(np.logaddexp.reduce(above[-1][:, None] + down[r], axis=0) + inside[r + 1])
    for r in reversed(range(rows - 1)):
        below.insert(0, np.logaddexp.reduce(down[r] + inside[r + 1] + below[0], axis=1))
    log_partition = np.logaddexp.reduce(above[-1])
    row = [np.exp(a + b - log_partition) for a, b in zip(above, below, strict=True)]
    return np.array([p @ (spins > 0) for p in row]), log_partition


def test_marginals_of_a_grid_of_64_spins_equal_transfer_matrices():
    graph, field, coupling = spin_glass(8, 8)
    found = JunctionTree().marginals(graph)
    up, log_partition = transfer_matrices(8, 8, field, coupling)
    np.testing.assert_allclose([p[1] for p in found.node], up.ravel(), atol=1e-13)
    assert found.log_partition == pytest.approx(log_partition, rel=1e-13)
    for (scope, _), joint in zip(graph.factors(), found.factor, strict=True):
        for axis, variable in enumerate(scope):
            rest = tuple(other for other in range(len(scope)) if other != axis)
            np.testing.assert_allclose(joint.sum(axis=rest), found.node[variable], atol=1e-13)


def test_the_best_of_a_grid_of_64_spins_is_no_worse_than_any_sample_or_single_flip():
    graph, _, _ = spin_glass(8, 8)
    best = JunctionTree().best(graph)
    assert best.score >= max(graph.score(row) for row in JunctionTree().sample(graph, Stream(2), 50))
    for variable in range(64):
        flipped = best.values.copy()
        flipped[variable] = 1 - flipped[variable]
        assert graph.score(flipped) < best.score


def test_the_ranking_of_a_grid_goes_down_by_settings_within_reach():
    graph, _, _ = spin_glass(5, 5)
    found = JunctionTree().k_best(graph, 6)
    scores = [best.score for best in found]
    assert scores == sorted(scores, reverse=True)
    assert len({tuple(best.values) for best in found}) == 6
    flips = []
    for variable in range(25):
        flipped = found[0].values.copy()
        flipped[variable] = 1 - flipped[variable]
        flips.append(graph.score(flipped))
    assert found[1].score >= max(flips) - 1e-12


@pytest.mark.statistical
def test_sampled_spins_have_the_exact_means(seed):
    graph, field, coupling = spin_glass(6, 6)
    up, _ = transfer_matrices(6, 6, field, coupling)
    drawn = JunctionTree().sample(graph, Stream(seed), 4_000)
    # Five standard errors at 36 spins: a false alarm in fewer than one of 40,000 runs.
    error = 5 * np.sqrt(up * (1 - up) / 4_000)
    assert (np.abs(drawn.mean(axis=0).reshape(6, 6) - up) < error).all()


def complete(count, labels):
    pair = np.zeros((labels, labels))
    return FactorGraph.build([labels] * count, [((v, w), pair) for w in range(count) for v in range(w)])


def test_the_refusal_states_treewidth_table_bytes_and_remedy():
    graph = complete(12, 10)
    with pytest.raises(TreewidthError) as refusal:
        JunctionTree().marginals(graph)
    message = str(refusal.value)
    assert "treewidth 11" in message
    assert f"a table of {10**12} entries" in message
    needed = JunctionTree().plan(graph).needed
    assert needed >= 8 * 4 * 10**12  # the largest table and three to work with
    assert f"needs {needed} bytes" in message
    assert f"memory_limit={2 * 1024**3}" in message
    assert re.search(
        r"Raise memory_limit, condition on some variables, or use an approximate method", message
    )


def test_the_refusal_comes_before_anything_large_is_allocated():
    graph = complete(12, 10)
    tracemalloc.start()
    try:
        for ask in (JunctionTree().marginals, JunctionTree().best, JunctionTree().log_partition):
            with pytest.raises(TreewidthError):
                ask(graph)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_the_memory_limit_is_exact():
    graph = complete(4, 3)
    needed = JunctionTree(memory_limit=1).plan(graph).needed
    assert JunctionTree(memory_limit=needed).log_partition(graph) == pytest.approx(4 * np.log(3))
    with pytest.raises(TreewidthError, match=f"memory_limit={needed - 1}"):
        JunctionTree(memory_limit=needed - 1).log_partition(graph)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_the_peak_memory_stays_within_what_was_announced(share):
    graph, _, _ = spin_glass(12, 12)
    limit = int(share * JunctionTree().plan(graph).needed)
    oracle = JunctionTree(memory_limit=limit)
    plan = oracle.plan(graph)
    assert plan.needed <= limit
    assert (len(plan.borders) > 2) == (share < 1.0)
    tracemalloc.start()
    try:
        oracle.marginals(graph, plan=plan)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * plan.needed + 1_000_000
    finally:
        tracemalloc.stop()


def test_answers_do_not_depend_on_the_segments_that_the_memory_asks_for():
    graph, _, _ = spin_glass(6, 6)
    whole, cut = JunctionTree(), JunctionTree(memory_limit=JunctionTree(memory_limit=1).plan(graph).needed)
    assert len(cut.plan(graph).borders) > 3
    for ours, theirs in zip(cut.marginals(graph).factor, whole.marginals(graph).factor, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-14)
    assert cut.log_partition(graph) == pytest.approx(whole.log_partition(graph), rel=1e-14)
    np.testing.assert_array_equal(cut.best(graph).values, whole.best(graph).values)
    np.testing.assert_array_equal(
        [best.values for best in cut.k_best(graph, 4)], [best.values for best in whole.k_best(graph, 4)]
    )
    drawn = [oracle.sample(graph, Stream(5), 20) for oracle in (cut, whole)]
    np.testing.assert_array_equal(*drawn)


def test_where_tables_are_large_several_orders_are_tried():
    graph, _, _ = spin_glass(20, 20)
    assert elimination_order(graph).treewidth > 25
    assert JunctionTree().treewidth(graph) <= 21


@pytest.mark.parametrize("weighted", [False, True])
def test_priorities_and_weights_change_the_order_and_not_the_answer(weighted):
    graph = FactorGraph.build(
        [2, 3, 4, 2, 3],
        [((v, (v + 1) % 5), np.arange(1.0, 1 + size).reshape(shape)) for v, size, shape in RING],
    )
    order = elimination_order(graph, priority=[4, 3, 2, 1, 0], weighted=weighted)
    plan = plan_passes(order, graph.cardinality, 10**6)
    found, wanted = JunctionTree().marginals(graph, plan=plan), Enumeration().marginals(graph)
    assert found.log_partition == pytest.approx(wanted.log_partition, rel=1e-14)
    for ours, theirs in zip(found.factor, wanted.factor, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-14)


def test_a_clique_of_many_single_label_variables_costs_nothing():
    sizes = [1] * 80 + [2]
    edges = [((v, w), np.zeros((sizes[v], sizes[w]))) for w in range(81) for v in range(max(0, w - 40), w)]
    graph = FactorGraph.build(sizes, [*edges, ((80,), [0.0, np.log(3.0)])])
    assert JunctionTree().treewidth(graph) == 0
    np.testing.assert_allclose(JunctionTree().marginals(graph).node[80], [0.25, 0.75])


def test_a_memory_limit_of_nothing_is_refused():
    with pytest.raises(
        InvalidArgumentError, match="memory_limit must be greater than zero, but -1 was given"
    ):
        JunctionTree(memory_limit=-1)
