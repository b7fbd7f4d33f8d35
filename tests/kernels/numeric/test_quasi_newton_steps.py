import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.kernels.numeric.quasi_newton_steps import inverse_curvature_times
from reference import quasi_newton_steps as reference


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(0, 5))
def test_products_equal_those_of_the_explicit_matrix(seed, size, pairs):
    random = np.random.default_rng(seed)
    root = random.normal(size=(size, size))
    curvature = root @ root.T + 0.1 * np.eye(size)
    steps = random.normal(size=(6, size))
    changes = steps @ curvature
    changes[0] *= -1.0  # the gradient falls along it: passed over
    order = random.permutation(6)[:pairs]
    free = random.random(size) < 0.7
    gradient, diagonal = random.normal(size=size), random.uniform(0.1, 2.0, size)
    results = []
    for function in (inverse_curvature_times, reference.inverse_curvature_times):
        found = gradient.copy()
        function(steps, changes, order, diagonal, free, np.empty((6, 2)), found)
        results.append(found)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-7, atol=1e-9)
    assert (results[0][~free] == 0.0).all()


def test_as_many_conjugate_steps_as_entries_give_the_inverse():
    steps, curvature = np.eye(3), np.diag([1.0, 4.0, 9.0])
    found = np.array([1.0, 1.0, 1.0])
    everything = np.ones(3, dtype=bool)
    inverse_curvature_times(
        steps, steps @ curvature, np.array([2, 1, 0]), np.ones(3), everything, np.empty((3, 2)), found
    )
    assert found == pytest.approx([1.0, 1 / 4, 1 / 9])
