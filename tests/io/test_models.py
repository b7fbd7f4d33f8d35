"""The model file: what goes in comes out, and whatever is not whole is refused with a reason."""

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from factorwise.errors import ModelFileError
from factorwise.io.models import files as models
from factorwise.io.models.files import FORMAT_VERSION, ModelFile, read_model, write_model


def example() -> ModelFile:
    return ModelFile(
        kind="tagging",
        metadata={"labels": ["O", "B-PER"], "scale": 0.5, "nested": {"deep": [1, None, True]}},
        arrays={
            "weights": np.array([0.5, -1.25, np.nan, np.inf]),
            "table": np.arange(6, dtype=np.int32).reshape(2, 3),
            "words": np.array(["ein", "größer"]),
        },
        provenance={"seed": 7},
    )


def contents(model: ModelFile):
    """All of a model file in a form that compares bit by bit."""
    arrays = {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in model.arrays.items()}
    return model.kind, model.metadata, arrays, model.provenance, model.format_version


def written(path, model=None) -> bytes:
    write_model(path, model or example())
    return path.read_bytes()


def repacked(path, change, *, method=zipfile.ZIP_STORED):
    """Write the example with its members, a dict of name to bytes, changed by ``change``."""
    with zipfile.ZipFile(io.BytesIO(written(path))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def with_manifest(path, **changes):
    """Write the example with keys of its manifest changed; None removes one."""

    def change(members):
        manifest = json.loads(members["manifest.json"]) | changes
        kept = {key: value for key, value in manifest.items() if value is not None}
        members["manifest.json"] = json.dumps(kept).encode()

    return repacked(path, change)


def with_array(path, **changes):
    """Write the example with the manifest's entry for the array ``table`` changed."""

    def change(members):
        manifest = json.loads(members["manifest.json"])
        manifest["arrays"]["table"] |= changes
        members["manifest.json"] = json.dumps(manifest).encode()

    return repacked(path, change)


def refusal(path, kind=None) -> str:
    with pytest.raises(ModelFileError) as caught:
        read_model(path, kind)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.fw"


def test_what_is_written_is_read_back_bit_by_bit(path):
    write_model(path, example())
    assert contents(read_model(path)) == contents(example())
    assert contents(read_model(str(path), "tagging")) == contents(example())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
array_types = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(sizes=(64, 128)),
    hnp.byte_string_dtypes(min_len=1),
    hnp.unicode_string_dtypes(min_len=1),
)


