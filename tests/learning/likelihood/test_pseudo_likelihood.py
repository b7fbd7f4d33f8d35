import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

from assignment_cases import BIT, CASES, TAG, all_worlds, exact_distribution, with_random_weights
from factorwise.errors import ImpossibleError, InvalidArgumentError, TemplateError
from factorwise.inference.exact import Enumeration, JunctionTree
from factorwise.learning.likelihood.marginal_likelihood import LogLikelihood, ObservedLabels
from factorwise.learning.likelihood.pseudo_likelihood import PseudoLikelihood
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.labels.custom import DynamicTemplate, TupleTemplate
from factorwise.model.labels.library import (
    Bias,
    SkipEdges,
    Tables,
    Transitions,
    UnaryFeatures,
    WeightedTables,
)
from factorwise.model.model import Model
from factorwise.model.template import Template
from factorwise.model.unrolling import unroll
from factorwise.model.weights import SparseVector
from factorwise.rng import Stream
from factorwise.variables.domain import Domain
from factorwise.variables.features import Features
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment

FALSE_ALARM = 1e-5  # chance that a correct estimate fails the statistical test


def by_definition(model, world):
    """Sum of the log-probability of each hidden label given the others, from whole scores."""
    total = 0.0
    for variable in world.variables.hidden.tolist():
        codes = range(int(world.variables.cardinality[variable]))
        scores = [model.score(world.after(world.relabel([variable], [code]))) for code in codes]
        total += model.score(world) - np.logaddexp.reduce(scores)
    return total


def slopes(objective, weights, step=1e-5):
    """Central differences of the value."""
    moves = np.eye(len(weights)) * step
    return np.array([(objective(weights + m)[0] - objective(weights - m)[0]) / (2 * step) for m in moves])


def possible_worlds(variables, model, count):
    drawn = (Assignment.uniform(variables, seed) for seed in range(100))
    return [world for world in drawn if np.isfinite(model.score(world))][:count]


@pytest.mark.parametrize("name", CASES)
def test_value_is_that_of_the_definition_and_the_gradient_its_slope(name):
    variables, model = CASES[name]()
    worlds = possible_worlds(variables, model, 3)
    objective = PseudoLikelihood(model, worlds)
    value, gradient = objective.value_and_gradient(model.weights)
    assert len(worlds) == 3
    assert value == pytest.approx(sum(by_definition(model, world) for world in worlds), abs=1e-9)
    np.testing.assert_allclose(
        gradient, slopes(objective.value_and_gradient, model.weights), rtol=1e-6, atol=1e-7
    )
    settled = name == "pairs"  # two of four are on: the others settle each label, so nothing is learned
    assert (np.abs(gradient).max() > 0.01) == (not settled)


def test_the_loss_is_minus_the_value_and_minus_the_gradient():
    variables, model = CASES["loop"]()
    objective = PseudoLikelihood(model, [Assignment.initial(variables)])
    value, gradient = objective.value_and_gradient(model.weights)
    loss, slope = objective.loss(model.weights)
    assert loss == -value > 0
    np.testing.assert_array_equal(slope, -gradient)


@pytest.mark.parametrize("together", [True, False])
def test_many_worlds_count_as_their_sum_whether_they_share_variables_or_not(together):
    variables, model = CASES["mixed"]()
    worlds = possible_worlds(variables, model, 6)
    placed = [
        world if together else Assignment(Variables(variables.columns), world.values) for world in worlds
    ]
    value, gradient = PseudoLikelihood(model, placed).value_and_gradient(model.weights)
    alone = [PseudoLikelihood(model, [world]).value_and_gradient(model.weights) for world in worlds]
    assert value == pytest.approx(sum(one for one, _ in alone))
    np.testing.assert_allclose(gradient, sum(slope for _, slope in alone), atol=1e-10)


