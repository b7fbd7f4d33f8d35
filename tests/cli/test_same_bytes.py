"""The same input, settings and seed give the same bytes, whenever they are used and on how many threads."""

import contextlib
import hashlib
import io
import os
import sys

import pytest

from command_lines import LINES, concepts, is_written, leaves, whole_folder
from curation_cases import people
from factorwise.cli import main
from factorwise.io.tables.reading import read_table, write_table

# pages say when they were made
WRITING = [line for line in LINES if any(is_written(w) and not w.endswith(".html") for w in line.split())]
# enough for the work to be divided, and a network that is too large for exact answers
LARGER = (
    "align fit many-a.jsonl many-b.jsonl --reference many.tsv --passes 1 --model out.fw",
    "align apply many-a.jsonl many-b.jsonl -o out.tsv",
    "cluster many.csv --labels labels.csv -o out.csv --pairs out-pairs.csv",
    "infer grid.uai -o out.tsv",
    "infer grid.uai --query map -o out.txt",
    "infer small.uai --memory 0.000001 -o out.tsv",
)
# in turn, with a store that they make; what it holds is exported
STORED = (
    "resolve init s.duckdb first.csv --id id",
    "resolve add s.duckdb next.csv --id id",
    "resolve lookup s.duckdb first=anna last=abel",
    "resolve export s.duckdb -o out-members.csv --draws 3",
    "resolve export s.duckdb -o out-records.csv --table records",
    "resolve export s.duckdb -o out-entities.csv --table entities",
    "resolve export s.duckdb -o out-changes.csv --table entity_history",
)

ANIMALS = ("bear", "cat", "dog", "eagle", "fox", "goat", "hare", "ibis", "jay", "kite", "lion", "mole")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = whole_folder(tmp_path_factory.getbasetemp())
    labels = [f"{adjective} {animal}" for adjective in ("brown", "grey", "small") for animal in ANIMALS]
    (place / "many-a.jsonl").write_text(concepts("a", *labels))
    (place / "many-b.jsonl").write_text(concepts("b", *(label.replace("grey", "gray") for label in labels)))
    (place / "many.tsv").write_text("".join(f"a{n}\tb{n}\t=\n" for n in range(0, len(labels), 2)))
    pairs = [f"{n},{n + step},{(n % 10) / 10}\n" for n in range(2_000) for step in (1, 2, 7)]
    (place / "many.csv").write_text("id,other,probability\n" + "".join(pairs))
    (place / "labels.csv").write_text("id,entity\n" + "".join(f"{n},{n // 10}\n" for n in range(500)))
    (place / "grid.uai").write_text(grid(12))
    (place / "small.uai").write_text(grid(6))
    table = people(60).drop_columns(["person"])
    write_table(place / "first.csv", table.slice(0, 90))
    write_table(place / "next.csv", table.slice(90))
    return place


def grid(side):
    """Return a square of variables of two values, each tied to those beside it and below it."""
    cells = range(side * side)
    beside = [(cell, cell + 1) for cell in cells if (cell + 1) % side]
    edges = [*beside, *((cell, cell + side) for cell in cells[:-side])]
    scopes = [f"2 {first} {second}" for first, second in edges]
    tables = [f"4 {1 + number % 3} 1 1 {1 + number % 4}" for number in range(len(edges))]
    return "\n".join(["MARKOV", str(len(cells)), "2 " * len(cells), str(len(edges)), *scopes, *tables, ""])


def digests(line, folder, threads, seed):
    """Run a line whose outputs go to another folder; return the digest of each file but pages."""
    words = [str(folder / word) if is_written(word) else word for word in line.split()]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as left:
        main.main([*words, "--quiet", "--threads", str(threads), "--seed", str(seed)])
    assert left.value.code == 0, line
    files = [path for path in sorted(folder.iterdir()) if path.suffix != ".html"]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("line", [*WRITING, *LARGER])
def test_two_runs_one_digest(line, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(whole)
    runs = []
    for number, threads in enumerate((1, 2, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setattr(sys, "argv", [f"/run/{number}/factorwise", str(folder), f"--threads={threads}"])
        monkeypatch.setenv("USER", f"user{number}")
        runs.append(digests(line, folder, threads, 3))
    assert runs[0]
    assert runs[0] == runs[1] == runs[2]


def test_two_stores_hold_the_same(whole, tmp_path, monkeypatch, capsys):
    runs = []
    for number, threads in enumerate((1, 2, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        for line in STORED:
            words = [str(whole / word) if (whole / word).is_file() else word for word in line.split()]
            with pytest.raises(SystemExit) as left:
                main.main([*words, "--threads", str(threads), "--seed", "3", "--json"])
            assert left.value.code == 0, line
        tables = {path.name: read_table(path) for path in sorted(folder.glob("*.csv"))}
        runs.append([capsys.readouterr().out, *map(without_times, tables.values())])
    assert len(runs[0]) == 5
    assert runs[0] == runs[1] == runs[2]


def without_times(table):
    return table.drop_columns(
        [name for name in ("made", "changed") if name in table.column_names]
    ).to_pylist()


def test_every_verb_that_writes_is_run_twice():
    tried = {
        verb for verb in leaves() for line in (*WRITING, *LARGER, *STORED) if line.startswith(f"{verb} ")
    }
    printing = {f"{group} score" for group in ("resolve", "tag", "coref", "align", "flows")}
    printing |= {"resolve blocks", "resolve explain", "resolve history", "align explain", "tag inspect"}
    printing |= {"inspect", "doctor", "completion"}
    assert tried == leaves() - printing - {"review", "resolve undo", "demo", "generate authors"}


@pytest.mark.parametrize("line", [line for line in LINES if line.split()[1:2] == ["fit"]])
def test_a_model_file_names_no_folder_and_no_user(line, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(whole)
    monkeypatch.setenv("USER", "a-very-special-user")
    words = [str(whole / word) if (whole / word).is_file() else word for word in line.split()]
    words = [str(tmp_path / word) if is_written(word) else word for word in words]
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as left:
        main.main([*words, "--quiet"])
    assert left.value.code == 0
    content = (tmp_path / "out.fw").read_bytes()
    for told in (str(whole), str(tmp_path), "a-very-special-user", os.uname().nodename):
        assert told.encode() not in content
