"""Resolution without labels on twenty open sets, against simple rules and the earlier mixture.

    python experiments/resolution_unlabelled.py             # the half that it was developed on
    python experiments/resolution_unlabelled.py --other     # the other half
    python experiments/resolution_unlabelled.py cora1295

The halves were drawn with SEED before any setting was chosen. At most MOST records of each set, by whole
entities (dblp_like_200k: by whole last names). Answers of other systems are dropped; the column source says
where a record is from. Rules are chosen with the truth: records with an equal value in a column, an equal
first word, or last word and initial, of a column of words, an equal last name and initial; and conjunctions
of the six best. B-cubed.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factorwise import EntityResolver
from factorwise.apps.resolution.blocking import default_rules, find_candidates
from factorwise.apps.resolution.comparisons import Comparer, planned
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.linking import link
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.resolving import searched
from factorwise.apps.resolution.schema.kinds import infer_kinds
from factorwise.apps.resolution.training.fitting import EXPECTED, MOST_EXPECTED, SAMPLE, sampled
from factorwise.apps.resolution.unlabelled.unsupervised import fit_mixture, weights_of
from factorwise.datasets.local import find_data
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.io.tables.reading import read_table
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import ClusterScore, b_cubed
from factorwise.types import Ints

SEED = 2121
MOST = 12_000
SETS = (
    *("abt_buy", "aminer110", "cddb", "chicago_early_childhood", "cora1295", "cora1879", "dblp_acm"),
    *("dblp_like_200k", "ens_inventors", "fake_1000", "febrl1", "febrl3", "febrl4", "historical_50k"),
    *("imdb_tmdb", "inspire_wang", "patentsview_inventors", "restaurant", "rldata10000", "walmart_amazon"),
)
DEVELOPED = frozenset(SETS[k] for k in np.random.default_rng(SEED).permutation(len(SETS))[:10])
DROPPED = frozenset({"block_name", "orig_label", "block", "community"})
FIRST, LAST = re.compile("first|given|fname"), re.compile("last|surname|lname")

Values = list[str | None]


class Task(NamedTuple):
    """Records without their entities, and the numbers of these."""

    table: pa.Table
    truth: Ints


def load(name: str) -> Task:
    """Read a set, cut down to whole entities."""
    if name == "dblp_like_200k":
        table = generated_mentions()
    else:
        table = read_table(str(find_data(f"er/{name}") / "mentions.csv.gz"))
    hidden = [one for one in table.column_names if one in DROPPED or one.startswith("pv_pred")]
    table = table.drop_columns(hidden)
    entity = [one or f"unknown {k}" for k, one in enumerate(table.column("entity").to_pylist())]
    names, truth = np.unique(np.array(entity), return_inverse=True)
    if table.num_rows > MOST:
        order = np.random.default_rng(SEED).permutation(len(names))
        known = np.array([not one.startswith("unknown ") for one in names.tolist()])
        order = np.concatenate([order[known[order]], order[~known[order]]])
        rows = np.flatnonzero(np.isin(truth, whole_groups(order, np.bincount(truth))))
        table, truth = table.take(rows), np.unique(truth[rows], return_inverse=True)[1]
    return Task(table.drop_columns(["entity"]), truth)


def whole_groups(order: Ints, sizes: Ints) -> list[int]:
    """Return groups in an order, each that still fits into MOST records."""
    kept, total = [], 0
    for group in order.tolist():
        if total + sizes[group] <= MOST:
            kept.append(group)
            total += int(sizes[group])
    return kept


def generated_mentions() -> pa.Table:
    """Return the mentions of some last names, with their co-authors and their papers."""
    folder = find_data("er/dblp_like_200k")
    papers = {row["paper_id"]: row for row in pq.read_table(folder / "papers.parquet").to_pylist()}
    mentions = pq.read_table(folder / "mentions.parquet").to_pylist()
    team: dict[int, list[str]] = {}
    for row in mentions:
        team.setdefault(row["paper_id"], []).append(row["name"])
    last, number, sizes = np.unique(
        [row["name"].split()[-1] for row in mentions], return_inverse=True, return_counts=True
    )
    kept = set(whole_groups(np.random.default_rng(SEED).permutation(len(last)), sizes))
    rows = []
    for row, group in zip(mentions, number.tolist(), strict=True):
        if group in kept:
            paper = papers[row["paper_id"]]
            others = list(team[row["paper_id"]])
            others.remove(row["name"])
            rows.append(
                {
                    "id": str(row["mention_id"]),
                    "entity": str(row["entity"]),
                    "name": row["name"],
                    "paper": str(row["paper_id"]),
                    "coauthors": "|".join(others),
                    "title": " ".join(paper["title_words"]),
                    "venue": f"v{paper['venue']}",
                    "year": str(paper["year"]),
                }
            )
    return pa.Table.from_pylist(rows)


def best_rule(task: Task) -> tuple[str, float]:
    """Return the simple rule that is nearest to the truth, and its B-cubed F1."""
    keys: dict[str, Values] = {}
    for name in task.table.column_names:
        if name in ("id", "source"):
            continue
        values = keys[name] = normal_values(task.table.column(name))
        if np.mean([one is not None and " " in one for one in values]) > 0.3:
            keys[f"{name}: first word"] = [one and one.split()[0] for one in values]
            keys[f"{name}: last word and initial"] = [one and f"{one.split()[-1]} {one[0]}" for one in values]
    firsts = [name for name in keys if FIRST.search(name.lower()) and ":" not in name]
    lasts = [name for name in keys if LAST.search(name.lower()) and ":" not in name]
    if firsts and lasts:
        pairs = list(zip(keys[firsts[0]], keys[lasts[0]], strict=True))
        keys["first and last name"] = [one and two and f"{two} {one}" for one, two in pairs]
        keys["last name and initial"] = [one and two and f"{two} {one[0]}" for one, two in pairs]
    scores = {name: f1_of(task.truth, values) for name, values in keys.items()}
    for one, two in combinations(sorted(scores, key=lambda name: -scores[name])[:6], 2):
        both = zip(keys[one], keys[two], strict=True)
        scores[f"{one} and {two}"] = f1_of(task.truth, [a and b and f"{a}\t{b}" for a, b in both])
    best = max(scores, key=lambda name: scores[name])
    return best, scores[best]


def normal_values(column: pa.ChunkedArray) -> Values:
    """Return values in small letters without punctuation."""
    texts = column.cast(pa.string()).to_pylist()
    return [one and (" ".join(re.sub(r"[^\w]+", " ", one.lower()).split()) or None) for one in texts]


def f1_of(truth: Ints, values: Sequence[str | None]) -> float:
    """Return the B-cubed F1 of the rule that records with an equal value are one entity."""
    coded = pc.fill_null(pa.array(values).dictionary_encode().indices, -1).to_numpy().astype(np.int64)
    missing = np.flatnonzero(coded < 0)
    coded[missing] = len(values) + missing
    return b_cubed(truth, coded).f1


def by_mixture(task: Task) -> float:
    """Return the B-cubed F1 of the earlier way: weights of a mixture of candidates."""
    fields = infer_kinds(task.table, leave_out=["id", "source"])
    normal = normalize(task.table, fields)
    rules = default_rules(fields, normal)
    candidates = find_candidates(normal, rules, threads=1)
    comparisons = planned(normal, *sampled(candidates, 0), candidates, labels=False)
    with Team(1) as team:
        comparer = Comparer(normal, comparisons, candidates)
        levels = comparer.all_levels(*sampled(candidates, 0), team)
        draws = np.random.default_rng(0)
        first = draws.integers(0, normal.n_rows, SAMPLE)
        second = (first + draws.integers(1, normal.n_rows, SAMPLE)) % normal.n_rows
        expected = min(EXPECTED * normal.n_rows / max(len(candidates), 1), MOST_EXPECTED) * len(levels)
        mixture = fit_mixture(
            levels, comparer.all_levels(first, second, team), comparisons, expected=expected
        )
        weights = weights_of(mixture, comparisons)
        linked = link(
            task.table, Knowledge(tuple(fields), tuple(rules), tuple(comparisons), weights), team=team
        )
        searched(linked, LinkSearch(), seed=0, team=team)
    return b_cubed(task.truth, linked.rows_of_units(linked.walk.labels)).f1


def resolve(task: Task) -> tuple[ClusterScore, EntityResolver, float]:
    """Resolve a set without labels; return the score, the resolver and CPU seconds."""
    begun = time.process_time()
    resolver = EntityResolver(n_jobs=1).fit(task.table, id="id")
    labels = resolver.resolve(task.table, id="id").labels
    return b_cubed(task.truth, labels), resolver, time.process_time() - begun


def main() -> None:
    """Print a row for each set, and means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", help="which; by default the half that it was developed on")
    parser.add_argument("--other", action="store_true", help="the other half")
    options = parser.parse_args()
    names = options.sets or [name for name in SETS if (name in DEVELOPED) != options.other]
    print("| set | alone | best rule by truth | mixture | this (P / R) | estimate P / R | CPU s, mixture |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    for name in names:
        task = load(name)
        alone = b_cubed(task.truth, np.arange(len(task.truth))).f1
        rule, rule_f1 = best_rule(task)
        begun = time.process_time()
        mixture = by_mixture(task)
        before = time.process_time() - begun
        score, resolver, seconds = resolve(task)
        model = resolver.knowledge_.unlabelled
        report = {} if model is None else model.report
        rows.append((alone, rule_f1, mixture, score.f1))
        print(
            f"| {name} | {alone:.3f} | {rule_f1:.3f} {rule} | {mixture:.3f} | {score.f1:.3f}"
            f" ({score.precision:.3f} / {score.recall:.3f})"
            f" | {report['precision']:.3f} / {report['recall']:.3f} | {seconds:.1f}, {before:.1f} |",
            flush=True,
        )
    means = np.mean(rows, axis=0)
    print(f"| mean | {means[0]:.3f} | {means[1]:.3f} | {means[2]:.3f} | {means[3]:.3f} | | |")


if __name__ == "__main__":
    main()
