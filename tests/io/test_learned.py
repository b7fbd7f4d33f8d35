"""Learned weights in a model file, and files that do not hold what they should."""

import numpy as np
import pytest

from factorwise.errors import ModelFileError
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.io.models.learned import LearnedWeights, damaged, plain_settings, read_learned, write_learned
from factorwise.learning.samplerank.learner import PassRecord

KIND = "coreference"
NAMES = ["pairs: same head", "pairs: größer", "size: one"]
SETTINGS = {"scope": "topic", "types": None, "learning": {"update": {"rule": "Unit", "rate": 1.0}}}
HISTORY = [PassRecord(1, 100, 7, 5, 0.25, 0.5), PassRecord(2, 100, 3, 1, 1 / 3, 0.875)]
MADE_BY = {"seed": 4, "command": ["fit"]}
DAMAGE = (
    r"m\.fw: its weights, names and settings do not fit together.* restore it from a copy, or train again"
)


def example(**changes):
    whole = LearnedWeights(np.array([0.5, -1.25, 1e-300]), NAMES, SETTINGS, HISTORY, MADE_BY)
    return whole._replace(**changes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.fw"


def test_what_is_written_is_read_again(path):
    write_learned(path, KIND, example())
    found = read_learned(path, KIND, ["scope", "types"])
    assert found.weights.tobytes() == example().weights.tobytes()
    assert found.weights.dtype == np.float64
    assert found[1:] == (NAMES, SETTINGS, HISTORY, MADE_BY, {})
    assert all(type(record) is PassRecord for record in found.history)


def test_a_model_of_no_weights_and_no_passes_is_read_again(path):
    write_learned(path, KIND, example(weights=np.zeros(0), names=[], history=[]))
    found = read_learned(path, KIND, [])
    assert (len(found.weights), found.names, found.history) == (0, [], [])


def test_a_file_of_another_kind_is_refused_with_what_reads_it(path):
    write_learned(path, KIND, example())
    with pytest.raises(ModelFileError, match=r"'coreference'.*'alignment'.*CoreferenceResolver\.load"):
        read_learned(path, "alignment", [])


def test_a_file_that_is_no_model_is_refused(path):
    with pytest.raises(ModelFileError, match=r"m\.fw: no such file"):
        read_learned(path, KIND, [])
    path.write_bytes(b"weights")
    with pytest.raises(ModelFileError, match=r"m\.fw: not a factorwise model file.*Give the path of a model"):
        read_learned(path, KIND, [])
    path.write_bytes(b"PK\x03\x04weights")
    with pytest.raises(ModelFileError, match=r"m\.fw: not a readable model file.*restore it from a copy"):
        read_learned(path, KIND, [])


def test_a_setting_that_is_missing_is_damage(path):
    write_learned(path, KIND, example())
    with pytest.raises(ModelFileError, match=DAMAGE):
        read_learned(path, KIND, ["scope", "search_steps"])


ARRAYS = {
    "none": {},
    "too few": {"weights": np.zeros(2)},
    "too many": {"weights": np.zeros(4)},
    "a column": {"weights": np.zeros((3, 1))},
    "a number": {"weights": np.array(1.0)},
    "half as precise": {"weights": np.zeros(3, np.float32)},
    "whole numbers": {"weights": np.zeros(3, np.int64)},
    "NaN": {"weights": np.array([0.0, np.nan, 0.0])},
    "infinite": {"weights": np.array([0.0, -np.inf, 0.0])},
    "another name": {"weight": np.zeros(3)},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_weights_of_another_shape_or_kind_are_damage(path, name):
    write_learned(path, KIND, example())
    saved = read_model(path)
    write_model(path, ModelFile(kind=KIND, metadata=saved.metadata, arrays=ARRAYS[name]))
    with pytest.raises(ModelFileError, match=DAMAGE):
        read_learned(path, KIND, ["scope"])


METADATA = {
    "no names": {"names": None},
    "names that are no list": {"names": "abc"},
    "names that are no text": {"names": ["a", 3, "b"]},
    "names by name": {"names": {"a": 1, "b": 2, "c": 3}},
    "no settings": {"settings": None},
    "settings that are a list": {"settings": ["scope", "types"]},
    "settings that are text": {"settings": "scope"},
    "no history": {"history": None},
    "a record that is no record": {"history": [1]},
    "a record with parts missing": {"history": [{"number": 1}]},
    "a record with other parts": {"history": [{**HISTORY[0]._asdict(), "loss": 1.0}]},
    "a history that is none": {"history": {"number": 1}},
}


@pytest.mark.parametrize("name", METADATA)
def test_parts_that_are_not_what_they_should_be_are_damage(path, name):
    write_learned(path, KIND, example())
    saved = read_model(path)
    changed = {**saved.metadata, **METADATA[name]}
    kept = {key: value for key, value in changed.items() if value is not None}
    write_model(path, ModelFile(kind=KIND, metadata=kept, arrays=saved.arrays))
    with pytest.raises(ModelFileError, match=DAMAGE):
        read_learned(path, KIND, ["scope"])


def test_damage_is_told_with_the_path(path):
    fault = damaged(path)
    assert isinstance(fault, ModelFileError)
    assert str(fault).startswith(f"{path}: ")


def test_what_cannot_be_written_leaves_the_file_that_was_there(path):
    write_learned(path, KIND, example())
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match="JSON cannot represent"):
        write_learned(path, KIND, example(settings={"scope": object()}))
    assert path.read_bytes() == before


def test_numbers_and_names_of_numpy_become_plain_ones(path):
    given = {
        "cap": np.float64(0.5),
        "learning": {"steps": np.int64(3), "restart": np.bool_(True), "rate": 0.25},
        "types": [np.str_("PER"), "LOC"],
        "scope": None,
    }
    plain = plain_settings(given)
    assert plain == {
        "cap": 0.5,
        "learning": {"steps": 3, "restart": True, "rate": 0.25},
        "types": ["PER", "LOC"],
        "scope": None,
    }
    assert [type(plain["cap"]), type(plain["types"][0])] == [float, str]
    assert [type(value) for value in plain["learning"].values()] == [int, bool, float]
    write_learned(path, KIND, example(settings=plain))
    assert read_learned(path, KIND, ["cap"]).settings == plain
    assert type(given["cap"]) is np.float64
