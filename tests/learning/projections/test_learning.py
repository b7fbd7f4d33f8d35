"""Learning the weights of energies: gradients against finite differences, and what learning finds."""

import numpy as np
import pytest
from scipy import sparse

from factorwise.errors import EnergyError, InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection import (
    ChainBase,
    MeasuredEnergy,
    TiedMeasurement,
    hinge,
    project,
    smoothed_hinge,
    squared,
)
from factorwise.kernels.compile.threads import Team
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.projections.derivatives import covariances
from factorwise.learning.projections.learning import EnergyLearning, learn_energies, promising
from factorwise.learning.projections.likelihood import Accuracy, SequenceLikelihood, energy_gradient
from factorwise.learning.projections.scores import GivenScores, LinearScores

LABELS = 3
ROWS = [
    {("all", 0): -1.0},
    {("pair", 0, 1): -1.0, ("pair", 2, 1): -1.0, ("first", 1): -1.0},
    {("position", 2): 1.0, ("position", 0): -1.0, ("all", 2): -1.0},
    {("all", 1): 1.0, ("all", 2): -1.0},
]
LOSSES = smoothed_hinge([-1.0, -1.0, -1.0, 0.5], 0.6)
SHARP = Accuracy(tolerance=1e-14, max_iterations=3_000)
WEIGHTS = np.array([1.5, 0.7, 0.9, 0.4])


def given(seed=0, lengths=(1, 4, 6, 3)):
    random = np.random.default_rng(seed)
    nodes = [random.normal(0.0, 1.0, (t, LABELS)) for t in lengths]
    return GivenScores(nodes, random.normal(0.0, 1.0, (LABELS, LABELS)))


def truth_of(base, seed=5):
    return np.random.default_rng(seed).integers(0, LABELS, int(base.start[-1]))


def both(seed=0):
    base = given(seed)
    features = np.random.default_rng(seed + 1).normal(0.0, 1.0, (int(base.start[-1]), 2))
    linear = LinearScores(sparse.csr_array(features), base)
    theta = np.random.default_rng(seed + 2).normal(0.0, 0.3, linear.parameters)
    return SequenceLikelihood(linear, truth_of(base), TiedMeasurement.rows(LABELS, ROWS), LOSSES), theta


def slopes_of(function, place, step=1e-3):
    """Differences of fourth order, so that steps can be longer than what projections leave uncertain."""
    found = []
    for unit in np.eye(len(place)):
        near = function(place + step * unit) - function(place - step * unit)
        far = function(place + 2.0 * step * unit) - function(place - 2.0 * step * unit)
        found.append((8.0 * near - far) / (12.0 * step))
    return np.array(found)


def by_enumeration(likelihood, theta, index, shift):
    """Log-probability of the truth of one sequence at shifted scores, by listing all paths."""
    nodes, (edge,) = likelihood.base.scores(theta, np.array([index]))
    length = len(nodes[0])
    paths = np.stack(np.meshgrid(*[np.arange(LABELS)] * length, indexing="ij"), -1).reshape(-1, length)
    scores = []
    for path in paths:
        local = nodes[0][np.arange(length), path].sum() + edge[path[:-1], path[1:]].sum()
        measured = likelihood.measurement.of_paths(path, np.array([0, length]))[0]
        scores.append(local - shift @ measured)
    own = likelihood.truth[likelihood.base.start[index] : likelihood.base.start[index + 1]]
    at = int(np.flatnonzero((paths == own).all(axis=1))[0])
    return scores[at] - np.logaddexp.reduce(scores)


def test_the_likelihood_is_that_of_the_shifted_chains():
    likelihood, theta = both()
    found = likelihood.project(WEIGHTS, theta)
    expected = sum(by_enumeration(likelihood, theta, i, found.shift[i]) for i in range(likelihood.count))
    assert likelihood.evaluate(WEIGHTS, theta).log_likelihood == pytest.approx(expected, abs=1e-9)


