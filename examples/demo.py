"""The main job end to end: who is who among the authors of a small bibliography.

Makes 300 mentions of 60 people, scores clusterings of them by a pair function and a cluster function written
here, searches for the best clustering by annealing, then samples for the probability of every pair. Prints
pairwise and B-cubed F1 against the known truth before and after, and writes a page to look at. The weights
are set by hand: learning them is not part of factorwise yet.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from demo_parts.bibliography import AUTHORS, Mention, bibliography, sound
from demo_parts.page import Outcome, write_page

import factorwise as fw
from factorwise import overlap

PEOPLE, MENTIONS = 60, 300
STEPS = 400_000
PACKAGES = ["factorwise", "numpy", "numba"]
ENOUGH = 0.3  # how far F1 must rise above that of the start for the demo to have worked

PAIR_WEIGHTS = {
    "pair": -0.5,
    "same last name": 0.3,
    "last names do not sound alike": -8.0,
    "same full first name": 2.0,
    "another full first name": -6.0,
    "another initial": -8.0,
    "shared co-authors": 2.0,
    "same venue": 0.5,
}
CLUSTER_WEIGHTS = {"contradicting first names": -4.0}


def compare(a: Any, b: Any) -> tuple[Any, ...]:
    """Statistics of two mentions in one cluster; a first name or initial of zero was not printed."""
    return (
        True,
        a.last == b.last,
        a.sound != b.sound,
        (a.first > 0) & (a.first == b.first),
        (a.first > 0) & (b.first > 0) & (a.first != b.first),
        (a.initial > 0) & (b.initial > 0) & (a.initial != b.initial),
        overlap(a.coauthors, b.coauthors),
        a.venue == b.venue,
    )


def contradictions(cluster: Any) -> tuple[Any, ...]:
    """How many full first names a cluster has beyond one: initials must not chain people together."""
    names = 0
    for i in range(cluster.size):
        fresh = cluster.first[i] > 0
        for j in range(i):
            if cluster.first[j] == cluster.first[i]:
                fresh = False
        if fresh:
            names += 1
    return (max(names - 1, 0),)


def codes(values: Sequence[str]) -> list[int]:
    """Number the different texts from 1; an empty text is 0."""
    known = {text: code for code, text in enumerate(sorted(set(values) - {""}), start=1)}
    return [known.get(text, 0) for text in values]


def fields_of(mentions: Sequence[Mention]) -> fw.Fields:
    """Encode what is printed as columns of numbers."""
    names = codes([name for m in mentions for name in (*m.coauthors, *[""] * (AUTHORS - len(m.coauthors)))])
    return fw.Fields(
        last=codes([m.last for m in mentions]),
        sound=codes([sound(m.last) for m in mentions]),
        first=codes(["" if m.first.endswith(".") else m.first for m in mentions]),
        initial=codes([m.first[:1] for m in mentions]),
        coauthors=np.reshape(names, (len(mentions), AUTHORS)),
        venue=codes([m.venue for m in mentions]),
    )


def pairwise_f1(found: np.ndarray, truth: np.ndarray) -> float:
    """F1 of the pairs that are put together."""
    upper = np.triu_indices(len(found), 1)
    ours, theirs = (np.equal.outer(labels, labels)[upper] for labels in (found, truth))
    return float(2 * (ours & theirs).sum() / (ours.sum() + theirs.sum()))


def b_cubed_f1(found: np.ndarray, truth: np.ndarray) -> float:
    """F1 of precision and recall of each mention's cluster, averaged over mentions."""
    ours, theirs = (np.equal.outer(labels, labels) for labels in (found, truth))
    shared = (ours & theirs).sum(axis=1)
    precision, recall = (shared / ours.sum(axis=1)).mean(), (shared / theirs.sum(axis=1)).mean()
    return float(2 * precision * recall / (precision + recall))


