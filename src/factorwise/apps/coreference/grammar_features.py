"""Pair features from grammar: agreement, kinds of pronouns, and relations within a sentence."""

from __future__ import annotations

import numpy as np

from factorwise.apps.coreference import lexicon as lex
from factorwise.apps.coreference.mentions import INDEFINITE, NAME, NOMINAL, PRONOUN
from factorwise.apps.coreference.pairs import FAR, MentionPairs
from factorwise.types import Bools

_NEAR = 4  # maximum number of tokens between two mentions joined by a copula or an apposition
_BREAKS = frozenset({",", ";", ":", "--", "—"})


def agreement_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Compare the types, numbers and genders of two mentions."""
    m = pairs.mentions
    pronoun = m.kind == PRONOUN
    known = (m.gender == lex.MASCULINE) | (m.gender == lex.FEMININE)
    leaning = np.where(known, m.gender, m.leaning)
    leans = (leaning == lex.MASCULINE) | (leaning == lex.FEMININE)
    agree = pairs.same(m.gender)
    return {
        "any two": np.ones(len(pairs.later), dtype=bool),
        "types differ": ~pairs.same_type,
        "numbers differ": pairs.numbers_differ,
        "both plural": pairs.both(m.number == lex.PLURAL) & pairs.same_type,
        "genders differ": pairs.genders_differ,
        "genders agree, no pronoun": pairs.both(known & ~pronoun) & agree,
        "genders agree, one pronoun": pairs.one_each(known & ~pronoun, known & pronoun) & agree,
        "genders seem to differ": pairs.both(leans) & ~pairs.same(leaning) & ~pairs.genders_differ,
        "genders seem to agree": pairs.both(leans) & pairs.same(leaning) & ~pairs.both(known),
        "gender open, one pronoun": pairs.one_each(known & pronoun, ~pronoun & ~leans) & pairs.same_type,
    }


def pronoun_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Compare the families of pronouns of two mentions, and pair pronouns with other kinds of mentions."""
    m = pairs.mentions
    family, quoted = m.family, m.quotation >= 0
    i, you, we, they = (family == code for code in (lex.FIRST, lex.YOU, lex.WE, lex.THEY))
    third = (m.person == 3) & (m.kind == PRONOUN) & (family != lex.WHO)
    telling = i & ~quoted
    relative = family == lex.WHO
    nearest = pairs.rank(pairs.same_document & pairs.same_type) == 1
    everyone = np.ones(pairs.n, dtype=bool)
    return {
        "both I, neither quoted": pairs.both(telling),
        "both I, one quoted": pairs.one_each(telling, i & quoted),
        "both I, both quoted": pairs.both(i & quoted),
        "both you": pairs.both(you),
        "both he": pairs.both(family == lex.HE),
        "both she": pairs.both(family == lex.SHE),
        "both it": pairs.both(family == lex.IT),
        "both we": pairs.both(we),
        "both they": pairs.both(they),
        "I and you": pairs.one_each(i, you),
        "I and a third person": pairs.one_each(i, third),
        "I and a name": pairs.one_each(i & quoted, m.kind == NAME),
        "I and a nominal": pairs.one_each(i & quoted, m.kind == NOMINAL),
        "I, not quoted, and a name": pairs.one_each(telling, m.kind == NAME),
        "I, not quoted, and a nominal": pairs.one_each(telling, m.kind == NOMINAL),
        "you and another": pairs.one_each(you, ~you & ~i),
        "we and a singular": pairs.one_each(we, m.number == lex.SINGULAR),
        "we and a plural": pairs.one_each(we, ~we & (m.number == lex.PLURAL)),
        "they and a plural": pairs.one_each(they, ~they & (m.number == lex.PLURAL)),
        "relative and what it follows": pairs.ordered(relative, ~(m.kind == PRONOUN)) & nearest,
        "relative and what is further off": pairs.ordered(relative, everyone) & ~nearest,
        "other pronoun": pairs.one_each((m.kind == PRONOUN) & (family == lex.NO_PRONOUN), everyone),
    }


