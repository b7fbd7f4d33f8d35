"""Programs: what a function may ask for, and what is told at its own line where it does not fit."""

import inspect

import numpy as np
import pytest

from factorwise.errors import NoCompiledFormError, ProgramError
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.parts import ProgramProposer
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import below
from factorwise.model.clusterings.cluster_templates import ClusterSize
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.world.partition import Partition

MODEL = Model([ClusterSize()], [0.5, -0.2])


class Move(ProgramProposer):
    def __init__(self, draw, **arrays):
        self.function, self.arrays = draw, arrays

    def program(self, parts):
        return Program(draw=self.function, arrays=self.arrays)


def join_first(world, mine, random, move):
    item = below(random, len(world.label))
    if world.label[item] == world.label[0] or mine.lazy[0] > 0:
        return STAY
    move.item, move.source, move.target = item, world.label[item], world.label[0]
    return 1.0


def wrong_field(world, mine, move):
    move.item = mine.radius[0]
    return 1.0


def wrong_move_field(world, move):
    move.weight = 1.0
    return 1.0


def no_return(random, move):
    if below(random, 2) == 0:
        move.item = 0


def text_inside(world, random, move):
    item = below(random, len(world.label))
    label = "name " + str(item)
    move.item = len(label)
    return 1.0


def array_inside(world, random, move):
    marks = np.zeros(len(world.label))
    move.item = int(marks[0])
    return 1.0


def walk_with(draw, **arrays):
    return Walk(Metropolis(MODEL, Move(draw, **arrays)), Partition.singletons(4))


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if text in line)


def test_a_function_of_ones_own_walks_compiled_and_interpreted_alike():
    kernel = Metropolis(MODEL, Move(join_first, lazy=[0]), acceptance="always")
    compiled = Walk(kernel, Partition.singletons(6))
    interpreted = Walk(kernel, Partition.singletons(6), interpreted=True)
    assert compiled.advance(Stream(1), 1.0, 20) == interpreted.advance(Stream(1), 1.0, 20) > 0
    assert compiled.world == interpreted.world


@pytest.mark.parametrize(
    ("draw", "at", "says"),
    [
        (wrong_field, "mine.radius", "reads mine.radius, but mine has only lazy"),
        (wrong_move_field, "move.weight", "sets move.weight, but move has only changes"),
        (no_return, "def no_return", "may end without a return"),
    ],
)
def test_mistakes_are_told_at_their_own_line(draw, at, says):
    with pytest.raises(ProgramError, match=says) as caught:
        walk_with(draw, lazy=[0])
    assert f"draw '{draw.__name__}' (test_programs.py, line {line_of(draw, at)})" in str(caught.value)


@pytest.mark.parametrize(("draw", "at"), [(text_inside, "str(item)"), (array_inside, "np.zeros")])
def test_what_cannot_be_compiled_is_told_at_its_own_line_with_a_remedy(draw, at):
    with pytest.raises(NoCompiledFormError, match=r"cannot be compiled.*engine='plain'") as caught:
        walk_with(draw)
    assert f"test_programs.py, line {line_of(draw, at)})" in str(caught.value)


def test_arguments_that_a_role_does_not_offer_are_refused():
    with pytest.raises(ProgramError, match="has the argument 'weights', but draw offers world, mine, random"):
        Program(draw=lambda weights: 1.0)
    with pytest.raises(ProgramError, match="no function of a program is called 'drew'"):
        Program(drew=lambda world: 1.0)


def test_arrays_must_be_numbers_in_one_or_two_dimensions():
    assert Program(arrays={"rate": 0.5}).arrays["rate"].tolist() == [0.5]
    with pytest.raises(ProgramError, match="one or two dimensions"):
        Program(arrays={"cube": np.zeros((2, 2, 2))})
    with pytest.raises(ProgramError, match="one or two dimensions"):
        Program(arrays={"names": np.array(["a", None], dtype=object)})
