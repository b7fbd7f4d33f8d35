"""Families with a closed form: independent bits, independent labels, independent normal numbers.

The parameters are probabilities, means and standard deviations. Their best fit is the frequency, mean or
deviation among the samples, weighted by their shares. A probability may be 0 or 1: the outcome that it rules
out is never drawn and has log-probability -inf.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.inference.cross_entropy.base import (
    ClosedFormFamily,
    Vector,
    checked_parameters,
    checked_shares,
)
from factorwise.rng import Stream
from factorwise.types import Float64s, Int64s
from factorwise.validation import check_count, check_number

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Bernoulli(ClosedFormFamily[Int64s]):
    """Vectors of independent bits; a batch is int64[count, bits].

    The parameters are the probabilities of a one: float64[bits].

    Implements: rohanimanesh2009inference, Sec. 2.2 (closed form of Eq. 2 for a discrete Bernoulli).
    """

    bits: int

    def __post_init__(self) -> None:
        check_count("bits", self.bits)

    @property
    def size(self) -> int:
        """One probability for each bit."""
        return self.bits

    @property
    def uniform(self) -> Vector:
        """Parameters under which all vectors are equally likely."""
        return np.full(self.bits, 0.5)

    def sample(self, parameters: Vector, count: int, stream: Stream) -> Int64s:
        """Draw int64[count, bits] of zeros and ones."""
        ones = self._checked(parameters)
        draws = _generator(count, stream).random((count, self.bits))
        return (draws < ones).astype(np.int64)

    def log_prob(self, parameters: Vector, samples: Any) -> Vector:
        """Return the sum of the log-probabilities of the bits: float64[count]."""
        ones = self._checked(parameters)
        rows = self._rows(samples)
        return np.asarray(np.where(rows == 1, _log(ones), _log(1.0 - ones)).sum(axis=1))

    def log_prob_gradient(self, parameters: Vector, samples: Any, shares: Vector) -> Vector:
        """Return the gradient: the share of ones over their probability minus the same of zeros."""
        ones = self._checked(parameters)
        rows = self._rows(samples)
        weights = np.asarray(shares, dtype=np.float64)
        seen = weights @ rows
        return _ratio(seen, ones) - _ratio(weights @ (1 - rows), 1.0 - ones)

    def fit(self, samples: Any, shares: Vector) -> Vector:
        """Return the frequency of ones of each bit."""
        rows = self._rows(samples)
        # rounding can make a sum of shares slightly larger than one
        return np.minimum(checked_shares(shares, len(rows)) @ rows, 1.0)

    def _checked(self, parameters: ArrayLike) -> Vector:
        ones = checked_parameters(self, parameters, "parameters")
        bad = np.flatnonzero((ones < 0) | (ones > 1))
        if len(bad):
            raise InvalidArgumentError(
                f"parameters[{bad[0]}] is {ones[bad[0]]:g}, but the parameters of Bernoulli are"
                " probabilities: give numbers from 0 to 1."
            )
        return ones

    def _rows(self, samples: Any) -> Int64s:
        rows = _table(samples, self.bits, "Bernoulli")
        if not np.isin(rows, (0, 1)).all():
            raise InvalidArgumentError("samples of Bernoulli must hold zeros and ones only.")
        return rows.astype(np.int64)


@dataclass(frozen=True)
class Categorical(ClosedFormFamily[Int64s]):
    """A label at each of several independent positions; a batch is int64[count, positions].

    The parameters are the probabilities of the labels of the first position, then of the second, and so on:
    float64[sum of cardinality]. They are scaled to sum to one at each position, so that only their ratios
    matter.

    cardinality
        How many labels each position has.
    """

    cardinality: tuple[int, ...]

    def __post_init__(self) -> None:
        counts = tuple(int(labels) for labels in self.cardinality)
        require(len(counts) >= 1, "cardinality", self.cardinality, "the labels of at least one position")
        require(min(counts) >= 1, "cardinality", self.cardinality, "at least 1 label at every position")
        object.__setattr__(self, "cardinality", counts)

    @property
    def size(self) -> int:
        """One probability for each label of each position."""
        return sum(self.cardinality)

    @property
    def uniform(self) -> Vector:
        """Parameters under which all labels of a position are equally likely."""
        return np.concatenate([np.full(labels, 1.0 / labels) for labels in self.cardinality])

    def sample(self, parameters: Vector, count: int, stream: Stream) -> Int64s:
        """Draw int64[count, positions] of labels."""
        probabilities = self._normalized(parameters)
        draws = _generator(count, stream).random((count, len(self.cardinality)))
        labels = np.empty(draws.shape, np.int64)
        for position, block in enumerate(np.split(probabilities, self._begins()[1:])):
            label = np.searchsorted(np.cumsum(block), draws[:, position], side="right")
            # rounding may leave the last sum below a draw although the last label is impossible
            labels[:, position] = np.minimum(label, np.flatnonzero(block)[-1])
        return labels

    def log_prob(self, parameters: Vector, samples: Any) -> Vector:
        """Return the sum of the log-probabilities of the labels: float64[count]."""
        return np.asarray(_log(self._normalized(parameters))[self._columns(samples)].sum(axis=1))

    def log_prob_gradient(self, parameters: Vector, samples: Any, shares: Vector) -> Vector:
        """Return the gradient: the share of each label over its parameter, corrected for the scaling."""
        values = self._checked(parameters)
        weights = np.asarray(shares, dtype=np.float64)
        scaling = float(weights.sum()) / self._totals(values)
        return _ratio(self._counts(samples, weights), values) - scaling

    def fit(self, samples: Any, shares: Vector) -> Vector:
        """Return the frequency of each label at its position."""
        return self._counts(samples, checked_shares(shares, len(samples)))

    def _begins(self) -> Int64s:
        """Index of the first parameter of each position."""
        labels = np.array(self.cardinality, dtype=np.int64)
        return np.cumsum(labels) - labels

    def _totals(self, values: Vector) -> Vector:
        """Return for each parameter the sum of those of its position: float64[size]."""
        return np.repeat(np.add.reduceat(values, self._begins()), self.cardinality)

    def _normalized(self, parameters: ArrayLike) -> Vector:
        values = self._checked(parameters)
        return values / self._totals(values)

    def _checked(self, parameters: ArrayLike) -> Vector:
        values = checked_parameters(self, parameters, "parameters")
        bad = np.flatnonzero(values < 0)
        if len(bad):
            raise InvalidArgumentError(
                f"parameters[{bad[0]}] is {values[bad[0]]:g}, but the parameters of Categorical are"
                " probabilities: give zero or more."
            )
        empty = np.flatnonzero(self._totals(values) == 0)
        if len(empty):
            raise InvalidArgumentError(
                f"parameters[{empty[0]}] and all others of its position are zero: give at least one"
                " label of that position a probability."
            )
        return values

    def _columns(self, samples: Any) -> Int64s:
        """Index of the parameter of each label: int64[count, positions]."""
        rows = _table(samples, len(self.cardinality), "Categorical")
        if rows.dtype.kind not in "iu" or (rows < 0).any() or (rows >= self.cardinality).any():
            raise InvalidArgumentError(
                f"samples of Categorical must be labels from 0 to below {self.cardinality}, as whole numbers."
            )
        return rows.astype(np.int64) + self._begins()

    def _counts(self, samples: Any, shares: Vector) -> Vector:
        columns = self._columns(samples)
        weights = np.repeat(shares, columns.shape[1])
        counts = np.bincount(columns.ravel(), weights, minlength=self.size)
        return counts.astype(np.float64)  # without samples it would contain whole numbers


@dataclass(frozen=True)
class Gaussian(ClosedFormFamily[Float64s]):
    """Vectors of independent normal numbers; a batch is float64[count, dimensions].

    The parameters are the means, then the standard deviations: float64[2 * dimensions].

    dimensions
        Length of a vector.
    floor
        Smallest deviation that `fit` returns, for samples that are equal in some dimension.

    Implements: rohanimanesh2009inference, Sec. 2.2 (closed form of Eq. 2 for a Gaussian).
    """

    dimensions: int
    floor: float = 1e-9

    def __post_init__(self) -> None:
        check_count("dimensions", self.dimensions)
        check_number("floor", self.floor, above=0, finite=True)

    @property
    def size(self) -> int:
        """A mean and a deviation for each dimension."""
        return 2 * self.dimensions

    def parameters(self, mean: ArrayLike, deviation: ArrayLike) -> Vector:
        """Combine means and deviations, each one number for all dimensions or float64[dimensions]."""
        halves = [np.broadcast_to(np.asarray(half, float), self.dimensions) for half in (mean, deviation)]
        return np.concatenate(halves)

    def sample(self, parameters: Vector, count: int, stream: Stream) -> Float64s:
        """Draw float64[count, dimensions]."""
        mean, deviation = self._checked(parameters)
        return mean + deviation * _generator(count, stream).standard_normal((count, self.dimensions))

    def log_prob(self, parameters: Vector, samples: Any) -> Vector:
        """Return the sum of the log-densities of the numbers: float64[count]."""
        mean, deviation = self._checked(parameters)
        distance = (self._rows(samples) - mean) / deviation
        return np.asarray(-(0.5 * distance**2 + np.log(deviation) + HALF_LOG_TWO_PI).sum(axis=1))

    def log_prob_gradient(self, parameters: Vector, samples: Any, shares: Vector) -> Vector:
        """Return the gradient in the means, then in the deviations: float64[2 * dimensions]."""
        mean, deviation = self._checked(parameters)
        distance = (self._rows(samples) - mean) / deviation
        weights = np.asarray(shares, dtype=np.float64)
        return np.concatenate([weights @ distance / deviation, weights @ (distance**2 - 1.0) / deviation])

    def fit(self, samples: Any, shares: Vector) -> Vector:
        """Return the mean and deviation of each number; a deviation is at least ``floor``."""
        rows = self._rows(samples)
        weights = checked_shares(shares, len(rows))
        mean = weights @ rows
        deviation = np.sqrt(weights @ (rows - mean) ** 2)
        return np.concatenate([mean, np.maximum(deviation, self.floor)])

    def _checked(self, parameters: ArrayLike) -> tuple[Vector, Vector]:
        mean, deviation = np.split(checked_parameters(self, parameters, "parameters"), 2)
        bad = np.flatnonzero(deviation <= 0)
        if len(bad):
            raise InvalidArgumentError(
                f"parameters[{self.dimensions + bad[0]}] is {deviation[bad[0]]:g}, but the second half of the"
                " parameters of Gaussian are deviations: give numbers greater than zero."
            )
        return mean, deviation

    def _rows(self, samples: Any) -> Vector:
        rows = _table(samples, self.dimensions, "Gaussian").astype(np.float64)
        if not np.isfinite(rows).all():
            raise InvalidArgumentError("samples of Gaussian must be finite numbers.")
        return rows


def _generator(count: int, stream: Stream) -> np.random.Generator:
    """Return a generator of whole arrays, seeded by the stream."""
    check_count("count", count)
    return np.random.Generator(np.random.PCG64(stream.bits()))


def _table(samples: Any, width: int, name: str) -> NDArray[Any]:
    rows = np.asarray(samples)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ShapeError(f"samples of {name} must have shape (count, {width}), but have shape {rows.shape}.")
    return rows


def _log(probabilities: Vector) -> Vector:
    """Return the logarithm, which is -inf at zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _ratio(seen: Vector, probabilities: Vector) -> Vector:
    """Divide; zero counts give zero, and impossible outcomes that occurred give inf."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(seen == 0, 0.0, seen / probabilities)
