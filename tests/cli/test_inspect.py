"""``factorwise inspect``."""

import json

import numpy as np
import pytest

from factorwise.io.models.files import ModelFile, write_model


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tagger.fw"
    model = ModelFile(
        kind="tagging",
        metadata={
            "blocks": {"names": ["bias", "pair"], "sizes": [2, 3]},
            "labels": ["O", "B"],
            "note": "x" * 61,
            "scale": 0.5,
        },
        arrays={"weights": np.array([0.0, -4.5, 1.0, 0.0, 2.0]), "table": np.zeros((2, 3), dtype=np.int32)},
        provenance={"seed": 7, "command": ["factorwise", "tag"]},
    )
    write_model(path, model)
    return path


def test_json_tells_all_about_the_file(run, file):
    result = run("inspect", file, "--json")
    assert result.code == 0
    assert result.err == ""
    document = json.loads(result.out)
    assert document["kind"] == "tagging"
    assert document["format_version"] == 1
    assert document["bytes"] == file.stat().st_size
    assert document["provenance"] == {"seed": 7, "command": ["factorwise", "tag"]}
    assert document["metadata"] == {
        "blocks": "object with names, sizes",
        "labels": "list of 2",
        "note": "text of 61 characters",
        "scale": 0.5,
    }
    assert document["arrays"] == [
        {"name": "weights", "dtype": "float64", "shape": [5], "bytes": 40},
        {"name": "table", "dtype": "int32", "shape": [2, 3], "bytes": 24},
    ]
    assert document["weight_blocks"] == [
        {"name": "bias", "start": 0, "stop": 2, "nonzero": 1, "largest": 4.5},
        {"name": "pair", "start": 2, "stop": 5, "nonzero": 2, "largest": 2.0},
    ]


def test_verbose_shows_the_values_of_the_metadata(run, file):
    document = json.loads(run("inspect", file, "--json", "--verbose").out)
    assert document["metadata"]["labels"] == ["O", "B"]
    assert '["O", "B"]' in run("inspect", file, "--verbose").out


def test_text_shows_kind_provenance_arrays_and_blocks(run, file):
    lines = run("inspect", file).out.splitlines()
    assert lines[0].startswith("tagger.fw  (")
    words = [line.split() for line in lines]
    assert ["kind", "tagging"] in words
    assert ["seed", "7"] in words
    assert ["table", "int32", "2", "x", "3", "24", "bytes"] in words
    assert ["pair", "2..5", "2", "not", "zero", "largest", "2"] in words


def test_an_empty_model_has_nothing_to_show(run, tmp_path):
    write_model(tmp_path / "empty.fw", ModelFile(kind="empty"))
    out = run("inspect", tmp_path / "empty.fw").out
    for title in ("provenance", "metadata", "arrays", "weight blocks"):
        assert f"{title}: none" in out


def test_weights_that_are_not_finite_are_still_json(run, tmp_path):
    blocks = {"names": ["bias", "none"], "sizes": [2, 0]}
    weights = np.array([np.nan, np.inf])
    write_model(
        tmp_path / "m.fw", ModelFile(kind="w", metadata={"blocks": blocks}, arrays={"weights": weights})
    )
    document = json.loads(run("inspect", tmp_path / "m.fw", "--json").out)
    assert [block["largest"] for block in document["weight_blocks"]] == [None, 0.0]
    assert "largest not finite" in run("inspect", tmp_path / "m.fw").out


def test_escape_codes_in_a_file_do_not_reach_the_terminal(run, tmp_path):
    metadata = {"\x1b[2J": "\x1b]0;title\x07", "lone": "\ud800"}
    write_model(tmp_path / "m.fw", ModelFile(kind="w", metadata=metadata))
    result = run("inspect", tmp_path / "m.fw")
    assert result.code == 0
    assert "\x1b" not in result.out
    assert "\\x1b[2J" in result.out
    assert "\\ud800" in result.out
    assert run("inspect", tmp_path / "m.fw", "--verbose").code == 0


def test_a_damaged_file_is_refused_with_exit_code_2(run, file):
    file.write_bytes(file.read_bytes()[:-30])
    result = run("inspect", file)
    assert result.code == 2
    assert result.err.startswith(f"error: {file}: not a readable model file")
    assert "restore it from a copy" in result.err


def test_standard_input_is_not_read(run):
    result = run("inspect", "-")
    assert (result.code, "standard input is not read here: give a model file" in result.err) == (2, True)
