"""Search over shards: the rounds of `LinkSearch`, each of them checked, with checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from factorwise.distributed.executors import Executor, Step
from factorwise.distributed.shard_models import ShardModel
from factorwise.distributed.shard_rows import Checksum, ShardRows, check_shards
from factorwise.distributed.stepping import Exchange, ShardReport, ShardStep, step_shard
from factorwise.errors import InvalidArgumentError, LostItemsError, require
from factorwise.inference.mcmc.shards.search import Found, LinkSearch, SearchProgress, SearchStanding
from factorwise.io.checkpoints import restoring
from factorwise.io.shard_files import Manifest, ShardStore
from factorwise.types import Int64s
from factorwise.validation import as_whole, check_count


@dataclass(frozen=True, slots=True)
class Sharding:
    """The number of shards, and how entities are exchanged.

    shards
        Number of shards. It is part of the configuration, like the seed, and does not depend on the number of
        workers.
    exchange
        ``"guided"``: to shards with entities that share candidates; ``"random"``; or ``"none"``.
    """

    shards: int
    exchange: Exchange = "guided"

    def __post_init__(self) -> None:
        require(1 <= self.shards <= 10_000, "shards", self.shards, "from 1 to 10,000")
        known = self.exchange in ("guided", "random", "none")
        require(known, "exchange", self.exchange, "'guided', 'random' or 'none'")


@dataclass(frozen=True, slots=True)
class ShardKeeping:
    """Where checkpoints go, and what identifies the run.

    every
        After how many rounds, or groups of a search by groups, a checkpoint is written.
    seconds
        The shortest time between two checkpoints of a search by groups.
    """

    store: ShardStore
    fingerprint: str
    every: int = 4
    seconds: float = 0.0

    def __post_init__(self) -> None:
        check_count("every", self.every)


def search_shards(
    executor: Executor,
    shards: Sequence[ShardRows] | None,
    search: LinkSearch,
    sharding: Sharding,
    *,
    model: ShardModel,
    seed: int,
    keeping: ShardKeeping | None = None,
    watch: Callable[[SearchProgress], None] | None = None,
    function: Step = step_shard,
) -> Found:
    """Search for the best clustering of the items of all shards; the executor holds the result.

    shards
        The initial shards; None to resume from the checkpoint of ``keeping``, which must exist.
    model
        What scores the shards in addition to their rows: the `shard_model` of a walk that `shard_walk` cut.
    function
        The function that runs a shard for a round.

    Raises `LostItemsError` if the items after a round are not those before it.
    """
    stage = _ShardRounds(executor, search, sharding, model, seed, function)
    saved = None if keeping is None else keeping.store.latest(keeping.fingerprint)
    if keeping is not None and saved is not None:
        with restoring(keeping.store.address):
            begin = _restore(stage, saved, search, sharding)
        executor.restore(keeping.store, saved.files)
    elif shards is None:
        raise InvalidArgumentError("there is no checkpoint to resume from: give the rows of the shards.")
    else:
        if len(shards) != sharding.shards:
            raise InvalidArgumentError(
                f"{len(shards)} shards were given, but the sharding has {sharding.shards}: give as many."
            )
        stage.expected = check_shards(shards)
        executor.load(shards)
        begin = SearchStanding(0, False, np.nan)  # known after the first round

    def keep(standing: SearchStanding) -> None:
        if keeping is not None and standing.round % keeping.every == 0:
            files = executor.checkpoint(keeping.store)
            stage.check(sum((Checksum(file.items, file.hashes) for file in files), Checksum(0, 0)))
            state = standing._asdict() | {"proposals": stage.proposals, "entities": stage.n_clusters}
            keeping.store.commit(Manifest(keeping.fingerprint, state, files))

    return search.follow(stage, begin=begin, watch=watch, keep=keep)


def _restore(stage: _ShardRounds, saved: Manifest, search: LinkSearch, sharding: Sharding) -> SearchStanding:
    """Set a stage to the state of a manifest's run; return that state."""
    state, rounds = saved.state, search.rounds + search.extra
    if len(saved.files) != sharding.shards:
        raise InvalidArgumentError(f"it has {len(saved.files)} shards instead of {sharding.shards}.")
    stage.expected = sum((Checksum(file.items, file.hashes) for file in saved.files), Checksum(0, 0))
    stage.score = float(state["score"])
    stage.proposals = as_whole("proposals", state["proposals"])
    stage.n_clusters = as_whole("entities", state["entities"])
    return SearchStanding(as_whole("round", state["round"], 0, rounds), state["settled"] is True, stage.score)


class _ShardRounds:
    """Rounds over shards. Of the items only their number and checksum are known here."""

    def __init__(
        self,
        executor: Executor,
        search: LinkSearch,
        sharding: Sharding,
        model: ShardModel,
        seed: int,
        function: Step,
    ) -> None:
        self.executor = executor
        self.search = search
        self.sharding = sharding
        self.model, self.seed = executor.share(model), seed
        self.function = function
        self.expected = Checksum(0, 0)
        self.score = np.nan
        self.n_clusters = 0
        self.proposals = 0

    @property
    def n_items(self) -> int:
        """Number of items in all shards."""
        return self.expected.items

    def round(self, number: int, temperature: float) -> float:
        """Run every shard once; return the gain."""
        step = ShardStep(
            seed=self.seed,
            round=number,
            shard=0,
            shards=self.sharding.shards,
            temperature=temperature,
            sweeps=self.search.sweeps,
            jumps=self.search.jumps,
            exchange=self.sharding.exchange,
        )
        steps = [step._replace(shard=shard) for shard in range(self.sharding.shards)]
        reports: list[ShardReport] = self.executor.step(steps, self.model, self.function)
        self.check(sum((report.checksum for report in reports), Checksum(0, 0)))
        self.score = float(np.sum([report.score for report in reports]))
        self.n_clusters = sum(report.entities for report in reports)
        self.proposals += sum(report.proposals for report in reports)
        return float(np.sum([report.gain for report in reports]))

    def check(self, checksum: Checksum) -> None:
        """Raise an error unless the items are those that were loaded."""
        if checksum != self.expected:
            raise LostItemsError(
                f"after a round there are {checksum.items:,} items with checksum"
                f" {checksum.hashes:016x}, but {self.expected.items:,} with {self.expected.hashes:016x}"
                " were given: some were lost or duplicated, which happens if the run of a shard"
                " depends on more than its rows and (seed, round, shard). Nothing was written: resume"
                " from the last checkpoint."
            )


def entities_of(executor: Executor, n_items: int) -> Int64s:
    """Return the entity of each item, for items that are numbered from 0 on.

    Raises `LostItemsError` unless each of them occurs once: after the last round, results of a lost machine
    are recomputed without a further check.
    """
    entity = np.full(n_items, -1, np.int64)
    rows_found = 0
    for rows in executor.rows():
        known = rows.item < n_items
        entity[rows.item[known]] = rows.entity[known]
        rows_found += rows.n_items
    if rows_found != n_items or (entity < 0).any():
        raise LostItemsError(
            f"{rows_found:,} items are in the shards, {int((entity < 0).sum()):,} of {n_items:,} in"
            " none: some were lost or duplicated after the last round. Resume from the last"
            " checkpoint."
        )
    return entity
