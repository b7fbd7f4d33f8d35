"""Temperatures for annealing, as functions of the share of the walk that is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from factorwise.errors import require
from factorwise.validation import check_number


class Schedule(Protocol):
    """A temperature for each moment of a walk."""

    def temperature(self, done: float) -> float:
        """Return the temperature when the share ``done`` (0 to 1) of the steps has been made."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same temperature throughout."""

    value: float = 1.0

    def __post_init__(self) -> None:
        check_number("temperature", self.value, above=0)

    def temperature(self, done: float) -> float:
        """Return the temperature."""
        return self.value


@dataclass(frozen=True, slots=True)
class _Falling:
    """Falls from ``start`` to ``end``."""

    start: float = 2.0
    end: float = 0.02

    def __post_init__(self) -> None:
        check_number("end", self.end, above=0)
        require(self.start >= self.end, "start and end", (self.start, self.end), "start >= end > 0")


@dataclass(frozen=True, slots=True)
class Geometric(_Falling):
    """Falls from ``start`` to ``end`` by the same factor in equal stretches."""

    def temperature(self, done: float) -> float:
        """Return ``start * (end / start) ** done``."""
        return float(self.start * (self.end / self.start) ** done)


@dataclass(frozen=True, slots=True)
class Linear(_Falling):
    """Falls from ``start`` to ``end`` by the same difference in equal stretches."""

    def temperature(self, done: float) -> float:
        """Return the temperature between the two."""
        return self.start + (self.end - self.start) * done
