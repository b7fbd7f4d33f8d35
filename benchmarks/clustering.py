"""Clustering by Metropolis-Hastings: FACTORIE's workload, and a user's pair function on a million mentions.

    make bench ARGS=clustering
    make bench ARGS="clustering --quick"

A factor evaluation is one pair of items looked at. Times are CPU seconds of one thread, smallest of several
runs, after compiling. FACTORIE (Scala) is not run here: its figures are quoted from an earlier run on another
busy machine of two cores. Beside the speeds stand checks that the walk is the right one: the plain engine
makes the same steps from the same seed, and the score that gains add up to is that of the world at the end.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from timing import smallest, table, verdict

from factorwise import Fields, Model, Partition, mcmc, overlap, templates
from factorwise.rng import Stream

SEED = 0
DIMENSIONS = 32
NOISE = 0.3
TOLERANCE = 1e-5  # of a score, relative: the compiled scans sum in single precision
COMPILED_BAR = 0.8e9  # factor evaluations a second and core
PLAIN_BAR = 1e5


class Quoted(NamedTuple):
    """FACTORIE's proposals and factor evaluations a CPU second, each from lowest to highest."""

    proposals: tuple[float, float]
    factors: tuple[float, float]


FACTORIE = {
    ("relocate", 10): Quoted((200_000, 200_000), (3.6e6, 3.6e6)),
    ("relocate", 100): Quoted((19_000, 19_000), (3.5e6, 3.5e6)),
    ("merge or split", 10): Quoted((12_300, 13_900), (2.4e6, 2.8e6)),
    ("merge or split", 100): Quoted((114, 125), (2.2e6, 2.2e6)),
}
ARRAY_LOOP = "30 to 46 million"  # the same relocations in a plain JVM loop over arrays


class Scale(NamedTuple):
    """How much is run."""

    repeats: int
    steps: int
    checked_steps: int
    mentions: int
    plain_steps: int


FULL = Scale(repeats=7, steps=200_000, checked_steps=2_000, mentions=1_000_000, plain_steps=400)
QUICK = Scale(repeats=2, steps=20_000, checked_steps=200, mentions=30_000, plain_steps=50)


def apart(p: float, q: float) -> float:
    return abs(p - q)


def together(a: Any, b: Any) -> tuple[bool]:
    return (a.one == b.one,)


def same_author(a: Any, b: Any) -> tuple[Any, ...]:
    shared = overlap(a.coauthors, b.coauthors)
    return (
        a.first == b.first,
        a.middle == b.middle,
        a.last == b.last,
        a.venue == b.venue,
        a.first == b.first and a.middle == b.middle,
        shared,
        shared > 0,
        shared > 1,
        True,
    )


def same_author_if_known(a: Any, b: Any) -> tuple[Any, ...]:
    shared = overlap(a.coauthors, b.coauthors)
    return (
        a.first == b.first,
        a.first > 0 and b.first > 0 and a.first != b.first,
        a.middle == b.middle,
        a.middle > 0 and b.middle > 0 and a.middle != b.middle,
        a.last == b.last,
        a.venue == b.venue,
        shared,
        shared > 0,
        True,
    )


def same_fields(a: Any, b: Any) -> tuple[Any, ...]:
    return (
        a.first == b.first,
        a.middle == b.middle,
        a.last == b.last,
        a.venue == b.venue,
        overlap(a.coauthors, b.coauthors),
        True,
    )


# name, function and weights; the first is the one the bar is about
AUTHOR_MODELS = [
    ("9 statistics of 22 comparisons", same_author, [1.0, 0.5, 0.2, 0.3, 0.8, 0.6, 0.8, 0.5, -2.2]),
    ("6 statistics of 20 comparisons", same_fields, [1.4, 0.9, 0.2, 0.3, 1.2, -2.2]),
    (
        "9 of 27, missing values apart",
        same_author_if_known,
        [1.0, -1.5, 0.5, -1.0, 0.2, 0.3, 0.6, 0.5, -1.2],
    ),
]


