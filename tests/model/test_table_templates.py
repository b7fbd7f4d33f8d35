"""Cluster-wise factors over tables of pair features, against a look at every pair."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.kernels.clusterings.arrays import SPARE_IDS
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.model.templates import ClusterSize
from factorwise.testing import check_template
from factorwise.variables.pair_table import PairTable
from factorwise.world.diff import NEW, Retype, Transfer
from factorwise.world.partition import Partition
from reference import tables as reference
from walk_cases import EVERY, table_for


def features_of(table):
    pairs = combinations(range(table.n_items), 2)
    return {frozenset(pair): table.row(*pair).tolist() for pair in pairs}


def from_the_definition(template, world):
    clusters = [members.tolist() for members in world.clusters()]
    features = features_of(template.table)
    found = reference.statistics(features, clusters, template.aggregates, template.table.n_features)
    return [float(value) for value in found]


def dense(template, vector):
    return vector.to_dense(template.size)


def every_transfer(world):
    """All ways to move some of a cluster to another one or to a new one."""
    for source in world.cluster_ids().tolist():
        members = world.members(source).tolist()
        others = [cluster for cluster in world.cluster_ids().tolist() if cluster != source]
        for count in range(1, len(members) + 1):
            for items in combinations(members, count):
                for target in others + [NEW] * (count < len(members)):
                    yield Transfer(items, source, target)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_statistics_are_what_the_definition_says_in_every_world(n):
    template = PairTableTemplate("table", table_for(n, 4), EVERY)
    for world in all_partitions(n):
        found = dense(template, template.statistics(world))
        np.testing.assert_allclose(found, from_the_definition(template, world), rtol=1e-14)


def test_differences_are_statistics_after_minus_before_for_every_diff_in_every_world():
    template = PairTableTemplate("table", table_for(4, 3), EVERY)
    worlds = all_partitions(4)
    known = {world.canonical(): np.array(from_the_definition(template, world)) for world in worlds}
    seen = 0
    for world in worlds:
        for diff in every_transfer(world):
            expected = known[world.after(diff).canonical()] - known[world.canonical()]
            found = dense(template, template.difference(world, diff))
            np.testing.assert_allclose(found, expected, atol=1e-14)
            seen += 1
    assert seen > 150


@pytest.mark.parametrize("features", [1, 31, 32, 33])
def test_any_number_of_features_passes_the_check_of_templates(features):
    template = PairTableTemplate("table", table_for(7, features), EVERY)
    check_template(template, Partition.from_labels([0, 0, 1, 1, 1, 2, 3], n_types=2), steps=120)


@given(st.data())
def test_aggregates_follow_the_definition_whatever_the_table(data):
    n = data.draw(st.integers(2, 6))
    rows = st.lists(st.sampled_from([0, 1]), min_size=2, max_size=2)
    pairs = n * (n - 1) // 2
    table = PairTable(n, ["f", "g"], data.draw(st.lists(rows, min_size=pairs, max_size=pairs)))
    labels = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    template = PairTableTemplate("table", table, EVERY)
    world = Partition.from_keys(labels)
    found = dense(template, template.statistics(world))
    np.testing.assert_allclose(found, from_the_definition(template, world), rtol=1e-14)


def test_a_tie_is_no_majority_and_a_cluster_of_one_has_nothing():
    table = PairTable(4, ["half"], [[1], [1], [1], [0], [0], [0]])
    template = PairTableTemplate("table", table, EVERY)
    whole = dense(template, template.statistics(Partition.from_labels([0, 0, 0, 0])))
    assert dict(zip(EVERY, whole.tolist(), strict=True)) == {
        "count": 3.0,
        "all": 0.0,
        "exists": 1.0,
        "majority": 0.0,
        "linked": 3.0,
        "mean": 0.5,
        "per member": 0.75,
    }
    assert not dense(template, template.statistics(Partition.singletons(4))).any()


def test_types_of_clusters_do_not_matter():
    template = PairTableTemplate("table", table_for(4, 2), EVERY)
    world = Partition.from_labels([0, 0, 0, 1], types=[0, 1], n_types=2)
    assert len(template.difference(world, Retype(0, 0, 1)).index) == 0


def test_weights_are_named_by_aggregate_and_feature():
    table = PairTable(2, ["same head", "near"], [[1, 0]])
    template = PairTableTemplate("mentions", table, ("all", "count"))
    assert template.size == 4
    assert [template.weight_name(k) for k in range(4)] == [
        "mentions: all of same head",
        "mentions: all of near",
        "mentions: count of same head",
        "mentions: count of near",
    ]


def test_counting_alone_is_a_factor_per_pair():
    table = table_for(6, 3)
    template = PairTableTemplate("table", table, ("count",))
    for labels in ([0, 0, 0, 1, 1, 2], [0, 0, 0, 0, 0, 0]):
        world = Partition.from_labels(labels)
        together = [pair for pair in combinations(range(6), 2) if labels[pair[0]] == labels[pair[1]]]
        expected = sum(table.row(*pair).astype(int) for pair in together)
        assert dense(template, template.statistics(world)).tolist() == expected.tolist()


@pytest.mark.parametrize("aggregates", [(), ("most",), ("all", "all"), ("all", "Exists")])
def test_aggregates_that_do_not_exist_are_refused(aggregates):
    with pytest.raises(InvalidArgumentError, match=r"one or more of .*'majority', 'mean'.*each once"):
        PairTableTemplate("table", table_for(3, 1), aggregates)


def test_a_table_for_other_items_is_refused():
    template = PairTableTemplate("table", table_for(3, 1))
    with pytest.raises(
        ShapeError, match="for 3 items, but the world has 4: build both from the same records"
    ):
        template.statistics(Partition.singletons(4))
    with pytest.raises(
        ShapeError, match="for 3 items, but the world has 4: build both from the same records"
    ):
        model_programs(Model([template]), Partition.singletons(4))


def test_two_tables_lie_side_by_side_and_one_used_twice_lies_there_once():
    first, second = table_for(5, 33), table_for(5, 2, seed=1)
    model = Model(
        [
            PairTableTemplate("a", first, ("count",)),
            PairTableTemplate("b", second, ("all", "mean")),
            PairTableTemplate("c", first, ("exists",)),
        ]
    )
    (program,) = model_programs(model, Partition.singletons(5)).templates
    np.testing.assert_array_equal(program.arrays["rows"], np.hstack([first.padded, second.padded]))
    assert program.arrays["blocks"].tolist() == [
        [0, 0, 33, 0],
        [1, 64, 2, 33],
        [4, 64, 2, 35],
        [2, 0, 33, 37],
    ]
    assert program.arrays["counts"].shape == (5 + SPARE_IDS, 96)


def test_a_model_without_tables_has_no_program_of_tables():
    programs = model_programs(Model([ClusterSize()]), Partition.singletons(4)).templates
    assert [program.name for program in programs] == ["cluster functions"]
