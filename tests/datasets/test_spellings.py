"""How names are written."""

import numpy as np
import pytest

from factorwise.datasets.cultures import CULTURES
from factorwise.datasets.inventory import NameLists
from factorwise.datasets.names import Laws, Names, name_table
from factorwise.datasets.spellings import KINDS, Spellings, use_spellings, write_names

LAWS = Laws(1.0, 1.0)


def names_of(*parts):
    """Table with one culture and one author called as given: first, middle or "", last."""
    first, middle, last = parts
    anglo = next(culture for culture in CULTURES if culture.name == "Anglo")
    lists = NameLists(anglo, (first, middle or "Xerxes"), (last, "Newname"))
    table = name_table([lists])
    author = np.zeros(4_000, dtype=np.int64)
    return table, Names(author, author, author + 1 if middle else author - 1, author)


def variants(*parts, kind):
    """Every way in which variants of a kind were written."""
    table, names = names_of(*parts)
    careers = np.full(len(names.given), 40)
    made = write_names(np.random.default_rng(0), table, names, LAWS, careers)
    place = list(KINDS).index(kind)
    rows = np.flatnonzero(made.kind == place)
    common = {made.name[int(row)].as_py() for row in made.author[rows]}
    return common, {made.name[int(row)].as_py() for row in rows}


@pytest.mark.parametrize(
    ("parts", "kind", "written"),
    [
        (("Michael", "", "Smith"), "nickname", {"Mike Smith"}),
        (("Anne", "", "O'Neil"), "punctuation", {"Anne ONeil"}),
        (("Jean-Luc", "", "Roy"), "punctuation", {"JeanLuc Roy", "Jean Luc Roy"}),
        (("Anne", "", "Smith"), "middle name added or dropped", {"Anne A. Smith"}),
        (("Anne", "Ruth", "Smith"), "middle name added or dropped", {"Anne Smith"}),
        (("Christoph", "", "Roy"), "first name respelt", {"Christof Roy"}),
        (("Anne", "", "Smith"), "first name to initial", {"A. Smith"}),
        (("Anne", "Ruth", "Smith"), "first name to initial", {"A. R. Smith"}),
        (("Zoë", "", "Müller"), "case and accents", {"Zoe Muller"}),
        (("Anne", "", "Smith"), "case and accents", {"Anne SMITH"}),
        (("Anne", "", "Smith"), "order", {"Smith, Anne"}),
        (("Anne", "", "Smith"), "initial and order", {"Smith, A."}),
    ],
)
def test_a_variant_is_what_its_kind_says(parts, kind, written):
    common, found = variants(*parts, kind=kind)
    assert all(name.startswith(parts[0]) and name.endswith(parts[2]) for name in common)
    assert found == written


def test_a_changed_last_name_is_another_one_or_both():
    _, found = variants("Anne", "", "Smith", kind="last name changed")
    assert {"Anne Newname", "Anne Smith-Newname"} <= found


def test_middle_names_are_initials_or_whole():
    common, _ = variants("Anne", "Ruth", "Smith", kind="order")
    assert common == {"Anne R. Smith", "Anne Ruth Smith"}


def test_kinds_have_their_shares_and_only_where_they_can_be(small):
    made = small.spellings
    kinds = np.bincount(made.kind[made.kind >= 0], minlength=len(KINDS))
    np.testing.assert_allclose(kinds / kinds.sum(), list(KINDS.values()), atol=0.02)


def test_shares_of_kinds_add_up_to_one():
    assert sum(KINDS.values()) == pytest.approx(1)


def test_a_mention_is_written_in_a_way_of_its_author(small):
    np.testing.assert_array_equal(small.spellings.author[small.used], small.papers.author)


def test_a_changed_last_name_stays_to_the_end():
    changed = list(KINDS).index("last name changed")
    made = Spellings(np.array([0, 0]), np.array([-1, changed]), None, None, None)
    seen = set()
    for seed in range(40):
        used = use_spellings(np.random.default_rng(seed), made, np.array([10])).tolist()
        assert used == sorted(used)
        assert used[0] == 0
        assert used[-1] == 1
        seen.add(sum(used))
    assert len(seen) > 5


def test_other_variants_are_used_for_a_stretch_of_at_most_about_half_a_career():
    made = Spellings(np.array([0, 0]), np.array([-1, 0]), None, None, None)
    for seed in range(40):
        used = use_spellings(np.random.default_rng(seed), made, np.array([10]))
        assert 1 <= used.sum() <= 6
        assert np.count_nonzero(np.diff(used)) <= 2
