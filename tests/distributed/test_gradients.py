"""Objectives that are summed over shards."""

import numpy as np
import pytest

from chain_cases import KINDS
from factorwise.distributed import LocalExecutor, SummedObjective
from factorwise.errors import InvalidArgumentError
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.optimizers import minimize
from shard_cases import likelihood_of, sentences_in_parts


def assert_close(one, two):
    assert one[0] == pytest.approx(two[0], rel=1e-9)
    np.testing.assert_allclose(one[1], two[1], rtol=1e-9, atol=1e-9 * np.abs(two[1]).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_likelihood_of_all_sentences_is_the_sum_over_their_parts(kind, count, seed):
    whole, parts = sentences_in_parts(kind, seed, count)
    weights = whole.weights(seed)
    assert_close(
        SummedObjective(LocalExecutor(1), parts, likelihood_of)(weights), whole.likelihood()(weights)
    )


def test_any_number_of_threads_gives_the_same_bits(seed):
    whole, parts = sentences_in_parts("everything", seed, 4)
    weights = whole.weights(seed)
    found = [SummedObjective(LocalExecutor(n), parts, likelihood_of)(weights) for n in (1, 2, 3)]
    assert len({value for value, _ in found}) == 1
    assert len({gradient.tobytes() for _, gradient in found}) == 1


def test_likelihoods_that_use_their_arrays_again_can_be_the_parts():
    whole, parts = sentences_in_parts("plain", 1, 3)
    summed = SummedObjective(LocalExecutor(2), [part.likelihood() for part in parts], _called)
    first, second = whole.weights(1), whole.weights(2)
    before = summed(first)
    assert_close(summed(second), whole.likelihood()(second))
    assert_close(before, whole.likelihood()(first))  # what was returned earlier is not overwritten


def _called(likelihood, weights):
    return likelihood(weights)


def test_an_optimizer_finds_the_same_weights_through_the_sum():
    whole, parts = sentences_in_parts("plain", 3, 3)
    summed = SummedObjective(LocalExecutor(2), [part.likelihood() for part in parts], _called)
    start = np.zeros_like(whole.weights(0))
    one, two = (
        minimize(objective, start, prior=Prior(l2=0.5)).weights for objective in (summed, whole.likelihood())
    )
    np.testing.assert_allclose(one, two, atol=1e-4)
    assert np.abs(one).max() > 0.1


def test_a_sum_of_nothing_is_refused():
    with pytest.raises(InvalidArgumentError, match="parts is empty"):
        SummedObjective(LocalExecutor(1), [], _called)
