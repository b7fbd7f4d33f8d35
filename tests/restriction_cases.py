"""Every shipped template over clusterings, for any number of items, and one of a user's own."""

from __future__ import annotations

from copy import copy

import numpy as np

from factorwise.model.clusterings.link_templates import CannotLinkTemplate, LinkTemplate, OnePerSourceTemplate
from factorwise.model.templates import (
    AllAgree,
    BagCosine,
    ClusterSize,
    ClusterTemplate,
    CountedTemplate,
    DistinctValues,
    EdgeTemplate,
    Key,
    PairTableTemplate,
    PairTemplate,
    SomeAgree,
    TallyTemplate,
    VectorPairTemplate,
)
from factorwise.variables.bags import Bags
from factorwise.variables.fields import Fields
from factorwise.variables.pair_table import PairTable
from factorwise.world.links import LinkGraph


def agree(a, b):
    return a.name == b.name, abs(a.year - b.year) < 3


def product(p, q):
    return p * q


def span(cluster):
    return float(cluster.year.max() - cluster.year.min()), cluster.size > 3


def more_than_once(count):
    return max(0, count - 1)


def per_member(total, size):
    return total / size


def fields_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return Fields(
        name=rng.integers(0, 4, n),
        year=rng.integers(1990, 2005, n),
        place=rng.integers(0, 3, n),
        tags=rng.integers(0, 5, (n, 3)),
        vector=rng.integers(-4, 5, (n, 5)) / 4.0,
    )


def pairs_of(n, seed=0, share=0.4):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n, 1)
    kept = rng.permutation(np.flatnonzero(rng.random(len(first)) < share))
    return np.column_stack([first[kept], second[kept]])


def graph_of(n, seed=0, share=0.4):
    return LinkGraph.from_pairs(n, *pairs_of(n, seed, share).T)


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return PairTable(n, ["one", "two", "three"], rng.integers(0, 2, (n * (n - 1) // 2, 3)))


class OwnTemplate(ClusterTemplate):
    """A template whose writer says what it is for some items."""

    def __init__(self, fields):
        super().__init__("own", fields, span, ["years", "many"])
        self.salt = np.arange(fields.n_items)

    def restrict_to(self, items):
        twin = copy(self)
        twin.fields, twin.salt = self.fields.restrict_to(items), self.salt[items]
        return twin


def templates_of(n, seed=0):
    """Return all of them by name, for n items."""
    rng = np.random.default_rng(seed)
    fields, pairs = fields_of(n, seed), pairs_of(n, seed)
    names = Bags.from_field(fields, "name")
    tags = Bags.from_field(fields, "tags")
    levels = np.column_stack([rng.integers(0, 4, len(pairs)), rng.integers(0, 3, len(pairs))])
    every = ("count", "all", "exists", "majority", "mean", "per member", "linked")
    found = [
        LinkTemplate("levels", n, pairs, levels=levels, sizes=[3, 2], counts=rng.integers(1, 4, n)),
        LinkTemplate("features", n, pairs, features=rng.integers(-4, 5, (len(pairs), 2)) / 4.0),
        OnePerSourceTemplate("sources", np.where(rng.random(n) < 0.7, 1 << rng.integers(0, 4, n), 0)),
        CannotLinkTemplate("cannot", n, pairs_of(n, seed + 1, 0.15)),
        PairTemplate("pairs", fields, agree, ["same name", "near"]),
        VectorPairTemplate("vectors", fields, "vector", product),
        EdgeTemplate("edges", n, pairs, rng.integers(-4, 5, (len(pairs), 2)) / 4.0, ["x", "y"]),
        CountedTemplate(
            "counted", fields, [Key("name", ("equal", "conflict")), Key(("place", "year")), Key("tags")]
        ),
        ClusterTemplate("clusters", fields, span, ["years", "many"]),
        ClusterSize(),
        PairTableTemplate("tables", table_of(n, seed), every),
        TallyTemplate("tally", tags, more_than_once, per_member, ["repeats per member"]),
        DistinctValues("distinct", names),
        BagCosine("cosine", tags),
        AllAgree("all agree", names),
        SomeAgree("some agree", tags),
        OwnTemplate(fields),
    ]
    return {template.name: template for template in found}
