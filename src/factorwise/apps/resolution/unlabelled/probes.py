"""Estimate the matching pairs that blocking loses, from random records and their nearest neighbors.

Random records (probes) are compared with *every* other record by the trigrams of all their words. A pair of a
probe and a neighbor that the model considers a match, and that is not a candidate pair, was lost by blocking.
Records that are similar only in meaning are not found by this either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.derived import RECORD, form_of
from factorwise.apps.resolution.normalize.forms import Lists, NormalTable
from factorwise.types import Bools, Floats, Ints

PROBES, NEAREST = 300, 10  # most probes, and neighbors of each
_AT_ONCE = 16  # probes that are compared with all records at once
_FREQUENT = 0.05  # share of the records above which a trigram is too frequent to be informative
_FEWEST = 1_000  # number of records up to which a trigram is used in any case


class Lost(NamedTuple):
    """The estimated loss by blocking.

    pairs
        Share of the likely pairs of probes that are not candidates.
    recall
        Factor by which the B-cubed recall of the clustering is multiplied. It may be close to 1 even if pairs
        are lost, because other pairs often hold their entities together.
    """

    pairs: float
    recall: float


def probe_blocking(
    normal: NormalTable,
    pairs: tuple[Ints, Ints],
    log_odds: Floats,
    log_odds_of: Callable[[Ints, Ints], Floats],
    labels: Ints,
    sources: Ints | None,
    *,
    seed: int,
) -> Lost | None:
    """Estimate the loss by blocking; return None if the probes have no likely pairs.

    pairs, log_odds
        The candidate pairs, the smaller row of each first, and their log odds.
    log_odds_of
        Computes the log odds of any pairs.
    labels
        The cluster id of each record.
    sources
        The source of each record, if each source lists an entity at most once.
    """
    n = normal.n_rows
    probes = np.sort(np.random.default_rng([seed, 23]).permutation(n)[:PROBES])
    one, two = _nearest_records(normal, probes)
    if sources is not None:
        across = sources[one] != sources[two]
        one, two = one[across], two[across]
    key = np.sort(np.asarray(pairs[0], np.int64) * n + pairs[1])
    asked = np.minimum(one, two) * np.int64(n) + np.maximum(one, two)
    known = np.append(key, -1)[np.searchsorted(key, asked)] == asked
    one, two = one[~known], two[~known]
    missed = _likely(log_odds_of(np.minimum(one, two), np.maximum(one, two))) if len(one) else np.zeros(0)
    is_probe = np.zeros(n, bool)
    is_probe[probes] = True
    seen = _likely(log_odds) * (is_probe[pairs[0]].astype(float) + is_probe[pairs[1]])
    whole = float(missed.sum() + seen.sum())
    if whole == 0.0:
        return None
    apart = labels[one] != labels[two]
    lost = np.bincount(one[apart], weights=missed[apart], minlength=n)[probes]
    size = np.bincount(labels)[labels[probes]]
    return Lost(float(missed.sum()) / whole, float((size / (size + lost)).mean()))


def _likely(log_odds: Floats) -> NDArray[np.float64]:
    """Return the match probability of each pair, or 0 if it is not above one half."""
    return np.where(log_odds > 0.0, 0.5 * (1.0 + np.tanh(0.5 * np.clip(log_odds, -30.0, 30.0))), 0.0)


def _nearest_records(normal: NormalTable, probes: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of each probe and the records with the highest cosine similarity of trigrams."""
    from scipy.sparse import csr_array  # here, so that applying a model does not load SciPy

    pieces = form_of(normal, RECORD, "grams")
    assert isinstance(pieces, Lists)
    counts = np.bincount(pieces.codes, minlength=len(pieces.values))
    telling: Bools = (counts > 1) & (counts <= max(_FEWEST, int(_FREQUENT * normal.n_rows)))
    rarity = np.where(telling, np.log(normal.n_rows / np.maximum(counts, 1)), 0.0).astype(np.float32)
    plain = rarity[pieces.codes]
    row = np.repeat(np.arange(normal.n_rows), np.diff(pieces.offsets))
    norm = np.sqrt(np.bincount(row, weights=plain.astype(np.float64) ** 2, minlength=normal.n_rows))
    weights = np.asarray(plain / np.maximum(norm, 1e-9)[row], np.float32)
    used = weights > 0.0
    shape = (normal.n_rows, max(len(pieces.values), 1))
    table = csr_array((weights[used], (row[used], pieces.codes[used])), shape=shape)
    columns = table.T.tocsr()
    ones, twos = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for low in range(0, len(probes), _AT_ONCE):
        some = probes[low : low + _AT_ONCE]
        cosine = (table[some] @ columns).toarray()
        cosine[np.arange(len(some)), some] = 0.0
        count = min(NEAREST, normal.n_rows)
        near: NDArray[np.int64] = np.argpartition(-cosine, count - 1, axis=1)[:, :count]
        there = np.take_along_axis(cosine, near, axis=1) > 0.0
        ones.append(np.asarray(np.repeat(some, count)[there.ravel()], np.int64))
        twos.append(np.asarray(near.ravel()[there.ravel()], np.int64))
    return np.concatenate(ones), np.concatenate(twos)
