"""Train a chain sentence by sentence: several passes, each in a newly shuffled order.

The averaged perceptron, the passive-aggressive rules and AROW decode a sentence and change the weights if the
path is wrong; stochastic gradient descent and AdaGrad follow the gradient of its loss. Only pairs of
attribute and label that have a weight take part: if the best path uses another pair, that part of the change
is left out.

A sentence with partly known labels is moved towards the best path that agrees with what is known, or up its
marginal likelihood. A sentence's emphasis multiplies its changes. A label's cost is subtracted from the score
of the right label, so that a lead smaller than the cost counts as a mistake.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from factorwise.arguments import check_types
from factorwise.errors import InvalidArgumentError, StructureError, require
from factorwise.kernels.chains import chain_online
from factorwise.kernels.chains.chain_online import OnlineStep
from factorwise.learning.chains.layout import StateFeatures
from factorwise.learning.chains.passes import Corrections, Descent, LaidOut, Passes, SquaredDescent
from factorwise.learning.chains.structure import ChainStructure, FirstOrder, Supervision
from factorwise.rng import Stream, as_stream
from factorwise.types import Float64s, Int64s, Ints
from factorwise.validation import check_count, check_number
from factorwise.variables.sparse_rows import SparseRows


@dataclass(frozen=True, slots=True)
class AveragedPerceptron:
    """Add the features of the right path and subtract those of the wrong one; average all weights.

    The loss of a pass is the sum over sentences of the share of labels that are wrong.
    """


@check_types
@dataclass(frozen=True, slots=True, kw_only=True)
class PassiveAggressive:
    """Change the weights just far enough for the right path to lead by a margin.

    kind
        0: always that far; 1: at most ``c`` times the difference of features; 2: with a penalty on the square
        of the step, whose strength ``c`` sets.
    c
        The limit of the change for one sentence.
    error_sensitive
        Require a margin of the square root of the number of wrong labels instead of 1.
    averaging
        Return the mean of the weights after each sentence.
    """

    kind: int = 1
    c: float = 1.0
    error_sensitive: bool = True
    averaging: bool = True

    def __post_init__(self) -> None:
        require(self.kind in (0, 1, 2), "kind", self.kind, "0, 1 or 2")
        check_number("c", self.c, above=0, finite=True)


@check_types
@dataclass(frozen=True, slots=True, kw_only=True)
class Arow:
    """Adaptive regularisation of weights: change uncertain weights more, and make them more certain.

    variance
        Initial uncertainty of every weight.
    gamma
        Larger values mean smaller changes and slower gains in certainty. The required margin is the number of
        wrong labels.
    """

    variance: float = 1.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        check_number("variance", self.variance, above=0, finite=True)
        check_number("gamma", self.gamma, above=0, finite=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class StochasticGradient:
    r"""Follow the gradient of the penalised likelihood with decreasing steps.

    After :math:`t` sentences the step is :math:`1 / (1 / \eta + \lambda t)`, with :math:`\lambda` twice the
    penalty over the number of sentences and :math:`\eta` the ``rate``. If no rate is given, it is chosen by a
    pass over a sample for each of several candidates.

    l2
        Penalty: this times the sum of squared weights is added to the loss.
    rate
        Length of the first step; None calibrates it.
    calibration_eta, calibration_rate
        The first candidate, and the factor from one candidate to the next. Candidates increase while the loss
        is below that at the start and less than twice the lowest so far; then they decrease from the first.
    calibration_samples
        Number of sentences in the sample.
    calibration_candidates
        How many candidates that lower the loss to try in each direction.
    calibration_max_trials
        How many candidates to try in total.
    """

    l2: float = 1.0
    rate: float | None = None
    calibration_eta: float = 0.1
    calibration_rate: float = 2.0
    calibration_samples: int = 1000
    calibration_candidates: int = 10
    calibration_max_trials: int = 20

    def __post_init__(self) -> None:
        require(0 <= self.l2 < np.inf, "l2", self.l2, "zero or more")
        require(self.rate is None or 0 < self.rate < np.inf, "rate", self.rate, "greater than zero, or None")
        require(
            0 < self.calibration_eta < np.inf, "calibration_eta", self.calibration_eta, "greater than zero"
        )
        check_number("calibration_rate", self.calibration_rate, above=1, finite=True)
        for name in ("calibration_samples", "calibration_candidates", "calibration_max_trials"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")


@check_types
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaGrad:
    """Follow the gradient, each weight by ``rate`` over the root of the sum of its squared gradients.

    The penalty acts by a proximal step (a division) at the sentences that have the attribute, scaled up by
    how much rarer they are than all sentences: the optimum is the same, and not all weights have to be
    touched.

    l2
        Penalty: this times the sum of squared weights is added to the loss.
    rate
        Length of a weight's first step.
    offset
        Initial value of every weight's sum of squared gradients.
    """

    l2: float = 1.0
    rate: float = 0.1
    offset: float = 1e-8

    def __post_init__(self) -> None:
        require(0 <= self.l2 < np.inf, "l2", self.l2, "zero or more")
        check_number("rate", self.rate, above=0, finite=True)
        check_number("offset", self.offset, above=0, finite=True)


Rule: TypeAlias = AveragedPerceptron | PassiveAggressive | Arow | StochasticGradient | AdaGrad


@dataclass(frozen=True, slots=True)
class PassRecord:
    """The record of one pass over the sentences.

    loss
        Sum over sentences, each with the weights at that moment, plus the penalty if there is one.
    error_rate
        Share of the labels that were wrong.
    norm
        Norm of the weight vector.
    seconds
        Duration of the pass.
    """

    iteration: int
    loss: float
    error_rate: float
    norm: float
    seconds: float


@dataclass(frozen=True, slots=True)
class OnlineProgress(PassRecord):
    """A pass that has just ended.

    weights
        Returns the current weights when called (their mean, if the rule averages).
    """

    weights: Callable[[], Float64s]


@dataclass(frozen=True, eq=False)
class OnlineResult:
    """Trained weights, and a record of the training.

    loss
        Loss of the pass that gave the weights.
    rate
        Length of the first step, if there is one.
    """

    weights: Float64s
    loss: float
    iterations: int
    converged: bool
    message: str
    rate: float | None
    trace: tuple[PassRecord, ...]


def train_online(
    rows: SparseRows,
    start: Int64s,
    supervision: Supervision,
    features: StateFeatures,
    structure: ChainStructure,
    *,
    rule: Rule,
    max_iterations: int = 100,
    epsilon: float = 0.0,
    period: int = 10,
    delta: float = 1e-6,
    seed: int | np.random.Generator | Stream = 0,
    watch: Callable[[OnlineProgress], bool | None] | None = None,
    start_weights: Float64s | None = None,
    dtype: DTypeLike = np.float32,
) -> OnlineResult:
    """Train a first-order chain sentence by sentence.

    epsilon
        Rules that correct mistakes stop when the mean loss per sentence of a pass is below this (`Arow`: at
        most this), as CRFsuite does; so by default averages continue after a pass without mistakes.
    period, delta
        Rules that follow a gradient stop when the loss improved by less than this share over the last
        ``period`` passes, and return the weights of the pass with the lowest loss.
    watch
        Called after each pass; training stops when it returns true.
    dtype
        Precision of scores and, for rules that follow a gradient, of the weights.
    """
    check_count("max_iterations", max_iterations)
    check_number("epsilon", epsilon, least=0)
    check_count("period", period)
    check_number("delta", delta, least=0)
    if not isinstance(structure, FirstOrder):
        raise StructureError(
            f"{type(rule).__name__} trains first-order chains only, but {type(structure).__name__} was"
            " given: train chains of higher order with L-BFGS."
        )
    laid = LaidOut(rows, start, supervision, features, structure, start_weights, dtype)
    order = np.flatnonzero(np.diff(start) > 0).astype(np.int64)
    require(len(order) > 0, "start", start.tolist(), "the starts of sentences with at least one token")
    stream = as_stream(seed)
    passes, rate = _passes(laid, rule, order, stream)
    l2 = rule.l2 if isinstance(rule, StochasticGradient | AdaGrad) else None
    stop = _Stop(len(order), epsilon, period, delta, rule)
    trace: list[PassRecord] = []
    best, best_loss = laid.read(), np.inf
    message = ""
    while not message:
        began = time.perf_counter()
        chain_online.shuffle(order, stream.state)
        loss, wrong = passes.run(order)
        weights = passes.weights()
        square = _square(weights)
        loss += (l2 or 0.0) * square
        if not np.isfinite(loss):
            raise InvalidArgumentError(
                f"the weights diverged in pass {len(trace) + 1} of {rule}: use a smaller rate."
            )
        seconds = time.perf_counter() - began
        record = (len(trace) + 1, loss, wrong / len(rows), float(np.sqrt(square)), seconds)
        trace.append(PassRecord(*record))
        if l2 is None or loss < best_loss:
            best, best_loss = weights, loss
        stopped = watch is not None and watch(OnlineProgress(*record, passes.weights))
        message = stop.reason(trace)
        converged = bool(message)
        if stopped and not message:
            message = "stopped by the caller"
        elif len(trace) == max_iterations and not message:
            message = f"max_iterations = {max_iterations} passes are done"
    return OnlineResult(best, best_loss, len(trace), converged, message, rate, tuple(trace))


def _passes(laid: LaidOut, rule: Rule, order: Ints, stream: Stream) -> tuple[Passes, float | None]:
    """Turn a rule into passes; the rate is that of the first step, if the rule has one."""
    if isinstance(rule, AveragedPerceptron):
        return Corrections(laid, OnlineStep(chain_online.PERCEPTRON, 1.0, False), averaging=True), None
    if isinstance(rule, PassiveAggressive):
        kind = (chain_online.AGGRESSIVE, chain_online.AGGRESSIVE_I, chain_online.AGGRESSIVE_II)[rule.kind]
        step = OnlineStep(kind, float(rule.c), rule.error_sensitive)
        return Corrections(laid, step, averaging=rule.averaging), None
    if isinstance(rule, Arow):
        step = OnlineStep(chain_online.ADAPTIVE, float(rule.gamma), False)
        return Corrections(laid, step, averaging=False, variance=rule.variance), None
    if isinstance(rule, AdaGrad):
        return SquaredDescent(laid, rate=rule.rate, l2=rule.l2, offset=rule.offset), rule.rate
    shrink = 2.0 * rule.l2 / len(order)
    descent = Descent(laid, rate=0.0, shrink=shrink)
    chain_online.shuffle(order, stream.state)
    sample = order[: rule.calibration_samples]
    rate = _calibrated(descent, rule, sample, shrink) if rule.rate is None else rule.rate
    limit = 1.0 / shrink if shrink else np.inf  # a longer step would reverse the sign of all weights
    require(rate < limit, "rate", rate, f"less than {limit:g}, sentences over twice the penalty")
    descent.begin_at(rate)
    return descent, rate


def _calibrated(descent: Descent, rule: StochasticGradient, sample: Ints, shrink: float) -> float:
    """Try rates by a pass over the sample each; return the one with the lowest loss."""

    def loss_with(rate: float) -> float:
        if rate * shrink >= 1:
            return np.inf
        descent.begin_at(rate)
        loss, _ = descent.run(sample)
        return loss + 0.5 * shrink * len(sample) * _square(descent.weights())

    at_start = loss_with(0.0)
    best_loss, best = np.inf, rule.calibration_eta
    candidate, left, rising = rule.calibration_eta, rule.calibration_candidates, True
    for _ in range(rule.calibration_max_trials):
        loss = loss_with(candidate)
        better = loss < at_start
        left -= better
        if loss < best_loss:
            best_loss, best = loss, candidate
        if rising and better and left > 0 and loss < 2.0 * best_loss:
            candidate *= rule.calibration_rate
        elif rising:
            rising, left = False, rule.calibration_candidates
            candidate = rule.calibration_eta / rule.calibration_rate
        elif left > 0:
            candidate /= rule.calibration_rate
        else:
            break
    return best


def _square(weights: Float64s) -> float:
    """Return the squared norm, computed by one thread: waking others costs more than it saves here."""
    return float(np.einsum("i,i->", weights, weights))


class _Stop:
    """Decides when to stop."""

    def __init__(self, sentences: int, epsilon: float, period: int, delta: float, rule: Rule) -> None:
        self._sentences, self._epsilon, self._delta = sentences, epsilon, delta
        self._descending = isinstance(rule, StochasticGradient | AdaGrad)
        self._averages = isinstance(rule, AveragedPerceptron | PassiveAggressive)
        self._before: deque[float] = deque(maxlen=period)

    def reason(self, trace: list[PassRecord]) -> str:
        """Return why to stop after the last pass, or an empty string."""
        loss = trace[-1].loss
        if not self._descending:
            bound = self._epsilon * self._sentences
            enough = loss < bound if self._averages else loss <= bound
            return f"the mean loss is at most epsilon = {self._epsilon:g}" if enough else ""
        full = len(self._before) == self._before.maxlen
        enough = full and self._before[0] - loss < self._delta * loss
        self._before.append(loss)
        period = self._before.maxlen
        return f"the loss improved by less than delta = {self._delta:g} in {period} passes" if enough else ""
