"""Gains of relocations on five million mentions: read off counts, and by a user's pair function.

    make bench ARGS=factor_sampling
    make bench ARGS="factor_sampling --quick"

The same mentions and blocks for both, in block order, one thread. Counted: a template declared as data, whose
sums over clusters cost a few look-ups; the figure is proposals a CPU second, from singletons and from the
truth. Opaque: a pair function that the library knows nothing
about, on every member of both clusters; the figure is factor evaluations a CPU second. The two take turns,
and the smallest time of each counts. Checked besides: counts and pair function take the same steps.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from clustering import AUTHOR_MODELS, SEED, Mentions, author_kernel, mentions
from timing import smallest, table, verdict

from factorwise import Model, Partition, mcmc, overlap, templates
from factorwise.rng import Stream

COUNTED_BAR = 5e6  # proposals a second and core
OPAQUE_BAR = 0.8e9  # factor evaluations a second and core
KEYS = [
    templates.Key("first", ("equal", "conflict"), missing=0),
    templates.Key("middle", ("equal", "conflict"), missing=0),
    templates.Key(("first", "middle"), missing=0),
    templates.Key("venue", missing=0),
    templates.Key("coauthors", missing=0),
]
COUNTED_WEIGHTS = [1.0, -1.5, 0.5, -1.0, 0.8, 0.3, 1.2, -1.2]


class Scale(NamedTuple):
    """How much is run."""

    mentions: int
    repeats: int
    checked: int


FULL = Scale(mentions=5_000_000, repeats=3, checked=200_000)
QUICK = Scale(mentions=50_000, repeats=2, checked=5_000)


def counted_kernel(data: Mentions) -> mcmc.Metropolis:
    model = Model([templates.CountedTemplate("mentions", data.fields, KEYS)], COUNTED_WEIGHTS)
    blocks = mcmc.Blocks.from_keys(data.last_names)
    moves = [mcmc.RelocateToItem(blocks, in_turn=True), mcmc.RelocateToNew()]
    return mcmc.Metropolis(model, mcmc.PartitionMixture(moves, [0.9, 0.1]))


def look_ups(engine: mcmc.Walk) -> int:
    """Return how many counts a walk has read."""
    arrays = engine.parts.templates[0].program.arrays
    return int(arrays["look_ups"][0]) if "look_ups" in arrays else 0


def visit(engine: mcmc.Walk, stream: Stream) -> tuple[int, int, int]:
    """Visit all blocks once; return changes, pair factors and look-ups."""
    before = engine.factors_seen, look_ups(engine)
    changed = engine.advance(stream, 1.0, engine.view.n_items)
    return changed, engine.factors_seen - before[0], look_ups(engine) - before[1]


def alike(a: Any, b: Any) -> tuple[Any, ...]:
    """Compare two mentions by the codes of `KEYS`, of which 0 stands for nothing."""
    first, middle = (a.key_0 > 0) & (b.key_0 > 0), (a.key_1 > 0) & (b.key_1 > 0)
    return (
        first & (a.key_0 == b.key_0),
        first & (a.key_0 != b.key_0),
        middle & (a.key_1 == b.key_1),
        middle & (a.key_1 != b.key_1),
        (a.key_2 > 0) & (a.key_2 == b.key_2),
        (a.key_3 > 0) & (a.key_3 == b.key_3),
        overlap(a.key_4, b.key_4),
        True,
    )


def same_steps(data: Mentions, kernel: mcmc.Metropolis, steps: int) -> str:
    """Walk from the truth by counts and by scans of the same template; return what differs."""
    start = Partition.from_labels(data.authors)
    (template,) = kernel.model.templates
    pairs = templates.PairTemplate("mentions", template.fields, alike, template.statistic_names)
    by_pairs = mcmc.Metropolis(Model([pairs], COUNTED_WEIGHTS), kernel.proposer)
    counted, scanned = mcmc.Walk(kernel, start), mcmc.Walk(by_pairs, start)
    changed = [engine.advance(Stream(SEED, 9), 1.0, steps) for engine in (counted, scanned)]
    if changed[0] != changed[1] or counted.world != scanned.world:
        return f"counts change {changed[0]} times and scans {changed[1]} times in {steps:,} steps"
    close = abs(counted.score - scanned.score) <= 1e-6 * max(1.0, abs(counted.score))
    return "" if close else f"the score is {counted.score} by counts and {scanned.score} by scans"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few mentions, to see that everything runs")
    parser.add_argument("-n", type=lambda text: int(float(text)), help="mentions, instead of five million")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    scale = scale._replace(mentions=options.n or scale.mentions)
    data = mentions(scale.mentions)
    sizes, blocks = np.bincount(data.authors), np.bincount(data.last_names)
    print(
        f"{scale.mentions:,} author mentions of {len(sizes):,} authors (largest {sizes.max():,}, a mention's"
        f" has {(sizes**2).sum() / sizes.sum():.0f} on average), {np.count_nonzero(blocks):,} last names"
        f" (largest {blocks.max():,}); block order, a CPU second of one thread, load {os.getloadavg()[0]:.1f}"
    )
    truth = Partition.from_labels(data.authors)
    kernel = counted_kernel(data)
    mcmc.Walk(counted_kernel(mentions(1_000)), Partition.singletons(1_000))  # compiles
    began = time.process_time()
    engines = {"truth": mcmc.Walk(kernel, truth)}
    laid_out = time.process_time() - began
    engines["singletons"] = mcmc.Walk(kernel, Partition.singletons(scale.mentions))
    engines["opaque"] = mcmc.Walk(author_kernel(data, *AUTHOR_MODELS[0][1:]), truth)
    walks: dict[str, tuple[Callable[[], Any], str]] = {}
    for name, engine in engines.items():
        engine.advance(Stream(SEED), 1.0, 0)
        walks[name] = partial(visit, engine, Stream(SEED, 1)), "factors" if name == "opaque" else "proposals"
    best: dict[str, Any] = {}
    for _ in range(scale.repeats):
        for name, (act, _) in walks.items():
            run = smallest(act, 1)
            if name not in best or run.cpu < best[name].cpu:
                best[name] = run
    rows = []
    for name, (_, what) in walks.items():
        proposals = scale.mentions
        changed, factors, look_ups = best[name].result
        cpu = best[name].cpu
        rate, bar = (proposals / cpu, COUNTED_BAR) if what == "proposals" else (factors / cpu, OPAQUE_BAR)
        rows.append(
            [
                "opaque pair function from truth" if name == "opaque" else f"counted from {name}",
                f"{proposals / cpu:.3g}",
                f"{factors / cpu:.3g}",
                f"{factors / proposals:.0f}",
                f"{look_ups / proposals:.1f}" if look_ups else "",
                f"{changed / proposals:.3f}",
                f"{bar:.1g} {what}: {verdict(rate, bar)}",
            ]
        )
    head = ["walk", "proposals", "pair factors", "factors each", "look-ups each", "accepted", "bar"]
    print(table(head, rows))
    print(f"Laying out the values and counting took {laid_out:.1f} CPU s.")
    small = mentions(min(scale.mentions, 100_000))
    fault = same_steps(small, counted_kernel(small), scale.checked)
    if fault:
        sys.exit(f"counts and scans differ: {fault}")
    print(
        f"Counts and scans take the same {scale.checked:,} steps from the truth of {len(small.authors):,}"
        " mentions."
    )


if __name__ == "__main__":
    main()
