"""Model files that were stored once are read for good: they load, and answer as they did."""

import json
import math
import re
import runpy
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from factorwise.cli import main
from factorwise.errors import ModelFileError
from factorwise.io.models.files import FORMAT_VERSION, READERS, read_model, write_model

FOLDER = Path(__file__).parent / "earlier"
SOURCE = Path(__file__).parents[2] / "src" / "factorwise"
MAKE = runpy.run_path(str(FOLDER / "make.py"))
STORED = {path.stem: path for path in sorted(FOLDER.glob("*.fw"))}
LARGEST = 40_000  # bytes: they are in every checkout
every_file = pytest.mark.parametrize("name", STORED)


def parts(name):
    """Return the case and the format version that the name of a stored file tells."""
    case, version = re.fullmatch(r"([a-z.-]+)-v(\d+)", name).groups()
    return MAKE["CASES"][case], int(version)


def stored_answers(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def near(found, stored):
    """Whether values are the same but for the last digits of their numbers."""
    if isinstance(stored, list):
        return len(found) == len(stored) and all(map(near, found, stored))
    if isinstance(stored, dict):
        return found.keys() == stored.keys() and all(near(found[key], stored[key]) for key in stored)
    return math.isclose(found, stored, rel_tol=1e-4, abs_tol=1e-4)


def check_answers(path, name):
    case, _ = parts(name)
    stored = stored_answers(name)
    found = json.loads(json.dumps(case.answers(path, stored["given"])))  # a tuple is a list there
    assert found.keys() == stored["answers"].keys()
    for part, wanted in stored["answers"].items():
        assert near(found[part], wanted) if part.endswith("~") else found[part] == wanted, part


@every_file
def test_a_stored_model_loads_and_answers_as_it_did(name):
    check_answers(STORED[name], name)


@every_file
def test_a_stored_model_is_of_the_kind_and_version_that_its_name_tells(name):
    model = read_model(STORED[name])
    assert f"{name}.".startswith((f"{model.kind}.", f"{model.kind}-v"))
    assert model.format_version == parts(name)[1] <= FORMAT_VERSION
    assert STORED[name].stat().st_size < LARGEST


@every_file
def test_a_version_of_the_future_is_refused_with_the_advice_to_update(name, tmp_path):
    path = tmp_path / f"{name}.fw"
    with zipfile.ZipFile(STORED[name]) as old, zipfile.ZipFile(path, "w") as new:
        for member in old.infolist():
            content = old.read(member)
            if member.filename == "manifest.json":
                manifest = json.loads(content) | {"format_version": FORMAT_VERSION + 1}
                content = json.dumps(manifest).encode()
            new.writestr(member.filename, content)
    with pytest.raises(
        ModelFileError, match=r"written by a newer factorwise.*pip install --upgrade factorwise"
    ):
        read_model(path)


@pytest.mark.parametrize(
    ("name", "later"), [("chain-crf-v1", "constraints"), ("resolution-v1", "thrifty")], ids=str
)
def test_what_the_first_files_did_not_have_yet_may_be_missing(name, later, tmp_path):
    model = read_model(STORED[name])
    assert not model.metadata[later]
    kept = {key: value for key, value in model.metadata.items() if key != later}
    write_model(tmp_path / "model.fw", replace(model, metadata=kept))
    check_answers(tmp_path / "model.fw", name)


def test_every_stored_model_is_shown_by_inspect(capsys):
    for path in STORED.values():
        with pytest.raises(SystemExit) as left:
            main.main(["inspect", str(path)])
        assert left.value.code == 0
        assert read_model(path).kind in capsys.readouterr().out


def written_kinds():
    """Return the kinds that modules of the package write: each has its own as ``KIND``."""
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    return {kind for text in texts for kind in re.findall(r'^KIND = "(.+)"$', text, re.MULTILINE)}


def test_every_kind_has_a_stored_file():
    kinds = written_kinds()
    assert len(kinds) > 6
    assert set(READERS) <= kinds
    stored = {read_model(path).kind for path in STORED.values()}
    assert stored == kinds, "run python tests/io/earlier/make.py"


def test_every_case_has_a_stored_file_in_the_version_that_is_written_now():
    assert {f"{case}-v{FORMAT_VERSION}" for case in MAKE["CASES"]} <= set(STORED)
    assert {path.stem for path in FOLDER.glob("*.json")} == set(STORED)


def test_a_stored_file_is_never_written_anew():
    for case in MAKE["CASES"]:
        with pytest.raises(FileExistsError, match="mend the reader"):
            MAKE["make"](case)
