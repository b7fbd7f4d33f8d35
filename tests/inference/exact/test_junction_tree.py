"""Junction trees on graphs too large to enumerate, and the refusal of those too large for the memory."""

import re
import tracemalloc

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, TreewidthError
from factorwise.inference.exact import JunctionTree, elimination_order
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.testing.oracles import grid_edges


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
    entries = sum(10**size for size in range(1, 13))
    assert f"needs {8 * (2 * entries + 2 * 10**12)} bytes" in message
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
    entries = 3 + 9 + 27 + 81
    needed = 8 * (2 * entries + 2 * 81)
    assert JunctionTree(memory_limit=needed).log_partition(graph) == pytest.approx(4 * np.log(3))
    with pytest.raises(TreewidthError, match=f"memory_limit={needed - 1}"):
        JunctionTree(memory_limit=needed - 1).log_partition(graph)


def test_the_peak_memory_stays_within_what_was_announced():
    graph, _, _ = spin_glass(12, 12)
    order = elimination_order(graph)
    announced = 8 * (2 * sum(order.entries) + 2 * order.largest)
    tracemalloc.start()
    try:
        JunctionTree().marginals(graph)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * announced + 1_000_000
    finally:
        tracemalloc.stop()


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
