"""What a shard does in a round: sweeps over its entities, then each entity moves to a shard.

These are pure functions of the shard's rows, a `ShardStep` and the model that all shards share: they give the
same bits whenever and wherever they run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from factorwise.distributed.shard_models import ShardModel
from factorwise.distributed.shard_rows import Checksum, ShardRows, walk_of
from factorwise.kernels.compile.threads import Team
from factorwise.kernels.graphs.components import component_numbers
from factorwise.rng import Stream, split_mix_words
from factorwise.types import Bools, Int64s
from factorwise.world.pairs import places_among

Exchange = Literal["guided", "random", "none"]


class ShardStep(NamedTuple):
    """Everything on which a shard's run depends, besides its rows and the model.

    seed, round, shard, shards
        The number of the shard and of all shards, and the source of its random numbers.
    temperature, sweeps, jumps
        Options of the sampler: see `LinkSearch`.
    exchange
        Where entities move: to others that share candidates with them, anywhere, or nowhere.
    """

    seed: int
    round: int
    shard: int
    shards: int
    temperature: float
    sweeps: int
    jumps: float
    exchange: Exchange


class ShardReport(NamedTuple):
    """The report of a shard's run.

    gain, score
        The increase of its clustering's score, and that score. Only factors within an entity count, so the
        scores of all shards sum to that of all items.
    entities, proposals
        Number of entities at the end, and of clusters that were weighed.
    checksum
        Checksum of the items that it sent on.
    cpu_seconds
        CPU time of the run.
    """

    gain: float
    score: float
    entities: int
    proposals: int
    checksum: Checksum
    cpu_seconds: float


def step_shard(
    parts: Sequence[ShardRows], step: ShardStep, model: ShardModel
) -> tuple[list[ShardRows], ShardReport]:
    """Run one shard for a round; return the rows for each shard, and a report."""
    begun = time.thread_time()
    rows = ShardRows.joined(parts)
    if not rows.n_items:
        return [rows] * step.shards, ShardReport(0.0, 0.0, 0, 0, rows.checksum, time.thread_time() - begun)
    walk = walk_of(rows, model)
    with Team(1) as team:
        gain = walk.sweep(
            step.seed,
            step.round * step.sweeps,
            step.temperature,
            team=team,
            jumps=step.jumps,
            sweeps=step.sweeps,
            stream=1 + step.shard,
        )
    rows = rows._replace(entity=rows.item[walk.labels])
    target_shard = destinations(rows, step, follow_all=model.links is not None and model.further is not None)
    sent = [rows.taken(np.flatnonzero(target_shard == shard)) for shard in range(step.shards)]
    checksum = sum((part.checksum for part in sent), Checksum(0, 0))
    spent = time.thread_time() - begun
    return sent, ShardReport(gain, walk.score, walk.n_clusters, walk.proposals, checksum, spent)


def destinations(rows: ShardRows, step: ShardStep, *, follow_all: bool = False) -> Int64s:
    """Return the shard to which each row moves in this round.

    follow_all
        Follow all links, not only those with a score above zero, because further templates may add to it.

    With guided exchange, a part of the shard's graph without links to another shard stays. In all other
    parts, items are hashed with a function that differs in each round, and an entity moves to the shard of
    the smallest hash among its items and those linked with them. The probability that two entities meet is
    the share of linked items that they have in common; entities that are linked only with each other always
    meet.
    """
    if step.exchange == "none" or not rows.n_items:
        return np.full(rows.n_items, step.shard, np.int64)
    key = Stream(step.seed, 0x5A4D, step.round).state[0]
    if step.exchange == "random":
        return (split_mix_words(rows.entity.astype(np.uint64) ^ key) % np.uint64(step.shards)).astype(
            np.int64
        )
    followed = (rows.score > 0.0) | follow_all
    stays = _lies_whole(rows, followed)
    if stays.all():
        return np.full(rows.n_items, step.shard, np.int64)
    smallest = split_mix_words(rows.item.astype(np.uint64) ^ key)
    worth = np.where(followed, split_mix_words(rows.neighbor.astype(np.uint64) ^ key), np.uint64(2**64 - 1))
    linked = np.flatnonzero(np.diff(rows.start))
    if len(linked):
        smallest[linked] = np.minimum(smallest[linked], np.minimum.reduceat(worth, rows.start[linked]))
    entities, member = np.unique(rows.entity, return_inverse=True)
    meeting = np.full(len(entities), np.uint64(2**64 - 1))
    np.minimum.at(meeting, member, smallest)
    shard_of = (meeting % np.uint64(step.shards)).astype(np.int64)[member]  # its last bits are spread evenly
    return np.where(stays, step.shard, shard_of)


def _lies_whole(rows: ShardRows, followed: Bools) -> Bools:
    """Return which rows have entities that no chain of followed links connects with another shard."""
    item = np.repeat(np.arange(rows.n_items), np.diff(rows.start))[followed]
    neighbor = places_among(rows.item, rows.neighbor[followed])
    inside = neighbor >= 0
    first = np.concatenate([item[inside], np.arange(rows.n_items)])
    second = np.concatenate([neighbor[inside], places_among(rows.item, rows.entity)])
    part = component_numbers(rows.n_items, first, second)
    leads_out = np.zeros(rows.n_items, np.bool_)
    leads_out[part[item[~inside]]] = True
    return np.asarray(~leads_out[part])
