"""What a user's own functions set in a walk is checked before anything indexes with it."""

import math

import numpy as np
import pytest

import factorwise as fw
from factorwise import learning, mcmc, templates
from factorwise.errors import ProgramError
from factorwise.kernels.walks.guards import guarded_program
from factorwise.walks import STAY, PartitionMove, Program, add_change, below, put

START = fw.Partition.from_labels([0, 0, 1, 2, 2, 1])
SIZES = fw.Model([templates.ClusterSize()], [0.4, -0.7])


def right(world, mine, random, move):
    item = below(random, len(world.label))
    source, target = world.label[item], world.label[below(random, len(world.label))]
    if target == source:
        return STAY
    move.item, move.source, move.target = item, source, target
    return 1.0


def without_source(world, mine, random, move):
    item = below(random, len(world.label))
    target = world.label[below(random, len(world.label))]
    if target == world.label[item]:
        return STAY
    move.item, move.target = item, target
    return 1.0


def set_to_numbers(mine, move):
    move.item, move.source, move.target = mine.set[0], mine.set[1], mine.set[2]
    move.world = mine.set[3]
    return 1.0


def list_too_many(mine, move, changes):
    move.changes = 10_000
    return 1.0


def list_a_wrong_one(world, mine, move, changes):
    move.changes = 0
    add_change(move, changes, 0, world.label[0], world.label[2])
    add_change(move, changes, 1, world.label[2], world.label[3])  # where another item is
    return 1.0


class Move(PartitionMove):
    changes = "many"

    def __init__(self, function, numbers=(0, 0, 1, 0)):
        self.function, self.numbers = function, numbers

    def program(self, parts):
        return Program(draw=self.function, arrays={"set": np.array(self.numbers)})


def walk(proposer, engine, start=START, model=SIZES):
    kernel = mcmc.Metropolis(model, proposer)
    return fw.sample(kernel, start, draws=10, thin=10, engine=engine, progress=False)


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize(
    ("move", "message"),
    [
        (Move(without_source), "draw 'without_source' .test_guards.py, line .* did not set move.source"),
        (Move(set_to_numbers, (10**9, 0, 1, 0)), "set a move.item that is not an item"),
        (Move(set_to_numbers, (-1, 0, 1, 0)), "set a move.item that is not an item"),
        (Move(set_to_numbers, (0, 10**9, 1, 0)), "did not set move.source"),
        (Move(set_to_numbers, (2, 0, 2, 0)), "did not set move.source"),
        (Move(set_to_numbers, (0, 0, 10**9, 0)), "set a move.target that is not a target"),
        (Move(set_to_numbers, (0, 0, 0, 0)), "or is where it already is"),
        (Move(set_to_numbers, (0, 0, 1, 7)), "set move.world to a number"),
        (Move(set_to_numbers, (0, 0, 10**9, 1)), "set a move.target that is not a target"),
        (Move(list_too_many), "listed more changes"),
        (Move(list_a_wrong_one), "did not set move.source"),
    ],
)
def test_draws_that_set_what_is_not_there_are_told_by_name(move, message, engine):
    for proposer in (move, mcmc.PartitionMixture([mcmc.RelocateToItem(), move])):
        with pytest.raises(ProgramError, match=message):
            walk(proposer, engine)


def test_what_is_right_is_let_through_with_the_same_trace():
    compiled, plain = (walk(Move(right), engine) for engine in ("compiled", "plain"))
    assert compiled.best == plain.best
    assert compiled.scores.tolist() == plain.scores.tolist()


def relabel_to_numbers(mine, move):
    move.item, move.source, move.target = mine.set[0], mine.set[1], mine.set[2]
    return 1.0


