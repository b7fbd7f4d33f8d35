"""Quality of resolution with labels: sets, splits, and the number of labelled entities.

    python experiments/resolution_entities.py --salts a b c
    python experiments/resolution_entities.py cora1295 aminer110 --curve --salts a b c
    python experiments/resolution_entities.py chicago_early_childhood --evidence pairs context tallies both

Half of the entities (of aminer110 half of the names) are labelled, the other half is resolved; a salt draws
the halves. With --curve all records of the first half are given, but the labels of 0, 10, 50, 200 and all of
its entities, drawn at random. --evidence says what of entities counts beside pairs: their context (the
default), tallies of each column as templates whose weights SampleRank learns (different values, words in
common), both, or neither. abt_buy and dblp_acm have one record of an entity in each source. Printed are
B-cubed F1 on the second half, what held-out entities of the first half had said, and the training method.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise import EntityResolver
from factorwise.apps.resolution import common_words, different_values
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.record_items import TemplateMaker
from factorwise.apps.resolution.training import entity_numbers
from factorwise.datasets.local import find_data
from factorwise.metrics.clustering import b_cubed
from factorwise.model.templates import ClusterSize
from factorwise.types import Ints

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # for the sets of the benchmark

from resolution_peers.halves import SETS, read_records

COUNTS = (0, 10, 50, 200)
EVIDENCE = ("pairs", "context", "tallies", "both")  # of entities: none, either, or both
ONE_PER_SOURCE = ("abt_buy", "dblp_acm")


def split_set(name: str, salt: str) -> tuple[pa.Table, pa.Table]:
    """Read a set and cut it into the half that is labelled and the half that is resolved."""
    chosen = SETS[name]
    records = list(read_records(find_data(chosen.folder) / "mentions.csv.gz"))
    random.Random(0).shuffle(records)
    halves: tuple[list[dict[str, str | None]], list[dict[str, str | None]]] = [], []
    for number, record in enumerate(records):
        value = f"{salt}:{name}:{record[chosen.split]}".encode()
        half = hashlib.blake2b(value, digest_size=1).digest()[0] % 2
        kept = {key: text or None for key, text in record.items() if key not in ("id", *chosen.dropped)}
        halves[half].append({"id": str(number), **kept})
    first, second = halves
    return pa.Table.from_pylist(first), pa.Table.from_pylist(second)


def sources_of(table: pa.Table) -> Ints:
    """Number the sources of records."""
    return np.asarray(table.column("source").combine_chunks().dictionary_encode().indices)


def labels_of(table: pa.Table, count: int | None, seed: int) -> pa.Array | None:
    """Return the entities of records, missing but for ``count`` random ones; None where there are none."""
    column = table.column("entity").combine_chunks()
    if count == 0:
        return None
    if count is None:
        return column
    number = entity_numbers(table, "entity")
    kept = np.random.default_rng(seed).permutation(int(number.max()) + 1)[:count]
    return pc.if_else(pa.array(np.isin(number, kept)), column, pa.scalar(None, column.type))


def tallies_of(table: pa.Table, hidden: list[str]) -> list[TemplateMaker]:
    """Return templates of the values and the words of each column, and of the sizes of entities."""
    columns = [column for column in table.column_names if column not in ("id", "entity", *hidden)]
    tallies = [make(column) for column in columns for make in (different_values, common_words)]
    return [lambda records: ClusterSize("sizes"), *tallies]


def run(name: str, salt: str, count: int | None, evidence: str, options: argparse.Namespace) -> float:
    """Fit on one half with so many labelled entities, resolve the other, print what came out."""
    train, test = split_set(name, salt)
    truth = entity_numbers(test, "entity")
    hidden = ["source"] if name in ONE_PER_SOURCE else []
    known, limits = (
        Constraints(sources=sources_of(half), one_per_source=True) if hidden else None
        for half in (train, test)
    )
    resolver = EntityResolver(
        context=evidence in ("context", "both"),
        templates=tallies_of(train, hidden) if evidence in ("tallies", "both") else [],
        random_state=options.seed,
        n_jobs=options.threads,
    )
    begun = time.process_time()
    labels = labels_of(train, count, options.seed)
    resolver.fit(train.drop_columns(["entity"]), labels, id="id", leave_out=hidden, constraints=known)
    fitted = time.process_time()
    found = resolver.resolve(test.drop_columns(["entity"]), id="id", constraints=limits)
    applied = time.process_time()
    score, training = b_cubed(truth, found.labels), resolver.knowledge_.training
    methods = ", ".join(f"{method} {f1:.4f}" for method, f1 in training.get("methods", {}).items())
    print(
        f"{name} {salt} {'all' if count is None else count} {evidence}: {score.f1:.4f}"
        f" (P {score.precision:.4f} R {score.recall:.4f}) by {training.get('method', 'no labels')}"
        f" [{methods}] fit {fitted - begun:.1f} apply {applied - fitted:.1f} CPU s",
        flush=True,
    )
    return score.f1


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), help=f"which: {', '.join(SETS)}")
    parser.add_argument("--salts", nargs="+", default=["a", "b", "c"], help="one split for each")
    parser.add_argument("--curve", action="store_true", help="with 0, 10, 50, 200 and all labelled entities")
    parser.add_argument("--evidence", nargs="+", choices=EVIDENCE, default=["context"], help="of entities")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="results do not depend on it")
    options = parser.parse_args()
    for name in options.sets:
        for count in (*COUNTS, None) if options.curve else (None,):
            first: list[float] = []
            for evidence in options.evidence:
                figures = [run(name, salt, count, evidence, options) for salt in options.salts]
                first = first or figures
                text = f"{name}, {'all' if count is None else count} labelled: mean {np.mean(figures):.4f}"
                lead = ", ".join(f"{one:+.4f}" for one in np.subtract(figures, first))
                print(
                    f"{text} ({min(figures):.4f} to {max(figures):.4f}) by {evidence}; beyond"
                    f" {options.evidence[0]} {lead}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