def test_worlds_may_differ_in_features_and_length_if_each_has_a_model():
    vocabulary = Features.from_rows([["a", "b", "c"]]).vocabulary
    models, worlds = [], []
    for rows, labels in [([["a"], ["b"]], ["N", "V"]), ([["c"], ["a", "c"], ["b"]], ["O", "N", "N"])]:
        tag = Column.hidden("tag", TAG, len(rows))
        models.append(Model([UnaryFeatures(tag, Features.from_rows(rows, vocabulary)), Transitions(tag)]))
        worlds.append(Assignment.from_labels(Variables([tag]), {"tag": labels}))
    weights = np.random.default_rng(5).normal(size=18)
    value, _ = PseudoLikelihood(models, worlds).value_and_gradient(weights)
    exact = 0.0
    for model, world in zip(models, worlds, strict=True):
        model.weights = weights
        exact += by_definition(model, world)
    assert value == pytest.approx(exact)


def test_without_links_between_hidden_variables_it_is_the_likelihood():
    labels = ["N", "V", "O", "O", "N"]
    tag = Column.of("tag", TAG, labels, observed=[False, True, False, True, False])
    variables = Variables([tag, Column.hidden("bit", BIT, 2)])
    features = Features.from_dense(np.random.default_rng(1).normal(size=(5, 3)))
    templates = [UnaryFeatures(tag, features), Transitions(tag), WeightedTables(variables, [[1, 5], [3, 6]])]
    model = with_random_weights(templates, 2)
    worlds = [Assignment.uniform(variables, seed) for seed in range(4)]
    value, gradient = PseudoLikelihood(model, worlds).value_and_gradient(model.weights)
    exact, slope = LogLikelihood(model, worlds, JunctionTree()).value_and_gradient(model.weights)
    assert value == pytest.approx(exact)
    np.testing.assert_allclose(gradient, slope, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_its_mean_over_the_models_own_worlds_is_stationary_at_the_models_weights(name):
    """What makes it consistent: the mean gradient is zero at the weights that made the data.

    True where every hidden label is drawn, so worlds with the evidence of the case are averaged.
    """
    variables, model = CASES[name]()
    worlds = all_worlds(variables)
    chance = exact_distribution(model, worlds, 1.0)
    slope = sum(
        share * PseudoLikelihood(model, [world]).value_and_gradient(model.weights)[1]
        for world, share in zip(worlds, chance, strict=True)
        if share > 0
    )
    np.testing.assert_allclose(slope, 0.0, atol=1e-12)


@pytest.mark.statistical
def test_its_maximum_comes_near_the_weights_that_made_the_data(seed):
    """The distance to the truth, in units of its asymptotic (sandwich) covariance, is a chi-square."""
    bit = Column.hidden("bit", Domain("spin", [-1, 1]), 5)
    variables = Variables([bit])
    pairs = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [1, 3]]
    model = Model(
        [
            TupleTemplate("field", np.arange(5)[:, None], lambda spin: (spin,), ["spin"]),
            SkipEdges(bit, pairs, same_label=True),
        ],
        [0.3, 0.7],
    )
    rows = Enumeration().sample(unroll(model, variables), Stream(seed), 3_000)
    worlds = [Assignment(variables, row) for row in rows]
    objective = PseudoLikelihood(model, worlds)
    fitted = minimize(objective.loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-6}).x
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    each = np.array(
        [PseudoLikelihood(model, [Assignment(variables, row)]).loss(fitted)[1] for row in distinct]
    )
    spread = (each.T * counts) @ each
    step = 1e-5 * np.eye(2)
    curvature = np.array(
        [(objective.loss(fitted + s)[1] - objective.loss(fitted - s)[1]) / 2e-5 for s in step]
    )
    error = curvature @ (fitted - model.weights)
    assert chi2.sf(error @ np.linalg.solve(spread, error), 2) > FALSE_ALARM
    assert np.abs(fitted - model.weights).max() < 0.2


def test_it_needs_no_tractable_graph():
    """A grid of 2,500 variables with a count over all of them, which no oracle could unroll."""
    side = 50
    number = np.arange(side * side).reshape(side, side)
    pairs = np.vstack(
        [
            np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
            np.column_stack([number[:-1].ravel(), number[1:].ravel()]),
        ]
    )
    tag = Column.hidden("tag", TAG, side * side)
    share = np.arange(side * side + 1) / side
    templates = [Bias(tag), SkipEdges(tag, pairs), Cardinality(tag, "V", statistics_of=np.sin(share))]
    model = with_random_weights(templates, 4)
    objective = PseudoLikelihood(model, [Assignment.uniform(Variables([tag]), 5)])
    _, gradient = objective.value_and_gradient(model.weights)
    np.testing.assert_allclose(
        gradient, slopes(objective.value_and_gradient, model.weights), rtol=1e-5, atol=1e-4
    )