def clustering_model(fields: fw.Fields) -> fw.Model:
    """Pairs, and clusters as wholes, with the weights above."""
    return fw.Model(
        [
            fw.templates.PairTemplate("pairs", fields, compare, list(PAIR_WEIGHTS)),
            fw.templates.ClusterTemplate("clusters", fields, contradictions, list(CLUSTER_WEIGHTS)),
        ],
        {"pairs": list(PAIR_WEIGHTS.values()), "clusters": list(CLUSTER_WEIGHTS.values())},
    )


def main() -> int:
    """Run the demo; 0 where the result is far better than the start."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for report.html")
    options = parser.parse_args()

    mentions = bibliography(PEOPLE, MENTIONS, options.seed)
    keys = [sound(m.last) for m in mentions]
    candidates = [(i, j) for i, j in combinations(range(MENTIONS), 2) if keys[i] == keys[j]]
    model = clustering_model(fields_of(mentions))
    # single items only: with merge and split as well, the first run would compile for twice as long
    nearby = fw.mcmc.RelocateToCandidate.from_pairs(MENTIONS, candidates)
    moves = fw.mcmc.PartitionMixture([nearby, fw.mcmc.RelocateToNew()], [3.0, 1.0])
    kernel = fw.mcmc.Metropolis(model, moves)
    start = fw.Partition.singletons(MENTIONS)
    print(f"{MENTIONS} mentions of {PEOPLE} people, {len(candidates):,} candidate pairs, seed {options.seed}")

    clock = [perf_counter()]
    fw.anneal(kernel, start, steps=1, engine="compiled", progress=False)
    clock.append(perf_counter())
    found = fw.anneal(kernel, start, steps=STEPS, seed=options.seed, engine="compiled", progress=False)
    clock.append(perf_counter())
    samples = fw.sample(
        kernel,
        start,
        draws=500,
        thin=2_000,
        burn_in=STEPS,
        chains=4,
        seed=options.seed,
        pairs=candidates,
        engine="compiled",
        progress=False,
    )
    clock.append(perf_counter())

    truth = fw.Partition.from_keys([m.person for m in mentions])
    worlds = {
        "before: every mention on its own": start,
        "by rule: same last name and initial": fw.Partition.from_keys(
            [(m.last + m.first[:1]) for m in mentions]
        ),
        "after: annealed": found.world,
        "truth": truth,
    }
    goal = truth.dense_labels()
    scores = [
        (name, world.n_clusters, model.score(world), pairwise_f1(labels, goal), b_cubed_f1(labels, goal))
        for name, world in worlds.items()
        for labels in [world.dense_labels()]
    ]
    print(f"\n{'':38}people     score  pairwise F1  B-cubed F1")
    for name, people, score, pairwise, b_cubed in scores:
        print(f"{name:38}{people:6}{score:10,.1f}{pairwise:13.3f}{b_cubed:12.3f}")

    compiling, annealing, sampling = np.diff(clock)
    run = {
        "command": " ".join(["python", *sys.argv]),
        "seed": str(options.seed),
        "annealed": f"{STEPS:,} steps in {annealing:.1f} s",
        "sampled": f"4 chains of {STEPS:,} + {500 * 2_000:,} steps in {sampling:.1f} s",
        "compiled": f"in {compiling:.1f} s (less when an earlier run has left its compiled code)",
        "R-hat of the score": f"{fw.mcmc.r_hat(samples):.3f} (near 1 where the chains agree)",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in PACKAGES)]
        ),
    }
    print("\n" + "\n".join(f"{name:20}{value}" for name, value in run.items()))
    report = options.out / "report.html"
    outcome = Outcome(
        mentions=mentions,
        run=run,
        weights=PAIR_WEIGHTS | CLUSTER_WEIGHTS,
        scores=scores,
        trace=[scores[0][2], *found.trace[0].tolist()],
        truth_score=scores[-1][2],
        labels=found.world.dense_labels().tolist(),
        pairs=candidates,
        together=samples.co_clustering().tolist(),
    )
    write_page(report, outcome)
    print(f"\nreport: {report.resolve()}")

    before, by_rule, after = (np.array(row[3:]) for row in scores[:3])
    if (after < before + ENOUGH).any() or (after < by_rule).any():
        print("the result is not far above the start: something is broken", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
