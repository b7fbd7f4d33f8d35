"""Adaptive proposers over small models of every kind, and tasks whose answer is known."""

from __future__ import annotations

import numpy as np

from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.model.model import Model
from factorwise.model.table_templates import PairTableTemplate
from factorwise.variables.pair_table import PairTable
from walk_cases import mixed_model, table_for

COUNTED = ("count", "all", "exists", "majority", "mean", "per member")  # all but those that need links
FUNCTIONS = ("numbers", "reals", "rows", "vectors", "repelling pairs", "sizes", "clusters", "counts")
MODELS = {
    "tables": ((), (4, 33), COUNTED),
    "links": ((), (3,), ("linked", "count")),
    "functions": (FUNCTIONS, (), ()),
    "edges": (("edges", "repelling edges"), (), ()),
    "few": (("edges",), (2,), ("count", "exists")),
    "everything": ((*FUNCTIONS, "edges", "majority of pairs"), (3,), COUNTED),
}
KINDS = {"splits and merges": (0.5, 0.5, 0.0), "moves too": (1.0, 0.8, 1.5)}
SCALES = {"zero": 0.0, "random": 1.0, "large": 60.0}


def model_for(case, n):
    """A model of one kind or of all kinds of factors."""
    names, widths, aggregates = MODELS[case]
    return mixed_model(n, names, [table_for(n, width, seed) for seed, width in enumerate(widths)], aggregates)


def weights_for(features, kinds, scale, seed=0):
    """Weights of any size for the features of a model."""
    split, merge = np.random.default_rng([seed, features.size]).normal(size=(2, features.size))
    return JumpWeights(features.names, scale * split, scale * merge, KINDS[kinds])


def proposer_for(model, *, parts="uniform", kinds="moves too", explore=0.15, scale="random"):
    """A proposer with weights that mean nothing."""
    features = JumpFeatures(model)
    weights = weights_for(features, kinds, SCALES[scale])
    return AdaptiveSplitMerge(features, weights, explore=explore, parts=parts)


def group_model(groups, *, seed=0, noise=2, flips=0.0):
    """Items of one group are alike, others are not, and the model knows: same is good, different is bad.

    flips
        Share of the pairs of which the feature says the opposite.
    """
    groups = np.asarray(groups)
    n = len(groups)
    rng = np.random.default_rng([seed, n])
    wrong = np.triu(rng.random((n, n)) < flips, 1)
    same = (groups[:, None] == groups) ^ (wrong | wrong.T)
    squares = {"same": same, "different": ~same}
    for k in range(noise):
        square = np.triu(rng.random((n, n)) < 0.5, 1)
        squares[f"noise {k}"] = square | square.T
    template = PairTableTemplate("pairs", PairTable.from_squares(squares), ("count",))
    return Model([template], np.array([1.0, -1.0] + [0.0] * noise))
