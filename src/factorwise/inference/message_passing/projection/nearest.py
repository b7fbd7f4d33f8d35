"""Distance from the nearest of a set of vectors: an energy that is not convex."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, WeightError, require
from factorwise.inference.message_passing.projection.energies import Energy
from factorwise.inference.message_passing.projection.measurements import Measurement
from factorwise.types import Floats


class NearestEnergy(Energy):
    r"""Pull what is measured towards the nearest of a set of targets.

    .. math:: L_\psi(\mu) = \psi \min_i \lVert u_i - A\mu \rVert_1

    targets : float[targets, measurements]
    weight
        psi; learning may make it negative.
    width
        Distance below which each difference counts as its square, over twice the width, plus half of it:
        smooth; zero for the 1-norm itself.

    Implements: vilnis2015bethe, Eq. 21 and 22.
    """

    convex = False

    def __init__(
        self,
        measurement: Measurement,
        targets: ArrayLike,
        weight: ArrayLike = 1.0,
        *,
        width: float = 0.0,
        name: str = "nearest",
    ) -> None:
        self.measurement = measurement
        self.targets = np.atleast_2d(np.asarray(targets, dtype=np.float64))
        self.weights = np.atleast_1d(np.asarray(weight, dtype=np.float64))
        self.width = width
        self.name = name
        self.smooth = False
        require(width >= 0, "width", width, "zero or more")
        if self.targets.shape[1] != measurement.count or not len(self.targets):
            raise ShapeError(
                f"the energy {name!r} measures {measurement.count} numbers, but its targets have the shape"
                f" {self.targets.shape}: give one row for each target, one number for each measured."
            )
        if not np.isfinite(self.targets).all():
            raise InvalidArgumentError(f"the targets of the energy {name!r} hold NaN or infinities.")
        if self.weights.shape != (1,) or not np.isfinite(self.weights).all():
            raise WeightError(f"the energy {name!r} has one finite weight, but {weight!r} was given.")

    def nearest(self, measured: Floats) -> int:
        """Return the number of the nearest target, the first among equals."""
        return int(self._sizes(self.targets - measured).sum(axis=1).argmin())

    def value_of(self, measured: Floats) -> float:
        """Return the weighted distance from the nearest target."""
        return float(self.weights[0]) * self._distance(measured)

    def slope_of(self, measured: Floats) -> Floats:
        """Return the gradient of the distance from the target that is nearest."""
        return float(self.weights[0]) * self._unit_slope(measured)

    def weight_gradient_of(self, measured: Floats) -> Floats:
        """Return the distance."""
        return np.array([self._distance(measured)])

    def weight_gradient_along(self, measured: Floats, direction: Floats) -> Floats:
        """Return the derivative of the distance along ``direction``."""
        return np.array([float(self._unit_slope(measured) @ direction)])

    def with_weights(self, weights: ArrayLike) -> Self:
        """Return the same energy with another weight."""
        return type(self)(self.measurement, self.targets, weights, width=self.width, name=self.name)

    def _distance(self, measured: Floats) -> float:
        return float(self._sizes(self.targets - measured).sum(axis=1).min())

    def _sizes(self, apart: Floats) -> Floats:
        far: Floats = np.abs(apart)
        if self.width == 0.0:
            return far
        near = 0.5 * (apart * apart / self.width + self.width)
        return np.asarray(np.where(far < self.width, near, far))

    def _unit_slope(self, measured: Floats) -> Floats:
        apart = measured - self.targets[self.nearest(measured)]
        if self.width == 0.0:
            return np.asarray(np.sign(apart))
        return np.asarray(np.clip(apart / self.width, -1.0, 1.0))
