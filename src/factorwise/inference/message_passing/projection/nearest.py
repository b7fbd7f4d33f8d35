"""Distance from the nearest of a set of vectors: an energy that is not convex."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError, WeightError, require
from factorwise.inference.message_passing.projection.energies import Energy
from factorwise.inference.message_passing.projection.measurements import Measurement
from factorwise.types import Bools, Floats, Ints
from factorwise.validation import check_number
from factorwise.variables.sparse_rows import starts_of


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Parts that share their targets, with their positions in the measured numbers: int64[parts, numbers]."""

    parts: Ints
    places: Ints
    targets: Floats


class NearestParts(Energy):
    r"""Pull each part of the measured numbers towards the nearest of its targets, for many sequences at once.

    .. math:: L_\psi(\mu) = \sum_p \psi_p \min\{r_p, \min_i \lVert u_{pi} - (A\mu)_p \rVert_1\}

    sets
        float[targets, numbers] each: targets to choose from. Parts without targets are not pulled.
    which : int[parts]
        The set of each part. Parts follow one another in the measured numbers, each as long as its targets.
    weights : float[parts]
        psi, one for each part, or one for all; learning may make it negative.
    width
        Differences below this distance are smoothed to their square over twice the width plus half the width;
        zero for the 1-norm itself.
    reach : float[parts]
        r, one for each part, or one for all: parts this far from all targets are not pulled.
    only : int[parts]
        The one target of its set to which each part is pulled, nearest or not; by default all targets. With
        weights of zero or more, an infinite reach and no width, that is convex.

    Implements: vilnis2015bethe, Eq. 21 and 22, for many sequences.
    """

    convex = False
    smooth = False

    def __init__(
        self,
        measurement: Measurement,
        sets: Sequence[ArrayLike],
        which: ArrayLike,
        weights: ArrayLike = 1.0,
        *,
        width: float = 0.0,
        reach: ArrayLike = np.inf,
        only: Ints | None = None,
        name: str = "nearest",
    ) -> None:
        self.measurement = measurement
        self.sets = [np.asarray(each, dtype=np.float64) for each in sets]
        self.which = np.asarray(which, dtype=np.int64)
        self.width = width
        self.only = only
        self.name = name
        check_number("width", width, least=0)
        self._check_sets()
        self.start = starts_of([self.sets[number].shape[1] for number in self.which.tolist()])
        if self.start[-1] != measurement.count:
            shapes = " and ".join(str(each.shape) for each in self.sets[:3])
            raise ShapeError(
                f"the energy {name!r} measures {measurement.count} numbers, but its targets have the shape"
                f" {shapes} for {len(self.which)} parts, {int(self.start[-1])} numbers in all: give one row"
                " for each target, one number for each measured."
            )
        self.weights = self._for_each("weight", weights)
        self.reach = self._for_each("reach", reach, endless=True)
        self._groups = [
            _Group(parts, self.start[parts, None] + np.arange(targets.shape[1]), targets)
            for number, targets in enumerate(self.sets)
            if len(parts := np.flatnonzero(self.which == number))
        ]

    @property
    def part(self) -> Ints:
        """The part of each number measured, int64[measurements]."""
        return np.repeat(np.arange(len(self.which)), np.diff(self.start))

    def nearest_of(self, measured: Floats) -> Ints:
        """Return the number of the nearest target of each part in its set, the first of equals.

        -1 for none.
        """
        found = np.full(len(self.which), -1)
        for group, _, nearest, _, near in self._each(measured):
            found[group.parts] = np.where(near, nearest, -1)
        return found

    def distances_of(self, measured: Floats) -> Floats:
        """Return the distance of each part from its nearest target, or its reach, float64[parts]."""
        distances = np.where(np.isfinite(self.reach), self.reach, 0.0)
        for group, _, _, far, near in self._each(measured):
            distances[group.parts[near]] = far[near]
        return distances

    def unit_slope_of(self, measured: Floats) -> Floats:
        """Return the gradient of the distances with respect to the measured numbers."""
        found = np.zeros(len(measured))
        for group, own, nearest, _, near in self._each(measured):
            apart = own[near] - group.targets[nearest[near]]
            slope = np.sign(apart) if self.width == 0.0 else np.clip(apart / self.width, -1.0, 1.0)
            found[group.places[near]] = slope
        return found

    def value_of(self, measured: Floats) -> float:
        """Return the sum of weighted distances."""
        return float(self.weights @ self.distances_of(measured))

    def slope_of(self, measured: Floats) -> Floats:
        """Return the gradient of the weighted distances from the targets that are nearest."""
        return self.spread(self.weights) * self.unit_slope_of(measured)

    def weight_gradient_of(self, measured: Floats) -> Floats:
        """Return the distances."""
        return self.distances_of(measured)

    def weight_gradient_along(self, measured: Floats, direction: Floats) -> Floats:
        """Return the derivatives of the distances along ``direction``."""
        return self.summed(self.unit_slope_of(measured) * direction)

    def with_weights(self, weights: ArrayLike) -> Self:
        """Return the same energy with other weights."""
        return type(self)(
            self.measurement,
            self.sets,
            self.which,
            weights,
            width=self.width,
            reach=self.reach,
            only=self.only,
            name=self.name,
        )

    def drawn_to(self, only: Ints) -> NearestParts:
        """Return the energy that pulls each part to one target of its set, given by number."""
        return NearestParts(
            self.measurement,
            self.sets,
            self.which,
            self.weights,
            width=self.width,
            reach=self.reach,
            only=only,
            name=self.name,
        )

    def ranked_of(self, measured: Floats, count: int) -> Ints:
        """Return for each part the numbers of its ``count`` nearest targets, int64[parts, count].

        The nearest comes first, and is repeated if there are fewer targets.
        """
        ranked = np.zeros((len(self.which), count), dtype=np.int64)
        for group in self._groups:
            if len(group.targets):
                far = self._far(measured[group.places], group.targets)
                order = far.argsort(axis=1, kind="stable")[:, :count]
                ranked[group.parts] = order[:, :1]
                ranked[group.parts, : order.shape[1]] = order
        return ranked

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of its part for each measured number."""
        return np.repeat(values, np.diff(self.start))

    def summed(self, values: Floats) -> Floats:
        """Return the sum over the numbers of each part, float64[parts]."""
        return np.add.reduceat(values, self.start[:-1])

    def _each(self, measured: Floats) -> Iterator[tuple[_Group, Floats, Ints, Floats, Bools]]:
        """For each group, yield its measured numbers, nearest targets, distances, and which are in reach."""
        for group in self._groups:
            own = measured[group.places]
            if not len(group.targets):
                nearest, least = np.full(len(own), -1), np.full(len(own), np.inf)
            elif self.only is None:
                far = self._far(own, group.targets)
                nearest = far.argmin(axis=1)
                least = far[np.arange(len(own)), nearest]
            else:
                nearest = self.only[group.parts]
                least = self._sizes(own - group.targets[nearest]).sum(axis=1)
            yield group, own, nearest, least, least < self.reach[group.parts]

    def _far(self, own: Floats, targets: Floats) -> Floats:
        """Return the distances from all targets, computed for one target at a time to save memory."""
        return np.stack([self._sizes(own - target).sum(axis=1) for target in targets], axis=1)

    def _sizes(self, apart: Floats) -> Floats:
        far: Floats = np.abs(apart)
        if self.width == 0.0:
            return far
        near = 0.5 * (apart * apart / self.width + self.width)
        return np.asarray(np.where(far < self.width, near, far))

    def _check_sets(self) -> None:
        count = len(self.sets)
        if (
            self.which.ndim != 1
            or not len(self.which)
            or not 0 <= self.which.min() <= self.which.max() < count
        ):
            raise InvalidArgumentError(
                f"the energy {self.name!r} has {count} sets of targets: give each part the number of its own,"
                f" from 0 to {count - 1}."
            )
        for number, targets in enumerate(self.sets):
            if targets.ndim != 2 or not targets.shape[1]:
                raise ShapeError(
                    f"set {number} of the energy {self.name!r} has the shape {targets.shape}: give one row"
                    " for each target, one number for each measured."
                )
            if not np.isfinite(targets).all():
                raise InvalidArgumentError(f"the targets of the energy {self.name!r} must be finite.")

    def _for_each(self, name: str, given: ArrayLike, *, endless: bool = False) -> Floats:
        """Return one number for each part."""
        values, count = np.asarray(given, dtype=np.float64), len(self.which)
        bad = np.isnan(values) | (values < 0.0) if endless else ~np.isfinite(values)
        if values.shape not in ((), (1,), (count,)) or bad.any():
            wanted = "or for all, zero or more" if endless else "or for all, finite"
            raise WeightError(
                f"the energy {self.name!r} has one {name} for each of its {count} parts, {wanted}, but"
                f" {values!r} was given."
            )
        return np.array(np.broadcast_to(values, (count,)))


class NearestEnergy(NearestParts):
    r"""Pull the measured numbers towards the nearest of a set of targets.

    .. math:: L_\psi(\mu) = \psi \min\{r, \min_i \lVert u_i - A\mu \rVert_1\}

    targets : float[targets, measurements]
    weight
        psi; learning may make it negative.
    width, reach
        As in `NearestParts`.

    Implements: vilnis2015bethe, Eq. 21 and 22.
    """

    def __init__(
        self,
        measurement: Measurement,
        targets: ArrayLike,
        weight: ArrayLike = 1.0,
        *,
        width: float = 0.0,
        reach: ArrayLike = np.inf,
        name: str = "nearest",
    ) -> None:
        self.targets = np.atleast_2d(np.asarray(targets, dtype=np.float64))
        require(len(self.targets) > 0, "targets", self.targets.shape, "at least one row")
        super().__init__(measurement, [self.targets], [0], weight, width=width, reach=reach, name=name)

    def nearest(self, measured: Floats) -> int:
        """Return the number of the nearest target, the first among equals; -1 if all are out of reach."""
        return int(self.nearest_of(measured)[0])

    def with_weights(self, weights: ArrayLike) -> Self:
        """Return the same energy with another weight."""
        return type(self)(
            self.measurement, self.targets, weights, width=self.width, reach=self.reach, name=self.name
        )
