"""Nested spans: a chain for each level of nesting.

Level 0 has the innermost spans, which contain no other span, level 1 the spans around them, and so on: inner
spans are short and need little context. The chain of a level sees the words and the labels of the level
below, which are the true labels in training and the predicted labels afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Self

from factorwise.apps.tagging.answers import Span
from factorwise.apps.tagging.estimator import ChainCRF
from factorwise.apps.tagging.features.templates import WORD_ONLY, TemplateSet
from factorwise.apps.tagging.model_file import read_levels, write_levels
from factorwise.errors import InvalidArgumentError
from factorwise.io.models.provenance import provenance
from factorwise.validation import check_count

KIND = "nested-tagger"
LEVELS = 3  # deeper nesting is rare
OUTSIDE = "O"
_BELOW = [f"below[{offset}]" for offset in (-2, -1, 0, 1, 2)]
_BELOW += ["below[-1]|below[0]", "below[0]|below[1]", "below[0]|lower(w[0])", "below[-1]|lower(w[0])"]

#: A span of a training sentence: its type, its first token, and the token after its last token.
NestedSpan = tuple[str, int, int]


class NestedTagger:
    """Tagger for nested spans of words.

    levels
        Maximum depth of nesting.
    c1, c2, max_iterations
        The prior and the maximum number of iterations, as in `ChainCRF`.
    n_jobs
        Number of threads; None or -1 for all processors.

    Attributes
    ----------
    taggers_
        The chain of each level that has spans.
    """

    def __init__(
        self,
        *,
        levels: int = LEVELS,
        c1: float = 0.1,
        c2: float = 0.1,
        max_iterations: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.levels = levels
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.n_jobs = n_jobs

    def fit(self, sentences: Sequence[Sequence[str]], spans: Sequence[Iterable[NestedSpan]]) -> Self:
        """Learn from sentences of words whose spans are known.

        Spans that cross another span, and spans nested deeper than ``levels``, are left out.
        """
        check_count("levels", self.levels)
        if len(sentences) != len(spans):
            raise InvalidArgumentError(
                f"{len(sentences)} sentences and {len(spans)} lists of spans: give each sentence a list."
            )
        labels = [
            labels_by_level(len(words), known, self.levels)
            for words, known in zip(sentences, spans, strict=True)
        ]
        if not any(label != OUTSIDE for levels in labels for label in levels[0]):
            raise InvalidArgumentError("there are no spans to learn from: give at least one.")
        self.taggers_: list[ChainCRF] = []
        for level in range(self.levels):
            truth = [levels[level] for levels in labels]
            if not any(label != OUTSIDE for sentence in truth for label in sentence):
                break
            below = [levels[level - 1] for levels in labels] if level else None
            tagger = ChainCRF(
                templates=_templates(level),
                c1=self.c1,
                c2=self.c2,
                max_iterations=self.max_iterations,
                scheme="BIO",
                n_jobs=self.n_jobs,
            )
            self.taggers_.append(tagger.fit(_columns(sentences, below), truth))
        return self

    def predict_spans(self, sentences: Sequence[Sequence[str]]) -> list[list[Span]]:
        """Return the spans of each sentence by start; where spans start together, longer ones come first."""
        if not hasattr(self, "taggers_"):
            raise InvalidArgumentError("the tagger has not been trained: call fit, or load a saved one.")
        found: list[dict[tuple[int, int], Span]] = [{} for _ in sentences]
        below: list[list[str]] | None = None
        for tagger in self.taggers_:
            columns = _columns(sentences, below)
            predicted = tagger.predict_spans(columns)
            for known, spans in zip(found, predicted, strict=True):
                for span in spans:
                    known.setdefault((span.start, span.end), span)
            below = [
                _labels(len(words), [(span.kind, span.start, span.end) for span in spans])
                for words, spans in zip(sentences, predicted, strict=True)
            ]
        return [sorted(known.values(), key=lambda span: (span.start, -span.end)) for known in found]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the chains of all levels to a model file."""
        if not hasattr(self, "taggers_"):
            raise InvalidArgumentError("the tagger has not been trained: call fit first.")
        settings = {name: getattr(self, name) for name in ("levels", "c1", "c2", "max_iterations")}
        levels = [(tagger._fitted(), tagger.encoder_) for tagger in self.taggers_]
        write_levels(path, KIND, levels, settings, provenance(configuration=settings, seed=0))

    @classmethod
    def load(cls, path: str | PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Return a tagger that `save` wrote."""
        saved = read_levels(path, KIND)
        settings = saved[0].settings if saved else {}
        tagger = cls(levels=len(saved), c1=settings.get("c1", 0.1), c2=settings.get("c2", 0.1), n_jobs=n_jobs)
        tagger.taggers_ = [ChainCRF.of_saved(level, n_jobs=n_jobs) for level in saved]
        return tagger


def labels_by_level(length: int, spans: Iterable[NestedSpan], levels: int) -> list[list[str]]:
    """Return BIO labels for each level of nesting of one sentence.

    >>> labels_by_level(3, [("PER", 0, 1), ("PER", 0, 3)], 2)
    [['B-PER', 'O', 'O'], ['B-PER', 'I-PER', 'I-PER']]
    """
    placed: list[list[NestedSpan]] = [[] for _ in range(levels)]
    known: set[tuple[int, int]] = set()
    for kind, start, end in sorted(spans, key=lambda span: (span[2] - span[1], span[1])):
        if not 0 <= start < end <= length:
            raise InvalidArgumentError(
                f"a span from {start} to {end} does not lie in a sentence of {length} words: count tokens"
                " from 0, the end exclusive."
            )
        if (start, end) in known:
            continue
        inside = [
            depth for depth, there in enumerate(placed) if any(s < end and start < e for _, s, e in there)
        ]
        depth = max(inside, default=-1) + 1
        crosses = any(
            s < end and start < e and not (start <= s and e <= end) for there in placed for _, s, e in there
        )
        if depth < levels and not crosses:
            placed[depth].append((kind, start, end))
            known.add((start, end))
    return [_labels(length, there) for there in placed]


def _labels(length: int, spans: Iterable[NestedSpan]) -> list[str]:
    labels = [OUTSIDE] * length
    for kind, start, end in spans:
        labels[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
    return labels


def _templates(level: int) -> TemplateSet:
    more = _BELOW if level else []
    return TemplateSet.parse([*WORD_ONLY.splitlines(), *more], ("w", "below"))


def _columns(sentences: Sequence[Sequence[str]], below: Sequence[Sequence[str]] | None) -> list[list[Any]]:
    if below is None:
        return [list(words) for words in sentences]
    return [list(zip(words, labels, strict=True)) for words, labels in zip(sentences, below, strict=True)]
