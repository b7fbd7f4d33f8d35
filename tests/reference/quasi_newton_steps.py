"""The inverse of the curvature as a matrix, by the update of Broyden, Fletcher, Goldfarb and Shanno."""

from __future__ import annotations

import numpy as np

from factorwise.types import Bools, Floats, Ints


def inverse_curvature_times(
    steps: Floats,
    changes: Floats,
    newest_first: Ints,
    diagonal: Floats,
    free: Bools,
    shares: Floats,
    found: Floats,
) -> None:
    """Build the matrix among the free entries from the oldest pair to the newest, and multiply."""
    pairs = [(steps[row][free], changes[row][free]) for row in newest_first[::-1]]
    pairs = [(step, change) for step, change in pairs if step @ change > 0.0]
    inverse = np.diag(diagonal[free])
    if pairs:
        step, change = pairs[-1]
        inverse *= (step @ change) / (change @ inverse @ change)
    for step, change in pairs:
        product = step @ change
        turned = np.eye(len(step)) - np.outer(step, change) / product
        inverse = turned @ inverse @ turned.T + np.outer(step, step) / product
    found[free] = inverse @ found[free]
    found[~free] = 0.0
