"""Small models over assignments with every awkward feature, and exact answers by enumeration."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np

from factorwise.inference.mcmc.assignment_gibbs import BlockGibbs, Gibbs
from factorwise.inference.mcmc.branches import every_path
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.assignment_proposals import (
    LocalRelabel,
    ResampleSpan,
    Swap,
    UniformRelabel,
)
from factorwise.inference.mcmc.proposals.mixtures import Mixture
from factorwise.inference.mcmc.walk import Walk
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.labels.custom import DynamicTemplate, TupleTemplate
from factorwise.model.labels.library import (
    Bias,
    FeatureTransitions,
    SkipEdges,
    Tables,
    Transitions,
    UnaryFeatures,
    WeightedTables,
)
from factorwise.model.model import Model
from factorwise.variables.domain import Domain
from factorwise.variables.features import Features
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment

BIT = Domain("bit", ["off", "on"])
TAG = Domain("tag", ["N", "V", "O"])


class Remembering(Model):
    """A model that keeps the gains it was asked for: enumeration asks for the same ones many times."""

    def __init__(self, templates, weights):
        super().__init__(templates, weights)
        self.known = {}

    def gain(self, world, diff):
        key = (world.canonical(), diff)
        if key not in self.known:
            self.known[key] = super().gain(world, diff)
        return self.known[key]


def with_random_weights(templates, seed):
    size = sum(template.size for template in templates)
    return Remembering(templates, np.random.default_rng(seed).normal(size=size))


def loop():
    """A loop of three two-label variables."""
    column = Column.hidden("bit", BIT, 3)
    variables = Variables([column])
    templates = [Bias(column), Transitions(column, pairs=[[0, 1], [1, 2], [2, 0]])]
    return variables, with_random_weights(templates, 1)


def mixed():
    """Three cardinalities (one of them 1), an observed variable and a table over three variables."""
    tag = Column.of("tag", TAG, ["N", "V", "O"], observed=[False, True, False])
    bit = Column.hidden("bit", BIT, 2)
    only = Column.hidden("only", Domain("only", ["x"]), 1)
    variables = Variables([tag, bit, only])
    rng = np.random.default_rng(2)
    features = Features.from_dense(rng.normal(size=(3, 2)))
    templates = [
        UnaryFeatures(tag, features),
        FeatureTransitions(tag, Features.from_rows([["a", "b"], ["b"]])),
        WeightedTables(variables, [[0, 3], [2, 4]]),
        Tables(variables, [[0, 3, 2], [1, 4, 0]], rng.normal(size=(2, 3, 2, 3)), name="triples"),
        Tables(variables, [[5, 4]], rng.normal(size=(1, 2)), name="with the single label"),
    ]
    return variables, with_random_weights(templates, 3)


def counts():
    """Overlapping groups, one with a forbidden count, and an observed member."""
    bit = Column.of("bit", BIT, ["off", "off", "on", "off"], observed=[False, False, True, False])
    variables = Variables([bit])
    templates = [
        Bias(bit),
        Cardinality(bit, "on", [[0, 1, 2], [1, 2, 3]], maximum=2),
        Cardinality(bit, "off", fixed=[0.3, -0.2, 0.5, -math.inf, 0.0], name="never three off"),
    ]
    return variables, with_random_weights(templates, 4)


def pairs():
    """Exactly two of four variables are on, so that single changes lead nowhere."""
    bit = Column.hidden("bit", BIT, 4)
    never = -math.inf
    templates = [
        Transitions(bit),
        Cardinality(bit, "on", fixed=[never, never, 0.0, never, never]),
    ]
    return Variables([bit]), with_random_weights(templates, 8)


def zeros():
    """Hard zeros on a chain with a skip edge; all allowed worlds stay connected by single changes."""
    tag = Column.hidden("tag", TAG, 3)
    variables = Variables([tag])
    table = np.zeros((3, 3))
    table[0, 2] = -math.inf
    table[2, 1] = -math.inf
    templates = [
        Tables(variables, [[0, 1], [1, 2]], table, name="forbidden"),
        SkipEdges(tag, [[0, 2]], same_label=True),
        Bias(tag),
    ]
    return variables, with_random_weights(templates, 5)


def functions():
    """A user's function over tuples, with data."""
    bit = Column.hidden("bit", BIT, 4)
    variables = Variables([bit])

    def agree(first, second, strength):
        return (strength if first == second else 0.0, float(first == "on" and second == "on"))

    templates = [
        TupleTemplate(
            "agree", [[0, 1], [1, 2], [3, 0]], agree, ["agreement", "both on"], data=[[1.0, -0.5, 2.0]]
        ),
        Bias(bit),
    ]
    return variables, with_random_weights(templates, 6)


