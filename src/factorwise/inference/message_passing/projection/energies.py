r"""Energies: functions of measured marginals that are added to the objective of inference.

An energy is :math:`L_\psi(\mu) = \Phi_\psi(A\mu)`: a measurement A of the marginals and a function of the
measured numbers. Solvers work on the measured numbers, of which there are usually few; the methods that take
marginals are for other callers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import EnergyError, InvalidArgumentError, ShapeError, WeightError, require
from factorwise.inference.message_passing.projection.losses import Losses
from factorwise.inference.message_passing.projection.measurements import Measurement
from factorwise.types import Floats


class Energy(ABC):
    """The interface of energies; a subclass defines the function of the measured numbers.

    name
        For messages.
    measurement
        What it reads of the marginals.
    convex
        Whether it is known to be convex.
    smooth
        Whether it has a derivative everywhere.
    weights : float64[weights]
        Its own parameters, psi.
    """

    name: str
    measurement: Measurement
    convex: bool
    smooth: bool
    weights: Floats

    @abstractmethod
    def value_of(self, measured: Floats) -> float:
        """Return the energy."""

    @abstractmethod
    def slope_of(self, measured: Floats) -> Floats:
        """Return its gradient with respect to the measured numbers."""

    @abstractmethod
    def weight_gradient_of(self, measured: Floats) -> Floats:
        """Return its gradient with respect to its weights."""

    @abstractmethod
    def weight_gradient_along(self, measured: Floats, direction: Floats) -> Floats:
        """Return the gradient, with respect to its weights, of its slope times ``direction``."""

    @abstractmethod
    def with_weights(self, weights: ArrayLike) -> Self:
        """Return the same energy with other weights."""

    def conjugate(self, slope: Floats) -> float | None:
        """Return the conjugate at a slope; None if it is unknown."""
        return None

    def moved(self, measured: Floats, slope: Floats, shift: Floats, step: float) -> Floats:
        """Return the shift after a step of mirror descent, given the slope at the measured numbers."""
        return (shift + step * slope) / (1.0 + step)

    def curvature_times(self, measured: Floats, direction: Floats) -> Floats:
        """Return the second derivative with respect to the measured numbers, times ``direction``."""
        raise EnergyError(
            f"the energy {self.name!r} has no second derivative, so it cannot be learned by implicit"
            " differentiation: learn it with the marginals held fixed."
        )

    def value(self, marginals: Floats) -> float:
        """Return the energy of a vector of marginals."""
        return self.value_of(self.measurement.apply(marginals))

    def gradient(self, marginals: Floats) -> Floats:
        """Return the gradient with respect to the marginals that are read, the first ``measurement.size``."""
        return self.measurement.adjoint(self.slope_of(self.measurement.apply(marginals)))

    def weight_gradient(self, marginals: Floats) -> Floats:
        """Return the gradient with respect to the weights."""
        return self.weight_gradient_of(self.measurement.apply(marginals))

    def cross_gradient(self, marginals: Floats, direction: Floats) -> Floats:
        """Return the gradient with respect to the weights of ``gradient(marginals) @ direction``.

        With ``direction`` the statistics of the truth minus the marginals, the negative of this is the
        gradient of the log-likelihood of the truth with the marginals held fixed.
        """
        measured = self.measurement.apply(marginals)
        return self.weight_gradient_along(measured, self.measurement.apply(direction))


class MeasuredEnergy(Energy):
    r"""A weighted sum of convex functions of one measured number each.

    .. math:: L_\psi(\mu) = \sum_j \psi_j\, \ell_j(a_j^\top \mu)

    measurement
        The rows a.
    losses
        One for each row, or one for all.
    weights : float[measurements]
        One for each row, or one for all; zero or more, because a negative weight would make it concave. See
        `nonnegative`.

    Implements: vilnis2015bethe, Eq. 4 and 5.
    """

    convex = True

    def __init__(
        self, measurement: Measurement, losses: Losses, weights: ArrayLike = 1.0, *, name: str = "measured"
    ) -> None:
        self.measurement = measurement
        self.losses = losses.repeated(measurement.count) if len(losses) == 1 else losses
        array = np.asarray(weights, dtype=np.float64)
        self.weights = np.full(measurement.count, array) if array.ndim == 0 else array
        self.name = name
        self._check()
        self.smooth = not bool((self.losses.kinked & (self.weights > 0)).any())

    def _check(self) -> None:
        count = self.measurement.count
        if len(self.losses) != count or self.weights.shape != (count,):
            raise ShapeError(
                f"the energy {self.name!r} measures {count} numbers but has {len(self.losses)} losses and"
                f" weights of shape {self.weights.shape}: give one for each, or a single one for all."
            )
        bad = np.flatnonzero(~(np.isfinite(self.weights) & (self.weights >= 0)))
        if len(bad):
            raise WeightError(
                f"weight {int(bad[0])} of the energy {self.name!r} is {self.weights[bad[0]]}: weights"
                " must be finite and zero or more for the energy to be convex. Use"
                " nonnegative(weights)."
            )
        row = self.measurement.first_negative_row(self.losses.logarithmic)
        if row is not None:
            raise InvalidArgumentError(
                f"row {row} of the measurement of {self.name!r} has a negative coefficient, but its"
                f" {self.losses.name_of(row)} loss is for expected counts: use coefficients of zero or"
                " more."
            )

    def __add__(self, other: MeasuredEnergy) -> MeasuredEnergy:
        """Join the measurements of both: the sum of two such energies is one."""
        if not isinstance(other, MeasuredEnergy):
            return NotImplemented
        return MeasuredEnergy(
            self.measurement.stacked(other.measurement),
            self.losses.joined(other.losses),
            np.concatenate([self.weights, other.weights]),
            name=f"{self.name} + {other.name}",
        )

    def value_of(self, measured: Floats) -> float:
        """Return the weighted sum of losses."""
        return self._total(self.losses.value(measured))

    def slope_of(self, measured: Floats) -> Floats:
        """Return the weighted slopes."""
        return self.weights * self.losses.slope(measured)

    def weight_gradient_of(self, measured: Floats) -> Floats:
        """Return the losses."""
        return self.losses.value(measured)

    def weight_gradient_along(self, measured: Floats, direction: Floats) -> Floats:
        """Return the slopes of the losses times ``direction``."""
        return self.losses.slope(measured) * direction

    def with_weights(self, weights: ArrayLike) -> Self:
        """Return the same energy with other weights; they are checked."""
        return type(self)(self.measurement, self.losses, weights, name=self.name)

    def conjugate(self, slope: Floats) -> float:
        """Return the sum of weighted conjugates."""
        return self._total(self.losses.conjugate(self._per_weight(slope)))

    def moved(self, measured: Floats, slope: Floats, shift: Floats, step: float) -> Floats:
        """Return the shift after a step; at kinks it follows the gradient of the dual.

        A kink has any slope between those of its two sides, and the optimum is often at a kink: a slope that
        jumps from one side to the other would lead to ever shorter steps.
        """
        moved = super().moved(measured, slope, shift, step)
        if not self.smooth:
            low, high = self.slope_bounds
            along = np.clip(shift + step * (measured - self.losses.target), low, high)
            moved = np.where(self.losses.kinked, along, moved)
        return moved

    def curvature_times(self, measured: Floats, direction: Floats) -> Floats:
        """Return the weighted curvatures times ``direction``."""
        return self.weights * self.losses.curvature(measured) * direction

    def conjugate_slope(self, slope: Floats) -> Floats:
        """Return the measured numbers at which the energy has the given slope."""
        return self.losses.conjugate_slope(self._per_weight(slope))

    def conjugate_curvature(self, slope: Floats) -> Floats:
        """Return the second derivative of the conjugate in each slope; zero where the weight is."""
        return self._per_weight(self.losses.conjugate_curvature(self._per_weight(slope)))

    @cached_property
    def slope_bounds(self) -> tuple[Floats, Floats]:
        """Least and greatest slope in each measured number."""
        with np.errstate(invalid="ignore"):
            low, high = (np.where(self.weights > 0, self.weights * end, 0.0) for end in self.losses.slopes)
        return low, high

    def _total(self, values: Floats) -> float:
        """Return the weighted sum; losses with zero weight may be infinite."""
        return float(self.weights @ (values if self._weighted else np.where(self.weights > 0, values, 0.0)))

    def _per_weight(self, values: Floats) -> Floats:
        """Divide values by weights; zero for zero weights."""
        if self._weighted:
            return values / self.weights
        return np.divide(values, self.weights, out=np.zeros(len(values)), where=self.weights > 0)

    @cached_property
    def _weighted(self) -> bool:
        """Whether all weights are above zero."""
        return bool((self.weights > 0).all())


class SumEnergy(Energy):
    """A sum of energies of any kind, with all their weights in a row."""

    def __init__(self, *parts: Energy, name: str = "sum") -> None:
        require(len(parts) > 0, "parts", parts, "at least one energy")
        self.parts = parts
        self.name = name
        first, *rest = (part.measurement for part in parts)
        self.measurement = first.stacked(*rest)
        self.convex = all(part.convex for part in parts)
        self.smooth = all(part.smooth for part in parts)
        self.weights = np.concatenate([part.weights for part in parts])
        self._measured = _slices([part.measurement.count for part in parts])
        self._weights = _slices([len(part.weights) for part in parts])

    def value_of(self, measured: Floats) -> float:
        """Return the sum."""
        return sum(part.value_of(own) for part, own in self._each(measured))

    def slope_of(self, measured: Floats) -> Floats:
        """Return the slopes of the parts."""
        return np.concatenate([part.slope_of(own) for part, own in self._each(measured)])

    def weight_gradient_of(self, measured: Floats) -> Floats:
        """Return the gradients of the parts."""
        return np.concatenate([part.weight_gradient_of(own) for part, own in self._each(measured)])

    def weight_gradient_along(self, measured: Floats, direction: Floats) -> Floats:
        """Return the gradients of the parts."""
        both = zip(self._each(measured), self._each(direction), strict=True)
        return np.concatenate([part.weight_gradient_along(own, along) for (part, own), (_, along) in both])

    def with_weights(self, weights: ArrayLike) -> Self:
        """Return the same parts with other weights."""
        array = np.asarray(weights, dtype=np.float64)
        if array.shape != self.weights.shape:
            raise ShapeError(
                f"the energy {self.name!r} has {len(self.weights)} weights, but an array of shape"
                f" {array.shape} was given."
            )
        pairs = zip(self.parts, self._weights, strict=True)
        return type(self)(*(part.with_weights(array[own]) for part, own in pairs), name=self.name)

    def conjugate(self, slope: Floats) -> float | None:
        """Return the sum of conjugates, or None if one part has none."""
        conjugates = [part.conjugate(own) for part, own in self._each(slope)]
        known = [each for each in conjugates if each is not None]
        return sum(known) if len(known) == len(conjugates) else None

    def moved(self, measured: Floats, slope: Floats, shift: Floats, step: float) -> Floats:
        """Return the shifts of the parts after a step."""
        pairs = zip(self.parts, self._measured, strict=True)
        return np.concatenate(
            [part.moved(measured[own], slope[own], shift[own], step) for part, own in pairs]
        )

    def curvature_times(self, measured: Floats, direction: Floats) -> Floats:
        """Return the products of the parts."""
        both = zip(self._each(measured), self._each(direction), strict=True)
        return np.concatenate([part.curvature_times(own, along) for (part, own), (_, along) in both])

    def _each(self, measured: Floats) -> list[tuple[Energy, Floats]]:
        return [(part, measured[own]) for part, own in zip(self.parts, self._measured, strict=True)]


def _slices(lengths: list[int]) -> list[slice]:
    return [slice(a, b) for a, b in pairwise(np.cumsum([0, *lengths]).tolist())]


def nonnegative(weights: ArrayLike) -> Floats:
    """Clip weights at zero, as convexity requires."""
    return np.maximum(np.asarray(weights, dtype=np.float64), 0.0)
