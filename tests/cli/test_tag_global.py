"""``factorwise tag``: constraints on whole sentences, from the command line."""

import json

import numpy as np
import pytest

from factorwise.apps.tagging.global_tagger import GlobalTagger
from factorwise.apps.tagging.model_file import read_tagger


def columns(count, seed):
    """Sentences with exactly one year: what may be one or not is one if there is no better."""
    random = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        words = [f"w{random.integers(4)} O" for _ in range(6)]
        sure, perhaps = random.choice(6, 2, replace=False)
        certain = random.random() < 0.5
        words[perhaps] = "1066 O" if certain else "1066 B-year"
        if certain:
            words[sure] = "1999 B-year"
        lines += [*words, ""]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("global")
    for name, count, seed in (("train", 80, 0), ("dev", 60, 1), ("test", 40, 2)):
        (place / f"{name}.txt").write_text(columns(count, seed))
    (place / "templates.txt").write_text("bias\nw[0]\n")
    (place / "rules.toml").write_text('generate = ["one-stretch", "at-least-once"]\n')
    return place


@pytest.fixture
def fit(run, folder, tmp_path):
    def fit(*words, code=0):
        data = folder / "train.txt", "--templates", folder / "templates.txt"
        found = run("tag", "fit", *data, "--model", tmp_path / "m.fw", "--json", *words)
        assert found.code == code, found.err
        return json.loads(found.out) if code == 0 else found.err

    return fit


def years(run, folder, model):
    found = run("tag", "apply", folder / "test.txt", "--model", model, "--json")
    assert found.code == 0
    return [one["labels"].count("B-year") for one in json.loads(found.out)["sentences"]]


@pytest.mark.parametrize("given", ["auto", "rules.toml"])
def test_constraints_are_learned_applied_and_listed(run, folder, fit, tmp_path, given):
    model = tmp_path / "m.fw"
    assert fit()["constraints"] is None
    plainly = years(run, folder, model)
    shown = given if given == "auto" else folder / given
    document = fit("--global", shown, "--held-out", folder / "dev.txt")
    assert document["constraints"]["candidates"] == 2
    assert {each["kind"] for each in document["constraints"]["kept"]} == {"one-stretch", "at-least-once"}
    assert document["seconds"]["constraints"] >= 0
    judged = document["held_out"]
    assert judged["score"] > judged["score_without_constraints"]
    done = run("tag", "apply", folder / "dev.txt", "--model", model, "-o", tmp_path / "dev.txt")
    assert done.code == 0
    scored = json.loads(run("tag", "score", tmp_path / "dev.txt", "--json").out)
    assert judged["score"] == scored["spans"]["micro"]["f1"]  # that of the tagger that was saved
    assert isinstance(read_tagger(model).tagger, GlobalTagger)
    assert years(run, folder, model).count(1) > plainly.count(1)
    listed = json.loads(run("tag", "inspect", model, "--json").out)["constraints"]
    assert listed == document["constraints"]["kept"]
    assert json.loads(run("tag", "inspect", model, "--json", "--label", "O").out)["constraints"] == []
    text = run("tag", "inspect", model).out
    assert "constraints on whole sentences\n" in text
    assert f"{listed[0]['weight']:.4f}  {listed[0]['kind']}" in text


def test_without_held_out_sentences_weights_are_learned_from_parts_and_a_person_is_told(
    run, folder, fit, tmp_path
):
    document = fit("--global", "auto", "--global-folds", "3")
    assert document["held_out"] is None
    assert document["constraints"]["kept"]
    assert fit("--global", "auto", "--global-folds", "0")["held_out"]["sentences"] == 8
    assert "--global-folds must be at least 2" in fit("--global", "auto", "--global-folds", "1", code=2)
    model = tmp_path / "other.fw"
    found = run("tag", "fit", folder / "train.txt", "--model", model, "--global", "auto", "--quiet")
    assert found.code == 0
    assert "of use among 2" in found.out


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("generate = ['one-strech']", "Did you mean 'one-stretch'"),
        ("[[constraint]]\nkind = 'one-stretch'\nlabel = 'yaer'", "Did you mean 'year'"),
        ("[[constraint]\n", "not TOML"),
    ],
)
def test_a_bad_file_of_constraints_is_named(fit, tmp_path, text, fault):
    (tmp_path / "bad.toml").write_text(text)
    said = fit("--global", tmp_path / "bad.toml", code=2)
    assert "bad.toml: " in said
    assert fault in said
    assert not (tmp_path / "m.fw").exists()


def test_a_missing_file_and_a_chain_of_order_two_are_refused(fit, tmp_path):
    assert "nothing.toml" in fit("--global", tmp_path / "nothing.toml", code=2)
    assert "--global needs a chain of --order 1" in fit("--global", "auto", "--order", "2", code=2)
