"""Scores of antecedents: how well each earlier mention, or none, fits as the antecedent of a mention.

The score of mention i with an earlier mention j is a sum of weights. Each feature of the pair has one weight
of its own, one for the group of i, and one for the groups of both; and each of the pair's hashed features has
a weight. Mention i with itself means that i begins a new entity, and its hashed features are those of i
alone. The probability of an antecedent is a softmax over the scores of a row.

Arrays of a discourse with n mentions, in which the pair (i, j) with i > j has number ``i (i - 1) / 2 + j``:

start : int64[n (n - 1) / 2 + 1]
    Where the features of each pair begin in ``columns``.
columns : int32[.]
    Numbers of the active features.
group : int64[n]
    Group of each mention, below `GROUPS`.
crossed : int32[n (n - 1) / 2, .]
    Hashed features of the pairs.
opening : int32[n, .]
    Hashed features of the mentions.
plain : float64[1 + GROUPS + GROUPS ** 2, features]
    Weights of a feature alone, with one group, and with two groups.
hashed : float64[.]
    Weights of the hashed features.
"""

from __future__ import annotations

from math import exp, log, sqrt

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Float64s, Int32s, Int64s

GROUPS = 11
FALSE_LINK, FALSE_OPENING, WRONG_LINK = 0.5, 1.5, 1.0  # added to the score of each mistake in training
_SLIGHT = 1e-4  # gradients with a smaller absolute value are skipped


@kernel
def score_antecedents(
    start: Int64s,
    columns: Int32s,
    group: Int64s,
    crossed: Int32s,
    opening: Int32s,
    plain: Float64s,
    hashed: Float64s,
    mention: int,
    scores: Float64s,
) -> None:
    """Fill the first ``mention + 1`` of ``scores`` with the scores of the antecedents and of a new entity."""
    first = mention * (mention - 1) // 2
    mine = group[mention]
    for earlier in range(mention):
        both = 1 + GROUPS + mine * GROUPS + group[earlier]
        total = 0.0
        for place in range(start[first + earlier], start[first + earlier + 1]):
            column = columns[place]
            total += plain[0, column] + plain[1 + mine, column] + plain[both, column]
        for place in range(crossed.shape[1]):
            total += hashed[crossed[first + earlier, place]]
        scores[earlier] = total
    total = 0.0
    for place in range(opening.shape[1]):
        total += hashed[opening[mention, place]]
    scores[mention] = total


@kernel
def learn_antecedents(
    start: Int64s,
    columns: Int32s,
    group: Int64s,
    crossed: Int32s,
    opening: Int32s,
    truth: Int64s,
    plain: Float64s,
    hashed: Float64s,
    plain_squares: Float64s,
    hashed_squares: Float64s,
    rate: float,
    scores: Float64s,
) -> float:
    """Take one AdaGrad step for each mention in order, and return the log-likelihood of the true antecedents.

    Any earlier mention of the same entity is a true antecedent; if there is none, the mention begins the
    entity. Mistakes get a bonus, so that the truth has to win by a margin. ``plain_squares`` and
    ``hashed_squares`` are the sums of squared gradients so far; ``scores`` has room for all mentions.
    """
    likelihood = 0.0
    for mention in range(len(group)):
        score_antecedents(start, columns, group, crossed, opening, plain, hashed, mention, scores)
        opens = True
        for earlier in range(mention):
            if truth[earlier] == truth[mention]:
                opens = False
        highest = -1e300
        for choice in range(mention + 1):
            if choice == mention:
                scores[choice] += 0.0 if opens else FALSE_OPENING
            elif truth[choice] != truth[mention]:
                scores[choice] += FALSE_LINK if opens else WRONG_LINK
            highest = max(highest, scores[choice])
        everything = 0.0
        right = 0.0
        for choice in range(mention + 1):
            scores[choice] = exp(scores[choice] - highest)
            everything += scores[choice]
            if opens if choice == mention else truth[choice] == truth[mention]:
                right += scores[choice]
        right = max(right, 1e-300)
        likelihood += log(right / everything)
        first = mention * (mention - 1) // 2
        mine = group[mention]
        for choice in range(mention + 1):
            slope = -scores[choice] / everything
            if opens if choice == mention else truth[choice] == truth[mention]:
                slope += scores[choice] / right
            if abs(slope) < _SLIGHT:
                continue
            if choice == mention:
                for place in range(opening.shape[1]):
                    weight = opening[mention, place]
                    hashed_squares[weight] += slope * slope
                    hashed[weight] += rate * slope / sqrt(1.0 + hashed_squares[weight])
                continue
            both = 1 + GROUPS + mine * GROUPS + group[choice]
            for place in range(start[first + choice], start[first + choice + 1]):
                column = columns[place]
                for row in (0, 1 + mine, both):
                    plain_squares[row, column] += slope * slope
                    plain[row, column] += rate * slope / sqrt(1.0 + plain_squares[row, column])
            for place in range(crossed.shape[1]):
                weight = crossed[first + choice, place]
                hashed_squares[weight] += slope * slope
                hashed[weight] += rate * slope / sqrt(1.0 + hashed_squares[weight])
    return likelihood
