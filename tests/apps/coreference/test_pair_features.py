import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreference_cases import discourse
from factorwise.apps.coreference import pair_table
from factorwise.apps.coreference.pairs import MentionPairs, coded, shared


def told(text, first=0, second=1, *more, scope="document"):
    """Names of the features that hold for two mentions of a marked text."""
    table = pair_table(discourse(text, *more, scope=scope))
    return {name for name, value in zip(table.names, table.row(first, second), strict=True) if value}


def check(cases):
    for text, holds, fails in cases:
        found = told(text)
        assert holds in found, f"{text!r}: {holds!r} not in {sorted(found)}"
        assert fails not in found, f"{text!r}: {fails!r}"


def test_agreement_compares_types_numbers_and_genders():
    check(
        [
            ("< Ann >PER/NAM saw < Rome >LOC/NAM", "types differ", "genders agree, no pronoun"),
            ("< the men >PER/NOM saw < him >PER/PRO", "numbers differ", "both plural"),
            ("< the men >PER/NOM saw < them >PER/PRO", "both plural", "numbers differ"),
            ("< Mr. Lee >PER/NAM saw < her >PER/PRO", "genders differ", "genders agree, one pronoun"),
            ("< Mrs. Lee >PER/NAM saw < her >PER/PRO", "genders agree, one pronoun", "genders differ"),
            ("< Mrs. Lee >PER/NAM saw < Ann >PER/NAM", "genders agree, no pronoun", "genders differ"),
            ("< the clerk >PER/NOM saw < her >PER/PRO", "gender open, one pronoun", "genders differ"),
        ]
    )


def test_a_word_that_pronouns_of_one_gender_follow_seems_to_agree_with_it():
    text = "< Quill >PER/NAM took < his >PER/PRO pen . < Quill >PER/NAM took < his >PER/PRO hat . "
    assert "genders seem to agree" in told(text, 0, 3)
    assert "genders seem to differ" in told(text + "< Mary >PER/NAM left .", 0, 4)


def test_names_are_compared_word_by_word_without_titles():
    check(
        [
            ("< Ann Lee >PER/NAM met < Ann Lee >PER/NAM", "names: same text", "names: one holds the other"),
            ("< Ann Lee >PER/NAM met < Miss Lee >PER/NAM", "names: one holds the other", "names: same text"),
            ("< Ann Lee >PER/NAM met < Tom Lee >PER/NAM", "names: same last word", "names: share no word"),
            ("< Ann Lee >PER/NAM met < Ann Ray >PER/NAM", "names: share a word", "names: share no word"),
            ("< Ann Lee >PER/NAM met < Tom Ray >PER/NAM", "names: share no word", "names: share a word"),
            (
                "< Mr. Lee >PER/NAM met < Mrs. Lee >PER/NAM",
                "names: share a word, genders differ",
                "names: same text",
            ),
            (
                "< United States Air Force >ORG/NAM or < USAF >ORG/NAM",
                "names: acronym",
                "names: share no word",
            ),
        ]
    )


def test_nominals_are_compared_by_head_modifiers_and_determiner():
    check(
        [
            (
                "< a man >PER/NOM and < the man >PER/NOM",
                "nominals: same text, later definite",
                "nominals: same head",
            ),
            (
                "< the man >PER/NOM and < a man >PER/NOM",
                "nominals: same text, later indefinite",
                "nominals: same text, later definite",
            ),
            (
                "< the old man >PER/NOM and < the man >PER/NOM",
                "nominals: same head, later definite",
                "nominals: same head, modifiers clash",
            ),
            (
                "< the old man >PER/NOM and < the young man >PER/NOM",
                "nominals: same head, modifiers clash",
                "nominals: same text",
            ),
            (
                "< the guard >PER/NOM and < guards >PER/NOM",
                "nominals: singular and plural of one word",
                "nominals: share no word",
            ),
            (
                "< the prison guard >PER/NOM and < the prison cook >PER/NOM",
                "nominals: another head, share a word",
                "nominals: share no word",
            ),
            (
                "< the guard >PER/NOM and < that cook >PER/NOM",
                "nominals: share no word, later demonstrative",
                "nominals: share no word, later indefinite",
            ),
        ]
    )


