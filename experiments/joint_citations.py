"""Fields and works of reference strings at once, against fields first and works then.

    .venv/bin/python experiments/joint_citations.py cora1879 [--readings 5] [--weights 1 10 100]

The strings are put together from the fields of the sets, which keep their punctuation, in the order in which
references have them. Reported is B-cubed of the works without labels: from the fields that are given, from
the likeliest reading of each reference (the pipeline), and from a joint world of readings and works, for
several weights of the log probability of a reading.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time

import numpy as np

from factorwise import EntityResolver
from factorwise.apps.tagging.citations.reader import CitationReader
from factorwise.datasets.local import find_data
from factorwise.metrics.clustering import b_cubed
from factorwise.pipelines.works import COLUMNS, different_readings, joint_works

ORDER = (
    "author", "early", "title", "editor", "venue", "type", "booktitle", "journal", "volume", "pages",
    "institution", "address", "publisher", "month", "late", "date", "note",
)  # fmt: skip
GIVEN = {"venue": ("venue", "booktitle", "journal"), "year": ("year", "date")}


def read_set(name: str) -> list[dict[str, str]]:
    """Return the records of a set; a year in brackets is behind the authors."""
    with gzip.open(find_data("er") / name / "mentions.csv.gz", "rt", encoding="utf-8") as stream:
        records = [
            {key: " ".join(value.split()) for key, value in row.items()} for row in csv.DictReader(stream)
        ]
    for record in records:
        place = "early" if name == "cora1879" or record["year"].startswith("(") else "late"
        record[place] = record["year"]
    return records


def main() -> None:
    """Compare the three on a set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=["cora1295", "cora1879"])
    parser.add_argument("--readings", type=int, default=5)
    parser.add_argument("--weights", type=float, nargs="+", default=[1.0])
    options = parser.parse_args()
    records = read_set(options.set)
    truth = np.array([int(record["entity"]) for record in records])
    texts = [" ".join(record[name] for name in ORDER if record.get(name)) for record in records]

    def show(name: str, labels: object, began: float) -> None:
        found = b_cubed(truth, np.asarray(labels))
        seconds = time.process_time() - began
        print(
            f"{name:28} B-cubed {found.f1:.4f} (P {found.precision:.4f} R {found.recall:.4f}) "
            f" {seconds:.1f} CPU s",
            flush=True,
        )

    table = [
        {
            name: " ".join(record.get(part, "") for part in GIVEN.get(name, (name,))).strip() or None
            for name in COLUMNS
        }
        for record in records
    ]
    began = time.process_time()
    resolver = EntityResolver(about="title", n_jobs=1).fit(table)
    show("fields as given", resolver.resolve(table).labels, began)
    began = time.process_time()
    best = CitationReader.bundled(n_jobs=1).read_nbest(texts, options.readings)
    given = [different_readings(some) for some in best]
    sizes = np.array([len(some) for some in given])
    print(f"{sizes.mean():.2f} different readings of a reference, {time.process_time() - began:.1f} CPU s")
    began = time.process_time()
    show("pipeline", joint_works([some[:1] for some in given], n_jobs=1)[1], began)
    for weight in options.weights:
        began = time.process_time()
        chosen, works = joint_works(given, weight=weight, n_jobs=1)
        show(f"joint, weight {weight:g}", works, began)
        print(f"  another reading than the likeliest for {np.count_nonzero(chosen)}")


if __name__ == "__main__":
    main()
