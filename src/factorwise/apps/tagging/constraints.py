"""Constraints on adjacent labels: span schemes (BIO and its variants) and the user's own rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ImpossibleError, InvalidArgumentError, require
from factorwise.io.listing import some
from factorwise.learning.chains.structure import Supervision
from factorwise.metrics.sequence import scheme_name
from factorwise.types import Bools

# For each scheme: its prefixes, those that continue a span, and those after which a span must continue.
_SCHEMES = {
    "IOB1": ("BI", "B", ""),
    "IOB2": ("BI", "I", ""),
    "IOE2": ("IE", "", "I"),
    "IOBES": ("BIES", "IE", "BI"),
    "BILOU": ("BILU", "IL", "BI"),
}
SCHEMES = ("BIO", "IOB2", "IOB1", "IOE2", "BIOES", "IOBES", "BILOU")
"""Names of the schemes that can be demanded of label sequences."""


@dataclass(frozen=True, eq=False)
class LabelConstraints:
    """Forbidden transitions between labels, and labels that may not start or end a sentence."""

    forbidden: Bools
    not_first: Bools
    not_last: Bools

    @classmethod
    def none(cls, labels: int) -> LabelConstraints:
        """Return constraints that forbid nothing."""
        no = np.zeros(labels, dtype=bool)
        return cls(np.zeros((labels, labels), dtype=bool), no, no.copy())

    @classmethod
    def of_scheme(cls, labels: Sequence[str], scheme: str) -> LabelConstraints:
        """Return constraints that forbid incomplete spans, which lack a beginning or an end."""
        given, scheme = scheme, scheme_name(scheme)
        if scheme not in _SCHEMES:
            raise InvalidArgumentError(
                f"scheme must be one of {', '.join(SCHEMES)}, but {given!r} was given."
            )
        prefixes, continuing, unfinished = _SCHEMES[scheme]
        parts = [_prefix_and_type(label) for label in labels]
        for label, (prefix, _) in zip(labels, parts, strict=True):
            if "-" in label and prefix not in prefixes + "O":
                raise InvalidArgumentError(
                    f"{label!r} is no label of the scheme {given}, whose spans are labelled"
                    f" {', '.join(f'{letter}-TYPE' for letter in prefixes)}: choose another scheme, or none."
                )
        if len(labels) > 1 and all(prefix == "O" for prefix, _ in parts):
            raise InvalidArgumentError(
                f"no label is one of the scheme {given}, whose spans are labelled"
                f" {', '.join(f'{letter}-TYPE' for letter in prefixes)}, but {some(labels)} are: leave the"
                " scheme out, or label spans."
            )
        needs_before = np.array([prefix in continuing for prefix, _ in parts])
        needs_after = np.array([prefix in unfinished for prefix, _ in parts])
        kind = np.array([kind for _, kind in parts])
        # within one span, both labels have one type, the left one allows more, and the right one continues
        goes_on = np.array([prefix in set("BI") for prefix, _ in parts])
        joined = (kind[:, None] == kind[None, :]) & goes_on[:, None]
        if scheme == "IOE2":  # a span continues with I or ends with E; it needs no label for its beginning
            continues = np.array([prefix in set("IE") for prefix, _ in parts])
            forbidden = needs_after[:, None] & ~((kind[:, None] == kind[None, :]) & continues[None, :])
        else:
            forbidden = (needs_before[None, :] & ~joined) | (
                needs_after[:, None] & ~(joined & needs_before[None, :])
            )
        return cls(forbidden, needs_before, needs_after)

    def with_pairs(
        self, labels: Sequence[str], pairs: Iterable[tuple[str | None, str | None]]
    ) -> LabelConstraints:
        """Forbid more transitions; None stands for the beginning of a sentence (left) or its end (right)."""
        number = {label: code for code, label in enumerate(labels)}
        forbidden, not_first, not_last = self.forbidden.copy(), self.not_first.copy(), self.not_last.copy()
        for left, right in pairs:
            for label in (left, right):
                if label is not None and label not in number:
                    raise InvalidArgumentError(
                        f"the forbidden pair {(left, right)!r} names {label!r}, which is none of the labels"
                        f" of the training data: {some(labels, 8)}. Correct it, or leave the pair out."
                    )
            if left is None and right is None:
                raise InvalidArgumentError(
                    "the forbidden pair (None, None) names no label: give one, None being the edge of a"
                    " sentence on the other side."
                )
            if left is None and right is not None:
                not_first[number[right]] = True
            elif right is None and left is not None:
                not_last[number[left]] = True
            elif left is not None and right is not None:
                forbidden[number[left], number[right]] = True
        return replace(self, forbidden=forbidden, not_first=not_first, not_last=not_last)

    def check(self, labels: Sequence[str], start: NDArray[np.int64], supervision: Supervision) -> None:
        """Raise an error if training labels break the rules, because their probability would be zero."""
        truth = supervision.truth
        first, last = np.zeros(len(truth), dtype=bool), np.zeros(len(truth), dtype=bool)
        first[start[:-1]], last[start[1:] - 1] = True, True
        known = truth >= 0
        early, late = known & first & self.not_first[truth], known & last & self.not_last[truth]
        after = np.zeros(len(truth), dtype=bool)
        after[1:] = known[:-1] & known[1:] & ~last[:-1] & self.forbidden[truth[:-1], truth[1:]]
        wrong = np.flatnonzero(early | late | after)
        if len(wrong):
            at = int(wrong[0])
            sentence = int(np.searchsorted(start, at, side="right")) - 1
            if early[at]:
                where = "at the beginning"
            else:
                where = f"after {labels[truth[at - 1]]!r}" if after[at] else "at the end"
            raise InvalidArgumentError(
                f"token {at - int(start[sentence])} of sentence {sentence} has label {labels[truth[at]]!r}"
                f" {where}, which the constraints forbid: mend the label, choose another scheme, or train"
                " without constraints."
            )
        self._check_partial(start, supervision)

    def _check_partial(self, start: NDArray[np.int64], supervision: Supervision) -> None:
        """Raise an error if a partially labelled sentence has no label sequence that obeys the rules."""
        if not (self.forbidden.any() or self.not_first.any() or self.not_last.any()):
            return
        follows = ~self.forbidden
        for sentence in np.flatnonzero(np.minimum.reduceat(supervision.truth, start[:-1]) < 0).tolist():
            reached = ~self.not_first
            for token in range(int(start[sentence]), int(start[sentence + 1])):
                if token > start[sentence]:
                    reached = np.asarray(follows[reached].any(axis=0))
                reached = reached & supervision.may_be(token, len(follows))
            if not (reached & ~self.not_last).any():
                raise ImpossibleError(
                    f"no labels that are possible in sentence {sentence} obey the constraints: allow more of"
                    " them, choose another scheme, or train without constraints."
                )


def _prefix_and_type(label: str) -> tuple[str, str]:
    """Split ``B-PER`` into ``B`` and ``PER``; a label that is one letter is its own prefix."""
    prefix, dash, kind = label.partition("-")
    if dash:
        return (prefix, kind) if len(prefix) == 1 else ("O", label)
    return (label, "") if len(label) == 1 else ("O", label)


def constraints_of_options(names: Sequence[Any], scheme: str | None, forbidden: Any) -> LabelConstraints:
    """Return the constraints given by a span scheme and by a list of forbidden label pairs."""
    texts = [str(name) for name in names]
    rules = LabelConstraints.none(len(texts)) if scheme is None else LabelConstraints.of_scheme(texts, scheme)
    if forbidden is None:
        return rules
    listed = isinstance(forbidden, Collection) and not isinstance(forbidden, str)
    require(listed, "forbidden", forbidden, "a list of pairs of labels")
    return rules.with_pairs(texts, [_as_texts(pair) for pair in forbidden])


def _as_texts(pair: Any) -> tuple[str | None, str | None]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidArgumentError(f"forbidden holds {pair!r}, which is not a pair of labels.")
    left, right = (None if label is None else str(label) for label in pair)
    return left, right
