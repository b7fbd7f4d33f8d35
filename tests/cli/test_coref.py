"""``factorwise coref``: learning and finding entities; scoring has a file of its own."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from coreference_cases import record
from factorwise.apps.coreference.documents import read_documents
from factorwise.apps.coreference.estimator import KIND, CoreferenceResolver
from factorwise.cli import main
from factorwise.cli.coref import apply as coref_apply
from factorwise.cli.coref import fit as coref_fit
from factorwise.cli.files import VERB_OF_KIND
from factorwise.cli.learned_weights import TOP
from factorwise.cli.verbs import GROUPS
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.io.models.learned import read_learned
from factorwise.pipelines.mentions import documents_of_text
from report_cases import sections_of

SHARED = ["--seed", "--threads", "--config", "--json", "--quiet", "--verbose", "--version"]
FAST = ("--passes", 2, "--steps", 150, "--search-steps", 20)
NAMES = ("Ann Lee", "Bob Ray", "Eve Fox", "Max Orr")


def story(number, *names):
    """A document in which two people are named twice, in a topic of two documents."""
    one, two = names
    text = (
        f"< {one} >PER/NAM/{one[:3]} met < {two} >PER/NAM/{two[:3]} in < Rome >LOC/NAM/Rome ."
        f" < {two} >PER/NAM/{two[:3]} likes < {one} >PER/NAM/{one[:3]} . < Rome >LOC/NAM/Rome is old ."
    )
    return record(text, id=f"d{number}", topic=number // 2, source={"page": number, "né": [1.5, None]})


STORIES = [story(number, NAMES[number % 4], NAMES[(number + 1) % 4]) for number in range(6)]


def lines_of(records):
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records)


def changed(records, **mention):
    """The documents with keys of all mentions changed; None takes a key out."""
    return [
        one
        | {
            "mentions": [
                {key: value for key, value in (given | mention).items() if value is not None}
                for given in one["mentions"]
            ]
        }
        for one in records
    ]


def without(records, key):
    return [{name: value for name, value in one.items() if name != key} for one in records]


def quietly(*words):
    with pytest.raises(SystemExit) as left:
        main.main([str(word) for word in words])
    assert left.value.code == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with documents and a resolver."""
    place = tmp_path_factory.mktemp("coref")
    (place / "train.jsonl").write_text(lines_of(STORIES[:4]), encoding="utf-8")
    (place / "test.jsonl").write_text(lines_of(STORIES[4:]), encoding="utf-8")
    quietly("coref", "fit", place / "train.jsonl", "--model", place / "m.fw", "--quiet", *FAST)
    return place


@pytest.fixture
def fit(run, folder, tmp_path):
    """Learn from the training data with more options; return the summary."""

    def fit(*words, data=folder / "train.jsonl", model=tmp_path / "m.fw"):
        result = run("coref", "fit", data, "--model", model, "--json", *FAST, *words)
        assert (result.code, result.err) == (0, "")
        return json.loads(result.out)

    return fit


@pytest.fixture
def apply(run, folder):
    def apply(*words, data=folder / "test.jsonl", model=folder / "m.fw"):
        result = run("coref", "apply", data, "--model", model, *words)
        assert (result.code, result.err) == (0, "")
        return result.out

    return apply


@pytest.fixture
def refused(run, folder, tmp_path):
    """Learn in vain: return what is said; there is no model, nor any other file."""

    def refused(*words, data=folder / "train.jsonl"):
        place = tmp_path / "out"
        place.mkdir(exist_ok=True)
        result = run("coref", "fit", data, "--model", place / "m.fw", *FAST, *words)
        assert (result.code, result.out) == (2, "")
        assert list(place.iterdir()) == []
        return result.err

    return refused


def resolver(**parameters):
    return CoreferenceResolver(passes=2, steps=150, search_steps=20, **parameters)


# the group


@pytest.mark.parametrize("name", GROUPS["coref"].verbs)
def test_every_verb_has_the_shared_options_and_ends_its_help_with_an_example(run, name):
    result = run("coref", name, "--help")
    assert result.code == 0
    for option in SHARED:
        assert option in result.out
    title, example = result.out.rstrip().splitlines()[-2:]
    assert title.strip() == "Example:"
    assert example.strip().startswith(f"factorwise coref {name}")


