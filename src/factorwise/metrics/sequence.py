"""Spans found in label sequences, and how well predicted labels agree with true ones.

Labels are a prefix and a type: ``B-PER``. A scheme is a table that says, for two neighboring labels, whether
a span starts, continues or ends between them. Without a scheme, any mixture of prefixes is read as the
conlleval program does, so that invalid sequences count, too; the named schemes are strict and count only
complete spans. Both agree span by span with the package seqeval, including its gap in IOE1: a span of one
token before another of its type is missed. Without a scheme such labels are read completely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.types import Bools, Int32s, Int64s, Ints
from factorwise.validation import is_rising

Labels = Sequence[Sequence[str]]


class _Rules(NamedTuple):
    """Which pairs of prefixes start a span, continue it, or end the one before.

    ``*`` stands for any prefix, ``+`` for any except ``O`` and ``.``; ``=`` requires two labels of one type,
    ``!`` two types.
    """

    prefixes: str
    start: str
    inside: str
    end: str


_ALPHABET = "OBIESLU.?"  # the last one stands for every other first letter
_LENIENT = _Rules(
    prefixes=_ALPHABET,
    start="*B *S OI OE EI EE SI SE *+!",
    inside="",
    end="E* S* BO BB BS IO IB IS +*!",
)
_STRICT = MappingProxyType(
    {
        "IOB1": _Rules("OBI", "OI BI II! IB= BB=", "BI= II=", "IO IB II! BO BI! BB="),
        "IOB2": _Rules("OBI", "*B", "BI= II=", "IO IB II! BO BB BI!"),
        "IOE1": _Rules("OIE", "OI EI II! EE=", "II= IE=", "IO II! IE! EI= EE="),
        "IOE2": _Rules("OIE", "OI OE EI EE II! IE!", "II= IE=", "E*"),
        "IOBES": _Rules("OBIES", "*B *S", "BI= BE= II= IE=", "E* S*"),
        "BILOU": _Rules("OBILU", "*B *U", "BI= BL= II= IL=", "L* U*"),
    }
)
SCHEMES = tuple(_STRICT)
"""Names of the strict schemes."""
_SYNONYMS = {"BIO": "IOB2", "IOB": "IOB1", "BIOES": "IOBES"}


def scheme_name(name: str) -> str:
    """Return the name of a scheme in `SCHEMES`; BIO, IOB and BIOES are other names, in any case."""
    upper = name.upper()
    return _SYNONYMS.get(upper, upper)


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall and their harmonic mean; 0 if a denominator is zero.

    support
        How many there are in truth.
    predicted
        How many were predicted.
    """

    precision: float
    recall: float
    f1: float
    support: int
    predicted: int

    @classmethod
    def of(cls, right: int, support: int, predicted: int) -> Score:
        """Score from the number of correct predictions, of true items and of all predictions."""
        precision = right / predicted if predicted else 0.0
        recall = right / support if support else 0.0
        both = precision + recall
        return cls(precision, recall, 2 * precision * recall / both if both else 0.0, support, predicted)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanScores:
    """How well predicted spans agree with true ones in type, first and last token.

    types
        The score of each type that has a span in the truth or in the prediction, by name.
    micro
        All spans counted together.
    macro
        Plain mean over the types.
    weighted
        Mean over the types, each weighted by its support.
    """

    types: dict[str, Score]
    micro: Score
    macro: Score
    weighted: Score

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


class SpanCounts(NamedTuple):
    """Numbers of spans of each type: true, predicted, and both."""

    n_true: Int64s
    n_predicted: Int64s
    n_right: Int64s


class SpanArrays(NamedTuple):
    """Spans in the order of their ends: ``start`` is the first token, ``end`` the one after the last."""

    type: Int32s
    start: Int64s
    end: Int64s


