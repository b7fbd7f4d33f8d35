"""Reading and writing alignments."""

import pytest

from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.io.ontologies.alignments import (
    Correspondence,
    parse_alignment,
    read_alignment,
    write_alignment,
)

RDF = b"""<?xml version='1.0' encoding='utf-8'?>
<rdf:RDF xmlns='http://knowledgeweb.semanticweb.org/heterogeneity/alignment'
  xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>
<Alignment><map><Cell>
  <entity1 rdf:resource='http://mouse.owl#MA_1'/><entity2 rdf:resource='http://human.owl#NCI_1'/>
  <measure rdf:datatype='float'>0.75</measure><relation>=</relation></Cell></map>
<map><Cell><entity1 rdf:resource='a'/><entity2 rdf:resource='b'/><relation>&lt;</relation></Cell></map>
</Alignment></rdf:RDF>"""


def test_lines_have_two_to_four_columns():
    content = b"\xef\xbb\xbfa\tb\n\nc\td\t<\r\ne\tf\t=\t0.25\n"
    assert parse_alignment(content) == [
        Correspondence("a", "b", "=", 1.0),
        Correspondence("c", "d", "<", 1.0),
        Correspondence("e", "f", "=", 0.25),
    ]


def test_nothing_is_an_alignment_too():
    assert parse_alignment(b"") == []


def test_cells_of_the_alignment_format_are_read():
    assert parse_alignment(RDF) == [
        Correspondence("http://mouse.owl#MA_1", "http://human.owl#NCI_1", "=", 0.75),
        Correspondence("a", "b", "<", 1.0),
    ]


def test_what_is_written_is_read_back(tmp_path):
    rows = [Correspondence("a b", "ü", "=", 0.125), Correspondence("c", "d")]
    write_alignment(tmp_path / "a.tsv", rows)
    assert (tmp_path / "a.tsv").read_bytes() == "a b\tü\t=\t0.125\nc\td\t=\t1\n".encode()
    assert read_alignment(tmp_path / "a.tsv") == rows


@pytest.mark.parametrize(
    "row", [Correspondence("a\tb", "c"), Correspondence("", "c"), Correspondence("a", "b\n")]
)
def test_ids_that_would_break_the_lines_are_refused_and_nothing_is_written(tmp_path, row):
    with pytest.raises(InvalidArgumentError, match="Rename the concept"):
        write_alignment(tmp_path / "a.tsv", [Correspondence("x", "y"), row])
    assert not (tmp_path / "a.tsv").exists()


@pytest.mark.parametrize("confidence", [-0.1, 1.5, float("nan")])
def test_confidences_lie_between_zero_and_one(tmp_path, confidence):
    with pytest.raises(InvalidArgumentError, match="from 0 to 1"):
        write_alignment(tmp_path / "a.tsv", [Correspondence("x", "y", "=", confidence)])


@pytest.mark.parametrize(
    ("content", "place", "remedy"),
    [
        (b"a\tb\nonly", "f:2", "source, target and relation"),
        (b"a\t\t=", "f:1", "source, target and relation"),
        (b"a\tb\t=\t1\textra", "f:1", "source, target and relation"),
        (b"a\tb\t=\tsure", "f:1: the confidence 'sure'", "leave it out"),
        (b"a\tb\t=\t2", "f:1: the confidence '2'", "leave it out"),
        (b"a\tb\nc\td\na\tb\t=", "f:3", "already given on line 1"),
        (b"a\tb\n\xe4\tb", "f:2: byte 0xe4", "Convert the file to UTF-8"),
        (b"<rdf>\n<oops", "f:2", "Repair the file"),
        (RDF.replace(b"rdf:resource='b'", b""), "cell 2 has no entity2", "rdf:resource"),
        (RDF.replace(b"0.75", b"high"), "cell 1: the confidence 'high'", "from 0 to 1"),
    ],
)
def test_bad_alignments_are_refused_with_place_and_remedy(content, place, remedy):
    with pytest.raises(DataFileError) as caught:
        parse_alignment(content, name="f")
    assert place in str(caught.value)
    assert remedy in str(caught.value)


def test_a_missing_file_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="Check the path"):
        read_alignment(tmp_path / "none.tsv")


@pytest.mark.parametrize("name", ["a.tsv", "a.sssom.tsv", "a.rdf", "a.xml"])
def test_every_form_is_read_back(tmp_path, name):
    rows = [
        Correspondence("http://a.org/x#Ab_1", "http://b.org/y/Z\u00f6", "=", 0.75),
        Correspondence("http://a.org/x#Q", "http://b.org/y/R", "<", 0.5),
        Correspondence("MA 1", "NCI/<&'2:3"),
    ]
    write_alignment(tmp_path / name, rows)
    assert read_alignment(tmp_path / name) == rows


def test_an_ending_that_stands_for_no_form_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"ends in \.sssom\.tsv, .*\.rdf or \.xml, or the format"):
        write_alignment(tmp_path / "a.docx", [])
    assert list(tmp_path.iterdir()) == []
    write_alignment(tmp_path / "a.docx", [], "tsv")
    write_alignment(tmp_path / "a", [])
    assert len(list(tmp_path.iterdir())) == 2


def test_sssom_of_others_is_read():
    text = """#curie_map:
#  MA: "http://purl.org/MA_"
#  wrong
subject_id\tsubject_label\tpredicate_id\tpredicate_modifier\tobject_id
MA:1\theart\towl:equivalentClass\t\tNCI:2
MA:1\theart\tskos:exactMatch\tNot\tNCI:3
MA:4\tlung\tskos:closeMatch\t\tNCI:4
"""
    assert parse_alignment(text.encode()) == [
        Correspondence("http://purl.org/MA_1", "NCI:2"),
        Correspondence("http://purl.org/MA_4", "NCI:4", "skos:closeMatch"),
    ]
    with pytest.raises(DataFileError, match="f:2: subject_id or object_id is empty"):
        parse_alignment(b"subject_id\tobject_id\n\ta\n", name="f")
    with pytest.raises(DataFileError, match="f:2: the confidence '7' is not a number from 0 to 1"):
        parse_alignment(b"subject_id\tobject_id\tconfidence\na\tb\t7\n", name="f")