def test_no_verb_waits_for_scikit_learn_before_it_works():
    modules = ", ".join(module for group in ("coref", "align") for module, _ in GROUPS[group].verbs.values())
    code = f"import sys, {modules}; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_defaults_are_those_of_the_estimator():
    defaults = CoreferenceResolver().get_params()
    inner = {"aggregates", "random_state", "n_jobs", "verbose"}
    given = {option.name: option.default for option in coref_fit.command.params}
    named = set(defaults) - inner - {"types", "without_types"}
    assert {name: given[name] for name in named} == {name: defaults[name] for name in named}
    assert {"types", "without_types"} <= set(given)


# learning


@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        ([], {}),
        (["--scope", "topic", "--no-restart", "--seed", "5"],
         {"scope": "topic", "restart": False, "random_state": 5}),
        (["--types", "PER,LOC", "--without-types", "LOC", "--metric", "pairwise"],
         {"types": ("PER", "LOC"), "without_types": ("LOC",), "metric": "pairwise"}),
        (["--update", "unit", "--accept", "metropolis", "--truth-starts", "0"],
         {"update": "unit", "accept": "metropolis", "truth_starts": 0.0}),
        (["--update", "pa-ii", "--cap", "0.5"], {"update": "pa-ii", "cap": 0.5}),
    ],
)  # fmt: skip
def test_learning_finds_what_the_estimator_finds(fit, folder, tmp_path, words, parameters):
    document = fit(*words)
    expected = resolver(**parameters).fit(read_documents(folder / "train.jsonl"))
    saved = CoreferenceResolver.load(tmp_path / "m.fw")
    assert saved.weights_.tobytes() == expected.weights_.tobytes()
    assert saved.settings_ == expected.settings_
    assert [entry["updates"] for entry in document["curve"]] == [made.updates for made in expected.history_]


def test_the_summary_has_data_curve_weights_times_and_memory(fit, tmp_path):
    document = fit("--without-types", "LOC")
    saved = CoreferenceResolver.load(tmp_path / "m.fw")
    assert document["model"] == {"file": "m.fw", "bytes": (tmp_path / "m.fw").stat().st_size}
    assert document["data"] == {"documents": 4, "mentions": 16, "entities": 8, "left_out": 8}
    assert document["training"]["without_types"] == ["LOC"]
    assert (document["training"]["passes"], document["training"]["steps"]) == (2, 150)
    fields = {"number", "steps", "updates", "misranked", "accepted", "value"}
    assert [set(entry) for entry in document["curve"]] == [fields, fields]
    assert [entry["steps"] for entry in document["curve"]] == [600, 600]
    by_name = saved.weights_by_name()
    expected = [{"name": name, "weight": weight} for name, weight in list(by_name.items())[:TOP]]
    assert document["weights"]["largest"] == expected
    assert document["weights"]["all"] == len(by_name) > TOP
    assert document["weights"]["active"] == np.count_nonzero(saved.weights_)
    assert document["held_out"] is None
    assert set(document["seconds"]) == {"reading", "loading", "training", "writing", "all"}
    assert document["peak_memory"] > 10**7


def test_the_summary_for_people_shows_the_curve_and_the_weights(run, folder, tmp_path):
    words = ("--model", tmp_path / "m.fw", "--held-out", folder / "test.jsonl", *FAST)
    result = run("coref", "fit", folder / "train.jsonl", *words)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    begins = {line.split()[0]: line for line in lines}
    assert lines[0].startswith("m.fw  (")
    assert "4 documents, 24 mentions, 12 entities" in begins["data"]
    assert "mira, metropolis, b-cubed, 2 passes of 150 steps for each document" in begins["training"]
    assert all(part in begins["time"] for part in ("reading", "training", "scoring", "%"))
    curve = lines.index("learning curve")
    assert lines[curve + 1].split() == ["pass", "steps", "updates", "misranked", "accepted", "b-cubed"]
    assert [line.split()[:2] for line in lines[curve + 2 : curve + 4]] == [["1", "600"], ["2", "600"]]
    weights = lines.index("largest weights")
    name, weight = next(iter(CoreferenceResolver.load(tmp_path / "m.fw").weights_by_name().items()))
    assert lines[weights + 1].strip() == f"{weight:+.4f}  {name}"
    assert "held out  (2 documents, 12 mentions, 6 true entities" in result.out
    assert begins["CEAF-e"]


