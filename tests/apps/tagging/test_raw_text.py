"""Tokens and sentences of plain text."""

from __future__ import annotations

import pytest

from factorwise.apps.tagging.raw_text import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n ", []),
        ("He left. She stayed!", ["He left .", "She stayed !"]),
        ('"He left." She stayed.', ['" He left . "', "She stayed ."]),
        ("See Fig. 3 of J. Lee et al. in print.", ["See Fig . 3 of J . Lee et al . in print ."]),
        ("A title\n\nThe text", ["A title", "The text"]),
        ("one line\nand the next", ["one line and the next"]),
        ("in the U.S. at 10:30, 1,234.5 km", ["in the U.S. at 10:30 , 1,234.5 km"]),
        ("the 3rd of the 1990s", ["the 3rd of the 1990s"]),
        (
            "Hugo's bike is in Oslo.Anna walks, e.g. in Rome.",
            ["Hugo 's bike is in Oslo .", "Anna walks , e.g. in Rome ."],
        ),
        ("a@b.org, https://x.org/y. Don't!", ["a@b.org , https://x.org/y .", "Don't !"]),
    ],
)
def test_a_text_is_split(text, sentences):
    found = split_sentences(text)
    assert [" ".join(token.text for token in sentence) for sentence in found] == sentences
    assert all(text[token.start : token.end] == token.text for sentence in found for token in sentence)
