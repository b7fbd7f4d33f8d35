"""The classics of docs/classics.md beside independent implementations, both timed.

    .venv/bin/python benchmarks/classics.py [--only mixture,blocks,topics,tracks,smokers] [--rounds 3]

Each classic is larger than on the page, its model is the page's own, and a counterpart that shares no code
does the same number of Gibbs sweeps, or answers the same question: NumPy loops for the mixture, the block
model and smokers, scikit-learn's LatentDirichletAllocation for topics, an enumeration of all matchings for
data association. CPU seconds, smallest of all rounds, after compiling. What the two find is compared, and
must agree within the sampling error that is printed with it; a classic that is slower or differs ends the run
with exit code 1.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from runpy import run_path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from timing import smallest

import factorwise as fw
from factorwise.rng import Stream

PAGE = Path(__file__).parents[1] / "docs" / "classics.md"
HEADINGS = {
    "mixture": "Dirichlet-process mixture",
    "blocks": "Stochastic block model",
    "topics": "Topics",
    "tracks": "Data association",
    "smokers": "Smokers",
}


class Compared(NamedTuple):
    """Answers of ours and of a counterpart, what they may differ by, and how to run both once."""

    ours: Callable[[], float]
    theirs: Callable[[], float]
    tolerance: float
    what: str


def load(name: str) -> dict[str, Any]:
    """Run a section of the page, and return the names that it defines."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {HEADINGS[name]}")[1]
    block = re.search(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    path = Path(tempfile.mkdtemp()) / f"{name}.py"
    path.write_text(block[1] if block else "", encoding="utf-8")
    return run_path(str(path))


def gibbs_mean(kernel: Any, start: Any, sweeps: int, measure: Callable[[Any], float], every: int) -> float:
    """Return the mean of a measure over the second half of a chain."""
    walk, stream, seen = fw.mcmc.Walk(kernel, start), Stream(1), []
    for sweep in range(sweeps):
        walk.advance(stream, 1.0, every)
        if sweep >= sweeps // 2:
            seen.append(measure(walk.view))
    return float(np.mean(seen))


def mixture() -> Compared:
    """300 points around six centers: the mean number of clusters."""
    page = load("mixture")
    rng = np.random.default_rng(0)
    points = rng.normal(size=(6, 2))[rng.integers(6, size=300)] * 2.5 + 0.55 * rng.normal(size=(300, 2))
    model = fw.Model([page["GaussianMixture"](points)], [1.0])
    sweeps = 600

    def ours() -> float:
        kernel, start = fw.mcmc.PartitionGibbs(model), fw.Partition.from_labels(np.zeros(300, int))
        return gibbs_mean(kernel, start, sweeps, lambda world: world.n_clusters, 300)

    spread, prior, alpha = page["SPREAD"], page["PRIOR"], page["ALPHA"]

    def theirs() -> float:
        """Neal's third algorithm by predictive densities."""
        random = np.random.default_rng(2)
        label, seen = np.zeros(300, int), []
        count, total = np.array([300.0]), points.sum(axis=0)[None]
        for sweep in range(sweeps):
            for item in random.integers(300, size=300):
                count[label[item]] -= 1
                total[label[item]] -= points[item]
                if count[label[item]] == 0:
                    kept = np.arange(len(count)) != label[item]
                    count, total = count[kept], total[kept]
                    label[label > label[item]] -= 1
                n, s = np.append(count, 0.0), np.vstack([total, np.zeros(2)])
                variance = 1.0 / (1.0 / prior + n / spread)
                mean = variance[:, None] * s / spread
                square = ((points[item] - mean) ** 2).sum(axis=1)
                log = np.log(np.append(count, alpha)) - np.log(variance + spread)
                log -= 0.5 * square / (variance + spread)
                chance = np.exp(log - log.max())
                chosen = int(np.searchsorted(chance.cumsum(), random.random() * chance.sum()))
                if chosen == len(count):
                    count, total = np.append(count, 0.0), np.vstack([total, np.zeros(2)])
                label[item] = chosen
                count[chosen] += 1
                total[chosen] += points[item]
            if sweep >= sweeps // 2:
                seen.append(len(count))
        return float(np.mean(seen))

    return Compared(ours, theirs, 1.0, "mean number of clusters")


def blocks() -> Compared:
    """120 nodes in four blocks: the mean share of pairs within clusters."""
    page = load("blocks")
    rng = np.random.default_rng(0)
    n, inside, outside = 120, 0.3, 0.05
    truth = np.arange(n) % 4
    first, second = np.triu_indices(n, 1)
    linked = rng.random(len(first)) < np.where(truth[first] == truth[second], inside, outside)
    edges = np.column_stack([first, second])[linked]
    absent = np.log((1 - inside) / (1 - outside))
    present = np.log(inside / outside) - absent
    templates = [
        fw.templates.EdgeTemplate("edges", n, edges, np.ones((len(edges), 1)), ["edges within"]),
        fw.templates.TallyTemplate(
            "pairs", fw.Bags.from_lists([["node"]] * n), page["none"], page["pairs_within"], ["pairs"]
        ),
    ]
    model, sweeps = fw.Model(templates, [present, absent]), 60

    def ours() -> float:
        def share(world: Any) -> float:
            size = np.bincount(world.labels)
            return float((size * (size - 1)).sum() / (n * (n - 1)))

        return gibbs_mean(fw.mcmc.PartitionGibbs(model), fw.Partition.singletons(n), sweeps, share, n)

    adjacent = np.zeros((n, n))
    adjacent[edges[:, 0], edges[:, 1]] = adjacent[edges[:, 1], edges[:, 0]] = 1.0

    def theirs() -> float:
        random = np.random.default_rng(2)
        label, seen = np.arange(n), []
        for sweep in range(sweeps):
            for item in random.integers(n, size=n):
                label[item] = n  # in no cluster
                size = np.bincount(label, minlength=n + 1)[:n].astype(float)
                links = np.bincount(label, weights=adjacent[item], minlength=n + 1)[:n]
                used = np.append(np.flatnonzero(size), np.flatnonzero(size == 0)[0])
                log = present * links[used] + absent * size[used]
                chance = np.exp(log - log.max())
                label[item] = used[int(np.searchsorted(chance.cumsum(), random.random() * chance.sum()))]
            if sweep >= sweeps // 2:
                size = np.bincount(label)
                seen.append((size * (size - 1)).sum() / (n * (n - 1)))
        return float(np.mean(seen))

    return Compared(ours, theirs, 0.01, "share of pairs within clusters")


def topics() -> Compared:
    """200 documents of 60 tokens over three topics: how purely the found topics take the words apart."""
    page = load("topics")
    rng = np.random.default_rng(0)
    n_documents, length, n_words, n_topics = 200, 60, 60, 3
    shares = rng.dirichlet([0.5] * n_topics, size=n_documents)
    document = np.repeat(np.arange(n_documents), length)
    topic = np.array([rng.choice(n_topics, p=shares[d]) for d in document])
    block = n_words // n_topics
    word = np.where(
        rng.random(len(topic)) < 0.9,
        topic * block + rng.integers(block, size=len(topic)),
        rng.integers(n_words, size=len(topic)),
    )
    of_word = np.arange(n_words) // block

    def purity(by_word: NDArray[Any]) -> float:
        """Share of words whose main topic is the main topic of the words that belong together."""
        main = np.asarray(by_word).argmax(axis=1)
        right = sum(np.bincount(main[of_word == k]).max() for k in range(n_topics))
        return float(right / n_words)

    column = fw.Column("topic", fw.Domain("topic", range(n_topics)), np.full(len(word), -1, np.int32))
    start = fw.Assignment.uniform(fw.Variables([column]), 1)
    template = page["Topics"](document, word)
    kernel = fw.mcmc.Gibbs(fw.Model([template], [1.0]), scan="systematic")

    def ours() -> float:
        walk, stream = fw.mcmc.Walk(kernel, start), Stream(1)
        walk.advance(stream, 1.0, 100)
        return purity(template.counts(walk.view)[1])

    counts = np.zeros((n_documents, n_words))
    np.add.at(counts, (document, word), 1)

    def theirs() -> float:
        from sklearn.decomposition import LatentDirichletAllocation

        found = LatentDirichletAllocation(
            n_topics, doc_topic_prior=0.5, topic_word_prior=0.1, max_iter=100, random_state=0
        ).fit(counts)
        return purity(found.components_.T)

    return Compared(ours, theirs, 0.1, "purity of topics")


def tracks() -> Compared:
    """Eight objects before and after: the probability that the first stays itself."""
    load("tracks")
    rng = np.random.default_rng(0)
    n = 8
    before = rng.uniform(0, 4, size=n)
    now = before + 0.3 * rng.normal(size=n)
    near = -0.5 * (before[:, None] - now[None, :]) ** 2 / 0.1
    model = fw.Model(
        [
            fw.templates.TargetTemplate.from_table(
                "near", np.pad(near, ((0, 0), (0, 1)), constant_values=-60.0)
            )
        ],
        [1.0],
    )

    def ours() -> float:
        kernel = fw.mcmc.Metropolis(model, fw.mcmc.Rematch())
        start = fw.Matching(n, n, pairs=[(k, k) for k in range(n)])
        return gibbs_mean(kernel, start, 4_000, lambda world: float(world.values[0] == 0), 50)

    def theirs() -> float:
        """All complete matchings: incomplete ones have no weight here."""
        total = first = 0.0
        row = np.arange(n)
        for order in permutations(range(n)):
            weight = float(np.exp(near[row, order].sum()))
            total += weight
            first += weight * (order[0] == 0)
        return first / total

    return Compared(ours, theirs, 0.05, "probability of a pair")


def smokers() -> Compared:
    """200 people and 400 friendships: the mean share of smokers."""
    page = load("smokers")
    rng = np.random.default_rng(0)
    people, sweeps = 200, 300
    friends = rng.choice(people, size=(400, 2))
    friends = friends[friends[:, 0] != friends[:, 1]]
    model, variables = page["model_of"](people, friends)

    def ours() -> float:
        def share(world: Any) -> float:
            return float(world.values[:people].mean())

        kernel = fw.mcmc.Gibbs(model, scan="systematic")
        return gibbs_mean(kernel, fw.Assignment.initial(variables), sweeps, share, 1)

    adjacent = np.zeros((people, people))
    np.add.at(adjacent, (friends[:, 0], friends[:, 1]), 1.0)
    adjacent += adjacent.T

    def theirs() -> float:
        random = np.random.default_rng(2)
        smokes, cancer, seen = np.zeros(people), np.zeros(people), []
        smokes[0] = 1.0
        for sweep in range(sweeps):
            for one in range(1, people):
                lead = 1.1 * (adjacent[one] @ (2 * smokes - 1)) - 1.5 * (1 - cancer[one])
                smokes[one] = random.random() < 1 / (1 + np.exp(-lead))
            cancer = (random.random(people) < 1 / (1 + np.exp(-1.5 * smokes))).astype(float)
            if sweep >= sweeps // 2:
                seen.append(smokes.mean())
        return float(np.mean(seen))

    return Compared(ours, theirs, 0.02, "share of smokers")


CLASSICS = {"mixture": mixture, "blocks": blocks, "topics": topics, "tracks": tracks, "smokers": smokers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default=",".join(CLASSICS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    failed = False
    print(f"{'':10}{'ours, CPU s':>12}{'theirs':>10}{'times':>8}   what: ours, theirs (may differ by)")
    for name in options.only.split(","):
        case = CLASSICS[name]()
        begun = time.process_time()
        case.ours()  # compiles
        first = time.process_time() - begun
        ours, theirs = smallest(case.ours, options.rounds), smallest(case.theirs, options.rounds)
        failed |= abs(ours.result - theirs.result) > case.tolerance or ours.cpu > theirs.cpu
        found = f"{case.what}: {ours.result:.3f}, {theirs.result:.3f} ({case.tolerance})"
        ratio = theirs.cpu / ours.cpu
        print(f"{name:10}{ours.cpu:12.3f}{theirs.cpu:10.3f}{ratio:8.1f}   {found}; first call {first:.1f} s")
    sys.exit(failed)


if __name__ == "__main__":
    main()
