"""Saved taggers: they answer as before, hold nothing that is executed, and are refused when not whole."""

import json
import zipfile
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from factorwise import ChainCRF
from factorwise.apps.tagging.model_file import KIND, read_tagger
from factorwise.errors import FactorwiseError, InvalidArgumentError, ModelFileError
from factorwise.io.models import files as models
from factorwise.io.models.files import FORMAT_VERSION, ModelFile, read_model, write_model
from tagging_cases import task

DICTIONARIES, Y = task(sentences=10)
SENTENCES = {
    "attributes": DICTIONARIES,
    "matrices": [
        sparse.csr_matrix([[token["w"] == letter for letter in "abcd"] for token in tokens], dtype=float)
        for tokens in DICTIONARIES
    ],
    "templates": [[(token["w"], token["s"]) for token in tokens] for tokens in DICTIONARIES],
}
FORMS = [(encoder, order) for encoder in SENTENCES for order in (1, 2)]
every_form = pytest.mark.parametrize(("encoder", "order"), FORMS)


@cache
def trained(encoder, order):
    templates = "w[0]\np[0]|w[-1]\nlower(w[1])\nis_title(p[0])\nfirst" if encoder == "templates" else None
    return ChainCRF(order=order, templates=templates, scheme="BIO", max_iterations=5, n_jobs=1).fit(
        SENTENCES[encoder], Y
    )


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """What each form of model has in its file."""
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for form in FORMS:
        trained(*form).save(folder / "model.fw")
        found[form] = read_model(folder / "model.fw")
    return found


def answers(model, X):
    return model.predict(X), model.predict_nbest(X, 3), model.predict_spans(X)


@every_form
def test_a_model_answers_as_before_after_a_round_trip(encoder, order, tmp_path):
    model, X = trained(encoder, order), SENTENCES[encoder]
    model.save(tmp_path / "model.fw")
    again = ChainCRF.load(tmp_path / "model.fw", n_jobs=1)
    assert again.classes_ == model.classes_
    assert answers(again, X) == answers(model, X)
    for one, other in zip(again.predict_proba(X), model.predict_proba(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.state_features_ == model.state_features_
    assert again.transition_features_ == model.transition_features_
    assert again.score(X, Y) == model.score(X, Y)
    assert again.get_params()["n_jobs"] == 1


@every_form
def test_saving_what_was_loaded_gives_the_same_model_and_settings(encoder, order, tmp_path):
    model = trained(encoder, order)
    model.save(tmp_path / "one.fw")
    ChainCRF.load(tmp_path / "one.fw").save(tmp_path / "two.fw")
    one, two = read_model(tmp_path / "one.fw"), read_model(tmp_path / "two.fw")
    assert one.metadata == two.metadata
    assert one.metadata["settings"]["training"]["max_iterations"] == 5
    assert one.metadata["settings"]["training"]["order"] == order
    assert one.provenance["configuration"] == two.provenance["configuration"] == one.metadata["settings"]
    assert two.provenance["seed"] == 0
    assert one.arrays.keys() == two.arrays.keys()
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, two.arrays[name])


@every_form
def test_a_file_is_json_and_arrays_that_numpy_reads_without_pickle(encoder, order, tmp_path):
    trained(encoder, order).save(tmp_path / "model.fw")
    with np.load(tmp_path / "model.fw", allow_pickle=False) as file:
        for name in set(file.files) - {"manifest.json"}:
            assert file[name].dtype != object
        assert "arrays/weights" in file.files
    with zipfile.ZipFile(tmp_path / "model.fw") as archive:
        assert json.loads(archive.read("manifest.json"))["kind"] == KIND


def test_a_loaded_model_can_be_trained_further(tmp_path):
    model = ChainCRF(epsilon=1e-4).fit(DICTIONARIES, Y)
    model.save(tmp_path / "model.fw")
    again = ChainCRF.load(tmp_path / "model.fw", epsilon=1e-4, warm_start=True)
    again.fit(DICTIONARIES, Y)
    assert again.n_iter_ < model.n_iter_ / 2
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-6)


def test_a_model_is_also_written_where_the_constructor_says(tmp_path):
    path = tmp_path / "model.fw"
    model = ChainCRF(model_filename=path, max_iterations=2).fit(DICTIONARIES, Y)
    assert ChainCRF.load(path).predict(DICTIONARIES) == model.predict(DICTIONARIES)