def test_verbose_tells_of_each_pass_as_it_ends_and_of_all_weights(run, folder, tmp_path):
    result = run(
        "coref", "fit", folder / "train.jsonl", "--model", tmp_path / "m.fw", *FAST, "--verbose", "--json"
    )
    document = json.loads(result.out)
    passes = result.err.splitlines()
    assert len(passes) == 2
    assert passes[0].startswith(f"pass 1: 600 steps, {document['curve'][0]['updates']} updates, ")
    assert f"b-cubed {document['curve'][1]['value']:.4f}" in passes[1]
    assert len(document["weights"]["largest"]) == document["weights"]["all"]


def test_the_held_out_score_is_that_of_the_saved_model(fit, apply, run, folder, tmp_path):
    document = fit("--held-out", folder / "test.jsonl", "--scope", "topic", "--seed", 3)
    apply("-o", tmp_path / "o.jsonl", "--seed", 3, model=tmp_path / "m.fw")
    words = ("--truth", folder / "test.jsonl", "--scope", "topic", "--json")
    scores = json.loads(run("coref", "score", tmp_path / "o.jsonl", *words).out)["scores"]
    assert document["held_out"] == scores
    assert scores["documents"] == 1
    assert set(document["seconds"]) == {"reading", "loading", "training", "writing", "scoring", "all"}


def test_every_option_can_stand_in_a_file(fit, folder, tmp_path):
    (tmp_path / "run.toml").write_text(
        "seed = 1\n[coref]\nseed = 2\nthreads = 1\n[coref.fit]\nscope = 'topic'\ntypes = 'PER,LOC'\n"
        "without-types = 'LOC'\nupdate = 'arow'\naccept = 'always'\nmetric = 'rand'\nrestart = false\n"
        "cap = 0.02\ntruth-starts = 0.25\ntemperature = 0.5\n"
        f"held-out = '{(folder / 'test.jsonl').as_posix()}'\n"
    )
    document = fit("--config", tmp_path / "run.toml")
    assert document["training"] == {
        "cap": 0.02, "truth_starts": 0.25, "search_steps": 20, "temperature": 0.5,
        "scope": "topic", "types": ["PER", "LOC"], "without_types": ["LOC"], "update": "arow",
        "accept": "always", "metric": "rand", "passes": 2, "steps": 150, "restart": False,
    }  # fmt: skip
    assert document["held_out"]["items"] == 8
    assert read_model(tmp_path / "m.fw").provenance["seed"] == 2


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[coref.fit]\nscop = 'topic'\n", "[coref.fit] 'scop' is not an option. Did you mean 'scope'?"),
        ("[coref.fit]\ntypes = 3\n", "[coref.fit] types must be names with commas, in quotes"),
        (
            "[coref.fit]\nupdate = 'mria'\n",
            "[coref.fit] update: 'mria' is not one of",
        ),
    ],
)
def test_what_is_wrong_in_a_table_is_told_with_its_place(refused, tmp_path, text, fault):
    (tmp_path / "run.toml").write_text(text)
    assert fault in refused("--config", tmp_path / "run.toml")


def test_provenance_names_the_data(folder):
    saved = read_learned(folder / "m.fw", KIND, ())
    (data,) = saved.provenance["data"]
    assert (data["name"], data["bytes"]) == ("train.jsonl", (folder / "train.jsonl").stat().st_size)


def test_an_interrupt_leaves_no_model(run, folder, tmp_path, monkeypatch):
    def interrupting(options, metric):
        def interrupt(record, weights):
            raise KeyboardInterrupt

        return interrupt

    monkeypatch.setattr(coref_fit, "watch", interrupting)
    result = run("coref", "fit", folder / "train.jsonl", "--model", tmp_path / "m.fw", *FAST)
    assert (result.code, result.out) == (130, "")
    assert list(tmp_path.iterdir()) == []


# finding entities


def test_the_same_lines_are_written_with_what_was_found(apply, folder):
    found = [json.loads(line) for line in apply().splitlines()]
    expected = CoreferenceResolver.load(folder / "m.fw").predict(read_documents(folder / "test.jsonl"))
    assert [[mention["entity"] for mention in one["mentions"]] for one in found] == expected
    assert [[mention["truth"] for mention in one["mentions"]] for one in found] == [
        [mention["entity"] for mention in one["mentions"]] for one in STORIES[4:]
    ]
    for one in found:
        for mention in one["mentions"]:
            mention["entity"] = mention.pop("truth")
    assert found == STORIES[4:]


