"""All pairs of the mentions of a discourse, with the comparisons that several feature families use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.coreference.documents import Discourse
from factorwise.apps.coreference.mentions import mention_table
from factorwise.types import Bools, Floats, Ints

FAR = 10_000  # distance, in sentences or tokens, between mentions of different documents


class MentionPairs:
    """The pairs of n mentions, each once.

    mentions
        The mentions in columns.
    later, earlier : int[n (n - 1) / 2]
        The two mentions of each pair in the order of the text; pair (i, j) is row ``i (i - 1) / 2 + j``.
    """

    def __init__(self, discourse: Discourse) -> None:
        self.discourse = discourse
        self.mentions = mention_table(discourse)
        self.n = len(self.mentions)
        self.later, self.earlier = np.tril_indices(self.n, -1)

    def same(self, values: NDArray[Any]) -> Bools:
        """Return whether both mentions have the same value."""
        answer: Bools = values[self.later] == values[self.earlier]
        return answer

    def differ(self, codes: Ints) -> Bools:
        """Return whether the codes of both mentions are known (not 0) and different."""
        return self.both(codes > 0) & ~self.same(codes)

    def both(self, truths: Bools) -> Bools:
        """Return whether the condition holds for both mentions."""
        answer: Bools = truths[self.later] & truths[self.earlier]
        return answer

    def ordered(self, later: Bools, earlier: Bools) -> Bools:
        """Return whether ``later`` holds for the later mention and ``earlier`` for the earlier one."""
        answer: Bools = later[self.later] & earlier[self.earlier]
        return answer

    def one_each(self, first: Bools, second: Bools) -> Bools:
        """Return whether ``first`` holds for one mention and ``second`` for the other, in either order."""
        return self.ordered(first, second) | self.ordered(second, first)

    def of_square(self, square: NDArray[Any]) -> NDArray[Any]:
        """Return the values of a matrix with later mentions in rows and earlier mentions in columns."""
        values: NDArray[Any] = square[self.later, self.earlier]
        return values

    def rank(self, among: Bools) -> Ints:
        """Return the rank of each pair in ``among`` for its later mention, nearest first; 0 for others."""
        square = np.zeros((self.n, self.n), dtype=np.int32)
        square[self.later, self.earlier] = among
        counted = square[:, ::-1].cumsum(axis=1, dtype=np.int32)[:, ::-1]
        return np.where(among, self.of_square(counted), 0)

    def nearest(self, among: Bools) -> Ints:
        """Return the nearest earlier mention of each mention among the pairs in ``among``; -1 for none."""
        answer = np.full(self.n, -1, dtype=np.int64)
        answer[self.later[among]] = self.earlier[among]  # the last one, which is the nearest, stays
        return answer

    @cached_property
    def same_document(self) -> Bools:
        """Whether both mentions are in the same document."""
        return self.same(self.mentions.document)

    @cached_property
    def same_type(self) -> Bools:
        """Whether both mentions have the same type."""
        return self.same(self.mentions.type)

    @cached_property
    def sentences_apart(self) -> Ints:
        """Number of sentences between the two mentions; `FAR` across documents."""
        gap = self.mentions.sentence[self.later] - self.mentions.sentence[self.earlier]
        return np.where(self.same_document, gap, FAR)

    @cached_property
    def inside(self) -> Bools:
        """Whether the later mention is nested in the earlier one."""
        ends = self.mentions.end
        answer: Bools = self.same_document & (ends[self.later] <= ends[self.earlier])
        return answer

    @cached_property
    def genders_differ(self) -> Bools:
        """Whether the genders of both mentions are known and different."""
        return self.differ(self.mentions.gender)

    @cached_property
    def numbers_differ(self) -> Bools:
        """Whether the numbers (singular or plural) of both mentions are known and different."""
        return self.differ(self.mentions.number)

    @cached_property
    def compatible(self) -> Bools:
        """Whether the earlier mention could be the antecedent of the later one if that were a pronoun."""
        m = self.mentions
        leads = self.inside & (
            m.head_place[self.later] < m.head_place[self.earlier]
        )  # as "his" in "his uncle"
        return (
            self.same_document
            & self.same_type
            & self.both(m.person == 3)
            & ~self.differ(np.where(m.gender > 0, m.gender, m.leaning))
            & ~self.numbers_differ
            & ~leads
        )


def coded(strings: Sequence[str]) -> Ints:
    """Return a code for each string; an empty string differs from all others."""
    numbers: dict[str, int] = {}
    return np.array(
        [numbers.setdefault(s or f"\0{k}", len(numbers)) for k, s in enumerate(strings)], dtype=np.int64
    )


def shared(sets: Sequence[Iterable[str]], weights: Mapping[str, float] | None = None) -> Floats:
    """Return the matrix of the number (or the total weight) of words that two sets share."""
    numbers: dict[str, int] = {}
    rows, columns = [], []
    for row, words in enumerate(sets):
        for word in words:
            rows.append(row)
            columns.append(numbers.setdefault(word, len(numbers)))
    table = np.zeros((len(sets), max(1, len(numbers))), dtype=np.float32)
    table[rows, columns] = 1.0
    scale = [1.0 if weights is None else weights[word] for word in numbers] or [0.0]
    product: Floats = (table * np.array(scale, dtype=np.float32)) @ table.T
    return product
