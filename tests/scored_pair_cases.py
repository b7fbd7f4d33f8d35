"""Scored pairs of made-up entities."""

import numpy as np

BRIDGE = 3.0  # log odds of a false pair


def scored_table(entities, *, noise=1.0, bridges=0, shift=0.0, seed=0, absent=0.05):
    """Pairs of entities of given sizes with log odds around 4, and false ones around -4.

    bridges
        Number of false pairs with a high score between neighboring entities.
    shift
        Added to all scores, as by a tool that is not calibrated.
    absent
        Share of the true pairs that were never scored.
    """
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(entities)), entities)
    rows = []
    for a in range(len(truth)):
        for b in range(a + 1, len(truth)):
            if truth[a] == truth[b]:
                if rng.random() >= absent:
                    rows.append((a, b, rng.normal(4.0, noise)))
            elif truth[b] == truth[a] + 1 and rng.random() < 0.2:
                rows.append((a, b, rng.normal(-4.0, noise)))
    for number in range(bridges):
        a, b = np.flatnonzero(truth == 2 * number)[0], np.flatnonzero(truth == 2 * number + 1)[0]
        rows = [row for row in rows if row[:2] != (a, b)]
        rows.append((a, b, BRIDGE))
    return [{"id": f"r{a}", "other": f"r{b}", "log_odds": s + shift} for a, b, s in rows], truth


def labels_in_order(answer):
    """Labels of the records r0, r1, ... of an answer; records in no pair are alone."""
    found = dict(zip(answer.ids.to_pylist(), answer.entity.to_pylist(), strict=True))
    return lambda n: [found.get(f"r{row}", f"r{row}") for row in range(n)]
