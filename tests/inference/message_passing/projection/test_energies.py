"""Energies, their gradients in everything, and what they refuse."""

import sys

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import approx_fprime

from factorwise.errors import (
    CountsError,
    EnergyError,
    InvalidArgumentError,
    MissingExtraError,
    ShapeError,
    WeightError,
)
from factorwise.inference.message_passing.projection import (
    ChainBase,
    CouplingEnergy,
    FeatureWeights,
    GraphBase,
    Layout,
    MeasuredEnergy,
    Measurement,
    NearestEnergy,
    RandomFourierMeanMap,
    SumEnergy,
    UserEnergy,
    gaussian_counts,
    hinge,
    huber,
    multinomial_counts,
    nonnegative,
    poisson_counts,
    project,
    squared,
)
from projection_cases import chain, energy, tree

KINDS = [
    "hinge",
    "smoothed hinge",
    "absolute",
    "squared on edges",
    "huber",
    "poisson",
    "multinomial",
    "mixed",
]


def every_energy(base):
    layout = base.layout
    random = np.random.default_rng(7)
    found = {kind: energy(kind, base, 4) for kind in KINDS}
    nodes = Measurement.identity(layout.node_size)
    found["nearest"] = NearestEnergy(nodes, random.random((3, layout.node_size)), 1.7)
    found["smoothed nearest"] = NearestEnergy(nodes, random.random((3, layout.node_size)), -0.6, width=0.3)
    pairs = [((0, 2), random.normal(size=(3, 3))), ((1, 0, 2), random.normal(size=(3, 3, 3)))]
    found["coupling"] = CouplingEnergy(layout, pairs, [1.2, -0.4])
    found["user"] = UserEnergy(
        nodes,
        lambda a, w: w[0] * (a**3).sum() + w[1] * np.sin(a[0]),
        lambda a, w: 3 * w[0] * a**2 + w[1] * np.cos(a[0]) * (np.arange(len(a)) == 0),
        weights=[0.8, 2.0],
        weight_gradient=lambda a, w: np.array([(a**3).sum(), np.sin(a[0])]),
        weight_gradient_along=lambda a, w, d: np.array([3 * a**2 @ d, np.cos(a[0]) * d[0]]),
    )
    found["gaussian"] = gaussian_counts(random.poisson(4.0, layout.node_size), population=12.0, variance=2.0)
    found["sum"] = SumEnergy(found["squared on edges"], found["coupling"], found["user"])
    return found


BASE = chain(2)
EVERY = every_energy(BASE)
MARGINALS = BASE.marginals(np.random.default_rng(9).normal(size=BASE.layout.node_size))


