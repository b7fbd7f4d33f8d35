"""Energies of observed counts of a population whose members move as the base model says.

A population of N members with marginals mu has expected counts N mu. The objective is that of one member: the
energy is the negative log-likelihood of the counts divided by N.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import CountsError, ShapeError, require
from factorwise.inference.message_passing.projection.energies import MeasuredEnergy
from factorwise.inference.message_passing.projection.losses import multinomial, poisson, squared
from factorwise.inference.message_passing.projection.measurements import Measurement
from factorwise.types import Floats, Ints


def poisson_counts(
    counts: ArrayLike,
    *,
    population: float,
    rate: ArrayLike = 1.0,
    measurement: Measurement | None = None,
    name: str = "poisson counts",
) -> MeasuredEnergy:
    """Return the energy of Poisson counts whose expectation is ``rate`` times the number of members.

    counts : float[...]
        One for each row of the measurement, in its order; NaN for missing counts.
    population
        Number of members.
    rate : float or float[...]
        Share of members that is counted: one for all counts, or one for each.
    measurement
        What was counted; by default each label of each variable.

    Implements: vilnis2015bethe, Eq. 23.
    """
    flat, seen, measured = _seen(counts, measurement, population)
    rates = np.broadcast_to(np.asarray(rate, dtype=np.float64).ravel(), flat.shape)
    require(bool((rates > 0).all() and np.isfinite(rates).all()), "rate", rate, "finite and above zero")
    rows = measured.taken(seen).times(population * rates[seen])
    return MeasuredEnergy(rows, poisson(flat[seen]), 1.0 / population, name=name)


def gaussian_counts(
    counts: ArrayLike,
    *,
    population: float,
    variance: ArrayLike = 1.0,
    measurement: Measurement | None = None,
    name: str = "gaussian counts",
) -> MeasuredEnergy:
    """Return the energy of counts with Gaussian errors of the given variance, one for all or one each."""
    flat, seen, measured = _seen(counts, measurement, population)
    spread = np.broadcast_to(np.asarray(variance, dtype=np.float64).ravel(), flat.shape)
    require(bool((spread > 0).all()), "variance", variance, "above zero")
    rows = measured.taken(seen).times(np.full(len(seen), population))
    return MeasuredEnergy(rows, squared(flat[seen]), 1.0 / (population * spread[seen]), name=name)


def multinomial_counts(
    counts: ArrayLike,
    *,
    population: float,
    measurement: Measurement | None = None,
    name: str = "multinomial counts",
) -> MeasuredEnergy:
    """Return the energy of counts of a sample of members, each of which has one of the measured labels.

    The measured numbers of each sample must sum to one at all marginals, as those of one variable do.
    """
    flat, seen, measured = _seen(counts, measurement, population)
    return MeasuredEnergy(measured.taken(seen), multinomial(flat[seen]), 1.0 / population, name=name)


def _seen(
    counts: ArrayLike, measurement: Measurement | None, population: float
) -> tuple[Floats, Ints, Measurement]:
    """Return the counts as a flat array, which of them are present, and the measurement."""
    require(population > 0 and np.isfinite(population), "population", population, "finite and above zero")
    flat = np.asarray(counts, dtype=np.float64).ravel()
    measured = Measurement.identity(len(flat)) if measurement is None else measurement
    if len(flat) != measured.count:
        raise ShapeError(
            f"{len(flat)} counts were given for {measured.count} measured numbers: give one for each,"
            " NaN for missing counts."
        )
    seen = np.flatnonzero(~np.isnan(flat))
    if not len(seen):
        raise CountsError("every count is NaN: give at least one count.")
    bad = seen[(flat[seen] < 0) | np.isinf(flat[seen])]
    if len(bad):
        raise CountsError(
            f"count {int(bad[0])} is {flat[bad[0]]}: counts must be finite and zero or more, or NaN if"
            " missing."
        )
    return flat, seen, measured
