"""Names of persons taken apart: orders, particles, initials, suffixes; and how they sound."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.apps.resolution.normalize.forms import encoded
from factorwise.apps.resolution.normalize.names import name_forms, name_keys
from factorwise.apps.resolution.normalize.nicknames import nickname_root
from factorwise.apps.resolution.normalize.phonetics import sounds

# name: given, last, suffix
PARTS = {
    "Wang, Shang-Yung": ("shang yung", "wang", None),
    "Wang,Wei": ("wei", "wang", None),
    "D. Scott Mackay": ("d scott", "mackay", None),
    "W. F. Kao": ("w f", "kao", None),
    "Kao, W.F.": ("w f", "kao", None),
    "W.-F. Kao": ("w f", "kao", None),
    "Kao WF": ("w f", "kao", None),
    "Kao, WF": ("w f", "kao", None),
    "Kao W": ("w", "kao", None),
    "Wei XU": ("wei", "xu", None),
    "WEI WANG": ("wei", "wang", None),
    "Wei Wang 0002": ("wei", "wang", None),
    "Ludwig van Beethoven": ("ludwig", "van beethoven", None),
    "Maria de la Cruz": ("maria", "de la cruz", None),
    "de Vega, H.J.": ("h j", "de vega", None),
    "Vega, H. J. de": ("h j", "de vega", None),
    "Van Nguyen": ("van", "nguyen", None),
    "Nicolò Cesa-Bianchi": ("nicolo", "cesa bianchi", None),
    "Conan O'Brien": ("conan", "obrien", None),
    "Jørgen Łukasz Müßig": ("jorgen lukasz", "mussig", None),
    "JOHN SMITH JR.": ("john", "smith", "jr"),
    "Smith, John, Jr.": ("john", "smith", "jr"),
    "Martin Luther King, Jr.": ("martin luther", "king", "jr"),
    "Henry Ford 2nd": ("henry", "ford", "ii"),
    "Prof. Dr. Max Planck": ("max", "planck", None),
    "Jane Goodall, PhD": ("jane", "goodall", None),
    "Md Rahman": ("md", "rahman", None),
    "thomas clifford, 1st baron clifford of chudleigh": ("thomas", "clifford", None),
    "Na, Li": ("li", "na", None),
    "Madonna": (None, "madonna", None),
    "Jr": (None, "jr", None),
    "12345": (None, "12345", None),
    " , ": (None, None, None),
    "unknown": (None, None, None),
    "": (None, None, None),
}


def forms_of(names, part="full"):
    forms = name_forms(encoded(pa.array(names, pa.string())), part)
    return [
        dict(zip(forms, row, strict=True)) for row in zip(*(f.to_list() for f in forms.values()), strict=True)
    ]


def test_names_are_taken_apart_whatever_their_order():
    found = forms_of(list(PARTS))
    assert {
        name: (form["given"], form["last"], form["suffix"]) for name, form in zip(PARTS, found, strict=True)
    } == PARTS


def test_a_name_is_parsed_alike_alone_and_among_others():
    together = forms_of(list(PARTS))
    assert [forms_of([name])[0] | {"tokens": None} for name in PARTS] == [
        form | {"tokens": None} for form in together
    ]


def test_all_forms_of_a_name():
    (form,) = forms_of(["Smith, Bill H. James, Jr"])
    assert form | {"tokens": set(form["tokens"])} == {
        "given": "bill h james",
        "first": "bill",
        "middle": "james",
        "first_initial": "b",
        "middle_initial": "h",
        "root": "william",
        "first_sound": "bal",
        "last": "smith",
        "last_sound": "snat",
        "full": "bill h james smith",
        "key": "smith b",
        "suffix": "jr",
        "tokens": {"bill", "h", "james", "smith"},
    }


def test_an_initial_is_no_first_name_and_what_is_not_known_is_missing():
    (form,) = forms_of(["J. Smith"])
    assert (form["first"], form["first_initial"], form["root"], form["middle_initial"]) == (
        None,
        "j",
        None,
        None,
    )
    assert all(value is None for value in forms_of([None])[0].values())


def test_columns_of_first_or_last_names_keep_their_words_together():
    (first,) = forms_of(["Yuan Xing Q"], "first")
    assert (first["given"], first["first"], first["middle"], first["middle_initial"]) == (
        "yuan xing q",
        "yuan",
        "xing",
        "x",
    )
    assert forms_of(["van der Berg"], "last")[0]["last"] == "van der berg"
    assert set(forms_of(["x"], "last")[0]) == {"last", "last_sound"}


def test_keys_alone_are_the_same_as_among_all_forms():
    full, key = name_keys(pa.array(list(PARTS), pa.string()))
    found = forms_of(list(PARTS))
    assert full.to_list() == [form["full"] for form in found]
    assert key.to_list() == [form["key"] for form in found]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(alphabet="ab Ü.,-'0\u00a0jrdevan", max_size=20), min_size=1, max_size=6))
def test_any_text_is_a_name_or_missing_and_no_word_is_lost_between_its_parts(names):
    for form in forms_of(names):
        parts = " ".join(filter(None, (form["given"], form["last"])))
        assert parts == (form["full"] or "")
        assert set(parts.split()) == set(form["tokens"] or [])
        assert (form["last"] is None) == (form["full"] is None)


def test_short_forms_lead_to_one_root_and_roots_to_themselves():
    assert {nickname_root(name) for name in ("bill", "will", "william")} == {"william"}
    assert nickname_root("kate") == nickname_root("kathryn") == nickname_root("catherine")
    assert nickname_root("wei") == "wei"
    assert nickname_root(nickname_root("peggy")) == nickname_root("peggy")


@pytest.mark.parametrize(
    "alike", [("knight", "night"), ("philip", "filip"), ("macdonald", "mcdonald"), ("schmidt", "schmid")]
)
def test_words_that_sound_alike_have_one_code(alike):
    first, second = sounds(pa.array(alike)).to_pylist()
    assert first == second


def test_codes_are_those_of_nysiis():
    codes = {"brown": "bran", "mackay": "mcy", "johnson": "jansan", "zimmermann": "zanarnan", "lee": "ly"}
    assert sounds(pa.array(list(codes))).to_pylist() == list(codes.values())
    assert sounds(pa.array(["7", "", None, "de vega"])).to_pylist() == [None, None, None, "dafag"]
