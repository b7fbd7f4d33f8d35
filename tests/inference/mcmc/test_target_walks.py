"""Walks over matchings, permutations and trees against exact enumeration; compiled and interpreted alike."""

import time

import numpy as np
import pytest

import factorwise as fw
from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError
from factorwise.inference.mcmc import (
    Exchange,
    Gibbs,
    Insert,
    Metropolis,
    Mixture,
    Reattach,
    Rematch,
    Walk,
    WorldGibbs,
)
from factorwise.model.templates import FollowTemplate, TargetTemplate
from factorwise.rng import Stream
from factorwise.testing import check_template, check_walk, proposer_checks
from own_worlds_page import load_page

PAIRS = [(a, b) for a in range(4) for b in range(4) if a != b]


def make_case(name):
    """Return a world, a model with two kinds of statistics, and the moves there are."""
    rng = np.random.default_rng(3)
    if name == "matching":
        world = fw.Matching(3, 3, candidates=[(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1)])
        pairs = [(0, 0), (1, 2), (2, 1), (1, 3), (2, 3)]  # not all have statistics; 3 is no partner
        templates = [
            TargetTemplate("pairs", pairs, rng.normal(size=(5, 2))),
            TargetTemplate.from_table("table", rng.normal(size=(3, 4))),
        ]
        return world, fw.Model(templates, [1.0, -0.5, 0.7]), [Rematch()]
    if name == "permutation":
        table = TargetTemplate.from_table("table", rng.normal(size=(4, 4)))
        follow = FollowTemplate("follow", PAIRS, rng.normal(size=(12, 2)))
        moves = [Exchange(), Insert(3), Mixture([Exchange(), Insert(2)])]
        return fw.Permutation.identity(4), fw.Model([table, follow], [1.0, 0.6, -0.8]), moves
    table = TargetTemplate.from_table("table", rng.normal(size=(3, 4)))
    return fw.Tree.flat(3), fw.Model([table], [1.3]), [Reattach()]


CASES = ["matching", "permutation", "tree"]
ENGINES = {"matching": "compiled", "permutation": "plain", "tree": "plain"}  # the test below compiles another


@pytest.mark.parametrize("name", CASES)
def test_every_move_leaves_the_exact_distribution_invariant(name):
    world, model, moves = make_case(name)
    worlds = fw.exact.all_worlds(world)
    for kernel in [*(Metropolis(model, move) for move in moves), WorldGibbs(model)]:
        check_walk(kernel, worlds)


@pytest.mark.parametrize("name", CASES)
def test_proposers_declare_what_they_draw(name):
    world, _, moves = make_case(name)
    for move in moves:
        for check in proposer_checks(move, fw.exact.all_worlds(world)[:6]):
            check()


@pytest.mark.parametrize("name", CASES)
def test_templates_agree_with_the_whole_world(name):
    world, model, _ = make_case(name)
    for template in model.templates:
        check_template(template, world)


@pytest.mark.parametrize("name", CASES)
def test_compiled_walks_have_the_trace_of_interpreted_ones(name):
    world, model, moves = make_case(name)
    for kernel in [Metropolis(model, moves[-1]), WorldGibbs(model)]:
        compiled, interpreted = Walk(kernel, world), Walk(kernel, world, interpreted=True)
        streams = Stream(5), Stream(5)
        for _ in range(20):
            changed = [
                walk.advance(stream, 0.7, 15)
                for walk, stream in zip((compiled, interpreted), streams, strict=True)
            ]
            assert changed[0] == changed[1]
            assert compiled.view == interpreted.view
        assert compiled.score == pytest.approx(model.score(compiled.world), abs=1e-9)
        assert streams[0].bits() == streams[1].bits()


