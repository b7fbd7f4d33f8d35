"""Adaptive jumps: time of one decode step, and how it grows with the number of clusters.

    make bench ARGS=adaptive
    make bench ARGS="adaptive --quick"

A step draws several jumps, judges them by the model, takes the best, whether it improves the world or not,
and brings the odds of all jumps up to date; learning is left out. The model has 128 features of every pair in
five aggregates, as wide as that of coreference, from a generated table; the proposer sees their counts.
Times are of one thread, smallest of several runs, after compiling.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from timing import Timed, smallest, table, verdict

from factorwise import Model, Partition, templates
from factorwise.apps.coreference.resolution import AGGREGATES
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.jumps import Jumps
from factorwise.inference.mcmc.adaptive.law import JumpWeights, Parts
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.walk import Walk
from factorwise.rng import Stream
from factorwise.variables.pair_table import PairTable

SEED = 0
FEATURES = 128
ITEMS, CLUSTERS = 1_000, 300
BAR = 0.6e-3  # seconds a step
SPLITS_AND_MERGES, WITH_MOVES = (0.5, 0.5, 0.0), (0.4, 0.4, 0.2)


class Scale(NamedTuple):
    """How much is run."""

    repeats: int
    steps: int
    clusters: tuple[int, ...]


FULL = Scale(7, 40, (100, 200, 400, 800))
QUICK = Scale(2, 10, (50, 100))


def even(items: int, clusters: int) -> np.ndarray:
    """Label items so that all clusters are of about the same size."""
    return np.arange(items) % clusters


def uneven(items: int, clusters: int) -> np.ndarray:
    """Label items so that a few clusters hold most of them, as entities in a novel do."""
    shares = 1.0 / np.arange(1, clusters + 1)
    others = np.random.default_rng(SEED).choice(clusters, items - clusters, p=shares / shares.sum())
    return np.concatenate([np.arange(clusters), others])


def model_of(labels: np.ndarray) -> Model:
    """Features that hold more often within a cluster, and weights of either sign."""
    rng = np.random.default_rng(SEED)
    first, second = np.tril_indices(len(labels), -1)
    likely = np.where(labels[first] == labels[second], 100, 25).astype(np.uint8)
    drawn = rng.integers(0, 256, (len(first), FEATURES), np.uint8) < likely[:, None]
    pairs = PairTable(len(labels), [f"f{k}" for k in range(FEATURES)], drawn.view(np.uint8))
    model = Model([templates.PairTableTemplate("pairs", pairs, AGGREGATES)])
    model.weights = rng.normal(0.0, 0.1, model.blocks.size)
    return model


def engine_of(
    model: Model, labels: np.ndarray, kinds: tuple[float, float, float], parts: Parts = "uniform"
) -> Jumps:
    features = JumpFeatures(model, lambda name: name.startswith("pairs: count of"))
    rng = np.random.default_rng(SEED)
    split, merge = rng.normal(0.0, 0.3, (2, features.size))
    weights = JumpWeights(features.names, split, merge, kinds)
    kernel = Metropolis(model, AdaptiveSplitMerge(features, weights, parts=parts), acceptance="always")
    return Jumps(Walk(kernel, Partition.from_labels(labels)))


def walk(engine: Jumps, samples: int, steps: int) -> int:
    """Make so many steps; return how many clusters there are in the end."""
    stream = Stream(SEED)
    for _ in range(steps):
        engine.take(max(engine.draw(stream, samples), key=lambda jump: jump.gain))
    return int(engine.walk.view.n_clusters)


def timed(engine: Jumps, labels: np.ndarray, samples: int, scale: Scale) -> Timed[int]:
    """Time a walk that begins in the same world each time."""
    start = Partition.from_labels(labels)
    walk(engine, samples, 2)
    runs = []
    for _ in range(scale.repeats):
        engine.walk.reset(start)
        engine.draw(Stream(SEED), 1)  # brings the odds up to date
        runs.append(smallest(partial(walk, engine, samples, scale.steps), 1))
    return min(runs, key=lambda run: run.cpu)


def steps_of_one_world(scale: Scale) -> None:
    rows, slowest = [], 0.0
    for shape, labels in (("even", even(ITEMS, CLUSTERS)), ("uneven", uneven(ITEMS, CLUSTERS))):
        model = model_of(labels)
        for name, kinds, parts in (
            ("splits and merges", SPLITS_AND_MERGES, "uniform"),
            ("with moves", WITH_MOVES, "uniform"),
            ("guided splits", SPLITS_AND_MERGES, "guided"),
        ):
            engine = engine_of(model, labels, kinds, parts)
            for samples in (5, 10):
                run = timed(engine, labels, samples, scale)
                if name == "splits and merges" and shape == "even":
                    slowest = max(slowest, run.cpu / scale.steps)
                rows.append(
                    [
                        f"{shape}, largest {np.bincount(labels).max()}, {name}",
                        f"{samples}",
                        f"{1e3 * run.cpu / scale.steps:.3f}",
                        f"{1e3 * run.wall / scale.steps:.3f}",
                        f"{CLUSTERS} to {run.result}",
                    ]
                )
    print(f"{ITEMS:,} items in {CLUSTERS} clusters")
    print(table(["clusters", "samples", "CPU ms a step", "wall ms", "number of clusters"], rows))
    print(
        f"bar {1e3 * BAR:.1f} ms a step, splits and merges, even clusters, CPU time:"
        f" {verdict(slowest, BAR, at_most=True)}\n"
    )


def growth(scale: Scale) -> None:
    rows, times = [], []
    for clusters in scale.clusters:
        labels = even(3 * clusters, clusters)
        run = timed(engine_of(model_of(labels), labels, SPLITS_AND_MERGES), labels, 5, scale)
        times.append(run.cpu / scale.steps)
        rows.append(
            [
                f"{clusters}",
                f"{1e3 * times[-1]:.3f}",
                f"{1e3 * run.wall / scale.steps:.3f}",
                f"{1e6 * times[-1] / clusters:.2f}",
            ]
        )
    print("Clusters of 3, 5 samples")
    print(table(["clusters", "CPU ms a step", "wall ms", "us a cluster"], rows))
    slope = np.polyfit(np.log(scale.clusters), np.log(times), 1)[0]
    print(f"time grows with clusters to the power of {slope:.2f}; bar 1: {verdict(slope, 1.0, at_most=True)}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    scale = QUICK if parser.parse_args(arguments).quick else FULL
    steps_of_one_world(scale)
    growth(scale)


if __name__ == "__main__":
    main()
