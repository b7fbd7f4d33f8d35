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
        Share of the members whose move is correct: the sum of the smaller of both flows, over the larger
        total.
    moved_overlap
        The same for members that do not stay where they are; NaN if nobody moves.
    relative_error
        Sum of absolute errors over the sum of the true flows.
    rmse
        Root of the mean squared error over all possible moves.
    correlation
        Correlation of expected and true flows; NaN if either does not vary.
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
        Number of members that make each move.
    stays : bool[...]
        Which of the moves stay at the same place; of a shape that broadcasts to theirs.
    """
    predicted, truth = np.asarray(expected, dtype=np.float64), np.asarray(true, dtype=np.float64)
    if predicted.shape != truth.shape:
        raise ShapeError(
            f"expected flows of shape {predicted.shape} were given, but the true flows have shape"
            f" {truth.shape}."
        )
    for name, flows in (("expected", predicted), ("true", truth)):
        if not bool((np.isfinite(flows) & (flows >= 0)).all()):
            raise InvalidArgumentError(f"{name} flows must be finite and zero or more, but some are not.")
    if truth.sum() <= 0:
        raise InvalidArgumentError("the true flows are all zero: there is nothing to compare with.")
    moved = ~np.broadcast_to(np.asarray(stays, dtype=bool), truth.shape)
    varies = predicted.std() > 0 and truth.std() > 0
    return FlowScore(
        _overlap(predicted, truth),
        _overlap(predicted[moved], truth[moved]),
        float(np.abs(predicted - truth).sum() / truth.sum()),
        float(np.sqrt(np.mean((predicted - truth) ** 2))),
        float(np.corrcoef(predicted.ravel(), truth.ravel())[0, 1]) if varies else np.nan,
        float(predicted.sum()),
        float(truth.sum()),
    )


def _overlap(predicted: Floats, truth: Floats) -> float:
    larger = max(float(predicted.sum()), float(truth.sum()))
    return float(np.minimum(predicted, truth).sum() / larger) if larger > 0 else np.nan
