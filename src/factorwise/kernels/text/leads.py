"""How far pairs lead the other pairs of their records, by a value that each pair has."""

from __future__ import annotations

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Float32s, Int32s


@kernel
def best_two(first: Int32s, second: Int32s, value: Float32s, best: Float32s, runner_up: Float32s) -> None:
    """Find the two highest values of the pairs of each row, into ``best`` and ``runner_up``.

    Both hold zeros at first, which is what a row without pairs keeps. Values are zero or more; NaN counts for
    nothing.
    """
    for k in range(len(first)):
        for row in (first[k], second[k]):
            if value[k] > best[row]:
                runner_up[row] = best[row]
                best[row] = value[k]
            elif value[k] > runner_up[row]:
                runner_up[row] = value[k]


@kernel
def leads(
    first: Int32s,
    second: Int32s,
    value: Float32s,
    best: Float32s,
    runner_up: Float32s,
    smaller: Float32s,
    larger: Float32s,
) -> None:
    """Divide each value by the sum of it and the highest other one, for both rows of a pair.

    The highest other value of a row is the runner-up where the pair has the best one, else the best. What is
    zero stays zero.
    """
    for k in range(len(first)):
        v = value[k]
        one, two = first[k], second[k]
        a = runner_up[one] if v == best[one] else best[one]
        b = runner_up[two] if v == best[two] else best[two]
        if v == 0.0:
            smaller[k] = larger[k] = v
        else:
            smaller[k] = v / (v + max(a, b))
            larger[k] = v / (v + min(a, b))
