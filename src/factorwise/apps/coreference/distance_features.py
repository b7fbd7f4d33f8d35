"""Pair features from positions: the distance in sentences, and the rank among possible antecedents."""

from __future__ import annotations

import numpy as np

from factorwise.apps.coreference import lexicon as lex
from factorwise.apps.coreference.mentions import NAME, PRONOUN
from factorwise.apps.coreference.pairs import FAR, MentionPairs, coded
from factorwise.types import Bools, Ints

_FINE = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 12), (13, FAR - 1))
_COARSE = ((0, 0), (1, 2), (3, 12), (13, FAR - 1))


def distance_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Bin the number of sentences between two mentions of the same type, separately by kinds of mentions."""
    m = pairs.mentions
    pronoun = m.kind == PRONOUN
    third = pronoun & (m.person == 3)
    agree = pairs.same_type & ~pairs.genders_differ & ~pairs.numbers_differ
    groups = (
        ("same pronoun", _FINE, pairs.both(third) & pairs.same(m.family) & pairs.same_type),
        ("pronoun follows", _FINE, pairs.ordered(third, ~pronoun) & agree),
        ("pronoun precedes", _COARSE, pairs.ordered(~pronoun, third) & agree),
        ("no pronoun", _COARSE, pairs.both(~pronoun) & pairs.same_type),
    )
    gap = pairs.sentences_apart
    return {
        f"{group}, {_bin_name(low, high)} sentences on": chosen & (gap >= low) & (gap <= high)
        for group, bins, chosen in groups
        for low, high in bins
    }


def antecedent_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Rank the compatible mentions before a third-person pronoun, nearest first.

    The rank is computed among all mentions, and separately among subjects, names, mentions that are not
    pronouns, and pronouns of the same family.
    """
    m = pairs.mentions
    pronoun = m.kind == PRONOUN
    possible = pairs.compatible & _third(pairs)[pairs.later]
    rank = pairs.rank(possible)
    subject = pairs.rank(possible & m.is_subject[pairs.earlier])
    name = pairs.rank(possible & (m.kind == NAME)[pairs.earlier])
    full = pairs.rank(possible & ~pronoun[pairs.earlier])
    family = pairs.rank(possible & pairs.same(m.family))
    case = m.case[pairs.later]
    return {
        "antecedent 1": rank == 1,
        "antecedent 2": rank == 2,
        "antecedent 3 to 6": (rank >= 3) & (rank <= 6),
        "antecedent 7 or later": rank >= 7,
        "antecedent 1, a subject": (rank == 1) & m.is_subject[pairs.earlier],
        "antecedent 1, of a reflexive": (rank == 1) & (case == lex.REFLEXIVE),
        "antecedent 1, of a possessive": (rank == 1) & (case == lex.POSSESSIVE),
        "antecedent 1, of an object": (rank == 1) & (case == lex.OBJECT),
        "antecedent 1, same pronoun": (rank == 1) & (family == 1),
        "subject 1": subject == 1,
        "name 1": name == 1,
        "no pronoun 1": full == 1,
        "same pronoun 1": family == 1,
        "same pronoun 2": family == 2,
    }


def focus_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Compare the likely referents of third-person pronouns.

    This is the last name or non-pronominal subject before the pronoun that agrees with it.
    """
    m = pairs.mentions
    pronoun, name, third = m.kind == PRONOUN, m.kind == NAME, _third(pairs)
    heads = coded([one.head for one in m.described])
    subject = ~pronoun & m.is_subject
    topic = _heads_of(pairs.nearest(pairs.compatible & pairs.ordered(third, subject)), heads)
    same_pronoun = pairs.both(third) & pairs.same(m.family) & pairs.same_type
    same_name, other_name = _compared(pairs, _names_behind(pairs))
    same_topic, other_topic = _compared(pairs, topic)
    with_name = pairs.one_each(third, name) & ~pairs.genders_differ & ~pairs.numbers_differ & pairs.same_type
    return {
        "same pronoun, last name the same": same_pronoun & same_name,
        "same pronoun, last name another": same_pronoun & other_name,
        "same pronoun, last topic the same": same_pronoun & same_topic,
        "same pronoun, last topic another": same_pronoun & other_topic,
        "pronoun and its last name": with_name & same_name,
        "pronoun and another than its last name": with_name & other_name,
    }


def spoken_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Compare the name behind a quoted I or you, of the speaker or of the addressee, with other names."""
    spoken, name = pairs.mentions.alias >= 0, pairs.mentions.kind == NAME
    same, other = _compared(pairs, _names_behind(pairs))
    return {
        "spoken, same name behind both": pairs.both(spoken) & same,
        "spoken, other names behind them": pairs.both(spoken) & other,
        "spoken and the name behind it": pairs.one_each(spoken, name) & same,
        "spoken and another name": pairs.one_each(spoken, name) & other,
        "spoken and third person, same name": pairs.one_each(spoken, _third(pairs)) & same,
    }


def _third(pairs: MentionPairs) -> Bools:
    """Return whether each mention is a form of he, she, it or they."""
    families = (lex.HE, lex.SHE, lex.IT, lex.THEY)
    answer: Bools = (pairs.mentions.kind == PRONOUN) & np.isin(pairs.mentions.family, families)
    return answer


def _names_behind(pairs: MentionPairs) -> Ints:
    """Return the code of the name that each mention is or probably refers to; -1 for none."""
    m = pairs.mentions
    heads = coded([one.head for one in m.described])
    last = pairs.nearest(pairs.compatible & pairs.ordered(_third(pairs), m.kind == NAME))
    behind = _heads_of(np.where(m.alias >= 0, m.alias, last), heads)
    return np.where(m.kind == NAME, heads, behind)


def _heads_of(items: Ints, heads: Ints) -> Ints:
    return np.where(items >= 0, heads[items], -1)


def _compared(pairs: MentionPairs, codes: Ints) -> tuple[Bools, Bools]:
    known = pairs.both(codes >= 0) & pairs.same_document
    same = pairs.same(codes)
    return known & same, known & ~same


def _bin_name(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low} or more" if high == FAR - 1 else f"{low} to {high}"
