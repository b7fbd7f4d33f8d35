"""Parse names of persons into their parts.

A name is read as ``Last, First Middle`` if it has a comma, else as ``Last FM`` if it ends in initials and
does not begin with one, else as ``First Middle Last``. Particles (van, de la) and hyphens join the words of a
last name. Suffixes (Jr, III) are a separate part. Titles, degrees and the numbers by which DBLP distinguishes
namesakes are dropped. A given name with a hyphen counts as two: ``Shang-Yung`` is Shang with the middle name
Yung, consistently with ``S.-Y.`` and ``S. Y.``.

Names are split in Arrow and assembled in NumPy; Python processes each *distinct* word once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.forms import MISSING, Lists, Strings, encoded, ranges, sets
from factorwise.apps.resolution.normalize.nicknames import nickname_root
from factorwise.apps.resolution.normalize.phonetics import sounds
from factorwise.apps.resolution.normalize.word_sets import word_set
from factorwise.apps.resolution.normalize.words import (
    WordRows,
    compact,
    cut_at_spaces,
    joined,
    mapped,
    normal_words,
    per_value,
    ranges_of,
    replaced,
    selected,
    without,
)
from factorwise.types import Bools, Ints
from factorwise.variables.sparse_rows import starts_of

PARTICLES = word_set(
    "aan abu af al am auf aus ben bin bint da das de degli dei del dela della delle den der des di do dos du"
    " el la las le lo los of op ten ter tot und van vander vande vom von zu zum zur"
)
SUFFIXES = word_set("jr junior sr senior ii iii iv 2nd 3rd 4th")
TITLES = word_set("dr doctor mr mrs ms miss prof professor sir")
DEGREES = word_set("phd md msc bsc dds esq frs obe mbe")
RANKS = word_set(
    "1st 5th 6th 7th 8th 9th baron baronet bishop bt countess duchess duke earl lord marquess viscount"
)
# Last names of two letters, which are not initials even if they are in capitals.
SHORT_NAMES = word_set(
    "an bo do du fu ge gu he ho hu ji ke le li lu ma mo na ng oh ou qi qu su vo vu wu xi xu ye yi yu"
)
# Unlike in other texts, "Na" and "Nan" are names.
MISSING_NAMES = frozenset({"n a", "null", "none", "unknown", "not available", "missing", "anonymous"})

Places: TypeAlias = NDArray[np.int64]

_PIECE = re.compile(r"[^\s,.\-\u2010-\u2015]+|[,.\-\u2010-\u2015]")
_COMMA, _HYPHEN, _CAPITALS = 1, 2, 4  # flags of a word: a comma or a hyphen follows, it is in capitals
_LONGEST_RUN = 6  # most particles and hyphens of a last name
_INITIALS = 3  # most capitals that can be initials without spaces


class ParsedNames(NamedTuple):
    """Words of names in the order ``given, last``, and the position of each part.

    words
        The words that belong to the name proper.
    middle, last, stop : int64[names]
        Start of the words after the first given name, and start and end of the last name, as indices into
        all words. The given names start at ``words.offsets``.
    suffix : int32[names]
        Index of the suffix in ``suffixes``; -1 if there is none.
    suffixes : Arrow strings
        The distinct words of all names.
    """

    words: WordRows
    middle: Places
    last: Places
    stop: Places
    suffix: NDArray[np.int32]
    suffixes: pa.Array


def name_forms(column: Strings, part: str = "full") -> dict[str, Strings | Lists]:
    """Return the forms of encoded names: whole names, or with ``part`` only first or only last names."""
    parsed = parse_names(column.values, part)
    of_name = _forms(parsed, part)
    return {name: form.rows(column.codes) for name, form in of_name.items()}


def name_keys(names: pa.Array) -> tuple[Strings, Strings]:
    """Return only the forms ``full`` and ``key`` of names."""
    parsed = parse_names(names)
    full = without(joined(parsed.words), MISSING_NAMES)
    known = full.codes >= 0
    initial = mapped(joined(_first(parsed, known)), _initial)
    return full, _key(joined(_last(parsed, known)), initial)


def parse_names(names: pa.Array, part: str = "full") -> ParsedNames:
    """Parse names; with ``part`` first or last, all words belong to that part."""
    pieces = cut_at_spaces(names)
    parts = per_value(pieces.values, _name_words)
    offsets = starts_of(np.fromiter(map(len, parts), np.int64, len(parts)))
    flat = [word for found in parts for word in found]
    coded = encoded(pa.array([word for word, _ in flat], pa.string()))
    # index each word of each piece separately, so that its flags can be looked up
    places = replaced(pieces, WordRows(offsets, np.arange(len(flat), dtype=np.int32), coded.values))
    marks = np.fromiter((mark for _, mark in flat), np.int8, len(flat))
    words = WordRows(places.offsets, coded.codes[places.codes], coded.values)
    return _arranged(words, marks[places.codes], part)


def _name_words(piece: str) -> list[tuple[str, int]]:
    """Return the words of a piece of a name with their flags: `_COMMA`, `_HYPHEN`, `_CAPITALS`."""
    if piece.isascii() and piece.isalnum():
        return [(piece.lower(), _CAPITALS if piece.isupper() else 0)]
    found: list[tuple[str, int]] = []
    for token in _PIECE.findall(piece):
        if token == ",":
            if not found:
                found.append(("", 0))
            found[-1] = (found[-1][0], found[-1][1] | _COMMA)
        elif token == ".":
            continue
        elif len(token) == 1 and not token.isalnum():
            if found:
                found[-1] = (found[-1][0], found[-1][1] | _HYPHEN)
        else:
            capitals = _CAPITALS if token.isupper() else 0
            found.extend((word, capitals) for word in normal_words(token))
    return found


def _arranged(words: WordRows, marks: NDArray[np.int8], part: str) -> ParsedNames:
    """Drop words that do not belong to the name, and find the position of each part."""
    texts = words.values.to_pylist()
    comma = (marks & _COMMA) > 0
    place = np.arange(len(marks)) - np.repeat(words.offsets[:-1], np.diff(words.offsets))
    title = _is(texts, TITLES)[words.codes]
    title &= (place == 0) | (place == 1) & np.append(False, title[:-1])
    suffix = _is(texts, SUFFIXES)[words.codes] & (place > 0)
    blank = _is(texts, frozenset({""}))[words.codes]
    dropped = np.array([text.isdigit() for text in texts], bool)[words.codes]
    dropped |= blank | title | suffix | _is(texts, DEGREES)[words.codes] & (place > 0)
    if part == "full":
        rank = _is(texts, RANKS)[words.codes] & (place > 0) & np.append(False, comma[:-1])
        cut = _first_flagged(rank, words, words.offsets[1:])
        dropped |= np.arange(len(marks)) >= np.repeat(cut, np.diff(words.offsets))
    # A comma after a dropped word is moved to the preceding word.
    comma[np.flatnonzero(dropped & comma & (place > 0)) - 1] = True
    n_names = len(words.offsets) - 1
    all_words = words.values
    suffix_of = np.full(n_names, MISSING, np.int32)
    suffix_of[words.text_of[suffix]] = words.codes[suffix]
    # A name that would lose all its words is kept whole.
    empty = np.bincount(words.text_of[~dropped], minlength=n_names) == 0
    suffix_of[empty] = MISSING
    kept = ~dropped | (empty[words.text_of] & ~blank)
    marks = np.where(comma, marks | _COMMA, marks)[kept]
    words = selected(words, kept)
    if part != "full":
        return ParsedNames(words, *_one_part(words, part), suffix_of, all_words)
    words, marks = _with_initials_apart(words, marks)
    ordered, middle, last, stop = _whole(words, marks)
    return ParsedNames(ordered, middle, last, stop, suffix_of, all_words)


def _with_initials_apart(words: WordRows, marks: NDArray[np.int8]) -> tuple[WordRows, NDArray[np.int8]]:
    """Split ``JA`` in ``Smith JA`` and ``Smith, JA`` into its letters.

    Two or three capitals after a comma, or at the end of a name without a comma, are initials if another word
    of the name is not in capitals and they are not a short last name.
    """
    texts = words.values.to_pylist()
    starts, stops = words.offsets[:-1], words.offsets[1:]
    comma = (marks & _COMMA) > 0
    small = np.bincount(words.text_of[(marks & _CAPITALS) == 0], minlength=len(starts)) > 0
    has_comma = np.bincount(words.text_of[comma], minlength=len(starts)) > 0
    place = np.arange(len(marks))
    at_end = (place + 1 == np.repeat(stops, stops - starts)) & ~has_comma[words.text_of]
    there = (at_end | np.append(False, comma[:-1])) & (place > np.repeat(starts, stops - starts))
    short = np.array([2 <= len(text) <= _INITIALS and text not in SHORT_NAMES for text in texts], bool)
    apart = there & short[words.codes] & ((marks & _CAPITALS) > 0) & small[words.text_of]
    if not apart.any():
        return words, marks
    used, which = np.unique(words.codes[apart], return_inverse=True)
    letters = [letter for code in used for letter in texts[code]]
    values = encoded(pa.array([*texts, *letters], pa.string()))
    widths = np.array([len(texts[code]) for code in used])
    lengths = np.ones(len(marks), np.int64)
    lengths[apart] = widths[which]
    codes = np.repeat(words.codes, lengths)
    of_letter = ranges(len(texts) + starts_of(widths)[:-1][which], widths[which])
    codes[np.repeat(apart, lengths)] = values.codes[of_letter]
    return WordRows(starts_of(lengths)[words.offsets], codes, values.values), np.repeat(marks, lengths)


def _one_part(words: WordRows, part: str) -> tuple[Places, Places, Places]:
    """Return the starts of middle and last names and the end of the latter, if all words are one part."""
    starts, stops = words.offsets[:-1], words.offsets[1:]
    if part == "last":
        return starts, starts, stops
    return np.minimum(starts + 1, stops), stops, stops


def _whole(words: WordRows, marks: NDArray[np.int8]) -> tuple[WordRows, Places, Places, Places]:
    """Find the last name, and move it after the given names if it comes before them."""
    texts = words.values.to_pylist()
    starts, stops = words.offsets[:-1], words.offsets[1:]
    particle = _is(texts, PARTICLES)[words.codes]
    # the first and the second comma that a word follows
    place = np.arange(len(marks))
    inner = ((marks & _COMMA) > 0) & (place + 1 < np.repeat(stops, stops - starts))
    first_comma = _first_flagged(inner, words, stops)
    second_comma = _first_flagged(inner & (place > np.repeat(first_comma, stops - starts)), words, stops)
    turned = first_comma < stops
    # "Last, First" and "Last FM": last is starts:turn, given is turn:end
    turn = np.where(turned, first_comma + 1, stops)
    end = np.where(second_comma < stops, second_comma + 1, stops)
    initials = _trailing_initials(words, texts)
    ends_in_initials = ~turned & (initials < stops)
    turn = np.where(ends_in_initials, initials, turn)
    turned |= ends_in_initials
    # particles at the end of "Vega, H. J. de" are moved before the last name
    tail = end.copy()
    for _ in range(_LONGEST_RUN):
        tail -= turned & (tail - 1 > turn) & _at(particle, tail - 1)
    last = stops - 1
    hyphen = (marks & _HYPHEN) > 0
    for _ in range(_LONGEST_RUN):
        before = last - 1
        bound = (before > starts) & _at(particle, before) | (before >= starts) & _at(hyphen, before)
        last = np.where(bound, before, last)
    last = np.maximum(last, starts)
    # given names, particles from the end, last name; a part is empty if there is nothing to move
    given = (np.where(turned, turn, starts), np.where(turned, tail, last))
    moved = (np.where(turned, tail, last), np.where(turned, end, last))
    family = (np.where(turned, starts, last), np.where(turned, turn, stops))
    ordered, bounds = _concatenated(words, [given, moved, family])
    middle = np.minimum(ordered.offsets[:-1] + 1, bounds[0])
    return ordered, middle, bounds[0], ordered.offsets[1:]


def _trailing_initials(words: WordRows, texts: list[str]) -> NDArray[np.int64]:
    """Return where final initials start in names that begin with a longer word, or else the name's end."""
    starts, stops = words.offsets[:-1], words.offsets[1:]
    letter = np.array([len(text) == 1 for text in texts], bool)[words.codes]
    turn = stops.copy()
    for _ in range(_LONGEST_RUN):
        turn -= (turn - 1 > starts) & _at(letter, turn - 1)
    return np.where(_at(letter, starts), stops, turn)


