"""Texts of concepts: comments, and names and descriptions of their instances.

Two directories often list the same instances. An instance in both would make the texts of two concepts
similar whatever they are about, and how many are shared depends on how the directories were made. So there
are two separate kinds of evidence: the share of common instances, and the similarity of texts if each
shared instance is used on one side only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from factorwise.apps.alignment.concepts import STOP_WORDS, ConceptTable, words
from factorwise.apps.alignment.vectors import tfidf
from factorwise.types import Ints

_STEM = 8  # first letters of a word that are kept, without most endings


def text_words(text: str) -> list[str]:
    """Return the content words of a text, truncated to stems."""
    return [
        word[:_STEM]
        for word in words(text)
        if len(word) > 2 and not word.isdigit() and word not in STOP_WORDS
    ]


def text_vectors(
    left: ConceptTable, right: ConceptTable, *, below: bool = False
) -> tuple[csr_array, csr_array]:
    """Return tf-idf vectors of length one of the texts of each concept; zero if it has no texts.

    below
        Include the texts of all descendants of a concept by is-a.
    """
    ours, theirs = _without_shared(left, right)
    if below:
        ours, theirs = _gathered(left, ours), _gathered(right, theirs)
    return tfidf(ours, theirs)


def shared_instances(left: ConceptTable, right: ConceptTable, pairs: Ints) -> NDArray[np.float64]:
    """Return the number of shared instances of each pair, divided by the smaller number of instances."""
    ours, theirs = ([set(map(_thing, listed)) for listed in table.instances] for table in (left, right))
    found = np.zeros(len(pairs))
    for row, (a, b) in enumerate(pairs.tolist()):
        fewer = min(len(ours[a]), len(theirs[b]))
        if fewer:
            found[row] = len(ours[a] & theirs[b]) / fewer
    return found


def _thing(instance: tuple[str, str]) -> tuple[str, ...]:
    """Return the key by which instances are equal: the words of the name."""
    return words(instance[0])


def _without_shared(left: ConceptTable, right: ConceptTable) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words of comments and instances; shared instances go to left and right alternately."""
    listed = {_thing(item) for items in right.instances for item in items}
    shared = dict.fromkeys(_thing(item) for items in left.instances for item in items)
    turn = {thing: place % 2 for place, thing in enumerate(thing for thing in shared if thing in listed)}
    sides = []
    for side, table in enumerate((left, right)):
        bags = []
        for comment, items in zip(table.comments, table.instances, strict=True):
            kept = [item for item in items if turn.get(_thing(item), side) == side]
            bags.append(text_words(" ".join([comment, *(f"{name} {text}" for name, text in kept)])))
        sides.append(bags)
    return sides[0], sides[1]


def _gathered(table: ConceptTable, bags: Sequence[list[str]]) -> list[list[str]]:
    """Return the bags of words with those of all descendants added."""
    full = [list(bag) for bag in bags]
    for concept in range(len(table)):
        waiting, seen = list(table.parents[concept]), {concept}
        while waiting:
            over = waiting.pop()
            if over not in seen:
                seen.add(over)
                full[over] += bags[concept]
                waiting += table.parents[over]
    return full
