"""Scores of sentences by chains that have not learned from them, without giving up sentences to learn from.

The sentences are split into parts; a chain is trained on all but one, for each, and scores that one. What is
learned on top of a chain's scores, such as the weights of constraints, then sees scores as they are on new
sentences: on those that it was trained on, a chain is surer than it will ever be again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.config import TrainingConfig
from factorwise.apps.tagging.constraints import LabelConstraints
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.apps.tagging.training import EncodedSentences, HeldOutSentences, SpanMeasure, Trained, train
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from factorwise.learning.likelihood.priors import Prior
from factorwise.types import Ints
from factorwise.validation import check_count
from factorwise.variables.sparse_rows import SparseRows

FOLDS = 5


class JudgedSentences(NamedTuple):
    """Sentences, all labels of which are known, and a chain that has not learned from them."""

    tagger: ChainTagger
    rows: SparseRows
    start: NDArray[np.int64]
    truth: Ints

    @classmethod
    def by(cls, tagger: ChainTagger, held_out: HeldOutSentences) -> JudgedSentences:
        """Return sentences that were held out of training."""
        return cls(tagger, held_out.rows, held_out.start, held_out.truth)

    def score(self, measure: SpanMeasure, team: Team) -> float:
        """Return how well the chain labels the sentences."""
        return measure.score(self.truth, self.tagger.decode(self.rows, self.start, team), self.start)


def judged_sentences(
    trained: Trained,
    held_out: HeldOutSentences | None,
    sentences: EncodedSentences,
    labels: Sequence[Any],
    config: TrainingConfig,
    *,
    folds: int,
    constraints: LabelConstraints | None = None,
    threads: int = 1,
) -> list[JudgedSentences]:
    """Return the sentences that were held out, if any, and those that were learned from, in ``folds`` parts.

    trained
        The chain that has learned from ``sentences``: those of the parts are trained for as long.
    folds
        0 to leave out what was learned from.
    """
    judged = [] if held_out is None else [JudgedSentences.by(trained.tagger, held_out)]
    if folds:
        alike = replace(config, max_iterations=max(trained.n_iter, 1))
        judged += cross_fitted(
            sentences, labels, alike, folds=folds, constraints=constraints, threads=threads
        )
    return judged


def cross_fitted(
    sentences: EncodedSentences,
    labels: Sequence[Any],
    config: TrainingConfig,
    *,
    folds: int = FOLDS,
    constraints: LabelConstraints | None = None,
    threads: int = 1,
    on_fit: Callable[[], object] = lambda: None,
) -> list[JudgedSentences]:
    """Train a chain on all parts but one, for each part, and return the parts, each with its chain.

    folds
        How many parts there are.
    on_fit
        Called after each training.
    """
    count = len(sentences.start) - 1
    check_count("folds", folds, 2)
    if folds > count:
        raise InvalidArgumentError(
            f"{folds} parts to train on and to score were asked for, but there are only {count} sentences:"
            " give fewer folds, or more sentences."
        )
    part = np.empty(count, dtype=np.int64)
    part[np.random.default_rng(config.seed).permutation(count)] = np.arange(count) % folds
    able, found = sentences.complete, []
    for number in range(folds):
        apart = (part == number) & able
        if apart.any():
            rest = sentences.taken(part != number)
            tagger = train(rest, labels, config, constraints=constraints, threads=threads).tagger
            found.append(JudgedSentences.by(tagger, HeldOutSentences.of(sentences.taken(apart))))
        on_fit()
    if not found:
        raise InvalidArgumentError(
            "no sentence has labels for all its tokens, so that none can be scored or teach the weights of"
            " constraints: give some that have."
        )
    return found


@dataclass(frozen=True, slots=True)
class PriorScores:
    """A prior and its score on each fold."""

    prior: Prior
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return float(np.mean(self.scores))

    @property
    def spread(self) -> float:
        """Standard deviation over the folds."""
        return float(np.std(self.scores))


def cross_validate(
    sentences: EncodedSentences,
    labels: Sequence[Any],
    config: TrainingConfig,
    priors: Sequence[Prior],
    *,
    folds: int = FOLDS,
    constraints: LabelConstraints | None = None,
    threads: int = 1,
    on_fit: Callable[[], object] = lambda: None,
) -> list[PriorScores]:
    """Score each prior on every fold, with a chain that has learned from the other folds.

    labels
        What the codes of the labels in ``sentences`` stand for.
    config
        How to train, with another prior each time.
    on_fit
        Called after each training.
    """
    measure, found = SpanMeasure.of(labels), []
    for prior in priors:
        judged = cross_fitted(
            sentences,
            labels,
            replace(config, prior=prior),
            folds=folds,
            constraints=constraints,
            threads=threads,
            on_fit=on_fit,
        )
        with Team(threads) as team:
            found.append(PriorScores(prior, tuple(one.score(measure, team) for one in judged)))
    return found
