"""What a shard does in a round: sweeps over its entities, then each entity chooses where to go.

Pure functions of the shard's rows, a `ShardStep` and the model that all shards share: run twice, anywhere,
they give the same bits.
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
    """All that a shard's run depends on besides its rows and the model.

    seed, round, shard, shards
        The shard's number of so many, and where its random numbers come from.
    temperature, sweeps, jumps
        Of the sampler: see `LinkSearch`.
    exchange
        Where entities go: to others that share candidates with them, anywhere, or nowhere.
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
    """What a shard tells of its run.

    gain, score
        By how much the score of its clustering rose, and that score. Only factors within an entity count,
        so the scores of all shards add up to that of all items.
    entities, proposals
        Entities it ended with; clusters that were weighed.
    checksum
        Of the items that it sent on.
    cpu_seconds
        What the run took.
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
    """Run one shard for a round; return what goes to each shard, and a report."""
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
    place = destinations(rows, step, follow_all=model.links is not None and model.further is not None)
    sent = [rows.taken(np.flatnonzero(place == shard)) for shard in range(step.shards)]
    checksum = sum((part.checksum for part in sent), Checksum(0, 0))
    spent = time.thread_time() - begun
    return sent, ShardReport(gain, walk.score, walk.n_clusters, walk.proposals, checksum, spent)


def destinations(rows: ShardRows, step: ShardStep, *, follow_all: bool = False) -> Int64s:
    """Return the shard to which each row goes in this round.

    follow_all
        Follow all links, not only those with a score above zero: further templates may add to it.

    Guided: a part of the shard's graph from which no link leads to another shard stays where it is. Of all
    others the items are hashed, by another function in each round, and an entity goes where the smallest hash
    among its items and their linked ones says. Two entities meet as often as what they are linked with is the
    same, by the share of it; and always if they are linked with each other alone.
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
    place = (meeting % np.uint64(step.shards)).astype(np.int64)[member]  # its last bits are spread evenly
    return np.where(stays, step.shard, place)


def _lies_whole(rows: ShardRows, followed: Bools) -> Bools:
    """Return which rows are of entities that no chain of followed links connects with another shard."""
    item = np.repeat(np.arange(rows.n_items), np.diff(rows.start))[followed]
    other = places_among(rows.item, rows.neighbor[followed])
    inside = other >= 0
    first = np.concatenate([item[inside], np.arange(rows.n_items)])
    second = np.concatenate([other[inside], places_among(rows.item, rows.entity)])
    part = component_numbers(rows.n_items, first, second)
    leads_out = np.zeros(rows.n_items, np.bool_)
    leads_out[part[item[~inside]]] = True
    return np.asarray(~leads_out[part])
