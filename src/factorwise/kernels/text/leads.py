"""The lead of a pair over the other pairs of its records, in a value that each pair has."""

from __future__ import annotations

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Float32s, Int32s


@kernel
def best_two(first: Int32s, second: Int32s, value: Float32s, best: Float32s, runner_up: Float32s) -> None:
    """Find the two highest values among the pairs of each row, and write them to ``best`` and ``runner_up``.

    Both must be zero at first, and stay zero for rows without pairs. Values must not be negative; NaN is
    ignored.
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
    """Divide each value by the sum of itself and the highest other value, for both rows of a pair.

    The highest other value of a row is the runner-up if the pair has the best value, else the best. Zeros
    stay zero.
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
