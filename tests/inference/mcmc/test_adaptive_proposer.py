"""The adaptive split-merge proposer, interpreted: its law, the exact distribution, features, weights."""

import math
from functools import cache
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from adaptive_cases import KINDS, SCALES, group_model, model_for, proposer_for, weights_for
from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import LARGEST_WORLD, AdaptiveSplitMerge
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import Merge, RelocateToItem, RelocateToNew, Split
from factorwise.kernels.clusterings.adaptive.jump_odds import (
    is_able,
    log_any_part,
    log_kind,
    log_moved_part,
    log_share,
)
from factorwise.kernels.compile.programs import Program
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.model.template import Template
from factorwise.rng import Stream
from factorwise.testing import exact_distribution, kernel_checks, proposer_checks
from factorwise.testing.walks import check_walk
from factorwise.world.diff import NEW
from factorwise.world.partition import Partition
from partition_cases import Recalled, Remembering
from plain_transitions import transition_matrix
from reference.jump_features import cluster_row, pair_row
from reference.jumps import JumpLaw, clusters_of
from thinning import thinned
from walk_cases import EVERY, mixed_model, statistics_of, table_for

EXPLORE = (0.0, 0.15, 1.0)
PARTS = ("uniform", "guided")
WORLDS = all_partitions(4)
FEW = WORLDS[::3]


@cache
def small_model(n):
    """Statistics that are sums over pairs, and some that are not."""
    return Remembering(mixed_model(n, ("edges", "clusters"), []))


def proposer_of(n, parts, kinds, explore, scale):
    return proposer_for(small_model(n), parts=parts, kinds=kinds, explore=explore, scale=SCALES[scale])


def all_of(checks):
    for check in checks:
        check()


def gathered(jumps):
    """Chance of each pair of a world and a ratio; the ratio is rounded."""
    found = {}
    for there, forward, backward in jumps:
        key = there, round(backward - forward, 6)
        found[key] = found.get(key, 0.0) + math.exp(forward)
    return found


def proposed(proposer, world):
    return [
        (clusters_of(world.after(one.diff)), one.log_forward, one.log_backward)
        for one in proposals(proposer, world)
    ]


@pytest.mark.parametrize(
    ("parts", "kinds", "explore", "scale"), thinned(PARTS, KINDS, EXPLORE, ("zero", "random"))
)
def test_the_program_draws_by_the_law_of_the_definition(parts, kinds, explore, scale):
    proposer = proposer_of(4, parts, kinds, explore, scale)
    law = JumpLaw(proposer, 4)
    for world in WORLDS[1::3]:
        expected = gathered(law.jumps(clusters_of(world)))
        assert gathered(proposed(proposer, world)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("case", ["tables", "links", "pairs", "clusters", "edges"])
@pytest.mark.parametrize("parts", PARTS)
def test_the_law_holds_for_every_kind_of_factor(case, parts):
    """On five items, of which one world has all kinds of jumps."""
    model = model_for(case, 5) if case != "tables" else small_tables(5)
    proposer = proposer_for(model, parts=parts)
    world = Partition.from_labels([0, 0, 0, 1, 2] if parts == "uniform" else [0, 0, 0, 1, 1])
    expected = gathered(JumpLaw(proposer, 5).jumps(clusters_of(world)))
    assert gathered(proposed(proposer, world)) == pytest.approx(expected, rel=1e-9)


def small_tables(n):
    return mixed_model(n, (), [table_for(n, 2)], EVERY)


def assert_invariant(model, proposer, worlds, temperatures=(1.0, 0.7, 2.0)):
    sampler = Metropolis(model, Recalled(proposer))
    for temperature in temperatures:
        target = exact_distribution(model, worlds, temperature)
        matrix = transition_matrix(sampler, worlds, temperature)
        assert matrix.min() > -1e-12
        np.testing.assert_allclose(target @ matrix, target, rtol=0, atol=1e-12)
    return matrix


INVARIANT = thinned(PARTS, KINDS, EXPLORE, SCALES)


@pytest.mark.parametrize(("parts", "kinds", "explore", "scale"), INVARIANT)
def test_every_setting_leaves_the_exact_distribution_invariant(parts, kinds, explore, scale):
    matrix = assert_invariant(small_model(4), proposer_of(4, parts, kinds, explore, scale), WORLDS)
    if scale != "large":  # from every world to every other in the end
        assert (np.linalg.matrix_power((matrix + np.eye(len(WORLDS))) / 2, 64) > 0).all()


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        ("tables", "uniform"),
        pytest.param("tables", "guided", marks=pytest.mark.slow),
        ("pairs", "guided"),
        ("clusters", "uniform"),
        pytest.param("clusters", "guided", marks=pytest.mark.slow),
        ("edges", "guided"),
    ],
)
def test_every_kind_of_factor_leaves_the_exact_distribution_invariant(case, parts):
    model = Remembering(model_for(case, 4) if case != "tables" else small_tables(4))
    assert_invariant(model, proposer_for(model, parts=parts), WORLDS)


