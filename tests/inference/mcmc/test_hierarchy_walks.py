"""Walks over hierarchies: every move exact, bags per node right, compiled and interpreted alike."""

import numpy as np
import pytest

import factorwise as fw
from factorwise.errors import DiffError, EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.inference.mcmc import Metropolis, Mixture, Regraft, RegraftToCandidate, Regroup, Walk
from factorwise.model.templates import HierarchyCounts, SubtreeCosine
from factorwise.rng import Stream
from factorwise.testing import check_template, check_walk, proposer_checks
from factorwise.testing.templates import random_diff

PAIRS = [(0, 1), (1, 2), (0, 3), (2, 3)]
CANDIDATES = RegraftToCandidate.from_pairs(4, PAIRS)
MOVES = {
    "anywhere": Regraft(),
    "candidates": CANDIDATES,
    "groups": Mixture([Regroup(3), Regraft()]),
}
ALL = Mixture([Regroup(4), CANDIDATES, Regraft()])


def make_model(n=4):
    rng = np.random.default_rng(1)
    words, names = rng.random((n, 3)), rng.normal(size=(n, 2))
    names[1] = 0.0  # an item of which nothing is known
    templates = [SubtreeCosine("words", words), SubtreeCosine("names", names), HierarchyCounts()]
    return fw.Model(templates, [1.4, 0.8, 0.3, -0.6])


def test_all_hierarchies_are_as_many_as_counting_says():
    # trees over labelled leaves: 1, 1, 4, 26; a hierarchy is one of them, or the children of its root
    assert [len(fw.exact.all_worlds(fw.Hierarchy.singletons(n))) for n in (1, 2, 3, 4)] == [1, 2, 8, 52]


@pytest.mark.parametrize("name", MOVES)
def test_every_move_leaves_the_exact_distribution_invariant(name):
    worlds = fw.exact.all_worlds(fw.Hierarchy.singletons(4))
    check_walk(Metropolis(make_model(), MOVES[name]), worlds)


def test_moves_that_add_and_drop_inner_nodes_are_exact_alone():
    worlds = fw.exact.all_worlds(fw.Hierarchy.singletons(4))
    check_walk(Metropolis(make_model(), Regroup(4)), worlds)


@pytest.mark.parametrize("name", MOVES)
def test_proposers_declare_what_they_draw(name):
    for check in proposer_checks(MOVES[name], fw.exact.all_worlds(fw.Hierarchy.singletons(4))[::11]):
        check()


def test_templates_agree_with_the_whole_world():
    for template in make_model(6).templates:
        check_template(template, fw.Hierarchy([[0, [1, 2]], 3, [4, 5]]))


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_gains_add_up_along_a_walk_over_many_items(engine):
    """What is kept per node stays right: the score by gains is the score by definition."""
    model = make_model(12)
    proposer = Mixture([Regraft(), Regroup(5)])
    walk = Walk(Metropolis(model, proposer), fw.Hierarchy.singletons(12), interpreted=engine == "plain")
    stream, begun = Stream(0), walk.score
    assert begun == pytest.approx(model.score(walk.view))
    for _ in range(20):
        walk.advance(stream, 2.0, 60)
        assert walk.score == pytest.approx(model.score(walk.view), abs=1e-9)
        assert fw.Hierarchy.singletons(12).layout_key() == walk.view.layout_key()


def test_compiled_walks_have_the_trace_of_interpreted_ones():
    model, world = make_model(), fw.Hierarchy([[0, 1], 2, 3])
    kernel = Metropolis(model, ALL)
    compiled, interpreted = Walk(kernel, world), Walk(kernel, world, interpreted=True)
    streams = Stream(5), Stream(5)
    for _ in range(20):
        compiled.advance(streams[0], 0.7, 15)
        interpreted.advance(streams[1], 0.7, 15)
        assert compiled.view == interpreted.view
    assert streams[0].bits() == streams[1].bits()
    assert compiled.factors_seen == interpreted.factors_seen > 0


