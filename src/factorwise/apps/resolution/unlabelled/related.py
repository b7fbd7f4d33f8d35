"""Find related pairs: non-matching pairs that share much, such as members of a household.

Random non-matching pairs share nothing, so they do not show how weak the evidence of an equal address is
within a household. Related pairs are detected where identities are not equal: the other columns agree, except
for one that nearly always agrees within an entity, such as a date of birth.
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

STABLE = 0.6  # least share of the anchors that agree in a column used to detect related pairs
FEWER = 0.5  # related pairs are assumed if likely matches agree less than this fraction of that share
FEWEST = 20  # least number of likely matches for this test
MOST = 200_000  # most candidates that are examined


class RelatedPairs(NamedTuple):
    """Related pairs among the candidates.

    rows
        Indices of the related pairs that a column revealed, of at most `MOST` candidates examined.
    counts : float64[7]
        Estimated number at each level of the identity, including pairs where the column is empty.
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
    """Find the related pairs among the candidates.

    levels
        Comparison levels of the candidates' identities.
    columns, calibration, prior
        The fitted model so far, which does not account for related pairs.
    anchors
        Anchors whose weights are the probabilities that they match.
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
        believed = identity + calibration(total - said[k]) > 0.0  # by all columns except this one
        for each in range(1, TOP):
            at_level = believed & (level == each)
            tested = np.flatnonzero(at_level & known)
            if len(tested) >= FEWEST and agrees[tested].mean() < FEWER * usual:
                is_related[tested[~agrees[tested]]] = True
                counts[each] = max(counts[each], at_level.sum() * (1.0 - agrees[tested].mean()))
    return RelatedPairs(rows[is_related], counts * (len(unequal) / max(len(rows), 1)))


def _agreeing(column: ColumnEvidence) -> Bools:
    """Return which levels of a column are evidence for a match; the top level always is."""
    found = column.weights > 0.0
    found[-1] = True
    return np.asarray(found)


def _share(agreeing: Bools, levels: NDArray[np.uint8], weight: Floats) -> float:
    known = levels > 0
    total = float(weight[known].sum())
    return float(weight[known & agreeing[levels]].sum()) / total if total > 0.0 else 0.0
