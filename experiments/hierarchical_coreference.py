"""Authors of one name as hierarchies and as flat clusterings: B-cubed against factor evaluations.

    .venv/bin/python experiments/hierarchical_coreference.py [--part dev] [--seeds 1] [--figure FILE]

The mentions of inspire_wang are split into two halves by entity. Weights are learned from the first half by
logistic regression: of pairs of mentions for the flat model, of groups of an entity and the rest of it for
the hierarchy, both from cosines of the same bags (name, affiliation, coauthors, words of titles, keywords and
topics). Both walks start from single mentions, draw from the same candidates (the nearest mentions by the
pair score) and have the same temperature. A factor is a pair of mentions in a cluster, or a child and its
parent; those that a step looks at are counted.

pairs           flat clusterings, every pair of a cluster a factor; single mentions move to candidates
pairs, merges   the same, with merges and splits of random clusters
pairs, jumps    the same, with merges of the clusters of candidates and splits of clusters between two of them
hierarchy       trees, a child and the rest of its parent a factor

With `--part dev` the half that the weights are from is searched; the two constants were chosen there. As in
Wick, Singh and McCallum (2012), who compare a hierarchy with all pairs.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import factorwise as fw
from factorwise.datasets.local import find_data
from factorwise.inference.mcmc.proposals.link_moves import LinkedJumps
from factorwise.metrics.clustering import b_cubed
from factorwise.rng import Stream
from factorwise.walks import Program
from factorwise.world.links import LinkGraph

Floats = NDArray[np.float64]
DIMENSIONS = {"name": 128, "affiliation": 128, "coauthors": 512, "words": 256}
CANDIDATES, TEMPERATURE = 10, 0.2
SHIFT_OF_PAIRS, SHIFT_OF_GROUPS = 0.0, -2.0  # of the constants, chosen on the first half
LEVELS = (0.6, 0.7, 0.8)


class Block(NamedTuple):
    """Mentions: entity of each, and vectors of length one by field."""

    entity: NDArray[np.int64]
    vectors: dict[str, Floats]

    def restrict_to(self, items: NDArray[Any]) -> Block:
        """Return some of them."""
        return Block(self.entity[items], {name: v[items] for name, v in self.vectors.items()})

    def cosines(self, first: NDArray[Any], second: NDArray[Any]) -> Floats:
        """Return the cosines of pairs: float64[pairs, fields]."""
        products = [np.einsum("id,id->i", v[first], v[second]) for v in self.vectors.values()]
        return np.column_stack(products)


def words_of(row: dict[str, str]) -> dict[str, list[str]]:
    """Name what is in each bag of a mention."""
    given = re.findall(r"\w+", row["name"].lower().partition(",")[2])
    return {
        "name": [*given, *(f"{word[0]}." for word in given[:1]), "".join(word[0] for word in given)],
        "affiliation": [row["affiliation"].lower(), *re.findall(r"\w+", row["affiliation"].lower())],
        "coauthors": [name for name in row["coauthors"].split("|") if name],
        "words": re.findall(r"\w{3,}", " ".join((row["title"], row["keywords"], row["topics"])).lower()),
    }


def read_block() -> Block:
    """Read the mentions; keys are weighted by how rare they are."""
    with gzip.open(find_data("er/inspire_wang") / "mentions.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    bags, vectors = [words_of(row) for row in rows], {}
    for name, dimensions in DIMENSIONS.items():
        lists = [set(bag[name]) for bag in bags]
        times: dict[str, int] = {}
        for keys in lists:
            for key in keys:
                times[key] = times.get(key, 0) + 1
        weights = [{key: math.log(len(rows) / times[key]) for key in sorted(keys)} for keys in lists]
        hashed = fw.Bags.from_weights(weights).hashed(dimensions)
        length = np.linalg.norm(hashed, axis=1, keepdims=True)
        vectors[name] = hashed / np.where(length > 0, length, 1.0)
    return Block(np.unique([row["entity"] for row in rows], return_inverse=True)[1], vectors)


def split(block: Block) -> tuple[Block, Block]:
    """Split by entity into two halves."""
    side = np.random.default_rng(0).permutation(block.entity.max() + 1) % 2
    return block.restrict_to(side[block.entity] == 0), block.restrict_to(side[block.entity] == 1)


def learn_pairs(block: Block, rng: np.random.Generator) -> Floats:
    """Return a weight of each cosine of two mentions, and a constant."""
    first, second = rng.integers(len(block.entity), size=(2, 400_000))
    different = first != second
    first, second = first[different], second[different]
    same = block.entity[first] == block.entity[second]
    fitted = LogisticRegression(C=1e3).fit(block.cosines(first, second), same)
    return np.append(fitted.coef_[0], fitted.intercept_)


def learn_groups(block: Block, rng: np.random.Generator, size: int = 20_000) -> Floats:
    """Return a weight of each cosine of a group and the rest of its entity, or another one; a constant."""
    members = [np.flatnonzero(block.entity == e) for e in np.unique(block.entity)]
    members = [rng.permutation(items) for items in members]
    large = [items for items in members if len(items) > 1]
    share = np.array([len(items) for items in large], float) ** 0.5
    features, same = [], []
    for _ in range(size):
        own = rng.permutation(large[rng.choice(len(large), p=share / share.sum())])
        cut = 1 + int((len(own) - 1) * rng.random() ** 3)
        child, rest = own[:cut], own[cut : cut + 1 + int((len(own) - cut) * rng.random() ** 2)]
        if rng.random() < 0.5 and len(rest):
            same.append(True)
        else:
            other = members[rng.integers(len(members))]
            rest = rng.permutation(other)[: 1 + int(len(other) * rng.random() ** 2)]
            same.append(bool(block.entity[rest[0]] == block.entity[child[0]]))
        sums = [(v[child].sum(0), v[rest].sum(0)) for v in block.vectors.values()]
        lengths = [np.linalg.norm(a) * np.linalg.norm(b) for a, b in sums]
        features.append([a @ b / n if n > 0 else 0.0 for (a, b), n in zip(sums, lengths, strict=True)])
    fitted = LogisticRegression(C=1e3).fit(features, same)
    return np.append(fitted.coef_[0], fitted.intercept_)


def nearest(block: Block, weights: Floats) -> NDArray[np.int64]:
    """Pair every mention with those of highest pair score."""
    scale = np.sqrt(np.maximum(weights[:-1], 0.0))
    rows = np.hstack([v * s for v, s in zip(block.vectors.values(), scale, strict=True)])
    pairs = []
    for begin in range(0, len(rows), 1_000):
        scores = rows[begin : begin + 1_000] @ rows.T
        here = np.arange(begin, begin + len(scores))
        scores[np.arange(len(scores)), here] = -np.inf
        best = np.argpartition(-scores, CANDIDATES, axis=1)[:, :CANDIDATES]
        pairs.append(np.column_stack([np.repeat(here, CANDIDATES), best.ravel()]))
    listed = np.sort(np.concatenate(pairs), axis=1)
    return np.unique(listed, axis=0)


def gain_of_pairs(world: Any, mine: Any, move: Any) -> float:
    """Score of a mention's pairs in the cluster that it joins, less that in its own."""
    gain = 0.0
    for side in range(2):
        cluster = move.target if side == 0 else move.source
        for at in range(world.start[cluster], world.start[cluster] + world.size[cluster]):
            other = world.members[at]
            if other != move.item:
                score = mine.constant[0]
                for k in range(mine.rows.shape[1]):
                    score += mine.rows[move.item, k] * mine.rows[other, k]
                gain += score if side == 0 else -score
                move.factors += 1
    return gain