def sentence_features(pairs: MentionPairs) -> dict[str, Bools]:
    """Return features of two mentions in a sentence: nested, joined, in one clause."""
    m = pairs.mentions
    pronoun = m.kind == PRONOUN
    heads = m.head_place
    behind = pairs.inside & (heads[pairs.later] > heads[pairs.earlier])
    case = m.case[pairs.later]
    clause = _same_clause(pairs)
    free = (case != lex.REFLEXIVE) & (case != lex.POSSESSIVE)
    name = m.kind == NAME
    subjects = pairs.both(m.is_subject)
    found = {
        "within, before the head": pairs.inside & (heads[pairs.later] < heads[pairs.earlier]),
        "within, behind the head": behind & ~pronoun[pairs.later],
        "within, behind the head, a pronoun": behind & pronoun[pairs.later],
        "one head": pairs.same_document & pairs.same(heads),
        "one clause": clause & free,
        "one clause, subject and object": clause & m.is_subject[pairs.earlier] & (case == lex.OBJECT),
        "one clause, possessive": clause & (case == lex.POSSESSIVE),
        "one clause, reflexive": clause & (case == lex.REFLEXIVE),
        "one sentence, no pronoun": (pairs.sentences_apart == 0) & pairs.both(~pronoun) & ~pairs.inside,
        "subjects of sentences in a row": subjects & (pairs.sentences_apart == 1) & pairs.same_type,
    }
    joints = _joints(pairs)
    apposition = joints.pop("apposition") & pairs.both(~pronoun) & pairs.same_type
    copula = joints.pop("copula") & pairs.same_type
    joints["side by side"] &= pairs.both(~pronoun) & pairs.same_type
    with_name = name[pairs.later] | name[pairs.earlier]
    indefinite = (m.determiner == INDEFINITE)[pairs.later]
    return {
        **found,
        "apposition with a name": apposition & with_name,
        "apposition without a name": apposition & ~with_name,
        "copula": copula & ~indefinite,
        "copula with an indefinite": copula & indefinite,
        **joints,
    }


def _joints(pairs: MentionPairs) -> dict[str, Bools]:
    """Classify the tokens between two mentions that are close together in a sentence."""
    m = pairs.mentions
    found = {
        name: np.zeros(len(pairs.later), dtype=bool)
        for name in ("apposition", "copula", "joined by a conjunction", "side by side")
    }
    gap = np.where(pairs.sentences_apart == 0, m.start[pairs.later] - m.end[pairs.earlier], FAR)
    for pair in np.flatnonzero((gap >= 0) & (gap <= _NEAR)).tolist():
        later, earlier = pairs.later[pair], pairs.earlier[pair]
        tokens = pairs.discourse.documents[m.document[later]].tokens
        between = [token.lower() for token in tokens[m.end[earlier] : m.start[later]]]
        joint = _joint(between)
        if joint:
            found[joint][pair] = True
    return found


def _joint(between: list[str]) -> str:
    if not between:
        return "side by side"
    if between in ([","], ["("], ["--"], ["—"]):
        return "apposition"
    if between[0] in lex.BE_FORMS and all(word in lex.BE_FORMS or word in lex.ADVERBS for word in between):
        return "copula"
    joined = len(between) <= 2 and any(word in lex.CONJUNCTIONS for word in between)
    return "joined by a conjunction" if joined else ""


def _same_clause(pairs: MentionPairs) -> Bools:
    """Return whether no comma, conjunction or the like separates the heads of two mentions."""
    m = pairs.mentions
    clause = [
        np.cumsum([token in _BREAKS or token.lower() in lex.CLAUSE_WORDS for token in document.tokens])
        for document in pairs.discourse.documents
    ]
    places = zip(m.document.tolist(), m.head_place.tolist(), strict=True)
    numbers = np.array([clause[document][place] for document, place in places])
    answer: Bools = (pairs.sentences_apart == 0) & pairs.same(numbers) & ~pairs.inside
    return answer
