"""``factorwise align``: learning and finding matches, and scoring them."""

import io
import json
import shlex
import subprocess
import sys

import pytest

from factorwise.apps.alignment.estimator import KIND, OntologyAligner
from factorwise.cli import main
from factorwise.cli.align import fit as align_fit
from factorwise.cli.files import VERB_OF_KIND
from factorwise.cli.learned_weights import TOP
from factorwise.cli.verbs import GROUPS
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.io.models.learned import read_learned
from factorwise.io.ontologies.alignments import read_alignment
from factorwise.io.ontologies.ontology import read_ontology
from factorwise.metrics.alignment import best_threshold, match_curve, score_matches
from report_cases import sections_of

SHARED = ["--seed", "--threads", "--config", "--json", "--quiet", "--verbose", "--version"]
FAST = ("--passes", 2, "--steps", 20, "--search-steps", 20)
LABELS = (
    "animal",
    "brown bear",
    "house cat",
    "sheep dog",
    "red fox",
    "sea eagle",
    "grey goose",
    "wild horse",
)
OTHERS = ("beast", "bear, brown", "cat", "sheepdog", "fox", "eagle of the sea", "goose", "tree", "stone")


def concepts(labels, prefix):
    """An ontology of two levels as JSON lines."""
    return "".join(
        json.dumps({"id": f"{prefix}{n}", "label": label, "parents": [f"{prefix}0"] if n else []}) + "\n"
        for n, label in enumerate(labels)
    )


