"""The arrays of a clustering against sets of sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.clusterings.arrays import LIVE, NEW, make_clustering, order_for, transfer
from reference import arrays as reference


def as_sets(p):
    """The clustering that the arrays stand for."""
    clusters = []
    for cluster in p.live[: p.counters[LIVE]].tolist():
        start, size = int(p.start[cluster]), int(p.size[cluster])
        clusters.append((frozenset(p.members[start : start + size].tolist()), int(p.type[cluster])))
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
    p = make_clustering(labels, types, 3)
    assert as_sets(p) == reference.fill_partition(labels.tolist(), types.tolist())


@given(clusterings(), st.data())
def test_transfers_move_the_items_they_name_and_no_others(case, data):
    labels, types = case
    p = make_clustering(labels, types, 3)
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
        into = NEW if target is None else int(p.label[min(target)])
        joined = transfer(p, np.array(moving, np.int32), len(moving), into, new_type)
        plain = reference.transfer(plain, moving, target, new_type)
        assert as_sets(p) == plain
        assert (p.label[moving] == joined).all()


def test_a_block_is_the_smallest_power_of_two_that_holds_its_members():
    assert [order_for(size) for size in (1, 2, 3, 4, 5, 8, 9, 1_000)] == [0, 1, 2, 2, 3, 3, 4, 10]