def test_a_name_and_a_nominal_are_compared_too():
    check(
        [
            (
                "< Marfin Bank >ORG/NAM is < the bank >ORG/NOM",
                "name and nominal: same head",
                "name and nominal: share no word",
            ),
            (
                "< Ann Lee >PER/NAM is < the cook >PER/NOM",
                "name and nominal: definite follows",
                "name and nominal: indefinite follows",
            ),
            (
                "< Ann Lee >PER/NAM is < a cook >PER/NOM",
                "name and nominal: indefinite follows",
                "name and nominal: share a word",
            ),
        ]
    )


def test_pronouns_are_paired_by_family_and_by_who_quotes_them():
    check(
        [
            ("< I >PER/PRO know < myself >PER/PRO", "both I, neither quoted", "both I, both quoted"),
            ('< I >PER/PRO said , " < I >PER/PRO know . "', "both I, one quoted", "both I, neither quoted"),
            ('" < I >PER/PRO know < my >PER/PRO mind . "', "both I, both quoted", "both I, one quoted"),
            ("< He >PER/PRO has < his >PER/PRO hat", "both he", "both she"),
            ("< I >PER/PRO know < you >PER/PRO", "I and you", "you and another"),
            ("< I >PER/PRO am < Ishmael >PER/NAM", "I, not quoted, and a name", "I and a name"),
            ('" < I >PER/PRO am < Ishmael >PER/NAM . "', "I and a name", "I, not quoted, and a name"),
            ("< We >PER/PRO saw < him >PER/PRO", "we and a singular", "we and a plural"),
            ("< The men >PER/NOM said < they >PER/PRO slept", "they and a plural", "we and a plural"),
        ]
    )


def test_a_relative_belongs_to_what_stands_before_it():
    text = "< The firm >ORG/NOM owns < the plant >ORG/NOM < which >ORG/PRO burns"
    assert "relative and what it follows" in told(text, 1, 2)
    assert "relative and what is further off" in told(text, 0, 2)


def test_distance_is_cut_into_bins_of_sentences():
    begun, ended = "< He >PER/PRO ate . ", "< He >PER/PRO slept . < Tom >PER/NAM woke ."
    text = begun + "It rained . " * 2 + ended
    assert "same pronoun, 3 to 5 sentences on" in told(text)
    assert "same pronoun, 2 sentences on" in told(begun + "It rained . " + ended)
    assert "same pronoun, 6 to 12 sentences on" in told(begun + "It rained . " * 5 + ended)
    assert "same pronoun, 13 or more sentences on" in told(begun + "It rained . " * 12 + ended)
    assert "pronoun precedes, 1 to 2 sentences on" in told(text, 1, 2)
    assert "pronoun follows, 0 sentences on" in told("< Tom >PER/NAM lost < his >PER/PRO hat .")
    assert "no pronoun, 0 sentences on" in told("< Tom >PER/NAM met < Ann >PER/NAM .")


def test_antecedents_are_ranked_among_those_that_agree():
    text = "< Tom >PER/NAM saw < Ann >PER/NAM and < Bob >PER/NAM . < He >PER/PRO fell ."
    assert {"antecedent 1", "name 1", "no pronoun 1"} <= told(text, 2, 3)
    assert {"antecedent 2", "subject 1"} <= told(text, 0, 3)
    assert not any(name.startswith("antecedent") for name in told(text, 1, 3))


def test_antecedents_are_told_apart_by_the_case_of_the_pronoun_and_by_its_kin():
    assert "antecedent 1, of a reflexive" in told("< Tom >PER/NAM hurt < himself >PER/PRO .")
    assert "antecedent 1, of a possessive" in told("< Tom >PER/NAM lost < his >PER/PRO hat .")
    assert "antecedent 1, of an object" in told("< Tom >PER/NAM ran . They saw < him >PER/PRO .")
    assert {"antecedent 1, same pronoun", "same pronoun 1"} <= told("< He >PER/PRO said < he >PER/PRO ran .")


