"""The served page when its process is killed, and when the disk is full: no acknowledged answer is lost."""

import http.client
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from factorwise.store import Store

SERVING = """
import resource, sys
from factorwise.apps.resolution.curation import Review
from factorwise.review import Server
review = Review(sys.argv[1], random_share=0.2, background=True)
if int(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)  # as if the disk ended there
server = Server(review)
print(server.address, flush=True)
server.run()
"""


class Served:
    """The page of a store in a process of its own."""

    def __init__(self, path, limit=0):
        arguments = [sys.executable, "-c", SERVING, str(path), str(limit)]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, data, kind)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def first(self):
        """Return the first question, once the server answers."""
        for _ in range(200):
            try:
                return self.ask("api/question")["question"]
            except urllib.error.URLError:
                time.sleep(0.02)
        raise TimeoutError("the server does not answer")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def answer_until_it_ends(served, random, each, killer):
    """Answer until the server is killed; return the decisions that it has acknowledged."""
    saved = []
    try:
        question = served.first()
        while question is not None:
            said = "same" if random.random() < 0.5 else "different"
            found = served.ask("api/answer", {"number": question["number"], "answer": said})
            saved.append(found["saved"])
            if len(saved) == 1:  # which waits for compiled code to be loaded
                killer.start()
            question = found["question"]
            time.sleep(each)
    except (OSError, http.client.HTTPException, ValueError):
        pass  # killed
    return saved


def check(path, acknowledged):
    with Store.open(path) as store:
        assert {row[0] for row in store.execute("SELECT decision FROM decisions")} >= acknowledged
        replayed = np.full(store.n_records, -1)
        for record, after in store.execute("SELECT record, after FROM moves ORDER BY change"):
            replayed[record] = after
        assert replayed.tolist() == store.membership().tolist()


def run_killed(path, times, seconds, each):
    random = np.random.default_rng(5)
    acknowledged = set()
    for _ in range(times):
        served = Served(path)
        # at a moment that depends neither on answers nor on what is learned meanwhile
        killer = threading.Timer(float(random.uniform(0.0, seconds)), served.process.kill)
        acknowledged |= set(answer_until_it_ends(served, random, each, killer))
        killer.cancel()
        served.kill()
        check(path, acknowledged)
    return acknowledged


def test_what_the_page_has_shown_as_saved_survives_a_kill(resolved, tmp_path):
    path = tmp_path / "s.duckdb"
    path.write_bytes(resolved.read_bytes())
    assert run_killed(path, 1, 1.0, 0.0)


@pytest.mark.slow
def test_answers_on_the_page_survive_kills_at_fifty_moments(resolved, tmp_path):
    for part in range(5):  # a fresh store each ten kills, so that there are questions left
        path = tmp_path / f"{part}.duckdb"
        path.write_bytes(resolved.read_bytes())
        assert len(run_killed(path, 10, 3.0, 0.2)) > 10


def test_a_full_disk_is_told_on_the_page_and_breaks_nothing(resolved, tmp_path):
    path = tmp_path / "s.duckdb"
    path.write_bytes(resolved.read_bytes())
    served = Served(path, limit=12_000)  # of the log of changes
    saved, question = [], served.first()
    refused = None
    while refused is None and question is not None:
        body = {"number": question["number"], "answer": "unsure", "why": "x" * 900}
        try:
            found = served.ask("api/answer", body)
            saved.append(found["saved"])
            question = found["question"]
        except urllib.error.HTTPError as error:
            refused = error
    assert refused.code == 500
    assert "what was saved before is there" in json.load(refused)["error"]
    assert served.ask("api/question")["question"] is not None  # still there
    served.kill()
    check(path, set(saved))