def gains_of_pairs(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Score of a mention's pairs in each cluster on offer."""
    for k in range(move.choices):
        cluster = choice.targets[k]
        for at in range(world.start[cluster], world.start[cluster] + world.size[cluster]):
            other = world.members[at]
            if other != move.item:
                score = mine.constant[0]
                for d in range(mine.rows.shape[1]):
                    score += mine.rows[move.item, d] * mine.rows[other, d]
                choice.out[k] += score
                move.factors += 1


class Pairs(fw.templates.WholeWorldTemplate):
    """All pairs of mentions in a cluster, scored by their cosines."""

    name, size = "pairs", 1

    def __init__(self, block: Block, weights: Floats) -> None:
        scale = np.sqrt(np.maximum(weights[:-1], 0.0))
        self.rows = np.hstack([v * s for v, s in zip(block.vectors.values(), scale, strict=True)])
        self.constant = weights[-1:]

    def statistics(self, world: Any) -> fw.SparseVector:
        """Return the score of all pairs."""
        score = 0.0
        for items in world.clusters():
            total, n = self.rows[items].sum(axis=0), len(items)
            score += (total @ total - np.square(self.rows[items]).sum() + n * (n - 1) * self.constant[0]) / 2
        return fw.SparseVector.from_dense([score])

    def program(self, world: Any, offset: int, weights: Floats) -> Program:
        """Look at all members of two clusters."""
        arrays = {"rows": self.rows, "constant": self.constant}
        return Program(gain=gain_of_pairs, gains=gains_of_pairs, arrays=arrays)


def follow(
    kernel: Any, start: Any, entity: NDArray[np.int64], seed: int, seconds: float, share: int
) -> list[tuple[float, float, float]]:
    """Walk for so long; return factor evaluations, CPU seconds and B-cubed F1 along the way."""
    walk, stream = fw.mcmc.Walk(kernel, start), Stream(seed)
    walk.advance(stream, TEMPERATURE, 1)  # compiles
    points, spent, steps = [], 0.0, 2_000
    while spent < seconds:
        begun = time.process_time()
        walk.advance(stream, TEMPERATURE, steps)
        took = time.process_time() - begun
        spent += took
        f1 = b_cubed(entity, walk.view.labels).f1
        points.append((walk.factors_seen / share, spent, f1))
        steps = max(1_000, int(steps * min(2.0, 0.1 * max(spent, 0.5) / max(took, 1e-6))))
    return points


def kernels(block: Block, pair: Floats, group: Floats, pairs: NDArray[Any]) -> dict[str, tuple[Any, Any]]:
    """Return the walks and where they start; the constant of a factor is one of entities and inner nodes."""
    n, templates, mcmc = len(block.entity), fw.templates, fw.mcmc
    flat = fw.Model([Pairs(block, pair)], [1.0])
    relocate = [mcmc.RelocateToCandidate.from_pairs(n, pairs), mcmc.RelocateToNew()]
    whole = [mcmc.Merge(), mcmc.Split()]
    jumps = LinkedJumps(LinkGraph.from_pairs(n, *pairs.T), strict=False)
    cosines = [templates.SubtreeCosine(name, v) for name, v in block.vectors.items()]
    tree = fw.Model([*cosines, templates.HierarchyCounts()], [*group[:-1], -group[-1], group[-1]])
    regraft = mcmc.Mixture([mcmc.RegraftToCandidate.from_pairs(n, pairs), mcmc.Regroup()], [0.9, 0.1])
    alone = fw.Partition.singletons(n)
    return {
        "pairs": (mcmc.Metropolis(flat, mcmc.Mixture(relocate, [0.9, 0.1])), alone),
        "pairs, merges": (
            mcmc.Metropolis(flat, mcmc.Mixture([*relocate, *whole], [0.9, 0.1, 0.05, 0.05])),
            alone,
        ),
        "pairs, jumps": (mcmc.Metropolis(flat, mcmc.Mixture([*relocate, jumps], [0.9, 0.1, 0.1])), alone),
        "hierarchy": (mcmc.Metropolis(tree, regraft), fw.Hierarchy.singletons(n)),
    }


def draw_figure(curves: dict[str, list[list[tuple[float, float, float]]]], path: str) -> None:
    """Draw B-cubed against factor evaluations and against CPU seconds."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for panel, column, label in zip(panels, (0, 1), ("factor evaluations", "CPU seconds"), strict=True):
        for number, (name, runs) in enumerate(curves.items()):
            for k, points in enumerate(runs):
                values = np.array(points)
                panel.plot(values[:, column], values[:, 2], color=f"C{number}", label=None if k else name)
        panel.set_xscale("log")
        panel.set_xlabel(label)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("B-cubed F1")
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(path)


def first_at(points: list[tuple[float, float, float]], level: float) -> str:
    """Return the factor evaluations and CPU seconds at which a level was reached first."""
    reached = [point for point in points if point[2] >= level]
    return f"{reached[0][0]:11.3g} in {reached[0][1]:6.2f} s" if reached else f"{'never':>21}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--part", default="dev", choices=["dev", "test"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, nargs=2, default=(60.0, 8.0), help="of flat walks, of trees")
    parser.add_argument("--only", help="names of walks, separated by semicolons")
    parser.add_argument("--shifts", type=float, nargs=2, default=(SHIFT_OF_PAIRS, SHIFT_OF_GROUPS))
    parser.add_argument("--curves", help="a JSON file that keeps what was measured, added to if it is there")
    parser.add_argument("--figure", help="an SVG or PNG file")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    train, test = split(read_block())
    pair, group = learn_pairs(train, rng), learn_groups(train, rng, 8_000)
    block = train if options.part == "dev" else test
    pairs = nearest(block, pair)
    pair[-1] += options.shifts[0]
    group[-1] += options.shifts[1]
    print(f"{len(block.entity)} mentions, largest entity {np.bincount(block.entity).max()}")
    print(f"{'':15}{'last F1':>8}" + "".join(f"{'to F1 ' + str(level):>23}" for level in LEVELS))
    kept = Path(options.curves) if options.curves else None
    curves: dict[str, list[list[tuple[float, float, float]]]] = (
        json.loads(kept.read_text()) if kept and kept.exists() else {}
    )
    for name, (kernel, start) in kernels(block, pair, group, pairs).items():
        tree = name == "hierarchy"
        if options.only and name not in options.only.split(";"):
            continue
        for seed in range(options.seeds):
            points = follow(kernel, start, block.entity, seed, options.seconds[tree], 4 if tree else 1)
            curves.setdefault(name, []).append(points)
            shown = "  ".join(first_at(points, level) for level in LEVELS)
            print(f"{name:15}{points[-1][2]:8.4f}  {shown}", flush=True)
    if kept:
        kept.write_text(json.dumps(curves))
    if options.figure:
        draw_figure(curves, options.figure)


if __name__ == "__main__":
    main()
