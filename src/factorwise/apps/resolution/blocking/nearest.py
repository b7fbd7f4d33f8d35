"""Find the nearest neighbors of vectors, exactly, or for very many vectors approximately, within cells.

Matrix products of blocks of vectors yield the cosines of all pairs; only those above the neighbors found so
far are kept. More than `EXACT` vectors are first divided into cells around centers (an inverted file index):
each vector belongs to its `CELLS` nearest cells, and neighbors are searched only within cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from factorwise.apps.resolution.normalize.forms import ranges
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.rng import split_mix_words
from factorwise.types import Floats, Ints
from factorwise.variables.sparse_rows import starts_of

EXACT = 120_000  # number of vectors up to which all pairs are compared
CELLS = 4  # cells of each vector in the approximate search
_ROWS, _COLUMNS = 1_024, 8_192  # rows and columns of a block of cosines
_ROUNDS, _SEEDS_A_CELL = 2, 64  # k-means rounds, and training vectors per cell
_NONE = -1  # no neighbor

Matrix = NDArray[np.float32]
_BANDS, _BITS = 24, 12  # sketches: number of keys, and random projections per key


class RowKeys(NamedTuple):
    """Blocking keys of rows: those of row r are ``key[offsets[r]:offsets[r + 1]]``."""

    key: NDArray[np.uint64]
    offsets: NDArray[np.int64]

    def rows(self, rows: Ints) -> RowKeys:
        """Return the keys of the given rows."""
        lengths = np.diff(self.offsets)[rows]
        return RowKeys(self.key[ranges(self.offsets[:-1][rows], lengths)], starts_of(lengths))


class _Nearest:
    """The nearest neighbors found so far: their cosines and indices, nearest first; -1 for none."""

    def __init__(self, n: int, k: int, *, meets_again: bool) -> None:
        self.meets_again = meets_again  # whether two vectors can share several cells
        self.cosine = np.full((n, k), -np.inf, np.float32)
        self.number = np.full((n, k), _NONE, np.int64)

    def look_at(self, rows: Ints, others: Ints, cosine: Matrix) -> None:
        """Update the neighbors of ``rows`` by nearer ones of ``others``; cosine: float32[rows, others]."""
        k = self.cosine.shape[1]
        one, two = np.nonzero(cosine > self.cosine[rows, -1][:, None])
        if len(one) > 4 * k * len(rows) and len(others) > k:  # the first others are all nearer
            best = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
            one, two = np.repeat(np.arange(len(rows)), k), best.ravel()
            there = cosine[one, two] > -np.inf
            one, two = one[there], two[there]
        touched, place = np.unique(one, return_inverse=True)
        mine = rows[touched]
        row = np.append(np.repeat(np.arange(len(touched)), k), place)
        near = np.append(self.cosine[mine].ravel(), cosine[one, two])
        number = np.append(self.number[mine].ravel(), others[two])
        if self.meets_again:
            _, fresh = np.unique(np.stack([row, number], axis=1), axis=0, return_index=True)
            row, near, number = row[fresh], near[fresh], number[fresh]
        order = np.lexsort((number, -near, row))
        row, near, number = row[order], near[order], number[order]
        rank = np.arange(len(row)) - np.searchsorted(row, np.arange(len(touched)))[row]
        kept = rank < k
        self.cosine[mine[row[kept]], rank[kept]] = near[kept]
        self.number[mine[row[kept]], rank[kept]] = number[kept]


def nearest_neighbors(
    vectors: Matrix, k: int, *, groups: Ints | None = None, exact: int = EXACT
) -> NDArray[np.int64]:
    """Return the indices of each vector's k nearest others by cosine, nearest first; -1 for none.

    vectors : float32[vectors, numbers]
        Vectors of length one.
    groups : int[vectors]
        Only vectors of different groups can be neighbors; None to allow all.
    exact
        Number of vectors up to which all pairs are compared.
    """
    n = len(vectors)
    found = _Nearest(n, k, meets_again=n > exact)
    with threadpool_limits(1):  # the result must not depend on the number of threads
        if n <= exact:
            _compare_all(vectors, np.arange(n), groups, found)
        else:
            for members in _cells(vectors):
                _compare_all(vectors, members, groups, found)
    return found.number


def _compare_all(vectors: Matrix, members: Ints, groups: Ints | None, found: _Nearest) -> None:
    """Compare all pairs of some vectors, block by block."""
    if groups is not None:  # sort by group, so that blocks within one group can be skipped
        members = members[np.argsort(groups[members], kind="stable")]
    for low in range(0, len(members), _ROWS):
        rows = members[low : low + _ROWS]
        for start in range(low, len(members), _COLUMNS):
            others = members[start : start + _COLUMNS]
            if groups is not None and groups[rows[0]] == groups[others[-1]]:
                continue
            cosine = vectors[rows] @ vectors[others].T
            if groups is not None:
                cosine[groups[rows][:, None] == groups[others][None, :]] = -np.inf
            if start == low:  # exclude each vector itself; the rows are among the others here
                cosine[np.arange(len(rows)), np.arange(len(rows))] = -np.inf
            found.look_at(rows, others, cosine)
            beyond = len(rows) if start == low else 0
            if len(others) > beyond:
                found.look_at(others[beyond:], rows, np.ascontiguousarray(cosine[:, beyond:].T))


def _cells(vectors: Matrix) -> list[NDArray[np.int64]]:
    """Divide vectors into cells; each vector is put into its `CELLS` nearest ones."""
    draws = np.random.default_rng(0)
    count = int(np.sqrt(len(vectors)))
    some = draws.permutation(len(vectors))[: count * _SEEDS_A_CELL]
    centers = vectors[some[:count]]
    for _ in range(_ROUNDS):
        nearest = _nearest_centers(vectors[some], centers, 1)[:, 0]
        sums = np.zeros(centers.shape, np.float64)
        np.add.at(sums, nearest, vectors[some])
        length = np.sqrt((sums**2).sum(axis=1, keepdims=True))
        centers = np.where(length > 0.0, sums / np.maximum(length, 1e-12), centers).astype(np.float32)
    cell = _nearest_centers(vectors, centers, CELLS)
    order = np.argsort(cell.ravel(), kind="stable")
    bounds = np.searchsorted(cell.ravel()[order], np.arange(count + 1))
    return [
        np.sort(order[a:b] // CELLS) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def _nearest_centers(vectors: Matrix, centers: Floats | Matrix, k: int) -> NDArray[np.int64]:
    found = np.empty((len(vectors), k), np.int64)
    for low in range(0, len(vectors), _COLUMNS):
        cosine = vectors[low : low + _COLUMNS] @ centers.T
        found[low : low + _COLUMNS] = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
    return found


def neighbor_keys(form: Vectors, k: int, groups: Ints | None = None) -> RowKeys:
    """Return keys that a row shares with rows of the nearest vectors and, without groups, of an equal vector.

    groups : int[rows]
        Only rows of different groups can be neighbors; None to allow all.
    """
    known = np.flatnonzero(form.codes >= 0)
    group = np.zeros(len(form), np.int64) if groups is None else np.asarray(groups, np.int64)
    width = int(group.max(initial=0)) + 1
    points, point = np.unique(form.codes[known].astype(np.int64) * width + group[known], return_inverse=True)
    among = None if groups is None else points % width
    near = nearest_neighbors(form.values[points // width], min(k, max(len(points) - 1, 1)), groups=among)
    one, two = np.repeat(np.arange(len(points)), near.shape[1]), near.ravel()
    one, two = one[two != _NONE], two[two != _NONE]
    edges = np.unique(np.minimum(one, two) * np.int64(len(points)) + np.maximum(one, two))
    own = np.arange(len(points) if groups is None else 0)  # rows with equal vectors share a key too
    ends = np.concatenate([edges // max(len(points), 1), edges % max(len(points), 1), own])
    key = split_mix_words(np.concatenate([edges, edges, own * np.int64(len(points) + 1)]).astype(np.uint64))
    order = np.argsort(ends, kind="stable")
    of_points = RowKeys(key[order], starts_of(np.bincount(ends, minlength=len(points))))
    return _of_rows(of_points, known, point, len(form))


def sketch_keys(form: Vectors) -> RowKeys:
    """Return keys that near vectors probably share, even across tables (locality-sensitive hashing).

    Each key encodes on which sides of a few random planes a vector lies. Two vectors at angle a lie on
    different sides of a plane with probability a / pi.
    """
    known = np.flatnonzero(form.codes >= 0)
    planes = np.random.default_rng(form.values.shape[1]).normal(size=(form.values.shape[1], _BANDS * _BITS))
    with threadpool_limits(1):
        above = (form.values @ planes.astype(np.float32)) > 0.0
    bits = above.reshape(len(form.values), _BANDS, _BITS) @ (1 << np.arange(_BITS))
    key = split_mix_words((np.arange(_BANDS) << _BITS | bits).astype(np.uint64))
    of_values = RowKeys(key.ravel(), np.arange(len(form.values) + 1) * _BANDS)
    return _of_rows(of_values, known, form.codes[known].astype(np.int64), len(form))


def _of_rows(keys: RowKeys, known: Ints, value: Ints, n: int) -> RowKeys:
    """Return the keys of n rows, given the keys of values, the rows that have a value, and these values."""
    found = keys.rows(value)
    lengths = np.zeros(n, np.int64)
    lengths[known] = np.diff(found.offsets)
    return RowKeys(found.key, starts_of(lengths))
