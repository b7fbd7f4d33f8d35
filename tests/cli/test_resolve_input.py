"""``factorwise resolve`` with bad input: a clear error or a correct answer, and never a part of a file."""

import json

import pytest

from factorwise.cli import main
from factorwise.cli.verbs import GROUPS
from factorwise.io.models.files import ModelFile, write_model
from record_cases import people, read_csv, without, write_csv

FEW = people(12)
RECORDS = without(FEW, "person")
SHARED = ["--seed", "--threads", "--config", "--json", "--quiet", "--verbose", "--version"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records with labels, records without, and a model."""
    place = tmp_path_factory.mktemp("input")
    write_csv(place / "labelled.csv", FEW)
    write_csv(place / "in.csv", RECORDS)
    words = ("--id", "id", "--entity", "person", "--model", place / "m.fw", "--quiet")
    with pytest.raises(SystemExit) as left:
        main.main([str(word) for word in ("resolve", "fit", place / "labelled.csv", *words)])
    assert left.value.code == 0
    return place


@pytest.fixture
def refused(run, folder, tmp_path):
    """Find entities in vain: return what is said; there is no output, nor any other file."""

    def refused(*words, data=(folder / "in.csv",), identity="id", model=folder / "m.fw"):
        place = tmp_path / "out"
        place.mkdir(exist_ok=True)
        known = () if model is None else ("--model", model)
        result = run("resolve", "apply", *data, "--id", identity, *known, "-o", place / "o.csv", *words)
        assert (result.code, result.out) == (2, "")
        assert list(place.iterdir()) == []
        return result.err

    return refused


@pytest.fixture
def unlearned(run, folder, tmp_path):
    """Learn in vain: return what is said; there is no model, nor any other file."""

    def unlearned(*words, data=(folder / "labelled.csv",), entity="person"):
        place = tmp_path / "out"
        place.mkdir(exist_ok=True)
        command = ("--id", "id", "--entity", entity, "--model", place / "m.fw", *words)
        result = run("resolve", "fit", *data, *command)
        assert (result.code, result.out) == (2, "")
        assert list(place.iterdir()) == []
        return result.err

    return unlearned


@pytest.fixture
def entities(run, folder, tmp_path):
    """Find entities and return that of each record."""

    def entities(data, *words, model=None):
        known = () if model is None else ("--model", model)
        result = run(
            "resolve", "apply", data, "--id", "id", "-o", tmp_path / "o.csv", "--json", *known, *words
        )
        assert result.code == 0, result.err
        assert json.loads(result.out)["records"] == len(read_csv(tmp_path / "o.csv"))
        return {row["id"]: row["entity"] for row in read_csv(tmp_path / "o.csv")}

    return entities


@pytest.fixture
def file(tmp_path):
    def file(content, name="f.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return file


def changed(column, value, records=RECORDS):
    return [{**record, column: value(place)} for place, record in enumerate(records)]


# help


@pytest.mark.parametrize("verb", sorted(GROUPS["resolve"].verbs))
def test_help_explains_the_verb_with_an_example(run, verb):
    result = run("resolve", verb, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"factorwise resolve {verb} " in result.out.partition("Example:")[2]
    assert all(option in result.out for option in SHARED)


def test_the_group_lists_its_verbs(run):
    out = run("resolve").out
    assert all(verb in out for verb in GROUPS["resolve"].verbs)


# columns and ids


def test_a_column_that_is_not_there_is_named_with_the_nearest(refused, unlearned):
    assert "has no column 'ids'. Did you mean 'id'?" in refused(identity="ids")
    assert "has no column 'twon'. Did you mean 'town'?" in refused("--ignore", "twon", model=None)
    assert "has no column 'sorce'." in refused("--source", "sorce")
    assert "has no column 'persn'. Did you mean 'person'?" in unlearned(entity="persn")


def test_a_model_whose_columns_are_missing_says_which(refused, tmp_path):
    data = write_csv(tmp_path / "f.csv", without(RECORDS, "born"))
    err = refused(data=(data,))
    assert f"{data}: there is no column 'born', which is to be compared" in err


def test_ids_that_stand_twice_are_named(refused, unlearned, tmp_path):
    data = write_csv(tmp_path / "f.csv", changed("id", lambda place: str(place // 2), FEW))
    assert "'0' (records 1 and 2)" in refused(data=(data,))
    assert "Every record needs its own id" in unlearned(data=(data,))


def test_a_record_without_an_id_is_named(refused, tmp_path):
    data = write_csv(tmp_path / "f.csv", changed("id", lambda place: "" if place == 4 else str(place)))
    assert "has no id in 1 records, the first of them record 5" in refused(data=(data,))


def test_a_record_without_a_source_is_named(refused, tmp_path):
    data = write_csv(tmp_path / "f.csv", changed("origin", lambda place: "" if place == 2 else "a"))
    err = refused("--source", "origin", "--one-per-source", data=(data,))
    assert "column 'origin' does not say where 1 records are from, the first of them record 3" in err


def test_more_sources_than_can_be_told_apart_are_refused(refused, tmp_path):
    data = write_csv(tmp_path / "f.csv", changed("origin", str, people(40)))
    err = refused("--source", "origin", "--one-per-source", data=(data,))
    assert "up to 64 sources" in err


# values


def test_where_all_values_are_missing_there_is_nothing_to_compare(
    refused, unlearned, entities, folder, tmp_path
):
    empty = [dict.fromkeys(record, "") | {"id": record["id"], "person": record["person"]} for record in FEW]
    data = write_csv(tmp_path / "f.csv", empty)
    assert "no column has anything to compare" in refused("--ignore", "person", data=(data,), model=None)
    assert "no column has anything to compare" in unlearned(data=(data,))
    found = entities(data, model=folder / "m.fw")  # the model knows the columns: all are alone
    assert all(one == entity for one, entity in found.items())


def test_a_field_of_megabytes_is_cut_before_it_is_compared(entities, folder, tmp_path):
    long = "word " * 400_000
    records = changed("note", lambda place: long + str(place) if place < 3 else f"note {place}")
    found = entities(write_csv(tmp_path / "f.csv", records), model=folder / "m.fw")
    assert found[RECORDS[0]["id"]] == found[RECORDS[1]["id"]]
    records = changed("surname", lambda place: long if place < 3 else RECORDS[place]["surname"])
    found = entities(write_csv(tmp_path / "f.csv", records))
    assert set(found) == {record["id"] for record in RECORDS}


def test_mixed_encodings_are_refused_with_the_line_unless_one_is_named(refused, entities, folder, tmp_path):
    lines = (folder / "in.csv").read_bytes().split(b"\n")
    lines[3] = lines[3].replace(b",", "ö,".encode("latin-1"), 1)
    lines[5] = lines[5].replace(b",", "ö,".encode(), 1)
    data = tmp_path / "f.csv"
    data.write_bytes(b"\n".join(lines))
    err = refused(data=(data,))
    assert "line 4: the bytes f6" in err
    assert "Name the file's encoding, for example --encoding cp1252 or --encoding latin-1" in err
    assert entities(data, "--encoding", "latin-1", model=folder / "m.fw")
    assert "--encoding latin-77 is not known" in refused("--encoding", "latin-77", data=(data,))


def test_an_empty_file_and_a_header_alone_are_refused(refused, unlearned, file):
    assert "the file is empty" in refused(data=(file(b""),))
    assert "has column names but no records" in refused(data=(file("id,person,name\n"),))
    assert "has column names but no records" in unlearned(data=(file("id,person,name\n"),))


def test_files_that_are_not_there_or_are_no_tables_are_refused(refused, file, tmp_path):
    assert "there is no file" in refused(data=(tmp_path / "none.csv",))
    assert "is a folder" in refused(data=(tmp_path,))
    assert "not a complete Parquet file" in refused(data=(file("id\n", "f.parquet"),))
    assert "is given twice" in refused(data=(file("id,a\n1,2\n"),) * 2)


@pytest.mark.parametrize("count", [1, 2])
def test_one_record_and_two_are_resolved(entities, folder, tmp_path, count):
    data = write_csv(tmp_path / "f.csv", RECORDS[:count])
    found = entities(data, model=folder / "m.fw")
    assert list(found) == [record["id"] for record in RECORDS[:count]]
    assert set(found.values()) == {"100"}


def test_one_record_is_one_entity_without_a_model_too_but_teaches_nothing(run, entities, tmp_path):
    data = write_csv(tmp_path / "f.csv", RECORDS[:1])
    assert entities(data, "--second-best", tmp_path / "s.csv") == {"100": "100"}
    assert read_csv(tmp_path / "s.csv") == []
    result = run("resolve", "fit", data, "--id", "id", "--model", tmp_path / "m.fw")
    assert result.code == 2
    assert "has one record, which says nothing" in result.err
    assert not (tmp_path / "m.fw").exists()


def test_a_block_of_half_the_data_is_resolved_and_its_size_is_told(run, folder, tmp_path):
    half = dict.fromkeys(RECORDS[0], "") | {"first_name": "Ann", "surname": "Lee"}
    others = [record | {"id": f"x{record['id']}"} for record in without(people(6), "person")]
    records = [half | {"id": str(place)} for place in range(len(others))] + others
    data = write_csv(tmp_path / "f.csv", records)
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv", "--json", "--rounds", 5)
    result = run("resolve", "apply", data, *words)
    assert (result.code, result.err) == (0, "")
    assert max(rule["largest"] for rule in json.loads(result.out)["blocking"]["rules"]) >= len(others)
    found = {row["id"]: row["entity"] for row in read_csv(tmp_path / "o.csv")}
    assert len(found) == len(records)
    assert len({found[str(place)] for place in range(len(others))}) == 1


# labels


def test_labels_that_are_all_different_or_all_the_same_teach_nothing(unlearned, tmp_path):
    data = write_csv(tmp_path / "f.csv", changed("person", str, FEW))
    assert "no two labelled records are of one entity" in unlearned(data=(data,))
    data = write_csv(tmp_path / "g.csv", changed("person", lambda place: "p", FEW))
    assert "all labelled records are of one entity" in unlearned(data=(data,))
    data = write_csv(tmp_path / "h.csv", changed("person", lambda place: "", FEW))
    assert "no two labelled records are of one entity" in unlearned(data=(data,))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("id,other\n100,101\n", "has no column 'same'"),
        ("id,other,same\n100,999,1\n", "no record has the id '999' (pair 1)"),
        ("id,other,same\n100,101,maybe\n", "Write true or 1 for pairs of one entity"),
        ("id,other,same\n100,100,1\n", "is of record '100' and itself"),
    ],
)
def test_what_is_wrong_with_labelled_pairs_is_told(unlearned, file, text, fault):
    assert fault in unlearned("--pairs", file(text, "p.csv"))


# models and fields


def test_a_model_of_another_kind_is_refused_with_the_verb_it_is_for(refused, tmp_path):
    write_model(tmp_path / "other.fw", ModelFile(kind="coreference"))
    err = refused(model=tmp_path / "other.fw")
    assert "its kind is 'coreference', but 'resolution' is needed" in err
    assert "Use it with `factorwise coref`" in err


def test_a_file_that_is_no_model_is_told_from_a_damaged_one(refused, folder):
    err = refused(model=folder / "in.csv")
    assert "in.csv: not a factorwise model file" in err
    assert "Give the path of a model file, NAME.fw" in err
    assert "damaged" not in err


def test_a_damaged_model_is_refused(refused, folder, tmp_path):
    (tmp_path / "m.fw").write_bytes((folder / "m.fw").read_bytes()[:-40])
    assert "not a readable model file" in refused(model=tmp_path / "m.fw")
    write_model(tmp_path / "n.fw", ModelFile(kind="resolution"))
    assert "do not fit together" in refused(model=tmp_path / "n.fw")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[fields.born\n", "is not TOML"),
        ("[fields.brn]\nkind = 'date'\n", "there is no column 'brn'. Did you mean 'born'?"),
        ("[fields.born]\nkind = 'dat'\n", "Did you mean 'date'?"),
        ("[fields.born]\nkind = ['date']\n", "The kinds are name, text"),
        ("[fields.born]\n", "has no kind"),
        ("[fields.born]\nkind = 'date'\nordr = 'dmy'\n", "has no option 'ordr'. Did you mean 'order'?"),
        ("[felds.born]\nkind = 'date'\n", "'felds' is not known here"),
        ("[fields.person]\nkind = 'identifier'\n", "column 'person' is not compared"),
    ],
)
def test_what_is_wrong_with_kinds_of_fields_is_told_with_the_file(unlearned, file, text, fault):
    path = file(text, "f.toml")
    err = unlearned("--fields", path)
    assert str(path) in err
    assert fault in err


def test_a_file_of_fields_that_cannot_be_read_is_told(unlearned, tmp_path):
    assert "there is no file" in unlearned("--fields", tmp_path / "none.toml")
    assert "cannot be read" in unlearned("--fields", tmp_path)


# constraints


def test_pairs_of_unknown_ids_are_named(refused, file):
    err = refused("--must-link", file("a,b\n100,999\n100,101\n100,777\n", "p.csv"))
    assert "'999' (pair 1), '777' (pair 3)" in err
    assert "remove the pair" in err


def test_pairs_need_two_columns_with_names(refused, file):
    assert "has no column 'other'" in refused("--cannot-link", file("id,b,c\n1,2,3\n", "p.csv"))
    assert "are ids of records" in refused("--must-link", file("100,101\n102,103\n", "p.csv"))
    assert "is paired with itself" in refused("--cannot-link", file("a,b\n100,100\n", "p.csv"))


@pytest.mark.parametrize("option", ["--must-link", "--cannot-link"])
def test_a_file_without_pairs_is_remarked_on_and_changes_nothing(run, folder, file, tmp_path, option):
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv")
    assert run("resolve", "apply", folder / "in.csv", *words).code == 0
    before = (tmp_path / "o.csv").read_bytes()
    empty = file("id,other\n", "p.csv")
    result = run("resolve", "apply", folder / "in.csv", *words, option, empty)
    assert (result.code, result.err) == (0, f"note: {empty} has no pairs: {option} changes nothing.\n")
    assert (tmp_path / "o.csv").read_bytes() == before


def test_what_must_and_must_not_be_together_is_refused(refused, file):
    must, cannot = file("a,b\n100,101\n101,103\n", "m.csv"), file("a,b\n103,100\n", "c.csv")
    err = refused("--must-link", must, "--cannot-link", cannot)
    assert "records 103 and 100 must be together and must not be" in err


def test_one_per_source_needs_sources(refused, unlearned):
    assert "give several files, or --source COLUMN" in refused("--one-per-source")
    assert "give several files, or --source COLUMN" in unlearned("--one-per-source")


def test_columns_to_be_left_out_are_a_list_in_a_configuration_file(refused, file):
    config = file("[resolve.apply]\nignore = ['town', 'twon,email']\n", "c.toml")
    assert "has no column 'twon'" in refused("--config", config)
    config = file("[resolve.apply]\nignore = 'town,email'\n", "c.toml")
    assert "ignore must be a list, each entry names with commas" in refused("--config", config)


def test_options_that_do_not_go_together_are_refused(refused, file):
    path = file("", "f.toml")
    assert "--fields is for resolving without a model" in refused("--fields", path)
    assert "--prefix-ids is for several files" in refused("--prefix-ids")


# outputs


def test_an_output_over_an_input_or_another_output_is_refused(run, refused, folder, tmp_path):
    before = (folder / "in.csv").read_bytes()
    words = ("--id", "id", "--model", folder / "m.fw")
    result = run("resolve", "apply", folder / "in.csv", *words, "-o", folder / "in.csv")
    assert result.code == 2
    assert "is also an input: give another file" in result.err
    assert (folder / "in.csv").read_bytes() == before
    assert "is also an input" in refused("--entities", folder / "m.fw")
    assert "are both" in refused("--entities", tmp_path / "e.csv", "--pairs", tmp_path / "e.csv")


def test_a_folder_that_is_not_there_and_a_format_that_is_not_written_are_refused(refused, tmp_path):
    assert "does not exist. Create it first" in refused("--pairs", tmp_path / "none" / "p.csv")
    assert "is a folder" in refused("--pairs", tmp_path)
    assert "tables are written as CSV, Parquet or JSON lines" in refused("--canonical", tmp_path / "c.duckdb")
    assert "cannot be used" in refused("--canonical", tmp_path / f"{'c' * 300}.csv")


@pytest.mark.parametrize("name", ["o.txt", "o", "o.tsv", "o.parquet.gz", "o.csv.zip"])
def test_an_ending_that_says_nothing_of_a_format_is_refused_with_those_that_do(run, folder, tmp_path, name):
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / name)
    result = run("resolve", "apply", folder / "in.csv", *words)
    assert result.code == 2
    assert f"--output: '{tmp_path / name}' cannot be written" in result.err
    assert "ends in .csv, .csv.gz, .parquet, .pq, .jsonl, .ndjson or .json" in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(refused, tmp_path, monkeypatch):
    monkeypatch.setattr("factorwise.cli.files.can_write", lambda folder: False)
    assert "cannot be written to" in refused()


def test_a_checkpoint_must_be_a_folder(refused, file):
    assert "is no folder" in refused("--checkpoint", file("x", "kept"))


def test_a_store_for_checkpoints_must_have_an_address_that_is_known(refused):
    assert "is not the address of a folder" in refused("--checkpoint", "nowhere://kept")


def test_standard_input_is_not_read_by_a_cluster(refused):
    assert "which have no standard input" in refused("--ray", "local", "--must-link", "-")


def test_a_cluster_that_is_not_there_is_named(refused):
    assert "no Ray cluster can be reached at 'nowhere'" in refused("--ray", "nowhere")


def test_a_disk_that_is_full_leaves_no_part_of_a_file(run, folder, tmp_path, monkeypatch):
    import pyarrow.csv as pacsv

    def full(*given, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pacsv, "write_csv", full)
    words = ("--id", "id", "--model", folder / "m.fw", "-o", tmp_path / "o.csv")
    result = run("resolve", "apply", folder / "in.csv", *words)
    assert result.code == 2
    assert "o.csv: could not be written: No space left on device" in result.err
    assert list(tmp_path.iterdir()) == []


def test_the_encoding_is_that_of_files_of_pairs_too(run, folder, tmp_path):
    records = [{**one, "id": f"ü{one['id']}"} for one in RECORDS]
    data, tied = tmp_path / "in.csv", tmp_path / "must.csv"
    write_csv(data, records)
    data.write_bytes(data.read_text("utf-8").encode("cp1252"))
    tied.write_bytes(f"id,other\n{records[0]['id']},{records[-1]['id']}\n".encode("cp1252"))
    words = ("--id", "id", "--model", folder / "m.fw", "--encoding", "cp1252", "--must-link", tied)
    result = run("resolve", "apply", data, *words, "-o", tmp_path / "o.csv")
    assert result.code == 0
    entity = {row["id"]: row["entity"] for row in read_csv(tmp_path / "o.csv")}
    assert entity[records[0]["id"]] == entity[records[-1]["id"]]