def test_entities_have_whole_numbers_that_only_documents_of_one_topic_share(fit, apply, folder, tmp_path):
    one, two = (
        {mention["entity"] for mention in json.loads(line)["mentions"]} for line in apply().splitlines()
    )
    assert one & two == set()
    assert one | two == set(range(len(one) + len(two)))
    fit("--scope", "topic")
    found = json.loads(apply("--json", model=tmp_path / "m.fw"))["documents"]
    saved = CoreferenceResolver.load(tmp_path / "m.fw")
    assert [entry["entities"] for entry in found] == saved.predict(read_documents(folder / "test.jsonl"))


def test_a_file_is_written_with_a_summary_and_can_be_read_again(apply, folder, tmp_path):
    document = json.loads(apply("-o", tmp_path / "o.jsonl", "--json"))
    assert (document["documents"], document["mentions"], document["left_out"]) == (2, 12, 0)
    assert document["bytes"] == (tmp_path / "o.jsonl").stat().st_size
    assert (tmp_path / "o.jsonl").read_text(encoding="utf-8") == apply()
    assert "2 documents, 12 mentions, " in apply("-o", tmp_path / "o.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["o.jsonl"]
    assert apply(data=tmp_path / "o.jsonl") == apply()  # the truth is kept, not what was found before


def test_mentions_that_are_left_out_have_no_entity_but_keep_the_truth(fit, apply, tmp_path):
    fit("--types", "PER")
    records = [STORIES[4] | {"full_until": 9}, STORIES[5] | {"mentions": []}]
    (tmp_path / "in.jsonl").write_text(lines_of(records), encoding="utf-8")
    first, second = map(json.loads, apply(data=tmp_path / "in.jsonl", model=tmp_path / "m.fw").splitlines())
    assert [mention["entity"] is None for mention in first["mentions"]] == [
        False, False, True, False, True, True
    ]  # fmt: skip
    assert all(mention["truth"] for mention in first["mentions"])
    assert (second["mentions"], first["full_until"]) == ([], 9)
    document = json.loads(
        apply("--json", "-o", tmp_path / "o.jsonl", data=tmp_path / "in.jsonl", model=tmp_path / "m.fw")
    )
    assert (document["mentions"], document["left_out"]) == (3, 3)


def test_documents_without_entities_are_read_from_standard_input(apply, monkeypatch):
    expected = [[m["entity"] for m in json.loads(line)["mentions"]] for line in apply().splitlines()]
    text = lines_of(changed(STORIES[4:], entity=None))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    found = [json.loads(line)["mentions"] for line in apply(data="-").splitlines()]
    assert [[mention["entity"] for mention in one] for one in found] == expected
    assert not any("truth" in mention for one in found for mention in one)


def test_json_holds_the_entities_when_no_file_is_written(apply):
    document = json.loads(apply("--json"))
    expected = [[m["entity"] for m in json.loads(line)["mentions"]] for line in apply().splitlines()]
    assert document == {
        "documents": [{"id": "d4", "entities": expected[0]}, {"id": "d5", "entities": expected[1]}]
    }


def test_the_seed_decides_and_the_number_of_threads_does_not(apply):
    assert apply("--threads", 1) == apply("--threads", 2)


def test_a_bar_shows_how_many_mentions_are_done(run, folder, monkeypatch):
    monkeypatch.setattr(coref_apply, "show_progress", lambda options: True)
    result = run("coref", "apply", folder / "test.jsonl", "--model", folder / "m.fw")
    assert result.code == 0
    assert "resolving: 100%" in result.err
    assert "12/12" in result.err


def test_half_a_surrogate_pair_is_written_as_it_was_read(apply, tmp_path):
    (tmp_path / "in.jsonl").write_text(json.dumps(STORIES[4] | {"note": "\ud800"}) + "\n")
    assert json.loads(apply(data=tmp_path / "in.jsonl"))["note"] == "\ud800"


def test_a_model_of_topics_needs_topics(fit, run, tmp_path):
    fit("--scope", "topic")
    data = tmp_path / "in.jsonl"
    data.write_text(lines_of(without(STORIES[4:], "topic")), encoding="utf-8")
    result = run("coref", "apply", data, "--model", tmp_path / "m.fw", "-o", tmp_path / "o.jsonl")
    assert (result.code, result.out) == (2, "")
    assert "in.jsonl: document 'd4' has no 'topic'" in result.err
    assert "apply a model that was learned with --scope document" in result.err
    assert not (tmp_path / "o.jsonl").exists()


def test_an_interrupt_while_writing_leaves_the_old_file(run, folder, tmp_path, monkeypatch):
    def interrupted(handle):
        raise KeyboardInterrupt

    (tmp_path / "o.jsonl").write_text("old")
    monkeypatch.setattr("factorwise.io.atomic.os.fsync", interrupted)
    result = run(
        "coref", "apply", folder / "test.jsonl", "--model", folder / "m.fw", "-o", tmp_path / "o.jsonl"
    )
    assert result.code == 130
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("o.jsonl", "old")]


