"""How clusterings of shards are scored: by columns of their rows, and by templates that all share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.inference.mcmc.shards.component_search import LinkWeights
from factorwise.inference.mcmc.shards.sharded_walk import ShardedWalk
from factorwise.kernels.clusterings.links import CLUSTER_WEIGHT, UNLINKED_WEIGHT
from factorwise.model.clusterings.link_templates import CannotLinkTemplate, LinkTemplate, OnePerSourceTemplate
from factorwise.model.model import Model
from factorwise.model.template import AnyTemplate
from factorwise.types import Float32s, Float64s, Int32s, UInt64s
from factorwise.world.links import LinkGraph


class ShardModel(NamedTuple):
    """What scores the clustering of a shard, in addition to its rows.

    links
        Which columns of the rows have the scores of links, counts and sources of items; None if links only
        determine which items are offered to each other.
    further
        A model of further templates over all items, of which every shard takes the part for its items; None
        for none. Executors send it once to where shards run.
    """

    links: LinkWeights | None
    further: Model | None = None


class LinkColumns(NamedTuple):
    """The columns of links and items in the rows of shards.

    score : float32[links]
        Score of each link, or its worth if the model has no scores of links.
    counts : int32[items], sources : uint64[items]
        Number of records that an item stands for, and bits of its sources.
    """

    score: Float32s
    counts: Int32s
    sources: UInt64s


def split_model(walk: ShardedWalk) -> tuple[LinkColumns, ShardModel]:
    """Split the model of a walk into columns of its rows and templates that all shards share.

    A links template over exactly the links of the walk goes into the rows, and so do the first template of
    one per source and pairs that may not be linked if they are links. All other templates are shared.
    """
    model, graph = walk.model, walk.links
    links = next((t for t in model.templates if isinstance(t, LinkTemplate) and _same(t.graph, graph)), None)
    n = walk.n_items
    columns = LinkColumns(walk.link_worth, np.ones(n, np.int32), np.zeros(n, np.uint64))
    if links is None:
        return columns, ShardModel(None, model)
    weights = model.block(links.name)
    score, sources = links.link_scores(weights).astype(np.float32), None
    further: list[tuple[AnyTemplate, Float64s]] = []
    for template in model.templates:
        if isinstance(template, OnePerSourceTemplate) and sources is None:
            sources = template.sources
        elif isinstance(template, CannotLinkTemplate) and _are_links(template.graph, graph):
            score[graph.find_pairs(template.graph.first, template.graph.second)] = -np.inf
        elif template is not links:
            further.append((template, model.block(template.name)))
    columns = LinkColumns(score, links.counts, columns.sources if sources is None else sources)
    own = LinkWeights(float(weights[UNLINKED_WEIGHT]), float(weights[CLUSTER_WEIGHT]))
    if not further:
        return columns, ShardModel(own)
    rest = Model([template for template, _ in further], np.concatenate([block for _, block in further]))
    return columns, ShardModel(own, rest)


def shard_model(walk: ShardedWalk) -> ShardModel:
    """Return what scores the shards of a walk, in addition to the rows that `shard_walk` makes of it."""
    return split_model(walk)[1]


def _same(first: LinkGraph, two: LinkGraph) -> bool:
    if first is two:
        return True
    return np.array_equal(first.first, two.first) and np.array_equal(first.second, two.second)


def _are_links(pairs: LinkGraph, links: LinkGraph) -> bool:
    return bool((links.find_pairs(pairs.first, pairs.second) >= 0).all())