class SpanCounter:
    """Finds and counts the spans of sequences of label codes; create it once for a set of labels.

    label_names
        The label that each code stands for.
    scheme
        One of `SCHEMES`, or another name of one (`scheme_name`), strict; or None for the lenient reading of
        any prefixes.

    >>> counter = SpanCounter(["O", "B-PER", "I-PER", "B-LOC"])
    >>> counter.types
    ('LOC', 'PER')
    >>> counter.counts([1, 2, 0, 3], [1, 2, 0, 1], [0, 4]).n_right.tolist()
    [0, 1]
    """

    def __init__(self, label_names: Sequence[str], scheme: str | None = None) -> None:
        if scheme is not None:
            scheme_given, scheme = scheme, scheme_name(scheme)
            require(scheme in _STRICT, "scheme", scheme_given, f"None or one of {', '.join(SCHEMES)}")
        self.scheme = scheme
        self.label_names = tuple(label_names)
        rules = _LENIENT if scheme is None else _STRICT[scheme]
        # After the labels come a separator of sentences and a label before the first one.
        parts = [_split(label, scheme) for label in self.label_names] + [("O", "_"), ("O", "")]
        spanning = sorted({type_name for prefix, type_name in parts if prefix not in "O."})
        remaining = sorted({type_name for _, type_name in parts}.difference(spanning))
        number = {type_name: index for index, type_name in enumerate(spanning + remaining)}
        self.types: tuple[str, ...] = tuple(spanning)
        self._type = np.array([number[type_name] for _, type_name in parts], dtype=np.int32)
        self._prefix = np.array([_ALPHABET.index(prefix) for prefix, _ in parts], dtype=np.int32)
        self._start, self._inside, self._end = (_table(pairs) for pairs in rules[1:])

    @property
    def unusual(self) -> tuple[str, ...]:
        """Labels that are neither ``O`` nor a prefix, a hyphen and a type.

        The lenient reading takes the first letter of any label as its prefix; if there are unusual labels,
        they may not be labels of spans at all, and `label_scores` is the better measure.
        """
        prefixes = "BIES" if self.scheme is None else _STRICT[self.scheme].prefixes
        return tuple(
            label
            for label in self.label_names
            if label != "O" and not (len(label) > 2 and label[0] in prefixes and label[1] == "-")
        )

    @property
    def boundaries(self) -> tuple[Bools, Bools, Int32s]:
        """Whether a span begins, or ends, between one label (row) and the next, and the type of each label.

        The arrays are bool[labels + 1, labels + 1]; the last label stands for the outside of a sentence. They
        follow the lenient reading.
        """
        count = len(self.label_names) + 1
        prefix, type_ = self._prefix[:count], self._type[:count]
        pair = (prefix[:, None] * len(_ALPHABET) + prefix) * 2 + (type_[:, None] != type_)
        return self._start[pair], self._end[pair], self._type[: count - 1]

    @property
    def goes_on(self) -> Bools:
        """Whether a span with one label so far (row) continues with the next token's label (column).

        The array is bool[labels, labels]; it follows the lenient reading or the scheme's own rules of where a
        span ends. Rows of labels that are in no span are False.
        """
        count = len(self.label_names)
        prefix, type_ = self._prefix[:count], self._type[:count]
        pair = (prefix[:, None] * len(_ALPHABET) + prefix) * 2 + (type_[:, None] != type_)
        outside = np.isin(prefix, [_ALPHABET.index("O"), _ALPHABET.index(".")])
        return np.asarray(~self._end[pair] & ~outside[:, None], dtype=np.bool_)

    def find(self, codes: ArrayLike, sentence_start: ArrayLike) -> SpanArrays:
        """Return all spans; sentence ``s`` has the tokens ``sentence_start[s]:sentence_start[s + 1]``."""
        start = _checked_start(sentence_start)
        span_type, first, after = self._spans(self._padded(codes, start, "codes"))
        separator = start[1:] + np.arange(1, len(start))
        before = np.searchsorted(separator, np.stack((first, after)), side="left") + 1
        return SpanArrays(span_type, first - before[0], after - before[1])

    def counts(self, truth: ArrayLike, predicted: ArrayLike, sentence_start: ArrayLike) -> SpanCounts:
        """Count the spans of each of `types` in truth, in the prediction, and in both."""
        start = _checked_start(sentence_start)
        width = len(self.types)
        true_codes, predicted_codes = (
            self._padded(codes, start, name) for codes, name in ((truth, "truth"), (predicted, "predicted"))
        )
        true_type, true_first, true_after = self._spans(true_codes)
        type_, first, after = self._spans(predicted_codes)
        # A token ends at most one span, so that its end identifies the predicted span to compare with.
        partner = np.full(len(true_codes), -1, dtype=np.int64)
        partner[after] = first * width + type_
        right = partner[true_after] == true_first * width + true_type
        return SpanCounts(*(np.bincount(t, minlength=width) for t in (true_type, type_, true_type[right])))

    def scores(self, truth: ArrayLike, predicted: ArrayLike, sentence_start: ArrayLike) -> SpanScores:
        """Return precision, recall and F1 of the predicted spans."""
        counts = self.counts(truth, predicted, sentence_start)
        types = _scores(self.types, *counts)
        total = int(counts.n_true.sum())
        micro = Score.of(int(counts.n_right.sum()), total, int(counts.n_predicted.sum()))
        return SpanScores(
            types=types,
            micro=micro,
            macro=_mean(micro, [(score, 1) for score in types.values()]),
            weighted=_mean(micro, [(score, score.support) for score in types.values()]),
        )

    def _padded(self, codes: ArrayLike, start: Int64s, name: str) -> Ints:
        """Return codes with a separator before, between and after the sentences."""
        array = np.asarray(codes)
        labels = len(self.label_names)
        if array.shape != (start[-1],):
            raise ShapeError(
                f"{name} has the shape {array.shape}, but sentence_start ends at {start[-1]}: give one"
                " code for every token."
            )
        if len(array) and not (array.dtype.kind in "iu" and array.min() >= 0 and array.max() < labels):
            raise InvalidArgumentError(
                f"{name} must be integers from 0 to {labels - 1}, codes of the {labels} labels, but"
                f" {array.dtype} from {array.min()} to {array.max()} was given. Leave out tokens"
                " without a label, or give them a label of their own."
            )
        sentences = len(start) - 1
        padded = np.full(len(array) + sentences + 1, labels, dtype=np.int32)
        padded[0] = labels + 1
        padded[np.arange(1, len(array) + 1) + np.repeat(np.arange(sentences), np.diff(start))] = array
        return padded

    def _spans(self, padded: Ints) -> tuple[Int32s, Int64s, Int64s]:
        """Return type, first position and position after the last one of each span in padded codes."""
        prefix, type_ = self._prefix[padded], self._type[padded]
        pair = (prefix[:-1] * len(_ALPHABET) + prefix[1:]) * 2 + (type_[:-1] != type_[1:])
        start, ends = (np.concatenate(([False], table[pair])) for table in (self._start, self._end))
        position = np.arange(len(padded))
        if self.scheme is None:
            # Labels with an unknown prefix can end a span that never started; it then began where the last
            # one did.
            first = np.maximum.accumulate(np.where(start, position, 1))
        else:
            inside = np.concatenate(([False], self._inside[pair]))
            decided = np.maximum.accumulate(np.where(inside & ~start, 0, position))
            running = start[decided]
            behind = np.concatenate(([False], running[:-1]))
            first = np.maximum.accumulate(np.where(start & ~(inside & behind), position, 0))
            ends &= behind & ~inside
        after = np.flatnonzero(ends)
        return type_[after - 1], first[after - 1], after


