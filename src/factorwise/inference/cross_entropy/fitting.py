"""Fit the parameters of a family to its elite samples: in closed form, or by L-BFGS with a ridge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import ConvergenceWarning, InvalidArgumentError, ShapeError, require, warn_caller
from factorwise.inference.cross_entropy.base import (
    ClosedFormFamily,
    Family,
    Vector,
    checked_parameters,
    checked_shares,
    selected,
)
from factorwise.types import Int64s
from factorwise.validation import check_count

Around = Literal["zero", "previous"]
"""Where a ridge pulls the parameters of a family to: to zero, or to those of the round before."""

RIDGE = 1e-3  # allows odds of about 200 to 1 from a single parameter
STEPS = 500
GRADIENT = 1e-6  # of the log-probability of an average elite sample
IMPROVEMENT = 1e-12  # relative; smaller improvements are rounding
SLOPE = 1e-2  # relative gradient above which a warning is given


def fit(
    family: Family[Any],
    samples: Any,
    shares: ArrayLike,
    previous: ArrayLike,
    *,
    ridge: ArrayLike = RIDGE,
    around: Around = "zero",
) -> Vector:
    """Return the parameters under which the samples are most likely.

    Families with a closed form use it, without the previous parameters and the ridge. `maximize` fits all
    others.
    """
    if not isinstance(family, ClosedFormFamily):
        return maximize(family, samples, shares, previous, ridge=ridge, around=around)
    return checked_parameters(family, family.fit(samples, checked_shares(shares, len(samples))), "fit(...)")


def maximize(
    family: Family[Any],
    samples: Any,
    shares: ArrayLike,
    previous: ArrayLike,
    *,
    ridge: ArrayLike = RIDGE,
    around: Around = "zero",
    steps: int = STEPS,
) -> Vector:
    r"""Return the parameters under which the samples are most likely, by L-BFGS from the previous ones.

    .. math:: \arg\max_\lambda \sum_k s_k \log J(Y_k; \lambda)
              - \tfrac12 \sum_i r_i (\lambda_i - c_i)^2

    with :math:`s` = ``shares``, :math:`r` = ``ridge``, and the center :math:`c` zero or ``previous``. Without
    the ridge the maximum can lie at infinity: if a feature separates all elite samples from the rest, a
    larger weight is always better.

    samples
        Elite samples, an array or a sequence.
    shares : float64[count]
        Their weights, zero or more, summing to one.
    ridge
        Zero or more; one number, or float64[size] for the parameters one by one.
    steps
        Largest number of iterations of L-BFGS.

    Implements: rohanimanesh2009inference, Eq. 2, with a ridge.
    """
    require(around in ("zero", "previous"), "around", around, "'zero' or 'previous'")
    check_count("steps", steps)
    start = checked_parameters(family, previous, "previous")
    weights = checked_shares(shares, len(samples))
    weighty = np.flatnonzero(weights)
    elite, weights = selected(samples, weighty), weights[weighty]
    strength = _checked_ridge(ridge, family.size)
    center = start if around == "previous" else np.zeros_like(start)

    def likelihood(parameters: Vector) -> tuple[float, Vector]:
        value = float(weights @ _log_prob(family, parameters, elite, weighty))
        return value, _gradient(family, parameters, elite, weights)

    return climb(likelihood, start, strength, center, steps=steps)


def climb(
    likelihood: Callable[[Vector], tuple[float, Vector]],
    start: Vector,
    ridge: Vector,
    center: Vector | float = 0.0,
    *,
    steps: int = STEPS,
    quiet: bool = False,
) -> Vector:
    """Maximize a log-likelihood, given with its gradient, minus a ridge around a center, by L-BFGS.

    steps, quiet
        Largest number of iterations; a `ConvergenceWarning` says if they were too few, unless ``quiet`` is
        set because the caller continues from there.
    """

    def loss(parameters: Vector) -> tuple[float, Vector]:
        offset = parameters - center
        value, gradient = likelihood(parameters)
        return 0.5 * float(ridge @ offset**2) - value, ridge * offset - gradient

    from scipy.optimize import minimize  # imported here, so that sampling does not load SciPy

    options = {"maxiter": steps, "gtol": GRADIENT, "ftol": IMPROVEMENT}
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    if not quiet:
        _warn_of_a_slope(optimum)
    return np.asarray(optimum.x, dtype=np.float64)


def _warn_of_a_slope(optimum: Any) -> None:
    """Warn if the search ended on a slope, whatever its own message says."""
    slope = float(np.abs(optimum.jac).max(initial=0.0))
    if slope <= SLOPE * max(1.0, abs(float(optimum.fun))):
        return
    warn_caller(
        f"L-BFGS ended after {optimum.nit} steps with a gradient of {slope:.2g} ({optimum.message}):"
        " allow more steps or use a larger ridge, and compare log_prob_gradient with differences of"
        " log_prob.",
        ConvergenceWarning,
    )


def _checked_ridge(ridge: ArrayLike, size: int) -> Vector:
    array = np.asarray(ridge, dtype=np.float64)
    if array.shape not in ((), (size,)):
        raise ShapeError(
            f"ridge must be one number or one for each of the {size} parameters, but has shape {array.shape}."
        )
    if not (np.isfinite(array) & (array >= 0)).all():
        raise InvalidArgumentError(f"ridge must be zero or more and finite, but {ridge!r} was given.")
    return np.broadcast_to(array, size)


def _log_prob(family: Family[Any], parameters: Vector, samples: Any, numbers: Int64s) -> Vector:
    values = np.asarray(family.log_prob(parameters, samples), dtype=np.float64)
    if values.shape != numbers.shape:
        raise ShapeError(
            f"log_prob of {type(family).__name__} must return one number for each of {len(numbers)} samples,"
            f" but returned shape {values.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InvalidArgumentError(
            f"log_prob of {type(family).__name__} is {values[bad[0]]} for elite sample"
            f" {numbers[bad[0]]} at parameters {parameters}: it must be finite there. Raise the ridge"
            " if the parameters are very large, or use parameters that may be any real numbers (logs"
            " of odds or of deviations)."
        )
    return values


def _gradient(family: Family[Any], parameters: Vector, samples: Any, shares: Vector) -> Vector:
    gradient = np.asarray(family.log_prob_gradient(parameters, samples, shares), dtype=np.float64)
    if gradient.shape != (family.size,):
        raise ShapeError(
            f"log_prob_gradient of {type(family).__name__} must return one number for each of {family.size}"
            f" parameters, but returned shape {gradient.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(gradient))
    if len(bad):
        raise InvalidArgumentError(
            f"log_prob_gradient of {type(family).__name__} is {gradient[bad[0]]} in parameter {bad[0]} at"
            f" parameters {parameters}: it must be finite wherever log_prob is."
        )
    return gradient
