"""The distributions that the cross-entropy method can use, and checks of what they return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.rng import Stream
from factorwise.types import Float64s, Int64s

Vector: TypeAlias = Float64s

Sample = TypeVar("Sample", covariant=True)

SHARE_ERROR = 1e-9  # allowed difference of the sum of shares from one


class Family(Protocol[Sample]):
    """A distribution with a parameter vector.

    A batch of samples is an array with one sample per row, or any sequence. A family without a closed form is
    fitted by a search over all real parameter vectors, so it should be defined for every one of them.
    """

    @property
    def size(self) -> int:
        """How many parameters there are."""
        ...

    def sample(self, parameters: Vector, count: int, stream: Stream) -> Sequence[Sample] | NDArray[Any]:
        """Return the log-probability (or log-density) of each sample of a batch: float64[count]."""
        ...

    def log_prob(self, parameters: Vector, samples: Any) -> Vector:
        """Log-probability (or log-density) of each sample of a batch: float64[count]."""
        ...

    def log_prob_gradient(self, parameters: Vector, samples: Any, shares: Vector) -> Vector:
        """Return the gradient of ``sum(shares * log_prob(parameters, samples))``: float64[size]."""
        ...


@runtime_checkable
class ClosedFormFamily(Family[Sample], Protocol[Sample]):
    """A family with a closed form of its maximum likelihood parameters."""

    def fit(self, samples: Any, shares: Vector) -> Vector:
        """Return the parameters that maximize ``sum(shares * log_prob(parameters, samples))``.

        shares : float64[count]
            Zero or more, summing to one.
        """
        ...


def checked_parameters(family: Family[Any], parameters: ArrayLike, name: str) -> Vector:
    """Check the number of parameters and that they are finite; return them as a new array."""
    array = np.array(parameters, dtype=np.float64)
    if array.shape != (family.size,):
        raise ShapeError(
            f"{name} must hold the {family.size} parameters of {type(family).__name__}, but has shape"
            f" {array.shape}: give float64[{family.size}]."
        )
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise InvalidArgumentError(f"{name}[{bad[0]}] is {array[bad[0]]}, but parameters must be finite.")
    return array


def checked_shares(shares: ArrayLike, count: int) -> Vector:
    """Check that shares weigh ``count`` samples, and return them as an array."""
    if count == 0:
        raise InvalidArgumentError("there are no samples to fit to: give at least one.")
    array = np.asarray(shares, dtype=np.float64)
    if array.shape != (count,):
        raise ShapeError(
            f"shares must have one entry for each of the {count} samples, but have shape {array.shape}."
        )
    if not (array >= 0).all() or abs(array.sum() - 1.0) > SHARE_ERROR:
        raise InvalidArgumentError(
            f"shares must be zero or more and sum to one, but the smallest is {array.min():g} and the"
            f" sum {array.sum():g}: divide nonnegative weights by their sum."
        )
    return array


def selected(samples: Any, members: Int64s) -> Any:
    """Return some samples of a batch: an array if it is one, else a list."""
    if isinstance(samples, np.ndarray):
        return samples[members]
    return [samples[member] for member in members.tolist()]
