"""The sets that the experiments on resolution share: halves to learn from and to resolve.

Entities, or for aminer110 whole blocks of one name, lie in one half, as in the
benchmark (benchmarks/resolution_peers/halves.py).
All are read from the data directory (FACTORWISE_DATA).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from factorwise.apps.resolution.training import entity_numbers
from factorwise.datasets.local import find_data
from factorwise.io.tables.reading import read_table
from factorwise.types import Ints

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # for the halves of the benchmark

from resolution_peers.halves import SETS, write_halves

OUT = Path(__file__).parent / "out"


class Task(NamedTuple):
    """A set of records: ``train`` has the column ``entity``; ``truth`` numbers the entities of ``test``."""

    name: str
    train: pa.Table
    test: pa.Table
    truth: Ints


def load(name: str, most: int) -> Task:
    """Read a set; of halves with more than ``most`` records only some of the entities."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_halves(name, find_data(SETS[name].folder), Path(folder))
        train, test, truth = (read_table(path) for path in files)
    kept = entities_with(entity_numbers(train, "entity"), records=most)
    numbers = entity_numbers(truth, "entity")
    tested = entities_with(numbers, records=most)
    return Task(name, train.filter(pa.array(kept)), test.filter(pa.array(tested)), numbers[tested])


def entities_with(
    entity: Ints, *, records: int | None = None, count: int | None = None, seed: int = 0
) -> Ints:
    """Return which records belong to random entities: ``count`` of them, or with about so many records."""
    size = np.bincount(entity)
    order = np.random.default_rng(seed).permutation(len(size))
    if records is not None:
        count = int(np.searchsorted(np.cumsum(size[order]), records)) + 1
    chosen = np.zeros(len(size), np.bool_)
    chosen[order[:count]] = True
    return np.asarray(chosen[entity])


def arguments(description: str | None, sets: Sequence[str]) -> argparse.Namespace:
    """Read the command line that the experiments share."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", help=f"which: {', '.join(SETS)}; by default {', '.join(sets)}")
    parser.add_argument("--records", type=int, default=10_000, help="at most so many in a half, about")
    parser.add_argument("--salts", nargs="+", default=["a", "b", "c"], help="one split for each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2, help="results do not depend on it")
    options = parser.parse_args()
    unknown = sorted(set(options.sets) - set(SETS))
    if unknown:
        parser.error(f"no set is called {unknown[0]!r}: there are {', '.join(SETS)}.")
    options.sets = options.sets or list(sets)
    return options


def save(figure: Figure, name: str) -> None:
    """Write a figure to the folder of results."""
    figure.tight_layout()
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / f"{name}.png", dpi=150)
    print(f"drawn: {OUT.name}/{name}.png")
