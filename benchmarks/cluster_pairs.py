"""Entities from pairs that splink 5 scored: our walk beside connected components at every threshold.

    make bench ARGS=cluster_pairs
    make bench ARGS="cluster_pairs --quick"
    make bench ARGS="cluster_pairs --sets restaurant,febrl3"

splink is trained without labels on all records of a set and predicts all blocked pairs with a probability of
0.01 or more. Nothing of the truth is read by ``factorwise cluster``; connected components are given at 0.95,
and at the threshold that the truth says is best. The constants of the clustering were chosen on other sets
than historical_50k. CPU seconds are of the whole process, warm, the least of three.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
from peers import Peer, PeerUnavailableError
from resolution_peers.measuring import THRESHOLDS, read_entities, write_entities
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from timing import smallest_process, table

from factorwise.datasets.local import find_data
from factorwise.errors import MissingDataError
from factorwise.metrics.clustering import b_cubed, pairwise

SPLINK = Peer("splink", ("splink==5.0.0",))
SCRIPT = Path(__file__).parent / "resolution_peers" / "splink_run.py"
SETS = (
    "fake_1000",
    "restaurant",
    "cora1295",
    "febrl3",
    "rldata10000",
    "chicago_early_childhood",
    "abt_buy",
    "dblp_acm",
    "aminer110",
    "historical_50k",
)
BARS = {"historical_50k": (0.885, 0.86, 3.0)}  # B-cubed, pairwise, CPU seconds
USUAL = 0.95  # the threshold that splink's examples take


def scores(truth: dict[str, str], found: dict[str, str]) -> tuple[float, float]:
    labels = [found[record] for record in truth]
    return b_cubed(truth.values(), labels).f1, pairwise(truth.values(), labels).f1


def components(truth: dict[str, str], pairs: Path, threshold: float) -> dict[str, str]:
    """Return the connected components of the pairs at a threshold."""
    rows = duckdb.execute(
        "SELECT unique_id_l::VARCHAR, unique_id_r::VARCHAR FROM read_parquet(?) WHERE match_probability >= ?",
        [str(pairs), threshold],
    ).fetchall()
    number = {record: k for k, record in enumerate(truth)}
    ends = np.array([[number[a], number[b]] for a, b in rows], np.int64).reshape(-1, 2)
    ties = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(truth), len(truth)))
    part = connected_components(ties, directed=False)[1]
    return {record: str(part[k]) for record, k in number.items()}


def measure(name: str, folder: Path, repeats: int) -> list[str]:
    """Score one set, and return its row."""
    source = find_data(f"er/{name}/mentions.csv.gz")
    plain, pairs, out = folder / f"{name}.csv", folder / f"{name}.parquet", folder / f"{name}.out.csv"
    with gzip.open(source, "rt", encoding="utf-8", newline="") as stream:
        truth = {record["id"]: record["entity"] for record in csv.DictReader(stream)}
    write_entities(plain, truth)
    began = repr(time.time())
    words = [name, "score", str(source), str(folder / f"{name}.json"), str(pairs), "--began", began]
    SPLINK.run(SCRIPT, words)
    command = [sys.executable, "-m", "factorwise", "cluster", str(pairs), "--records", str(plain)]
    command += ["--id", "id", "--score", "match_weight", "--threads", "1", "--quiet", "-o", str(out)]
    ours = smallest_process(command, repeats)
    found = scores(truth, read_entities(out))
    by_threshold = {t: scores(truth, components(truth, pairs, t)) for t in THRESHOLDS}
    best = max(by_threshold, key=lambda t: by_threshold[t][0])
    row = [name, *(f"{value:.4f}" for value in found), f"{ours.cpu:.2f}"]
    row += [f"{value:.4f}" for value in by_threshold[USUAL]]
    row += [*(f"{value:.4f}" for value in by_threshold[best]), f"{best:g}"]
    bars = BARS.get(name)
    if bars is None:
        return [*row, ""]
    met = [found[0] >= bars[0], found[1] >= bars[1], ours.cpu < bars[2]]
    return [*row, " ".join("met" if one else "missed" for one in met)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="one small set, once")
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    names = ["restaurant"] if options.quick else options.sets.split(",")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                rows.append(measure(name, Path(folder), 1 if options.quick else 3))
            except (MissingDataError, PeerUnavailableError) as error:
                print(f"{name}: {error}")
    head = ("set", "B-cubed", "pairwise", "CPU s", "at .95", "pairwise", "best", "pairwise", "at", "bars")
    print(table(head, rows))


if __name__ == "__main__":
    main()