def _concatenated(
    words: WordRows, parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
) -> tuple[WordRows, list[NDArray[np.int64]]]:
    """Return the words of the parts of each name in turn, and the ends of the first, second, ... part."""
    n_names = len(words.offsets) - 1
    starts = np.stack([start for start, _ in parts], axis=1).ravel()
    stops = np.stack([stop for _, stop in parts], axis=1).ravel()
    by_part = ranges_of(words, starts, stops)
    ends = by_part.offsets[1:].reshape(n_names, len(parts))
    offsets = by_part.offsets[:: len(parts)]
    return WordRows(offsets, by_part.codes, words.values), [ends[:, k] for k in range(len(parts))]


def _forms(parsed: ParsedNames, part: str) -> Mapping[str, Strings | Lists]:
    words = parsed.words
    full = without(joined(words), MISSING_NAMES)
    known = full.codes >= 0
    if part == "last":
        return _last_forms(parsed, known)
    if part == "first":
        return _given_forms(parsed, known)
    forms = _last_forms(parsed, known) | _given_forms(parsed, known)
    key = _key(forms["last"], forms["first_initial"])
    suffix = Strings(np.where(known, parsed.suffix, MISSING).astype(np.int32), parsed.suffixes)
    codes = np.where(np.repeat(known, np.diff(words.offsets)), words.codes, MISSING)
    tokens = sets(words.offsets, codes, words.values)
    return {**forms, "full": full, "key": key, "suffix": mapped(compact(suffix), _suffix), "tokens": tokens}


