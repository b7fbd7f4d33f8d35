import numpy as np
import pytest
from scipy.optimize import minimize

from assignment_cases import BIT, STATIC, TAG, all_worlds, runs, with_random_weights
from factorwise.errors import (
    ImpossibleError,
    InvalidArgumentError,
    ShapeError,
    TemplateError,
    UnknownLabelError,
    WeightError,
)
from factorwise.inference.exact import ChainOracle, Enumeration, JunctionTree, TreeOracle
from factorwise.inference.message_passing import BeliefPropagation, TreeReweighted
from factorwise.learning.likelihood.marginal_likelihood import (
    LogLikelihood,
    ObservedLabels,
    expected_statistics,
)
from factorwise.model.labels.base import ScopedTemplate, TableGroup
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.labels.custom import TupleTemplate
from factorwise.model.labels.library import (
    Bias,
    FeatureTransitions,
    SkipEdges,
    Tables,
    Transitions,
    UnaryFeatures,
    WeightedTables,
)
from factorwise.model.model import Model
from factorwise.model.unrolling import unroll
from factorwise.rng import Stream
from factorwise.variables.features import Features
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from factorwise.world.partition import Partition

CONVERGED = {"tolerance": 1e-12, "max_iterations": 2_000}
GRID = [[0, 1], [1, 2], [3, 4], [4, 5], [0, 3], [1, 4], [2, 5]]


def slopes(objective, weights, step=1e-5):
    """Central differences of the value."""
    moves = np.eye(len(weights)) * step
    return np.array([(objective(weights + m)[0] - objective(weights - m)[0]) / (2 * step) for m in moves])


def log_total(model, worlds):
    return np.logaddexp.reduce([model.score(world) for world in worlds])


def mean_statistics(model, worlds):
    """Statistics averaged over all worlds by their probability."""
    scores = np.array([model.score(world) for world in worlds])
    chance = np.exp(scores - np.logaddexp.reduce(scores))
    return chance @ [model.statistics(world).to_dense(model.blocks.size) for world in worlds]


def possible_world(variables, model, seed=0):
    """A world that the model does not forbid."""
    return next(
        world
        for world in (Assignment.uniform(variables, 100 * seed + attempt) for attempt in range(100))
        if np.isfinite(model.score(world))
    )


def tree():
    """Two chains and a star of pairs, tied and untied, with an observed variable."""
    tag = Column.of("tag", TAG, ["N", "V", "O", "N", "V"], observed=[False, False, True, False, False])
    bit = Column.hidden("bit", BIT, 2)
    variables = Variables([tag, bit])
    features = Features.from_dense(np.random.default_rng(3).normal(size=(5, 2)))
    templates = [
        UnaryFeatures(tag, features),
        Transitions(tag, pairs=[[0, 1], [1, 2]]),
        WeightedTables(variables, [[3, 1]], name="one"),
        WeightedTables(variables, [[1, 4]], name="other"),
        WeightedTables(variables, [[4, 5], [3, 6]], name="across"),
    ]
    return variables, with_random_weights(templates, 9)


def chain():
    """Two sequences with features of their links."""
    tag = Column.hidden("tag", TAG, 5)
    variables = Variables([tag])
    links = Features.from_rows([["a"], {"a": 0.5, "b": -1.0}, ["b"]])
    templates = [
        Bias(tag),
        Transitions(tag, chains=[0, 2, 5]),
        FeatureTransitions(tag, links, chains=[0, 2, 5]),
    ]
    return variables, with_random_weights(templates, 10)


def grid(scale=0.5):
    """A grid of two loops, with weak enough links for messages to converge."""
    bit = Column.hidden("bit", BIT, 6)
    variables = Variables([bit])
    model = with_random_weights(
        [Bias(bit), Transitions(bit, pairs=GRID), SkipEdges(bit, [[0, 5]], same_label=True)], 11
    )
    model.weights *= scale
    return variables, model