def test_every_diff_is_undone_with_the_numbers_of_inner_nodes():
    here, stream = fw.Hierarchy([[0, [1, 2]], 3, 4]), Stream(0)
    for _ in range(100):
        before = here.copy()
        back = here.apply(random_diff(stream, here))
        assert here != before
        assert here.after(back) == before
        np.testing.assert_array_equal(here.after(back).values, before.values)


def test_samples_tell_which_items_are_one_entity():
    """The error of 4 x 2,000 draws stays under 0.05: false alarm below 1e-4."""
    model, start = make_model(), fw.Hierarchy.singletons(4)
    exact = fw.exact.WorldEnumeration(model, fw.exact.all_worlds(start))
    kernel = Metropolis(model, ALL)
    samples = fw.sample(kernel, start, draws=2_000, thin=10, pairs=[(0, 1), (1, 3)], progress=False)
    expected = [
        sum(
            p
            for p, world in zip(exact.probabilities, exact.worlds, strict=True)
            if world.labels[a] == world.labels[b]
        )
        for a, b in ((0, 1), (1, 3))
    ]
    np.testing.assert_allclose(samples.co_clustering(), expected, atol=0.05)
    assert model.score(samples.best) == pytest.approx(exact.scores.max())


def test_what_the_world_says_of_itself():
    world = fw.Hierarchy([[0, [1, 2]], [3], 4])
    assert (world.n_items, world.n_clusters, world.n_groups) == (5, 3, 2)
    assert world.labels.tolist() == [0, 0, 0, 1, 2]
    assert world == fw.Hierarchy([4, 3, [[2, 1], 0]])
    assert world != fw.Hierarchy([[0, 1, 2], 3, 4])
    assert fw.Hierarchy.from_labels([5, 5, 7]) == fw.Hierarchy([[0, 1], 2])
    assert "groups: [0, 1, 2], [1, 2]" in repr(world)
    assert "<table" in world._repr_html_()


@pytest.mark.parametrize(
    ("make", "fault", "words"),
    [
        (lambda: fw.Hierarchy([]), EmptyWorldError, "at least one item"),
        (lambda: fw.Hierarchy([[0, 0]]), InvalidArgumentError, "once each"),
        (lambda: fw.Hierarchy([0, 2]), InvalidArgumentError, "once each"),
        (lambda: fw.Hierarchy([[0, [1]]]), InvalidArgumentError, "at least two members"),
        (lambda: fw.Hierarchy([["a"]]), InvalidArgumentError, "once each, but contains"),
        (lambda: SubtreeCosine("w", [1.0]), ShapeError, "a row of finite numbers"),
        (lambda: make_model().score(fw.Hierarchy([0, 1])), ShapeError, "vectors of 4 items"),
        (
            lambda: make_model().score(fw.Tree.flat(4)),
            InvalidArgumentError,
            "of the kind Hierarchy, but a Tree",
        ),
        (lambda: RegraftToCandidate.from_pairs(3, [(0, 3)]), ShapeError, "from 0 to 2"),
        (
            lambda: Walk(Metropolis(make_model(3), CANDIDATES), fw.Hierarchy([0, 1, 2])),
            ShapeError,
            "those of 4",
        ),
        (
            lambda: Walk(
                Metropolis(make_model(4), RegraftToCandidate(np.array([0, 1, 1, 1, 1]), np.array([9]))),
                fw.Hierarchy([0, 1, 2, 3]),
            ),
            ShapeError,
            "candidate",
        ),
        (lambda: Regroup(1), InvalidArgumentError, "at least 2"),
        (lambda: fw.Hierarchy([0, 1]).apply(fw.Changes((fw.Change(2, 3, 0),))), DiffError, "the item is at"),
        (lambda: fw.Hierarchy([0, 1]).apply(fw.Changes((fw.Change(0, 3, 4),))), DiffError, "not allow"),
    ],
)
def test_what_does_not_fit_is_refused(make, fault, words):
    with pytest.raises(fault, match=words):
        make()
