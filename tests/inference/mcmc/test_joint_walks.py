"""Walks over worlds side by side: exact, compiled and interpreted alike, and worth it."""

import itertools

import numpy as np
import pytest

import factorwise as fw
from factorwise.errors import DiffError, InvalidArgumentError, NoCompiledFormError, ShapeError
from factorwise.inference import mcmc
from factorwise.inference.mcmc import Metropolis, Mixture, Together, Walk, Within, WorldGibbs
from factorwise.model import templates
from factorwise.rng import Stream
from factorwise.testing import check_template, check_walk, proposer_checks
from factorwise.testing.templates import random_diff

N = 3
COLUMN = fw.Column("kind", fw.Domain("kind", ["a", "b"]), np.full(N, -1, np.int32))
VARIABLES = fw.Variables([COLUMN])
RELABEL = Within("kinds", mcmc.UniformRelabel())


def make_case(types=1, functions=False):
    """Return all worlds of a clustering with labels of its items, and a model of both.

    functions
        Whether templates of plain functions are among them, which take seconds to compile.
    """
    worlds = [
        fw.Joint(entities=partition, kinds=fw.Assignment(VARIABLES, list(values)))
        for partition in fw.exact.all_partitions(N, types)
        for values in itertools.product(range(2), repeat=N)
    ]
    pairs = [(0, 1), (0, 2), (1, 2)]
    edges = templates.EdgeTemplate("edges", N, pairs, np.eye(3), ["0-1", "0-2", "1-2"])
    listed = [
        templates.Within("kinds", templates.Bias(COLUMN)),
        templates.LabelAgreement("entities", "kinds"),
        templates.Within("entities", edges),
    ]
    if functions:
        listed.append(templates.Within("entities", templates.ClusterSize()))
    if types > 1:
        listed.append(templates.TypeLabels("entities", "kinds", types, 2))
    size = sum(template.size for template in listed)
    return worlds, fw.Model(listed, np.random.default_rng(2).normal(size=size))


def relocate(types=1):
    moves = [mcmc.RelocateToItem(), mcmc.RelocateToNew()] + [mcmc.RetypeCluster()] * (types > 1)
    return Within("entities", mcmc.PartitionMixture(moves))


def test_every_move_leaves_the_joint_distribution_invariant():
    worlds, model = make_case()
    split = Within("entities", mcmc.PartitionMixture([mcmc.Merge(), mcmc.Split()]))
    kernels = [
        Metropolis(model, Mixture([split, Within("kinds", mcmc.LocalRelabel(model))])),
        Metropolis(model, Mixture([split, Within("kinds", mcmc.ResampleSpan(model, [range(3)]))])),
        Metropolis(model, Mixture([relocate(), RELABEL, Together([relocate(), RELABEL])])),
        WorldGibbs(model),
    ]
    for kernel in kernels:
        check_walk(kernel, worlds)


def labelled_pairs(n=N, labels=2):
    pairs = [(0, 1, 0, 0), (0, 1, 1, 0), (0, 2, 1, 1), (1, 2, 0, 1)]
    return templates.LabelledPairs("entities", "kinds", pairs, [1.5, -0.5, 0.75, 2.0], n, labels)


def test_pairs_count_by_the_labels_of_both():
    worlds, _ = make_case()
    template = labelled_pairs()
    model = fw.Model([templates.Within("kinds", templates.Bias(COLUMN)), template], [0.3, -0.2, 1.0, -0.4])
    for world in worlds:
        check_template(template, world)
    together = fw.Joint(entities=fw.Partition.from_keys([0, 0, 0]), kinds=fw.Assignment(VARIABLES, [1, 0, 1]))
    assert template.statistics(together).to_dense(2).tolist() == [-0.5 + 0.75 + 2.0, 3.0]
    for kernel in (Metropolis(model, Mixture([relocate(), RELABEL])), WorldGibbs(model)):
        check_walk(kernel, worlds)


@pytest.mark.parametrize(
    ("pairs", "scores", "fault"),
    [
        ([(1, 0, 0, 0)], [1.0], "the smaller first"),
        ([(0, 3, 0, 0)], [1.0], "two of 3 items"),
        ([(0, 1, 0, 2)], [1.0], "two of 2 labels"),
        ([(0, 1, 0, 1)], [1.0, 2.0], "needs a score for each"),
    ],
)
def test_labelled_pairs_that_are_not_there_are_refused(pairs, scores, fault):
    with pytest.raises(ShapeError, match=fault):
        templates.LabelledPairs("entities", "kinds", pairs, scores, N, 2)


