"""SampleRank over labels with sparse gradients: compiled, interpreted, and from the definition."""

import math

import numpy as np
import pytest

from assignment_cases import CASES, TAG, all_worlds
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.acceptances import METROPOLIS
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.proposals.assignment_proposals import (
    LocalRelabel,
    ResampleSpan,
    Swap,
    UniformRelabel,
)
from factorwise.inference.mcmc.proposals.mixtures import Mixture
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.library import merge, put, squares
from factorwise.learning.samplerank.preferences import AccuracyPreference
from factorwise.model.labels.library import Bias, Transitions, UnaryFeatures
from factorwise.model.model import Model
from factorwise.model.template import Template
from factorwise.rng import Stream
from factorwise.variables.features import Features
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment

MODELS = {name: case() for name, case in CASES.items()}
TOLERANCE = 1e-9


def mira(mine, move, gradient):
    """Correct a wrong ranking by the smallest step that mends it."""
    sign = 1.0 if move.better > 0.0 else -1.0
    lacking = mine.margin[0] - sign * move.gain
    if lacking <= TOLERANCE:  # a ranking that was just mended lacks what rounding leaves
        return 0.0
    merge(gradient, move)
    norm = squares(gradient, move)
    if norm == 0.0:
        return 0.0
    step = sign * min(mine.cap[0], lacking / norm)
    for k in range(move.entries):
        mine.weights[gradient.index[k]] += step * gradient.value[k]
    mine.updates[0] += 1
    return 1.0


class Learner:
    """One walk that learns."""

    def __init__(self, model, proposer, start, truth, *, interpreted=False):
        self.weights, self.updates = np.zeros(model.blocks.size), np.zeros(1, np.int64)
        arrays = {"weights": self.weights, "updates": self.updates, "margin": [1.0], "cap": [0.3]}
        self.walk = Walk(
            Metropolis(model, proposer),
            start,
            weights=self.weights,
            learning=True,
            interpreted=interpreted,
            judge=AccuracyPreference(truth).program(Surroundings(start)),
            update=Program(update=mira, arrays=arrays, name="MIRA"),
        )


def plain_mira(model, proposer, start, truth, stream, steps):
    """The same from the definition: gradients by `model.difference`, gains by `model.gain`."""
    model = Model(model.templates)
    world, updates = start.copy(), 0
    hidden = ~start.variables.observed
    for _ in range(steps):
        proposal = proposer.draw(stream, world)
        if proposal.diff is None:
            continue
        after = world.after(proposal.diff)
        better = sum(int(((w.values == truth) & hidden).sum()) * s for w, s in ((after, 1), (world, -1)))
        gradient = model.difference(world, proposal.diff)
        fixed = model.gain(world, proposal.diff) - gradient.dot(model.weights)
        sign, norm = math.copysign(1.0, better), float(gradient.value @ gradient.value)
        lacking = 1.0 - sign * model.gain(world, proposal.diff)
        if better != 0 and math.isfinite(fixed) and lacking > TOLERANCE and norm > 0.0:
            model.weights[gradient.index] += sign * min(0.3, lacking / norm) * gradient.value
            updates += 1
        if METROPOLIS.decides(stream, proposal, model.gain(world, proposal.diff), 1.0):
            world = after
    return model.weights, world, updates


PROPOSERS = {
    "uniform": lambda model: UniformRelabel(),
    "swap": lambda model: Swap(),
    "both": lambda model: Mixture([UniformRelabel(), Swap()], [2.0, 1.0]),
    "by scores": lambda model: LocalRelabel(model, 0.7),
    "spans": lambda model: ResampleSpan(model, [range(3)], sharpness=0.7),
    "all": lambda model: Mixture([UniformRelabel(), Swap(), LocalRelabel(model)]),
}


