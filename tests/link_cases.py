"""Small clusterings of linked items: awkward models, and the transition matrix of any walk over them."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from factorwise.inference.mcmc.branches import Tap, every_path
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.clusterings.arrays import LIVE, SPLITTABLE
from factorwise.model.clusterings.link_templates import CannotLinkTemplate, LinkTemplate, OnePerSourceTemplate
from factorwise.model.model import Model
from factorwise.model.templates import ClusterTemplate, PairTableTemplate, PairTemplate
from factorwise.variables.fields import Fields
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition

SPARSE = [(0, 1), (1, 2), (2, 3), (0, 2), (3, 4)]
COMPLETE = list(combinations(range(5), 2))


def agree(a, b):
    return (a.k == b.k,)


def crowded(cluster):
    return (cluster.size > 2, cluster.size % 2 == 0)


def links_of(pairs, n=5, *, counts=None, seed=0):
    """Links with levels in two comparisons."""
    rng = np.random.default_rng(seed)
    levels = np.column_stack([rng.integers(0, 4, len(pairs)), rng.integers(0, 3, len(pairs))])
    return LinkTemplate(
        "links", n, pairs, levels=levels, sizes=[3, 2], statistics=["name", "year"], counts=counts
    )


def model_of(templates, seed=1):
    """A model with random weights, halves and quarters: sums of them are exact in single precision."""
    size = sum(template.size for template in templates)
    return Model(templates, np.random.default_rng(seed).integers(-6, 7, size) / 4.0)


def _fields(n=5):
    return Fields(k=np.arange(n) % 2)


CASES = {
    "sparse": lambda: [links_of(SPARSE)],
    "complete": lambda: [links_of(COMPLETE)],
    "counts": lambda: [links_of(SPARSE, counts=[1, 3, 2, 1, 2])],
    "one per source": lambda: [links_of(SPARSE), OnePerSourceTemplate("sources", [1, 2, 4, 1, 6])],
    "cannot link": lambda: [links_of(SPARSE), CannotLinkTemplate("cannot", 5, [(1, 4), (0, 3)])],
    "all constraints": lambda: [
        links_of(COMPLETE, counts=[2, 1, 1, 3, 1]),
        OnePerSourceTemplate("sources", [1, 0, 2, 1, 0]),
        CannotLinkTemplate("cannot", 5, [(1, 4)]),
    ],
    "cumulative": lambda: [
        LinkTemplate("links", 5, SPARSE, levels=links_of(SPARSE).levels, sizes=[3, 2], cumulative=True)
    ],
    "features": lambda: [LinkTemplate("links", 5, SPARSE, features=np.arange(5.0)[:, None] / 2 - 1)],
    "pair function": lambda: [links_of(SPARSE), PairTemplate("pairs", _fields(), agree, ["same k"])],
    "cluster function": lambda: [
        links_of(SPARSE, counts=[1, 2, 1, 1, 2]),
        ClusterTemplate("clusters", _fields(), crowded, ["big", "even"]),
        OnePerSourceTemplate("sources", [1, 0, 2, 1, 0]),
    ],
}


def links_and_table():
    """Four linked items with a table of their pairs: interpreted, a table costs much for each path."""
    values = np.random.default_rng(2).integers(0, 2, (6, 2))
    aggregates = ("count", "all", "exists", "majority", "mean", "per member", "linked")
    table = PairTableTemplate("table", PairTable(4, ["one", "two"], values), aggregates)
    return [links_of(SPARSE[:4], 4), table]


def partitions(n):
    """All clusterings of n items."""
    found = [()]
    for _ in range(n):
        found = [(*labels, label) for labels in found for label in range(max(labels, default=-1) + 2)]
    return [Partition.from_labels(labels) for labels in found]


def allowed_worlds(model, n=5):
    """All clusterings that the model does not forbid, and their scores."""
    scored = [(world, model.score(world)) for world in partitions(n)]
    worlds, scores = zip(*[(world, score) for world, score in scored if score > -math.inf], strict=True)
    return worlds, np.array(scores)


def target(scores, temperature):
    odds = np.exp((scores - scores.max()) / temperature)
    return odds / odds.sum()


def transition_matrix(kernel, worlds, temperature):
    """Where one step leads from each world, by every path of its interpreted functions."""
    tap = Tap()
    walk = Walk(kernel, worlds[0], interpreted=tap)
    number = {world.canonical(): k for k, world in enumerate(worlds)}
    matrix = np.zeros((len(worlds), len(worlds)))
    for row, world in enumerate(worlds):

        def step(branches, world=world):
            walk.reset(world)
            tap.source = branches
            walk.parts.advance(1, temperature)
            return walk.view.canonical()

        for key, probability in every_path(step):
            matrix[row, number[key]] += probability
    return matrix


def check_layout(shards):
    """Every shard is a clustering of its items, with nothing of another's."""
    world = shards.world.arrays
    seen = []
    for number in range(shards.n_shards):
        part = shards.part(number)
        clusters = part.counters[LIVE]
        assert sorted(part.live.tolist()) == sorted(part.splittable.tolist())
        for position, cluster in enumerate(part.live[:clusters].tolist()):
            assert part.live_at[cluster] == position
            members = part.members[part.start[cluster] :][: part.size[cluster]]
            assert (part.label[members] == cluster).all()
            assert (part.slot[members] == part.start[cluster] + np.arange(len(members))).all()
            seen += members.tolist()
            assert set(members.tolist()) <= set(part.items.tolist())
        several = part.splittable[: part.counters[SPLITTABLE]]
        assert (world.size[several] > 1).all()
        assert part.counters[SPLITTABLE] == (world.size[part.live[:clusters]] > 1).sum()
        assert (world.size[part.live[clusters:]] == 0).all()
        assert len(part.live) >= clusters + 2
    assert sorted(seen) == list(range(shards.n_items))
