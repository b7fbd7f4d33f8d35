"""How often a proposer finds the one wrong cluster: the second experiment of the paper.

    python experiments/adaptive_wrong_cluster.py
    python experiments/adaptive_wrong_cluster.py --quick

Each document stands at its truth but for two entities that were merged by mistake. After 10 iterations of 100
samples, judged by B-cubed F1 against the truth, a proposer draws 100 splits: how many are of the wrong
cluster? The same as an exact probability is printed beside it. Guessing finds it once in as many times as
there are clusters of two or more. Entities to merge are any two, as in the paper, or two of several mentions
each, so that the wrong cluster is no mere pair of mentions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from adaptive_tasks import Case, case_of, documents, np, parser_of, save, spread
from matplotlib.figure import Figure
from numpy.typing import NDArray

from factorwise.inference.mcmc.adaptive.jumps import Jumps
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.tuning import Tuning, tune
from factorwise.kernels.clusterings.adaptive.jump_odds import SPLIT
from factorwise.rng import Stream
from factorwise.world.partition import Partition

DRAWS = 100
MERGES = 2  # of each document and seed
ONLY_SPLITS = (1.0, 1e-300, 0.0)
METHODS = {
    "published": Tuning(iterations=10, samples=100, remember=False, kinds=False),
    "ours": Tuning(iterations=10, samples=100),
}
PAPER = {"published": 50.0, "uniform": 15.0}


class Found(NamedTuple):
    """One wrong cluster: the share of splits that are of it, counted and exactly."""

    counted: float
    exact: float


def mistake(case: Case, several: bool, chooser: random.Random) -> NDArray[np.int64] | None:
    """Merge two random entities; None where there are no two. The wrong cluster is the last one."""
    sizes = np.bincount(case.entities)
    able = np.flatnonzero(sizes > 1).tolist() if several else list(range(len(sizes)))
    if len(able) < 2:
        return None
    return np.where(np.isin(case.entities, chooser.sample(able, 2)), len(sizes), case.entities)


def find(case: Case, labels: NDArray[np.int64], tuning: Tuning | None, seed: int) -> Found:
    """Tune a proposer where one cluster is wrong, and see what it splits; without tuning it is uniform."""
    jumps, stream = case.jumps(AdaptiveSplitMerge(case.features), Partition.from_keys(labels)), Stream(seed)
    if tuning is not None:
        tune(jumps, tuning, stream, by="truth")
    jumps.weights = replace(jumps.weights, kinds=ONLY_SPLITS)
    wrong = jumps.walk.view.cluster_of(int(labels.argmax()))
    drawn = [jump.source for jump in jumps.draw(stream, DRAWS) if jump.kind == SPLIT]
    return Found(drawn.count(wrong) / len(drawn), exactly(jumps, wrong))


def exactly(jumps: Jumps, cluster: int) -> float:
    """Probability that a split is of one cluster."""
    odds, explore = jumps.arrays["split_odds"], jumps.proposer.explore
    return float((1.0 - explore) * odds[cluster] / odds.sum() + explore / np.count_nonzero(odds))


def compare(cases: Sequence[Case], several: bool, seeds: range) -> dict[str, list[float]]:
    """Run every method; print the means over documents by method, and return those by seed."""
    found: dict[str, list[list[Found]]] = {name: [] for name in ("uniform", *METHODS)}
    large = []
    for seed in seeds:
        chooser = random.Random(seed)
        made = [(case, mistake(case, several, chooser)) for case in cases for _ in range(MERGES)]
        worlds = [(case, labels) for case, labels in made if labels is not None]
        large += [np.count_nonzero(np.bincount(labels) > 1) for _, labels in worlds]
        for name, runs in found.items():
            runs.append([find(case, labels, METHODS.get(name), seed) for case, labels in worlds])
    print(
        f"\nTwo entities merged, {'each of several mentions' if several else 'any two'}: {len(worlds)}"
        f" mistakes a seed, {len(seeds)} seeds, {np.mean(large):.1f} clusters of two or more on average"
    )
    guessed = 100 * float(np.mean([1.0 / count for count in large]))
    print(f"  guessing among these finds it in {guessed:.1f} % of the draws")
    means = {}
    for name, by_seed in found.items():
        means[name] = [100 * float(np.mean([run.counted for run in runs])) for runs in by_seed]
        exact = [100 * float(np.mean([run.exact for run in runs])) for runs in by_seed]
        paper = f"; paper {PAPER[name]:.0f} %" if name in PAPER else ""
        print(
            f"  {name:<10} {spread(means[name], 1)} % of {DRAWS} draws, exactly {spread(exact, 1)} %{paper}"
        )
    return means


def draw(results: dict[str, dict[str, list[float]]]) -> Figure:
    """Bars for the methods, one panel per kind of mistake."""
    figure, panels = plt.subplots(1, len(results), figsize=(3.6 * len(results), 3.4), sharey=True)
    for panel, (name, found) in zip(panels, results.items(), strict=True):
        for place, values in enumerate(found.values()):
            mean = np.mean(values)
            panel.bar(place, mean, 0.7, yerr=[[mean - min(values)], [max(values) - mean]], color="C0")
        panel.set_xticks(range(len(found)), list(found))
        panel.set_title(f"two entities merged: {name}", fontsize=10)
    panels[0].set_ylabel("splits of the wrong cluster, %")
    return figure


def main() -> None:
    options = parser_of(__doc__).parse_args()
    cases = [case_of(one) for one in documents("train")[:: 5 if options.quick else 1]]
    seeds = range(options.seeds)
    kinds = {"any two": False, "of several mentions": True}
    save(
        draw({name: compare(cases, several, seeds) for name, several in kinds.items()}),
        "adaptive_wrong_cluster",
    )


if __name__ == "__main__":
    main()
