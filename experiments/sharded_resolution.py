"""What shards cost: the quality of guided, random and frozen shards, and the work of the engine.

    FACTORWISE_DATA=... python experiments/sharded_resolution.py [--json]
    python experiments/sharded_resolution.py --engine --mentions 1000000

Quality: weights are learned from some of the entities, the records of the others are linked once, and then
searched by one chain over all of them and in shards, each from every record by itself. Rounds are chosen so
that all weigh about as many proposals. Bar: guided shards are worse than the one chain by no more than 2
standard deviations over seeds, and frozen ones are visibly worse.

Engine (--engine): generated mentions are searched in shards on a Ray cluster of this machine. From the
processor time of the driver, the workers and all that Ray runs besides, what the shards took themselves is
subtracted. Bar: the rest is at most 20 % of it. Rounds after the first are counted, when all workers have
started; the whole run, with loading and collecting the rows, is printed beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from resolution_tasks import Task, entities_with, load

from factorwise import EntityResolver
from factorwise.apps.resolution.linking import Linked, link
from factorwise.apps.resolution.training import entity_numbers
from factorwise.datasets.local import find_data
from factorwise.distributed import (
    LocalExecutor,
    Sharding,
    ShardReport,
    ShardStep,
    search_shards,
    shard_model,
    shard_walk,
)
from factorwise.distributed.executors import Step
from factorwise.distributed.ray_executor import RayExecutor
from factorwise.distributed.search import entities_of
from factorwise.distributed.stepping import step_shard
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch, SearchProgress
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed

GENERATED = "dblp_like_200k"
DEVIATIONS, MOST_OVERHEAD = 2.0, 0.20
ENGINE_SHARDS, ENGINE_SEARCH = 8, LinkSearch(rounds=6, sweeps=1, extra=0)
TICK = os.sysconf("SC_CLK_TCK")


class Outcome(NamedTuple):
    """B-cubed F1 of one search, its score, and the proposals it weighed."""

    f1: float
    score: float
    proposals: int


class Problem(NamedTuple):
    """Records with their links and their true entities."""

    linked: Linked
    truth: list[int]

    def judged(self, labels: NDArray[Any], score: float, proposals: int) -> Outcome:
        """Compare a clustering of the items with the truth."""
        found = self.linked.rows_of_units(labels).tolist()
        return Outcome(b_cubed(self.truth, found).f1, score, proposals)

    def whole(self, search: LinkSearch, seed: int, threads: int) -> Outcome:
        """One chain over all records."""
        walk = self.linked.walk.copy()
        with Team(threads) as team:
            found = search.run(walk, seed=seed, team=team)
        return self.judged(walk.labels, found.score, walk.proposals)

    def in_shards(self, search: LinkSearch, sharding: Sharding, seed: int, threads: int) -> Outcome:
        """Search in shards, in threads."""
        walk, executor, told = self.linked.walk, LocalExecutor(threads), list[SearchProgress]()
        rows = shard_walk(walk, sharding.shards, seed)
        found = search_shards(
            executor, rows, search, sharding, model=shard_model(walk), seed=seed, watch=told.append
        )
        labels = entities_of(executor, walk.n_items)
        return self.judged(labels, found.score, told[-1].proposals)


def records(name: str, most: int) -> Task:
    """Read a set of the benchmark, or the generated one, which has no halves yet."""
    if name != GENERATED:
        return load(name, most)
    table = generated()
    entity = entity_numbers(table, "entity")
    train = entities_with(entity, records=10_000, seed=1)
    tested = ~train & entities_with(entity, records=most, seed=2)
    kept = table.filter(pa.array(tested)).drop_columns(["entity"])
    return Task(name, table.filter(pa.array(train)), kept, entity[tested])


def generated() -> pa.Table:
    """Mentions of authors with the other names on their papers, and their papers' venue, year and title."""
    folder = find_data(f"er/{GENERATED}")
    query = """
        select m.entity, m.name, p.venue, p.year, p.title_words as title,
            list(m.name) over (partition by m.paper_id) as names, m.mention_id
        from read_parquet($mentions) m join read_parquet($papers) p using (paper_id) order by m.mention_id
    """
    files = {"mentions": str(folder / "mentions.parquet"), "papers": str(folder / "papers.parquet")}
    with duckdb.connect() as database:
        found = database.sql(query, params=files).to_arrow_table()
    others = [
        [other for other in names if other != name]
        for name, names in zip(found["name"].to_pylist(), found["names"].to_pylist(), strict=True)
    ]
    return found.drop_columns(["names", "mention_id"]).append_column(
        "coauthors", pa.array(others, pa.list_(pa.string()))
    )


