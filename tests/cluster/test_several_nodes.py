"""A Ray cluster of three nodes: the same bits as threads, whatever is lost on the way."""

import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from factorwise.distributed import ShardKeeping
from factorwise.errors import LostItemsError
from factorwise.io.shard_files import ShardStore
from shard_cases import SHORT, Watched, attempts, digest, local_digest, planted, scattered, victim

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore::ResourceWarning")]
GIVEN = planted()
N = GIVEN.graph.n_items
SHARDS = 6
NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "node_ip_address": "127.0.0.1"}


@pytest.fixture(scope="module")
def machines():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
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
def executor(machines, connected):
    """The cluster with its three nodes, however many an earlier test has left."""
    while len(machines.worker_nodes) < 2:
        machines.add_node(**NODE)
    machines.wait_for_nodes()
    return connected


def with_loss(machines, folder, run, *, replaced=False):
    """Remove the node on which a shard's run waits, perhaps add another; return that run and what came out.

    The search has a thread, as Ray starts nodes in the main one only.
    """
    pool = ThreadPoolExecutor(1)
    searching = pool.submit(run)
    try:
        hit = victim(folder)
        (node,) = (node for node in machines.worker_nodes if node.node_id == hit.node)
        machines.remove_node(node, allow_graceful=False)
        if replaced:
            machines.add_node(**NODE)
        return hit, searching.result(60.0)
    finally:
        pool.shutdown(wait=False)


def assert_hit(folder, hit):
    """The run that waited was run again elsewhere, and some whose rows were lost as well."""
    runs = attempts(folder)
    again = [run for run in runs if run[:2] == hit[:2]]
    assert again[0] == hit
    assert len(again) > 1
    assert all(run.node != hit.node for run in again[1:])
    return {run for run, count in Counter(run[:2] for run in runs).items() if count > 1}


def test_three_nodes_give_the_bits_of_threads(executor, tmp_path):
    wanted, found = local_digest(GIVEN, SHARDS)
    assert GIVEN.search(executor, SHARDS, function=Watched(tmp_path)) == found
    assert digest(executor, N) == wanted
    runs = attempts(tmp_path)
    assert len({run.node for run in runs}) == 3
    assert len(runs) == found.rounds * SHARDS


@pytest.mark.parametrize("replaced", [False, True])
def test_a_node_that_is_lost_in_a_round_changes_nothing(executor, machines, replaced, tmp_path):
    wanted, undisturbed = local_digest(GIVEN, SHARDS)
    step = Watched(tmp_path, 3, spare=machines.head_node.node_id)
    run = partial(GIVEN.search, executor, SHARDS, function=step)
    hit, found = with_loss(machines, tmp_path, run, replaced=replaced)
    again = assert_hit(tmp_path, hit)
    assert any(round_ < 3 for round_, _ in again)  # rows of earlier rounds were lost, and computed again
    assert found == undisturbed
    assert digest(executor, N) == wanted
    assert len(machines.worker_nodes) == (2 if replaced else 1)


def test_after_a_checkpoint_no_earlier_round_is_computed_again(executor, machines, tmp_path):
    wanted, undisturbed = local_digest(GIVEN, SHARDS)
    keeping = ShardKeeping(ShardStore(str(tmp_path / "kept")), "this run", 3)
    step = Watched(tmp_path, 3, spare=machines.head_node.node_id)
    run = partial(GIVEN.search, executor, SHARDS, function=step, keeping=keeping)
    hit, found = with_loss(machines, tmp_path, run)
    again = assert_hit(tmp_path, hit)
    assert {round_ for round_, _ in again} == {3}
    assert found == undisturbed
    assert digest(executor, N) == wanted


def test_a_step_that_is_no_function_is_found_out_when_rows_are_computed_again(executor, machines, tmp_path):
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    assert GIVEN.search(executor, SHARDS, function=Watched(quiet, step=scattered)).rounds >= SHORT.rounds
    assert len(digest(executor, N)) == 64  # and every item is there once
    step = Watched(tmp_path, 3, spare=machines.head_node.node_id, step=scattered)
    run = partial(GIVEN.search, executor, SHARDS, function=step)
    with pytest.raises(LostItemsError, match="lost or duplicated"):
        with_loss(machines, tmp_path, run)
    assert any(round_ < 3 for round_, _ in assert_hit(tmp_path, victim(tmp_path)))


DRIVER = """
import sys
from factorwise.distributed import ShardKeeping
from factorwise.distributed.ray_executor import RayExecutor
from factorwise.io.shard_files import ShardStore
from shard_cases import Watched, planted
address, folder, shards = sys.argv[1:]
keeping = ShardKeeping(ShardStore(folder + "/kept"), "this run", 2)
with RayExecutor(address) as executor:
    planted().search(executor, int(shards), function=Watched(folder, 3), keeping=keeping)
"""


def test_a_run_whose_driver_was_killed_in_a_round_goes_on_to_the_same_bits(executor, machines, tmp_path):
    wanted, undisturbed = local_digest(GIVEN, SHARDS)
    command = [sys.executable, "-W", "ignore", "-c", DRIVER, machines.address, str(tmp_path), str(SHARDS)]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert victim(tmp_path).round == 3
    finally:
        os.kill(driver.pid, signal.SIGKILL)
    assert driver.wait() == -signal.SIGKILL
    keeping = ShardKeeping(ShardStore(str(tmp_path / "kept")), "this run", 2)
    assert keeping.store.latest("this run").state["round"] == 2
    told = []
    found = GIVEN.search(executor, None, count=SHARDS, keeping=keeping, watch=told.append)
    assert told[0].round == 3
    assert found.rounds == undisturbed.rounds
    assert found.score == pytest.approx(undisturbed.score)
    assert digest(executor, N) == wanted
