"""Kernels that compare codes, and that cut values into levels, against their definitions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.text import relations
from reference import relations as reference

SIZE = 12
codes = st.lists(st.integers(-1, 3), min_size=SIZE, max_size=SIZE)
pairs = np.array([(i, j) for i in range(SIZE) for j in range(SIZE)], np.int32)


def rows(values):
    return np.array(values, np.int32)


@given(codes)
def test_rarities_are_those_of_shared_values(values):
    rarity = np.array([0.5, 1.5, 2.5, 3.5], np.float32)
    found = np.empty(len(pairs), np.float32)
    relations.shared_rarities(rows(values), rarity, pairs[:, 0].copy(), pairs[:, 1].copy(), found)
    expected = [reference.shared_rarities(values[i], values[j], rarity) for i, j in pairs]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


@given(codes, codes, codes, codes)
def test_names_stand_to_each_other_as_their_codes_say(name, root, sound, initial):
    found = np.empty(len(pairs), np.float32)
    columns = [rows(values) for values in (name, root, sound, initial)]
    relations.name_relations(*columns, pairs[:, 0].copy(), pairs[:, 1].copy(), found)
    each = list(zip(name, root, sound, initial, strict=True))
    expected = [reference.name_relations(each[i], each[j]) for i, j in pairs]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


@given(st.lists(st.sampled_from([np.nan, 0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=9), st.booleans())
def test_values_are_cut_into_levels_whose_weights_are_added(values, with_edges):
    given_values = np.array(values, np.float32)
    edges = np.array([1.0, 2.5] if with_edges else [], np.float32)
    weights = np.array([0.0, -1.0, 0.5, 2.0], np.float32)
    levels, scores = np.empty(len(values), np.uint8), np.full(len(values), 0.25, np.float32)
    relations.cut_levels(given_values, edges, levels)
    relations.add_level_weights(given_values, edges, weights, scores)
    assert levels.tolist() == [reference.cut_levels(value, edges.tolist()) for value in values]
    expected = [reference.add_level_weights(value, edges.tolist(), weights, 0.25) for value in values]
    assert scores.tolist() == expected
