from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from assignment_cases import CASES, STATIC
from factorwise.errors import ImpossibleError, InvalidArgumentError
from factorwise.inference.exact import Enumeration
from factorwise.inference.exact.clusterings import PartitionEnumeration, all_partitions
from factorwise.learning.likelihood.marginal_likelihood import LogLikelihood
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.optimizers import minimize
from factorwise.learning.samplerank.enumerated_likelihood import EnumeratedLikelihood
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.model.model import Model
from factorwise.model.template import Template, finite_difference
from factorwise.model.templates import PairTableTemplate
from factorwise.model.weights import SparseVector
from factorwise.variables.domain import Domain
from factorwise.variables.pair_table import PairTable
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from factorwise.world.partition import Partition
from partition_cases import MODELS, model_of

FALSE_ALARM = 1e-5  # chance that a correct estimate fails the statistical test
TIGHT = {"epsilon": 1e-9, "delta": 0.0, "history": "float64", "precision": 1e-14}


def training(model, truth, name=""):
    return TrainingWorld(model=model, proposer=None, start=None, truth=truth, name=name)


def slopes(objective, weights, step=1e-5):
    """Central differences of the value."""
    moves = np.eye(len(weights)) * step
    return np.array([(objective(weights + m)[0] - objective(weights - m)[0]) / (2 * step) for m in moves])


@cache
def small(name, n_types=1):
    """A model over four items, and two of its clusterings."""
    model = model_of(MODELS[name], 4)
    types = [0, n_types - 1]
    truths = [
        Partition.from_labels([0, 0, 1, 0], types=types, n_types=n_types),
        Partition.from_labels([0, 1, 1, 1], types=types[::-1], n_types=n_types),
    ]
    return model, truths, EnumeratedLikelihood([training(model, truth) for truth in truths])


@pytest.mark.parametrize(("name", "n_types"), [*((name, 1) for name in MODELS), ("everything", 2)])
def test_value_is_the_log_of_exact_probabilities_and_the_gradient_its_slope(name, n_types):
    model, truths, objective = small(name, n_types)
    exact = PartitionEnumeration(model, 4, n_types=n_types)
    value, gradient = objective.value_and_gradient(model.weights)
    assert value == pytest.approx(sum(model.score(truth) for truth in truths) - 2 * exact.log_partition)
    assert np.abs(gradient).max() > 0.01
    np.testing.assert_allclose(
        gradient, slopes(objective.value_and_gradient, model.weights), rtol=1e-6, atol=1e-7
    )


def test_the_loss_is_minus_the_value_and_minus_the_gradient():
    model, _, objective = small("edges")
    value, gradient = objective.value_and_gradient(model.weights)
    loss, slope = objective.loss(model.weights)
    assert loss == -value > 0
    np.testing.assert_array_equal(slope, -gradient)


def test_expected_statistics_are_means_under_the_exact_distribution():
    model, truths, objective = small("clusters")
    exact = PartitionEnumeration(model, 4)
    size = model.blocks.size
    rows = [model.statistics(world).to_dense(size) for world in exact.worlds]
    np.testing.assert_allclose(objective.expected(model.weights), 2 * exact.probabilities @ rows)
    np.testing.assert_allclose(
        objective.observed, sum(model.statistics(truth).to_dense(size) for truth in truths)
    )


@pytest.mark.parametrize("name", STATIC)
def test_assignments_have_the_likelihood_that_the_oracles_find(name):
    variables, model = CASES[name]()
    drawn = (Assignment.uniform(variables, seed) for seed in range(50))
    truths = [world for world in drawn if np.isfinite(model.score(world))][:3]
    objective = EnumeratedLikelihood([training(model, truth) for truth in truths])
    value, gradient = objective.value_and_gradient(model.weights)
    exact, slope = LogLikelihood(model, truths, Enumeration()).value_and_gradient(model.weights)
    assert value == pytest.approx(exact)
    np.testing.assert_allclose(gradient, slope, atol=1e-10)


def test_templates_that_no_oracle_can_unroll_are_listed_all_the_same():
    variables, model = CASES["runs"]()
    worlds = [Assignment(variables, codes) for codes in np.ndindex(2, 2, 2, 2)]
    objective = EnumeratedLikelihood([training(model, worlds[5])])
    scores = [model.score(world) for world in worlds]
    assert objective.n_worlds == 16
    assert objective.value_and_gradient(model.weights)[0] == pytest.approx(
        scores[5] - np.logaddexp.reduce(scores)
    )


