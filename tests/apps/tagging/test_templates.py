"""Feature templates as text."""

import pytest

from factorwise.apps.tagging.features.templates import (
    DEFAULT,
    FLAGS,
    VALUES,
    WORD_ONLY,
    FeatureTemplateError,
    TemplatePart,
    TemplateSet,
    default_templates,
    function_named,
)
from factorwise.errors import InvalidArgumentError


def parts(text, columns=("w", "p")):
    (template,) = TemplateSet.parse(text, columns).templates
    return template.parts


def test_a_template_is_a_conjunction_of_functions_of_columns_at_distances():
    assert parts("w[0]") == (TemplatePart("", 0, 0),)
    assert parts("p[-12]") == (TemplatePart("", 1, -12),)
    assert parts("c7[+1]") == (TemplatePart("", 7, 1),)
    assert parts("suffix3(w[-1])|first|is_title(p[2])") == (
        TemplatePart("suffix3", 0, -1),
        TemplatePart("first", -1, 0),
        TemplatePart("is_title", 1, 2),
    )
    assert parts("bias") == ()


def test_blanks_and_comments_do_not_matter():
    text = "# words\n\n  w[0]   # the word\n lower ( w [ -1 ] ) | p[ +0 ]\r\n"
    assert TemplateSet.parse(text).lines() == ("w[0]", "lower(w[-1])|p[0]")


def test_columns_take_the_names_that_the_user_gives():
    assert parts("word[0]|ner[1]", ["word", "pos", "ner"]) == (TemplatePart("", 0, 0), TemplatePart("", 2, 1))
    assert parts("ner[0]|c1[0]", {"ner": 3}) == (TemplatePart("", 3, 0), TemplatePart("", 1, 0))
    assert parts("größe[0]", ["größe"]) == (TemplatePart("", 0, 0),)
    assert TemplateSet.parse("c1[0]", ["word", "pos"]).lines() == ("pos[0]",)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_bundled_sets_read_back_as_they_are(count):
    bundled = default_templates(count)
    assert TemplateSet.parse(bundled.lines(), bundled.columns) == bundled
    assert bundled.n_columns == count
    bundled.check(count)


def test_the_set_for_two_columns_has_26_templates_and_5_flags():
    lines = TemplateSet.parse(DEFAULT).lines()
    assert len(lines) == 31
    assert lines[-5:] == ("is_digit(w[0])", "is_title(w[0])", "is_upper(w[0])", "first", "last")


def test_more_columns_are_looked_at_with_their_neighbors():
    assert default_templates(3).lines()[31:] == ("c2[-1]", "c2[0]", "c2[1]")
    assert default_templates(1).lines() == tuple(WORD_ONLY.split())


@pytest.mark.parametrize(
    ("name", "word", "expected"),
    [
        ("", "Word", "Word"),
        ("lower", "WörD", "wörd"),
        ("prefix2", "word", "wo"),
        ("suffix3", "word", "ord"),
        ("suffix3", "ab", "ab"),
        ("prefix12", "word", "word"),
        ("suffix1", "", ""),
        ("shape", "McDonald's-4²", "XxXxxxxx'x-dd"),
        ("shape", "Éa漢ǅ", "Xx漢ǅ"),
        ("short_shape", "McDonald's--42", "XxXx'x-d"),
        ("short_shape", "\n\n", "\n"),
        ("number", "1,234th", "0,000th"),
        ("length", "größe", "5"),
        ("is_digit", "42", True),
        ("is_digit", "4.2", False),
        ("is_title", "New-York", True),
        ("is_title", "", False),
        ("is_upper", "U.S.", True),
        ("is_lower", "us", True),
        ("is_alpha", "us1", False),
        ("is_alnum", "us1", True),
        ("is_punctuation", "...", True),
        ("is_punctuation", "", False),
        ("is_punctuation", "$%", True),
        ("is_punctuation", "a.", False),
        ("has_digit", "B2B", True),
        ("has_upper", "iPod", True),
        ("has_hyphen", "so-so", True),
        ("has_period", "etc.", True),
        ("has_period", "etc", False),
        ("has_punctuation", "it's", True),
        ("has_punctuation", "its", False),
    ],
)
def test_functions_say_what_their_names_promise(name, word, expected):
    assert function_named(name)(word) == expected
    assert function_named(name)(word) == expected  # also from what the first call has stored


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("w[0]\nlowr(w[0])", "template line 2: there is no function 'lowr'. Did you mean 'lower'?"),
        ("sufix3(w[0])", "Did you mean 'suffix3'?"),
        ("suffix0(w[0])", "prefixN and suffixN with N from 1 to 99"),
        ("word[0]", "there is no column 'word'. Columns are w, p, and c0, c1, c2... by number."),
        ("w[0]||p[0]", "'' is not a part of a template."),
        ("frist", "'frist' is not a part of a template. Did you mean 'first'? Parts are w[0]"),
        ("w", "'w' is not a part"),
        ("w[0", "'w[0' is not a part"),
        ("w[0])", "'w[0])' is not a part"),
        ("lower(w[0]", "'lower(w[0]' is not a part"),
        ("w[1.5]", "'w[1.5]' is not a part"),
        ("lower(shape(w[0]))", "is not a part"),
        ("bias|w[0]", "'bias' is always there: it stands alone on its line."),
        ("w[0]|w[0]", "has a part twice"),
        ("w[0]\n\nc0[0]", "template line 3: 'c0[0]' says the same as line 1: leave one out."),
        ("w[1001]", "looks further than 1000 tokens away"),
        ("w[99999999999999999999]", "looks further than 1000 tokens away"),
        ("# nothing\n", "there are no templates: give one a line"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line_and_what_is_allowed(text, message):
    with pytest.raises(FeatureTemplateError) as refused:
        TemplateSet.parse(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["w", "w"], "two columns are named 'w'"),
        (["1st"], "'1st' cannot name column 0"),
        (["c1", "c0"], "'c1' cannot name column 0"),
        ({"a": 0, "b": 0}, "do not each have a number of their own"),
        ({"a": -1}, "do not each have a number of their own"),
    ],
)
def test_names_of_columns_must_be_names_of_their_own(columns, message):
    with pytest.raises(FeatureTemplateError) as refused:
        TemplateSet.parse("bias", columns)
    assert message in str(refused.value)


def test_too_few_columns_are_refused_with_the_template_that_wants_more():
    templates = TemplateSet.parse("w[0]\nw[0]|shape(c3[0])", ["w"])
    assert templates.n_columns == 4
    with pytest.raises(FeatureTemplateError, match="leave out the template") as refused:
        templates.check(2)
    assert r"'w[0]|shape(c3[0])' asks for column 3" in str(refused.value)
    assert "the input has 2 (w, c1)" in str(refused.value)


def test_every_function_is_described_in_words():
    names = ["", *VALUES, *FLAGS, "prefix2", "suffix3"]
    text = [f"{name}(w[-2])" if name else "w[-2]" for name in names]
    lines = TemplateSet.parse([*text, "bias", "first|last"]).describe().splitlines()
    assert len(lines) == len(text) + 2
    assert all("w of the token 2 before" in line for line in lines[:-2])
    assert lines[-3].split(None, 1)[1] == "the last 3 characters of w of the token 2 before"
    assert lines[-2].split(None, 1)[1] == "always there"
    assert lines[-1].split(None, 1)[1] == "the first token and the last token"


def test_a_set_for_no_columns_is_refused():
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        default_templates(0)
