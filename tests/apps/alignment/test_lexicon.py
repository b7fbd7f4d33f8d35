"""Words that stand for each other, found in the names of two ontologies."""

import pytest

from alignment_cases import table
from factorwise.apps.alignment.concepts import stem
from factorwise.apps.alignment.lexicon import ABBREVIATED, OFTEN, ONCE, SPELLING, Lexicon, beginning, spelling

LEFT = table("kidney cortex", "kidney pelvis", "kidney calyx", "left lung", "right lung", "lung")
RIGHT = table("renal cortex", "renal pelvis", "Renal_Calyx", "left lung", "right lung", "lung")


def form(*words):
    return Lexicon().forms(words)


def test_replacements_are_counted_beside_the_same_rest():
    found = Lexicon.of(table("kidney cortex", "kidney pelvis"), table("renal cortex", "renal pelvis"))
    assert found.replaced[form("kidney"), form("renal")] == 2
    assert found.agreement("kidney", "renal") == OFTEN


def test_a_pair_of_names_does_not_testify_for_itself():
    found = Lexicon.of(table("kidney cortex", "kidney pelvis"), table("renal cortex", "renal pelvis"))
    counted = found.counted(found.forms(["kidney", "cortex"]), found.forms(["renal", "cortex"]))
    assert counted == (form("kidney"), form("renal"))
    assert found.agreement("kidney", "renal", counted) == ONCE
    alone = Lexicon.of(table("kidney cortex"), table("renal cortex"))
    counted = alone.counted(alone.forms(["kidney", "cortex"]), alone.forms(["renal", "cortex"]))
    assert alone.agreement("kidney", "renal", counted) == 0
    assert alone.agreement("kidney", "renal") == ONCE


def test_words_that_replace_one_another_often_become_one():
    found = Lexicon.of(LEFT, RIGHT)
    assert found.common["kidney"] == found.common["renal"]
    assert found.agreement("kidney", "renal") == OFTEN


def test_merged_words_show_replacements_beside_them():
    left = table("kidney cortex", "kidney pelvis", "kidney calyx", "kidney coat", "lung coat")
    right = table(
        "renal cortex", "renal pelvis", "renal calyx", "renal muscular tunica", "lung muscular tunica"
    )
    found = Lexicon.of(left, right)
    assert found.replaced[form("coat"), found.forms(["muscular", "tunica"])] == 2
    assert found.replacement(form("coat"), found.forms(["muscular", "tunica"])) == OFTEN


def test_names_that_both_sides_have_show_no_replacement():
    assert Lexicon.of(table("left lung", "right lung"), table("left lung", "right lung")).replaced == {}


def test_words_that_one_ontology_sets_apart_do_not_replace_one_another():
    left = table("left lung", "right lung", "left ear", "left eye")
    found = Lexicon.of(left, table("right ear", "right eye"))
    assert found.contrasted["left", "right"] == found.contrasted["right", "left"] == 1
    assert found.agreement("left", "right") == 0


def test_a_rarer_replacement_is_not_believed():
    left = table(
        *(f"thoracic vertebra {n}" for n in range(1, 9)), "cervical vertebra 1", "cervical vertebra 2"
    )
    right = table(*(f"Z_vertebra_{n}" for n in range(1, 9)))
    found = Lexicon.of(left, right)
    assert found.agreement("thoracic", "z") == OFTEN
    assert found.agreement("cervical", "z") == 0


def test_idle_words_are_added_by_one_side_and_never_set_apart():
    left = table("sartorius", "gracilis", "soleus", "lung", "left lung", "heart")
    right = table("sartorius muscle", "gracilis muscle", "soleus muscle", "left heart")
    found = Lexicon.of(left, right)
    assert found.idle(stem("muscle"), alone=True)
    assert not found.idle("left", alone=False)
    assert not Lexicon.of(table("sartorius"), table("sartorius muscle")).idle(stem("muscle"), alone=True)


def test_an_idle_word_may_be_set_apart_if_less_is_asked():
    left = table("sartorius", "gracilis", "arm", "arm muscle", "leg", "leg muscle", "hip", "hip muscle")
    found = Lexicon.of(left, table("sartorius muscle", "gracilis muscle"))
    assert not found.idle(stem("muscle"), alone=False)
    assert found.idle(stem("muscle"), alone=False, share=0.25)


def test_forms_of_a_word_agree_by_their_beginnings():
    assert beginning("larynx", "laryngeal") == pytest.approx(5 / 6)
    assert beginning("rib", "ribs") == 0
    assert beginning("external", "extensor") == 0


def test_spellings_agree_if_one_letter_within_differs():
    assert spelling("grey", "gray") == spelling("celiac", "coeliac") == SPELLING
    assert spelling("extrinsic", "intrinsic") == spelling("lip", "lap") == spelling("grey", "green") == 0


def test_spellings_that_both_sides_know_are_two_words():
    both = Lexicon.of(table("ileum", "ilium"), table("ileum", "ilium"))
    assert both.agreement("ileum", "ilium") == 0
    assert Lexicon.of(table("ileum"), table("ilium")).agreement("ileum", "ilium") == SPELLING


def test_an_initial_agrees_with_its_word():
    assert Lexicon().agreement("thoracic", "t") == ABBREVIATED
    assert Lexicon().agreement("thoracic", "c") == 0
    assert Lexicon().agreement("1", "12") == 0


def test_equal_words_agree_fully_and_equal_stems_nearly():
    assert Lexicon().agreement("thymus", "thymus") == 1
    assert Lexicon().agreement("thymus", "thymic") == OFTEN
