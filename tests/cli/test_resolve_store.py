"""Stores by the command line: made, added to, asked, exported, changed back."""

import json
import os

import pyarrow.csv
import pytest

from curation_cases import people
from factorwise.cli import main
from factorwise.io.tables import files as table_files
from factorwise.io.tables.reading import read_table
from factorwise.store import Cause, Store


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    table = people(40).drop_columns(["person"])
    pyarrow.csv.write_csv(table, folder / "people.csv")
    with pytest.raises(SystemExit) as left:
        main.main(["resolve", "init", str(folder / "s.duckdb"), str(folder / "people.csv"), "--id", "id"])
    assert left.value.code == 0
    return folder


@pytest.fixture
def path(made, tmp_path):
    target = tmp_path / "s.duckdb"
    target.write_bytes((made / "s.duckdb").read_bytes())
    return target


def test_init_makes_a_store(made, run):
    with Store.open(made / "s.duckdb", read_only=True) as store:
        assert store.n_records > len(set(store.membership().tolist())) > 30
    again = run("resolve", "init", made / "s.duckdb", made / "people.csv", "--id", "id")
    assert again.code == 2
    assert "exists already" in again.err


def test_records_are_added_and_the_change_is_told(path, run, tmp_path):
    new = people(40, seed=0).drop_columns(["person"])
    ids = [f"n{k}" for k in range(new.num_rows)]
    pyarrow.csv.write_csv(new.set_column(0, "id", [ids]), tmp_path / "new.csv")
    result = run("resolve", "add", path, tmp_path / "new.csv", "--id", "id", "--json")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert document["new_records"] == new.num_rows
    assert document["in_known_entities"] > 0.9 * new.num_rows
    again = run("resolve", "add", path, tmp_path / "new.csv", "--id", "id")
    assert again.code == 2
    assert "already" in again.err


def test_entities_and_draws_are_exported(path, run, tmp_path):
    result = run("resolve", "export", path, "-o", tmp_path / "e.parquet", "--draws", "3")
    assert result.code == 0, result.err
    table = read_table(tmp_path / "e.parquet")
    assert table.column_names == ["id", "entity", "source", "batch", "draw_1", "draw_2", "draw_3"]
    assert run("resolve", "export", path, "-o", tmp_path / "r.csv", "--table", "records").code == 0
    assert "first" in read_table(tmp_path / "r.csv").column_names


def test_a_store_names_no_folder_user_or_host(made, run, tmp_path, monkeypatch):
    def from_database(address, columns):
        return read_table(made / "people.csv").slice(20)

    monkeypatch.setattr(table_files, "read_postgres", from_database)
    first = read_table(made / "people.csv").slice(0, 20)
    folder = tmp_path / "very-special-folder"
    folder.mkdir()
    pyarrow.csv.write_csv(first, folder / "first.csv")
    address = "postgres://very-special-user@very-special-host:5432/base?sslmode=very-special::public.people"
    store = folder / "s.duckdb"
    for verb, source in (("init", folder / "first.csv"), ("add", address)):
        made_so = run("resolve", verb, store, source, "--id", "id")
        assert made_so.code == 0, made_so.err
    with Store.open(store, read_only=True) as opened:
        sources = opened.query("SELECT DISTINCT source FROM members ORDER BY source")["source"].to_pylist()
        assert sources == ["base::public.people", "first.csv"]
        for (table,) in opened.execute("SELECT table_name FROM duckdb_tables()"):
            told = str(opened.execute(f"SELECT * FROM {table}"))
            for secret in ("very-special", str(tmp_path), os.uname().nodename):
                assert secret not in told, (table, told)
    assert b"very-special" not in store.read_bytes()


def test_exports_are_marked_for_spreadsheets_when_asked_for(path, run, tmp_path):
    with Store.open(path) as store:
        store.execute("UPDATE record_ids SET id = '=' || id")
    assert run("resolve", "export", path, "-o", tmp_path / "e.csv", "--for-spreadsheets").code == 0
    assert all(one.startswith("'=") for one in read_table(tmp_path / "e.csv")["id"].to_pylist())


def test_a_change_has_a_history_and_is_undone(path, run):
    with Store.open(path) as store:
        before = store.membership().tolist()
        decision = store.decide([[0], [9]], "same", who="Ann")
        store.regroup([0, 9], [0, 0], Cause("decision", decision=decision, who="Ann"))
        entity = int(store.membership()[0])
    story = run("resolve", "history", path, str(entity))
    assert story.code == 0, story.err
    assert "Ann" in story.out
    undone = run("resolve", "undo", path)
    assert undone.code == 0, undone.err
    assert "counts no more" in undone.out
    with Store.open(path) as store:
        assert store.membership().tolist() == before
        assert store.decisions() == []
    assert run("resolve", "history", path, "100000").code == 2


