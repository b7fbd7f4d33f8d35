"""Calibration of probabilities: cases with probability 0.7 should come true seven times out of ten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.types import Float64s
from factorwise.validation import check_count


class Reliability(NamedTuple):
    """Cases in groups by their probability; groups without a case are left out.

    probability, share, cases : float64[groups]
        The mean probability of the cases, the share of them that came true, and their number, or the sum of
        their weights if they have any.
    """

    probability: Float64s
    share: Float64s
    cases: Float64s

    @property
    def error(self) -> float:
        """The expected calibration error: how far shares are from probabilities, over all cases."""
        total = float(self.cases.sum())
        return float(self.cases @ np.abs(self.probability - self.share)) / total if total else 0.0

    def as_dict(self) -> dict[str, list[float] | float]:
        """Return the groups and the error as JSON values."""
        groups = {name: values.tolist() for name, values in self._asdict().items()}
        return {**groups, "error": self.error}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reliability:
        """Read the result of `as_dict`; raise a ValueError, KeyError or TypeError for anything else."""
        groups = [np.asarray(values[name], dtype=np.float64) for name in cls._fields]
        shape = groups[0].shape
        if len(shape) != 1 or any(group.shape != shape or not np.isfinite(group).all() for group in groups):
            raise ValueError("the groups do not fit together")
        return cls(*groups)


def reliability(
    probability: ArrayLike, outcome: ArrayLike, *, weight: ArrayLike | None = None, bins: int = 10
) -> Reliability:
    """Group cases by their probability.

    probability, outcome : float[cases], bool[cases]
    weight
        The number of cases that each stands for; None for one.
    bins
        Groups of equal width between 0 and 1.
    """
    chance, true = np.asarray(probability, dtype=np.float64), np.asarray(outcome, dtype=np.float64)
    counts = np.ones(chance.shape) if weight is None else np.asarray(weight, dtype=np.float64)
    check_count("bins", bins)
    if not chance.shape == true.shape == counts.shape or chance.ndim != 1:
        raise ShapeError(f"{chance.shape} probabilities and {true.shape} outcomes: give one for each case.")
    if not ((chance >= 0) & (chance <= 1)).all():
        wrong = chance[~((chance >= 0) & (chance <= 1))][0]
        raise InvalidArgumentError(f"probabilities must be between 0 and 1, but {wrong:g} is among them.")
    group = np.minimum((chance * bins).astype(int), bins - 1)
    cases = np.bincount(group, counts, bins).astype(np.float64)
    some = cases > 0
    mean, share = (np.bincount(group, counts * values, bins)[some] / cases[some] for values in (chance, true))
    return Reliability(mean, share, cases[some])
