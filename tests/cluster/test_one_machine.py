"""Ray on one machine: the same bits as threads, killed workers, and whom a cluster listens to."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from factorwise.apps.resolution.training.link_learning import LinkTraining
from factorwise.distributed import LocalExecutor, ShardKeeping, SummedObjective, mix_weights
from factorwise.errors import InvalidArgumentError
from factorwise.io.shard_files import ShardStore
from factorwise.model.clusterings.level_weights import LevelWeights
from shard_cases import (
    SIZES,
    Watched,
    attempts,
    digest,
    likelihood_of,
    local_digest,
    planted,
    sentences_in_parts,
    training_shards,
    victim,
)

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore::ResourceWarning")]
GIVEN = planted()
N = GIVEN.graph.n_items
SHARDS = 4


@contextlib.contextmanager
def ray_here(workers):
    from factorwise.distributed.ray_executor import RayExecutor

    with RayExecutor("local", workers) as executor:
        yield executor


@pytest.fixture(scope="module")
def two_workers():
    with ray_here(2) as executor:
        yield executor


def test_there_is_no_interface_but_loopback():
    """Else a test could reach, or be reached by, another machine."""
    assert [name for _, name in socket.if_nameindex()] == ["lo"]


@pytest.mark.parametrize("workers", [1, 3])
def test_other_numbers_of_workers_give_the_bits_of_threads(workers):
    wanted, found = local_digest(GIVEN, SHARDS)
    with ray_here(workers) as executor:
        assert GIVEN.search(executor, SHARDS) == found
        assert digest(executor, N) == wanted


@pytest.mark.parametrize("exchange", ["guided", "random", "none"])
@pytest.mark.parametrize("shards", [1, 4])
def test_two_workers_give_the_bits_of_threads(two_workers, exchange, shards):
    wanted, found = local_digest(GIVEN, shards, exchange=exchange)
    assert GIVEN.search(two_workers, shards, exchange=exchange) == found
    assert digest(two_workers, N) == wanted


def test_tasks_end_with_the_stream_that_started_them(two_workers, tmp_path):
    def work(name, seconds):
        (tmp_path / f"{name} began").touch()
        time.sleep(seconds)
        (tmp_path / f"{name} ended").touch()

    answers = two_workers.stream(work, [("short", 0.0), ("long", 4.0), ("later", 0.0)])
    next(answers)
    limit = time.monotonic() + 60
    while not (tmp_path / "long began").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    answers.close()
    time.sleep(6)
    assert (tmp_path / "long began").exists()
    assert not (tmp_path / "long ended").exists()


def test_answers_are_in_the_order_of_the_items(two_workers):
    items = [(1000 + k, 7) for k in range(20)]
    assert two_workers.map(divmod, items) == LocalExecutor(1).map(divmod, items)
    assert two_workers.map(divmod, []) == []


def test_a_shared_value_is_seen_as_itself(two_workers):
    shared = two_workers.share([1, 2, 3])
    assert two_workers.map(sum, [(shared,), (shared, 10)]) == [6, 16]


def test_mixed_weights_are_the_same_bits(two_workers):
    shards = training_shards(1, 3, LinkTraining(steps=10, fewest=500))
    zero, told, also = LevelWeights.zeros(SIZES).values, [], []
    one = mix_weights(LocalExecutor(1), shards, zero, passes=2, seed=5, on_pass=told.append)
    two = mix_weights(two_workers, shards, zero, passes=2, seed=5, on_pass=also.append)
    assert one.tobytes() == two.tobytes()
    assert told == also


def test_summed_gradients_are_the_same_bits(two_workers):
    whole, parts = sentences_in_parts("everything", 3, 3)
    weights = whole.weights(3)
    one, two = (
        SummedObjective(executor, parts, likelihood_of)(weights)
        for executor in (LocalExecutor(1), two_workers)
    )
    assert one[0] == two[0]
    assert one[1].tobytes() == two[1].tobytes()


def test_an_error_in_a_shard_keeps_its_kind(two_workers):
    with pytest.raises(ZeroDivisionError):
        two_workers.map(divmod, [(1, 1), (1, 0)])


def test_checkpoints_of_one_executor_are_taken_up_by_the_other(two_workers, tmp_path):
    wanted, undisturbed = local_digest(GIVEN, SHARDS)
    for number, (one, two) in enumerate([(LocalExecutor(1), two_workers), (two_workers, LocalExecutor(1))]):
        keeping = ShardKeeping(ShardStore(str(tmp_path / str(number))), "this run", 2)

        def stop(progress):
            if progress.round == 3:
                raise RuntimeError("ended here")

        with pytest.raises(RuntimeError, match="ended here"):
            GIVEN.search(one, SHARDS, keeping=keeping, watch=stop)
        told = []
        found = GIVEN.search(two, None, count=SHARDS, keeping=keeping, watch=told.append)
        assert told[0].round == 3
        assert found.rounds == undisturbed.rounds
        assert digest(two, N) == wanted


@pytest.mark.parametrize("every", [None, 1])
def test_a_worker_that_is_killed_in_a_round_changes_nothing(two_workers, every, tmp_path):
    wanted, undisturbed = local_digest(GIVEN, SHARDS)
    keeping = every and ShardKeeping(ShardStore(str(tmp_path / "kept")), "this run", every)
    hit = []

    def kill():
        hit.append(victim(tmp_path))
        os.kill(hit[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = GIVEN.search(two_workers, SHARDS, function=Watched(tmp_path, 2), keeping=keeping)
    killer.join()
    again = [run for run in attempts(tmp_path) if run[:2] == hit[0][:2]]
    assert len({run.pid for run in again}) == 2
    assert found == undisturbed
    assert digest(two_workers, N) == wanted


SERVED = """
import os, pathlib, time
from factorwise.distributed.ray_executor import RayExecutor

