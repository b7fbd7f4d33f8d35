"""Evidence from the names of two concepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.alignment.concepts import ConceptTable, Name, head_word
from factorwise.apps.alignment.lexicon import Lexicon, Replacement, Words
from factorwise.types import Ints

MATCHED = 0.6  # least agreement of two matching words
NEARLY = 0.25  # least ratio of redundant to distinguishing counts of a nearly redundant word
_LEVELS = 2  # levels of ancestors in whose names omitted words are searched


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The comparison of two names by words.

    overlap
        Rarity of the matching words, weighted by their agreement, divided by that of all words of both.
    covered
        The same for the words of one name, whichever gives the larger value.
    left_over, right_over
        Words without a match in the other name.
    counted
        The replacement that the lexicon counted for these two names.
    """

    left: Name
    right: Name
    overlap: float
    covered: float
    left_over: tuple[str, ...]
    right_over: tuple[str, ...]
    counted: Replacement | None


class NameEvidence:
    """Compares the names of the concepts of two ontologies."""

    def __init__(self, left: ConceptTable, right: ConceptTable, lexicon: Lexicon) -> None:
        self.left = left
        self.right = right
        self.lexicon = lexicon
        self.rarity = _rarity(left, right)
        self.left_context = _context(left, lexicon)
        self.right_context = _context(right, lexicon)

    def columns(self, pairs: Ints) -> dict[str, NDArray[np.float64]]:
        """Return named numbers from 0 to 1 for every pair: float64[pairs] each."""
        rows = [self._row(a, b) for a, b in pairs.tolist()]
        return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in self._row(0, 0)}

    def _row(self, a: int, b: int) -> dict[str, float]:
        ours, theirs = self.left.names[a], self.right.names[b]
        best = self._compare(ours[0], theirs[0])
        if len(ours) > 1 or len(theirs) > 1:
            compared = [self._compare(mine, its) for mine in ours for its in theirs]
            best = max(compared, key=lambda found: found.overlap)
        return (
            self._labels(ours[0], theirs[0])
            | self._words(best)
            | self._left_over(best, a, b)
            | _numbers(best)
        )

    def _labels(self, one: Name, other: Name) -> dict[str, float]:
        return {
            "same label": float(one.words == other.words),
            "same words of labels": float(set(one.words) == set(other.words)),
        }

    def _words(self, best: _Comparison) -> dict[str, float]:
        one, other = set(best.left.words), set(best.right.words)
        heads = head_word(best.left.text), head_word(best.right.text)
        return {
            "same words": float(one == other),
            "same letters": float("".join(best.left.words) == "".join(best.right.words)),
            "all words match": float(not best.left_over and not best.right_over),
            "left within right": float(not best.left_over and bool(best.right_over)),
            "right within left": float(not best.right_over and bool(best.left_over)),
            "overlap": best.overlap,
            "covered": best.covered,
            "same head": float(heads[0] == heads[1]),
            "heads match": float(self.lexicon.agreement(*heads, counted=best.counted) >= MATCHED),
            "head in other": float(heads[0] in other or heads[1] in one),
            "initials": float(_initials(best.left, best.right) or _initials(best.right, best.left)),
        }

    def _left_over(self, best: _Comparison, a: int, b: int) -> dict[str, float]:
        """Return numbers for unmatched words: in names above, redundant, replaced, or in contrast."""
        lexicon = self.lexicon
        ours, theirs = lexicon.forms(best.left_over), lexicon.forms(best.right_over)
        over = ours | theirs
        alone = len(over) == 1
        said = (ours & self.right_context[b]) | (theirs & self.left_context[a])
        idle = {form for form in over if lexicon.idle(form, alone)}
        nearly = {form for form in over if lexicon.idle(form, alone, NEARLY)}
        replaced = lexicon.replacement(ours, theirs, best.counted)
        contrast = max((lexicon.contrasted.get((x, y), 0) for x in ours for y in theirs), default=0)
        unexplained = [
            word
            for word in (*best.left_over, *best.right_over)
            if not replaced and not lexicon.forms([word]) <= said | idle
        ]
        total = self._weight(best.left.words) + self._weight(best.right.words)
        return {
            "unmatched explained": float(bool(over) and not unexplained),
            "unmatched said above": float(bool(over) and said == over),
            "unmatched idle": float(bool(over) and idle == over),
            "unmatched nearly idle": float(bool(over) and nearly == over),
            "unmatched replaced": float(replaced),
            "explained overlap": 1 - self._weight(unexplained) / total if total else 0.0,
            "contrast": float(contrast > 0),
            "frequent contrast": float(contrast > 2),
        }

    def _compare(self, one: Name, other: Name) -> _Comparison:
        ours, theirs = set(one.words), set(other.words)
        shared = ours & theirs
        counted = self.lexicon.counted(self.lexicon.forms(ours), self.lexicon.forms(theirs))
        # Keep the order of words: sums over sets would be rounded differently in each run.
        left_best = {word: float(word in shared) for word in one.words}
        right_best = {word: float(word in shared) for word in other.words}
        for x in ours - shared:
            for y in theirs - shared:
                value = self.lexicon.agreement(x, y, counted)
                left_best[x] = max(left_best[x], value)
                right_best[y] = max(right_best[y], value)
        total = matched = covered = 0.0
        for best in (left_best, right_best):
            side = self._weight(best)
            found = sum(self.rarity[word] * value for word, value in best.items() if value >= MATCHED)
            total += side
            matched += found
            covered = max(covered, found / side if side else 0.0)
        return _Comparison(
            one,
            other,
            matched / total if total else 0.0,
            covered,
            tuple(word for word, value in left_best.items() if value < MATCHED),
            tuple(word for word, value in right_best.items() if value < MATCHED),
            counted,
        )

    def _weight(self, words: Iterable[str]) -> float:
        return sum(self.rarity[word] for word in words)


def _rarity(left: ConceptTable, right: ConceptTable) -> dict[str, float]:
    """Return the log rarity of each word among the concepts of the side where it is more frequent."""
    rarity: dict[str, float] = {}
    for table in (left, right):
        held = Counter(word for names in table.names for word in {w for n in names for w in n.words})
        for word, count in held.items():
            rare = log((1 + len(table)) / (1 + count)) + 0.5
            rarity[word] = min(rare, rarity.get(word, rare))
    return rarity


def _context(table: ConceptTable, lexicon: Lexicon) -> list[Words]:
    """Return the words, in common form, of the names of the near ancestors of each concept."""
    own = [lexicon.forms(word for name in names for word in name.words) for names in table.names]
    over = [(*p, *w) for p, w in zip(table.parents, table.wholes, strict=True)]
    context = []
    for concept in range(len(table)):
        reached: set[int] = set()
        layer = {concept}
        for _ in range(_LEVELS):
            layer = {above for below in layer for above in over[below]} - {concept}
            reached |= layer
        context.append(frozenset[str]().union(*(own[above] for above in reached)))
    return context


def _numbers(best: _Comparison) -> dict[str, float]:
    ours, theirs = ({word for word in name.words if word.isdigit()} for name in (best.left, best.right))
    return {
        "numbers agree": float(bool(ours) and ours == theirs),
        "numbers differ": float(bool(ours and theirs) and ours != theirs),
        "number on one side": float(bool(ours) != bool(theirs)),
    }


def _initials(short: Name, long: Name) -> bool:
    """Return whether one name consists of the initials of the other's words."""
    letters = "".join(short.words)
    return 1 < len(letters) == len(long.words) and letters == "".join(word[0] for word in long.words)
