import numpy as np
import pytest

from factorwise.apps.coreference.speech import SpeechSpan, is_address, speech_of


def heard(text, *spans):
    """Find the speech of a text with a bar between its sentences."""
    parts = [part.split() for part in text.split("|")]
    tokens = [token for part in parts for token in part]
    sentence = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return speech_of(tokens, sentence, [SpeechSpan(start, end, is_pronoun=False) for start, end in spans])


def quoted(speech, text):
    tokens = text.replace("|", "").split()
    return [" ".join(tokens[q.start : q.end]) for q in speech.quotations]


@pytest.mark.parametrize(
    "text",
    [
        '" Yes , " he said , " it is . "',
        "“ Yes , ” he said , “ it is . ”",
        "\u2018 Yes , \u2019 he said , \u2018 it is . \u2019",
        "`` Yes , '' he said , `` it is . ''",
        "' Yes , ' he said , ' it is . ' ' No ! '",
    ],
)
def test_quotations_are_found_by_the_marks_that_the_text_uses(text):
    assert quoted(heard(text), text)[:2] == ["Yes ,", "it is ."]


def test_a_few_apostrophes_are_no_quotations():
    assert heard("the boys ' hats and the girls ' shoes .").quotations == []


def test_a_mark_at_the_start_of_a_sentence_goes_on_with_a_speech_that_was_not_closed():
    text = '" One goes . | " Two goes on , " said Ann .'
    assert quoted(heard(text), text) == ['One goes . " Two goes on ,']
    closed = '" One goes . " | Two goes on . | " Three , " said Ann .'
    assert quoted(heard(closed), closed) == ["One goes .", "Three ,"]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ('" Yes , " said Ann .', (5, 6)),
        ('" Yes , " Ann said .', (4, 5)),
        ('" Yes , " the man softly replied .', (4, 6)),
        ('Ann said : " Yes . "', (0, 1)),
    ],
)
def test_the_speaker_stands_beside_a_verb_of_speech(text, span):
    assert heard(text, span).speaker.tolist() == [0]


def test_without_a_verb_of_speech_nobody_is_said_to_speak():
    assert heard('" Yes , " Ann smiled .', (4, 5)).speaker.tolist() == [-1]


def test_turns_change_sides_and_inserted_words_do_not():
    text = '" Yes , " said Ann , " it is . " " No . " | He left the room . | " Who ? "'
    found = [(q.exchange, q.side) for q in heard(text).quotations]
    assert found == [(0, 0), (0, 0), (0, 1), (1, 0)]


def test_address_stands_between_marks_without_an_article():
    tokens = ['"', "Come", ",", "Ann", ",", "and", "see", "the", "cat", ".", '"']
    assert is_address(tokens, 3, 4)
    assert not is_address(tokens, 7, 8)
    assert not is_address([",", "the", "cat", ","], 1, 3)
    assert is_address([",", "my", "dear", ","], 1, 3)
