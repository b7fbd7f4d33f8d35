"""Kinds of fields inferred from columns of the sorts that data sets of entity resolution have."""

import datetime

import pyarrow as pa
import pytest

from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.kinds import infer_kind, infer_kinds

FIRST = ["Anna", "Robert", "Wei", "Maria", "Ulrich", "Bo", "Karin", "Juan"]
LAST = ["Smith", "Wang", "Garcia", "Meyer", "Okoro", "Lindqvist", "Kim"]
WORDS = ["deep", "graphs", "of", "random", "factors", "in", "large", "learning", "networks", "and", "trees"]


def spread(n, *pools):
    """Combine the elements of pools in an order that looks like chance and is not."""
    return [
        tuple(pool[(i * (7 + 2 * k) + i // (k + 2)) % len(pool)] for k, pool in enumerate(pools))
        for i in range(n)
    ]


def titles(n):
    return [" ".join(words) + f" {i}" for i, words in enumerate(spread(n, WORDS, WORDS, WORDS, WORDS, WORDS))]


def kinds(columns, **options):
    """Kind of each column, with its options."""
    found = infer_kinds(pa.table(columns), **options)
    return {spec.name: (spec.kind, *sorted(spec.options.values())) for spec in found}


def test_bibliographic_mentions_of_authors():
    names = [f"{first} {last}" for first, last in spread(60, FIRST, LAST)]
    turned = [f"{last}, {first[0]}.{last[0]}." for first, last in spread(60, FIRST, LAST)]
    columns = {
        "id": list(range(60)),
        "name": names,
        "author": turned,
        "coauthors": ["|".join(pair) for pair in zip(names[3:] + names[:3], turned, strict=True)],
        "title": titles(60),
        "venue": [("AAAI", "VLDB", "SIGMOD Record")[i % 3] for i in range(60)],
        "year": [str(1980 + i % 30) for i in range(60)],
        "keywords": [("field theory|axion", "plasma", "gauge: U(1)|scalar")[i % 3] for i in range(60)],
    }
    assert kinds(columns, leave_out=["id"]) == {
        "name": ("name", "full"),
        "author": ("name", "full"),
        "coauthors": ("list", "name", "|"),
        "title": ("text",),
        "venue": ("category",),
        "year": ("number",),
        "keywords": ("list", "text", "|"),
    }


def test_citations_with_names_in_a_row_and_dirty_years():
    pairs = spread(60, FIRST, LAST, FIRST, LAST)
    columns = {
        "author": [f"{a[0]}. {b}, {c[0]}. {d}, and r. e. schapire," for a, b, c, d in pairs],
        "authors": [f"{b}, {a[0]}. & {d}, {c[0]}. E." for a, b, c, d in pairs],
        "year": [(f" ({1980 + i % 20}), ", f"{1980 + i % 20}.")[i % 2] for i in range(60)],
        "address": [f"{a} {b}, ca:" for a, b in spread(60, WORDS, LAST)],
        "pages": [f"pp. {i}-{i + 9}." for i in range(60)],
    }
    assert kinds(columns) == {
        "author": ("list", ",", "name"),
        "authors": ("list", ",", "name"),
        "year": ("number",),
        "address": ("text",),
        "pages": ("text",),
    }


def test_persons_with_parts_of_names_codes_and_addresses():
    streets = ["Tullaroop Street", "Giblin St", "Goldfinch Circuit", "Maltby Place"]
    columns = {
        "given_name": [FIRST[i % 8] if i % 9 else None for i in range(60)],
        "surname": [LAST[i % 7] for i in range(60)],
        "fname_c1": [FIRST[i % 8].upper() for i in range(60)],
        "lname_c1": [LAST[i % 7].upper() for i in range(60)],
        "first": [FIRST[i % 8] for i in range(60)],
        "last": [LAST[i % 7] for i in range(60)],
        "street_number": [str(i % 50) for i in range(60)],
        "address_1": [streets[i % 4].lower() for i in range(60)],
        "suburb": [f"{word} hills" for word, _ in spread(60, WORDS, WORDS)],
        "postcode": [f"{i % 37:04d}" for i in range(60)],
        "postcode_fake": [f"tq{i % 20} {i % 20 % 9}df" for i in range(60)],
        "state": [("nsw", "vic", "qld")[i % 3] for i in range(60)],
        "date_of_birth": [f"19{10 + i % 80}{1 + i % 12:02d}{1 + i % 28:02d}" for i in range(60)],
        "dob": [f"{1 + i % 28}/{1 + i % 12}/19{10 + i % 80}" for i in range(60)],
        "soc_sec_id": [str(1804974 + 1713 * (i % 40)) for i in range(60)],
        "email": [f"{FIRST[i % 8]}{i % 30}@smith.net" for i in range(60)],
        "phone": [f"386{i % 30:04d}" for i in range(60)],
        "contact": [f"(312) 386-{i % 30:04d}" for i in range(60)],
        "bm": [str(1 + i % 12) for i in range(60)],
    }
    found = kinds(columns)
    assert found.pop("suburb")[0] in ("location", "category")
    assert found == {
        "given_name": ("name", "first"),
        "surname": ("name", "last"),
        "fname_c1": ("name", "first"),
        "lname_c1": ("name", "last"),
        "first": ("name", "first"),
        "last": ("name", "last"),
        "street_number": ("identifier",),
        "address_1": ("address",),
        "postcode": ("identifier",),
        "postcode_fake": ("identifier",),
        "state": ("category",),
        "date_of_birth": ("date",),
        "dob": ("date",),
        "soc_sec_id": ("identifier",),
        "email": ("email",),
        "phone": ("phone",),
        "contact": ("phone",),
        "bm": ("number",),
    }


def test_things_and_businesses_are_no_persons():
    goods = [
        f"{word} Turntable - PS{i}H" for i, (word, _) in enumerate(spread(60, ["Sony", "Bose", "LG"], WORDS))
    ]
    places = [
        "art's delicatessen",
        "cafe des artistes",
        "the palm",
        "arnie morton's of chicago",
        "bel-air hotel",
    ]
    columns = {
        "name": goods,
        "restaurant": [places[i % 5] + ("" if i % 3 else " grill") + " " * (i % 2) for i in range(60)],
        "address": [f"{400 + i} s. la cienega blv." for i in range(60)],
        "price": [f"${i * 10 + 1:,}.00" for i in range(60)],
        "affiliation": [
            f"{word} U." for word, _ in spread(60, ["Pittsburgh", "Taiwan Natl.", "Bo Smith"], WORDS)
        ],
    }
    found = kinds(columns)
    assert found.pop("restaurant")[0] in ("text", "category")
    assert found.pop("affiliation")[0] in ("text", "category")
    assert found == {"name": ("text",), "address": ("address",), "price": ("number",)}


def test_numbers_may_have_a_decimal_comma():
    columns = {
        "turnover": [f"{i % 20 * 37 + 1}.{i:03d}.000,50 \u20ac" for i in range(60)],
        "weight": [f"{i + 1},{i % 10}" for i in range(60)],
        "points": [f"{i + 1},{i:03d}" for i in range(60)],  # thousands
    }
    found = infer_kinds(pa.table(columns))
    assert {field.name: (field.kind, field.option("decimal")) for field in found} == {
        "turnover": ("number", ","),
        "weight": ("number", ","),
        "points": ("number", "."),
    }
    normal = normalize(pa.table(columns), found)
    assert normal["turnover"]["number"].values[2] == 75_002_000.5
    assert normal["weight"]["number"].values[12] == 13.2


def test_types_of_arrow_decide_where_they_can():
    columns = {
        "by": [["Anna Smith", "Wei Wang"], ["Bo Kim"]] * 15,
        "words": [["deep", "graphs"], ["trees"]] * 15,
        "flag": [True, False] * 15,
        "day": [datetime.date(2001, 2, 3), None] * 15,
        "score": [0.5, 1.5, 2.5] * 10,
        "venue": [3, 4, 5] * 10,
        "inner": [{"x": 1}, {"x": 2}] * 15,
        "lat": [52.5, 13.4, 48.1] * 10,
        "where": ["52.5, 13.4", "48.1, 11.6"] * 15,
    }
    assert kinds(columns) == {
        "by": ("list", "name"),
        "words": ("list", "text"),
        "flag": ("category",),
        "day": ("date",),
        "score": ("number",),
        "venue": ("category",),
        "inner": ("ignore",),
        "lat": ("location", "latitude"),
        "where": ("location", "point"),
    }


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([None] * 30, "all values are missing"),
        (["n/a", "-"] * 15, "no value of a sample says anything"),
        (["same"] * 30, "every record has the same value"),
        ([f"A{i}-X" for i in range(30)], "no value stands twice"),
    ],
)
def test_columns_that_tell_nothing_are_ignored_with_a_reason(values, note):
    (spec,) = infer_kinds(pa.table({"f": pa.array(values, pa.string())}))
    assert (spec.kind, note in spec.note) == ("ignore", True)


def test_texts_that_all_differ_are_kept_and_that_is_noted():
    (spec,) = infer_kinds(pa.table({"title": titles(60)}))
    assert spec.kind == "text"
    assert "no value stands twice" in spec.note


def test_a_single_record_has_kinds_and_normal_forms():
    table = pa.table({"name": ["Ann Smith"], "year": ["1999"], "by": ["A|B"], "zip": ["00420"], "none": [""]})
    specs = infer_kinds(table)
    assert normalize(table, specs).n_rows == 1
    assert infer_kinds(table) == specs


def test_one_value_with_a_bar_that_stands_often_makes_no_list():
    remarks = [f"called on day {k} and left word" for k in range(40)]
    assert infer_kind("note", pa.chunked_array([[*remarks, *["moved | new address"] * 5]])).kind != "list"
    several = [f"moved {k} | new address" for k in range(5)]
    assert infer_kind("note", pa.chunked_array([[*remarks, *several]])).kind == "list"
