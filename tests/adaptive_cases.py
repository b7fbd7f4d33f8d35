"""Adaptive proposers and engines over small models of every kind, and tasks whose answer is known."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from factorwise.inference.mcmc.adaptive.engine import JumpEngine
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.tuning import Tuning
from factorwise.inference.mcmc.gradient_engine import Manner
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.model.model import Model
from factorwise.model.partition_program import PartitionProgram
from factorwise.model.table_templates import PairTableTemplate
from factorwise.rng import Stream
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition
from partition_cases import start_for
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
CLOSE = 1e-4  # of scores and log-ratios: fields are in single precision
SOME = Partition.from_labels([0, 0, 0, 0, 1, 1, 1, 2, 3])
GROUPS = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2]
SMALL_TUNING = Tuning(iterations=6, samples=40)


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


@cache
def parts_of(case, n, chosen=None):
    """A model, its program and its features, each made once."""
    model = model_for(case, n)
    return model, PartitionProgram(model, n), JumpFeatures(model, chosen)


def engine_for(case, n, world=None, *, chosen=None, size=None, scale=1.0, kinds="moves too", **options):
    """An engine whose weights mean nothing; ``size`` is the merge weight of the logarithm of the size."""
    model, program, features = parts_of(case, n, chosen)
    weights = weights_for(features, kinds, scale)
    if size is not None:
        weights = weights.with_vector(np.append(weights.vector[:-1], size))
    proposer = AdaptiveSplitMerge(features, weights, **{"explore": 0.15, **options})
    start = start_for(n) if world is None else world
    return JumpEngine(Metropolis(model, proposer), start, program=program)


def walk_freely(engine, stream, steps):
    """Take every jump that is drawn."""
    return engine.learn(stream, Manner("always"), engine._resting, None, steps, learning=False)


def counted(name):
    """Choose few features, not all of which are sums over pairs."""
    return name.startswith(("table 0: count", "table 0: mean"))


def assert_odds_are_kept(engine, tolerance=1e-12):
    """Everything is that of an engine that has just come to this world."""
    kept, world = engine._jumps, engine.view
    fresh = JumpEngine(engine.kernel, engine.world, program=engine.program)
    fresh.weights = engine.weights
    np.testing.assert_allclose(kept.merge_odds, fresh._jumps.merge_odds, rtol=tolerance, atol=0.0)
    np.testing.assert_allclose(kept.split_odds, fresh._jumps.split_odds, rtol=tolerance, atol=0.0)
    live = world.cluster_ids()
    np.testing.assert_allclose(
        kept.contents[live], fresh._jumps.contents[live], rtol=tolerance, atol=tolerance
    )
    dead = np.setdiff1d(np.arange(world.n_items), live)
    assert not kept.merge_odds[dead].any()
    assert not kept.merge_odds[:, dead].any()
    assert not kept.split_odds[dead].any()
    counts, recounted = engine._tables.counts, fresh._tables.counts
    if len(counts) > 0:
        np.testing.assert_array_equal(counts[live], recounted[live])
        assert not counts[world.n_items :].any()  # zeros, and the sides of splits
    assert not world.arrays.items["mark"].any()
    for cluster in live.tolist():
        exact = math.fsum(kept.merge_odds[cluster])
        assert kept.sums[cluster, 0] + kept.sums[cluster, 1] == pytest.approx(exact, rel=1e-14)
    np.testing.assert_array_equal(kept.merge_odds, kept.merge_odds.T)


def group_engine(labels=None, *, groups=GROUPS, kinds=(0.5, 0.5, 0.0), explore=0.1, **options):
    """An engine over `group_model` that has learned nothing yet."""
    model = group_model(groups, **options)
    features = JumpFeatures(model)
    proposer = AdaptiveSplitMerge(features, JumpWeights.zero(features.names, kinds), explore=explore)
    start = Partition.singletons(len(groups)) if labels is None else Partition.from_keys(labels)
    return JumpEngine(Metropolis(model, proposer), start)


def share_of_good(engine, *, by="gain", truth=None):
    """Share of the jumps drawn that pay."""
    jumps = engine.draw(Stream(11), 400, truth=truth)
    return np.mean([getattr(jump, by) > 0 for jump in jumps])


def adaptive(model):
    """A proposer that has learned nothing yet."""
    return AdaptiveSplitMerge(JumpFeatures(model))


FOUR = group_model([0, 0, 1, 1])
OTHER_NAMES = model_for("edges", 4)
APART = Partition.singletons(4)