# looking inside


def test_inspect_shows_the_learning_curve_and_the_weights_by_name(run, folder):
    saved = CoreferenceResolver.load(folder / "m.fw")
    learned = json.loads(run("inspect", folder / "m.fw", "--json").out)["learned"]
    assert [entry["updates"] for entry in learned["curve"]] == [made.updates for made in saved.history_]
    assert len(learned["weights"]) == TOP
    everything = json.loads(run("inspect", folder / "m.fw", "--json", "--verbose").out)["learned"]["weights"]
    assert {entry["name"]: entry["weight"] for entry in everything} == saved.weights_by_name()
    out = run("inspect", folder / "m.fw").out
    assert "learning curve" in out
    name, weight = next(iter(saved.weights_by_name().items()))
    assert f"{weight:+.4f}  {name}" in out


# what is refused


@pytest.mark.parametrize(
    ("content", "words", "fault"),
    [
        (b"", [], "bad.jsonl: holds no document. Give one JSON object a line"),
        (b'{"tokens": ["\xff"]}\n', [], "bad.jsonl, line 1: byte 14 is not UTF-8 text. Save"),
        (b'{"tokens": ["a"]\n', [], "bad.jsonl, line 1: is not JSON"),
        (b'{"tokens": ["a"]}\n', [], "bad.jsonl, line 1: has no 'mentions'"),
        (b'{"tokens": ["a"], "mentions": []}\n', [], "bad.jsonl: there is no mention to cluster"),
        (lines_of(changed(STORIES, entity=None)).encode(), [], "bad.jsonl: d0: mention 0 has no 'entity'"),
        (lines_of(changed(STORIES, type=None)).encode(), ["--types", "PER"], "No mention has a 'type'"),
        (lines_of(without(STORIES, "topic")).encode(), ["--scope", "topic"], "give --scope document"),
    ],
)  # fmt: skip
def test_bad_training_data_are_refused_with_their_place(refused, tmp_path, content, words, fault):
    (tmp_path / "bad.jsonl").write_bytes(content)
    assert fault in refused(*words, data=tmp_path / "bad.jsonl")


