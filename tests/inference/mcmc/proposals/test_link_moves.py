"""Gibbs steps, splits and merges along links leave the distribution invariant, and run compiled as
interpreted.
"""

from __future__ import annotations

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.link_moves import LinkedGibbs, LinkedJumps
from factorwise.inference.mcmc.walk import Walk
from factorwise.rng import Stream
from factorwise.world.partition import Partition
from link_cases import CASES, allowed_worlds, links_and_table, links_of, model_of, target, transition_matrix

TEMPERATURES = (1.0, 0.7, 2.0)


@pytest.mark.parametrize("case", CASES)
def test_a_strict_gibbs_step_of_each_item_leaves_the_distribution_invariant(case):
    model = model_of(CASES[case]())
    worlds, scores = allowed_worlds(model)
    for item in range(5):
        kernel = LinkedGibbs(model, model.templates[0].graph, items=np.array([item]))
        for temperature in TEMPERATURES:
            wanted = target(scores, temperature)
            matrix = transition_matrix(kernel, worlds, temperature)
            np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
            flow = wanted[:, None] * matrix
            np.testing.assert_allclose(flow, flow.T, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_strict_splits_and_merges_are_in_detailed_balance(case):
    model = model_of(CASES[case]())
    worlds, scores = allowed_worlds(model)
    kernel = Metropolis(model, LinkedJumps(model.templates[0].graph))
    for temperature in TEMPERATURES:
        wanted = target(scores, temperature)
        matrix = transition_matrix(kernel, worlds, temperature)
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
        flow = wanted[:, None] * matrix
        np.testing.assert_allclose(flow, flow.T, atol=1e-12)
        assert np.trace(matrix) < len(worlds) - 1


def test_moves_under_tables_of_pairs_are_in_detailed_balance():
    model = model_of(links_and_table())
    worlds, scores = allowed_worlds(model, 4)
    links = model.templates[0].graph
    for kernel in (LinkedGibbs(model, links, items=np.array([1])), Metropolis(model, LinkedJumps(links))):
        for temperature in TEMPERATURES:
            flow = target(scores, temperature)[:, None] * transition_matrix(kernel, worlds, temperature)
            np.testing.assert_allclose(flow, flow.T, atol=1e-12)
            assert np.trace(flow) < 1.0


def test_large_unions_are_left_out_alike_in_both_directions(monkeypatch):
    monkeypatch.setattr("factorwise.kernels.clusterings.link_moves.LARGE", 2)
    model = model_of(CASES["complete"]())
    worlds, scores = allowed_worlds(model)
    matrix = transition_matrix(Metropolis(model, LinkedJumps(model.templates[0].graph)), worlds, 1.0)
    flow = target(scores, 1.0)[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)


def test_a_search_is_not_strict():
    """An item without a link into its cluster leaves it: the matrix shows that the test can fail."""
    model = model_of(CASES["sparse"]())
    worlds, scores = allowed_worlds(model)
    wanted = target(scores, 1.0)
    kernel = LinkedGibbs(model, model.templates[0].graph, strict=False, items=np.array([4]))
    matrix = transition_matrix(kernel, worlds, 1.0)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(wanted @ matrix - wanted).max() > 1e-3


def _random_model(n, seed, *, counts, constrained, functions):
    from factorwise.model.clusterings.link_templates import CannotLinkTemplate, OnePerSourceTemplate
    from factorwise.model.templates import ClusterTemplate
    from factorwise.variables.fields import Fields
    from link_cases import crowded

    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.3]
    templates = [links_of(pairs, n, counts=rng.integers(1, 4, n) if counts else None, seed=seed)]
    if constrained:
        sources = np.where(rng.random(n) < 0.4, 1 << rng.integers(0, 5, n), 0)
        templates += [OnePerSourceTemplate("sources", sources), CannotLinkTemplate("cannot", n, [(0, n - 1)])]
    if functions:
        templates.append(
            ClusterTemplate("clusters", Fields(k=rng.integers(0, 3, n)), crowded, ["big", "even"])
        )
    return model_of(templates, seed)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("functions", [False, True])
def test_compiled_walks_are_the_interpreted_ones_and_scores_stay_true(seed, strict, functions):
    n = 24
    model = _random_model(n, seed, counts=seed != 1, constrained=seed != 0, functions=functions)
    graph = model.templates[0].graph
    for kernel, steps in (
        (LinkedGibbs(model, graph, strict), 3 * n),
        (Metropolis(model, LinkedJumps(graph, strict)), 150),
    ):
        start, stream = Partition.singletons(n), Stream(seed, 5)
        compiled = Walk(kernel, start)
        twin = stream.copy()
        plain = Walk(kernel, start, interpreted=twin)
        for _ in range(2):
            compiled.advance(stream, 1.3, steps)
            plain.parts.advance(steps, 1.3)
            assert compiled.view.dense_labels().tolist() == plain.view.dense_labels().tolist()
            assert stream.state.tolist() == twin.state.tolist()
        assert compiled.score == pytest.approx(model.score(compiled.view), abs=1e-9)
        assert compiled.view.n_clusters < n


def test_a_search_goes_uphill_at_low_temperature():
    model = _random_model(30, 4, counts=False, constrained=True, functions=False)
    graph = model.templates[0].graph
    walk = Walk(Metropolis(model, LinkedJumps(graph, strict=False)), Partition.singletons(30))
    before = walk.score
    walk.advance(Stream(0), 0.01, 500)
    assert walk.score > before
    assert walk.score == pytest.approx(model.score(walk.view), abs=1e-9)


def test_misuse_is_refused():
    model = model_of(CASES["sparse"]())
    graph = model.templates[0].graph
    with pytest.raises(ShapeError, match="between 5 items"):
        Walk(LinkedGibbs(model, graph), Partition.singletons(6))
    with pytest.raises(InvalidArgumentError, match="n_types=1"):
        Walk(Metropolis(model, LinkedJumps(graph)), Partition.singletons(5, n_types=2))
