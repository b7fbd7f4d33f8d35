r"""Gains estimated from a sample of the touched factors.

A sample is a fixed share, or as many factors as a confidence interval needs.

There are two estimates. ``"sum"`` is the paper's: the sum of the sampled factors, about n/N of the gain, so
that a chain walks as if the temperature were N/n times higher. ``"mean"``, the default, scales the sample
mean to the whole set: it is unbiased for the gain at a fixed sample size, so that temperature and proposal
ratio keep their meaning. Neither is unbiased for the acceptance probability, which is not linear in the gain:
a chain with either does not sample exactly ``exp(score / temperature)``.

Samples are drawn without replacement by a partial shuffle: the k-th draw takes ``below(N - k)`` among the
factors not yet drawn, which stay in the order of the contributions, and moves the first of them to its
position.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import require
from factorwise.inference.mcmc.evaluators.base import Estimate
from factorwise.inference.mcmc.evaluators.programs import Sampled, sampled_programs
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.clusterings.samples import confidence_gain, uniform_gain
from factorwise.model.contributions import Contributions, as_contributions
from factorwise.rng import Stream
from factorwise.types import Bools, Float64s, Int8s, Int64s
from factorwise.validation import check_number

EstimateName = Literal["sum", "mean"]
Drawn = tuple[tuple[int, ...], ...]  # the sampled factors of each stratum, as positions in it


class PairSampler(ABC):
    """An evaluator that examines a sample of the touched factors."""

    __slots__ = ()
    needs_bounds = False
    estimates = True  # a walk does not know its score

    @abstractmethod
    def sampled(self, parts: Surroundings) -> Sampled:
        """Return a walk's templates, with one that samples pairs."""

    @abstractmethod
    def multipliers(self, stream: Stream, changes: Float64s, stratum: Int8s, certain: Bools) -> Float64s:
        """Draw a sample; return the multiplier of each factor."""

    def programs(self, parts: Surroundings, *, balanced: bool) -> dict[str, Any]:
        """Return the sampling templates of a walk."""
        return {"templates": self.sampled(parts).templates}

    def evaluate(
        self, stream: Stream, contributions: Contributions | ArrayLike, temperature: float = 1.0
    ) -> Estimate:
        """Estimate the gain from one sample."""
        listed = as_contributions(contributions)
        multiplier = self.multipliers(stream, listed.gain[None], listed.stratum, listed.certain)
        return Estimate(listed.total(multiplier), int(np.count_nonzero(multiplier)), multiplier)


@dataclass(frozen=True, slots=True)
class UniformSample(PairSampler):
    """Examine a share of the touched factors, drawn uniformly without replacement.

    share
        The sample is this share of the factors, rounded to the nearest number and at least one. With fewer
        than two factors, all are examined.
    estimate
        "mean" scales the sample's mean to the whole set, "sum" uses its sum unchanged.

    Implements: singh2012montecarlo, Sec. 3.1.
    """

    share: float
    estimate: EstimateName = "mean"

    def __post_init__(self) -> None:
        check_number("share", self.share, above=0, most=1)
        _require_estimate(self.estimate)

    def sampled(self, parts: Surroundings) -> Sampled:
        """Return a walk's templates, with one that samples pairs."""
        return sampled_programs(
            parts, uniform_gain, [self.share, 0.0, 0.0, 0.0], [self.estimate == "mean", 1, 0]
        )

    def count(self, factors: int) -> int:
        """Return how many of ``factors`` are sampled."""
        return factors if factors < 2 else max(1, math.floor(self.share * factors + 0.5))

    def multipliers(self, stream: Stream, changes: Float64s, stratum: Int8s, certain: Bools) -> Float64s:
        """Draw the sample."""
        pool = np.flatnonzero(~certain)
        order = np.arange(len(pool))
        size = self.count(len(pool))
        draw_on(stream, order, 0, size if size < len(pool) else 0)
        return multipliers_of(self.estimate, certain, [pool], (tuple(order[:size].tolist()),))


