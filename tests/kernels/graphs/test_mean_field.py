"""Mean-field kernels against the twins written from the definition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.inference.message_passing.wiring import wire
from factorwise.kernels.graphs.mean_field import expected_tables, product_beliefs, run_mean_field
from message_cases import graphs
from reference import mean_field as plain

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def start(graph, seed, hard):
    """Beliefs per variable: at label 0, which is possible, or random with some labels without mass."""
    if hard:
        return [np.eye(int(size))[0] for size in graph.cardinality]
    rng = np.random.default_rng(seed)
    beliefs = [rng.dirichlet(np.ones(int(size))) for size in graph.cardinality]
    return [np.where(belief < 0.1, 0.0, belief) for belief in beliefs]


@settings(max_examples=50)
@given(graphs(hard=True), st.integers(0, 2**32 - 1))
def test_mean_scores_equal_the_definition(graph, seed):
    wired, beliefs = wire(graph), start(graph, seed, hard=False)
    digits = wired.workspace().digits
    for variable, size in enumerate(graph.cardinality):
        scores = np.zeros(size)
        expected_tables(wired.wiring, np.concatenate(beliefs), variable, digits, scores)
        np.testing.assert_allclose(scores, plain.expected_tables(graph, beliefs, variable), **CLOSE)


@settings(max_examples=50)
@given(st.data(), st.integers(1, 3), st.integers(0, 2**32 - 1), st.booleans())
def test_sweeps_equal_the_definition(data, sweeps, seed, hard):
    graph = data.draw(graphs(hard=hard))
    wired, beliefs = wire(graph), start(graph, seed, hard)
    found, trace = np.concatenate(beliefs), np.zeros(sweeps)
    digits, scores = wired.workspace().digits, np.zeros(graph.cardinality.max())
    assert run_mean_field(wired.wiring, found, digits, scores, -1.0, trace) == sweeps
    expected, changes = plain.run_mean_field(graph, beliefs, sweeps)
    np.testing.assert_allclose(found, np.concatenate(expected), **CLOSE)
    np.testing.assert_allclose(trace, changes, **CLOSE)


@given(graphs(), st.integers(0, 2**32 - 1))
def test_products_of_beliefs_equal_the_definition(graph, seed):
    wired, beliefs = wire(graph), start(graph, seed, hard=False)
    joint = np.zeros(wired.entry_start[-1])
    product_beliefs(wired.wiring, np.concatenate(beliefs), wired.entry_start, wired.workspace().digits, joint)
    expected = plain.product_beliefs(graph, beliefs)
    np.testing.assert_allclose(joint, np.concatenate([np.zeros(0), *map(np.ravel, expected)]), **CLOSE)
