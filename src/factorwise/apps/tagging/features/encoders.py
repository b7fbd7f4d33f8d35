"""The input forms of sentences, and the encoder for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import chain, islice
from os import PathLike
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.features.encoding import AttributeEncoder
from factorwise.apps.tagging.features.extraction import TemplateExtractor
from factorwise.apps.tagging.features.matrices import MatrixEncoder
from factorwise.apps.tagging.features.templates import TemplateSet, default_templates
from factorwise.apps.tagging.features.vocabulary import Encoded, no_tokens, place_of, short
from factorwise.apps.tagging.features.word_lists import (
    WordList,
    lists_from_arrays,
    lists_to_arrays,
    with_list_columns,
)
from factorwise.errors import InvalidArgumentError, ModelFileError
from factorwise.io.given_texts import text_or_file
from factorwise.types import Bools, Ints
from factorwise.validation import as_whole


class Encoder(Protocol):
    """Converts sentences into sparse rows of attributes."""

    @property
    def width(self) -> int:
        """Number of attributes."""
        ...

    def fit_encode(self, sentences: Any, *, further: bool = False) -> Encoded:
        """Learn the attributes of all tokens and return them.

        further
            Keep the attributes learned before, with their codes, and add new ones.
        """
        ...

    def reads_like(self, other: Any) -> bool:
        """Return whether another encoder makes the same attributes from the same sentences."""
        ...

    def encode(self, sentences: Any) -> Encoded:
        """Return the attributes of all tokens; attributes that were not learned are left out."""
        ...

    def names(self) -> Sequence[str]:
        """Return the names of the attributes."""
        ...

    def slots(self) -> Ints:
        """Return the slot of each attribute, which is the template or position that it comes from."""
        ...

    def select(self, kept: Bools) -> tuple[Encoder, Bools]:
        """Return an encoder of the attributes in ``kept`` (bool[attributes]), and the mask of those it has.

        An encoder that cannot drop attributes keeps all of them.
        """
        ...

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and JSON values from which `restore_encoder` restores the encoder."""
        ...