class Stray(Template):
    """A template whose statistics lie outside its block."""

    name, size = "stray", 1

    def difference(self, world, diff):
        return SparseVector.of([3], [1.0])


class Rivals(Template):
    """A user's template that knows whole worlds only: equal neighbors count, and three are forbidden."""

    name, size = "rivals", 1

    def statistics(self, world):
        return SparseVector.from_dense([np.sum(world.values[1:] == world.values[:-1])])

    def difference(self, world, diff):
        after, before = self.statistics(world.after(diff)), self.statistics(world)
        return SparseVector.sum([after, before.scaled(-1.0)])

    def constant(self, world):
        return -np.inf if np.ptp(world.values) == 0 else 0.5 * float(world.values[0])

    def constant_gain(self, world, diff):
        return self.constant(world.after(diff)) - self.constant(world)


def test_a_template_of_ones_own_keeps_its_constants():
    tag = Column.hidden("tag", TAG, 3)
    variables = Variables([tag])
    model = with_random_weights([Bias(tag), Rivals()], 6)
    worlds = [Assignment(variables, codes) for codes in ([1, 1, 0], [2, 0, 2], [0, 0, 1])]
    objective = PseudoLikelihood(model, worlds)
    value, gradient = objective.value_and_gradient(model.weights)
    assert value == pytest.approx(sum(by_definition(model, world) for world in worlds))
    np.testing.assert_allclose(gradient, slopes(objective.value_and_gradient, model.weights), atol=1e-7)


def hidden_tags(*templates):
    tag = Column.hidden("tag", TAG, 2)
    variables = Variables([tag])
    return Model([Bias(tag), *templates]), variables


def test_a_forbidden_truth_is_refused():
    model, variables = hidden_tags()
    never = Tables(variables, [[0, 1]], np.where(np.eye(3, dtype=bool), -np.inf, 0.0))
    with pytest.raises(ImpossibleError, match="world 1 is forbidden by template 'tables'"):
        PseudoLikelihood(
            Model([*model.templates, never]), [Assignment(variables, [0, 1]), Assignment(variables, [2, 2])]
        )


def test_a_missing_label_is_named_with_a_remedy():
    model, variables = hidden_tags()
    truth = ObservedLabels.from_labels(variables, {"tag": ["N", None]})
    with pytest.raises(InvalidArgumentError, match=r"row 1 of column 'tag' in world 0 .*LogLikelihood"):
        PseudoLikelihood(model, [truth])
    complete = ObservedLabels.from_labels(variables, {"tag": ["N", "V"]})
    assert PseudoLikelihood(model, [complete]).value_and_gradient(np.zeros(3))[0] == pytest.approx(
        -2 * np.log(3)
    )


def test_statistics_outside_a_templates_block_are_refused():
    model, variables = hidden_tags(Stray())
    with pytest.raises(TemplateError, match="'stray' has 1 weights, but its difference reached"):
        PseudoLikelihood(model, [Assignment(variables, [0, 1])])


def test_variables_with_a_single_label_cost_nothing():
    only = Column.hidden("only", Domain("only", ["x"]), 2)
    value, gradient = PseudoLikelihood(
        Model([Bias(only)]), [Assignment.initial(Variables([only]))]
    ).value_and_gradient([3.0])
    assert value == 0.0
    assert gradient.tolist() == [0.0]


def test_a_template_that_never_speaks_has_no_gradient():
    silent = DynamicTemplate("silent", lambda values, variable, out: 0, lambda values, key: (1.0,), ["one"])
    model, variables = hidden_tags(silent)
    _, gradient = PseudoLikelihood(model, [Assignment(variables, [0, 1])]).value_and_gradient(np.zeros(4))
    assert gradient[3] == 0.0
