"""The arrays of a clustering against sets of sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.clusterings.partitions import (
    CLUSTER,
    FREE,
    ITEM,
    LIVE,
    NEW,
    ORDERS,
    PartitionArrays,
    fill_partition,
    order_for,
    transfer,
)
from factorwise.kernels.compile.compiler import exposed
from reference import partitions as reference


def empty_arrays(n):
    return PartitionArrays(
        items=np.zeros(n, ITEM),
        clusters=np.zeros(n, CLUSTER),
        members=np.full(4 * n + 4, -7, np.int32),
        counters=np.zeros(FREE + ORDERS, np.int64),
    )


def as_sets(p):
    """The clustering that the arrays stand for."""
    clusters = []
    for cluster in p.clusters["live"][: p.counters[LIVE]].tolist():
        start, size = int(p.clusters["start"][cluster]), int(p.clusters["size"][cluster])
        clusters.append(
            (frozenset(p.members[start : start + size].tolist()), int(p.clusters["type"][cluster]))
        )
    assert len(set(clusters)) == len(clusters)
    return frozenset(clusters)


@st.composite
def clusterings(draw):
    keys = draw(st.lists(st.integers(0, 6), min_size=1, max_size=14))
    labels = np.unique(keys, return_inverse=True)[1].astype(np.int32)
    count = int(labels.max()) + 1
    types = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    return labels, np.array(types, np.int32)


@given(clusterings())
def test_filling_groups_the_items_as_labelled(case):
    labels, types = case
    p = empty_arrays(len(labels))
    fill_partition(p, labels, types)
    assert as_sets(p) == reference.fill_partition(labels.tolist(), types.tolist())


@given(clusterings(), st.data())
def test_transfers_move_the_items_they_name_and_no_others(case, data):
    labels, types = case
    p = empty_arrays(len(labels))
    fill_partition(p, labels, types)
    plain = reference.fill_partition(labels.tolist(), types.tolist())
    for _ in range(12):
        clusters = sorted(plain, key=lambda cluster: min(cluster[0]))
        source = data.draw(st.sampled_from(clusters))[0]
        targets = [members for members, _ in clusters if members != source] + [None] * (len(source) > 1)
        if not targets:
            break
        target = data.draw(st.sampled_from(targets))
        most = len(source) - (target is None)
        moving = data.draw(st.permutations(sorted(source)))[: data.draw(st.integers(1, most))]
        new_type = data.draw(st.integers(0, 2))
        into = NEW if target is None else int(p.items["label"][min(target)])
        joined = transfer(p, np.array(moving, np.int32), len(moving), into, new_type)
        plain = reference.transfer(plain, moving, target, new_type)
        assert as_sets(p) == plain
        assert (p.items["label"][moving] == joined).all()


def test_a_block_is_the_smallest_power_of_two_that_holds_its_members():
    order = exposed(order_for)
    assert [order(size) for size in (1, 2, 3, 4, 5, 8, 9, 1_000)] == [0, 1, 2, 2, 3, 3, 4, 10]