def test_any_worlds_lie_side_by_side():
    rng = np.random.default_rng(0)
    parts = {
        "pairs": fw.Matching(2, 2),
        "order": fw.Permutation.identity(3),
        "groups": fw.Hierarchy([0, 1, 2]),
    }
    worlds = [
        fw.Joint(**dict(zip(parts, each, strict=True)))
        for each in itertools.product(*(fw.exact.all_worlds(part) for part in parts.values()))
    ]
    table, follow = templates.TargetTemplate, templates.FollowTemplate("f", [(0, 1), (1, 0)], [0.8, -0.5])
    inner = [
        ("pairs", table.from_table("pairs", rng.normal(size=(2, 3)))),
        ("order", follow),
        ("groups", templates.SubtreeCosine("groups", rng.random((3, 2)))),
    ]
    model = fw.Model([templates.Within(name, template) for name, template in inner], [1.0, 0.7, 1.3])
    moves = [("pairs", mcmc.Rematch()), ("order", mcmc.Exchange()), ("groups", mcmc.Regraft())]
    listed = [Within(name, move) for name, move in moves]
    check_walk(Metropolis(model, Mixture(listed)), worlds)


def test_labels_of_clusters_are_a_part_of_it():
    worlds, model = make_case(types=2)
    candidate = mcmc.RelocateToCandidate.from_pairs(N, [(0, 1), (1, 2)])
    moves = [
        mcmc.PartitionMixture([mcmc.RelocateToItem(), mcmc.RelocateToCluster(), candidate]),
        mcmc.PartitionMixture([mcmc.Merge(), mcmc.Split()]),
        mcmc.SplitMerge(),
        mcmc.RetypeCluster(),
    ]
    proposers = [Mixture([relocate(2), RELABEL]), *(Within("entities", move) for move in moves)]
    for kernel in [*(Metropolis(model, proposer) for proposer in proposers), WorldGibbs(model)]:
        check_walk(kernel, worlds, irreducible=False)


@pytest.mark.parametrize("types", [1, 2])
def test_templates_agree_with_the_whole_world(types):
    worlds, model = make_case(types, functions=True)
    for template in model.templates:
        check_template(template, worlds[0])


def test_proposers_declare_what_they_draw():
    worlds, _ = make_case()
    for proposer in [Mixture([relocate(), RELABEL]), Together([relocate(), RELABEL])]:
        for check in proposer_checks(proposer, worlds[::13]):
            check()


def test_compiled_walks_have_the_trace_of_interpreted_ones():
    worlds, model = make_case(types=2)
    every = Mixture([relocate(2), RELABEL, Together([relocate(2), RELABEL])])
    for kernel in [Metropolis(model, every), WorldGibbs(model)]:
        compiled, interpreted = Walk(kernel, worlds[0]), Walk(kernel, worlds[0], interpreted=True)
        streams = Stream(5), Stream(5)
        for _ in range(20):
            compiled.advance(streams[0], 0.7, 15)
            interpreted.advance(streams[1], 0.7, 15)
            assert compiled.view == interpreted.view
        assert compiled.score == pytest.approx(model.score(compiled.world), abs=1e-9)


def test_a_step_of_gibbs_decides_like_the_walk():
    worlds, model = make_case()
    kernel = WorldGibbs(model)
    walk, stream, other = Walk(kernel, worlds[0], interpreted=True), Stream(2), Stream(2)
    here = worlds[0].copy()
    for _ in range(30):
        step = kernel.step(stream, here)
        if step.accepted:
            here.apply(step.diff)
        walk.advance(other, 1.0, 1)
        assert walk.view == here


def test_both_worlds_are_learned_together():
    worlds, model = make_case(types=2)
    preference = fw.learning.JointPreference(
        {
            "entities": fw.learning.TruthPreference([0, 0, 1], "pairwise"),
            "kinds": fw.learning.AccuracyPreference([0, 0, 0]),
        },
        shares={"kinds": 2.0},
    )
    training = fw.learning.TrainingWorld(
        model=model, proposer=Mixture([relocate(2), RELABEL]), start=worlds[0], preference=preference
    )
    learned = [
        fw.learning.SampleRank().fit([training], passes=4, steps=200, engine=engine, progress=False)
        for engine in ("compiled", "plain")
    ]
    np.testing.assert_allclose(learned[0].weights, learned[1].weights, rtol=1e-9)
    best = fw.exact.WorldEnumeration(fw.Model(model.templates, learned[0].weights), worlds).best
    assert best.part("kinds").values.tolist() == [0, 0, 0]
    assert best.part("entities").dense_labels().tolist() == [0, 0, 1]