def inodes(pid):
    folder = pathlib.Path(f"/proc/{pid}/fd")
    for link in folder.iterdir():
        try:
            yield os.readlink(link)
        except OSError:
            pass

def sockets(pids):
    held = {name for pid in pids for name in inodes(pid)}
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in held:
                yield fields[1].split(":")[0]

def family():
    found, parents = {os.getpid()}, {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    for _ in range(10):
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found

with RayExecutor("local", 1) as executor:
    executor.map(divmod, [(7, 2)])
    print(os.environ["RAY_AUTH_MODE"], len(os.environ["RAY_AUTH_TOKEN"]) >= 32)
    pids = family()
    print(len(pids))
    print(*sorted(sockets(pids)))
    started = pids - {os.getpid()}
end = time.monotonic() + 20
while any(pathlib.Path(f"/proc/{pid}").exists() for pid in started) and time.monotonic() < end:
    time.sleep(0.1)
print([pid for pid in started if pathlib.Path(f"/proc/{pid}").exists()])
"""
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def in_a_process(script, *arguments, before=(), **environment):
    """Run a script with no more said of Ray than is given, by the words of a command that stand before it."""
    kept = "RAY_TMPDIR"
    own = {name: value for name, value in os.environ.items() if name == kept or not name.startswith("RAY_")}
    command = [*before, sys.executable, "-W", "ignore", "-c", script, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=own | environment, timeout=120, check=False
    )


# where there is a way out, Ray would rather be reached from there
CONNECTED = """
ip link set lo up && ip link add out type veth peer name far && ip address add 192.0.2.9/24 dev out &&
ip link set out up && ip link set far up && ip route add default dev out && exec "$@"
"""


@pytest.mark.skipif(shutil.which("ip") is None, reason="there is no ip to make an interface with")
def test_a_cluster_that_is_started_here_has_a_token_listens_to_this_machine_and_ends_with_its_executor():
    done = in_a_process(SERVED, before=["unshare", "--net", "sh", "-c", CONNECTED, "sh"])
    assert done.returncode == 0, done.stderr
    mode, processes, addresses, left = done.stdout.splitlines()
    assert mode == "token True"
    assert int(processes) > 3
    assert len(addresses.split()) >= 3
    assert set(addresses.split()) <= LOOPBACK
    assert left == "[]"


def test_without_a_token_no_cluster_is_started():
    script = "from factorwise.distributed.ray_executor import RayExecutor; RayExecutor('local')"
    done = in_a_process(script, RAY_AUTH_MODE="disabled")
    assert done.returncode == 1
    assert "InvalidArgumentError" in done.stderr
    assert "set RAY_AUTH_MODE=token" in done.stderr


WRONG = """
import sys, time
from factorwise.distributed.ray_executor import RayExecutor
from factorwise.errors import InvalidArgumentError
import ray
for address in sys.argv[1:]:
    begun = time.monotonic()
    try:
        RayExecutor(address)
    except InvalidArgumentError as error:
        print(ray.is_initialized(), time.monotonic() - begun < 10.0, error)
"""


def test_no_cluster_is_started_for_an_address_where_none_is():
    addresses = ["127.0.0.1:1", "ray://127.0.0.1:1", "nowhere.invalid:6379", "not the address"]
    done = in_a_process(WRONG, *addresses)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(addresses)
    for line, address in zip(lines, addresses, strict=True):
        assert line.startswith(f"False True no Ray cluster can be reached at {address!r}")
        assert line.endswith("Start one, or use 'local'.")


def test_who_has_another_token_is_not_let_in(two_workers):
    import ray

    address = ray.get_runtime_context().gcs_address
    done = in_a_process(WRONG, address, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 32)
    assert done.returncode == 0, done.stderr
    assert f"no Ray cluster can be reached at {address!r}" in done.stdout


def test_an_empty_address_is_refused():
    from factorwise.distributed.ray_executor import RayExecutor

    with pytest.raises(InvalidArgumentError, match="is empty: give host:port, auto or local"):
        RayExecutor("")
