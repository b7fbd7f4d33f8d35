"""Reading names by culture; the package that has them is replaced by a few."""

import sys
from types import SimpleNamespace

import pytest

from factorwise.datasets.inventory import load_inventory
from factorwise.errors import MissingExtraError

FAMILY = {
    "Wang": {"CN": 1, "IT": 417},
    "Li": {"CN": 2},
    "Ou-Yang": {"CN": 3},
    "Tsai": {"TW": 1},
    "Smith": {"GB": 1, "US": 7},
    "Singh": {"IN": 1, "GB": 27, "IT": 11},
    "Rossi": {"IT": 1, "FR": 900},
    "Petrov": {"IR": 1, "CZ": 1},
    "Of": {"GB": 2},
    "Van Dijk": {"NL": 1},
    "王": {"CN": 1},
    "Nobody": {"XX": 1},
}
GIVEN = {
    "Wei": {"CN": 2},
    "Wang": {"CN": 1},
    "Xiaoming": {"CN": 9},
    "Jason": {"CN": 3, "GB": 4},
    "Zoë": {"GB": 5},
    "Anna": {"PL": 1, "IT": 8},
}


class Package:
    """Stands in for names_dataset."""

    def __init__(self, load_first_names=True, load_last_names=True):
        self.first_names = self._entries(GIVEN) if load_first_names else None
        self.last_names = self._entries(FAMILY) if load_last_names else None

    @staticmethod
    def _entries(names):
        return {name: {"country": {}, "gender": {}, "rank": ranks} for name, ranks in names.items()}


@pytest.fixture
def inventory(monkeypatch):
    monkeypatch.setitem(sys.modules, "names_dataset", SimpleNamespace(NameDataset=Package))
    return {lists.culture.name: lists for lists in load_inventory()}


def test_names_are_listed_where_they_are_at_home_most_frequent_first(inventory):
    assert inventory["Chinese"].family == ("Wang", "Li", "Tsai")
    assert inventory["Anglo"].family == ("Smith",)
    assert inventory["Indian"].family == ("Singh",)
    assert inventory["Italian"].family == ("Rossi",)


def test_a_given_name_may_be_at_home_in_several_cultures(inventory):
    assert inventory["Polish"].given == ("Anna",)
    assert inventory["Italian"].given == ("Anna",)


def test_names_must_look_like_names_of_their_culture(inventory):
    assert inventory["Chinese"].given == ("Wei", "Xiaoming")
    assert inventory["Anglo"].given == ("Jason", "Zoë")
    assert inventory["Dutch"].family == ()


def test_family_names_written_first_do_not_become_given_names(inventory):
    assert "Wang" not in inventory["Chinese"].given


def test_names_at_home_in_another_country_are_left_out_where_lists_are_mixed_up(inventory):
    assert inventory["Persian"].family == ()
    assert inventory["Czech"].family == ("Petrov",)


def test_without_the_package_the_extra_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "names_dataset", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'factorwise\[generate\]'"):
        load_inventory()
