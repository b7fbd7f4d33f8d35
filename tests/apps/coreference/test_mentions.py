import numpy as np
import pytest

from coreference_cases import discourse
from factorwise.apps.coreference import lexicon as lex
from factorwise.apps.coreference.mentions import (
    ADDRESSED,
    DEFINITE,
    DEMONSTRATIVE,
    INDEFINITE,
    NAME,
    NO_DETERMINER,
    NO_VOICE,
    NOMINAL,
    POSSESSED,
    PRONOUN,
    SAYS_I,
    SAYS_YOU,
    SPEAKS,
    lemma_of,
    mention_table,
)


def table(*texts, **more):
    return mention_table(discourse(*texts, **more))


def only(text, **more):
    found = table(text, **more)
    assert len(found) == 1
    return found.described[0]


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("< the tall man in the corner >PER left .", "man"),
        ("< in Athens >LOC it rained .", "athens"),
        ("< the son of a king , who slept >PER left .", "son"),
        ("< the guard's >PER gun .", "guard"),
        ("< Department of Justice >ORG said .", "department"),
    ],
)
def test_the_head_is_the_last_word_before_what_follows_it(text, head):
    assert only(text).head == head


def test_a_given_head_is_kept():
    data = discourse("< a set of men >PER left .")
    object.__setattr__(data.documents[0].mentions[0], "head", 3)
    assert mention_table(data).described[0].head == "men"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("We saw < Rome >LOC .", NAME),
        ("We saw < the city >LOC .", NOMINAL),
        ("We saw < them >PER .", PRONOUN),
        ("We saw < both >PER .", PRONOUN),
        ("< Inmates >PER fled . All inmates did .", NOMINAL),
        ("< Comeaux >PER fled .", NAME),
        ("< the Guards >PER/NOM fled .", NOMINAL),
    ],
)
def test_the_kind_is_told_by_words_and_capitals_unless_it_is_given(text, kind):
    assert only(text).kind == kind


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("< two boys >PER/NOM", lex.PLURAL),
        ("< the women >PER/NOM", lex.PLURAL),
        ("< the princess >PER/NOM", lex.SINGULAR),
        ("< a boy and a girl >PER/NOM", lex.PLURAL),
        ("< they >PER/PRO", lex.PLURAL),
        ("< you >PER/PRO", lex.UNKNOWN),
        ("< the Lindens >PER/NAM", lex.PLURAL),
        ("< Rome >LOC/NAM", lex.SINGULAR),
    ],
)
def test_number_comes_from_endings_determiners_and_conjunctions(text, number):
    data = discourse(text)
    if " and " in text:
        object.__setattr__(data.documents[0].mentions[0], "head", 4)
    assert mention_table(data).number[0] == number


@pytest.mark.parametrize(
    ("text", "gender"),
    [
        ("< Mrs. Linden >PER/NAM", lex.FEMININE),
        ("< Mr. Linden >PER/NAM", lex.MASCULINE),
        ("< Florence Linden >PER/NAM", lex.FEMININE),
        ("< my uncle >PER/NOM", lex.MASCULINE),
        ("< the scrivener >PER/NOM", lex.UNKNOWN),
        ("< herself >PER/PRO", lex.FEMININE),
        ("< the garden >FAC/NOM", lex.NEUTER),
    ],
)
def test_gender_comes_from_titles_first_names_nouns_and_types(text, gender):
    assert table(text).gender[0] == gender


def test_a_bare_last_name_has_the_gender_of_those_that_share_it_if_they_agree():
    agreeing = table("< Mr. Darcy >PER/NAM bowed . < Darcy >PER/NAM left .")
    assert agreeing.gender.tolist() == [lex.MASCULINE, lex.MASCULINE]
    divided = table("< Mr. Darcy >PER/NAM bowed . < Miss Darcy >PER/NAM sang . < Darcy >PER/NAM left .")
    assert divided.gender.tolist() == [lex.MASCULINE, lex.FEMININE, lex.UNKNOWN]


def test_a_word_leans_to_the_gender_of_the_pronouns_that_follow_it():
    once = "< the scrivener >PER/NOM took < his >PER/PRO pen . "
    assert table(once).leaning.tolist() == [lex.UNKNOWN, lex.UNKNOWN]
    assert table(once * 2).leaning[0] == lex.MASCULINE


@pytest.mark.parametrize(
    ("text", "determiner"),
    [
        ("< the man >PER/NOM", DEFINITE),
        ("< that man >PER/NOM", DEMONSTRATIVE),
        ("< a man >PER/NOM", INDEFINITE),
        ("< his uncle >PER/NOM", POSSESSED),
        ("< Ann 's uncle >PER/NOM", POSSESSED),
        ("< men >PER/NOM", NO_DETERMINER),
    ],
)
def test_the_determiner_is_told_by_the_first_word(text, determiner):
    assert only(text).determiner == determiner


def test_her_is_possessive_before_a_noun_and_an_object_elsewhere():
    found = table("< Her >PER/PRO hand fell . He saw < her >PER/PRO .")
    assert found.case.tolist() == [lex.POSSESSIVE, lex.OBJECT]


def test_subjects_stand_before_a_verb_and_not_behind_a_preposition():
    found = table("< Ann >PER/NAM saw < Tom >PER/NAM . With < Tom >PER/NAM went < him >PER/PRO .")
    assert found.is_subject.tolist() == [True, False, False, False]
    assert found.after_preposition.tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("word", "lemma"),
    [
        ("guards", "guard"),
        ("women", "woman"),
        ("cities", "city"),
        ("boss", "boss"),
        ("churches", "church"),
        ("his", "his"),
    ],
)
def test_lemmas_drop_plural_endings(word, lemma):
    assert lemma_of(word) == lemma


def test_positions_are_numbered_through_the_documents_of_a_topic():
    found = table("< Ann >PER left . < She >PER slept .", "< Ann >PER left .", scope="topic")
    assert found.document.tolist() == [0, 0, 1]
    assert found.sentence.tolist() == [0, 1, 2]
    assert found.start.tolist() == [0, 3, 0]


def test_in_an_exchange_i_of_one_side_is_you_of_the_other():
    found = table(
        '" < I >PER/PRO am ill , < Tom >PER/NAM , " said < Ann >PER/NAM .'
        ' " < You >PER/PRO are not , " < he >PER/PRO said .'
    )
    assert found.voice.tolist() == [SAYS_I, ADDRESSED, SPEAKS, SAYS_YOU, SPEAKS]
    assert found.quotation.tolist() == [0, 0, -1, 1, -1]
    turns = table('" < I >PER/PRO am ill . " " < You >PER/PRO are not , < I >PER/PRO say . "')
    assert turns.exchange.tolist() == [0, 0, 0]
    assert turns.party.tolist() == [0, 0, 1]


def test_outside_speech_nobody_has_a_voice():
    found = table("< I >PER/PRO am ill , < Tom >PER/NAM .")
    assert found.voice.tolist() == [NO_VOICE, NO_VOICE]
    assert found.exchange.tolist() == [-1, -1]


def test_entities_change_nothing():
    plain, told = (table(f"< Ann >PER/NAM{e} saw < Tom >PER/NAM{e} .") for e in ("", "/x"))
    assert plain.described == told.described
    for name in set(plain.__dataclass_fields__) - {"described"}:
        np.testing.assert_array_equal(getattr(plain, name), getattr(told, name))
