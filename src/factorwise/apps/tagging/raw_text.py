"""Plain text for a tagger of words: split it into sentences of tokens with offsets, and find spans in it.

A token is a web or e-mail address, a word with the apostrophes, hyphens and periods in it, a number with its
separators, or any other single character. A sentence ends at a blank line, and after ``.``, ``!``, ``?`` or
an ellipsis with the closing quotes and brackets that follow, unless the next word is in lower case or the
period belongs to an initial or to a common abbreviation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from factorwise.errors import InvalidArgumentError

if TYPE_CHECKING:
    from factorwise.apps.tagging.estimator import ChainCRF

_TOKEN = re.compile(
    r"""https?://[^\s<>"]*[\w/] | www\.[^\s<>"]*[\w/] | [\w.+-]+@[\w-]+(?:\.[\w-]+)+   # addresses
    | \d+(?:[.,:/]\d+)*(?!\w)                                                       # numbers
    | [^\W\d_]\.(?:[^\W\d_]\.)+                                                     # U.S.
    | \w+(?:(?:['\u2019](?!s\b)|-|\.(?![A-Z]))\w+)* | ['\u2019]s\b                     # words, 's
    | \.{2,} | \S
    """,
    re.VERBOSE,
)
_ENDS = frozenset({".", "!", "?", "\u2026", "..", "...", "...."})
_CLOSES = frozenset("\"')]}\u201d\u2019\u00bb")
_ABBREVIATIONS = frozenset(
    re.findall(r"\S+", "mr mrs ms dr prof st jr sr vs etc e.g i.e cf al fig no vol pp ed eds dept inc")
)
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


class Token(NamedTuple):
    """A token of a text: its characters from ``start`` to ``end`` (exclusive)."""

    text: str
    start: int
    end: int


class TextSpan(NamedTuple):
    """A predicted span of a text: its characters from ``start`` to ``end`` (exclusive)."""

    start: int
    end: int
    type: str
    confidence: float
    text: str


def split_sentences(text: str) -> list[list[Token]]:
    """Return the tokens of each sentence of a text.

    >>> [[token.text for token in sentence] for sentence in split_sentences("Dr. Lee met J. Fox. It's 3.5!")]
    [['Dr', '.', 'Lee', 'met', 'J', '.', 'Fox', '.'], ["It's", '3.5', '!']]
    """
    sentences: list[list[Token]] = [[]]
    ended = False
    last = 0
    for match in _TOKEN.finditer(text):
        token = Token(match[0], *match.span())
        begins = ended and not token.text[0].islower() and token.text not in _CLOSES
        if sentences[-1] and (begins or _BLANK_LINE.search(text, last, token.start)):
            sentences.append([])
        before = sentences[-1][-1].text if sentences[-1] else ""
        closing = ended and not begins and token.text in _CLOSES
        ended = closing or (token.text in _ENDS and not (token.text == "." and _is_short(before)))
        sentences[-1].append(token)
        last = token.end
    return sentences if sentences[-1] else []


def _is_short(word: str) -> bool:
    """Return whether a period after the word belongs to it, as in initials and abbreviations."""
    return (len(word) == 1 and word.isupper()) or word.lower() in _ABBREVIATIONS


def find_text_spans(tagger: ChainCRF, text: str) -> list[TextSpan]:
    """Return the spans that a tagger of words predicts in a text, in order of appearance."""
    templates = getattr(getattr(tagger, "encoder_", None), "templates", None)
    if templates is None or templates.n_columns != 1:
        raise InvalidArgumentError(
            "the tagger wants more than words, which a plain text does not have: train one on words alone,"
            " with `factorwise tag fit --columns 0` or ChainCRF(templates='default') on sentences of words."
        )
    sentences = split_sentences(text)
    if not sentences:
        return []
    predicted = tagger.predict_spans([[token.text for token in sentence] for sentence in sentences])
    found = []
    for sentence, spans in zip(sentences, predicted, strict=True):
        for span in spans:
            start, end = sentence[span.start].start, sentence[span.end - 1].end
            found.append(TextSpan(start, end, span.kind, span.confidence, text[start:end]))
    return found
