"""Large matrices of cases of which a part runs always and all of them in the slow run."""

from itertools import product

import pytest


def thinned(*axes):
    """Return all combinations as parameters, of which as many run always as the longest axis has values.

    Those go through all axes in step, so that every value of every axis is among them; the others are slow.
    """
    axes = [list(axis) for axis in axes]
    sizes = [len(axis) for axis in axes]
    always = {tuple(k % size for size in sizes) for k in range(max(sizes))}
    return [
        pytest.param(*values, marks=() if places in always else pytest.mark.slow)
        for places, values in zip(product(*map(range, sizes)), product(*axes), strict=True)
    ]
