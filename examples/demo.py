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
    """F1 of each mention's cluster, averaged over mentions."""
    ours, theirs = (np.equal.outer(labels, labels) for labels in (found, truth))
    shared = (ours & theirs).sum(axis=1)
    precision, recall = (shared / ours.sum(axis=1)).mean(), (shared / theirs.sum(axis=1)).mean()
    return float(2 * precision * recall / (precision + recall))


def main() -> int:
    """Run the demo; 0 where the result is far better than the start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for report.html")
    options = parser.parse_args()

    mentions = bibliography(PEOPLE, MENTIONS, options.seed)
    truth = np.array([m.person for m in mentions])
    fields = fields_of(mentions)
    keys = [sound(m.last) for m in mentions]
    candidates = [(i, j) for i, j in combinations(range(MENTIONS), 2) if keys[i] == keys[j]]

    model = fw.Model(
        [
            fw.templates.PairTemplate("pairs", fields, compare, list(PAIR_WEIGHTS)),
            fw.templates.ClusterTemplate("clusters", fields, contradictions, list(CLUSTER_WEIGHTS)),
        ],
        {"pairs": list(PAIR_WEIGHTS.values()), "clusters": list(CLUSTER_WEIGHTS.values())},
    )
    moves = fw.mcmc.PartitionMixture(
        [
            fw.mcmc.RelocateToCandidate.from_pairs(MENTIONS, candidates),
            fw.mcmc.RelocateToNew(),
        ],
        [3.0, 1.0],
    )
    kernel = fw.mcmc.Metropolis(model, moves)
    start = fw.Partition.singletons(MENTIONS)
    by_rule = fw.Partition.from_keys([f"{m.last}|{m.first[:1]}" for m in mentions])

    print(f"{MENTIONS} mentions of {PEOPLE} people, {len(candidates):,} candidate pairs, seed {options.seed}")
    began = perf_counter()
    fw.anneal(kernel, start, steps=1, engine="compiled", progress=False)
    compiled = perf_counter()
    found = fw.anneal(
        kernel, start, steps=400_000, seed=options.seed, engine="compiled", progress=False
    )
    annealed = perf_counter()
    samples = fw.sample(
        kernel,
        start,
        draws=500,
        thin=2_000,
        burn_in=400_000,
        chains=4,
        seed=options.seed,
        pairs=candidates,
        engine="compiled",
        progress=False,
    )
    sampled = perf_counter()
    print(compiled-began, annealed-compiled, sampled-annealed, fw.mcmc.r_hat(samples), fw.mcmc.effective_sample_size(samples), samples.accepted)
    for n,w in (("start",start),("rule",by_rule),("found",found.world),("truth",fw.Partition.from_keys(truth))):
        l=w.dense_labels()
        print(n, w.n_clusters, model.score(w), pairwise_f1(l,truth), b_cubed_f1(l,truth))
    return 0


if __name__ == "__main__":
    sys.exit(main())
