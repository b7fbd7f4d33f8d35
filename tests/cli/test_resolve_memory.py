"""`resolve apply --memory` and `--dry-run`: the same answer from files, killed anywhere, and nothing left."""

import errno
import json
import signal
import subprocess
import sys

import pyarrow.csv as pacsv
import pytest

from factorwise.cli import main
from factorwise.io import columns
from factorwise.io.tables.reading import read_table, write_table
from resolution_cases import people_table

STAGES = {
    "normal forms": "factorwise.apps.resolution.normalize.normal_forms:normal_forms",
    "keys": "factorwise.apps.resolution.blocking.candidates:blocks_of",
    "joins": "factorwise.apps.resolution.blocking.candidates:merge_pairs",
    "comparisons": "factorwise.apps.resolution.comparisons.plan:chunks",
    "groups": "factorwise.apps.resolution.resolving:find_groups",
    "walk": "factorwise.apps.resolution.resolving:search_group",
    "confidence": "factorwise.apps.resolution.linked_items:chances_of_range",
    "names": "factorwise.apps.resolution.estimator:entity_names",
    "writing": "factorwise.cli.files:write_output",
}
KILLED = """
import importlib, os, signal, sys
from factorwise.cli import main
module, name = sys.argv.pop(1).split(":")
module = importlib.import_module(module)
called = getattr(module, name)
def kill(*given, **more):
    result = called(*given, **more)
    os.kill(os.getpid(), signal.SIGKILL)
    return result
setattr(module, name, kill)
main.main(sys.argv[1:])
"""
SPILLING = ["--memory", "200MB"]  # less than the program itself takes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("people")
    table = people_table(40)
    pacsv.write_csv(table, place / "people.csv")
    pacsv.write_csv(table.drop_columns(["person"]), place / "records.csv")
    given = ["resolve", "fit", "people.csv", "--id", "id", "--entity", "person"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        with pytest.raises(SystemExit) as end:
            main.main([*given, "--model", "people.fw", "--threads", "1", "--quiet"])
        assert end.value.code == 0
    return place


@pytest.fixture
def scratch(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def words(output, *more):
    given = ["resolve", "apply", "records.csv", "--id", "id", "--model", "people.fw", "--rounds", "4"]
    return [*given, "--threads", "1", "-o", str(output), *more]


def run(*given):
    with pytest.raises(SystemExit) as end:
        main.main([*given])
    return end.value.code


def test_files_instead_of_memory_give_the_same_bytes_and_are_told(scratch, tmp_path, capsys):
    assert run(*words(tmp_path / "plain.csv", "--quiet")) == 0
    assert run(*words(tmp_path / "spilled.csv", *SPILLING)) == 0
    assert (tmp_path / "plain.csv").read_bytes() == (tmp_path / "spilled.csv").read_bytes()
    assert "do not fit into 200.0 MB of memory" in capsys.readouterr().err
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_that_is_killed_in_a_stage_leaves_what_was_there(stage, folder, scratch, tmp_path):
    output = tmp_path / "out.csv"
    output.write_bytes(b"what was there before")
    command = [sys.executable, "-c", KILLED, STAGES[stage], *words(output, *SPILLING, "--quiet")]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    if stage == "writing":  # it is written whole before the process is killed
        assert output.read_bytes().startswith(b'"id"')
    else:
        assert output.read_bytes() == b"what was there before"
    assert not list(tmp_path.glob(".*.part"))
    assert run(*words(output, *SPILLING, "--quiet")) == 0
    assert list(scratch.iterdir()) == []  # what the killed run left is gone as well


def test_a_full_disk_is_one_clear_line(scratch, tmp_path, monkeypatch, capsys):
    def full(handle, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(columns, "take_room", full)
    assert run(*words(tmp_path / "out.csv", *SPILLING, "--quiet")) != 0
    told = capsys.readouterr().err
    assert "No space left on device" in told
    assert "Traceback" not in told
    assert not (tmp_path / "out.csv").exists()
    assert list(scratch.iterdir()) == []


def test_sizes_that_are_none_are_mistakes_of_the_user(scratch, tmp_path, capsys):
    assert run(*words(tmp_path / "out.csv", "--memory", "much")) == 2
    assert "memory must be a size such as 4GB" in capsys.readouterr().err


def test_a_dry_run_counts_and_compares_nothing(scratch, tmp_path, capsys):
    given = words(tmp_path / "out.csv", "--dry-run", "--json")
    assert run(*given) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["pairs"] > 0
    assert document["expected"]["memory"] > 0
    assert len(document["rules"]) >= 1
    assert not (tmp_path / "out.csv").exists()


def test_an_output_is_needed_unless_only_counted(folder, scratch, capsys):
    given = ["resolve", "apply", "records.csv", "--id", "id", "--model", "people.fw"]
    assert run(*given) == 2
    assert "Missing option '-o'" in capsys.readouterr().err
    assert run(*given, "--dry-run") == 0
    assert "to resolve" in capsys.readouterr().out


def test_records_are_read_from_a_database_and_entities_written_back(scratch, tmp_path, capsys):
    assert run(*words(tmp_path / "out.csv", "--quiet")) == 0
    database = tmp_path / "people.sqlite"
    write_table(f"{database}::people", read_table("records.csv"))
    given = words(f"{database}::entities", "--quiet")
    given[2] = f"{database}::people"
    assert run(*given) == 0
    assert read_table(f"{database}::entities").select(["id", "entity"]).to_pylist() == (
        read_table(tmp_path / "out.csv").select(["id", "entity"]).to_pylist()
    )
