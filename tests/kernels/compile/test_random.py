"""The stream in compiled code: bit for bit the plain one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.compile.random import random_below, random_bits, random_uniform
from factorwise.rng import Stream


@given(st.integers(0, 2**128), st.lists(st.integers(0, 2**64 - 1), max_size=2))
def test_compiled_bits_equal_plain_ones(seed, keys):
    plain, fast = Stream(seed, *keys), Stream(seed, *keys)
    for _ in range(10):
        assert int(random_bits(fast.state)) == plain.bits()
        np.testing.assert_array_equal(fast.state, plain.state)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(1, 2**40))
def test_compiled_numbers_equal_plain_ones_to_the_last_bit(low, high, bound):
    plain, fast = Stream(0), Stream(0)
    plain.state[:] = fast.state[:] = low, high
    for _ in range(5):
        assert random_uniform(fast.state) == plain.uniform()
        drawn = random_below(fast.state, bound)
        assert drawn == plain.below(bound)
        assert 0 <= drawn < bound
    np.testing.assert_array_equal(fast.state, plain.state)


def test_a_long_run_stays_in_step():
    plain, fast = Stream(1, 2, 3), Stream(1, 2, 3)
    assert [random_below(fast.state, 1_000) for _ in range(5_000)] == [
        plain.below(1_000) for _ in range(5_000)
    ]


def test_streams_with_other_keys_differ_in_compiled_code_too():
    drawn = {int(random_bits(Stream(1, key).state)) for key in range(1_000)}
    assert len(drawn) == 1_000
