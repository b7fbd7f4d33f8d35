"""Adaptive proposers and walks over small models of every kind, and tasks whose answer is known."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.jumps import Jumps
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.tuning import Tuning
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.walk import Walk
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition
from partition_cases import start_for
from walk_cases import mixed_model, table_for

COUNTED = ("count", "all", "exists", "majority", "mean", "per member")  # all but those that need links
PAIRS = ("numbers", "reals", "rows", "vectors", "repelling pairs")
FUNCTIONS = (*PAIRS, "sizes", "clusters", "counts")
MODELS = {
    "tables": ((), (4, 33), COUNTED),
    "links": ((), (3,), ("linked", "count")),
    "pairs": (PAIRS, (), ()),
    "clusters": (("sizes", "clusters", "majority of pairs"), (), ()),
    "edges": (("edges", "repelling edges"), (), ()),
    "few": (("edges",), (2,), ("count", "exists")),
    "everything": ((*FUNCTIONS, "edges", "majority of pairs"), (3,), COUNTED),
}
KINDS = {"splits and merges": (0.5, 0.5, 0.0), "moves too": (1.0, 0.8, 1.5)}
SCALES = {"zero": 0.0, "random": 1.0, "large": 60.0}
CLOSE = 1e-4  # of scores and log-ratios: fields are in single precision
SOME = Partition.from_labels([0, 0, 0, 0, 1, 1, 1, 2, 3])
GROUPS = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2]
SMALL_TUNING = Tuning(iterations=6, samples=40)


@cache
def model_for(case, n):
    """A model of one kind or of all kinds of factors."""
    names, widths, aggregates = MODELS[case]
    return mixed_model(n, names, [table_for(n, width, seed) for seed, width in enumerate(widths)], aggregates)


def weights_for(features, kinds, scale, seed=0):
    """Weights of any size for the features of a model."""
    split, merge = np.random.default_rng([seed, features.size]).normal(size=(2, features.size))
    return JumpWeights(features.names, scale * split, scale * merge, KINDS[kinds])


def proposer_for(model, *, chosen=None, kinds="moves too", scale=1.0, size=None, **options):
    """A proposer with weights that mean nothing; ``size`` is the merge weight of the last feature."""
    features = JumpFeatures(model, chosen)
    weights = weights_for(features, kinds, scale)
    if size is not None:
        weights = weights.with_vector(np.append(weights.vector[:-1], size))
    return AdaptiveSplitMerge(features, weights, **{"explore": 0.15, **options})


def walk_for(case, n, world=None, *, acceptance="metropolis", interpreted=False, **options):
    """A walk by a proposer whose weights mean nothing."""
    model = model_for(case, n)
    kernel = Metropolis(model, proposer_for(model, **options), acceptance=acceptance)
    return Walk(kernel, start_for(n) if world is None else world, interpreted=interpreted)


def jumps_for(case, n, world=None, **options):
    """The jumps of a walk that takes every one that is drawn."""
    return Jumps(walk_for(case, n, world, acceptance="always", **options))


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


def counted(name):
    """Choose few features, not all of which are sums over pairs."""
    return name.startswith(("table 0: count", "table 0: mean"))


def assert_odds_are_kept(jumps, tolerance=1e-12):
    """Everything is that of a walk that has just come to this world."""
    jumps.draw(Stream(0), 1)  # brings it up to date
    kept, world = jumps.arrays, jumps.walk.view
    other = Jumps(Walk(jumps.walk.kernel, jumps.walk.world))
    other.weights = jumps.weights
    other.draw(Stream(0), 1)
    fresh = other.arrays
    np.testing.assert_array_equal(kept["label"], world.labels)
    for name in ("merge_odds", "split_odds"):
        np.testing.assert_allclose(kept[name], fresh[name], rtol=tolerance, atol=0.0)
    live = world.cluster_ids()
    dead = np.setdiff1d(np.arange(len(kept["size"])), live)
    for gone in (kept["merge_odds"][dead], kept["merge_odds"][:, dead], kept["split_odds"][dead]):
        assert not gone.any()
    assert not kept["dirty"].any()
    for cluster in live.tolist():
        exact = math.fsum(kept["merge_odds"][cluster])
        assert kept["sums"][cluster, :2].sum() == pytest.approx(exact, rel=1e-14)
    np.testing.assert_array_equal(kept["merge_odds"], kept["merge_odds"].T)


def group_jumps(labels=None, *, groups=GROUPS, kinds=(0.5, 0.5, 0.0), explore=0.1, truth=None, **options):
    """The jumps of a walk over `group_model` whose proposer has learned nothing yet."""
    model = group_model(groups, **options)
    features = JumpFeatures(model)
    proposer = AdaptiveSplitMerge(features, JumpWeights.zero(features.names, kinds), explore=explore)
    start = Partition.singletons(len(groups)) if labels is None else Partition.from_keys(labels)
    roles = {} if truth is None else {"judge": truth.program(Surroundings(start))}
    return Jumps(Walk(Metropolis(model, proposer), start, **roles))


def share_of_good(jumps, *, by="gain"):
    """Share of the jumps drawn that pay."""
    return np.mean([getattr(jump, by) > 0 for jump in jumps.draw(Stream(11), 400)])


def adaptive(model):
    """A proposer that has learned nothing yet."""
    return AdaptiveSplitMerge(JumpFeatures(model))


FOUR = group_model([0, 0, 1, 1])
OTHER_NAMES = model_for("edges", 4)
APART = Partition.singletons(4)