def problem(task: Task, threads: int) -> Problem:
    resolver = EntityResolver(random_state=0, n_jobs=threads).fit(task.train, "entity")
    with Team(threads) as team:
        return Problem(link(task.test, resolver.knowledge_, team=team), task.truth.tolist())


def matched(given: Problem, sharding: Sharding, budget: int, rounds: int, threads: int) -> LinkSearch:
    """Return the search whose rounds weigh about as many proposals as were spent elsewhere."""
    for _ in range(5):
        search = LinkSearch(rounds=rounds, extra=0)
        spent = given.in_shards(search, sharding, 0, threads).proposals
        if abs(spent / budget - 1.0) < 0.05:
            break
        rounds = max(2, round(rounds * budget / spent))
    return search


def quality(options: argparse.Namespace) -> dict[str, Any]:
    task = records(options.set, options.records)
    given = problem(task, options.threads)
    whole = LinkSearch(rounds=options.rounds, extra=0)
    chains = [given.whole(whole, seed, options.threads) for seed in range(options.seeds)]
    budget = round(float(np.mean([one.proposals for one in chains])))
    rows = {"one chain": described(whole.rounds, chains)}
    for exchange in ("guided", "random", "none"):
        sharding = Sharding(options.shards, exchange)
        search = matched(given, sharding, budget, whole.rounds, options.threads)
        runs = [given.in_shards(search, sharding, seed, options.threads) for seed in range(options.seeds)]
        rows[exchange] = described(search.rounds, runs)
    spread = max(rows["one chain"]["f1_deviation"], rows["guided"]["f1_deviation"])
    behind = rows["one chain"]["f1"] - rows["guided"]["f1"]
    return {
        "set": task.name,
        "records": task.test.num_rows,
        "links": len(given.linked.scores),
        "shards": options.shards,
        "seeds": options.seeds,
        "searches": rows,
        "guided_is_behind_by": behind,
        "allowed": DEVIATIONS * spread,
        "guided_holds": behind <= DEVIATIONS * spread,
        "frozen_is_worse": rows["one chain"]["f1"] - rows["none"]["f1"] > max(0.02, DEVIATIONS * spread),
    }


def described(rounds: int, runs: Sequence[Outcome]) -> dict[str, Any]:
    f1 = np.array([run.f1 for run in runs])
    return {
        "rounds": rounds,
        "proposals": float(np.mean([run.proposals for run in runs])),
        "score": float(np.mean([run.score for run in runs])),
        "f1": float(f1.mean()),
        "f1_deviation": float(f1.std(ddof=1)) if len(f1) > 1 else 0.0,
    }


class Timed(RayExecutor):
    """A cluster that adds up what its shards took."""

    shard_seconds = 0.0

    def step(self, steps: Sequence[ShardStep], model: Any, function: Step = step_shard) -> list[ShardReport]:
        """Run every shard for a round."""
        reports = super().step(steps, model, function)
        self.shard_seconds += sum(report.cpu_seconds for report in reports)
        return reports


