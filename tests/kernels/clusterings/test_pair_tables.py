"""Counts of pair features by cluster, compiled against the definition; and sums of eight bits."""

from itertools import combinations

import numpy as np
import pytest

from factorwise.kernels.clusterings.pair_tables import MANY, count_pairs, table_gradient
from factorwise.kernels.compile.compiler import exposed
from factorwise.model.model import Model
from factorwise.model.partition_program import PartitionProgram
from factorwise.model.table_templates import PairTableTemplate
from factorwise.variables.pair_table import PairTable
from factorwise.world.diff import NEW, Transfer
from factorwise.world.partition import Partition
from reference import pair_tables as reference
from walk_cases import EVERY, table_for

gradient = exposed(table_gradient)


def arrays_for(table, aggregates=("count",)):
    """Tables as a program lays them out, with something left in the counts that must not matter."""
    program = PartitionProgram(Model([PairTableTemplate("table", table, aggregates)]), table.n_items)
    arrays = program.table_arrays()
    arrays.counts[:-1] = 7
    arrays.links[:] = 7
    return arrays


@pytest.mark.parametrize("features", [1, 31, 32, 33, 70])
def test_counts_equal_a_look_at_every_pair(features):
    table = table_for(9, features)
    known = {frozenset(pair): table.row(*pair).tolist() for pair in combinations(range(9), 2)}
    for labels in (range(9), [0] * 9, [0, 1, 0, 2, 1, 0, 3, 3, 0]):
        world = Partition.from_keys(labels)
        arrays = arrays_for(table)
        count_pairs(arrays, world.arrays)
        for cluster in world.cluster_ids().tolist():
            expected = reference.count_pairs(known, world.members(cluster).tolist(), features)
            assert arrays.counts[cluster, :features].tolist() == expected
            assert not arrays.counts[cluster, features:].any()


def test_clusters_that_do_not_exist_and_the_row_of_zeros_are_left_alone():
    table = table_for(6, 2)
    arrays = arrays_for(table)
    count_pairs(arrays, Partition.from_labels([0, 0, 0, 0, 1, 1]).arrays)
    assert (arrays.counts[2:-1] == 7).all()
    assert not arrays.counts[-1].any()


def test_links_are_counted_for_every_item_where_an_aggregate_asks_for_them():
    table = table_for(9, 33)
    world = Partition.from_keys([0, 1, 0, 2, 1, 0, 3, 3, 0])
    arrays = arrays_for(table, ("linked", "count"))
    count_pairs(arrays, world.arrays)
    for members in world.clusters():
        for item in members:
            expected = table.rows(item, members[members != item]).sum(axis=0)
            assert arrays.links[item, :33].tolist() == expected.tolist()
    assert len(arrays_for(table).links) == 0


@pytest.mark.parametrize("members", [MANY, MANY + 1, MANY + 2, 2 * MANY, 2 * MANY + 1, 2 * MANY + 2])
def test_sums_do_not_overflow_where_every_pair_has_the_feature(members):
    """An item of a cluster of m adds m - 1 rows of ones; 255 of them are the most that eight bits hold."""
    n = members + 2
    table = PairTable(n, ["always", "never"], np.tile([1, 0], (n * (n - 1) // 2, 1)))
    arrays = arrays_for(table)
    world = Partition.from_labels([0] * members + [1, 1])
    count_pairs(arrays, world.arrays)
    assert arrays.counts[0, :2].tolist() == [members * (members - 1) // 2, 0]
    assert arrays.counts[1, :2].tolist() == [1, 0]


@pytest.mark.parametrize("members", [MANY - 1, MANY, MANY + 1, 2 * MANY + 1])
@pytest.mark.parametrize("aggregates", [EVERY, ("count", "mean")])
def test_gradients_in_large_clusters_are_the_differences_of_the_template(members, aggregates):
    """In a star every member has a link with the center alone, so that it gives and takes all of them."""
    n = members + 3
    center, second = n - 1, n - 2
    squares = {"always": np.ones((n, n), bool), "star": np.zeros((n, n), bool)}
    squares["star"][center], squares["star"][:, center] = True, True
    table = PairTable.from_squares(squares)
    template = PairTableTemplate("table", table, aggregates)
    arrays = PartitionProgram(Model([template]), n).table_arrays()
    apart = Partition.from_labels([0] * members + [1, 1, 1])
    whole = Partition.from_labels([0] * n)
    some = tuple(range(members))
    cases = [
        (apart, [(center,), (second,), (center, second), (second, center, n - 3)], 1, 0),
        (apart, [some, some[: members // 2], (5,)], 0, 1),
        (whole, [(center,), (0,), (center, 0), some, some[1:]], 0, NEW),
    ]
    for world, movers, source, target in cases:
        count_pairs(arrays, world.arrays)
        for items in movers:
            found = np.zeros(template.size)
            moving = np.array(items, np.int32)
            gradient(arrays, world.arrays, moving, len(items), source, target, found)
            expected = template.difference(world, Transfer(items, source, target))
            np.testing.assert_allclose(found, expected.to_dense(template.size), rtol=1e-12, atol=1e-12)
            assert not world.arrays.items["mark"].any()
