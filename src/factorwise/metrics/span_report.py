"""Scores of spans as a table in the layout of seqeval."""

from __future__ import annotations

from factorwise.metrics.sequence import Labels, Score, score_spans

_COLUMNS = ("precision", "recall", "f1-score", "support")


def span_report(truth: Labels, predicted: Labels, scheme: str | None = None, *, digits: int = 2) -> str:
    """Return precision, recall, F1 and support of each type of span, and their averages, as text.

    truth, predicted
        Sentences of labels.
    scheme
        Count only spans that are complete in this scheme; None counts spans of any mixture of prefixes.
    digits
        Decimal places of the scores.

    >>> print(span_report([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-PER"]]))
                  precision    recall  f1-score   support
    <BLANKLINE>
             PER       0.50      1.00      0.67         1
    <BLANKLINE>
       micro avg       0.50      1.00      0.67         1
       macro avg       0.50      1.00      0.67         1
    weighted avg       0.50      1.00      0.67         1
    """
    scores = score_spans(truth, predicted, scheme)
    averages = {"micro avg": scores.micro, "macro avg": scores.macro, "weighted avg": scores.weighted}
    width = max(map(len, [*scores.types, *averages]))

    def line(name: str, score: Score) -> str:
        numbers = "".join(f"{getattr(score, field):>10.{digits}f}" for field in ("precision", "recall", "f1"))
        return f"{name:>{width}} {numbers} {score.support:>9}"

    header = f"{'':>{width}} " + "".join(f"{column:>10}" for column in _COLUMNS)
    types = [line(name, score) for name, score in scores.types.items()]
    return "\n".join([header, "", *types, "", *(line(*average) for average in averages.items())])
