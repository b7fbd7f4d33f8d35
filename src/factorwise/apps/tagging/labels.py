"""Encode labels of tokens, which may be known, missing or ambiguous, as codes.

The label of a token is any hashable value, usually a string. ``None`` means that it is unknown; a list,
tuple or set means that it is one of these labels.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.features.vocabulary import Longs, place_of
from factorwise.errors import InvalidArgumentError, ShapeError, UnknownLabelError
from factorwise.types import Bools

Admit = Callable[[Hashable, int], int]


class UnseenLabelError(UnknownLabelError):
    """Raised for a label that the training data did not have."""

    def __init__(self, label: object, place: str, known: Sequence[object]) -> None:
        names = [str(label) for label in known]
        close = difflib.get_close_matches(str(label), names, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        ValueError.__init__(
            self,
            f"{place} has the label {label!r}, which is not among the {len(known)} seen at training"
            f" ({listed}).{guess} Correct it, give None where it is not known, or train with sentences that"
            " have it.",
        )


class EncodedLabels(NamedTuple):
    """The encoded labels of all tokens.

    codes : int32[tokens]
        The code of the label; -1 if it is missing or ambiguous.
    partial : int64[tokens with -1]
        The tokens whose code is -1.
    allowed : bool[tokens with -1, labels]
        The labels that each of them may have.
    """

    codes: NDArray[np.int32]
    partial: Longs
    allowed: Bools


class LabelEncoder:
    """Encoder that maps labels to codes, in order of first appearance.

    labels
        Labels that get the first codes, even if the data do not have them.

    >>> encoder = LabelEncoder()
    >>> codes, partial, allowed = encoder.fit_encode([["N", "V", None], [{"V", "N"}]], [0, 3, 4])
    >>> encoder.labels, codes.tolist(), allowed.tolist()
    (('N', 'V'), [0, 1, -1, -1], [[True, True], [True, True]])
    """

    def __init__(self, labels: Iterable[Hashable] = ()) -> None:
        self.labels = tuple(dict.fromkeys(labels))

    def fit_encode(self, sentences: Iterable[Iterable[Any]], start: Any) -> EncodedLabels:
        """Learn the labels and return their codes.

        start
            Sentence ``s`` of the input has the tokens ``start[s]:start[s + 1]``; the labels must match them.
        """
        flat, bounds = _flattened(sentences, start)
        code_of: dict[Hashable, int] = {label: code for code, label in enumerate(self.labels)}
        if set(map(type, flat)) == {str}:
            for label in dict.fromkeys(flat):
                code_of.setdefault(label, len(code_of))
        encoded = _encoded(
            flat, bounds, lambda label, token: code_of.setdefault(label, len(code_of)), code_of
        )
        if not code_of:
            raise InvalidArgumentError("no token has a label: give at least one, or the labels in advance.")
        self.labels = tuple(code_of)
        return encoded

    def encode(self, sentences: Iterable[Iterable[Any]], start: Any) -> EncodedLabels:
        """Return the codes of learned labels; raise an error for any other label."""
        flat, bounds = _flattened(sentences, start)
        code_of = {label: code for code, label in enumerate(self.labels)}

        def admit(label: Hashable, token: int) -> int:
            code = code_of.get(label)
            if code is None:
                raise UnseenLabelError(label, place_of(token, bounds), self.labels)
            return code

        return _encoded(flat, bounds, admit, code_of)


def _flattened(sentences: Any, start: Any) -> tuple[list[Any], Longs]:
    bounds = np.asarray(start, dtype=np.int64)
    sentences = list(sentences) if isinstance(sentences, Iterator) else sentences
    listed = hasattr(sentences, "__len__") and getattr(sentences, "ndim", 1) > 0
    if isinstance(sentences, str | bytes) or not listed:
        raise InvalidArgumentError(
            f"y is a {type(sentences).__name__}, not a list of sentences, each a list of labels."
        )
    if len(sentences) != len(bounds) - 1:
        raise ShapeError(
            f"X has {len(bounds) - 1} sentences, but y has {len(sentences)}: give labels for each sentence."
        )
    listed = [_listed(sentence, number) for number, sentence in enumerate(sentences)]
    sizes = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    wrong = np.flatnonzero(sizes != np.diff(bounds))
    if len(wrong):
        raise ShapeError(
            f"sentence {wrong[0]} has {np.diff(bounds)[wrong[0]]} tokens, but {sizes[wrong[0]]} labels: give"
            " each token one, None where it is not known. Sentences are counted from 0."
        )
    return list(chain.from_iterable(listed)), bounds


def _listed(sentence: Any, number: int) -> Sequence[Any]:
    if type(sentence) is list or type(sentence) is tuple:
        return sentence
    if isinstance(sentence, np.ndarray):
        return sentence.tolist()  # type: ignore[no-any-return]
    if isinstance(sentence, Iterator):
        return list(sentence)
    if isinstance(sentence, Sequence) and not isinstance(sentence, str | bytes):
        return sentence
    raise InvalidArgumentError(
        f"the labels of sentence {number} are {sentence!r}, not a list: y is a list of sentences, each a list"
        " of labels. For a single sentence, give [y]."
    )


def _encoded(flat: list[Any], start: Longs, admit: Admit, code_of: dict[Hashable, int]) -> EncodedLabels:
    """Return the codes of labels; ``admit`` gives the code of a label that is not in ``code_of``."""
    try:
        found = [code_of.get(label, -1) for label in flat]
    except TypeError:  # lists and sets of labels
        found = [-1] * len(flat)
    codes = np.array(found, dtype=np.int32)
    choices: list[tuple[int, list[int] | None]] = []
    for token in np.flatnonzero(codes < 0).tolist():
        label = flat[token]
        if label is None:
            choices.append((token, None))
        elif isinstance(label, list | tuple | AbstractSet):
            chosen = [admit(_plain(one, token, start), token) for one in _in_order(label)]
            if not chosen:
                raise InvalidArgumentError(
                    f"{place_of(token, start)} may have none of the labels: give None where it is not known."
                )
            if len(set(chosen)) == 1:
                codes[token] = chosen[0]
            else:
                choices.append((token, chosen))
        else:
            codes[token] = admit(_plain(label, token, start), token)
    allowed = np.zeros((len(choices), len(code_of)), dtype=np.bool_)
    for row, (_, chosen_codes) in enumerate(choices):
        allowed[row, slice(None) if chosen_codes is None else chosen_codes] = True
    return EncodedLabels(codes, np.array([token for token, _ in choices], dtype=np.int64), allowed)


def _in_order(labels: Any) -> Iterable[Any]:
    """Return alternative labels in a reproducible order."""
    if not isinstance(labels, AbstractSet):
        return labels  # type: ignore[no-any-return]
    return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _plain(label: Any, token: int, start: Longs) -> Hashable:
    """Return a label as a hashable value; raise an error if it is not a valid label."""
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or label != label or not isinstance(label, Hashable):
        raise InvalidArgumentError(
            f"{place_of(token, start)} has {label!r} for a label: give a string, or None alone where it is"
            " not known."
        )
    return label
