"""Sparse vectors of concepts, and nearest neighbors among the rows of two matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from factorwise.apps.alignment.concepts import ConceptTable
from factorwise.apps.alignment.lexicon import Lexicon
from factorwise.types import Floats, Ints

_ROWS = 256  # rows whose similarities to all others are computed at once
_BEGINNING = 5  # first letters of a word that serve as a stem
_GRAMS = (3, 4)  # lengths of letter n-grams


def tfidf(left: Sequence[Iterable[str]], right: Sequence[Iterable[str]]) -> tuple[csr_array, csr_array]:
    """Return tf-idf vectors of length one for bags of terms; frequencies are those of both sides together.

    The term frequency is one plus the log of the count, the inverse document frequency is
    ``log((1 + bags) / (1 + bags with it)) + 1``.
    """
    bags = [Counter(bag) for bag in (*left, *right)]
    held = Counter(term for bag in bags for term in bag)
    number = {term: index for index, term in enumerate(held)}
    rarity = np.log((1 + len(bags)) / (1 + np.fromiter(held.values(), np.float64, len(held)))) + 1
    terms = np.array([number[term] for bag in bags for term in bag], dtype=np.int64)
    counts = np.array([count for bag in bags for count in bag.values()], dtype=np.float64)
    start = np.concatenate(([0], np.cumsum([len(bag) for bag in bags]))).astype(np.int64)
    values = (1 + np.log(counts)) * rarity[terms] if len(terms) else counts
    matrix = unit_rows(csr_array((values, terms, start), shape=(len(bags), max(1, len(number)))))
    return matrix[: len(left)], matrix[len(left) :]


def unit_rows(matrix: csr_array) -> csr_array:
    """Scale every row to length one; zero rows are unchanged."""
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    scaled = csr_array(matrix, dtype=np.float64, copy=True)
    scaled.data /= np.repeat(np.where(length > 0, length, 1.0), np.diff(scaled.indptr))
    return scaled


def cosines(left: csr_array, right: csr_array, pairs: Ints) -> NDArray[np.float64]:
    """Return the inner products of the rows of each pair: float64[pairs]."""
    found = np.empty(len(pairs))
    for first in range(0, len(pairs), 1 << 15):
        part = pairs[first : first + (1 << 15)]
        product = left[part[:, 0]].multiply(right[part[:, 1]])
        found[first : first + (1 << 15)] = np.asarray(product.sum(axis=1)).ravel()
    return found


def nearest(left: csr_array, right: csr_array, count: int) -> NDArray[np.int64]:
    """Return pairs of each row and its ``count`` nearest rows of the other side that share a term."""
    forward = _nearest(left, right, count)
    return np.concatenate([forward, _nearest(right, left, count)[:, ::-1]])


def _nearest(rows: csr_array, others: csr_array, count: int) -> NDArray[np.int64]:
    transposed = others.T.tocsr()
    found = []
    for first in range(0, rows.shape[0], _ROWS):
        similar: Floats = (rows[first : first + _ROWS] @ transposed).toarray()
        most = min(count, similar.shape[1])
        least = -np.partition(-similar, most - 1, axis=1)[:, most - 1 : most]
        row, column = np.nonzero((similar >= least) & (similar > 0))
        # Sort ties in the order of the file, so that the result does not depend on the library.
        order = np.lexsort((column, -similar[row, column], row))
        row, column = row[order], column[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        found.append(np.stack([row + first, column], axis=1)[place < count])
    return np.concatenate(found).astype(np.int64)


def word_terms(table: ConceptTable, lexicon: Lexicon) -> list[list[str]]:
    """Return the terms of all names of each concept: common forms, and marked words and prefixes."""
    bags = []
    for names in table.names:
        every = [word for name in names for word in name.words]
        forms = [form for name in names for form in sorted(lexicon.forms(name.words))]
        bags.append(forms + [f"={word}" for word in every] + [f"{word[:_BEGINNING]}-" for word in every])
    return bags


def letter_terms(table: ConceptTable) -> list[list[str]]:
    """Return the letter n-grams of all names of each concept; only spaces at the ends are included.

    So names differ little whether their words are joined or separated.
    """
    bags = []
    for names in table.names:
        bag: list[str] = []
        for name in names:
            joined = f" {''.join(name.words)} "
            bag += [joined[i : i + n] for n in _GRAMS for i in range(len(joined) - n + 1)]
        bags.append(bag)
    return bags
