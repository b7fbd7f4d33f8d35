"""Update rules against their definitions and against the problems that these solve."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from factorwise.kernels.walks import rules
from factorwise.kernels.walks.loops import MISRANKED, STEPS, UPDATES
from factorwise.learning.updates import AdaGrad, Arow, ConfidenceWeighted, PassiveAggressive, Unit
from reference import rules as reference
from rule_cases import Taught

VARIANTS = [
    Unit(),
    Unit(rate=0.5, decay=0.1),
    Unit(strict=True),
    PassiveAggressive(variant="PA"),
    PassiveAggressive(cap=0.05),
    PassiveAggressive(variant="PA-II", cap=0.3, margin=2.0),
    PassiveAggressive(scale_by_gain=True),
    PassiveAggressive(only_misranked=True),
    ConfidenceWeighted(),
    ConfidenceWeighted(confidence=0.6, variance=3.0, floor=0.2),
    ConfidenceWeighted(form="deviation"),
    ConfidenceWeighted(confidence=0.6, form="deviation", variance=0.1),
    Arow(),
    Arow(regularization=0.3, variance=2.0),
    AdaGrad(),
    AdaGrad(rate=0.1, epsilon=0.5, margin=1.0),
]
BY_VARIANCE = [rule for rule in VARIANTS if isinstance(rule, ConfidenceWeighted | Arow)]

ENGINES = {"interpreted": False, "compiled": True}


def gradient_of(values):
    return np.array(values, dtype=np.float64)


small = st.floats(-3, 3).map(lambda x: round(x, 3))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", VARIANTS, ids=repr)
@settings(max_examples=25)
@given(data=st.data())
def test_updates_are_those_of_the_definition(rule, engine, data):
    size = data.draw(st.integers(1, 11))
    taught = Taught(
        rule, size, compiled=ENGINES[engine], dense=data.draw(st.sampled_from([0, size // 2, size]))
    )
    u = taught.arrays
    plain = reference.Learned(u.weights.copy(), u.second.copy(), 0)
    misranked = 0
    for _ in range(4):
        gradient = gradient_of(data.draw(st.lists(small, min_size=size, max_size=size)))
        direction = data.draw(st.sampled_from([-1.0, 1.0]))
        lead = data.draw(st.sampled_from([-2.0, 0.0, 0.4, 5.0]))
        truth_gain = data.draw(st.sampled_from([0.1, 1.0, 3.0]))
        before = plain
        plain = reference.learn(rule, before, gradient, direction, lead, truth_gain)
        misranked += lead <= 0.0
        assert taught.learn(gradient, direction, lead, truth_gain) == (plain is not before)
        np.testing.assert_allclose(u.weights, plain.weights, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(u.second, plain.second, rtol=1e-7, atol=1e-12)
        plain = plain._replace(weights=u.weights.copy(), second=u.second.copy())
    assert u.clock[UPDATES] == plain.updates
    assert u.clock[MISRANKED] == misranked


@pytest.mark.parametrize("size", range(1, 14))
def test_the_squared_norm_counts_every_entry_once_whatever_their_number(size):
    taught = Taught(Unit(), size, compiled=True)
    gradient = np.sqrt(2.0 ** np.arange(size))
    assert taught.learn(gradient, 1.0, 0.0)
    assert taught.arrays.largest[0] == pytest.approx(2.0**size - 1.0)


def test_the_largest_norm_is_that_of_gradients_that_led_to_updates():
    taught = Taught(Unit(), 2)
    taught.learn([3.0, 4.0], 1.0, -1.0)
    taught.learn([30.0, 40.0], 1.0, 1.0)
    taught.learn([1.0, 0.0], 1.0, -1.0)
    assert taught.arrays.largest[0] == 25.0


HOPELESS = {
    "zero": [0.0, 0.0, 0.0],
    "too small to square": [1e-200, 0.0, -1e-200],
    "too large to square": [1e200, 1.0, 0.0],
    "infinite": [math.inf, 1.0, 0.0],
    "not a number": [math.nan, 1.0, 0.0],
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", VARIANTS, ids=repr)
@pytest.mark.parametrize("values", HOPELESS.values(), ids=HOPELESS)
def test_a_gradient_without_a_finite_squared_norm_changes_nothing(rule, values, engine):
    taught = Taught(rule, 3, compiled=ENGINES[engine])
    u = taught.arrays
    assert not taught.learn(values, 1.0, -1.0)
    fresh = rule.arrays(3)
    np.testing.assert_array_equal(u.weights, fresh.weights)
    np.testing.assert_array_equal(u.second, fresh.second)
    np.testing.assert_array_equal(u.drift, fresh.drift)
    assert u.largest[0] == 0.0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", VARIANTS, ids=repr)
def test_a_lead_that_is_not_a_number_changes_nothing(rule, engine):
    taught = Taught(rule, 2, compiled=ENGINES[engine])
    assert not taught.learn([1.0, 2.0], 1.0, math.nan)
    assert not taught.arrays.weights.any()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", VARIANTS, ids=repr)
@settings(max_examples=50)
@given(
    values=st.lists(st.sampled_from([0.0, 1e-150, -1e-9, 1.0, -1e9, 1e100, 1e150]), min_size=3, max_size=3),
    lead=st.sampled_from([-math.inf, -1e300, -1e150, -1.0, -1e-300, 0.0, 1e-300, 0.5, 1e150]),
)
def test_numbers_stay_finite_and_variances_positive_at_the_ends_of_the_range(rule, engine, values, lead):
    taught = Taught(rule, 3, compiled=ENGINES[engine])
    u = taught.arrays
    for _ in range(4):
        taught.learn(values, 1.0, lead)
        taught.end_step()
    assert np.isfinite(u.weights).all()
    assert np.isfinite(u.drift).all()
    assert not np.isnan(u.second).any()
    assert (u.second >= 0.0).all()


@pytest.mark.parametrize("rule", BY_VARIANCE, ids=repr)
def test_contradictory_rankings_never_stop_the_learning(rule, seed):
    rng = np.random.default_rng(seed)
    taught = Taught(rule, 7, compiled=True)
    u = taught.arrays
    changed = []
    for gradient, direction in zip(
        rng.normal(size=(20_000, 7)), rng.choice([-1.0, 1.0], size=20_000), strict=True
    ):  # nothing to be learned
        changed.append(taught.learn(gradient, direction, direction * (u.weights @ gradient)))
        taught.end_step()
    assert np.isfinite(u.weights).all()
    assert (u.second > 0.0).all()
    assert np.mean(changed[-1_000:]) > 0.3
    assert u.clock[STEPS] == 20_000


@pytest.mark.parametrize("rule", VARIANTS, ids=repr)
def test_a_list_that_names_a_weight_several_times_is_the_gradient_of_its_sums(rule, seed):
    """Edges add to a weight once for each neighbor: squares are those of the sum, not of the parts."""
    rng = np.random.default_rng(seed)
    whole, parts = (Taught(rule, 9, compiled=True, dense=3) for _ in range(2))
    for _ in range(100):
        gradient = rng.integers(-3, 4, 9) / 2.0
        direction = rng.choice([-1.0, 1.0])
        lead = direction * (gradient @ whole.arrays.weights)
        parts.enter(np.where(np.arange(9) < 3, gradient - 1.0, 0.0))
        for weight in rng.permutation(np.repeat(np.arange(9), 2)).tolist():
            parts.put(weight, 0.5 if weight < 3 else gradient[weight] / 2.0)
        assert whole.learn(gradient, direction, lead) == parts.learn_at_hand(direction, lead)
        for each in (whole, parts):
            each.end_step()
    assert whole.arrays.clock[UPDATES] > 20 or rule == Unit(strict=True)
    for name in ("weights", "second", "drift"):
        np.testing.assert_allclose(getattr(parts.arrays, name), getattr(whole.arrays, name), rtol=1e-9)
    assert not parts.frame.gradient.mark.any()


def test_lists_of_many_weights_touch_only_those_they_name():
    """Of 200,000 weights a move names a few: the rule's text is the same as for twenty."""
    for rule in VARIANTS:
        taught = Taught(rule, 200_000, compiled=True, dense=0)
        few = Taught(rule, 3, compiled=True)
        named = np.array([5, 77_777, 199_999])
        for direction in (1.0, -1.0, 1.0):
            values = np.array([1.0, -2.0, 0.5]) * direction
            wide = np.zeros(200_000)
            wide[named] = values
            lead = float(direction * (values @ few.arrays.weights)) - 0.1
            assert few.learn(values, direction, lead) == taught.learn(wide, direction, lead)
            few.end_step()
            taught.end_step()
        np.testing.assert_allclose(taught.arrays.weights[named], few.arrays.weights, rtol=1e-14)
        np.testing.assert_allclose(taught.arrays.drift[named], few.arrays.drift, rtol=1e-14)
        assert np.count_nonzero(taught.arrays.weights) <= 3


