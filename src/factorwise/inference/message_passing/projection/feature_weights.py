"""Weights of energies that depend on the input, and features of a whole sequence to depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import ShapeError, require
from factorwise.types import Floats
from factorwise.validation import check_count, check_number


@dataclass(frozen=True, slots=True, eq=False)
class FeatureWeights:
    """Weights as a linear function of features of the input.

    coefficients : float64[weights, features]
    nonnegative
        Whether negative weights become zero, as convexity requires.
    """

    coefficients: Floats
    nonnegative: bool = True

    def __post_init__(self) -> None:
        require(
            self.coefficients.ndim == 2,
            "coefficients",
            self.coefficients.shape,
            "of shape (weights, features)",
        )

    def at(self, features: ArrayLike) -> Floats:
        """Return the weights for one input, or, from float[inputs, features], a row of them for each."""
        raw = self._checked(features) @ self.coefficients.T
        return np.maximum(raw, 0.0) if self.nonnegative else raw

    def gradient(self, features: ArrayLike, weight_gradient: Floats) -> Floats:
        """Carry a gradient in the weights back to the coefficients; zero where a weight was clipped.

        For several inputs, ``weight_gradient`` has a row for each.
        """
        inputs = self._checked(features)
        if self.nonnegative:
            weight_gradient = np.where(inputs @ self.coefficients.T > 0, weight_gradient, 0.0)
        return np.atleast_2d(weight_gradient).T @ np.atleast_2d(inputs)

    def _checked(self, features: ArrayLike) -> Floats:
        inputs = np.asarray(features, dtype=np.float64)
        if inputs.ndim not in (1, 2) or inputs.shape[-1] != self.coefficients.shape[1]:
            raise ShapeError(
                f"features of shape {inputs.shape} were given for coefficients of shape"
                f" {self.coefficients.shape}: give {self.coefficients.shape[1]} numbers for each input."
            )
        return inputs


@dataclass(frozen=True, slots=True, eq=False)
class RandomFourierMeanMap:
    r"""Random Fourier features, averaged over a sequence.

    The mean over positions of :math:`\sqrt{2/R} \cos(\omega_r^\top x + b_r)`, which for large R represents
    the sequence in the space of the kernel :math:`\exp(-\lVert x - x' \rVert^2 / 2\ell^2)`, preceded by a
    constant one.

    Implements: vilnis2015bethe, Sec. 8.2.
    """

    frequencies: Floats
    phases: Floats

    @classmethod
    def draw(cls, inputs: int, rows: int = 1_000, *, length: float = 1.0, seed: int = 0) -> Self:
        """Draw ``rows`` features of vectors of ``inputs`` numbers for a kernel of width ``length``."""
        check_count("inputs", inputs)
        check_count("rows", rows)
        check_number("length", length, above=0)
        random = np.random.default_rng(seed)
        return cls(random.normal(0.0, 1.0 / length, (rows, inputs)), random.uniform(0.0, 2.0 * np.pi, rows))

    def features(self, sequence: ArrayLike) -> Floats:
        """Return a one followed by the averaged features of a sequence, float[places, inputs]."""
        rows = np.asarray(sequence, dtype=np.float64)
        if rows.ndim != 2 or not len(rows) or rows.shape[1] != self.frequencies.shape[1]:
            raise ShapeError(
                f"a sequence of shape {rows.shape} was given: give one row of"
                f" {self.frequencies.shape[1]} numbers for each position."
            )
        waves = np.cos(rows @ self.frequencies.T + self.phases).mean(axis=0)
        return np.concatenate([[1.0], np.sqrt(2.0 / len(self.phases)) * waves])