def touched_runs(values, variable, out):
    """Write the factors at ``variable``: the run of equal labels it is in, and the runs beside it.

    A run is named by its first and last variable.
    """
    count = 0
    for at in (variable - 1, variable, variable + 1):
        if 0 <= at < len(values):
            first = at
            while first > 0 and values[first - 1] == values[at]:
                first -= 1
            last = at
            while last + 1 < len(values) and values[last + 1] == values[at]:
                last += 1
            out[count, 0] = first
            out[count, 1] = last
            count += 1
    return count


def run_statistics(values, key):
    """Square of a run's length, and whether it is a long run of label 1."""
    length = key[1] - key[0] + 1
    return (float(length * length), 1.0 if length > 2 and values[key[0]] == 1 else 0.0)


def runs():
    """Factors that come and go with the labels: one per run of equal labels."""
    bit = Column.hidden("bit", BIT, 4)
    templates = [
        Bias(bit),
        DynamicTemplate("runs", touched_runs, run_statistics, ["squared length", "long run"], max_touched=3),
    ]
    return Variables([bit]), with_random_weights(templates, 7)


def forbidden_start():
    """A model, and a world that it forbids, with allowed neighbors."""
    tag = Column.hidden("tag", TAG, 3)
    variables = Variables([tag])
    table = np.zeros((3, 3))
    table[0, 0] = -math.inf
    model = Model([Tables(variables, [[0, 1]], table), Bias(tag)], [0.0, 1.0, 2.0])
    return model, Assignment.initial(variables)


STATIC = {case.__name__: case for case in (loop, mixed, counts, pairs, zeros, functions)}
CASES = STATIC | {"runs": runs}


def kernels(variables, model):
    """Every sampler and proposer for a small model, by name."""
    local = LocalRelabel(model, sharpness=0.6)
    hidden = variables.hidden.tolist()
    blocks = [hidden[:2], hidden[1:3], hidden[2:]]
    return {
        "uniform": Metropolis(model, UniformRelabel()),
        "local": Metropolis(model, local),
        "span": Metropolis(model, ResampleSpan(model, [hidden[1:], hidden[:2]], 2, 3, sharpness=0.6)),
        "swap": Metropolis(model, Swap()),
        "mixture": Metropolis(model, Mixture([UniformRelabel(), local, Swap()], [1.0, 2.0, 1.5])),
        "local and swap": Metropolis(model, Mixture([Swap(), LocalRelabel(model, 1.3)])),
        "gibbs": Gibbs(model),
        "gibbs sweep": Gibbs(model, scan="systematic"),
        "block gibbs": BlockGibbs(model, blocks),
        "block gibbs sweep": BlockGibbs(model, blocks, scan="systematic"),
    }


KERNELS = tuple(kernels(*loop()))
PROPOSERS = ("uniform", "local", "span", "swap", "mixture", "local and swap")


def reaches_all(case, kernel):
    """Whether the sampler can reach every allowed world of the case."""
    if case == "pairs":
        return "swap" in kernel or "mixture" in kernel or "block" in kernel or kernel == "span"
    return kernel != "swap"


def all_worlds(variables):
    """Every world that keeps what is observed."""
    choices = [
        [int(code)] if code >= 0 else range(int(cardinality))
        for code, cardinality in zip(variables.codes, variables.cardinality, strict=True)
    ]
    return [Assignment(variables, np.array(values)) for values in itertools.product(*choices)]


def exact_distribution(model, worlds, temperature):
    """Normalised exp(score / temperature)."""
    scores = np.array([model.score(world) for world in worlds]) / temperature
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def walked_matrix(kernel, worlds, temperature):
    """Exact transition probabilities, from every path that one interpreted step of the walk may take."""
    walk = Walk(kernel, worlds[0], interpreted=True)
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    matrix = np.zeros((len(worlds), len(worlds)))

    def step(world, branches):
        walk.reset(world)
        walk.advance(branches, temperature, 1)
        return position[walk.view.canonical()]

    for row, world in enumerate(worlds):
        for column, probability in every_path(partial(step, world)):
            matrix[row, column] += probability
    return matrix