@pytest.mark.parametrize("rule", VARIANTS, ids=repr)
def test_weights_that_are_held_fixed_are_as_if_the_gradient_did_not_name_them(rule, seed):
    rng = np.random.default_rng(seed)
    held, without = Taught(rule, 6, compiled=True), Taught(rule, 6, compiled=True)
    held.arrays.free[[1, 4]] = 0.0
    for _ in range(60):
        gradient = rng.normal(size=6)
        direction, lead = rng.choice([-1.0, 1.0]), rng.normal(scale=0.5)
        known = gradient * held.arrays.free
        assert held.learn(gradient, direction, lead) == without.learn(known, direction, lead)
        for each in (held, without):
            each.end_step()
    np.testing.assert_array_equal(held.arrays.weights, without.arrays.weights)
    np.testing.assert_array_equal(held.arrays.second, without.arrays.second)
    assert not held.arrays.weights[[1, 4]].any()


# Each rule's own problem for one gradient, handed to a general solver ---------------------------------------


def unpack(point, size):
    """Mean and covariance from free numbers: a triangle with logarithms on its diagonal."""
    mean, triangle = point[:size], np.zeros((size, size))
    triangle[np.tril_indices(size)] = point[size:]
    triangle[np.diag_indices(size)] = np.exp(np.diag(triangle))
    return mean, triangle @ triangle.T


