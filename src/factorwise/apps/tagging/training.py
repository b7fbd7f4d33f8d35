"""Train a chain on encoded sentences with full or partial labels.

The parts come in order: the sentences, the choice of weights, the objective, the optimizer, and the
monitoring of training.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.config import BATCH, MOST_PASSES, TrainingConfig, online_rule
from factorwise.apps.tagging.constraints import LabelConstraints
from factorwise.apps.tagging.features.encoders import Encoder
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.apps.tagging.warm import Beginning, EarlierFit, holding
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from factorwise.learning.chains.layout import StateFeatures
from factorwise.learning.chains.likelihood import ChainLikelihood
from factorwise.learning.chains.online import OnlineProgress, train_online
from factorwise.learning.chains.second_order import SecondOrder
from factorwise.learning.chains.structure import ChainStructure, FirstOrder, Supervision
from factorwise.learning.optimizers import Progress, minimize
from factorwise.metrics.sequence import SpanCounter
from factorwise.types import Bools, Ints
from factorwise.variables.sparse_rows import SparseRows

_MEMORY = 6  # updates that L-BFGS stores, as in CRFsuite
_MEMORY_WITH_L1 = 12  # needs fewer iterations when weights go to zero
_SINGLE_ERROR = 1e-6  # relative error of the loss: jumps of 2e-7 were seen near the optimum of CoNLL-2000
_DOUBLE_ERROR = 1e-14  # relative rounding error of the objective when its rows are in double precision


class EncodedSentences(NamedTuple):
    """Encoded sentences and what is known about their labels.

    slot : int32[attributes] or None
        The slot of each attribute, such as the template that it comes from.
    """

    rows: SparseRows
    start: NDArray[np.int64]
    supervision: Supervision
    slot: Ints | None = None

    @property
    def complete(self) -> Bools:
        """Which sentences have a single known label for each token, bool[sentences]."""
        return np.asarray(np.minimum.reduceat(self.supervision.truth, self.start[:-1]) >= 0)

    def taken(self, chosen: Bools) -> EncodedSentences:
        """Return the chosen sentences (bool[sentences])."""
        size = np.diff(self.start)
        token = np.flatnonzero(np.repeat(chosen, size))
        known = self.supervision
        return EncodedSentences(
            repeated_rows(self.rows, token),
            np.concatenate([[0], np.cumsum(size[chosen])]).astype(np.int64),
            replace(
                known,
                truth=known.truth[token],
                allowed_row=known.allowed_row[token] if len(known.allowed_row) else known.allowed_row,
                emphasis=known.emphasis[chosen] if len(known.emphasis) else known.emphasis,
            ),
            self.slot,
        )


def repeated_rows(rows: SparseRows, which: NDArray[np.int64]) -> SparseRows:
    """Return the rows with these numbers, in this order; a number may be repeated."""
    size = np.diff(rows.indptr)[which]
    indptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    entry = np.repeat(rows.indptr[which] - indptr[:-1], size) + np.arange(indptr[-1])
    values = None if rows.values is None else rows.values[entry]
    return SparseRows(indptr, rows.indices[entry], values, rows.width)


class HeldOutSentences(NamedTuple):
    """Sentences on which the weights are scored during training.

    truth : int32[tokens]
        The labels, all of which are known.
    patience
        Stop after this many evaluations without a better score; None to never stop early.
    every
        Number of iterations between evaluations.
    """

    rows: SparseRows
    start: NDArray[np.int64]
    truth: Ints
    patience: int | None = None
    every: int = 1

    @classmethod
    def of(cls, sentences: EncodedSentences, patience: int | None = None) -> HeldOutSentences:
        """Return fully labelled sentences as held-out sentences."""
        return cls(sentences.rows, sentences.start, sentences.supervision.truth, patience)


class SpanMeasure(NamedTuple):
    """The score of predictions: span F1, or token accuracy if the labels are not span labels."""

    name: str
    score: Callable[[Ints, Ints, NDArray[np.int64]], float]

    @classmethod
    def of(cls, labels: Sequence[Any]) -> SpanMeasure:
        """Choose the score that suits the labels."""
        counter = SpanCounter([str(label) for label in labels])
        if counter.unusual:
            return cls("token accuracy", lambda truth, predicted, start: float((truth == predicted).mean()))
        return cls(
            "span F1", lambda truth, predicted, start: counter.scores(truth, predicted, start).micro.f1
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What is reported about one iteration of training.

    objective
        The penalized objective; for an online algorithm, the loss of the pass.
    gradient_norm
        Norm of the gradient; None for an online algorithm.
    active
        Number of nonzero weights.
    score
        Span F1 (token accuracy if the labels are not span labels) on held-out sentences; None if not
        evaluated.
    seconds
        Time since training began.
    """

    iteration: int
    objective: float
    gradient_norm: float | None
    active: int
    score: float | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained tagger and how training ended.

    objective
        The objective at the tagger's weights; for an online algorithm, the loss of the pass that gave them.
    score
        The tagger's score on held-out sentences, measured as in `Step`; None if there are none.
    """

    tagger: ChainTagger
    objective: float
    n_iter: int
    converged: bool
    message: str
    score: float | None
    steps: tuple[Step, ...]


Watch = Callable[[Step], None]


def train(
    sentences: EncodedSentences,
    labels: Sequence[Any],
    config: TrainingConfig,
    *,
    constraints: LabelConstraints | None = None,
    held_out: HeldOutSentences | None = None,
    before: EarlierFit | None = None,
    watch: Watch | None = None,
    threads: int = 1,
) -> Trained:
    """Train a chain.

    constraints
        Label sequences that are forbidden, in training and in prediction.
    before
        An earlier fit, which gives initial weights and those that stay fixed; by default, weights start at
        zero.
    watch
        Called after each iteration.
    """
    rules = LabelConstraints.none(len(labels)) if constraints is None else constraints
    sentences = _that_count(sentences)
    rules.check(labels, sentences.start, sentences.supervision)
    features = _features(sentences, len(labels), config)
    structure = _structure(sentences, len(labels), config, rules)
    begin = (
        Beginning.at_zero(features, structure)
        if before is None
        else before.beginning(features, structure, *_present(sentences, len(labels)))
    )
    with Team(threads) as team:
        watcher = _Watcher(tuple(labels), begin.features, begin.structure, held_out, watch, team)
        if config.algorithm in BATCH:
            return _in_batch(sentences, config, begin, watcher)
        return _online(sentences, config, begin, watcher)


def _present(sentences: EncodedSentences, labels: int) -> tuple[Bools, Bools]:
    """Return which attributes and which labels occur in the sentences."""
    seen, present = np.zeros(sentences.rows.width, dtype=bool), np.zeros(labels, dtype=bool)
    seen[sentences.rows.indices] = True
    known = sentences.supervision
    present[known.truth[known.truth >= 0]] = True
    present |= known.allowed[~known.allowed.all(axis=1)].any(axis=0) if known.allowed.size else False
    return seen, present


def _that_count(sentences: EncodedSentences) -> EncodedSentences:
    """Drop sentences of weight zero, so that they do not influence which features get a weight."""
    emphasis = sentences.supervision.emphasis
    if not len(emphasis) or emphasis.all():
        return sentences
    if not emphasis.any():
        raise InvalidArgumentError("every sentence has weight zero: give at least one a weight above zero.")
    return sentences.taken(np.asarray(emphasis > 0))


def _features(sentences: EncodedSentences, labels: int, config: TrainingConfig) -> StateFeatures:
    """Return the pairs of attribute and label that get a weight."""
    rows, supervision = sentences.rows, sentences.supervision
    if config.all_possible_states and config.min_freq == 0:
        return StateFeatures.all_pairs(rows.width, labels)
    truth: Ints = supervision.truth
    if len(supervision.allowed):
        rows, truth = _each_possibility(rows, supervision)
    return StateFeatures.observed(rows, truth, labels, config.min_freq)


def _each_possibility(rows: SparseRows, supervision: Supervision) -> tuple[SparseRows, Ints]:
    """Repeat each token that has a set of possible labels, once for each of them."""
    open_token = np.flatnonzero(supervision.truth < 0)
    which = supervision.allowed_row[open_token]
    # a token that may have any label says nothing about labels
    some = ~np.asarray(supervision.allowed.all(axis=1))[which]
    token, label = [], []
    for place, row in zip(open_token[some].tolist(), which[some].tolist(), strict=True):
        possible = np.flatnonzero(supervision.allowed[row])
        token.append(np.full(len(possible), place))
        label.append(possible)
    every = np.concatenate([np.arange(len(rows)), *token]).astype(np.int64)
    truth = np.concatenate([supervision.truth, *label]).astype(np.int32)
    return repeated_rows(rows, every), truth


def _structure(
    sentences: EncodedSentences, labels: int, config: TrainingConfig, rules: LabelConstraints
) -> ChainStructure:
    """Return the transitions that get a weight: observed ones, or all that are not forbidden."""
    truth, start, lowest = sentences.supervision.truth, sentences.start, config.min_freq
    first = FirstOrder.from_labels(
        truth,
        start,
        labels,
        every=config.all_possible_transitions,
        lowest=lowest,
        forbidden=rules.forbidden,
        not_first=rules.not_first,
        not_last=rules.not_last,
    )
    if config.order == 1:
        return first
    return SecondOrder.seen(first, truth, start, every=config.all_possible_transitions, lowest=lowest)


class _Watcher:
    """Records the iterations of training, scores held-out sentences and decides when to stop."""

    def __init__(
        self,
        labels: tuple[Any, ...],
        features: StateFeatures,
        structure: ChainStructure,
        held_out: HeldOutSentences | None,
        watch: Watch | None,
        team: Team,
    ) -> None:
        self.labels, self.features, self.structure = labels, features, structure
        self.team = team
        self.steps: list[Step] = []
        self._best: tuple[float, float, NDArray[np.float64]] | None = None  # score, objective, weights
        self._held_out, self._watch = held_out, watch
        self._measure = SpanMeasure.of(labels)
        self._since_best = 0
        self._began = time.perf_counter()

    def tagger(self, weights: NDArray[np.float64]) -> ChainTagger:
        """Return a tagger with these weights."""
        return ChainTagger(self.labels, self.features, self.structure, weights)

    def see(
        self,
        iteration: int,
        objective: float,
        gradient_norm: float | None,
        weights: Callable[[], NDArray[np.float64]],
        active: int | None = None,
    ) -> bool:
        """Record an iteration; return whether to stop."""
        held_out, score = self._held_out, None
        if held_out is not None and iteration % held_out.every == 0:
            score = self._score(held_out, weights())
        count = int(np.count_nonzero(weights())) if active is None else active
        step = Step(iteration, objective, gradient_norm, count, score, time.perf_counter() - self._began)
        self.steps.append(step)
        if self._watch is not None:
            self._watch(step)
        if score is None or held_out is None or held_out.patience is None:
            return False
        if self._best is None or score > self._best[0]:
            self._best, self._since_best = (score, objective, weights().copy()), 0
        else:
            self._since_best += 1
        return self._since_best >= held_out.patience

    def _score(self, held_out: HeldOutSentences, weights: NDArray[np.float64]) -> float:
        predicted = self.tagger(weights).decode(held_out.rows, held_out.start, self.team)
        return self._measure.score(held_out.truth, predicted, held_out.start)

    def result(
        self, weights: NDArray[np.float64], objective: float, converged: bool, message: str
    ) -> Trained:
        """Return the result with the last weights, or with those that scored best on held-out sentences."""
        if self._best is not None:
            _, objective, weights = self._best
        n_iter = self.steps[-1].iteration if self.steps else 0
        # scored again, because an online algorithm may return the weights of an earlier pass
        score = None if self._held_out is None else self._score(self._held_out, weights)
        return Trained(self.tagger(weights), objective, n_iter, converged, message, score, tuple(self.steps))


def _in_batch(
    sentences: EncodedSentences, config: TrainingConfig, begin: Beginning, watcher: _Watcher
) -> Trained:
    """Train with a batch algorithm, which minimizes the negative log-likelihood plus the penalty."""
    objective = ChainLikelihood(
        sentences.rows,
        sentences.start,
        sentences.supervision,
        watcher.features,
        watcher.structure,
        slot=sentences.slot,
        team=watcher.team,
        dtype=config.dtype,
    )

    free = ~begin.held
    held_active = int(np.count_nonzero(begin.weights[begin.held]))

    def everything(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        full = begin.weights.copy()
        full[free] = weights
        return full

    def watch(progress: Progress) -> bool:
        return watcher.see(
            progress.iteration,
            progress.value,
            progress.gradient_norm,
            lambda: everything(progress.weights),
            progress.active + held_active,
        )

    settings = config.stopping()
    if config.dtype is np.float64:
        settings |= {"precision": _DOUBLE_ERROR, "history": "float64"}
    else:
        settings |= {"precision": _SINGLE_ERROR}
    if config.algorithm == "lbfgs":
        settings |= {
            "memory": config.memory or (_MEMORY_WITH_L1 if config.prior.l1 > 0 else _MEMORY),
            "line_search": config.linesearch,
            "max_linesearch": config.max_linesearch,
        }
    found = minimize(
        objective if free.all() else holding(objective, begin.weights, begin.held),
        begin.weights[free],
        prior=config.prior,
        method=BATCH[config.algorithm],
        max_iterations=config.max_iterations,
        watch=watch,
        threads=watcher.team.threads,
        **settings,
    )
    return watcher.result(everything(found.weights), found.value, found.converged, found.message)


def _online(
    sentences: EncodedSentences, config: TrainingConfig, begin: Beginning, watcher: _Watcher
) -> Trained:
    """Train with an online algorithm; weights of attributes that no sentence has stay unchanged."""

    def watch(progress: OnlineProgress) -> bool:
        return watcher.see(progress.iteration, progress.loss, None, progress.weights)

    found = train_online(
        sentences.rows,
        sentences.start,
        sentences.supervision,
        watcher.features,
        watcher.structure,
        rule=online_rule(config),
        max_iterations=config.max_iterations or MOST_PASSES[config.algorithm],
        seed=config.seed,
        watch=watch,
        start_weights=begin.weights,
        dtype=config.dtype,
        **config.stopping(),
    )
    weights = np.where(begin.absent, begin.weights, found.weights)
    return watcher.result(weights, found.loss, found.converged, found.message)


def without_zeros(tagger: ChainTagger, encoder: Encoder) -> tuple[ChainTagger, Encoder]:
    """Drop the state weights that are zero, and the attributes that have no weight left."""
    features, used = tagger.features, tagger.state_weights != 0
    if used.all():
        return tagger, encoder
    ends = np.concatenate([[0], np.cumsum(used)])[features.start]
    encoder, kept = encoder.select(np.diff(ends) > 0)
    start = np.concatenate([[0], np.cumsum(np.diff(ends)[kept])]).astype(np.int64)
    weights = np.concatenate([tagger.state_weights[used], tagger.transition_weights])
    return replace(tagger, features=StateFeatures(start, features.label[used]), weights=weights), encoder
