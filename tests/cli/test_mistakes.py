"""Mistakes people make: data that do not fit the model, labels of other data; told at once."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_lines import DOCUMENTS, PEOPLE, RECORDS, whole_folder
from factorwise.apps.alignment.estimator import OntologyAligner
from factorwise.apps.collective.learning import CollectiveProblem
from factorwise.apps.resolution import estimator
from factorwise.apps.resolution.estimator import EntityResolver
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.cli.coref import apply as coref_apply
from factorwise.cli.resolve import progress as resolve_progress
from factorwise.cli.tag import training as tag_training
from factorwise.errors import InvalidArgumentError
from factorwise.learning import SampleRank
from record_cases import without, write_csv

RESOLVE = ("--id", "id", "--model", "resolve.fw", "-o", "o.csv")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return whole_folder(tmp_path_factory.getbasetemp())


@pytest.fixture
def folder(whole, tmp_path, monkeypatch):
    """A folder with all files, to be in and to add to."""
    place = tmp_path / "here"
    shutil.copytree(whole, place)
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def refused(run, folder, monkeypatch):
    """Run a line in vain: return what is said; no file is made, and no work begun."""

    def work(*given, **more):
        raise AssertionError("the work began")

    workers = {
        estimator: ("link", "place", "learn", "learn_without_labels"),
        CollectiveProblem: ("flows",),
        SampleRank: ("fit",),
        OntologyAligner: ("predict",),
        coref_apply: ("resolved",),
        tag_training: ("train",),
        ChainTagger: ("decode", "marginals"),
    }

    def refused(*words):
        before = sorted(folder.iterdir())
        with monkeypatch.context() as patch:
            for place, names in workers.items():
                for name in names:
                    patch.setattr(place, name, work)
            result = run(*words)
        assert (result.code, result.out) == (2, "")
        assert sorted(folder.iterdir()) == before
        return result.err

    return refused


def renamed(records, **names):
    return [{names.get(key, key): value for key, value in record.items()} for record in records]


def changed(records, **values):
    return [record | values for record in records]


def parquet(path, records):
    pq.write_table(pa.Table.from_pylist(records), path)
    return path


# records whose columns differ from those of the model


def test_columns_that_are_missing_are_listed_with_those_that_the_model_does_not_know(refused, folder):
    data = write_csv(folder / "x.csv", renamed(RECORDS, surname="last_name", born="dob"))
    for words in (("apply", data, *RESOLVE), ("explain", data, "100", "101", *RESOLVE[:4])):
        said = refused("resolve", *words)
        assert f"{data}: there are no columns 'surname', 'born', which are to be compared" in said
        assert "Columns that the model does not know: 'last_name', 'dob'." in said
        assert "Rename columns as they were when the model was learned, add them, empty if" in said


def test_columns_of_other_types_are_listed_with_what_was_expected_and_what_is_there(refused, folder):
    records = changed(RECORDS, surname=7, email=1.5, town=["Leeds"])
    said = refused("resolve", "apply", parquet(folder / "x.parquet", records), *RESOLVE)
    assert "column 'surname' is to hold names of persons (kind name), but its type is int64; " in said
    assert "column 'email' is to hold e-mail addresses (kind email), but its type is double" in said
    assert "column 'town' is to hold one of a few values (kind category), but its type is list" in said
    assert "Give the columns what they held when the model was learned, or use another model." in said


def test_text_that_can_not_be_what_the_model_compares_is_shown(refused, folder):
    data = write_csv(folder / "x.csv", changed(RECORDS, born="soon"))
    said = refused("resolve", "apply", data, *RESOLVE)
    assert "column 'born' is to hold days, or years alone (kind date), but holds text that is none" in said
    assert "such as 'soon'" in said


def test_old_records_that_new_ones_are_placed_among_need_the_columns_too(refused, folder):
    new = write_csv(folder / "new.csv", [record | {"id": f"n{record['id']}"} for record in RECORDS])
    old = write_csv(folder / "old.csv", without(RECORDS, "born"))
    said = refused("resolve", "apply", new, *RESOLVE, "--onto", "resolve-found.csv", "--old", old)
    assert f"{old}: there is no column 'born', which is to be compared" in said


def test_further_columns_are_remarked_on(run, folder):
    data = write_csv(folder / "x.csv", changed(RECORDS, note="n", shoe_size="9"))
    result = run("resolve", "apply", data, *RESOLVE)
    assert result.code == 0
    told = "note: the model does not know, and does not compare, the columns note, shoe_size.\n"
    assert result.err == told


def test_in_python_records_with_other_columns_are_refused_too(folder):
    resolver = EntityResolver.load(folder / "resolve.fw")
    with pytest.raises(InvalidArgumentError, match="there is no column 'born'"):
        resolver.resolve(without(RECORDS, "born"))
    with pytest.raises(InvalidArgumentError, match="there is no column 'town'"):
        resolver.update(without(RECORDS, "town"), RECORDS, [None] * len(RECORDS))


def test_a_file_that_is_not_there_is_guessed_by_its_name_only_if_one_is_nearly_the_same(refused):
    words = ("--id", "id", "--model", "resolve.fw", "-o", "o.csv")
    assert "there is no file 'bad.csv'. Check the path." in refused("resolve", "apply", "bad.csv", *words)
    said = refused("resolve", "apply", "record.csv", *words)
    assert "there is no file 'record.csv'. Did you mean 'records.csv'?" in said
    said = refused("resolve", "apply", "records.parquet", *words)
    assert "there is no file 'records.parquet'. Did you mean 'records.csv'?" in said


# ids that are not those of the records


@pytest.mark.parametrize("option", ["--must-link", "--cannot-link"])
def test_pairs_of_other_records_are_named_with_ids_that_there_are(refused, folder, option):
    (folder / "p.csv").write_text("id,other\nx1,x2\nx3,x4\nx5,x6\nx7,x8\n")
    said = refused("resolve", "apply", "records.csv", *RESOLVE, option, "p.csv")
    assert "p.csv, 'id': no record has the id 'x1' (pair 1), 'x3' (pair 2), 'x5' (pair 3) and 1 more" in said
    assert "ids are such as '100', '101', '102'. Correct it, or remove the pair." in said


def test_labelled_pairs_of_other_records_are_named_with_ids_that_there_are(refused, folder):
    (folder / "p.csv").write_text("id,other,same\nx1,x2,1\n100,x4,0\n")
    words = ("--id", "id", "--entity", "person", "--model", "o.fw", "--pairs", "p.csv")
    said = refused("resolve", "fit", "labelled.csv", *words)
    assert "no record has the id 'x1' (pair 1); ids are such as '100', '101', '102'." in said


def test_a_truth_of_other_records_is_refused_with_ids_of_both(refused, folder):
    truth = write_csv(folder / "t.csv", [record | {"id": f"z{record['id']}"} for record in PEOPLE])
    said = refused(
        "resolve", "score", "resolve-found.csv", "--truth", truth, "--id", "id", "--entity", "person"
    )
    assert (
        "have no record in common whose true entity is known: their ids are such as '100' and 'z100'" in said
    )


def test_entities_of_other_records_are_refused_with_ids_of_both(refused, folder):
    (folder / "e.csv").write_text("id,entity\nq1,q1\n")
    new = write_csv(folder / "new.csv", [record | {"id": f"n{record['id']}"} for record in RECORDS])
    said = refused("resolve", "apply", new, *RESOLVE, "--onto", "e.csv", "--old", "records.csv")
    assert "records.csv and e.csv: no old record has an entity" in said
    assert "they are such as '100' and 'q1'" in said
    said = refused("resolve", "explain", "records.csv", "100", "101", *RESOLVE[:4], "--entities", "e.csv")
    assert "e.csv: lacks 28 of the records, the first of them '100'; its ids are such as 'q1'." in said


def test_a_model_of_another_kind_is_told_before_the_records_are_read(refused):
    said = refused("resolve", "apply", "none.csv", "--id", "id", "--model", "tag.fw", "-o", "o.csv")
    assert "tag.fw: its kind is 'chain-crf', but 'resolution' is needed" in said


def test_a_checkpoint_of_another_run_is_told_before_candidates_are_made(run, folder, monkeypatch):
    def die(bar, progress):
        if progress.round == 6:
            raise RuntimeError("killed")

    words = ("resolve", "apply", "records.csv", *RESOLVE, "--checkpoint", "kept", "--checkpoint-seconds", 0)
    with monkeypatch.context() as patch:
        patch.setattr(resolve_progress.WalkBar, "__call__", die)
        assert run(*words).code == 1
    kept = sorted((folder / "kept").iterdir())
    assert kept
    with monkeypatch.context() as patch:
        patch.setattr(estimator, "link", None)
        result = run(*words, "--seed", 1)
    assert (result.code, result.out) == (2, "")
    assert "kept" in result.err
    assert "is the checkpoint of another run (other records, model, settings" in result.err
    assert "Give another folder, or remove it to start again." in result.err
    assert sorted((folder / "kept").iterdir()) == kept


# tags


def test_a_file_with_fewer_columns_than_the_tagger_reads_is_refused_with_both_numbers(refused, folder):
    (folder / "one.txt").write_text("Ann\nsings\n\n")
    said = refused("tag", "apply", "one.txt", "--model", "tag.fw")
    assert (
        "asks for column 1 (counted from 0), but the file has 1. The training data had 3, with labels" in said
    )
    assert "with labels in column 2." in said


def test_labels_are_not_taken_for_another_column_that_is_missing(run, refused, folder):
    (folder / "two.txt").write_text("Ann B-PER\nsings O\n\n")
    said = refused("tag", "apply", "two.txt", "--model", "tag.fw")
    assert "two.txt: has 2 columns where the training data had 3, and column 1 (counted from 0)" in said
    assert "holds labels, such as 'B-PER'. Add the column that is missing, or say with --columns" in said
    assert run("tag", "apply", "two.txt", "--model", "tag.fw", "--columns", "0,1").code == 0
    (folder / "two.txt").write_text("Ann N\nsings V\n\n")
    assert run("tag", "apply", "two.txt", "--model", "tag.fw").err == ""


def test_a_column_that_held_labels_when_the_tagger_learned_may_hold_them(run, folder):
    (folder / "guessed.txt").write_text("Ann B-PER B-PER\nsings O O\n\nBob O B-PER\nreads O O\n\n" * 3)
    words = ("--model", "guessed.fw", "--max-iterations", 2)
    assert run("tag", "fit", "guessed.txt", *words).code == 0
    (folder / "two.txt").write_text("Ann B-PER\nsings O\n\n")
    assert run("tag", "apply", "two.txt", "--model", "guessed.fw").err == ""


def test_further_columns_of_tokens_are_remarked_on(run, folder):
    (folder / "many.txt").write_text("Ann N X Y B-PER\nsings V X Y O\n\n")
    result = run("tag", "apply", "many.txt", "--model", "tag.fw")
    assert result.code == 0
    told = "many.txt has 5 columns where the training data had 3: read are 0, 1 (counted from 0); name others"
    assert told in result.err
    assert run("tag", "apply", "many.txt", "--model", "tag.fw", "--columns", "0,1").err == ""


# counts


def test_counts_at_other_places_are_refused_with_those_that_there_are(refused, folder):
    (folder / "c.csv").write_text("time,place,count\n0,a,5\n0,z,5\n1,y,5\n")
    said = refused("flows", "apply", "c.csv", "--model", "flows.fw", "-o", "o.csv")
    assert "place 'z' is not among the 2 known places, which are 'a', 'b'. 'y' are unknown, too." in said


def test_places_of_the_model_without_a_count_are_remarked_on(run, folder):
    run("flows", "fit", "counts.csv", "--model", "p.fw", "--passes", 1, "--quiet")
    (folder / "c.csv").write_text("time,place,count\n0,a,5\n1,a,5\n")
    result = run("flows", "apply", "c.csv", "--model", "p.fw", "-o", "o.csv", "--population", 10)
    assert result.code == 0
    assert "note: c.csv has no counts for 'b', which the model has" in result.err


def test_features_of_other_times_are_refused_with_those_that_there_are(run, refused, folder):
    (folder / "f.csv").write_text("time,from,to,far\n0,a,a,0\n0,a,b,1\n0,b,a,1\n0,b,b,0\n")
    said = refused("flows", "fit", "counts.csv", "--features", "f.csv", "--model", "o.fw")
    assert "counts.csv and f.csv: there are no features for sequence '1', time '1', but the model" in said
    assert "There are features for time '0': give a table that has all times." in said


def test_other_features_than_those_of_the_model_are_listed(refused):
    words = ("flows", "apply", "counts.csv", "--model", "flows.fw", "-o", "o.csv", "--features", "pairs.csv")
    said = refused(*words)
    assert "fitted with different features: 'stay' is missing and 'far' is extra. Give the same" in said


def test_features_of_other_places_are_listed(refused, folder):
    (folder / "f.csv").write_text("from,to,far\na,a,0\na,c,1\nc,a,1\nc,c,0\n")
    words = ("--features", "pairs.csv", "--features", "f.csv", "--model", "o.fw")
    said = refused("flows", "fit", "counts.csv", *words)
    assert "pairs.csv and f.csv: two tables of features have different places, such as 'b'" in said
    assert "in the second table 'b' is missing and 'c' is extra" in said


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            "7,a,b,40\n",
            "the counts have no step at time '7' of sequence '1'. Their sequences are '1'; its steps",
        ),
        ("0,x,b,40\n", "from 'x' is not among the 2 known places, which are 'a', 'b'."),
    ],
)
def test_known_flows_of_other_counts_are_told_before_anything_is_learned(refused, folder, rows, told):
    (folder / "t.csv").write_text(f"time,from,to,count\n{rows}")
    said = refused("flows", "fit", "counts.csv", "--flows", "t.csv", "--model", "o.fw")
    assert said.startswith("error: t.csv, record 1")
    assert told in said


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("time,from,to,count\n7,a,b,40\n", "no time in common: '0', '1' against '7'"),
        ("time,from,to,count\n0,x,y,40\n", "no place in common: 'a', 'b' against 'x', 'y'"),
        ("sequence,time,from,to,count\nmon,0,a,b,40\n", "no sequence in common: '1' against 'mon'"),
    ],
)
def test_true_flows_of_other_counts_are_refused(refused, folder, rows, told):
    (folder / "t.csv").write_text(rows)
    said = refused("flows", "score", "flows-found.csv", "--truth", "t.csv")
    assert f"flows-found.csv and t.csv have {told}. Give the true flows of the same counts" in said


def test_what_is_wrong_with_counts_is_told_with_their_file(refused, folder):
    (folder / "c.csv").write_text("time,place,count\n0,a,5\n0,b,5\n1,a,15\n1,b,5\n")
    for words in (("fit", "c.csv", "--noise", "exact", "--model", "o.fw"),
                  ("apply", "c.csv", "--model", "flows.fw", "-o", "o.csv")):  # fmt: skip
        said = refused("flows", *words)
        assert "error: c.csv: sequence '1', time '1': the counts sum to 20, but time '0' has 10." in said
    (folder / "t.csv").write_text("time,parent\n1,9\n")
    said = refused("flows", "fit", "counts.csv", "--parents", "t.csv", "--model", "o.fw")
    assert "error: counts.csv and t.csv: the parent of time '1' is time '9', which has no counts" in said


# documents and ontologies


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def bare(*keys):
    """The documents with mentions that do not say these."""
    return [one | {"mentions": without(one["mentions"], *keys)} for one in DOCUMENTS]


def test_mentions_that_say_less_than_those_of_the_training_are_remarked_on(run, folder):
    data = written(folder / "x.jsonl", bare("mtype", "type"))
    result = run("coref", "apply", data, "--model", "coref.fw", "-o", "o.jsonl")
    assert result.code == 0
    assert (
        f"note: the mentions of {data} have no 'type', 'mtype', which those that the model was" in result.err
    )
    assert run("coref", "apply", "docs.jsonl", "--model", "coref.fw", "-o", "o.jsonl").err == ""


def test_documents_without_a_mention_of_the_types_of_the_model_are_refused(run, refused, folder):
    words = ("--types", "PER", "--passes", 1, "--steps", 5, "--search-steps", 2, "--quiet")
    assert run("coref", "fit", "docs.jsonl", "--model", "types.fw", *words).code == 0
    apply = ("--model", "types.fw", "-o", "o.jsonl")
    said = refused("coref", "apply", written(folder / "x.jsonl", bare("type")), *apply)
    assert "x.jsonl: the model is for mentions of type 'PER', but no mention here has a 'type'." in said
    places = [one | {"mentions": changed(one["mentions"], type="LOC")} for one in DOCUMENTS]
    said = refused("coref", "apply", written(folder / "y.jsonl", places), *apply)
    assert "the model is for mentions of type 'PER', but those here are 'LOC'. Give documents with" in said


def test_a_truth_of_other_documents_is_refused_with_their_names(refused, folder):
    truth = written(folder / "t.jsonl", [one | {"id": f"x{one['id']}"} for one in DOCUMENTS])
    said = refused("coref", "score", "coref-found.jsonl", "--truth", truth)
    assert f"coref-found.jsonl: lacks document 'xd0', 'xd1', which {truth} has." in said


def test_a_picture_is_no_ontology_in_rdf(refused, folder):
    (folder / "a.owl").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    said = refused("align", "apply", "a.owl", "b.jsonl", "--model", "align.fw", "-o", "o.tsv")
    assert "a.owl: is a picture, where RDF is needed. Give another file." in said


def test_a_reference_of_other_ontologies_is_refused_with_ids_of_both(refused, folder):
    (folder / "k.tsv").write_text("x1\ty1\t=\nx2\ty2\t=\n")
    said = refused("align", "fit", "a.jsonl", "b.jsonl", "--reference", "k.tsv", "--model", "o.fw")
    assert "k.tsv: 'x1', 'x2' are no concepts of a.jsonl, which has 'a0', 'a1', 'a2'. Give the" in said
    said = refused("align", "score", "align-found.tsv", "--truth", "k.tsv")
    assert "align-found.tsv and the true matches have no concept in common: 'a" in said
    assert (
        "against 'x1', 'y1', 'x2' and 1 more. Give with --truth the matches of the same ontologies." in said
    )
