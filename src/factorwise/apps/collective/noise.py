"""Noise models: how a count depends on the number of members present, and how large the population is."""

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
#: The parameter of each kind of noise that has one.
NUMBER_OF: dict[NoiseKind, str] = {"poisson": "rate", "gaussian": "variance"}
EXACT_VARIANCE = 0.01  # standard deviation of a tenth of a member, which keeps the problem well conditioned
ROUNDING = 1e-6  # relative error allowed in the sums of exact counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """A noise model.

    kind
        "poisson": each count is Poisson with mean ``rate`` times the number of members present.
        "gaussian": each count has a Gaussian error of variance ``variance``. "multinomial": at each time, the
        counts are a random sample of the members. "exact": every member was counted.
    rate, variance
        Parameter of the kind that has it, 1 by default; an error for another kind.
    """

    kind: NoiseKind = "poisson"
    rate: float | None = None
    variance: float | None = None

    def __post_init__(self) -> None:
        require(self.kind in KINDS, "noise", self.kind, f"one of {', '.join(map(repr, KINDS))}")
        for owner, name in NUMBER_OF.items():
            value = getattr(self, name)
            if value is None:
                continue
            require(0 < value < np.inf, name, value, "finite and above zero")
            if owner != self.kind:
                raise InvalidArgumentError(
                    f"{name}={value!r} is a parameter of {owner} noise, but noise is {self.kind!r}: leave it"
                    f" out, or set noise={owner!r}."
                )

    @property
    def number(self) -> float:
        """The rate of Poisson noise or the variance of Gaussian noise."""
        value = self.rate if self.kind == "poisson" else self.variance
        return 1.0 if value is None else value

    @property
    def share(self) -> float:
        """Expected count per member present."""
        return self.number if self.kind == "poisson" else 1.0

    def population(self, series: Series, given: float | None) -> float:
        """Return the number of members, after checking that the counts are consistent with it.

        Unless it is given, it is estimated as the mean over times of the sum of the counts, divided by the
        rate. A missing count is replaced by the mean of its place.
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
        sums = series.fill_missing()[made.any(axis=1)].sum(axis=1)
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
        """Raise an error for counts at places that no possible move reaches; ``node`` has the marginals."""
        wrong = np.argwhere((series.counts > 0) & (node <= 0.0))
        if len(wrong) and self.kind != "gaussian":
            time, place = wrong[0].tolist()
            raise CountsError(
                f"sequence {series.name!r}, time {series.times[time]!r}, place {places[place]!r}: the count"
                f" is {series.counts[time, place]:g}, but no possible move leads there. Add pairs that lead"
                " there to the features."
            )

    def _check_samples(self, series: Series) -> None:
        missing = np.isnan(series.counts)
        for time in np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1)).tolist():
            raise CountsError(
                f"sequence {series.name!r}, time {series.times[time]!r}: only some places have a count, but a"
                " multinomial sample covers all of them. Write 0 where nobody was seen, leave out the whole"
                " time, or use poisson noise."
            )
        for time in np.flatnonzero(series.counts.sum(axis=1) == 0).tolist():
            raise CountsError(
                f"sequence {series.name!r}, time {series.times[time]!r}: every count is zero, so there is no"
                " sample. Leave the time out."
            )

    def _exact_population(self, series: Series, given: float | None) -> float:
        sums = np.nansum(series.counts, axis=1)
        complete = series.complete_times
        if given is None and not complete:
            raise CountsError(
                f"sequence {series.name!r}: no time has a count at every place, so the population does not"
                " follow from exact counts: give the population, or use another noise model."
            )
        total = float(sums[complete[0]]) if given is None else float(given)
        check_number("population", total, above=0, finite=True)
        source = f"time {series.times[complete[0]]!r}" if given is None else "the population"
        for time in range(len(sums)):
            off = sums[time] - total
            if abs(off) > ROUNDING * total and (time in complete or off > 0):
                raise CountsError(
                    f"sequence {series.name!r}, time {series.times[time]!r}: the counts sum to"
                    f" {sums[time]:g}, but {source} has {total:g}. Exact counts of a population have the same"
                    " sum at all times: correct them, or use poisson or gaussian noise."
                )
        return total
