"""Train a proposer on some documents for use on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.adaptive.decoding import Climb, DecodingTruth
from factorwise.inference.mcmc.adaptive.family import Lesson, fit_choices
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.tuning import By, Tuning, with_kinds
from factorwise.inference.mcmc.run import PROGRESS_AFTER
from factorwise.rng import Stream, as_stream
from factorwise.world.partition import Partition


@dataclass(frozen=True)
class TunedDocument:
    """One document for training a proposer.

    proposer
        A proposer over the document's own model, which also judges jumps unless the truth does. All documents
        must have features of the same names; training starts from the weights of the first.
    start
        Where the climb starts.
    truth
        Judges jumps if it is given, for example a `learning.TruthPreference`.
    """

    proposer: AdaptiveSplitMerge
    start: Partition
    truth: DecodingTruth | None = None


def train_proposer(
    documents: Sequence[TunedDocument],
    *,
    tuning: Tuning | None = None,
    samples: int = 5,
    jumps: int = 10_000,
    patience: int = 10,
    ridge: float = 0.01,
    seed: int | np.random.Generator | Stream = 0,
    progress: bool = True,
) -> JumpWeights:
    """Climb through the documents with tuning; return weights fitted to the good jumps of all rounds.

    tuning, samples, jumps, patience
        Options of each climb: see `decode`.
    ridge
        Ridge of the last fit, over all rounds.
    """
    if isinstance(documents, TunedDocument) or not documents:
        raise InvalidArgumentError("there is no document to train on: give [TunedDocument(...), ...].")
    rounds, stream = tuning or Tuning(), as_stream(seed)
    weights, lessons = documents[0].proposer.learned, list[Lesson]()
    with tqdm(
        total=len(documents), unit="document", delay=PROGRESS_AFTER, disable=None if progress else True
    ) as bar:
        for document in documents:
            proposer = document.proposer.with_weights(weights)
            by: By = "score" if document.truth is None else "truth"
            model, start = proposer.features.model, document.start
            climb = Climb(model, proposer, start, by, document.truth, stream, keep_lessons=True)
            climb.run(samples, rounds, jumps=jumps, patience=patience)
            weights = climb.jumps.weights
            lessons += climb.lessons
            bar.update()
    if not lessons:
        return weights
    scales = np.mean([lesson.scales for lesson in lessons], axis=0)
    choices = [
        choice._replace(shares=choice.shares / len(lessons))
        for lesson in lessons
        for choice in lesson.choices
    ]
    fitted = weights.with_vector(fit_choices(choices, weights.vector, ridge * scales))
    if not rounds.kinds:
        return fitted
    # the last round alone is the end of a climb, where there is little to merge
    return with_kinds(fitted, np.mean([lesson.kinds for lesson in lessons], axis=0))
