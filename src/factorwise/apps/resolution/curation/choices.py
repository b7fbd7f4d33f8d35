"""What can be asked: the two groups of records, and why."""

from __future__ import annotations

from typing import NamedTuple

EXPECTED, UNCERTAIN, RANDOM, AGAIN = "expected change", "nearest to one half", "random", "disagreement"
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
    mean, best
        The scores between the two groups.
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
    mean: float
    best: float
    records: tuple[int, ...] = ()
    disputed: int | None = None
