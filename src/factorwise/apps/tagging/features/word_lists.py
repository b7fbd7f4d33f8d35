"""Columns that are looked up from the words: gazetteers (lists of phrases) and word classes.

A gazetteer is a text with one phrase per line, whose words are separated by spaces and tokenized like the
data. A token's value is ``S`` if it is a phrase by itself, ``B``, ``I`` or ``E`` if it begins, continues or
ends one, and ``-`` otherwise. Letter case is ignored, and the longest phrase wins.

Word classes are read from lines ``word<TAB>class``, with more classes in further columns, or from the
``paths`` file of Brown clustering, ``bits<TAB>word<TAB>count``, of which prefixes of 4, 6, 10 and 20 bits are
used. A word that is not listed is looked up in lower case, then with every digit replaced by 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.features.templates import VALUES, TemplateSet
from factorwise.errors import DataFileError, ModelFileError
from factorwise.types import Ints

OUTSIDE = "-"  # value of a token that is in no list
BROWN_PREFIXES = (4, 6, 10, 20)
LONGEST_PHRASE = 50  # words; longer lines are unlikely to be phrases
_DIGITS_AS_ZERO = VALUES["number"][0]


@dataclass(frozen=True, slots=True, eq=False)
class Gazetteer:
    """Phrases of one kind, such as names of cities; ``phrases`` holds their words in lower case."""

    name: str
    phrases: frozenset[tuple[str, ...]]
    kind: ClassVar[str] = "gazetteer"

    @classmethod
    def of(cls, name: str, phrases: Iterable[str]) -> Gazetteer:
        """Return a gazetteer of these phrases, without blank ones."""
        split = frozenset(tuple(phrase.lower().split()) for phrase in phrases) - {()}
        if not split:
            raise DataFileError(f"gazetteer {name!r} has no phrases: write one a line.")
        longest = max(split, key=len)
        if len(longest) > LONGEST_PHRASE:
            raise DataFileError(
                f"gazetteer {name!r}: {' '.join(longest)[:40]!r}... has {len(longest)} words, more than"
                f" {LONGEST_PHRASE}. Write one phrase a line."
            )
        return cls(name, split)

    def column(self, words: Sequence[str], start: Ints) -> list[str]:
        """Return the position of each token in the longest matching phrase: S, B, I, E, or - for none."""
        values = [OUTSIDE] * len(words)
        lower = [word.lower() for word in words]
        lengths: dict[str, list[int]] = {}
        for phrase in self.phrases:
            lengths.setdefault(phrase[0], []).append(len(phrase))
        longest_first = {word: sorted(set(sizes), reverse=True) for word, sizes in lengths.items()}
        for begin, end in pairwise(np.asarray(start).tolist()):
            token = begin
            while token < end:
                fitting = (
                    size
                    for size in longest_first.get(lower[token], ())
                    if token + size <= end and tuple(lower[token : token + size]) in self.phrases
                )
                size = next(fitting, 0)
                if size:
                    values[token : token + size] = ["S"] if size == 1 else ["B", *"I" * (size - 2), "E"]
                token += max(size, 1)
        return values

    def lines(self) -> list[str]:
        """Return the phrases in sorted order."""
        return sorted(map(" ".join, self.phrases))


@dataclass(frozen=True, slots=True, eq=False)
class WordClasses:
    """A mapping from words to classes."""

    name: str
    classes: Mapping[str, str]
    kind: ClassVar[str] = "classes"

    @classmethod
    def parse(cls, name: str, lines: Iterable[str]) -> list[WordClasses]:
        """Read a file of word classes; return one `WordClasses` for each column of classes."""
        rows = [(number, line.split("\t")) for number, line in enumerate(lines, 1) if line.strip()]
        if not rows:
            raise DataFileError(f"word classes {name!r}: there are no lines. Write word<TAB>class on each.")
        width = len(rows[0][1])
        for number, row in rows:
            if len(row) != width or width < 2 or not all(cell.strip() for cell in row):
                raise DataFileError(
                    f"word classes {name!r}, line {number}: {len(row)} columns, {row[:3]!r}. Write"
                    " word<TAB>class on every line, with the same number of classes each."
                )
        if width == 3 and all(re.fullmatch("[01]+", row[0]) and row[2].strip().isdigit() for _, row in rows):
            return [
                cls(f"{name}{bits}", {row[1]: row[0][:bits] for _, row in rows}) for bits in BROWN_PREFIXES
            ]
        return [
            cls(name if width == 2 else f"{name}{column}", {row[0]: row[column].strip() for _, row in rows})
            for column in range(1, width)
        ]

    def column(self, words: Sequence[str], start: Ints) -> list[str]:
        """Return the class of each token, or ``-`` if its word has none."""
        found: dict[str, str] = {}
        for word in words:
            if word not in found:
                forms = (word, word.lower(), _DIGITS_AS_ZERO(word.lower()))
                found[word] = next((self.classes[form] for form in forms if form in self.classes), OUTSIDE)
        return [found[word] for word in words]

    def lines(self) -> list[str]:
        """Return the lines ``word<TAB>class``."""
        return [f"{word}\t{code}" for word, code in self.classes.items()]


#: A list that defines a column computed from the words.
WordList = Gazetteer | WordClasses


def make_word_lists(
    gazetteers: Mapping[str, Iterable[str]] | None, word_classes: Mapping[str, Mapping[str, str]] | None
) -> list[WordList]:
    """Return a gazetteer for each list of phrases, and word classes for each table of classes."""
    lists: list[WordList] = [Gazetteer.of(*entry) for entry in (gazetteers or {}).items()]
    return lists + [WordClasses(name, dict(table)) for name, table in (word_classes or {}).items()]


def with_list_columns(templates: TemplateSet, n_columns: int, lists: Sequence[WordList]) -> TemplateSet:
    """Return the templates plus templates for the columns of the lists, which follow ``n_columns`` others."""
    templates.check(n_columns)
    names = [*templates.columns[:n_columns]]
    names += [f"c{number}" for number in range(len(names), n_columns)]
    extra: list[str] = []
    for number, word_list in enumerate(lists, n_columns):
        plain = re.sub(r"\W", "_", word_list.name)
        name = plain if re.fullmatch(r"[^\W\d]\w*", plain) and plain not in names else f"c{number}"
        if re.fullmatch(r"c\d+", name) or name in ("bias", "first", "last"):
            name = f"c{number}"
        names.append(name)
        extra += [f"{name}[{offset}]" for offset in (-1, 0, 1)]
        extra += [f"{name}[-1]|{name}[0]", f"{name}[0]|{name}[1]"]
    return TemplateSet.parse([*templates.lines(), *extra], names)


def lists_to_arrays(lists: Sequence[WordList]) -> tuple[dict[str, NDArray[Any]], list[dict[str, str]]]:
    """Return arrays and JSON values from which `lists_from_arrays` restores the lists."""
    arrays = {
        f"list{number}": np.frombuffer("\n".join(word_list.lines()).encode(), dtype=np.uint8)
        for number, word_list in enumerate(lists)
    }
    return arrays, [{"kind": word_list.kind, "name": word_list.name} for word_list in lists]


def lists_from_arrays(
    arrays: Mapping[str, NDArray[Any]], described: Sequence[Mapping[str, str]]
) -> tuple[WordList, ...]:
    """Restore the lists from the output of `lists_to_arrays`."""
    restored: list[WordList] = []
    for number, entry in enumerate(described):
        lines = arrays[f"list{number}"].tobytes().decode().split("\n")
        if entry["kind"] == Gazetteer.kind:
            restored.append(Gazetteer.of(entry["name"], lines))
        elif entry["kind"] == WordClasses.kind:
            pairs = (line.rsplit("\t", 1) for line in lines)
            restored.append(WordClasses(entry["name"], dict(pairs)))
        else:
            raise ModelFileError(
                f"the model has a word list of kind {entry['kind']!r}, which this factorwise does not know:"
                " upgrade it, or train again."
            )
    return tuple(restored)
