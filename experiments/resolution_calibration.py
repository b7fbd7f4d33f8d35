"""Is the posterior of resolution honest: of pairs given the probability p, does a share near p co-refer?

    python experiments/resolution_calibration.py --salts a b c
    python experiments/resolution_calibration.py aminer110 --salts a
    python experiments/resolution_calibration.py historical_50k --records 30000 --salts a

A salt cuts a set into two halves of its entities (see resolution_entities.py). Weights and the odds of
merges are learned from one half, the other is resolved with its posterior. The table has the candidate pairs
by their probability, salts together. The calibration error is the mean over pairs of |mean probability -
share of one entity| of their tenth: of the pairs in doubt, whose probability is between 0.01 and 0.99, and of
all candidates. ``aim`` is what an honest posterior has; pairs come in whole clusters, so that an honest one,
too, has an error by chance: ``chance`` is its mean and its 95th percentile, from draws that are taken for the
truth. The same error of merges has every decision of the tree that the truth reaches as one case. B-cubed is
that of the entities found, of the first and of the last hundred draws, and of draws where another draw is
taken for the truth: if probabilities are right, draws are as far from each other as from the truth. R-hat and
the effective size are those of the number of entities, the draws, which are independent, taken for four
chains. Large sets are cut down to some of their entities (--records).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import arviz
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from numpy.typing import NDArray
from resolution_entities import split_set
from resolution_tasks import Task, arguments, entities_with, save

from factorwise import EntityResolver
from factorwise.apps.resolution.merge_odds import decided_merges, tree_of_walk
from factorwise.apps.resolution.resolving import draw_posterior
from factorwise.apps.resolution.results.trust import describe_calibration
from factorwise.apps.resolution.training import entity_numbers
from factorwise.inference.merge_trees import SURE
from factorwise.metrics.calibration import Reliability, reliability
from factorwise.metrics.clustering import b_cubed
from factorwise.types import Bools

SETS = ("historical_50k", "aminer110", "chicago_early_childhood", "cora1295")
BINS, DRAWS, CHAINS = 10, 1_000, 4
OUTCOMES = 100  # draws that are taken for the truth


class Judged(NamedTuple):
    """Cases with a probability, such as candidate pairs that may be of one entity.

    chance, same : float64[cases], bool[cases]
        The probability of each, and whether it came true.
    drawn : bool[draws, cases]
        Whether it would have, where draws are the truth.
    """

    chance: NDArray[np.float64]
    same: Bools
    drawn: NDArray[np.bool_]

    @classmethod
    def together(cls, runs: Sequence[Judged]) -> Judged:
        """Put the cases of several runs together."""
        return cls(
            *(np.concatenate([run[k] for run in runs]) for k in range(2)),
            np.concatenate([run.drawn for run in runs], axis=1),
        )

    def tenths(self) -> Reliability:
        """Return the pairs by their probability."""
        return reliability(self.chance, self.same, bins=BINS)

    def brier(self) -> float:
        """Return the mean squared error."""
        return float(np.mean((self.chance - self.same) ** 2))

    def in_doubt(self) -> Judged:
        """Return the pairs that are neither nearly certain nor nearly impossible."""
        doubt = np.minimum(self.chance, 1.0 - self.chance) > SURE
        return Judged(self.chance[doubt], self.same[doubt], self.drawn[:, doubt])

    def text(self) -> str:
        """Say how large the error is, and how large by chance."""
        if not len(self.chance):
            return "none"
        chance = [reliability(self.chance, outcome, bins=BINS).error for outcome in self.drawn]
        return (
            f"{self.tenths().error:.4f} of {len(self.chance):,} (chance {np.mean(chance):.4f}, 95 %"
            f" {np.quantile(chance, 0.95):.4f})"
        )


def cut(name: str, salt: str, most: int) -> Task:
    """Return the halves of a set, of each no more than so many records, about."""
    train, test = (
        half.filter(pa.array(entities_with(entity_numbers(half, "entity"), records=most)))
        for half in split_set(name, salt)
    )
    return Task(name, train, test.drop_columns(["entity"]), entity_numbers(test, "entity"))


def judge(task: Task, seed: int, threads: int) -> tuple[Judged, Judged]:
    """Learn, resolve and compare with the truth: candidate pairs, and merges."""
    resolver = EntityResolver(random_state=seed, n_jobs=threads)
    resolver.fit(task.train, "entity", id="id")
    resolver.resolve(task.test, id="id")  # the first run may compile
    begun = time.process_time()
    resolver.resolve(task.test, id="id")
    between = time.process_time()
    found = resolver.resolve(task.test, id="id", posterior=True)
    ended = time.process_time()
    knowledge, walk = resolver.knowledge_, found.linked.walk
    drawn = draw_posterior(walk, knowledge.merges, draws=DRAWS, seed=seed)
    truth = np.empty(walk.n_items, np.int64)
    truth[found.linked.unit] = task.truth if found.weighed is None else task.truth[found.weighed]
    first, second = walk.graph.first, walk.graph.second
    labels = drawn.labels[:OUTCOMES]
    judged = Judged(
        drawn.together.astype(np.float64),
        truth[first] == truth[second],
        labels[:, first] == labels[:, second],
    )
    tree = tree_of_walk(walk)
    chances = knowledge.merges.likely_chances(tree).mean(axis=0)
    decided = decided_merges(tree, truth, np.ones(len(truth), np.bool_))
    of_merges = chances[decided.node]
    outcomes = np.random.default_rng(seed).random((OUTCOMES, len(of_merges))) < of_merges
    merges = Judged(of_merges, decided.same, outcomes)
    both = drawn.labels[:100], drawn.labels[-100:]
    early, late = (float(np.mean([b_cubed(truth, labels).f1 for labels in some])) for some in both)
    among = float(np.mean([b_cubed(*pair).f1 for pair in zip(*both, strict=True)]))
    entities = np.array([float(len(np.unique(labels))) for labels in drawn.labels]).reshape(CHAINS, -1)
    print(
        f"  B-cubed F1 {b_cubed(task.truth, found.labels).f1:.4f}, of draws {early:.4f} and"
        f" {late:.4f}, among draws {among:.4f}; error in doubt {judged.in_doubt().text()}; of merges in doubt"
        f" {merges.in_doubt().text()}; of all pairs {judged.tenths().error:.4f}; R-hat"
        f" {float(arviz.rhat(entities)):.3f}, effective size {float(arviz.ess(entities)):.0f} of {DRAWS}"
    )
    print(
        f"    the model says: {describe_calibration(knowledge.training)}; resolving took"
        f" {between - begun:.2f} CPU s, with the posterior {ended - between:.2f}",
        flush=True,
    )
    return judged, merges


def report(judged: Judged) -> None:
    """Print the table of a set."""
    print("  probability      pairs   mean p   of one entity (aim: mean p)")
    for mean, share, pairs in zip(*judged.tenths(), strict=True):
        tenth = min(int(mean * BINS), BINS - 1)
        print(f"  {tenth / BINS:.1f} to {(tenth + 1) / BINS:.1f} {pairs:>12,.0f}   {mean:.3f}    {share:.3f}")
    doubtful = judged.in_doubt()
    print(
        f"  in doubt: mean p {doubtful.chance.mean():.3f}, of one entity {doubtful.same.mean():.3f},"
        f" calibration error {doubtful.text()}, Brier {doubtful.brier():.4f}; of all"
        f" {len(judged.chance):,} candidates error {judged.tenths().error:.4f}, Brier {judged.brier():.4f}"
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
    options = arguments(__doc__, SETS)
    results = {}
    for name in options.sets:
        runs = []
        for salt in options.salts:
            task = cut(name, salt, options.records)
            print(
                f"{name} {salt}: {task.train.num_rows:,} records to learn from, {task.test.num_rows:,} others"
            )
            runs.append(judge(task, options.seed, options.threads))
        results[name] = Judged.together([pairs for pairs, _ in runs])
        report(results[name])
        print(
            f"  merges in doubt: calibration error {Judged.together([m for _, m in runs]).in_doubt().text()}"
        )
    save(draw(results), Path(__file__).stem)


if __name__ == "__main__":
    main()
