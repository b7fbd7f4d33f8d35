"""Quality of resolution by the number of labelled entities, from none to half of a set.

    python experiments/resolution_labels.py
    python experiments/resolution_labels.py cora1295 --seeds 5

The records of some random entities of the training half are learned from, of 20, of 50 and so on; the other
half is resolved. Without labels, weights come from the records that are resolved. B-cubed F1 in percent: mean
over the seeds, and the lowest and highest. Large sets are cut down to some of their entities (--records).
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from resolution_tasks import Task, arguments, entities_with, load, save

from factorwise import EntityResolver
from factorwise.apps.resolution.training import entity_numbers
from factorwise.metrics.clustering import b_cubed

SETS = ("historical_50k", "aminer110", "chicago_early_childhood")
COUNTS = (20, 50, 100, 200, 500, 1_000, 2_000)

Curve = dict[int, list[float]]


def curve(task: Task, seeds: int, threads: int) -> Curve:
    """Return the B-cubed F1 of each seed by the number of labelled entities, and print them."""
    entity = entity_numbers(task.train, "entity")
    total = int(entity.max()) + 1
    found: Curve = {}
    for count in (0, *(c for c in COUNTS if c < total), total):
        begun, ways = time.process_time(), []
        found[count] = []
        for seed in range(seeds):
            resolver = EntityResolver(random_state=seed, n_jobs=threads)
            if count == 0:
                resolver.fit(task.test, id="id")
            else:
                labelled = entities_with(entity, count=count, seed=seed)
                resolver.fit(task.train.filter(pa.array(labelled)), "entity", id="id")
                ways.append(resolver.knowledge_.training["way"])
            found[count].append(b_cubed(task.truth, resolver.resolve(task.test, id="id").labels).f1)
        scores = 100 * np.array(found[count])
        seconds = (time.process_time() - begun) / seeds
        print(
            f"  {count:>6,} labelled entities: {scores.mean():.1f} ({scores.min():.1f}-{scores.max():.1f})"
            f"  {seconds:.1f} CPU s  {', '.join(dict.fromkeys(ways))}",
            flush=True,
        )
    return found


def draw(results: dict[str, Curve]) -> Figure:
    """One line per set, a dashed one at its height without labels."""
    figure, panel = plt.subplots(figsize=(6, 4))
    for number, (name, found) in enumerate(results.items()):
        counts = [count for count in found if count > 0]
        scores = [100 * np.array(found[count]) for count in counts]
        means = [float(s.mean()) for s in scores]
        spread = [[max(m - s.min(), 0.0) for m, s in zip(means, scores, strict=True)]]
        spread.append([max(s.max() - m, 0.0) for m, s in zip(means, scores, strict=True)])
        panel.errorbar(counts, means, yerr=spread, marker="o", label=name, color=f"C{number}", capsize=2)
        panel.axhline(100 * np.mean(found[0]), color=f"C{number}", linestyle="--", linewidth=0.8)
    panel.set_xscale("log")
    panel.set_xlabel("labelled entities (dashed: none)")
    panel.set_ylabel("B-cubed F1")
    panel.legend(fontsize=8)
    return figure


def main() -> None:
    options = arguments(__doc__, SETS, seeds=3)
    results = {}
    for name in options.sets:
        task = load(name, options.records)
        print(f"{name}: {task.train.num_rows:,} records to learn from, {task.test.num_rows:,} to resolve")
        results[name] = curve(task, options.seeds, options.threads)
    save(draw(results), Path(__file__).stem)


if __name__ == "__main__":
    main()
