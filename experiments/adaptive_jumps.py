"""Jumps until a clustering is as good as it must be, adaptive proposals against others: Table 1 of the paper.

    python experiments/adaptive_jumps.py
    python experiments/adaptive_jumps.py --quick

Every walk begins with each mention by itself, draws several jumps at a time, takes the best by B-cubed F1
against the truth if it improves the world, and ends at 95 % of the best value, which is 1. Every fifth
jump (in the second setting every tenth) is the best of 1,000, with which the adaptive proposers learn in 20
rounds of 50; the others are the best of 5 (of 10).

- uniform: split or merge at random, with the same number of samples.
- restricted Gibbs: two random mentions say what is split or merged, and splits follow the scores of pairs,
  learned by SampleRank from other documents.
- published: the method of the paper, learning from an iteration's elite, splits as likely as merges.
- ours: learning from all good jumps of a round, and how likely splits are. With moves: parts of a cluster may
  go to another. Guided: a cluster is split by what was learned about merging.

Pairs judged are those that jumps join or separate; pairs for odds are those looked at to know which jumps to
draw. The seconds of the uniform proposer leave out the look at the truth after each jump.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from adaptive_tasks import Case, case_of, documents, learn_weights, np, parser_of, save, spread
from matplotlib.figure import Figure
from numpy.typing import NDArray

from factorwise.apps.coreference.documents import Discourse
from factorwise.apps.coreference.pair_features import pair_table
from factorwise.inference.mcmc.adaptive.decoding import decode
from factorwise.inference.mcmc.adaptive.law import JumpWeights, Parts
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.tuning import Tuning
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.world.diff import NEW, Transfer
from factorwise.world.partition import Partition

ENOUGH = 0.95
LARGEST = 400  # jumps of one document; who has not arrived by then is counted with so many
ROUND = 1_000  # samples of a jump with learning
SCANS = 3  # of restricted Gibbs before the last one
METHODS = ("ours", "published", "restricted Gibbs", "ours with moves", "ours, guided")
FEWER_SEEDS = {"published": 3, "ours with moves": 1, "ours, guided": 1}  # they take longest
PAPER = {5: {"published": 2942, "uniform": 3988}, 10: {"published": 2534, "uniform": 2822}}


class Climbed(NamedTuple):
    """One walk: the metric before and after every jump, and what it cost."""

    trace: NDArray[np.float64]
    cpu: float
    judged: int
    odds: int

    @property
    def jumps(self) -> int:
        """Made until the goal or the limit."""
        return len(self.trace) - 1

    @property
    def arrived(self) -> bool:
        """Whether the goal was reached."""
        return bool(self.trace[-1] >= ENOUGH)


Method = Callable[[Case, int, int], Climbed]


def uniform(case: Case, samples: int, seed: int) -> Climbed:
    """Split or merge at random."""
    jumps = case.jumps(AdaptiveSplitMerge(case.features, explore=1.0))
    stream, trace, cpu = Stream(seed), [case.value(jumps.walk.view)], 0.0
    while trace[-1] < ENOUGH and len(trace) <= LARGEST:
        began = time.process_time()
        count = ROUND if (len(trace) - 1) % samples == 0 else samples
        best = max(jumps.draw(stream, count), key=lambda jump: jump.better)
        cpu += time.process_time() - began
        if best.better > 0.0:
            jumps.take(best)
        trace.append(case.value(jumps.walk.view))
    return Climbed(np.array(trace), cpu, jumps.walk.factors_seen, 0)


def adaptive(
    case: Case,
    samples: int,
    seed: int,
    *,
    tuning: Tuning | None = None,
    kinds: tuple[float, float, float] = (0.5, 0.5, 0.0),
    parts: Parts = "uniform",
) -> Climbed:
    """Learn on the way which jumps pay."""
    proposer = AdaptiveSplitMerge(case.features, JumpWeights.zero(case.features.names, kinds), parts=parts)
    began = time.process_time()
    found = decode(
        case.model,
        case.start(),
        proposer,
        tuning=replace(tuning or Tuning(), every=samples),
        samples=samples,
        by="truth",
        truth=case.truth(),
        until=ENOUGH,
        jumps=LARGEST,
        patience=LARGEST,
        seed=seed,
        progress=False,
    )
    return Climbed(found.trace, time.process_time() - began, found.factors_seen, found.odds_seen)


def restricted_gibbs(
    affinity: dict[str, NDArray[np.float64]], case: Case, samples: int, seed: int
) -> Climbed:
    """Split by the scores of pairs: `RestrictedGibbs` without the probabilities that nobody asks for here."""
    world, stream, scores = case.start(), Stream(seed), affinity[case.name]
    began, judged, trace = time.process_time(), 0, [case.value(world)]
    while trace[-1] < ENOUGH and len(trace) <= LARGEST:
        best, most = None, trace[-1]
        for _ in range(ROUND if (len(trace) - 1) % samples == 0 else samples):
            diff, seen = _split_or_merge(world, scores, stream)
            judged += seen
            back = world.apply(diff)
            value = case.value(world)
            world.apply(back)
            if value > most + 1e-12:
                best, most = world.after(diff), value
        world = world if best is None else best
        trace.append(most)
    return Climbed(np.array(trace), time.process_time() - began, judged, 0)


def _split_or_merge(world: Partition, scores: NDArray[np.float64], stream: Stream) -> tuple[Transfer, int]:
    """Draw two mentions, and what is done about them; return how many pairs were looked at as well."""
    stays = stream.below(world.n_items)
    mover = stream.below(world.n_items - 1)
    mover += mover >= stays
    source, target = world.cluster_of(mover), world.cluster_of(stays)
    members = world.members(source)
    if source != target:
        return Transfer(tuple(members.tolist()), source, target), len(members) * world.size_of(target)
    near = scores[np.ix_(members, members)]
    sides = np.array([1.0 if stream.uniform() < 0.5 else -1.0 for _ in members])
    anchors = (members == stays) | (members == mover)
    sides[members == stays], sides[members == mover] = -1.0, 1.0
    for _ in range(SCANS + 1):
        for index in np.flatnonzero(~anchors):
            gain = near[index] @ sides
            sides[index] = 1.0 if stream.uniform() < 1.0 / (1.0 + np.exp(-gain)) else -1.0
    part = members[sides > 0]
    seen = (SCANS + 1) * (len(members) - 2) * (len(members) - 1) + len(part) * (len(members) - len(part))
    return Transfer(tuple(part.tolist()), source, NEW), seen


def affinities(given: Sequence[Discourse]) -> dict[str, NDArray[np.float64]]:
    """Scores of the pairs of mentions of each document, learned from other documents; 0 with itself."""

    def pairs_only(discourse: Discourse) -> Model:
        return Model([PairTableTemplate("pairs", pair_table(discourse), ("count",))])

    weights = learn_weights(without=given, model=pairs_only)
    found = {}
    for one in given:
        table, n = pair_table(one), len(one.places)
        scores = np.zeros((n, n))
        scores[np.tril_indices(n, -1)] = table.values @ weights
        found[one.name] = scores + scores.T
    return found


def methods(given: Sequence[Discourse], wanted: Sequence[str]) -> dict[str, Method]:
    """Those wanted by name, the uniform one first."""
    found: dict[str, Method] = {
        "uniform": uniform,
        "ours": adaptive,
        "published": partial(adaptive, tuning=Tuning(remember=False, kinds=False)),
        "ours with moves": partial(adaptive, kinds=(0.4, 0.4, 0.2)),
        "ours, guided": partial(adaptive, parts="guided"),
    }
    if "restricted Gibbs" in wanted:
        found["restricted Gibbs"] = partial(restricted_gibbs, affinities(given))
    return {name: found[name] for name in ("uniform", *wanted)}


Runs = list[list[Climbed]]  # by seed, by document


def compare(cases: Sequence[Case], tried: dict[str, Method], samples: int, seeds: range) -> dict[str, Runs]:
    """Run everything in one setting and print its table."""
    print(
        f"\n{samples} samples, learning every {samples} jumps; {len(cases)} documents, mean over"
        f" {len(seeds)} seeds or those said (lowest-highest)"
    )
    found: dict[str, Runs] = {}
    for name, method in tried.items():
        method(cases[0], samples, 0)  # compiles
        few = seeds[: FEWER_SEEDS.get(name, len(seeds))]
        found[name] = [[method(case, samples, seed) for case in cases] for seed in few]
        print(f"  {name:<16} {told(found[name], found['uniform'])}{published(name, samples)}", flush=True)
    return found


def told(by_seed: Runs, uniform_by_seed: Runs) -> str:
    """Sum the runs of one method up, beside those of the uniform proposer with the same seeds."""
    totals, others = ([sum(run.jumps for run in runs) for runs in one] for one in (by_seed, uniform_by_seed))
    fewer = [100 * (1 - total / other) for total, other in zip(totals, others, strict=False)]
    late = np.mean([sum(not run.arrived for run in runs) for runs in by_seed])
    costs = [
        float(np.mean([sum(getattr(run, cost) for run in runs) for runs in by_seed]))
        for cost in ("cpu", "judged", "odds")
    ]
    seeds = "" if len(by_seed) == len(uniform_by_seed) else f"{len(by_seed)} seeds: "
    return (
        f"{seeds}{spread(totals)} jumps, {np.mean(totals) / len(by_seed[0]):.1f} a document,"
        f" {spread(fewer, 1)} % fewer than uniform, {late:.1f} not arrived after {LARGEST};"
        f" {costs[0]:.1f} CPU s, {costs[1]:,.0f} pairs judged, {costs[2]:,.0f} for odds"
    )


def published(name: str, samples: int) -> str:
    """Quote the paper."""
    return f"; paper {PAPER[samples][name]:,} jumps" if name in PAPER[samples] else ""


def draw(results: dict[int, dict[str, Runs]]) -> Figure:
    """One panel per setting: the mean metric of the documents over the jumps made."""
    figure, panels = plt.subplots(1, len(results), figsize=(5 * len(results), 3.6), squeeze=False)
    for panel, (samples, found) in zip(panels[0], results.items(), strict=True):
        for name, by_seed in found.items():
            runs = [run for one in by_seed for run in one]
            longest = max(run.jumps for run in runs)
            padded = [np.pad(run.trace, (0, longest - run.jumps), mode="edge") for run in runs]
            panel.plot(np.mean(padded, axis=0), label=name)
        panel.axhline(ENOUGH, color="0.7", linewidth=0.8)
        panel.set_title(f"{samples} samples, learning every {samples} jumps")
        panel.set_xlabel("jumps")
        panel.set_xlim(0, 100)
    panels[0][0].set_ylabel("B-cubed F1, mean over documents")
    panels[0][0].legend(fontsize=8)
    return figure


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--samples", type=int, nargs="*", default=list(PAPER), choices=PAPER)
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS, help="beside uniform")
    options = parser.parse_args()
    given = documents("train")[:: 5 if options.quick else 1]
    cases, tried = [case_of(one) for one in given], methods(given, options.methods)
    sizes = [case.n_mentions for case in cases]
    print(f"{len(cases)} documents of {min(sizes)} to {max(sizes)} mentions, {np.mean(sizes):.0f} on average")
    results = {samples: compare(cases, tried, samples, range(options.seeds)) for samples in options.samples}
    save(draw(results), "adaptive_jumps")


if __name__ == "__main__":
    main()
