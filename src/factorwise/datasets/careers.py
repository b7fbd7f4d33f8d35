"""How many mentions each author has: a power law with a cut-off, p(k) ~ k^-1.9 exp(-k / scale)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.types import Floats, Ints

EXPONENT = 1.9
SCALE = 220.0  # fits real bibliographies
_TAIL = 40.0  # multiples of the scale beyond which the probability is negligible
_TOP = 0.01


class CareerLaw(NamedTuple):
    """Probability of k = 1, 2, ... mentions, and statistics that follow from it."""

    probability: Floats

    @property
    def mean(self) -> float:
        """Mentions per author."""
        return float(self.probability @ np.arange(1, len(self.probability) + 1))

    @property
    def singletons(self) -> float:
        """Share of authors with one mention."""
        return float(self.probability[0])

    @property
    def top_share(self) -> float:
        """Share of the mentions that belong to the one percent of authors with most mentions."""
        held = self.probability * np.arange(1, len(self.probability) + 1)
        above = np.cumsum(self.probability[::-1])[::-1]  # probability of k or more
        whole = above <= _TOP
        partly = int(np.argmax(whole)) if whole.any() else len(above)
        rest = (_TOP - above[whole].max(initial=0.0)) * partly
        return float((held[whole].sum() + rest) / held.sum())


def career_law(scale: float = SCALE) -> CareerLaw:
    """Return the law with this cut-off; the larger the scale, the larger the largest careers."""
    length = np.arange(1, int(_TAIL * scale) + 2, dtype=np.float64)
    weight = length**-EXPONENT * np.exp(-length / scale)
    return CareerLaw(weight / weight.sum())


def career_lengths(mentions: int, law: CareerLaw) -> Ints:
    """Return lengths of careers that sum to ``mentions``, shortest first: int64[authors].

    They are quantiles of the distribution instead of draws, because the few longest would depend too much on
    chance.
    """
    authors = max(1, round(mentions / law.mean))
    quantile = (np.arange(authors) + 0.5) / authors
    index = np.searchsorted(np.cumsum(law.probability), quantile, side="right")
    length = np.minimum(index, len(law.probability) - 1).astype(np.int64) + 1
    surplus = int(length.sum()) - mentions
    if surplus <= 0:
        return np.concatenate([np.ones(-surplus, dtype=np.int64), length])
    if 2 * surplus <= np.count_nonzero(length == 1):
        return length[surplus:]
    kept = np.diff(np.minimum(np.cumsum(length), mentions), prepend=0)  # few mentions: cut the longest
    return kept[kept > 0]
