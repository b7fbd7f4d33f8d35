"""How counts come from the members that are there, and how many members there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from factorwise.apps.collective.counts import Series
from factorwise.errors import CountsError, InvalidArgumentError, require
from factorwise.inference.message_passing.projection import (
    MeasuredEnergy,
    gaussian_counts,
    multinomial_counts,
    poisson_counts,
)
from factorwise.types import Floats
from factorwise.validation import check_number

NoiseKind = Literal["poisson", "gaussian", "multinomial", "exact"]
KINDS: tuple[NoiseKind, ...] = get_args(NoiseKind)
#: The number that a kind of noise has; the others have none.
NUMBER_OF: dict[NoiseKind, str] = {"poisson": "rate", "gaussian": "variance"}
EXACT_VARIANCE = 0.01  # a tenth of a member: as good as exact, and the problem stays well conditioned
ROUNDING = 1e-6  # of the population, in sums of counts that are exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """A noise model.

    kind
        "poisson": each count is Poisson, with ``rate`` times the members there as its expectation.
        "gaussian": each count is off by a Gaussian error of variance ``variance``. "multinomial": at each
        time, a sample of the members was looked for at all places. "exact": every member was counted.
    rate, variance
        1 for the kind that has it, unless given; refused for another kind.
    """

    kind: NoiseKind = "poisson"
    rate: float | None = None
    variance: float | None = None

    def __post_init__(self) -> None:
        require(self.kind in KINDS, "noise", self.kind, f"one of {', '.join(map(repr, KINDS))}")
        for owner, name in NUMBER_OF.items():
            given = getattr(self, name)
            if given is None:
                continue
            require(0 < given < np.inf, name, given, "finite and above zero")
            if owner != self.kind:
                raise InvalidArgumentError(
                    f"{name} is that of {owner} noise, but {given!r} was given with noise={self.kind!r}:"
                    f" leave it out, or set noise={owner!r}."
                )

    @property
    def number(self) -> float:
        """The rate of poisson noise, the variance of gaussian noise."""
        given = self.rate if self.kind == "poisson" else self.variance
        return 1.0 if given is None else given

    @property
    def share(self) -> float:
        """Expected count by the number of members there."""
        return self.number if self.kind == "poisson" else 1.0

    def population(self, series: Series, given: float | None) -> float:
        """Return how many members there are, having checked that the counts allow it.

        Unless it is given, it is the mean, over the times, of the counts' sum (by the rate); a count that was
        not made is taken to be the mean of those made at that place.
        """
        where = f"sequence {series.name!r}"
        made = ~np.isnan(series.counts)
        if not made.any():
            raise CountsError(f"{where} has no count at all: give at least one, or leave the sequence out.")
        if self.kind == "multinomial":
            self._check_samples(series)
        if self.kind == "exact":
            return self._exact_population(series, given)
        if given is not None:
            check_number("population", given, above=0, finite=True)
            return float(given)
        sums = series.filled()[made.any(axis=1)].sum(axis=1)
        found = float(sums.mean()) / self.share
        if found <= 0:
            raise CountsError(
                f"{where}: every count is zero, so there is no population. Give one that is above zero, or"
                " leave the sequence out."
            )
        return found

    def energy(self, counts: Floats, population: float) -> MeasuredEnergy:
        """Return the energy of the marginals at all times and places."""
        if self.kind == "poisson":
            return poisson_counts(counts, population=population, rate=self.number)
        if self.kind == "multinomial":
            return multinomial_counts(counts, population=population)
        variance = EXACT_VARIANCE if self.kind == "exact" else self.number
        return gaussian_counts(counts, population=population, variance=variance)

    def check_reachable(self, series: Series, places: tuple[str, ...], node: Floats) -> None:
        """Refuse counts at places where the model cannot bring anybody; ``node`` has its marginals."""
        wrong = np.argwhere((series.counts > 0) & (node <= 0.0))
        if len(wrong) and self.kind != "gaussian":
            time, place = wrong[0].tolist()
            raise CountsError(
                f"sequence {series.name!r}, time {series.times[time]!r}, place {places[place]!r}: the count"
                f" is {series.counts[time, place]:g}, but no possible move leads there. Add the pairs that"
                " lead there to the features."
            )

    def _check_samples(self, series: Series) -> None:
        missing = np.isnan(series.counts)
        for time in np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1)).tolist():
            raise CountsError(
                f"sequence {series.name!r}, time {series.times[time]!r}: only some places have a count, but a"
                " multinomial sample is over all of them. Write 0 where nobody was seen, leave out the whole"
                " time, or use poisson noise."
            )
        for time in np.flatnonzero(series.counts.sum(axis=1) == 0).tolist():
            raise CountsError(
                f"sequence {series.name!r}, time {series.times[time]!r}: every count is zero, which is no"
                " sample. Leave the time out."
            )

    def _exact_population(self, series: Series, given: float | None) -> float:
        sums = np.nansum(series.counts, axis=1)
        complete = series.complete
        if given is None and not complete:
            raise CountsError(
                f"sequence {series.name!r}: no time has a count at every place, so exact counts do not tell"
                " how many members there are: give the population, or use another noise model."
            )
        total = float(sums[complete[0]]) if given is None else float(given)
        check_number("population", total, above=0, finite=True)
        source = f"time {series.times[complete[0]]!r}" if given is None else "the population"
        for time in range(len(sums)):
            off = sums[time] - total
            if abs(off) > ROUNDING * total and (time in complete or off > 0):
                raise CountsError(
                    f"sequence {series.name!r}, time {series.times[time]!r}: the counts sum to"
                    f" {sums[time]:g}, but {source} has {total:g}. Exact counts of one population have one"
                    " sum: correct them, or use poisson or gaussian noise."
                )
        return total
