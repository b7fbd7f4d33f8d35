"""What can be asked: the two groups of records, and why."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.candidates import WHOLE, QuestionPairs
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.types import Ints

EXPECTED, UNCERTAIN, RANDOM, AGAIN = "expected change", "nearest to one half", "random", "disagreement"
MOST_SHOWN = 12  # records of a question about whole entities
WHOLE_GAIN = 4.0  # how many times more such a question must be worth: it takes longer to answer
TOGETHER, APART = ", together", ", apart"  # added to the reason of a random question when it is answered


class Choice(NamedTuple):
    """A question to ask.

    left, right
        The two records; of a question about whole entities those that are asked about most of all.
    together, probability
        Whether they are in one entity now, and the probability that they belong there.
    kind, reason
        Whether entities would be merged or split, or ``whole``; by what the question was chosen.
    value
        The expected change of B-cubed, summed over all records.
    records
        All records of a question about whole entities, in the order of their entities.
    disputed
        The number of the decision that contradicts others, if that is why the question is asked again.
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
    """Return a question about all uncertain groups around a pair, if it is worth the longer answer."""
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
