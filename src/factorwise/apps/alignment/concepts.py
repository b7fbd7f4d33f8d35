"""Concepts as the input of the aligner: words of their names, place in the hierarchy, and texts.

Ids are never used for matching: in many taxonomies they contain the path, which would leak the answer if two
taxonomies are copies of each other, and would mislead otherwise.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from factorwise.io.ontologies.ontology import PROPERTY, Concept, Ontology

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_ROMAN = re.compile(r"(X{0,3})(IX|IV|V?I{0,3})")
_DIGITS = {"I": 1, "V": 5, "X": 10}
_NUMBERS = {
    "first": "1",
    "second": "2",
    "third": "3",
    "fourth": "4",
    "fifth": "5",
    "sixth": "6",
    "seventh": "7",
    "eighth": "8",
    "ninth": "9",
    "tenth": "10",
}
_SHORTEST_STEM = 4  # letters
# Longer endings come first, so that the longest match is removed.
_ENDING = re.compile(
    "(ical|ally|ious|ial|ian|ary|oid|ous|ies|al|ar|ic|us|um|is|es|ae|ia|en|er|em|s|i|a|e|n|y)$"
)
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and at by for from in of on or s the to with"
        " am aus bei das dem den der des die ein eine fuer im mit oder und vom von zu zum zur",
    )
)
PROPERTY_WORDS = frozenset({"has", "have", "is", "are", "be", "was", "hat", "ist"})  # ignored in properties


def words(text: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case without accents; joined words and digits are split.

    Roman numerals in capitals and the words for the first ten ordinals become digits.

    >>> words("T12_Vertebra"), words("upperLip"), words("cranial nerve VIII")
    (('t', '12', 'vertebra'), ('upper', 'lip'), ('cranial', 'nerve', '8'))
    """
    plain = unicodedata.normalize("NFKD", text.translate(_UMLAUTS))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    found = []
    for piece in _PIECE.findall(plain):
        roman = _ROMAN.fullmatch(piece)
        if roman:
            found.append(str(_roman(piece)))
        else:
            lower = piece.lower()
            found.append(_NUMBERS.get(lower, lower))
    return tuple(found)


def content_words(text: str) -> tuple[str, ...]:
    """Return the words without articles, prepositions and conjunctions, or all words if none are left."""
    every = words(text)
    return tuple(word for word in every if word not in STOP_WORDS) or every


@lru_cache(maxsize=1 << 16)  # names recur in many pairs
def head_word(text: str) -> str:
    """Return the head noun of a name: the word before the first preposition, or else the last word.

    >>> head_word("Body_of_the_Pancreas"), head_word("pancreas body")
    ('body', 'body')
    """
    every = words(text)
    for place, word in enumerate(every):
        if place and word in STOP_WORDS and word not in {"and", "or", "und", "oder", "s"}:
            return every[place - 1]
    return every[-1] if every else ""


def stem(word: str) -> str:
    """Remove an English, Latin or German ending from a word, if at least four letters remain.

    >>> stem("thymus"), stem("thymic"), stem("intestines"), stem("rib")
    ('thym', 'thym', 'intestin', 'rib')
    """
    found = _ENDING.search(word, _SHORTEST_STEM)
    return word[: found.start()] if found else word


def _roman(numeral: str) -> int:
    values = [_DIGITS[letter] for letter in numeral]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a concept: its text and its content words."""

    text: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Name:
        """Split a text into words."""
        return cls(text, content_words(text))


@dataclass(frozen=True, eq=False)
class ConceptTable:
    """The concepts of one ontology, numbered in the order of the file.

    ids
        Ids of the concepts, which are only used in results.
    names
        The label and then the synonyms, without duplicates.
    parents, wholes
        Indices of the concepts above each by is-a and by part-of, without concepts that the file does not
        contain. The wholes of a property are the classes of its domain and range, so that properties and
        classes are evidence for each other.
    kinds
        "class", "property" or "individual" for each; only concepts of the same kind match.
    disjoint
        Pairs of concepts that are declared disjoint.
    comments, instances
        Texts about the concept, and names and descriptions of its instances.
    """

    ids: tuple[str, ...]
    names: tuple[tuple[Name, ...], ...]
    parents: tuple[tuple[int, ...], ...]
    wholes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]
    disjoint: tuple[tuple[int, int], ...]
    comments: tuple[str, ...]
    instances: tuple[tuple[tuple[str, str], ...], ...]
    number: dict[str, int] = field(repr=False)

    @classmethod
    def of(cls, ontology: Ontology) -> ConceptTable:
        """Number the concepts and split their names."""
        concepts = ontology.concepts
        number = {concept.id: index for index, concept in enumerate(concepts)}
        return cls(
            ids=tuple(number),
            names=tuple(map(_names, concepts)),
            parents=tuple(_known(number, concept, concept.parents) for concept in concepts),
            wholes=tuple(
                _known(number, concept, (*concept.part_of, *concept.domain, *concept.range))
                for concept in concepts
            ),
            kinds=tuple(PROPERTY if concept.is_property else concept.kind for concept in concepts),
            disjoint=tuple(
                (index, other)
                for index, concept in enumerate(concepts)
                for other in _known(number, concept, concept.disjoint)
            ),
            comments=tuple(concept.comment for concept in concepts),
            instances=tuple(concept.instances for concept in concepts),
            number=number,
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the children of each concept by is-a."""
        return _inverse(self.parents)

    @cached_property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the direct parts of each concept."""
        return _inverse(self.wholes)

    @cached_property
    def ancestors(self) -> tuple[frozenset[int], ...]:
        """Ancestors of each concept by is-a and part-of, without the concept itself."""
        above = [(*parents, *wholes) for parents, wholes in zip(self.parents, self.wholes, strict=True)]
        return tuple(_reached(concept, above) for concept in range(len(self)))

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """Number of is-a steps from each concept up to the nearest root."""
        depth = [0 if not parents else -1 for parents in self.parents]
        layer = [concept for concept, known in enumerate(depth) if known == 0]
        while layer:
            below = sorted({child for concept in layer for child in self.children[concept]})
            layer = [child for child in below if depth[child] < 0]
            for child in layer:
                depth[child] = 1 + min(depth[p] for p in self.parents[child] if depth[p] >= 0)
        return tuple(depth)


def _names(concept: Concept) -> tuple[Name, ...]:
    found: dict[tuple[str, ...], Name] = {}
    for text in (concept.label, *concept.synonyms):
        name = Name.of(text)
        if concept.is_property:
            name = Name(text, tuple(w for w in name.words if w not in PROPERTY_WORDS) or name.words)
        if name.words:
            found.setdefault(name.words, name)
    return tuple(found.values()) or (Name(concept.label, ()),)


def _known(number: dict[str, int], concept: Concept, ids: Sequence[str]) -> tuple[int, ...]:
    return tuple(number[above] for above in dict.fromkeys(ids) if above in number and above != concept.id)


def _inverse(above: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    below: list[list[int]] = [[] for _ in above]
    for concept, targets in enumerate(above):
        for target in targets:
            below[target].append(concept)
    return tuple(map(tuple, below))


def _reached(start: int, above: Sequence[Sequence[int]]) -> frozenset[int]:
    seen = {start}
    waiting = [start]
    while waiting:
        for concept in above[waiting.pop()]:
            if concept not in seen:
                seen.add(concept)
                waiting.append(concept)
    seen.discard(start)
    return frozenset(seen)