class RelabelTo(mcmc.UniformRelabel):
    def __init__(self, numbers):
        self.numbers = numbers

    def program(self, parts):
        return Program(draw=relabel_to_numbers, arrays={"set": np.array(self.numbers)})


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("numbers", [(3, 0, 1), (0, 1, 0), (0, 0, 2), (0, 0, -1)])
def test_draws_of_labels(numbers, engine):
    column = fw.Column.hidden("h", fw.Domain("d", ["a", "b"]), 3)
    model = fw.Model([templates.Bias(column)], [0.1, 0.2])
    with pytest.raises(ProgramError, match="draw 'relabel_to_numbers'"):
        walk(RelabelTo(numbers), engine, fw.Assignment(fw.Variables([column]), [0, 0, 0]), model)


def offer_to_numbers(world, mine, random, move, choice):
    item = below(random, len(world.target))
    move.item, move.source, move.choices = item, world.target[item], 2
    choice.targets[0], choice.targets[1] = world.target[item], mine.set[0]
    choice.place[choice.targets[0]] = 1
    if mine.set[1] > 0:
        choice.place[choice.targets[1]] = 2
    return 1.0


class Offering(fw.Tree):
    numbers = (0, 1)

    def choices(self):
        return Program(support=offer_to_numbers, arrays={"set": np.array(self.numbers)})


@pytest.mark.parametrize("numbers", [(0, 0), (-1, 0), (10**6, 0)])
def test_offers(numbers, monkeypatch):
    monkeypatch.setattr(Offering, "numbers", numbers)
    world = Offering([None, 0, 0])
    model = fw.Model([templates.TargetTemplate.from_table("t", np.zeros((3, 4)))], [1.0])
    for engine in ("compiled", "plain"):
        with pytest.raises(ProgramError, match=r"support 'offer_to_numbers' .* did not offer each target"):
            fw.sample(mcmc.WorldGibbs(model), world, draws=5, thin=5, engine=engine, progress=False)


def choose_the_hundredth():
    return 100.0


class Choosing(mcmc.WorldGibbs):
    def programs(self, parts):
        own = Program(choose=choose_the_hundredth)
        return {"support": parts.world.choices(), "choose": own}


def test_choices():
    with pytest.raises(ProgramError, match=r"choose 'choose_the_hundredth' .* did not return the place"):
        fw.sample(Choosing(SIZES), START, draws=5, thin=5, engine="compiled", progress=False)


def far_weight(move, gradient):
    put(gradient, move, 10**8, 1.0)


def no_number():
    return math.nan


def pairs_of(world, mine, move):
    return 1.0 if world.size[move.target] > 1 else -1.0


class Judging(learning.ProgramPreference):
    def __init__(self, judge):
        self.judge = judge

    def program(self, parts):
        return Program(judge=self.judge)


class Weighing(templates.ClusterSize):
    """As its gradient says, it has a weight that it has not."""

    def program(self, world, offset, weights):
        return Program(gradient=far_weight, entries=1)


def learn(model, judge):
    proposer = mcmc.PartitionMixture([mcmc.RelocateToItem(), mcmc.RelocateToNew()])
    world = learning.TrainingWorld(model=model, proposer=proposer, start=START, preference=Judging(judge))
    return learning.SampleRank(update="unit").fit([world], passes=1, steps=50, progress=False)


def test_preferences_must_return_numbers():
    with pytest.raises(ProgramError, match=r"judge 'no_number' .* returned nan"):
        learn(SIZES, no_number)
    assert learn(SIZES, pairs_of).weights.any()


def test_gradients_name_weights_that_there_are():
    with pytest.raises(ProgramError, match=r"gradient 'far_weight' .* named a weight that does not exist"):
        learn(fw.Model([Weighing()]), pairs_of)


def test_programs_of_the_library_are_as_they_were():
    world = START.arrays
    program = START.program()
    assert guarded_program(program, world, 8) is program
    own = Program(draw=right)
    guarded = guarded_program(own, world, 8)
    assert guarded is not own
    assert guarded.functions["draw"] is not right
    assert guarded_program(guarded, world, 8) is guarded