def test_pronouns_far_apart_are_compared_by_the_names_that_stand_before_them():
    text = (
        "< Tom >PER/NAM fell . < He >PER/PRO rose . < Tom >PER/NAM ran . < He >PER/PRO hid ."
        " < Bob >PER/NAM came . < He >PER/PRO left ."
    )
    assert "same pronoun, last name the same" in told(text, 1, 3)
    assert "same pronoun, last topic the same" in told(text, 1, 3)
    assert "same pronoun, last name another" in told(text, 1, 5)
    assert "same pronoun, last topic another" in told(text, 1, 5)
    assert "pronoun and its last name" in told(text, 2, 1)
    assert "pronoun and another than its last name" in told(text, 0, 5)


def test_a_spoken_i_has_the_name_and_the_gender_of_its_speaker():
    text = (
        '" < I >PER/PRO ran , " said < Ann >PER/NAM . " < I >PER/PRO fell , " said < Tom >PER/NAM .'
        ' " < I >PER/PRO rose , " said < Ann >PER/NAM . < She >PER/PRO left .'
    )
    assert "spoken, same name behind both" in told(text, 0, 4)
    assert "spoken, other names behind them" in told(text, 0, 2)
    assert "spoken and the name behind it" in told(text, 0, 5)
    assert "spoken and another name" in told(text, 0, 3)
    assert "spoken and third person, same name" in told(text, 0, 6)
    assert "genders differ" in told(text, 2, 6)
    assert "genders differ" not in told(text, 0, 6)


def test_his_cannot_be_the_uncle_in_his_uncle_but_may_be_in_a_clause_behind_the_head():
    nested = told("< < his >PER/PRO uncle >PER/NOM left")
    assert "within, before the head" in nested
    assert "antecedent 1" not in nested
    behind = told("< a man who lost < his >PER/PRO hat >PER/NOM left")
    assert "within, behind the head, a pronoun" in behind
    assert "antecedent 1" in behind


def test_what_stands_between_two_mentions_joins_them_or_keeps_them_apart():
    check(
        [
            ("< Astor >PER/NAM , < a merchant >PER/NOM ,", "apposition with a name", "copula"),
            ("< my boy >PER/NOM , < the heir >PER/NOM ,", "apposition without a name", "copula"),
            ("< Tom >PER/NAM was not < a merchant >PER/NOM .", "copula with an indefinite", "copula"),
            ("< Tom >PER/NAM is < the heir >PER/NOM .", "copula", "copula with an indefinite"),
            ("< Tom >PER/NAM and < Bob >PER/NAM ran", "joined by a conjunction", "apposition with a name"),
            ("< cousin >PER/NOM < Bob >PER/NAM ran", "side by side", "joined by a conjunction"),
        ]
    )


def test_within_a_clause_subject_and_object_are_two_unless_the_object_is_reflexive():
    check(
        [
            ("< He >PER/PRO saw < him >PER/PRO .", "one clause, subject and object", "one clause, reflexive"),
            (
                "< He >PER/PRO saw < himself >PER/PRO .",
                "one clause, reflexive",
                "one clause, subject and object",
            ),
            ("< He >PER/PRO saw < his >PER/PRO hat .", "one clause, possessive", "one clause"),
            ("< He >PER/PRO saw < Tom >PER/NAM .", "one clause", "one clause, possessive"),
        ]
    )
    assert "one clause" not in told("< He >PER/PRO slept , but < Tom >PER/NAM ran .")


def test_speech_puts_i_and_you_on_sides():
    text = (
        '" < I >PER/PRO am ill , < Tom >PER/NAM . " " < You >PER/PRO are not , < I >PER/PRO say , "'
        " said < Bob >PER/NAM ."
    )
    assert {"two sides, one quotation"} <= told(text, 0, 1)
    assert "one side, I and you" in told(text, 0, 2)
    assert "two sides, other quotations" in told(text, 0, 3)
    assert "one side, I and the addressed" in told(text, 1, 3)
    assert "one side, I and the speaker" in told(text, 3, 4)
    assert "one side, one quotation" in told('" < I >PER/PRO know < my >PER/PRO mind . "')
    assert "one side, you and the addressed" in told('" < Tom >PER/NAM , are < you >PER/PRO ill ? "')


