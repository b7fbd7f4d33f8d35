"""Pairs of two entities that share much: members of a household, editions of a book, volumes of a series.

Random pairs of two entities share nothing, so they cannot say what an equal address is worth among people of
one household. Such pairs give themselves away where their identities are not equal: the other columns agree,
but for one that nearly always agrees within an entity, such as a date of birth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.unlabelled.anchors import Anchors, CandidatePairs
from factorwise.apps.resolution.unlabelled.evidence import ColumnEvidence, ScoreCurve, weigh
from factorwise.apps.resolution.unlabelled.identity import TOP
from factorwise.apps.resolution.unlabelled.prior import LevelPrior
from factorwise.apps.resolution.unlabelled.views import Views
from factorwise.types import Bools, Floats, Ints

STABLE = 0.6  # share of the anchors that agree in a column, for it to give a pair away
FEWER = 0.5  # of that share, below which pairs that other columns make sure are of two entities
FEWEST = 20  # pairs that show it
MOST = 200_000  # candidates that are looked at


class RelatedPairs(NamedTuple):
    """Candidates that are two entities which share much.

    rows
        Rows among the candidates of those that a column gave away; at most `MOST` are looked at.
    counts : float64[7]
        How many there are likely to be at each level of the identity, with those where the column is empty.
    """

    rows: Ints
    counts: NDArray[np.float64]


NO_RELATED = RelatedPairs(np.zeros(0, np.int64), np.zeros(TOP + 1))


def find_related(
    views: Views,
    pool: CandidatePairs,
    levels: NDArray[np.uint8],
    columns: Sequence[ColumnEvidence],
    calibration: ScoreCurve,
    prior: LevelPrior,
    anchors: Anchors,
    rng: np.random.Generator,
) -> RelatedPairs:
    """Find candidates that are two entities which share much.

    levels
        Of the candidates' identities.
    columns, calibration, prior
        What was measured so far, as if there were no such pairs.
    anchors
        Their weights say which of them are of one entity.
    """
    unequal = np.flatnonzero((levels > 0) & (levels < TOP))
    rows = rng.permutation(unequal)[:MOST]
    one, two, level = pool.first[rows], pool.second[rows], levels[rows]
    identity = prior(level, views.identity.expected(one, two), views.n_records)
    compared = [witness.levels(one, two) for witness in views.witnesses]
    said = [
        weigh(column, witness, frequency, each, one)
        for column, witness, frequency, each in zip(
            columns, views.witnesses, views.frequencies, compared, strict=True
        )
    ]
    total = np.sum(said, axis=0) if said else np.zeros(len(rows))
    is_related, counts = np.zeros(len(rows), bool), np.zeros(TOP + 1)
    for k, (column, witness) in enumerate(zip(columns, views.witnesses, strict=True)):
        agreeing = _agreeing(column)
        usual = _share(agreeing, witness.levels(anchors.first, anchors.second), anchors.weight)
        if usual < STABLE:
            continue
        known, agrees = compared[k] > 0, agreeing[compared[k]]
        believed = identity + calibration(total - said[k]) > 0.0  # by all but this column
        for each in range(1, TOP):
            at_level = believed & (level == each)
            tested = np.flatnonzero(at_level & known)
            if len(tested) >= FEWEST and agrees[tested].mean() < FEWER * usual:
                is_related[tested[~agrees[tested]]] = True
                counts[each] = max(counts[each], at_level.sum() * (1.0 - agrees[tested].mean()))
    return RelatedPairs(rows[is_related], counts * (len(unequal) / max(len(rows), 1)))


def _agreeing(column: ColumnEvidence) -> Bools:
    """Return which levels of a column speak for one entity."""
    found = column.weights > 0.0
    found[-1] = True
    return np.asarray(found)


def _share(agreeing: Bools, levels: NDArray[np.uint8], weight: Floats) -> float:
    known = levels > 0
    total = float(weight[known].sum())
    return float(weight[known & agreeing[levels]].sum()) / total if total > 0.0 else 0.0
