"""Enumerate every path of a random procedure with its probability, for exact tests of samplers.

A procedure that draws from `Branches` instead of a `factorwise.rng.Stream` runs once for every outcome of its
draws: whole numbers take each of their values in turn, and a uniform number branches at each comparison,
because only the side on which it lies matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")


class Branches:
    """A stream along one path: first the given choices, then the first option of every further choice."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.at = 0
        self.probability = 1.0
        self.open: list[int] = []  # number of options of each choice made so far

    def choose(self, chances: list[float]) -> int:
        """Take the next choice of the path, among options with these probabilities."""
        if self.at == len(self.path):
            self.path.append(next(k for k, chance in enumerate(chances) if chance > 0.0))
        chosen = self.path[self.at]
        self.at += 1
        self.probability *= chances[chosen]
        following = [k for k in range(chosen + 1, len(chances)) if chances[k] > 0.0]
        self.open.append(following[0] if following else -1)
        return chosen

    def below(self, bound: int) -> int:
        """Branch over the whole numbers below ``bound``."""
        return self.choose([1.0 / bound] * int(bound))

    def uniform(self) -> Any:
        """Return a number from [0, 1) that is determined only as far as it is compared."""
        return _Uniform(_Interval(self), 1.0, 0.0)


class _Interval:
    def __init__(self, branches: Branches) -> None:
        self.branches = branches
        self.low, self.high = 0.0, 1.0

    def is_below(self, border: float) -> bool:
        share = (border - self.low) / (self.high - self.low)
        share = min(1.0, max(0.0, share))
        if self.branches.choose([share, 1.0 - share]) == 0:
            self.high = min(self.high, border)
            return True
        self.low = max(self.low, border)
        return False


class _Uniform:
    """``scale * u + shift`` of a uniform number u."""

    def __init__(self, interval: _Interval, scale: float, shift: float) -> None:
        self.interval, self.scale, self.shift = interval, scale, shift

    def __mul__(self, factor: float) -> _Uniform:
        return _Uniform(self.interval, self.scale * factor, self.shift * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> _Uniform:
        return self * (1.0 / divisor)

    def __add__(self, more: float) -> _Uniform:
        return _Uniform(self.interval, self.scale, self.shift + more)

    __radd__ = __add__

    def __sub__(self, less: float) -> _Uniform:
        return self + (-less)

    def __rsub__(self, whole: float) -> _Uniform:
        return self * -1.0 + whole

    def _below(self, border: float) -> bool:
        if self.scale == 0.0:
            return self.shift < border
        threshold = (border - self.shift) / self.scale
        return (
            self.interval.is_below(threshold) if self.scale > 0.0 else not self.interval.is_below(threshold)
        )

    def __lt__(self, border: float) -> bool:
        return self._below(border)

    __le__ = __lt__

    def __gt__(self, border: float) -> bool:
        return not self._below(border)

    __ge__ = __gt__


class Tap:
    """A stream whose source can be replaced, for parts that keep their stream."""

    def __init__(self, source: Any = None) -> None:
        self.source = source

    def uniform(self) -> Any:
        """Draw from the source."""
        return self.source.uniform()

    def below(self, bound: int) -> int:
        """Draw from the source."""
        return self.source.below(bound)  # type: ignore[no-any-return]


def every_path(procedure: Callable[[Branches], Result]) -> Iterator[tuple[Result, float]]:
    """Run a procedure along every path of its draws; yield each result with its probability."""
    path: list[int] = []
    while True:
        branches = Branches(path)
        yield procedure(branches), branches.probability
        path = branches.path[: branches.at]
        while path and branches.open[len(path) - 1] < 0:
            path.pop()
        if not path:
            return
        path[-1] = branches.open[len(path) - 1]
