"""A saved tagger and what it says about the sentences of a column file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.answers import n_best, spans_of
from factorwise.apps.tagging.features.encoders import ColumnEncoder
from factorwise.apps.tagging.features.templates import TemplateSet
from factorwise.apps.tagging.model_file import KIND, read_tagger
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.cli.files import check_kind
from factorwise.cli.tag.options import ColumnLayout
from factorwise.errors import DataFileError, ModelFileError
from factorwise.io.conll import ColumnFile
from factorwise.kernels.compile.threads import Team
from factorwise.validation import as_whole
from factorwise.variables.sparse_rows import SparseRows

T = TypeVar("T")


class LoadedTagger(NamedTuple):
    """A tagger of columns.

    features
        Numbers of the columns that it was trained on.
    label, all
        Number of the column of labels then, and of all columns; None where the file does not say.
    like_labels
        Those of ``features`` that held nothing but labels, too.
    layout
        How the training data were written.
    """

    tagger: ChainTagger
    encoder: ColumnEncoder
    templates: TemplateSet
    features: tuple[int, ...]
    label: int | None
    all: int | None
    like_labels: tuple[int, ...]
    layout: ColumnLayout


def load_model(path: str | os.PathLike[str]) -> LoadedTagger:
    """Read a tagger from a model file; refuse one that does not take columns."""
    check_kind(Path(path), KIND)
    saved = read_tagger(path)
    encoder = saved.encoder
    if not isinstance(encoder, ColumnEncoder) or encoder.templates is None:
        raise ModelFileError(
            f"{os.fspath(path)}: this tagger was not trained on columns but on attributes made in code. Apply"
            " it there, with ChainCRF.load(path).predict(sentences), or train one with `factorwise tag fit`."
        )
    templates = encoder.templates
    columns, layout = _mapping(saved.settings, "columns"), _mapping(saved.settings, "layout")
    try:
        features = columns.get("features")
        return LoadedTagger(
            saved.tagger,
            encoder,
            templates,
            tuple(range(templates.n_columns))
            if features is None
            else tuple(as_whole("features", column) for column in features),
            _column("label", columns.get("label")),
            _column("all", columns.get("all")),
            tuple(as_whole("like_labels", column) for column in columns.get("like_labels", ())),
            ColumnLayout(**layout),
        )
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"{os.fspath(path)}: its settings of columns cannot be read ({error}). The file is damaged:"
            " restore it from a copy, or train again."
        ) from error


def _column(name: str, value: object) -> int | None:
    return None if value is None else as_whole(name, value)


def _mapping(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a part of the settings; empty for a model that was not made by this command."""
    part = settings.get(name, {})
    return part if isinstance(part, Mapping) else {}


def columns_for(
    model: LoadedTagger, table: ColumnFile, chosen: tuple[int, ...] | None, name: str
) -> list[int]:
    """Return the numbers of the columns that the templates ask for; refuse a file that lacks one.

    Where the labels did not stand last at training, a file with one column less is taken for one without
    them: columns behind theirs have moved to the front by one.
    """
    numbers = model.features if chosen is None else chosen
    without_labels = model.all is not None and table.n_columns == model.all - 1
    if chosen is None and model.label is not None and without_labels:
        numbers = tuple(number - (number > model.label) for number in numbers)
    for template in model.templates.templates:
        for part in template.parts:
            if part.column >= len(numbers) or numbers[part.column] >= table.n_columns:
                _refuse(model, template.text, part.column, numbers, table, name)
    if chosen is None and without_labels:
        expected = [
            number for number, then in zip(numbers, model.features, strict=True) if then in model.like_labels
        ]
        _refuse_labels(model, [number for number in numbers[1:] if number not in expected], table, name)
    # what no template asks for may be missing: any column can stand in
    there = [number if number < table.n_columns else 0 for number in numbers]
    return there[: model.templates.n_columns]


def _refuse_labels(model: LoadedTagger, numbers: Sequence[int], table: ColumnFile, name: str) -> None:
    """Refuse a file that lacks another column than that of the labels, which would be taken for that one."""
    for number in numbers:
        values = table.encoded(number)[0] if number < table.n_columns else []
        if values and set(values) <= set(model.tagger.classes):
            raise DataFileError(
                f"{name}: has {table.n_columns} columns where the training data had {model.all}, and column"
                f" {number} (counted from 0), which is to be read, holds labels, such as {values[0]!r}. Add"
                " the column that is missing, or say with --columns which are to be read."
            )


def _refuse(
    model: LoadedTagger, template: str, column: int, numbers: Sequence[int], table: ColumnFile, name: str
) -> None:
    if column >= len(numbers):
        given = ",".join(map(str, numbers))
        raise DataFileError(
            f"template {template!r} of the tagger asks for {column + 1} columns, but --columns {given} names"
            f" {len(numbers)}: name as many as it was trained on."
        )
    count = table.n_columns
    then = (
        ""
        if model.all is None
        else f" The training data had {model.all}, with labels in column {model.label}."
    )
    raise DataFileError(
        f"{name}: template {template!r} of the tagger asks for column {numbers[column]} (counted from 0), but"
        f" the file has {count}.{then} Give a file with the columns of the training data, name the right ones"
        " with --columns, or give another --separator."
    )


class Predictions:
    """Answers of a tagger about encoded sentences, each computed when it is asked for."""

    def __init__(self, tagger: ChainTagger, rows: SparseRows, start: NDArray[np.int64], team: Team) -> None:
        self._tagger, self._rows, self._start, self._team = tagger, rows, start, team

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """Number of the label of each token, on the most probable path."""
        return self._tagger.decode(self._rows, self._start, self._team)

    @property
    def labels(self) -> list[str]:
        """Label of each token, on the most probable path."""
        return list(map(self._tagger.classes.__getitem__, self.codes.tolist()))

    @cached_property
    def probability(self) -> NDArray[np.float64]:
        """Probability of each of these labels, at its token."""
        found, _ = self._tagger.marginals(self._rows, self._start, self._team)
        return np.asarray(found[np.arange(len(found)), self.codes], dtype=np.float64)

    def split(self, values: Sequence[T]) -> list[Sequence[T]]:
        """Cut what is there for each token into sentences."""
        return [values[first:after] for first, after in pairwise(self._start.tolist())]

    def nbest(self, k: int) -> Iterator[list[tuple[list[str], float]]]:
        """Return for each sentence its ``k`` most probable label sequences and their probabilities."""
        return n_best(self._tagger, self._rows, self._start, k)

    def spans(self, table: ColumnFile, words: int) -> Iterator[dict[str, Any]]:
        """Yield the spans of the most probable paths, each with the probability that it is one.

        table, words
            The file that the sentences come from, and the number of its column that holds the words.
        """
        text = table.column(words)
        found = spans_of(self._tagger, self._rows, self._start, self.codes)
        for sentence, spans in enumerate(found):
            offset = int(self._start[sentence])
            for span in spans:
                yield {
                    "sentence": sentence,
                    "start": span.start,
                    "end": span.end,
                    "type": span.kind,
                    "confidence": span.confidence,
                    "text": " ".join(text[offset + span.start : offset + span.end]),
                    "line": int(table.line[offset + span.start]),
                }
