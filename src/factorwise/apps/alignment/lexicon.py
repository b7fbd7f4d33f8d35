"""Find words of two ontologies that may be synonymous or redundant, without labels.

Words with the same beginning may be forms of one word (larynx, laryngeal). Words that replace each other if
the rest of a name stays the same (kidney cortex, renal cortex; kidney pelvis, renal pelvis) may be synonyms.
Words that one side adds to names of the other (sartorius, sartorius muscle) may be redundant. Words that
*one* ontology distinguishes are evidence against both: left lung and right lung, lung and left lung.

These counts are over all names, so that a pair of names can be scored by evidence from *other* names. Names
are counted twice: first over stems, and then with the frequent replacements of the first round merged into
one word, which reveals further replacements.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations, product

from factorwise.apps.alignment.concepts import ConceptTable, stem

Words = frozenset[str]
Replacement = tuple[Words, Words]

SHORTEST_BEGINNING = 4  # least number of initial letters that two forms of a word share
SHARED_BEGINNING = 0.6  # least share of the shorter word that is shared
SPELLING = ABBREVIATED = 0.8  # agreement of two spellings, and of a word and its initial
ONCE, OFTEN = 0.6, 0.9  # agreement of words that replace each other once, and often
USUAL = 0.75  # least count of a replacement, relative to the most frequent one of either
SEEN_OFTEN = 2  # least count to be frequent
SEEN_TO_MERGE = 3  # least count of a replacement for its words to be merged
MOST_REPLACED = 40  # most alternatives beside the same rest of a name
LARGEST_GROUP = 2  # most words that are replaced together


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Counts of words that alternate in the names of two ontologies; all words are in their common form.

    common
        Common form of each word: its stem, or the stem of a word that often replaces it.
    replaced
        One or two words of the left and of the right with the same rest, in names that only one side has.
    contrasted
        Two words with the same rest within one ontology, in both orders.
    added
        A word that a name of one side has and one of the other lacks, with the same rest.
    set_apart
        A word that distinguishes two names within one ontology by being added.
    names
        Names that only the left side has, and those that only the right side has.
    shared_words
        Words that both sides use.
    """

    common: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[Replacement, int] = field(default_factory=dict)
    contrasted: Mapping[tuple[str, str], int] = field(default_factory=dict)
    added: Mapping[str, int] = field(default_factory=dict)
    set_apart: Mapping[str, int] = field(default_factory=dict)
    names: tuple[frozenset[Words], frozenset[Words]] = (frozenset(), frozenset())
    shared_words: Words = frozenset()

    @classmethod
    def of(cls, left: ConceptTable, right: ConceptTable) -> Lexicon:
        """Build the lexicon from all names of both ontologies."""
        every = sorted({word for table in (left, right) for word in _words(table)})
        stems = {word: stem(word) for word in every}
        first = cls._counted(left, right, stems)
        merged = _merged(first)
        return cls._counted(left, right, {word: merged.get(form, form) for word, form in stems.items()})

    @classmethod
    def _counted(cls, left: ConceptTable, right: ConceptTable, common: Mapping[str, str]) -> Lexicon:
        ours, theirs = _names(left, common), _names(right, common)
        contrasted, set_apart = _apart(ours)
        more_contrasted, more_set_apart = _apart(theirs)
        left_rests, right_rests = (_rests(names, LARGEST_GROUP) for names in (ours - theirs, theirs - ours))
        replaced: Counter[Replacement] = Counter()
        for rest in left_rests.keys() & right_rests.keys():
            if len(left_rests[rest]) * len(right_rests[rest]) <= MOST_REPLACED:
                found = product(left_rests[rest], right_rests[rest])
                replaced.update((a, b) for a, b in found if not a & b)
        added = Counter(_single(left_rests, theirs - ours))
        added.update(_single(right_rests, ours - theirs))
        return cls(
            common=common,
            replaced=replaced,
            contrasted=contrasted + more_contrasted,
            added=added,
            set_apart=set_apart + more_set_apart,
            names=(frozenset(ours - theirs), frozenset(theirs - ours)),
            shared_words=frozenset(_words(left)) & frozenset(_words(right)),
        )

    def forms(self, words: Iterable[str]) -> Words:
        """Return the common forms of words."""
        return frozenset(self.common.get(word) or stem(word) for word in words)

    def counted(self, ours: Words, theirs: Words) -> Replacement | None:
        """Return the replacement that was counted for this pair of names in common forms, or None."""
        rest = ours & theirs
        groups = ours - rest, theirs - rest
        sizes = all(1 <= len(group) <= LARGEST_GROUP for group in groups)
        return groups if rest and sizes and ours in self.names[0] and theirs in self.names[1] else None

    def agreement(self, a: str, b: str, counted: Replacement | None = None) -> float:
        """Return the agreement of a word of the left with one of the right, from 0 to 1.

        counted
            The replacement counted for the names at hand, which is excluded from the evidence.
        """
        known = self._alike.get((a, b))
        if known is None:
            known = self._alike[a, b] = self._look(a, b)
        alike, replacing = known
        return max(alike, self.replacement(*replacing, counted)) if replacing else alike

    def _look(self, a: str, b: str) -> tuple[float, Replacement | None]:
        """Return the agreement of two words by spelling, and a replacement that may increase it."""
        if a == b:
            return 1.0, None
        x, y = (self.common.get(word) or stem(word) for word in (a, b))
        if x == y:
            return OFTEN, None
        alike = beginning(a, b)
        if self.contrasted.get((x, y), 0):
            return alike, None
        if alike < SPELLING and not (a in self.shared_words and b in self.shared_words):
            alike = max(alike, spelling(a, b))
        if 1 == min(len(a), len(b)) < max(len(a), len(b)) and a[0] == b[0] and a[0].isalpha():
            alike = max(alike, ABBREVIATED)
        pair = frozenset([x]), frozenset([y])
        return alike, pair if pair in self.replaced else None

    def replacement(self, ours: Words, theirs: Words, counted: Replacement | None = None) -> float:
        """Return the evidence that words of the left are replaced by words of the right, from 0 to 1.

        Only replacements about as frequent as any other of either count; ``counted`` is as in `agreement`.
        """
        count = self.replaced.get((ours, theirs), 0)
        others = count - ((ours, theirs) == counted)
        if others < 1 or count < USUAL * max(self._most[ours, 0], self._most[theirs, 1]):
            return 0.0
        return OFTEN if others >= SEEN_OFTEN else ONCE

    def idle(self, form: str, alone: bool, share: float = 1.0) -> bool:
        """Return whether a word that only one of two names has is redundant, by the evidence of other names.

        alone
            Whether the two names differ only by this word and were therefore counted.
        share
            Least ratio of the counts in which it is redundant to those in which it distinguishes names.
        """
        seen = self.added.get(form, 0) - alone
        return seen >= SEEN_OFTEN and seen >= share * self.set_apart.get(form, 0)

    def translations(self) -> dict[str, tuple[str, ...]]:
        """Return for each form of the left its frequent replacements on the right, without contrasts."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for (ours, theirs), count in self.replaced.items():
            if count >= SEEN_OFTEN and len(ours) == 1:
                (a,) = ours
                found[a] |= {b for b in theirs if not self.contrasted.get((a, b))}
        return {form: tuple(sorted(others)) for form, others in found.items()}

    @cached_property
    def _alike(self) -> dict[tuple[str, str], tuple[float, Replacement | None]]:
        """Cache of `_look`, because words recur in thousands of pairs."""
        return {}

    @cached_property
    def _most(self) -> dict[tuple[Words, int], int]:
        """Count of the most frequent replacement of each group of words of a side."""
        most: Counter[tuple[Words, int]] = Counter()
        for sides, count in self.replaced.items():
            for side, group in enumerate(sides):
                most[group, side] = max(most[group, side], count)
        return dict(most)


def beginning(a: str, b: str) -> float:
    """Return the share of the shorter word that is a shared beginning; 0 if it is too short."""
    shared = _shared(a, b)
    shorter = min(len(a), len(b))
    return shared / shorter if shared >= max(SHORTEST_BEGINNING, SHARED_BEGINNING * shorter) else 0.0


def spelling(a: str, b: str) -> float:
    """Return `SPELLING` if two words differ by one inner letter (gray, grey; celiac, coeliac), or else 0."""
    shorter, longer = sorted((len(a), len(b)))
    if shorter < SHORTEST_BEGINNING or longer - shorter > 1 or a[0] != b[0] or a[-1] != b[-1]:
        return 0.0
    first = _shared(a, b)
    last = _shared(a[::-1], b[::-1])
    return SPELLING if first + last >= longer - 1 else 0.0


def _shared(a: str, b: str) -> int:
    """Return the length of the common prefix of two words."""
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length


def _merged(lexicon: Lexicon) -> dict[str, str]:
    """Return the forms of the left with a mutually most frequent replacement on the right, and it."""
    merged: dict[str, str] = {}
    for (ours, theirs), count in sorted(
        lexicon.replaced.items(), key=lambda item: (item[1], *map(sorted, item[0]))
    ):
        if count >= SEEN_TO_MERGE and len(ours) == len(theirs) == 1:
            (a,), (b,) = ours, theirs
            usual = count == lexicon._most[ours, 0] == lexicon._most[theirs, 1]
            if usual and not lexicon.contrasted.get((a, b), 0):
                merged[a] = b
    return {a: b for a, b in merged.items() if b not in merged}


def _words(table: ConceptTable) -> Iterable[str]:
    return (word for names in table.names for name in names for word in name.words)


def _names(table: ConceptTable, common: Mapping[str, str]) -> set[Words]:
    every = (frozenset(common[word] for word in name.words) for names in table.names for name in names)
    return {name for name in every if name}


def _rests(names: Iterable[Words], most: int) -> dict[Words, set[Words]]:
    """Return the groups of up to ``most`` words of each name, by the rest of the name."""
    rests: defaultdict[Words, set[Words]] = defaultdict(set)
    for name in names:
        for size in range(1, min(most, len(name) - 1) + 1):
            for group in combinations(name, size):
                rests[name.difference(group)].add(frozenset(group))
    return rests


def _single(rests: Mapping[Words, set[Words]], names: set[Words]) -> list[str]:
    """Return the words whose removal from a name leaves one of ``names``."""
    return [
        word for rest in rests.keys() & names for group in rests[rest] if len(group) == 1 for word in group
    ]


def _apart(names: set[Words]) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Return the counts of words that alternate, and of words that are added, within one ontology."""
    contrasted: Counter[tuple[str, str]] = Counter()
    set_apart: Counter[str] = Counter()
    for rest, groups in _rests(names, 1).items():
        alternating = [word for group in groups for word in group]
        if len(alternating) <= MOST_REPLACED:
            contrasted.update(permutations(alternating, 2))
        if rest in names:
            set_apart.update(alternating)
    return contrasted, set_apart
