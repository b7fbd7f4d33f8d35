"""Quasi-Newton directions for short vectors with fixed entries, such as dual variables at their bounds.

`quasi_newton` is for long vectors: its inner products are of whole vectors, so that fixing an entry would
require computing all of them again.
"""

from __future__ import annotations

from factorwise.kernels.compile.compiler import fast_kernel
from factorwise.types import Bools, Floats, Ints


@fast_kernel
def inverse_curvature_times(
    steps: Floats,
    changes: Floats,
    newest_first: Ints,
    diagonal: Floats,
    free: Bools,
    shares: Floats,
    found: Floats,
) -> None:
    """Multiply ``found`` by the approximate inverse Hessian of the free entries; fixed entries become zero.

    ``steps`` and ``changes`` (float64[memory, n]) are stored differences of the point and of the gradient, in
    the rows that ``newest_first`` lists; pairs without positive curvature among the free entries are skipped.
    The product starts from ``diagonal`` (float64[n]), scaled to agree with the newest pair. ``shares``
    (float64[memory, 2]) is scratch space.
    """
    size = len(found)
    for place in range(size):
        if not free[place]:
            found[place] = 0.0
    scale = 0.0
    for row in newest_first:
        step, change = steps[row], changes[row]
        product = along = 0.0
        for place in range(size):
            if free[place]:
                product += step[place] * change[place]
                along += step[place] * found[place]
        shares[row, 1] = product
        if product <= 0.0:
            continue
        share = along / product
        shares[row, 0] = share
        for place in range(size):
            if free[place]:
                found[place] -= share * change[place]
        if scale == 0.0:
            bent = 0.0
            for place in range(size):
                if free[place]:
                    bent += diagonal[place] * change[place] * change[place]
            scale = product / bent
    if scale == 0.0:
        scale = 1.0
    for place in range(size):
        found[place] *= scale * diagonal[place]
    for index in range(len(newest_first) - 1, -1, -1):
        row = newest_first[index]
        product = shares[row, 1]
        if product <= 0.0:
            continue
        step, change = steps[row], changes[row]
        along = 0.0
        for place in range(size):
            if free[place]:
                along += change[place] * found[place]
        share = shares[row, 0] - along / product
        for place in range(size):
            if free[place]:
                found[place] += share * step[place]
