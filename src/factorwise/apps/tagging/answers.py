"""Answers beyond labels: the k best sequences, spans with their probability, and explanations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.errors import InvalidArgumentError
from factorwise.io.listing import some
from factorwise.metrics.sequence import SpanCounter
from factorwise.types import Floats, Ints
from factorwise.variables.sparse_rows import SparseRows


class Span(NamedTuple):
    """A predicted span: its type, its tokens from ``start`` to ``end`` (exclusive), and its probability."""

    kind: str
    start: int
    end: int
    confidence: float


class Explanation(NamedTuple):
    """The contributions to the score of each label of one token.

    label, probability
        The label in the most probable path, and its marginal probability.
    added
        For each attribute of the token, what it adds to the score of each label for which it has a weight.
    before, after
        What the transitions from the labels before the token in the path, and to those after it, add to the
        score of each label; empty at the edges of the sentence.
    """

    label: Any
    probability: float
    added: dict[str, dict[Any, float]]
    before: dict[Any, float]
    after: dict[Any, float]


def explain_tokens(
    tagger: ChainTagger, names: Sequence[str], rows: SparseRows, path: Ints, probability: Floats
) -> Iterator[Explanation]:
    """Yield an explanation for each token of one sentence.

    names
        The names of the attributes.
    path, probability
        The codes of the labels in the most probable path, and the marginal probabilities of all labels.
    """
    transitions = dict(
        zip(map(tuple, tagger.structure.transitions()), tagger.transition_weights.tolist(), strict=True)
    )
    chosen = path.tolist()
    for token, label in enumerate(chosen):
        before, after = {}, {}
        for code, name in enumerate(tagger.classes):
            changed = [*chosen[:token], code, *chosen[token + 1 :]]
            before[name] = _steps_ending(changed, token, token, transitions)
            ends = range(token + 1, min(token + 3, len(changed)))
            after[name] = sum(_steps_ending(changed, end, token, transitions) for end in ends)
        attributes = _attributes_of(tagger, names, rows, token)
        yield Explanation(
            tagger.classes[label],
            float(probability[token, label]),
            attributes,
            before if token else {},
            after if token + 1 < len(chosen) else {},
        )


def _steps_ending(
    labels: Sequence[int], end: int, token: int, transitions: Mapping[tuple[int, ...], float]
) -> float:
    """Sum the weights of transitions of two or three labels that end at ``end`` and contain ``token``."""
    windows = (tuple(labels[begin : end + 1]) for begin in (end - 1, end - 2) if 0 <= begin <= token)
    return sum(transitions.get(window, 0.0) for window in windows)


def _attributes_of(
    tagger: ChainTagger, names: Sequence[str], rows: SparseRows, token: int
) -> dict[str, dict[Any, float]]:
    """Return what each attribute of a token adds to the score of each label for which it has a weight."""
    start, label, weights = tagger.features.start, tagger.features.label, tagger.state_weights
    added: dict[str, dict[Any, float]] = {}
    for entry in range(int(rows.indptr[token]), int(rows.indptr[token + 1])):
        attribute = int(rows.indices[entry])
        value = 1.0 if rows.values is None else float(rows.values[entry])
        by_label = added.setdefault(names[attribute], {})
        for k in range(int(start[attribute]), int(start[attribute + 1])):
            name = tagger.classes[int(label[k])]
            by_label[name] = by_label.get(name, 0.0) + value * float(weights[k])
    return added


def n_best(
    tagger: ChainTagger, rows: SparseRows, start: NDArray[np.int64], k: int
) -> Iterator[list[tuple[list[Any], float]]]:
    """Yield the ``k`` most probable label sequences of each sentence, each with its probability."""
    for node in tagger.node_scores(rows, start):
        log_total = tagger.log_partition_of(node)
        yield [
            ([tagger.classes[code] for code in best.values], float(np.exp(best.score - log_total)))
            for best in tagger.k_best(node, k)
        ]


def _refuse_plain(counter: SpanCounter) -> None:
    """Raise an error if labels are not span labels: their first letters would be mistaken for prefixes."""
    plain = [label for label in counter.unusual if len(label) > 1]
    if plain:
        raise InvalidArgumentError(
            f"the labels {some(plain)} name no spans, which are labelled O or with a prefix and a type, as"
            " B-PER and I-PER. Ask for labels instead, or train with such labels."
        )


def spans_of(
    tagger: ChainTagger, rows: SparseRows, start: NDArray[np.int64], path: Ints
) -> Iterator[list[Span]]:
    """Yield the spans of the labels in ``path`` for each sentence, each with its probability.

    This is the probability that the tokens have these labels and that the span neither begins before nor
    continues after them.
    """
    counter = SpanCounter([str(label) for label in tagger.classes])
    _refuse_plain(counter)
    found = counter.find(path, start)
    bounds = np.searchsorted(found.start, start).tolist()
    for sentence, node in enumerate(tagger.node_scores(rows, start)):
        first, last = bounds[sentence : sentence + 2]
        if first == last:
            yield []
            continue
        offset = int(start[sentence])
        codes = path[offset : start[sentence + 1]].tolist()
        begin, end = found.start[first:last] - offset, found.end[first:last] - offset
        places = list(zip(begin.tolist(), end.tolist(), strict=True))
        shares = tagger.span_probabilities(node, codes, places, counter.goes_on)
        types = [counter.types[code] for code in found.type[first:last]]
        yield [Span(kind, *place, share) for kind, place, share in zip(types, places, shares, strict=True)]