def test_settings_from_a_grid_of_numpy_numbers_can_be_saved(tmp_path):
    numbers = {"c1": np.float64(0.5), "c2": np.float32(0.25), "max_iterations": np.int64(3)}
    ChainCRF(**numbers, epsilon=np.float64(1e-3), random_state=np.int32(4)).fit(DICTIONARIES, Y).save(
        tmp_path / "model.fw"
    )
    training = read_tagger(tmp_path / "model.fw").settings["training"]
    assert training["prior"] == {"c1": 0.5, "c2": 0.25}
    assert (training["max_iterations"], training["epsilon"], training["seed"]) == (3, 1e-3, 4)


def test_labels_that_are_not_strings_are_refused_and_nothing_is_written(tmp_path):
    model = ChainCRF(max_iterations=2).fit([[["a"], ["b"]]], [[1, 2]])
    with pytest.raises(InvalidArgumentError, match=r"label 1 is a int.*Train with str\(label\)"):
        model.save(tmp_path / "model.fw")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_half_written(tmp_path, monkeypatch):
    path = tmp_path / "model.fw"
    trained("attributes", 1).save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(models, "_write_member", full)
    with pytest.raises(ModelFileError, match=r"No space left.*unchanged"):
        trained("matrices", 2).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_cut_short_or_with_a_byte_changed_is_refused_or_the_same(tmp_path):
    path = tmp_path / "model.fw"
    trained("attributes", 1).save(path)
    whole = path.read_bytes()
    wanted = trained("attributes", 1).state_features_
    rng = np.random.default_rng(0)
    for _ in range(60):
        path.write_bytes(whole[: rng.integers(len(whole))])
        with pytest.raises(ModelFileError, match=r"model\.fw: "):
            ChainCRF.load(path)
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with suppress(ModelFileError):
            assert ChainCRF.load(path).state_features_ == wanted  # some bytes of an archive mean nothing


def test_other_files_are_refused_with_what_they_are(tmp_path, monkeypatch):
    path = tmp_path / "model.fw"
    write_model(path, ModelFile(kind="weights"))
    with pytest.raises(ModelFileError, match=r"kind is 'weights', but 'chain-crf' is needed.*load_weights"):
        ChainCRF.load(path)
    with pytest.raises(ModelFileError, match=r"no such file"):
        ChainCRF.load(tmp_path / "none.fw")
    trained("attributes", 1).save(path)
    with pytest.raises(ModelFileError, match=r"kind is 'chain-crf'.*Read it with factorwise\.ChainCRF\.load"):
        read_model(path, "weights")
    monkeypatch.setattr(models, "FORMAT_VERSION", FORMAT_VERSION + 1)
    trained("attributes", 1).save(path)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"newer factorwise.*Upgrade"):
        ChainCRF.load(path)


def changed(model, name, value):
    """The model with one array replaced."""
    return replace(model, arrays={**model.arrays, name: value(model.arrays[name])})


def stated(model, **values):
    """The model with entries of its metadata replaced."""
    return replace(model, metadata={**model.metadata, **values})


ARRAY_FAULTS = {
    "too few weights": ("weights", lambda a: a[:-1]),
    "weights of another type": ("weights", lambda a: a.astype(np.float32)),
    "a table of weights": ("weights", lambda a: a[None]),
    "a weight that is not finite": ("weights", lambda a: np.where(a == a[0], np.nan, a)),
    "a label that is not there": ("feature_label", lambda a: np.where(a == 2, 3, a).astype(np.int32)),
    "a negative label": ("feature_label", lambda a: a - np.int32(1)),
    "features beyond the labels": ("feature_start", lambda a: np.append(a[:-1], a[-1] + 1)),
    "features that go back": ("feature_start", lambda a: a[::-1].copy()),
    "too few attributes": ("feature_start", lambda a: np.delete(a, 1)),
    "a transition from a label that is not there": ("pairs", lambda a: a + np.int32(1)),
    "a transition from a negative label": ("pairs", lambda a: a - np.int32(1)),
    "transitions of three": ("pairs", lambda a: np.zeros((len(a), 3), dtype=np.int32)),
    "a transition too few": ("pairs", lambda a: a[1:]),
    "rules of another shape": ("forbidden", lambda a: a[:2]),
    "rules that are numbers": ("not_first", lambda a: a.astype(np.int8)),
    "no attributes": ("encoder.offsets", lambda a: a[:1]),
    "attributes that overlap": ("encoder.offsets", lambda a: a[::-1].copy()),
    "names cut short": ("encoder.text", lambda a: a[:-1]),
}


@pytest.mark.parametrize("fault", ARRAY_FAULTS)
def test_arrays_that_do_not_fit_together_are_refused(fault, stored, tmp_path):
    write_model(tmp_path / "model.fw", changed(stored["attributes", 1], *ARRAY_FAULTS[fault]))
    with pytest.raises(ModelFileError, match=r"model\.fw: .*(restore|train again)"):
        ChainCRF.load(tmp_path / "model.fw")