def test_with_marginals_held_the_gradients_are_those_of_the_surrogate():
    likelihood, theta = both(3)
    found = likelihood.evaluate(WEIGHTS, theta, accuracy=SHARP)
    held = likelihood.held(WEIGHTS, found.measured, theta)
    # at a projection both are the same chains
    assert held.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(held.weights, found.weights, atol=1e-6)
    np.testing.assert_allclose(held.parameters, found.parameters, atol=1e-6)

    def surrogate_of_weights(weights):
        return likelihood.held(weights, found.measured, theta).log_likelihood

    def surrogate_of_theta(parameters):
        return likelihood.held(WEIGHTS, found.measured, parameters).log_likelihood

    np.testing.assert_allclose(found.weights, slopes_of(surrogate_of_weights, WEIGHTS), atol=1e-6)
    np.testing.assert_allclose(found.parameters, slopes_of(surrogate_of_theta, theta), atol=1e-6)
    elsewhere = likelihood.held(2.0 * WEIGHTS, found.measured, theta)
    np.testing.assert_allclose(elsewhere.weights, slopes_of(surrogate_of_weights, 2.0 * WEIGHTS), atol=1e-7)
    with Team(2) as team:
        assert (
            likelihood.held(WEIGHTS, found.measured, theta, team=team).log_likelihood == held.log_likelihood
        )


@pytest.mark.parametrize("losses", [LOSSES, squared([-1.0, 0.5, 0.0, 1.0])], ids=["hinge", "squared"])
def test_the_implicit_gradient_is_that_of_the_whole_likelihood(losses):
    likelihood, theta = both(4)
    likelihood = SequenceLikelihood(likelihood.base, likelihood.truth, likelihood.measurement, losses)
    found = likelihood.evaluate(WEIGHTS, theta, differentiate="implicit", accuracy=SHARP)

    def of_weights(weights):
        return likelihood.evaluate(weights, theta, accuracy=SHARP).log_likelihood

    def of_theta(parameters):
        return likelihood.evaluate(WEIGHTS, parameters, accuracy=SHARP).log_likelihood

    np.testing.assert_allclose(found.weights, slopes_of(of_weights, WEIGHTS, 1e-2), atol=1e-4)
    np.testing.assert_allclose(found.parameters, slopes_of(of_theta, theta, 1e-2), atol=1e-4)
    fixed = likelihood.evaluate(WEIGHTS, theta, accuracy=SHARP)
    assert np.abs(fixed.weights - found.weights).max() > 1e-3


def test_covariances_are_the_derivatives_of_marginals():
    random = np.random.default_rng(7)
    base = ChainBase(random.normal(size=(4, LABELS)), random.normal(size=(LABELS, LABELS)))
    none = np.zeros(base.layout.size)
    marginals = base.marginals(none)
    split = base.layout.node_size
    directions = random.normal(size=(2, base.layout.size))
    found = covariances(
        marginals[:split].reshape(4, LABELS), marginals[split:].reshape(3, LABELS, LABELS), directions
    )
    for row, direction in zip(found, directions, strict=True):
        change = (base.marginals(-1e-5 * direction) - base.marginals(1e-5 * direction)) / 2e-5
        np.testing.assert_allclose(row, change, atol=1e-8)


def test_any_projection_tells_the_gradient_of_its_energy():
    base = given(8, lengths=(5,))
    path = truth_of(base)
    chain = ChainBase(base.node[0], base.edge[0])
    measurement = TiedMeasurement.rows(LABELS, ROWS)
    energy = MeasuredEnergy(measurement.of_length(5), LOSSES, WEIGHTS)
    statistics = np.zeros(chain.layout.size)
    for place, label in enumerate(path.tolist()):
        statistics[chain.layout.node(place, label)] = 1.0
        if place:
            statistics[chain.layout.factor(place - 1, (int(path[place - 1]), label))] = 1.0
    found = project(chain, energy, tolerance=1e-12, max_iterations=3_000)
    value, gradient = energy_gradient(found, statistics)
    expected = SequenceLikelihood(base, path, measurement, LOSSES).evaluate(WEIGHTS, accuracy=SHARP)
    assert value == pytest.approx(expected.log_likelihood, abs=1e-5)
    np.testing.assert_allclose(gradient, expected.weights, atol=1e-5)
    with pytest.raises(ShapeError, match="use the base model's layout"):
        energy_gradient(found, statistics[:-1])


