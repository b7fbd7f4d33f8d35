"""Nearest neighbors of vectors against all cosines, and the blocking keys made of them."""

import numpy as np
import pytest

from factorwise.apps.resolution.blocking import Part, Rule, find_candidates, nearest
from factorwise.apps.resolution.blocking.keys import KeyMaker
from factorwise.apps.resolution.blocking.nearest import nearest_neighbors, sketch_keys
from factorwise.apps.resolution.normalize.forms import NormalField, NormalTable
from factorwise.apps.resolution.normalize.vectors import Vectors

RULE = Rule((Part("meaning", "vector", "nearest", 2),))


def unit_vectors(n, size=8, *, seed=0, groups=0, noise=0.2):
    draws = np.random.default_rng(seed)
    vectors = draws.normal(size=(n, size))
    if groups:
        vectors = draws.normal(size=(groups, size))[draws.integers(0, groups, n)] + noise * vectors
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def brute_force(vectors, k, groups=None):
    cosine = vectors.astype(float) @ vectors.T.astype(float)
    same = np.eye(len(vectors), dtype=bool) if groups is None else groups[:, None] == groups[None, :]
    cosine[same] = -np.inf
    order = np.argsort(-cosine, axis=1)[:, :k]
    return np.where(np.take_along_axis(cosine, order, axis=1) > -np.inf, order, -1)


@pytest.mark.parametrize("with_groups", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(7, 16), (1_024, 8_192)])
def test_exact_neighbors_are_those_of_brute_force(monkeypatch, rows, columns, with_groups):
    monkeypatch.setattr(nearest, "_ROWS", rows)
    monkeypatch.setattr(nearest, "_COLUMNS", columns)
    vectors = unit_vectors(60)
    groups = np.random.default_rng(1).integers(0, 3, 60) if with_groups else None
    found = nearest_neighbors(vectors, 4, groups=groups)
    np.testing.assert_array_equal(found, brute_force(vectors, 4, groups))


def test_a_vector_with_too_few_others_has_fewer_neighbors():
    found = nearest_neighbors(unit_vectors(5), 3, groups=np.array([0, 0, 0, 0, 1]))
    np.testing.assert_array_equal(found[:4], [[4, -1, -1]] * 4)
    assert sorted(found[4].tolist()) != [-1, -1, -1]
    np.testing.assert_array_equal(nearest_neighbors(unit_vectors(1), 2), [[-1, -1]])


def test_cells_find_nearly_all_neighbors_and_none_twice():
    vectors = unit_vectors(3_000, 16, groups=300)
    near, exact = nearest_neighbors(vectors, 5, exact=100), nearest_neighbors(vectors, 5)
    shared = [len(set(a) & set(b)) for a, b in zip(near.tolist(), exact.tolist(), strict=True)]
    assert np.mean(shared) > 4.7
    assert all(len(set(row)) == 5 for row in near.tolist())


def table_of(vectors, codes):
    form = Vectors(np.array(codes, np.int32), vectors)
    return NormalTable(len(codes), {"meaning": NormalField("meaning", "vector", {"vector": form})})


def test_candidates_are_the_neighbors_and_records_of_one_vector():
    vectors = unit_vectors(30)
    codes = [*range(30), 0, -1]  # the first vector stands twice, one record has none
    found = find_candidates(table_of(vectors, codes), [RULE])
    near = brute_force(vectors, 2)
    wanted = {(min(a, b), max(a, b)) for a, row in enumerate(near.tolist()) for b in row}
    wanted |= {(b if a == 0 else a, 30) for a, b in wanted if 0 in (a, b)} | {(0, 30)}
    assert set(zip(found.first.tolist(), found.second.tolist(), strict=True)) == wanted


def test_across_sources_neighbors_are_of_the_other_one():
    vectors, sources = unit_vectors(40), np.repeat([0, 1], 20)
    found = find_candidates(table_of(vectors, range(40)), [RULE], sources=sources, within=False)
    near = brute_force(vectors, 2, sources)
    wanted = {(min(a, b), max(a, b)) for a, row in enumerate(near.tolist()) for b in row}
    assert set(zip(found.first.tolist(), found.second.tolist(), strict=True)) == wanted


def test_keys_of_some_rows_are_those_of_the_whole_table():
    normal, rows = table_of(unit_vectors(30), range(30)), np.array([3, 4, 17])
    whole, some = KeyMaker(normal).keys(RULE), KeyMaker(normal, rows).keys(RULE)
    for place, row in enumerate(rows):
        np.testing.assert_array_equal(whole.key[whole.item == row], some.key[some.item == place])


def test_sketches_are_shared_by_near_vectors_of_two_tables():
    vectors = unit_vectors(200, 32)
    noisy = vectors + 0.02 * unit_vectors(200, 32, seed=5)
    one, two = (sketch_keys(Vectors(np.arange(200, dtype=np.int32), each)) for each in (vectors, noisy))
    same = [set(one.rows([k]).key) & set(two.rows([k]).key) for k in range(200)]
    other = [set(one.rows([k]).key) & set(two.rows([(k + 1) % 200]).key) for k in range(200)]
    assert np.mean([len(keys) > 0 for keys in same]) > 0.99
    assert np.mean([len(keys) > 0 for keys in other]) < 0.1