def task(case):
    variables, model = MODELS[case]
    worlds = all_worlds(variables)
    start = max(worlds, key=model.score)
    return model, start, worlds[len(worlds) // 3].values


@pytest.mark.parametrize("proposer", PROPOSERS)
@pytest.mark.parametrize("case", CASES)
def test_compiled_and_interpreted_learning_are_one(case, proposer):
    model, start, truth = task(case)
    fast, slow = Stream(7), Stream(7)
    compiled = Learner(model, PROPOSERS[proposer](model), start, truth)
    interpreted = Learner(model, PROPOSERS[proposer](model), start, truth, interpreted=True)
    for _ in range(3):
        compiled.walk.advance(fast, 1.0, 40)
        interpreted.walk.advance(slow, 1.0, 40)
        np.testing.assert_allclose(compiled.weights, interpreted.weights, atol=1e-12)
        assert compiled.walk.view == interpreted.walk.view
        assert compiled.updates[0] == interpreted.updates[0]
        np.testing.assert_array_equal(fast.state, slow.state)


@pytest.mark.parametrize("proposer", ["uniform", "swap", "both"])
@pytest.mark.parametrize("case", CASES)
def test_compiled_learning_is_learning_from_the_definition(case, proposer):
    model, start, truth = task(case)
    learner, fast, slow = Learner(model, PROPOSERS[proposer](model), start, truth), Stream(9), Stream(9)
    learner.walk.advance(fast, 1.0, 150)
    weights, world, updates = plain_mira(model, PROPOSERS[proposer](model), start, truth, slow, 150)
    np.testing.assert_allclose(learner.weights, weights, atol=1e-12)
    assert learner.walk.view == world
    assert learner.updates[0] == updates
    np.testing.assert_array_equal(fast.state, slow.state)


@pytest.mark.parametrize("proposer", PROPOSERS)
def test_the_truth_comes_to_lead_its_neighbors(proposer):
    """Four words, each with a feature of its own: weights that give every word its tag exist."""
    tag = Column.hidden("tag", TAG, 4)
    variables = Variables([tag])
    words = Features.from_rows([["w0", "cap"], ["w1"], ["w2", "cap"], ["w3"]])
    model = Model([UnaryFeatures(tag, words), Transitions(tag), Bias(tag)])
    truth = Assignment(variables, [0, 1, 2, 0])
    learner = Learner(model, PROPOSERS[proposer](model), Assignment(variables, [0, 0, 1, 2]), truth)
    learner.walk.advance(Stream(1), 1.0, 600)
    learned = Model(model.templates, learner.weights)
    changes = [p.diff for p in PROPOSERS[proposer](model).support(truth) if p.diff is not None]
    assert max(learned.gain(truth, diff) for diff in changes) < 0.0


def test_a_gradient_has_a_place_for_what_a_change_touches_and_not_for_every_weight():
    tag = Column.hidden("tag", TAG, 1_000)
    features = Features.from_rows([[f"w{k}", f"v{k % 70}"] for k in range(1_000)])
    model = Model([UnaryFeatures(tag, features), Transitions(tag)])
    start = Assignment.initial(Variables([tag]))
    truth = np.arange(1_000) % 3
    for proposer, changes in ((UniformRelabel(), 1), (Swap(), 2)):
        learner = Learner(model, proposer, start, truth)
        assert len(learner.walk.frame.gradient.index) == changes * 2 * (2 + 2)
        assert learner.walk.frame.step["dense"][0] == 0
    learner = Learner(model, UniformRelabel(), start, truth)
    learner.walk.advance(Stream(0), 1.0, 50_000)
    assert (learner.walk.view.values == truth).mean() > 0.6


def too_many(move, gradient):
    for weight in (0, 0, 0):
        put(gradient, move, weight, 1.0)


class Undeclared(Template):
    """A user's template whose gradient has more entries than it declares."""

    name, size = "undeclared", 1

    def program(self, world, offset, weights):
        return Program(gradient=too_many, gains=nothing, entries=2, name="undeclared")


def nothing(move):
    """Score nothing."""


def test_a_gradient_that_does_not_fit_is_told_to_declare_its_length():
    tag = Column.hidden("tag", TAG, 4)
    start = Assignment.initial(Variables([tag]))
    learner = Learner(Model([Undeclared()]), UniformRelabel(), start, [1, 1, 1, 1])
    with pytest.raises(InvalidArgumentError, match=r"Program\(gradient=..., entries=...\)"):
        learner.walk.advance(Stream(0), 1.0, 10)
