"""Connected components against joining sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.graphs.components import component_numbers
from reference import components as reference

edges = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20)


@given(edges)
def test_components_are_those_of_the_joined_sets_in_the_order_of_their_smallest_nodes(pairs):
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    found = component_numbers(12, ends[:, 0], ends[:, 1])
    assert found.tolist() == reference.number_roots(reference.join_ends(12, pairs))


def test_no_nodes_have_no_components():
    assert len(component_numbers(0, np.zeros(0, np.int32), np.zeros(0, np.int32))) == 0
