"""``factorwise flows``: learning from counts, finding flows, and scoring them."""

import csv
import json

import numpy as np
import pytest

from factorwise.apps.collective.estimator import CollectiveModel
from factorwise.cli import flows, main
from factorwise.io.models import ModelFile, read_model, write_model

SHARED = ["--seed", "--threads", "--config", "--json", "--quiet", "--verbose", "--version"]
PLACES = "abc"
RING = np.array([[0.6, 0.4, 0.0], [0.0, 0.6, 0.4], [0.4, 0.0, 0.6]])


def write(path, head, rows):
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([head, *rows])
    return path


def quietly(*words):
    with pytest.raises(SystemExit) as left:
        main.main([str(word) for word in words])
    assert left.value.code == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with counts of two days, their true flows, features, coordinates and a model."""
    place = tmp_path_factory.mktemp("flows")
    rng = np.random.default_rng(0)
    counts, moves = [], []
    for day in ("mon", "tue"):
        here = np.array([80, 10, 10])
        for hour in range(5):
            counts += [(day, hour, PLACES[k], n) for k, n in enumerate(here)]
            if hour < 4:
                moved = np.array([rng.multinomial(n, row) for n, row in zip(here, RING, strict=True)])
                moves += [(day, hour, PLACES[i], PLACES[j], n) for (i, j), n in np.ndenumerate(moved)]
                here = moved.sum(axis=0)
    write(place / "counts.csv", ("sequence", "time", "place", "count"), counts)
    write(place / "true.csv", ("sequence", "time", "from", "to", "count"), moves)
    pairs = [(i, j, int(i == j), int(i + j in ("ab", "bc", "ca"))) for i in PLACES for j in PLACES]
    write(place / "pairs.csv", ("from", "to", "stay", "onward"), pairs)
    write(place / "places.csv", ("place", "x", "y"), [("a", 0, 0), ("b", 1, 0), ("c", 9, 0)])
    quietly("flows", "fit", place / "counts.csv", "--features", place / "pairs.csv", "--noise", "exact",
            "--model", place / "m.fw", "--passes", 20, "--quiet")  # fmt: skip
    return place


@pytest.fixture
def fit(run, folder, tmp_path):
    def fit(*words, counts=folder / "counts.csv"):
        result = run("flows", "fit", counts, "--model", tmp_path / "m.fw", "--passes", 2, "--json", "--quiet",
                     *words)  # fmt: skip
        assert (result.code, result.err) == (0, "")
        return json.loads(result.out)

    return fit


@pytest.mark.parametrize("name", flows.VERBS)
def test_each_verb_has_the_shared_options_and_ends_its_help_with_an_example(run, name):
    result = run("flows", name, "--help")
    assert result.code == 0
    assert all(option in result.out for option in SHARED)
    assert result.out.rstrip().splitlines()[-1].strip().startswith(f"factorwise flows {name}")


def test_flows_that_were_found_agree_with_the_true_ones(run, folder, tmp_path):
    found = tmp_path / "flows.csv"
    assert run("flows", "apply", folder / "counts.csv", "--model", folder / "m.fw", "-o", found).code == 0
    with found.open() as stream:
        assert next(csv.reader(stream)) == ["sequence", "time", "from", "to", "expected"]
    result = run("flows", "score", found, "--truth", folder / "true.csv", "--json")
    document = json.loads(result.out)
    assert document["scores"]["overlap"] > 0.85
    assert document["scores"]["true"] == 800
    assert (document["steps"], document["places"]) == (8, 3)
    assert "members whose move is right" in run("flows", "score", found, "--truth", folder / "true.csv").out


def test_the_command_line_finds_what_python_finds(run, folder, tmp_path):
    run("flows", "apply", folder / "counts.csv", "--model", folder / "m.fw", "-o", tmp_path / "f.parquet")
    document = json.loads(
        run("flows", "score", tmp_path / "f.parquet", "--truth", folder / "true.csv", "--json").out
    )
    score = CollectiveModel.load(folder / "m.fw").score(folder / "counts.csv", folder / "true.csv")
    assert document["scores"]["overlap"] == pytest.approx(score, abs=1e-3)


def test_flows_go_to_standard_output_unless_a_file_is_named(run, folder):
    text = run("flows", "apply", folder / "counts.csv", "--model", folder / "m.fw").out
    assert text.startswith("sequence,time,from,to,expected\nmon,0,a,a,")
    document = json.loads(
        run("flows", "apply", folder / "counts.csv", "--model", folder / "m.fw", "--json").out
    )
    assert len(document["flows"]) == len(text.splitlines()) - 1


def test_small_flows_are_left_out(run, folder):
    text = run("flows", "apply", folder / "counts.csv", "--model", folder / "m.fw", "--least", 5).out
    assert min(float(line.split(",")[-1]) for line in text.splitlines()[1:]) >= 5


def test_the_summary_tells_of_data_weights_and_passes(fit, folder):
    document = fit("--features", folder / "pairs.csv", "--population", 100)
    assert document["data"] == {"sequences": 2, "times": 10, "places": 3, "counts": 30, "missing": 0}
    assert {entry["name"] for entry in document["weights"]["largest"]} == {"stay", "onward"}
    assert len(document["curve"]) == document["training"]["passes"] == 2


def test_without_features_there_is_one_for_staying_and_with_places_those_of_distance(fit, folder):
    assert [entry["name"] for entry in fit()["weights"]["largest"]] == ["stay"]
    names = {entry["name"] for entry in fit("--places", folder / "places.csv")["weights"]["largest"]}
    assert "farther" in names
    both = fit("--places", folder / "places.csv", "--features", folder / "pairs.csv")
    assert both["weights"]["all"] == len(names) + 2


def test_known_flows_are_learned_from(run, fit, folder, tmp_path):
    document = fit("--features", folder / "pairs.csv", "--flows", folder / "true.csv")
    assert document["training"]["known_flows"]
    assert document["curve"] == []
    words = ("flows", "fit", folder / "counts.csv", "--features", folder / "pairs.csv")
    result = run(*words, "--flows", folder / "true.csv", "--model", tmp_path / "k.fw")
    assert "from known flows" in result.out


def test_a_tree_of_times_is_read(fit, folder, tmp_path):
    tree = write(tmp_path / "tree.csv", ("time", "parent"), [(t, 0) for t in range(1, 5)])
    fit("--parents", tree)
    assert CollectiveModel.load(tmp_path / "m.fw").parents == {str(t): "0" for t in range(1, 5)}


def test_passes_are_told_if_more_is_wanted_and_that_they_were_too_few(run, folder, tmp_path):
    result = run(
        "flows", "fit", folder / "counts.csv", "--model", tmp_path / "m.fw", "--passes", 2, "--verbose"
    )
    assert "pass 2: objective" in result.err
    assert "give more with --passes" in result.err
    assert "largest weights" in result.out


def test_the_model_names_its_data_but_no_folders(folder):
    record = read_model(folder / "m.fw").provenance
    assert [entry["name"] for entry in record["data"]] == ["counts.csv", "pairs.csv"]
    assert str(folder) not in json.dumps(record)


BAD = {
    "negative": ([(0, "a", -4)], "record 1 (time '0', place 'a')"),
    "twice": ([(0, "a", 4), (0, "a", 5)], "record 2 (time '0', place 'a')"),
    "unknown": ([(0, "a", 4), (1, "z", 5)], "place 'z' is none of the 3 places"),
    "word": ([(0, "a", "four")], "'count' is 'four'"),
    "uneven": (
        [(0, "a", 4), (0, "b", 1), (0, "c", 1), (1, "a", 4), (1, "b", 4), (1, "c", 0)],
        "time '1': the counts sum to 8, but time '0' has 6",
    ),
}


@pytest.mark.parametrize(("rows", "told"), BAD.values(), ids=BAD)
def test_counts_that_cannot_be_are_refused_and_nothing_is_written(run, folder, tmp_path, rows, told):
    path = write(tmp_path / "bad.csv", ("time", "place", "count"), rows)
    for words in (
        ("fit", path, "--features", folder / "pairs.csv", "--noise", "exact", "--model", tmp_path / "m.fw"),
        ("apply", path, "--model", folder / "m.fw", "-o", tmp_path / "f.csv"),
    ):
        result = run("flows", *words)
        assert result.code == 2
        assert told in result.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.csv"]


def test_files_that_are_missing_or_of_another_kind_are_refused(run, folder, tmp_path):
    result = run("flows", "fit", tmp_path / "none.csv", "--model", tmp_path / "m.fw")
    assert (result.code, "none.csv" in result.err) == (2, True)
    write_model(tmp_path / "o.fw", ModelFile(kind="alignment"))
    result = run("flows", "apply", folder / "counts.csv", "--model", tmp_path / "o.fw")
    assert "factorwise align" in result.err
    result = run("flows", "fit", folder / "counts.csv", "--model", folder / "counts.csv")
    assert "is also read from" in result.err
    result = run("flows", "score", folder / "counts.csv", "--truth", folder / "true.csv")
    assert "has no column 'from'" in result.err


def test_a_flow_twice_is_refused(run, folder, tmp_path):
    path = write(tmp_path / "f.csv", ("time", "from", "to", "expected"), [(0, "a", "b", 1), (0, "a", "b", 2)])
    assert "record 2" in run("flows", "score", path, "--truth", folder / "true.csv").err


def test_inspect_shows_a_model_of_flows(run, folder):
    assert "collective" in run("inspect", folder / "m.fw").out


def test_reports_show_what_was_learned_and_found(run, folder, tmp_path):
    words = ("--features", folder / "pairs.csv", "--model", tmp_path / "m.fw", "--passes", 2, "--json")
    done = run("flows", "fit", folder / "counts.csv", *words, "--report", tmp_path / "fit.html", "--quiet")
    assert json.loads(done.out)["report"]["file"] == "fit.html"
    assert "onward" in (tmp_path / "fit.html").read_text()
    words = ("--model", folder / "m.fw", "-o", tmp_path / "f.csv", "--json", "--report")
    done = run("flows", "apply", folder / "counts.csv", *words, tmp_path / "apply.html")
    assert json.loads(done.out)["report"]["bytes"] == (tmp_path / "apply.html").stat().st_size
    assert "Flows, sequence mon" in (tmp_path / "apply.html").read_text()
    assert "What each feature adds" in (tmp_path / "apply.html").read_text()


def test_a_report_is_a_page(run, folder, tmp_path):
    words = ("flows", "apply", folder / "counts.csv", "--model", folder / "m.fw", "-o", tmp_path / "f.csv")
    assert "let the name end in .html" in run(*words, "--report", tmp_path / "r.pdf").err
    assert "give --report FILE.html too" in run(*words, "--no-values").err
    assert list(tmp_path.iterdir()) == []
