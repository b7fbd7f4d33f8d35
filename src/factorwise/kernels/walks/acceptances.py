"""The acceptances and choices of the library; like Gibbs proposals, they read the temperature."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.walks.library import (
    exponential,
    pick_share,
    sigmoid,
    take_shares,
    tempered,
    uniform,
)


def accept_metropolis(random: Any, move: Any) -> bool:
    r"""Accept with probability :math:`\min\{1, e^{\Delta/T} q(w \mid w') / q(w' \mid w)\}`.

    Implements: rogers2016first, Eq. 4.17, tempered.
    """
    return uniform(random) < move.ratio * exponential(tempered(move.gain, move.temperature) + move.log_ratio)


def accept_unbalanced(random: Any, move: Any) -> bool:
    """Accept as Metropolis does, but without the proposer's ratio.

    The chain is valid for symmetric proposers only.
    """
    return uniform(random) < exponential(tempered(move.gain, move.temperature))


def accept_barker(random: Any, move: Any) -> bool:
    """Accept with probability x / (1 + x), where x is what Metropolis compares with 1."""
    if move.ratio == 0.0:
        return False
    return uniform(random) < sigmoid(
        tempered(move.gain, move.temperature) + move.log_ratio + math.log(move.ratio)
    )


def accept_greedy(move: Any) -> bool:
    """Accept moves with a higher score."""
    return move.gain > 0.0


def accept_always() -> bool:
    """Accept every move."""
    return True


def accept_better(move: Any) -> bool:
    """Accept what the preference finds better and, of equally good worlds, the one that scores higher."""
    return move.better > 0.0 or (move.better == 0.0 and move.gain > 0.0)


def choose_by_score(random: Any, move: Any, choice: Any) -> Any:
    """Choose a target with probability proportional to exp(score / temperature): a Gibbs step.

    If everything is forbidden, the item stays.
    """
    chance = uniform(random)
    total = take_shares(choice.share, choice.out, move.choices, tempered(1.0, move.temperature), -1)
    if total == 0.0:
        return np.int64(choice.place[move.source] - 1)
    return pick_share(choice.share, move.choices, chance * total)
