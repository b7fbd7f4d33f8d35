"""Resolving on three nodes: the same bytes as in memory, whatever stage loses a node, and a flat driver."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from factorwise.apps.resolution import linked_items
from factorwise.apps.resolution.blocking import joins
from factorwise.apps.resolution.comparisons import record_ranges
from factorwise.apps.resolution.estimator import EntityResolver
from factorwise.apps.resolution.normalize import normal_forms
from factorwise.inference.mcmc.shards import component_search
from record_cases import people, write_csv
from resolving_cases import Waiting, call_that_waits, node_that_waits, nodes_of_attempts

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore::ResourceWarning")]
NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "node_ip_address": "127.0.0.1"}
STAGES = {
    "normal forms": "make_forms",
    "joins": "pairs_of_join",
    "best candidates": "best_of_pairs",
    "comparisons": "compare_pairs",
    "walk": "answer_group",
    "answers": "chances_of_range",
}
RECORDS = people(40)


@pytest.fixture(scope="module")
def machines():
    """A head without processors, so that no task runs where the driver is, and two workers."""
    from ray.cluster_utils import Cluster

    head = {**NODE, "num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield cluster
    finally:
        cluster.shutdown()


@pytest.fixture(scope="module")
def connected(machines):
    from factorwise.distributed.ray_executor import RayExecutor

    with RayExecutor(machines.address) as executor:
        yield executor


@pytest.fixture
def cluster(machines, connected):
    """The cluster with its three nodes, however many an earlier test has left."""
    while len(machines.worker_nodes) < 2:
        machines.add_node(**NODE)
    machines.wait_for_nodes()
    return machines


@pytest.fixture(scope="module")
def resolver():
    return EntityResolver(passes=2, steps=10, rounds=6, n_jobs=1).fit(people(130)[-130:], "person", id="id")


def remove_waiting_node(machines, folder):
    hit = node_that_waits(folder)
    (node,) = (node for node in machines.worker_nodes if node.node_id == hit)
    machines.remove_node(node, allow_graceful=False)
    return hit


@pytest.mark.parametrize("stage", STAGES)
def test_a_node_that_is_lost_in_a_stage_changes_nothing(
    stage, cluster, connected, resolver, tmp_path, monkeypatch
):
    for module, name, size in (
        (component_search, "ITEMS_PER_GROUP", 15),
        (record_ranges, "PAIRS_OF_A_TASK", 50),
        (record_ranges, "ROWS_OF_A_RANGE", 30),
        (linked_items, "ITEMS_AT_ONCE", 20),
        (joins, "PIECE", 40),
        (normal_forms, "ROWS_OF_A_STRETCH", 50),
    ):
        monkeypatch.setattr(module, name, size)
    wanted = resolver.resolve(RECORDS, id="id").table()
    stream = type(connected).stream

    def waiting(executor, function, items):
        if function.__name__ == STAGES[stage]:
            function = Waiting(function, tmp_path)
        return stream(executor, function, items)

    monkeypatch.setattr(type(connected), "stream", waiting)
    pool = ThreadPoolExecutor(1)
    resolving = pool.submit(lambda: resolver.resolve(RECORDS, id="id", executor=connected).table())
    try:
        hit = remove_waiting_node(cluster, tmp_path)
        assert resolving.result(90.0).equals(wanted)
    finally:
        pool.shutdown(wait=False)
    nodes = nodes_of_attempts(tmp_path)
    assert nodes.index(hit) < len(nodes) - 1  # what waited was done again
    assert len(set(nodes)) == 2


def test_a_call_whose_node_is_lost_is_made_again_elsewhere(cluster, connected, tmp_path, capfd):
    pool = ThreadPoolExecutor(1)
    calling = pool.submit(connected.call, call_that_waits, str(tmp_path), 17, 5)
    try:
        hit = remove_waiting_node(cluster, tmp_path)
        assert calling.result(90.0) == [(3, 2), (3, 2)]
    finally:
        pool.shutdown(wait=False)
    assert len(set(nodes_of_attempts(tmp_path)) - {hit}) == 1
    assert "begun" in capfd.readouterr().out  # what the lost one had printed last may be lost with it


def interrupted_at_once():
    import time

    try:
        for _ in range(300):
            time.sleep(0.1)
    except KeyboardInterrupt:
        return "stopped"
    return "went on"


def test_an_interrupt_reaches_a_call(cluster, connected):
    import signal

    threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert connected.call(interrupted_at_once) == "stopped"


def applied(folder, name, output, *words):
    command = [sys.executable, "-W", "ignore", "-m", "factorwise", "resolve", "apply", str(folder / name)]
    command += ["--id", "id", "--ignore", "person", "--model", str(folder / "m.fw"), "--json"]
    done = subprocess.run(
        [*command, "-o", str(folder / output), *words],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_gives_the_bytes_of_one_in_memory_and_its_driver_does_not_grow(
    cluster, resolver, tmp_path
):
    resolver.save(tmp_path / "m.fw")
    for count in (60, 3_000):
        write_csv(tmp_path / f"{count}.csv", people(count))
    here = applied(tmp_path, "3000.csv", "here.csv")
    there = [
        applied(tmp_path, f"{count}.csv", "there.csv", "--ray", cluster.address) for count in (60, 3_000)
    ]
    assert (tmp_path / "here.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
    assert there[1]["entities"] == here["entities"]
    peaks = [document["driver_memory"] for document in there]
    assert max(peaks) < 1.1 * min(peaks)
    assert max(peaks) < 600 * 2**20


def test_errors_of_the_task_are_told_in_one_line(cluster, tmp_path):
    write_csv(tmp_path / "few.csv", people(10))
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "factorwise",
        "resolve",
        "apply",
        "few.csv",
        "--id",
        "idd",
    ]
    done = subprocess.run(
        [*command, "-o", "o.csv", "--ray", cluster.address],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "few.csv has no column 'idd'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "o.csv").exists()
