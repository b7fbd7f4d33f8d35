"""Reading references: fields and their places, names of people, values, CSL-JSON and BibTeX."""

import json
from functools import cache

import pytest

from factorwise import ChainCRF
from factorwise.apps.tagging import CitationReader, split_references, to_bibtex, to_csl
from factorwise.apps.tagging.citations.people import Person, read_people
from factorwise.apps.tagging.citations.reader import divided_labels
from factorwise.apps.tagging.citations.values import plain, read_isbn, read_url, read_volume
from factorwise.errors import InvalidArgumentError

REFERENCES = [
    "Brand, R. & Lee, A. B. (1990). Keeping bees. Journal of Hives, 12(3), 4-9.",
    '[2] J. Fox, "A {bold} & 100% title," in Proc. of the 3rd Conference on Things, Springer, Berlin, 2001,'
    " pp. 10--20. doi:10.1000/xyz123",
    "Allen, James F. (1979). A Plan-Based Approach to Speech Act Recognition. PhD thesis, Univ. of Toronto.",
]


@cache
def citations():
    return CitationReader.bundled(n_jobs=1).read(REFERENCES)


def test_fields_are_pieces_of_the_reference_with_a_probability():
    for citation, text in zip(citations(), REFERENCES, strict=True):
        assert citation.text == text
        ends = 0
        for field in citation.fields:
            assert text[field.start : field.end] == field.text
            assert field.start >= ends
            assert 0.0 <= field.confidence <= 1.0
            ends = field.end
    assert citations()[0].values("title") == ["Keeping bees."]
    assert citations()[2].values("genre") == ["PhD thesis,"]


def test_csl_has_types_names_dates_and_confidence():
    article, paper, thesis = to_csl(citations())
    assert [item["type"] for item in (article, paper, thesis)] == [
        "article-journal",
        "paper-conference",
        "thesis",
    ]
    assert article["author"] == [{"family": "Brand", "given": "R."}, {"family": "Lee", "given": "A. B."}]
    assert article["issued"] == {"date-parts": [[1990]]}
    assert (article["volume"], article["issue"], article["page"]) == ("12", "3", "4-9")
    assert paper["DOI"] == "10.1000/xyz123"
    assert paper["container-title"] == "Proc. of the 3rd Conference on Things"
    assert paper["title"] == "A {bold} & 100% title"
    assert set(article["custom"]["confidence"]) == set(article) - {"id", "type", "custom"}
    assert json.loads(json.dumps([article, paper, thesis])) == [article, paper, thesis]


def test_bibtex_is_escaped_and_keys_are_unique():
    text = to_bibtex(to_csl([*citations(), citations()[0]]))
    assert "@article{brand1990keeping,\n" in text
    assert "@article{brand1990keeping-2,\n" in text
    assert "  title = {A \\{bold\\} \\& 100\\% title},\n" in text
    assert "  author = {Brand, R. and Lee, A. B.},\n" in text
    assert "  pages = {4--9},\n" in text
    assert "@phdthesis{allen1979plan,\n" in text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Lee, A., de la Cruz, B.C., & Fox, D. (Eds.),", ["Lee|A.", "de la Cruz|B.C.", "Fox|D."]),
        ("Bagatto, Ann, Lou C. Pike, and Joe D. Fox.", ["Bagatto|Ann", "Pike|Lou C.", "Fox|Joe D."]),
        ("Arias-Lee JJ, de la Macorra JC, Peters OA.", ["Arias-Lee|JJ", "de la Macorra|JC", "Peters|OA"]),
        ("In O. C. Lee und D. van Card (Hrsg.),", ["Lee|O. C.", "van Card|D."]),
        ("Smith, John; Jones, Mary", ["Smith|John", "Jones|Mary"]),
        ("ACKET Claude, BACHER Pierre,", ["ACKET|Claude", "BACHER|Pierre"]),
        ("Dorcas, M. E., Jr., J. D. Willson, R. N. Reed", ["Dorcas|M. E.", "Willson|J. D.", "Reed|R. N."]),
        ("World Health Organization.", ["World Health Organization|"]),
        ("Lee, Ann, Fox, Bea", ["Lee|Ann", "Fox|Bea"]),
        ("--- (ed.)", []),
    ],
)  # fmt: skip
def test_people_of_many_styles(text, names):
    assert read_people(text).names == tuple(Person(*name.split("|")) for name in names)


def test_initials_are_not_taken_for_et_al():
    assert [person.family for person in read_people("Lee, U. A., & Fox, B.").names] == ["Lee", "Fox"]
    assert read_people("Lee, B. u. a.").others


def test_addresses_in_bibtex_are_not_escaped():
    item = {
        "id": "a",
        "type": "webpage",
        "URL": "http://a.org/b_c%20d}",
        "DOI": "10.1000/x_y",
        "custom": {"confidence": {}},
    }
    text = to_bibtex([item])
    assert "  url = {http://a.org/b_c%20d},\n" in text
    assert "  doi = {10.1000/x_y},\n" in text


def test_et_al_is_kept_as_others():
    people = read_people("Baldwin, M., et al. (Eds.).")
    assert people.names == (Person("Baldwin", "M."),)
    assert people.others


@pytest.mark.parametrize(
    ("text", "volume", "issue"),
    [
        ("323 (7306):", "323", "7306"),
        ("Vol. 9, No. 2,", "9", "2"),
        ("n\xb054.", "", "54"),
        ("12:3", "12", "3"),
        ("vol. XII", "XII", ""),
        ("106,", "106", ""),
        ("without numbers", "", ""),
    ],
)
def test_volumes_and_issues(text, volume, issue):
    assert read_volume(text) == (volume, issue)