def test_a_decision_is_taken_back_with_all_that_it_changed(path, run):
    with Store.open(path) as store:
        before = store.membership().tolist()
        decision = store.decide([[0], [9]], "same", who="Ann")
        for rows in ([0, 9], [3, 12]):  # the second as if the weights had learned from it
            store.regroup(rows, [0, 0], Cause("decision", decision=decision, who="Ann"))
        store.decide([[1], [2]], "unsure", who="Ann")
    last = run("resolve", "undo", path)  # which moved nothing, and is the last all the same
    assert "decision 1 counts no more; it had changed nothing" in last.out
    with Store.open(path) as store:
        assert [one["decision"] for one in store.decisions()] == [0]
        assert store.membership().tolist() != before
    both = run("resolve", "undo", path, "--json")
    assert json.loads(both.out)["decision"] == 0
    assert len(json.loads(both.out)["undone"]) == 2
    with Store.open(path) as store:
        assert store.membership().tolist() == before
    assert "cannot be undone" in run("resolve", "undo", path).err  # what is left put the records in


def test_a_record_is_looked_up(path, run):
    record = next(one for one in people(40).to_pylist() if one["mail"] and one["born"])
    words = [f"{name}={record[name]}" for name in ("first", "last", "born", "mail")]
    result = run("resolve", "lookup", path, *words, "--json")
    assert result.code == 0, result.err
    best = json.loads(result.out)["matches"][0]
    assert best["probability"] > 0.8
    wrong = run("resolve", "lookup", path, "surname=x")
    assert (wrong.code, "no column 'surname'" in wrong.err) == (2, True)


def test_a_record_of_the_store_is_looked_up_by_its_id(path, run):
    with Store.open(path, read_only=True) as store:
        names, entities = store.ids().to_pylist(), store.membership().tolist()
        sizes = store.query("SELECT entity, records FROM entities").to_pylist()
    size_of = {one["entity"]: one["records"] for one in sizes}
    for name, entity in list(zip(names, entities, strict=True))[:12]:
        result = run("resolve", "lookup", path, f"id={name}", "--json")
        assert result.code == 0, result.err
        found = json.loads(result.out)["matches"]
        assert (found[0]["entity"], found[0]["records"]) == (entity, size_of[entity])
        assert sum(match["probability"] for match in found) <= 1.0 + 1e-9
        assert size_of[entity] == 1 or found[0]["record"] != name  # it is compared with others
    wrong = run("resolve", "lookup", path, "id=nobody")
    assert (wrong.code, "has the id 'nobody'" in wrong.err) == (2, True)


MISTAKES = {
    "init s.duckdb people.csv --id id": "s.duckdb: exists already. Choose another name, or remove it.",
    "init none/s.duckdb people.csv --id id": "does not exist. Create it first.",
    "init people.csv people.csv --id id": "STORE 'people.csv' is also an input: give another file.",
    "init new.duckdb none.csv --id id": "there is no file 'none.csv'. Check the path.",
    "init new.duckdb people.csv --id ids": "people.csv has no column 'ids'. Did you mean 'id'?",
    "add none.duckdb people.csv --id id": "there is no such file. `factorwise resolve init` makes a store.",
    "add people.csv people.csv --id id": "people.csv: this DuckDB file is no store.",
    "add s.duckdb people.csv --id ids": "people.csv has no column 'ids'. Did you mean 'id'?",
    "export none.duckdb -o out.csv": "there is no such file. `factorwise resolve init` makes a store.",
    "export s.duckdb -o none/out.csv": "does not exist. Create it first.",
    "export s.duckdb -o s.duckdb": "--output 's.duckdb' is also an input: give another file.",
    "export s.duckdb -o out.csv --table entities --draws 2": "--draws is for the members",
    "export s.duckdb -o out.xyz": "tables are written as CSV, Parquet or JSON lines",
    "lookup s.duckdb nam=Ann": "s.duckdb compares no column 'nam', but",
    "lookup s.duckdb id=r1.0 first=Ann": "Or give id=ID alone for a record of the store.",
    "lookup s.duckdb Ann": "write COLUMN=VALUE, but 'Ann' was given.",
    "lookup none.duckdb name=Ann": "there is no such file. `factorwise resolve init` makes a store.",
    "history none.duckdb 1": "there is no such file. `factorwise resolve init` makes a store.",
    "undo none.duckdb": "there is no such file. `factorwise resolve init` makes a store.",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_told_and_no_file_is_left_or_changed(made, path, run, monkeypatch, line):
    folder = path.parent
    (folder / "people.csv").write_bytes((made / "people.csv").read_bytes())
    monkeypatch.chdir(folder)
    before = {one: one.read_bytes() for one in folder.iterdir()}
    result = run("resolve", *line.split())
    assert (result.code, result.out) == (2, "")
    assert MISTAKES[line] in result.err
    assert {one: one.read_bytes() for one in folder.iterdir()} == before
