"""How far pairs lead the other pairs of their rows, from the definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]
Rows = NDArray[np.int32]


def best_two(first: Rows, second: Rows, value: Floats32, best: Floats32, runner_up: Floats32) -> None:
    """Sort the values of the pairs of each row; those it has not are zero."""
    for row in range(len(best)):
        of_row = [v for a, b, v in zip(first, second, value, strict=True) if row in (a, b) and v == v]
        runner_up[row], best[row] = sorted([0.0, 0.0, *of_row])[-2:]


def leads(
    first: Rows,
    second: Rows,
    value: Floats32,
    best: Floats32,
    runner_up: Floats32,
    smaller: Floats32,
    larger: Floats32,
) -> None:
    """Take a value out of the two highest of a row, and compare it with the higher of what is left."""
    for k, (a, b, v) in enumerate(zip(first, second, value, strict=True)):
        shares = []
        for row in (a, b):
            others = [best[row], runner_up[row]]
            if v in others:
                others.remove(v)
            shares.append(np.float32(0.0) if v == 0.0 else v / (v + max(others)))
        smaller[k], larger[k] = sorted(shares)
