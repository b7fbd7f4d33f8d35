"""Small clusterings of linked items: awkward ones, random ones, plain copies, and all there are."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.model.clusterings.link_templates import LinkTemplate
from factorwise.model.model import Model
from factorwise.world.partition import Partition
from link_cases import check_layout
from plain_links import Linked

# Halves and quarters throughout: sums of them are exact in single precision.
LINES = [(0, 1, 1.5), (1, 2, 0.75), (2, 3, -0.5), (0, 2, 1.0), (3, 4, 2.0)]
CASES = {
    "missing links": {"n": 5, "links": LINES, "unlinked": -0.75, "cluster": 0.5},
    "cheap to be apart": {"n": 5, "links": LINES, "unlinked": 0.25, "cluster": -1.25},
    "forbidden": {
        "n": 5,
        "links": [*LINES, (1, 4, -math.inf), (0, 3, -math.inf)],
        "unlinked": 0.5,
        "cluster": 0.25,
    },
    "heavy": {"n": 5, "links": LINES, "unlinked": -0.25, "cluster": 0.75, "counts": [1, 3, 2, 1, 2]},
    "one per source": {"n": 5, "links": LINES, "unlinked": 0.25, "cluster": -0.5, "sources": [1, 2, 4, 1, 6]},
    "everything": {
        "n": 6,
        "links": [*LINES, (4, 5, 1.25), (2, 5, 0.5), (0, 5, -math.inf), (1, 3, 0.25)],
        "unlinked": -0.5,
        "cluster": 1.0,
        "counts": [1, 2, 1, 1, 3, 1],
        "sources": [1, 0, 2, 1, 0, 4],
    },
}


def walk_of(case, labels=None, *, strict=False):
    first, second, scores = zip(*case["links"], strict=True)
    return LinkWalk(
        LinkGraph.from_pairs(case["n"], first, second),
        scores,
        unlinked=case["unlinked"],
        cluster=case["cluster"],
        labels=labels,
        counts=case.get("counts"),
        sources=case.get("sources"),
        strict=strict,
    )


def model_score(case, labels):
    """The score by a `LinkTemplate`: an item of count c is c records, the first of which has its links."""
    counts = case.get("counts", [1] * case["n"])
    first, second, scores = zip(*case["links"], strict=True)
    starts = np.concatenate([[0], np.cumsum(counts)])
    pairs = np.column_stack([starts[list(first)], starts[list(second)]])
    levels = np.arange(1, len(scores) + 1)[:, None]
    template = LinkTemplate("links", int(starts[-1]), pairs, levels=levels)
    forbidden = [score == -math.inf for score in scores]
    if any(labels[a] == labels[b] for a, b, never in zip(first, second, forbidden, strict=True) if never):
        return -math.inf
    finite = [0.0 if never else score for score, never in zip(scores, forbidden, strict=True)]
    model = Model([template], [case["unlinked"], case["cluster"], 0.0, *finite])
    return model.score(Partition.from_keys(np.repeat(np.asarray(labels), counts)))


def is_allowed(case, labels):
    """No two items of one source are together, and no forbidden pair."""
    sources = case.get("sources", [0] * case["n"])
    held = defaultdict(int)
    for label, bits in zip(labels, sources, strict=True):
        if held[label] & bits:
            return False
        held[label] |= bits
    return all(score > -math.inf for one, two, score in case["links"] if labels[one] == labels[two])


def partitions(n):
    """All clusterings of n items, each cluster named by its smallest member."""
    found = [()]
    for item in range(n):
        found = [(*labels, label) for labels in found for label in sorted({*labels, item})]
    return found


def target(case, temperature):
    """The allowed clusterings, and exp(score / temperature) of each as a probability."""
    worlds = [labels for labels in partitions(case["n"]) if is_allowed(case, labels)]
    scores = np.array([model_score(case, labels) for labels in worlds]) / temperature
    odds = np.exp(scores - scores.max())
    return worlds, odds / odds.sum()


def random_walk(rng, n, *, shards=1, heavy=True, constrained=True, density=0.4, strict=False):
    """Random links between n items, from a random clustering that keeps to the shards."""
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < density]
    first, second = (np.array([pair[side] for pair in pairs], np.int32) for side in (0, 1))
    scores = rng.integers(-12, 14, len(pairs)) / 8.0
    shard = rng.integers(0, shards, n)
    sources = None
    if constrained:
        scores[rng.random(len(pairs)) < 0.05] = -np.inf
        sources = np.where(rng.random(n) < 0.4, 1 << rng.integers(0, 5, n), 0)
    labels = rng.integers(0, max(1, n // 2), n) * shards + shard
    walk = LinkWalk(
        LinkGraph.from_pairs(n, first, second),
        scores,
        unlinked=float(rng.integers(-6, 4)) / 8.0,
        cluster=float(rng.integers(-8, 9)) / 8.0,
        counts=rng.integers(1, 4, n) if heavy else None,
        sources=sources,
        strict=strict,
    )
    walk.place_items(_allowed_labels(walk, labels))
    if shards > 1:
        walk.lay_out(shard)
    return walk


def _allowed_labels(walk, labels):
    """Take items by themselves until no forbidden pair is together."""
    labels = labels.copy()
    graph = walk.graph
    for k in np.flatnonzero(np.isneginf(walk.link_scores)):
        if labels[graph.first[k]] == labels[graph.second[k]]:
            labels[graph.first[k]] = 1000 + graph.first[k]
    return labels


def plain(walk):
    """The same links and clusters, for the plain twins, in one shard."""
    graph, beyond = walk.graph, walk.link_scores - np.float32(walk.settings[0])
    rows = [
        [
            (int(graph.neighbor[k]), float(beyond[graph.pair[k]]))
            for k in range(graph.start[i], graph.start[i + 1])
        ]
        for i in range(walk.n_items)
    ]
    labels = walk.labels
    clusters = [np.flatnonzero(labels == name).tolist() for name in np.unique(labels).tolist()]
    columns = (walk.counts.tolist(), walk.sources.tolist(), [0] * walk.n_items)
    return Linked(rows, *columns, *walk.settings.tolist(), clusters)


def check(walk):
    """Every shard of a walk is a clustering of its items, with nothing of another's."""
    check_layout(walk.shards)
    for members in Partition.from_keys(walk.labels).clusters() if walk.n_items else ():
        bits = walk.sources[members].tolist()
        assert (
            sum(each.bit_count() for each in bits)
            == int(np.bitwise_or.reduce(walk.sources[members])).bit_count()
        )


def pooled(observed, expected):
    """Counts with the rare ones added up, for a chi-square test."""
    rare = expected < 8.0
    kept = [np.append(counts[~rare], counts[rare].sum()) for counts in (observed, expected)]
    return kept if rare.any() else [counts[:-1] for counts in kept]
