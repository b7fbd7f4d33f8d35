"""Fit a resolver to labelled entities, to labelled pairs, to a few of either, or without labels."""

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
