"""A proposer trained once and used on other documents: what it costs to reach a score. Beyond the paper.

    python experiments/adaptive_reuse.py
    python experiments/adaptive_reuse.py --quick

SampleRank learns a model from training documents. The proposer is trained there too, by the model's score or
by the truth, and stays as it is while unseen documents are climbed, from every mention by itself, under the
model's score: the best of 1 or of 5 jumps is taken if it scores higher. Rivals draw splits and merges
uniformly, by two random mentions (`SplitMerge`), or mixed with moves of single mentions, as the coreference
search does. All walk in compiled code, ten jumps at a time.

The goal is 95 or 99 % of the way from the start to the best score that any walk found for the document.
Counted are pairs of mentions looked at, to judge jumps and (by the trained proposers) to know the odds of
jumps: on the documents where the uniform proposer arrived as well, and on all of them, where a walk that
never arrives counts with all that it did.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from adaptive_tasks import Case, case_of, discourses, documents, learn_weights, np, parser_of, save, spread
from matplotlib.figure import Figure
from numpy.typing import NDArray

from factorwise.apps.coreference.documents import read_documents
from factorwise.datasets.local import find_data
from factorwise.inference.mcmc.adaptive.jumps import Jumps
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.training import TunedDocument, train_proposer
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.best_of import BestOf
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Merge,
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.walk import Walk
from factorwise.rng import Stream

SAMPLES_PER_MENTION = 300  # drawn in all
TOGETHER = 10  # jumps between two looks at the score
GOALS = (0.95, 0.99)

Setup = Callable[[Case], Any]  # a proposer for a document


class Climbed(NamedTuple):
    """One walk: after every ten jumps its score, and the pairs judged, pairs for odds and seconds so far."""

    scores: NDArray[np.float64]
    costs: NDArray[np.float64]

    def until(self, goal: float) -> NDArray[np.float64]:
        """Costs until a score is reached, and whether it was; all costs where it was not."""
        reached = np.flatnonzero(self.scores >= goal)
        at = reached[0] if len(reached) else len(self.scores) - 1
        return np.append(self.costs[at], float(len(reached) > 0))


def climb(proposer: Any, case: Case, samples: int, seed: int, *, most: int | None = None) -> Climbed:
    """Take the best of several jumps if it scores higher, and so on, up to ``most`` jumps."""
    jumps = most or SAMPLES_PER_MENTION * case.n_mentions // samples
    walk = Walk(Metropolis(case.model, BestOf(proposer, samples), acceptance="greedy"), case.start())
    known = Jumps(walk) if isinstance(proposer, AdaptiveSplitMerge) else None
    scores, costs, seconds, stream = [walk.score], [(0.0, 0.0, 0.0)], 0.0, Stream(seed)
    for _ in range(jumps // TOGETHER):
        began = time.process_time()
        walk.advance(stream, 1.0, TOGETHER)
        seconds += time.process_time() - began
        scores.append(walk.score)
        odds = 0 if known is None else known.odds_seen
        costs.append((float(walk.factors_seen), float(odds), seconds))
    return Climbed(np.array(scores), np.array(costs))


def mixture(moves: Sequence[object], odds: Sequence[float]) -> Setup:
    """Draw from a fixed mixture of moves."""
    return lambda case: PartitionMixture(moves, odds)


def trained(weights: JumpWeights) -> Setup:
    """Draw by weights that stay as they are."""
    return lambda case: AdaptiveSplitMerge(case.features, weights)


def methods(training: Sequence[Case]) -> dict[str, Setup]:
    """All by name; the proposers are trained here."""
    found = {
        "uniform": mixture([Merge(), Split()], [0.5, 0.5]),
        "by two mentions": mixture([SplitMerge()], [1.0]),
        "search's moves": mixture(
            [RelocateToItem(), RelocateToCluster(), RelocateToNew(), SplitMerge()], [0.55, 0.3, 0.1, 0.05]
        ),
    }
    for name, by_truth in (("trained by score", False), ("trained by truth", True)):
        began = time.process_time()
        given = [
            TunedDocument(AdaptiveSplitMerge(case.features), case.start(), case.truth() if by_truth else None)
            for case in training
        ]
        weights = train_proposer(given, progress=False)
        kinds = ", ".join(f"{share:.2f}" for share in weights.kinds)
        print(
            f"{name}: {len(given)} documents, {time.process_time() - began:.0f} CPU s;"
            f" splits, merges, moves {kinds}",
            flush=True,
        )
        found[name] = trained(weights)
    return found


Costs = dict[
    tuple[str, float], NDArray[np.float64]
]  # by method and goal: [seed, document, see Climbed.until]


def compare(group: str, cases: Sequence[Case], tried: dict[str, Setup], samples: int, seeds: range) -> Costs:
    """Climb every document with every method, print a table and return what it took to come so far."""
    runs = {}
    for name, setup in tried.items():
        climb(setup(cases[0]), cases[0], samples, 0, most=TOGETHER)  # compiles
        runs[name] = [[climb(setup(case), case, samples, seed) for case in cases] for seed in seeds]
    best = np.max([[run.scores.max() for run in one] for by_seed in runs.values() for one in by_seed], axis=0)
    mentions = [case.n_mentions for case in cases]
    print(
        f"\n{group}: {len(cases)} documents, {min(mentions)} to {max(mentions)} mentions, best of {samples},"
        f" {len(seeds)} seeds (lowest-highest); {sum(n * (n - 1) // 2 for n in mentions):,} pairs there are"
    )
    found: Costs = {}
    for goal in GOALS:
        print(f"  {100 * goal:.0f} % of the way")
        for name, by_seed in runs.items():
            found[name, goal] = np.array(
                [
                    [
                        run.until(run.scores[0] + goal * (top - run.scores[0]))
                        for run, top in zip(one, best, strict=True)
                    ]
                    for one in by_seed
                ]
            )
            print(f"    {name:<16} {told(found[name, goal], found['uniform', goal])}", flush=True)
    return found


def told(costs: NDArray[np.float64], uniform: NDArray[np.float64]) -> str:
    """Sum up what one method took, on the documents where both it and the uniform proposer arrived."""
    arrived, both = costs[..., 3], (costs[..., 3] * uniform[..., 3])[..., None]
    own, others = ((one * both).sum(axis=1) for one in (costs, uniform))  # [seed, cost]
    pairs, ratios = own[:, 0] + own[:, 1], (own[:, 0] + own[:, 1]) / others[:, 0]
    everywhere = costs[..., :2].sum(axis=(1, 2)) / uniform[..., :2].sum(axis=(1, 2))
    return (
        f"{arrived.sum(axis=1).mean():.1f} arrived; where uniform did too ({both.sum(axis=1).mean():.1f}):"
        f" {spread(pairs.tolist())} pairs ({own[:, 0].mean():,.0f} judged, {own[:, 1].mean():,.0f} for odds),"
        f" {spread(ratios.tolist(), 2)} of uniform's, {1e3 * own[:, 2].mean():,.0f} CPU ms against"
        f" {1e3 * others[:, 2].mean():,.0f}; everywhere {spread(everywhere.tolist(), 2)} of uniform's pairs"
    )


def draw(results: dict[str, Costs]) -> Figure:
    """One panel per group and number of samples: pairs looked at, by method, for both goals."""
    figure, panels = plt.subplots(1, len(results), figsize=(4 * len(results), 3.8), squeeze=False)
    for panel, (title, found) in zip(panels[0], results.items(), strict=True):
        names = list(dict.fromkeys(name for name, _ in found))
        for shift, goal in ((-0.2, GOALS[0]), (0.2, GOALS[1])):
            pairs = [found[name, goal][..., :2].sum(axis=(1, 2)).mean() for name in names]
            panel.bar(np.arange(len(names)) + shift, pairs, 0.38, label=f"{100 * goal:.0f} %")
        panel.set_xticks(range(len(names)), names, rotation=30, ha="right")
        panel.set_yscale("log")
        panel.set_title(title, fontsize=10)
    panels[0][0].set_ylabel("pairs looked at")
    panels[0][0].legend(fontsize=8)
    return figure


def main() -> None:
    options = parser_of(__doc__, seeds=3).parse_args()
    some = 5 if options.quick else 1
    weights = learn_weights(without=(), each=0 if options.quick else 20)
    tried = methods([case_of(one, weights) for one in documents("train")[::some]])
    long = discourses(read_documents(find_data("coref_litbank/dev.jsonl")))
    groups = {
        "20 to 115 mentions": [*documents("dev"), *documents("test", 5)][::some],
        "whole LitBank dev": long[:: 5 * some],
    }
    results = {}
    for group, given in groups.items():
        cases = [case_of(one, weights) for one in given]
        for samples in (1, 5):
            results[f"{group}, best of {samples}"] = compare(
                group, cases, tried, samples, range(options.seeds)
            )
    save(draw(results), "adaptive_reuse")


if __name__ == "__main__":
    main()
