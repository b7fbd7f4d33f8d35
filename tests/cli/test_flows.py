"""``factorwise flows``: learning from counts, finding flows, and scoring them."""

import csv
import json

import numpy as np
import pytest

from factorwise.apps.collective.estimator import CollectiveModel
from factorwise.cli import main
from factorwise.cli.flows import fit as flows_fit
from factorwise.cli.verbs import GROUPS
from factorwise.io.models.files import ModelFile, read_model, write_model
from report_cases import sections_of

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


@pytest.mark.parametrize("name", GROUPS["flows"].verbs)
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
    assert (
        "share of members with the right move"
        in run("flows", "score", found, "--truth", folder / "true.csv").out
    )


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


def test_settings_are_those_of_python_unless_given():
    ours = {option.name: option.default for option in flows_fit.command.params}
    theirs = CollectiveModel().get_params()
    for name in ("noise", "l2", "passes", "tolerance"):
        assert ours[name] == theirs[name]
    assert theirs["passes"] == 300


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


def test_it_is_told_how_many_steps_have_known_flows(run, folder, tmp_path):
    rows = [("mon", 0, "a", "a", 50), ("mon", 0, "a", "b", 30)]
    known = write(tmp_path / "known.csv", ("sequence", "time", "from", "to", "count"), rows)
    words = ("flows", "fit", folder / "counts.csv", "--features", folder / "pairs.csv", "--flows", known)
    result = run(*words, "--model", tmp_path / "k.fw")
    assert "known.csv has flows for 1 of 8 steps: weights are learned from these steps only" in result.err
    assert "from known flows of 1 of 8 steps" in result.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--noise", "gaussian", "--rate", 2), "--rate applies to poisson noise, but --noise is gaussian"),
        (("--variance", 3), "leave --variance out, or give --noise gaussian"),
        (("--noise", "exact", "--rate", 1), "leave --rate out"),
    ],
)
def test_a_number_of_another_noise_is_refused(run, folder, tmp_path, words, told):
    result = run("flows", "fit", folder / "counts.csv", "--model", tmp_path / "m.fw", *words)
    assert (result.code, told in result.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_the_number_of_the_noise_is_told_and_no_other(run, fit, folder, tmp_path):
    told = fit("--noise", "gaussian", "--variance", 2)["training"]
    assert (told["variance"], "rate" in told) == (2, False)
    words = ("flows", "fit", folder / "counts.csv", "--model", tmp_path / "m.fw", "--passes", 1)
    assert "poisson, rate 1\n" in run(*words).out


def test_a_population_far_below_the_counts_is_told_of(run, folder, tmp_path):
    words = ("flows", "fit", folder / "counts.csv", "--model", tmp_path / "m.fw", "--passes", 1)
    told = "sequence 'mon' has 1e-09 members, but its counts imply 100: give a larger --population"
    assert told in run(*words, "--population", 1e-9).err
    assert "members" not in run(*words, "--population", 90).err
    words = ("flows", "apply", folder / "counts.csv", "--model", tmp_path / "m.fw", "-o", tmp_path / "f.csv")
    assert "'tue' has 30 members" in run(*words, "--population", 30).err


def test_texts_that_are_not_in_utf_8_are_to_be_converted(run, tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("time,place,count\n0,a,1\n", encoding="utf-16-le")
    result = run("flows", "fit", path, "--model", tmp_path / "m.fw")
    assert "Convert the file to UTF-8." in result.err
    assert "--encoding" not in result.err


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(0, 1), (1, 0)], "time '0' is its own ancestor through '1'"),
        ([(3, 0), (0, 0)], "time '0' is its own ancestor, but a tree has no cycles"),
        ([(2, 0), (2, 1)], "record 2: the parent of time '2' is '1' here and '0' above. Give one parent"),
    ],
)
def test_parents_that_are_no_tree_are_refused_by_the_name_of_their_file(run, folder, tmp_path, rows, told):
    tree = write(tmp_path / "tree.csv", ("time", "parent"), rows)
    words = ("--features", folder / "pairs.csv", "--parents", tree, "--model", tmp_path / "m.fw")
    result = run("flows", "fit", folder / "counts.csv", *words)
    assert result.err.startswith(f"error: {tree}")
    assert told in result.err
    assert "pairs.csv" not in result.err


