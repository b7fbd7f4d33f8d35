"""Mean-field terms: factors that the base model lacks, scored by products of its marginals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection.energies import Energy
from factorwise.inference.message_passing.projection.layout import Layout
from factorwise.inference.message_passing.projection.measurements import Measurement
from factorwise.types import Floats


class CouplingEnergy(Energy):
    r"""Expected scores of missing factors as if their variables were independent.

    .. math:: L_\psi(\mu) = -\sum_c \psi_c \Bigl\langle \theta_c, \bigotimes_{n \in c} \mu_n \Bigr\rangle

    With it, projection is structured mean field: the base model is exact, the missing factors are factorised.
    The energy is linear in the marginals of each variable, and neither convex nor concave overall.

    factors
        ``(variables, table)`` pairs over two or more variables each, scores as in a factor graph; finite.
    weights : float[factors]
        psi, one for each factor or one for all.

    Implements: vilnis2015bethe, Eq. 9.
    """

    convex = False
    smooth = True

    def __init__(
        self,
        layout: Layout,
        factors: Iterable[tuple[Sequence[int], ArrayLike]],
        weights: ArrayLike = 1.0,
        *,
        name: str = "coupling",
    ) -> None:
        self.layout = layout
        self.measurement = Measurement.identity(layout.node_size)
        self.name = name
        self.factors = [(tuple(scope), np.asarray(table, dtype=np.float64)) for scope, table in factors]
        array = np.asarray(weights, dtype=np.float64)
        self.weights = np.full(len(self.factors), array) if array.ndim == 0 else array
        self._check()

    def value_of(self, measured: Floats) -> float:
        """Return minus the expected score of the factors."""
        return float(self.weights @ self.weight_gradient_of(measured))

    def slope_of(self, measured: Floats) -> Floats:
        """Return minus the expected score of each label, given the marginals of the others."""
        slope = np.zeros(len(measured))
        for weight, (scope, table) in zip(self.weights, self.factors, strict=True):
            for axis, variable in enumerate(scope):
                slope[self._own(variable)] -= weight * self._contracted(measured, scope, table, axis)
        return slope

    def weight_gradient_of(self, measured: Floats) -> Floats:
        """Return minus the expected score of each factor."""
        return np.array(
            [
                -float(self._contracted(measured, scope, table, 0) @ measured[self._own(scope[0])])
                for scope, table in self.factors
            ]
        )

    def weight_gradient_along(self, measured: Floats, direction: Floats) -> Floats:
        """Return the derivative of minus each expected score along ``direction``."""
        return np.array(
            [
                -sum(
                    float(self._contracted(measured, scope, table, axis) @ direction[self._own(variable)])
                    for axis, variable in enumerate(scope)
                )
                for scope, table in self.factors
            ]
        )

    def with_weights(self, weights: ArrayLike) -> Self:
        """Return the same factors with other weights."""
        return type(self)(self.layout, self.factors, weights, name=self.name)

    def _own(self, variable: int) -> slice:
        return slice(int(self.layout.node_start[variable]), int(self.layout.node_start[variable + 1]))

    def _contracted(self, measured: Floats, scope: tuple[int, ...], table: Floats, kept: int) -> Floats:
        """Average a table over all axes except one."""
        for axis in reversed(range(len(scope))):
            if axis != kept:
                table = np.tensordot(table, measured[self._own(scope[axis])], axes=(axis, 0))
        return table

    def _check(self) -> None:
        sizes = self.layout.cardinality
        for index, (scope, table) in enumerate(self.factors):
            inside = all(0 <= variable < len(sizes) for variable in scope)
            if len(scope) < 2 or len(set(scope)) < len(scope) or not inside:
                raise InvalidArgumentError(
                    f"factor {index} of the energy {self.name!r} connects {scope}: name two or more different"
                    f" variables from 0 to {len(sizes) - 1}. Scores of one belong to the base model."
                )
            wanted = tuple(int(sizes[variable]) for variable in scope)
            if table.shape != wanted or not np.isfinite(table).all():
                raise ShapeError(
                    f"the table of factor {index} of the energy {self.name!r} over {scope} has the shape"
                    f" {table.shape}: give finite scores of shape {wanted}."
                )
        if self.weights.shape != (len(self.factors),) or not np.isfinite(self.weights).all():
            raise ShapeError(
                f"the energy {self.name!r} has {len(self.factors)} factors, but weights of shape"
                f" {self.weights.shape}: give one finite number for each, or one for all."
            )