def test_signs_around_values_are_left_out():
    assert plain("\u00abVino veritas\u00bb.") == "Vino veritas"
    assert plain("(Boston") == "Boston"
    assert plain("...") == "..."
    assert read_url("Available at <http://a.org/b_(c)>.") == "http://a.org/b_(c"
    assert read_isbn("ISBN 978-0-521-63338-3") == "9780521633383"


def test_references_without_words_and_empty_lists():
    reader = CitationReader.bundled(n_jobs=1)
    assert reader.read([]) == []
    blank, dots = reader.read(["", "... --- ..."])
    assert blank.fields == ()
    assert to_csl([blank, dots])[0] == {
        "id": "anonymous", "type": "document", "custom": {"confidence": {}, "text": ""}
    }  # fmt: skip


def test_what_is_no_reference_is_refused():
    reader = CitationReader.bundled(n_jobs=1)
    with pytest.raises(InvalidArgumentError, match="reference 1 is a int: give strings"):
        reader.read(["a", 3])
    with pytest.raises(InvalidArgumentError, match="give one reference a string"):
        reader.read(["a " * 20_000])


def test_a_reader_of_ones_own_is_saved_and_other_taggers_are_refused(tmp_path):
    pieces = [["Lee,", "A.", "Bees."], ["Fox,", "B.", "Hives."]] * 5
    labels = [["B-author", "I-author", "B-title"]] * 10
    CitationReader.fit(pieces, labels, n_jobs=1).save(tmp_path / "own.fw")
    [citation] = CitationReader.load(tmp_path / "own.fw", n_jobs=1).read(["Lee, A. Bees."])
    assert [field.name for field in citation.fields] == ["author", "title"]
    ChainCRF(templates="default", n_jobs=1).fit(pieces, labels).save(tmp_path / "other.fw")
    with pytest.raises(InvalidArgumentError, match=r"train one with CitationReader\.fit"):
        CitationReader.load(tmp_path / "other.fw")


def test_paragraphs_are_joined_where_blank_lines_divide():
    assert split_references("A. First\n  goes on.\n\n\nB. Second.\n") == ["A. First goes on.", "B. Second."]
    assert split_references("\nA. First.\r\nB. Second.") == ["A. First.", "B. Second."]
    assert split_references(" \n") == []


YEARS = ["Lee A. Bees. 2001;1:2-3.", "Fox B. Wasps. 2002;2:3-4.", "Ray C. Ants. 2003;2:3-4."]
NUMBERED = ["[9] Lee A. Bees. 2001.", "[10] Fox B. Wasps. 2002."]


@pytest.mark.parametrize(
    ("text", "references"),
    [
        ("{}\n{}\n\n{}\n", YEARS),  # a blank line in a list
        ("  {}\n  {}\n  {}\n", YEARS),
        ("References\n- {}\n\u2022 {}\n* {}", YEARS),
        ("Literature cited:\n\n{}\n{}", NUMBERED),
        ("{}\n\n{}", NUMBERED),
        ("{}\n{}", ["1. Lee A. Bees. 2001.", "1. Fox B. Wasps. 2002."]),
        ("{}\n\n{}\n", ["2000 bees.", "Wasps."]),
    ],
)
def test_a_list_of_references_is_taken_apart(text, references):
    assert split_references(text.format(*references)) == references


def test_wrapped_references_are_joined():
    text = "1. Lee A. Bees of\nthe world.\n2001.\n2. Fox B. Wasps.\n\n2002."
    assert split_references(text) == ["1. Lee A. Bees of the world. 2001.", "2. Fox B. Wasps. 2002."]
    text = "Lee A. Bees of\nthe world. 2001.\n\nFox B. Wasps of\nthe world. 2002."
    assert split_references(text) == ["Lee A. Bees of the world. 2001.", "Fox B. Wasps of the world. 2002."]
    text = "Lee A. Bees of\n\tthe world. 2001.\nFox B. Wasps. 2002."
    assert split_references(text) == ["Lee A. Bees of the world. 2001.", "Fox B. Wasps. 2002."]


@pytest.mark.parametrize(
    ("end", "values"),
    [
        ("2001;12(3):45-9.", ([2001], "12", "3", "45-9")),
        ("2001;12:45-9.", ([2001], "12", None, "45-9")),
        ("2002 Jul 25;347(4):284-7.", ([2002, 7, 25], "347", "4", "284-7")),
        ("1998 Mar;160(5 Pt 2):2293-301.", ([1998, 3], "160", "5 Pt 2", "2293-301")),
        ("2009;4(5):e5678.", ([2009], "4", "5", "e5678")),
    ],
)
def test_what_stands_together_without_spaces_is_taken_apart(end, values):
    text = f"Rose ME, Marion DW. Concentrations after contusion injury. Brain Res. {end}"
    [item] = to_csl(CitationReader.bundled(n_jobs=1).read([text]))
    read = (item["issued"]["date-parts"][0], item["volume"], item.get("issue"), item["page"])
    assert (item["type"], read) == ("article-journal", values)
    assert item["author"][1] == {"family": "Marion", "given": "DW"}


def test_pieces_are_divided_with_their_labels():
    pieces = ["Hives", "2001;", "30(15):4-9,", "33:3:", "doi:10.1/a:3", "http://a.org:80/", "12:30", "Lee;"]
    labels = ["B-journal", "B-volume", "I-volume", "B-volume", "B-doi", "B-url", "O", "B-author"]
    parts, named = divided_labels(pieces, labels)
    assert parts == [*pieces[:2], "30(15):", "4-9,", *pieces[3:6], "12:", "30", "Lee;"]
    expected = [*labels[:3], "B-pages", *labels[3:6], "O", "O", "B-author"]
    assert named == expected
