"""Tables of records: what is read from where, what is refused, and that what is written is whole."""

import errno
import gzip
import io
import json

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

from factorwise.errors import DataFileError, InvalidArgumentError, MissingDataError
from factorwise.io import columns as table_columns
from factorwise.io.columns import Columns
from factorwise.io.tables import files as table_files
from factorwise.io.tables.reading import ids_of, read_table, stack_tables, write_table

AWKWARD = 'a"b; drop table t'


def written(folder, name, content):
    path = folder / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


class Stream:
    """Something that offers an Arrow stream and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.txt"])
def test_all_columns_of_delimited_text_are_text_and_empty_fields_are_missing(tmp_path, name):
    path = written(tmp_path, name, 'id,zip,note\n1,00420,\n2,,"say ""hi"",\nthen go"\n')
    assert read_table(path).to_pylist() == [
        {"id": "1", "zip": "00420", "note": None},
        {"id": "2", "zip": None, "note": 'say "hi",\nthen go'},
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    others = ", ; |".replace(delimiter, "")
    path = written(tmp_path, "t.csv", f'a{delimiter}b\n1{delimiter}"x{others}y"\n2{delimiter}z\n')
    assert read_table(path).to_pydict() == {"a": ["1", "2"], "b": [f"x{others}y", "z"]}


def test_a_single_column_needs_no_delimiter(tmp_path):
    assert read_table(written(tmp_path, "t.csv", "name\nAnn Lee\nBob Ray\n")).to_pydict() == {
        "name": ["Ann Lee", "Bob Ray"]
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_with_a_byte_order_mark_is_read_as_what_it_is(tmp_path, encoding):
    path = written(tmp_path, "t.csv", "näme,b\nZoë,1\n".encode(encoding))
    assert read_table(path).to_pylist() == [{"näme": "Zoë", "b": "1"}]


def test_another_encoding_is_refused_with_its_line_and_read_when_it_is_named(tmp_path):
    path = written(tmp_path, "t.csv", "id,name\n1,Ann\n2,Zoë\n".encode("cp1252"))
    with pytest.raises(DataFileError, match=r"line 3: the bytes eb .* encoding='cp1252'"):
        read_table(path)
    assert read_table(path, encoding="cp1252")["name"].to_pylist() == ["Ann", "Zoë"]
    with pytest.raises(DataFileError, match="such as 'utf-8'"):
        read_table(path, encoding="cp99999")


def test_mixed_encodings_are_refused_even_in_the_header(tmp_path):
    path = written(tmp_path, "t.csv", "id,näme\n".encode("latin-1") + "1,Zoë\n".encode())
    with pytest.raises(DataFileError, match=r"line 1: the bytes e4"):
        read_table(path)


def test_a_field_of_a_hundred_megabytes_is_read(tmp_path):
    long = b"x" * 100_000_000
    table = read_table(written(tmp_path, "t.csv", b"id,note\n1," + long + b"\n2,y\n"))
    assert [len(value.as_py()) for value in table["note"]] == [len(long), 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "no records"),
        ("a,b,a\n1,2,3\n", "2 columns called 'a' .*1 and 3.*its own name"),
        ("a,b\n1,2\n3\n", "line 3: 1 fields where the header has 2.*Quote fields"),
        ('a,b\n1,"x\ny"\n3,4,5\n', "line 4: 3 fields where the header has 2"),
        ('a,b\n1,2\n3,"open\n4,5\n', "never closed.*Close it"),
    ],
)
def test_a_broken_delimited_file_is_refused_with_its_remedy(tmp_path, content, message):
    path = written(tmp_path, "t.csv", content)
    with pytest.raises(DataFileError, match=message) as caught:
        read_table(path)
    assert str(path) in str(caught.value)


def test_a_packed_file_that_was_cut_short_is_refused(tmp_path):
    whole = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000)))
    path = tmp_path / "t.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataFileError, match="complete"):
        read_table(path)


def test_a_file_that_is_not_there_is_missing_and_the_nearest_is_named(tmp_path):
    written(tmp_path, "records.csv", "a\n1\n")
    with pytest.raises(MissingDataError, match=r"Did you mean .*records\.csv"):
        read_table(tmp_path / "record.csv")
    with pytest.raises(DataFileError, match="is a folder"):
        read_table(tmp_path)


def test_parquet_files_of_a_folder_or_of_a_pattern_are_one_table(tmp_path):
    (tmp_path / "parts" / "year=2").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), tmp_path / "parts" / "p0.parquet")
    pq.write_table(pa.table({"id": [3], "town": ["x"]}), tmp_path / "parts" / "year=2" / "p1.parquet")
    written(tmp_path / "parts", "_SUCCESS", "")
    whole = read_table(tmp_path / "parts")
    assert whole.to_pydict() == {"id": [1, 2, 3], "name": ["a", "b", None], "town": [None, None, "x"]}
    assert read_table(tmp_path / "parts" / "**" / "*.parquet").equals(whole)
    assert read_table(str(tmp_path / "parts" / "p?.parquet"))["id"].to_pylist() == [1, 2]
    assert read_table(tmp_path / "parts", columns=["town"])["town"].to_pylist() == [None, None, "x"]
    assert read_table(dataset(tmp_path / "parts" / "p0.parquet"))["id"].to_pylist() == [1, 2]
    with pytest.raises(MissingDataError, match="no Parquet file matches the pattern"):
        read_table(tmp_path / "parts" / "*.pq")
    with pytest.raises(DataFileError, match="which has its own"):
        read_table(tmp_path / "parts", encoding="cp1252")
    pq.write_table(pa.table({"id": [["x"]]}), tmp_path / "parts" / "p2.parquet")
    with pytest.raises(DataFileError, match="do not fit together"):
        read_table(tmp_path / "parts")


def test_a_lazy_frame_is_collected():
    class LazyFrame:
        __module__ = "polars.lazyframe.frame"

        def collect(self):
            return pa.table({"id": [1]})

    assert read_table(LazyFrame())["id"].to_pylist() == [1]


def test_columns_are_chosen_in_order_and_the_nearest_is_named_for_a_wrong_one(tmp_path):
    table = pa.table({"id": ["1"], "surname": ["Lee"], AWKWARD: ["x"]})
    pq.write_table(table, tmp_path / "t.parquet")
    write_table(tmp_path / "t.csv", table)
    for source in (tmp_path / "t.parquet", tmp_path / "t.csv", table):
        assert read_table(source, columns=[AWKWARD, "id"]).to_pylist() == [{AWKWARD: "x", "id": "1"}]
        with pytest.raises(DataFileError, match="Did you mean 'surname'"):
            read_table(source, columns=["Surname"])
        with pytest.raises(DataFileError, match="Did you mean 'surname'"):
            read_table(source, columns=["id", "sur_name"])


def test_a_file_that_only_claims_to_be_parquet_is_refused(tmp_path):
    with pytest.raises(DataFileError, match="Parquet"):
        read_table(written(tmp_path, "t.parquet", "a,b\n1,2\n"))


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.jsonl.gz"])
def test_lines_of_json_keep_their_types_and_texts_that_look_like_times(tmp_path, name):
    lines = '{"id": 1, "day": "2001-02-03", "by": ["Ann", "Bob"]}\n{"id": 2, "score": 0.5}\n'
    table = read_table(written(tmp_path, name, lines))
    assert table.to_pylist() == [
        {"id": 1, "day": "2001-02-03", "by": ["Ann", "Bob"], "score": None},
        {"id": 2, "day": None, "by": None, "score": 0.5},
    ]


def test_json_values_of_several_types_become_text(tmp_path):
    lines = '{"a": 1, "b": [1]}\n{"a": "x", "b": ["y"]}\n'
    assert read_table(written(tmp_path, "t.jsonl", lines)).to_pydict() == {
        "a": ["1", "x"],
        "b": [["1"], ["y"]],
    }


def test_an_array_of_json_objects_is_a_table(tmp_path):
    path = written(tmp_path, "t.json", json.dumps([{"a": 1}, {"b": "x"}]))
    assert read_table(path).to_pydict() == {"a": [1, None], "b": [None, "x"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a": \n', "line 2: not JSON.*one complete object"),
        (b'{"a": 1}\n[2]\n', "line 2: list instead of an object"),
        (b'{"a": "x"}\n{"a": "\xff"}\n', "line 2: the bytes ff"),
    ],
)
def test_a_broken_line_of_json_is_named(tmp_path, content, message):
    with pytest.raises(DataFileError, match=message):
        read_table(written(tmp_path, "t.jsonl", content))


def test_a_table_of_a_database_is_read_whatever_its_names(tmp_path):
    path = tmp_path / "t.duckdb"
    quoted = '"' + AWKWARD.replace('"', '""') + '"'
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE {quoted} AS SELECT '007' AS {quoted}, 1 AS b")
    assert read_table(f"{path}::{AWKWARD}").to_pylist() == [{AWKWARD: "007", "b": 1}]
    assert read_table(path, columns=[AWKWARD]).to_pylist() == [{AWKWARD: "007"}]
    with pytest.raises(DataFileError, match="Did you mean"):
        read_table(f"{path}::{AWKWARD}s")
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE other (a INT)")
    with pytest.raises(DataFileError, match=r"has 2 tables.*Name the one"):
        read_table(path)


def test_a_file_that_only_claims_to_be_a_database_is_refused(tmp_path):
    with pytest.raises(DataFileError, match="could not be read as a DuckDB file"):
        read_table(written(tmp_path, "t.duckdb", "a,b\n1,2\n" * 100))


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame({"a": ["x", None], "b": [1, 2]}, index=[5, 9]),
        pa.table({"a": ["x", None], "b": [1, 2]}),
        Stream(pa.table({"a": ["x", None], "b": [1, 2]})),
        pa.record_batch({"a": ["x", None], "b": [1, 2]}),
        [{"a": "x", "b": 1}, {"b": 2}],
        {"a": ["x", None], "b": [1, 2]},
    ],
    ids=lambda source: type(source).__name__,
)
def test_tables_in_memory_are_read(source):
    assert read_table(source).to_pydict() == {"a": ["x", None], "b": [1, 2]}


def test_what_is_no_table_is_refused():
    with pytest.raises(InvalidArgumentError, match="list of dictionaries"):
        read_table(7)
    with pytest.raises(DataFileError, match="At least one record"):
        read_table([])
    with pytest.raises(DataFileError, match="record 2 is 3"):
        read_table([{"a": 1}, 3])
    with pytest.raises(DataFileError, match="one type"):
        read_table(pd.DataFrame({"a": ["x", 1]}))
    with pytest.raises(DataFileError, match="no records"):
        read_table(pd.DataFrame({"a": []}))


def test_ids_must_be_there_and_differ():
    assert ids_of(pa.table({"id": [3, 1, 2]}), "id").to_pylist() == [3, 1, 2]
    with pytest.raises(DataFileError, match=r"no column .ID.\. Did you mean .id."):
        ids_of(pa.table({"id": [1]}), "ID")
    with pytest.raises(DataFileError, match=r"no id in 1 records, the first of them record 2.*fill them in"):
        ids_of(pa.table({"id": ["a", None]}), "id")
    with pytest.raises(DataFileError, match=r"2 ids .*: 'a' \(records 1 and 3\), 'b' \(records 2 and 5\)"):
        ids_of(pa.table({"id": ["a", "b", "a", "c", "b", "a"]}), "id")


def test_stacked_tables_unite_their_columns_and_say_whence_a_record_is():
    first = pa.table({"id": [1, 2], "name": ["Ann", "Bob"]})
    second = pa.table({"id": ["x"], "year": [1999], "by": [["Eve", "Max"]]})
    assert stack_tables([("a", first), ("b", second)], id_column="id").to_pylist() == [
        {"id": "1", "name": "Ann", "year": None, "by": None, "source": "a"},
        {"id": "2", "name": "Bob", "year": None, "by": None, "source": "a"},
        {"id": "x", "name": None, "year": 1999, "by": ["Eve", "Max"], "source": "b"},
    ]


def test_ids_shared_by_stacked_tables_are_refused_or_prefixed():
    tables = [("a", pa.table({"id": [1, 2]})), ("b", pa.table({"id": [2]}))]
    with pytest.raises(DataFileError, match=r"2 \(records 2 and 3\).*prefix_ids=True"):
        stack_tables(tables, id_column="id")
    stacked = stack_tables(tables, id_column="id", prefix_ids=True)
    assert stacked["id"].to_pylist() == ["a:1", "a:2", "b:2"]
    with pytest.raises(DataFileError, match=r"already has a column .source"):
        stack_tables([("a", pa.table({"source": [1]}))])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.jsonl", "t.jsonl.gz"])
def test_what_is_written_is_read_again(tmp_path, name):
    coded = pa.array(["p", "q", "p"]).dictionary_encode()
    table = pa.table({"id": ["1", "2", "3"], AWKWARD: ["x,\n", None, 'q"q'], "coded": coded})
    write_table(tmp_path / name, table)
    assert read_table(tmp_path / name).to_pylist() == table.to_pylist()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_lists_are_written_to_text_with_bars_and_numbers_json_lacks_as_null(tmp_path):
    table = pa.table({"by": [["Ann", "Bob"], [], None], "n": [1.5, np.nan, np.inf]})
    write_table(tmp_path / "t.csv", table.select(["by"]))
    assert (tmp_path / "t.csv").read_text() == '"by"\n"Ann|Bob"\n""\n\n'
    write_table(tmp_path / "t.jsonl", table)
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert rows == [{"by": ["Ann", "Bob"], "n": 1.5}, {"by": [], "n": None}, {"by": None, "n": None}]


def test_a_table_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = written(tmp_path, "t.csv", "old")
    with pytest.raises(pa.ArrowException):
        write_table(path, pa.table({"a": [{"x": 1}]}))
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("name", ["t.duckdb", "t.txt", "t", "t.tsv", "t.txt.gz", "t.parquet.gz", "t.gz"])
def test_endings_that_say_nothing_of_a_format_are_not_written(tmp_path, name):
    with pytest.raises(InvalidArgumentError, match=r"ends in \.csv, \.csv\.gz, \.parquet, .*\.jsonl"):
        write_table(tmp_path / name, pa.table({"a": [1]}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["t.CSV", "a.b.csv.GZ", "t.pq", "t.ndjson.gz", "t.json"])
def test_endings_are_known_in_all_their_spellings(tmp_path, name):
    write_table(tmp_path / name, pa.table({"a": ["1"]}))
    assert read_table(tmp_path / name).to_pydict() == {"a": ["1"]}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_column_names_alone_are_read_where_nothing_may_be_there(tmp_path, name):
    write_table(tmp_path / name, pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())}))
    found = read_table(tmp_path / name, may_be_empty=True)
    assert (found.num_rows, found.column_names) == (0, ["a", "b"])
    with pytest.raises(DataFileError, match="no records"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("content", ["null\n", '{"a": 1}\nnull\n', ' null\n{"a": 1}\n', '{"a": 1}\n3'])
def test_a_line_that_is_no_object_is_named(tmp_path, content):
    path = tmp_path / "t.jsonl"
    path.write_text(content)
    with pytest.raises(DataFileError, match="instead of an object with named fields"):
        read_table(path)


def test_lines_are_looked_at_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "_BLOCK", 16)
    path = tmp_path / "t.jsonl"
    lines = [f'  {{"a": {"1" * (number % 30 + 1)}}}' for number in range(40)]
    path.write_text("\n\n".join(lines))
    assert not table_files._odd_lines(path)
    path.write_text("\n\n".join([*lines, "null", *lines]))
    assert table_files._odd_lines(path)


def test_the_numbers_that_pandas_gives_its_rows_are_left_out(tmp_path):
    frame = pd.DataFrame({"id": [1, 2, 3, 4], "name": ["a", "b", "c", "d"]})
    frame[frame.id != 3].to_parquet(tmp_path / "part.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "part.parquet").names
    assert read_table(tmp_path / "part.parquet").column_names == ["id", "name"]
    frame.set_index("name").to_parquet(tmp_path / "named.parquet")
    assert set(read_table(tmp_path / "named.parquet").column_names) == {"id", "name"}


def test_texts_that_spreadsheets_take_for_formulas_are_marked_when_asked_for(tmp_path):
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"]
    table = pa.table({"=name": [*formulas, "a=b", "", None], "number": [-1.5] * 9, "list": [["=x", "y"]] * 9})
    write_table(tmp_path / "marked.csv", table, for_spreadsheets=True)
    write_table(tmp_path / "plain.csv", table)
    marked, plain = (read_table(tmp_path / name) for name in ("marked.csv", "plain.csv"))
    assert marked.column_names == ["'=name", "number", "list"]
    assert marked["'=name"].to_pylist()[:7] == [*(f"'{text}" for text in formulas), "a=b"]
    assert marked["number"].to_pylist() == ["-1.5"] * 9
    assert marked["list"].to_pylist() == ["'=x|y"] * 9
    assert plain["=name"].to_pylist()[:7] == [*formulas, "a=b"]
    write_table(tmp_path / "t.parquet", table, for_spreadsheets=True)
    assert read_table(tmp_path / "t.parquet")["=name"].to_pylist()[0] == "=1+1"


def test_a_file_without_the_mark_of_its_encoding_is_refused_with_what_to_do(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text("id,name\n1,Ann\n", encoding="utf-8")
    with pytest.raises(DataFileError, match=r"line 1: the bytes 69 64 are not text in utf-16"):
        read_table(path, encoding="utf-16")


def test_large_parquet_files_lie_in_a_file_without_a_name(tmp_path, monkeypatch):
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    (tmp_path / "parts").mkdir()
    table = pa.table({"id": range(9), "name": ["Ann", None, "Lee"] * 3, "list": [["a"], [], None] * 3})
    for number in range(3):
        part = tmp_path / "parts" / f"{number}.parquet"
        pq.write_table(table.slice(3 * number, 3), part, row_group_size=2)
    for source in (tmp_path / "parts", f"file://{tmp_path}/parts"):
        small, large = read_table(source, most=1 << 20), read_table(source, most=0)
        assert small.equals(table)
        assert large.equals(table)
        assert table_columns._lying_in(large)
        assert not table_columns._lying_in(small)
        kept = Columns.in_scratch(tmp_path)
        assert kept.keep_table(large) is large  # it need not be written again
        assert kept.keep_table(small).equals(table)
    assert read_table(tmp_path / "parts" / "0.parquet", columns=["name"], most=0).column_names == ["name"]
    assert list(place.iterdir()) == []


def test_a_disk_that_is_too_small_for_the_records_is_told(tmp_path, monkeypatch):
    class Full(io.BytesIO):
        def write(self, given):
            raise OSError(errno.ENOSPC, "No space left on device")

    pq.write_table(pa.table({"id": range(9)}), tmp_path / "t.parquet")
    monkeypatch.setattr(table_columns.tempfile, "TemporaryFile", lambda **given: Full())
    with pytest.raises(DataFileError, match=r"do not fit into .*: set TMPDIR to a folder with more room"):
        read_table(tmp_path / "t.parquet", most=0)
