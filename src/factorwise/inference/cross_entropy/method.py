"""The cross-entropy method: draw, keep the best, fit the distribution to them, draw again.

The performance is maximized; that of an infeasible sample is -inf. For a tutorial on the method, which can
also estimate rare events, see deboer2005tutorial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.cross_entropy.base import Family, Vector, checked_parameters, selected
from factorwise.inference.cross_entropy.fitting import RIDGE, Around, fit
from factorwise.rng import Stream, as_stream
from factorwise.types import Int64s
from factorwise.validation import check_count, check_number

PROGRESS_AFTER = 2.0  # seconds: short runs show no bar
ROUNDING = 1e-12  # so that 7 % of 100 samples are 7, although 0.07 * 100 is slightly larger in floating point

Sample = TypeVar("Sample")


class Elite(NamedTuple):
    """The samples to learn from.

    threshold
        Performance that a sample needs to belong to the elite.
    members : int64[elite]
        Numbers of the samples, ascending.
    shares : float64[elite]
        Their weights in the fit: equal, summing to one.
    """

    threshold: float
    members: Int64s
    shares: Vector


def elite_of(values: ArrayLike, share: float) -> Elite:
    """Choose the best ``share`` of the samples by performance, and all that tie with the worst of them.

    values : float64[count]
        Performance of each sample; -inf marks an infeasible one, which is chosen only when all are.

    Implements: rohanimanesh2009inference, Alg. 2, lines 6 and 7, and the indicator of Eq. 2.
    """
    check_number("share", share, above=0, most=1)
    performance = _checked_values(values, None)
    # Line 7 counts ceil(rho N) in ascending order and line 8 takes what is greater: that would keep most of
    # the samples, and none if all tie. The text says that a top portion is kept, so we count from the best,
    # and Eq. 2 includes the samples at the threshold.
    rank = min(_quota(len(performance), share), max(1, int(np.count_nonzero(performance > -np.inf))))
    threshold = float(np.partition(performance, -rank)[-rank])
    members = np.flatnonzero(performance >= threshold)
    return Elite(threshold, members, np.full(len(members), 1.0 / len(members)))


def _quota(count: int, share: float) -> int:
    """Return how many samples the elite must have."""
    return max(1, math.ceil(share * count * (1.0 - ROUNDING)))


class Update(NamedTuple):
    """New parameters and the elite from which they were learned."""

    parameters: Vector
    elite: Elite


def update(
    family: Family[Any],
    samples: Any,
    values: ArrayLike,
    parameters: ArrayLike,
    *,
    elite: float = 0.1,
    smoothing: float = 0.7,
    ridge: ArrayLike = RIDGE,
    around: Around = "zero",
) -> Update:
    """Fit the family to the elite, and move the parameters part of the way to the fit.

    The share of the way is ``smoothing``.

    If all samples are equally good, the parameters stay, instead of following the noise.

    samples
        What ``family`` drew at ``parameters``, an array or a sequence.
    values : float64[count]
        Their performances.

    Implements: rohanimanesh2009inference, Alg. 2, lines 6 to 9, with the smoothed line 9 of Sec. 2.2.
    """
    check_number("smoothing", smoothing, above=0, most=1)
    old = checked_parameters(family, parameters, "parameters")
    performance = _checked_values(values, len(samples))
    chosen = elite_of(performance, elite)
    if performance.min() == performance.max():
        return Update(old, chosen)
    best = selected(samples, chosen.members)
    fitted = fit(family, best, chosen.shares, old, ridge=ridge, around=around)
    return Update(smoothing * fitted + (1.0 - smoothing) * old, chosen)


class Trace(NamedTuple):
    """A record of each iteration.

    threshold : float64[iterations]
        Performance that a sample needed to belong to the elite.
    mean : float64[iterations]
        Mean performance of the feasible samples; -inf if there were none.
    best : float64[iterations]
        Best performance among the samples of that iteration.
    """

    threshold: Vector
    mean: Vector
    best: Vector


@dataclass(frozen=True, slots=True)
class CrossEntropyResult(Generic[Sample]):
    """The outcome of a search by the cross-entropy method.

    parameters : float64[size]
        The parameters of the distribution at the end.
    best, best_value
        The first of the best samples of all iterations, and its performance.
    trace
        Threshold, mean and best performance of each iteration.
    iterations, evaluations
        Number of iterations, and of samples whose performance was computed.
    converged
        Whether the threshold stopped rising.
    interrupted
        Whether Ctrl-C ended the search early.
    """

    parameters: Vector
    best: Sample
    best_value: float
    trace: Trace
    iterations: int
    evaluations: int
    converged: bool
    interrupted: bool


def each(function: Callable[[Any], float]) -> Callable[[Iterable[Any]], Vector]:
    """Turn a function of one sample into a function of a batch."""

    def performance(samples: Iterable[Any]) -> Vector:
        return np.array([function(sample) for sample in samples], dtype=np.float64)

    return performance


def cross_entropy(
    family: Family[Sample],
    performance: Callable[[Any], ArrayLike],
    *,
    start: ArrayLike,
    samples: int = 100,
    elite: float = 0.1,
    smoothing: float = 0.7,
    iterations: int = 100,
    tolerance: float = 1e-8,
    patience: int = 5,
    ridge: ArrayLike = RIDGE,
    around: Around = "zero",
    seed: int | np.random.Generator | Stream = 0,
    progress: bool | None = None,
) -> CrossEntropyResult[Sample]:
    """Search for the sample with the highest performance, with a distribution that learns from good samples.

    Each iteration draws samples, keeps the best of them and moves the parameters to where these are most
    likely. It ends when the threshold of the elite stops rising, or after ``iterations``. Ctrl-C ends it
    after the last complete iteration and returns the result so far.

    >>> from factorwise.inference.cross_entropy import Bernoulli
    >>> hidden = np.array([1, 1, 0, 1, 0, 0, 1, 0])
    >>> family = Bernoulli(len(hidden))
    >>> found = cross_entropy(family, lambda bits: (bits == hidden).sum(axis=1), start=family.uniform)
    >>> found.best.tolist(), found.best_value, found.converged
    ([1, 1, 0, 1, 0, 0, 1, 0], 8.0, True)

    performance
        Function of a batch as ``family.sample`` returns it, which returns float64[count]; `each` makes one
        from a function of one sample. -inf marks a sample as infeasible.
    start : float64[size]
        First parameters.
    samples, elite
        How many samples an iteration draws, and the share of them that it learns from.
    smoothing
        The share of the way from the parameters to the fitted ones; 1 is all the way.
    tolerance, patience
        The search has converged when the threshold has risen by no more than ``tolerance`` in ``patience``
        iterations. Iterations count once there are enough feasible samples to fill an elite: before that the
        threshold is the worst feasible performance, which may decrease.
    ridge, around
        Hold the parameters of a family without closed form near zero or near the previous: see `maximize`.
    seed
        The same seed gives the same result.
    progress
        Whether to show a bar once the search takes a few seconds; None shows it on a terminal only.

    Implements: rohanimanesh2009inference, Alg. 2, with the smoothing of Sec. 2.2.
    """
    check_count("samples", samples)
    check_number("elite", elite, above=0, most=1)
    check_number("smoothing", smoothing, above=0, most=1)
    check_count("iterations", iterations)
    check_number("tolerance", tolerance, least=0)
    check_count("patience", patience)
    root = as_stream(seed).bits()
    search = _Search(checked_parameters(family, start, "start"), _quota(samples, elite), tolerance)
    hidden = None if progress is None else not progress
    interrupted = False
    with tqdm(total=iterations, unit="iteration", delay=PROGRESS_AFTER, disable=hidden) as bar:
        try:
            while search.iterations < iterations and search.stalled < patience:
                # a separate stream for each iteration, independent of how much the others drew
                drawn = family.sample(search.parameters, samples, Stream(root, search.iterations))
                if len(drawn) != samples:
                    raise ShapeError(
                        f"sample of {type(family).__name__} must return {samples} samples, but returned"
                        f" {len(drawn)}."
                    )
                values = _checked_values(performance(drawn), samples)
                learned = update(
                    family,
                    drawn,
                    values,
                    search.parameters,
                    elite=elite,
                    smoothing=smoothing,
                    ridge=ridge,
                    around=around,
                )
                search.note(drawn, values, learned)
                bar.set_postfix(
                    threshold=f"{learned.elite.threshold:.6g}", best=f"{search.best_value:.6g}", refresh=False
                )
                bar.update()
        except KeyboardInterrupt:
            if search.iterations == 0:
                raise  # there is nothing to return
            interrupted = True
    return search.result(samples, converged=search.stalled >= patience, interrupted=interrupted)


class _Search:
    """The state of a search, and its records."""

    def __init__(self, parameters: Vector, quota: int, tolerance: float) -> None:
        self.parameters = parameters
        self.quota = quota
        self.tolerance = tolerance
        self.iterations = 0
        self.stalled = 0
        self.highest = -math.inf
        self.best: Any = None
        self.best_value = -math.inf
        self.rows: list[tuple[float, float, float]] = []

    def note(self, drawn: Any, values: Vector, learned: Update) -> None:
        """Record one iteration."""
        first = int(values.argmax())
        if self.iterations == 0 or values[first] > self.best_value:
            chosen = drawn[first]
            # a row of an array would keep the whole array alive
            self.best = chosen.copy() if isinstance(chosen, np.ndarray) else chosen
            self.best_value = float(values[first])
        threshold = learned.elite.threshold
        feasible = values[values > -np.inf]
        mean = float(feasible.mean()) if len(feasible) else -math.inf
        self.rows.append((threshold, mean, float(values[first])))
        # compared with the last rise, so that many small rises do not count as a standstill
        if len(feasible) >= self.quota and threshold > self.highest + self.tolerance:
            self.highest, self.stalled = threshold, 0
        elif self.highest > -math.inf:
            self.stalled += 1
        self.parameters = learned.parameters
        self.iterations += 1

    def result(self, samples: int, *, converged: bool, interrupted: bool) -> CrossEntropyResult[Any]:
        threshold, mean, best = np.array(self.rows).T.copy()
        return CrossEntropyResult(
            parameters=self.parameters,
            best=self.best,
            best_value=self.best_value,
            trace=Trace(threshold, mean, best),
            iterations=self.iterations,
            evaluations=self.iterations * samples,
            converged=converged,
            interrupted=interrupted,
        )


def _checked_values(values: ArrayLike, count: int | None) -> Vector:
    """Check that there is a number or -inf for each sample, and return the performances as an array."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or (count is not None and len(array) != count):
        wanted = "one number for each sample" if count is None else f"one number for each of {count} samples"
        raise ShapeError(
            f"the performance must be {wanted}, but has shape {array.shape}: if it is a function of one"
            " sample, use each(function)."
        )
    if len(array) == 0:
        raise InvalidArgumentError("there are no performances: give at least one.")
    bad = np.flatnonzero(np.isnan(array) | (array == np.inf))
    if len(bad):
        raise InvalidArgumentError(
            f"the performance of sample {bad[0]} is {array[bad[0]]}, but must be a finite number, or"
            " -inf for an infeasible sample."
        )
    return array
