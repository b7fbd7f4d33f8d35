from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from factorwise.errors import ImpossibleError, InvalidArgumentError, NoCompiledFormError, TemplateError
from factorwise.inference.exact.clusterings import PartitionEnumeration, all_partitions
from factorwise.inference.mcmc.engine import PlainEngineWarning
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.samplerank.enumerated_likelihood import EnumeratedLikelihood
from factorwise.learning.samplerank.relocation_likelihood import RelocationLikelihood
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.model.model import Model
from factorwise.model.template import Template, finite_difference
from factorwise.model.templates import ClusterSize, EdgeTemplate, PairTableTemplate
from factorwise.model.weights import SparseVector
from factorwise.variables.domain import Domain
from factorwise.variables.pair_table import PairTable
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from factorwise.world.partition import Partition
from partition_cases import MODELS, model_of
from reference import relocation_gradients as reference

FALSE_ALARM = 1e-5  # chance that a correct estimate fails the statistical test
TIGHT = {"epsilon": 1e-9, "delta": 0.0, "history": "float64", "precision": 1e-14}
CLOSE = {"rtol": 1e-5, "atol": 1e-4}  # compiled code keeps real fields in single precision
ENGINES = ("compiled", "plain")


def training(model, truth, name=""):
    return TrainingWorld(model=model, proposer=None, start=None, truth=truth, name=name)


def slopes(objective, weights, step=1e-5):
    """Central differences of the value."""
    moves = np.eye(len(weights)) * step
    return np.array([(objective(weights + m)[0] - objective(weights - m)[0]) / (2 * step) for m in moves])


def table_model(n, seed=0, features=3):
    """Every aggregate of a few random pair features, and the sizes of clusters."""
    rng = np.random.default_rng(seed)
    pairs = n * (n - 1) // 2
    table = PairTable(n, [f"feature {k}" for k in range(features)], rng.integers(0, 2, (pairs, features)))
    templates = [PairTableTemplate("table", table), ClusterSize("sizes")]
    size = sum(template.size for template in templates)
    return Model(templates, rng.normal(scale=0.4, size=size))


def random_world(n, n_types, seed, clusters):
    rng = np.random.default_rng(seed)
    labels = np.unique(rng.integers(0, clusters, n), return_inverse=True)[1]
    return Partition.from_labels(labels, types=rng.integers(0, n_types, labels.max() + 1), n_types=n_types)


def without(world, item):
    """Who is with whom, and in a cluster of which type, among all items but one."""
    kept = [
        (frozenset(members.tolist()) - {item}, world.type_of(world.cluster_of(int(members[0]))))
        for members in world.clusters()
    ]
    return frozenset(pair for pair in kept if pair[0])


def by_definition(model, truth):
    """Each item's place among all worlds that agree on the others; then each cluster's type."""
    worlds = all_partitions(truth.n_items, truth.n_types)
    scores = np.array([model.score(world) for world in worlds])
    total = 0.0
    for item in range(truth.n_items):
        alike = [without(world, item) == without(truth, item) for world in worlds]
        total += model.score(truth) - np.logaddexp.reduce(scores[alike])
    if truth.n_types > 1:
        labels, types = truth.dense_labels(), truth.dense_types()
        for cluster in range(truth.n_clusters):
            alike = [
                (world.dense_labels() == labels).all()
                and (np.delete(world.dense_types(), cluster) == np.delete(types, cluster)).all()
                for world in worlds
            ]
            total += model.score(truth) - np.logaddexp.reduce(scores[alike])
    return total


TRUTHS = {
    "mixed": Partition.from_labels([0, 0, 1, 2, 0]),
    "all apart": Partition.singletons(5),
    "all together": Partition.from_labels([0, 0, 0, 0, 0]),
    "typed": Partition.from_labels([0, 1, 0, 2], types=[1, 0, 1], n_types=2),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["everything", "tables"])
@pytest.mark.parametrize("truth", TRUTHS)
def test_value_is_that_of_the_definition_and_the_gradient_its_slope(name, truth, engine):
    world = TRUTHS[truth]
    n = world.n_items
    model = table_model(n) if name == "tables" else model_of(MODELS[name], n)
    objective = RelocationLikelihood([training(model, world)], engine=engine)
    value, gradient = objective.value_and_gradient(model.weights)
    assert value == pytest.approx(by_definition(model, world), rel=1e-6)
    np.testing.assert_allclose(
        gradient, slopes(objective.value_and_gradient, model.weights), rtol=1e-6, atol=1e-7
    )
    assert np.abs(gradient).max() > 0.01


