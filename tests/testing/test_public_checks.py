"""The public checks: what is right passes, and each way of being wrong is caught."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import factorwise.testing
from assignment_cases import CASES, all_worlds
from assignment_cases import kernels as assignment_kernels
from factorwise.errors import InvalidArgumentError, TemplateCheckError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.kernel import Proposal, Step
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import Merge, Split
from factorwise.model.labels.library import Transitions
from factorwise.rng import Stream
from factorwise.testing import (
    check_name,
    check_template,
    exact_distribution,
    kernel_checks,
    proposer_checks,
    transition_matrix,
)
from factorwise.testing.templates import random_diff
from factorwise.variables.domain import Domain
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from factorwise.world.diff import NEW, Retype, Transfer
from factorwise.world.partition import Partition
from partition_cases import model_of

WORLDS = all_partitions(3)
RIGHT = PartitionMixture([Merge(), Split()])


def failures(checks):
    """Names of the checks that fail, without the worlds they fail on."""
    failed = set()
    for check in checks:
        try:
            check()
        except AssertionError:
            failed.add(check_name(check).partition(":")[0])
    return failed


def test_every_public_name_is_there():
    assert all(hasattr(factorwise.testing, name) for name in factorwise.testing.__all__)


@pytest.mark.parametrize("case", CASES)
def test_templates_over_assignments_pass(case):
    variables, model = CASES[case]()
    world = max(all_worlds(variables), key=model.score)
    for template in model.templates:
        check_template(template, world, steps=60)


class Blind(Transitions):
    """Sees the pair to the right of a variable and forgets the one to the left."""

    def touched(self, offset, diff):
        return np.array([v for v in diff.variables if v < len(self.scopes)], dtype=np.int64)


def test_a_template_over_assignments_that_forgets_factors_is_caught():
    column = Column.hidden("bit", Domain("bit", ["off", "on"]), 4)
    world = Assignment.initial(Variables([column]))
    check_template(Transitions(column), world)
    with pytest.raises(TemplateCheckError, match=r"\(Blind\) is wrong at step \d+ about Relabel\(variables="):
        check_template(Blind(column), world)


@pytest.mark.parametrize("kernel", ["uniform", "local", "mixture", "gibbs", "block gibbs"])
def test_samplers_over_assignments_pass(kernel):
    variables, model = CASES["loop"]()
    sampler, worlds = assignment_kernels(variables, model)[kernel], all_worlds(variables)
    assert failures(kernel_checks(sampler, worlds)) == set()
    if isinstance(sampler, Metropolis):
        assert failures(proposer_checks(sampler.proposer, worlds)) == set()
    target = exact_distribution(model, worlds, 0.7)
    np.testing.assert_allclose(target @ transition_matrix(sampler, worlds, 0.7), target, atol=1e-12)


@dataclass
class Altered:
    """A right proposer with what it declares or draws changed."""

    declared: object = staticmethod(lambda proposals: proposals)
    drawn: object = staticmethod(lambda world, proposal: proposal)

    def support(self, world):
        yield from self.declared(list(RIGHT.support(world)))

    def draw(self, stream, world):
        return self.drawn(world, RIGHT.draw(stream, world))


def test_a_right_proposer_passes_all_checks():
    assert failures(proposer_checks(RIGHT, WORLDS)) == set()
    assert failures(proposer_checks(Altered(), WORLDS)) == set()


def halved(proposals):
    return [p._replace(log_forward=p.log_forward - math.log(2.0)) for p in proposals]


def without_merges(proposals):
    return [p for p in proposals if p.diff is None or p.diff.target == NEW] + [Proposal(None, -50.0, -50.0)]


def wrong_way_back(proposals):
    return [p._replace(log_backward=p.log_backward + 0.1) for p in proposals]


def wrong_split_of_two_ways(proposals):
    """Every proposal twice, with half the forward and all of the backward probability."""
    return [p for p in halved(proposals) for _ in range(2)]


def right_split_of_two_ways(proposals):
    """Every proposal twice, as under a fair coin that counts for nothing."""
    log_2 = math.log(2.0)
    return [
        Proposal(p.diff, p.log_forward - log_2, p.log_backward - log_2) for p in proposals for _ in range(2)
    ]


class Unstable:
    """Draws by a counter of its own."""

    def __init__(self):
        self.count = 0

    def __call__(self, world, proposal):
        self.count += 1
        return proposal if self.count % 2 else Proposal(None, 0.0, 0.0)


def applying(world, proposal):
    if proposal.diff is not None:
        world.apply(proposal.diff)
    return proposal


def relocating(world, proposal):
    """Move an item between clusters, which merges and splits cannot."""
    if world.n_clusters == 2 and world.n_items == 3:
        large = max(world.cluster_ids().tolist(), key=world.size_of)
        small = min(world.cluster_ids().tolist(), key=world.size_of)
        return Proposal(Transfer((int(world.members(large)[0]),), large, small), -1.0, -1.0)
    return proposal


SUM, BACK = "forward_probabilities_sum_to_one", "every_proposal_is_balanced_by_its_way_back"
DRAWS, SEED = "draws_are_among_the_support", "same_seed_same_draw"
WRONG = {
    "sums to a half": (Altered(declared=halved), {SUM, BACK, DRAWS}),
    "cannot return": (Altered(declared=without_merges), {SUM, BACK, DRAWS}),
    "lies about the way back": (Altered(declared=wrong_way_back), {BACK, DRAWS}),
    "counts the way back twice": (Altered(declared=wrong_split_of_two_ways), {BACK, DRAWS}),
    "draws by itself": (Altered(drawn=Unstable()), {SEED}),
    "draws something else": (Altered(drawn=relocating), {DRAWS}),
    "draws with another ratio": (
        Altered(drawn=lambda world, p: p._replace(log_backward=p.log_backward - 1.0)),
        {DRAWS},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_proposer_is_caught_by_the_checks_for_it(name):
    proposer, expected = WRONG[name]
    assert failures(proposer_checks(proposer, WORLDS)) == expected


def test_auxiliary_variables_may_divide_a_proposal():
    assert failures(proposer_checks(Altered(declared=right_split_of_two_ways), WORLDS)) == set()


def test_a_proposer_that_applies_what_it_draws_is_caught():
    checks = list(proposer_checks(Altered(drawn=applying), [Partition.singletons(3)]))
    alone = [check for check in checks if "leaves_the_world_alone" in check_name(check)]
    assert failures(alone) == {"a_draw_leaves_the_world_alone"}


@dataclass
class AlteredKernel:
    """A right kernel with its step changed."""

    stepped: object = staticmethod(lambda world, step: step)
    kernel: object = None

    def step(self, stream, world, temperature=1.0):
        return self.stepped(world, self.kernel.step(stream, world, temperature))


def applied(world, step):
    if step.accepted:
        world.apply(step.diff)
    return step


class Fickle:
    """Accepts every second time."""

    def __init__(self):
        self.count = 0

    def __call__(self, world, step):
        self.count += 1
        return Step(None, 0.0, 0.0, False) if self.count % 2 else step


KERNEL_FAULTS = {
    "applies by itself": ({"stepped": applied}, "a_step_leaves_its_input_alone"),
    "is fickle": ({"stepped": Fickle()}, "same_seed_same_step"),
}


@pytest.mark.parametrize("name", KERNEL_FAULTS)
def test_each_wrong_kernel_is_caught(name):
    changes, expected = KERNEL_FAULTS[name]
    kernel = AlteredKernel(kernel=Metropolis(model_of(("numbers", "sizes"), 3), RIGHT), **changes)
    named = [c for c in kernel_checks(kernel, all_partitions(3)) if check_name(c).startswith(expected)]
    assert len(named) == 5
    assert failures(named) == {expected}


def test_the_matrix_of_a_kernel_that_leaves_the_worlds_is_refused():
    kernel = Metropolis(model_of(("numbers", "sizes"), 3), RIGHT)
    with pytest.raises(InvalidArgumentError, match="out of the given worlds"):
        transition_matrix(kernel, WORLDS[:2])


def test_random_diffs_are_of_every_kind():
    stream, world = Stream(0), Partition.from_labels([0, 0, 0, 1, 1, 2], n_types=2)
    kinds = set()
    for _ in range(60):
        diff = random_diff(stream, world)
        if isinstance(diff, Retype):
            kinds.add("retype")
        else:
            whole = len(diff.items) == world.size_of(diff.source)
            kinds.add(("to new" if diff.target == NEW else "to old", len(diff.items) > 1, whole))
        world.after(diff)
    assert kinds >= {
        "retype",
        ("to new", True, False),
        ("to new", False, False),
        ("to old", False, False),
        ("to old", True, True),
        ("to old", False, True),
    }


def test_worlds_that_cannot_change_or_are_not_known_are_refused():
    with pytest.raises(InvalidArgumentError, match="use a larger one"):
        random_diff(Stream(0), Partition.singletons(1))
    column = Column.of("bit", Domain("bit", ["off", "on"]), ["on"])
    with pytest.raises(InvalidArgumentError, match="hide some"):
        random_diff(Stream(0), Assignment.initial(Variables([column])))
    with pytest.raises(InvalidArgumentError, match="TargetWorld and Joint, but a str"):
        random_diff(Stream(0), "world")