@pytest.mark.parametrize(("case", "parts"), [("edges", "guided"), ("pairs", "uniform")])
def test_the_walk_itself_leaves_the_exact_distribution_invariant(case, parts):
    """The loop with all its parts, interpreted along every path."""
    model = model_for(case, 4)
    check_walk(Metropolis(model, proposer_for(model, parts=parts)), WORLDS)


def test_five_items_are_no_different():
    model = Remembering(model_for("edges", 5))
    proposer = proposer_for(model, parts="guided")
    assert_invariant(model, proposer, all_partitions(5))


def test_it_can_be_mixed_with_other_moves():
    model = model_for("edges", 4)
    mixture = PartitionMixture([proposer_for(model), RelocateToItem(), RelocateToNew()], [1.0, 2.0, 1.0])
    check_walk(Metropolis(model, mixture), WORLDS, temperatures=(0.7,))


def test_the_features_may_be_those_of_another_model():
    scored, seen = Remembering(model_for("edges", 4)), model_for("pairs", 4)
    assert_invariant(scored, proposer_for(seen), WORLDS, (0.7,))


@pytest.mark.parametrize(("parts", "kinds"), [("uniform", "moves too"), ("guided", "splits and merges")])
def test_the_public_checks_pass(parts, kinds):
    proposer = proposer_of(4, parts, kinds, 0.15, "random")
    all_of(proposer_checks(proposer, FEW))
    all_of(kernel_checks(Metropolis(small_model(4), Recalled(proposer)), FEW[::2]))


@pytest.mark.parametrize("broken", ["forward", "backward"])
def test_the_checks_notice_a_wrong_probability(broken):
    """Of a proposer whose moves are a little too likely there or back."""

    class Forgetful(AdaptiveSplitMerge):
        def support(self, world):
            for proposal in super().support(world):
                field = f"log_{broken}"
                wrong = 0.01 * (proposal.diff is not None and proposal.diff.target == NEW)
                yield proposal._replace(**{field: getattr(proposal, field) + wrong})

    good = proposer_of(4, "uniform", "moves too", 0.15, "random")
    checks = list(proposer_checks(Forgetful(good.features, good.weights, explore=0.15), FEW))
    with pytest.raises(AssertionError, match=r"flow|sum to"):
        all_of(checks)


def proposals(proposer, world):
    """All that changes something."""
    return [proposal for proposal in proposer.support(world) if proposal.diff is not None]


def chances(proposer, world):
    """Probability of proposing each other world."""
    found = {}
    for proposal in proposals(proposer, world):
        key = world.after(proposal.diff).canonical()
        found[key] = found.get(key, 0.0) + math.exp(proposal.log_forward)
    return found


@pytest.mark.parametrize("explore", [0.0, 1.0])
def test_without_weights_it_is_the_uniform_mixture_of_merges_and_splits(explore):
    for world in all_partitions(5)[1:-1:7]:
        adaptive = AdaptiveSplitMerge(JumpFeatures(model_for("edges", 5)), explore=explore)
        merges, splits = (chances(PartitionMixture([move]), world) for move in (Merge(), Split()))
        expected = {
            there: chance / (bool(merges) + bool(splits)) for there, chance in (merges | splits).items()
        }
        assert chances(adaptive, world) == pytest.approx(expected, rel=1e-12)


