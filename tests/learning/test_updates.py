"""Rules as users meet them: settings, names, averages, a rule of one's own.

And what a perceptron promises.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, ProgramError
from factorwise.kernels.walks.loops import MISRANKED, STEPS, UPDATES
from factorwise.kernels.walks.rules import add_gradient, free_squares, lead_of
from factorwise.learning.updates import (
    RULES,
    AdaGrad,
    Arow,
    ConfidenceWeighted,
    Mira,
    OwnRule,
    PassiveAggressive,
    Unit,
    UpdateRule,
    as_rule,
    averaged,
    capped_rule,
)
from reference import rules as reference
from rule_cases import Taught

MORE = [
    Unit(rate=0.3, decay=0.01),
    Unit(strict=True),
    PassiveAggressive(scale_by_gain=True),
    PassiveAggressive(variant="PA-II", only_misranked=True),
    ConfidenceWeighted(confidence=0.6, variance=2.0, floor=0.1),
    AdaGrad(margin=1.0),
]
EVERY = [*(as_rule(name) for name in RULES if name != "pa-i"), *MORE]


def walk(rule, rng, *, size, steps, truth=None, wrong=0.0):
    """Learn to rank random pairs by ``truth``; a share ``wrong`` of the preferences is turned around.

    Pairs that are nearly as good as each other teach nothing: a margin must be possible.
    """
    truth = rng.normal(size=size) if truth is None else truth
    taught = Taught(rule, size, compiled=True)
    u = taught.arrays
    for _ in range(steps):
        gradient = rng.normal(size=size) * (rng.random(size) < 0.4)
        preference = gradient @ truth
        if abs(preference) > 0.5:
            direction = math.copysign(1.0, preference) * (-1.0 if rng.random() < wrong else 1.0)
            taught.learn(gradient, direction, direction * (gradient @ u.weights), abs(preference))
        taught.end_step()
        yield u


entries = st.one_of(st.just(0.0), st.floats(-4, 4), st.sampled_from([1e-170, 1e-100, 1e100, 1e160, -3e5]))
leads = st.one_of(
    st.just(0.0), st.floats(-3, 3), st.sampled_from([-math.inf, -1e200, 1e-300, 1e200, math.nan])
)


@pytest.mark.parametrize("rule", EVERY, ids=repr)
@settings(max_examples=40)
@given(data=st.data())
def test_sparse_and_dense_compiled_and_interpreted_gradients_teach_the_same(rule, data):
    size = data.draw(st.integers(1, 15))
    forms = [
        Taught(rule, size, compiled=compiled, dense=dense)
        for compiled in (True, False)
        for dense in (0, size)
    ]
    largest = dict.fromkeys(("weights", "second", "drift", "largest"), 0.0)  # changes may cancel out
    for _ in range(5):
        gradient = np.array(data.draw(st.lists(entries, min_size=size, max_size=size)))
        direction = data.draw(st.sampled_from([-1.0, 1.0]))
        lead, truth_gain = data.draw(leads), data.draw(st.floats(1e-3, 10.0))
        changed = {form.learn(gradient, direction, lead, truth_gain) for form in forms}
        assert len(changed) == 1
        for form in forms:
            form.end_step()
            for name in largest:
                found, expected = (getattr(each.arrays, name) for each in (form, forms[0]))
                largest[name] = max(largest[name], np.abs(expected).max())
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * largest[name], err_msg=name)


def test_an_empty_gradient_changes_nothing():
    taught = Taught(Unit(), 2, dense=0)
    assert not taught.learn([0.0, 0.0], 1.0, 0.0)
    assert taught.frame.step["entries"] == 0
    assert taught.arrays.clock[UPDATES] == 0
    assert taught.arrays.clock[MISRANKED] == 1


@pytest.mark.parametrize("rule", EVERY, ids=repr)
def test_the_average_is_the_mean_of_the_weights_at_the_end_of_each_step(rule, seed):
    history = []
    for u in walk(rule, np.random.default_rng(seed), size=9, steps=150, wrong=0.2):
        history.append(u.weights.copy())
        if len(history) in (1, 2, 77, 150):
            expected = reference.averaged(history)
            np.testing.assert_allclose(averaged(u), expected, rtol=1e-9, atol=1e-11)
    assert u.clock[STEPS] == 150


def test_the_average_starts_from_the_weights_that_were_given():
    taught = Taught(Unit(), 2)
    u = taught.arrays
    u.weights[:] = [4.0, -1.0]
    np.testing.assert_array_equal(averaged(u), [4.0, -1.0])
    taught.end_step()
    taught.learn([2.0, 0.0], 1.0, -1.0)
    taught.end_step()
    np.testing.assert_array_equal(averaged(u), [5.0, -1.0])
    np.testing.assert_array_equal(u.weights, [6.0, -1.0])


def test_the_average_is_no_view_of_the_weights():
    u = Unit().arrays(1)
    averaged(u)[0] = 7.0
    assert u.weights[0] == 0.0


def test_from_weights_of_zero_the_strict_form_learns_nothing_and_the_default_does(seed):
    strict = list(walk(Unit(strict=True), np.random.default_rng(seed), size=5, steps=50))[-1]
    default = list(walk(Unit(), np.random.default_rng(seed), size=5, steps=50))[-1]
    assert strict.clock[UPDATES] == 0
    assert strict.clock[MISRANKED] > 10
    assert default.clock[UPDATES] == default.clock[MISRANKED] > 0


def test_the_strict_form_corrects_a_world_that_falls_behind_by_however_little():
    taught = Taught(Unit(strict=True), 1)
    assert not taught.learn([1.0], 1.0, 0.0)
    assert taught.learn([1.0], 1.0, -1e-300)


def test_unit_steps_on_separable_preferences_make_no_more_updates_than_the_bound(seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=6)
    truth /= np.linalg.norm(truth)
    taught, margin = Taught(Unit(), 6, compiled=True), 0.2
    u = taught.arrays
    for _ in range(3_000):
        gradient = rng.normal(size=6)
        if abs(gradient @ truth) < margin:
            continue
        direction = math.copysign(1.0, gradient @ truth)
        taught.learn(gradient, direction, direction * (gradient @ u.weights))
    assert 5 < u.clock[UPDATES] <= u.largest[0] / margin**2


def test_decaying_steps_fall_with_the_number_of_updates():
    taught = Taught(Unit(rate=2.0, decay=0.5), 1)
    seen = []
    for _ in range(3):
        taught.learn([1.0], 1.0, -1.0)
        seen.append(float(taught.arrays.weights[0]))
    np.testing.assert_allclose(np.diff([0.0, *seen]), [2.0, 2.0 / 1.5, 1.0])


@given(st.floats(-5, 0.99), st.lists(st.integers(-5, 5), min_size=1, max_size=6).filter(any))
def test_a_passive_aggressive_step_leaves_exactly_the_margin(lead, values):
    taught = Taught(PassiveAggressive(variant="PA", margin=1.5), len(values))
    assert taught.learn(values, -1.0, lead)
    assert lead - values @ taught.arrays.weights == pytest.approx(1.5)


def test_scaling_by_the_gain_asks_for_a_larger_lead_of_a_much_better_world():
    taught = Taught(PassiveAggressive(variant="PA", scale_by_gain=True), 1)
    assert not taught.learn([1.0], 1.0, 0.5, 0.3)
    assert taught.learn([1.0], 1.0, 0.5, 3.0)
    assert taught.arrays.weights[0] == pytest.approx(2.5)


def test_only_misranked_waits_until_the_better_world_does_not_lead():
    taught = Taught(Mira(only_misranked=True), 1)
    assert not taught.learn([1.0], 1.0, 0.1)
    assert taught.learn([1.0], 1.0, 0.0)
    assert Taught(Mira(), 1).learn([1.0], 1.0, 0.1)


def test_confidence_grows_only_in_weights_that_were_seen():
    for rule in (ConfidenceWeighted(), ConfidenceWeighted(form="deviation"), Arow()):
        taught = Taught(rule, 3)
        taught.learn([1.0, 2.0, 0.0], 1.0, 0.0)
        second = taught.arrays.second
        assert second[1] < second[0] < second[2] == 1.0


@pytest.mark.parametrize("rule", [rule for rule in EVERY if rule != Unit(strict=True)], ids=repr)
def test_every_rule_learns_to_rank_what_can_be_ranked(rule, seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=8)
    u = list(walk(rule, rng, size=8, steps=1_500, truth=truth))[-1]
    mean = averaged(u)
    assert mean @ truth > 0.95 * np.linalg.norm(mean) * np.linalg.norm(truth)


@pytest.mark.parametrize("form", ["variance", "deviation"])
def test_preferences_that_cannot_be_satisfied_leave_a_tenth_of_the_first_variance(form, seed):
    """So that weights can still change; with a floor next to zero, next to nothing is left."""
    least = {}
    for floor in (ConfidenceWeighted().floor, 1e-12):
        rng = np.random.default_rng(seed)
        taught = Taught(ConfidenceWeighted(form=form, variance=2.0, floor=floor), 4, compiled=True)
        for _ in range(1_000):
            gradient, direction = rng.normal(size=4), math.copysign(1.0, rng.normal())
            taught.learn(gradient, direction, direction * (gradient @ taught.arrays.weights), 1.0)
        least[floor] = taught.arrays.second.min()
    assert least[0.1] == pytest.approx(0.2)
    assert least[1e-12] < 0.02


def test_names_stand_for_rules():
    assert as_rule("unit") == Unit()
    assert as_rule("mira") == as_rule("pa-i") == Mira() == PassiveAggressive(variant="PA-I")
    assert as_rule("pa") == PassiveAggressive(variant="PA")
    assert as_rule("pa-ii", cap=0.2) == PassiveAggressive(variant="PA-II", cap=0.2)
    assert as_rule("cw", confidence=0.7) == ConfidenceWeighted(confidence=0.7)
    assert as_rule("cw-deviation") == ConfidenceWeighted(form="deviation")
    assert as_rule("arow") == Arow()
    assert as_rule("adagrad") == AdaGrad()


@pytest.mark.parametrize("name", RULES)
def test_every_named_rule_says_what_it_is_and_makes_its_own_arrays(name):
    rule = as_rule(name)
    assert isinstance(rule, UpdateRule)
    assert as_rule(rule) is rule
    assert rule.as_dict()["rule"] == type(rule).__name__
    first, second = Taught(rule, 4), Taught(rule, 4)
    assert first.learn([0.0, 1.0, 0.0, 0.0], 1.0, 0.0)
    assert not second.arrays.weights.any()
    assert len(rule.arrays(0).weights) == 0


def half_way(mine, move, gradient):
    """Add half of what the margin lacks."""
    missing = mine.settings[0].margin - lead_of(move)
    if missing <= 0.0:
        return 0.0
    squares = free_squares(mine, move, gradient)
    if squares == 0.0:
        return 0.0
    return add_gradient(mine, move, gradient, 0.5 * missing / squares, squares)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_rule_may_be_a_function_of_ones_own(compiled):
    taught = Taught(as_rule(half_way, margin=1.0), 3, compiled=compiled)
    gradient = np.array([1.0, -2.0, 0.0])
    for missing in (1.0, 0.5, 0.25):
        lead = gradient @ taught.arrays.weights
        assert 1.0 - lead == pytest.approx(missing)
        assert taught.learn(gradient, 1.0, lead)
        taught.end_step()
    assert not taught.learn(gradient, 1.0, 2.0)
    assert as_rule(half_way, margin=1.0).as_dict() == {"rule": "half_way", "margin": 1.0}


def test_a_rule_that_asks_for_what_there_is_not_is_refused():
    with pytest.raises(
        ProgramError, match="has the argument 'world', but update offers mine, move, gradient"
    ):
        OwnRule(lambda world, move: 0.0)


def test_a_wrong_name_is_answered_with_the_nearest_right_one():
    with pytest.raises(InvalidArgumentError, match="Did you mean 'mira'"):
        as_rule("mirra")
    with pytest.raises(InvalidArgumentError, match="Use one of unit, mira"):
        as_rule("qqq")


def test_settings_that_a_name_fixes_or_a_rule_has_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"a setting of 'pa-i' must be one of cap, margin"):
        as_rule("pa-i", variant="PA")
    with pytest.raises(InvalidArgumentError, match=r"a setting of 'unit' must be one of rate, decay, strict"):
        as_rule("unit", cap=1.0)
    with pytest.raises(InvalidArgumentError, match="make the rule with them, or give its name"):
        as_rule(Unit(), rate=0.5)


@pytest.mark.parametrize("name", RULES)
def test_a_cap_goes_to_the_rules_that_have_one_and_changes_no_other(name):
    capped = name in ("mira", "pa-i", "pa-ii")
    assert capped_rule(name, 0.2) == (as_rule(name, cap=0.2) if capped else as_rule(name))
    assert (capped_rule(name, 0.2) != as_rule(name)) == capped


def test_a_rule_that_was_made_keeps_its_own_cap():
    for rule in (PassiveAggressive(cap=0.7), Unit(rate=2.0)):
        assert capped_rule(rule, 0.2) is rule


def test_a_cap_is_the_most_that_one_update_adds():
    taught = Taught(capped_rule("mira", 0.01), 2)
    taught.learn([1.0, -3.0], 1.0, 0.0)
    np.testing.assert_allclose(taught.arrays.weights, [0.01, -0.03])


@pytest.mark.parametrize("cap", [0.0, -1.0, math.inf, math.nan])
def test_a_cap_that_makes_no_sense_is_refused(cap):
    with pytest.raises(InvalidArgumentError, match="cap must be a finite number greater than zero"):
        capped_rule("mira", cap)


def test_a_wrong_name_beside_a_cap_is_answered_with_the_nearest_right_one():
    with pytest.raises(InvalidArgumentError, match="Did you mean 'mira'"):
        capped_rule("mirra", 0.2)


@pytest.mark.parametrize(
    ("make", "settings", "remedy"),
    [
        (Unit, {"rate": 0.0}, "rate must be a finite number greater than zero"),
        (Unit, {"rate": math.nan}, "rate must be a finite number greater than zero"),
        (Unit, {"decay": -0.1}, "decay must be a finite number, zero or more"),
        (PassiveAggressive, {"variant": "PA-3"}, "variant must be one of PA, PA-I, PA-II"),
        (PassiveAggressive, {"cap": 0.0}, "cap must be a finite number greater than zero"),
        (PassiveAggressive, {"margin": 0.0}, "margin must be a finite number greater than zero"),
        (ConfidenceWeighted, {"confidence": 0.5}, r"confidence must be between 0\.5 and 1"),
        (ConfidenceWeighted, {"confidence": 1.0}, r"confidence must be between 0\.5 and 1"),
        (ConfidenceWeighted, {"form": "full"}, "form must be one of variance, deviation"),
        (ConfidenceWeighted, {"variance": math.inf}, "variance must be a finite number greater than zero"),
        (ConfidenceWeighted, {"floor": 0.0}, "floor must be greater than 0 and at most 1"),
        (Arow, {"regularization": 0.0}, "regularization must be a finite number greater than zero"),
        (Arow, {"variance": 0.0}, "variance must be a finite number greater than zero"),
        (AdaGrad, {"rate": -1.0}, "rate must be a finite number greater than zero"),
        (AdaGrad, {"epsilon": 0.0}, "epsilon must be a finite number greater than zero"),
        (AdaGrad, {"margin": -1.0}, "margin must be a finite number, zero or more"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, settings, remedy):
    with pytest.raises(InvalidArgumentError, match=remedy):
        make(**settings)


def test_a_negative_number_of_weights_is_refused():
    with pytest.raises(InvalidArgumentError, match="size must be zero or more"):
        Unit().arrays(-1)
