"""SampleRank: steps and factors a second, time per step as the world grows, and LitBank's training.

    make bench ARGS=samplerank
    make bench ARGS="samplerank --quick"

A step is one proposal with its gradient, truth gain, update and decision; walks start at the truth and are
greedy, so that clusters keep the size they are meant to have and few steps are accepted. A factor
evaluation is one pair of items looked at. Times are CPU seconds of one thread, smallest of several runs,
after compiling. FACTORIE (Scala) is not run here: its rate is quoted from an earlier run on another busy
machine of two cores. The last part needs the data directory (FACTORWISE_DATA) and is left out without it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from clustering import points
from timing import smallest, table, verdict

from factorwise import Fields, Model, Partition, mcmc, templates
from factorwise.apps.coreference.documents import discourses, read_documents
from factorwise.apps.coreference.resolution import training_world
from factorwise.datasets.local import find_data
from factorwise.errors import MissingDataError
from factorwise.inference.mcmc.acceptances import GREEDY
from factorwise.kernels.walks.loops import UPDATES
from factorwise.learning.samplerank.learner import SampleRank
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.learning.samplerank.walkers import TrainingWorld, Walker, make_walkers
from factorwise.learning.updates import UpdateArrays, as_rule
from factorwise.rng import Stream
from factorwise.variables.pair_table import PairTable

SEED = 0
STEPS_BAR = 300_000
FACTORIE = (2.6e6, 3.4e6)  # factor evaluations a CPU second while learning, lowest and highest
TIMES_FACTORIE = 30
LITBANK_BAR = 60.0


class Scale(NamedTuple):
    """How much is run."""

    repeats: int
    steps: int
    items: tuple[int, ...]
    passes: int


FULL = Scale(7, 300_000, (1_000, 10_000, 100_000, 1_000_000), 10)
QUICK = Scale(2, 20_000, (1_000, 10_000), 1)


def agree(a: Any, b: Any) -> tuple[Any, ...]:
    return (
        a.f0 == b.f0,
        a.f1 == b.f1,
        a.f2 == b.f2,
        a.f3 == b.f3,
        a.f4 == b.f4,
        a.f5 == b.f5,
        a.f6 == b.f6,
        a.f7 == b.f7,
        a.f8 == b.f8,
        a.f9 == b.f9,
    )


def ranges(cluster: Any) -> tuple[Any, ...]:
    return (
        cluster.f0.max() - cluster.f0.min(),
        cluster.f1.max() - cluster.f1.min(),
        cluster.f2.max() - cluster.f2.min(),
        cluster.f3.max() - cluster.f3.min(),
        cluster.f4.max() - cluster.f4.min(),
        cluster.f5.max() - cluster.f5.min(),
        cluster.f6.max() - cluster.f6.min(),
        cluster.f7.max() - cluster.f7.min(),
        cluster.f8.max() - cluster.f8.min(),
        cluster.size,
    )


def relocations() -> mcmc.PartitionMixture:
    return mcmc.PartitionMixture([mcmc.RelocateToItem(), mcmc.RelocateToNew()], [0.9, 0.1])


def labels_of(items: int, size: int) -> np.ndarray:
    return np.repeat(np.arange(items // size), size)


def world_of(model: Model, labels: np.ndarray) -> TrainingWorld:
    """Start from the truth, so that clusters have the size they are meant to have."""
    truth = Partition.from_labels(labels)
    return TrainingWorld(
        model=model, proposer=relocations(), start=truth, preference=TruthPreference(labels), truth=truth
    )


def functions_world(items: int, size: int = 10) -> TrainingWorld:
    """Ten pair and ten cluster statistics from user functions over ten fields of each item."""
    rng = np.random.default_rng(SEED)
    labels = labels_of(items, size)
    own = rng.integers(0, 50, (items // size, 10))[labels]
    noisy = np.where(rng.random((items, 10)) < 0.4, rng.integers(0, 50, (items, 10)), own)
    fields = Fields(**{f"f{k}": noisy[:, k] for k in range(10)})
    names = [f"f{k}" for k in range(10)]
    pairs = templates.PairTemplate("pairs", fields, agree, names)
    return world_of(Model([pairs, templates.ClusterTemplate("clusters", fields, ranges, names)]), labels)


def table_world(items: int, size: int = 10) -> TrainingWorld:
    """Ten features of every pair, computed beforehand, summed over pairs and aggregated over clusters."""
    rng = np.random.default_rng(SEED)
    labels = labels_of(items, size)
    first, second = np.tril_indices(items, -1)
    same = labels[first] == labels[second]
    values = rng.random((len(first), 10)) < np.where(same, 0.6, 0.1)[:, None]
    known = PairTable(items, [f"f{k}" for k in range(10)], values)
    return world_of(Model([templates.PairTableTemplate("pairs", known, ("count", "majority"))]), labels)


def points_world(size: int) -> TrainingWorld:
    """FACTORIE's workload: 33 statistics of each pair of points."""
    model, labels = points(size)
    return world_of(model, labels)


