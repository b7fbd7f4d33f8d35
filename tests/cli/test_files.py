"""Where outputs may go: never onto what is read."""

from pathlib import Path

import click
import pytest

from command_lines import LINES, write_inputs
from factorwise.cli import main
from factorwise.cli.files import check_target
from factorwise.io.models.files import ModelFile, write_model


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
    with pytest.raises(click.UsageError, match="is also an input: give another"):
        check_target("--output", Path(target), source)


def test_another_table_of_the_same_file_may_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.sqlite").touch()
    check_target("--output", Path("a.sqlite::entities"), "a.sqlite::people", "b.csv", None)


FITTING = [line for line in LINES if "--model out" in line and "--warm-start" not in line]


@pytest.mark.parametrize("line", FITTING)
def test_a_model_takes_the_place_of_no_other_file(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    target = Path(next(word for word in line.split() if word.startswith("out") and word.endswith(".fw")))
    target.write_text("a year of work\n", encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main.main(line.split())
    assert left.value.code == 2
    assert f"--model '{target}' is not a model file" in capsys.readouterr().err
    assert target.read_text(encoding="utf-8") == "a year of work\n"


def test_a_model_takes_the_place_of_a_model_an_empty_file_or_nothing(tmp_path):
    target = tmp_path / "m.fw"
    for make in (lambda: None, target.touch, lambda: write_model(target, ModelFile(kind="weights"))):
        make()
        check_target("--model", target)
    target.write_bytes(b"PK\x03\x04 some other archive, of which a model would be the end")
    with pytest.raises(click.UsageError, match="is not a model file: give another name, or remove it first"):
        check_target("--model", target)