class ColumnEncoder:
    """Encoder for sentences of words, or of tuples of columns, that uses feature templates.

    templates
        The feature templates; None for the default set for the number of columns.
    word_lists
        Gazetteers and word classes, which add columns computed from the words, with their own templates.
    numbers
        Columns that hold numbers; used to choose the default templates.
    """

    def __init__(
        self,
        templates: TemplateSet | None,
        word_lists: Sequence[WordList] = (),
        numbers: Sequence[int] = (),
    ) -> None:
        self.templates = templates
        self.word_lists = tuple(word_lists)
        self.numbers = tuple(numbers)
        self.extractor = None if templates is None or word_lists else TemplateExtractor(templates)

    @property
    def width(self) -> int:
        """Number of attributes."""
        return self._ready().width

    def fit_encode(self, sentences: Any, *, further: bool = False) -> Encoded:
        """Learn the attributes of all tokens and return them; ``further`` keeps those learned before."""
        return self.fit_columns(*_columns(sentences), further=further)

    def reads_like(self, other: Any) -> bool:
        """Return whether another encoder has the same templates and word lists."""
        if not isinstance(other, ColumnEncoder) or other.templates is None:
            return False
        templates = self.templates or default_templates(other.templates.n_columns, self.numbers)
        ours, theirs = (lists_to_arrays(one.word_lists) for one in (self, other))
        same_lists = ours[1] == theirs[1] and all(
            np.array_equal(array, theirs[0][name]) for name, array in ours[0].items()
        )
        return templates.templates == other.templates.templates and same_lists

    def encode(self, sentences: Any) -> Encoded:
        """Return the attributes of all tokens; attributes that were not learned are left out."""
        extractor = self._ready()
        columns, start = _columns(sentences)
        if len(start) == 1:  # without tokens, the number of columns is unknown
            return extractor.encode([[] for _ in range(extractor.templates.n_columns)], start)
        return self.encode_columns(columns, start)

    def fit_columns(self, columns: Sequence[Any], start: Ints, *, further: bool = False) -> Encoded:
        """Learn the attributes, as `fit_encode` does, from columns that hold the strings of all tokens."""
        if further:
            return self._ready().fit_encode(self._with_lists(columns, start), start, further=True)
        self.templates = self.templates or default_templates(len(columns), self.numbers)
        extended = self.templates
        if self.word_lists:
            extended = with_list_columns(self.templates, len(columns), self.word_lists)
            self._n_columns = len(columns)
        self.extractor = TemplateExtractor(extended)
        return self.extractor.fit_encode(self._with_lists(columns, start), start)

    def encode_columns(self, columns: Sequence[Any], start: Ints) -> Encoded:
        """Return the attributes of all tokens, given as columns of strings."""
        return self._ready().encode(self._with_lists(columns, start), start)

    def _with_lists(self, columns: Sequence[Any], start: Ints) -> Sequence[Any]:
        """Return the columns followed by those of the word lists."""
        if not self.word_lists:
            return columns
        listed = [word_list.column(columns[0], start) for word_list in self.word_lists]
        present = list(columns[: self._n_columns])  # columns that no template uses may be missing
        return [*present, *[columns[0]] * (self._n_columns - len(present)), *listed]

    def names(self) -> Sequence[str]:
        """Return the names of the attributes."""
        return self._ready().names()

    def slots(self) -> Ints:
        """Return the template number of each attribute."""
        return self._ready().slots()

    def select(self, kept: Bools) -> tuple[ColumnEncoder, Bools]:
        """Return an encoder of the kept attributes and of all numeric ones, and the mask of those it has."""
        selected = copy(self)
        selected.extractor, kept = self._ready().select(kept)
        return selected, kept

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and JSON values from which `restore_encoder` restores the encoder."""
        arrays, metadata = self._ready().to_arrays()
        if self.word_lists:
            lists, described = lists_to_arrays(self.word_lists)
            arrays, metadata = (
                arrays | lists,
                metadata
                | {
                    "word_lists": described,
                    "n_columns": self._n_columns,
                },
            )
        return arrays, metadata

    def _ready(self) -> TemplateExtractor:
        if self.extractor is None:
            raise InvalidArgumentError("no sentences have been learned from yet: call fit_encode first.")
        return self.extractor

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> ColumnEncoder:
        """Restore an encoder from the output of `to_arrays`."""
        extractor = TemplateExtractor.from_arrays(arrays, metadata)
        made = cls(extractor.templates, lists_from_arrays(arrays, metadata.get("word_lists", ())))
        if made.word_lists:
            made._n_columns = as_whole("n_columns", metadata["n_columns"])
            if extractor.templates.n_columns != made._n_columns + len(made.word_lists):
                raise ModelFileError("its word lists do not fit its templates. The file is damaged.")
            made.templates = extractor.templates.within(made._n_columns)
        made.extractor = extractor
        return made


def choose_encoder(
    sentences: Any,
    templates: TemplateSet | str | PathLike[str] | Iterable[str] | None,
    word_lists: Sequence[WordList] = (),
) -> Encoder:
    """Return the encoder for sentences of this form.

    With templates, sentences are words or tuples of columns. Otherwise they are matrices, one per sentence,
    or lists of tokens that are dictionaries or lists of strings.
    """
    if templates is not None:
        if isinstance(templates, str) and templates == "default":
            return ColumnEncoder(None, word_lists)
        if isinstance(templates, TemplateSet):
            return ColumnEncoder(templates, word_lists)
        return ColumnEncoder(TemplateSet.parse(text_or_file("templates", templates)), word_lists)
    if word_lists:
        raise InvalidArgumentError(
            "gazetteers and word_classes are looked up by words: give templates, such as templates='default',"
            " and sentences of words."
        )
    listed = isinstance(sentences, Sequence) or (isinstance(sentences, np.ndarray) and sentences.ndim > 0)
    first = sentences[0] if listed and len(sentences) else None
    return MatrixEncoder() if _is_matrix(first) else AttributeEncoder()


def restore_encoder(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> Encoder:
    """Restore an encoder from the output of `to_arrays`."""
    kind = metadata.get("encoder")
    if kind == "attributes":
        return AttributeEncoder.from_arrays(arrays, metadata)
    if kind == "matrices":
        return MatrixEncoder.from_arrays(arrays, metadata)
    if kind == "templates":
        return ColumnEncoder.from_arrays(arrays, metadata)
    raise ModelFileError(
        f"the model's encoder is {kind!r}, which this factorwise does not know: upgrade it, or make the model"
        " again."
    )


def as_sentences(sentences: Any) -> Any:
    """Return a list if the input can be read only once, like a generator; else return it unchanged."""
    return sentences if _is_listed(sentences) else list(sentences)


def as_training_sentences(sentences: Any, templates: Any) -> Any:
    """Return sentences like `as_sentences`, but keep a generator of attributes, which is read in pieces."""
    if _is_listed(sentences) or templates is not None:
        return as_sentences(sentences)
    remaining = iter(sentences)
    first = list(islice(remaining, 1))
    matrices = bool(first) and _is_matrix(first[0])
    return [*first, *remaining] if matrices else chain(first, remaining)


def split_empty(sentences: Any) -> tuple[Any, NDArray[np.int64] | None]:
    """Return the sentences that have tokens and, if some have none, the number of tokens of each sentence."""
    if not isinstance(sentences, list | tuple):
        return sentences, None
    sentences = [list(sentence) if isinstance(sentence, Iterator) else sentence for sentence in sentences]
    if not all(hasattr(sentence, "__len__") or hasattr(sentence, "shape") for sentence in sentences):
        return sentences, None  # the encoder raises an error that gives the reason
    sizes = np.array([_size(sentence) for sentence in sentences], dtype=np.int64)
    if sizes.all():
        return sentences, None
    return [sentence for sentence, size in zip(sentences, sizes, strict=True) if size], sizes


def _size(sentence: Any) -> int:
    shape = getattr(sentence, "shape", None)  # a sparse matrix has no length
    return int(shape[0]) if shape else len(sentence)


def _is_listed(sentences: Any) -> bool:
    listed = isinstance(sentences, Sequence | Mapping | np.ndarray) or hasattr(sentences, "tocsr")
    return listed or not isinstance(sentences, Iterable)


def _is_matrix(sentence: Any) -> bool:
    if hasattr(sentence, "tocsr"):
        return True
    return isinstance(sentence, np.ndarray) and sentence.ndim == 2 and sentence.dtype.kind in "biuf"


def _columns(sentences: Any) -> tuple[list[list[str]], Ints]:
    """Return the columns of all tokens, and the start of each sentence."""
    if isinstance(sentences, str | bytes) or not isinstance(sentences, Sequence | np.ndarray):
        raise InvalidArgumentError(
            f"X is a {type(sentences).__name__}, not a list of sentences, each a list of words or tuples."
        )
    sentences = [list(sentence) if isinstance(sentence, Iterator) else sentence for sentence in sentences]
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str | bytes) or not isinstance(sentence, Sequence | np.ndarray):
            raise InvalidArgumentError(
                f"sentence {number} is {short(sentence)}: with templates, X is a list of sentences, each a"
                " list of words, or of tuples of a word and its other columns."
            )
        if not len(sentence):
            raise no_tokens(number)
    start = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
    tokens = list(chain.from_iterable(sentences))
    if set(map(type, tokens)) == {str}:
        return [tokens], start
    rows = [(token,) if isinstance(token, str) else token for token in tokens]
    if set(map(type, rows)) <= {tuple, list} and len(set(map(len, rows))) == 1:
        columns = [list(column) for column in zip(*rows, strict=True)]
        if columns and all(set(map(type, column)) == {str} for column in columns):
            return columns, start
    checked = [_strings(token, number, start) for number, token in enumerate(rows)]
    for number, row in enumerate(checked):
        if len(row) != len(checked[0]):
            raise InvalidArgumentError(
                f"{place_of(number, start)} is {short(tokens[number])}, with {len(row)} columns, but the"
                f" first token has {len(checked[0])}: give all the same."
            )
    return [list(column) for column in zip(*checked, strict=True)], start


def _strings(token: Any, number: int, start: NDArray[np.int64]) -> tuple[str, ...]:
    """Return the columns of a token; raise an error if they are not strings."""
    listed = isinstance(token, Sequence | np.ndarray) and not isinstance(token, bytes)
    if not listed or not len(token) or not all(isinstance(column, str) for column in token):
        raise InvalidArgumentError(
            f"{place_of(number, start)} is {short(token)}: with templates, a token is a string, or a tuple of"
            " strings."
        )
    return tuple(map(str, token))
