"""What the cross-entropy method asks of a distribution, and the checks of what crosses that border."""

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

SHARE_ERROR = 1e-9  # how far from one the shares may sum


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
        """Draw a batch of ``count`` samples."""
        ...

    def log_prob(self, parameters: Vector, samples: Any) -> Vector:
        """Log-probability (or log-density) of each sample of a batch: float64[count]."""
        ...

    def log_prob_gradient(self, parameters: Vector, samples: Any, shares: Vector) -> Vector:
        """Gradient of ``sum(shares * log_prob(parameters, samples))`` in the parameters: float64[size]."""
        ...


@runtime_checkable
class ClosedFormFamily(Family[Sample], Protocol[Sample]):
    """A family that knows its parameters of highest likelihood."""

    def fit(self, samples: Any, shares: Vector) -> Vector:
        """Parameters that maximize ``sum(shares * log_prob(parameters, samples))``: float64[size].

        shares : float64[count]
            Zero or more, summing to one.
        """
        ...


def checked_parameters(family: Family[Any], parameters: ArrayLike, name: str) -> Vector:
    """Parameters as an array of their own, after a check of their number and that they are finite."""
    given = np.array(parameters, dtype=np.float64)
    if given.shape != (family.size,):
        raise ShapeError(
            f"{name} must hold the {family.size} parameters of {type(family).__name__}, but has shape"
            f" {given.shape}: give float64[{family.size}]."
        )
    bad = np.flatnonzero(~np.isfinite(given))
    if len(bad):
        raise InvalidArgumentError(f"{name}[{bad[0]}] is {given[bad[0]]}, but parameters must be finite.")
    return given


def checked_shares(shares: ArrayLike, count: int) -> Vector:
    """Shares as an array, after a check that they weigh ``count`` samples."""
    if count == 0:
        raise InvalidArgumentError("there are no samples to fit to: give at least one.")
    given = np.asarray(shares, dtype=np.float64)
    if given.shape != (count,):
        raise ShapeError(
            f"shares must have one entry for each of the {count} samples, but have shape {given.shape}."
        )
    if not (given >= 0).all() or abs(given.sum() - 1.0) > SHARE_ERROR:
        raise InvalidArgumentError(
            f"shares must be zero or more and sum to one, but the smallest is {given.min():g} and the sum"
            f" {given.sum():g}: divide nonnegative weights by their sum."
        )
    return given


def selected(samples: Any, members: Int64s) -> Any:
    """Some samples of a batch: an array of an array, else a list."""
    if isinstance(samples, np.ndarray):
        return samples[members]
    return [samples[member] for member in members.tolist()]
