"""Small projection problems of every kind, and their optimum by an independent solver over joint tables."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import LinearConstraint, minimize
from scipy.special import entr

from factorwise.inference.exact import JunctionTree, TreeOracle
from factorwise.inference.message_passing.projection import (
    ChainBase,
    GraphBase,
    MeasuredEnergy,
    Measurement,
    absolute,
    hinge,
    huber,
    multinomial_counts,
    poisson_counts,
    smoothed_hinge,
    squared,
)
from factorwise.kernels.numeric.univariate_losses import ABSOLUTE, HINGE
from factorwise.model.grounding import FactorGraph

LENGTH, LABELS = 3, 3


def chain(seed, length=LENGTH, labels=LABELS, tied=False):
    random = np.random.default_rng(seed)
    edges = (labels, labels) if tied else (length - 1, labels, labels)
    return ChainBase(random.normal(0.0, 1.0, (length, labels)), random.normal(0.0, 1.0, edges))


def tree(seed):
    """A star with a tail, labels of different number, through the tree oracle."""
    random = np.random.default_rng(seed)
    sizes = [2, 3, 2, 2]
    pairs = [(0, 1), (0, 2), (3, 0)]
    factors = [((v,), random.normal(0.0, 1.0, n)) for v, n in enumerate(sizes)]
    factors += [(pair, random.normal(0.0, 1.0, [sizes[v] for v in pair])) for pair in pairs]
    return GraphBase(FactorGraph.build(sizes, factors), TreeOracle())


def loop(seed):
    """A ring of four, through the junction tree: its entropy is not Bethe's, the problem is the same."""
    random = np.random.default_rng(seed)
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0)]
    return GraphBase(
        FactorGraph.build([2] * 4, [(pair, random.normal(0.0, 1.0, (2, 2))) for pair in pairs]),
        JunctionTree(),
    )


BASES = {"chain": chain, "tree": tree, "loop": loop}


def rows(base, count, seed, factors=False, positive=False):
    """Random measurements, each of a few marginals."""
    random = np.random.default_rng(seed)
    size = base.layout.size if factors else base.layout.node_size
    matrix = random.normal(0.0, 1.0, (count, size)) * (random.random((count, size)) < 0.4)
    matrix[:, 0] += 0.5
    return Measurement.of(np.abs(matrix) if positive else matrix)


def energy(kind, base, seed=0):
    """One energy of each convex kind that pulls away from where the base model is."""
    random = np.random.default_rng(seed + 100)
    some = rows(base, 3, seed, factors=kind.endswith("edges"))
    at = some.apply(base.marginals(np.zeros(base.layout.node_size)))
    weights = random.uniform(0.5, 3.0, 3)
    nodes = base.layout.node_size
    match kind:
        case "hinge" | "hinge on edges":
            return MeasuredEnergy(some, hinge(at + np.array([0.3, -0.2, 2.0])), weights, name=kind)
        case "smoothed hinge":
            return MeasuredEnergy(
                some, smoothed_hinge(at + np.array([0.3, 0.1, 2.0]), 0.4), weights, name=kind
            )
        case "absolute":
            return MeasuredEnergy(some, absolute(at + np.array([0.2, -0.1, 2.0])), weights, name=kind)
        case "squared" | "squared on edges":
            return MeasuredEnergy(some, squared(at + np.array([0.5, -1.0, 1.0])), 4.0 * weights, name=kind)
        case "huber":
            return MeasuredEnergy(
                some, huber(at + np.array([0.5, -1.0, 0.05]), 0.3), 4.0 * weights, name=kind
            )
        case "poisson":
            counts = random.poisson(5.0, nodes) * (random.random(nodes) < 0.7)
            return poisson_counts(counts, population=10.0, rate=0.9)
        case "multinomial":
            return multinomial_counts(random.poisson(5.0, nodes), population=10.0)
        case "poisson nearby" | "multinomial nearby":
            expected = 100.0 * base.answer(np.zeros(nodes)).marginals
            made = poisson_counts if kind.startswith("poisson") else multinomial_counts
            return made(random.poisson(expected), population=100.0)
        case "mixed":
            both = energy("hinge", base, seed) + energy("squared", base, seed + 1)
            return both + energy("poisson", base, seed)
    raise ValueError(kind)


SMOOTH = ["smoothed hinge", "squared", "squared on edges", "huber", "poisson", "multinomial"]
KINKED = ["hinge", "hinge on edges", "absolute", "mixed"]


@dataclass(frozen=True)
class Enumerated:
    """All settings of a base model: their scores, and the matrix that takes probabilities to marginals."""

    scores: np.ndarray
    marginals: np.ndarray

    @classmethod
    def of(cls, base):
        layout, theta = base.layout, base.scores(np.zeros(base.layout.node_size))
        settings = list(product(*map(range, layout.cardinality.tolist())))
        matrix = np.zeros((layout.size, len(settings)))
        for column, setting in enumerate(settings):
            for variable, label in enumerate(setting):
                matrix[layout.node(variable, label), column] = 1.0
            for factor, scope in enumerate(layout.scopes):
                matrix[layout.factor(factor, [setting[v] for v in scope]), column] = 1.0
        return cls(theta @ matrix, matrix)

    def objective(self, energy, probability):
        value = energy.value(self.marginals @ probability)
        return -self.scores @ probability - entr(probability).sum() + value


def optimum(base, energy):
    """Least objective by sequential quadratic programming over the joint distribution.

    Kinks are written as the larger of two lines, under one more unknown each.
    """
    every = Enumerated.of(base)
    count = len(every.scores)
    matrix = energy.measurement.widened(base.layout.size).matrix @ every.marginals
    losses, weights = energy.losses, energy.weights
    kinks = np.flatnonzero(losses.kinked)
    smooth = np.where(losses.kinked, 0.0, weights)
    curved = MeasuredEnergy(energy.measurement, losses, smooth)

    def function(unknown):
        p = np.maximum(unknown[:count], 1e-300)
        a = matrix @ p
        value = -every.scores @ p - entr(p).sum() + curved.value_of(a) + weights[kinks] @ unknown[count:]
        slope = -every.scores + np.log(p) + 1.0 + curved.slope_of(a) @ matrix
        return value, np.concatenate([slope, weights[kinks]])

    lines, heights = [], []
    for index, kink in enumerate(kinks):
        own = np.eye(len(kinks))[index]
        signs = {HINGE: [1.0, 0.0], ABSOLUTE: [1.0, -1.0]}[int(losses.kind[kink])]
        for sign in signs:
            lines.append(np.concatenate([sign * matrix[kink], own]))
            heights.append(sign * losses.target[kink])
    constraints = [LinearConstraint(np.concatenate([np.ones(count), np.zeros(len(kinks))]), 1.0, 1.0)]
    if lines:
        constraints.append(LinearConstraint(np.array(lines), heights, np.inf))
    start = np.exp(every.scores - every.scores.max())
    start /= start.sum()
    slack = losses.value(matrix @ start)[kinks]
    found = minimize(
        function,
        np.concatenate([start, slack]),
        jac=True,
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * count + [(None, None)] * len(kinks),
        constraints=constraints,
        options={"ftol": 1e-12, "maxiter": 1_000},
    )
    probability = np.maximum(found.x[:count], 0.0)
    return every.objective(energy, probability / probability.sum())
