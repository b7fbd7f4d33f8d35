"""Phonetic codes of words, by the rules of NYSIIS, which are applied to all words at once.

Words that sound alike in American English get the same code. Unlike Soundex, the code keeps the positions of
vowels, so that blocks are much smaller. Each rule is applied to whole words rather than letter by letter, so
a few words get a different code than by the standard NYSIIS.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.variables.sparse_rows import starts_of

_BEGINNINGS = [("^mac", "mcc"), ("^kn", "nn"), ("^k", "c"), ("^p[hf]", "ff"), ("^sch", "sss")]
_ENDINGS = [("(?:ee|ie)$", "y"), ("(?:dt|rt|rd|nt|nd)$", "d")]
# The first letter is in upper case here, so that it is not changed.
_INNER = [
    ("ev", "af"),
    ("[eiou]", "a"),
    ("kn", "n"),
    ("q", "g"),
    ("z", "s"),
    ("m", "n"),
    ("k", "c"),
    ("sch", "s"),
    ("ph", "f"),
    ("([^aAEIOU])h", r"\1"),
    ("h([^a]|$)", r"\1"),
    ("([aAEIOU])w", r"\1"),
]
_LAST = [("s$", ""), ("ay$", "y"), ("a$", "")]


def sounds(words: pa.Array) -> pa.Array:
    """Return the phonetic codes of words in normal form; null for a word without Latin letters.

    Spaces and digits are ignored: ``de vega`` has the same code as ``devega``.

    >>> sounds(pa.array(["knight", "night", "7"])).to_pylist()
    ['nat', 'nat', None]
    """
    letters = _rewritten(words, [("[^a-z]+", ""), *_BEGINNINGS, *_ENDINGS])
    first = pc.utf8_slice_codeunits(letters, 0, 1)
    raised = pc.binary_join_element_wise(pc.utf8_upper(first), pc.utf8_slice_codeunits(letters, 1), "")
    coded = pc.utf8_lower(_rewritten(raised, _INNER))
    single = _without_repeats(coded)
    rest = _rewritten(pc.utf8_slice_codeunits(single, 1), _LAST)
    found = pc.binary_join_element_wise(first, rest, "")
    return pc.if_else(pc.equal(found, ""), None, found)


def _rewritten(words: pa.Array, rules: list[tuple[str, str]]) -> pa.Array:
    for pattern, replacement in rules:
        words = pc.replace_substring_regex(words, pattern, replacement)
    return words


def _without_repeats(words: pa.Array) -> pa.Array:
    """Reduce runs of equal letters to one letter; the words must be ASCII and not null."""
    plain = words.cast(pa.large_string())
    offsets = np.frombuffer(plain.buffers()[1], np.int64)[plain.offset : plain.offset + len(plain) + 1]
    if offsets[-1] == offsets[0]:
        return words
    letters = np.frombuffer(plain.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    kept = np.append(True, letters[1:] != letters[:-1])
    starts = (offsets - offsets[0])[:-1]
    kept[starts[starts < len(letters)]] = True
    places = starts_of(kept.view(np.int8))[offsets - offsets[0]]
    single = pa.LargeStringArray.from_buffers(
        len(plain), pa.py_buffer(places.tobytes()), pa.py_buffer(letters[kept].tobytes())
    )
    return single.cast(pa.string())
