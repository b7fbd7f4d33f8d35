"""The store: what is put in comes out, ids stay, changes are explained and undone, one process writes."""

import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from factorwise.errors import InvalidArgumentError, StoreError
from factorwise.store import Cause, Store
from factorwise.store import database as database_module
from factorwise.store import schema as schema_module
from factorwise.store.entities import keep_ids
from factorwise.store.index import StoredLinks

RUN = Cause("run", run=0)


def people(n=6, start=0):
    names = [f"name {k}" for k in range(start, start + n)]
    table = pa.table({"name": names, "born": list(range(1900, 1900 + n))})
    return table, pa.array([f"r{k}" for k in range(start, start + n)])


@pytest.fixture
def store(tmp_path):
    with Store.create(tmp_path / "s.duckdb") as made:
        table, ids = people()
        made.add_records(table, ids, source="a.csv")
        made.regroup(np.arange(6), np.array([0, 0, 0, 1, 1, 2]), RUN)
        yield made


def test_what_is_put_in_comes_out(store, tmp_path):
    path = store.path
    run = store.begin_run("resolve init", {"seed": 0}, "0.1")
    store.end_run(run)
    store.add_model(b"\x00model", {"seed": 0}, run)
    store.index.add_links(
        StoredLinks(np.array([0, 1]), np.array([1, 2]), np.array([[1, 2], [3, 0]], np.uint8))
    )
    store.index.add_keys(0, np.array([7, 5], np.uint64), np.array([0, 1]))
    store.index.add_counts(0, np.array([9], np.uint64), np.array([4]))
    store.index.add_counts(0, np.array([9], np.uint64), np.array([1]))
    store.close()
    with Store.open(path, read_only=True) as again:
        assert again.n_records == 6
        assert again.columns == ["name", "born"]
        assert again.records(np.array([4, 1])).to_pylist() == [
            {"name": "name 4", "born": 1904},
            {"name": "name 1", "born": 1901},
        ]
        assert again.records(columns=["born"]).column("born").to_pylist() == list(range(1900, 1906))
        assert again.ids(np.array([5, 0])).to_pylist() == ["r5", "r0"]
        assert again.find_ids(["r3", "r2"]).tolist() == [3, 2]
        assert again.membership().tolist() == [0, 0, 0, 1, 1, 2]
        assert again.model() == b"\x00model"
        links = again.index.links(np.array([0, 1]))
        assert (links.first.tolist(), links.second.tolist(), links.levels.tolist()) == ([0], [1], [[1, 2]])
        assert again.index.matching_keys(np.array([0]), np.array([5], np.uint64)).column(
            "record"
        ).to_pylist() == [1]
        assert again.index.counts(np.array([0]), np.array([9], np.uint64)).column("rows").to_pylist() == [5]
        with pytest.raises(StoreError, match="reading only"):
            again.set_fact("a", "b")


def test_links_and_keys_are_read_in_order_whatever_the_order_they_came_in(store):
    levels = np.array([[1], [2], [3]], np.uint8)
    store.index.add_links(StoredLinks(np.array([1, 0, 0]), np.array([2, 2, 1]), levels))
    links = store.index.links(np.arange(3))
    assert list(zip(links.first, links.second, links.levels[:, 0], strict=True)) == [
        (0, 1, 3),
        (0, 2, 2),
        (1, 2, 1),
    ]
    store.index.add_keys(0, np.array([9, 7], np.uint64), np.array([4, 5]))
    store.index.add_keys(0, np.array([7], np.uint64), np.array([1]))
    found = store.index.matching_keys(np.array([0, 0]), np.array([7, 9], np.uint64))
    assert found.column("record").to_pylist() == [1, 5, 4]