FIRST = "Escaped < prisoner >HUM fled in Huntsville on < Monday >TIM ."
SECOND = "Escaped < inmate >HUM fled in Huntsville < Monday >TIM ."
THIRD = (
    "Bank burned and < prisoners >HUM sang loudly < Tuesday >TIM ."
    " Students marched through Athens while shops closed ."
)


def test_a_topic_compares_documents_sentences_and_neighbors():
    alike = told(FIRST, 0, 2, SECOND, THIRD, scope="topic")
    assert {
        "across documents",
        "documents alike, share no word",
        "sentences much alike, share no word",
        "same word follows, share no word",
        "same word precedes",
    } <= alike
    unlike = told(FIRST, 0, 4, SECOND, THIRD, scope="topic")
    assert {"documents unlike, same lemma", "across documents"} <= unlike
    assert "same word follows" not in unlike


def test_times_are_compared_in_a_topic():
    assert "times: same head" in told(FIRST, 1, 3, SECOND, THIRD, scope="topic")
    assert "times: share no word" in told(FIRST, 1, 5, SECOND, THIRD, scope="topic")


def test_names_of_features_depend_on_the_scope_alone():
    few, many = discourse("< Ann >PER left ."), discourse("< Ann >PER saw < Tom >LOC . < It >NON ran .")
    assert pair_table(few).names == pair_table(many).names
    assert pair_table(few).values.shape == (0, len(pair_table(few).names))
    topic = discourse("< Ann >PER saw < Tom >LOC .", scope="topic")
    assert pair_table(topic).names != pair_table(few).names


def test_the_truth_is_no_feature():
    plain, known = (
        pair_table(discourse(f"< Ann >PER/NAM{e} met < her >PER/PRO{e} and < Tom >PER/NAM{e} ."))
        for e in ("", "/x")
    )
    np.testing.assert_array_equal(plain.values, known.values)


WORDS = st.sampled_from(["Ann", "Mr. Lee", "he", "her", "I", "you", "the man", "a dog", "London", "who"])
GLUE = st.sampled_from(["saw", "and", ",", ".", '"', "said", "was", "of", ""])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(WORDS, GLUE, st.sampled_from(["PER", "LOC", ""])), min_size=1, max_size=9))
def test_any_text_gives_a_table_of_truth_values(parts):
    text = " ".join(f"< {word} >{kind} {glue}" for word, glue, kind in parts)
    for scope in ("document", "topic"):
        table = pair_table(discourse(text, scope=scope))
        assert table.values.shape == (len(parts) * (len(parts) - 1) // 2, table.n_features)


def test_ranks_count_from_the_nearest():
    pairs = MentionPairs(discourse("< Ann >PER < Bob >PER < Cid >PER < Dan >PER"))
    among = pairs.earlier != 1
    ranks = {(i, j): r for i, j, r in zip(pairs.later, pairs.earlier, pairs.rank(among), strict=True)}
    assert [ranks[3, j] for j in (0, 1, 2)] == [2, 0, 1]


def test_empty_strings_have_codes_of_their_own():
    codes = coded(["a", "", "a", ""])
    assert codes[0] == codes[2]
    assert len(set(codes.tolist())) == 3


def test_shared_words_are_counted_or_weighed():
    sets = [{"a", "b"}, {"b", "c"}, set()]
    np.testing.assert_array_equal(shared(sets), [[2, 1, 0], [1, 2, 0], [0, 0, 0]])
    np.testing.assert_array_equal(shared(sets, {"a": 1, "b": 3, "c": 5})[0], [4, 3, 0])


@pytest.mark.parametrize("scope", ["document", "topic"])
def test_features_are_of_a_moderate_number(scope):
    assert 80 <= pair_table(discourse("< Ann >PER saw < Tom >PER", scope=scope)).n_features <= 128
