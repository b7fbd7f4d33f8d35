"""Tables as folders of Parquet files, by path and by address."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factorwise.errors import DataFileError
from factorwise.io.tables import parts as table_parts
from factorwise.io.tables.parts import begin_parts, cut_parts, end_parts, write_part
from factorwise.io.tables.reading import read_table

TABLE = pa.table({"id": [str(number) for number in range(10)], "entity": ["a", "b"] * 5})


@pytest.fixture(params=["path", "file", "memory"])
def folder(request, tmp_path):
    return {"path": str(tmp_path / "a b"), "file": f"file://{tmp_path}/c", "memory": "memory://parts/here"}[
        request.param
    ]


def test_parts_come_back_in_order_and_attempts_that_were_given_up_are_removed(folder, monkeypatch):
    monkeypatch.setattr(table_parts, "ROWS_OF_A_PART", 4)
    begin_parts(folder)
    parts = list(cut_parts(TABLE))
    assert [part.num_rows for part in parts] == [4, 4, 2]
    write_part(folder, 1, parts[0])  # an attempt whose machine was thought lost
    names = [write_part(folder, number, part) for number, part in enumerate(parts)]
    begin_parts(folder)  # parts that were never finished do not count
    with pytest.raises(DataFileError, match="has not finished, because _SUCCESS is missing"):
        read_table(folder)
    end_parts(folder, names)
    assert read_table(folder).equals(TABLE)
    if folder != "path" and "://" in folder:
        assert read_table(folder, columns=["entity"]).column_names == ["entity"]
    with pytest.raises(DataFileError, match="has files, such as '_SUCCESS'"):
        begin_parts(folder)


def test_a_table_without_rows_is_one_part():
    assert [part.num_rows for part in cut_parts(TABLE.slice(0, 0))] == [0]


def test_what_is_no_table_at_an_address_is_named(tmp_path):
    with pytest.raises(DataFileError, match="none: cannot be read"):
        read_table(f"file://{tmp_path}/none")
    (tmp_path / "x.parquet").write_bytes(b"no")
    with pytest.raises(DataFileError, match="Give the address of a Parquet file"):
        read_table(f"file://{tmp_path}/x.parquet")
    pq.write_table(TABLE, tmp_path / "y.parquet")
    with pytest.raises(DataFileError, match="has its own: leave it out"):
        read_table(f"file://{tmp_path}/y.parquet", encoding="cp1252")
