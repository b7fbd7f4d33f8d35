"""Online training of chains: what it learns, where it converges to, when it stops, what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from chain_cases import Problem, problem, sparse
from factorwise.errors import ImpossibleError, InvalidArgumentError, ShapeError, StructureError, WeightError
from factorwise.learning.chains import passes as chain_passes
from factorwise.learning.chains.layout import StateFeatures
from factorwise.learning.chains.online import (
    AdaGrad,
    Arow,
    AveragedPerceptron,
    PassiveAggressive,
    StochasticGradient,
    train_online,
)
from factorwise.learning.chains.structure import FirstOrder, Supervision
from reference.chain_rows import decode

CORRECTING = [
    AveragedPerceptron(),
    PassiveAggressive(kind=0),
    PassiveAggressive(kind=1),
    PassiveAggressive(kind=2, averaging=False),
    PassiveAggressive(error_sensitive=False),
    Arow(),
]
DESCENDING = [StochasticGradient(l2=0.01), AdaGrad(l2=0.01)]
EVERY = [*CORRECTING, *DESCENDING]
LABELS = 3


def named(rule):
    kind = type(rule)()
    told = [
        f"{name}={getattr(rule, name)}"
        for name in rule.__slots__
        if getattr(rule, name) != getattr(kind, name)
    ]
    return "-".join([type(rule).__name__, *told])


def trained(case, rule, **settings):
    parts = (case.rows, case.start, case.supervision, case.features, case.structure)
    return train_online(*parts, rule=rule, **{"dtype": np.float64, **settings})


def separable(sentences=40):
    """Sentences in which an attribute tells the label, but for the last: that follows the one before.

    One of four attributes of noise beside it.
    """
    rng = np.random.default_rng(7)
    start = np.cumsum([0, *rng.integers(2, 7, sentences)], dtype=np.int64)
    truth = rng.integers(0, LABELS, start[-1]).astype(np.int32)
    last = start[1:] - 1
    truth[last] = (truth[last - 1] + 1) % LABELS
    told = truth.copy()
    told[last] = LABELS
    rows = [[(int(label), 1.0), (LABELS + 1 + int(rng.integers(4)), 1.0)] for label in told]
    matrix = sparse(rows, LABELS + 5, valued=False)
    features = StateFeatures.observed(matrix, truth, LABELS)
    return Problem(matrix, start, Supervision(truth), features, FirstOrder.free(LABELS))


def decoded(case, weights):
    table = case.transition(weights).tolist()
    paths = [decode(node.tolist(), table)[0] for _, _, node in case.sentences(weights)]
    return np.concatenate(paths)


def objective(case, l2):
    likelihood = case.likelihood()

    def value(weights):
        loss, gradient = likelihood(weights)
        return loss + l2 * weights @ weights, gradient + 2 * l2 * weights

    return value


@pytest.mark.parametrize("rule", CORRECTING, ids=named)
def test_separable_sentences_are_learned_without_mistakes(rule):
    case = separable()
    found = trained(case, rule, epsilon=1e-9)  # averages stop below epsilon only
    assert found.converged
    assert "epsilon" in found.message
    assert found.trace[-1].error_rate == 0.0 < found.trace[0].error_rate
    if not isinstance(rule, AveragedPerceptron):  # whose mean may still err where its last weights do not
        last = replace(rule, averaging=False) if isinstance(rule, PassiveAggressive) else rule
        assert (decoded(case, trained(case, last).weights) == case.supervision.truth).all()


@pytest.mark.parametrize("rule", EVERY, ids=named)
def test_the_weights_that_are_given_back_tag_what_they_were_trained_on(rule):
    case = separable()
    found = trained(case, rule, max_iterations=50)
    assert (decoded(case, found.weights) == case.supervision.truth).mean() > 0.98


@pytest.mark.parametrize("rule", EVERY, ids=named)
def test_labels_known_in_part_are_enough(rule):
    case = separable()
    rng = np.random.default_rng(0)
    truth = case.supervision.truth
    hidden = rng.random(len(truth)) < 0.3
    twofold = np.ones((len(truth) + 1, LABELS), dtype=bool)
    twofold[np.arange(1, len(truth) + 1), (truth + 1) % LABELS] = False
    row = np.where(rng.random(len(truth)) < 0.5, np.arange(1, len(truth) + 1), 0).astype(np.int32)
    known = Supervision(np.where(hidden, -1, truth).astype(np.int32), row, twofold)
    found = trained(replace(case, supervision=known), rule, max_iterations=50)
    assert (decoded(case, found.weights) == truth).mean() > 0.95


@pytest.mark.parametrize("kind", ["valued", "everything"])
@pytest.mark.parametrize(
    ("rule", "passes", "gap"),
    [(StochasticGradient(l2=0.5, rate=0.4), 4_000, 1e-6), (AdaGrad(l2=0.5, rate=0.3), 20_000, 1e-5)],
    ids=["sgd", "adagrad"],
)
def test_descent_converges_to_the_optimum_that_a_batch_method_finds(rule, passes, gap, kind):
    case = problem(kind, seed=4)
    value = objective(case, rule.l2)
    size = len(case.features) + case.structure.size
    best = minimize(value, np.zeros(size), jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9})
    found = trained(case, rule, max_iterations=passes, delta=0.0, period=passes)
    reached = value(found.weights)[0]
    assert best.fun * (1 - 1e-9) <= reached <= best.fun * (1 + gap)
    np.testing.assert_allclose(found.weights, best.x, rtol=0, atol=np.sqrt(gap * best.fun / rule.l2))


@pytest.mark.parametrize("rule", EVERY, ids=named)
def test_the_same_seed_gives_the_same_weights_and_another_one_others(rule):
    case = problem("plain", seed=3, lengths=(3, 2, 4, 1, 3, 2, 4, 3))
    first, again, other = (trained(case, rule, max_iterations=2, seed=seed) for seed in (5, 5, 6))
    assert first.weights.tobytes() == again.weights.tobytes()
    assert [record.loss for record in first.trace] == [record.loss for record in again.trace]
    assert first.weights.tobytes() != other.weights.tobytes()


@pytest.mark.parametrize("rule", EVERY, ids=named)
def test_what_watches_sees_every_pass_and_may_end_it(rule):
    case, seen = problem("plain"), []

    def watch(progress):
        seen.append((progress.iteration, progress.loss, progress.weights()))
        assert progress.norm == pytest.approx(np.linalg.norm(seen[-1][2]))
        assert 0.0 <= progress.error_rate <= 1.0
        assert progress.seconds >= 0.0
        return progress.iteration == 3

    found = trained(case, rule, max_iterations=10, watch=watch, epsilon=0.0)
    assert [iteration for iteration, _, _ in seen] == [1, 2, 3]
    assert found.iterations == len(found.trace) == 3
    assert not found.converged
    assert "caller" in found.message
    chosen = min(seen, key=lambda step: step[1]) if rule in DESCENDING else seen[-1]
    assert found.loss == chosen[1]
    np.testing.assert_array_equal(found.weights, chosen[2])


@pytest.mark.parametrize("rule", EVERY, ids=named)
def test_training_goes_on_from_given_weights(rule):
    case = separable()
    found = trained(case, rule, max_iterations=30)
    again = trained(case, rule, max_iterations=1, start_weights=found.weights)
    cold = trained(case, rule, max_iterations=1)
    assert again.trace[0].loss < 0.5 * cold.trace[0].loss


def test_given_weights_are_left_alone():
    case = problem("plain")
    start = case.weights(seed=0)
    before = start.copy()
    trained(case, AveragedPerceptron(), max_iterations=2, start_weights=start)
    np.testing.assert_array_equal(start, before)


def test_the_passes_end_when_there_have_been_enough():
    found = trained(problem("plain"), AveragedPerceptron(), max_iterations=2)
    assert found.iterations == 2
    assert not found.converged
    assert "max_iterations = 2" in found.message


def test_a_mean_loss_below_epsilon_is_enough():
    case = problem("plain")
    found = trained(case, AveragedPerceptron(), max_iterations=50, epsilon=1.0)
    assert found.converged
    assert found.iterations == 1


@pytest.mark.parametrize("rule", DESCENDING, ids=named)
def test_descent_ends_when_a_period_brought_too_little(rule):
    case = separable()
    found = trained(case, rule, max_iterations=500, period=3, delta=0.05)
    losses = [record.loss for record in found.trace]
    assert found.converged
    assert "delta = 0.05" in found.message
    improved = [(before - after) / after for before, after in zip(losses[:-3], losses[3:], strict=True)]
    assert improved[-1] < 0.05
    assert all(share >= 0.05 for share in improved[:-1])


def test_the_rate_is_calibrated_unless_it_is_given():
    case = separable()
    chosen = trained(case, StochasticGradient(l2=0.1), max_iterations=1)
    candidates = {rate: 0.1 * 2.0**rate for rate in range(-10, 11)}
    assert chosen.rate in candidates.values()
    assert trained(case, StochasticGradient(l2=0.1, rate=0.25), max_iterations=1).rate == 0.25
    worse = trained(case, StochasticGradient(l2=0.1, rate=chosen.rate / 64), max_iterations=1)
    assert chosen.loss < worse.loss


def test_calibration_begins_anew_for_every_candidate():
    case = separable()
    start = case.weights(seed=0)
    given = StochasticGradient(l2=0.1)
    chosen = trained(case, given, max_iterations=3, start_weights=start)
    # the sample is drawn whether or not it is used, so that the passes meet the same order
    again = trained(case, replace(given, rate=chosen.rate), max_iterations=3, start_weights=start)
    assert chosen.weights.tobytes() == again.weights.tobytes()


def test_few_trials_and_samples_are_heeded(monkeypatch):
    runs, plain = [], chain_passes.Descent.run
    monkeypatch.setattr(
        chain_passes.Descent, "run", lambda self, order: runs.append(len(order)) or plain(self, order)
    )
    rule = StochasticGradient(l2=0.1, calibration_samples=7, calibration_max_trials=4)
    trained(separable(), rule, max_iterations=1)
    assert runs == [7, 7, 7, 7, 7, 40]


def test_a_rate_that_would_turn_the_weights_around_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"rate must be less than 0\.2"):
        trained(separable(), StochasticGradient(l2=100.0, rate=0.3))


@pytest.mark.parametrize(
    "rule", [StochasticGradient(l2=0.0, rate=1e200), AdaGrad(l2=0.0, rate=1e200)], ids=named
)
def test_weights_beyond_all_bounds_are_reported(rule):
    with pytest.raises(InvalidArgumentError, match="smaller rate"):
        trained(problem("plain"), rule, max_iterations=200)


@pytest.mark.parametrize("rule", EVERY, ids=named)
@pytest.mark.parametrize("partial", [False, True])
def test_a_sentence_that_breaks_a_constraint_is_named(rule, partial):
    case = problem("plain")
    forbidden = np.zeros((LABELS, LABELS), dtype=bool)
    begin = int(case.start[3])
    truth = case.supervision.truth.copy()
    truth[:], truth[begin], truth[begin + 1] = 0, 1, 2
    forbidden[1, 2] = True
    known = Supervision(truth)
    if partial:
        allowed = np.arange(LABELS)[None] == 2
        row = np.zeros(len(truth), dtype=np.int32)
        truth[begin + 1] = -1
        known = Supervision(truth, row, allowed)
    case = replace(case, supervision=known, structure=replace(case.structure, forbidden=forbidden))
    with pytest.raises(ImpossibleError, match=r"sentence 3 .* remove the constraint"):
        trained(case, rule)


@pytest.mark.parametrize("rule", EVERY, ids=named)
def test_sentences_without_tokens_are_passed_over(rule):
    case = problem("plain")
    with_gaps = replace(case, start=np.insert(case.start, [0, 3, len(case.start)], case.start[[0, 3, -1]]))
    found = trained(with_gaps, rule, max_iterations=3)
    np.testing.assert_allclose(found.weights, trained(case, rule, max_iterations=3).weights)


def test_chains_of_higher_order_are_refused():
    case = replace(problem("plain"), structure=object())
    with pytest.raises(StructureError, match="L-BFGS"):
        trained(case, AveragedPerceptron())


def test_arrays_that_do_not_fit_are_refused():
    case = problem("plain")
    with pytest.raises(ShapeError, match="must agree"):
        trained(replace(case, start=case.start[:-1]), AveragedPerceptron())
    size = len(case.features) + case.structure.size
    for weights in (np.zeros(3), np.full(size, np.nan)):
        with pytest.raises(WeightError, match=f"{size} finite numbers"):
            trained(case, AveragedPerceptron(), start_weights=weights)


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"max_iterations": 0}, "at least 1"),
        ({"epsilon": -1.0}, "zero or more"),
        ({"period": 0}, "at least 1"),
        ({"delta": -0.1}, "zero or more"),
    ],
)
def test_settings_out_of_range_are_refused(settings, remedy):
    with pytest.raises(InvalidArgumentError, match=remedy):
        trained(problem("plain"), AveragedPerceptron(), **settings)


@pytest.mark.parametrize(
    ("rule", "settings", "remedy"),
    [
        (PassiveAggressive, {"kind": 3}, "kind must be 0, 1 or 2"),
        (PassiveAggressive, {"c": 0.0}, "c must be .*greater than zero"),
        (Arow, {"variance": -1.0}, "variance must be .*greater than zero"),
        (Arow, {"gamma": 0.0}, "gamma must be .*greater than zero"),
        (StochasticGradient, {"l2": -1.0}, "l2 must be zero or more"),
        (StochasticGradient, {"rate": 0.0}, "rate must be greater than zero, or None"),
        (StochasticGradient, {"calibration_eta": 0.0}, "calibration_eta must be .*greater than zero"),
        (StochasticGradient, {"calibration_rate": 1.0}, "calibration_rate must be .*greater than 1"),
        (StochasticGradient, {"calibration_samples": 0}, "calibration_samples must be at least 1"),
        (AdaGrad, {"l2": np.inf}, "l2 must be zero or more"),
        (AdaGrad, {"rate": -0.1}, "rate must be .*greater than zero"),
        (AdaGrad, {"offset": 0.0}, "offset must be .*greater than zero"),
    ],
)
def test_rules_out_of_range_are_refused(rule, settings, remedy):
    with pytest.raises(InvalidArgumentError, match=remedy):
        rule(**settings)
