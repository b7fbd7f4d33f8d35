"""Where outputs may go: never onto what is read."""

from pathlib import Path

import click
import pytest

from factorwise.cli.files import check_target


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ("a.sqlite::people", "a.sqlite::people"),
        ("a.sqlite::People", "./a.sqlite::people"),
        ("a.sqlite::people", "a.sqlite"),
        ("a.sqlite", "a.sqlite::people"),
        ("a.sqlite", "a.sqlite"),
    ],
)
def test_tables_and_files_that_are_read_are_refused(tmp_path, monkeypatch, target, source):
    monkeypatch.chdir(tmp_path)
    Path("a.sqlite").touch()
    with pytest.raises(click.UsageError, match="is also read from: give another"):
        check_target("--output", Path(target), source)


def test_another_table_of_the_same_file_may_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.sqlite").touch()
    check_target("--output", Path("a.sqlite::entities"), "a.sqlite::people", "b.csv", None)
