"""Energies from plain Python functions, with given gradients or by automatic differentiation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import EnergyError, MissingExtraError
from factorwise.inference.message_passing.projection.energies import Energy
from factorwise.inference.message_passing.projection.measurements import Measurement
from factorwise.types import Floats

Function = Callable[[Any, Any], Any]


class UserEnergy(Energy):
    """An energy as a function of the measured numbers and of its weights.

    measurement
        What the function reads; ``Measurement.identity(layout.node_size)`` for the marginals of variables.
    function
        ``function(measured, weights)`` returns a number.
    gradient
        ``gradient(measured, weights)`` returns one number for each measured number. Without it ``function``
        must be written with ``jax.numpy``, and JAX computes all gradients (``pip install
        'factorwise[autodiff]'``).
    weight_gradient
        ``weight_gradient(measured, weights)`` returns one number for each weight; needed for learning them.
    weight_gradient_along
        ``weight_gradient_along(measured, weights, direction)`` returns the gradient in the weights of
        ``gradient(measured, weights) @ direction``; needed for learning them, too.
    convex, smooth
        Whether the function is convex or smooth; solvers rely on it without a check.
    """

    def __init__(
        self,
        measurement: Measurement,
        function: Function,
        gradient: Function | None = None,
        *,
        weights: ArrayLike = (),
        weight_gradient: Function | None = None,
        weight_gradient_along: Callable[[Any, Any, Any], Any] | None = None,
        convex: bool = False,
        smooth: bool = True,
        name: str = "user",
    ) -> None:
        self.measurement = measurement
        self.weights = np.asarray(weights, dtype=np.float64)
        self.convex = convex
        self.smooth = smooth
        self.name = name
        self._given = (function, gradient, weight_gradient, weight_gradient_along)
        if gradient is None:
            derived = _Derived(function, name)
            function = derived.value
            gradient = derived.gradient
            weight_gradient = weight_gradient or derived.weight_gradient
            weight_gradient_along = weight_gradient_along or derived.weight_gradient_along
        self._function = function
        self._gradient = gradient
        self._weight_gradient = weight_gradient
        self._along = weight_gradient_along

    def value_of(self, measured: Floats) -> float:
        """Call the function."""
        value = np.asarray(self._function(measured, self.weights), dtype=np.float64)
        return float(value) if value.ndim == 0 else value  # type: ignore[return-value]  # named by the problem

    def slope_of(self, measured: Floats) -> Floats:
        """Call the gradient."""
        return np.asarray(self._gradient(measured, self.weights), dtype=np.float64)

    def weight_gradient_of(self, measured: Floats) -> Floats:
        """Call the gradient in the weights."""
        gradient = self._required(self._weight_gradient, "weight_gradient")(measured, self.weights)
        return self._checked(gradient, "weight_gradient")

    def weight_gradient_along(self, measured: Floats, direction: Floats) -> Floats:
        """Call the gradient in the weights of the slope along a direction."""
        gradient = self._required(self._along, "weight_gradient_along")(measured, self.weights, direction)
        return self._checked(gradient, "weight_gradient_along")

    def with_weights(self, weights: ArrayLike) -> Self:
        """Return the same functions with other weights."""
        function, gradient, weight_gradient, along = self._given
        return type(self)(
            self.measurement,
            function,
            gradient,
            weights=weights,
            weight_gradient=weight_gradient,
            weight_gradient_along=along,
            convex=self.convex,
            smooth=self.smooth,
            name=self.name,
        )

    def _required(self, function: Any, name: str) -> Callable[..., Any]:
        if function is None:
            raise EnergyError(
                f"the energy {self.name!r} was made without {name}: use UserEnergy(..., {name}=...), or"
                " leave out the gradient so that JAX computes all of them."
            )
        return function  # type: ignore[no-any-return]

    def _checked(self, result: Any, name: str) -> Floats:
        gradient = np.asarray(result, dtype=np.float64)
        if gradient.shape != self.weights.shape or not np.isfinite(gradient).all():
            raise EnergyError(
                f"{name} of the energy {self.name!r} returned {gradient} for {self.weights.size} weights:"
                " return one finite number for each."
            )
        return gradient


class _Derived:
    """Gradients by JAX, in double precision."""

    def __init__(self, function: Function, name: str) -> None:
        try:
            jax = importlib.import_module("jax")
        except ImportError as fault:
            raise MissingExtraError(
                f"the energy {name!r} has no gradient, and JAX, which could compute it, is not"
                " installed: pip install 'factorwise[autodiff]', or give the gradient."
            ) from fault
        home = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
        self._double = home.enable_x64
        self._value = jax.jit(function)
        slope = jax.grad(function)
        self._slope = jax.jit(slope)
        self._weight = jax.jit(jax.grad(function, argnums=1))
        self._along = jax.jit(jax.grad(lambda weights, measured, along: slope(measured, weights) @ along))

    def value(self, measured: Floats, weights: Floats) -> Floats:
        """Return the value, with the precision of its gradients."""
        with self._double(True):
            return np.asarray(self._value(measured, weights))

    def gradient(self, measured: Floats, weights: Floats) -> Floats:
        """Return the gradient in the measured numbers."""
        with self._double(True):
            return np.asarray(self._slope(measured, weights))

    def weight_gradient(self, measured: Floats, weights: Floats) -> Floats:
        """Return the gradient in the weights."""
        with self._double(True):
            return np.asarray(self._weight(measured, weights))

    def weight_gradient_along(self, measured: Floats, weights: Floats, direction: Floats) -> Floats:
        """Return the gradient in the weights of the slope along a direction."""
        with self._double(True):
            return np.asarray(self._along(weights, measured, direction))
