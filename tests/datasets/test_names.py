"""Names of authors."""

from collections import Counter

import numpy as np
import pytest

from factorwise.datasets.cultures import CULTURES
from factorwise.datasets.inventory import NameLists
from factorwise.datasets.names import (
    SHARED_INITIAL,
    SHARED_NAME,
    draw_families,
    draw_names,
    expected_sharing,
    name_table,
    solve_laws,
)


@pytest.fixture(scope="module")
def table(lists):
    return name_table(lists)


@pytest.fixture(scope="module")
def drawn(table):
    """Laws and names for 30,000 authors."""
    laws = solve_laws(table, 30_000)
    return laws, draw_names(np.random.default_rng(3), table, 30_000, laws)


def test_expected_sharing_is_the_sum_over_all_pairs_of_names():
    first, second = (np.arange(1, 60) ** -1.1, np.arange(1, 40) ** -0.7)
    first, second = first / first.sum(), second / second.sum()
    pairs = np.outer(first, second)
    exact = 0.3 * (pairs * (1 - np.exp(-500 * 0.3 * pairs))).sum()
    assert expected_sharing(500, 0.3, first, second) == pytest.approx(exact, rel=1e-3)


def test_with_more_authors_rarer_names_are_drawn_more(few):
    table = name_table(few)
    fewer, more = solve_laws(table, 3_000), solve_laws(table, 6_000)
    assert 0.1 < more.family < fewer.family - 0.05


def test_names_are_shared_as_often_as_solved_for(table, drawn):
    _, names = drawn
    texts = [
        (given, table.given[middle].as_py()[0] if middle >= 0 else "", family)
        for given, middle, family in zip(names.given, names.middle.tolist(), names.family, strict=True)
    ]
    full = Counter(texts)
    shared = sum(count for count in full.values() if count > 1) / len(texts)
    assert shared == pytest.approx(SHARED_NAME, abs=0.02)
    keys = list(zip(table.family_key[names.family], table.initial[names.given], strict=True))
    initial = Counter(keys)
    assert sum(c for c in initial.values() if c > 1) / len(keys) == pytest.approx(SHARED_INITIAL, abs=0.05)


def test_given_and_family_names_are_of_one_culture(table, drawn):
    _, names = drawn
    for rows, start in ((names.given, table.given_start), (names.family, table.family_start)):
        np.testing.assert_array_equal(np.searchsorted(start, rows, side="right") - 1, names.culture)
    with_middle = names.middle >= 0
    found = np.searchsorted(table.given_start, names.middle[with_middle], side="right") - 1
    np.testing.assert_array_equal(found, names.culture[with_middle])


def test_every_stretch_of_authors_has_its_part_of_shared_names(table, drawn):
    _, names = drawn
    counts = Counter(zip(names.given, names.middle >= 0, names.family, strict=True))
    flags = np.array(
        [counts[key] > 1 for key in zip(names.given, names.middle >= 0, names.family, strict=True)]
    )
    parts = flags[: len(flags) // 300 * 300].reshape(-1, 300).mean(1)
    by_chance = np.sqrt(flags.mean() * (1 - flags.mean()) / 300)
    assert parts.std() < 0.6 * by_chance


def test_families_are_drawn_from_the_culture_asked_for(table, drawn):
    laws, _ = drawn
    culture = np.array([3, 0, 3, 7])
    family = draw_families(np.random.default_rng(0), table, culture, laws)
    np.testing.assert_array_equal(np.searchsorted(table.family_start, family, side="right") - 1, culture)


def test_family_names_that_differ_in_accents_or_case_are_one_key():
    lists = NameLists(
        CULTURES[1], ("Zoë", "Zara", "ann"), ("Müller", "Mueller", "MULLER", "Wałęsa", "Walesa")
    )
    table = name_table([lists])
    key = table.family_key
    assert key[0] == key[2] != key[1]
    assert key[3] == key[4]
    assert table.initial[0] == table.initial[1] != table.initial[2]