def test_a_joint_judge_is_the_judge_of_its_world_whatever_else_changes():
    here, stream = make_case(types=2)[0][0].copy(), Stream(3)
    own = fw.learning.TruthPreference([0, 0, 1], "rand")
    judge = fw.learning.JointPreference({"entities": own}).watch(here)
    for _ in range(60):
        diff, alone = random_diff(stream, here), here.part("entities").copy()
        expected, by_itself = 0.0, own.watch(alone)
        for inner in (inner for name, inner in diff.parts if name == "entities"):
            expected += by_itself.gain(alone, inner)
            by_itself.applied(alone, inner)
            alone.apply(inner)
        assert judge.gain(here, diff) == pytest.approx(expected, abs=1e-12)
        judge.applied(here, diff)
        here.apply(diff)


def test_a_judge_that_runs_as_it_is_written_says_the_same():
    worlds, _ = make_case()
    accuracy = fw.learning.AccuracyPreference([0, 1, 1])
    judge = fw.learning.JointPreference({"kinds": accuracy}, {"kinds": 3.0}).watch(worlds[0])
    relabel = worlds[0].part("kinds").relabel([1], [1])
    diff = fw.JointDiff((("kinds", relabel),))
    assert judge.gain(worlds[0], diff) == pytest.approx(1.0)
    judge.applied(worlds[0], diff)
    assert judge.value == pytest.approx(2 / 3)


def test_samples_tell_of_all_worlds():
    """Errors of 4 x 2,000 draws under 0.06: false alarm below 1e-4."""
    worlds, model = make_case(types=2)
    exact = fw.exact.WorldEnumeration(model, worlds)
    samples = fw.sample(
        Metropolis(model, Mixture([relocate(2), RELABEL])),
        worlds[0],
        draws=2_000,
        thin=20,
        pairs=[(0, 1)],
        progress=False,
    )
    labels = [world.part("kinds").values for world in worlds]
    clusters = [world.part("entities").labels for world in worlds]
    together = sum(p for p, label in zip(exact.probabilities, clusters, strict=True) if label[0] == label[1])
    ones = exact.probabilities @ np.array(labels)
    assert samples.co_clustering()[0] == pytest.approx(together, abs=0.06)
    np.testing.assert_allclose(samples.label_marginals()[:, 1], ones, atol=0.06)


def test_diffs_of_several_worlds_are_undone_and_refused_whole():
    worlds, _ = make_case()
    world = worlds[0].copy()
    split = fw.Transfer((0,), source=0, target=fw.NEW)
    relabel = world.part("kinds").relabel([0], [1])
    back = world.apply(fw.JointDiff((("entities", split), ("kinds", relabel))))
    assert world != worlds[0]
    world.apply(back)
    assert world == worlds[0]
    with pytest.raises(DiffError):
        world.apply(fw.JointDiff((("entities", split), ("kinds", relabel), ("kinds", relabel))))
    assert world == worlds[0]
    assert "Joint(entities=Partition" in repr(world)
    assert world._repr_html_().count("<table") == 2


def test_what_does_not_fit_is_refused():
    worlds, model = make_case()
    with pytest.raises(InvalidArgumentError, match="needs worlds"):
        fw.Joint()
    with pytest.raises(InvalidArgumentError, match="not a world"):
        fw.Joint(entities=[1, 2])
    with pytest.raises(InvalidArgumentError, match="give it first"):
        fw.Joint(a=fw.Permutation([0]), b=fw.Partition.singletons(2, n_types=2))
    with pytest.raises(InvalidArgumentError, match="no world is called 'kind'"):
        Walk(Metropolis(model, Within("kind", mcmc.UniformRelabel())), worlds[0])
    with pytest.raises(InvalidArgumentError, match="different worlds"):
        Together([RELABEL, RELABEL])
    with pytest.raises(InvalidArgumentError, match="must be of type Template"):
        templates.Within("kinds", model)
    with pytest.raises(NoCompiledFormError, match="has no program"):
        Within("kinds", object()).program(None)
    small = fw.Joint(entities=fw.Partition.singletons(2), kinds=fw.Assignment.initial(VARIABLES))
    with pytest.raises(ShapeError, match="needs a label for each of 2 items"):
        templates.LabelAgreement("entities", "kinds").statistics(small)
    typed = templates.TypeLabels("entities", "kinds", 3, 2)
    with pytest.raises(ShapeError, match="3 types and 2 labels"):
        typed.program(worlds[0], 0, np.zeros(6))
    with pytest.raises(InvalidArgumentError, match="needs preferences"):
        fw.learning.JointPreference({})
