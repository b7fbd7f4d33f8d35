"""Scores of labels token by token, under the names of sklearn-crfsuite.

Each function takes sentences of labels, concatenates them, and calls the scikit-learn function of the same
name with the other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from factorwise.errors import ShapeError

Sentences = Sequence[Sequence[Any]]


def flat_accuracy_score(y_true: Sentences, y_pred: Sentences, **options: Any) -> float:
    """Return the share of tokens with the correct label."""
    return float(_flat_score("accuracy_score", y_true, y_pred, options))


def flat_precision_score(y_true: Sentences, y_pred: Sentences, **options: Any) -> Any:
    """Return the precision; ``labels`` and ``average`` as in scikit-learn."""
    return _flat_score("precision_score", y_true, y_pred, options)


def flat_recall_score(y_true: Sentences, y_pred: Sentences, **options: Any) -> Any:
    """Return the recall; ``labels`` and ``average`` as in scikit-learn."""
    return _flat_score("recall_score", y_true, y_pred, options)


def flat_f1_score(y_true: Sentences, y_pred: Sentences, **options: Any) -> Any:
    """Return the F1 score; ``labels`` and ``average`` as in scikit-learn."""
    return _flat_score("f1_score", y_true, y_pred, options)


def flat_fbeta_score(y_true: Sentences, y_pred: Sentences, beta: float, **options: Any) -> Any:
    """Return the F-beta score; ``labels`` and ``average`` as in scikit-learn."""
    return _flat_score("fbeta_score", y_true, y_pred, {**options, "beta": beta})


def flat_classification_report(
    y_true: Sentences, y_pred: Sentences, labels: Sequence[Any] | None = None, **options: Any
) -> Any:
    """Return scikit-learn's report of precision, recall and F1 by label."""
    return _flat_score("classification_report", y_true, y_pred, {**options, "labels": labels})


def sequence_accuracy_score(y_true: Sentences, y_pred: Sentences) -> float:
    """Return the share of sentences with all labels correct; 0 without sentences."""
    _check_number(y_true, y_pred)
    right = [list(truth) == list(labels) for truth, labels in zip(y_true, y_pred, strict=True)]
    return sum(right) / len(right) if right else 0.0


def _flat_score(name: str, y_true: Sentences, y_pred: Sentences, options: dict[str, Any]) -> Any:
    from sklearn import metrics  # imported here, because only these functions need it

    _check_sizes(y_true, y_pred)
    score: Callable[..., Any] = getattr(metrics, name)
    return score(list(chain.from_iterable(y_true)), list(chain.from_iterable(y_pred)), **options)


def _check_number(y_true: Sentences, y_pred: Sentences) -> None:
    if len(y_true) != len(y_pred):
        raise ShapeError(
            f"there are {len(y_true)} sentences of true labels but {len(y_pred)} of predicted labels:"
            " give as many of each."
        )


def _check_sizes(y_true: Sentences, y_pred: Sentences) -> None:
    _check_number(y_true, y_pred)
    for number, (truth, labels) in enumerate(zip(y_true, y_pred, strict=True)):
        if len(truth) != len(labels):
            raise ShapeError(
                f"sentence {number} (counted from 0) has {len(truth)} true labels but {len(labels)} predicted"
                " ones: give one label for every token."
            )
