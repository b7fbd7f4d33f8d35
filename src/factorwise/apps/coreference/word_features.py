"""Pair features from words: names, nominals, a name and a nominal, and times."""

from __future__ import annotations

import numpy as np

from factorwise.apps.coreference.mentions import DEFINITE, DEMONSTRATIVE, INDEFINITE, NAME, NOMINAL, PRONOUN
from factorwise.apps.coreference.pairs import MentionPairs, coded, shared
from factorwise.types import Bools


def name_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Compare two names of the same type: same text, shorter form, acronym, or no word in common."""
    m, described = pairs.mentions, pairs.mentions.described
    names = pairs.both(m.kind == NAME) & pairs.same_type
    same_text = pairs.same(coded([one.text for one in described]))
    same_head = pairs.same(coded([one.head for one in described]))
    common = pairs.of_square(shared([one.name_words for one in described]))
    sizes = np.array([len(one.name_words) for one in described])
    fewest = np.minimum(sizes[pairs.later], sizes[pairs.earlier])
    held = (common > 0) & (common == fewest) & ~same_text
    acronym = _acronyms(pairs)
    new = ~same_text & ~held
    return {
        "names: same text": names & same_text,
        "names: one holds the other": names & held,
        "names: same last word": names & same_head & new,
        "names: share a word": names & (common > 0) & new & ~same_head,
        "names: share no word": names & (common == 0) & ~same_text & ~acronym,
        "names: share a word, genders differ": names & (common > 0) & pairs.genders_differ,
        "names: acronym": names & acronym,
    }


def nominal_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Compare two nominals, or a name and a nominal, of the same type by heads, modifiers and determiners."""
    m, described = pairs.mentions, pairs.mentions.described
    nominal, name = m.kind == NOMINAL, m.kind == NAME
    nominals = pairs.both(nominal) & pairs.same_type
    mixed = pairs.one_each(name, nominal) & pairs.same_type
    same_text = pairs.same(coded([one.text for one in described]))
    same_head = pairs.same(coded([one.head for one in described]))
    same_lemma = pairs.same(coded([one.lemma for one in described]))
    overlap = pairs.of_square(shared(content_words(pairs))) > 0
    modifiers = [one.modifiers for one in described]
    sizes = np.array([len(words) for words in modifiers])
    fewest = np.minimum(sizes[pairs.later], sizes[pairs.earlier])
    clash = pairs.of_square(shared(modifiers)) < fewest
    definite = ((m.determiner == DEFINITE) | (m.determiner == DEMONSTRATIVE))[pairs.later]
    indefinite = (m.determiner == INDEFINITE)[pairs.later]
    demonstrative = (m.determiner == DEMONSTRATIVE)[pairs.later]
    alike = nominals & same_head & ~same_text
    apart = nominals & ~same_lemma & ~overlap
    unlike = mixed & ~overlap
    return {
        "nominals: same text": nominals & same_text,
        "nominals: same text, later definite": nominals & same_text & definite,
        "nominals: same text, later indefinite": nominals & same_text & indefinite,
        "nominals: same head": alike,
        "nominals: same head, later definite": alike & definite,
        "nominals: same head, modifiers clash": alike & clash,
        "nominals: singular and plural of one word": nominals & same_lemma & ~same_head,
        "nominals: another head, share a word": nominals & ~same_lemma & overlap,
        "nominals: share no word": apart,
        "nominals: share no word, later indefinite": apart & indefinite,
        "nominals: share no word, later demonstrative": apart & demonstrative,
        "name and nominal: same head": mixed & same_head,
        "name and nominal: share a word": mixed & overlap,
        "name and nominal: share no word": unlike,
        "name and nominal: definite follows": unlike & nominal[pairs.later] & definite,
        "name and nominal: indefinite follows": unlike & nominal[pairs.later] & indefinite,
    }


def time_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Compare two time expressions: same head, a shared word, or no shared word."""
    described = pairs.mentions.described
    times = pairs.both(pairs.mentions.is_time)
    same = pairs.same(coded([one.lemma for one in described]))
    overlap = pairs.of_square(shared(content_words(pairs))) > 0
    return {
        "times: same head": times & same,
        "times: another head, share a word": times & ~same & overlap,
        "times: share no word": times & ~same & ~overlap,
    }


def content_words(pairs: MentionPairs) -> list[frozenset[str]]:
    """Return the head and the modifiers of each mention; the set is empty for a pronoun."""
    return [
        one.modifiers | {one.head} if one.kind != PRONOUN else frozenset() for one in pairs.mentions.described
    ]


def _acronyms(pairs: MentionPairs) -> Bools:
    """Return whether one mention consists of the initials of the other."""
    described = pairs.mentions.described
    brief = [
        one.head.replace(".", "") if one.kind == NAME and len(one.words) <= 2 else "" for one in described
    ]
    codes = coded([one.initials for one in described] + brief)
    long, short = codes[: pairs.n], codes[pairs.n :]
    answer: Bools = (long[pairs.later] == short[pairs.earlier]) | (short[pairs.later] == long[pairs.earlier])
    return answer