def points(size: int, items: int = 1_000) -> tuple[Model, np.ndarray]:
    """FACTORIE's workload: points around centers, with the truth."""
    rng = np.random.default_rng(SEED)
    labels = np.repeat(np.arange(items // size), size)
    centers = rng.normal(size=(items // size, DIMENSIONS))
    fields = Fields(
        x=centers[labels] + NOISE * rng.normal(size=(items, DIMENSIONS)), one=np.ones(items, np.int32)
    )
    both = [
        templates.VectorPairTemplate("distance", fields, "x", apart),
        templates.PairTemplate("bias", fields, together, ["together"]),
    ]
    bias = 40.0 * (NOISE + math.sqrt(1.0 + NOISE**2)) / math.sqrt(math.pi)
    return Model(both, np.append(np.full(DIMENSIONS, -40.0 / DIMENSIONS), bias)), labels


class Mentions(NamedTuple):
    """Author mentions, those of a last name next to each other, and in it those of an author."""

    fields: Fields
    authors: np.ndarray
    last_names: np.ndarray

    def take(self, chosen: np.ndarray) -> Mentions:
        """Return those that are marked."""
        columns = {name: field.values[chosen] for name, field in self.fields.columns.items()}
        return Mentions(Fields(**columns), self.authors[chosen], self.last_names[chosen])


def mentions(count: int) -> Mentions:
    """Draw authors of power-law size (exponent 2, at most 5,000) and what each mention says of its author."""
    rng = np.random.default_rng(SEED)
    drawn = rng.zipf(2.0, size=count)
    drawn = drawn[drawn <= 5_000]
    sizes = drawn[: np.searchsorted(np.cumsum(drawn), count)]
    sizes = np.append(sizes, count - sizes.sum())
    frequency = 1.0 / (np.arange(max(2, count // 100)) + 30.0)
    name = np.sort(rng.choice(len(frequency), size=len(sizes), p=frequency / frequency.sum()))
    author = np.repeat(np.arange(len(sizes)), sizes)

    def observed(values: np.ndarray, wrong: float, missing: float) -> np.ndarray:
        chance = rng.random(count)
        said = np.where(chance < wrong, rng.permutation(values[author]), values[author])
        return np.where(chance > 1.0 - missing, 0, said)

    # eight usual co-authors each, all different, of whom a mention names four or fewer
    usual = 1 + (rng.integers(0, 50_000, len(sizes))[:, None] + 7_919 * np.arange(8)) % 50_000
    who = np.argsort(rng.random((count, 8)), axis=1)[:, :4]
    named = np.where(rng.random((count, 4)) < 0.3, 0, usual[author[:, None], who])
    fields = Fields(
        first=observed(rng.integers(1, 2_000, len(sizes)), 0.1, 0.1),
        middle=observed(rng.integers(1, 27, len(sizes)), 0.1, 0.4),
        last=name[author],
        venue=observed(rng.integers(1, 500, len(sizes)), 0.6, 0.1),
        coauthors=named,
    )
    return Mentions(fields, author, name[author])


def author_kernel(data: Mentions, function: Any, weights: Sequence[float]) -> mcmc.Metropolis:
    names = [f"statistic {k}" for k in range(len(weights))]
    model = Model([templates.PairTemplate("authors", data.fields, function, names)], weights)
    return relocations(model, mcmc.Blocks.from_keys(data.last_names))


def relocations(model: Model, blocks: mcmc.Blocks | None = None) -> mcmc.Metropolis:
    return mcmc.Metropolis(
        model,
        mcmc.PartitionMixture(
            [mcmc.RelocateToItem(blocks, in_turn=blocks is not None), mcmc.RelocateToNew()], [0.9, 0.1]
        ),
    )


def merges_and_splits(model: Model) -> mcmc.Metropolis:
    return mcmc.Metropolis(model, mcmc.PartitionMixture([mcmc.Merge(), mcmc.Split()]))


def traces_differ(kernel: mcmc.Metropolis, start: Partition, steps: int) -> tuple[str, int]:
    """Walk compiled and plain from the same seed, step by step; return what differs, and changes made."""
    compiled, plain = mcmc.Walk(kernel, start), mcmc.Walk(kernel, start, interpreted=True)
    streams = Stream(SEED, 1), Stream(SEED, 1)
    changes = 0
    for step in range(steps):
        changed = compiled.advance(streams[0], 1.0, 1)
        changes += changed
        if changed != plain.advance(streams[1], 1.0, 1):
            return f"step {step} is accepted by one engine only", changes
        if not math.isclose(compiled.score, plain.score, rel_tol=TOLERANCE, abs_tol=1e-3):
            return f"scores {compiled.score} and {plain.score} after step {step}", changes
    if compiled.world != plain.world:
        return "the worlds at the end", changes
    return score_differs(compiled, kernel.model), changes


def score_differs(engine: mcmc.Walk, model: Model) -> str:
    truth = model.score(engine.world)
    close = math.isclose(engine.score, truth, rel_tol=TOLERANCE, abs_tol=1e-3)
    return "" if close else f"score {engine.score}, but the world has {truth}"


def span(low: float, high: float) -> str:
    numbers = [f"{value:.1f}" if value < 10 else f"{value:,.0f}" for value in (low, high)]
    return numbers[0] if numbers[0] == numbers[1] else "-".join(numbers)


def factorie_workload(scale: Scale) -> list[str]:
    """Print the table; return what is wrong."""
    rows, notes, faults = [], [], []
    for size in (10, 100):
        model, labels = points(size)
        truth = Partition.from_labels(labels)
        for kind, kernel in (("relocate", relocations(model)), ("merge or split", merges_and_splits(model))):
            relocating = kind == "relocate"
            steps = scale.steps if relocating else scale.steps // size
            engine, stream = mcmc.Walk(kernel, truth), Stream(SEED, 2)
            engine.advance(stream, 1.0, 10)
            best = smallest(partial(counted, engine, stream, steps), scale.repeats)
            changed, factors = best.result
            quoted = FACTORIE[kind, size]
            proposal_rate, factor_rate = steps / best.cpu, factors / best.cpu
            rows.append(
                [
                    f"{kind}, clusters of {size}",
                    f"{proposal_rate:,.0f}",
                    f"{factor_rate / 1e6:.1f}",
                    f"{changed / steps:.4f}",
                    span(*quoted.proposals),
                    span(*(value / 1e6 for value in quoted.factors)),
                    f"{span(proposal_rate / quoted.proposals[1], proposal_rate / quoted.proposals[0])}x",
                    f"{span(factor_rate / quoted.factors[1], factor_rate / quoted.factors[0])}x",
                ]
            )
            faults += [f"{kind}, {size}: {fault}" for fault in [score_differs(engine, model)] if fault]
            for name, start in (("truth", truth), ("singletons", Partition.singletons(len(labels)))):
                checked = scale.checked_steps if relocating else max(20, scale.checked_steps // size)
                fault, changes = traces_differ(kernel, start, checked)
                outcome = f"DIFFERS: {fault}" if fault else "same steps, worlds and scores"
                notes.append(
                    f"  {kind}, {size}, from {name}: {outcome} ({checked:,} steps, {changes} changed)"
                )
                faults += [f"{kind}, {size}, from {name}: {fault}"] if fault else []
    print("1,000 points of 32 features, from the truth; a CPU second of one thread; FACTORIE's are quoted")
    head = ["move", "proposals", "M factors", "accepted", "FACTORIE", "M factors", "proposals", "factors"]
    print(table(head, rows))
    print(f"A plain JVM loop over arrays (quoted) looks at {ARRAY_LOOP} factors a CPU second.")
    print("Compiled against plain engine:", *notes, sep="\n")
    return faults


def counted(engine: mcmc.Walk, stream: Stream, steps: int) -> tuple[int, int]:
    before = engine.factors_seen
    changed = engine.advance(stream, 1.0, steps)
    return changed, engine.factors_seen - before


def counted_blocks(engine: mcmc.Walk, stream: Stream) -> tuple[int, int]:
    before = engine.factors_seen
    changed = engine.advance(stream, 1.0, engine.view.n_items)
    return changed, engine.factors_seen - before


def author_workload(scale: Scale) -> list[str]:
    """Print the rates on author mentions; return what is wrong."""
    data = mentions(scale.mentions)
    sizes = np.bincount(data.authors)
    blocks = np.bincount(data.last_names)
    print(
        f"\n{scale.mentions:,} author mentions, {len(sizes):,} authors (a mention's author has"
        f" {(sizes**2).sum() / sizes.sum():.0f} on average), {np.count_nonzero(blocks):,} last names"
        f" (largest {blocks.max():,}); from the truth, a CPU second and core"
    )
    start = Partition.from_labels(data.authors)
    rows = []
    for name, function, weights in AUTHOR_MODELS:
        kernel = author_kernel(data, function, weights)
        engine = mcmc.Walk(kernel, start)
        stream = Stream(SEED, 3)
        engine.advance(stream, 1.0, 100)
        best = smallest(partial(counted_blocks, engine, stream), scale.repeats)
        changed, factors = best.result
        met = verdict(factors / best.cpu, COMPILED_BAR) if function is same_author else "none"
        rows.append(author_row(f"block by block, {name}", best.cpu, scale.mentions, factors, changed, met))
    rows.append(two_threads(data, scale))
    row, faults = plain_twin(author_kernel(data, *AUTHOR_MODELS[0][1:]), start, scale)
    rows.append(row)
    print(table(["walk", "factors", "proposals", "factors each", "accepted", "bar 0.8e9 / 1e5"], rows))
    return faults


def author_row(name: str, cpu: float, steps: int, factors: int, changed: int, met: str) -> list[str]:
    rates = [f"{factors / cpu:.3g}", f"{steps / cpu:.3g}", f"{factors / steps:.0f}", f"{changed / steps:.4f}"]
    return [name, *rates, met]


def two_threads(data: Mentions, scale: Scale) -> list[str]:
    """Two engines on the two halves of the last names, each in a thread of its own."""
    first_half = data.last_names < data.last_names[scale.mentions // 2]
    engines = []
    for part in (data.take(first_half), data.take(~first_half)):
        authors = Partition.from_keys(part.authors)
        engines.append(mcmc.Walk(author_kernel(part, *AUTHOR_MODELS[0][1:]), authors))
        engines[-1].advance(Stream(SEED, 4), 1.0, 100)

    def visit(number: int, turn: int) -> tuple[int, int]:
        return counted_blocks(engines[number], Stream(SEED, 5, number, turn))

    with ThreadPoolExecutor(2) as pool:
        turns = iter(range(scale.repeats))
        best = smallest(lambda: list(pool.map(visit, (0, 1), [next(turns)] * 2)), scale.repeats)
    changed, factors = map(sum, zip(*best.result, strict=True))
    load = os.getloadavg()[0]  # wall time means little where others use the cores
    name = f"two threads, half each: {factors / best.wall:.3g} a wall second, load {load:.1f}"
    return author_row(name, best.cpu, scale.mentions, factors, changed, "none")


def plain_twin(kernel: mcmc.Metropolis, start: Partition, scale: Scale) -> tuple[list[str], list[str]]:
    """Run the same functions interpreted on the same world, and compiled after it."""
    plain, engine = mcmc.Walk(kernel, start, interpreted=True), mcmc.Walk(kernel, start)
    begin = time.process_time()
    changed = plain.advance(Stream(SEED, 6), 1.0, scale.plain_steps)
    cpu = time.process_time() - begin
    faults = []
    if engine.advance(Stream(SEED, 6), 1.0, scale.plain_steps) != changed or engine.world != plain.world:
        faults.append("interpreted and compiled walk differ")
    name = f"plain Python, {scale.plain_steps} steps, {'DIFFERENT' if faults else 'same'} world"
    met = verdict(engine.factors_seen / cpu, PLAIN_BAR)
    return author_row(name, cpu, scale.plain_steps, engine.factors_seen, changed, met), faults


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    scale = QUICK if parser.parse_args(arguments).quick else FULL
    faults = factorie_workload(scale) + author_workload(scale)
    if faults:
        sys.exit("WRONG: " + "; ".join(faults))


if __name__ == "__main__":
    main()
