"""Choices of the question engine: two groups of records, and why they were chosen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.candidates import WHOLE, QuestionPairs
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.types import Ints

EXPECTED, UNCERTAIN, RANDOM, AGAIN = "expected change", "nearest to one half", "random", "disagreement"
MOST_SHOWN = 12  # most records in a question about whole entities
WHOLE_GAIN = 4.0  # least ratio of its value to that of a pair, because it takes longer to answer
TOGETHER, APART = ", together", ", apart"  # suffix of the reason of a random question once it is answered


class Choice(NamedTuple):
    """A question to ask.

    left, right
        The two records; for a question about whole entities, the pair from which it was built.
    together, probability
        Whether they are currently in one entity, and the probability that they belong together.
    kind, reason
        ``merge``, ``split`` or ``whole``, and the strategy by which the question was chosen.
    value
        The expected change of B-cubed, summed over all records.
    records
        All records of a question about whole entities, sorted by entity.
    disputed
        The number of the decision that contradicts others, if the question is asked again because of it.
    """

    left: int
    right: int
    together: bool
    probability: float
    kind: str
    reason: str
    value: float
    records: tuple[int, ...] = ()
    disputed: int | None = None


def widen(
    choice: Choice, pool: QuestionPairs, value: NDArray[np.float64], labels: Ints, verdicts: Verdicts
) -> Choice:
    """Extend a question to all uncertain groups around its pair, if this is worth the longer answer."""
    ends = labels[[choice.left, choice.right]]
    one, two = labels[pool.left], labels[pool.right]
    beside = np.isin(one, ends) | np.isin(two, ends)
    entities, worth = list(dict.fromkeys(ends.tolist())), 0.0
    shown = sum(int((labels == entity).sum()) for entity in entities)
    for place in np.flatnonzero(beside)[np.argsort(-value[beside], kind="stable")].tolist():
        further = [e for e in (int(one[place]), int(two[place])) if e not in entities]
        more = sum(int((labels == entity).sum()) for entity in further)
        pair = (int(pool.left[place]), int(pool.right[place]))
        if shown + more > MOST_SHOWN or verdicts.known(*pair) is not None:
            continue
        if (min(pair), max(pair)) in verdicts.asked:
            continue
        entities += further
        shown += more
        worth += float(value[place])
    if shown < 3 or shown > MOST_SHOWN or worth < WHOLE_GAIN * choice.value:
        return choice
    rows = np.concatenate([np.flatnonzero(labels == entity) for entity in entities])
    return choice._replace(kind=WHOLE, value=worth, records=tuple(rows.tolist()))