def test_further_batches_may_have_other_columns(store):
    table = pa.table({"born": [1950], "town": ["Rome"]})
    assert store.add_records(table, pa.array(["x"]), source="b.csv") == 6
    assert store.records(np.array([0, 6])).to_pylist() == [
        {"name": "name 0", "born": 1900, "town": None},
        {"name": None, "born": 1950, "town": "Rome"},
    ]
    assert store.execute("SELECT source, entity, town FROM records WHERE born = 1950") == [
        ("b.csv", None, "Rome")
    ]
    with pytest.raises(InvalidArgumentError, match="'x' already"):
        store.add_records(table, pa.array(["x"]), source="b.csv")
    with pytest.raises(InvalidArgumentError, match="id of its own"):
        store.add_records(pa.concat_tables([table, table]), pa.array(["y", "y"]), source="b.csv")


def test_columns_of_any_name_do_no_harm(tmp_path):
    names = ['a"; DROP TABLE facts; --', "entity", "ENTITY", "record", "", "é\n"]
    with Store.create(tmp_path / "s.duckdb") as store:
        store.add_records(
            pa.table([[str(k)] for k in range(6)], names), pa.array(["'; DROP TABLE facts"]), source="x"
        )
        assert store.columns == names
        assert store.records().column_names == names
        assert len(store.execute("SELECT * FROM records")[0]) == 9
        assert store.find_ids(["'; DROP TABLE facts"]).tolist() == [0]


def test_an_entity_keeps_the_id_that_most_of_its_records_had():
    before = np.array([5, 5, 5, 8, 8, 9, -1, -1])
    assert keep_ids(before, np.array([0, 0, 1, 1, 1, 2, 2, 3]), 10).tolist() == [5, 5, 8, 8, 8, 9, 9, 10]
    assert keep_ids(before, np.zeros(8, np.int64), 10).tolist() == [5] * 8
    # most of the second group had 5, which the first one keeps: it is a new entity, not 8
    groups = np.array([0, 0, 0, 0, 1, 1, 1])
    assert keep_ids(np.array([5, 5, 5, 5, 5, 5, 8]), groups, 10).tolist() == [5, 5, 5, 5, 10, 10, 10]


def test_ids_stay_over_many_changes(tmp_path):
    random = np.random.default_rng(0)
    with Store.create(tmp_path / "s.duckdb") as store:
        used = set()
        for batch in range(10):
            table, ids = people(5, 5 * batch)
            first = store.add_records(table, ids, source=f"{batch}")
            for step in range(6):
                before = store.membership()
                rows = (
                    np.arange(first, first + 5) if step == 0 else random.choice(len(before), 4, replace=False)
                )
                store.regroup(rows, random.integers(0, 3, len(rows)), RUN)
                after = store.membership()
                for entity in set(after.tolist()):
                    members = before[after == entity]
                    if entity in before:  # it is the one that most of its records had
                        known, counts = np.unique(members[members >= 0], return_counts=True)
                        assert counts[known == entity] == counts.max()
                    else:
                        assert entity not in used
                used |= set(after.tolist())
        replayed = np.full(50, -1)
        for record, to in store.execute("SELECT record, after FROM moves ORDER BY change"):
            replayed[record] = to
        assert replayed.tolist() == store.membership().tolist()


def test_changes_are_explained_and_undone(store):
    decision = store.decide([[2], [3]], "same", who="Ann", why="same address")
    merge = store.regroup(np.arange(5), np.zeros(5), Cause("decision", decision=decision, who="Ann"))
    assert store.membership().tolist() == [0, 0, 0, 0, 0, 2]
    assert store.regroup(np.arange(5), np.zeros(5), RUN) is None
    story = store.history(1)
    assert [(one["event"], one["other"], one["records"], one["who"]) for one in story] == [
        ("received", None, 2, None),
        ("gave", 0, 2, "Ann"),
    ]
    split = store.regroup(np.array([4]), np.array([0]), Cause("hand", who="Bo"))
    assert store.membership().tolist() == [0, 0, 0, 0, 3, 2]
    with pytest.raises(StoreError, match="later change"):
        store.undo(merge)
    store.undo(split)
    store.undo(merge)
    assert store.membership().tolist() == [0, 0, 0, 1, 1, 2]
    store.regroup(np.array([4]), np.array([0]), RUN)
    assert store.membership().tolist() == [0, 0, 0, 1, 4, 2]  # 3 was used once
    entities = store.execute("SELECT entity, records FROM entities ORDER BY entity")
    assert entities == [(0, 3), (1, 1), (2, 1), (4, 1)]


