"""Strings to codes from the definition: a dictionary that numbers what it has not met before.

A table of strings is a dictionary ``{string: code}`` here. The functions take their strings cut out already
and return what the kernels write.
"""

from __future__ import annotations

from collections.abc import Sequence

UNKNOWN = -1


def segment_ends(data: bytes) -> list[int]:
    """Where the zero bytes are."""
    return [position for position, byte in enumerate(data) if byte == 0]


def find_segments(strings: Sequence[bytes], table: dict[bytes, int]) -> list[int]:
    """Return the code of each string, -1 for those that the table does not have."""
    return [table.get(string, UNKNOWN) for string in strings]


def intern_segments(strings: Sequence[bytes], table: dict[bytes, int]) -> list[int]:
    """Return the code of each string, giving the next free one to each new string."""
    return [table.setdefault(string, len(table)) for string in strings]


def keep_known(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Leave out the entries that are -1."""
    return [[code for code in row if code != UNKNOWN] for row in rows]


def template_keys(
    sentences: Sequence[Sequence[Sequence[int]]],
    flags: Sequence[bool],
    templates: Sequence[Sequence[tuple[int, int]]],
) -> list[list[tuple[int, ...]]]:
    """Return the attributes of each token: the template, then the codes of its parts.

    ``sentences[s][i][v]`` is value ``v`` of token ``i``; a template is a list of (value, offset).
    """
    tokens = []
    for sentence in sentences:
        for token in range(len(sentence)):
            keys = []
            for number, parts in enumerate(templates):
                codes = [_code(sentence, token + offset, value, flags[value]) for value, offset in parts]
                if UNKNOWN not in codes:
                    keys.append((number, *codes))
            tokens.append(keys)
    return tokens


def _code(sentence: Sequence[Sequence[int]], position: int, value: int, flag: bool) -> int:
    if 0 <= position < len(sentence):
        return sentence[position][value]
    if flag:
        return UNKNOWN
    before, after = -position, position - len(sentence) + 1
    return -2 * before if position < 0 else -2 * after - 1
