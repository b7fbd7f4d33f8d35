"""The loop and its pieces: elite with ties, smoothing, convergence, determinism, Ctrl-C, bad input."""

import doctest
import io
from contextlib import redirect_stderr
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.cross_entropy import (
    Bernoulli,
    Gaussian,
    cross_entropy,
    each,
    elite_of,
    fit,
    method,
    update,
)
from factorwise.rng import Stream

BITS = Bernoulli(6)


def ones(bits):
    return bits.sum(axis=1)


def search(performance=ones, family=BITS, **options):
    return cross_entropy(family, performance, **({"start": BITS.uniform, "samples": 40} | options))


class TestElite:
    def test_the_best_share_is_chosen_in_the_order_of_the_samples(self):
        threshold, members, shares = elite_of([3.0, 1.0, 5.0, 2.0, 4.0], 0.4)
        assert threshold == 4.0
        assert members.tolist() == [2, 4]
        assert shares.tolist() == [0.5, 0.5]

    def test_samples_at_the_threshold_are_included(self):
        threshold, members, shares = elite_of([1.0, 2.0, 2.0, 2.0, 3.0], 0.4)
        assert threshold == 2.0
        assert members.tolist() == [1, 2, 3, 4]
        assert shares.tolist() == [0.25] * 4

    def test_a_part_of_a_sample_counts_as_a_whole_one(self):
        assert elite_of([1.0, 2.0, 3.0, 4.0], 0.26).members.tolist() == [2, 3]
        assert elite_of([1.0, 2.0, 3.0], 1e-9).members.tolist() == [2]

    def test_equal_samples_are_all_elite(self):
        assert elite_of([7.0] * 4, 0.1).members.tolist() == [0, 1, 2, 3]
        assert elite_of([-np.inf] * 3, 0.1).members.tolist() == [0, 1, 2]

    def test_infeasible_samples_are_not_chosen_though_too_few_are_feasible(self):
        threshold, members, _ = elite_of([-np.inf, 2.0, -np.inf, 1.0, -np.inf], 0.8)
        assert threshold == 1.0
        assert members.tolist() == [1, 3]

    @pytest.mark.parametrize("percent", range(1, 101))
    def test_a_percentage_of_a_hundred_is_not_off_by_one_by_rounding(self, percent):
        assert len(elite_of(np.arange(100.0), percent / 100).members) == percent

    @given(
        st.lists(st.integers(-3, 3), min_size=1, max_size=30),
        st.fractions(Fraction(1, 100), 1, max_denominator=100),
    )
    def test_the_elite_is_the_smallest_top_set_without_cut_ties_that_is_large_enough(self, values, share):
        elite = elite_of(values, float(share))
        wanted = -(-share * len(values) // 1)  # rounded up
        chosen = {values[k] for k in elite.members}
        assert min(chosen) == elite.threshold
        assert len(elite.members) >= wanted
        assert len(elite.members) == sum(value >= elite.threshold for value in values)
        assert sum(value > elite.threshold for value in values) < wanted

    @pytest.mark.parametrize("share", [0.0, -0.1, 1.1, np.nan])
    def test_a_share_outside_its_range_is_refused(self, share):
        with pytest.raises(InvalidArgumentError, match="share must be greater than 0 and at most 1"):
            elite_of([1.0], share)

    def test_performances_that_are_none_are_refused(self):
        with pytest.raises(InvalidArgumentError, match="no performances"):
            elite_of([], 0.5)
        with pytest.raises(InvalidArgumentError, match="performance of sample 2 is nan"):
            elite_of([0.0, -np.inf, np.nan], 0.5)
        with pytest.raises(InvalidArgumentError, match="performance of sample 1 is inf"):
            elite_of([0.0, np.inf], 0.5)
        with pytest.raises(ShapeError, match=r"one number for each sample, but has shape \(1, 2\)"):
            elite_of([[0.0, 1.0]], 0.5)


class TestUpdate:
    samples = np.array([[1, 1], [1, 0], [0, 0], [0, 1]])
    values = np.array([4.0, 3.0, 2.0, 1.0])
    start = np.array([0.2, 0.4])

    def test_the_parameters_go_the_smoothed_way_to_the_fit_of_the_elite(self):
        found = update(Bernoulli(2), self.samples, self.values, self.start, elite=0.5, smoothing=0.7)
        fitted = np.array([1.0, 0.5])
        np.testing.assert_allclose(found.parameters, 0.7 * fitted + 0.3 * self.start)
        assert found.elite.members.tolist() == [0, 1]

    def test_smoothing_of_one_is_no_smoothing(self):
        found = update(Bernoulli(2), self.samples, self.values, self.start, elite=0.5, smoothing=1.0)
        expected = fit(Bernoulli(2), self.samples[:2], [0.5, 0.5], self.start)
        assert found.parameters.tolist() == expected.tolist() == [1.0, 0.5]

    @pytest.mark.parametrize("value", [5.0, -np.inf])
    def test_samples_that_are_all_equally_good_teach_nothing(self, value):
        found = update(Bernoulli(2), self.samples, [value] * 4, self.start)
        assert found.parameters.tolist() == self.start.tolist()
        assert len(found.elite.members) == 4

    def test_samples_may_be_a_list(self):
        array = update(Bernoulli(2), self.samples, self.values, self.start)
        listed = update(Bernoulli(2), list(self.samples), self.values, self.start)
        assert listed.parameters.tolist() == array.parameters.tolist()

    def test_bad_input_is_named(self):
        with pytest.raises(ShapeError, match=r"each of 4 samples.*each\(function\)"):
            update(Bernoulli(2), self.samples, [1.0], self.start)
        with pytest.raises(
            InvalidArgumentError, match="smoothing must be greater than 0 and at most 1, but 0"
        ):
            update(Bernoulli(2), self.samples, self.values, self.start, smoothing=0)
        with pytest.raises(ShapeError, match="parameters must hold the 2 parameters of Bernoulli"):
            update(Bernoulli(2), self.samples, self.values, [0.5])


def test_the_loop_is_one_update_after_another():
    parameters, root = BITS.uniform, Stream(5).bits()
    thresholds = []
    for iteration in range(3):
        drawn = BITS.sample(parameters, 40, Stream(root, iteration))
        parameters, elite = update(BITS, drawn, ones(drawn), parameters, elite=0.2, smoothing=0.5)
        thresholds.append(elite.threshold)
    found = search(elite=0.2, smoothing=0.5, iterations=3, seed=5)
    np.testing.assert_array_equal(found.parameters, parameters)
    assert found.trace.threshold.tolist() == thresholds
    assert (found.iterations, found.evaluations, found.converged) == (3, 120, False)


def test_the_trace_tells_threshold_mean_and_best_of_each_iteration():
    batches = []

    def watched(bits):
        batches.append(bits.copy())
        return np.where(bits[:, 0] == 1, ones(bits), -np.inf)

    found = search(watched, iterations=4, patience=4)
    assert len(batches) == found.iterations == len(found.trace.mean)
    for bits, threshold, mean, best in zip(batches, *found.trace, strict=True):
        values = sorted(ones(bits)[bits[:, 0] == 1], reverse=True)
        assert (threshold, best) == (values[3], values[0])
        assert mean == pytest.approx(np.mean(values))


def test_the_best_sample_of_all_iterations_is_returned_and_the_first_of_equals():
    numbers = iter(range(1_000))
    values = iter([[1.0, 5.0, 2.0], [5.0, 3.0, 4.0], [0.0, 0.0, 0.0]])

    class Counter(Bernoulli):
        def sample(self, parameters, count, stream):
            return [next(numbers) for _ in range(count)]

        def fit(self, samples, shares):
            return np.array([0.5])

    found = cross_entropy(Counter(1), lambda _: next(values), start=[0.5], samples=3, iterations=3)
    assert (found.best, found.best_value) == (1, 5.0)


def test_a_sample_that_is_a_row_does_not_keep_its_batch_alive():
    found = search()
    assert found.best.base is None
    assert found.best.tolist() == [1] * 6


def test_the_same_seed_gives_the_same_result_and_another_one_another():
    first, again, other = (search(seed=seed, iterations=2) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.parameters, again.parameters)
    assert (first.parameters != other.parameters).any()


def test_a_generator_or_a_stream_may_be_given_for_a_seed():
    for make in (np.random.default_rng, Stream):
        first, again = (search(seed=make(9), iterations=2).parameters for _ in range(2))
        np.testing.assert_array_equal(first, again)
        source = make(9)
        search(seed=source, iterations=2)
        assert (search(seed=source, iterations=2).parameters != first).any()


def test_the_search_ends_when_the_threshold_has_not_risen_for_long_enough():
    levels = iter([0.0, 1.0, 1.0, 2.0, 2.0, 1.0, 2.0, 9.0])
    found = search(lambda bits: next(levels) + ones(bits) * 0.0, patience=3)
    assert found.converged
    assert found.trace.threshold.tolist() == [0.0, 1.0, 1.0, 2.0, 2.0, 1.0, 2.0]


def test_many_rises_below_the_tolerance_add_up():
    level = iter(np.arange(0.0, 100.0, 0.4))
    found = search(lambda bits: next(level) + ones(bits) * 0.0, patience=3, tolerance=1.0, iterations=50)
    assert not found.converged
    level = iter(np.arange(0.0, 100.0, 0.4))
    found = search(lambda bits: next(level) + ones(bits) * 0.0, patience=2, tolerance=1.0, iterations=50)
    assert found.converged
    assert found.iterations == 3


def test_a_search_that_finds_nothing_feasible_goes_on_and_does_not_converge():
    found = search(lambda bits: np.full(len(bits), -np.inf), iterations=12)
    assert (found.iterations, found.converged, found.best_value) == (12, False, -np.inf)
    assert found.parameters.tolist() == BITS.uniform.tolist()
    assert found.trace.mean.tolist() == [-np.inf] * 12
    assert found.best.shape == (6,)


def test_one_lucky_feasible_sample_does_not_start_the_clock():
    """An elite of four is filled from the third iteration on; the thresholds before that do not count."""
    few, full = [-np.inf] * 39 + [9.0], [-np.inf] * 30 + [1.0] * 10
    values = iter([few, few, full, full, full, full])
    found = search(lambda _: next(values), patience=3)
    assert found.trace.threshold.tolist() == [9.0, 9.0, 1.0, 1.0, 1.0, 1.0]
    assert found.converged


def test_a_plateau_leaves_the_parameters_where_they_were():
    found = search(lambda bits: np.zeros(len(bits)), patience=4)
    assert found.converged
    assert found.parameters.tolist() == BITS.uniform.tolist()


def test_a_function_of_one_sample_is_made_one_of_a_batch():
    found, expected = search(each(lambda bits: bits.sum())), search()
    np.testing.assert_array_equal(found.parameters, expected.parameters)


def test_the_start_is_neither_changed_nor_handed_back():
    start = BITS.uniform
    search(start=start)
    assert start.tolist() == BITS.uniform.tolist()
    unmoved = search(lambda bits: np.zeros(len(bits)), start=start)
    assert not np.shares_memory(unmoved.parameters, start)


def test_ctrl_c_returns_what_there_is():
    calls = iter(range(10))

    def impatient(bits):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return ones(bits)

    found = search(impatient)
    expected = search(iterations=2)
    assert (found.interrupted, found.converged, found.iterations) == (True, False, 2)
    np.testing.assert_array_equal(found.parameters, expected.parameters)
    assert not expected.interrupted


def test_ctrl_c_before_the_first_iteration_is_done_is_passed_on():
    def impatient(bits):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(impatient)


def test_a_long_search_shows_a_bar_if_asked_and_a_short_one_does_not(monkeypatch):
    def shown(**options):
        with redirect_stderr(io.StringIO()) as screen:
            search(iterations=3, **options)
        return screen.getvalue()

    assert shown(progress=True) == ""
    monkeypatch.setattr(method, "PROGRESS_AFTER", 0.0)
    assert "threshold=" in shown(progress=True)
    assert shown(progress=False) == ""
    assert shown() == ""  # this is no terminal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples must be at least 1, but 0 was given"),
        ({"elite": 0.0}, "elite must be greater than 0 and at most 1, but 0.0 was given"),
        ({"elite": 1.5}, "elite must be greater than 0 and at most 1, but 1.5 was given"),
        ({"smoothing": 0.0}, "smoothing must be greater than 0 and at most 1, but 0.0 was given"),
        ({"smoothing": 1.01}, "smoothing must be greater than 0 and at most 1, but 1.01 was given"),
        ({"iterations": 0}, "iterations must be at least 1"),
        ({"tolerance": -1.0}, "tolerance must be zero or more"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"start": [np.nan] * 6}, r"start\[0\] is nan, but parameters must be finite"),
        ({"start": [2.0] * 6}, r"parameters\[0\] is 2, .* probabilities: give numbers from 0 to 1"),
        ({"performance": lambda bits: np.where(ones(bits) > 5, np.nan, 0.0)}, "of sample [0-9]+ is nan"),
        ({"performance": lambda bits: np.full(len(bits), np.inf)}, "sample 0 is inf.*-inf for an infeasible"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        search(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": [0.5]}, r"start must hold the 6 parameters of Bernoulli, but has shape \(1,\)"),
        ({"performance": lambda bits: 3.0}, r"each of 40 samples, but has shape \(\).*use each\(function\)"),
        ({"performance": lambda bits: bits}, r"each of 40 samples, but has shape \(40, 6\)"),
        ({"performance": lambda bits: ones(bits)[:7]}, r"each of 40 samples, but has shape \(7,\)"),
    ],
)
def test_wrong_shapes_are_named(options, message):
    with pytest.raises(ShapeError, match=message):
        search(**options)


def test_a_family_that_draws_another_number_of_samples_is_named():
    class Short(Gaussian):
        def sample(self, parameters, count, stream):
            return super().sample(parameters, count - 1, stream)

    with pytest.raises(ShapeError, match="sample of Short must return 40 samples, but returned 39"):
        search(family=Short(1), start=[0.0, 1.0])


def test_the_example_in_the_documentation_runs():
    assert doctest.testmod(method) == (0, 5)
