"""Factors examined and time until 80 % B-cubed F1 on author mentions: Table 1 and Figure 2 of the paper.

    python experiments/factor_sampling_authors.py -n 1e6
    python experiments/factor_sampling_authors.py --quick

Mentions are drawn: authors of power-law size (exponent 2, at most 5,000 mentions), blocks that share a last
name and an initial, and of each mention a first and a middle name, a venue and up to four co-authors as
codes, some missing or wrong. Every walk begins with each mention by itself and proposes to move a mention to
the cluster of another of its block, or to a new one; blocks are visited in turn, with a proposal for each
mention. All walks have the same model, whose weights come from a logistic regression on pairs of other
mentions.

- exact, rows: every factor of the old and the new cluster, member by member, by the compiled pair function.
- exact, columns: the same walk, eight members at a time on fields laid out by cluster.
- p: a share of the factors, drawn without replacement. i: as many as a confidence interval asks for. Both in
  rows. Estimates are means scaled to all factors; the paper's are sums, and without the ratio of the proposal
  probabilities (--estimate sum, --without-ratio).
- counted: the exact gains, read off counts. What it examines are look-ups.

B-cubed is taken after every round of proposals, outside the time that is measured, and the moment of 80 %
lies between two rounds in proportion. Times are those of one thread: seconds of the processor and on the
clock.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from factorwise import Fields, Model, Partition, mcmc, overlap, templates
from factorwise.inference.mcmc.evaluators.exact import Exact
from factorwise.inference.mcmc.evaluators.sampled import ConfidenceSample, UniformSample
from factorwise.metrics.clustering import b_cubed
from factorwise.rng import Stream

OUT = Path(__file__).parent / "out"
SEED = 0
GOAL = 0.8
LARGEST = 5_000  # mentions of an author
PAIRS = 100_000  # to learn from
WIDTHS = (7, 10, 8, 8, 8, 8, 8, 10, 8)  # of the columns of the report
PAPER = {
    "exact, rows": (1_395_330_603, 1.0),
    "p = 0.5": (689_254_134, 2.02),
    "p = 0.1": (206_157_705, 6.77),
    "p = 0.02": (142_689_770, 9.78),
    "i = 0.1": (1_012_321_830, 1.38),
    "i = 1": (265_327_983, 5.26),
    "i = 10": (179_701_896, 7.76),
    "i = 100": (106_850_725, 13.16),
}  # factors and how many times fewer, as printed, at five million mentions of DBLP
KEYS = [
    templates.Key("first", ("equal", "conflict")),
    templates.Key("middle", ("equal", "conflict")),
    templates.Key("venue"),
    templates.Key("coauthors"),
]


class Mentions(NamedTuple):
    """What is known of each mention, its author, and its last name."""

    fields: Fields
    author: NDArray[np.int64]
    block: NDArray[np.int64]


class Walk(NamedTuple):
    """What one walk had done after each round, the start included.

    f1, examined, cpu, wall : float64[rounds + 1]
    """

    f1: NDArray[np.float64]
    examined: NDArray[np.float64]
    cpu: NDArray[np.float64]
    wall: NDArray[np.float64]

    @property
    def arrived(self) -> bool:
        """Whether the goal was reached."""
        return bool(self.f1[-1] >= GOAL)

    def at_goal(self, spent: NDArray[np.float64]) -> float:
        """What was spent when the goal was reached, between the last two rounds in proportion."""
        share = (GOAL - self.f1[-2]) / (self.f1[-1] - self.f1[-2])
        return float(spent[-2] + share * (spent[-1] - spent[-2]))


def draw(count: int, seed: int) -> Mentions:
    """Draw authors and what each mention says of its own."""
    rng = np.random.default_rng(seed)
    drawn = rng.zipf(2.0, size=count)
    drawn = drawn[drawn <= LARGEST]
    sizes = drawn[: np.searchsorted(np.cumsum(drawn), count)]
    sizes = np.append(sizes, count - sizes.sum())
    authors = len(sizes)
    author = np.repeat(np.arange(authors), sizes)
    # the most frequent name has about a hundred authors, however many there are
    frequency = 1.0 / (np.arange(max(2, count // 40)) + max(20.0, count / 2_000))
    name = rng.choice(len(frequency), size=authors, p=frequency / frequency.sum())

    def said(values: NDArray[np.int64], wrong: float, missing: float) -> NDArray[np.int64]:
        chance = rng.random(count)
        shown = np.where(chance < wrong, values[rng.permutation(author)], values[author])
        return np.where(chance > 1.0 - missing, -1, shown)

    usual = (
        rng.integers(0, 50_000, authors)[:, None] + 7_919 * np.arange(8)
    ) % 50_000  # eight, all different
    who = np.argsort(rng.random((count, 8), dtype=np.float32), axis=1)[:, :4]
    fields = Fields(
        first=said(rng.zipf(1.5, size=authors) % 200, wrong=0.03, missing=0.15),
        middle=said(rng.integers(0, 26, authors), wrong=0.03, missing=0.5),
        venue=said(rng.integers(0, 300, authors), wrong=0.5, missing=0.1),
        coauthors=np.where(rng.random((count, 4)) < 0.3, -1, usual[author[:, None], who]),
    )
    return Mentions(fields, author, name[author])


def pair_features(
    template: templates.CountedTemplate, i: NDArray[np.int64], j: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Statistics of given pairs, in columns."""
    columns = []
    for key, codes in zip(template.keys, template.codes, strict=True):
        a, b = codes[i], codes[j]
        if codes.ndim == 2:
            columns.append(((a[:, :, None] == b[:, None]) & (a[:, :, None] > 0)).sum(axis=(1, 2)))
            continue
        known = (a > 0) & (b > 0)
        columns += [known & ((a == b) == (feature == "equal")) for feature in key.features]
    return np.column_stack([*columns, np.ones(len(i))]).astype(np.float64)


