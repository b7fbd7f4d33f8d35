"""The forms in which sentences may come, and the encoder that reads each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.encoding import AttributeEncoder
from factorwise.apps.tagging.extraction import TemplateExtractor
from factorwise.apps.tagging.matrices import MatrixEncoder
from factorwise.apps.tagging.templates import TemplateSet, default_templates
from factorwise.apps.tagging.vocabulary import Encoded
from factorwise.errors import InvalidArgumentError, ModelFileError
from factorwise.types import Ints


class Encoder(Protocol):
    """Turns sentences into sparse rows of attributes."""

    @property
    def width(self) -> int:
        """Number of attributes."""
        ...

    def fit_encode(self, sentences: Any) -> Encoded:
        """Learn the attributes of all tokens and return them."""
        ...

    def encode(self, sentences: Any) -> Encoded:
        """Return the attributes of all tokens, leaving out those that were not learned."""
        ...

    def names(self) -> Sequence[str]:
        """Return the names of the attributes."""
        ...

    def slots(self) -> Ints:
        """Return the kind of each attribute."""
        ...

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and JSON values from which `restore_encoder` makes the encoder again."""
        ...


class ColumnEncoder:
    """Turn sentences of words, or of tuples of columns, into rows of attributes by templates.

    templates
        What to look at; None for a set that suits the number of columns.
    """

    def __init__(self, templates: TemplateSet | None) -> None:
        self._templates = templates
        self.extractor = None if templates is None else TemplateExtractor(templates)

    @property
    def width(self) -> int:
        """Number of attributes."""
        return self._ready().width

    def fit_encode(self, sentences: Any) -> Encoded:
        """Learn the attributes of all tokens and return them."""
        return self.fit_columns(*_columns(sentences))

    def encode(self, sentences: Any) -> Encoded:
        """Return the attributes of all tokens, leaving out those that were not learned."""
        return self._ready().encode(*_columns(sentences))

    def fit_columns(self, columns: Sequence[Any], start: Ints) -> Encoded:
        """Learn from columns that hold the strings of all tokens."""
        self.extractor = TemplateExtractor(self._templates or default_templates(len(columns)))
        return self.extractor.fit_encode(columns, start)

    def encode_columns(self, columns: Sequence[Any], start: Ints) -> Encoded:
        """Encode columns that hold the strings of all tokens."""
        return self._ready().encode(columns, start)

    def names(self) -> Sequence[str]:
        """Return the names of the attributes."""
        return self._ready().names()

    def slots(self) -> Ints:
        """Return the number of the template of each attribute."""
        return self._ready().slots()

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and JSON values from which `restore_encoder` makes the encoder again."""
        return self._ready().to_arrays()

    def _ready(self) -> TemplateExtractor:
        if self.extractor is None:
            raise InvalidArgumentError("no sentences have been learned from yet: call fit_encode first.")
        return self.extractor

    @classmethod
    def of(cls, extractor: TemplateExtractor) -> ColumnEncoder:
        """Wrap an extractor that has learned already."""
        made = cls(extractor.templates)
        made.extractor = extractor
        return made


def choose_encoder(sentences: Any, templates: TemplateSet | str | Iterable[str] | None) -> Encoder:
    """Return the encoder that reads sentences of this form.

    With templates: sentences of words or tuples. Otherwise matrices, one for each sentence; or sentences of
    dictionaries or lists of strings.
    """
    if templates is not None:
        if templates == "default":
            return ColumnEncoder(None)
        return ColumnEncoder(
            templates if isinstance(templates, TemplateSet) else TemplateSet.parse(templates)
        )
    first = sentences[0] if isinstance(sentences, Sequence | np.ndarray) and len(sentences) else None
    if hasattr(first, "tocsr") or (isinstance(first, np.ndarray) and first.ndim == 2 and _numeric(first)):
        return MatrixEncoder()
    return AttributeEncoder()


def restore_encoder(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> Encoder:
    """Make an encoder again from what `to_arrays` gave."""
    kind = metadata.get("encoder")
    if kind == "attributes":
        return AttributeEncoder.from_arrays(arrays, metadata)
    if kind == "matrices":
        return MatrixEncoder.from_arrays(arrays, metadata)
    if kind == "templates":
        return ColumnEncoder.of(TemplateExtractor.from_arrays(arrays, metadata))
    raise ModelFileError(
        f"the model's encoder is {kind!r}, which this factorwise does not know: upgrade it, or make the model"
        " again."
    )


def _numeric(array: NDArray[Any]) -> bool:
    return array.dtype.kind in "biuf"


def _columns(sentences: Any) -> tuple[list[list[str]], Ints]:
    """Return the columns of all tokens, and where the sentences begin."""
    tokens: list[Any] = []
    start = [0]
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str | bytes) or not isinstance(sentence, Sequence | np.ndarray):
            raise InvalidArgumentError(
                f"sentence {number} is {sentence!r}: with templates, X is a list of sentences, each a list of"
                " words, or of tuples of a word and its other columns."
            )
        tokens.extend(sentence)
        start.append(len(tokens))
    rows = [(token,) if isinstance(token, str) else tuple(token) for token in tokens]
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        width = len(rows[0])
        wrong = next(place for place, row in enumerate(rows) if len(row) != width)
        raise InvalidArgumentError(
            f"token {wrong} (counted over all sentences) is {tokens[wrong]!r}, with {len(rows[wrong])}"
            f" columns, but the first token has {width}: give all the same."
        )
    return [list(column) for column in zip(*rows, strict=True)], np.array(start, dtype=np.int64)