CASES = STATIC | {"tree": tree, "chain": chain, "grid": grid}


@pytest.mark.parametrize("oracle", [Enumeration(), JunctionTree()], ids=lambda oracle: type(oracle).__name__)
@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient_are_those_of_the_definition(name, oracle):
    variables, model = CASES[name]()
    world = possible_world(variables, model)
    value, gradient = LogLikelihood(model, [world], oracle).value_and_gradient(model.weights)
    worlds = all_worlds(variables)
    assert value == pytest.approx(model.score(world) - log_total(model, worlds), abs=1e-10)
    truth = model.statistics(world).to_dense(model.blocks.size)
    np.testing.assert_allclose(gradient, truth - mean_statistics(model, worlds), atol=1e-10)


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        *((name, Enumeration()) for name in CASES),
        *((name, JunctionTree()) for name in CASES),
        *(("tree", oracle) for oracle in (TreeOracle(), BeliefPropagation(), TreeReweighted())),
        *(("chain", oracle) for oracle in (ChainOracle(), TreeOracle(), BeliefPropagation())),
        ("grid", BeliefPropagation(**CONVERGED)),
        ("grid", TreeReweighted(**CONVERGED)),
        ("loop", BeliefPropagation(**CONVERGED)),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_the_gradient_is_the_slope_of_the_value(name, oracle):
    variables, model = CASES[name]()
    worlds = [possible_world(variables, model, seed) for seed in range(3)]
    objective = LogLikelihood(model, worlds, oracle)
    found = objective.evaluate(model.weights)
    assert found.unconverged == 0
    np.testing.assert_allclose(
        found.gradient, slopes(objective.value_and_gradient, model.weights), rtol=1e-6, atol=1e-6
    )
    assert np.abs(found.gradient).max() > 0.01


@pytest.mark.parametrize("oracle", [TreeOracle(), BeliefPropagation(), TreeReweighted(), JunctionTree()])
def test_on_a_tree_every_oracle_gives_the_same(oracle):
    variables, model = tree()
    worlds = [possible_world(variables, model, seed) for seed in range(3)]
    value, gradient = LogLikelihood(model, worlds, oracle).value_and_gradient(model.weights)
    exact, slope = LogLikelihood(model, worlds, Enumeration()).value_and_gradient(model.weights)
    assert value == pytest.approx(exact, abs=1e-7)
    np.testing.assert_allclose(gradient, slope, atol=1e-6)


@pytest.mark.parametrize("scale", [0.2, 1.0, 2.0])
def test_tree_reweighted_messages_bound_the_likelihood_from_below(scale):
    variables, model = grid(scale)
    world = possible_world(variables, model)
    bound = LogLikelihood(model, [world], TreeReweighted(**CONVERGED, damping=0.3)).evaluate(model.weights)
    exact, _ = LogLikelihood(model, [world], JunctionTree()).value_and_gradient(model.weights)
    assert bound.unconverged == 0
    assert bound.value < exact - 1e-6


def test_calls_of_the_oracle_that_did_not_converge_are_counted():
    variables, model = grid(2.0)
    worlds = [possible_world(variables, model)]
    hasty = LogLikelihood(model, worlds, BeliefPropagation(max_iterations=1, schedule="parallel"))
    assert hasty.evaluate(model.weights).unconverged == 1


def test_the_loss_is_minus_the_value_and_minus_the_gradient():
    variables, model = grid()
    objective = LogLikelihood(model, [possible_world(variables, model)], JunctionTree())
    value, gradient = objective.value_and_gradient(model.weights)
    loss, slope = objective.loss(model.weights)
    assert loss == -value > 0
    np.testing.assert_array_equal(slope, -gradient)


def test_the_models_own_weights_are_left_alone():
    variables, model = grid()
    before = model.weights.copy()
    objective = LogLikelihood(model, [possible_world(variables, model)], JunctionTree())
    at_zero = objective.value_and_gradient(np.zeros_like(before))[0]
    assert at_zero == pytest.approx(-6 * np.log(2))
    np.testing.assert_array_equal(model.weights, before)


