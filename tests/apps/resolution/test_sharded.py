"""Resolving in shards: the same records, the same constraints, other places where rounds are taken."""

import numpy as np
import pytest

from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.estimator import EntityResolver
from factorwise.apps.resolution.sharded import Shards
from factorwise.distributed import LocalExecutor, Sharding
from factorwise.errors import DataFileError
from factorwise.metrics.clustering import b_cubed
from record_cases import people

RECORDS = people(40)
TRUTH = [record["person"] for record in RECORDS]


@pytest.fixture(scope="module")
def resolver():
    return EntityResolver(passes=3, steps=10, rounds=8, n_jobs=1).fit(people(130)[-130:], "person", id="id")


def shards(count=5, threads=1, every=2):
    return Shards(LocalExecutor(threads), Sharding(count), every)


@pytest.fixture(scope="module")
def found(resolver):
    return resolver.resolve(RECORDS, id="id", shards=shards())


def test_entities_are_as_good_as_those_of_one_walk(resolver, found):
    whole = resolver.resolve(RECORDS, id="id")
    assert b_cubed(TRUTH, found.labels.tolist()).f1 >= b_cubed(TRUTH, whole.labels.tolist()).f1 - 0.01
    assert found.found.score >= 0.99 * whole.found.score > 0.0
    assert found.found.score == pytest.approx(found.linked.walk.score)


def test_threads_do_not_change_them(resolver, found):
    again = resolver.resolve(RECORDS, id="id", shards=shards(threads=3))
    assert again.entity.equals(found.entity)


def test_constraints_hold_in_every_shard(resolver, found):
    first, second = 0, int(np.flatnonzero(found.labels != found.labels[0])[0])
    pair = np.array([[first, second]])
    mates = np.flatnonzero(found.labels == found.labels[0])
    apart = np.array([[mates[0], mates[1]]]) if len(mates) > 1 else np.zeros((0, 2), int)
    must = resolver.resolve(RECORDS, id="id", shards=shards(), constraints=Constraints(must=pair))
    assert must.labels[first] == must.labels[second]
    cannot = resolver.resolve(RECORDS, id="id", shards=shards(), constraints=Constraints(cannot=apart))
    assert len(apart) == 1
    assert cannot.labels[apart[0, 0]] != cannot.labels[apart[0, 1]]


def test_a_run_that_was_stopped_goes_on_from_its_checkpoint(resolver, found, tmp_path):
    def die(progress):
        if progress.round == 5:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        resolver.resolve(RECORDS, id="id", shards=shards(), checkpoint=tmp_path, watch=die)
    rounds = []
    again = resolver.resolve(
        RECORDS, id="id", shards=shards(), checkpoint=tmp_path, watch=lambda told: rounds.append(told.round)
    )
    assert rounds[0] == 5
    assert again.entity.equals(found.entity)
    assert again.found == found.found
    with pytest.raises(DataFileError, match="checkpoint of another run"):
        resolver.resolve(RECORDS, id="id", shards=shards(6), checkpoint=tmp_path)


def test_weights_that_shards_learn_are_mixed_to_the_same_whoever_runs_them(resolver):
    made = [
        EntityResolver(passes=3, steps=10, rounds=8, n_jobs=1).fit(
            people(130)[-130:], "person", id="id", shards=shards(3, threads)
        )
        for threads in (1, 2)
    ]
    first, second = (one.knowledge_.weights.values for one in made)
    np.testing.assert_array_equal(first, second)
    assert made[0].score(RECORDS, "person") > 0.9
