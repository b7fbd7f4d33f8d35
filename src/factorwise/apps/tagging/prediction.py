"""Predictions of a trained chain CRF: labels, probabilities, the k best sequences, spans, and its weights."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from factorwise.apps.tagging.answers import Explanation, Span, explain_tokens, n_best, spans_of
from factorwise.apps.tagging.features.encoders import Encoder, as_sentences, split_empty
from factorwise.apps.tagging.labels import LabelEncoder
from factorwise.apps.tagging.supervision import sentence_weights
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.errors import ImpossibleError, InvalidArgumentError, require, warn_caller
from factorwise.kernels.compile.threads import Team, thread_count
from factorwise.metrics.sequence import SpanCounter
from factorwise.types import Bools, Ints
from factorwise.variables.sparse_rows import SparseRows

Answer = TypeVar("Answer")


class Sequences(list[Any]):
    """A list with an entry for each sentence, which NumPy converts to a one-dimensional array.

    Sentences differ in length, so no two-dimensional array exists, but scikit-learn's cross_val_predict joins
    predictions as arrays. ``==`` compares as lists do, and its result has ``all()`` and ``any()``, like that
    of sklearn-crfsuite's arrays. A list of one sentence also equals that sentence, like a row of an array.

    >>> bool(Sequences([["D", "N"]]) == [["D", "N"]]), bool((Sequences([["D", "N"]]) == ["D", "N"]).all())
    (True, True)
    """

    def __eq__(self, other: object) -> np.bool_:  # type: ignore[override]
        return np.bool_(super().__eq__(other) is True or (len(self) == 1 and self[0] == other))

    def __ne__(self, other: object) -> np.bool_:  # type: ignore[override]
        return ~(self == other)

    def tolist(self) -> list[Any]:
        """Return a plain list, as an array does."""
        return list(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = np.empty(len(self), dtype=object)
        for place, sentence in enumerate(self):  # at once, equal lengths would add a dimension
            array[place] = sentence
        return array


class UnseenLabelWarning(UserWarning):
    """Warns that sentences to be scored have a label that the training data did not have."""


def warn_of_unseen(labels: Sequence[Any], consequence: str) -> None:
    """Warn of labels that the training data did not have, and of the consequence for the score."""
    if labels:
        warn_caller(
            f"the label {labels[0]!r} was not seen at training and {consequence}: correct it, or train with"
            " sentences that have it.",
            UnseenLabelWarning,
        )


class ChainPredictions:
    """Prediction methods of a trained estimator; ``fit`` sets the attributes."""

    n_jobs: int | None
    tagger_: ChainTagger | None = None
    encoder_: Encoder
    classes_: list[Any] = None  # type: ignore[assignment]  # before `fit`, as in sklearn-crfsuite

    def predict(self, X: Any, *, allowed: Sequence[Sequence[Any]] | None = None) -> Sequences:
        """Return the labels of a most probable path of each sentence.

        allowed
            Restrictions that are known: for each token a label, a set of labels, or None for no restriction.
        """
        tagger, rows, start, bounds = self._encoded(X)
        within = self._allowed(allowed, bounds)
        with Team(threads_of(self.n_jobs)) as team:
            return self._named(tagger.decode(rows, start, team, within), bounds)

    def predict_single(self, xseq: Any) -> list[Any]:
        """Return the labels of one sentence."""
        labels: list[Any] = self.predict([xseq])[0]
        return labels

    def predict_proba(self, X: Any, *, allowed: Sequence[Sequence[Any]] | None = None) -> Sequences:
        """Return for each sentence the probabilities of the labels, float64[tokens, labels]."""
        tagger, rows, start, bounds = self._encoded(X)
        within = self._allowed(allowed, bounds)
        with Team(threads_of(self.n_jobs)) as team:
            probability, _ = tagger.marginals(rows, start, team, within)
        return Sequences(probability[begin:end] for begin, end in pairwise(bounds.tolist()))

    def predict_marginals(self, X: Any) -> Sequences:
        """Return for each token the probability of each label, as a dictionary."""
        return Sequences(
            [dict(zip(self.classes_, row, strict=True)) for row in sentence.tolist()]
            for sentence in self.predict_proba(X)
        )

    def predict_marginals_single(self, xseq: Any) -> list[dict[Any, float]]:
        """Return the label probabilities of each token of one sentence."""
        found: list[dict[Any, float]] = self.predict_marginals([xseq])[0]
        return found

    def predict_nbest(self, X: Any, k: int = 5) -> list[list[tuple[list[Any], float]]]:
        """Return the ``k`` most probable label sequences of each sentence, each with its probability.

        The list is shorter if a sentence has fewer than ``k`` sequences.
        """
        tagger, rows, start, bounds = self._encoded(X)
        return _with_empty(n_best(tagger, rows, start, k), bounds)

    def predict_spans(self, X: Any) -> list[list[Span]]:
        """Return the spans of the most probable labels, each with its probability.

        This is the probability that the tokens have these labels and that the span neither begins before nor
        continues after them.
        """
        tagger, rows, start, bounds = self._encoded(X)
        with Team(threads_of(self.n_jobs)) as team:
            path = tagger.decode(rows, start, team)
        return _with_empty(spans_of(tagger, rows, start, path), bounds)

    def explain(self, xseq: Any) -> list[Explanation]:
        """Return for each token of a sentence what attributes and neighbors add to the score of each label.

        The transitions are those to and from the labels of the most probable path.
        """
        tagger, rows, start, _ = self._encoded([xseq])
        with Team(threads_of(self.n_jobs)) as team:
            path = tagger.decode(rows, start, team)
            probability, _ = tagger.marginals(rows, start, team)
        return list(explain_tokens(tagger, self.encoder_.names(), rows, path, probability))

    def log_likelihood(self, X: Any, y: Iterable[Iterable[Any]]) -> float:
        """Return the log-probability of labels, summed over sentences; sets and None are marginalized.

        It is minus infinity if the constraints forbid the labels.
        """
        tagger, rows, start, bounds = self._encoded(X)
        within = self._allowed(y, bounds)
        with Team(threads_of(self.n_jobs)) as team:
            _, total = tagger.marginals(rows, start, team)
            try:
                _, known = tagger.marginals(rows, start, team, within)
            except ImpossibleError:
                return -np.inf
        return float((known - total).sum())

    def score(self, X: Any, y: Iterable[Iterable[Any]], sample_weight: Any = None) -> float:
        """Return the token accuracy, as sklearn-crfsuite does, with optional weights of sentences.

        Tokens whose label is missing or ambiguous are not counted. A label that the training data did not
        have counts as wrong, with a warning.
        """
        truth, path, start, _ = self._compared(X, y)
        weight = sentence_weights(sample_weight, len(start) - 1)
        if not len(weight):
            weight = np.ones(len(start) - 1)
        share = np.where(truth >= 0, np.repeat(weight, np.diff(start)), 0.0)
        if not share.any():
            raise InvalidArgumentError(
                "there is no token to score: give at least one sentence with a label and a weight above zero."
            )
        return float(np.average(path == truth, weights=share))

    def span_scorer(self, X: Any, y: Iterable[Iterable[Any]]) -> float:
        """Return the micro-averaged F1 of spans; pass ChainCRF.span_scorer as scikit-learn's ``scoring``."""
        truth, path, start, names = self._compared(X, y)
        return SpanCounter([str(label) for label in names]).scores(truth, path, start).micro.f1

    def _compared(
        self, X: Any, y: Iterable[Iterable[Any]]
    ) -> tuple[Ints, Ints, NDArray[np.int64], Sequence[Any]]:
        """Return true and predicted labels of all tokens, the sentence starts, and the label names."""
        tagger, rows, start, bounds = self._encoded(X)
        encoder = self._label_encoder()
        truth = encoder.fit_encode(y, bounds).codes
        warn_of_unseen(encoder.labels[len(self.classes_) :], "counts as wrong")
        with Team(threads_of(self.n_jobs)) as team:
            return truth, tagger.decode(rows, start, team), bounds, encoder.labels

    def _fitted(self) -> ChainTagger:
        if self.tagger_ is None:
            self._read_model()
        assert self.tagger_ is not None
        return self.tagger_

    def _read_model(self) -> None:
        """Load the model from a file, if one is named; otherwise raise an error."""
        raise NotFittedError("this ChainCRF has not been trained yet: call fit first, or ChainCRF.load.")

    def _encoded(self, X: Any) -> tuple[ChainTagger, SparseRows, NDArray[np.int64], NDArray[np.int64]]:
        """Return the tagger, the rows of all tokens, and sentence starts without and with empty ones.

        A chain has at least one token, so sentences without tokens get empty answers.
        """
        tagger = self._fitted()
        sentences, sizes = split_empty(as_sentences(X))
        rows, start = self.encoder_.encode(sentences)
        return tagger, rows, start, start if sizes is None else np.append(0, np.cumsum(sizes))

    def _label_encoder(self) -> LabelEncoder:
        return LabelEncoder(self.classes_)

    def _allowed(self, allowed: Any, start: NDArray[np.int64]) -> Bools | None:
        if allowed is None:
            return None
        known = self._label_encoder().encode(allowed, start)
        mask = np.zeros((len(known.codes), len(self.classes_)), dtype=bool)
        sure = np.flatnonzero(known.codes >= 0)
        mask[sure, known.codes[sure]] = True
        mask[known.partial] = known.allowed
        return mask

    def _named(self, codes: Ints, start: NDArray[np.int64]) -> Sequences:
        names = list(map(self.classes_.__getitem__, codes.tolist()))
        return Sequences(names[begin:end] for begin, end in pairwise(start.tolist()))

    # what was learned

    @property
    def attributes_(self) -> list[str] | None:
        """The names of the attributes; like the other properties here, None before ``fit``."""
        return None if self.tagger_ is None else list(self.encoder_.names())

    @property
    def num_attributes_(self) -> int | None:
        """The number of attributes."""
        return None if self.tagger_ is None else self.encoder_.width

    @property
    def size_(self) -> int | None:
        """The size of the pickled model, in bytes."""
        return None if self.tagger_ is None else len(pickle.dumps((self.tagger_, self.encoder_)))

    @property
    def state_features_(self) -> dict[tuple[str, Any], float] | None:
        """The nonzero weights, for each pair of attribute and label."""
        if self.tagger_ is None:
            return None
        tagger, names = self.tagger_, self.encoder_.names()
        attribute = np.repeat(np.arange(self.encoder_.width), tagger.features.per_attribute)
        return {
            (names[int(attribute[k])], self.classes_[int(tagger.features.label[k])]): float(tagger.weights[k])
            for k in np.flatnonzero(tagger.state_weights).tolist()
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float] | None:
        """The nonzero transition weights, for pairs of labels and, in chains of order 2, triples."""
        if self.tagger_ is None:
            return None
        tagger = self.tagger_
        weights = zip(tagger.structure.transitions(), tagger.transition_weights.tolist(), strict=True)
        return {
            tuple(self.classes_[label] for label in labels): weight for labels, weight in weights if weight
        }


def _with_empty(answers: Iterator[list[Answer]], bounds: NDArray[np.int64]) -> list[list[Answer]]:
    """Insert an empty answer for each sentence without tokens."""
    return [next(answers) if size else [] for size in np.diff(bounds).tolist()]


def threads_of(n_jobs: Any) -> int:
    """Return the number of threads for ``n_jobs``."""
    whole = n_jobs is None or (isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool))
    require(whole, "n_jobs", n_jobs, "a whole number, or None")
    return int(thread_count(n_jobs))
