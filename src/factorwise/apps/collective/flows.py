"""Flows: how many members move from each place to each other place at each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from factorwise.types import Floats

LEAST = 1e-3  # smaller flows, in members, are not written


@dataclass(frozen=True, slots=True, eq=False)
class SeriesFlows:
    """Flows of one sequence.

    name
        Name of the sequence.
    times, steps
        Names of the times and of the steps between them.
    counts : float64[times, places]
        Expected number of members at each time and place.
    expected : float64[steps, from, to]
        Expected number of members that make each move.
    population
        Number of members.
    objective
        Minimised objective, per member.
    gap
        Upper bound on the distance of the objective from its minimum.
    converged
        Whether the gap is within the tolerance.
    """

    name: str
    times: tuple[str, ...]
    steps: tuple[str, ...]
    counts: Floats
    expected: Floats
    population: float
    objective: float
    gap: float
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """Flows of several sequences between the same places."""

    places: tuple[str, ...]
    series: tuple[SeriesFlows, ...]

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.series)

    def __getitem__(self, index: int) -> SeriesFlows:
        """Return the flows of one sequence."""
        return self.series[index]

    def table(self, least: float = LEAST) -> pa.Table:
        """Return the flows of at least ``least`` members: sequence (if several), time, from, to, expected."""
        parts = [self._rows(series, least) for series in self.series]
        table = pa.concat_tables(parts)
        return table if len(parts) > 1 else table.drop_columns(["sequence"])

    def _rows(self, series: SeriesFlows, least: float) -> pa.Table:
        step, source, target = np.nonzero(series.expected >= least)
        places, steps = pa.array(self.places), pa.array(series.steps)
        return pa.table(
            {
                "sequence": pa.array([series.name]).take(pa.array(np.zeros(len(step), np.int64))),
                "time": steps.take(pa.array(step)),
                "from": places.take(pa.array(source)),
                "to": places.take(pa.array(target)),
                "expected": series.expected[step, source, target],
            }
        )
