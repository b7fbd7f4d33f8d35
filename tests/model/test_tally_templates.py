"""Tallies: statistics from counts, against the definition; and walks by them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Merge,
    RelocateToItem,
    RelocateToNew,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.proposals.restricted_gibbs import RestrictedGibbs
from factorwise.inference.mcmc.walk import Walk
from factorwise.inference.mcmc.world_gibbs import PartitionGibbs
from factorwise.kernels.compile.binding import Bound, Interpreted
from factorwise.kernels.walks.frames import run
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.model.templates import (
    AllAgree,
    BagCosine,
    ClusterSize,
    DistinctValues,
    SomeAgree,
    TallyTemplate,
)
from factorwise.rng import Stream
from factorwise.testing import check_template, check_walk
from factorwise.variables.bags import UNIT, Bags
from factorwise.world import moves
from factorwise.world.diff import Transfer
from factorwise.world.partition import Partition
from tally_cases import TALLIES, counts_of, names_for, tally_model, words_for

N = 9
TEMPERATURES = (1.0, 0.7, 2.0)
EVERY = tuple(TALLIES)
SOME = ("cosine", "reals")


def by_definition(name, members):
    """Statistics of one cluster."""
    bags = words_for(N) if name in ("distinct words", "cosine", "some", "reals") else names_for(N)
    counts, size = counts_of(bags, members), len(members)
    if name in ("distinct", "distinct words"):
        return [max(0, len(counts) - 1)]
    if name == "cosine":
        whole = counts_of(bags.scaled(), members)
        length = math.sqrt(sum(amount**2 for amount in whole.values()))
        return [
            sum(own * whole[key] / length for i in members for key, own in bags.scaled().of(i).items()) / UNIT
        ]
    if name == "all":
        return [size > 1 and max(counts.values(), default=0) == size]
    if name == "some":
        return [any(set(bags.of(i)) & set(bags.of(j)) for i in members for j in members if i < j)]
    if name == "pairs":
        return [sum(bags.of(i) == bags.of(j) != {} for i in members for j in members if i < j)]
    return [sum(count * math.log(count) for count in counts.values()) / size, size > 2]


@pytest.mark.parametrize("name", TALLIES)
@given(st.lists(st.integers(0, 4), min_size=N, max_size=N))
def test_statistics_are_those_of_the_definition(name, labels):
    world, template = Partition.from_keys(labels), TALLIES[name](N)
    expected = np.sum([by_definition(name, members.tolist()) for members in world.clusters()], axis=0)
    found = template.statistics(world).to_dense(template.size)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-5 if name == "reals" else 1e-9)
    each = sum(template.of(members) for members in world.clusters())
    np.testing.assert_allclose(found, each, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", TALLIES)
def test_differences_are_what_the_whole_world_says(name):
    check_template(TALLIES[name](N), Partition.from_keys(np.arange(N) % 3))
    check_template(TALLIES[name](N), Partition.singletons(N, n_types=2))


def test_weights_are_named_after_the_template_and_the_statistic():
    assert TALLIES["reals"](N).weight_name(1) == "reals: large"
    assert TALLIES["distinct"](N).weight_name(0) == "distinct: values beyond one"


def test_a_bag_alone_is_as_near_to_itself_as_can_be():
    words = words_for(N)
    found = BagCosine("cosine", words).statistics(Partition.singletons(N)).to_dense(1)
    assert found[0] == pytest.approx(N - 1, abs=1e-3)  # the first item has no words


# walks


def bound_programs(model, world, interpreted=False):
    """Bind the programs of a model to a walk over a world, and let them begin."""
    programs = model_programs(model, world)
    frame = world.frame(np.zeros(2, np.uint64), weights=model.blocks.size)._replace(world=programs.arrays)
    make = (lambda p: Interpreted(p, frame, None)) if interpreted else (lambda p: Bound(p, frame))
    found = [make(program) for program in programs.templates]
    for bound in found:
        run(bound, "begin")
    return found, frame


def transfers(world):
    """Every move of one item, with the id of its target."""
    spare = int(world.arrays.live[world.n_clusters])
    for item in range(world.n_items):
        source = world.cluster_of(item)
        for target in world.cluster_ids().tolist():
            if target != source:
                yield moves.relocate(world, item, target), item, source, target
        if world.size_of(source) > 1:
            yield moves.relocate(world, item, -1), item, source, spare


@pytest.mark.parametrize("interpreted", [True, False])
def test_gains_and_gradients_are_differences_of_whole_worlds(interpreted):
    model = tally_model(EVERY, N)
    world = Partition.from_labels([0, 0, 1, 2, 0, 3, 1, 0, 2])
    bound, frame = bound_programs(model, world, interpreted)
    step, choice = frame.step, frame.choice
    here = model.statistics(world).to_dense(model.blocks.size)
    for diff, item, source, target in transfers(world):
        expected = model.statistics(world.after(diff)).to_dense(model.blocks.size) - here
        step["item"], step["source"], step["target"] = item, source, target
        frame.gradient.value[:] = 0.0
        for one in bound:
            run(one, "gradient")
        np.testing.assert_allclose(frame.gradient.value, expected, rtol=1e-9, atol=1e-9)
        gain = sum(run(one, "gain") for one in bound)
        assert gain == pytest.approx(expected @ model.weights, abs=1e-9)
        step["choices"] = 2
        choice.targets[:2], choice.out[:2] = (target, source), 0.0
        for one in bound:
            run(one, "gains")
        assert choice.out[0] - choice.out[1] == pytest.approx(gain, abs=1e-9)


@pytest.mark.parametrize("interpreted", [True, False])
def test_changes_that_are_taken_back_leave_every_bit_as_it_was(interpreted):
    model = tally_model(EVERY, N)
    world = Partition.from_labels([0, 0, 1, 2, 0, 3, 1, 0, 2])
    bound, frame = bound_programs(model, world, interpreted)
    kept = [[array.copy() for array in one.program.arrays.values()] for one in bound]
    for _, item, source, target in list(transfers(world)):
        for here, there in ((source, target), (target, source)):
            frame.step["item"], frame.step["source"], frame.step["target"] = item, here, there
            for one in bound:
                run(one, "applied")
        for one, before in zip(bound, kept, strict=True):
            slots = list(one.program.arrays).index("slots")
            for k, (array, was) in enumerate(zip(one.program.arrays.values(), before, strict=True)):
                if k == slots:  # two clusters of one table may have changed places
                    array, was = np.sort(array), np.sort(was)
                np.testing.assert_array_equal(array, was)


KERNELS = {
    "relocations": lambda model: Metropolis(
        model, PartitionMixture([RelocateToItem(), RelocateToNew()], [0.7, 0.3])
    ),
    "gibbs": PartitionGibbs,
    "merges and splits": lambda model: Metropolis(model, PartitionMixture([Merge(), Split()])),
    "split-merge": lambda model: Metropolis(model, SplitMerge()),
    "restricted": lambda model: Metropolis(model, RestrictedGibbs(model, 0)),
}


@pytest.mark.parametrize("name", ["relocations", "gibbs"])
def test_walks_leave_the_exact_distribution_of_five_items_invariant(name):
    check_walk(KERNELS[name](tally_model(SOME, 5)), all_partitions(5))


@pytest.mark.parametrize("name", ["merges and splits", "split-merge", "restricted"])
def test_jumps_leave_the_exact_distribution_of_four_items_invariant(name):
    check_walk(KERNELS[name](tally_model(SOME, 4)), all_partitions(4))


@pytest.mark.parametrize("name", KERNELS)
def test_compiled_and_interpreted_walks_take_the_same_steps(name):
    model = tally_model(EVERY, N)
    kernel, world = KERNELS[name](model), Partition.singletons(N)
    streams = Stream(3), Stream(3)
    compiled = Walk(kernel, world)
    plain = Walk(kernel, world, interpreted=True)
    for temperature in TEMPERATURES:
        compiled.advance(streams[0], temperature, 60)
        plain.advance(streams[1], temperature, 60)
        assert compiled.view == plain.view
        np.testing.assert_array_equal(streams[0].state, streams[1].state)
    assert compiled.score == pytest.approx(model.score(compiled.world), abs=1e-9)


def test_long_walks_keep_their_counts():
    n = 60
    model = tally_model(EVERY, n)
    walk = Walk(KERNELS["relocations"](model), Partition.singletons(n))
    assert walk.advance(Stream(2), 20.0, 20_000) > 1_000
    assert walk.score == pytest.approx(model.score(walk.world), rel=1e-9)
    fresh = Walk(KERNELS["relocations"](model), walk.world)
    for kept, new in zip(walk.parts.templates, fresh.parts.templates, strict=True):
        used, other = (np.sort(one.program.arrays["total"]) for one in (kept, new))
        np.testing.assert_array_equal(used, other)


def test_tallies_and_other_templates_make_one_model():
    n = 6
    model = Model([ClusterSize(), TALLIES["cosine"](n), TALLIES["distinct"](n)], [0.2, -0.4, 1.5, -0.3])
    walk = Walk(KERNELS["gibbs"](model), Partition.singletons(n))
    walk.advance(Stream(1), 1.0, 500)
    assert walk.score == pytest.approx(model.score(walk.world))


def test_how_much_of_a_key_there_is_does_not_matter_to_those_who_ask_whether():
    keys = Bags([0, 1, 2], [0, 0], [70_000, 1])
    for template in (SomeAgree("some", keys), AllAgree("all", keys)):
        np.testing.assert_array_equal(template.statistics(Partition.from_labels([0, 0])).to_dense(1), [1.0])
        np.testing.assert_array_equal(template.statistics(Partition.singletons(2)).to_dense(1), [0.0])


# what is refused


def one(count):
    return 1


def halves(count):
    return count / 2


def fails(count):
    return count // (count - 3)


def endless(count):
    return count * math.inf if count else 0.0


def sums(total, size):
    return (total, size)


BAD = {
    "a part of nothing": (lambda k: TallyTemplate("t", k, one, max, ["x"]), TemplateError, "must be 0"),
    "halves": (lambda k: TallyTemplate("t", k, halves, max, ["x"]), TemplateError, "unit=2"),
    "a part that fails": (lambda k: TallyTemplate("t", k, fails, max, ["x"]), TemplateError, "count of 3"),
    "an endless part": (
        lambda k: TallyTemplate("t", k, endless, max, ["x"]),
        TemplateError,
        "finite numbers",
    ),
    "too few names": (lambda k: TallyTemplate("t", k, int, sums, ["x"]), TemplateError, "tuple of 1 numbers"),
    "no names": (lambda k: TallyTemplate("t", k, int, max, []), InvalidArgumentError, "needs names"),
    "no unit": (
        lambda k: TallyTemplate("t", k, int, max, ["x"], unit=0.0),
        InvalidArgumentError,
        "above zero",
    ),
    "large sums": (
        lambda k: TallyTemplate("t", k, int, max, ["x"], unit=1e-19),
        InvalidArgumentError,
        "larger unit",
    ),
    "large amounts": (
        lambda k: TallyTemplate("t", Bags([0, 1], [0], [70_000]), int, max, ["x"]),
        InvalidArgumentError,
        "amounts 65535",
    ),
    "bags that shall agree": (lambda k: AllAgree("t", words_for(N)), ShapeError, "one key per item"),
    "items of another world": (
        lambda k: DistinctValues("t", k).statistics(Partition.singletons(3)),
        ShapeError,
        "same records",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tallies_are_refused(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        build(names_for(N))


def test_types_of_clusters_are_no_concern_of_tallies():
    template, world = TALLIES["distinct"](N), Partition.singletons(N, n_types=2)
    assert len(template.difference(world, moves.retype(world, 0, 1)).index) == 0
    assert len(template.difference(world, Transfer((0,), 0, 2)).index) in (0, 1)
