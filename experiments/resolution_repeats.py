"""Tables whose rows repeat: 100,000 rows with 2,000 different names, against the 2,000 alone.

    python experiments/resolution_repeats.py

Names of organizations with and without a legal form, of which few stand in most rows. CPU seconds of fit and
resolve together, the second of two runs; with labels half of the entities are known, and the others scored.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from factorwise import EntityResolver
from factorwise.metrics.clustering import ClusterScore, b_cubed
from factorwise.types import Ints

DIFFERENT, ROWS = 2_000, 100_000
SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va"]
FORMS = ["inc", "corp", "ltd", "gmbh", "co"]


def names() -> tuple[list[str], Ints]:
    """Return different names, and the number of the organization that each is of."""
    draws = np.random.default_rng(0)
    words = ["".join(draws.choice(SYLLABLES, 3)) for _ in range(900)]
    found: list[str] = []
    entity: list[int] = []
    for number in range(DIFFERENT):
        base, form = " ".join(draws.choice(words, 2)).title(), FORMS[number % len(FORMS)]
        spelled = [base, f"{base} {form}", f"{base}, {form.upper()}."][: draws.integers(1, 4)]
        found += spelled
        entity += [number] * len(spelled)
    return found[:DIFFERENT], np.array(entity[:DIFFERENT])


def measure(texts: list[str], entity: Ints, *, labels: bool) -> tuple[float, ClusterScore]:
    """Return CPU seconds of fitting and resolving, and the score of entities that were not labelled."""
    table = pa.table({"organization name": texts})
    known = pa.array([int(number) if number % 2 else None for number in entity]) if labels else None
    begun = time.process_time()
    found = EntityResolver(n_jobs=1).fit(table, known).resolve(table).labels
    scored = entity % 2 == 0 if labels else entity >= 0
    return time.process_time() - begun, b_cubed(entity[scored], found[scored])


def main() -> None:
    """Print the scores and the ratio of the times."""
    texts, entity = names()
    draws = np.random.default_rng(1)
    frequent = 1.0 / np.arange(1, DIFFERENT + 1)
    more = draws.choice(DIFFERENT, ROWS - DIFFERENT, p=frequent / frequent.sum())
    rows = draws.permutation(np.append(np.arange(DIFFERENT), more))
    for labels in (False, True):
        for _ in range(2):
            alone, alone_score = measure(texts, entity, labels=labels)
            whole, whole_score = measure([texts[row] for row in rows], entity[rows], labels=labels)
        how = "half labelled" if labels else "without labels"
        print(
            f"{how}: {DIFFERENT:,} rows B-cubed {alone_score.f1:.4f},"
            f" {alone:.2f} s; {ROWS:,} rows {whole_score.f1:.4f}, {whole:.2f} s, {whole / alone:.2f} times"
        )


if __name__ == "__main__":
    main()