def _last_forms(parsed: ParsedNames, known: Bools) -> dict[str, Strings]:
    last = joined(_last(parsed, known))
    return {"last": last, "last_sound": _sound(last)}


def _given_forms(parsed: ParsedNames, known: Bools) -> dict[str, Strings]:
    words, starts = parsed.words, parsed.words.offsets[:-1]
    stop = np.where(known, parsed.last, starts)
    first = joined(_first(parsed, known))
    middle = joined(ranges_of(words, parsed.middle, stop))
    spelled = mapped(first, _if_long)
    return {
        "given": joined(ranges_of(words, starts, stop)),
        "first": spelled,
        "middle": mapped(middle, _without_initials),
        "first_initial": mapped(first, _initial),
        "middle_initial": mapped(middle, _initial),
        "root": mapped(spelled, nickname_root),
        "first_sound": _sound(spelled),
    }


def _first(parsed: ParsedNames, known: Bools) -> WordRows:
    starts = parsed.words.offsets[:-1]
    return ranges_of(parsed.words, starts, np.where(known, np.minimum(parsed.middle, parsed.last), starts))


def _last(parsed: ParsedNames, known: Bools) -> WordRows:
    return ranges_of(parsed.words, parsed.last, np.where(known, parsed.stop, parsed.last))


