r"""Bounds on the mistakes that a ranking learner can make, and on the rankings that it needs to see.

A constraint is a row :math:`x`: the statistics of a better world minus those of a worse one. Weights rank the
two worlds correctly if the lead :math:`\theta \cdot x` is positive. Unit steps start from zero weights and
add :math:`x` whenever the lead is not positive (a mistake). Whatever the order of the constraints, and
whichever part of the space a proposer never visits, for every direction :math:`U` of length one, margin
:math:`\delta > 0` and sequence whose rows are no longer than :math:`R`,

.. math:: \text{mistakes} \le \left( \frac{R + D}{\delta} \right)^2, \qquad
          D = \sqrt{\textstyle\sum_i \max(0, \delta - U \cdot x_i)^2}.

Proof. After :math:`k` mistakes :math:`\|\theta\|^2 \le k R^2`, as no step is made along a positive lead. Each
step adds at least :math:`\delta - \epsilon_i` to :math:`U \cdot \theta`, where :math:`\epsilon_i` is what
row :math:`i` has under the root, so that
:math:`k \delta - \sum \epsilon_i \le U \cdot \theta \le \sqrt{k} R`, and the sum over the mistakes is at
most :math:`\sqrt{k} D`.

If no row falls short of the margin, :math:`D = 0`: that is Theorem 1 of the paper. It holds for any number of
passes; the general bound (Theorem 2) holds for everything that :math:`D` sums over, where a constraint that
occurs twice counts twice. The paper states it for the first pass, where each occurs once.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from scipy.sparse import csr_array, issparse
from scipy.special import bdtr

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.types import Float64s
from factorwise.validation import check_count, check_number

ConstraintsLike: TypeAlias = Any  # float64[n, weights], an array or a SciPy sparse matrix, which has no types

# Least distances are computed from squares: a margin below this share of the radius is only rounding.
SMALLEST_MARGIN = 1e-8


class Separation(NamedTuple):
    """Weights of length one under which every better world leads by at least the margin.

    direction : float64[weights]
        The weights.
    margin
        The smallest lead under them.
    shares : float64[n]
        A weight of zero or more for each constraint, summing to one, such that the weighted mean of the
        constraints has the length of the margin. No direction leads by more than that on all of them.
    """

    direction: Float64s
    margin: float
    shares: Float64s


def separable_bound(radius: float, margin: float) -> float:
    """Return the largest number of mistakes of unit steps on constraints that a margin separates.

    radius
        Length that no constraint exceeds, see `radius_of`.
    margin
        Lead that some weights of length one give every better world, see `largest_margin`.

    Steps start from zero weights, and mistakes are counted in all passes together. The bound holds whether a
    lead of zero counts as a mistake or not; if it does not, zero weights never change. Implements:
    rohanimanesh2009inference, Theorem 1.

    >>> separable_bound(radius=2.0, margin=0.5)
    16.0
    """
    check_number("radius", radius, least=0, finite=True)
    _require_margin(margin)
    return (radius / margin) ** 2


def noisy_bound(constraints: ConstraintsLike, direction: ArrayLike, margin: float) -> float:
    """Return the largest number of mistakes of unit steps from zero weights on ``constraints``.

    constraints : float64[n, weights]
        Better minus worse statistics, a row for each time that a pair occurred, in any order.
    direction : float64[weights]
        Weights to compare with; their norm does not matter.
    margin
        Lead that they should have, at norm one; constraints may fall short of it, which raises the bound.

    Every direction and margin give a valid bound; the theorem's is the smallest of them.
    Implements: rohanimanesh2009inference, Theorem 2, at one pair of U and delta.

    >>> round(noisy_bound([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], direction=[1.0, 1.0], margin=2.0), 2)
    4.55
    """
    return float(((radius_of(constraints) + deviation(constraints, direction, margin)) / margin) ** 2)


def deviation(constraints: ConstraintsLike, direction: ArrayLike, margin: float) -> float:
    """Return how far constraints fall short of ``margin`` under ``direction``: the root of summed squares.

    Implements: rohanimanesh2009inference, Definition 6; the sum runs over all pairs, one term for each
    occurrence.
    """
    rows, along = constraint_rows(constraints), np.asarray(direction, dtype=np.float64)
    if along.shape != (rows.shape[1],):
        raise ShapeError(
            f"direction has shape {along.shape}, but the constraints have {rows.shape[1]} columns."
            " Give one number per weight, in a flat array."
        )
    length = float(np.linalg.norm(along))
    require(0.0 < length < math.inf, "direction", direction, "finite and not zero everywhere")
    _require_margin(margin)
    return float(np.linalg.norm(np.maximum(0.0, margin - rows @ (along / length))))


def radius_of(constraints: ConstraintsLike) -> float:
    """Return the length of the longest constraint, the R of both theorems."""
    return math.sqrt(constraint_rows(constraints).power(2).sum(axis=1).max(initial=0.0))


def largest_margin(constraints: ConstraintsLike) -> Separation | None:
    """Find the direction with the largest smallest lead over all constraints; None if none leads on all.

    constraints : float64[n, weights]
        Better minus worse statistics; a sparse matrix is made dense.

    The shortest weights whose leads are all one or more are a least-distance problem, solved through
    non-negative least squares in finitely many steps (Lawson and Hanson 1974, chapter 23). The margin is that
    of the direction that is returned. Margins below 1e-8 of the radius count as zero.

    >>> found = largest_margin([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0]])
    >>> found.direction.round(4).tolist(), round(found.margin, 4), found.shares.round(4).tolist()
    ([0.8944, 0.4472], 0.8944, [0.8, 0.2, 0.0])
    """
    rows = constraint_rows(constraints).toarray()
    if not len(rows):
        raise InvalidArgumentError(
            "constraints has no rows, so every margin separates them: collect constraints first."
        )
    radius = radius_of(rows)
    if radius == 0.0:
        return None
    stacked = np.vstack([rows.T / radius, np.ones(len(rows))])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    solution, _ = nnls(stacked, target)
    residual = target - stacked @ solution
    length = float(np.linalg.norm(residual[:-1]))
    if length == 0.0:
        return None
    direction = -residual[:-1] / length
    margin = float((rows @ direction).min())
    if margin <= SMALLEST_MARGIN * radius:
        return None
    return Separation(direction, margin, solution / solution.sum())


def sample_size(
    n_weights: int, epsilon: float, delta: float, *, method: Literal["uniform", "scenario"] = "uniform"
) -> int:
    r"""Return the number of sampled constraints after which weights that satisfy them all violate few others.

    n_weights
        Number of weights, K.
    epsilon
        Share of constraints, under the distribution they are drawn from, that may be violated.
    delta
        Probability of a sample for which more are violated.
    method
        ``"uniform"``: for *all* weights that satisfy the sample; ``"scenario"``: for the optimum of the
        sampled program only, which needs far fewer.

    Both assume that constraints are drawn independently from one distribution. Those of a walk are not:
    neighbors share most of their factors, and the walk depends on weights that change. For a walk the number
    is a guide, not a guarantee. Weights with slack are not covered either.

    ``"uniform"`` is the bound of the paper with constants that we can prove,

    .. math:: N = \frac{4}{\epsilon} \left( K \log_2 \frac{12}{\epsilon} + \log_2 \frac{2}{\delta} \right).

    Sets of rows on which :math:`w \cdot x - 1` is negative have Vapnik-Chervonenkis dimension at most K
    (among K + 1 rows a linear dependence forbids one pattern of signs). Comparing the sample with a second
    one of its size, as in Blumer et al. 1989, the chance of failure is at most
    :math:`2 (2eN/K)^K 2^{-\epsilon N/2}`, and :math:`\ln z \le az - \ln a - 1` at
    :math:`a = \epsilon \ln 2 / 8` gives N. De Farias and Van Roy 2004, whom the paper follows, give the same
    order. A lead above zero instead of one or more takes as many.

    ``"scenario"`` is the smallest N for which a binomial variable with N trials of probability epsilon is
    below K with probability at most delta (Campi and Garatti 2008); some programs attain it.

    Implements: wick2009samplerank, Sec. 3.2, with constants.

    >>> sample_size(10, 0.1, 0.05), sample_size(10, 0.1, 0.05, method="scenario")
    (2976, 154)
    """
    check_count("n_weights", n_weights)
    check_number("epsilon", epsilon, above=0, below=1)
    check_number("delta", delta, above=0, below=1)
    require(method in ("uniform", "scenario"), "method", method, "'uniform' or 'scenario'")
    if method == "uniform":
        return math.ceil(4.0 / epsilon * (n_weights * math.log2(12.0 / epsilon) + math.log2(2.0 / delta)))
    few, enough = n_weights - 1, n_weights
    while bdtr(n_weights - 1, enough, epsilon) > delta:
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        if bdtr(n_weights - 1, middle, epsilon) > delta:
            few = middle
        else:
            enough = middle
    return enough


def constraint_rows(constraints: ConstraintsLike) -> Any:
    """Check constraints and return them as a new csr_array without stored zeros."""
    matrix = constraints if issparse(constraints) else np.asarray(constraints, dtype=np.float64)
    if matrix.ndim != 2:
        raise ShapeError(
            f"constraints has {matrix.ndim} dimensions. Give one row of better minus worse statistics"
            " for each pair of worlds."
        )
    rows = csr_array(matrix, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    wrong = np.flatnonzero(~np.isfinite(rows.data))
    if len(wrong):
        row = int(np.searchsorted(rows.indptr, wrong[0], side="right")) - 1
        raise InvalidArgumentError(
            f"row {row} of constraints has an entry that is {rows.data[wrong[0]]}: statistics must be"
            " finite numbers. Leave the pair out."
        )
    return rows


def _require_margin(margin: float) -> None:
    check_number("margin", margin, above=0, finite=True)