class Counting:
    """An oracle that counts how often it is asked."""

    def __init__(self):
        self.calls = 0

    def marginals(self, graph):
        self.calls += 1
        return JunctionTree().marginals(graph)


@pytest.mark.parametrize("same_object", [True, False])
def test_worlds_without_evidence_share_one_partition_function(same_object):
    variables, model = grid()
    sampled = Enumeration().sample(unroll(model, variables), Stream(1), 40)
    places = [variables if same_object else Variables(variables.columns) for _ in sampled]
    worlds = [Assignment(place, row) for place, row in zip(places, sampled, strict=True)]
    counting = Counting()
    objective = LogLikelihood(model, worlds, counting)
    value, gradient = objective.value_and_gradient(model.weights)
    assert counting.calls == objective.n_oracle_calls == 1
    apart = [LogLikelihood(model, [world], JunctionTree()).evaluate(model.weights) for world in worlds]
    assert value == pytest.approx(sum(one.value for one in apart))
    np.testing.assert_allclose(gradient, sum(one.gradient for one in apart), atol=1e-9)


def test_worlds_with_evidence_of_their_own_have_partition_functions_of_their_own():
    labels = [["N", "V", "O"], ["N", "O", "O"], ["N", "V", "V"]]
    columns = [Column.of("tag", TAG, row, observed=[False, True, False]) for row in labels]
    model = with_random_weights([Bias(columns[0]), Transitions(columns[0])], 2)
    worlds = [
        Assignment.from_labels(Variables([column]), {"tag": row})
        for column, row in zip(columns, labels, strict=True)
    ]
    objective = LogLikelihood(model, worlds, ChainOracle())
    assert objective.n_oracle_calls == 2  # the middle label is V, O, and V again
    exact = sum(model.score(world) - log_total(model, all_worlds(world.variables)) for world in worlds)
    assert objective.value_and_gradient(model.weights)[0] == pytest.approx(exact)