def spans(labels: Sequence[str], scheme: str | None = None) -> list[tuple[str, int, int]]:
    """Return the type, the first token and the token after the last one of each span of one sentence.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4)]
    >>> spans(["B-PER", "I-PER", "O", "I-LOC"], "IOB2")
    [('PER', 0, 2)]
    """
    names, (codes,), start = _encoded((labels,))
    counter = SpanCounter(names, scheme)
    arrays = counter.find(codes, start)
    return [
        (counter.types[type_], first, after)
        for type_, first, after in zip(*(array.tolist() for array in arrays), strict=True)
    ]


def score_spans(truth: Labels, predicted: Labels, scheme: str | None = None) -> SpanScores:
    """Return precision, recall and F1 of the spans in predicted labels.

    Both arguments are lists of sentences.

    >>> score_spans([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-PER"]]).micro
    Score(precision=0.5, recall=1.0, f1=0.6666666666666666, support=1, predicted=2)
    """
    names, (true_codes, codes), start = _encoded(truth, predicted)
    return SpanCounter(names, scheme).scores(true_codes, codes, start)


def token_accuracy(truth: Labels, predicted: Labels) -> float:
    """Return the share of the tokens with the correct label; 0 if there are no tokens."""
    _, (true_codes, codes), _ = _encoded(truth, predicted)
    return float(np.mean(true_codes == codes)) if len(codes) else 0.0


def label_scores(truth: Labels, predicted: Labels) -> dict[str, Score]:
    """Return precision, recall and F1 of each label, token by token."""
    names, matrix = confusion(truth, predicted)
    return _scores(names, matrix.sum(axis=1), matrix.sum(axis=0), matrix.diagonal())


def confusion(truth: Labels, predicted: Labels) -> tuple[tuple[str, ...], Int64s]:
    """Return the labels, and how many tokens of each true label (row) got each predicted one (column).

    >>> labels, matrix = confusion([["A", "A", "B"]], [["A", "B", "B"]])
    >>> labels, matrix.tolist()
    (('A', 'B'), [[1, 1], [0, 1]])
    """
    names, (true_codes, codes), _ = _encoded(truth, predicted)
    pair = true_codes.astype(np.int64) * len(names) + codes
    return names, np.bincount(pair, minlength=len(names) ** 2).reshape(len(names), len(names))