def pack(mean, covariance):
    triangle = np.linalg.cholesky(covariance)
    triangle[np.diag_indices(len(mean))] = np.log(np.diag(triangle))
    return np.concatenate([mean, triangle[np.tril_indices(len(mean))]])


def divergence(mean, covariance, old_mean, old_covariance):
    """Kullback-Leibler divergence of a Gaussian from an old one."""
    inverse, apart = np.linalg.inv(old_covariance), mean - old_mean
    ratio = np.linalg.slogdet(old_covariance)[1] - np.linalg.slogdet(covariance)[1]
    return 0.5 * (ratio + np.trace(inverse @ covariance) + apart @ inverse @ apart - len(mean))


def gaussian_case(seed, lead):
    """An old Gaussian and a gradient along which its mean has the given lead."""
    rng = np.random.default_rng(seed)
    mean, gradient, root = rng.normal(size=3), rng.normal(size=3), rng.normal(size=(3, 3))
    mean += (lead - mean @ gradient) / (gradient @ gradient) * gradient
    return mean, root @ root.T + 0.3 * np.eye(3), gradient


def corrected(rule, mean, covariance, gradient):
    """The Gaussian after the rule's correction, with the whole covariance."""
    spread, lead = float(gradient @ covariance @ gradient), float(mean @ gradient)
    given, shrink = rule.settings, 0.0
    match rule:
        case PassiveAggressive():
            squares = float(gradient @ gradient)
            loss = max(0.0, given["margin"] - lead)
            step = rules.passive_aggressive_step(loss, squares, given["cap"], given["pad"])
        case Arow():
            step = rules.arow_step(max(0.0, 1.0 - lead), spread, given["regularization"])
            shrink = 1.0 / given["regularization"]
        case ConfidenceWeighted(form="variance"):
            step = rules.variance_form_step(lead, spread, given["phi"])
            shrink = 2.0 * given["phi"] * step
        case ConfidenceWeighted():
            step = rules.deviation_form_step(lead, spread, given["phi"])
            shrink = rules.deviation_form_shrink(step, spread, given["phi"])
    precision = np.linalg.inv(covariance) + shrink * np.outer(gradient, gradient)
    return mean + step * covariance @ gradient, np.linalg.inv(precision)


