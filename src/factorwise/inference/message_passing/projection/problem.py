r"""Projection problems, and their points.

.. math:: \min_\mu\; -\langle\theta, \mu\rangle - H(\mu) + L(\mu), \qquad L(\mu) = \Phi(A\mu)

Every point that a solver visits is the answer of the base model to a shift :math:`A^\top s` of its scores, so
the marginals are feasible and the objective is known without the entropy: with :math:`a = A\mu`,

.. math:: -\langle\theta, \mu\rangle - H(\mu) = -s^\top a - \log Z(\theta - A^\top s).

If L is convex, :math:`-\log Z(\theta - A^\top s) - \Phi^*(s)` is a lower bound on the minimum; the gap
between both is :math:`\Phi(a) + \Phi^*(s) - s^\top a`.

Implements: vilnis2015bethe, Eq. 2 and Proposition 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from factorwise.errors import ConvexityError, EnergyError
from factorwise.inference.message_passing.projection.bases import BaseModel
from factorwise.inference.message_passing.projection.energies import Energy
from factorwise.types import Floats


@dataclass(frozen=True, eq=False)
class Point:
    """An answer of the base model, and the energy there.

    shift : float64[measurements]
        s, which is subtracted from the scores of the measured numbers.
    marginals : float64[...]
        Marginals at the shifted scores, as far as the energy reads them.
    measured : float64[measurements]
        a, the measurements of the marginals.
    log_partition
        Log Z at the shifted scores.
    energy
    slope : float64[measurements]
        Gradient of the energy; equal to ``shift`` at the optimum.
    conjugate
        Conjugate of the energy at ``shift``; None if it is unknown.
    """

    shift: Floats
    marginals: Floats
    measured: Floats
    log_partition: float
    energy: float
    slope: Floats
    conjugate: float | None

    @cached_property
    def objective(self) -> float:
        """The objective, which is minimised."""
        return self.energy - float(self.shift @ self.measured) - self.log_partition

    @property
    def bound(self) -> float | None:
        """A lower bound of the objective; None if the conjugate is unknown."""
        return None if self.conjugate is None else -self.log_partition - self.conjugate

    def divergence(self, other: Point) -> float:
        """Return the Bregman divergence of the negative entropy from ``other`` to this point."""
        moved = float((other.shift - self.shift) @ self.measured)
        return moved + other.log_partition - self.log_partition


class Iterate(NamedTuple):
    """A point, and the share of the way from the previous point's shift to its slope, from 0 to 1."""

    point: Point
    share: float


class Problem:
    """A base model and an energy of its marginals.

    calls
        How often the base model was called.
    """

    def __init__(self, base: BaseModel, energy: Energy) -> None:
        size = energy.measurement.size
        if size not in (base.layout.node_size, base.layout.size):
            raise EnergyError(
                f"the energy {energy.name!r} reads {size} marginals, but the model has"
                f" {base.layout.node_size} of variables and {base.layout.size} in all: build its measurement"
                " from the model's layout."
            )
        self.base = base
        self.energy = energy
        self.calls = 0

    def point(self, shift: Floats) -> Point:
        """Compute the base model at a shift, and the energy at its marginals."""
        energy = self.energy
        answer = self.base.answer(energy.measurement.adjoint(shift))
        self.calls += 1
        measured = energy.measurement.apply(answer.marginals)
        value = self._checked_value(energy.value_of(measured))
        slope = energy.slope_of(measured) if value < np.inf else np.zeros(len(shift))
        self._check_slope(slope)
        conjugate = energy.conjugate(shift) if energy.convex else None
        return Point(shift, answer.marginals, measured, answer.log_partition, value, slope, conjugate)

    def start(self) -> Point:
        """Return the point without a shift: the marginals of the base model."""
        point = self.point(np.zeros(self.energy.measurement.count))
        if point.energy == np.inf:
            raise EnergyError(
                f"the energy {self.energy.name!r} is infinite at the marginals of the base model: it"
                " needs an outcome to which the model gives probability zero. Relax a -inf of the"
                " model, or leave out the measurement."
            )
        return point

    def toward(self, point: Point, slope: Floats, share: float) -> Point:
        """Return the point at a mixture of a point's shift and a slope."""
        return self.point((1.0 - share) * point.shift + share * slope)

    def require_convex(self, method: str) -> None:
        """Raise `ConvexityError` unless the energy is convex."""
        if not self.energy.convex:
            raise ConvexityError(
                f"{method} needs a convex energy, but {self.energy.name!r} is not known to be convex:"
                " use MirrorDescent() or RDA(), or, if it is convex, create it with convex=True."
            )

    def require_smooth(self, method: str) -> None:
        """Raise `ConvexityError` unless the energy has a derivative everywhere."""
        if not self.energy.smooth:
            raise ConvexityError(
                f"{method} needs a smooth energy, but {self.energy.name!r} has kinks: use MirrorDescent() or"
                " DualLBFGS(), or a smoothed loss."
            )

    def _checked_value(self, value: float) -> float:
        if np.ndim(value) != 0:
            raise EnergyError(
                f"the energy {self.energy.name!r} returned a value of shape {np.shape(value)}: return one"
                " number."
            )
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise EnergyError(
                f"the energy {self.energy.name!r} returned {value!r}: return one number."
            ) from None
        if not number > -np.inf:
            raise EnergyError(
                f"the energy {self.energy.name!r} returned {value}: a value must be finite, or +inf if"
                " it is undefined."
            )
        return number

    def _check_slope(self, slope: Floats) -> None:
        count = self.energy.measurement.count
        if np.shape(slope) != (count,):
            raise EnergyError(
                f"the gradient of the energy {self.energy.name!r} has shape {np.shape(slope)}, but it"
                f" measures {count} numbers: return one number for each."
            )
        if not np.isfinite(slope).all():
            bad = np.flatnonzero(~np.isfinite(slope))
            raise EnergyError(
                f"entry {int(bad[0])} of the gradient of the energy {self.energy.name!r} is"
                f" {slope[bad[0]]}: a gradient must be finite."
            )