@given(
    metadata=st.dictionaries(st.text(), json_values, max_size=4),
    array=hnp.arrays(array_types, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
    fortran=st.booleans(),
)
def test_any_json_and_any_plain_array_comes_back_as_it_was(tmp_path_factory, metadata, array, fortran):
    path = tmp_path_factory.mktemp("any") / "model.fw"
    laid_out = np.asfortranarray(array) if fortran and array.ndim else array
    model = ModelFile(kind="test", metadata=metadata, arrays={"array": laid_out})
    write_model(path, model)
    found = read_model(path)
    assert found.metadata == metadata
    assert json.dumps(found.metadata) == json.dumps(metadata)  # tells 1 from 1.0 and 0.0 from -0.0
    assert found.arrays["array"].dtype == array.dtype
    assert found.arrays["array"].shape == array.shape
    assert found.arrays["array"].tobytes() == array.tobytes()


WHOLE: dict[str, bytes] = {}


def whole(tmp_path_factory) -> bytes:
    if "file" not in WHOLE:
        WHOLE["file"] = written(tmp_path_factory.mktemp("whole") / "model.fw")
    return WHOLE["file"]


def reads_the_same_or_is_refused(path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        found = read_model(path)
    except ModelFileError:
        return
    assert contents(found) == contents(example())


@given(data=st.data())
def test_flipped_bytes_are_refused_or_harmless(tmp_path_factory, data):
    content = bytearray(whole(tmp_path_factory))
    places = st.integers(0, len(content) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        content[place] ^= data.draw(st.integers(1, 255))
    reads_the_same_or_is_refused(tmp_path_factory.mktemp("flip") / "model.fw", bytes(content))


def test_every_single_flipped_byte_is_refused_or_harmless(path, tmp_path_factory):
    content = whole(tmp_path_factory)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        reads_the_same_or_is_refused(path, bytes(damaged))


def test_a_file_cut_short_anywhere_is_refused(path, tmp_path_factory):
    content = whole(tmp_path_factory)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert "restore it from a copy" in refusal(path)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "model.fw"
    path.write_bytes(content)
    refusal(path)


def test_the_same_content_gives_the_same_bytes(tmp_path):
    assert written(tmp_path / "one.fw") == written(tmp_path / "two.fw")


def test_arrays_can_be_read_by_numpy_alone(path):
    written(path)
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["arrays/table"], example().arrays["table"])
        np.testing.assert_array_equal(archive["arrays/weights"], example().arrays["weights"])


def test_another_kind_is_refused_naming_both_and_what_reads_it(path):
    write_model(path, ModelFile(kind="weights"))
    message = refusal(path, "tagging")
    assert "'weights'" in message
    assert "'tagging'" in message
    assert "load_weights" in message


def test_an_unknown_other_kind_is_refused_with_the_verb_that_shows_it(path):
    written(path)
    assert "factorwise inspect" in refusal(path, "weights")


def test_a_newer_format_is_refused_with_advice_to_upgrade(path):
    message = refusal(with_manifest(path, format_version=FORMAT_VERSION + 2))
    assert f"format {FORMAT_VERSION + 2}, this one reads up to {FORMAT_VERSION}" in message
    assert "pip install --upgrade factorwise" in message


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"format": "other"}, "its format is 'other'"),
        ({"format": None}, "its format is None"),
        ({"format_version": "1"}, "format version is '1'"),
        ({"format_version": True}, "format version is True"),
        ({"format_version": 0}, "format version is 0"),
        ({"kind": None}, "its kind is None"),
        ({"kind": "../up"}, "its kind is '../up'"),
        ({"metadata": None}, "'metadata' is missing"),
        ({"metadata": [1]}, "'metadata' is missing or not an object"),
        ({"provenance": "me"}, "'provenance' is missing or not an object"),
        ({"arrays": []}, "'arrays' is missing or not an object"),
        ({"arrays": {}}, "which its manifest does not list"),
        ({"arrays": {"../table": {}}}, "which its manifest does not list"),
    ],
)
def test_a_manifest_that_is_not_as_defined_is_refused(path, changes, fault):
    assert fault in refusal(with_manifest(path, **changes))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"dtype": "|O"}, "which model files cannot contain"),
        ({"dtype": "object"}, "which model files cannot contain"),
        ({"dtype": "<i4,<i4"}, "which model files cannot contain"),
        ({"dtype": "<i3"}, "which does not exist here"),
        ({"dtype": ["<i4"]}, "which model files cannot contain"),
        ({"dtype": "<U0"}, "which model files cannot contain"),
        ({"dtype": "<f4"}, "does not have the dtype and shape"),
        ({"dtype": "<f8"}, "bytes, but dtype <f8"),
        ({"shape": [3, 2]}, "does not have the dtype and shape"),
        ({"shape": [2, 4]}, "has 152 bytes, but dtype <i4 and shape (2, 4) need 160"),
        ({"shape": [10**30]}, "bytes, but dtype"),
        ({"shape": [-2, -3]}, "not a list of sizes"),
        ({"shape": [2.0, 3]}, "not a list of sizes"),
        ({"shape": 6}, "not a list of sizes"),
        ({"sha256": "00"}, "not a SHA-256"),
        ({"sha256": None}, "not a SHA-256"),
        ({"sha256": "0" * 64}, "'table' does not match its checksum"),
    ],
)
def test_an_array_that_is_not_as_stated_is_refused(path, changes, fault):
    assert fault in refusal(with_array(path, **changes))


def test_a_shape_that_numpy_cannot_make_is_refused(path):
    def change(members):
        manifest = json.loads(members["manifest.json"])
        shape = [0] + [2**62] * 3
        manifest["arrays"]["table"] |= {"shape": shape, "sha256": hashlib.sha256().hexdigest()}
        members["manifest.json"] = json.dumps(manifest).encode()
        members["arrays/table.npy"] = models._header(np.dtype("<i4"), tuple(shape))

    assert "restore it from a copy" in refusal(repacked(path, change))


def remove_table(members):
    del members["arrays/table.npy"]


def remove_manifest(members):
    del members["manifest.json"]


def add_stranger(members):
    members["notes.txt"] = b"hello"


def add_climber(members):
    members["../outside.npy"] = b""