def test_chosen_clusters_and_pairs_have_the_probabilities_of_the_equations():
    n, explore = 5, 0.15
    proposer = proposer_of(n, "uniform", "moves too", explore, "random")
    features, weights = proposer.features, proposer.learned
    world = Partition.from_labels([0, 0, 1, 1, 2])
    clusters = {tuple(members.tolist()) for members in world.clusters()}
    split, merge, move = (odds / sum(weights.kinds) for odds in weights.kinds)
    mixed = {c: math.exp(cluster_row(features, c, n) @ weights.split) for c in clusters if len(c) > 1}
    alike = {
        frozenset({c, d}): math.exp(pair_row(features, c, d, n) @ weights.merge)
        for c, d in combinations(clusters, 2)
    }

    def share(odds, key):
        return (1 - explore) * odds[key] / sum(odds.values()) + explore / len(odds)

    expected = {}
    for pair in alike:
        together = tuple(sorted(pair))
        expected[together[0], together[1]] = merge * share(alike, pair)
    for c in mixed:  # of two members, there is one way to split and two parts to move
        expected[c, None] = split * share(mixed, c)
        for item in c:
            rest = clusters - {c}
            odds = {d: math.exp(pair_row(features, [item], d, n) @ weights.merge) for d in rest}
            for d in rest:
                expected[(item,), d] = move * share(mixed, c) * share(odds, d) / 2
    found = {}
    for proposal in proposals(proposer, world):
        diff = proposal.diff
        items = tuple(sorted(diff.items))
        target = None if diff.target == NEW else tuple(world.members(diff.target).tolist())
        if target is None:
            key = tuple(world.members(diff.source).tolist()), None
        elif items in clusters:
            key = tuple(sorted([items, target]))
        else:
            key = items, target
        found[key] = found.get(key, 0.0) + math.exp(proposal.log_forward)
    assert found == pytest.approx(expected, rel=1e-12)


def test_guided_parts_are_drawn_one_by_one_by_their_affinity():
    """Three members: two are drawn to be apart, the third joins the one it likes."""
    n, explore = 4, 0.15
    proposer = proposer_of(n, "guided", "splits and merges", explore, "random")
    world = Partition.from_labels([0, 0, 0, 1])
    features, weights = proposer.features, proposer.learned

    def odds(i, j):
        return math.exp(pair_row(features, [i], [j], n) @ weights.merge)

    expected = {}
    for alone in range(3):
        first, second = {0, 1, 2} - {alone}
        total = 0.0
        for third, other in ((first, second), (second, first)):  # ``alone`` and ``other`` are apart
            together, apart = odds(third, other), odds(third, alone)
            total += 2 / 6 * ((1 - explore) * together / (together + apart) + explore / 2)
        expected[alone] = 0.5 * total
    found = dict.fromkeys(range(3), 0.0)
    for proposal in proposals(proposer, world):
        if proposal.diff.target == NEW:
            part = set(proposal.diff.items)
            (alone,) = part if len(part) == 1 else {0, 1, 2} - part
            found[alone] += math.exp(proposal.log_forward)
    assert found == pytest.approx(expected, rel=1e-12)
    assert len({round(chance, 6) for chance in expected.values()}) == 3


def test_a_single_item_stays_where_it_is():
    model = mixed_model(1, ("numbers", "sizes"), [])
    world = Partition.singletons(1)
    proposer = AdaptiveSplitMerge(JumpFeatures(model))
    assert proposer.draw(Stream(0), world).diff is None
    assert [proposal.diff for proposal in proposer.support(world)] == [None]
    assert not Metropolis(model, proposer).step(Stream(0), world).accepted


def test_two_items_only_merge_and_split():
    proposer = proposer_for(model_for("few", 2))
    apart, together = Partition.singletons(2), Partition.from_labels([0, 0])
    for here, there in ((apart, together), (together, apart)):
        assert chances(proposer, here) == {there.canonical(): pytest.approx(1.0)}


TABLE = table_for(6, 3, seed=4)


def test_features_of_a_counted_table_are_means_over_pairs():
    features = JumpFeatures(Model([PairTableTemplate("table", TABLE, ("count",))]))
    members, first, second = (4, 0, 3), (1, 4), (0, 5, 2)
    inside = [TABLE.row(i, j) for i, j in combinations(members, 2)]
    np.testing.assert_allclose(cluster_row(features, members, 6)[:-1], np.mean(inside, axis=0), rtol=1e-12)
    assert cluster_row(features, members, 6)[-1] == pytest.approx(math.log(3))
    across = [TABLE.row(i, j) for i in first for j in second]
    np.testing.assert_allclose(pair_row(features, first, second, 6)[:-1], np.mean(across, axis=0), rtol=1e-12)
    assert pair_row(features, first, second, 6)[-1] == pytest.approx(math.log(6))


