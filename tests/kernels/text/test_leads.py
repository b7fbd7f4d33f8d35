"""Leads of pairs over the other pairs of their rows, against the definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.text.leads import best_two, leads
from reference import leads as reference

ROWS = 6
PAIRS = st.sets(st.sampled_from([(i, j) for j in range(ROWS) for i in range(j)]))
VALUES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, float("nan")])


@given(PAIRS, st.lists(VALUES, min_size=15, max_size=15))
def test_the_two_highest_values_of_rows_and_the_leads_are_those_of_the_definition(pairs, values):
    first, second = np.array(sorted(pairs), np.int32).reshape(-1, 2).T.copy()
    value = np.array(values[: len(pairs)], np.float32)
    found, expected = np.zeros((2, 2, ROWS), np.float32)
    best_two(first, second, value, *found)
    reference.best_two(first, second, value, *expected)
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(value)
    led, led_by_definition = np.full((2, 2, int(known.sum())), -1.0, np.float32)
    given_pairs = first[known], second[known], value[known]
    leads(*given_pairs, *found, *led)
    reference.leads(*given_pairs, *expected, *led_by_definition)
    np.testing.assert_array_equal(led, led_by_definition)
