"""Runs that are ended at random moments: nothing is half written, and what goes on ends as if undisturbed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from command_lines import whole_folder

MOMENTS = int(os.environ.get("FACTORWISE_TEST_ENDINGS", "100")) // 4
LINES = {
    "resolve fit": "resolve fit labelled.csv --id id --entity person --model {out}",
    "resolve apply": "resolve apply records.csv --id id --model resolve.fw --rounds 4 -o {out}"
    " --checkpoint {kept} --checkpoint-seconds 0",
    "tag fit": "tag fit tags.txt --max-iterations 20 --model {out}",
    "coref fit": "coref fit docs.jsonl --passes 2 --steps 200 --search-steps 5 --model {out}",
}
CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGKILL: -9}
OLD = b"what was there before\n"  # of a table; a model takes the place of a model only


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return whole_folder(tmp_path_factory.getbasetemp())


def before(name, whole):
    """Return what stands in a file before a run."""
    return OLD if name.endswith(".csv") else (whole / "align.fw").read_bytes()


def start(line, whole, place):
    words = line.format(
        out=place / "out.csv" if " apply " in line else place / "out.fw", kept=place / "kept"
    ).split()
    return subprocess.Popen(
        [sys.executable, "-m", "factorwise", *words, "--threads", "1"],
        cwd=whole,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def run(line, whole, place):
    with start(line, whole, place) as process:
        told = process.communicate()[1]
    assert process.returncode == 0, told


def output(place):
    return next(path for path in (place / "out.csv", place / "out.fw") if path.exists())


@pytest.mark.slow
@pytest.mark.parametrize("verb", LINES)
def test_a_run_that_is_ended_leaves_the_old_file_or_a_whole_one(verb, whole, tmp_path):
    line, rng = LINES[verb], random.Random(verb)
    (tmp_path / "first").mkdir()
    run(line, whole, tmp_path / "first")  # compiles what is not compiled yet
    begun = time.monotonic()
    (tmp_path / "second").mkdir()
    run(line, whole, tmp_path / "second")
    lasted = time.monotonic() - begun
    complete = output(tmp_path / "second").read_bytes()
    assert output(tmp_path / "first").read_bytes() == complete
    outside = 0
    for number in range(MOMENTS):
        sent = rng.choice(list(CODES))
        place = tmp_path / str(number)
        place.mkdir()
        name = output(tmp_path / "first").name
        old = before(name, whole)
        (place / name).write_bytes(old)
        with start(line, whole, place) as process:
            time.sleep(rng.uniform(0.0, lasted))
            process.send_signal(sent)
            told = process.communicate(timeout=120)[1].decode()
        found, code = (place / name).read_bytes(), process.returncode
        case = f"{verb}, {sent.name}, moment {number}: exit code {code}, {told[-300:]}"
        parts = list(place.glob(".*.part"))
        if code == -sent and sent != signal.SIGKILL:  # while Python was starting, or had done with the run
            outside += 1
            assert found in (old, complete), case
        elif code == 0:
            assert found == complete, case
        else:
            assert code == CODES[sent], case
            assert sent == signal.SIGKILL or (told.strip() and not parts), case
            assert "Traceback" not in told or sent == signal.SIGINT, case
            whole_table = (
                verb == "resolve apply" and found.startswith(b'"id","entity"') and found.endswith(b"\n")
            )
            assert found in (old, complete) or whole_table, case
        if "--checkpoint" in line:
            run(line, whole, place)
            assert (place / name).read_bytes() == complete, case
    assert outside < MOMENTS


#: A folder on a disk of its own, for one command: full after so many bytes.
SMALL_DISK = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
ON_SMALL_DISK = (
    'mount -t tmpfs -o size="$1",nr_inodes=64 none "$2" && cp "$3" "$2"/ && shift 3 && "$@"; code=$?;'
    ' cd "$OLDPWD" 2>/dev/null; ls -A "$FOLDER" >&3; cat "$FOLDER/$NAME" >&4; exit $code'
)


def has_small_disks():
    tried = [*SMALL_DISK, "mount -t tmpfs -o size=4k none /mnt"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(tried, check=False, capture_output=True).returncode == 0
    )


@pytest.mark.slow
@pytest.mark.parametrize("verb", LINES)
def test_a_full_disk_is_told_and_breaks_nothing(verb, whole, tmp_path):
    if not has_small_disks():
        pytest.skip("file systems cannot be mounted here")
    (tmp_path / "first").mkdir()
    run(LINES[verb], whole, tmp_path / "first")
    complete, name = output(tmp_path / "first").read_bytes(), output(tmp_path / "first").name
    old, held_before = before(name, whole), tmp_path / name
    held_before.write_bytes(old)
    rng, refused = random.Random(verb), 0
    for number in range(max(MOMENTS // 5, 3)):
        place = tmp_path / str(number)
        place.mkdir()
        # pages for the old file, and too few for the new one
        pages = -(-len(old) // 4096) + rng.randrange(-(-len(complete) // 4096))
        size = 4096 * pages
        words = LINES[verb].format(out=place / name, kept=place / "kept").split()
        listed, held = tmp_path / f"{number}.list", tmp_path / f"{number}.held"
        process = subprocess.run(
            [
                *SMALL_DISK, f"exec 3>{listed} 4>{held}; {ON_SMALL_DISK}", "sh", str(size), str(place),
                str(held_before), sys.executable, "-m", "factorwise", *words, "--threads", "1",
            ],
            cwd=whole, env=os.environ | {"FOLDER": str(place), "NAME": name, "TMPDIR": str(place)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        case = f"{verb}, {size} bytes: exit code {process.returncode}, {process.stderr[-300:]}"
        if process.returncode == 0:
            assert held.read_bytes() == complete, case
            continue
        refused += 1
        assert "error:" in process.stderr, case
        assert "Traceback" not in process.stderr, case
        assert held.read_bytes() == old, case
        assert not [left for left in listed.read_text().split() if left.endswith(".part")], case
    assert refused > 0
