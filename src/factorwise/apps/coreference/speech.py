"""Quoted speech: which tokens are spoken, who is said to speak, and who speaks to whom in turn.

Quotations follow one another as turns of two sides. A quotation right behind another one is the other side's
turn; one that resumes after an inserted "he said," is the same side's. A longer stretch of narration ends the
exchange. Within an exchange whoever says "I" on one side is whom the other side calls "you".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from factorwise.apps.coreference.lexicon import DETERMINERS, SPEECH_VERBS
from factorwise.types import Ints

_FEWEST_MARKS = 6  # single quotation marks below this number are apostrophes
_REACH = 12  # tokens around a quotation in which its speaker is looked for
_LEFT, _RIGHT = "\u2018", "\u2019"  # single quotation marks
_OPENERS = frozenset({"“", _LEFT, "``", "Oh", "O"})
_CLOSERS = frozenset({",", "!", "?", ".", ";", ":", "--", "—", "”", _RIGHT, '"', "'", "''"})


class Quotation(NamedTuple):
    """One quotation: its first token, the one after the last, its exchange and which side of it speaks."""

    start: int
    end: int
    exchange: int
    side: int


class SpeechSpan(NamedTuple):
    """A mention as far as speech is concerned."""

    start: int
    end: int
    is_pronoun: bool


@dataclass(frozen=True, slots=True)
class Speech:
    """Quotations of one document.

    quotations
        In the order of the text.
    of_token : int[tokens]
        Number of the quotation that a token stands in; -1 outside.
    speaker : int[quotations]
        Number of the mention that is said to speak; -1 where nobody is.
    """

    quotations: list[Quotation]
    of_token: Ints
    speaker: Ints


def speech_of(tokens: Sequence[str], sentence: Ints, mentions: Sequence[SpeechSpan]) -> Speech:
    """Find the quotations of a document and their speakers; ``sentence`` numbers each token's sentence."""
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
    """Whether a mention within a quotation stands where one calls somebody: between commas or other marks."""
    before = tokens[start - 1] if start else "."
    after = tokens[end] if end < len(tokens) else "."
    bare = tokens[start].lower() not in DETERMINERS - {"my"}
    return bare and before in _CLOSERS | _OPENERS and after in _CLOSERS


def _spans(tokens: Sequence[str], sentence: Ints) -> list[tuple[int, int]]:
    """Start and end of the quotations, without their marks, by the kind of marks the text uses most."""
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
    """Whether a mark that serves both ways begins a sentence: a paragraph of a speech that goes on."""
    first = place == 0 or sentence[place - 1] != sentence[place]
    goes_on = place + 1 < len(tokens) and sentence[place + 1] == sentence[place]
    return bool(first and goes_on and tokens[place + 1][0].isupper())


def _speaker_after(
    tokens: Sequence[str], of_token: Ints, end: int, starting: dict[int, int], mentions: Sequence[SpeechSpan]
) -> int:
    """Find ``" ... " said X`` or ``" ... " X said``."""
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
    """Find ``X said , " ... "``."""
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