def quietly(*words):
    with pytest.raises(SystemExit) as left:
        main.main([str(word) for word in words])
    assert left.value.code == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two ontologies, a reference and an aligner."""
    place = tmp_path_factory.mktemp("align")
    (place / "a.jsonl").write_text(concepts(LABELS, "a"))
    (place / "b.jsonl").write_text(concepts(OTHERS, "b"))
    (place / "r.tsv").write_text("".join(f"a{n}\tb{n}\t=\n" for n in range(7)))
    quietly("align", "fit", *pair(place), "--reference", place / "r.tsv", "--model", place / "m.fw", *FAST)
    return place


def pair(folder):
    return folder / "a.jsonl", folder / "b.jsonl"


def known(folder):
    return [(row.source, row.target) for row in read_alignment(folder / "r.tsv")]


@pytest.fixture
def fit(run, folder, tmp_path):
    """Learn from the reference with more options; return the summary."""

    def fit(*words, model=tmp_path / "m.fw"):
        result = run(
            "align", "fit", *pair(folder), "--reference", folder / "r.tsv", "--model", model, "--json", *FAST,
            *words,
        )  # fmt: skip
        assert (result.code, result.err) == (0, "")
        return json.loads(result.out)

    return fit


@pytest.fixture
def apply(run, folder):
    def apply(*words, model=folder / "m.fw"):
        result = run("align", "apply", *pair(folder), "--model", model, *words)
        assert (result.code, result.err) == (0, "")
        return result.out

    return apply


@pytest.fixture
def refused(run, folder, tmp_path):
    """Learn in vain: return what is said; there is no model, nor any other file."""

    def refused(*words, left=folder / "a.jsonl", right=folder / "b.jsonl", reference=folder / "r.tsv"):
        place = tmp_path / "out"
        place.mkdir(exist_ok=True)
        target = ("--reference", reference, "--model", place / "m.fw")
        result = run("align", "fit", left, right, *target, *FAST, *words)
        assert (result.code, result.out) == (2, "")
        assert list(place.iterdir()) == []
        return result.err

    return refused


@pytest.mark.parametrize("name", GROUPS["align"].verbs)
def test_every_verb_has_the_shared_options_and_ends_its_help_with_an_example(run, name):
    result = run("align", name, "--help")
    assert result.code == 0
    for option in SHARED:
        assert option in result.out
    title, example = result.out.rstrip().splitlines()[-2:]
    assert title.strip() == "Example:"
    assert example.strip().startswith(f"factorwise align {name}")


def test_the_defaults_are_those_of_the_estimator():
    defaults = OntologyAligner().get_params()
    given = {option.name: option.default for option in align_fit.command.params}
    named = set(defaults) - {"random_state", "verbose", "general"}
    assert {name: given[name] for name in named} == {name: defaults[name] for name in named}


# learning


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ([], {}),
        (["--many-to-many", "--seed", "5"], {"one_to_one": False, "random_state": 5}),
        (["--partial", "--metric", "rand", "--update", "unit", "--accept", "truth"],
         {"complete": False, "metric": "rand", "update": "unit", "accept": "truth"}),
    ],
)  # fmt: skip
def test_learning_finds_what_the_estimator_finds(fit, folder, tmp_path, words, parameters):
    document = fit(*words)
    aligner = OntologyAligner(passes=2, steps=20, search_steps=20, **parameters)
    expected = aligner.fit(*map(read_ontology, pair(folder)), known(folder))
    saved = OntologyAligner.load(tmp_path / "m.fw")
    assert saved.weights_.tobytes() == expected.weights_.tobytes()
    assert saved.settings_ == expected.settings_
    assert [entry["updates"] for entry in document["curve"]] == [made.updates for made in expected.history_]


def test_the_summary_has_data_curve_weights_times_and_memory(fit, tmp_path):
    document = fit()
    by_name = OntologyAligner.load(tmp_path / "m.fw").weights_by_name()
    assert document["model"] == {"file": "m.fw", "bytes": (tmp_path / "m.fw").stat().st_size}
    assert document["data"] == {"concepts": [8, 9], "matches": 7, "pairs": 1}
    assert len(document["curve"]) == 2
    expected = [{"name": name, "weight": weight} for name, weight in list(by_name.items())[:TOP]]
    assert document["weights"]["largest"] == expected
    assert document["training"] == {
        "complete": True, "one_to_one": True, "update": "mira", "cap": 0.01, "accept": "metropolis",
        "temperature": 1.0, "metric": "pairwise", "passes": 2, "steps": 20, "search_steps": 20,
    }  # fmt: skip
    assert set(document["seconds"]) == {"reading", "loading", "training", "writing", "all"}
    assert document["peak_memory"] > 10**7


def test_the_summary_for_people_shows_the_curve_and_the_weights(run, folder, tmp_path):
    words = ("--reference", folder / "r.tsv", "--model", tmp_path / "m.fw", "--partial", "--verbose", *FAST)
    result = run("align", "fit", *pair(folder), *words)
    assert result.code == 0
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["pass 1", "pass 2"]
    lines = result.out.splitlines()
    begins = {line.split()[0]: line for line in lines}
    assert "8 and 9 concepts, 7 known matches" in begins["data"]
    assert "one to one, reference partial" in begins["matches"]
    assert "2 passes of 20 steps for each concept" in begins["training"]
    assert lines[lines.index("learning curve") + 1].split()[-1] == "pairwise"
    weights = OntologyAligner.load(tmp_path / "m.fw").weights_by_name()
    assert len(lines) - lines.index("largest weights") - 1 == len(weights)


def test_every_option_can_stand_in_a_file(fit, tmp_path):
    (tmp_path / "run.toml").write_text(
        "[align]\nseed = 2\n[align.fit]\none-to-one = false\ncomplete = false\nupdate = 'arow'\n"
        "accept = 'always'\nmetric = 'rand'\nsyntax = 'jsonl'\nlanguage = 'en'\n"
    )
    training = fit("--config", tmp_path / "run.toml")["training"]
    assert (training["one_to_one"], training["complete"], training["update"]) == (False, False, "arow")
    assert (training["accept"], training["metric"]) == ("always", "rand")
    saved = read_learned(tmp_path / "m.fw", KIND, ())
    assert saved.provenance["seed"] == 2
    assert [entry["name"] for entry in saved.provenance["data"]] == ["a.jsonl", "b.jsonl", "r.tsv"]


def test_an_interrupt_leaves_no_model(run, folder, tmp_path, monkeypatch):
    def interrupting(options, metric):
        def interrupt(record, weights):
            raise KeyboardInterrupt

        return interrupt

    monkeypatch.setattr(align_fit, "watch", interrupting)
    words = ("--reference", folder / "r.tsv", "--model", tmp_path / "m.fw", *FAST)
    result = run("align", "fit", *pair(folder), *words)
    assert (result.code, result.out) == (130, "")
    assert list(tmp_path.iterdir()) == []


def test_other_relations_are_left_out_with_a_notice(run, folder, tmp_path, fit):
    reference = tmp_path / "more.tsv"
    reference.write_text((folder / "r.tsv").read_text() + "a1\tb0\t<\n")
    words = ("--model", tmp_path / "more.fw", "--json", *FAST)
    result = run("align", "fit", *pair(folder), "--reference", reference, *words)
    assert json.loads(result.out)["data"]["matches"] == 7
    assert "lines of another relation than '=', such as '<', are left out: 1." in result.err


# matching


def test_a_reference_with_several_matches_of_a_concept_is_noticed(run, folder, tmp_path):
    (tmp_path / "r.tsv").write_text((folder / "r.tsv").read_text() + "a1\tb7\t=\n")
    words = (*pair(folder), "--reference", tmp_path / "r.tsv", "--model", tmp_path / "m.fw", *FAST)
    told = "'a1' has more than one match, of which one at most can be found one to one: give --many-to-many"
    assert told in run("align", "fit", *words).err
    assert "more than one match" not in run("align", "fit", *words, "--many-to-many").err


def test_matches_have_the_columns_of_the_reference_and_a_confidence(apply, folder, tmp_path):
    document = json.loads(apply("-o", tmp_path / "o.tsv", "--json"))
    expected = OntologyAligner.load(folder / "m.fw").predict(*map(read_ontology, pair(folder)))
    found = read_alignment(tmp_path / "o.tsv")
    assert [(row.source, row.target, row.relation) for row in found] == [(a, b, "=") for a, b, _ in expected]
    assert [row.confidence for row in found] == pytest.approx([match.confidence for match in expected], 1e-5)
    assert document["matches"] == len(expected) > 0
    assert (document["concepts"], document["bytes"]) == ([8, 9], (tmp_path / "o.tsv").stat().st_size)
    assert apply() == (tmp_path / "o.tsv").read_text()
    assert f"8 and 9 concepts, {len(expected)} matches" in apply("-o", tmp_path / "o.tsv")


def test_an_ending_that_stands_for_no_form_is_refused_before_work(run, folder, tmp_path):
    result = run("align", "apply", *pair(folder), "-o", tmp_path / "found.docx")
    assert (result.code, result.out) == (2, "")
    assert "ends in .sssom.tsv, .sssom, .tsv, .txt, .rdf or .xml, or the format with --format" in result.err
    assert list(tmp_path.iterdir()) == []


def test_only_sure_matches_are_kept_when_asked_for(apply):
    everything = json.loads(apply("--json"))["matches"]
    limit = everything[0]["confidence"]
    sure = json.loads(apply("--json", "--threshold", limit))["matches"]
    assert sure == [match for match in everything if match["confidence"] >= limit]
    assert set(sure[0]) == {"source", "target", "relation", "confidence"}


def test_a_model_of_many_to_many_is_applied_by_searching(fit, apply, tmp_path):
    fit("--many-to-many")
    model = tmp_path / "m.fw"
    assert apply("--search-steps", 50, model=model) == apply(
        "--search-steps", 50, "--threads", 1, model=model
    )


@pytest.mark.parametrize("kind", ["--one-to-one", "--many-to-many"])
def test_ontologies_with_nothing_in_common_have_no_match(run, fit, tmp_path, kind):
    fit(kind)
    (tmp_path / "x.jsonl").write_text(concepts(["zebra", "quartz"], "x"))
    (tmp_path / "y.jsonl").write_text(concepts(["umbrella", "fjord"], "y"))
    result = run("align", "apply", tmp_path / "x.jsonl", tmp_path / "y.jsonl", "--model", tmp_path / "m.fw")
    assert (result.code, result.out) == (0, "")
    assert "note: no match was found: check that the two are about the same things" in result.err


def test_inspect_shows_the_learning_curve_and_the_weights_by_name(run, folder):
    saved = OntologyAligner.load(folder / "m.fw")
    learned = json.loads(run("inspect", folder / "m.fw", "--json", "--verbose").out)["learned"]
    assert {entry["name"]: entry["weight"] for entry in learned["weights"]} == saved.weights_by_name()
    assert [entry["misranked"] for entry in learned["curve"]] == [made.misranked for made in saved.history_]


# scoring

FOUND = "a0\tb0\t=\t0.9\na1\tb1\t=\t0.8\na2\tb7\t=\t0.8\na3\tb3\t=\t0.3\na7\tb8\t=\t0.2\n"
PAIRS = [tuple(line.split("\t")[:2]) for line in FOUND.splitlines()]
SURE = [float(line.split("\t")[3]) for line in FOUND.splitlines()]


@pytest.fixture
def scored(run, folder, tmp_path):
    def scored(text, *words):
        (tmp_path / "o.tsv").write_text(text)
        result = run("align", "score", tmp_path / "o.tsv", "--truth", folder / "r.tsv", "--json", *words)
        assert result.code == 0
        return json.loads(result.out), result.err

    return scored


def as_dict(score):
    return {name: getattr(score, name) for name in ("precision", "recall", "f1", "support", "predicted")}


def test_scores_and_the_best_threshold_are_those_of_the_library(scored, folder):
    document, said = scored(FOUND)
    assert said == ""
    assert document["scores"] == as_dict(score_matches(known(folder), PAIRS))
    best = best_threshold(known(folder), PAIRS, SURE)
    assert document["best"] == {"threshold": best.threshold, **as_dict(best.score)}
    curve = match_curve(known(folder), PAIRS, SURE)
    assert [point["threshold"] for point in document["curve"]] == [0.9, 0.8, 0.3, 0.2]
    assert [point["precision"] for point in document["curve"]] == curve.precision.tolist()


def test_without_confidences_there_is_no_curve(scored, folder):
    document, _ = scored("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    assert document["scores"] == as_dict(score_matches(known(folder), PAIRS))
    assert (document["best"], document["curve"]) == (None, [])


def test_a_threshold_leaves_matches_out(scored, folder):
    document, _ = scored(FOUND, "--threshold", 0.5)
    assert document["scores"] == as_dict(score_matches(known(folder), PAIRS, SURE, threshold=0.5))
    assert document["scores"]["predicted"] == 3


def test_a_threshold_that_leaves_only_wrong_matches_is_scored(scored):
    document, _ = scored("a1\tb1\t=\t0.3\nzz\tyy\t=\t0.95\n", "--threshold", 0.9)
    assert (document["scores"]["predicted"], document["scores"]["precision"]) == (1, 0.0)


def test_text_shows_scores_the_best_threshold_and_some_points(run, folder, tmp_path):
    (tmp_path / "o.tsv").write_text(FOUND)
    out = run("align", "score", tmp_path / "o.tsv", "--truth", folder / "r.tsv").out
    best = best_threshold(known(folder), PAIRS, SURE)
    words = [line.split() for line in out.splitlines()]
    assert "5 matches, 7 true ones" in out
    assert ["precision", "0.6000"] in words
    assert f"best F1 {best.score.f1:.4f} at a confidence of 0.3 or more" in out
    assert ["0.9", "1", "1.0000", f"{1 / 7:.4f}", "0.2500"] in words
    assert words[-1][:2] == ["0.2", "5"]


def test_many_points_of_the_curve_are_thinned_out_for_people(run, folder, tmp_path):
    rows = "".join(f"a{n % 8}\tx{n}\t=\t{1 - n / 200:g}\n" for n in range(100))
    (tmp_path / "o.tsv").write_text(rows)
    result = run("align", "score", tmp_path / "o.tsv", "--truth", folder / "r.tsv")
    points = result.out.splitlines()[-10:]
    assert [line.split()[1] for line in points] == [
        "1",
        "12",
        "23",
        "34",
        "45",
        "56",
        "67",
        "78",
        "89",
        "100",
    ]


def test_sides_that_were_exchanged_and_empty_files_are_noticed(scored):
    document, said = scored("".join(f"{b}\t{a}\n" for a, b in PAIRS))
    assert document["scores"]["f1"] == 0
    assert "no match is right, but 3 are with source and target exchanged" in said
    document, said = scored("")
    assert (document["scores"]["f1"], document["found"]) == (0, 0)
    assert "there is no match to score" in said


def test_standard_input_is_read(run, folder, scored, monkeypatch):
    expected, _ = scored(FOUND)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FOUND.encode())))
    result = run("align", "score", "-", "--truth", folder / "r.tsv", "--json")
    assert json.loads(result.out) == expected | {"file": "standard input"}
    assert "only one of" in run("align", "score", "-", "--truth", "-").err


# what is refused


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "bad.tsv: holds no match. Give a line for each"),
        (b"a0\n", "bad.tsv:1: 'a0' is not a correspondence"),
        (b"a0\tb0\t=\t1\t2\n", "is not a correspondence"),
        (b"a0\tb0\t=\tsure\n", "bad.tsv:1: the confidence 'sure' is not a number"),
        (b"a0\tb0\t=\na0\tb0\t=\n", "bad.tsv:2: 'a0' and 'b0' were already given on line 1"),
        (b"\xff\tb0\t=\n", "bad.tsv:1: byte 0xff is not UTF-8 text"),
    ],
)
def test_bad_matches_are_refused_with_their_line(run, refused, folder, tmp_path, content, fault):
    (tmp_path / "bad.tsv").write_bytes(content)
    assert fault in refused(reference=tmp_path / "bad.tsv")
    result = run("align", "score", folder / "r.tsv", "--truth", tmp_path / "bad.tsv")
    assert (result.code, result.out) == (2, "")
    assert fault in result.err


def test_matches_of_concepts_that_are_not_there_are_refused(refused, folder, tmp_path):
    reference = tmp_path / "bad.tsv"
    reference.write_text("a0\tb0\t=\na1\tb77\t=\na9\tb1\t=\n")
    message = refused(reference=reference)
    assert f"bad.tsv: 'b77' is no concept of {pair(folder)[1]}, which has 'b0', 'b1', 'b2' and 6" in message
    assert "more. Did you mean 'b7'? Give the ontologies" in message
    left, right = pair(folder)
    message = refused(left=right, right=left)
    assert f"It fits with the ontologies exchanged: give {left} {right}." in message


def test_ontologies_that_cannot_be_read_are_refused(refused, folder, tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    assert "empty.jsonl: no concepts" in refused(left=tmp_path / "empty.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b'{"id": "\xe9"}\n')
    assert "latin.jsonl:1: byte 0xe9 is not UTF-8" in refused(left=tmp_path / "latin.jsonl")
    (tmp_path / "a.dat").write_bytes((folder / "a.jsonl").read_bytes())
    assert "does not tell what the file is. Give --syntax jsonl" in refused(left=tmp_path / "a.dat")
    assert "there is no such file" in refused(right=tmp_path / "none.owl")
    assert "cannot be read" in refused(right=tmp_path)
    assert "there is no such file" in refused(reference=tmp_path / "none.tsv")


def test_a_suffix_that_does_not_tell_can_be_helped(run, folder, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.dat").write_bytes((folder / f"{name}.jsonl").read_bytes())
    words = (tmp_path / "a.dat", tmp_path / "b.dat", "--model", folder / "m.fw", "--syntax", "jsonl")
    assert run("align", "apply", *words).out == run("align", "apply", *pair(folder), *words[2:]).out


def test_a_reference_without_any_candidate_is_refused(refused, tmp_path):
    (tmp_path / "x.jsonl").write_text(concepts(["zebra", "quartz"], "x"))
    (tmp_path / "y.jsonl").write_text(concepts(["umbrella", "fjord"], "y"))
    (tmp_path / "r.tsv").write_text("x1\ty1\t=\n")
    message = refused(left=tmp_path / "x.jsonl", right=tmp_path / "y.jsonl", reference=tmp_path / "r.tsv")
    assert "r.tsv: no pair of the reference is among the candidate pairs" in message


def test_files_that_could_not_be_written_are_refused_before_work(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(align_fit, "fit", None)
    for target, fault in ((tmp_path / "none" / "x", "Create it first"), (tmp_path, "is a folder")):
        for words in (
            ("fit", *pair(folder), "--reference", folder / "r.tsv", "--model", target),
            ("apply", *pair(folder), "--model", folder / "m.fw", "-o", target),
        ):
            result = run("align", *words)
            assert (result.code, result.out) == (2, "")
            assert fault in result.err


def test_a_file_that_holds_no_whole_aligner_is_refused(run, folder, tmp_path):
    write_model(tmp_path / "other.fw", ModelFile(kind="coreference"))
    saved = read_model(folder / "m.fw")
    write_model(tmp_path / "cut.fw", ModelFile(kind=KIND, metadata=saved.metadata))
    for name, fault in (
        ("other.fw", "Use it with `factorwise coref`, or train one with `factorwise align fit`."),
        ("cut.fw", "its weights, names and settings do not fit together"),
        ("none.fw", "no such file"),
    ):
        words = ("--model", tmp_path / name, "-o", tmp_path / "o.tsv")
        result = run("align", "apply", *pair(folder), *words)
        assert (result.code, result.out) == (2, "")
        assert fault in result.err
        assert not (tmp_path / "o.tsv").exists()
    assert VERB_OF_KIND[KIND] == "align"


def test_reports_show_weights_and_matches(fit, run, folder, tmp_path):
    assert fit("--report", tmp_path / "fit.html")["report"]["file"] == "fit.html"
    page = (tmp_path / "fit.html").read_text()
    for part in ("Learning curve", "Calibration", "Weights by template"):
        assert part in page
    words = ("--model", folder / "m.fw", "-o", tmp_path / "o.tsv", "--report", tmp_path / "r.html")
    assert run("align", "apply", *pair(folder), *words).code == 0
    assert "brown bear" in (tmp_path / "r.html").read_text()
    assert {"Matches", "Confidence", "Calibration", "Weights by template"} <= set(
        sections_of(tmp_path / "r.html")
    )
    assert run("align", "apply", *pair(folder), *words, "--no-values").code == 0
    assert "brown bear" not in (tmp_path / "r.html").read_text()


def applied(run, folder, right, *words):
    result = run("align", "apply", folder / "a.jsonl", right, "--model", folder / "m.fw", *words)
    assert result.code == 0
    return result


def test_what_is_not_used_of_an_ontology_is_told(run, folder, tmp_path):
    path = tmp_path / "c.jsonl"
    lines = [
        {"id": "c0", "label": "goose", "synonym": ["bird"], "source": "x"},
        {"id": "c1", "parents": ["c0", "c9"]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = applied(run, folder, path).err
    assert f"{path}: the keys 'synonym', 'source' of concepts are not read. Did you mean 'synonyms'?" in told
    assert "and that no concept has, are left out: 1, such as 'c9'" in told
    assert "concepts without a label go by their id, which seldom matches: 1 of 2, such as 'c1'" in told
    assert applied(run, folder, path, "--quiet").err == ""
    assert applied(run, folder, folder / "b.jsonl").err == ""


def test_it_is_told_that_no_match_is_sure_enough(run, folder):
    result = applied(run, folder, folder / "b.jsonl", "--threshold", 1)
    assert result.out == ""
    assert "matches has a confidence of 1 or more: give a lower --threshold" in result.err


def test_ontologies_are_not_read_from_standard_input(run, folder):
    result = run("align", "apply", "-", folder / "b.jsonl", "--model", folder / "m.fw")
    assert (result.code, "not read from standard input ('-'): give a file" in result.err) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of Unix")
def test_where_no_file_can_be_written_the_error_alone_is_told(folder, tmp_path):
    words = ["align", "apply", *pair(folder), "--model", folder / "m.fw", "-o", tmp_path / "o.tsv"]
    line = shlex.join([sys.executable, "-m", "factorwise", *map(str, words)])
    done = subprocess.run(["bash", "-c", f"ulimit -f 0; {line}"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "could not be written" in done.stderr
    assert "joblib" not in done.stderr
