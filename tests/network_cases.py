"""Random cliques with counts, and the brute force that the tests of network learning share."""

import numpy as np
from hypothesis import strategies as st

from factorwise.inference.exact import Enumeration
from factorwise.learning.networks.counts import CliqueCounts
from factorwise.model.grounding import FactorGraph


def settings_of(cardinality):
    """Every setting of the variables, one per row."""
    return Enumeration().settings(FactorGraph.build(cardinality, []))


def positive_counts(cardinality, cliques, seed):
    """Counts of data in which every setting occurs, and the share of each setting."""
    records = settings_of(cardinality)
    weights = np.random.default_rng(seed).gamma(1.0, size=len(records)) + 0.01
    return CliqueCounts.from_records(cardinality, cliques, records, weights), weights / weights.sum()


@st.composite
def any_cliques(draw):
    """A few variables and cliques of up to three of them; most of these networks have loops."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=3, max_size=5))
    clique = st.permutations(range(len(sizes))).flatmap(
        lambda order: st.integers(1, 3).map(lambda count: tuple(order[:count]))
    )
    return sizes, draw(st.lists(clique, min_size=2, max_size=7))


@st.composite
def decomposable_cliques(draw):
    """Cliques each of which shares with one earlier all that it shares with any, then shuffled."""
    cliques, variables = [(0,)], 1
    for _ in range(draw(st.integers(1, 4))):
        earlier = draw(st.sampled_from(cliques))
        shared = draw(st.permutations(earlier))[: draw(st.integers(0, min(2, len(earlier))))]
        fresh = range(variables, variables + draw(st.integers(1, 2)))
        cliques.append(tuple(draw(st.permutations([*shared, *fresh]))))
        variables = fresh.stop
    sizes = draw(st.lists(st.integers(1, 3), min_size=variables, max_size=variables))
    return sizes, draw(st.permutations(cliques))


def clique_marginals(graph):
    """Marginals of all factors by brute force."""
    return Enumeration().marginals(graph).factor


def assert_same_tables(found, wanted, tolerance):
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