def test_documents_to_score_on_are_checked_before_anything_is_learned(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(CoreferenceResolver, "fit", None)
    (tmp_path / "dev.jsonl").write_text(lines_of(changed(STORIES, entity=None)), encoding="utf-8")
    assert "dev.jsonl: d0: mention 0 has no 'entity'" in refused("--held-out", tmp_path / "dev.jsonl")
    assert "none.jsonl: there is no such file" in refused("--held-out", "none.jsonl")
    assert "cannot be read" in refused("--held-out", tmp_path)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--types", "PRE"], "--types names 'PRE', which no mention of"),
        (["--types", "PRE"], "Did you mean 'PER'?"),
        (["--without-types", "XYZ"], "There are: LOC, PER."),
        (["--types", "PER,"], "'PER,' is not a list of names"),
        (["--types", "LOC", "--without-types", "LOC"], "there is no mention to cluster"),
        (["--update", "mria"], "'mria' is not one of"),
        (["--cap", "0"], "0.0 is not in the range"),
        (["--passes", "0"], "0 is not in the range"),
        (["--scope", "corpus"], "'corpus' is not one of"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(refused, words, fault):
    assert fault in refused(*words)


def test_files_that_could_not_be_written_are_refused_before_work(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(coref_fit, "fit", None)
    for target, fault in ((tmp_path / "none" / "x", "Create it first"), (tmp_path, "is a folder")):
        for words in (
            ("fit", folder / "train.jsonl", "--model", target),
            ("apply", folder / "test.jsonl", "--model", folder / "m.fw", "-o", target),
        ):
            result = run("coref", *words)
            assert (result.code, result.out) == (2, "")
            assert fault in result.err


def test_a_file_that_holds_no_whole_resolver_is_refused(run, folder, tmp_path):
    other = tmp_path / "other.fw"
    write_model(other, ModelFile(kind="chain-crf"))
    damaged = read_model(folder / "m.fw")
    write_model(tmp_path / "cut.fw", ModelFile(kind=KIND, metadata=damaged.metadata))
    (tmp_path / "part.fw").write_bytes((folder / "m.fw").read_bytes()[:-100])
    for model, fault in (
        (other, "its kind is 'chain-crf', but 'coreference' is needed. Use it with"
                " `factorwise tag`, or train one with `factorwise coref fit`."),
        (tmp_path / "cut.fw", "its weights, names and settings do not fit together"),
        (tmp_path / "part.fw", "not a readable model file"),
        (tmp_path / "none.fw", "no such file"),
    ):  # fmt: skip
        result = run("coref", "apply", folder / "test.jsonl", "--model", model, "-o", tmp_path / "o.jsonl")
        assert (result.code, result.out) == (2, "")
        assert fault in result.err
        assert not (tmp_path / "o.jsonl").exists()


def test_kinds_are_those_of_the_estimators():
    assert VERB_OF_KIND[KIND] == "coref"


def test_errors_are_json_when_asked_for(run, tmp_path):
    result = run("coref", "fit", tmp_path / "none.jsonl", "--model", tmp_path / "m.fw", "--json")
    assert result.code == 2
    assert json.loads(result.err)["error"]["type"] == "DataFileError"


def test_a_model_is_not_written_over_what_it_is_learned_from(run, folder):
    before = (folder / "train.jsonl").read_bytes()
    result = run("coref", "fit", folder / "train.jsonl", "--model", folder / "train.jsonl")
    assert result.code == 2
    assert "is also an input: give another file" in result.err
    assert (folder / "train.jsonl").read_bytes() == before


def test_reports_show_weights_and_mentions(run, folder, tmp_path):
    words = ("--model", tmp_path / "m.fw", "--passes", 1, "--steps", 20, "--report", tmp_path / "fit.html")
    assert run("coref", "fit", folder / "train.jsonl", *words, "--held-out", folder / "test.jsonl").code == 0
    page = (tmp_path / "fit.html").read_text()
    for part in ("Learning curve", "Scores of held-out documents", "Weights by template"):
        assert part in page
    words = ("--model", tmp_path / "m.fw", "-o", tmp_path / "o.jsonl", "--report", tmp_path / "r.html")
    assert run("coref", "apply", folder / "test.jsonl", *words).code == 0
    assert {"Weights by template", "Weights"} <= set(sections_of(tmp_path / "r.html"))
    found = sections_of(tmp_path / "r.html")["Entities"]
    assert found["columns"] == ["mention", "before", "text", "after"]
    assert [entity["name"] for entity in found["entities"]] == [
        entity["members"][0][2] for entity in found["entities"]
    ]
    assert "Rome" in {entity["name"] for entity in found["entities"]}
    assert run("coref", "apply", folder / "test.jsonl", *words, "--no-values").code == 0
    assert '"Rome"' not in (tmp_path / "r.html").read_text()


def test_documents_without_mentions_are_copied_with_a_notice(run, folder, tmp_path):
    path = tmp_path / "none.jsonl"
    path.write_text(lines_of([{"id": "d", "tokens": ["no", "one"], "mentions": []}]))
    result = run("coref", "apply", path, "--model", folder / "m.fw")
    assert (result.code, json.loads(result.out)) == (0, json.loads(path.read_text()))
    assert result.err == f"note: {path} has no mentions: its documents are written as they are.\n"


def test_a_mention_that_stands_twice_is_told_of(run, folder, tmp_path):
    (given,) = changed(STORIES[:1], id=None)
    path = tmp_path / "twice.jsonl"
    path.write_text(lines_of([given | {"mentions": [*given["mentions"], given["mentions"][0]]}]))
    told = run("coref", "apply", path, "--model", folder / "m.fw").err
    assert "twice.jsonl: mentions that stand there more than once count as several: 1, such as tokens" in told
    assert (
        "more than once" not in run("coref", "apply", folder / "test.jsonl", "--model", folder / "m.fw").err
    )


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    """A folder with a resolver, a finder of mentions, and what they learned from."""
    folder = tmp_path_factory.mktemp("reading")
    (folder / "train.jsonl").write_text(lines_of(STORIES), encoding="utf-8")
    quietly("coref", "fit", folder / "train.jsonl", "--model", folder / "c.fw", *FAST, "--quiet")
    quietly("coref", "mentions", folder / "train.jsonl", "--model", folder / "m.fw", "--quiet")
    return folder


def test_mentions_are_found_in_documents_and_scored_with_their_entities(run, reading, tmp_path):
    out = tmp_path / "out.jsonl"
    command = ["coref", "apply", reading / "train.jsonl", "--model", reading / "c.fw", "-o", out]
    assert run(*command, "--mentions", reading / "m.fw").code == 0
    found = read_documents(out)
    assert [(m.start, m.end, m.type, m.kind) for m in found[0].mentions] == [
        (m["start"], m["end"], m["type"], m["mtype"]) for m in STORIES[0]["mentions"]
    ]
    assert all(0 < mention["confidence"] <= 1 for mention in found[0].record["mentions"])
    result = run("coref", "score", out, "--truth", reading / "train.jsonl", "--own-mentions", "--json")
    scores = json.loads(result.out)["scores"]
    assert scores["mentions"]["f1"] == 1.0
    assert scores["true_mentions"] == scores["predicted_mentions"] == 6 * len(STORIES)
    told = run("coref", "score", out, "--truth", reading / "train.jsonl", "--own-mentions").out
    assert "mentions  1.0000     1.0000  1.0000" in told


def test_plain_text_becomes_a_document_with_places(run, reading, tmp_path):
    text = tmp_path / "novel.txt"
    text.write_text("Ann Lee met Bob Ray in Rome. Bob Ray likes Ann Lee.\n", encoding="utf-8")
    models = ["--model", reading / "c.fw", "--mentions", reading / "m.fw"]
    [line] = run("coref", "apply", text, "--text", *models).out.splitlines()
    document = json.loads(line)
    content = text.read_text(encoding="utf-8")
    assert document["id"] == "novel"
    for token, (begin, end) in zip(document["tokens"], document["characters"], strict=True):
        assert content[begin:end] == token
    names = [" ".join(document["tokens"][m["start"] : m["end"]]) for m in document["mentions"]]
    assert names == ["Ann Lee", "Bob Ray", "Rome", "Bob Ray", "Ann Lee"]
    assert all(isinstance(mention["entity"], int) for mention in document["mentions"])
    text.write_text(" \n", encoding="utf-8")
    assert (
        "has no text. Check that this is the right file."
        in run("coref", "apply", text, "--text", *models).err
    )


def test_a_long_text_is_cut_between_sentences():
    documents = documents_of_text("One two three. Four five. Six.", "t", part=5)
    assert [(one.id, one.tokens) for one in documents] == [
        ("t-1", ("One", "two", "three", ".")), ("t-2", ("Four", "five", ".", "Six", "."))
    ]  # fmt: skip
    assert [one.sentences for one in documents] == [((0, 4),), ((0, 3), (3, 5))]


def test_the_finder_is_scored_on_held_out_documents(run, reading, tmp_path):
    held_out = ["--held-out", reading / "train.jsonl", "--json"]
    result = run("coref", "mentions", reading / "train.jsonl", "--model", tmp_path / "m.fw", *held_out)
    document = json.loads(result.out)
    assert (document["levels"], document["held_out"]["f1"]) == (1, 1.0)


def test_documents_need_no_mentions_where_they_are_found(run, reading, tmp_path):
    bare = [without([one], "mentions")[0] for one in STORIES[:2]]
    (tmp_path / "bare.jsonl").write_text(lines_of(bare), encoding="utf-8")
    command = ["coref", "apply", tmp_path / "bare.jsonl", "--model", reading / "c.fw"]
    assert "has no 'mentions'" in run(*command).err
    found = run(*command, "--mentions", reading / "m.fw").out.splitlines()
    assert [len(json.loads(line)["mentions"]) for line in found] == [6, 6]
