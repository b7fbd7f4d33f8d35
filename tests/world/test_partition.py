"""Clusterings: how they are built, how they change and change back, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.errors import ClusterIdError, DiffError, EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.kernels.clusterings.arrays import COMPACTIONS, FREE, LIVE, ORDERS, SPLITTABLE, TOP
from factorwise.rng import Stream
from factorwise.testing.templates import random_diff
from factorwise.world import moves
from factorwise.world.diff import NEW, Retype, Transfer
from factorwise.world.partition import Partition


def assert_sound(world):
    """Everything that the arrays promise."""
    p = world.arrays
    n, live, splittable = world.n_items, int(p.counters[LIVE]), int(p.counters[SPLITTABLE])
    for order, place in (("live", "live_at"), ("splittable", "splittable_at")):
        assert sorted(getattr(p, order).tolist()) == list(range(len(p.size)))
        np.testing.assert_array_equal(getattr(p, place)[getattr(p, order)], np.arange(len(p.size)))
    ids = p.live[:live].tolist()
    assert set(p.splittable[:splittable].tolist()) == {c for c in ids if world.size_of(c) > 1}
    assert sorted(set(world.labels.tolist())) == sorted(ids)
    taken = np.zeros(len(p.members), int)
    for cluster in ids:
        start, size, order = (int(getattr(p, name)[cluster]) for name in ("start", "size", "order"))
        assert 0 < size <= 1 << order
        assert start + (1 << order) <= p.counters[TOP] <= len(p.members)
        taken[start : start + (1 << order)] += 1
        members = p.members[start : start + size]
        assert (world.labels[members] == cluster).all()
        np.testing.assert_array_equal(p.slot[members], np.arange(start, start + size))
        assert 0 <= world.type_of(cluster) < world.n_types
    for order in range(ORDERS):
        block, seen = int(p.counters[FREE + order]), 0
        while block >= 0:
            taken[block : block + (1 << order)] += 1
            block = int(p.members[block])
            seen += 1
            assert seen <= len(p.members)
    assert taken.max() <= 1  # no two blocks overlap, in use or free
    assert sum(world.size_of(c) for c in ids) == n


@settings(max_examples=50)
@given(
    st.integers(1, 12).flatmap(lambda n: st.lists(st.integers(0, n - 1), min_size=n, max_size=n)),
    st.integers(1, 3),
    st.integers(0, 2**32),
)
def test_any_walk_can_be_walked_back(keys, n_types, seed):
    grouped = Partition.from_keys(keys)
    types = np.random.default_rng(seed).integers(0, n_types, grouped.n_clusters)
    world = Partition.from_labels(grouped.dense_labels(), types=types, n_types=n_types)
    assert_sound(world)
    if world.n_items == 1 and n_types == 1:
        return
    stream = Stream(seed)
    path = []
    for _ in range(25):
        before = world.canonical()
        diff = random_diff(stream, world)
        after = world.after(diff)
        assert world.canonical() == before
        back = world.apply(diff)
        assert world == after
        assert_sound(world)
        path.append((before, back))
    for before, back in reversed(path):
        world.apply(back)
        assert world.canonical() == before
        assert_sound(world)


def test_the_inverse_of_an_inverse_is_the_change_itself():
    world = Partition.from_labels([0, 0, 0, 1, 1], types=[1, 0], n_types=2)
    for diff in (
        Transfer((0, 1, 2), 0, 1),
        Transfer((3,), 1, 0),
        Transfer((0, 1), 0, NEW, 0),
        Retype(1, 0, 1),
    ):
        here, there = world.copy(), world.after(diff)
        back = here.apply(diff)
        again = here.apply(back)
        assert here == world
        here.apply(again)
        assert here == there


def test_arrays_in_arrays_out():
    world = Partition.from_labels(np.array([2, 0, 0, 1, 2], np.uint8), types=[0, 1, 1], n_types=2)
    assert world.n_items == 5
    assert world.n_clusters == 3
    assert world.n_splittable == 2
    assert world.dense_labels().tolist() == [0, 1, 1, 2, 0]
    assert world.dense_types().tolist() == [1, 0, 1]
    assert sorted(sorted(members.tolist()) for members in world.clusters()) == [[0, 4], [1, 2], [3]]
    assert world.cluster_of(3) == 1
    assert (world.size_of(2), world.type_of(2)) == (2, 1)


def test_worlds_are_equal_when_they_group_alike_whatever_the_numbers():
    first = Partition.from_labels([0, 1, 0])
    assert first == Partition.from_keys(["b", "a", "b"]) == Partition.from_clusters([[1], [2, 0]])
    assert first != Partition.from_labels([0, 1, 1])
    assert first != "something else"
    typed = Partition.from_labels([0, 1, 0], types=[1, 0], n_types=2)
    assert typed == Partition.from_labels([1, 0, 1], types=[0, 1], n_types=2)
    assert typed != Partition.from_labels([0, 1, 0], types=[0, 1], n_types=2)
    assert Partition.singletons(3) == Partition.from_labels([2, 1, 0])
    with pytest.raises(TypeError):
        hash(first)


def test_members_cannot_be_written_through_the_view():
    world = Partition.from_labels([0, 0])
    with pytest.raises(ValueError, match="read-only"):
        world.members(0)[0] = 1


def test_a_long_world_is_shown_short():
    assert repr(Partition.singletons(3)) == "Partition(3 items, 3 clusters: [0, 1, 2])"
    assert repr(Partition.singletons(40)).endswith("19], ...)")


def test_a_copy_changes_on_its_own():
    world = Partition.singletons(3)
    world.copy().apply(Transfer((0,), 0, 1))
    assert world.n_clusters == 3


@pytest.mark.parametrize("part", [[10, 20, 30], [item for item in range(60) if item not in (10, 20, 30)]])
def test_ids_stay_with_their_clusters(part):
    world = Partition.from_clusters([list(range(60)), [60, 61]], n_types=2)
    back = world.apply(moves.split(world, 0, part, new_type=1))
    assert sorted(world.members(0).tolist()) == sorted(set(range(60)) - set(part))
    assert world.type_of(world.cluster_of(part[0])) == 1
    world.apply(back)
    merged = world.apply(moves.merge(world, 0, 1))
    assert world.cluster_ids().tolist() == [1]
    world.apply(merged)
    assert sorted(world.members(1).tolist()) == [60, 61]
    assert_sound(world)


def test_a_merge_keeps_the_type_of_the_target_whichever_side_is_larger():
    for labels in ([0, 0, 0, 1], [0, 1, 1, 1]):
        world = Partition.from_labels(labels, types=[0, 1], n_types=2)
        back = world.apply(moves.merge(world, 0, 1))
        assert world.dense_types().tolist() == [1]
        world.apply(back)
        assert world == Partition.from_labels(labels, types=[0, 1], n_types=2)


def test_the_arena_is_compacted_when_it_is_full_and_nothing_is_lost():
    n = 24
    world, stream = Partition.singletons(n, n_types=2), Stream(4)
    labels = np.arange(n)
    for step in range(3_000):
        item, other = stream.below(n), stream.below(n)
        if world.cluster_of(item) != world.cluster_of(other):
            world.apply(moves.relocate(world, item, world.cluster_of(other)))
            labels[item] = labels[other]
        elif world.size_of(world.cluster_of(item)) > 1:
            world.apply(moves.relocate(world, item, NEW))
            labels[item] = n + step
    assert world.arrays.counters[COMPACTIONS] > 0
    assert world == Partition.from_labels(np.unique(labels, return_inverse=True)[1], n_types=2)
    assert_sound(world)


def test_thousands_of_items_split_and_merge_quickly():
    """Each change costs about the items that move: squared, this would take minutes."""
    n = 60_000
    world = Partition.from_labels(np.zeros(n, int))
    back = world.apply(moves.split(world, 0, range(n - 2)))
    world.apply(back)
    assert world.n_clusters == 1


BAD_LABELS = {
    "a gap": ([0, 2, 2], ClusterIdError, r"id 1 is missing: use Partition.from_keys"),
    "no zero": ([1, 1], ClusterIdError, "id 0 is missing"),
    "an enormous id": ([0, 10**13], ClusterIdError, "id 1 is missing"),
    "a negative id": ([0, -1], ClusterIdError, "id -1 is negative: use Partition.from_keys"),
    "reals": ([0.0, 1.0], ClusterIdError, r"dtype float64: build from any keys with Partition.from_keys"),
    "strings": (["a", "b"], ClusterIdError, "Partition.from_keys"),
    "truth values": ([True, False], ClusterIdError, "Partition.from_keys"),
    "nothing": ([], EmptyWorldError, "at least one item"),
    "a table": ([[0, 1]], ShapeError, r"one-dimensional, but the array has shape \(1, 2\)"),
}


@pytest.mark.parametrize("name", BAD_LABELS)
def test_bad_labels_are_refused_with_a_remedy(name):
    labels, error, message = BAD_LABELS[name]
    with pytest.raises(error, match=message):
        Partition.from_labels(labels)


BAD_WORLDS = {
    "keys of nothing": (lambda: Partition.from_keys([]), EmptyWorldError, "non-empty list"),
    "no singletons": (lambda: Partition.singletons(0), EmptyWorldError, "at least one item"),
    "no clusters": (lambda: Partition.from_clusters([]), ClusterIdError, "add missing items"),
    "an item twice": (lambda: Partition.from_clusters([[0], [0, 1]]), ClusterIdError, "once each"),
    "an item missing": (lambda: Partition.from_clusters([[0], [2]]), ClusterIdError, "clusters of their own"),
    "no types": (lambda: Partition.from_labels([0], n_types=0), InvalidArgumentError, "at least 1"),
    "a type too large": (
        lambda: Partition.from_labels([0, 1], types=[0, 2], n_types=2),
        InvalidArgumentError,
        "between 0 and 1, but run from 0 to 2: give n_types",
    ),
    "types without their number": (
        lambda: Partition.from_labels([0, 1], types=[0, 1]),
        InvalidArgumentError,
        "give n_types",
    ),
    "a negative type": (
        lambda: Partition.from_labels([0], types=[-1], n_types=2),
        InvalidArgumentError,
        "between 0 and 1",
    ),
    "too few types": (
        lambda: Partition.from_labels([0, 1], types=[0], n_types=2),
        ShapeError,
        "2 clusters need 2 types",
    ),
}


@pytest.mark.parametrize("name", BAD_WORLDS)
def test_bad_worlds_are_refused_with_a_remedy(name):
    build, error, message = BAD_WORLDS[name]
    with pytest.raises(error, match=message):
        build()


BAD_DIFFS = {
    "no items": (Transfer((), 0, 1), "at least one item, and each once"),
    "an item twice": (Transfer((0, 0), 0, 1), "at least one item, and each once"),
    "an item from elsewhere": (Transfer((0, 3), 0, NEW), "item 3 is in cluster 1, not in source 0"),
    "a source that is not there": (Transfer((0,), 7, 1), "cluster 7 does not exist.*look up the current id"),
    "a target that is not there": (Transfer((0,), 0, 3), "cluster 3 does not exist"),
    "a negative target": (Transfer((0,), 0, -2), "cluster -2 does not exist"),
    "the cluster it is in": (Transfer((0,), 0, 0), "both cluster 0: leave this diff out"),
    "all to a new cluster": (Transfer((0, 1, 2), 0, NEW), "changes nothing: leave this diff out"),
    "a new type that is not there": (Transfer((0,), 0, NEW, 2), "new_type 2 is not between 0 and 1"),
    "retyping what is not there": (Retype(5, 0, 1), "cluster 5 does not exist"),
    "retyping from another type": (Retype(0, 1, 0), "has type 0.*Build it with moves.retype"),
    "retyping to no type": (Retype(0, 0, 2), "types run from 0 to 1"),
}


@pytest.mark.parametrize("name", BAD_DIFFS)
def test_diffs_that_do_not_fit_are_refused_and_change_nothing(name):
    diff, message = BAD_DIFFS[name]
    world = Partition.from_labels([0, 0, 0, 1], n_types=2)
    before = world.canonical()
    with pytest.raises(DiffError, match=message):
        world.apply(diff)
    assert world.canonical() == before


def test_an_item_that_is_not_there_is_named():
    world = Partition.singletons(2)
    for item in (-1, 2):
        with pytest.raises(InvalidArgumentError, match=f"item {item} does not exist: items run from 0 to 1"):
            world.cluster_of(item)
        with pytest.raises(InvalidArgumentError, match=f"item {item} does not exist"):
            world.apply(Transfer((item,), 0, 1))


def test_moves_build_the_diffs_of_their_names():
    world = Partition.from_labels([0, 0, 1], n_types=2)
    assert moves.relocate(world, 2, 0) == Transfer((2,), 1, 0)
    assert moves.relocate(world, 0, NEW, new_type=1) == Transfer((0,), 0, NEW, 1)
    assert moves.merge(world, 0, 1) == Transfer((0, 1), 0, 1)
    assert moves.split(world, 0, [1]) == Transfer((1,), 0, NEW)
    assert moves.retype(world, 1, 1) == Retype(1, 0, 1)
    with pytest.raises(DiffError, match="name two clusters"):
        moves.merge(world, 0, 0)
    for part in ([], [0, 1]):
        with pytest.raises(DiffError, match="name at least one, and leave at least one"):
            moves.split(world, 0, part)
