"""Runs that are ended at random moments: nothing is half written, and what goes on ends as if undisturbed."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from command_lines import whole_folder

MOMENTS = int(os.environ.get("FACTORWISE_TEST_ENDINGS", "100")) // 4
LINES = {
    "resolve fit": "resolve fit labelled.csv --id id --entity person --passes 1 --steps 5 --model {out}",
    "resolve apply": "resolve apply records.csv --id id --model resolve.fw --rounds 4 -o {out}"
    " --checkpoint {kept} --checkpoint-seconds 0",
    "tag fit": "tag fit tags.txt --max-iterations 20 --model {out}",
    "coref fit": "coref fit docs.jsonl --passes 2 --steps 200 --search-steps 5 --model {out}",
}
CODES = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGKILL: -9}
OLD = b"what was there before\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return whole_folder(tmp_path_factory.getbasetemp())


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
        (place / name).write_bytes(OLD)
        with start(line, whole, place) as process:
            time.sleep(rng.uniform(0.0, lasted))
            process.send_signal(sent)
            told = process.communicate(timeout=120)[1].decode()
        found, code = (place / name).read_bytes(), process.returncode
        case = f"{verb}, {sent.name}, moment {number}: exit code {code}, {told[-300:]}"
        parts = list(place.glob(".*.part"))
        if code == -sent and sent != signal.SIGKILL:  # while Python was starting, or had done with the run
            outside += 1
            assert found in (OLD, complete), case
        elif code == 0:
            assert found == complete, case
        else:
            assert code == CODES[sent], case
            assert sent == signal.SIGKILL or (told.strip() and not parts), case
            assert "Traceback" not in told or sent == signal.SIGINT, case
            whole_table = (
                verb == "resolve apply" and found.startswith(b'"id","entity"') and found.endswith(b"\n")
            )
            assert found in (OLD, complete) or whole_table, case
        if "--checkpoint" in line:
            run(line, whole, place)
            assert (place / name).read_bytes() == complete, case
    assert outside < MOMENTS
