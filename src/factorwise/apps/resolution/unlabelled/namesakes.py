"""Namesakes: the expected number of other entities with the same identity value.

They are counted over *distinct* values, so that the number of records of an entity does not matter. The first
and last name of a person are modelled as independent; a text is modelled by bigrams of words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from factorwise.types import Bools, Ints

FEWEST, FEWEST_OF_TEXTS = 1e-4, 3e-3  # lower bounds of the namesakes, of persons and of texts
CONTAINED_BY_CHANCE, PER_CONTAINING = 3, 0.03  # containing texts that are ignored; namesakes per further one
MOST_LOOKED_AT = 300  # most texts that are checked, of those with the rarest word of a text
_BACKOFF = 2.0  # weight of a word's own frequency in the bigram estimate


def person_namesakes(
    last: Ints, given: Ints, initial: Ints, is_initial: Bools, records: Ints
) -> NDArray[np.float64]:
    """Return the expected number of namesakes of each distinct name.

    last, given, initial
        Ids of the parts of each distinct name; -1 where one is missing.
    is_initial
        Whether only the initial of the first name is known.
    records
        The number of records with the name.
    """
    n = len(last)
    if n == 0:
        return np.zeros(0)
    different = _share(last, np.ones(n), 0.5) * _given_share(given, initial, is_initial, np.ones(n), 0.5)
    weights = records.astype(float)
    counted = _share(last, weights, weights) * _given_share(given, initial, is_initial, weights, weights)
    # if many people share few names, counts of records are more accurate than counts of distinct names
    return np.asarray(np.maximum(n * np.maximum(different, counted), FEWEST))


def _share(
    codes: Ints, weights: NDArray[np.float64], own: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return the share of each row's code in the total weight, without the row itself; 1 if missing."""
    known = codes >= 0
    total = np.bincount(codes[known], weights=weights[known], minlength=int(codes.max(initial=0)) + 1)
    share = (np.append(total, 0.0)[codes] - own) / max(float(weights.sum()), 1.0)
    return np.where(known, share, 1.0)


def _given_share(
    given: Ints,
    initial: Ints,
    is_initial: Bools,
    weights: NDArray[np.float64],
    own: NDArray[np.float64] | float,
) -> NDArray[np.float64]:
    """Return the share of each first name, or of the initial if only that is known."""
    return np.where(is_initial, _share(initial, weights, own), _share(given, weights, own))


def text_namesakes(values: Sequence[str]) -> NDArray[np.float64]:
    """Return the namesakes of distinct texts: more for common words, and for texts that others contain."""
    texts = [value.split() for value in values]
    logs = _log_chances(texts)
    contained = np.maximum(_containing(texts) - CONTAINED_BY_CHANCE, 0) * PER_CONTAINING
    return np.maximum(np.exp(np.minimum(logs, 20.0)) + contained, FEWEST_OF_TEXTS)


def _log_chances(texts: Sequence[list[str]]) -> NDArray[np.float64]:
    """Return the log of the expected number of texts equal to each; its own words are not counted."""
    n = len(texts)
    words = Counter(word for text in texts for word in text)
    pairs = Counter(pair for text in texts for pair in zip(["", *text], text, strict=False))
    before = Counter(word for text in texts for word in ["", *text[:-1]])
    lengths = Counter(map(len, texts))
    total = max(sum(words.values()), 1)
    found = np.empty(n)
    for k, text in enumerate(texts):
        own_words = Counter(text)
        own_pairs = Counter(zip(["", *text], text, strict=False))
        own_before = Counter(["", *text[:-1]])
        log = np.log(max(lengths[len(text)] - 1.0, 0.5))
        rest = max(total - len(text), 1)
        for previous, word in zip(["", *text], text, strict=False):
            alone = max(words[word] - own_words[word], 0.5) / rest
            follows = pairs[previous, word] - own_pairs[previous, word]
            begins = before[previous] - own_before[previous]
            log += np.log((follows + _BACKOFF * alone) / (begins + _BACKOFF))
        found[k] = log
    return found


def _containing(texts: Sequence[list[str]]) -> NDArray[np.int64]:
    """Return how many other texts contain all words of each text, such as many for "greatest hits"."""
    sets = [frozenset(text) for text in texts]
    with_word: dict[str, list[int]] = {}
    for k, one in enumerate(sets):
        for word in one:
            with_word.setdefault(word, []).append(k)
    found = np.zeros(len(sets), np.int64)
    for k, one in enumerate(sets):
        if one:
            rarest = min((with_word[word] for word in one), key=len)[:MOST_LOOKED_AT]
            found[k] = sum(one < sets[other] for other in rarest)
    return found