def walked(walker: Walker, update: UpdateArrays, stream: Stream, steps: int) -> tuple[int, int]:
    """Learn for so many steps, from the truth; return updates made and pairs looked at."""
    walker.reset(walker.training.start)
    update.weights[:] = 0.0
    before, seen = int(update.clock[UPDATES]), walker.walk.factors_seen
    walker.advance(stream, 1.0, steps)
    return int(update.clock[UPDATES]) - before, walker.walk.factors_seen - seen


def rate(
    name: str, world: TrainingWorld, rule: str, scale: Scale, steps: int
) -> tuple[list[str], float, float]:
    """Measure one workload; return its row, steps and factors a CPU second."""
    update = as_rule(rule).arrays(world.model.blocks.size)
    program = as_rule(rule).program(update)
    (walker,) = make_walkers(
        [world],
        "compiled",
        acceptance=GREEDY,
        weights=update.weights,
        clock=update.clock,
        roles=lambda training: {"update": program},
        judged=True,
    )
    walked(walker, update, Stream(SEED, 1), 100)
    best = smallest(partial(walked, walker, update, Stream(SEED, 2), steps), scale.repeats)
    updates, factors = best.result
    row = [
        name,
        rule,
        f"{steps / best.cpu:,.0f}",
        f"{factors / best.cpu / 1e6:.1f}",
        f"{factors / steps:.0f}",
        f"{updates / steps:.3f}",
    ]
    return row, steps / best.cpu, factors / best.cpu


def rates(scale: Scale) -> None:
    rows, slowest = [], float("inf")
    for name, world in (
        ("10 + 10 by user functions, 10,000 items", functions_world(10_000)),
        ("10 + 10 from a table, 2,000 items", table_world(2_000)),
    ):
        for rule in ("unit", "mira", "cw", "arow"):
            row, steps, _ = rate(name, world, rule, scale, scale.steps)
            rows.append(row)
            slowest = min(slowest, steps)
    against = []
    for size in (10, 100):
        row, _, factors = rate(
            f"FACTORIE's points, clusters of {size}", points_world(size), "unit", scale, scale.steps // 4
        )
        rows.append(row)
        low, high = (factors / quoted for quoted in (FACTORIE[1], FACTORIE[0]))
        against.append(
            f"clusters of {size}: {low:.0f} to {high:.0f} times that; bar {TIMES_FACTORIE}:"
            f" {verdict(low, TIMES_FACTORIE)}"
        )
    print("Clusters of 10 unless said otherwise; a CPU second of one thread")
    head = ["model", "rule", "steps", "M factors", "factors a step", "updates a step"]
    print(table(head, rows))
    print(f"bar {STEPS_BAR:,} steps a second (slowest of the 10 + 10 models): {verdict(slowest, STEPS_BAR)}")
    print("FACTORIE looks at 2.6 to 3.4 million factors a CPU second while learning (quoted). Here")
    print(*against, sep="\n", end="\n\n")


def flatness(scale: Scale) -> None:
    rows = []
    for items in scale.items:
        row, steps, _ = rate(f"{items:,}", functions_world(items), "mira", scale, scale.steps)
        rows.append([row[0], f"{1e9 / steps:,.0f}", *row[3:]])
    print("Time per step as the world grows, clusters of 10, user functions, MIRA")
    print(table(["items", "ns a step", "M factors", "factors a step", "updates a step"], rows))
    print("What grows is the time to reach memory: nothing of the untouched world is looked at.\n")


def litbank(scale: Scale) -> None:
    try:
        documents = read_documents(find_data("coref_litbank/train.jsonl"))
    except MissingDataError as missing:
        print(f"LitBank is left out: {missing}")
        return
    features = smallest(lambda: [training_world(one) for one in discourses(documents)], 1)
    worlds = features.result
    learner = SampleRank(update="mira", accept="greedy")
    learner.fit(worlds[:1], passes=1, steps=10, progress=False)
    run = smallest(partial(learner.fit, worlds, passes=scale.passes, steps=4_000, progress=False), 1)
    total = features.cpu + run.cpu
    print(
        f"LitBank, {len(worlds)} documents, {scale.passes} passes of 4,000 steps: {run.cpu:.1f} CPU s,"
        f" {run.wall:.1f} s wall; features {features.cpu:.1f} CPU s; bar {LITBANK_BAR:.0f} s for both:"
        f" {verdict(total, LITBANK_BAR, at_most=True)}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    scale = QUICK if parser.parse_args(arguments).quick else FULL
    rates(scale)
    flatness(scale)
    litbank(scale)


if __name__ == "__main__":
    main()
