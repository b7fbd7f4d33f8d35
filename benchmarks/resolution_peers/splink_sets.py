"""How splink is set up for each set: columns derived in SQL, comparisons, blocking and training rules.

Comparisons come from splink's own library, by the kind of the field; lists and words of texts are compared
by the size of what they share. historical_50k follows splink's published example for that set. abt_buy and
dblp_acm are two tables without duplicates inside, so that only pairs across them are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import splink.comparison_level_library as cll
import splink.comparison_library as cl
from splink import block_on
from splink.blocking_rule_library import And, CustomRule


class Setup(NamedTuple):
    """What splink is told about a set.

    comparisons
        One for each field, or for several that go together.
    blocking
        Pairs that satisfy one of these rules are compared.
    training
        Expectation maximisation runs once for each of these rules, on the pairs that satisfy it.
    certain
        Rules that hold almost only for matches, from which splink estimates how frequent matches are.
    recall
        Share of the matches for which one of the ``certain`` rules is taken to hold.
    derived
        Further columns: SQL expressions over those of the file.
    """

    comparisons: Sequence[Any]
    blocking: Sequence[Any]
    training: Sequence[Any]
    certain: Sequence[Any]
    recall: float = 0.7
    derived: Mapping[str, str] = {}


def filled(expression: str) -> str:
    """SQL for a list that is null where it is empty."""
    return f"CASE WHEN len({expression}) > 0 THEN {expression} END"


def words(column: str, at_least: int = 4) -> str:
    """SQL for the list of distinct words of some length."""
    split = f"string_split_regex(lower({column}), '[^a-z0-9]+')"
    return filled(f"list_distinct(list_filter({split}, lambda word: length(word) >= {at_least}))")


def codes(column: str) -> str:
    """SQL for the list of words with a digit, such as model numbers, without punctuation."""
    split = f"string_split_regex(regexp_replace(lower({column}), '[-/.()]', '', 'g'), '[^a-z0-9]+')"
    kept = f"list_filter({split}, lambda word: length(word) >= 4 AND regexp_matches(word, '[0-9]'))"
    return filled(f"list_distinct({kept})")


def listed(column: str) -> str:
    """SQL for the values between bars."""
    return filled(f"list_distinct(string_split({column}, '|'))")


def plain(column: str) -> str:
    """SQL for a text in small letters without punctuation."""
    return f"nullif(trim(regexp_replace(lower({column}), '[^a-z0-9]+', ' ', 'g')), '')"


def near(column: str, *differences: float) -> Any:
    """Compare numbers by their difference."""
    levels = [cll.NullLevel(column), cll.ExactMatchLevel(column)]
    levels += [cll.AbsoluteDifferenceLevel(column, difference) for difference in differences]
    return cl.CustomComparison([*levels, cll.ElseLevel()], output_column_name=column)


def near_percent(column: str, *shares: float) -> Any:
    """Compare numbers by their difference as a share of the larger one."""
    levels = [cll.NullLevel(column), cll.ExactMatchLevel(column)]
    levels += [cll.PercentageDifferenceLevel(column, share) for share in shares]
    return cl.CustomComparison([*levels, cll.ElseLevel()], output_column_name=column)


def text(column: str, *similarities: float) -> Any:
    return cl.JaroWinklerAtThresholds(column, similarities or (0.95, 0.88, 0.75))


def exact(column: str) -> Any:
    """Compare by equality; a rare value says more than a frequent one."""
    return cl.ExactMatch(column).configure(term_frequency_adjustments=True)


def typing(column: str, *distances: int) -> Any:
    return cl.DamerauLevenshteinAtThresholds(column, distances or (1, 2))


def shared(column: str, *sizes: int) -> Any:
    return cl.ArrayIntersectAtSizes(column, sizes or (3, 2, 1))


def across(*columns: str) -> Any:
    """Block on columns, but only between the two sources."""
    return And(block_on(*columns), CustomRule("l.source <> r.source"))


FEBRL = Setup(
    comparisons=[
        cl.NameComparison("given_name"),
        cl.NameComparison("surname"),
        typing("soc_sec_id"),
        typing("date_of_birth"),
        typing("postcode"),
        text("address_1", 0.92, 0.8),
        text("address_2", 0.92, 0.8),
        text("suburb", 0.92, 0.8),
        exact("state"),
        typing("street_number", 1),
    ],
    blocking=[
        block_on("soc_sec_id"),
        block_on("surname", "given_name"),
        block_on("date_of_birth"),
    ],
    training=[block_on("date_of_birth"), block_on("soc_sec_id")],
    certain=[block_on("soc_sec_id"), block_on("given_name", "surname", "date_of_birth")],
    recall=0.9,
)

# among a million persons a birthday is not enough of a key
FEBRL_LIKE = FEBRL._replace(
    blocking=[
        block_on("soc_sec_id"),
        block_on("surname", "given_name"),
        block_on("date_of_birth", "postcode"),
        block_on("date_of_birth", "surname"),
        block_on("date_of_birth", "suburb"),
    ],
    training=[block_on("surname", "given_name"), block_on("soc_sec_id")],
)

SETUPS = {
    "febrl3": FEBRL,
    "fake_1000": Setup(
        comparisons=[
            cl.NameComparison("first_name"),
            cl.NameComparison("surname"),
            cl.DateOfBirthComparison("dob", input_is_string=True),
            exact("city"),
            cl.EmailComparison("email"),
        ],
        blocking=[block_on("first_name"), block_on("surname"), block_on("dob"), block_on("email")],
        training=[block_on("dob"), block_on("email")],
        certain=[block_on("first_name", "surname", "dob"), block_on("email")],
    ),
    "rldata10000": Setup(
        comparisons=[
            cl.NameComparison("fname_c1"),
            cl.NameComparison("lname_c1"),
            typing("birth_year", 1),
            typing("bm", 1),
            typing("bd", 1),
        ],
        blocking=[
            block_on("fname_c1", "birth_year"),
            block_on("lname_c1", "birth_year"),
            block_on("birth_year", "bm", "bd"),
            block_on("fname_c1", "lname_c1"),
        ],
        training=[block_on("birth_year", "bm", "bd"), block_on("fname_c1", "lname_c1")],
        certain=[block_on("fname_c1", "lname_c1", "birth_year", "bm", "bd")],
        derived={"birth_year": '"by"'},
    ),
    "febrl_like": FEBRL_LIKE,
    "restaurant": Setup(
        comparisons=[
            text("name", 0.95, 0.88, 0.75),
            shared("name_words", 3, 2, 1),
            text("address", 0.92, 0.8),
            text("city", 0.9),
            exact("cuisine"),
        ],
        blocking=[
            block_on("substr(name, 1, 3)"),
            block_on("substr(address, 1, 4)"),
            block_on("name_words", arrays_to_explode=["name_words"]),
        ],
        training=[block_on("substr(address, 1, 4)"), block_on("substr(name, 1, 4)")],
        certain=[block_on("substr(name, 1, 6)", "substr(address, 1, 4)")],
        derived={"name_words": words("name")},
    ),
    "cora1295": Setup(
        comparisons=[
            text("title_plain", 0.95, 0.88, 0.75),
            text("author_plain", 0.95, 0.85, 0.7),
            text("venue_plain", 0.92, 0.8, 0.65),
            typing("year_digits", 1),
            typing("page_digits", 1),
            typing("volume_digits", 1),
            text("publisher", 0.92, 0.8),
        ],
        blocking=[
            block_on("substr(title_plain, 1, 6)"),
            block_on("substr(author_plain, 1, 5)"),
            block_on("page_digits"),
            block_on("title_words", arrays_to_explode=["title_words"]),
        ],
        training=[block_on("substr(author_plain, 1, 5)"), block_on("substr(title_plain, 1, 6)")],
        certain=[block_on("title_plain", "substr(author_plain, 1, 3)")],
        derived={
            "title_plain": plain("title"),
            "author_plain": plain("author"),
            "venue_plain": plain("venue"),
            "title_words": words("title", 7),
            "year_digits": "nullif(regexp_extract(year, '[0-9]{4}'), '')",
            "page_digits": "nullif(regexp_replace(pages, '[^0-9]+', '', 'g'), '')",
            "volume_digits": "nullif(regexp_extract(volume, '[0-9]+'), '')",
        },
    ),
    "abt_buy": Setup(
        comparisons=[
            text("name_plain", 0.92, 0.85, 0.75),
            shared("name_words", 5, 4, 3, 2, 1),
            shared("name_codes", 1),
            shared("description_words", 6, 3, 1),
            near_percent("price_number", 0.05, 0.2),
        ],
        blocking=[
            CustomRule(
                "l.name_codes = r.name_codes AND l.source <> r.source", arrays_to_explode=["name_codes"]
            ),
            across("substr(name_plain, 1, 8)"),
            across("manufacturer_guess"),
        ],
        training=[across("manufacturer_guess"), across("substr(name_plain, 1, 8)")],
        certain=[CustomRule("l.source <> r.source AND list_has_any(l.name_codes, r.name_codes)")],
        derived={
            "name_plain": plain("name"),
            "name_words": words("name", 2),
            "name_codes": codes("name"),
            "description_words": words("description"),
            "price_number": "TRY_CAST(regexp_replace(price, '[^0-9.]', '', 'g') AS DOUBLE)",
            "manufacturer_guess": "split_part(lower(name), ' ', 1)",
        },
    ),
    "dblp_acm": Setup(
        comparisons=[
            text("title_plain", 0.97, 0.92, 0.8),
            text("author_plain", 0.95, 0.85, 0.7),
            shared("author_words", 3, 2, 1),
            near("year_number", 1),
        ],
        blocking=[
            across("substr(title_plain, 1, 8)"),
            across("substr(author_plain, 1, 6)", "year_number"),
            across("author_plain"),
        ],
        training=[across("year_number"), across("substr(title_plain, 1, 8)")],
        certain=[across("title_plain", "year_number")],
        recall=0.8,
        derived={
            "title_plain": plain("title"),
            "author_plain": plain("nullif(authors, '?')"),
            "author_words": words("authors", 3),
            "year_number": "TRY_CAST(year AS INTEGER)",
        },
    ),
    "chicago_early_childhood": Setup(
        comparisons=[
            text("site_plain", 0.95, 0.85, 0.7),
            shared("site_words", 3, 2, 1),
            text("address_plain", 0.95, 0.88, 0.8),
            typing("phone", 1),
            exact("zip"),
        ],
        blocking=[
            block_on("phone"),
            block_on("substr(address_plain, 1, 7)"),
            block_on("substr(site_plain, 1, 8)"),
        ],
        training=[block_on("phone"), block_on("substr(address_plain, 1, 7)")],
        certain=[block_on("phone", "substr(address_plain, 1, 5)")],
        derived={
            "site_plain": plain("site_name"),
            "site_words": words("site_name"),
            "address_plain": plain("address"),
        },
    ),
    "aminer110": Setup(
        comparisons=[
            shared("coauthor_list", 3, 2, 1),
            text("organization", 0.9, 0.75),
            exact("venue"),
            shared("title_words", 3, 2, 1),
            near("year_number", 1, 3, 10),
        ],
        blocking=[block_on("block_name")],
        training=[block_on("block_name"), block_on("venue", "block_name")],
        certain=[
            CustomRule("l.block_name = r.block_name AND list_has_any(l.coauthor_list, r.coauthor_list)")
        ],
        recall=0.5,
        derived={
            "coauthor_list": listed("coauthors"),
            "title_words": words("title", 5),
            "year_number": "TRY_CAST(year AS INTEGER)",
        },
    ),
    "patentsview_inventors": Setup(
        comparisons=[
            cl.NameComparison("first"),
            cl.NameComparison("last"),
            exact("city"),
            exact("state"),
            exact("country"),
            text("assignee", 0.9, 0.75),
            exact("attorney"),
            shared("coinventor_list", 2, 1),
            shared("class_list", 3, 1),
            shared("title_words", 3, 1),
        ],
        blocking=[
            block_on("last", "substr(first, 1, 1)"),
            block_on("assignee", "substr(last, 1, 4)"),
            block_on("first", "substr(last, 1, 3)"),
        ],
        training=[block_on("last", "substr(first, 1, 1)"), block_on("assignee", "city")],
        certain=[block_on("first", "last", "assignee")],
        derived={
            "coinventor_list": listed("coinventors"),
            "class_list": listed("cpc"),
            "title_words": words("title", 5),
        },
    ),
    "inspire_wang": Setup(
        comparisons=[
            cl.NameComparison("first"),
            exact("affiliation"),
            shared("coauthor_list", 10, 3, 1),
            exact("collaborations"),
            exact("journal"),
            near("year_number", 1, 3, 10),
            shared("keyword_list", 3, 1),
            shared("topic_list", 1),
        ],
        blocking=[block_on("last", "substr(first, 1, 1)"), block_on("name")],
        training=[block_on("name"), block_on("affiliation", "substr(first, 1, 1)")],
        certain=[block_on("name", "affiliation")],
        recall=0.5,
        derived={
            "last": "lower(split_part(name, ',', 1))",
            "first": "nullif(trim(lower(split_part(name, ',', 2))), '')",
            "coauthor_list": listed("coauthors"),
            "keyword_list": listed("keywords"),
            "topic_list": listed("topics"),
            "year_number": "TRY_CAST(year AS INTEGER)",
        },
    ),
    "historical_50k": Setup(
        comparisons=[
            cl.ForenameSurnameComparison(
                "first_name", "surname", forename_surname_concat_col_name="first_and_surname"
            ),
            cl.DateOfBirthComparison("dob", input_is_string=True),
            cl.PostcodeComparison("postcode_fake"),
            exact("birth_place"),
            exact("occupation"),
        ],
        blocking=[
            block_on("substr(first_name, 1, 3)", "substr(surname, 1, 4)"),
            block_on("surname", "dob"),
            block_on("first_name", "dob"),
            block_on("postcode_fake", "first_name"),
            block_on("postcode_fake", "surname"),
            block_on("dob", "birth_place"),
            block_on("substr(postcode_fake, 1, 3)", "dob"),
            block_on("substr(postcode_fake, 1, 3)", "first_name"),
            block_on("substr(postcode_fake, 1, 3)", "surname"),
        ],
        training=[block_on("first_name", "surname"), block_on("dob")],
        certain=[
            block_on("first_name", "surname", "dob"),
            block_on("substr(first_name, 1, 2)", "surname", "substr(postcode_fake, 1, 2)"),
            block_on("dob", "postcode_fake"),
        ],
        recall=0.6,
    ),
}