def learned_weights() -> NDArray[np.float64]:
    """Fit a logistic regression to random pairs of mentions of the same block, of a draw of its own."""
    data = draw(PAIRS, SEED + 1)
    rng = np.random.default_rng(SEED)
    blocks = mcmc.Blocks.from_keys(data.block)
    i = rng.integers(0, PAIRS, PAIRS)
    start, size = blocks.start[blocks.of[i]], np.diff(blocks.start)[blocks.of[i]]
    j = blocks.item[start + (rng.random(PAIRS) * size).astype(np.int64)]
    i, j = i[i != j], j[i != j]
    x = pair_features(templates.CountedTemplate("mentions", data.fields, KEYS), i, j)
    y = data.author[i] == data.author[j]

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = x @ weights
        chance = 1.0 / (1.0 + np.exp(-score))
        value = np.logaddexp(0.0, score).mean() - score[y].sum() / len(y) + 1e-4 * weights @ weights
        return float(value), x.T @ (chance - y) / len(y) + 2e-4 * weights

    return np.asarray(minimize(loss, np.zeros(x.shape[1]), jac=True).x)


def f1_of(author: NDArray[np.int64], labels: NDArray[np.int32]) -> float:
    """B-cubed F1, from a single sort."""
    cell, shared = np.unique(author * len(labels) + labels, return_counts=True)
    true = np.bincount(author)[cell // len(labels)]
    found = np.bincount(labels)[cell % len(labels)]
    squares = shared.astype(np.float64) ** 2
    precision, recall = (squares / found).sum() / len(labels), (squares / true).sum() / len(labels)
    return float(2.0 * precision * recall / (precision + recall))


def examined(engine: mcmc.Walk) -> int:
    """Return the factors that a walk has looked at, or the counts that it has read instead."""
    for template in engine.parts.templates:
        if "look_ups" in template.program.arrays and "gain" in template.program.functions:
            return int(template.program.arrays["look_ups"][0])
    return engine.factors_seen


def walk(engine: mcmc.Walk, author: NDArray[np.int64], rounds: int) -> Walk:
    """Visit all blocks again and again until the goal is reached."""
    engine.advance(Stream(SEED), 1.0, 0)  # compiles
    stream = Stream(SEED, 1)
    trace = [(f1_of(author, np.arange(len(author), dtype=np.int32)), 0.0, 0.0, 0.0)]
    while trace[-1][0] < GOAL and len(trace) <= rounds:
        began, begun = time.perf_counter(), time.process_time()
        engine.advance(stream, 1.0, len(author))
        cpu, wall = time.process_time() - begun, time.perf_counter() - began
        labels = engine.view.dense_labels()
        trace.append((f1_of(author, labels), examined(engine), trace[-1][2] + cpu, trace[-1][3] + wall))
    check = b_cubed(author, labels).f1 if len(author) <= 200_000 else trace[-1][0]
    if abs(check - trace[-1][0]) > 1e-9:
        raise SystemExit(f"B-cubed F1 is {check}, but {trace[-1][0]} was measured")
    return Walk(*np.array(trace).T)


def alike(a: Any, b: Any) -> tuple[Any, ...]:
    """Compare two mentions by the codes of `KEYS`, of which 0 stands for nothing."""
    first, middle = (a.key_0 > 0) & (b.key_0 > 0), (a.key_1 > 0) & (b.key_1 > 0)
    return (
        first & (a.key_0 == b.key_0),
        first & (a.key_0 != b.key_0),
        middle & (a.key_1 == b.key_1),
        middle & (a.key_1 != b.key_1),
        (a.key_2 > 0) & (a.key_2 == b.key_2),
        overlap(a.key_3, b.key_3),
        True,
    )


def methods(estimate: Any) -> dict[str, Any]:
    """Return by name the evaluator."""
    shares = {f"p = {p:g}": UniformSample(p, estimate) for p in (0.5, 0.1, 0.02)}
    intervals = {f"i = {i:g}": ConfidenceSample(i, estimate=estimate) for i in (0.1, 1.0, 10.0, 100.0)}
    return {
        "exact, rows": UniformSample(1.0),
        "exact, columns": Exact(),
        **(shares | intervals),
        "counted": Exact(),
    }


def report(walks: dict[str, Walk]) -> None:
    """Print what each method spent until the goal, beside exact rows and beside the paper."""
    base = walks["exact, rows"]
    head = ["rounds", "examined", "fewer", "CPU s", "less", "wall s", "less", "paper", "fewer"]
    print("\n" + " " * 15 + "".join(f"{name:>{width}}" for name, width in zip(head, WIDTHS, strict=True)))
    for name, found in walks.items():
        cells = [str(len(found.f1) - 1)]
        for axis in ("examined", "cpu", "wall"):
            spent = getattr(found, axis)
            value = found.at_goal(spent) if found.arrived else spent[-1]
            cells.append(f"{value:.3g}")
            both = found.arrived and base.arrived
            cells.append(f"{base.at_goal(getattr(base, axis)) / value:.2f}x" if both else "")
        if name in PAPER:
            cells += [f"{PAPER[name][0]:.3g}", f"{PAPER[name][1]}x"]
        note = "" if found.arrived else f"  not there yet: {found.f1.max():.3f} at best"
        line = "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=False))
        print(f"{name:<15}{line}{note}")


def plot(walks: dict[str, Walk], count: int) -> None:
    """Draw B-cubed F1 against factors examined and against time."""
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.8), sharey=True)
    for name, found in walks.items():
        style = "-" if name[1] == " " else "--"
        panels[0].plot(found.examined[1:], found.f1[1:], style, label=name)
        panels[1].plot(found.cpu[1:], found.f1[1:], style, label=name)
    for panel, label in zip(panels, ("factors examined (counted: look-ups)", "CPU seconds"), strict=True):
        panel.set_xscale("log")
        panel.set_xlabel(label)
        panel.axhline(GOAL, color="0.7", linewidth=0.8)
    panels[0].set_ylabel("B-cubed F1")
    panels[0].set_title(f"{count:,} mentions", fontsize=10)
    panels[1].legend(fontsize=7)
    figure.tight_layout()
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "factor_sampling_authors.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=lambda text: int(float(text)), default=200_000, help="mentions")
    parser.add_argument("--quick", action="store_true", help="few mentions and rounds")
    parser.add_argument("--rounds", type=int, default=40, help="at most, of a proposal for each mention")
    parser.add_argument("--estimate", choices=("mean", "sum"), default="mean", help="from a sample")
    parser.add_argument("--without-ratio", action="store_true", help="accept as the paper does")
    parser.add_argument("--skip", nargs="*", default=[], help="methods to leave out, by name")
    options = parser.parse_args()
    count, rounds = (20_000, 15) if options.quick else (options.n, options.rounds)
    data, weights = draw(count, SEED), learned_weights()
    sizes, in_block = np.bincount(data.author), np.bincount(data.block)
    print(
        f"{count:,} mentions of {len(sizes):,} authors, the largest with {sizes.max():,}, a mention's with"
        f" {(sizes**2).sum() / count:.0f} on average; {np.count_nonzero(in_block):,} blocks, the largest of"
        f" {in_block.max():,}"
    )
    counted = templates.CountedTemplate("mentions", data.fields, KEYS)
    model = Model([counted], weights)
    scanned = Model(
        [templates.PairTemplate("mentions", counted.fields, alike, counted.statistic_names)], weights
    )
    named = zip(counted.statistic_names, weights.round(2).tolist(), strict=True)
    print("weights:", ", ".join(f"{name} {weight}" for name, weight in named))
    blocks = mcmc.Blocks.from_keys(data.block)
    moves = mcmc.PartitionMixture(
        [mcmc.RelocateToItem(blocks, in_turn=True), mcmc.RelocateToNew()], [0.9, 0.1]
    )
    start = Partition.singletons(count)
    walks = {}
    for name, evaluator in methods(options.estimate).items():
        if name in options.skip:
            continue
        scored = scanned if name == "exact, columns" else model
        kernel = mcmc.Metropolis(scored, moves, evaluator, hastings=not options.without_ratio)
        walks[name] = walk(mcmc.Walk(kernel, start), data.author, rounds)
        last = walks[name]
        print(
            f"{name}: {last.f1[-1]:.3f} after {len(last.f1) - 1} rounds, {last.cpu[-1]:.1f} CPU s", flush=True
        )
    report(walks)
    plot(walks, count)


if __name__ == "__main__":
    main()