def test_worlds_may_differ_in_features_and_length_if_each_has_a_model():
    vocabulary = Features.from_rows([["a", "b", "c"]]).vocabulary
    models, worlds = [], []
    for rows, labels in [([["a"], ["b"]], ["N", "V"]), ([["c"], ["a", "c"], ["b"]], ["O", "N", "N"])]:
        tag = Column.hidden("tag", TAG, len(rows))
        models.append(Model([UnaryFeatures(tag, Features.from_rows(rows, vocabulary)), Transitions(tag)]))
        worlds.append(Assignment.from_labels(Variables([tag]), {"tag": labels}))
    weights = np.random.default_rng(5).normal(size=18)
    value, gradient = LogLikelihood(models, worlds, ChainOracle()).value_and_gradient(weights)
    alone = [
        LogLikelihood(model, [world], Enumeration()).evaluate(weights)
        for model, world in zip(models, worlds, strict=True)
    ]
    assert value == pytest.approx(sum(one.value for one in alone))
    np.testing.assert_allclose(gradient, sum(one.gradient for one in alone), atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_what_is_unknown_is_summed_over(name):
    variables, model = CASES[name]()
    worlds = [possible_world(variables, model, seed) for seed in range(3)]
    rng = np.random.default_rng(6)
    truths = []
    for world in worlds:
        known = rng.random(len(variables)) < 0.5
        known[rng.choice(variables.hidden, 2, replace=False)] = [True, False]
        truths.append(ObservedLabels(world, known))
    objective = LogLikelihood(model, [*truths, worlds[0]], JunctionTree())
    every, total = all_worlds(variables), 0.0
    for truth in truths:
        fixed = truth.known | variables.observed
        agreeing = [w for w in every if (w.values == truth.world.values)[fixed].all()]
        total += log_total(model, agreeing) - log_total(model, every)
    total += model.score(worlds[0]) - log_total(model, every)
    value, gradient = objective.value_and_gradient(model.weights)
    assert value == pytest.approx(total, abs=1e-10)
    np.testing.assert_allclose(
        gradient, slopes(objective.value_and_gradient, model.weights), rtol=1e-6, atol=1e-6
    )


def test_a_truth_is_read_from_labels_with_gaps():
    tag = Column.of("tag", TAG, ["N", "V", "O"], observed=[False, True, False])
    bit = Column.hidden("bit", BIT, 2)
    variables = Variables([tag, bit])
    truth = ObservedLabels.from_labels(variables, {"tag": [None, "V", "O"]})
    assert truth.known.tolist() == [False, True, True, False, False]
    assert truth.world.values[1:3].tolist() == [1, 2]
    assert ObservedLabels.from_labels(variables, {"bit": ["on", None]}).known.tolist() == [0, 1, 0, 1, 0]


def test_the_fitted_network_has_the_marginals_of_the_data():
    """A chain of untied tables is saturated on its pairs, so their marginals are the observed shares."""
    tag = Column.hidden("tag", TAG, 3)
    variables = Variables([tag])
    model = Model([WeightedTables(variables, [pair], name=str(pair)) for pair in ([0, 1], [1, 2])])
    rows = np.random.default_rng(8).integers(0, 3, size=(60, 3))
    rows[:30, 1] = rows[:30, 0]
    objective = LogLikelihood(model, [Assignment(variables, row) for row in rows], TreeOracle())
    fitted = minimize(objective.loss, np.zeros(18), jac=True, method="L-BFGS-B", options={"gtol": 1e-9})
    model.weights = fitted.x
    found = TreeOracle().marginals(unroll(model, variables)).factor
    for joint, (first, second) in zip(found, [(0, 1), (1, 2)], strict=True):
        shares = np.zeros((3, 3))
        np.add.at(shares, (rows[:, first], rows[:, second]), 1 / len(rows))
        np.testing.assert_allclose(joint, shares, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_expected_statistics_are_the_mean_over_all_worlds(name):
    variables, model = CASES[name]()
    found = expected_statistics(model, variables, Enumeration().marginals(unroll(model, variables)).factor)
    np.testing.assert_allclose(found, mean_statistics(model, all_worlds(variables)), atol=1e-10)


def scoped_templates():
    for name, case in CASES.items():
        variables, model = case()
        for template in model.templates:
            if isinstance(template, ScopedTemplate) and template.size:
                yield pytest.param(template, variables, id=f"{name}: {template.name}")


@pytest.mark.parametrize(("template", "variables"), list(scoped_templates()))
@pytest.mark.parametrize("fallback", [False, True])
def test_the_adjoint_is_the_transpose_of_the_tables(template, variables, fallback):
    rng = np.random.default_rng(12)
    weights = rng.normal(size=template.size)
    groups = [group.tables for group in template.tables(variables, weights)]
    arrays = [rng.normal(size=group.shape) for group in groups]
    adjoint = ScopedTemplate.adjoint if fallback else type(template).adjoint
    found = adjoint(template, variables, arrays).to_dense(template.size)
    forward = sum(float((a * g).sum()) for a, g in zip(arrays, groups, strict=True))
    assert found @ weights == pytest.approx(forward)


@pytest.mark.parametrize("width", [3, 40])
def test_features_are_added_up_alike_whether_most_of_them_occur_or_few(width):
    """The wide vocabulary takes the path that writes no zeros."""
    rng = np.random.default_rng(13)
    dense = np.zeros((4, width))
    dense[[0, 1, 1, 3], [2, 0, 2, 1]] = rng.normal(size=4)
    tag = Column.hidden("tag", TAG, 4)
    template = UnaryFeatures(tag, Features.from_dense(dense))
    beliefs = rng.dirichlet(np.ones(3), size=4)
    found = template.expected(Variables([tag]), list(beliefs)).to_dense(template.size)
    np.testing.assert_allclose(found, (dense.T @ beliefs).ravel(), atol=1e-14)


def test_factors_that_share_one_of_several_tables_are_added_up():
    """A function without data has one table per combination of columns, here three with several factors."""
    variables = Variables([Column.hidden("left", BIT, 3), Column.hidden("right", BIT, 3)])
    scopes = [[0, 1], [3, 4], [1, 2], [0, 3], [4, 5], [1, 4], [2, 5]]
    both = TupleTemplate("both", scopes, lambda a, b: (float(a == b), float(a == "on")), ["same", "first on"])
    model = with_random_weights([both], 16)
    (group,) = both.tables(variables, model.weights)
    assert 1 < len(group.tables) < len(group.scopes)
    found = expected_statistics(model, variables, Enumeration().marginals(unroll(model, variables)).factor)
    np.testing.assert_allclose(found, mean_statistics(model, all_worlds(variables)), atol=1e-10)


class Halves(ScopedTemplate):
    """A user's template that says its tables only; off before off is forbidden."""

    name, size = "halves", 2

    def __init__(self, scopes):
        self.scopes = np.asarray(scopes)

    def entries(self, variables, factors, labels):
        index = np.tile([0, 1], len(labels))
        return index, np.stack([labels[:, 0] / 2, labels[:, 1] - labels[:, 0] / 2], axis=1).ravel()

    def constants(self, factors, labels):
        return np.where((labels == 0).all(axis=1), -np.inf, 0.25)

    def tables(self, variables, weights):
        first, second = np.indices((2, 2))
        table = weights[0] * first / 2 + weights[1] * (second - first / 2) + 0.25
        table[0, 0] = -np.inf
        yield TableGroup(self.scopes, np.zeros(len(self.scopes), dtype=np.int64), table.reshape(1, -1))


def test_a_template_of_ones_own_needs_no_adjoint():
    bit = Column.hidden("bit", BIT, 4)
    variables = Variables([bit])
    model = with_random_weights([Bias(bit), Halves([[0, 1], [1, 2], [0, 2], [2, 3]])], 14)
    world = Assignment(variables, [1, 1, 0, 1])
    objective = LogLikelihood(model, [world], JunctionTree())
    value, gradient = objective.value_and_gradient(model.weights)
    assert value == pytest.approx(model.score(world) - log_total(model, all_worlds(variables)))
    np.testing.assert_allclose(gradient, slopes(objective.value_and_gradient, model.weights), atol=1e-7)


class Forgetful(Halves):
    """Its tables leave a scope out."""

    def tables(self, variables, weights):
        for group in super().tables(variables, weights):
            yield TableGroup(group.scopes[1:], group.which[1:], group.tables)


def test_a_users_function_is_not_called_again_for_new_weights():
    bit = Column.hidden("bit", BIT, 3)
    calls = []

    def agree(first, second):
        calls.append(1)
        return (float(first == second),)

    template = TupleTemplate("agree", [[0, 1], [1, 2]], agree, ["same"])
    objective = LogLikelihood(Model([template]), [Assignment(Variables([bit]), [0, 0, 1])], TreeOracle())
    objective.value_and_gradient([0.5])
    first = len(calls)
    objective.value_and_gradient([1.5])
    assert len(calls) == first


def observed_world():
    tag = Column.of("tag", TAG, ["N", "V"])
    return Model([Transitions(tag)]), [Assignment.initial(Variables([tag]))]


def small(labels=(0, 1), **truth):
    tag = Column.hidden("tag", TAG, 2)
    world = Assignment(Variables([tag]), labels)
    return Model([Transitions(tag)]), [ObservedLabels(world, **truth) if truth else world]


def forbidden_truth():
    tag = Column.hidden("tag", TAG, 2)
    variables = Variables([tag])
    never = np.where(np.eye(3, dtype=bool), -np.inf, 0.0)
    return Model([Bias(tag), Tables(variables, [[0, 1]], never)]), [Assignment(variables, [1, 1])]


def two_models():
    (model, worlds), other = small(), Column.hidden("tag", TAG, 2)
    return [model, Model([Bias(other)])], worlds * 2


def forgetful():
    bit = Column.hidden("bit", BIT, 2)
    return Model([Halves([[0, 1]]), forgetting([[0, 1]])]), [Assignment(Variables([bit]), [1, 1])]


def forgetting(scopes):
    template = Forgetful(scopes)
    template.name = "forgetful"
    return template


def dynamic():
    variables, model = runs()
    return model, [Assignment.initial(variables)]


BAD = {
    "no worlds": (lambda: (small()[0], []), InvalidArgumentError, "at least one"),
    "one bare world": (lambda: (small()[0], small()[1][0]), InvalidArgumentError, r"\[world, ...\]"),
    "nothing hidden": (observed_world, InvalidArgumentError, r"no hidden variables.*Column\.hidden"),
    "nothing known": (
        lambda: small(known=np.zeros(2, dtype=bool)),
        InvalidArgumentError,
        "no label of world 0 is known.*leave it out",
    ),
    "a mask of the wrong length": (
        lambda: small(known=np.ones(3, dtype=bool)),
        ShapeError,
        r"2 variables: give one bool for each, or use ObservedLabels\.from_labels",
    ),
    "a mask of numbers": (lambda: small(known=np.ones(2)), ShapeError, "known of world 0 is float64"),
    "a clustering": (
        lambda: (small()[0], [Partition.singletons(3)]),
        InvalidArgumentError,
        "world 0 is a Partition.*give an Assignment",
    ),
    "a truth of probability zero": (
        forbidden_truth,
        ImpossibleError,
        "world 0 is forbidden by template 'tables'.*fix its labels",
    ),
    "models of different weights": (two_models, InvalidArgumentError, "build all models from the same"),
    "too few models": (
        lambda: ([small()[0]], small()[1] * 2),
        ShapeError,
        "1 models were given for 2 worlds",
    ),
    "factors that depend on labels": (
        dynamic,
        InvalidArgumentError,
        "'runs' .* cannot be unrolled.*train with PseudoLikelihood",
    ),
    "tables that leave a scope out": (
        forgetful,
        TemplateError,
        r"\[1, 1\] scopes, but unroll into 1 factors.*name each of its scopes once",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_training_data_are_refused_with_a_remedy(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        LogLikelihood(*build(), JunctionTree())


def test_weights_of_the_wrong_number_are_refused():
    with pytest.raises(WeightError, match=r"9 weights .* but 2 were given"):
        LogLikelihood(*small(), ChainOracle()).value_and_gradient([1.0, 2.0])


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ({"tag": ["N"]}, ShapeError, "2 rows, but 1 labels were given.*None if it is unknown"),
        ({"tag": ["N", "X"]}, UnknownLabelError, "domain.extended"),
        ({"word": ["N", "V"]}, InvalidArgumentError, "no column is called 'word'"),
    ],
)
def test_bad_labels_of_a_truth_are_refused_with_a_remedy(labels, error, message):
    with pytest.raises(error, match=message):
        ObservedLabels.from_labels(Variables([Column.hidden("tag", TAG, 2)]), labels)


def test_counts_in_groups_of_several_sizes_are_added_up():
    tag = Column.hidden("tag", TAG, 5)
    variables = Variables([tag])
    counts = Cardinality(tag, "V", [[0, 1, 2], [3], [2, 3, 4], [1, 4]], statistics_of=lambda n: (n, n * n))
    model = with_random_weights([counts, Transitions(tag)], 15)
    objective = LogLikelihood(model, [Assignment(variables, [0, 1, 1, 2, 1])], JunctionTree())
    _, gradient = objective.value_and_gradient(model.weights)
    np.testing.assert_allclose(gradient, slopes(objective.value_and_gradient, model.weights), atol=1e-7)
