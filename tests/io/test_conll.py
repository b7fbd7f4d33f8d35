"""Column files: what stands in them comes out, nothing is lost silently, and errors name the line."""

import errno
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import DataFileError, FactorwiseError, InvalidArgumentError, ShapeError
from factorwise.io import conll
from factorwise.io.conll import format_columns, parse_columns, read_columns, write_columns

CHUNKS = "Rockwell NNP B-NP\nCorp. NNP I-NP\n\nsaid VBD B-VP\n# # O\n. . O\n\n"


def parsed(text, **options):
    return parse_columns(text.encode(), **options)


def rows(file):
    """Sentences of tokens, each a tuple of its columns."""
    tokens = list(zip(*file.columns, strict=True))
    return [tokens[first:after] for first, after in zip(file.start[:-1], file.start[1:], strict=True)]


def text_of(file, *extra):
    return "".join(format_columns(file, extra))


def refusal(text, **options):
    content = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(DataFileError) as caught:
        parse_columns(content, name="train.txt", **options)
    return str(caught.value)


@pytest.fixture(params=[8, 1 << 17], ids=["small blocks", "blocks"])
def blocks(request, monkeypatch):
    """The size of blocks must make no difference; 8 bytes are less than most lines have."""
    monkeypatch.setattr(conll, "_BLOCK", request.param)
    monkeypatch.setattr(conll, "_TOKENS", request.param)


@pytest.mark.usefixtures("blocks")
def test_columns_sentences_and_lines_are_read(tmp_path):
    (tmp_path / "train.txt").write_text(CHUNKS)
    file = read_columns(tmp_path / "train.txt")
    assert [column.tolist() for column in file.columns] == [
        ["Rockwell", "Corp.", "said", "#", "."],
        ["NNP", "NNP", "VBD", "#", "."],
        ["B-NP", "I-NP", "B-VP", "O", "O"],
    ]
    assert file.start.tolist() == [0, 2, 5]
    assert file.line.tolist() == [1, 2, 4, 5, 6]
    assert (len(file), file.n_tokens, file.n_columns, file.separator) == (2, 5, 3, None)
    assert file.sentences(-1) == [["B-NP", "I-NP"], ["B-VP", "O", "O"]]
    assert (file.codes.dtype, file.start.dtype, file.line.dtype) == (np.int32, np.int64, np.int32)


def test_a_column_can_be_had_as_strings_and_codes():
    names, codes = parsed(CHUNKS).encoded(2)
    assert names == ["B-NP", "I-NP", "B-VP", "O"]
    assert codes.tolist() == [0, 1, 2, 3, 3]
    assert codes.dtype == np.int32


def test_equal_strings_are_one_object():
    file = parsed("word word\nword other\n")
    assert len(file.vocabulary) == 2
    assert file.column(0)[0] is file.column(0)[1] is file.column(1)[0]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    "text",
    [
        "a X\nb Y\n\nc X",
        "\n \n\na X\nb Y\n\n\t \n\n\nc X\n\n\n",
        "a X\r\nb Y\r\n\r\nc X\r\n",
        "\ufeffa X\nb Y\n\nc X\n",
        "\ufeff\r\na  X\nb\tY  \n\n  c X\r\n",
    ],
    ids=["no last line feed", "runs of blank lines", "CR LF", "BOM", "all of it"],
)
def test_blank_lines_line_ends_and_marks_make_no_difference(text):
    assert rows(parsed(text)) == [[("a", "X"), ("b", "Y")], [("c", "X")]]


@pytest.mark.usefixtures("blocks")
def test_with_tabs_columns_can_be_empty_or_hold_spaces():
    file = parsed("New York\t\tB\n\tx\t\n\t\t\nlast\t \t\n")
    assert file.separator == "\t"
    assert rows(file) == [[("New York", "", "B"), ("", "x", "")], [("last", " ", "")]]


