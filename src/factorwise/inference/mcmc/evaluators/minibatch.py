r"""A sampled acceptance test that preserves the exact distribution, for factors whose change is bounded.

Let :math:`g_f` be the tempered change of factor f from world x to y, :math:`|g_f| \le m_f`, so that
:math:`\pi(y) / \pi(x) = \exp \sum_f g_f`. Draw independent counts

.. math:: s_f \sim \mathrm{Poisson}(\mu_f), \quad \mu_f = \lambda_f + (m_f - g_f) / 2

where :math:`\lambda_f > 0` depends only on the bounds. From y back to x every :math:`g_f` changes its sign,
so the same counts have means :math:`\mu_f' = \lambda_f + (m_f + g_f) / 2`, and because :math:`\mu_f - \mu_f'
= -g_f` the exponentials of the Poisson weights cancel the ratio of the target:

.. math::
    \frac{\pi(y) \prod_f e^{-\mu_f'} \mu_f'^{s_f} / s_f!}{\pi(x) \prod_f e^{-\mu_f} \mu_f^{s_f} / s_f!}
    = \prod_f \left(\frac{\mu_f'}{\mu_f}\right)^{s_f}

Accepting with the smaller of 1 and this product times the proposal ratio is detailed balance for each setting
of the counts, and therefore for their mixture. A factor with a count of zero need not be examined. The counts
come from one Poisson number of draws, of mean :math:`\sum_f (\lambda_f + m_f)`; each draw picks a factor in
proportion to :math:`\lambda_f + m_f` and keeps it with probability :math:`\mu_f / (\lambda_f + m_f)`, for
which that factor alone is examined.

This is the idea of TunaMH (R. Zhang, A. F. Cooper and C. De Sa, 2020), derived here for our factors; their
excess :math:`\sum_f \lambda_f = \chi (\sum_f m_f)^2` is ours with :math:`\chi` = 1 / ``variance``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, TemplateError, require
from factorwise.inference.mcmc.evaluators.base import Estimate
from factorwise.kernels.walks.library import tempered
from factorwise.model.contributions import Contributions, as_contributions
from factorwise.rng import Stream
from factorwise.types import Float64s, Int64s
from factorwise.validation import check_number

_ROUNDING = 1e-9  # how much, relatively, a change may exceed its bound


class _Law(NamedTuple):
    """Poisson means of the counts of the sampled factors, forward and backward.

    pool : int64[sampled]
    rate, forward, backward : float64[sampled]
        For each factor: the mean number of draws, of draws kept, and of draws kept on the way back.
    """

    pool: Int64s
    rate: Float64s
    forward: Float64s
    backward: Float64s


@dataclass(frozen=True, slots=True)
class PoissonMinibatch:
    r"""Decide with a Poisson number of factors, so that the chain samples ``exp(score / temperature)``.

    If the tempered bounds sum to M, the expected number of draws is :math:`M + M^2` / ``variance``. If that
    is no less than the number of factors, all are examined and the test is the usual one. So it helps with
    many factors that can each change little, and at high temperatures.

    variance
        Approximate upper limit of the variance of the log of the acceptance ratio: more draws make it smaller
        and the test closer to the exact one, which accepts most often.
    bound
        Upper limit of the absolute change of any factor's score; by default, the bounds that templates
        declare.
    """

    variance: float = 1.0
    bound: float | None = None

    def __post_init__(self) -> None:
        check_number("variance", self.variance, above=0)
        require(self.bound is None or self.bound >= 0.0, "bound", self.bound, "zero or more, or None")

    @property
    def needs_bounds(self) -> bool:
        """Whether the templates must declare bounds."""
        return self.bound is None

    def expected_draws(self, bounds: ArrayLike, temperature: float = 1.0) -> float:
        """Return the expected number of factors drawn, including repeats, given the factors' bounds."""
        largest = float(np.sum(tempered(np.asarray(bounds, dtype=np.float64), temperature)))
        return min(float(np.size(bounds)), largest + largest**2 / self.variance)

    def evaluate(
        self, stream: Stream, contributions: Contributions | ArrayLike, temperature: float = 1.0
    ) -> Estimate:
        """Draw the counts: the waiting times up to the rate, then a factor and a coin for each draw."""
        listed = as_contributions(contributions)
        law = self._law(listed, temperature)
        if law is None:
            return Estimate(listed.total(), len(listed))
        ends = np.cumsum(law.rate)
        ratio, examined = 0.0, set()
        for _ in range(_poisson(stream, float(ends[-1]))):
            position = min(
                int(np.searchsorted(ends, stream.uniform() * ends[-1], side="right")), len(ends) - 1
            )
            examined.add(position)
            if stream.uniform() * law.rate[position] < law.forward[position]:
                ratio += math.log(law.backward[position] / law.forward[position])
        fixed = listed.total(listed.certain.astype(np.float64))
        return Estimate(fixed + ratio * temperature, len(examined) + int(listed.certain.sum()))

    def _law(self, listed: Contributions, temperature: float) -> _Law | None:
        """Return the Poisson means; None if examining all factors costs no more."""
        pool = np.flatnonzero(~listed.certain)
        bound = listed.bound[pool] if self.bound is None else np.full(len(pool), self.bound)
        if not np.isfinite(bound).all():
            raise InvalidArgumentError(
                "PoissonMinibatch must know how much each factor can change, but a template declares"
                " no bound: use PairTemplate(..., bound=...) with the largest value of its statistics,"
                " or PoissonMinibatch(bound=...)."
            )
        over = np.flatnonzero(np.abs(listed.gain[pool]) > bound * (1.0 + _ROUNDING) + _ROUNDING)
        if len(over):
            raise TemplateError(
                f"a factor changes its score by {listed.gain[pool][over[0]]:.6g}, but its bound says at"
                f" most {bound[over[0]]:.6g}: declare a larger bound, because the chain would otherwise"
                " sample another distribution."
            )
        largest = tempered(bound, temperature)
        total = float(largest.sum())
        if total + total**2 / self.variance >= len(pool):
            return None
        if total == 0.0:
            return _Law(pool[:0], largest[:0], largest[:0], largest[:0])
        gain = np.clip(tempered(listed.gain[pool], temperature), -largest, largest)
        excess = largest * (total / self.variance)
        may = np.flatnonzero(largest > 0.0)
        forward, backward = excess + 0.5 * (largest - gain), excess + 0.5 * (largest + gain)
        return _Law(pool[may], (excess + largest)[may], forward[may], backward[may])


def _poisson(stream: Stream, rate: float) -> int:
    """Count the arrivals before ``rate`` of a process with unit rate."""
    count, time = 0, -math.log1p(-stream.uniform())
    while time < rate:
        count += 1
        time -= math.log1p(-stream.uniform())
    return count
