"""Learning weights of nearest-target energies from features of the input."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection import (
    ChainBase,
    ChainsBase,
    FeatureWeights,
    Measurement,
    NearestParts,
    project_chains,
)
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.projections.features import LabeledChains, learn_feature_weights

LABELS, LENGTH = 3, 4
WORDS = np.array([[0, 1, 2, 0], [1, 1, 0, 2], [2, 0, 0, 1]])


def weights(coefficients):
    return FeatureWeights(np.atleast_2d(coefficients), nonnegative=False)


def labeled(seed=0, count=6, strength=1.0, share=1.0, ordered=True):
    """Noisy chains: a share of them are words, marked by their second feature, the others are anything."""
    random = np.random.default_rng(seed)
    known = np.arange(count) < share * count
    paths = np.where(
        known[:, None], WORDS[random.integers(0, 3, count)], random.integers(0, LABELS, (count, LENGTH))
    )
    nodes = random.normal(size=(count, LENGTH, LABELS)) + strength * np.eye(LABELS)[paths]
    base = ChainsBase(list(nodes), random.normal(0.0, 0.2, (LABELS, LABELS)))
    one = np.eye(LABELS)[WORDS]
    if ordered:
        measurement, targets = Measurement.identity(base.layout.node_size), one.reshape(3, -1)
    else:
        measurement = Measurement.label_counts_of_each(base.layout, base.start)
        targets = one.sum(axis=1)
    energy = NearestParts(measurement, [targets], np.zeros(count, dtype=int))
    features = np.stack([np.ones(count), known], axis=1)
    return LabeledChains(base, energy, paths.ravel(), features)


@pytest.mark.parametrize("ordered", [True, False])
def test_the_held_likelihood_is_the_log_probability_of_the_truth(ordered):
    group = labeled(1, ordered=ordered)
    energy, given = group.energy, weights([0.4, 0.3])
    directions = np.random.default_rng(2).uniform(-1.0, 1.0, energy.measurement.count)
    value, _ = group.held(given, directions)
    moved = energy.measurement.adjoint(energy.spread(given.at(group.features)[:, 0]) * directions)
    expected = 0.0
    for chain, path in enumerate(group.truth.reshape(-1, LENGTH)):
        own = slice(chain * LENGTH, (chain + 1) * LENGTH)
        node = group.base.node[own] - moved.reshape(-1, LABELS)[own]
        score = node[np.arange(LENGTH), path].sum() + group.base.edge[path[:-1], path[1:]].sum()
        expected += score - ChainBase(node, group.base.edge).answer(np.zeros(node.size)).log_partition
    assert value == pytest.approx(expected)


@pytest.mark.parametrize("ordered", [True, False])
def test_the_held_gradient_is_that_of_the_held_likelihood(ordered):
    group, at = labeled(3, ordered=ordered), np.array([0.8, -0.5])
    directions = group.directions(weights(at), max_iterations=10, candidates=1)
    expected = approx_fprime(at, lambda given: group.held(weights(given), directions)[0], 1e-6)
    assert group.held(weights(at), directions)[1][0] == pytest.approx(expected, abs=1e-4)


def test_directions_are_slopes_at_the_marginals():
    group = labeled(4)
    found = group.directions(weights([1.0, 0.5]), max_iterations=20, candidates=3)
    energy = group.energy.with_weights(weights([1.0, 0.5]).at(group.features)[:, 0])
    projected = project_chains(group.base, energy, max_iterations=20, candidates=3)
    np.testing.assert_allclose(found, energy.unit_slope_of(projected.measured))
    at_zero = group.directions(weights([0.0, 0.0]), max_iterations=5, candidates=1)
    assert set(np.unique(at_zero)) <= {-1.0, 1.0}


@pytest.mark.parametrize(("ordered", "gain"), [(True, 0.05), (False, 0.01)])
def test_learning_finds_that_words_are_words_and_others_are_not(ordered, gain):
    groups = [labeled(seed, 150, share=0.5, ordered=ordered) for seed in (5, 6)]
    fit = learn_feature_weights(groups, prior=Prior(l2=0.01), rounds=3, max_iterations=10, candidates=3)
    everyone, words = fit.coefficients[0]
    assert words > 3.0 * abs(everyone)
    test = labeled(7, 400, share=0.5, ordered=ordered)
    truth = test.truth

    def right(psi):
        energy = test.energy.with_weights(psi)
        return (project_chains(test.base, energy, candidates=3).best() == truth).mean()

    learned = right(fit.at(test.features)[:, 0])
    assert learned > right(0.0) + gain
    assert learned > right(fit.coefficients.sum())


def test_a_group_that_is_given_twice_counts_twice():
    group, settings = labeled(8, 40, share=0.5), {"rounds": 2, "max_iterations": 5, "candidates": 1}
    once = learn_feature_weights([group], prior=Prior(l2=0.01), **settings)
    twice = learn_feature_weights([group, group], prior=Prior(l2=0.02), **settings)
    np.testing.assert_allclose(once.coefficients, twice.coefficients, rtol=1e-3, atol=1e-3)
    assert np.abs(once.coefficients).max() > 0.1


def test_bad_groups_are_named():
    group = labeled()
    with pytest.raises(ShapeError, match="give a label for each position and a row of features"):
        LabeledChains(group.base, group.energy, group.truth[1:], group.features)
    with pytest.raises(InvalidArgumentError, match="at least one group of chains"):
        learn_feature_weights([], prior=Prior())
