"""Tables in SQLite files, at addresses, in PostgreSQL and Excel: read, written, refused with a remedy."""

import sqlite3
from contextlib import closing
from datetime import date, datetime, time
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.io.shard_files import ShardStore
from factorwise.io.tables import databases
from factorwise.io.tables.parts import begin_parts
from factorwise.io.tables.reading import read_table, write_table
from factorwise.store import Store

TABLE = pa.table({"id": [1, 2, 3], "name": ["Ann", None, "Zoë's"], "weight": [0.5, None, 2.0]})


@pytest.fixture(params=["people.sqlite", "people.sqlite3", "people.duckdb"])
def written(request, tmp_path):
    path = tmp_path / request.param
    write_table(f"{path}::people", TABLE)
    return path


def test_tables_come_back_from_databases_as_they_were_written(written):
    assert read_table(f"{written}::people").equals(TABLE)
    assert read_table(str(written)).equals(TABLE)  # the only one
    assert read_table(f"{written}::people", columns=["name", "id"]).column_names == ["name", "id"]


def test_a_table_takes_the_place_of_one_of_its_name_and_leaves_the_others(written):
    write_table(f"{written}::entities", TABLE.slice(0, 1))
    write_table(f"{written}::entities", TABLE.slice(1, 2))
    assert read_table(f"{written}::entities").equals(TABLE.slice(1, 2))
    assert read_table(f"{written}::people").equals(TABLE)
    with pytest.raises(DataFileError, match="has 2 tables"):
        read_table(str(written))
    with pytest.raises(DataFileError, match="Did you mean 'people'"):
        read_table(f"{written}::peple")


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "people.sqlite"
    write_table(f"{path}::people", TABLE)
    broken = pa.table({"id": pa.array([1, 1 << 63], pa.uint64())})
    with pytest.raises(DataFileError, match=r"beyond 2\*\*63 - 1. What was there is unchanged"):
        write_table(f"{path}::people", broken)
    assert read_table(f"{path}::people").equals(TABLE)


def test_columns_of_other_types_come_back_from_sqlite_as_numbers_and_texts(tmp_path):
    columns = {
        "sure": [True, None, False],
        "price": [Decimal("1.50"), None, Decimal(-2)],
        "born": [date(1822, 1, 2), None, date(2000, 2, 29)],
        "seen": [datetime(2020, 1, 2, 3, 4, 5), None, None],
        "hour": [time(3, 4), None, None],
        "names": [["Ann"], None, []],
        "bytes": [b"\x00\xff", None, b""],
    }
    write_table(f"{tmp_path}/people.sqlite::people", pa.table(columns))
    assert read_table(f"{tmp_path}/people.sqlite::people").to_pydict() == {
        "sure": [1, None, 0],
        "price": ["1.50", None, "-2.00"],
        "born": ["1822-01-02", None, "2000-02-29"],
        "seen": ["2020-01-02 03:04:05", None, None],
        "hour": ["03:04:00", None, None],
        "names": ["['Ann']", None, "[]"],
        "bytes": [b"\x00\xff", None, b""],
    }


def test_an_sqlite_file_with_another_ending_is_known_by_its_content(tmp_path):
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute('CREATE TABLE "odd "" name" (id, mixed)')
        connection.executemany('INSERT INTO "odd "" name" VALUES (?, ?)', [(1, "a"), (2, 3)])
        connection.commit()
    assert read_table(f'{path}::odd " name').to_pylist() == [{"id": 1, "mixed": "a"}, {"id": 2, "mixed": "3"}]


def test_a_damaged_sqlite_file_is_told(tmp_path):
    path = tmp_path / "people.sqlite"
    path.write_bytes(databases.SQLITE_MAGIC + b"\0" * 5_000)
    with pytest.raises(DataFileError, match="could not be read as an SQLite file"):
        read_table(f"{path}::people")


def test_parquet_is_read_from_the_address_of_a_store(tmp_path):
    pq.write_table(TABLE, tmp_path / "people.parquet")
    address = (tmp_path / "people.parquet").as_uri()
    assert read_table(address).equals(TABLE)
    assert read_table(tmp_path.as_uri(), columns=["name"]).column_names == ["name"]
    with pytest.raises(DataFileError, match="cannot be read"):
        read_table(f"{address}.not")


@pytest.mark.parametrize(
    "address",
    [
        "postgres://ann:hunter2@host/base::people",
        "postgresql://host/base?password=hunter2::people",
        "s3://key:hunter2@bucket/people.parquet",
    ],
)
def test_addresses_with_passwords_are_refused_without_repeating_them(address):
    with pytest.raises(InvalidArgumentError, match="command lines are recorded") as refused:
        read_table(address)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["s3://key:hunter2@bucket/run", "abfs://box@account.net/run?sv=1&sig=hunter2"]
)
def test_addresses_with_keys_are_refused_wherever_they_are_opened(address):
    for use in (begin_parts, lambda address: ShardStore(address).reach(), read_table):
        with pytest.raises(InvalidArgumentError, match="command lines are recorded") as refused:
            use(address)
        assert "hunter2" not in str(refused.value)


def has_extension(name):
    settings = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(config=settings) as connection:
        try:
            connection.execute(f"LOAD {name}")
        except duckdb.Error:
            return False
    return True


@pytest.mark.parametrize(
    ("source", "extension"), [("postgres://host/base::t", "postgres"), ("t.xlsx", "excel")]
)
def test_a_missing_extension_is_told_with_how_to_install_it(tmp_path, monkeypatch, source, extension):
    if has_extension(extension):
        pytest.skip("it is installed here")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(DataFileError, match=f"INSTALL {extension}"):
        read_table(source)


def test_an_address_without_a_table_is_a_mistake():
    with pytest.raises(InvalidArgumentError, match="names no table"):
        read_table("postgres://host/base")


@pytest.mark.parametrize("path", ["people.csv::people", "people.duckdb::"])
def test_tables_are_written_into_databases_alone(tmp_path, path):
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        write_table(tmp_path / path, TABLE)


def test_a_store_is_never_written_into(tmp_path):
    Store.create(tmp_path / "people.duckdb").close()
    with pytest.raises(DataFileError, match="is a store, which only the store verbs may change"):
        write_table(f"{tmp_path}/people.duckdb::batches", TABLE)
    Store.open(tmp_path / "people.duckdb", read_only=True).close()


def test_bytes_that_are_no_text_are_read_as_escapes(tmp_path):
    with closing(sqlite3.connect(tmp_path / "b.sqlite")) as connection:
        connection.execute("CREATE TABLE t (id, city)")
        connection.execute("INSERT INTO t VALUES (1, 'Bath'), (2, ?)", (b"\xff\x00",))
        connection.commit()
    assert read_table(f"{tmp_path}/b.sqlite::t").column("city").to_pylist() == ["Bath", "\\xff\x00"]