def damage_manifest(members):
    members["manifest.json"] = members["manifest.json"][:-2]


def put_nan(members):
    members["manifest.json"] = members["manifest.json"].replace(b"0.5", b"NaN")


def put_latin1(members):
    members["manifest.json"] = b'{"kind": "\xe4"}'


def put_list(members):
    members["manifest.json"] = b"[]"


def put_abyss(members):
    members["manifest.json"] = b"[" * 200_000


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (remove_table, "array 'table' is missing"),
        (remove_manifest, "it has no manifest.json"),
        (add_stranger, "it contains 'notes.txt', which its manifest does not list"),
        (add_climber, "it contains '../outside.npy', which its manifest does not list"),
        (damage_manifest, "its manifest is not JSON"),
        (put_nan, "NaN is not a JSON number"),
        (put_latin1, "its manifest is not UTF-8"),
        (put_list, "its manifest is a list"),
        (put_abyss, "its manifest is not JSON"),
    ],
)
def test_members_that_are_not_as_defined_are_refused(path, change, fault):
    assert fault in refusal(repacked(path, change))


def test_an_array_name_that_climbs_out_is_refused_even_when_its_member_exists(path):
    def change(members):
        manifest = json.loads(members["manifest.json"])
        manifest["arrays"]["../table"] = manifest["arrays"].pop("table")
        members["manifest.json"] = json.dumps(manifest).encode()
        members["arrays/../table.npy"] = members.pop("arrays/table.npy")

    assert "cannot name an array" in refusal(repacked(path, change))


def test_compressed_members_are_refused_before_they_are_unpacked(path):
    def change(members):
        members["arrays/table.npy"] = bytes(10_000_000)

    message = refusal(repacked(path, change, method=zipfile.ZIP_DEFLATED))
    assert "compressed or encrypted" in message
    assert "zip -0" in message


