"""Mentions in plain text, so that a resolver of coreference can start from a text.

A finder is a tagger of spans within spans that has learned from documents whose mentions are marked: names,
nominals and pronouns, one within another ("her sister's husband").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from factorwise.apps.coreference.documents import Document, document_from
from factorwise.apps.tagging.nested import LEVELS, NestedTagger
from factorwise.apps.tagging.raw_text import split_sentences
from factorwise.errors import DataFileError
from factorwise.validation import check_count

PART = 2_000  # tokens of a text that are resolved together: the work grows with the square of the mentions
_SEPARATOR = "/"  # between the type of a mention and its kind, in the labels of the finder


def train_mention_finder(
    documents: Sequence[Document],
    *,
    levels: int = LEVELS,
    max_iterations: int | None = None,
    n_jobs: int | None = None,
) -> NestedTagger:
    """Learn to find mentions, with their types and kinds, from documents in which they are marked.

    Sentences behind ``full_until``, where mentions are marked in part only, are left out, as are mentions
    that go beyond a sentence.
    """
    sentences, spans = [], []
    for document in documents:
        labelled = [(_label(mention.type, mention.kind), mention) for mention in document.mentions]
        for begin, end in document.sentences:
            if document.full_until is not None and end > document.full_until:
                continue
            sentences.append(document.tokens[begin:end])
            spans.append(
                [
                    (label, mention.start - begin, mention.end - begin)
                    for label, mention in labelled
                    if begin <= mention.start and mention.end <= end
                ]
            )
    if not any(spans):
        raise DataFileError("the documents have no mentions to learn from: mark some in 'mentions'.")
    finder = NestedTagger(levels=levels, max_iterations=max_iterations, n_jobs=n_jobs)
    return finder.fit(sentences, spans)


def find_mentions(finder: NestedTagger, documents: Sequence[Document]) -> list[Document]:
    """Return the documents with the mentions that the finder sees in their sentences, in place of their own.

    Each mention has a ``confidence``, the probability that it is a mention of this type and kind.
    """
    sentences = [document.tokens[begin:end] for document in documents for begin, end in document.sentences]
    found = iter(finder.predict_spans(sentences))
    records = []
    for document in documents:
        mentions: list[dict[str, Any]] = []
        for begin, _ in document.sentences:
            for span in next(found):
                mention = {"start": begin + span.start, "end": begin + span.end}
                mentions.append(
                    {**mention, **_read_label(span.kind), "confidence": round(span.confidence, 4)}
                )
        records.append({**document.record, "mentions": mentions})
    return [
        document_from(record, where=f"document {document.id!r}", name=document.id)
        for record, document in zip(records, documents, strict=True)
    ]


def documents_of_text(text: str, name: str, *, part: int = PART) -> list[Document]:
    """Return a plain text as documents of about ``part`` tokens, cut between sentences.

    ``characters`` of a document's record has, for each token, where it begins and ends in the text.
    """
    check_count("part", part)
    parts = list(_parts(text, part))
    records = [
        {
            "id": name if len(parts) == 1 else f"{name}-{number}",
            "tokens": [token.text for sentence in sentences for token in sentence],
            "sentences": _bounds([len(sentence) for sentence in sentences]),
            "mentions": [],
            "characters": [[token.start, token.end] for sentence in sentences for token in sentence],
        }
        for number, sentences in enumerate(parts, 1)
    ]
    return [document_from(record, where=name, name=name) for record in records]


def _parts(text: str, size: int) -> Iterator[list[Any]]:
    """Cut the sentences of a text into runs of about so many tokens."""
    part: list[Any] = []
    tokens = 0
    for sentence in split_sentences(text):
        if part and tokens + len(sentence) > size:
            yield part
            part, tokens = [], 0
        part.append(sentence)
        tokens += len(sentence)
    if part:
        yield part


def _bounds(sizes: Sequence[int]) -> list[list[int]]:
    bounds, begin = [], 0
    for size in sizes:
        bounds.append([begin, begin + size])
        begin += size
    return bounds


def _label(kind_of_thing: str, kind: str | None) -> str:
    return f"{kind_of_thing}{_SEPARATOR}{kind or ''}"


def _read_label(label: str) -> dict[str, str]:
    """Return what a label of the finder says of a mention."""
    kind_of_thing, _, kind = label.rpartition(_SEPARATOR)
    read = {"type": kind_of_thing, "mtype": kind}
    return {name: value for name, value in read.items() if value}
