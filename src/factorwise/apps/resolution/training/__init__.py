"""Learning to resolve: from labelled entities and pairs, from a few of them, and from none."""

from __future__ import annotations

from factorwise.apps.resolution.training.fitting import (
    Blocked,
    entity_column,
    entity_numbers,
    ignore_blocks,
    learn,
    learn_without_labels,
    sampled,
)

__all__ = [
    "Blocked",
    "entity_column",
    "entity_numbers",
    "ignore_blocks",
    "learn",
    "learn_without_labels",
    "sampled",
]
