"""Find anchors (matching pairs with the same rare identity) and null pairs (non-matching pairs).

The m frequencies are estimated on anchors and never on a clustering: a clustering that splits entities would
strengthen its own evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.unlabelled.identity import CONFLICT, TOP, Identity
from factorwise.apps.resolution.unlabelled.views import Views
from factorwise.types import Bools, Ints

RARE = (0.1, 0.03, 0.01, 0.003)  # limits on the namesakes of an identity; the first suitable one is used
CHANCE = 0.1  # largest share of the anchors that may agree by chance
PER_VALUE, HEAVIEST = 90, 10.0  # most pairs of one value, and their largest total weight
ENOUGH = 60  # total anchor weight from which on near-equal identities are not needed
NULL = 20_000  # most null pairs of each kind
_SPECIFIC, _CONFLICTING, _EQUAL_PAIRS = 0.3, 0.9, 20  # context: least distinct, conflicting; pairs


class CandidatePairs(NamedTuple):
    """Candidate pairs of rows."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]


class Anchors(NamedTuple):
    """Pairs of rows that very likely match; a row that represents several records is paired with itself.

    weight
        Weight of each pair. All pairs of one value together weigh `HEAVIEST` at most.
    column
        Index of the evidence column in which the pair agrees; -1 if it agrees in the identity.
    chance
        Expected share of the anchors that agree only by chance.
    share, partners
        Share of the records with a rare identity that have a match, and their mean number of matches.
    has_near
        Whether near-equal identities are included, because too few are equal.
    """

    first: Ints
    second: Ints
    weight: NDArray[np.float64]
    column: Ints
    chance: float
    share: float
    partners: float
    has_near: bool = False


def pairs_of_values(
    code: NDArray[np.int64], rows: Ints, most: int, rng: np.random.Generator
) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Return pairs of rows with the same value, about ``most`` per value, and the weights of the pairs.

    If c rows have a value, its pairs weigh c - 1 together, but `HEAVIEST` at most.
    """
    rows = rows[code[rows] >= 0]
    rows = rng.permutation(rows)
    rows = rows[np.argsort(code[rows], kind="stable")]
    _, start, count = np.unique(code[rows], return_index=True, return_counts=True)
    first, second, weight = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for step in range(1, int(min(count.max(initial=1), most))):
        left = np.flatnonzero(count > step)
        each = np.minimum(count[left] - step, np.maximum(most // np.minimum(count[left] - 1, most), 1))
        place = np.repeat(start[left], each) + np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        first.append(rows[place])
        second.append(rows[place + step])
        weight.append(np.repeat(left, each).astype(float))
        if step >= 40:
            break
    one, two, value = np.concatenate(first), np.concatenate(second), np.concatenate(weight).astype(np.int64)
    made = np.bincount(value, minlength=len(count))
    joins = np.minimum(count - 1.0, HEAVIEST)
    return one, two, (joins / np.maximum(made, 1))[value]


def context_columns(views: Views, rng: np.random.Generator) -> list[int]:
    """Return the context columns, such as a paper: nearly all records that share it are different persons."""
    found: list[int] = []
    if not views.identity.is_person:
        return found
    everyone = np.arange(views.n_records)
    for k, witness in enumerate(views.witnesses):
        present = witness.code[witness.code >= 0]
        if not len(present) or len(np.unique(present)) < _SPECIFIC * len(present):
            continue
        first, second, _ = pairs_of_values(witness.code, everyone, 10, rng)
        levels = views.identity.levels(first, second)
        known = levels > 0
        if known.sum() >= _EQUAL_PAIRS and (levels[known] <= CONFLICT).mean() >= _CONFLICTING:
            found.append(k)
    return found


def share_context(views: Views, contexts: Sequence[int], first: Ints, second: Ints) -> Bools:
    """Return which pairs have the same value in a context column."""
    shared = np.zeros(len(first), bool)
    for k in contexts:
        code = views.witnesses[k].code
        shared |= (code[first] == code[second]) & (code[first] >= 0)
    return shared


def find_anchors(
    views: Views,
    contexts: Sequence[int],
    pool: CandidatePairs,
    levels: NDArray[np.uint8],
    one_per_source: bool,
    rng: np.random.Generator,
) -> Anchors:
    """Find anchors, including near-equal candidate pairs if few identities are equal.

    pool, levels
        The candidate pairs and the comparison levels of their identities.
    """
    identity = views.identity
    counts = np.bincount(identity.code[identity.known], minlength=len(identity.namesakes))
    rare, chance = rare_enough(identity, counts)
    namesakes = np.append(identity.namesakes, np.inf)[identity.code]
    rows = np.flatnonzero((namesakes <= rare) & identity.known)
    first, second, weight = pairs_of_values(identity.code, rows, PER_VALUE, rng)
    kept = ~share_context(views, contexts, first, second)
    if one_per_source and views.sources is not None:
        kept &= views.sources[first] != views.sources[second]
    first, second, weight = first[kept], second[kept], weight[kept]
    has = np.zeros(len(namesakes), bool)
    has[first], has[second] = True, True
    share = float(has[rows].mean()) if len(rows) else 0.0
    partners = share if one_per_source else joins_a_record(counts, rows, identity)
    column = np.full(len(first), -1)
    has_near = bool(weight.sum() < ENOUGH)
    if has_near:
        near, by = _near_pairs(views, pool, levels)
        if one_per_source and views.sources is not None:
            across = views.sources[pool.first[near]] != views.sources[pool.second[near]]
            near, by = near[across], by[across]
        first, second = np.append(first, pool.first[near]), np.append(second, pool.second[near])
        column, weight = np.append(column, by), np.append(weight, np.ones(len(near)))
        low, high = np.minimum(first, second), np.maximum(first, second)
        _, place = np.unique(low * np.int64(len(namesakes)) + high, return_index=True)
        first, second, column, weight = first[place], second[place], column[place], weight[place]
        has[first], has[second] = True, True
        share = max(share, float(has.mean()))
        partners = max(partners, share)
    if views.counts is not None:
        repeated = rows[views.counts[rows] > 1]
        first, second = np.append(first, repeated), np.append(second, repeated)
        column = np.append(column, np.full(len(repeated), -1))
        weight = np.append(weight, np.minimum(views.counts[repeated] - 1.0, HEAVIEST))
    return Anchors(first, second, weight, column, chance, share, partners, has_near)


def rare_enough(identity: Identity, counts: Ints) -> tuple[float, float]:
    """Return how many namesakes an anchor may have, and the share of anchors that then agree by chance."""
    chance = 0.0
    for rare in RARE:
        some = (identity.namesakes <= rare) & (counts > 0)
        joins = float((counts[some] - 1).sum())
        chance = min(float(identity.namesakes[some].sum()) / 2.0 / joins, 1.0) if joins else 0.0
        if chance <= CHANCE:
            break
    return rare, chance


def joins_a_record(counts: Ints, rows: Ints, identity: Identity) -> float:
    """Return the mean number of others with a record's rare identity, counting at most `HEAVIEST` each."""
    if not len(rows):
        return 0.0
    return float(np.minimum(counts[identity.code[rows]] - 1.0, HEAVIEST).mean())


