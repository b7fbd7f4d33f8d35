"""Texts of concepts: comments, and names and descriptions of what is filed under them.

Two directories often list the very same things. A thing that both list would make the texts of two concepts
equal word by word, whatever they are about, and how many things are shared is a matter of how the
directories came about. So the two kinds of evidence are kept apart: how many things two concepts share, and
how alike their texts are when every shared thing counts on one side only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from factorwise.apps.alignment.concepts import STOP_WORDS, ConceptTable, words
from factorwise.apps.alignment.vectors import tfidf
from factorwise.types import Ints

_STEM = 8  # letters of a word that are kept: endings go, and the first part of most compounds stays


def text_words(text: str) -> list[str]:
    """Words of a running text that say something, cut to a stem."""
    return [
        word[:_STEM]
        for word in words(text)
        if len(word) > 2 and not word.isdigit() and word not in STOP_WORDS
    ]


def text_vectors(
    left: ConceptTable, right: ConceptTable, *, below: bool = False
) -> tuple[csr_array, csr_array]:
    """Vectors of length one of what the texts of each concept say; zero where there are none.

    below
        Take in the texts of everything below a concept by is-a.
    """
    ours, theirs = _without_shared(left, right)
    if below:
        ours, theirs = _gathered(left, ours), _gathered(right, theirs)
    return tfidf(ours, theirs)


def shared_instances(left: ConceptTable, right: ConceptTable, pairs: Ints) -> NDArray[np.float64]:
    """Things that both concepts of a pair list, over the number of things of the one with fewer."""
    ours, theirs = ([set(map(_thing, listed)) for listed in table.instances] for table in (left, right))
    found = np.zeros(len(pairs))
    for row, (a, b) in enumerate(pairs.tolist()):
        fewer = min(len(ours[a]), len(theirs[b]))
        if fewer:
            found[row] = len(ours[a] & theirs[b]) / fewer
    return found


def _thing(instance: tuple[str, str]) -> tuple[str, ...]:
    """What makes two listings the same thing: the words of its name."""
    return words(instance[0])


def _without_shared(left: ConceptTable, right: ConceptTable) -> tuple[list[list[str]], list[list[str]]]:
    """Words of comments and instances; things that both sides list go to left and right by turns."""
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
    """Bags with those of everything below added."""
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