def test_any_ascii_character_can_separate():
    assert rows(parsed("a,,X\n\n,b c,Y\n", separator=",")) == [[("a", "", "X")], [("", "b c", "Y")]]
    assert rows(parsed("a  X\n", separator=" ")) == [[("a", "", "X")]]
    assert parsed("a\tb c\td\n", separator=" ").column(0).tolist() == ["a\tb"]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("character", ["\xa0", "\u3000", "\x85", "\u2028", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_spaces_and_tabs_are_white_space(character):
    word = f"a{character}b"
    assert rows(parsed(f"{word} X\nc Y\n{character} Z\n")) == [[(word, "X"), ("c", "Y"), (character, "Z")]]


def test_docstart_lines_are_ordinary_sentences():
    assert rows(parsed("-DOCSTART- O\n\na O\n")) == [[("-DOCSTART-", "O")], [("a", "O")]]


@pytest.mark.usefixtures("blocks")
def test_comments_are_set_apart_and_written_again():
    text = "# newdoc 1\n# text = # 1\n#\t#\tSYM\n1\t1\tNUM\n\n# b\n# c\ta\n#\t#\tSYM\n\n# end\n"
    file = parsed(text, comment="# ")
    assert rows(file) == [[("#", "#", "SYM"), ("1", "1", "NUM")], [("#", "#", "SYM")]]
    assert file.line.tolist() == [3, 4, 8]
    assert file.comments == {0: ("# newdoc 1", "# text = # 1"), 1: ("# b", "# c\ta"), 2: ("# end",)}
    assert text_of(file) == text


@pytest.mark.usefixtures("blocks")
def test_a_token_that_begins_like_a_comment_stays_a_token():
    tabs = "#\t#\tSYM\n#tag\tx\tNN\n\n#\t#\tSYM\na\ta\tNN\n\n"
    assert text_of(parsed(tabs, comment="#")) == tabs
    assert rows(parsed("# id 1\na X\n# Y\n#b Z\n", comment="#")) == [[("a", "X"), ("#", "Y"), ("#b", "Z")]]


@pytest.mark.usefixtures("blocks")
def test_a_line_that_could_be_a_comment_or_a_token_is_refused():
    message = refusal("a b X\n\n# # O\nc d Y\n", comment="# ")
    assert "train.txt, line 3: '# # O' begins like a comment, but has the 3 columns of a token" in message
    assert "Separate columns by tabs, give a longer beginning of comments, or comment=None" in message
    assert "line 3: '# id' begins like a comment" in refusal("word\n\n# id\n", separator="\t", comment="#")
    assert rows(parsed("a b X\n\n# # O\n", comment="# newdoc"))[1] == [("#", "#", "O")]
    assert rows(parsed("# id=1\na X\n\n# id=2\nb Y\n", comment="# id=")) == [[("a", "X")], [("b", "Y")]]


@pytest.mark.usefixtures("blocks")
def test_a_comment_inside_a_sentence_is_refused():
    message = refusal("a X\n# a note here\nb Y\n", comment="#")
    assert "line 2: '# a note here' has 4 columns, but line 1 has 2" in message


@pytest.mark.usefixtures("blocks")
def test_ragged_columns_are_refused_with_the_line_and_both_numbers():
    message = refusal("\na b X\nc d X\n\ne Y\nf\n")
    assert message == (
        "train.txt, line 5: 'e Y' has 2 columns, but line 2 has 3. Columns are separated by runs of spaces"
        " or tabs here: complete the line, or give another separator."
    )
    assert "line 2: 'b' has 1 column, but line 1 has 2. Columns are separated by '\\t'" in refusal(
        "a\tX\nb\n"
    )
    assert "line 2: 'a b\\t\\tc' has 3 columns, but line 1 has 2" in refusal("a\tX\na b\t\tc\n")


def test_a_ragged_line_is_shown_in_part_when_it_is_long():
    assert f"'{'x' * 57}...' has 1 column" in refusal("a b\n" + "x" * 1000)


@pytest.mark.parametrize(("line", "prefix"), [("# newdoc id = 1", "'# '"), ("#x", "'#'")])
def test_for_a_line_that_looks_like_a_comment_the_remedy_is_named(line, prefix):
    assert f"If it is a comment, give comment={prefix}." in refusal(f"a X\n\n{line}\nb Y\n")


@pytest.mark.parametrize("text", ["", "\n\n", " \t\r\n\n", "\ufeff"])
def test_a_file_without_tokens_is_refused(text):
    assert "no tokens. Check that this is the right file" in refusal(text)


def test_a_file_of_comments_is_refused():
    assert "2 lines, but no tokens besides comments" in refusal("# a\n# b\n", comment="#")


def test_bytes_that_are_not_utf8_are_refused_with_line_byte_and_advice():
    message = refusal("a X\n\nmüde Y\n".encode("latin-1"))
    assert "train.txt, line 3: byte 0xfc is not utf-8" in message
    assert "encoding='latin-1'" in message
    assert "encoding='utf-16'" in refusal("a X\n".encode("utf-16"))


def test_other_encodings_are_read():
    for encoding in ("latin-1", "utf-16", "utf-8-sig", "UTF8", "cp1252"):
        content = "müde Y\nb\xa0c Z\n".encode(encoding)
        assert rows(parse_columns(content, encoding=encoding)) == [[("müde", "Y"), ("b\xa0c", "Z")]]


@pytest.mark.parametrize("encoding", ["klingon", "base64", "punycode", "undefined", ""])
def test_an_encoding_that_is_none_is_refused(encoding):
    with pytest.raises(
        InvalidArgumentError, match=f"{encoding}' was given. Common ones are 'utf-8', 'latin-1'"
    ):
        parse_columns(b"a X\n", encoding=encoding)
    with pytest.raises(InvalidArgumentError, match="Common ones"):
        parse_columns(b"a X\n", encoding="utf-8\0")


def test_nul_bytes_are_refused_with_the_line():
    message = refusal(b"a X\nb\0 Y\n")
    assert "line 2: contains a NUL byte" in message
    assert "encoding='utf-16'" in message


def test_a_missing_file_says_what_to_check(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.txt: there is no such file\. Check the path"):
        read_columns(tmp_path / "none.txt")


def test_errors_of_a_file_name_its_path(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text("a X\nb\n")
    with pytest.raises(DataFileError, match=r"bad\.txt, line 2: 'b' has 1 column, but") as caught:
        read_columns(path)
    assert isinstance(caught.value, FactorwiseError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("separator", ["", "ab", "\n", "\r", "·"])
def test_separators_that_cannot_separate_are_refused(separator):
    with pytest.raises(InvalidArgumentError, match="separator must be None or one ASCII character"):
        parsed("a X\n", separator=separator)


@pytest.mark.parametrize("comment", ["", " ", "#\n"])
def test_beginnings_of_comments_that_begin_nothing_are_refused(comment):
    with pytest.raises(InvalidArgumentError, match="comment must be None or the beginning of a line"):
        parsed("a X\n", comment=comment)


@pytest.mark.parametrize("number", [3, -4])
def test_a_column_that_is_not_there_is_refused(number):
    with pytest.raises(InvalidArgumentError, match=rf"from 0 to 2, or from -3 to -1, but {number} was given"):
        parsed(CHUNKS).column(number)


@pytest.mark.usefixtures("blocks")
def test_predictions_are_written_as_last_columns(tmp_path):
    file = parsed(CHUNKS)
    write_columns(tmp_path / "out.txt", file, [list("ABCDE"), list("vwxyz")])
    assert (tmp_path / "out.txt").read_bytes() == (
        b"Rockwell NNP B-NP A v\nCorp. NNP I-NP B w\n\nsaid VBD B-VP C x\n# # O D y\n. . O E z\n\n"
    )
    assert text_of(file, np.array(list("ABCDE"))) == text_of(file, list("ABCDE"))


def test_files_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    file = parsed("ł X\n")
    with pytest.raises(DataFileError, match=r"'ł' cannot be written in latin-1, .*encoding='utf-8'"):
        write_columns(path, file, encoding="latin-1")
    with pytest.raises(ShapeError, match=r"extra column 1 has 2 strings, but the file has 1 tokens"):
        write_columns(path, file, [["a"], ["a", "b"]])
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_columns(path, parsed(CHUNKS))
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("text", "value"),
    [("a X\n", "b c"), ("a X\n", ""), ("a X\n", "b\n"), ("a\tX\n", "\t"), ("a\tX\n", "b\nc")],
)
def test_strings_that_would_not_be_read_back_are_refused(text, value):
    with pytest.raises(
        InvalidArgumentError, match=r"would be read back differently\. Replace it, or separate"
    ):
        text_of(parsed(text), [value])
    assert text_of(parsed("a\tX\n"), ["b c"]) == "a\tX\tb c\n\n"


words = st.text(st.sampled_from("ab#é\xa0"), min_size=1, max_size=3)
gaps = st.text(st.sampled_from(" \t"), min_size=1, max_size=2)
blank_lines = st.lists(st.sampled_from(["\n", " \n", "\t\r\n"]), min_size=1, max_size=3).map("".join)


@given(st.data(), st.integers(1, 40), st.integers(1, 3))
def test_whatever_the_spaces_and_blocks_the_words_come_out(data, size, width):
    sentences = data.draw(
        st.lists(st.lists(st.tuples(*[words] * width), min_size=1, max_size=4), min_size=1, max_size=5)
    )
    first_gap = " " * data.draw(st.integers(1, 2))  # without a tab, or the file would be one with tabs
    text = data.draw(blank_lines)
    for tokens in sentences:
        for token in tokens:
            text += (first_gap if tokens is sentences[0] else data.draw(gaps)).join(token) + "\n"
        text += data.draw(blank_lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conll, "_BLOCK", size)
        patch.setattr(conll, "_TOKENS", size)
        file = parsed(text)
        again = parsed(text_of(file))
    assert rows(file) == rows(again) == sentences
    lines = text.split("\n")
    assert [lines[number - 1].split(" ")[0].split("\t")[0] for number in file.line] == list(file.column(0))


@given(st.data(), st.integers(1, 40), st.integers(2, 4))
def test_whatever_stands_between_tabs_comes_out(data, size, width):
    fields = st.text(st.sampled_from("ab# \r"), max_size=3).filter(lambda field: not field.endswith("\r"))
    token = st.tuples(*[fields] * width).filter(lambda token: "".join(token).strip(" "))
    sentences = data.draw(st.lists(st.lists(token, min_size=1, max_size=4), min_size=1, max_size=5))
    text = "\n".join("".join("\t".join(token) + "\n" for token in tokens) for tokens in sentences)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conll, "_BLOCK", size)
        file = parsed(text)
    assert rows(file) == sentences
    assert text_of(file) == text + "\n"


def test_memory_stays_in_proportion_to_the_text():
    text = b"".join(b"word%d NN B-NP\n\n" % (number % 1000) for number in range(50_000))
    tracemalloc.start()
    try:
        file = parse_columns(text)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert file.n_tokens == 50_000
    assert kept < 2 * len(text) + 200_000  # two numbers of eight bytes and three of four per token
    assert peak < 8 * len(text) + 2_000_000


def test_a_first_line_that_may_be_a_comment_is_named_in_the_remedy():
    with pytest.raises(DataFileError, match=r"line 2.* If line 1 is a comment, give comment='# '"):
        parsed("# newdoc one two three\nWhat\twhat\n")