@pytest.mark.parametrize(
    "values",
    [
        {"labels": ["O", "B-X"]},
        {"labels": ["O", "B-X", "I-X", "E-X"]},
        {"labels": ["O", "B-X", "B-X"]},
        {"labels": ["O", "B-X", 3]},
        {"labels": "OBI"},
        {"labels": []},
        {"labels": None},
        {"order": 2},
        {"order": 3},
        {"order": None},
        {"encoder": None},
        {"encoder": []},
        {"encoder": {}},
        {"encoder": {"encoder": "clairvoyant"}},
        {"encoder": {"encoder": "matrices"}},
        {"encoder": {"encoder": "matrices", "named": False, "width": 10**30}},
        {"encoder": {"encoder": "matrices", "named": False, "width": "many"}},
        {"encoder": {"encoder": "templates", "templates": 5, "columns": [], "min_frequency": 1}},
        {"encoder": {"encoder": "attributes", "min_frequency": "often"}},
        {"settings": None},
        {"settings": 5},
    ],
    ids=str,
)
def test_metadata_that_makes_no_tagger_is_refused(values, stored, tmp_path):
    write_model(tmp_path / "model.fw", stated(stored["attributes", 1], **values))
    with pytest.raises(ModelFileError, match=r"model\.fw: .*(restore|train again|upgrade)"):
        ChainCRF.load(tmp_path / "model.fw")


@pytest.mark.parametrize("section", ["labels", "order", "encoder", "settings"])
def test_metadata_that_is_missing_is_refused(section, stored, tmp_path):
    model = stored["attributes", 1]
    kept = {name: value for name, value in model.metadata.items() if name != section}
    write_model(tmp_path / "model.fw", replace(model, metadata=kept))
    with pytest.raises(ModelFileError, match=rf"'{section}'.*restore it from a copy"):
        ChainCRF.load(tmp_path / "model.fw")


@every_form
def test_no_array_can_be_missing(encoder, order, stored, tmp_path):
    model = stored[encoder, order]
    for name in model.arrays:
        rest = {other: array for other, array in model.arrays.items() if other != name}
        write_model(tmp_path / "model.fw", replace(model, arrays=rest))
        with pytest.raises(ModelFileError, match=r"model\.fw: "):
            ChainCRF.load(tmp_path / "model.fw")


def mangled(array, how, place, number):
    """An array with one thing wrong, or perhaps nothing."""
    if how == "cut":
        return array[: place % (len(array) + 1)]
    if how == "longer":
        return np.concatenate([array, array[: 1 + place % max(len(array), 1)]])
    if how == "shuffled":
        return np.roll(array, place, axis=0)
    if how == "emptied":
        return array[:0]
    if how == "reshaped":
        return array.reshape(-1, 1)
    if how == "retyped":
        return array.astype(np.float32)
    flat = array.copy().reshape(-1)
    if len(flat):
        flat[place % len(flat)] = np.array(number).astype(array.dtype)
    return flat.reshape(array.shape)


@settings(max_examples=150)
@given(data=st.data())
def test_mangled_models_are_refused_or_answer_but_never_crash(data, stored, tmp_path_factory):
    """The checksums are right here: this is what a faulty program writes, or someone malicious."""
    encoder, order = data.draw(st.sampled_from(FORMS))
    model = stored[encoder, order]
    how = st.sampled_from(["cut", "longer", "shuffled", "emptied", "reshaped", "retyped", *["number"] * 4])
    for _ in range(data.draw(st.integers(1, 2))):
        name = data.draw(st.sampled_from(sorted(model.arrays)))
        number = data.draw(st.sampled_from([-(2**31), -1, 0, 1, 2, 5, 127, 2**31 - 1]))
        drawn = data.draw(how), data.draw(st.integers(0, 200)), number
        model = changed(model, name, lambda array, drawn=drawn: mangled(array, *drawn))
    path = tmp_path_factory.getbasetemp() / "mangled.fw"
    write_model(path, model)
    try:
        loaded = ChainCRF.load(path, n_jobs=1)
    except ModelFileError:
        return
    assert len(loaded.attributes_) == loaded.num_attributes_
    try:
        found = loaded.predict(SENTENCES[encoder])
    except FactorwiseError:  # such as rules that leave no path
        return
    assert [len(labels) for labels in found] == [len(labels) for labels in Y]
    assert {label for labels in found for label in labels} <= set(loaded.classes_)
