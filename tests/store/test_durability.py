"""Nothing that was acknowledged is lost: kill -9 at random moments, and a disk that is full."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pyarrow as pa
import pytest

from factorwise.store import Cause, Store

ANSWERING = """
import sys, time
import numpy as np
from factorwise.store import Cause, Store
store = Store.open(sys.argv[1])
random = np.random.default_rng(int(sys.argv[2]))
while True:
    rows = random.choice(store.n_records, 2, replace=False)
    with store.transaction():
        decision = store.decide([rows[:1], rows[1:]], "same", who="Ann")
        store.regroup(rows, [0, 0], Cause("decision", decision=decision, who="Ann"))
    print(decision, flush=True)
    time.sleep(float(sys.argv[3]))
"""


def make_store(path, n=200):
    with Store.create(path) as store:
        table = pa.table({"name": [f"name {k}" for k in range(n)]})
        store.add_records(table, pa.array([str(k) for k in range(n)]), source="a")
        store.regroup(np.arange(n), np.arange(n), Cause("run"))


def killed(path, seed, wait, pause):
    """Answer in another process, kill it after a while, and return the decisions that it acknowledged."""
    arguments = [sys.executable, "-c", ANSWERING, str(path), str(seed), str(pause)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        return [int(line) for line in (first + process.stdout.read()).split()]


def check(path, acknowledged):
    with Store.open(path) as store:
        kept = {one["decision"] for one in store.decisions()}
        assert kept >= acknowledged
        assert len(kept - acknowledged) <= 1 + len(acknowledged)
        replayed = np.full(store.n_records, -1)
        for record, after in store.execute("SELECT record, after FROM moves ORDER BY change"):
            replayed[record] = after
        assert replayed.tolist() == store.membership().tolist()


def run_killed(path, times, seconds, pause):
    make_store(path)
    random = np.random.default_rng(5)
    acknowledged = set()
    for seed in range(times):
        acknowledged |= set(killed(path, seed, float(random.uniform(0, seconds)), pause))
        check(path, acknowledged)
    return acknowledged


def test_an_acknowledged_answer_survives_a_kill(tmp_path):
    assert len(run_killed(tmp_path / "s.duckdb", 2, 0.3, 0.0)) > 2


@pytest.mark.slow
def test_answers_survive_kills_at_fifty_moments(tmp_path):
    assert len(run_killed(tmp_path / "s.duckdb", 50, 2.0, 0.2)) > 50


def test_a_full_disk_is_reported_and_breaks_nothing(tmp_path):
    path = tmp_path / "s.duckdb"
    make_store(path)
    code = """
        import resource, sys
        import numpy as np
        from factorwise.errors import StoreError
        from factorwise.store import Store
        store = Store.open(sys.argv[1])
        kept = store.decide([[0], [1]], "same", who="Ann")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # as if the disk ended there
        try:
            while True:
                kept = store.decide([[0], [1]], "same", who="Ann", why="x" * 10_000)
        except StoreError as error:
            print(kept, error, flush=True)
        import os
        os._exit(0)
    """
    arguments = [sys.executable, "-c", textwrap.dedent(code), str(path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=os.environ.copy())
    assert done.returncode == 0, done.stderr
    kept, message = done.stdout.split(" ", 1)
    assert "what was saved before is there" in message
    assert int(kept) >= 1
    check(path, set(range(int(kept) + 1)))
