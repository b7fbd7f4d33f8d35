"""Cross-fitting: score sentences with chains that were not trained on them, and still train on all data.

The sentences are split into folds. For each fold, a chain is trained on the other folds and scores this one.
Models on top of a chain's scores, such as the weights of constraints, are then learned from scores like those
of new sentences: a chain is overconfident on the sentences that it was trained on.
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
    """Fully labelled sentences, and a chain that was not trained on them."""

    tagger: ChainTagger
    rows: SparseRows
    start: NDArray[np.int64]
    truth: Ints

    @classmethod
    def by(cls, tagger: ChainTagger, held_out: HeldOutSentences) -> JudgedSentences:
        """Return held-out sentences together with a chain."""
        return cls(tagger, held_out.rows, held_out.start, held_out.truth)

    def score(self, measure: SpanMeasure, team: Team) -> float:
        """Return the score of the chain's labels on the sentences."""
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
    """Return the held-out sentences, if any, and the training sentences in ``folds`` cross-fitted parts.

    trained
        The chain trained on ``sentences``. The chains of the folds are trained for as many iterations.
    folds
        Number of folds; 0 to leave out the training sentences.
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
    """Train a chain for each fold, on all other folds, and return each fold with its chain.

    folds
        Number of folds.
    on_fit
        Called after each chain is trained.
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
        """Mean score over the folds."""
        return float(np.mean(self.scores))

    @property
    def spread(self) -> float:
        """Standard deviation of the score over the folds."""
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
    """Score each prior on every fold, with a chain trained on the other folds.

    labels
        The labels that the codes in ``sentences`` stand for.
    config
        The settings of training, apart from the prior.
    on_fit
        Called after each chain is trained.
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
