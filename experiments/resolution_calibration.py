"""Is the posterior of resolution honest: of pairs given the probability p, does a share near p co-refer?

    python experiments/resolution_calibration.py
    python experiments/resolution_calibration.py aminer110 --seeds 1
    python experiments/resolution_calibration.py historical_50k --records 30000

Weights and the temperature are learned from half of the entities, the others are resolved with their
posterior. The table has the candidate pairs by their probability, seeds together. The calibration error is
the mean over pairs of |mean probability - share of one entity| of their tenth: of the pairs in doubt, whose
probability is between 0.01 and 0.99, and of all candidates. ``aim`` is what an honest posterior has. Large
sets are cut down to some of their entities (--records).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from resolution_tasks import Task, arguments, load, save

from factorwise import EntityResolver
from factorwise.inference.mcmc.shards.posterior import SURE
from factorwise.metrics.calibration import Reliability, reliability
from factorwise.metrics.clustering import b_cubed
from factorwise.types import Bools

SETS = ("historical_50k", "aminer110", "chicago_early_childhood")
BINS = 10


class Judged(NamedTuple):
    """Candidate pairs: the probability of each, and whether it is of one entity."""

    chance: NDArray[np.float64]
    same: Bools

    def tenths(self) -> Reliability:
        """Return the pairs by their probability."""
        return reliability(self.chance, self.same, bins=BINS)

    def brier(self) -> float:
        """Return the mean squared error."""
        return float(np.mean((self.chance - self.same) ** 2))

    def in_doubt(self) -> Judged:
        """Return the pairs that are neither nearly certain nor nearly impossible."""
        doubt = np.minimum(self.chance, 1.0 - self.chance) > SURE
        return Judged(self.chance[doubt], self.same[doubt])


def judge(task: Task, seed: int, threads: int) -> Judged:
    """Learn, resolve and compare with the truth."""
    resolver = EntityResolver(random_state=seed, n_jobs=threads)
    resolver.fit(task.train, "entity", id="id")
    resolver.resolve(task.test, id="id")  # the first run may compile
    begun = time.process_time()
    resolver.resolve(task.test, id="id")
    between = time.process_time()
    found = resolver.resolve(task.test, id="id", posterior=True)
    ended = time.process_time()
    assert found.posterior is not None
    pairs = found.linked.candidates
    judged = Judged(
        found.posterior.together.astype(np.float64), task.truth[pairs.first] == task.truth[pairs.second]
    )
    doubtful = judged.in_doubt()
    print(
        f"  seed {seed}: B-cubed F1 {b_cubed(task.truth, found.labels).f1:.4f},"
        f" temperature {resolver.knowledge_.temperature:.2f}, error {doubtful.tenths().error:.4f} in doubt,"
        f" {judged.tenths().error:.4f} of all; resolving took {between - begun:.2f} CPU s, with the posterior"
        f" {ended - between:.2f}",
        flush=True,
    )
    return judged


def report(judged: Judged) -> None:
    """Print the table of a set."""
    print("  probability      pairs   mean p   of one entity (aim: mean p)")
    for mean, share, pairs in zip(*judged.tenths(), strict=True):
        tenth = min(int(mean * BINS), BINS - 1)
        print(f"  {tenth / BINS:.1f} to {(tenth + 1) / BINS:.1f} {pairs:>12,.0f}   {mean:.3f}    {share:.3f}")
    doubtful = judged.in_doubt()
    for text, pairs in (("in doubt", doubtful), ("all candidates", judged)):
        if not len(pairs.chance):
            print(f"  {text}: none")
            continue
        print(
            f"  {text}: {len(pairs.chance):,} pairs, mean p {pairs.chance.mean():.3f}, of one entity"
            f" {pairs.same.mean():.3f}, calibration error {pairs.tenths().error:.4f} (aim: 0),"
            f" Brier {pairs.brier():.4f}"
        )


def draw(results: dict[str, Judged]) -> Figure:
    """One reliability diagram per set; the area of a point grows with its pairs."""
    figure, panels = plt.subplots(1, len(results), figsize=(3.4 * len(results), 3.6), squeeze=False)
    for panel, (name, judged) in zip(panels[0], results.items(), strict=True):
        doubtful = judged.in_doubt()
        mean, share, pairs = doubtful.tenths()
        panel.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        panel.plot(mean, share, color="C0")
        panel.scatter(mean, share, 200 * (pairs / pairs.max(initial=1.0)) ** 0.5, color="C0")
        panel.set_title(f"{name}: error {doubtful.tenths().error:.3f}", fontsize=9)
        panel.set_xlabel("probability of pairs in doubt")
        panel.set_ylabel("share of one entity")
    return figure


def main() -> None:
    options = arguments(__doc__, SETS, seeds=2)
    results = {}
    for name in options.sets:
        task = load(name, options.records)
        print(f"{name}: {task.train.num_rows:,} records to learn from, {task.test.num_rows:,} to resolve")
        runs = [judge(task, seed, options.threads) for seed in range(options.seeds)]
        results[name] = Judged(
            np.concatenate([run.chance for run in runs]), np.concatenate([run.same for run in runs])
        )
        report(results[name])
    save(draw(results), Path(__file__).stem)


if __name__ == "__main__":
    main()