def test_features_are_what_the_statistics_gain_per_pair():
    """Whatever the template: the statistics of a cluster less those of its members alone, by definition."""
    n = 6
    model = mixed_model(n, ("numbers", "edges", "clusters", "repelling pairs"), [table_for(n, 2)], EVERY)
    features = JumpFeatures(model)

    def held(*clusters):
        """Statistics of a world with these clusters, less those of one with none."""
        labels = np.arange(n)
        for members in clusters:
            labels[list(members)] = members[0]
        worlds = Partition.from_keys(labels), Partition.singletons(n)
        return statistics_of(model, worlds[0]) - statistics_of(model, worlds[1])

    first, second = (5, 1), (0, 3, 4)
    np.testing.assert_allclose(cluster_row(features, second, n)[:-1], held(second) / 3, rtol=1e-9, atol=1e-12)
    gained = held(first + second) - held(first) - held(second)
    np.testing.assert_allclose(pair_row(features, first, second, n)[:-1], gained / 6, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(pair_row(features, first, second, n), pair_row(features, second, first, n))


def test_features_bear_the_names_of_the_statistics_and_may_be_chosen():
    model = Model([PairTableTemplate("table", TABLE, ("count", "exists"))])
    everything = JumpFeatures(model)
    names = [model.weight_name(k) for k in range(model.blocks.size)]
    assert everything.names == (*names, "log size")
    assert everything.size == len(names) + 1
    chosen = JumpFeatures(model, lambda name: "exists" in name)
    assert chosen.names == (*(name for name in names if "exists" in name), "log size")
    assert [names[k] for k in chosen.columns] == list(chosen.names[:-1])
    np.testing.assert_array_equal(
        pair_row(chosen, [0, 1], [2], 6),
        pair_row(everything, [0, 1], [2], 6)[[*chosen.columns, -1]],
    )
    with pytest.raises(
        InvalidArgumentError, match=r"none of the model's 6 statistics was chosen: choose from names"
    ):
        JumpFeatures(model, lambda name: False)


def test_parts_have_probabilities_that_sum_to_one():
    for size in range(2, 9):
        assert (2 ** (size - 1) - 1) * math.exp(log_any_part(size)) == pytest.approx(1.0)
        parts = [math.comb(size, m) * math.exp(log_moved_part(size, m)) for m in range(1, size)]
        assert sum(parts) == pytest.approx(1.0)
    assert log_any_part(5_000) == pytest.approx(-4_999 * math.log(2.0))
    assert math.isfinite(log_moved_part(5_000, 2_000))


def test_kinds_with_nothing_to_propose_leave_their_share_to_the_others():
    def shares(clusters, splittable):
        mine = SimpleNamespace(settings=[1.0, 3.0, 4.0, 0.2], counters=[clusters, splittable])
        able = [kind for kind in range(3) if is_able(kind, clusters, splittable)]
        return {kind: math.exp(log_kind(mine, kind)) for kind in able}

    assert shares(1, 0) == {}
    assert shares(5, 2) == pytest.approx({0: 1 / 8, 1: 3 / 8, 2: 1 / 2})
    assert shares(5, 0) == {1: 1.0}
    assert shares(1, 1) == {0: 1.0}
    mine = SimpleNamespace(settings=[1.0, 3.0, 4.0, 0.2])
    assert math.exp(log_share(mine, 2.0, 8.0, 5)) == pytest.approx(0.8 / 4 + 0.2 / 5)


def test_weights_go_into_one_vector_and_back():
    weights = JumpWeights(("a", "log size"), [1.0, 2.0], [3.0, 4.0], (1, 2, 0))
    np.testing.assert_array_equal(weights.vector, [1.0, 2.0, 3.0, 4.0])
    assert weights.kinds == (1.0, 2.0, 0.0)
    other = weights.with_vector([5.0, 6.0, 7.0, 8.0])
    np.testing.assert_array_equal(other.split, [5.0, 6.0])
    np.testing.assert_array_equal(other.merge, [7.0, 8.0])
    assert (other.names, other.kinds) == (weights.names, weights.kinds)
    weights.vector[0] = 9.0
    given = np.ones(2)
    kept = JumpWeights(("a", "log size"), given, given)
    given[0] = 7.0
    assert weights.split[0] == 1.0
    assert kept.split[0] == 1.0
    assert not JumpWeights.zero(("a", "b", "c")).vector.any()


TWO = ("a", "log size")
BAD_WEIGHTS = {
    "a weight too many": (lambda: JumpWeights(TWO, [1, 2, 3], [1, 2]), ShapeError, "as many split weights"),
    "a weight too few": (lambda: JumpWeights(TWO, [1, 2], [1]), ShapeError, "as many merge weights"),
    "too short a vector": (
        lambda: JumpWeights.zero(TWO).with_vector([1.0, 2.0, 3.0]),
        ShapeError,
        "as many merge weights",
    ),
    "an infinite weight": (
        lambda: JumpWeights(TWO, [1, math.inf], [1, 2]),
        InvalidArgumentError,
        "must be finite numbers",
    ),
    "no splits": (
        lambda: JumpWeights.zero(TWO, (0, 1, 1)),
        InvalidArgumentError,
        "split undoes a merge",
    ),
    "no merges": (
        lambda: JumpWeights.zero(TWO, (1, 0, 1)),
        InvalidArgumentError,
        "first two must be positive",
    ),
    "negative moves": (lambda: JumpWeights.zero(TWO, (1, 1, -1)), InvalidArgumentError, "third zero or more"),
    "endless odds": (lambda: JumpWeights.zero(TWO, (1, math.inf, 0)), InvalidArgumentError, "odds of splits"),
    "two kinds": (lambda: JumpWeights.zero(TWO, (1, 1)), InvalidArgumentError, "splits, merges and moves"),
}


@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights_are_refused_with_a_remedy(name):
    build, error, message = BAD_WEIGHTS[name]
    with pytest.raises(error, match=message):
        build()


def test_a_proposer_without_weights_prefers_nothing():
    features = JumpFeatures(small_model(4))
    proposer = AdaptiveSplitMerge(features)
    assert not proposer.learned.vector.any()
    other = proposer.with_weights(weights_for(features, "moves too", 1.0))
    assert other.learned.vector.any()
    assert (other.features, other.explore, other.parts) == (features, proposer.explore, proposer.parts)


def test_bad_settings_are_refused_with_a_remedy():
    features = JumpFeatures(small_model(4))
    for explore in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidArgumentError, match="explore must be between 0 and 1"):
            AdaptiveSplitMerge(features, explore=explore)
    with pytest.raises(InvalidArgumentError, match=r"parts must be one of \['uniform', 'guided'\]"):
        AdaptiveSplitMerge(features, parts="halves")
    other = JumpFeatures(group_model([0, 0, 1, 1]))
    with pytest.raises(
        InvalidArgumentError, match="choose the same features, of models with the same templates"
    ):
        AdaptiveSplitMerge(features, JumpWeights.zero(other.names))
    with pytest.raises(InvalidArgumentError, match="choose the same features"):
        AdaptiveSplitMerge(features).with_weights(JumpWeights.zero(other.names))


def test_worlds_with_types_and_worlds_too_large_are_refused():
    proposer, world = AdaptiveSplitMerge(JumpFeatures(small_model(4))), Partition.singletons(4, n_types=2)
    with pytest.raises(
        InvalidArgumentError, match="use a PartitionMixture of Merge, Split and RetypeCluster"
    ):
        proposer.draw(Stream(0), world)
    with pytest.raises(
        InvalidArgumentError, match="use a PartitionMixture of Merge, Split and RetypeCluster"
    ):
        list(proposer.support(world))
    with pytest.raises(InvalidArgumentError, match="use one document or block at a time"):
        proposer.draw(Stream(0), Partition.singletons(LARGEST_WORLD + 1))


def test_statistics_that_have_no_gradient_are_refused():
    class Mute(Template):
        name, size = "mute", 1

        def weight_name(self, index):
            return "mute"

        def program(self, world, offset, weights):
            return Program(gain=lambda: 0.0, name="mute templates")

    proposer = AdaptiveSplitMerge(JumpFeatures(Model([Mute()])))
    with pytest.raises(NoCompiledFormError, match="choose others with JumpFeatures"):
        proposer.draw(Stream(0), Partition.singletons(3))