def test_truths_of_one_model_share_their_enumeration_and_count_as_their_sum():
    model, truths, together = small("reals")
    other = model_of(MODELS["reals"], 3, seed=4)
    third = training(other, Partition.from_labels([0, 1, 1]))
    listed = [training(model, truth) for truth in (*truths, truths[0])] + [third]
    objective = EnumeratedLikelihood(listed)
    assert together.n_worlds == len(all_partitions(4)) == 15
    assert objective.n_worlds == 15 + 5
    value, gradient = objective.value_and_gradient(model.weights)
    alone = [EnumeratedLikelihood([one]).value_and_gradient(model.weights) for one in listed]
    assert value == pytest.approx(sum(one for one, _ in alone))
    np.testing.assert_allclose(gradient, sum(slope for _, slope in alone), atol=1e-12)


@pytest.mark.parametrize("name", ["whole numbers", "aggregates", "everything"])
def test_it_is_concave(name):
    model, _, objective = small(name)
    rng = np.random.default_rng(3)
    for _ in range(20):
        first, second = rng.normal(scale=2.0, size=(2, model.blocks.size))
        middle = objective.value_and_gradient((first + second) / 2)[0]
        ends = [objective.value_and_gradient(weights)[0] for weights in (first, second)]
        assert middle > sum(ends) / 2  # strictly, along directions that tell worlds apart


def drawn_data(seed, count):
    """Clusterings of five items drawn exactly from a model of two pair features and their aggregates."""
    rng = np.random.default_rng(7)
    table = PairTable(5, ["head", "near"], rng.integers(0, 2, (10, 2)))
    weights = [0.8, -0.6, 0.5, -0.4]
    model = Model([PairTableTemplate("table", table, ["count", "exists"])], weights)
    exact = PartitionEnumeration(model, 5)
    drawn = np.random.default_rng(seed).choice(len(exact.worlds), size=count, p=exact.probabilities)
    return model, [training(model, exact.worlds[number]) for number in drawn]


def test_at_the_optimum_expected_statistics_are_the_observed_ones():
    _, worlds = drawn_data(1, 300)
    objective = EnumeratedLikelihood(worlds)
    found = objective.fit(**TIGHT)
    assert found.converged
    assert found.weights.shape == (4,)
    np.testing.assert_allclose(objective.expected(found.weights), objective.observed, rtol=1e-6)
    again = minimize(objective.loss, np.ones(4), prior=Prior.none(), **TIGHT)
    np.testing.assert_allclose(found.weights, again.weights, rtol=1e-5)


def test_with_a_prior_the_difference_is_what_the_penalty_asks_for():
    _, worlds = drawn_data(2, 100)
    gaussian = EnumeratedLikelihood(worlds, prior=Prior.gaussian(variance=0.1))
    weights = gaussian.fit(**TIGHT).weights
    np.testing.assert_allclose(gaussian.observed - gaussian.expected(weights), weights / 0.1, rtol=1e-5)
    laplace = EnumeratedLikelihood(worlds, prior=Prior.laplace(scale=0.04))
    weights = laplace.fit(**TIGHT).weights
    slope = laplace.loss(weights)[1]
    assert 0 < np.count_nonzero(weights) < 4
    np.testing.assert_allclose(laplace.prior.violation(weights, slope), 0.0, atol=1e-5)


def test_one_truth_at_the_edge_has_a_best_weight_only_with_a_prior():
    world = training(model_of(MODELS["whole numbers"], 2), Partition.from_labels([0, 0]))
    without = EnumeratedLikelihood([world])
    uphill = without.value_and_gradient(np.zeros(5))[1]
    values = [without.value_and_gradient(far * uphill)[0] for far in (1, 3, 9, 27)]
    assert values[0] < values[1] < values[2] < values[3] <= 0.0
    assert values[3] > -1e-9
    bounded = EnumeratedLikelihood([world], prior=Prior.gaussian(variance=1.0)).fit(**TIGHT)
    assert 0.1 < np.abs(bounded.weights).max() < 2.0


