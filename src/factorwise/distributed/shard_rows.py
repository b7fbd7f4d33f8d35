"""Rows of a shard: items with their entities and links, and a checksum against lost items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.distributed.shard_models import ShardModel, split_model
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.sharded_walk import ShardedWalk, walk_along
from factorwise.kernels.graphs.components import component_numbers
from factorwise.rng import split_mix_words
from factorwise.types import Float32s, Int32s, Int64s, Ints, UInt64s
from factorwise.validation import as_floats, as_ints, check_count, check_starts, is_rising
from factorwise.variables.sparse_rows import take_rows
from factorwise.world.links import LinkGraph
from factorwise.world.pairs import pairs_among


class Checksum(NamedTuple):
    """The number of items, and the sum of their hashes modulo 2**64."""

    items: int
    hashes: int

    @classmethod
    def of(cls, items: Ints) -> Checksum:
        """Return the checksum of some items."""
        return cls(len(items), int(split_mix_words(items.astype(np.uint64)).sum(dtype=np.uint64)))

    def __add__(self, other: Checksum) -> Checksum:  # type: ignore[override]
        return Checksum(self.items + other.items, (self.hashes + other.hashes) % 2**64)


class ShardRows(NamedTuple):
    """Some items.

    item : int64[rows]
        Their numbers, ascending.
    entity : int64[rows]
        The smallest item number of each item's entity.
    counts : int32[rows]
        Number of records that each item stands for.
    sources : uint64[rows]
        Bits of the sources that it comes from, if an entity may have only one record of each.
    start : int64[rows + 1], neighbor : int64[links], score : float32[links]
        Where the links of each item begin, their other items, in any shard, and their scores; their worth, if
        links are not part of the model.
    """

    item: Int64s
    entity: Int64s
    counts: Int32s
    sources: UInt64s
    start: Int64s
    neighbor: Int64s
    score: Float32s

    @classmethod
    def checked(cls, columns: Mapping[str, NDArray[Any]]) -> ShardRows:
        """Check rows from elsewhere, so that a walk can be made of them, and return them."""
        item = as_ints("item", columns["item"])
        if len(item) and (item[0] < 0 or not is_rising(item, strictly=True)):
            raise InvalidArgumentError("item must be ascending numbers from 0 on, each once.")
        size, neighbor = len(item), as_ints("neighbor", columns["neighbor"])
        rows = cls(
            item,
            as_ints("entity", columns["entity"], size=size),
            as_ints("counts", columns["counts"], size=size, dtype=np.int32),
            as_ints("sources", columns["sources"], size=size, dtype=np.uint64),
            as_ints("start", columns["start"], size=size + 1),
            neighbor,
            as_floats("score", columns["score"], size=len(neighbor), dtype=np.float32),
        )
        check_starts("start", rows.start, len(neighbor))
        if not np.isin(rows.entity, item).all() or (rows.counts < 1).any() or np.isnan(rows.score).any():
            raise InvalidArgumentError(
                "entities must be named by one of their items, counts be 1 or more, and scores be numbers."
            )
        return rows

    @property
    def n_items(self) -> int:
        """Number of rows."""
        return len(self.item)

    @property
    def checksum(self) -> Checksum:
        """Checksum of the items' numbers."""
        return Checksum.of(self.item)

    def taken(self, rows: Ints) -> ShardRows:
        """Return some of the rows, given in ascending order."""
        start, links = take_rows(self.start, rows)
        return ShardRows(
            self.item[rows],
            self.entity[rows],
            self.counts[rows],
            self.sources[rows],
            start,
            self.neighbor[links],
            self.score[links],
        )

    @classmethod
    def joined(cls, parts: Sequence[ShardRows]) -> ShardRows:
        """Return the rows of several parts, ordered by item."""
        filled = [part for part in parts if part.n_items]
        if len(filled) < 2:
            return filled[0] if filled else parts[0]
        parts = filled
        columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in cls._fields}
        columns["start"] = np.append(0, np.cumsum(np.concatenate([np.diff(part.start) for part in parts])))
        whole = cls(**columns)
        return whole.taken(np.argsort(whole.item, kind="stable"))


def shard_walk(walk: ShardedWalk, shards: int, seed: int) -> list[ShardRows]:
    """Cut a clustering into shards, each of whole parts of its graph, or of whole clusters of large parts.

    They are spread by hashes of their smallest items; a part is large if it exceeds the size of a shard.
    `shard_model` returns what else scores the shards.
    """
    check_count("shards", shards)
    graph, (columns, _) = walk.links, split_model(walk)
    whole = ShardRows(
        np.arange(walk.n_items),
        walk.labels.astype(np.int64),
        columns.counts,
        columns.sources,
        graph.start,
        graph.neighbor.astype(np.int64),
        columns.score[graph.pair],
    )
    worth = np.maximum(walk.link_worth, 0.0)
    joined = np.flatnonzero(worth)
    first = np.concatenate([graph.first[joined], whole.item])
    second = np.concatenate([graph.second[joined], whole.entity])
    part = component_numbers(walk.n_items, first, second)
    fits = np.bincount(part, minlength=walk.n_items)[part] * shards <= walk.n_items
    home = np.where(fits, walk.n_items + part, whole.entity)
    shard_of = split_mix_words(home.astype(np.uint64) ^ np.uint64(seed % 2**64)) % np.uint64(shards)
    return [whole.taken(np.flatnonzero(shard_of == shard)) for shard in range(shards)]


def walk_of(rows: ShardRows, model: ShardModel) -> ShardedWalk:
    """Return the clustering of one nonempty shard; links that lead out of it are left out."""
    among = pairs_among(rows.item, rows.start, rows.neighbor)
    graph = LinkGraph.from_pairs(rows.n_items, among.first, among.second)
    score = rows.score[among.place]
    further = None if model.further is None else model.further.restrict_to(rows.item)
    if model.links is not None:
        return LinkWalk(
            graph,
            score,
            unlinked=model.links.unlinked,
            cluster=model.links.cluster,
            labels=rows.entity,
            counts=rows.counts,
            sources=rows.sources,
            further=further,
        )
    if further is None:
        raise InvalidArgumentError(
            "nothing scores the shards: give ShardModel(links=LinkWeights(...)), further=Model([...]) or"
            " both."
        )
    return walk_along(graph, further, labels=rows.entity, worth=score)


def check_shards(shards: Sequence[ShardRows]) -> Checksum:
    """Return the checksum of all shards; raise an error if an item or entity lies in two of them."""
    items = np.concatenate([rows.item for rows in shards])
    if len(np.unique(items)) != len(items):
        raise InvalidArgumentError("an item lies in two shards: give each item to one.")
    homes = [np.unique(rows.entity) for rows in shards]
    if len(np.unique(np.concatenate(homes))) != sum(map(len, homes)):
        raise InvalidArgumentError("an entity lies in two shards: give all items of an entity to one.")
    return sum((rows.checksum for rows in shards), Checksum(0, 0))