@pytest.mark.parametrize("name", CASES)
def test_a_step_of_gibbs_decides_like_the_walk(name):
    world, model, _ = make_case(name)
    kernel = WorldGibbs(model)
    walk, stream, other = Walk(kernel, world, interpreted=True), Stream(2), Stream(2)
    here = world.copy()
    for _ in range(40):
        step = kernel.step(stream, here)
        if step.accepted:
            here.apply(step.diff)
        walk.advance(other, 1.0, 1)
        assert walk.view == here


@pytest.mark.parametrize("name", CASES)
def test_samplerank_learns_where_every_item_belongs(name):
    world, _, moves = make_case(name)
    worlds = fw.exact.all_worlds(world)
    n, targets = world.n_items, world.n_targets
    indicator = TargetTemplate("where", np.argwhere(np.ones((n, targets), bool)), np.eye(n * targets))
    truth = worlds[-1]
    training = fw.learning.TrainingWorld(
        model=fw.Model([indicator]),
        proposer=moves[0],
        start=world,
        preference=fw.learning.TargetPreference(truth),
    )
    learned = fw.learning.SampleRank().fit(
        [training], passes=2, steps=300, engine=ENGINES[name], progress=False
    )
    best = fw.exact.WorldEnumeration(fw.Model([indicator], learned.weights), worlds).best
    assert best == truth
    assert learned.updates > 0


def test_learning_gives_the_same_weights_compiled_and_interpreted():
    world, model, moves = make_case("permutation")
    training = fw.learning.TrainingWorld(
        model=model,
        proposer=moves[-1],
        start=world,
        preference=fw.learning.TargetPreference([3, 1, -1, 0]),
    )
    weights = [
        fw.learning.SampleRank().fit([training], passes=2, steps=200, engine=engine, progress=False).weights
        for engine in ("compiled", "plain")
    ]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-9)
    assert weights[0].any()


def test_samples_of_a_matching_have_the_exact_marginals():
    """The largest of 12 errors over 4 x 4,000 draws stays under 0.04: false alarm below 1e-4."""
    world, model, moves = make_case("matching")
    exact = fw.exact.WorldEnumeration(model, fw.exact.all_worlds(world))
    samples = fw.sample(Metropolis(model, moves[0]), world, draws=4_000, thin=10, progress=False)
    assert np.abs(samples.label_marginals() - exact.marginals()).max() < 0.04
    assert samples.best == exact.best


def test_the_wrong_kernel_or_template_is_refused():
    world, model, _ = make_case("matching")
    with pytest.raises(InvalidArgumentError, match="WorldGibbs for other worlds"):
        fw.sample(Gibbs(model), world)
    with pytest.raises(InvalidArgumentError, match="starts from a world"):
        fw.sample(WorldGibbs(model), [1, 2])
    follow = fw.Model([FollowTemplate("follow", [(0, 1)], [1.0])], [1.0])
    with pytest.raises(TemplateError, match="give a Permutation"):
        Walk(Metropolis(follow, Rematch()), world)
    with pytest.raises(ShapeError, match="the truth has 2 items"):
        fw.learning.TargetPreference([0, 1]).watch(world)
    with pytest.raises(InvalidArgumentError, match="reach"):
        Insert(0)


def test_a_world_written_from_the_outside_walks_as_fast_as_the_shipped_one():
    page = load_page()
    n = 200
    rng = np.random.default_rng(0)
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    model = fw.Model([FollowTemplate("follow", pairs, rng.normal(size=len(pairs)))], [1.0])
    walks = [
        Walk(Metropolis(model, Exchange()), fw.Permutation.identity(n)),
        Walk(Metropolis(model, page["ExchangeTwo"]()), page["Order"](np.arange(n))),
    ]
    times = np.zeros((4, 2))
    streams = [Stream(1), Stream(1)]
    for row in times:
        for k, walk in enumerate(walks):
            begun = time.thread_time()
            walk.advance(streams[k], 1.0, 50_000)
            row[k] = time.thread_time() - begun
    np.testing.assert_array_equal(walks[0].view.values, walks[1].view.values)
    shipped, own = times.min(axis=0)
    assert own < 3.0 * shipped
