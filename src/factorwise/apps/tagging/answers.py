"""Answers about sentences that need more than labels: the k best sequences, spans and how sure they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.errors import InvalidArgumentError
from factorwise.io.listing import some
from factorwise.metrics.sequence import SpanCounter
from factorwise.types import Ints
from factorwise.variables.sparse_rows import SparseRows


class Span(NamedTuple):
    """A span that was found: its type, its tokens from ``start`` to before ``end``, and its probability."""

    kind: str
    start: int
    end: int
    confidence: float


def n_best(
    tagger: ChainTagger, rows: SparseRows, start: NDArray[np.int64], k: int
) -> Iterator[list[tuple[list[Any], float]]]:
    """Yield for each sentence its ``k`` most probable label sequences, each with its probability."""
    for node in tagger.node_scores(rows, start):
        log_total = tagger.log_partition_of(node)
        yield [
            ([tagger.labels[code] for code in best.values], float(np.exp(best.score - log_total)))
            for best in tagger.k_best(node, k)
        ]


def _refuse_plain(counter: SpanCounter) -> None:
    """Refuse labels that name no spans: their first letters would be taken for prefixes."""
    plain = [label for label in counter.unusual if len(label) > 1]
    if plain:
        raise InvalidArgumentError(
            f"the labels {some(plain)} name no spans, which are labelled O or with a prefix and a type, as"
            " B-PER and I-PER. Ask for labels instead, or train with such labels."
        )


def spans_of(
    tagger: ChainTagger, rows: SparseRows, start: NDArray[np.int64], path: Ints
) -> Iterator[list[Span]]:
    """Yield for each sentence the spans of the labels in ``path``, each with its probability.

    That is the probability that its tokens have these labels, and that it neither begins before nor goes on
    after them.
    """
    counter = SpanCounter([str(label) for label in tagger.labels])
    _refuse_plain(counter)
    found = counter.find(path, start)
    goes_on = counter.goes_on
    first = np.searchsorted(found.start, start).tolist()
    for sentence, node in enumerate(tagger.node_scores(rows, start)):
        offset = int(start[sentence])
        codes = path[offset : start[sentence + 1]].tolist()
        spans = []
        log_total = tagger.log_partition_of(node) if first[sentence] < first[sentence + 1] else 0.0
        for which in range(first[sentence], first[sentence + 1]):
            begin, end = int(found.start[which]) - offset, int(found.end[which]) - offset
            after, before = goes_on[codes[end - 1]], goes_on[:, codes[begin]]
            share = tagger.span_probability(node, codes, begin, end, after, before, log_total)
            spans.append(Span(counter.types[found.type[which]], begin, end, share))
        yield spans
