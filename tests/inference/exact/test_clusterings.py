"""Every clustering, each once, and the distribution over them."""

import math
from collections import Counter

import numpy as np
import pytest

import factorwise as fw
from factorwise.errors import ImpossibleError, InvalidArgumentError
from factorwise.inference.exact import PartitionEnumeration, all_partitions

BELL = [1, 2, 5, 15, 52, 203, 877, 4_140]


def size_model(clusters=0.0, singletons=0.0):
    return fw.Model([fw.templates.ClusterSize()], [clusters, singletons])


@pytest.mark.parametrize(("n", "count"), list(enumerate(BELL, start=1)))
def test_there_are_as_many_clusterings_as_the_bell_number_says(n, count):
    worlds = all_partitions(n)
    assert len(worlds) == count
    assert len({world.canonical() for world in worlds}) == count
    assert {world.n_items for world in worlds} == {n}


@pytest.mark.slow
def test_there_are_21147_clusterings_of_nine_items():
    assert len({world.canonical() for world in all_partitions(9)}) == 21_147


def test_clusterings_of_five_by_number_of_clusters_are_stirling_numbers():
    assert Counter(world.n_clusters for world in all_partitions(5)) == {1: 1, 2: 15, 3: 25, 4: 10, 5: 1}


@pytest.mark.parametrize("types", [2, 3])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_cluster_takes_every_type(n, types):
    worlds = all_partitions(n, types)
    assert len(worlds) == sum(types**world.n_clusters for world in all_partitions(n))
    assert len({world.canonical() for world in worlds}) == len(worlds)


@pytest.mark.parametrize("n", [0, -1, 10])
def test_other_numbers_of_items_are_refused(n):
    with pytest.raises(InvalidArgumentError, match=f"1 to 9 items, but n_items is {n}: sample larger worlds"):
        all_partitions(n)


def test_a_model_that_does_not_care_makes_all_clusterings_equally_likely():
    exact = PartitionEnumeration(size_model(), 4)
    np.testing.assert_allclose(exact.probabilities, 1 / 15)
    assert exact.log_partition == pytest.approx(math.log(15))
    # two given items are together in as many clusterings of four as there are of three
    np.testing.assert_allclose(exact.together(), np.where(np.eye(4), 1.0, 5 / 15))


def test_two_items_are_together_with_the_probability_of_the_logistic_function():
    exact = PartitionEnumeration(size_model(clusters=0.7), 2)
    assert exact.together()[0, 1] == pytest.approx(1 / (1 + math.exp(0.7)))
    assert exact.best == fw.Partition.singletons(2)


def test_temperature_divides_the_scores():
    warm = PartitionEnumeration(size_model(clusters=0.7, singletons=-0.4), 4, temperature=2.0)
    plain = PartitionEnumeration(size_model(clusters=0.35, singletons=-0.2), 4)
    np.testing.assert_allclose(warm.probabilities, plain.probabilities)
    assert warm.log_partition == pytest.approx(plain.log_partition)


def test_scores_beyond_the_range_of_exp_are_no_problem():
    exact = PartitionEnumeration(size_model(clusters=2_000.0), 3)
    assert exact.probabilities.sum() == pytest.approx(1.0)
    assert exact.log_partition == pytest.approx(6_000.0)
    assert exact.best.n_clusters == 3


def test_types_are_part_of_the_distribution():
    def likes_type_one(cluster):
        return (cluster.type == 1,)

    model = fw.Model([fw.templates.ClusterTemplate("kind", None, likes_type_one, ["of type one"])], [1.5])
    exact = PartitionEnumeration(model, 2, n_types=2)
    each = 1 + math.exp(1.5)  # a cluster's sum over its two types
    assert exact.log_partition == pytest.approx(math.log(each + each**2))
    assert exact.best.dense_types().tolist() == [1, 1]


def test_a_model_that_forbids_everything_is_refused():
    class Forbidding(fw.templates.ClusterSize):
        def constant(self, world):
            return -math.inf

    with pytest.raises(ImpossibleError, match="constraints that contradict each other"):
        PartitionEnumeration(fw.Model([Forbidding()], [0.0, 0.0]), 3)
