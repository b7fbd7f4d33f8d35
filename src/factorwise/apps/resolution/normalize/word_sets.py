"""Sets of words that are written as one text."""

from __future__ import annotations

from collections import Counter

from factorwise.errors import InvalidArgumentError


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set; raise an error if one is in capitals or occurs twice."""
    words = Counter(text.split())
    wrong = [word for word, count in words.items() if count > 1 or word != word.casefold()]
    if wrong:
        raise InvalidArgumentError(f"a set of words has {wrong} twice, or in capitals. Correct it there.")
    return frozenset(words)
