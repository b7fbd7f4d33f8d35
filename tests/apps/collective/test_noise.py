"""Noise models: how many members there are, and counts that no population could have given."""

import numpy as np
import pytest

from factorwise.apps.collective import Counts, Noise
from factorwise.errors import CountsError, InvalidArgumentError


def population(counts, kind, given=None, **settings):
    return Noise(kind=kind, **settings).population(Counts.of(counts).series[0], given)


def test_the_population_is_the_mean_sum_of_counts():
    assert population([[60, 30], [50, 60]], "poisson") == pytest.approx(100)
    assert population([[60, 30], [50, 60]], "gaussian") == pytest.approx(100)


def test_a_rate_makes_the_population_larger():
    assert population([[6, 3], [5, 6]], "poisson", rate=0.1) == pytest.approx(100)


def test_a_missing_count_is_taken_to_be_the_mean_of_its_place():
    assert population([[60, 40], [80, np.nan], [np.nan, np.nan]], "poisson") == pytest.approx((100 + 120) / 2)


def test_a_given_population_is_taken():
    assert population([[60, 40]], "poisson", 500) == 500
    with pytest.raises(InvalidArgumentError, match="population must be a finite number greater than zero"):
        population([[60, 40]], "poisson", -5)


def test_counts_that_are_all_missing_or_all_zero_are_refused():
    with pytest.raises(CountsError, match="no count at all: give at least one"):
        population([[np.nan, np.nan]], "poisson")
    with pytest.raises(CountsError, match="every count is zero"):
        population([[0, 0], [0, 0]], "gaussian")


def test_exact_counts_must_have_one_sum_at_all_times():
    assert population([[60, 40], [np.nan, 30], [10, 90]], "exact") == 100
    with pytest.raises(
        CountsError, match=r"time '2': the counts sum to 101, but time '0' has 100\..*poisson"
    ):
        population([[60, 40], [np.nan, 30], [10, 91]], "exact")


def test_exact_counts_must_agree_with_a_given_population():
    assert population([[60, np.nan], [np.nan, 30]], "exact", 90) == 90
    with pytest.raises(CountsError, match=r"time '0': the counts sum to 60, but the population has 50"):
        population([[60, np.nan]], "exact", 50)
    with pytest.raises(CountsError, match=r"no time has a count at every place.*give the population"):
        population([[60, np.nan]], "exact")


def test_a_multinomial_sample_covers_all_places_or_none():
    assert population([[6, 4], [np.nan, np.nan]], "multinomial") == 10
    with pytest.raises(CountsError, match=r"time '1': only some places.*Write 0"):
        population([[6, 4], [3, np.nan]], "multinomial")
    with pytest.raises(CountsError, match=r"time '1': every count is zero"):
        population([[6, 4], [0, 0]], "multinomial")


def test_settings_outside_their_range_are_refused():
    with pytest.raises(InvalidArgumentError, match="noise must be one of 'poisson'"):
        Noise(kind="uniform")
    with pytest.raises(InvalidArgumentError, match="rate"):
        Noise(rate=0)
    with pytest.raises(InvalidArgumentError, match="variance"):
        Noise(kind="gaussian", variance=-1)


@pytest.mark.parametrize(
    ("kind", "name", "owner"),
    [("gaussian", "rate", "poisson"), ("poisson", "variance", "gaussian"), ("exact", "rate", "poisson")],
)
def test_a_number_of_another_noise_is_refused(kind, name, owner):
    with pytest.raises(
        InvalidArgumentError, match=rf"{name}=1.0 is a parameter of {owner}.*leave it out, or set noise"
    ):
        Noise(kind=kind, **{name: 1.0})
    assert Noise(kind=owner, **{name: 2.0}).number == 2
    assert Noise(kind=owner).number == 1
