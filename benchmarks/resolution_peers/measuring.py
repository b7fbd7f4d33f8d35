"""What the peers' scripts share: the thresholds tried, B-cubed F1 in plain Python, and what a phase cost.

Only the standard library is used, because every peer's environment imports it. The figures that are printed
come from ``factorwise.metrics``; the ones here choose a threshold.
"""

from __future__ import annotations

import csv
import resource
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

THRESHOLDS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


def b_cubed_f1(truth: Mapping[str, str], found: Mapping[str, str]) -> float:
    """Return the B-cubed F1 of ``found``, an entity for each record of ``truth``."""
    shared = Counter((entity, found[record]) for record, entity in truth.items())
    true, guessed = Counter(truth.values()), Counter(found[record] for record in truth)
    precision = sum(n * n / guessed[cluster] for (_, cluster), n in shared.items()) / len(truth)
    recall = sum(n * n / true[entity] for (entity, _), n in shared.items()) / len(truth)
    return 2 * precision * recall / (precision + recall)


def best_threshold(scores: Mapping[float, float]) -> float:
    """Return the threshold of highest score, the middle one of several that are equal."""
    top = [threshold for threshold in sorted(scores) if scores[threshold] == max(scores.values())]
    return top[len(top) // 2]


def read_entities(path: Path) -> dict[str, str]:
    """Read the columns ``id`` and ``entity`` of a CSV file."""
    with path.open(encoding="utf-8", newline="") as stream:
        return {record["id"]: record["entity"] for record in csv.DictReader(stream)}


def write_entities(path: Path, entities: Mapping[str, str]) -> None:
    """Write a CSV file with the columns ``id`` and ``entity``."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "entity"])
        writer.writerows(entities.items())


def cost_since(began: float) -> dict[str, float]:
    """Return what this process has used so far, its children included; ``began`` is when it was started.

    The peak is that of the largest process in MB.
    """
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    peak = max(own.ru_maxrss, children.ru_maxrss) / 1024
    return {"wall": time.time() - began, "cpu": cpu, "peak": peak}