@dataclass(frozen=True, slots=True)
class ConfidenceSample(PairSampler):
    r"""Draw factors without replacement until the mean of their signed changes is known precisely enough.

    .. math:: 2 z \frac{s}{\sqrt n} \sqrt{\frac{N - n}{N - 1}} < i

    with N touched factors, n sampled ones and s the sample's standard deviation. All factors are examined if
    the interval is 0 or there are fewer than two of them. If one sample serves several alternatives (the
    labels of a Gibbs step), the widest interval over the differences of any two of them counts.

    interval
        Width i of the interval at which sampling stops, in units of one factor's change of score.
    z
        Half-width of the interval in standard errors.
    minimum
        Number of factors drawn before the first check: a few equal ones say little about the others.
    growth
        Factor by which the sample grows between checks; with 1 the interval is checked after every factor.
    estimate
        "mean" scales the sample's mean to the whole set, "sum" uses its sum unchanged. The sample size
        depends on the changes drawn, so even "mean" is not quite unbiased.
    pooled
        Whether the factors of the old and the new cluster are one population, as in the paper, or two. Two
        populations are sampled in proportion to their sizes (at least twice each) and scaled separately; the
        interval is then that of the stratified mean.

    Implements: singh2012montecarlo, Sec. 3.2.
    """

    interval: float
    z: float = 1.96
    minimum: int = 5
    growth: float = 1.0
    estimate: EstimateName = "mean"
    pooled: bool = True

    def __post_init__(self) -> None:
        check_number("interval", self.interval, least=0)
        check_number("z", self.z, above=0)
        require(self.minimum >= 2, "minimum", self.minimum, "at least 2, because one value has no deviation")
        require(self.growth >= 1.0, "growth", self.growth, "at least 1")
        _require_estimate(self.estimate)

    def sampled(self, parts: Surroundings) -> Sampled:
        """Return a walk's templates, with one that samples pairs."""
        rule = [0.0, self.interval, self.z, self.growth]
        options = [self.estimate == "mean", 1 if self.pooled else 2, self.minimum]
        return sampled_programs(parts, confidence_gain, rule, options)

    def looks(self, factors: int) -> list[int]:
        """Return the sample sizes at which the interval is checked; the last one is all ``factors``."""
        sizes = [min(self.minimum, factors)]
        while sizes[-1] < factors:
            sizes.append(min(factors, max(sizes[-1] + 1, math.ceil(sizes[-1] * self.growth))))
        return sizes

    def allotment(self, size: int, strata: Sequence[int]) -> list[int]:
        """Divide a sample among strata of given sizes."""
        if len(strata) == 1:
            return [size]
        # rounded up, so that the same factors are divided in the same way in both directions
        return [min(own, max(2, -(-size * own // sum(strata)))) for own in strata]

    def width(self, changes: Float64s, populations: Sequence[int], sizes: Sequence[int]) -> float:
        """Return the width of the interval for the mean change.

        changes : float64[alternatives, sampled]
            Changes of the sampled factors, ordered by stratum, with ``sizes`` of them from each.
        populations
            Number of factors in each stratum.
        """
        total, start = sum(populations), 0
        covariance = np.zeros((len(changes), len(changes)))  # of the means of the alternatives
        for population, size in zip(populations, sizes, strict=True):
            if size < population:
                sample = changes[:, start : start + size]
                centered = sample - sample.sum(axis=1, keepdims=True) / size
                scale = (population / total) ** 2 * (population - size) / (population - 1)
                covariance += scale / (size * (size - 1)) * (centered @ centered.T)
            start += size
        variance = covariance.diagonal()
        widest = float(variance.max())  # against the current setting, which changes nothing
        if len(changes) > 1:
            widest = max(widest, float((variance[:, None] + variance - 2.0 * covariance).max()))
        return 2.0 * self.z * math.sqrt(widest)

    def multipliers(self, stream: Stream, changes: Float64s, stratum: Int8s, certain: Bools) -> Float64s:
        """Draw until the interval is narrow enough."""
        pools = self.pools(stratum, certain)
        populations = [len(pool) for pool in pools]
        if sum(populations) < 2:
            return np.ones(len(certain))
        orders = [np.arange(population) for population in populations]
        sizes = [0] * len(pools)
        for look in self.looks(sum(populations)):
            wanted = self.allotment(look, populations)
            for order, done, size in zip(orders, sizes, wanted, strict=True):
                draw_on(stream, order, done, size)
            sizes = wanted
            seen = np.concatenate([pool[o[:n]] for pool, o, n in zip(pools, orders, sizes, strict=True)])
            if self.width(changes[:, seen], populations, sizes) < self.interval:
                break
        drawn = tuple(tuple(o[:n].tolist()) for o, n in zip(orders, sizes, strict=True))
        return multipliers_of(self.estimate, certain, pools, drawn)

    def pools(self, stratum: Int8s, certain: Bools) -> list[Int64s]:
        """Return the populations that are sampled, without those that have only one factor."""
        if self.pooled:
            return [np.flatnonzero(~certain)]
        pools = [np.flatnonzero(~certain & (stratum == kind)) for kind in (0, 1)]
        return [pool for pool in pools if len(pool)]


def draw_on(stream: Stream, order: Int64s, done: int, size: int) -> None:
    """Shuffle so that the first ``size`` of ``order`` are a random sample.

    The first ``done`` keep their positions.
    """
    for position in range(done, size):
        drawn = position + stream.below(len(order) - position)
        order[position], order[drawn] = order[drawn], order[position]


def _require_estimate(name: str) -> None:
    require(name in ("sum", "mean"), "estimate", name, "'sum' or 'mean'")


def multipliers_of(name: EstimateName, certain: Bools, pools: list[Int64s], drawn: Drawn) -> Float64s:
    """Return the multiplier of each factor, given those drawn from each pool."""
    multiplier = certain.astype(np.float64)
    for pool, chosen in zip(pools, drawn, strict=True):
        multiplier[pool[list(chosen)]] = len(pool) / len(chosen) if name == "mean" and chosen else 1.0
    return multiplier
