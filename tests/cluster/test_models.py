"""Any model in shards on Ray: coreference and templates of a user's own give the bits of threads."""

import pytest

from factorwise.distributed import LocalExecutor, ShardKeeping
from factorwise.io.shard_files import ShardStore
from model_shard_cases import PROBLEMS
from shard_cases import digest

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore::ResourceWarning")]
SHARDS = 3


@pytest.fixture(scope="module")
def two_workers():
    from factorwise.distributed.ray_executor import RayExecutor

    with RayExecutor("local", 2) as executor:
        yield executor


def run(given, executor, **more):
    found = given.search(executor, SHARDS, **more)
    return digest(executor, given.walk.n_items), found


@pytest.mark.parametrize("name", PROBLEMS)
def test_two_workers_give_the_bits_of_threads(two_workers, name):
    given = PROBLEMS[name]()
    assert run(given, two_workers) == run(given, LocalExecutor(2))


@pytest.mark.parametrize("name", PROBLEMS)
def test_checkpoints_of_a_cluster_are_taken_up_by_threads(two_workers, name, tmp_path):
    given = PROBLEMS[name]()
    wanted, undisturbed = run(given, LocalExecutor(1))
    keeping = ShardKeeping(ShardStore(str(tmp_path)), "this run", 2)

    def stop(progress):
        if progress.round == 3:
            raise RuntimeError("ended here")

    with pytest.raises(RuntimeError, match="ended here"):
        run(given, two_workers, keeping=keeping, watch=stop)
    for executor, first in ((LocalExecutor(2), 3), (two_workers, None)):
        told = []
        found = given.search(executor, None, count=SHARDS, keeping=keeping, watch=told.append)
        assert found.rounds == undisturbed.rounds
        assert digest(executor, given.walk.n_items) == wanted
        assert (told[0].round if told else None) == first  # to the second, the end of the first is known


def test_the_functions_of_a_script_go_with_the_model(two_workers):
    """What no module has is sent by value."""
    from factorwise.distributed import Sharding, search_shards, shard_model, shard_walk
    from factorwise.inference.mcmc.shards.sharded_walk import walk_along
    from factorwise.model.model import Model
    from factorwise.model.templates import PairTemplate
    from model_shard_cases import SHORT
    from restriction_cases import fields_of, graph_of

    def close(a, b):
        return a.name == b.name, abs(a.year - b.year) < 2

    template = PairTemplate("close", fields_of(60), close, ["same name", "close"])
    walk = walk_along(graph_of(60, 1, 0.1), Model([template], [0.5, -0.25]))
    ends = []
    for executor in (LocalExecutor(1), two_workers):
        rows = shard_walk(walk, SHARDS, 1)
        search_shards(executor, rows, SHORT, Sharding(SHARDS), model=shard_model(walk), seed=1)
        ends.append(digest(executor, 60))
    assert ends[0] == ends[1]