@pytest.mark.parametrize("name", EVERY)
def test_gradients_in_marginals_are_derivatives(name):
    chosen = EVERY[name]
    read = MARGINALS[: chosen.measurement.size]
    directions = 1e-6 * np.eye(len(read))
    expected = [(chosen.value(read + d) - chosen.value(read - d)) / 2e-6 for d in directions]
    np.testing.assert_allclose(chosen.gradient(read), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_gradients_in_weights_are_derivatives(name):
    chosen = EVERY[name]
    direction = np.random.default_rng(3).normal(size=BASE.layout.size)

    def value(weights):
        return chosen.with_weights(weights).value(MARGINALS)

    def along(weights):
        slope = chosen.with_weights(weights).gradient(MARGINALS)
        return slope @ direction[: len(slope)]

    numbers = chosen.weights + 0.01
    expected = approx_fprime(numbers, value, 1e-6)
    moved = chosen.with_weights(numbers)
    np.testing.assert_allclose(moved.weight_gradient(MARGINALS), expected, atol=1e-5)
    expected = approx_fprime(numbers, along, 1e-6)
    np.testing.assert_allclose(moved.cross_gradient(MARGINALS, direction), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["smoothed hinge", "squared on edges", "huber", "poisson", "gaussian"])
def test_second_derivatives_are_derivatives(name):
    chosen = EVERY[name]
    measured = chosen.measurement.apply(MARGINALS)
    direction = np.random.default_rng(3).normal(size=len(measured))
    step = 1e-6
    slopes = [chosen.slope_of(measured + side * step * direction) for side in (1, -1)]
    expected = (slopes[0] - slopes[1]) / (2 * step)
    np.testing.assert_allclose(chosen.curvature_times(measured, direction), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["hinge", "squared on edges", "poisson"])
def test_the_optimum_moves_with_scores_and_weights_as_the_gradients_say(name):
    """By the envelope theorem: minus the marginals, and the energy's own gradient."""
    chosen = energy(name, BASE, 4)
    found = project(BASE, chosen, tolerance=1e-13)

    def least(scores, weights):
        node, edge = scores[:9].reshape(3, 3), scores[9:].reshape(2, 3, 3)
        found = project(ChainBase(node, edge), chosen.with_weights(weights), tolerance=1e-13)
        return found.objective - found.gap  # the bound: at a kink it is closer to the optimum

    theta = BASE.scores(np.zeros(9))
    by_score = approx_fprime(theta, lambda scores: least(scores, chosen.weights), 1e-5)
    np.testing.assert_allclose(by_score, -found.marginals, atol=1e-4)
    by_weight = approx_fprime(chosen.weights, lambda weights: least(theta, weights), 1e-5)
    np.testing.assert_allclose(by_weight, chosen.weight_gradient(found.marginals), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["squared on edges", "poisson", "coupling", "smoothed nearest", "user"])
def test_likelihood_with_marginals_held_fixed_has_the_gradient_that_learning_uses(name):
    chosen = EVERY[name]
    truth = np.zeros(BASE.layout.size)
    for place, label in enumerate([2, 0, 1]):
        truth[BASE.layout.node(place, label)] = 1.0
    truth[BASE.layout.factor(0, (2, 0))] = truth[BASE.layout.factor(1, (0, 1))] = 1.0

    def log_likelihood(weights):
        shift = chosen.with_weights(weights).gradient(MARGINALS)
        return BASE.scores(shift) @ truth - BASE.answer(shift).log_partition

    at = chosen.weights + 0.01
    now = chosen.with_weights(at)
    expected = approx_fprime(at, log_likelihood, 1e-6)
    difference = truth - BASE.marginals(now.gradient(MARGINALS))
    np.testing.assert_allclose(-now.cross_gradient(MARGINALS, difference), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("sign", [True, False])
def test_gradients_reach_the_features_that_weights_depend_on(sign):
    random = np.random.default_rng(5)
    mean_map = RandomFourierMeanMap.draw(4, rows=6, length=2.0, seed=1)
    features = mean_map.features(random.normal(size=(5, 4)))
    chosen = EVERY["squared on edges"]
    coefficients = random.normal(size=(len(chosen.weights), len(features)))
    coefficients[:2, 0] += 5.0  # two weights above zero for certain

    def value(flat):
        weights = FeatureWeights(flat.reshape(coefficients.shape), nonnegative=sign).at(features)
        measured = chosen.measurement.apply(MARGINALS)
        return weights @ chosen.losses.value(measured)

    own = FeatureWeights(coefficients, nonnegative=sign)
    found = own.gradient(features, chosen.weight_gradient(MARGINALS))
    expected = approx_fprime(coefficients.ravel(), value, 1e-6).reshape(coefficients.shape)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (own.at(features) >= 0).all() or not sign


def test_random_fourier_features_stand_for_their_kernel():
    random = np.random.default_rng(0)
    one, other = random.normal(size=(3, 2)), random.normal(size=(4, 2))
    mean_map = RandomFourierMeanMap.draw(2, rows=200_000, length=1.5, seed=3)
    found = mean_map.features(one)[1:] @ mean_map.features(other)[1:]
    distance = ((one[:, None] - other) ** 2).sum(axis=-1)
    # each of the features is bounded by 2 in the product: five standard errors are 5 * 2 / sqrt(200,000)
    assert found == pytest.approx(np.exp(-distance / (2 * 1.5**2)).mean(), abs=0.023)
    assert mean_map.features(one)[0] == 1.0
    with pytest.raises(ShapeError, match="give one row of 2 numbers"):
        mean_map.features(np.zeros((3, 5)))


def test_nearest_counts_the_first_of_the_nearest_targets():
    nearest = NearestEnergy(Measurement.identity(2), [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]], 2.0)
    assert nearest.nearest(np.array([0.9, 0.2])) == 1
    assert nearest.value(np.array([0.9, 0.2])) == pytest.approx(2.0 * 0.3)
    assert nearest.slope_of(np.array([0.9, 0.2])) == pytest.approx([-2.0, 2.0])


def test_coupling_is_the_expected_score_of_independent_variables():
    layout = tree(0).layout
    table = np.random.default_rng(1).normal(size=(3, 2))
    coupling = CouplingEnergy(layout, [((1, 3), table)])
    marginals = tree(0).marginals(np.zeros(9))
    node, _ = layout.split(marginals)
    assert coupling.value(marginals) == pytest.approx(-node[1] @ table @ node[3])


@pytest.mark.parametrize(
    ("factors", "weights", "error", "message"),
    [
        ([((1,), np.ones(3))], 1.0, InvalidArgumentError, "name two or more"),
        ([((1, 1), np.ones((3, 3)))], 1.0, InvalidArgumentError, "name two or more"),
        ([((1, 9), np.ones((3, 2)))], 1.0, InvalidArgumentError, "name two or more"),
        ([((-1, 1), np.ones((2, 3)))], 1.0, InvalidArgumentError, "name two or more"),
        ([((1, 3), np.ones((2, 3)))], 1.0, ShapeError, "give finite scores of shape"),
        ([((1, 3), np.full((3, 2), np.nan))], 1.0, ShapeError, "give finite scores of shape"),
        ([((1, 3), np.ones((3, 2)))], [1.0, 2.0], ShapeError, "one finite number for each"),
        ([((1, 3), np.ones((3, 2)))], [np.inf], ShapeError, "one finite number for each"),
    ],
)
def test_couplings_of_what_is_not_there_are_refused(factors, weights, error, message):
    with pytest.raises(error, match=message):
        CouplingEnergy(tree(0).layout, factors, weights)


def test_missing_counts_are_left_out():
    counts = np.array([[3.0, np.nan], [1.0, 2.0]])
    some = poisson_counts(counts, population=4.0, rate=[[0.5, 1.0], [1.0, 0.25]])
    assert some.measurement.count == 3
    assert some.measurement.apply(np.array([0.5, 0.5, 0.2, 0.8])) == pytest.approx([1.0, 0.8, 0.8])
    assert some.losses.target.tolist() == [3.0, 1.0, 2.0]
    assert (some.weights == 0.25).all()
    assert multinomial_counts(counts, population=4.0).measurement.count == 3
    assert gaussian_counts(counts, population=4.0).measurement.count == 3


def test_energies_of_counts_are_minus_their_log_likelihoods_for_each_member():
    population, counts, spread = 12.0, np.array([3.0, 5.0, 4.0]), np.array([2.0, 0.5, 3.0])
    first, second = np.array([0.2, 0.5, 0.3]), np.array([0.4, 0.1, 0.5])
    cases = {
        "gaussian": (
            gaussian_counts(counts, population=population, variance=spread),
            lambda share: stats.norm.logpdf(counts, population * share, np.sqrt(spread)).sum(),
        ),
        "poisson": (
            poisson_counts(counts, population=population, rate=spread),
            lambda share: stats.poisson.logpmf(counts, population * spread * share).sum(),
        ),
        "multinomial": (
            multinomial_counts(counts, population=population),
            lambda share: stats.multinomial.logpmf(counts, 12, share),
        ),
    }
    for energy_of_counts, log_likelihood in cases.values():
        found = energy_of_counts.value(first) - energy_of_counts.value(second)
        assert found == pytest.approx((log_likelihood(second) - log_likelihood(first)) / population)


@pytest.mark.parametrize("made", [poisson_counts, gaussian_counts, multinomial_counts])
def test_counts_that_cannot_be_are_named(made):
    with pytest.raises(CountsError, match=r"count 2 is -1\.0"):
        made([1.0, np.nan, -1.0], population=5.0)
    with pytest.raises(CountsError, match="every count is NaN"):
        made([np.nan], population=5.0)
    with pytest.raises(InvalidArgumentError, match="population must be"):
        made([1.0], population=0.0)
    with pytest.raises(ShapeError, match="2 counts were given for 4 measured numbers"):
        made([1.0, 2.0], population=5.0, measurement=Measurement.identity(4))


def test_measured_energies_name_what_is_wrong_with_them():
    identity = Measurement.identity(3)
    with pytest.raises(WeightError, match=r"weight 1 of the energy 'mine' is -2.0.*nonnegative"):
        MeasuredEnergy(identity, hinge(1.0), [1.0, -2.0, 0.0], name="mine")
    assert nonnegative([1.0, -2.0]).tolist() == [1.0, 0.0]
    with pytest.raises(ShapeError, match=r"measures 3 numbers but has 2 losses"):
        MeasuredEnergy(identity, hinge([1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"weights of shape \(2,\)"):
        MeasuredEnergy(identity, hinge(1.0), [1.0, 2.0])
    with pytest.raises(
        InvalidArgumentError, match=r"row 1 of the measurement.*negative coefficient.*poisson"
    ):
        poisson_counts([1.0, 2.0], population=1.0, measurement=Measurement.of([[1.0, 0.0], [1.0, -1.0]]))
    with pytest.raises(InvalidArgumentError, match="width of a huber loss"):
        huber(0.0, 0.0)
    with pytest.raises(EnergyError, match="'coupling' has no second derivative"):
        EVERY["coupling"].curvature_times(MARGINALS[:9], MARGINALS[:9])


def test_measurements_name_what_is_wrong_with_them():
    with pytest.raises(InvalidArgumentError, match="row 1 of the measurement holds nan"):
        Measurement.of([[1.0, 0.0], [np.nan, 1.0]])
    with pytest.raises(InvalidArgumentError, match=r"names entry 9.*reads 9"):
        Measurement.rows(9, [{0: 1.0}, {9: 1.0}])
    with pytest.raises(ShapeError, match=r"4 marginals were given, but 9 are measured"):
        Measurement.identity(9).apply(np.zeros(4))
    with pytest.raises(
        InvalidArgumentError, match="label of variable 1 3 does not exist: use numbers from 0"
    ):
        BASE.layout.node(1, 3)
    with pytest.raises(ShapeError, match="connects the variables"):
        BASE.layout.factor(0, (1,))


def test_measurements_of_rows_and_counts_are_what_they_say():
    layout = Layout.chain(2, 3)
    some = Measurement.rows(layout.size, [{layout.node(1, 2): 2.0, layout.factor(0, (0, 2)): -1.0}, {0: 1.0}])
    marginals = np.arange(layout.size, dtype=float)
    assert some.apply(marginals).tolist() == [2.0 * 5 - (6 + 2), 0.0]
    assert some.adjoint(np.array([1.0, 3.0]))[[0, 5, 8]].tolist() == [3.0, 2.0, -1.0]
    assert some.squared(marginals).tolist() == [4.0 * 5 + 8, 0.0]
    assert Measurement.label_counts(layout).apply(marginals).tolist() == [3.0, 5.0, 7.0]
    assert Measurement.scaled(2.0, 3).apply(marginals).tolist() == [0.0, 2.0, 4.0]
    assert some.stacked(Measurement.identity(2)).apply(marginals).tolist() == [2.0, 0.0, 0.0, 1.0]


def test_a_measurement_of_each_marginal_by_itself_is_that_of_its_matrix():
    random = np.random.default_rng(0)
    factors, marginals, slope = random.normal(size=(3, 6))
    short = Measurement.scaled(factors, 6)
    explicit = Measurement.of(np.diag(factors))
    for function in ("apply", "adjoint", "squared"):
        given = slope if function == "adjoint" else marginals
        assert getattr(short, function)(given) == pytest.approx(getattr(explicit, function)(given))
    twice = random.normal(size=6)
    assert short.times(twice).apply(marginals) == pytest.approx(explicit.times(twice).apply(marginals))
    assert short.taken(np.array([4, 1])).apply(marginals) == pytest.approx((factors * marginals)[[4, 1]])
    everything = np.ones(6, dtype=bool)
    assert short.first_negative_row(everything) == explicit.first_negative_row(everything)
    with pytest.raises(InvalidArgumentError, match="entry 1 of the scale is nan"):
        Measurement.scaled([1.0, np.nan], 2)


def test_tables_in_single_precision_answer_almost_the_same():
    random = np.random.default_rng(0)
    node, edge = random.normal(0.0, 3.0, (5, 9)), random.normal(0.0, 3.0, (4, 9, 9))
    shift = random.normal(size=45)
    exact, rounded = (ChainBase(node, edge, single=single) for single in (False, True))
    assert rounded.answer(shift).log_partition == pytest.approx(exact.answer(shift).log_partition, abs=1e-6)
    assert rounded.answer(shift).log_partition != exact.answer(shift).log_partition
    np.testing.assert_allclose(rounded.marginals(shift), exact.marginals(shift), rtol=1e-5, atol=1e-8)


def test_an_energy_without_a_gradient_asks_for_automatic_differentiation(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r"'mine' has no gradient.*factorwise\[autodiff\]"):
        UserEnergy(Measurement.identity(3), lambda a, w: a.sum(), name="mine")


def test_automatic_differentiation_finds_all_gradients():
    pytest.importorskip("jax")
    known = EVERY["user"]
    import jax.numpy as jnp

    found = UserEnergy(
        known.measurement,
        lambda a, w: w[0] * (a**3).sum() + w[1] * jnp.sin(a[0]),
        weights=known.weights,
    )
    assert found.value(MARGINALS) == pytest.approx(known.value(MARGINALS), abs=1e-13)
    np.testing.assert_allclose(found.gradient(MARGINALS), known.gradient(MARGINALS), atol=1e-12)
    np.testing.assert_allclose(found.weight_gradient(MARGINALS), known.weight_gradient(MARGINALS))
    direction = np.random.default_rng(0).normal(size=BASE.layout.size)
    along = known.cross_gradient(MARGINALS, direction)
    np.testing.assert_allclose(found.cross_gradient(MARGINALS, direction), along)
    assert project(BASE, found, max_iterations=5).trace[-1] < project(BASE, found, max_iterations=5).trace[0]


def test_gradients_that_learning_needs_are_asked_for():
    bare = UserEnergy(Measurement.identity(9), lambda a, w: a.sum(), lambda a, w: np.ones(9), weights=[1.0])
    with pytest.raises(EnergyError, match=r"made without weight_gradient:"):
        bare.weight_gradient(MARGINALS)
    with pytest.raises(EnergyError, match=r"made without weight_gradient_along"):
        bare.cross_gradient(MARGINALS, MARGINALS)
    wrong = UserEnergy(
        Measurement.identity(9),
        lambda a, w: 0.0,
        lambda a, w: a,
        weights=[1.0],
        weight_gradient=lambda a, w: a,
    )
    with pytest.raises(EnergyError, match="weight_gradient of the energy 'user'"):
        wrong.weight_gradient(MARGINALS)


def test_bad_scores_of_a_chain_are_refused():
    with pytest.raises(ShapeError, match=r"edge_scores must have shape \(3, 3\) or \(1, 3, 3\)"):
        ChainBase(np.zeros((2, 3)), np.zeros((2, 2)))
    with pytest.raises(InvalidArgumentError, match=r"node_scores holds \+inf or NaN"):
        ChainBase(np.full((2, 3), np.nan), np.zeros((3, 3)))
    with pytest.raises(ShapeError, match="a shift of shape"):
        BASE.answer(np.zeros(4))


def test_an_oracle_without_a_best_setting_says_so():
    class Only:
        def marginals(self, graph):
            raise NotImplementedError

    base = tree(0)
    graph = GraphBase(base.graph(np.zeros(9)), Only())
    with pytest.raises(InvalidArgumentError, match="Only gives marginals but no best setting"):
        graph.best(np.zeros(9))


def test_squared_is_half_the_square():
    assert squared([1.0]).value(np.array([4.0])) == pytest.approx([4.5])