def _split(label: str, scheme: str | None) -> tuple[str, str]:
    """Return prefix and type of a label, as seqeval reads them under that scheme."""
    prefix, rest = label[:1] or "O", label[1:]
    if scheme is None:
        _, hyphen, type_name = rest.partition("-")
        return prefix if prefix in _ALPHABET else "?", (type_name if hyphen else rest) or "_"
    allowed = _STRICT[scheme].prefixes
    if prefix not in allowed:
        forms = ", ".join(f"{letter}-TYPE" for letter in allowed if letter != "O")
        raise InvalidArgumentError(
            f"{label!r} is not a label of the scheme {scheme}, whose labels are O, {forms}. Name the"
            " scheme the labels follow, or give scheme=None to read any mixture of prefixes."
        )
    return prefix, rest.strip("-") or "_"


def _table(pairs: str) -> Bools:
    """Return the truth by previous prefix, prefix, and whether the types differ, as a flat table."""
    table = np.zeros((len(_ALPHABET), len(_ALPHABET), 2), dtype=bool)
    any_but_outside = _ALPHABET.replace("O", "").replace(".", "")
    for pair in pairs.split():
        before, after = (
            [_ALPHABET.index(letter) for letter in {"*": _ALPHABET, "+": any_but_outside}.get(given, given)]
            for given in (pair[0], pair[1])
        )
        differs = {"": [0, 1], "=": [0], "!": [1]}[pair[2:]]
        table[np.ix_(before, after, differs)] = True
    return table.ravel()


def _scores(names: Sequence[str], n_true: Ints, n_predicted: Ints, n_right: Ints) -> dict[str, Score]:
    """Return the score of each name that occurs."""
    numbers = zip(names, n_true.tolist(), n_predicted.tolist(), n_right.tolist(), strict=True)
    return {
        name: Score.of(right, true, predicted) for name, true, predicted, right in numbers if true + predicted
    }


def _mean(total: Score, weighted: list[tuple[Score, int]]) -> Score:
    """Return the weighted mean of scores, with the counts of ``total``; 0 if the weights sum to zero."""
    weight = sum(share for _, share in weighted) or 1
    precision, recall, f1 = (
        sum(getattr(score, field) * share for score, share in weighted) / weight
        for field in ("precision", "recall", "f1")
    )
    return Score(precision, recall, f1, total.support, total.predicted)


def _encoded(truth: Labels, predicted: Labels | None = None) -> tuple[tuple[str, ...], list[Int32s], Int64s]:
    """Return sorted labels, the codes of one or two sets of sentences, and where sentences start."""
    sides = [truth] if predicted is None else [truth, predicted]
    lengths = [
        _lengths(sentences, name) for sentences, name in zip(sides, ("truth", "predicted"), strict=False)
    ]
    if lengths[0] != lengths[-1]:
        raise ShapeError(_mismatch(*lengths))
    names = set(chain.from_iterable(chain.from_iterable(sides)))
    for label in names:
        if not (isinstance(label, str) and label):
            raise InvalidArgumentError(
                f"labels must be strings of one or more letters, but {label!r} was given."
            )
    ordered = tuple(sorted(names))
    number = {label: code for code, label in enumerate(ordered)}
    start = np.concatenate(([0], np.cumsum(lengths[0], dtype=np.int64)))
    codes = [
        np.fromiter(map(number.__getitem__, chain.from_iterable(sentences)), dtype=np.int32, count=start[-1])
        for sentences in sides
    ]
    return ordered, codes, start


def _lengths(sentences: Labels, name: str) -> list[int]:
    if isinstance(sentences, str) or any(isinstance(sentence, str) for sentence in sentences):
        raise InvalidArgumentError(
            f"{name} must be sentences, each a list of labels, but a single list of labels was given:"
            " put it into another list, as in [['B-PER', 'O']]."
        )
    return [len(sentence) for sentence in sentences]


def _mismatch(true: list[int], predicted: list[int]) -> str:
    for sentence, (wanted, predicted_length) in enumerate(zip(true, predicted, strict=False)):
        if wanted != predicted_length:
            return (
                f"sentence {sentence} (counted from 0) has {wanted} true labels but {predicted_length}"
                " predicted ones: give one label for every token."
            )
    return (
        f"there are {len(true)} true sentences but {len(predicted)} predicted ones, and sentence"
        f" {min(len(true), len(predicted))} (counted from 0) has no partner:"
        " give one predicted sentence for every true one."
    )


def _checked_start(sentence_start: ArrayLike) -> Int64s:
    start = np.asarray(sentence_start, dtype=np.int64)
    if start.ndim != 1 or len(start) == 0 or start[0] != 0 or not is_rising(start):
        raise ShapeError(
            "sentence_start must begin with 0 and never fall: give the first token of every sentence,"
            " and finally the number of tokens."
        )
    return start
