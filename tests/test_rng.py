"""The random stream: reproducible, keyed, and as uniform as it should be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from factorwise.errors import InvalidArgumentError
from factorwise.rng import Stream, as_stream, split_mix

FALSE_ALARM = 1e-4  # chance that a right generator fails one statistical test


def test_split_mix_gives_the_known_numbers():
    """The first outputs of SplitMix64 seeded with 1234567, on which its implementations agree."""
    golden, state = 0x9E3779B97F4A7C15, 1234567
    outputs = []
    for _ in range(3):
        outputs.append(split_mix(state))
        state = (state + golden) % 2**64
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def definition(low, high):
    """One step of xoroshiro128++ written with whole numbers: output and next state."""
    mask = 2**64 - 1
    turned = lambda x, k: ((x << k) | (x >> (64 - k))) & mask  # noqa: E731
    result = (turned((low + high) & mask, 17) + low) & mask
    high ^= low
    return result, (turned(low, 49) ^ high ^ ((high << 21) & mask), turned(high, 28))


@given(st.integers(1, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_bits_follow_the_definition(low, high):
    stream = Stream(0)
    stream.state[:] = low, high
    result, after = definition(low, high)
    assert stream.bits() == result
    assert tuple(int(word) for word in stream.state) == after


@given(st.integers(0, 2**130), st.lists(st.integers(0, 2**64), max_size=3))
def test_the_same_seed_and_keys_give_the_same_stream(seed, keys):
    assert Stream(seed, *keys).bits() == Stream(seed, *keys).bits()
    assert (Stream(seed, *keys).state != 0).any()


def test_streams_of_other_seeds_and_keys_differ():
    parts = [
        (s, *k)
        for s in (0, 1, 2, 2**64, 2**65, 2**64 + 1, 2**128, 2**200)
        for k in ((), (0,), (1,), (0, 0), (0, 1), (1, 0))
    ]
    assert len({tuple(Stream(*part).state.tolist()) for part in parts}) == len(parts)


def test_neighboring_keys_are_not_correlated():
    first = np.array([Stream(7, key).uniform() for key in range(4_000)])
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 4 / np.sqrt(4_000)


def test_a_copy_draws_the_same_numbers_on_its_own():
    stream = Stream(3)
    twin = stream.copy()
    assert [stream.bits() for _ in range(5)] == [twin.bits() for _ in range(5)]
    stream.bits()
    assert (stream.state != twin.state).any()


@pytest.mark.statistical
@pytest.mark.parametrize("bound", [2, 3, 10, 97])
def test_integers_below_a_bound_are_uniform(bound, seed):
    stream = Stream(seed, bound)
    counts = np.bincount([stream.below(bound) for _ in range(20_000)], minlength=bound)
    assert len(counts) == bound
    assert chisquare(counts).pvalue > FALSE_ALARM


def test_uniform_numbers_lie_in_the_half_open_unit_interval():
    stream = Stream(0)
    stream.state[:] = 0, 2**64 - 1
    drawn = [Stream(9).uniform()] + [stream.uniform() for _ in range(1_000)]
    assert all(0.0 <= value < 1.0 for value in drawn)


@given(st.integers(1, 2**53))
def test_the_largest_draw_stays_below_the_bound(bound):
    assert int((1.0 - 2.0**-53) * bound) < bound


def test_a_seed_a_generator_or_a_stream_can_be_given():
    assert as_stream(5, 1).bits() == Stream(5, 1).bits()
    assert as_stream(np.int64(5)).bits() == Stream(5).bits()
    generators = [np.random.default_rng(5) for _ in range(2)]
    assert as_stream(generators[0]).bits() == as_stream(generators[1]).bits()
    assert as_stream(generators[0]).bits() != as_stream(np.random.default_rng(5)).bits()
    parents = [Stream(5), Stream(5)]
    assert as_stream(parents[0], 2).bits() == as_stream(parents[1], 2).bits()
    assert as_stream(parents[0], 2).bits() != as_stream(Stream(5), 2).bits()


def test_a_negative_seed_is_refused():
    with pytest.raises(InvalidArgumentError, match="seed must be zero or more, but -1"):
        Stream(-1)
