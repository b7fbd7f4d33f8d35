"""The data directory: found by its variable, or an error that says how to set it."""

import pytest

from factorwise.datasets.local import data_directory, find_data
from factorwise.errors import InvalidArgumentError, MissingDataError


@pytest.fixture
def sets(tmp_path, monkeypatch):
    (tmp_path / "er" / "cora").mkdir(parents=True)
    (tmp_path / "er" / "febrl").mkdir()
    (tmp_path / "letters.csv").write_text("a\n")
    monkeypatch.setenv("FACTORWISE_DATA", str(tmp_path))
    return tmp_path


def test_sets_are_found_by_name(sets):
    assert data_directory() == sets
    assert find_data("er/cora") == sets / "er" / "cora"
    assert find_data("letters.csv") == sets / "letters.csv"


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_the_error_says_how_to_set_it(monkeypatch, value):
    monkeypatch.delenv("FACTORWISE_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("FACTORWISE_DATA", value)
    with pytest.raises(MissingDataError, match=r"not set.*export FACTORWISE_DATA="):
        find_data("er/cora")


def test_a_variable_that_names_no_folder_is_refused(sets, monkeypatch):
    monkeypatch.setenv("FACTORWISE_DATA", str(sets / "letters.csv"))
    with pytest.raises(MissingDataError, match=r"letters.csv', which is not a readable folder.*or unset it"):
        data_directory()


@pytest.mark.usefixtures("sets")
def test_a_missing_set_is_refused_with_the_nearest_name_and_what_there_is():
    with pytest.raises(MissingDataError, match=r"'er/corra'.*Did you mean 'cora'\?.*contains cora, febrl"):
        find_data("er/corra")
    with pytest.raises(
        MissingDataError, match=r"FACTORWISE_DATA has no 'xyzzy'\. It contains er, letters\.csv"
    ):
        find_data("xyzzy")
    with pytest.raises(MissingDataError, match="It contains nothing"):
        find_data("letters.csv/inside")


@pytest.mark.usefixtures("sets")
@pytest.mark.parametrize("name", ["", "/er", "..", "er/../../x"])
def test_a_name_that_leads_outside_is_refused(name):
    with pytest.raises(InvalidArgumentError, match="inside the data directory"):
        find_data(name)
