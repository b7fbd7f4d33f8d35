"""Evidence from the positions of two concepts in their hierarchies.

Anchors stand in for the unknown true matches: pairs that are mutually best by an untrained score and have a
high score, or confident matches. Two concepts are compared by the number of anchors between their neighbors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from factorwise.apps.alignment.concepts import ConceptTable
from factorwise.types import Floats, Ints

_LEAST_LEAD = 1e-9  # least lead of a best score; a smaller one may be rounding error


def standing(score: Floats, pairs: Ints, side: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the rank of each pair among those of its concept on one side, and its lead over the best other.

    Ranks count from 0; equal scores share a rank. The lead of a pair below the best is negative, and that of
    a concept's only pair is its score.
    """
    order = np.lexsort((-score, pairs[:, side]))
    concept, value = pairs[order, side], score[order]
    first = np.concatenate(([True], concept[1:] != concept[:-1])) if len(order) else np.zeros(0, bool)
    group = np.cumsum(first) - 1
    start = np.flatnonzero(first)
    position = np.arange(len(order)) - start[group]
    top = value[start]
    after = np.where(np.append(first, True)[1:][start], 0.0, np.append(value, 0.0)[start + 1])
    lead = np.where(position == 0, value - after[group], value - top[group])
    new_value = np.concatenate(([True], value[1:] < value[:-1] - _LEAST_LEAD)) | first
    place = position[np.maximum.accumulate(np.where(new_value, np.arange(len(order)), 0))]
    ranked, leads = np.empty(len(order), np.int64), np.empty(len(order))
    ranked[order], leads[order] = place, lead
    return ranked, leads


def anchors(score: Floats, pairs: Ints, shape: tuple[int, int], least: float) -> csr_array:
    """Return the pairs that are mutually the unique best and score at least ``least``, as a 0/1 matrix."""
    (left_place, left_lead), (right_place, right_lead) = (standing(score, pairs, side) for side in (0, 1))
    lead = np.minimum(left_lead, right_lead)
    best = (left_place == 0) & (right_place == 0) & (lead > _LEAST_LEAD) & (score >= least)
    return anchor_matrix(pairs[best], shape)


def anchor_matrix(chosen: Ints, shape: tuple[int, int]) -> csr_array:
    """Return a matrix of ``shape`` with ones at the pairs and zeros elsewhere."""
    return csr_array((np.ones(len(chosen)), (chosen[:, 0], chosen[:, 1])), shape=shape)


class StructureEvidence:
    """Compares the neighbors of the concepts of two ontologies."""

    def __init__(self, left: ConceptTable, right: ConceptTable) -> None:
        self.left = left
        self.right = right
        self.relations = {
            "parents": (_matrix(left.parents), _matrix(right.parents)),
            "wholes": (_matrix(left.wholes), _matrix(right.wholes)),
            "children": (_matrix(left.children), _matrix(right.children)),
            "parts": (_matrix(left.parts), _matrix(right.parts)),
            "ancestors": (_matrix(left.ancestors), _matrix(right.ancestors)),
        }
        above = [_matrix([(*p, *w) for p, w in zip(t.parents, t.wholes, strict=True)]) for t in (left, right)]
        self.relations["above"] = (above[0], above[1])
        self.relations["below"] = (above[0].T.tocsr(), above[1].T.tocsr())

    def columns(self, pairs: Ints, anchored: csr_array) -> dict[str, NDArray[np.float64]]:
        """Return named numbers from 0 to 1 for every pair: float64[pairs] each."""
        found: dict[str, NDArray[np.float64]] = {}
        a, b = pairs[:, 0], pairs[:, 1]
        to_right, to_left = (np.asarray(anchored.sum(axis=axis)).ravel() > 0 for axis in (1, 0))
        for name, (ours, theirs) in self.relations.items():
            both = _at(ours @ anchored @ theirs.T, pairs)
            fewer = np.minimum((ours @ to_right)[a], (theirs @ to_left)[b])
            found[f"{name} meet"] = np.minimum(both, 1.0)
            found[f"{name} share"] = np.divide(both, fewer, out=np.zeros(len(pairs)), where=fewer > 0)
            found[f"{name} apart"] = ((fewer > 0) & (both == 0)).astype(np.float64)
        siblings = [ours.T.tocsr() for ours in self.relations["above"]]
        beside = [_others(up @ down) for up, down in zip(self.relations["above"], siblings, strict=True)]
        found["siblings meet"] = np.minimum(_at(beside[0] @ anchored @ beside[1].T, pairs), 1.0)
        depth = np.abs(np.array(self.left.depth)[a] - np.array(self.right.depth)[b])
        leaf = [np.array([not below for below in table.children]) for table in (self.left, self.right)]
        found["same depth"] = (depth == 0).astype(np.float64)
        found["depth differs by two or more"] = (depth >= 2).astype(np.float64)
        found["both leaves"] = (leaf[0][a] & leaf[1][b]).astype(np.float64)
        found["one is a leaf"] = (leaf[0][a] != leaf[1][b]).astype(np.float64)
        return found


def _matrix(targets: Sequence[Sequence[int] | frozenset[int]]) -> csr_array:
    start = np.concatenate(([0], np.cumsum([len(some) for some in targets]))).astype(np.int64)
    every = np.array([target for some in targets for target in sorted(some)], dtype=np.int64)
    matrix = csr_array((np.ones(len(every)), every, start), shape=(len(targets), len(targets)))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _others(matrix: csr_array) -> csr_array:
    """Return the nonzero entries of a matrix as ones, without its diagonal."""
    coo = matrix.tocoo()
    kept = coo.row != coo.col
    return csr_array((np.ones(kept.sum()), (coo.row[kept], coo.col[kept])), shape=matrix.shape)


def _at(matrix: csr_array, pairs: Ints) -> NDArray[np.float64]:
    """Return the entries of a sparse matrix at the pairs."""
    if not len(pairs):
        return np.zeros(0)
    return np.asarray(csr_array(matrix)[pairs[:, 0], pairs[:, 1]], dtype=np.float64).ravel()
