"""Matchings, permutations and trees: what they hold, what they refuse, and that diffs are undone."""

import numpy as np
import pytest

import factorwise as fw
from factorwise.errors import DiffError, EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.rng import Stream
from factorwise.testing.templates import random_diff

Change, Changes = fw.Change, fw.Changes
WORLDS = {
    "matching": fw.Matching(3, 2, candidates=[(0, 0), (0, 1), (1, 1), (2, 0)]),
    "permutation": fw.Permutation([2, 0, 1, 3]),
    "tree": fw.Tree([None, 0, 0, 1]),
}


@pytest.mark.parametrize("name", WORLDS)
def test_every_diff_is_undone_by_what_apply_returns(name):
    here, stream = WORLDS[name].copy(), Stream(0)
    for _ in range(50):
        before = here.copy()
        back = here.apply(random_diff(stream, here))
        there = here.copy()
        assert there != before
        assert there.after(back) == before
        for array, whole in zip(there.after(back).arrays, before.arrays, strict=True):
            np.testing.assert_array_equal(array, whole)


@pytest.mark.parametrize("name", WORLDS)
def test_a_diff_that_fails_half_way_leaves_the_world_as_it_was(name):
    world = WORLDS[name].copy()
    first = random_diff(Stream(1), world).changes[0]
    with pytest.raises(DiffError, match="the item is at"):
        world.apply(Changes((first, first)))
    assert world == WORLDS[name]
    with pytest.raises(DiffError, match="targets run from 0 to"):
        world.apply(Changes((Change(0, int(world.values[0]), 99),)))


def count_matchings(allowed, used=()):
    """Ways to pair the rows of a table of what is allowed, by definition."""
    if not len(allowed):
        return 1
    rest = count_matchings(allowed[1:], used)
    return rest + sum(
        count_matchings(allowed[1:], (*used, right))
        for right in np.flatnonzero(allowed[0])
        if right not in used
    )


def test_all_worlds_are_as_many_as_counting_says():
    allowed = np.array([[1, 1], [0, 1], [1, 0]])
    assert len(fw.exact.all_worlds(WORLDS["matching"])) == count_matchings(allowed)
    assert len(fw.exact.all_worlds(fw.Matching(3, 3))) == 34
    assert len(fw.exact.all_worlds(WORLDS["permutation"])) == 24
    assert len(fw.exact.all_worlds(fw.Tree.flat(4))) == 5**3  # Cayley: trees over five nodes
    with pytest.raises(InvalidArgumentError, match="more than 10 worlds"):
        fw.exact.all_worlds(fw.Tree.flat(4), limit=10)


def test_what_the_worlds_say_of_themselves():
    world = fw.Matching(3, 2, pairs=[(0, 1), (2, 0)])
    assert [world.partner(item) for item in range(3)] == [1, None, 0]
    assert world.pairs().tolist() == [[0, 1], [2, 0]]
    assert fw.Permutation([2, 0, 1]).order().tolist() == [2, 0, 1]
    tree = fw.Tree([None, 0, 0, 1])
    assert (tree.children(), tree.children(0), tree.parent(3)) == ([0], [1, 2], 1)
    assert "Tree([4, 0, 0, 1])" in repr(tree)
    assert "<table" in tree._repr_html_()


@pytest.mark.parametrize(
    ("make", "fault", "words"),
    [
        (lambda: fw.Matching(0, 2), EmptyWorldError, "items on both sides"),
        (lambda: fw.Matching(2, 2, pairs=[(0, 5)]), InvalidArgumentError, "0 to 1"),
        (lambda: fw.Matching(2, 2, pairs=[(0, 1), (1, 1)]), InvalidArgumentError, "cannot be made"),
        (lambda: fw.Matching(2, 2, pairs=[(0, 1), (0, 0)]), InvalidArgumentError, "cannot be made"),
        (lambda: fw.Matching(2, 2, candidates=[0, 1]), ShapeError, "shape"),
        (lambda: fw.Permutation([0, 0]), InvalidArgumentError, "once each"),
        (lambda: fw.Permutation([]), InvalidArgumentError, "once each"),
        (lambda: fw.Permutation([[0]]), ShapeError, "one number for each item"),
        (lambda: fw.Tree([1, 0]), InvalidArgumentError, "its own ancestor"),
        (lambda: fw.Tree([7]), InvalidArgumentError, "for the root"),
        (lambda: fw.Tree([]), EmptyWorldError, "at least one item"),
        (lambda: fw.TargetWorld().choices(), InvalidArgumentError, "use Metropolis"),
    ],
)
def test_bad_worlds_are_refused(make, fault, words):
    with pytest.raises(fault, match=words):
        make()


def test_bad_templates_are_refused():
    make = fw.templates.TargetTemplate
    with pytest.raises(ShapeError, match="a row"):
        make("t", [(0, 1)], [1.0, 2.0])
    with pytest.raises(ShapeError, match="whole numbers from 0"):
        make("t", [(0, -1)], [1.0])
    with pytest.raises(InvalidArgumentError, match="twice"):
        make("t", [(0, 1), (0, 1)], [1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="names"):
        make("t", [(0, 1)], [1.0], ["a", "b"])
    with pytest.raises(ShapeError, match="two dimensions"):
        make.from_table("t", [1.0])
    with pytest.raises(ShapeError, match="one number for each"):
        fw.learning.TargetPreference([[0]])