def test_members_that_overlap_to_claim_more_than_the_file_are_refused(path):
    """Several names for one run of bytes: each fits the file, together they do not."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", bytes(5_000))
        original = archive.infolist()[0]
        for index in range(3):
            copy = zipfile.ZipInfo(f"arrays/a{index}.npy")
            for attribute in ("CRC", "file_size", "compress_size", "header_offset", "external_attr"):
                setattr(copy, attribute, getattr(original, attribute))
            archive.filelist.append(copy)
            archive.NameToInfo[copy.filename] = copy
    assert "larger than the file itself" in refusal(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_comes_twice_is_refused(path):
    written(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("manifest.json", "{}")
    assert "'manifest.json' twice" in refusal(path)


def test_a_huge_manifest_is_refused_in_both_directions(path, monkeypatch):
    written(path)
    monkeypatch.setattr(models, "MANIFEST_LIMIT", 100)
    assert "its manifest is larger than 100 bytes" in refusal(path)
    with pytest.raises(ModelFileError, match="Move large tables into arrays"):
        write_model(path, example())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_json_cannot_hold_are_refused_by_their_place(path, value):
    model = ModelFile(kind="test", metadata={"outer": [0, {"inner": value}]})
    with pytest.raises(
        ModelFileError, match=r"metadata\.outer\[1\]\.inner is -?(nan|inf).*Store it in an array"
    ):
        write_model(path, model)
    assert not path.exists()


class Unknown:
    pass


@pytest.mark.parametrize(
    "value",
    [Unknown(), {1}, b"bytes", np.float64(1), np.zeros(2), {1: "a"}, pytest.param(10**5000, id="10**5000")],
)
def test_values_that_are_not_json_are_refused_with_what_may_be_used(path, value):
    with pytest.raises(
        ModelFileError, match=r"provenance\.x is a \w+, which JSON cannot represent.*Use None, bool"
    ):
        write_model(path, ModelFile(kind="test", provenance={"x": value}))


def test_metadata_without_end_is_refused(path):
    loop: list = []
    loop.append(loop)
    with pytest.raises(ModelFileError, match="nested more than 100 levels deep"):
        write_model(path, ModelFile(kind="test", metadata={"loop": loop}))


def test_tuples_come_back_as_lists(path):
    write_model(path, ModelFile(kind="test", metadata={"pair": (1, (2, 3))}))
    assert read_model(path).metadata == {"pair": [1, [2, 3]]}


@pytest.mark.parametrize(
    "array",
    [
        np.array([None, 1]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.zeros(2, dtype=[("a", "i4")]),
        np.zeros(2, dtype=np.longdouble) if np.dtype(np.longdouble).itemsize > 8 else np.array([None]),
    ],
)
def test_arrays_that_could_not_be_read_safely_everywhere_are_refused(path, array):
    with pytest.raises(ModelFileError, match=r"array 'a' has dtype .* Convert it to truth values"):
        write_model(path, ModelFile(kind="test", arrays={"a": array}))
    assert not path.exists()


@pytest.mark.parametrize("given", [[1.0, 2.0], np.ma.masked_array([1, 2], mask=[True, False])])
def test_what_is_not_a_plain_array_is_refused(path, given):
    with pytest.raises(ModelFileError, match=r"not a plain array.*numpy\.asarray"):
        write_model(path, ModelFile(kind="test", arrays={"a": given}))


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a..b", ".hidden", "ends.", "größe", "x" * 101, 3])
def test_array_names_that_are_no_file_names_are_refused(path, name):
    with pytest.raises(ModelFileError, match="cannot name an array"):
        write_model(path, ModelFile(kind="test", arrays={name: np.zeros(1)}))


@pytest.mark.parametrize("kind", ["", "Tagging", "a b", "x" * 65, None])
def test_kinds_that_are_no_names_are_refused(path, kind):
    with pytest.raises(ModelFileError, match="cannot be a kind"):
        write_model(path, ModelFile(kind=kind))


@pytest.mark.parametrize("content", [b"id,name\n1,Ann\n", b"PAR1", b"\x1f\x8b", b"{}", b"\0"])
def test_a_file_of_something_else_is_told_from_one_that_is_damaged(path, content):
    path.write_bytes(content)
    assert "not a factorwise model file" in refusal(path)
    assert "damaged" not in refusal(path)


def test_an_archive_of_something_else_is_told_from_one_that_is_damaged(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>" * 50)
    assert "not a factorwise model file: it has no manifest.json" in refusal(path)
    assert "Give the path of a model file, NAME.fw" in refusal(path)


def test_a_missing_file_a_folder_and_a_pipe_are_refused_at_once(tmp_path):
    assert "no such file" in refusal(tmp_path / "none.fw")
    assert "not a file" in refusal(tmp_path)
    pipe = tmp_path / "pipe.fw"
    os.mkfifo(pipe)
    assert "not a file" in refusal(pipe)
    assert "could not be opened" in refusal(tmp_path / "nul\0.fw")


def test_a_file_that_may_not_be_read_is_refused_with_the_reason(path, monkeypatch):
    written(path)

    def denied(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", denied)
    assert "could not be opened: Permission denied" in refusal(path)


def test_a_place_that_cannot_be_written_is_refused_and_left_alone(tmp_path):
    pipe = tmp_path / "pipe.fw"
    os.mkfifo(pipe)
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    for target in (tmp_path, pipe, tmp_path / "none" / "model.fw", blocked / "model.fw"):
        with pytest.raises(ModelFileError, match=r"could not be written.*check the folder"):
            write_model(target, example())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "pipe.fw"]


def test_a_full_disk_leaves_the_old_model_and_says_so(path, monkeypatch):
    before = written(path)

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match=r"No space left on device.*A file that was there is unchanged"):
        write_model(path, ModelFile(kind="other"))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_file_larger_than_the_system_allows_leaves_nothing(tmp_path):
    """The system itself stops the writing half-way, as a full disk does."""
    script = (
        "import resource, signal, sys, numpy as np\n"
        "from factorwise.errors import ModelFileError\n"
        "from factorwise.io.models.files import ModelFile, write_model\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    write_model(sys.argv[1], ModelFile(kind='big', arrays={'a': np.zeros(50_000)}))\n"
        "except ModelFileError as error:\n"
        "    print(error)\n"
    )
    target = tmp_path / "big.fw"
    run = subprocess.run([sys.executable, "-c", script, target], capture_output=True, text=True, check=True)
    assert "File too large" in run.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_writing_leaves_the_old_model(path, monkeypatch):
    before = written(path)
    genuine = models._write_member

    def interrupted(archive, name, *parts):
        if name != "manifest.json":
            raise KeyboardInterrupt
        genuine(archive, name, *parts)

    monkeypatch.setattr(models, "_write_member", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_model(path, example())
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
