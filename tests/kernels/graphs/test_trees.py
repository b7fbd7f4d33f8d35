"""Tree kernels against sums over all settings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import StructureError
from factorwise.inference.exact.tree import RootedForest
from factorwise.kernels.graphs import trees
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from reference import trees as reference

SOFT = [-1.5, -0.5, 0.0, 0.3, 1.0, 2.5]
HARD = [*SOFT, -np.inf]
HUGE = [*HARD, -800.0, 800.0]
ROOMY = 1e-60


@st.composite
def forests(draw, scores):
    """A random forest: each new factor hangs new variables from at most one old one."""
    sizes = [draw(st.integers(1, 3))]
    scopes = []
    for _ in range(draw(st.integers(0, 4))):
        fresh = draw(st.integers(0, 2 if len(sizes) < 4 else 0))
        old = [draw(st.integers(0, len(sizes) - 1))] if fresh < 2 or draw(st.booleans()) else []
        scope = old + list(range(len(sizes), len(sizes) + fresh))
        sizes += draw(st.lists(st.integers(1, 3), min_size=fresh, max_size=fresh))
        scopes.append(draw(st.permutations(scope)))
    factors = []
    for scope in scopes:
        shape = [sizes[v] for v in scope]
        count = int(np.prod(shape, dtype=int))
        factors.append(
            (
                scope,
                np.reshape(draw(st.lists(st.sampled_from(scores), min_size=count, max_size=count)), shape),
            )
        )
    return FactorGraph.build(sizes, factors)


def plain(graph):
    """Factors as the twin wants them."""
    sizes = graph.cardinality.tolist()
    return [
        (scope, dict(zip(reference.settings(scope, sizes), table.ravel(), strict=True)))
        for scope, table in graph.factors()
    ]


def plain_cliques(tree):
    """The merged cliques of a rooted forest as the twin wants them, and their parent variables."""
    forest, sizes = tree.forest, tree.graph.cardinality.tolist()
    cliques = []
    for clique in range(len(forest.order)):
        scope = tuple(forest.scope[forest.scope_start[clique] : forest.scope_start[clique + 1]].tolist())
        entries = tree.table[forest.table_start[clique] : forest.table_start[clique + 1]]
        cliques.append((scope, dict(zip(reference.settings(scope, sizes), entries, strict=True))))
    return cliques, forest.scope[forest.parent].tolist()


def by_clique(tree, values):
    """Pieces of an array over all entries."""
    return np.split(values, tree.forest.table_start[1:-1]) if len(tree.forest.order) else []


def by_variable(tree, values):
    return np.split(values, tree.forest.node_start[1:-1])


def log_pass(tree, maximize):
    up, message = np.zeros(tree.forest.node_start[-1]), np.empty(tree.forest.message_start[-1])
    trees.inward_log(tree.forest, tree.table, maximize, tree.labels, up, message)
    return up, message


def is_possible(tree):
    cliques, _ = plain_cliques(tree)
    peaks, _ = reference.outward_log(tree.graph.cardinality.tolist(), cliques, True)
    return max(peaks[0]) > -np.inf


def test_fill_uniforms_draws_the_numbers_of_the_stream():
    fast, slow, out = Stream(4), Stream(4), np.empty(6)
    trees.fill_uniforms(fast.state, out)
    assert out.tolist() == reference.fill_uniforms(slow, 6)
    np.testing.assert_array_equal(fast.state, slow.state)


@given(st.lists(st.lists(st.integers(0, 4), max_size=4, unique=True), max_size=8))
def test_hosts_equal_the_first_cover_of_the_first_cover(scopes):
    graph = FactorGraph.build([2] * 5, [(scope, np.zeros([2] * len(scope))) for scope in scopes])
    host, mark = np.empty(len(scopes), dtype=np.int64), np.full(5, -1, dtype=np.int64)
    trees.find_hosts(graph.scope_start, graph.scope, *graph.touching, mark, host)
    assert host.tolist() == reference.find_hosts([tuple(scope) for scope in scopes])


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True), max_size=6))
def test_orientation_equals_a_plain_walk_and_finds_every_loop(scopes):
    graph = FactorGraph.build([2] * 6, [(scope, np.zeros([2] * len(scope))) for scope in scopes])
    queue, roots = np.empty((2, 6), dtype=np.int64)
    above, parent = np.full(6, -2, dtype=np.int64), np.full(len(scopes), -2, dtype=np.int64)
    order = np.empty(len(scopes), dtype=np.int64)
    count, edge, clique = trees.orient(
        graph.scope_start, graph.scope, *graph.touching, queue, above, parent, order, roots
    )
    wanted = reference.orient([tuple(scope) for scope in scopes], 6)
    if wanted is None:
        assert graph.scope[edge] in scopes[clique]
    else:
        found = roots[:count].tolist(), order.tolist(), graph.scope[parent].tolist()
        assert (edge, clique) == (-1, -1)
        assert found == wanted


@given(forests(HUGE))
def test_merged_tables_equal_the_sum_of_what_each_host_covers(graph):
    tree = RootedForest(graph)
    factors, sizes = plain(graph), graph.cardinality.tolist()
    wanted = reference.merge_tables(factors, reference.find_hosts([scope for scope, _ in factors]), sizes)
    for piece, table in zip(by_clique(tree, tree.table), wanted.values(), strict=True):
        np.testing.assert_allclose(piece, list(table.values()), atol=1e-10)


@given(forests(SOFT))
def test_shared_joints_equal_sums_over_the_rest_of_the_clique(graph):
    tree = RootedForest(graph)
    joint = np.random.default_rng(1).random(len(tree.table))
    factors, sizes = plain(graph), graph.cardinality.tolist()
    start = np.cumsum([0, *(len(table) for _, table in factors)], dtype=np.int64)
    out = np.zeros(start[-1])
    trees.share_joints(
        tree.forest, tree.clique_of, graph.scope_start, tree.place, start, joint, tree.labels, out
    )
    cliques, _ = plain_cliques(tree)
    for factor, clique in enumerate(tree.clique_of):
        scope, _ = cliques[clique]
        table = dict(zip(reference.settings(scope, sizes), by_clique(tree, joint)[clique], strict=True))
        (wanted,) = reference.share_joints([factors[factor]], table, scope, sizes)
        np.testing.assert_allclose(out[start[factor] : start[factor + 1]], list(wanted.values()), rtol=1e-12)


@pytest.mark.parametrize("maximize", [False, True])
@given(forests(HUGE))
def test_the_inward_log_pass_equals_sums_and_maxima_over_branches(maximize, graph):
    tree = RootedForest(graph)
    _, message = log_pass(tree, maximize)
    cliques, parent = plain_cliques(tree)
    wanted = reference.inward_log(graph.cardinality.tolist(), cliques, parent, maximize)
    flat = [value for row in wanted for value in row]
    np.testing.assert_allclose(message, flat, rtol=1e-12, atol=1e-10)


@given(forests(HARD))
def test_the_scaled_passes_equal_sums_over_all_settings(graph):
    tree = RootedForest(graph)
    if not is_possible(tree):
        return
    forest, sizes = tree.forest, graph.cardinality.tolist()
    weight = np.concatenate([np.zeros(0), *(np.exp(t - t.max()) for t in by_clique(tree, tree.table))])
    up, message = np.empty(forest.node_start[-1]), np.empty(forest.message_start[-1])
    scale = np.empty(len(forest.order))
    status = trees.inward_scaled(forest, weight, ROOMY, tree.labels, up, message, scale)
    assert status == trees.DONE
    cliques, parent = plain_cliques(tree)
    for found, wanted in zip(
        by_variable(tree, up), reference.inward_scaled(sizes, cliques, parent), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    node, joint = np.zeros_like(up), np.empty_like(tree.table)
    for root in forest.roots:
        own = slice(forest.node_start[root], forest.node_start[root + 1])
        node[own] = up[own] / up[own].sum()
    trees.outward_scaled(forest, weight, tree.labels, up, message, node, joint)
    wanted_node, wanted_joint = reference.outward_scaled(sizes, cliques)
    np.testing.assert_allclose(node, np.concatenate(wanted_node), atol=1e-13)
    for found, table in zip(by_clique(tree, joint), wanted_joint, strict=True):
        np.testing.assert_allclose(found, list(table.values()), atol=1e-13)


@pytest.mark.parametrize("maximize", [False, True])
@given(forests(HUGE))
def test_the_outward_log_pass_equals_sums_and_maxima_over_all_settings(maximize, graph):
    tree = RootedForest(graph)
    if not is_possible(tree):
        return
    forest, sizes = tree.forest, graph.cardinality.tolist()
    up, message = log_pass(tree, maximize)
    node, joint = np.full_like(up, -np.inf), np.empty_like(tree.table)
    roots = [slice(forest.node_start[root], forest.node_start[root + 1]) for root in forest.roots]
    total = sum(up[root].max() for root in roots)
    for root in roots:
        rest = total - up[root].max() if maximize else -np.logaddexp.reduce(up[root])
        node[root] = up[root] + rest
    trees.outward_log(forest, tree.table, maximize, tree.labels, up, message, node, joint)
    wanted_node, wanted_joint = reference.outward_log(sizes, plain_cliques(tree)[0], maximize)
    np.testing.assert_allclose(node, np.concatenate(wanted_node), rtol=1e-12, atol=1e-9)
    if not maximize:
        for found, table in zip(by_clique(tree, joint), wanted_joint, strict=True):
            np.testing.assert_allclose(found, list(table.values()), rtol=1e-12, atol=1e-9)


@given(forests(HUGE))
def test_decoding_equals_the_best_of_all_settings(graph):
    tree = RootedForest(graph)
    if not is_possible(tree):
        return
    up, _ = log_pass(tree, True)
    values = np.zeros(graph.n_variables, dtype=np.int64)
    for root in tree.forest.roots:
        values[root] = by_variable(tree, up)[root].argmax()
    trees.decode(tree.forest, tree.table, tree.labels, up, values)
    wanted = reference.decode(graph.cardinality.tolist(), plain_cliques(tree)[0])
    assert graph.score(values) == pytest.approx(graph.score(wanted), abs=1e-9)


@given(forests(HARD), st.integers(0, 1_000))
def test_sampling_draws_what_the_plain_twin_draws(graph, seed):
    tree = RootedForest(graph)
    if not is_possible(tree):
        return
    forest, sizes = tree.forest, graph.cardinality.tolist()
    up, message = log_pass(tree, False)
    values = np.zeros((4, graph.n_variables), dtype=np.int64)
    for root in forest.roots:
        values[:, root] = np.flatnonzero(by_variable(tree, up)[root] > -np.inf)[-1]
    roots = [{int(root): int(row[root]) for root in forest.roots} for row in values]
    fast, slow = Stream(seed), Stream(seed)
    trees.sample(forest, tree.table, fast.state, tree.labels, up, message, values)
    cliques, parent = plain_cliques(tree)
    wanted = reference.sample(sizes, cliques, forest.order.tolist(), parent, roots, slow)
    assert [tuple(row) for row in values] == wanted
    np.testing.assert_array_equal(fast.state, slow.state)


def test_the_scaled_pass_says_when_a_number_becomes_too_small_and_when_nothing_is_left():
    copy = np.where(np.eye(2) > 0, 0.0, -np.inf)
    lean = [0.0, -200.0]
    tree = RootedForest(FactorGraph.build([2] * 3, [((0, 1), copy + lean), ((1, 2), copy + lean)]))
    up, message, scale = np.empty(6), np.empty(tree.forest.message_start[-1]), np.empty(2)
    weight = np.exp(tree.table)
    ran = trees.inward_scaled(tree.forest, weight, 1e-100, tree.labels, up, message, scale)
    assert ran == trees.UNDERFLOW
    ran = trees.inward_scaled(tree.forest, weight * 0.0, 1e-100, tree.labels, up, message, scale)
    assert ran == trees.IMPOSSIBLE


def test_a_loop_cannot_be_rooted():
    graph = FactorGraph.build([2] * 3, [((v, (v + 1) % 3), np.zeros((2, 2))) for v in range(3)])
    with pytest.raises(StructureError, match="closes the loop"):
        RootedForest(graph)
