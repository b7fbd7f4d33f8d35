"""Scores of antecedents and how they are learned, from the definition, a weight at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUPS = 11
COSTS = {"false link": 0.5, "false opening": 1.5, "wrong link": 1.0}

Array = NDArray[Any]


def score_antecedents(
    start: Array,
    columns: Array,
    group: Array,
    crossed: Array,
    opening: Array,
    plain: Array,
    hashed: Array,
    mention: int,
    scores: Array,
) -> None:
    """Add up the weights of each choice."""
    tables = {"plain": plain, "hashed": hashed}
    for choice in range(mention + 1):
        names = weights_of(start, columns, group, crossed, opening, mention, choice)
        scores[choice] = sum(tables[table][place] for table, place in names)


def learn_antecedents(
    start: Array,
    columns: Array,
    group: Array,
    crossed: Array,
    opening: Array,
    truth: Array,
    plain: Array,
    hashed: Array,
    plain_squares: Array,
    hashed_squares: Array,
    rate: float,
    scores: Array,
) -> float:
    """Follow the gradient of the log-likelihood of each mention in turn."""
    tables = {"plain": (plain, plain_squares), "hashed": (hashed, hashed_squares)}
    given = (start, columns, group, crossed, opening)
    likelihood = 0.0
    for mention in range(len(group)):
        score_antecedents(*given, plain, hashed, mention, scores)
        true = [choice for choice in range(mention) if truth[choice] == truth[mention]] or [mention]
        costs = [
            0.0
            if choice in true
            else COSTS["false opening"]
            if choice == mention
            else COSTS["false link" if true == [mention] else "wrong link"]
            for choice in range(mention + 1)
        ]
        raised = scores[: mention + 1] + costs
        everything, right = np.logaddexp.reduce(raised), np.logaddexp.reduce(raised[true])
        likelihood += right - everything
        for choice in range(mention + 1):
            slope = -math.exp(raised[choice] - everything)
            slope += math.exp(raised[choice] - right) if choice in true else 0.0
            if abs(slope) < 1e-4:
                continue
            for table, place in weights_of(*given, mention, choice):
                weights, squares = tables[table]
                squares[place] += slope**2
                weights[place] += rate * slope / math.sqrt(1 + squares[place])
    return float(likelihood)


def weights_of(
    start: Array, columns: Array, group: Array, crossed: Array, opening: Array, mention: int, choice: int
) -> Iterator[tuple[str, Any]]:
    """Name the weights of one choice of a mention, each with the table where it stands."""
    if choice == mention:
        yield from (("hashed", place) for place in opening[mention].tolist())
        return
    pair = mention * (mention - 1) // 2 + choice
    rows = (0, 1 + group[mention], 1 + GROUPS + GROUPS * group[mention] + group[choice])
    for column in columns[start[pair] : start[pair + 1]].tolist():
        yield from (("plain", (row, column)) for row in rows)
    yield from (("hashed", place) for place in crossed[pair].tolist())
