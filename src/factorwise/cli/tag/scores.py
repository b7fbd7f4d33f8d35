"""Scores of predicted labels, span by span or, where labels name no spans, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.metrics.sequence import Score, SpanCounter
from factorwise.types import Floats, Ints


class JudgedLabels(NamedTuple):
    """Labels that were given, and the true ones.

    names
        What the numbers in ``truth`` and ``labels`` stand for.
    start
        Token that each sentence begins with, and the number of all tokens.
    probability : float64[tokens]
        Of each label that was given.
    """

    names: Sequence[str]
    truth: Ints
    labels: Ints
    start: NDArray[np.int64]
    probability: Floats


def scored(
    labels: Sequence[str],
    truth: Ints,
    predicted: Ints,
    start: NDArray[np.int64],
    scheme: str | None = None,
) -> dict[str, Any]:
    """Return the scores as JSON values: ``spans`` or ``labels``, the other is None.

    labels
        What the numbers in ``truth`` and ``predicted`` stand for.
    scheme
        Count only spans that are whole in it; None to take labels as they come.
    """
    counter = SpanCounter(labels, scheme)
    by_token = bool(counter.unusual) and scheme is None
    return {
        "accuracy": float((truth == predicted).mean()),
        "unusual": list(counter.unusual) if by_token else [],
        "spans": None if by_token else counter.scores(truth, predicted, start).as_dict(),
        "labels": _label_scores(labels, truth, predicted) if by_token else None,
    }


def _label_scores(labels: Sequence[str], truth: Ints, predicted: Ints) -> dict[str, Any]:
    """Score each label token by token; the mean gives each the same weight."""
    size = len(labels)
    support, found = np.bincount(truth, minlength=size), np.bincount(predicted, minlength=size)
    right = np.bincount(truth[truth == predicted], minlength=size)
    scores = {
        label: Score.of(*map(int, numbers))
        for label, *numbers in sorted(zip(labels, right, support, found, strict=True))
    }
    means = {
        field: float(np.mean([getattr(score, field) for score in scores.values()]))
        for field in ("precision", "recall", "f1")
    }
    return {"types": {label: asdict(score) for label, score in scores.items()}, "macro": means}