def regular(seed=0, count=60):
    """Sequences in which label 0 occurs exactly once, and scores that do not know it."""
    random = np.random.default_rng(seed)
    paths, nodes = [], []
    for _ in range(count):
        path = random.integers(1, LABELS, 6)
        path[random.integers(6)] = 0
        scores = random.normal(0.0, 1.0, (6, LABELS))
        scores[np.arange(6), path] += 1.0
        paths.append(path)
        nodes.append(scores)
    rows = [
        {("all", 0): -1.0},
        {("all", 0): 1.0},
        {("all", 1): -1.0, ("all", 2): -1.0},
    ]  # the last is not true
    measurement = TiedMeasurement.rows(LABELS, rows)
    base = GivenScores(nodes, np.zeros((LABELS, LABELS)))
    return SequenceLikelihood(
        base, np.concatenate(paths), measurement, smoothed_hinge([-1.0, 1.0, -1.0], 0.5)
    )


@pytest.mark.parametrize(
    "config",
    [
        EnergyLearning(batch=10),
        EnergyLearning(method="double-loop", rounds=60),
        EnergyLearning(method="double-loop", rounds=12, inner_steps=5),
        EnergyLearning(method="double-loop", rounds=15, differentiate="implicit"),
    ],
    ids=["stochastic", "double loop", "inner steps", "implicit"],
)
def test_learning_keeps_what_holds_and_prunes_what_does_not(config):
    likelihood = regular()
    fit = learn_energies(likelihood, config=config)
    assert fit.active[[0, 2]].tolist() == [True, False]
    assert (fit.weights >= 0).all()
    before, after = (likelihood.evaluate(w) for w in (np.zeros(3), fit.weights))
    assert after.log_likelihood > before.log_likelihood + 5.0
    path = likelihood.project(fit.weights).best()
    plain = likelihood.project(np.zeros(3)).best()
    assert (path == likelihood.truth).mean() > (plain == likelihood.truth).mean() + 0.02


def test_the_same_seed_gives_the_same_weights_on_any_number_of_threads():
    likelihood, config = regular(1), EnergyLearning(rounds=2, batch=16, seed=3)
    with Team(2) as team:
        together = learn_energies(likelihood, config=config, team=team)
    assert (together.weights == learn_energies(likelihood, config=config).weights).all()


def test_a_strong_prior_prunes_everything_and_then_nothing_is_promising():
    likelihood = regular(2)
    strong = Prior(l1=1e4)
    assert not learn_energies(likelihood, config=EnergyLearning(prior=strong)).active.any()
    assert promising(likelihood, strong).tolist() == []
    assert promising(likelihood, Prior(l1=1.0)).tolist() == [0]
    part = likelihood.taken(np.array([1]))
    whole = likelihood.evaluate(np.array([0.0, 0.8, 0.0]))
    assert part.evaluate(np.array([0.8])).log_likelihood == pytest.approx(whole.log_likelihood)


def test_scores_and_energy_are_learned_together():
    likelihood = regular(3)
    ones = np.ones((int(likelihood.base.start[-1]), 1))
    joint = SequenceLikelihood(
        LinearScores(ones, likelihood.base), likelihood.truth, likelihood.measurement, likelihood.losses
    )
    alone = learn_energies(likelihood, config=EnergyLearning(rounds=30, batch=10))
    fit = learn_energies(joint, config=EnergyLearning(rounds=30, batch=10))
    assert fit.parameters.shape == (LABELS + LABELS**2,)
    assert joint.evaluate(fit.weights, fit.parameters).log_likelihood > (
        likelihood.evaluate(alone.weights).log_likelihood + 1.0
    )
    sparse_base = EnergyLearning(rounds=3, batch=10, base_prior=Prior(l1=1e4))
    assert not learn_energies(joint, config=sparse_base).parameters.any()


def test_learning_can_be_watched_and_ended():
    seen = []

    def watch(round_):
        seen.append(round_)
        return len(seen) == 2

    fit = learn_energies(regular(), watch=watch)
    assert fit.rounds == tuple(seen)
    assert len(seen) == 2
    assert seen[0].active >= 1


def test_a_pass_tells_the_mean_log_likelihood_of_a_sequence_on_the_way():
    likelihood = regular()
    whole = EnergyLearning(method="doubly-stochastic", rounds=1, batch=likelihood.count)
    at_the_start = likelihood.evaluate(np.zeros(likelihood.measurement.count)).log_likelihood
    told = learn_energies(likelihood, config=whole).rounds[0].log_likelihood
    assert told == pytest.approx(at_the_start / likelihood.count)