@pytest.mark.statistical
def test_its_maximum_comes_near_the_weights_that_made_the_data(seed):
    """The distance to the truth, in units of the Fisher information, is a chi-square."""
    model, worlds = drawn_data(seed, 4_000)
    objective = EnumeratedLikelihood(worlds)
    fitted = objective.fit(**TIGHT).weights
    step = 1e-5 * np.eye(4)
    information = np.array(
        [(objective.loss(fitted + s)[1] - objective.loss(fitted - s)[1]) / 2e-5 for s in step]
    )
    error = fitted - model.weights
    assert chi2.sf(error @ information @ error, 4) > FALSE_ALARM
    assert np.abs(error).max() < 0.4


class AtMostTwo(Template):
    """A user's template with a hard constraint: no cluster of three; pairs have a score of their own."""

    name, size = "at most two", 1

    def statistics(self, world):
        return SparseVector.from_dense([world.n_clusters])

    def constant(self, world):
        sizes = [len(members) for members in world.clusters()]
        return -np.inf if max(sizes) > 2 else 0.3 * sizes.count(2)

    def difference(self, world, diff):
        change = world.after(diff).n_clusters - world.n_clusters
        return SparseVector.from_dense([change])

    def constant_gain(self, world, diff):
        return finite_difference(self.constant(world.after(diff)), self.constant(world))


def test_constants_count_and_forbidden_worlds_do_not():
    model = Model([AtMostTwo()], [0.7])
    objective = EnumeratedLikelihood([training(model, Partition.from_labels([0, 0, 1]))])
    assert objective.n_worlds == 4
    scores = np.array([3 * 0.7, *[2 * 0.7 + 0.3] * 3])
    assert objective.value_and_gradient([0.7])[0] == pytest.approx(scores[1] - np.logaddexp.reduce(scores))


def test_a_forbidden_truth_is_refused():
    worlds = [Partition.from_labels([0, 1, 1]), Partition.from_labels([0, 0, 0])]
    model = Model([AtMostTwo()])
    with pytest.raises(ImpossibleError, match="world 1 is forbidden by template 'at most two'"):
        EnumeratedLikelihood([training(model, world) for world in worlds])


@pytest.mark.parametrize(
    ("items", "n_types", "limit", "told"),
    [
        (12, 1, 1 << 17, r"world 0 has 12 items, hence 4213597 clusterings, .*up to 9 items.*Relocation"),
        (300, 1, 1 << 17, r"hence about 9\.6e453 clusterings"),
        (5, 1, 51, r"5 items, hence 52 clusterings, but the limit is 51: raise limit, .*SampleRank"),
        (4, 2, 93, r"hence 94 clusterings"),
    ],
)
def test_too_many_clusterings_are_counted_and_refused_with_a_remedy(items, n_types, limit, told):
    truth = Partition.singletons(items, n_types=n_types)
    with pytest.raises(InvalidArgumentError, match=told):
        EnumeratedLikelihood([training(model_of(("sizes",), items), truth)], limit=limit)


def test_as_many_worlds_as_the_limit_are_listed():
    one = training(model_of(("sizes",), 5), Partition.singletons(5))
    assert EnumeratedLikelihood([one], limit=52).n_worlds == 52


def test_too_many_settings_of_an_assignment_are_refused_with_a_remedy():
    variables, model = CASES["loop"]()
    truth = Assignment.initial(variables)
    with pytest.raises(InvalidArgumentError, match=r"3 hidden variables, hence 8 settings, .*JunctionTree"):
        EnumeratedLikelihood([training(model, truth)], limit=7)
    assert EnumeratedLikelihood([training(model, truth)], limit=8).n_worlds == 8
    column = Column.hidden("bit", Domain("bit", ["off", "on"]), 3_000)
    many = Assignment.initial(Variables([column]))
    with pytest.raises(InvalidArgumentError, match=r"book has 3000 hidden .*about 1\.2e903 settings"):
        EnumeratedLikelihood([training(model, many, "book")])


def test_what_cannot_be_listed_or_is_missing_is_refused():
    model = model_of(("sizes",), 3)
    with pytest.raises(InvalidArgumentError, match="truth of page 7 is a list: give a Partition"):
        EnumeratedLikelihood([training(model, [0, 0, 1], "page 7")])
    with pytest.raises(InvalidArgumentError, match="world 0 has no truth"):
        EnumeratedLikelihood([training(model, None)])
    with pytest.raises(InvalidArgumentError, match="one or more training worlds"):
        EnumeratedLikelihood([])
    with pytest.raises(InvalidArgumentError, match="limit must be at least 1"):
        EnumeratedLikelihood([training(model, Partition.singletons(3))], limit=0)
