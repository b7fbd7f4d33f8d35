"""Search for the entities of linked records, with checkpoints, and draw from the posterior."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.linked_items import LinkedItems
from factorwise.apps.resolution.merge_odds import MergeOdds, tree_of_walk
from factorwise.distributed.executors import Executor, LocalExecutor
from factorwise.distributed.group_search import search_groups
from factorwise.distributed.search import ShardKeeping
from factorwise.inference.mcmc.shards.component_search import (
    ComponentGroups,
    GroupFound,
    find_groups,
    search_group,
)
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import Found, LinkSearch, SearchProgress, SearchState
from factorwise.inference.merge_trees import LinkPosterior
from factorwise.io.checkpoints import (
    Checkpoint,
    read_checkpoint,
    remove_checkpoint,
    restoring,
    write_checkpoint,
)
from factorwise.io.shard_files import ShardStore
from factorwise.kernels.compile.threads import Team
from factorwise.validation import as_ints, as_number, as_whole

POSTERIOR_MEMORY = 2 << 30  # bytes of labels that posterior draws may take
DRAWS, FEWEST_DRAWS = 100, 5

FEWEST_ITEMS = 20_000  # with fewer items a search takes less than a second and covers all open items
MANY = 500_000  # records from which on fewer rounds and sweeps are enough


def default_budget(n_records: int) -> tuple[int, int]:
    """Return the number of rounds of a search, and the number of sweeps in each round."""
    return (12, 2) if n_records < MANY else (6, 1)


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where a search writes checkpoints, and how often.

    folder
        A path, or a URL that Arrow or fsspec supports.
    seconds
        The least time between two checkpoints. They are written after a round, or after a group if there
        are several groups.
    run
        The `run_mark` of this run.
    """

    folder: str
    seconds: float = 60.0
    run: str = ""

    @property
    def in_store(self) -> bool:
        """Whether checkpoints go to an object store, given by its URL."""
        return "://" in self.folder

    def check(self) -> None:
        """Raise an error if the folder holds a checkpoint of another run."""
        if not self.in_store:
            read_checkpoint(self.folder, self.run, begun=True)
        ShardStore(self.folder).latest(self.run, begun=True)

    def clear(self) -> None:
        """Remove all checkpoints."""
        if not self.in_store:
            remove_checkpoint(self.folder)
        ShardStore(self.folder).clear()


def searched(
    linked: LinkedItems,
    search: LinkSearch,
    *,
    seed: int,
    team: Team,
    executor: Executor | None = None,
    keeping: Keeping | None = None,
    watch: Callable[[SearchProgress], None] | None = None,
) -> Found:
    """Search from singletons, or from the checkpoint of the same run, and set the clustering of the items.

    Only components that the link scores do not settle are searched, in groups; see `find_groups`.

    executor
        Where groups are searched, if there are several; None for threads. The result does not depend on it.
    """
    groups = find_groups(linked.links, all_open=linked.links.n_items < FEWEST_ITEMS)
    mark = "" if keeping is None else f"{keeping.run}{fingerprint(linked, search, seed)}"
    if len(groups) == 1 and (keeping is None or not keeping.in_store):
        labels, found = _search_one(groups, search, seed, team, keeping, mark, watch)
        linked.place_items(groups.labels(iter([(0, labels)])))
        return found._replace(score=found.score + groups.settled_score)
    kept = None if keeping is None else ShardKeeping(ShardStore(keeping.folder), mark, 1, keeping.seconds)
    labels, found = search_groups(
        executor or LocalExecutor(team.threads), groups, search, seed, keeping=kept, watch=watch
    )
    linked.place_items(labels)
    return found


def _search_one(
    groups: ComponentGroups,
    search: LinkSearch,
    seed: int,
    team: Team,
    keeping: Keeping | None,
    mark: str,
    watch: Callable[[SearchProgress], None] | None,
) -> GroupFound:
    """Search the only group, and write checkpoints with a ``mark`` that identifies the run."""
    group, weights = groups.take(0), groups.links.weights
    if keeping is None:
        return search_group(group, weights, search, seed, team=team, watch=watch)
    saved = read_checkpoint(keeping.folder, mark)
    resume = None
    if saved is not None:
        with restoring(keeping.folder):
            resume = _state(saved, search, len(group.items))
    last = time.monotonic()

    def keep(state: SearchState) -> None:
        nonlocal last
        if time.monotonic() - last >= keeping.seconds:
            write_checkpoint(keeping.folder, mark, _checkpoint(state))
            last = time.monotonic()

    return search_group(group, weights, search, seed, team=team, resume=resume, watch=watch, keep=keep)


def run_mark(ids: pa.Array, knowledge: Knowledge, search: LinkSearch, seed: int) -> str:
    """Hash what identifies a run before its links are known; it is the prefix of the checkpoint's mark."""
    ends = (len(ids), ids[0].as_py(), ids[-1].as_py())
    digest = hashlib.sha256(repr((search, seed, knowledge.temperature, ends)).encode())
    digest.update(np.ascontiguousarray(knowledge.weights.values).data)
    if knowledge.unlabelled is not None:
        digest.update(repr(knowledge.unlabelled.as_dict()).encode())
    for name, values in knowledge.further.items():
        digest.update(repr((name, values.tolist())).encode())
    if knowledge.context is not None:
        digest.update(np.ascontiguousarray(knowledge.context.weights.values).data)
    return f"{digest.hexdigest()[:16]} "


def fingerprint(linked: LinkedItems, search: LinkSearch, seed: int) -> str:
    """Hash everything that identifies a run: its links and scores, its start and its settings."""
    links = linked.links
    digest = hashlib.sha256(repr((search, seed, links.weights)).encode())
    for stretch in links.stretches():
        for array in stretch:
            digest.update(np.ascontiguousarray(array).data)
    for fixed in (links.counts, links.sources, linked.labels):
        digest.update(np.ascontiguousarray(fixed).data)
    return digest.hexdigest()


def _checkpoint(state: SearchState) -> Checkpoint:
    numbers = {"round": state.round, "settled": state.settled, "score": state.score}
    return Checkpoint(numbers, {"label": state.label})


def _state(saved: Checkpoint, search: LinkSearch, n_items: int) -> SearchState:
    numbers, arrays = saved
    return SearchState(
        as_whole("round", numbers["round"], 0, search.rounds + search.extra),
        numbers["settled"] is True,
        as_number("score", numbers["score"]),
        as_ints("label", arrays["label"], size=n_items, dtype=np.int32),
    )


def draw_posterior(
    walk: LinkWalk, merges: MergeOdds, *, draws: int | None = None, seed: int
) -> LinkPosterior:
    """Draw clusterings from the posterior over the merge tree around the current clustering of a walk.

    draws
        Number of draws; None for the usual number, or fewer if memory is short.
    """
    if draws is None:
        fitting = POSTERIOR_MEMORY // (4 * max(walk.n_items, 1))
        draws = int(np.clip(fitting, FEWEST_DRAWS, DRAWS))
    tree = tree_of_walk(walk)
    return tree.posterior(merges.likely_chances(tree), walk.graph, draws=draws, seed=seed)