def family_seconds() -> float:
    """Processor time of this process and of all that it started, directly or not."""
    parents, spent = {}, {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it ended meanwhile
        parents[int(folder.name)] = int(fields[1])
        spent[int(folder.name)] = (int(fields[11]) + int(fields[12])) / TICK
    family = {os.getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= grown
    return sum(spent[pid] for pid in family)


def mentions(n: int, seed: int = 0) -> LinkWalk:
    """Entities of five mentions on average, each mention with about ten links, mostly to others alike."""
    rng = np.random.default_rng(seed)
    entity = rng.integers(0, max(1, n // 5), n)
    near = np.argsort(entity + 40.0 * rng.random(n), kind="stable")
    exact = np.argsort(entity, kind="stable")
    ends = [(order[:-k], order[k:]) for order, most in ((near, 8), (exact, 3)) for k in range(1, most)]
    one, two = (np.concatenate([end[side] for end in ends]) for side in (0, 1))
    code = np.unique(np.minimum(one, two).astype(np.int64) * n + np.maximum(one, two))
    first, second = code // n, code % n
    same = entity[first] == entity[second]
    scores = np.where(same, rng.normal(1.5, 1.5, len(same)), rng.normal(-2.0, 1.5, len(same)))
    return LinkWalk(LinkGraph.from_pairs(n, first, second), scores, unlinked=-0.3, cluster=0.0)


def engine(options: argparse.Namespace) -> dict[str, Any]:
    walk = mentions(options.mentions)
    marks: list[tuple[float, float, float]] = []
    with Timed("local", options.threads) as executor:

        def mark(_: SearchProgress | None = None) -> None:
            marks.append((family_seconds(), executor.shard_seconds, time.perf_counter()))

        mark()
        search_shards(
            executor,
            shard_walk(walk, ENGINE_SHARDS, 0),
            ENGINE_SEARCH,
            Sharding(ENGINE_SHARDS),
            model=shard_model(walk),
            seed=0,
            watch=mark,
        )
        entities_of(executor, walk.n_items)
        mark()
    rounds, whole = (
        np.subtract(last, first) for last, first in ((marks[-2], marks[1]), (marks[-1], marks[0]))
    )
    overhead = float(rounds[0] / rounds[1] - 1.0)
    return {
        "mentions": options.mentions,
        "links": len(walk.graph.first),
        "shards": ENGINE_SHARDS,
        "rounds": len(marks) - 3,
        "shard_seconds": float(rounds[1]),
        "all_seconds": float(rounds[0]),
        "elapsed": float(rounds[2]),
        "overhead": overhead,
        "overhead_of_whole_run": float(whole[0] / whole[1] - 1.0),
        "overhead_holds": overhead <= MOST_OVERHEAD,
    }


def quality_lines(found: dict[str, Any]) -> list[str]:
    lines = [
        f"{found['set']}: {found['records']:,} records, {found['links']:,} links, {found['shards']} shards,"
        f" {found['seeds']} seeds",
        f"{'':10} {'rounds':>6} {'proposals':>12} {'score':>12} {'B-cubed F1':>18}",
    ]
    for name, row in found["searches"].items():
        f1 = f"{row['f1']:.4f} +- {row['f1_deviation']:.4f}"
        lines.append(f"{name:10} {row['rounds']:6} {row['proposals']:12,.0f} {row['score']:12,.1f} {f1:>18}")
    behind, allowed = found["guided_is_behind_by"], found["allowed"]
    lines.append(
        f"guided behind one chain by {behind:+.4f}, allowed {allowed:.4f}: {verdict(found['guided_holds'])}"
    )
    lines.append(f"frozen shards are visibly worse: {verdict(found['frozen_is_worse'])}")
    return lines


def engine_lines(found: dict[str, Any]) -> list[str]:
    return [
        f"{found['mentions']:,} mentions, {found['links']:,} links, {found['shards']} shards,"
        f" {found['rounds']} rounds in {found['elapsed']:.1f} s",
        f"shards {found['shard_seconds']:.1f} CPU s, everything {found['all_seconds']:.1f} CPU s:"
        f" engine {found['overhead']:.1%}, at most {MOST_OVERHEAD:.0%}: {verdict(found['overhead_holds'])}",
        f"with starting, loading and collecting: {found['overhead_of_whole_run']:.1%}",
    ]


def verdict(holds: bool) -> str:
    return "holds" if holds else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--set", default=GENERATED, help="records for the quality")
    parser.add_argument("--records", type=int, default=20_000, help="at most so many, about")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=12, help="of the one chain")
    parser.add_argument("--threads", type=int, default=2, help="and workers; results do not depend on it")
    parser.add_argument("--engine", action="store_true", help="measure the engine instead of the quality")
    parser.add_argument("--mentions", type=int, default=1_000_000, help="for the engine")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    found = engine(options) if options.engine else quality(options)
    lines = engine_lines(found) if options.engine else quality_lines(found)
    print(json.dumps(found) if options.json else "\n".join(lines))


if __name__ == "__main__":
    main()
