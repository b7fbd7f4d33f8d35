"""The ten sets of records: which columns are given to all tools, and how each set is cut in two halves.

Entities (for aminer110 whole blocks of one name) go to the half for training or the half for testing by a
hash, so that no entity is in both. Records are shuffled and numbered anew: neither their order nor the ids
of the source, which often contain the entity, say who belongs together. Only the standard library is used,
because every peer's environment reads the same files.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SEED = 0


class Halves(NamedTuple):
    """Where the files of a set are: ``truth`` has the id and entity of each record of ``test``."""

    train: Path
    test: Path
    truth: Path


class RecordSet(NamedTuple):
    """A set of records.

    folder
        Its place inside the data directory.
    rule
        Columns of the rule to beat: equal values, same entity.
    split
        Column whose values go to one half as a whole.
    dropped
        Columns that are answers of somebody else's resolution.
    bar
        B-cubed F1 to reach, or None.
    options
        What our command line is told; splink and dedupe are told the same in their way.
    """

    folder: str
    rule: tuple[str, ...]
    split: str = "entity"
    dropped: tuple[str, ...] = ()
    bar: float | None = None
    options: tuple[str, ...] = ()


#: Smallest first.
SETS = {
    "restaurant": RecordSet("er/restaurant", ("name",)),
    "cora1295": RecordSet("er/cora1295", ("title",), bar=0.95),
    "febrl3": RecordSet("er/febrl3", ("soc_sec_id",), bar=0.997),
    "abt_buy": RecordSet("er/abt_buy", ("name",), options=("--source", "source")),
    "dblp_acm": RecordSet("er/dblp_acm", ("title",), options=("--source", "source")),
    "chicago_early_childhood": RecordSet("er/chicago_early_childhood", ("phone",)),
    "aminer110": RecordSet("er/aminer110", ("name",), split="block_name", bar=0.80),
    "patentsview_inventors": RecordSet(
        "er/patentsview_inventors", ("first", "last"), dropped=("pv_pred_20220630", "block")
    ),
    "inspire_wang": RecordSet("er/inspire_wang", ("name",), bar=0.93),
    "historical_50k": RecordSet("er/historical_50k", ("full_name",), bar=0.90),
}


def in_training_half(name: str, value: str) -> bool:
    """Say which half a value belongs to; the name of the set makes equal values of two sets independent."""
    return hashlib.blake2b(f"{name}:{value}".encode(), digest_size=1).digest()[0] % 2 == 0


def read_records(path: Path) -> Iterator[dict[str, str]]:
    """Read a CSV file, compressed or not, without records whose entity is unknown."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as stream:
        for record in csv.DictReader(stream):
            if record.get("entity", "known"):
                yield record


def write_halves(name: str, source: Path, folder: Path) -> Halves:
    """Cut a set in two and write its files into ``folder``."""
    chosen = SETS[name]
    records = list(read_records(source / "mentions.csv.gz"))
    random.Random(SEED).shuffle(records)
    columns = [column for column in records[0] if column not in ("id", *chosen.dropped)]
    given = [column for column in columns if column != "entity"]
    halves = Halves(folder / "train.csv", folder / "test.csv", folder / "truth.csv")
    with (
        halves.train.open("w", encoding="utf-8", newline="") as train,
        halves.test.open("w", encoding="utf-8", newline="") as test,
        halves.truth.open("w", encoding="utf-8", newline="") as truth,
    ):
        trained, tested, answers = csv.writer(train), csv.writer(test), csv.writer(truth)
        trained.writerow(["id", *columns])
        tested.writerow(["id", *given])
        answers.writerow(["id", "entity"])
        for number, record in enumerate(records):
            if in_training_half(name, record[chosen.split]):
                trained.writerow([number, *(record[column] for column in columns)])
            else:
                tested.writerow([number, *(record[column] for column in given)])
                answers.writerow([number, record["entity"]])
    return halves


def clusters_of_rule(test: Path, columns: tuple[str, ...]) -> dict[str, str]:
    """Put records with equal, non-empty values of ``columns`` together; the others stay alone."""
    found = {}
    for record in read_records(test):
        values = [record[column].strip().lower() for column in columns]
        found[record["id"]] = "\x1f".join(values) if all(values) else f"alone {record['id']}"
    return found
