"""Temperatures for annealing: functions of the share of the walk that is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from factorwise.errors import require


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
        require(self.value > 0, "temperature", self.value, "greater than zero")

    def temperature(self, done: float) -> float:
        """Return the one temperature."""
        return self.value


@dataclass(frozen=True, slots=True)
class Geometric:
    """From ``start`` down to ``end``, by the same factor in equal stretches."""

    start: float = 2.0
    end: float = 0.02

    def __post_init__(self) -> None:
        require(self.start >= self.end > 0, "start and end", (self.start, self.end), "start >= end > 0")

    def temperature(self, done: float) -> float:
        """Return ``start * (end / start) ** done``."""
        return float(self.start * (self.end / self.start) ** done)


@dataclass(frozen=True, slots=True)
class Linear:
    """From ``start`` down to ``end``, by the same difference in equal stretches."""

    start: float = 2.0
    end: float = 0.02

    def __post_init__(self) -> None:
        require(self.start >= self.end > 0, "start and end", (self.start, self.end), "start >= end > 0")

    def temperature(self, done: float) -> float:
        """Return the point between the two."""
        return self.start + (self.end - self.start) * done