def test_the_loss_is_minus_the_value_and_minus_the_gradient():
    model = table_model(5)
    objective = RelocationLikelihood([training(model, TRUTHS["mixed"])])
    value, gradient = objective.value_and_gradient(model.weights)
    loss, slope = objective.loss(model.weights)
    assert loss == -value > 0
    np.testing.assert_array_equal(slope, -gradient)


@cache
def statistics_of(model):
    """Statistics of a clustering as the reference writes it: a set of clusters with types."""

    def statistics(clustering):
        listed = sorted(clustering, key=lambda pair: min(pair[0]))
        world = Partition.from_clusters([sorted(members) for members, _ in listed])
        typed = Partition.from_labels(
            world.dense_labels(), types=[kind for _, kind in listed], n_types=1 + max(k for _, k in listed)
        )
        return model.statistics(typed).to_dense(model.blocks.size)

    return cache(statistics)


@pytest.mark.parametrize("n_types", [1, 3])
@pytest.mark.parametrize("name", ["everything", "tables"])
def test_compiled_and_plain_conditionals_are_those_of_the_reference(name, n_types):
    n = 14
    model = table_model(n) if name == "tables" else model_of(MODELS[name], n)
    worlds = [random_world(n, n_types, seed, clusters) for seed, clusters in ((1, 3), (2, 12))]
    value, gradient = 0.0, np.zeros(model.blocks.size)
    for world in worlds:
        part, slope = reference.relocation_likelihood(
            statistics_of(model),
            world.dense_labels().tolist(),
            world.dense_types().tolist(),
            n_types,
            model.weights,
        )
        value, gradient = value + part, gradient + slope
    for engine in ENGINES:
        objective = RelocationLikelihood([training(model, world) for world in worlds], engine=engine)
        found, slope = objective.value_and_gradient(model.weights)
        assert found == pytest.approx(value, rel=1e-5)
        np.testing.assert_allclose(slope, gradient, **CLOSE)


@cache
def large(engine):
    model = table_model(60, seed=5, features=40)
    other = table_model(41, seed=6, features=40)
    worlds = [training(model, random_world(60, 1, 3, 14)), training(other, random_world(41, 1, 4, 30))]
    return RelocationLikelihood(worlds, engine=engine)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 30.0))
def test_compiled_and_plain_agree_however_large_the_weights(seed, scale):
    """Far from zero most places weigh nothing, and the largest gain may come at any time."""
    weights = np.random.default_rng(seed).normal(scale=scale, size=large("plain").blocks.size)
    value, gradient = large("compiled").value_and_gradient(weights)
    exact, slope = large("plain").value_and_gradient(weights)
    assert np.isfinite(exact)
    assert value == pytest.approx(exact)
    np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-9)


def test_the_result_does_not_depend_on_threads_or_on_what_was_asked_before():
    worlds = [training(table_model(20, seed), random_world(20, 1, seed, 6)) for seed in range(9)]
    weights = worlds[0].model.weights
    one = RelocationLikelihood(worlds, threads=1)
    value, gradient = one.value_and_gradient(weights)
    one.value_and_gradient(-3.0 * weights)
    for objective in (one, RelocationLikelihood(worlds, threads=3)):
        again, slope = objective.value_and_gradient(weights)
        assert again == value
        np.testing.assert_array_equal(slope, gradient)


def test_truth_and_weights_of_the_models_are_left_alone():
    model = table_model(5)
    truth = TRUTHS["mixed"].copy()
    kept = model.weights.copy()
    for engine in ENGINES:
        RelocationLikelihood([training(model, truth)], engine=engine).fit(max_iterations=2, **TIGHT)
    assert truth == TRUTHS["mixed"]
    np.testing.assert_array_equal(model.weights, kept)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("labels", [[0, 0], [0, 1]])
def test_of_two_items_it_is_twice_the_likelihood(labels, engine):
    worlds = [training(model_of(MODELS["everything"], 2), Partition.from_labels(labels))]
    weights = np.random.default_rng(1).normal(size=worlds[0].model.blocks.size)
    value, gradient = RelocationLikelihood(worlds, engine=engine).value_and_gradient(weights)
    exact, slope = EnumeratedLikelihood(worlds).value_and_gradient(weights)
    assert value == pytest.approx(2 * exact)
    np.testing.assert_allclose(gradient, 2 * slope, atol=1e-6)