def _near_pairs(views: Views, pool: CandidatePairs, levels: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """Return candidate pairs that almost certainly match, and the column that shows it.

    Either their identities are rare and near-equal, or their identities do not conflict and they share a rare
    value of a column in which most values are different.
    """
    identity = views.identity
    near = np.flatnonzero((levels >= TOP - 1) & (identity.expected(*pool) <= RARE[0]))
    rows, columns = [near], [np.full(len(near), -1)]
    for k, witness in enumerate(views.witnesses):
        rows.append(np.flatnonzero(witness.share_rare_value(*pool) & (levels > CONFLICT)))
        columns.append(np.full(len(rows[-1]), k))
    return np.concatenate(rows), np.concatenate(columns)


def null_pairs(views: Views, contexts: Sequence[int], rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return non-matching pairs, whose identities conflict.

    For texts, up to half of them share a word of their identity, so that they are similar but different
    things. For mentions in a context, up to half of them share the last name.
    """
    identity = views.identity
    parts = [_conflicting(identity, *views.random_pairs(2 * NULL, rng))]
    if contexts:
        one, two, _ = pairs_of_values(identity.group, np.arange(views.n_records), 2_000, rng)
        kept = rng.permutation(len(one))[: 4 * NULL]
        parts.append(_conflicting(identity, one[kept], two[kept]))
    elif not identity.is_person:
        parts.append(_conflicting(identity, *identity.sharing_words(rng), most=CONFLICT + 1))
    one = np.concatenate([part[0] for part in parts])
    two = np.concatenate([part[1] for part in parts])
    kept = np.flatnonzero(~share_context(views, contexts, one, two))
    return one[kept], two[kept]


def _conflicting(identity: Identity, first: Ints, second: Ints, most: int = CONFLICT) -> tuple[Ints, Ints]:
    levels = identity.levels(first, second)
    kept = np.flatnonzero((levels > 0) & (levels <= most) & (first != second))[:NULL]
    return first[kept], second[kept]