def test_a_tree_of_times_is_read(fit, folder, tmp_path):
    tree = write(tmp_path / "tree.csv", ("time", "parent"), [(t, 0) for t in range(1, 5)])
    fit("--parents", tree)
    assert CollectiveModel.load(tmp_path / "m.fw").parents == {str(t): "0" for t in range(1, 5)}


def test_passes_are_told_if_more_is_wanted_and_that_they_were_too_few(run, folder, tmp_path):
    result = run(
        "flows", "fit", folder / "counts.csv", "--model", tmp_path / "m.fw", "--passes", 2, "--verbose"
    )
    assert "pass 2: objective" in result.err
    assert "allow more with --passes" in result.err
    assert "largest weights" in result.out


def test_the_model_names_its_data_but_no_folders(folder):
    record = read_model(folder / "m.fw").provenance
    assert [entry["name"] for entry in record["data"]] == ["counts.csv", "pairs.csv"]
    assert str(folder) not in json.dumps(record)


BAD = {
    "negative": ([(0, "a", -4)], "record 1 (time '0', place 'a')"),
    "twice": ([(0, "a", 4), (0, "a", 5)], "record 2 (time '0', place 'a')"),
    "unknown": ([(0, "a", 4), (1, "z", 5)], "place 'z' is not among the 3 known places"),
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
    assert "is also an input" in result.err
    result = run("flows", "score", folder / "counts.csv", "--truth", folder / "true.csv")
    assert "has no column 'from'. Its columns are 'sequence', 'time', 'place', 'count'. Rename" in result.err


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
    learned = sections_of(tmp_path / "fit.html")
    assert learned["Learning curve"]["y_label"] == "objective of all members"
    assert dict(learned["Training"]["rows"])["rate"] == 1
    assert "variance" not in dict(learned["Training"]["rows"])
    words = ("--model", folder / "m.fw", "-o", tmp_path / "f.csv", "--json", "--report")
    done = run("flows", "apply", folder / "counts.csv", *words, tmp_path / "apply.html")
    assert json.loads(done.out)["report"]["bytes"] == (tmp_path / "apply.html").stat().st_size
    assert "Flows, sequence mon" in (tmp_path / "apply.html").read_text()
    assert "What each feature adds" in (tmp_path / "apply.html").read_text()


def test_the_report_shows_counts_beside_what_is_expected_at_each_place(run, folder, tmp_path):
    rows = [(0, "a", 40), (0, "b", 60), (0, "c", 0), (1, "a", ""), (1, "b", 50), (1, "c", 10)]
    counts = write(tmp_path / "c.csv", ("time", "place", "count"), rows)
    words = ("--rate", 0.5, "--population", 200, "--passes", 3, "--quiet", "--model", tmp_path / "m.fw")
    run("flows", "fit", counts, *words)
    page = tmp_path / "r.html"
    run("flows", "apply", counts, "--model", tmp_path / "m.fw", "-o", tmp_path / "f.csv", "--report", page)
    parts = sections_of(page)
    beside = parts["Counted against expected, sequence 1"]
    assert (beside["rows"], beside["columns"]) == (["a", "b", "c"], ["0", "1"])
    assert beside["steps"]["counted"] == [[40, 0], [60, 50], [0, 10]]
    expected = np.array(beside["steps"]["expected"])
    np.testing.assert_allclose(expected.sum(axis=0), 100, atol=0.1)  # half of the members are seen
    above, below = (np.array(beside["steps"][part]) for part in ("above", "below"))
    off = np.array(beside["steps"]["counted"]) - expected
    off[0, 1] = 0  # was not counted
    np.testing.assert_allclose(above - below, off, atol=0.02)
    sums = parts["Counts, sequence 1"]
    assert sums["series"][1]["y"] == pytest.approx([100, 100])
    assert "so the expected sum is the same at all times" in sums["note"]


def test_a_report_is_a_page(run, folder, tmp_path):
    words = ("flows", "apply", folder / "counts.csv", "--model", folder / "m.fw", "-o", tmp_path / "f.csv")
    assert "its name must end in .html" in run(*words, "--report", tmp_path / "r.pdf").err
    assert "give --report FILE.html, too" in run(*words, "--no-values").err
    assert list(tmp_path.iterdir()) == []