def test_of_one_item_nothing_can_be_otherwise():
    world = training(Model([ClusterSize("sizes")]), Partition.singletons(1))
    for engine in ENGINES:
        value, gradient = RelocationLikelihood([world], engine=engine).value_and_gradient(None)
        assert value == 0.0
        assert (gradient == 0.0).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_concave(engine):
    objective = large(engine)
    rng = np.random.default_rng(3)
    for scale in (0.1, 1.0, 10.0):
        first, second = rng.normal(scale=scale, size=(2, objective.blocks.size))
        middle = objective.value_and_gradient((first + second) / 2)[0]
        ends = [objective.value_and_gradient(weights)[0] for weights in (first, second)]
        assert middle > sum(ends) / 2


@pytest.mark.parametrize("n_types", [1, 2])
def test_its_mean_over_the_models_own_worlds_is_stationary_at_the_models_weights(n_types):
    """What makes it consistent: the mean gradient is zero at the weights that made the data."""
    model = model_of(("numbers", "edges", "typed", "sizes"), 4)
    exact = PartitionEnumeration(model, 4, n_types=n_types)
    each = [
        RelocationLikelihood([training(model, world)], engine="plain").value_and_gradient(model.weights)[1]
        for world in exact.worlds
    ]
    assert np.abs(each).max() > 0.1
    np.testing.assert_allclose(exact.probabilities @ each, 0.0, atol=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("n_types", [1, 2])
def test_its_maximum_comes_near_the_weights_that_made_the_data(seed, n_types):
    """The distance to the truth, in units of its asymptotic (sandwich) covariance, is a chi-square.

    With types the weights of the typed template would not be found without the conditionals of types.
    """
    names = ("edges", "sizes") if n_types == 1 else ("edges", "typed")
    model = model_of(names, 4, seed=1)
    exact = PartitionEnumeration(model, 4, n_types=n_types)
    drawn = np.random.default_rng(seed).choice(len(exact.worlds), size=6_000, p=exact.probabilities)
    objective = RelocationLikelihood([training(model, exact.worlds[k]) for k in drawn], engine="plain")
    fitted = objective.fit(**TIGHT).weights
    distinct, counts = np.unique(drawn, return_counts=True)
    each = [
        RelocationLikelihood([training(model, exact.worlds[k])], engine="plain").loss(fitted)[1]
        for k in distinct
    ]
    spread = (np.transpose(each) * counts) @ each
    step = 1e-5 * np.eye(len(fitted))
    curvature = np.array(
        [(objective.loss(fitted + s)[1] - objective.loss(fitted - s)[1]) / 2e-5 for s in step]
    )
    error = curvature @ (fitted - model.weights)
    assert chi2.sf(error @ np.linalg.solve(spread, error), len(fitted)) > FALSE_ALARM
    assert np.abs(fitted - model.weights).max() < 0.4


def test_many_worlds_count_as_their_sum_and_equal_ones_are_looked_at_once():
    model = table_model(6)
    truths = [random_world(6, 1, seed, 3) for seed in (1, 2, 1, 1)]
    worlds = [training(model, truth) for truth in truths] + [training(table_model(6, 9), truths[0])]
    objective = RelocationLikelihood(worlds)
    value, gradient = objective.value_and_gradient(model.weights)
    alone = [RelocationLikelihood([one]).value_and_gradient(model.weights) for one in worlds]
    assert value == pytest.approx(sum(one for one, _ in alone))
    np.testing.assert_allclose(gradient, sum(slope for _, slope in alone), atol=1e-12)
    assert len(objective._terms) == 3


def test_fit_ends_where_the_slope_is_what_the_prior_asks_for():
    worlds = [training(table_model(20, seed), random_world(20, 1, seed, 6)) for seed in range(4)]
    gaussian = RelocationLikelihood(worlds, prior=Prior.gaussian(variance=0.5))
    found = gaussian.fit(**TIGHT)
    assert found.converged
    np.testing.assert_allclose(gaussian.value_and_gradient(found.weights)[1], found.weights / 0.5, atol=1e-5)
    laplace = RelocationLikelihood(worlds, prior=Prior.laplace(scale=0.1))
    weights = laplace.fit(found.weights, **TIGHT).weights
    assert 0 < np.count_nonzero(weights) < len(weights)
    np.testing.assert_allclose(laplace.prior.violation(weights, laplace.loss(weights)[1]), 0.0, atol=1e-4)


def test_fit_finds_the_optimum_of_the_loss_whatever_the_scale_of_the_statistics():
    n = 12
    rng = np.random.default_rng(4)
    pairs = np.argwhere(np.tri(n, n, -1))
    features = rng.normal(size=(len(pairs), 3)) * [1e-3, 1.0, 300.0]
    model = Model([EdgeTemplate("edges", n, pairs, features, ["small", "middle", "large"])])
    worlds = [training(model, random_world(n, 1, seed, 5)) for seed in range(5)]
    prior = Prior.gaussian(variance=4.0)
    objective = RelocationLikelihood(worlds, prior=prior, engine="plain")
    visited = []
    found = objective.fit(np.ones(3), watch=lambda progress: visited.append(progress.weights.copy()), **TIGHT)
    slope = objective.loss(found.weights)[1] + prior.smooth_gradient(found.weights)
    assert found.converged
    np.testing.assert_allclose(slope, 0.0, atol=1e-4)
    np.testing.assert_allclose(visited[-1], found.weights)
    assert found.value == pytest.approx(objective.loss(found.weights)[0] + prior.penalty(found.weights))
    stopped = objective.fit(watch=lambda progress: True, **TIGHT)
    assert stopped.iterations == 1
    assert not stopped.converged


class AtMostTwo(Template):
    """A user's template with a hard constraint: no cluster of three; pairs have a score of their own."""

    name, size = "at most two", 1

    def statistics(self, world):
        return SparseVector.from_dense([world.n_clusters])

    def constant(self, world):
        sizes = [len(members) for members in world.clusters()]
        return -np.inf if max(sizes) > 2 else 0.3 * sizes.count(2)

    def difference(self, world, diff):
        return SparseVector.from_dense([world.after(diff).n_clusters - world.n_clusters])

    def constant_gain(self, world, diff):
        return finite_difference(self.constant(world.after(diff)), self.constant(world))


def test_a_template_of_ones_own_keeps_its_constants_and_what_it_forbids():
    model = Model([AtMostTwo()], [0.7])
    world = training(model, Partition.from_labels([0, 0, 1, 2]))
    with pytest.warns(PlainEngineWarning, match="scores that no weight multiplies"):
        objective = RelocationLikelihood([world])
    value, gradient = objective.value_and_gradient([0.7])
    assert value == pytest.approx(by_definition(model, world.truth))
    np.testing.assert_allclose(gradient, slopes(objective.value_and_gradient, np.array([0.7])), rtol=1e-6)
    with pytest.raises(NoCompiledFormError, match="engine='plain'"):
        RelocationLikelihood([world], engine="compiled")


class Clusters(AtMostTwo):
    """A user's template without constants and without a compiled form."""

    name = "clusters"
    constant, constant_gain = Template.constant, Template.constant_gain


def test_what_has_no_compiled_form_is_taken_plainly_with_a_warning():
    world = training(Model([Clusters()]), Partition.from_labels([0, 0, 1]))
    with pytest.warns(PlainEngineWarning, match=r"'clusters' .* has no program"):
        objective = RelocationLikelihood([world])
    plain = RelocationLikelihood([world], engine="plain")
    assert objective.value_and_gradient([0.4])[0] == plain.value_and_gradient([0.4])[0] < 0
    with pytest.raises(TemplateError, match=r"'clusters' .* has no program"):
        RelocationLikelihood([world], engine="compiled")


def test_a_forbidden_truth_is_refused():
    worlds = [Partition.from_labels([0, 1, 1]), Partition.from_labels([0, 0, 0])]
    with pytest.raises(ImpossibleError, match="world 1 is forbidden by template 'at most two'"):
        RelocationLikelihood([training(Model([AtMostTwo()]), world) for world in worlds], engine="plain")


def test_what_is_no_clustering_or_is_missing_is_refused():
    model = model_of(("sizes",), 3)
    labels = Assignment.initial(Variables([Column.hidden("bit", Domain("bit", ["off", "on"]), 3)]))
    with pytest.raises(InvalidArgumentError, match=r"truth of page 7 is a Assignment.*PseudoLikelihood"):
        RelocationLikelihood([training(model, labels, "page 7")])
    with pytest.raises(InvalidArgumentError, match="world 0 has no truth"):
        RelocationLikelihood([training(model, None)])
    truth = training(model, Partition.singletons(3))
    with pytest.raises(InvalidArgumentError, match="engine must be"):
        RelocationLikelihood([truth], engine="fast")
    with pytest.raises(InvalidArgumentError, match="threads must be at least 1"):
        RelocationLikelihood([truth], threads=0)
