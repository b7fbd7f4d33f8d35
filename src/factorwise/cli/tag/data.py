"""From column files to what a tagger trains on: labels, constraints, held-out sentences, folds."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.constraints import LabelConstraints
from factorwise.apps.tagging.features.encoders import ColumnEncoder
from factorwise.apps.tagging.supervision import class_costs, random_share
from factorwise.apps.tagging.training import EncodedSentences, HeldOutSentences
from factorwise.cli.tag.options import check_labels, column_number
from factorwise.errors import DataFileError, ImpossibleError, InvalidArgumentError
from factorwise.io.conll import ColumnFile
from factorwise.io.listing import some
from factorwise.learning.chains.structure import Supervision

MOST_STRANGE = 0.1  # share of held-out sentences that may have labels which the training data lack

ClassWeights = Mapping[str, float] | Literal["balanced"] | None


@dataclass(frozen=True, slots=True, eq=False)
class SentenceSource:
    """A column file and the columns of it that matter.

    name
        What messages call the file.
    features
        Numbers of the columns that features are made of.
    label
        Number of the column that holds the labels.
    """

    file: ColumnFile
    name: str
    features: tuple[int, ...]
    label: int

    @classmethod
    def of(cls, file: ColumnFile, name: str, features: tuple[int, ...] | None, label: int) -> SentenceSource:
        """Check the numbers of the columns; by default all but the label's make features."""
        number = column_number(file, label, "--label-column", name)
        if features is None:
            features = tuple(column for column in range(file.n_columns) if column != number)
        for column in features:
            column_number(file, column, "--columns", name)
        if number in features:
            raise InvalidArgumentError(
                f"--columns names column {number}, which holds the labels: leave it out, or choose another"
                " --label-column."
            )
        if not features:
            raise DataFileError(
                f"{name}: there is only one column, the labels. Give a file with a word and its label on each"
                " line, or another --separator."
            )
        return cls(file, name, features, number)

    def columns(self) -> list[NDArray[np.object_]]:
        """Return the columns that features are made of."""
        return [self.file.column(number) for number in self.features]

    def like_labels(self) -> list[int]:
        """Return the columns for features that hold nothing but labels, as another tagger's answers."""
        labels = set(self.file.encoded(self.label)[0])
        return [number for number in self.features if labels.issuperset(self.file.encoded(number)[0])]

    def labels(self, unknown: str | None, known: Sequence[str] = ()) -> tuple[list[str], NDArray[np.int32]]:
        """Return the different labels, and the number of each token's label: -1 for ``unknown``.

        known
            Labels that come first, whether the file has them or not.
        """
        names, codes = self.file.encoded(self.label)
        if unknown in names:
            place = names.index(unknown)
            names.remove(unknown)
            codes = np.where(codes == place, -1, codes - (codes > place)).astype(np.int32)
        check_labels(self.file, self.label, names, self.name)
        if not names:
            raise DataFileError(f"{self.name}: no token has a label other than {unknown!r}. Label some.")
        every = list(dict.fromkeys([*known, *names]))
        number = np.array([*map(every.index, names), -1], dtype=np.int32)
        return every, number[codes]

    def codes_among(
        self, labels: Sequence[str], unknown: str | None, tell: Callable[[str], None]
    ) -> NDArray[np.int32]:
        """Return the number of each token's label among those of another file: -1 for one that is not there.

        Refuse them if they are in more than a few sentences: they are written in another way then.

        tell
            Told of labels that are not there.
        """
        names, codes = self.labels(unknown)
        number = {label: code for code, label in enumerate(labels)}
        strange = [place for place, label in enumerate(names) if label not in number]
        if strange:
            odd = np.add.reduceat(np.isin(codes, strange), self.file.start[:-1]) > 0
            if odd.mean() > MOST_STRANGE:
                raise self._strange_label(labels, names[strange[0]], int((codes == strange[0]).argmax()))
            tell(
                f"{odd.sum():,} of {len(odd):,} sentences of {self.name} are left out: they have labels that"
                f" the training data lack ({some(map(names.__getitem__, strange))})."
            )
        table = np.array([*(number.get(name, -1) for name in names), -1], dtype=np.int32)
        return table[codes]

    def _strange_label(self, labels: Sequence[str], label: str, token: int) -> DataFileError:
        close = difflib.get_close_matches(label, labels, n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        return DataFileError(
            f"{self.name}, line {self.file.line[token]}: the label {label!r} is not among the {len(labels)}"
            f" of the training data, which are {some(labels, 8)}.{guess} Correct it, or train with sentences"
            " that have it."
        )


def check_same_columns(source: SentenceSource, other: SentenceSource) -> None:
    """Refuse held-out sentences with other columns than the training data."""
    if source.file.n_columns != other.file.n_columns:
        raise DataFileError(
            f"{other.name}: has {other.file.n_columns} columns, but {source.name} has"
            f" {source.file.n_columns}. Give held-out sentences with the columns of the training data."
        )


def supervision(codes: NDArray[np.int32], labels: Sequence[str], weights: ClassWeights) -> Supervision:
    """Return what is known of the labels: any label is possible where the code is -1."""
    _check_weighted(weights, labels)
    cost = class_costs(weights, codes, labels)
    if (codes >= 0).all():
        return Supervision(codes, cost=cost)
    allowed_row = np.where(codes < 0, 0, -1).astype(np.int32)
    return Supervision(codes, allowed_row, np.ones((1, len(labels)), dtype=bool), cost=cost)


def _check_weighted(weights: ClassWeights, labels: Sequence[str]) -> None:
    """Refuse weights of labels that are not there."""
    for label in weights if isinstance(weights, Mapping) else ():
        if label not in labels:
            close = difflib.get_close_matches(label, labels, n=1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(labels)}."
            raise InvalidArgumentError(f"--class-weight names {label!r}, which is no label. {remedy}")


def constraints(
    labels: Sequence[str], scheme: str | None, pairs: Sequence[tuple[str | None, str | None]]
) -> LabelConstraints:
    """Return what labels must not follow one another."""
    rules = (
        LabelConstraints.none(len(labels)) if scheme is None else LabelConstraints.of_scheme(labels, scheme)
    )
    return rules.with_pairs(labels, pairs)


def check_constraints(
    rules: LabelConstraints, labels: Sequence[str], source: SentenceSource, known: Supervision
) -> None:
    """Refuse training labels that break the rules, naming the line."""
    try:
        rules.check(labels, source.file.start, known)
    except (InvalidArgumentError, ImpossibleError) as error:
        start, truth = source.file.start, known.truth
        first, last = start[:-1], start[1:] - 1
        before = np.concatenate([truth[:1], truth[:-1]])
        wrong = (before >= 0) & (truth >= 0) & rules.forbidden[before, truth]
        wrong[first] = (truth[first] >= 0) & rules.not_first[truth[first]]
        wrong[last] |= (truth[last] >= 0) & rules.not_last[truth[last]]
        line = f", line {source.file.line[int(wrong.argmax())]}" if wrong.any() else ""
        raise DataFileError(f"{source.name}{line}: {error}") from None


def taken_apart(
    sentences: EncodedSentences, share: float, seed: int, patience: int | None
) -> tuple[EncodedSentences, HeldOutSentences]:
    """Split off a random share of the sentences, to be scored while training on the others."""
    able = sentences.complete
    chosen = random_share(able, share, seed)
    if chosen.all() or not chosen.any():
        raise InvalidArgumentError(
            f"--held-out-share {share:g} of {len(able)} sentences, {int(able.sum())} of them with all labels,"
            " leaves none to learn from or none to score: give more sentences, or --held-out FILE."
        )
    return sentences.taken(~chosen), HeldOutSentences.of(sentences.taken(chosen), patience)


def from_another_file(
    source: SentenceSource,
    encoder: ColumnEncoder,
    labels: Sequence[str],
    unknown: str | None,
    patience: int | None,
    tell: Callable[[str], None],
) -> HeldOutSentences:
    """Encode a held-out file; sentences with unknown labels are left out.

    tell
        Told of sentences that are left out because training lacks their labels.
    """
    rows, start = encoder.encode_columns(source.columns(), source.file.start)
    found = EncodedSentences(rows, start, Supervision(source.codes_among(labels, unknown, tell)))
    able = found.complete
    if not able.any():
        raise DataFileError(
            f"{source.name}: every sentence has a token whose label is {unknown!r}, so none can be scored."
            " Give some that are labelled in full."
        )
    return HeldOutSentences.of(found if able.all() else found.taken(able), patience)