def test_sequences_with_tables_of_their_own_add_up():
    random = np.random.default_rng(12)
    lengths, which = (3, 5, 2, 4), np.array([1, 0, 1, 1])
    nodes = [random.normal(size=(length, LABELS)) for length in lengths]
    tables = random.normal(size=(2, LABELS, LABELS))
    measurement = TiedMeasurement.rows(LABELS, ROWS)
    truth = random.integers(0, LABELS, sum(lengths))
    start = np.cumsum([0, *lengths])
    for way in ("fixed", "implicit"):
        together = SequenceLikelihood(GivenScores(nodes, tables, which), truth, measurement, LOSSES)
        found = together.evaluate(WEIGHTS, differentiate=way)
        value, gradient = 0.0, np.zeros(len(WEIGHTS))
        for index, rows in enumerate(nodes):
            base = GivenScores([rows], tables[which[index]])
            own = truth[start[index] : start[index + 1]]
            alone = SequenceLikelihood(base, own, measurement, LOSSES).evaluate(WEIGHTS, differentiate=way)
            value, gradient = value + alone.log_likelihood, gradient + alone.weights
        assert found.log_likelihood == pytest.approx(value)
        np.testing.assert_allclose(found.weights, gradient, rtol=1e-9)
    with pytest.raises(ShapeError, match="say with table= which one each sequence has"):
        GivenScores(nodes, tables)


def test_what_does_not_fit_is_refused():
    base = given()
    measurement = TiedMeasurement.rows(LABELS, ROWS)
    with pytest.raises(ShapeError, match="4 measurements: give one loss for each"):
        SequenceLikelihood(base, truth_of(base), measurement, hinge([0.0, 1.0]))
    with pytest.raises(ShapeError, match="build both for the same labels"):
        SequenceLikelihood(base, truth_of(base), TiedMeasurement.rows(4, ROWS), LOSSES)
    with pytest.raises(ShapeError, match="give one for each"):
        SequenceLikelihood(base, truth_of(base)[1:], measurement, LOSSES)
    with pytest.raises(ShapeError, match="give a row for each position"):
        LinearScores(np.ones((3, 1)), base)
    with pytest.raises(ShapeError, match="sequence 1 has scores of shape"):
        GivenScores([np.zeros((2, 3)), np.zeros((2, 2))], np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="must be square"):
        GivenScores([], np.zeros((3, 2)))
    likelihood = SequenceLikelihood(base, truth_of(base), measurement, hinge(0.0))
    with pytest.raises(EnergyError, match="use a smoothed hinge, or hold the marginals fixed"):
        likelihood.evaluate(WEIGHTS, differentiate="implicit")
    with pytest.raises(ShapeError, match="weights must be one number or"):
        learn_energies(likelihood, weights=[1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="rounds must be at least 1"):
        EnergyLearning(rounds=0)
    with pytest.raises(InvalidArgumentError, match="method must be one of"):
        EnergyLearning(method="triple")


def test_inner_steps_hold_the_marginals_of_the_projections():
    """Each inner step takes the surrogate's gradient at the measured marginals that the round began with."""
    likelihood, theta = both()
    rate, weights, parameters = 0.4, WEIGHTS.copy(), theta.copy()
    config = EnergyLearning(
        method="double-loop",
        rounds=1,
        inner_steps=3,
        rate=rate,
        prior=Prior(),
        base_prior=Prior(),
        accuracy=SHARP,
    )
    fit = learn_energies(likelihood, config=config, weights=WEIGHTS, parameters=theta)
    found = likelihood.evaluate(weights, parameters, accuracy=SHARP)
    seen = np.zeros_like(weights), np.zeros_like(parameters)
    gradient = found
    for _ in range(3):
        for place, slope, squares in (
            (weights, gradient.weights, seen[0]),
            (parameters, gradient.parameters, seen[1]),
        ):
            mean = slope / likelihood.count
            squares += mean**2
            place += rate * mean / np.sqrt(squares)
        np.maximum(weights, 0.0, out=weights)
        gradient = likelihood.held(weights, found.measured, parameters)
    np.testing.assert_allclose(fit.weights, weights, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(fit.parameters, parameters, rtol=1e-4, atol=1e-7)
    anew = likelihood.evaluate(weights, parameters, accuracy=SHARP)
    assert np.abs(anew.weights - gradient.weights).max() > 1e-2, "the two would differ here"