def test_decisions_are_kept_and_withdrawn(store):
    first = store.decide([[0, 1], [3]], "different", who="Ann", asked="random", probability=0.4)
    second = store.decide([[0], [5]], "unsure", who="Bo")
    assert [(one["answer"], one["parts"]) for one in store.decisions()] == [
        ("different", [[0, 1], [3]]),
        ("unsure", [[0], [5]]),
    ]
    store.withdraw(second)
    assert [one["decision"] for one in store.decisions()] == [first]
    assert store.execute("SELECT count(*) FROM answers WHERE withdrawn IS NOT NULL") == [(2,)]
    with pytest.raises(InvalidArgumentError, match="one of same, different, unsure"):
        store.decide([[0]], "perhaps", who="Ann")


def test_a_failed_change_leaves_nothing(store):
    def decide_and_fail():
        with store.transaction():
            store.decide([[0], [1]], "same", who="Ann")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        decide_and_fail()
    assert store.decisions() == []


def test_one_process_writes_and_others_read(store):
    store.decide([[0], [1]], "same", who="Ann")
    code = f"""
from factorwise.store import Store
from factorwise.errors import StoreError
with Store.open({str(store.path)!r}, read_only=True) as store:
    print(len(store.decisions()), store.n_records)
try:
    Store.open({str(store.path)!r})
except StoreError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.startswith("1 6\n")
    assert "another process writes to this store (process " in said


def test_files_that_are_no_stores_are_refused(tmp_path, store):
    with pytest.raises(StoreError, match="no such file"):
        Store.open(tmp_path / "none.duckdb")
    with pytest.raises(StoreError, match="exists already"):
        Store.create(store.path)
    (tmp_path / "text.duckdb").write_text("id,name\n" * 1000)
    with pytest.raises(StoreError, match="no DuckDB file"):
        Store.open(tmp_path / "text.duckdb")
    duckdb.connect(tmp_path / "other.duckdb").execute("CREATE TABLE t(i INTEGER)").close()
    with pytest.raises(StoreError, match="is no store"):
        Store.open(tmp_path / "other.duckdb")


def test_what_a_file_holds_reaches_no_other_file(tmp_path):
    """Somebody else's store may hold a view that reads files; it cannot."""
    Store.create(tmp_path / "s.duckdb").close()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with duckdb.connect(tmp_path / "s.duckdb") as connection:
        connection.execute(
            f"CREATE OR REPLACE VIEW entities AS SELECT * FROM read_csv('{tmp_path}/secret.csv')"
        )
    with Store.open(tmp_path / "s.duckdb") as store, pytest.raises(StoreError, match="refused"):
        store.execute("SELECT * FROM entities")


def test_older_stores_are_migrated_and_newer_ones_refused(store, monkeypatch):
    path = store.path
    store.close()
    monkeypatch.setattr(schema_module, "VERSION", 2)
    monkeypatch.setattr(database_module, "VERSION", 2)
    monkeypatch.setitem(schema_module.MIGRATIONS, 1, "ALTER TABLE runs ADD COLUMN machine VARCHAR")
    with pytest.raises(StoreError, match="for writing once"):
        Store.open(path, read_only=True)
    with monkeypatch.context() as patch:
        patch.setattr("factorwise.store.opening.VERSION", 2)
        with Store.open(path) as newer:
            assert newer.fact("schema version") == "2"
            assert newer.execute("SELECT machine FROM runs") == []
            assert newer.n_records == 6
    with pytest.raises(StoreError, match="newer version of factorwise"):
        Store.open(path)
