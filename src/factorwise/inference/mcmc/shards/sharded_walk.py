"""Walks over a clustering of up to millions of items, in shards and threads.

A sweep makes a Gibbs step for each item of a shard, then proposes some jumps. What it does to a shard depends
only on the shard's rows and on (seed, stream, round, shard), so the result is the same for any number of
threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import NoCompiledFormError, ShapeError
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.proposals.link_moves import LinkedGibbs, LinkedJumps
from factorwise.kernels.clusterings.arrays import Clustering, has_columns
from factorwise.kernels.clusterings.link_moves import OFFERED, choose_home
from factorwise.kernels.compile.binding import Bound
from factorwise.kernels.compile.pointers import WORDS, fill_words
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.compile.threads import Team
from factorwise.kernels.walks.frames import Parts, make_frame
from factorwise.kernels.walks.loops import ACCEPTED
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.rng import Stream
from factorwise.types import Ints
from factorwise.validation import check_number
from factorwise.world.links import LinkGraph
from factorwise.world.partition import Partition
from factorwise.world.shards import Shards


class ShardedWalk:
    """A walk over a clustering, by sweeps over its shards.

    gibbs
        How the items of a shard get new clusters, one after the other.
    jumps
        Metropolis steps that follow, such as splits and merges; None for none.
    labels
        Where to start, as any labels; None starts with every item by itself. The model must allow it.
    worth : float32[links]
        Links with a worth above zero are followed: they determine which items should meet in a shard. None
        for all links.

    shards
        The clustering; `lay_out` redistributes it between sweeps.
    proposals, changes
        Number of clusters weighed for an item or a part of a cluster so far, and of steps that changed
        something.
    """

    def __init__(
        self,
        gibbs: LinkedGibbs,
        jumps: Metropolis | None = None,
        *,
        labels: ArrayLike | None = None,
        worth: ArrayLike | None = None,
    ) -> None:
        self.gibbs, self.jumps = gibbs, jumps
        self._worth = None if worth is None else np.asarray(worth, np.float32)
        if self._worth is not None and self._worth.shape != gibbs.links.first.shape:
            raise ShapeError(
                f"{len(gibbs.links.first)} links need a worth each, but {self._worth.shape} were given."
            )
        self.model: Model = gibbs.model
        self.shards = Shards(np.arange(gibbs.links.n_items) if labels is None else labels)
        parts: list[Any] = [gibbs, None if jumps is None else jumps.proposer]
        for part in parts:
            if hasattr(part, "check"):
                part.check(self.shards.world)
        self.proposals = 0
        self.changes = 0
        self._idle: SimpleQueue[_Worker] = SimpleQueue()

    @property
    def links(self) -> LinkGraph:
        """The links along which changes are proposed."""
        return self.gibbs.links

    @property
    def link_worth(self) -> NDArray[np.float32]:
        """The worth of each link; those above zero are followed."""
        return np.ones(len(self.links.first), np.float32) if self._worth is None else self._worth

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.shards.n_items

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.shards.n_clusters

    @property
    def labels(self) -> NDArray[np.int32]:
        """The cluster of each item, named by its smallest member."""
        return self.shards.leaders()

    @property
    def score(self) -> float:
        """Score of the clustering, computed again from scratch."""
        return float(self.model.score(Partition.from_keys(self.shards.label))) if self.n_items else 0.0

    def lay_out(self, shard: Ints | None = None) -> None:
        """Redistribute the clustering over shards.

        shard
            The shard of each item, from 0 on; None puts all items in one shard.
        """
        count = 1 if shard is None else int(shard.max(initial=0)) + 1
        if count > self.shards.most:
            self.shards = Shards(self.shards.leaders(), most=count)
            self._idle = SimpleQueue()
        self.shards.lay_out(shard)

    def place_items(self, labels: Ints) -> None:
        """Set the clustering."""
        self.shards.place(labels)

    def place_shards(self, shard_of_cluster: Ints) -> None:
        """Put clusters into shards: ``shard_of_cluster[id]`` is the shard of a cluster, from 0 on."""
        self.lay_out(np.asarray(shard_of_cluster, np.int64)[self.shards.label])

    def copy(self) -> ShardedWalk:
        """Return a separate walk from the same clustering, in one shard."""
        return ShardedWalk(self.gibbs, self.jumps, labels=self.shards.leaders(), worth=self._worth)

    def sweep(
        self,
        seed: int,
        number: int,
        temperature: float,
        *,
        team: Team,
        jumps: float = 0.5,
        sweeps: int = 1,
        stream: int = 0,
    ) -> float:
        """Sweep over every shard: a Gibbs step for each item, then ``jumps`` jumps per item; return the gain.

        number, stream
            Numbers of the first sweep and of the chain: with ``seed`` and the shard they determine the random
            numbers.
        sweeps
            How many sweeps to make.
        """
        check_number("temperature", temperature, above=0)
        gains = np.zeros(self.shards.n_shards)
        tallies = np.zeros((self.shards.n_shards, 2), np.int64)

        def work(low: int, high: int) -> None:
            with self._worker() as worker:
                for shard in range(low, high):
                    if self.shards.item_start[shard + 1] - self.shards.item_start[shard] < 2:
                        continue
                    worker.load(self.shards.part(shard))
                    for k in range(sweeps):
                        worker.random[:] = Stream(seed, stream, number + k, shard).state
                        gains[shard] += worker.sweep(temperature, jumps)
                    tallies[shard] = worker.take_tally()

        team.share(self.shards.n_shards, work)
        offered, changed = tallies.sum(axis=0).tolist()
        self.proposals, self.changes = self.proposals + offered, self.changes + changed
        return float(gains.sum())

    def sweep_some(self, items: Ints, seed: int, number: int, temperature: float) -> float:
        """Make a Gibbs step for each of some items, which may go to any cluster; return the gain.

        Afterwards the clustering lies in one shard.
        """
        if not len(items):
            return 0.0
        self.shards.lay_out()
        worker = _Worker(self.shards, replace(self.gibbs, items=np.asarray(items, np.int32)), None)
        worker.load(self.shards.part(0))
        worker.random[:] = Stream(seed, 0, number, 0).state
        gain = worker.sweep(temperature, 0.0)
        offered, changed = worker.take_tally()
        self.proposals, self.changes = self.proposals + offered, self.changes + changed
        return gain

    def home_chances(self, temperature: float, *, team: Team) -> NDArray[np.float32]:
        """Return for each item the probability of its cluster given those of all others.

        For an item without a link into its own cluster it is the probability in a step that is not strict.
        Afterwards the clustering lies in one shard.
        """
        self.shards.lay_out()
        chances = np.ones(self.n_items, np.float32)
        noted = Program(choose=choose_home, arrays={"chances": chances}, name="chance to stay")

        def work(low: int, high: int) -> None:
            items = np.arange(low, high, dtype=np.int32)
            worker = _Worker(self.shards, replace(self.gibbs, items=items, choose=noted, strict=False), None)
            worker.load(self.shards.part(0))
            worker.sweep(temperature, 0.0)

        if self.n_items:
            team.share(self.n_items, work)
        return chances

    @contextmanager
    def _worker(self) -> Iterator[_Worker]:
        """Lend the parts of a walk to a thread.

        There are as many as threads that needed one at the same time.
        """
        try:
            worker = self._idle.get_nowait()
        except Empty:
            worker = _Worker(self.shards, self.gibbs, self.jumps)
        try:
            yield worker
        finally:
            self._idle.put(worker)


def walk_along(
    links: LinkGraph,
    model: Model,
    *,
    labels: ArrayLike | None = None,
    worth: ArrayLike | None = None,
    strict: bool = False,
) -> ShardedWalk:
    """Return a walk along links over clusterings under any model: Gibbs steps, splits and merges.

    links
        An item is offered the clusters of the items to which it is linked.
    strict
        Leave exp(score / temperature) invariant; otherwise search: see `LinkedGibbs`.
    """
    jumps = Metropolis(model, LinkedJumps(links, strict))
    return ShardedWalk(LinkedGibbs(model, links, strict), jumps, labels=labels, worth=worth)


class _Worker:
    """The parts of a walk, with their own scratch arrays, which can be set to any shard."""

    def __init__(self, shards: Shards, gibbs: LinkedGibbs, jumps: Metropolis | None) -> None:
        model, world = gibbs.model, shards.world
        weights = model.weights.copy()
        programs = model_programs(model, world, weights)
        for program in programs.templates:
            if not {"gain", "gains"} & program.functions.keys():
                raise NoCompiledFormError(
                    f"{program.name} compute changes of statistics but not gains of choices, so walks"
                    " in shards cannot choose by them: give their program a function gains(world,"
                    " mine, move, choice)."
                )
        self.columns = programs.arrays
        self.side = np.zeros(world.n_items, np.int8)
        self.random = np.zeros(2, np.uint64)
        ids, changes = len(world.arrays.size), 1 if jumps is None else world.n_items
        self.frame = make_frame(
            programs.arrays,
            self.random,
            weights=model.blocks.size,
            changes=changes,
            choices=gibbs.most_choices,
            targets=ids,
        )
        around = Surroundings(world, model, programs.templates, weights)
        self.own = gibbs.programs(around)
        self.swept = len(gibbs.items)
        self.loops = [self._parts(world, programs.templates, weights, self.own)]
        if jumps is not None:
            drawn = jumps.programs(around)
            self.own = {**self.own, **drawn}
            self.loops.append(self._parts(world, programs.templates, weights, drawn))
        self.tables = [table for loop in self.loops for bound in loop.bound for table in _tables(bound)]
        self.items = 0

    def _parts(
        self, world: Partition, templates: Any, weights: NDArray[np.float64], own: dict[str, Any]
    ) -> Parts:
        return Parts(self.frame, world.program(), templates, weights=weights, **own)

    def load(self, part: Clustering) -> None:
        """Continue on another shard."""
        kept = {name: getattr(self.columns, name) for name in _COLUMNS}
        world = part._replace(side=self.side, **kept)
        if has_columns(world):
            slot = world.slot[world.items]
            world.ints[:, slot] = world.item_ints[world.items].T
            world.reals[:, slot] = world.item_reals[world.items].T
            world.rows[slot] = world.item_rows[world.items]
        words = np.zeros(WORDS * len(world), np.int64)
        for position, array in enumerate(world):
            fill_words(words, position, np.asarray(array))
        for table in self.tables:
            table[: len(words)] = words
        self.world = world  # the tables contain bare addresses
        self.items = len(world.items)
        self.loops[0].begin()

    def sweep(self, temperature: float, jumps: float) -> float:
        """Make a Gibbs step for each item, then jump; return the gain."""
        steps = self.swept or self.items
        self.loops[0].advance(steps, float(temperature))
        if len(self.loops) > 1:
            self.loops[1].advance(round(jumps * steps), float(temperature))
        gain = 0.0
        for loop in self.loops:
            gain += float(loop.walk.score[0])
            loop.walk.score[0] = 0.0
        return gain

    def take_tally(self) -> tuple[int, int]:
        """Return and reset the number of targets offered and of steps that changed something."""
        offered = changed = 0
        for program in self.own.values():
            if "turn" in program.arrays:
                offered += int(program.arrays["turn"][OFFERED])
                program.arrays["turn"][:] = 0
        for loop in self.loops:
            changed += int(loop.walk.tally[ACCEPTED])
            loop.walk.tally[:] = 0
        return offered, changed


_COLUMNS = ("item_ints", "item_reals", "item_rows", "ints", "reals", "rows")


def _tables(bound: Any) -> Iterator[NDArray[np.int64]]:
    """Yield the tables of a program and of the programs that it calls."""
    assert isinstance(bound, Bound)
    yield bound.table
    for inner in bound.inner:
        yield from _tables(inner)
