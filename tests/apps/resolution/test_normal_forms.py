"""Normal forms of each kind, and that they are the same however a column lies in memory."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.apps.resolution.normalize.forms import Lists, Numbers, Strings, encoded
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.normalize.words import MISSING_TEXTS, normal_words
from factorwise.apps.resolution.schema.fields import KINDS, FieldSpec
from factorwise.errors import InvalidArgumentError


def forms(kind, values, **options):
    table = values if isinstance(values, pa.Table) else pa.table({"f": values})
    return {
        name: form.to_list() for name, form in normalize(table, [FieldSpec("f", kind, options)])["f"].items()
    }


def as_sets(rows):
    return [None if row is None else set(row) for row in rows]


def test_text_is_folded_and_cut():
    found = forms("text", ["  Phys.Rev. A", "Zoë\u2019s  Straße", "phys rev a A", "한국어 नमस्ते", "x\u00a0y"])
    assert found["text"] == ["phys rev a", "zoes strasse", "phys rev a a", "한국어 नमस्ते", "x y"]
    assert as_sets(found["tokens"]) == [
        {"phys", "rev", "a"},
        {"zoes", "strasse"},
        {"phys", "rev", "a"},
        {"한국어", "नमस्ते"},
        {"x", "y"},
    ]


@pytest.mark.parametrize(
    "nothing", [None, "", "  ", "NA", "n/a", "N.A.", "null", "None", "unknown", "-", "--", "NaN"]
)
@pytest.mark.parametrize(
    "kind", ["text", "category", "identifier", "address", "list", "number", "date", "phone"]
)
def test_what_says_nothing_is_missing_in_every_form(kind, nothing):
    table = pa.table({"f": pa.array([nothing, "a1"], pa.string())})
    assert all(form.missing[0] for form in normalize(table, [FieldSpec("f", kind)])["f"].values())


@settings(deadline=None, max_examples=200)
@given(st.lists(st.one_of(st.none(), st.text(max_size=12)), min_size=1, max_size=8))
def test_text_of_a_column_is_the_words_of_each_value(values):
    found = forms("text", pa.array(values, pa.string()))["text"]
    for value, text in zip(values, found, strict=True):
        words = " ".join(word for piece in (value or "").split() for word in normal_words(piece))
        assert text == (None if words in MISSING_TEXTS else words or None)
    assert forms("text", pa.array(found, pa.string()))["text"] == found


@pytest.mark.parametrize("kind", ["text", "name", "list", "address"])
def test_forms_do_not_depend_on_how_the_column_lies_in_memory(kind):
    values = ["Ann Lee|B C", None, "1 Main St.", "Ann Lee|B C", "Zoë"]
    whole = pa.array(values)
    layouts = [
        pa.chunked_array([whole]),
        pa.chunked_array([whole.slice(0, 2), whole.slice(2, 0), whole.slice(2)]),
        pa.chunked_array([pa.array(["x", *values]).slice(1)]),
        pa.chunked_array([whole.cast(pa.large_string())]),
        pa.chunked_array([whole.dictionary_encode()]),
        pa.chunked_array([whole.slice(0, 3).dictionary_encode(), whole.slice(3).dictionary_encode()]),
        pa.chunked_array(
            [pa.DictionaryArray.from_arrays([3, None, 1, 3, 0], ["Zoë", "1 Main St.", "-", values[0]])]
        ),
    ]
    expected = forms(kind, pa.table({"f": layouts[0]}))
    for layout in layouts[1:]:
        assert forms(kind, pa.table({"f": layout})) == expected


@pytest.mark.parametrize("kind", ["text", "list"])
def test_long_columns_of_values_that_hardly_repeat_have_the_forms_of_short_ones(kind):
    values = [f"A{i} of|B-{i % 1000}" for i in range(150_000)]
    values[5], values[149_000], values[149_999] = None, "n/a", values[7]
    field = normalize(pa.table({"f": values}), [FieldSpec("f", kind)])["f"]
    picked = [0, 5, 7, 131_071, 131_072, 149_000, 149_999]
    short = normalize(pa.table({"f": [values[row] for row in picked]}), [FieldSpec("f", kind)])["f"]
    for name, form in field.items():
        found, expected = form.rows(np.array(picked)).to_list(), short[name].to_list()
        assert (found == expected) if isinstance(form, Strings) else (as_sets(found) == as_sets(expected))
        assert len(set(form.values.to_pylist())) == len(form.values)


def test_strings_are_coded_in_order_of_first_appearance_and_each_once():
    column = encoded(pa.array(["b", None, "a", "b"]))
    assert column.codes.tolist() == [0, -1, 1, 0]
    assert column.values.to_pylist() == ["b", "a"]
    text = normalize(pa.table({"f": ["B!", "a", "b", "NA"]}), [FieldSpec("f", "category")])["f"].strings(
        "text"
    )
    assert (text.codes.tolist(), text.values.to_pylist()) == ([0, 1, 0, -1], ["b", "a"])
    assert text.codes.dtype == np.int32


def test_numbers_are_found_in_texts():
    found = forms(
        "number", ["$1,299.00", "1995,", " (1992), ", "-5", "pp. 322-331", ".5", "1e3", "PS-350", "12,5"]
    )
    assert found["number"] == [1299.0, 1995.0, 1992.0, -5.0, 322.0, 0.5, 1000.0, 350.0, 12.0]
    assert forms("number", ["1.299,50", "- 3,5"], decimal=",")["number"] == [1299.5, -3.5]
    assert forms("number", [1, None, 3])["number"] == [1.0, None, 3.0]
    assert forms("number", [1.5, np.inf, np.nan])["number"] == [1.5, None, None]


def test_dates_are_read_in_all_their_forms():
    texts = ["1971-06-24", "19710624", "24/06/1971", "24.6.71", "24 June 1971", "June 24th, 1971"]
    found = forms("date", texts)
    assert set(found["date"]) == {"1971-06-24"}
    assert set(found["digits"]) == {"19710624"}
    assert set(found["days"]) == {539.0}
    assert (set(found["year"]), set(found["month"]), set(found["day"])) == ({1971.0}, {6.0}, {24.0})


def test_dates_that_are_not_whole_say_what_they_know():
    found = forms("date", ["(1992),", "Jun. 1971", "19450631", "19451399", "1945-02-31"])
    assert found["date"] == ["1992", "1971-06", "1945-06-31", "1945", "1945-02-31"]
    assert found["days"] == [None] * 5
    assert found["digits"] == ["1992", "1971", "19450631", "19451399", "19450231"]


def test_the_column_decides_whether_the_month_comes_first():
    assert forms("date", ["03/04/2001", "03/25/2001"])["date"] == ["2001-03-04", "2001-03-25"]
    assert forms("date", ["03/04/2001", "25/03/2001"])["date"] == ["2001-04-03", "2001-03-25"]
    assert forms("date", ["03/04/2001"], order="mdy")["date"] == ["2001-03-04"]


def test_times_of_arrow_are_dates():
    column = pa.array(["1971-06-24T10:00:00", None]).cast(pa.timestamp("us"))
    assert forms("date", column)["days"] == [539.0, None]


def test_addresses_are_taken_apart():
    found = forms(
        "address", ["435 s. la cienega blv.", "12-14 Kings Rd, London SW1A 1AA", "tullaroop street", "6"]
    )
    assert found["number"] == ["435", "12-14", None, "6"]
    assert found["street"] == ["south la cienega boulevard", "kings road", "tullaroop street", None]
    assert found["postcode"] == [None, "sw1a1aa", None, None]
    assert found["text"][0] == "435 south la cienega boulevard"
    assert set(found["tokens"][2]) == {"tullaroop", "street"}


def test_email_phone_and_codes():
    assert forms("email", [" Rob.A+x@Smith.NET", "foo"]) == {
        "email": ["rob.a+x@smith.net", "foo"],
        "local": ["rob.a", "foo"],
        "domain": ["smith.net", None],
    }
    assert forms("phone", ["(312) 386-5286", "386 5286"]) == {
        "phone": ["3123865286", "3865286"],
        "tail": ["3865286", "3865286"],
    }
    assert forms("identifier", ["PS-LX 350", "007"])["code"] == ["pslx350", "007"]


def test_locations_are_points_or_places():
    assert forms("location", ["52.5, 13.4", "95.0 13.4", "-33.9;151.2"], part="point") == {
        "latitude": [52.5, None, -33.9],
        "longitude": [13.4, None, 151.2],
    }
    assert forms("location", ["52.5"], part="latitude") == {"latitude": [52.5]}
    assert forms("location", ["São Paulo"])["text"] == ["sao paulo"]


def test_lists_are_sets_of_items():
    rows = forms("list", ["a B|c| |A b", "c", None, "n/a|"])["items"]
    assert as_sets(rows) == [{"a b", "c"}, {"c"}, None, None]
    assert as_sets(forms("list", [["a B", None, "c"], [], None])["items"]) == [{"a b", "c"}, None, None]
    assert as_sets(forms("list", ["x; y"], separator=";")["items"]) == [{"x", "y"}]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("p. auer, n. cesa-bianchi, and r. e. schapire,", {"p auer", "n cesa bianchi", "r e schapire"}),
        (" Brodley, C. E. & Utgoff, P. E. ", {"c e brodley", "p e utgoff"}),
        ("Fahlman, S.E., & Lebiere, C.", {"s e fahlman", "c lebiere"}),
        ("Brodley, Carla and Utgoff, Paul E.", {"carla brodley", "paul e utgoff"}),
        ("Viswanath Poosala, Yannis E. Ioannidis", {"viswanath poosala", "yannis e ioannidis"}),
        ("D. Scott Mackay", {"d scott mackay"}),
    ],
)
def test_names_in_a_row_are_cut_between_persons(text, names):
    found = forms("list", [text], separator=",", items="name")
    assert set(found["items"][0]) == names


def test_names_in_lists_have_keys():
    found = forms("list", ["Kao, W.F.|Chyi, Tzuu-Kang|W. F. Kao"], items="name")
    assert as_sets(found["items"]) == [{"w f kao", "tzuu kang chyi"}]
    assert as_sets(found["keys"]) == [{"kao w", "chyi t"}]


def test_codes_within_a_list_ascend_and_stand_once():
    field = normalize(pa.table({"f": ["c b a c", "a b"]}), [FieldSpec("f", "text")])["f"]
    tokens = field.lists("tokens")
    for row in range(2):
        codes = tokens.codes[tokens.offsets[row] : tokens.offsets[row + 1]]
        assert (np.diff(codes) > 0).all()


def test_a_table_gives_its_forms_by_name_and_to_arrow():
    table = pa.table({"a": ["x y", None], "b": ["1", "2"], "c": ["", ""]})
    specs = [FieldSpec("a", "text"), FieldSpec("b", "number"), FieldSpec("c", "ignore")]
    normal = normalize(table, specs)
    assert (list(normal), normal.n_rows) == (["a", "b"], 2)
    assert normal.to_arrow().to_pydict() == {
        "a.text": ["x y", None],
        "a.tokens": [["x", "y"], None],
        "b.number": [1.0, 2.0],
    }
    assert "text" in normal["a"]
    assert "number" not in normal["a"]
    assert "c" not in normal
    assert isinstance(normal["a"].strings("text"), Strings)
    assert isinstance(normal["a"].lists("tokens"), Lists)
    assert isinstance(normal["b"].numbers("number"), Numbers)
    with pytest.raises(InvalidArgumentError, match="has no form 'last'; it has text, tokens"):
        normal["a"]["last"]
    with pytest.raises(InvalidArgumentError, match="there is no field 'c'; there are a, b"):
        normal["c"]
    with pytest.raises(InvalidArgumentError, match="is Strings, not Numbers"):
        normal["a"].numbers("text")


def test_columns_that_do_not_fit_their_kind_are_refused():
    with pytest.raises(InvalidArgumentError, match="no column 'g'"):
        normalize(pa.table({"f": ["x"]}), [FieldSpec("g", "text")])
    with pytest.raises(InvalidArgumentError, match="Make it a list"):
        normalize(pa.table({"f": [["x"]]}), [FieldSpec("f", "text")])
    with pytest.raises(InvalidArgumentError, match="ignore it"):
        normalize(pa.table({"f": [{"x": 1}]}), [FieldSpec("f", "text")])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("ignore", "scores")])
def test_every_kind_stands_a_long_value_and_columns_of_nothing(kind):
    long = [str([0.5] * 100_000)] * 2 if kind == "vector" else ["x" * 1_000_000, "1, 2"]
    for column in (pa.array([None, None], pa.string()), pa.nulls(2), pa.array(long)):
        field = normalize(pa.table({"f": column}), [FieldSpec("f", kind)])["f"]
        assert all(len(form) == 2 for form in field.values())