def _key(last: Strings, initial: Strings) -> Strings:
    """Return the last name and first initial, or the last name alone if there is no initial."""
    width = len(initial.values) + 1
    pairs = np.where(last.missing, -1, last.codes.astype(np.int64) * width + initial.codes + 1)
    used, codes = np.unique(pairs, return_inverse=True)
    lasts, letters = last.values.to_pylist(), [None, *initial.values.to_pylist()]
    texts = [
        None if pair < 0 else " ".join(filter(None, (lasts[pair // width], letters[pair % width])))
        for pair in used.tolist()
    ]
    return encoded(pa.array(texts, pa.string())).rows(codes)


def _sound(words: Strings) -> Strings:
    return encoded(sounds(words.values)).rows(words.codes)


def _is(texts: list[str], known: frozenset[str]) -> Bools:
    return np.array([text in known for text in texts], bool)


def _at(flags: Bools, places: Ints) -> Bools:
    """Return the flags at the given positions; they are false at positions out of range."""
    inside = (places >= 0) & (places < len(flags))
    found: Bools = inside & np.append(flags, False)[np.where(inside, places, -1)]
    return found


def _first_flagged(flags: Bools, words: WordRows, otherwise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each name's first flagged word, or ``otherwise`` if it has none."""
    places = np.flatnonzero(flags)
    owners, first = np.unique(words.text_of[places], return_index=True)
    found = otherwise.copy()
    found[owners] = places[first]
    return found


def _initial(text: str) -> str:
    return text[0]


def _if_long(text: str) -> str | None:
    return text if len(text) > 1 else None


def _without_initials(text: str) -> str | None:
    return " ".join(word for word in text.split() if len(word) > 1) or None


def _suffix(text: str) -> str:
    same = {"junior": "jr", "senior": "sr", "2nd": "ii", "3rd": "iii", "4th": "iv"}
    return same.get(text, text)
