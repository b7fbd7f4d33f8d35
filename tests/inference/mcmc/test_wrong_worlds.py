"""Parts that are put on a world of another kind, alone or in a Joint: a clear error, never a raw one."""

import numpy as np
import pytest

import factorwise as fw
from factorwise import mcmc
from factorwise.errors import FactorwiseError
from factorwise.inference.mcmc import Metropolis, Walk
from factorwise.rng import Stream

N = 3
COLUMN = fw.Column("kind", fw.Domain("kind", ["a", "b"]), np.full(N, -1, np.int32))
LABELS = fw.Assignment.initial(fw.Variables([COLUMN]))
WORLDS = {
    "labels": LABELS,
    "clusters": fw.Partition.singletons(N),
    "matching": fw.Matching(N, N),
    "order": fw.Permutation.identity(N),
    "tree": fw.Tree.flat(N),
    "hierarchy": fw.Hierarchy.singletons(N),
}
TARGETS = ("matching", "order", "tree")
TEMPLATES = {
    ("labels",): [fw.templates.Bias(COLUMN)],
    ("clusters",): [fw.templates.ClusterSize(), fw.templates.EdgeTemplate("e", N, [(0, 1)], [[1.0]], ["x"])],
    TARGETS: [fw.templates.TargetTemplate("t", [(0, 1)], [1.0])],
    ("order",): [fw.templates.FollowTemplate("f", [(0, 1)], [1.0])],
    ("hierarchy",): [fw.templates.HierarchyCounts(), fw.templates.SubtreeCosine("c", np.eye(N))],
}
MOVES = {
    ("labels",): [mcmc.UniformRelabel(), mcmc.Swap()],
    ("clusters",): [
        mcmc.RelocateToItem(),
        mcmc.RelocateToCandidate.from_pairs(N, [(0, 1)]),
        mcmc.Mixture([mcmc.Merge(), mcmc.Split()]),
    ],
    ("matching",): [mcmc.Rematch()],
    ("order",): [mcmc.Exchange(), mcmc.Insert(1)],
    ("tree",): [mcmc.Reattach()],
    ("hierarchy",): [mcmc.Regraft(), mcmc.Regroup(), mcmc.RegraftToCandidate.from_pairs(N, [(0, 1)])],
}
PREFERENCES = {
    ("labels",): [fw.learning.AccuracyPreference([0, 1, 0]), fw.learning.SpanPreference(LABELS)],
    ("clusters",): [fw.learning.TruthPreference([0, 0, 1])],
    TARGETS: [fw.learning.TargetPreference([0, 1, 2])],
}


def assert_fits(fits, function):
    """Call; where the part does not fit, an error of ours says so."""
    if fits:
        function()
        return
    with pytest.raises(FactorwiseError, match=r"needs (a world of the kind|items in an order)"):
        function()


def advance(kernel, world):
    Walk(kernel, world, interpreted=True).advance(Stream(0), 1.0, 5)


def listed(parts):
    return [(kinds, part) for kinds, some in parts.items() for part in some]


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("name", WORLDS)
def test_every_part_says_which_worlds_it_is_for(name, joint):
    world = fw.Joint(other=WORLDS["order"], own=WORLDS[name]) if joint else WORLDS[name]
    suited = next(part for kinds, part in listed(TEMPLATES) if name in kinds)
    own = fw.Model([fw.templates.Within("own", suited) if joint else suited])
    for kinds, template in listed(TEMPLATES):
        model = fw.Model([fw.templates.Within("own", template) if joint else template])
        assert_fits(name in kinds, lambda model=model: model.score(world))
    for kinds, move in listed(MOVES):
        proposer = mcmc.Within("own", move) if joint else move
        kernel = Metropolis(own, proposer)
        assert_fits(name in kinds, lambda kernel=kernel: advance(kernel, world))
        assert_fits(name in kinds, lambda proposer=proposer: proposer.draw(Stream(0), world))
    for kinds, preference in listed(PREFERENCES):
        judged = fw.learning.JointPreference({"own": preference}) if joint else preference
        assert_fits(name in kinds, lambda judged=judged: judged.watch(world))


def test_parts_of_a_joint_world_refuse_others():
    with pytest.raises(FactorwiseError, match="kind Joint"):
        fw.Model([fw.templates.LabelAgreement("a", "b")]).score(LABELS)
    with pytest.raises(FactorwiseError, match="kind Joint"):
        fw.Model([fw.templates.Within("a", fw.templates.ClusterSize())]).score(LABELS)
    with pytest.raises(FactorwiseError, match="kind Joint"):
        mcmc.Within("a", mcmc.Swap()).draw(Stream(0), LABELS)
    with pytest.raises(FactorwiseError, match="kind Joint"):
        fw.learning.JointPreference({"a": fw.learning.AccuracyPreference([0])}).watch(LABELS)
