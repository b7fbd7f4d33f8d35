"""Quoted speech: which tokens are quoted, who speaks, and which quotations belong to one exchange.

Quotations alternate as turns of two sides. A quotation directly after another one is the turn of the other
side; one that resumes after an inserted "he said," is of the same side. A longer narrative passage ends the
exchange. Within an exchange, the person who says "I" on one side is the "you" of the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from factorwise.apps.coreference.lexicon import DETERMINERS, SPEECH_VERBS
from factorwise.types import Ints

_FEWEST_MARKS = 6  # fewer single quotation marks in a text are taken for apostrophes
_REACH = 12  # maximum distance of a speaker from the quotation, in tokens
_LEFT, _RIGHT = "\u2018", "\u2019"  # single quotation marks
_OPENERS = frozenset({"“", _LEFT, "``", "Oh", "O"})
_CLOSERS = frozenset({",", "!", "?", ".", ";", ":", "--", "—", "”", _RIGHT, '"', "'", "''"})


class Quotation(NamedTuple):
    """A quotation: its first token, the token after its last, its exchange, and the side that speaks."""

    start: int
    end: int
    exchange: int
    side: int


class SpeechSpan(NamedTuple):
    """The position of a mention, and whether it is a pronoun."""

    start: int
    end: int
    is_pronoun: bool


@dataclass(frozen=True, slots=True)
class Speech:
    """The quotations of one document.

    quotations
        The quotations in the order of the text.
    of_token : int[tokens]
        Number of the quotation that contains each token; -1 outside quotations.
    speaker : int[quotations]
        Number of the mention that is the speaker; -1 if none is named.
    """

    quotations: list[Quotation]
    of_token: Ints
    speaker: Ints


def speech_of(tokens: Sequence[str], sentence: Ints, mentions: Sequence[SpeechSpan]) -> Speech:
    """Find the quotations of a document and their speakers; ``sentence`` is the sentence of each token."""
    spans = _spans(tokens, sentence)
    of_token = np.full(len(tokens), -1, dtype=np.int64)
    for number, (start, end) in enumerate(spans):
        of_token[start:end] = number
    starting = {mention.start: number for number, mention in reversed(list(enumerate(mentions)))}
    ending = {mention.end: number for number, mention in enumerate(mentions)}
    speaker = np.full(len(spans), -1, dtype=np.int64)
    for number, (start, end) in enumerate(spans):
        found = _speaker_after(tokens, of_token, end, starting, mentions)
        if found < 0:
            found = _speaker_before(tokens, of_token, start, ending)
        speaker[number] = found
    return Speech(_exchanges(tokens, spans), of_token, speaker)


def is_address(tokens: Sequence[str], start: int, end: int) -> bool:
    """Return whether a mention in a quotation is a form of address: between commas or other marks."""
    before = tokens[start - 1] if start else "."
    after = tokens[end] if end < len(tokens) else "."
    bare = tokens[start].lower() not in DETERMINERS - {"my"}
    return bare and before in _CLOSERS | _OPENERS and after in _CLOSERS


def _spans(tokens: Sequence[str], sentence: Ints) -> list[tuple[int, int]]:
    """Return start and end of the quotations, without their marks, for the most frequent kind of marks."""
    counts = {mark: tokens.count(mark) for mark in ('"', "“", _LEFT, "``", "'")}
    counts["'"] = counts["'"] if counts["'"] >= _FEWEST_MARKS else 0
    opening = max(counts, key=lambda mark: counts[mark])
    if counts[opening] == 0:
        return []
    closing = {"“": "”", _LEFT: _RIGHT, "``": "''"}.get(opening, opening)
    spans: list[tuple[int, int]] = []
    begun = -1
    for place, token in enumerate(tokens):
        if begun < 0:
            if token == opening:
                begun = place + 1
        elif token == closing and not (token == opening and _opens(tokens, sentence, place)):
            if place > begun:
                spans.append((begun, place))
            begun = -1
    return spans


def _opens(tokens: Sequence[str], sentence: Ints, place: int) -> bool:
    """Return whether a mark that can open or close begins a sentence, as in speech of several paragraphs."""
    first = place == 0 or sentence[place - 1] != sentence[place]
    goes_on = place + 1 < len(tokens) and sentence[place + 1] == sentence[place]
    return bool(first and goes_on and tokens[place + 1][0].isupper())


def _speaker_after(
    tokens: Sequence[str], of_token: Ints, end: int, starting: dict[int, int], mentions: Sequence[SpeechSpan]
) -> int:
    """Find the speaker in ``" ... " said X`` or ``" ... " X said``; return -1 if there is none."""
    for place in range(end + 1, min(end + _REACH, len(tokens))):
        if of_token[place] >= 0 or tokens[place] in {".", ";"}:
            return -1
        if place in starting:
            number = starting[place]
            after = mentions[number].end
            told_before = tokens[place - 1].lower() in SPEECH_VERBS
            told_after = any(token.lower() in SPEECH_VERBS for token in tokens[after : after + 3])
            return number if told_before or told_after else -1
    return -1


def _speaker_before(tokens: Sequence[str], of_token: Ints, start: int, ending: dict[int, int]) -> int:
    """Find the speaker in ``X said , " ... "``; return -1 if there is none."""
    told = False
    for place in range(start - 2, max(start - 2 - _REACH, -1), -1):
        if of_token[place] >= 0 or tokens[place] in {".", "!", "?"}:
            return -1
        told = told or tokens[place].lower() in SPEECH_VERBS
        if told and place in ending and tokens[place].lower() in SPEECH_VERBS:
            return ending[place]
    return -1


def _exchanges(tokens: Sequence[str], spans: list[tuple[int, int]]) -> list[Quotation]:
    found: list[Quotation] = []
    exchange, side = -1, 0
    for start, end in spans:
        last = found[-1].end if found else -1
        between = tokens[last + 1 : start - 1]
        if not found:
            exchange, side = 0, 0
        elif not between:
            side = 1 - side
        elif not (len(between) <= _REACH and between[-1] in {",", ";", ":", "--"}):
            exchange, side = exchange + 1, 0
        found.append(Quotation(start, end, exchange, side))
    return found
