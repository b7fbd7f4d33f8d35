"""Search over groups of components: each group is a task, and nothing moves between groups.

The result for a group is a function only of its rows, the search and the seed, so it is the same in one
thread, in several, and on a cluster, and may be computed again if a machine was lost. A checkpoint has the
results of the finished groups; a resumed run searches the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from factorwise.distributed.executors import Executor
from factorwise.distributed.search import ShardKeeping
from factorwise.distributed.shard_rows import Checksum
from factorwise.errors import DataFileError, InvalidArgumentError, LostItemsError
from factorwise.inference.mcmc.shards.component_search import (
    ComponentGroup,
    ComponentGroups,
    LinkWeights,
    search_group,
)
from factorwise.inference.mcmc.shards.search import Found, LinkSearch, SearchProgress
from factorwise.io.checkpoints import restoring
from factorwise.io.shard_files import Manifest, PartFile
from factorwise.types import Int32s, Ints
from factorwise.validation import as_ints, as_number, as_text, as_whole, check_range


class GroupAnswer(NamedTuple):
    """The result of a task for a group.

    labels : int32[items]
        The position of the first member of each item's cluster.
    found
        How the search ended.
    checksum
        Checksum of the items that were searched.
    cpu_seconds
        CPU time that it took.
    """

    labels: Int32s
    found: Found
    checksum: Checksum
    cpu_seconds: float


def answer_group(group: ComponentGroup, weights: LinkWeights, search: LinkSearch, seed: int) -> GroupAnswer:
    """Search a group, in one thread."""
    begun = time.thread_time()
    labels, found = search_group(group, weights, search, seed)
    return GroupAnswer(labels, found, Checksum.of(group.items), time.thread_time() - begun)


def search_groups(
    executor: Executor,
    groups: ComponentGroups,
    search: LinkSearch,
    seed: int,
    *,
    keeping: ShardKeeping | None = None,
    watch: Callable[[SearchProgress], None] | None = None,
) -> tuple[Int32s, Found]:
    """Return the cluster of each item, named by its smallest member, and how the search ended.

    keeping
        Where checkpoints go, and how often; a stopped run resumes from the last one.
    watch
        Called after each group: its "round" is the number of finished groups.

    After the time limit of the search or an interrupt, no further group starts. Items of groups that were not
    searched stay by themselves. Raises `LostItemsError` if a task returns other items than it was given.
    """
    run = _Run(groups, search, watch)
    if keeping is not None:
        run.restore(keeping)
    settings = groups.links.weights, search, seed
    pending = [number for number in range(len(groups)) if number not in run.labels]
    try:
        for place, answer in executor.stream(answer_group, run.tasks(pending, settings)):
            run.add(pending[place], answer)
            if answer.found.reason == "interrupted":  # the search of a group then ends by itself
                break
            if keeping is not None and run.is_due(keeping):
                run.keep(keeping)
    except KeyboardInterrupt:
        run.reason = "interrupted"
    if keeping is not None:
        run.keep(keeping)
    return groups.labels(iter(run.labels.items())), run.found()


@dataclass(eq=False)
class _Run:
    """The finished groups and how each of them ended, with the sums of their scores and clusters."""

    groups: ComponentGroups
    search: LinkSearch
    watch: Callable[[SearchProgress], None] | None
    labels: dict[int, Int32s] = field(default_factory=dict)
    ends: dict[int, Found] = field(default_factory=dict)
    files: dict[int, PartFile] = field(default_factory=dict)
    reason: str = ""
    begun: float = field(default_factory=time.monotonic)
    kept: float = field(default_factory=time.monotonic)
    score: float = 0.0
    clusters: int = 0

    def __post_init__(self) -> None:
        self.score, self.clusters = self.groups.settled_score, self.groups.settled_clusters

    def tasks(
        self, pending: list[int], settings: tuple[LinkWeights, LinkSearch, int]
    ) -> Iterator[tuple[ComponentGroup, LinkWeights, LinkSearch, int]]:
        """Yield the arguments of the task for each group, as long as there is time."""
        weights, search, seed = settings
        limit = search.seconds
        for number in pending:
            if limit is not None:
                left = limit - (time.monotonic() - self.begun)
                if left <= 0.0:
                    self.reason = "time"
                    return
                search = replace(search, seconds=left)
            yield self.groups.take(number), weights, search, seed

    def add(self, number: int, answer: GroupAnswer) -> None:
        """Add the result of a group."""
        items = self.groups.items(number)
        expected = Checksum.of(items)
        if answer.checksum != expected or len(answer.labels) != len(items):
            raise LostItemsError(
                f"a task was given {expected.items:,} items with checksum {expected.hashes:016x}, and"
                f" answered for {answer.checksum.items:,} with {answer.checksum.hashes:016x}: some were"
                " lost or duplicated. Nothing was written: resume from the last checkpoint."
            )
        self._take(number, answer.labels, answer.found)
        if self.watch is not None and answer.found.reason != "interrupted":
            spent = time.monotonic() - self.begun
            done = len(self.labels), len(self.groups)
            self.watch(SearchProgress(*done, self.search.cold, self.score, self.clusters, 0, spent, "group"))

    def _take(self, number: int, labels: Int32s, found: Found) -> None:
        self.labels[number], self.ends[number] = labels, found
        self.score += found.score
        self.clusters += _count(labels)

    def found(self) -> Found:
        """Return how the whole search ended, as far as it got."""
        reasons = [end.reason for end in self.ends.values()]
        rest = ("interrupted", "time", "rounds")
        reason = self.reason or next((name for name in rest if name in reasons), "settled")
        score = self.groups.settled_score + float(
            np.sum([self.ends[number].score for number in sorted(self.ends)])
        )
        return Found(max((end.rounds for end in self.ends.values()), default=0), reason, score)

    def is_due(self, keeping: ShardKeeping) -> bool:
        """Whether a checkpoint is due after the last group."""
        due = time.monotonic() - self.kept >= keeping.seconds
        return due and len(self.labels) % keeping.every == 0

    def keep(self, keeping: ShardKeeping) -> None:
        """Write the new results, and then a manifest that makes them valid."""
        self.kept = time.monotonic()
        done = [number for number in sorted(self.ends) if self.ends[number].reason in ("settled", "rounds")]
        if len(done) == len(self.files):
            return
        for number in done:
            if number not in self.files:
                items = self.groups.items(number)
                columns = {"item": items, "entity": self.labels[number].astype(np.int64)}
                self.files[number] = keeping.store.write(number, columns, Checksum.of(items))
        ends = [[number, *self.ends[number]] for number in done]
        state = {"round": len(done), "groups": ends}
        files = [self.files[number] for number in done]
        keeping.store.commit(Manifest(keeping.fingerprint, state, files))

    def restore(self, keeping: ShardKeeping) -> None:
        """Load the results of the last checkpoint, if there is one."""
        saved = keeping.store.latest(keeping.fingerprint)
        if saved is None:
            return
        with restoring(keeping.store.address):
            for file, (group, rounds, reason, score) in zip(saved.files, saved.state["groups"], strict=True):
                number = as_whole("group", group, 0, len(self.groups) - 1)
                items = self.groups.items(number)
                columns = keeping.store.read(file)
                if not np.array_equal(columns["item"], items):
                    raise DataFileError(
                        f"{file.name}: has other items than the group. Start again without the checkpoint."
                    )
                labels = as_ints("entity", columns["entity"], size=len(items), dtype=np.int32)
                check_range("entity", labels, len(items))
                end = Found(as_whole("rounds", rounds), as_text("reason", reason), as_number("score", score))
                self._take(number, labels, end)
                self.files[number] = file
        if len(self.labels) != len(saved.files):
            raise InvalidArgumentError("a group occurs twice in the checkpoint. Remove it to start again.")


def _count(labels: Ints) -> int:
    return int(np.count_nonzero(labels == np.arange(len(labels))))