def solved(objective, start, constraints=()):
    """Where the solver ends: whether that is the optimum, the comparison will tell."""
    options = {"maxiter": 1_000, "ftol": 1e-14}
    return minimize(objective, start, method="SLSQP", constraints=constraints, options=options).x


@pytest.mark.parametrize("lead", [-1.5, 0.0, 0.05])
@pytest.mark.parametrize("confidence", [0.6, 0.9])
@pytest.mark.parametrize("form", ["variance", "deviation"])
def test_confidence_weighting_is_the_nearest_gaussian_that_ranks_with_confidence(
    form, confidence, lead, seed
):
    mean, covariance, gradient = gaussian_case(seed, lead)
    phi = NormalDist().inv_cdf(confidence)

    def objective(point):
        return divergence(*unpack(point, 3), mean, covariance)

    def slack(point):
        new_mean, new_covariance = unpack(point, 3)
        spread = gradient @ new_covariance @ gradient
        return new_mean @ gradient - phi * (spread if form == "variance" else math.sqrt(spread))

    start = pack(mean, covariance)
    assert slack(start) < 0.0
    found = solved(objective, start, {"type": "ineq", "fun": slack})
    expected = corrected(ConfidenceWeighted(confidence=confidence, form=form), mean, covariance, gradient)
    for ours, theirs in zip(expected, unpack(found, 3), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)
    assert slack(pack(*expected)) == pytest.approx(0.0, abs=1e-12)
    assert objective(pack(*expected)) <= objective(found) + 1e-6


@pytest.mark.parametrize("form", ["variance", "deviation"])
def test_confidence_weighting_leaves_alone_what_it_is_confident_of(form, seed):
    mean, covariance, gradient = gaussian_case(seed, 50.0)
    after = corrected(ConfidenceWeighted(form=form), mean, covariance, gradient)
    np.testing.assert_array_equal(after[0], mean)
    np.testing.assert_allclose(after[1], covariance)


@pytest.mark.parametrize("lead", [-1.5, 0.0, 0.5])
@pytest.mark.parametrize("regularization", [0.3, 2.0])
def test_arow_minimises_divergence_and_what_is_left_of_loss_and_variance(regularization, lead, seed):
    mean, covariance, gradient = gaussian_case(seed, lead)

    def objective(point):
        new_mean, new_covariance = unpack(point, 3)
        loss = max(0.0, 1.0 - new_mean @ gradient) ** 2 + gradient @ new_covariance @ gradient
        return divergence(new_mean, new_covariance, mean, covariance) + loss / (2.0 * regularization)

    found = solved(objective, pack(mean, covariance))
    expected = corrected(Arow(regularization=regularization), mean, covariance, gradient)
    for ours, theirs in zip(expected, unpack(found, 3), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)
    assert objective(pack(*expected)) <= objective(found) + 1e-9


@pytest.mark.parametrize("lead", [-1.5, 0.0, 0.5])
@pytest.mark.parametrize("cap", [0.02, 3.0])
@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
def test_passive_aggressive_steps_minimise_distance_and_loss(variant, cap, lead, seed):
    weights, _, gradient = gaussian_case(seed, lead)
    price = {"PA": 0.0, "PA-I": cap, "PA-II": cap}[variant]
    power = 2 if variant == "PA-II" else 1

    def objective(point):  # the last number is the loss that is left
        return 0.5 * ((point[:3] - weights) ** 2).sum() + price * point[3] ** power

    constraints = [
        {"type": "ineq", "fun": lambda point: point[:3] @ gradient + point[3] - 1.0},
        {"type": "eq" if variant == "PA" else "ineq", "fun": lambda point: point[3]},
    ]
    found = solved(objective, np.append(weights, 1.0 - lead), constraints)
    ours = corrected(PassiveAggressive(variant=variant, cap=cap), weights, np.eye(3), gradient)[0]
    np.testing.assert_allclose(ours, found[:3], atol=1e-6)


def test_the_diagonal_of_the_inverse_is_the_nearest_diagonal_gaussian(seed):
    mean, covariance, _ = gaussian_case(seed, 0.0)
    found = solved(lambda logs: divergence(mean, np.diag(np.exp(logs)), mean, covariance), np.zeros(3))
    np.testing.assert_allclose(np.exp(found), 1.0 / np.diag(np.linalg.inv(covariance)), rtol=1e-5)
