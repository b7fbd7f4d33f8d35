"""How well expected flows agree with the true ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.types import Floats


@dataclass(frozen=True, slots=True)
class FlowScore:
    """Agreement of flows.

    overlap
        Share of the members whose move is right: the sum of the smaller of both flows, over the larger total.
    moved_overlap
        The same of members that do not stay where they are; NaN where nobody moves.
    relative_error
        Sum of absolute errors over the sum of the true flows.
    rmse
        Root of the mean squared error over all possible moves.
    correlation
        Of expected and true flows; NaN where either does not vary.
    expected, true
        Totals.
    """

    overlap: float
    moved_overlap: float
    relative_error: float
    rmse: float
    correlation: float
    expected: float
    true: float


def score_flows(expected: ArrayLike, true: ArrayLike, stays: ArrayLike) -> FlowScore:
    """Compare flows entry by entry.

    expected, true : float[...]
        Members that make each move.
    stays : bool[...]
        Which of the moves lead nowhere else; of a shape that broadcasts to theirs.
    """
    found, truth = np.asarray(expected, dtype=np.float64), np.asarray(true, dtype=np.float64)
    if found.shape != truth.shape:
        raise ShapeError(f"flows of shape {found.shape} were given to compare with {truth.shape}.")
    for name, flows in (("expected", found), ("true", truth)):
        if not bool((np.isfinite(flows) & (flows >= 0)).all()):
            raise InvalidArgumentError(f"{name} flows must be finite and zero or more, but some are not.")
    if truth.sum() <= 0:
        raise InvalidArgumentError("the true flows are all zero: there is nothing to compare with.")
    moved = ~np.broadcast_to(np.asarray(stays, dtype=bool), truth.shape)
    varies = found.std() > 0 and truth.std() > 0
    return FlowScore(
        _overlap(found, truth),
        _overlap(found[moved], truth[moved]),
        float(np.abs(found - truth).sum() / truth.sum()),
        float(np.sqrt(np.mean((found - truth) ** 2))),
        float(np.corrcoef(found.ravel(), truth.ravel())[0, 1]) if varies else np.nan,
        float(found.sum()),
        float(truth.sum()),
    )


def _overlap(found: Floats, truth: Floats) -> float:
    larger = max(float(found.sum()), float(truth.sum()))
    return float(np.minimum(found, truth).sum() / larger) if larger > 0 else np.nan
