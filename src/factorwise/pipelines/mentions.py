"""Find mentions in plain text, as the input of coreference resolution.

A mention finder is a tagger of nested spans, trained on documents with annotated mentions: names, nominals
and pronouns, which may be nested ("her sister's husband").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from factorwise.apps.coreference.documents import Document, document_from
from factorwise.apps.tagging.nested import LEVELS, NestedTagger
from factorwise.apps.tagging.raw_text import split_sentences
from factorwise.errors import DataFileError
from factorwise.validation import check_count

PART = 2_000  # tokens that are resolved together, because the cost is quadratic in mentions
_SEPARATOR = "/"  # separates the type and the kind of a mention in labels of the finder


def train_mention_finder(
    documents: Sequence[Document],
    *,
    levels: int = LEVELS,
    max_iterations: int | None = None,
    n_jobs: int | None = None,
) -> NestedTagger:
    """Train a finder of mentions, with their types and kinds, on annotated documents.

    Sentences after ``full_until``, which are annotated only partly, and mentions that cross a sentence
    boundary are left out.
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
    """Return the documents with the mentions that the finder predicts, which replace their own.

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
    """Return a plain text as documents of about ``part`` tokens, split between sentences.

    ``characters`` of a document's record are the start and end of each token in the text.
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
    """Group the sentences of a text into parts of at most ``size`` tokens, or of one longer sentence."""
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
    """Return the type and the kind of a mention from a label of the finder."""
    kind_of_thing, _, kind = label.rpartition(_SEPARATOR)
    read = {"type": kind_of_thing, "mtype": kind}
    return {name: value for name, value in read.items() if value}
